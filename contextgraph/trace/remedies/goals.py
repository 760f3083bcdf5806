"""Whether a later step achieves what an earlier one failed to do."""

import posixpath
import re
from collections.abc import Callable, Sequence

from contextgraph.model import Family
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.actions.reading import ActionReading, imported_names
from contextgraph.trace.edits import (
    Span,
    edited_file,
    is_edit,
    is_tool_edit,
    new_lines,
    similarity,
)
from contextgraph.trace.predicament import SILENCE
from contextgraph.trace.steps import StepTrace

_WORD = re.compile(r"[A-Za-z_][\w-]*|\d+")
_NAME_WORD = re.compile(r"[a-z]+")
_OPTION = re.compile(r"(?<=\s--)[A-Za-z][\w-]*")
_TEST_NAME = re.compile(r"\btest_\w+")
_TESTS_RAN = re.compile(r"^Ran [1-9]\d* tests? in |\b[1-9]\d* passed\b", re.MULTILINE)
_STEM = re.compile(r"[A-Za-z_]\w*")
_MISTYPED = frozenset({Family.SHELL, Family.TOOL_USAGE, Family.NOT_FOUND})
_MOVING = frozenset({"goto", "scroll_up", "scroll_down"})
# What a search answers that shows no hit: there is none, or there are too many.
_NOTHING_FOUND = re.compile(r"No matches found|[^\n]*Please narrow your search")
_INSTALLS = re.compile(r"\b(?:install|develop|add|sync|upgrade|update)\b")
_HELP = re.compile(r"\s(?:-h|--help)\b")

# A corrected attempt follows soon after; the same command much later serves another end.
_NEAR = 6
_LINE_READ = 400
_PROGRAM_READ = 4000
_SHARED_WORDS = 0.4
_SAME_WORDS = 0.8
_SHARED_PROGRAM = 0.6
_SHARED_NAME = 0.5
_SAME_PLACE = 3


def same_goal(failed: StepTrace, later: StepTrace) -> bool:
    """True where *later* tries what *failed* tried, perhaps in another way."""
    if _HELP.search(_line(later)) and not _HELP.search(_line(failed)):
        return False
    if answers_nothing(later) and not _is_unknown(failed):
        return False
    kind = failed.reading.kind
    if (kind.writes or failed.reading.scripted) and _changes_the_same(failed, later):
        return True
    if kind.writes and not is_edit(failed):
        return _is_similar(failed, later)
    return _GOALS.get(kind, _is_similar)(failed, later)


def _changes_the_same(failed: StepTrace, later: StepTrace) -> bool:
    """True for an edit, by any means, of the file that a script, `sed` or patch was to edit."""
    if later.index - failed.index > _NEAR or is_tool_edit(failed):
        return False
    made = {*later.reading.scripted, *(later.reading.changed if is_edit(later) else ())}
    wanted = {*failed.reading.scripted, *failed.reading.changed}
    is_unknown = not wanted or failed.reading.verb in ("patch", "git")
    return bool(made if is_unknown else made & wanted)


def answers_nothing(step: StepTrace) -> bool:
    """True for a search that shows no hit, and for any other look at nothing."""
    shown = (step.step.observation or "").strip()
    if _NOTHING_FOUND.match(shown):
        return True
    return step.reading.kind.reads and shown in ("", SILENCE)


def same_run(reading: ActionReading, other: ActionReading) -> bool:
    """True for two readings of one command or of one script or set of tests."""
    if not reading.kind.runs or not other.kind.runs:
        return False
    if reading.command == other.command:
        return True
    return reading.verb == other.verb and bool(reading.targets) and _names(reading) == _names(other)


def _same_run(failed: StepTrace, later: StepTrace) -> bool:
    if same_run(failed.reading, later.reading):
        return True
    if ActionKind.TEST is failed.reading.kind is later.reading.kind:
        soon = later.index - failed.index <= _NEAR
        if soon and ran_no_test(failed) and failed.reading.verb == later.reading.verb:
            return True
        return _covers(later.reading, failed.reading)
    if failed.reading.kind is ActionKind.TEST:
        return False
    if failed.error is not None and failed.error.family in _MISTYPED:
        return _is_similar(failed, later)
    if later.index - failed.index <= _NEAR and is_version(failed.reading, later.reading):
        return True
    # A program typed on the line has no name by which to know it again.
    if not is_typed_again(failed, later):
        return False
    return _share(failed, later) >= _SHARED_PROGRAM and _is_similar(failed, later)


def is_typed_again(failed: StepTrace, later: StepTrace) -> bool:
    """True for programs on the line, unless both import something, but nothing in common."""
    if failed.reading.targets or later.reading.targets:
        return False
    imported, other = (
        imported_names(step.step.action.text[:_PROGRAM_READ]) for step in (failed, later)
    )
    return not (imported and other and imported.isdisjoint(other))


def runs_by_hand(failed: StepTrace, later: StepTrace) -> bool:
    """True for a program that names tests which their runner could not run, or soon ran some."""
    if failed.error and failed.error.family is Family.TEST_FAILURE and not ran_no_test(failed):
        return False
    names = _TEST_NAME.findall(" ".join(failed.reading.targets))
    if later.index - failed.index <= _NEAR and _TESTS_RAN.search(later.step.observation or ""):
        return True
    return any(name in later.step.action.text for name in names)


def ran_no_test(failed: StepTrace) -> bool:
    """True where the tests were not found or their runner could not be started."""
    error = failed.error
    return error is not None and (
        error.family in _MISTYPED or error.error_type.startswith("pytest: ")
    )


def is_version(reading: ActionReading, other: ActionReading) -> bool:
    """True for two scripts of similar names: agents write a script again, as another file."""
    if not reading.kind is other.kind is ActionKind.RUN or _names(reading) & _names(other):
        return False
    if bool(reading.scripted) is not bool(other.scripted):
        return False
    return any(
        _part(_name_words(name), _name_words(again)) > _SHARED_NAME
        for name in _names(reading)
        for again in _names(other)
    )


def _name_words(name: str) -> set[str]:
    return set(_NAME_WORD.findall(posixpath.splitext(name)[0].lower()))


def _covers(wide: ActionReading, narrow: ActionReading) -> bool:
    """True where the tests of *narrow* are among those of *wide*."""
    if not narrow.targets:
        return not wide.targets and wide.verb == narrow.verb
    named = (*wide.targets, *wide.command.split())
    return all(any(_is_in(target, other) for other in named) for target in narrow.targets)


def _is_in(target: str, other: str) -> bool:
    # One runner wants files, another modules.
    return f".{_dotted(other)}." in f".{_dotted(target)}."


def _dotted(tests: str) -> str:
    return tests.replace(".py", "").replace("::", ".").replace("/", ".")


def _same_look(failed: StepTrace, later: StepTrace) -> bool:
    wanted, seen = failed.reading, later.reading
    if not seen.kind.reads:
        return False
    if _named_file(wanted) and seen.kind is not ActionKind.VIEW:
        return False
    soon = later.index - failed.index <= _NEAR
    if (
        ActionKind.SEARCH is wanted.kind is seen.kind
        and soon
        and _search_terms(wanted) & _search_terms(seen)
    ):
        return True
    if wanted.verb in _MOVING:
        return seen.verb == wanted.verb or (soon and bool(_numbers(wanted) & _numbers(seen)))
    if _names(wanted) & _names(seen) or (soon and _terms(wanted) & _names(seen)):
        return True
    if failed.error is None or failed.error.family not in _MISTYPED:
        return False
    return soon and wanted.verb == seen.verb and _share_arguments(failed, later)


def _same_install(failed: StepTrace, later: StepTrace) -> bool:
    soon = later.index - failed.index <= 2 * _NEAR
    return (
        soon and later.reading.kind is ActionKind.INSTALL and is_installing(later.reading.command)
    )


def is_installing(command: str) -> bool:
    """True for a package manager's command that installs, rather than lists."""
    return _INSTALLS.search(command[:200]) is not None


def _is_similar(failed: StepTrace, later: StepTrace) -> bool:
    """True for a command that shares most of its words with the one that failed."""
    near = 2 * _NEAR if _share(failed, later) >= _SAME_WORDS else _NEAR
    if later.index - failed.index > near:
        return False
    if _stem(failed.reading.verb) == _stem(later.reading.verb) != "":
        named, used = _names(failed.reading), _names(later.reading)
        if named and used:
            return bool(named & used)
        arguments, other = _arguments(failed), _arguments(later)
        return arguments == other or _part(arguments, other) >= _SHARED_WORDS
    # Another program may stand in for one that the shell does not know, and for no other.
    similar = _share(failed, later) > _SHARED_WORDS
    return _is_unknown(failed) and similar and not later.reading.kind.changes_files


def same_edit(failed: StepTrace, later: StepTrace) -> bool:
    """True for much the same text, or for another one at the same place."""
    if not is_edit(later):
        return False
    new, old = new_lines(later), new_lines(failed)
    if _gives_up(old, new) and not _within(later.reading.span, failed.reading.span):
        return False
    if similarity(new, old) >= 0.5:
        return True
    if edited_file(failed) != edited_file(later):
        return False
    return _near(failed.reading.span, later.reading.span)


def _gives_up(old: Sequence[str], new: Sequence[str]) -> bool:
    """True where most of a text is left out and nothing put in its place."""
    wanted, sent = (({line.strip() for line in lines} - {""}) for lines in (old, new))
    return sent <= wanted and 2 * len(sent) < len(wanted)


def _within(inner: Span | None, outer: Span | None) -> bool:
    """True where an edit takes fewer of the same lines: what it leaves out stays as it is."""
    if inner is None or outer is None:
        return False
    return outer[0] <= inner[0] and inner[1] <= outer[1] and inner != outer


def _near(span: Span | None, other: Span | None) -> bool:
    """True for ranges that overlap or start close to one another."""
    if span is None or other is None:
        return span is other
    overlap = span[0] <= other[1] and other[0] <= span[1]
    return overlap or abs(span[0] - other[0]) <= _SAME_PLACE


_GOALS: dict[ActionKind, Callable[[StepTrace, StepTrace], bool]] = {
    ActionKind.EDIT: same_edit,
    ActionKind.CREATE: same_edit,
    ActionKind.VIEW: _same_look,
    ActionKind.SEARCH: _same_look,
    ActionKind.LIST: _same_look,
    ActionKind.RUN: _same_run,
    ActionKind.TEST: _same_run,
    ActionKind.INSTALL: _same_install,
}


def _is_unknown(step: StepTrace) -> bool:
    return step.error is not None and step.error.error_type.endswith("command not found")


def _share(failed: StepTrace, later: StepTrace) -> float:
    """How many words of the shorter line the longer one has, from 0 to 1."""
    return _part(_words(failed), _words(later))


def _part(words: set[str], other: set[str]) -> float:
    smaller = min(len(words), len(other))
    return len(words & other) / smaller if smaller else 0.0


def _share_arguments(failed: StepTrace, later: StepTrace) -> bool:
    """True where a corrected look asks for some of the same, or for all there is."""
    if _named_file(failed.reading):
        return False
    other = _arguments(later)
    options = set(_OPTION.findall(_line(later)))
    return not other or not (_arguments(failed) - options).isdisjoint(other)


def _arguments(step: StepTrace) -> set[str]:
    """The words of a line but for its verb and one-letter options."""
    words = _words(step) - {step.reading.verb}
    return {word for word in words if len(word) > 1}


def _names(reading: ActionReading) -> set[str]:
    return {posixpath.basename(target) for target in reading.targets} - {""}


def _named_file(reading: ActionReading) -> bool:
    """True where a file was requested rather than a directory."""
    return reading.kind is ActionKind.VIEW and any("." in name for name in _names(reading))


def _terms(reading: ActionReading) -> set[str]:
    return {word.strip("\"'") for word in reading.command.split()[1:]}


def _search_terms(reading: ActionReading) -> set[str]:
    """What a search asks for, without options and places."""
    return {term for term in _terms(reading) - {*reading.targets} if not term.startswith("-")}


def _numbers(reading: ActionReading) -> set[str]:
    return {word for word in reading.command.split() if word.isdecimal()}


def _line(step: StepTrace) -> str:
    return step.step.action.text[:_LINE_READ]


def _words(step: StepTrace) -> set[str]:
    return set(_WORD.findall(_line(step)))


def _stem(verb: str) -> str:
    match = _STEM.match(verb)
    return match.group() if match else ""

"""Open errors of a run, whether a later step achieves what failed, and what cleared them."""

import posixpath
import re
from collections.abc import Callable, Iterator, Sequence

from contextgraph.lazy import dataclass, regex
from contextgraph.model import (
    EXCEPTIONS,
    ErrorSignature,
    Family,
    RemedyAction,
    RemedyPattern,
)
from contextgraph.trace.actions import (
    WINDOW_VERBS,
    ActionKind,
    ActionReading,
    imported_names,
    line_of,
    run_of,
    stateful_part,
)
from contextgraph.trace.advice import Names, names_in
from contextgraph.trace.applicability import circumstances_of, detour
from contextgraph.trace.changes import (
    IMPORTING,
    code_change,
    looked_up,
    opening,
    other_command,
    refused_edit,
    shell_action,
)
from contextgraph.trace.loops import SILENCE, steady
from contextgraph.trace.shell import commands_in
from contextgraph.trace.steps import (
    Change,
    Span,
    StepTrace,
    change_of,
    edited_file,
    is_edit,
    is_tool_edit,
    is_version_query,
    net_changes,
    new_lines,
    overlap,
    similarity,
)

_WORD = regex(r"[A-Za-z_][\w-]*|\d+")
_NAME_WORD = regex(r"[a-z]+")
_OPTION = regex(r"(?<=\s--)[A-Za-z][\w-]*")
_TEST_NAME = regex(r"\btest_\w+")
_TESTS_RAN = regex(r"^Ran [1-9]\d* tests? in |\b[1-9]\d* passed\b", re.MULTILINE)
_STEM = regex(r"[A-Za-z_]\w*")
_MISTYPED = frozenset({Family.SHELL, Family.TOOL_USAGE, Family.NOT_FOUND})
# What a search answers that has too many hits to show any.
_TOO_MANY = "Please narrow your search"
_INSTALLS = regex(r"\b(?:install|develop|add|sync|upgrade|update)\b")
_HELP = regex(r"\s(?:-h|--help)\b")

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
    if _asks_for_help(later) and not _asks_for_help(failed):
        return False
    if answers_nothing(later) and not _is_unknown(failed):
        return False
    kind = failed.reading.kind
    if (kind.writes or failed.reading.scripted) and _changes_the_same(failed, later):
        return True
    if kind.writes and not is_edit(failed):
        return _is_similar(failed, later)
    return _GOALS.get(kind, _is_similar)(failed, later)


def _asks_for_help(step: StepTrace) -> bool:
    line = _line(step)
    return "-h" in line and _HELP.search(line) is not None


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
    if shown.startswith("No matches found") or _TOO_MANY in shown.partition("\n")[0]:
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
    if wanted.verb in WINDOW_VERBS:
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
    return overlap(span, other) or abs(span[0] - other[0]) <= _SAME_PLACE


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
    """Return what a search asks for, without options and places."""
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


# Older errors than the newest 12 open ones are dropped: what clears them later is chance.
_FOLLOWED = 12

# After another error took its place, so many steps may pass until the goal is reached in full.
PATIENCE = 8

# What is reached so long after the last failure is reached for other reasons.
_PATIENCE_WITH_RUNS = 80
_PATIENCE_WITH_SLIPS = 20

# A mistyped command that was not repeated for so many steps no longer concerns the agent.
_SLIP_STEPS = 8
_SLIPS = frozenset({Family.EDIT_REJECTED, Family.SHELL, Family.TOOL_USAGE, Family.NOT_FOUND})

_RUNS = frozenset({*EXCEPTIONS, Family.BUILD})

# What an installation clears, and within how many steps after it.
MISSING_PROGRAM = ("python -m: No module named", "bash: command not found")
_MISSING = ("ModuleNotFoundError", *MISSING_PROGRAM)
_STEPS_AFTER_INSTALLING = 4
# Agents write another program rather than run the same one again, within so many steps.
_STEPS_TO_REPLACE = 12
_OF_PROJECT = regex(r"(?:install|develop|sync)\b.* -(?:e|r)\b|setup\.py|\bsync\b| \.(?:\[|\s|$)")

_INTERPRETER = regex(r"(?:^|[;&|]\s*|/|\s)(python[\d.]*)\s")

_ELSEWHERE = frozenset({Family.TIMEOUT, Family.ENVIRONMENT})

_NEAR_LINES = 20

_NOT_STARTED = -1
_EARLY = {
    "SyntaxError": 0,
    "IndentationError": 0,
    "TabError": 0,
    "ModuleNotFoundError": 1,
    "ImportError": 1,
}
_LATE = 2


@dataclass(slots=True)
class OpenError:
    """An error from its *first* to its *last* showing; *gone* is where another took its place.

    *installed* is where what it misses was installed. *changed*: files were changed after its last
    showing; *replaced* is where another program then ended well.
    """

    error: ErrorSignature
    first: StepTrace
    last: StepTrace
    gone: StepTrace | None = None
    installed: StepTrace | None = None
    changed: bool = False
    replaced: StepTrace | None = None


@dataclass(frozen=True, slots=True)
class Cleared:
    """An open error that ended: the goal was reached at *by*, or (*moved*) failed further on."""

    opened: OpenError
    by: StepTrace
    moved: bool = False

    @property
    def verified(self) -> bool:
        """True where the answer at *by* shows the error gone, rather than perhaps hidden."""
        return not self.moved or (
            self.by.error is not None and _is_later(self.opened.error, self.by.error)
        )


class OpenErrors:
    """The errors that are open after the steps pushed so far."""

    def __init__(self) -> None:
        self._open: list[OpenError] = []
        self._now = -1

    def push(self, step: StepTrace) -> tuple[Cleared, ...]:
        """Take *step* in; the errors that it clears, oldest first."""
        self._now = step.index
        for opened in self._open:
            _follow(opened, step)
        ends = [(opened, _ended(opened, step)) for opened in self._open]
        self._open = [opened for opened, end in ends if end is None and not _is_stale(opened, step)]
        if step.error is not None:
            self._meet(step, step.error)
        elif step.reading.kind is ActionKind.INSTALL:
            for opened in self._open:
                if installs_missing(step.reading.command, opened.error):
                    opened.installed = step
        return tuple(end for _, end in ends if end is not None)

    def finish(self) -> tuple[Cleared, ...]:
        """Settle errors at the end of the run that gave way to others."""
        return tuple(end for opened in self._open if (end := _given_up(opened)) is not None)

    @property
    def latest(self) -> OpenError | None:
        """The error met last that still stands in the way."""
        standing = [
            opened
            for opened in self._open
            if opened.gone is None
            and (opened.error.family not in _SLIPS or self._now - opened.last.index <= _SLIP_STEPS)
        ]
        return max(standing, key=lambda opened: opened.last.index, default=None)

    def _meet(self, step: StepTrace, error: ErrorSignature) -> None:
        for number, opened in enumerate(self._open):
            if _same_error(opened.error, error) and same_goal(opened.last, step):
                self._open[number] = OpenError(opened.error, opened.first, step)
                return
        for opened in self._open:
            if same_run(opened.last.reading, step.reading) and _further(opened.error, error):
                opened.gone = opened.gone or step
        self._open = [*self._open, OpenError(error, step, step)][-_FOLLOWED:]


def _ended(opened: OpenError, step: StepTrace) -> Cleared | None:
    if step.succeeded and _reaches(opened, step):
        return Cleared(opened, step)
    if _has_started(opened, step):
        return Cleared(opened, step, moved=True)
    if opened.installed is not None and _uses(opened, opened.installed, step):
        return Cleared(opened, step, moved=True)
    if opened.gone is not None and step.index - opened.gone.index > PATIENCE:
        return Cleared(opened, opened.gone, moved=True)
    return _given_up(opened) if _is_stale(opened, step) else None


def _reaches(opened: OpenError, step: StepTrace) -> bool:
    """True for the goal of the last attempt, or of the first program that showed the error."""
    if same_goal(opened.last, step):
        return True
    if opened.first is opened.last:
        return False
    return opened.first.reading.kind.runs and same_goal(opened.first, step)


def _given_up(opened: OpenError) -> Cleared | None:
    """Where an error, whose goal was not reached as long as it was followed, was left behind."""
    by = opened.gone or opened.replaced
    return Cleared(opened, by, moved=True) if by is not None else None


def _follow(opened: OpenError, step: StepTrace) -> None:
    """Note in *opened* that *step* changes files, or does with another program what failed."""
    reading = step.reading
    opened.changed = (
        opened.changed
        or bool(reading.changed or reading.scripted)
        or (reading.kind is ActionKind.INSTALL and is_installing(reading.command))
    )
    if opened.replaced is None and _replaces(opened, step):
        opened.replaced = step


def _replaces(opened: OpenError, step: StepTrace) -> bool:
    """True for another program of the run's own that ends well where the first one did not."""
    failed, reading = opened.last, step.reading
    if not step.succeeded or reading.kind is not ActionKind.RUN:
        return False
    if reading.scripted or is_version_query(reading):
        return False
    if failed.reading.kind is ActionKind.TEST:
        return runs_by_hand(failed, step)
    if opened.error.family not in _RUNS or opened.error.error_type in _MISSING:
        return False
    if failed.reading.kind is not ActionKind.RUN:
        return False
    soon = step.index - failed.index <= _STEPS_TO_REPLACE
    return soon and (opened.changed or is_typed_again(failed, step))


def _has_started(opened: OpenError, step: StepTrace) -> bool:
    """True where what could not be started, or not by that interpreter, fails in its own code."""
    failed, error = opened.last, step.error
    if error is None or error.family not in _RUNS or opened.error.family in _ELSEWHERE:
        return False
    if error.error_type in _MISSING or ran_no_test(step):
        return False
    if not same_run(failed.reading, step.reading):
        return False
    if opened.error.family in _SLIPS or ran_no_test(failed):
        return True
    return _interpreter(failed) != _interpreter(step) and not _same_error(opened.error, error)


def _interpreter(step: StepTrace) -> str:
    match = _INTERPRETER.search(step.step.action.text)
    return match[1] if match else ""


def installs_missing(command: str, error: ErrorSignature) -> bool:
    """True where *command* installs what *error* misses, or the project with all that it needs."""
    if error.error_type not in _MISSING:
        return False
    return (
        any(word in command for word in error.keywords) or _OF_PROJECT.search(command) is not None
    )


def _uses(opened: OpenError, installed: StepTrace, step: StepTrace) -> bool:
    """True where *step* runs something after the installation, and nothing is missing there."""
    if step.index - installed.index > _STEPS_AFTER_INSTALLING:
        return False
    if step.error and (step.error.family not in _RUNS or step.error.error_type in _MISSING):
        return False
    named = any(word in step.step.action.text for word in opened.error.keywords)
    if named or opened.last.reading.kind is not ActionKind.TEST:
        return step.reading.kind.runs or (named and step.reading.kind is ActionKind.OTHER)
    return step.reading.verb == opened.last.reading.verb


def _is_stale(opened: OpenError, step: StepTrace) -> bool:
    patience = _PATIENCE_WITH_RUNS if opened.error.family in _RUNS else _PATIENCE_WITH_SLIPS
    return step.index - opened.last.index > patience


def _same_error(error: ErrorSignature, other: ErrorSignature) -> bool:
    """True for one message; a template is shared by errors that are cleared one by one."""
    kinds = (error.family, error.error_type) == (other.family, other.error_type)
    if kinds and error.family is Family.SYNTAX_ERROR and not _is_near(error, other):
        return False
    if not kinds or error.message == other.message:
        return kinds
    return steady(error.message) == steady(other.message)


def _is_near(error: ErrorSignature, other: ErrorSignature) -> bool:
    """True for places within some lines, which an edit may move, or that are not known."""
    place, again = _place(error), _place(other)
    if place is None or again is None:
        return True
    return place[0] == again[0] and abs(place[1] - again[1]) <= _NEAR_LINES


def _further(before: ErrorSignature, now: ErrorSignature) -> bool:
    """True where *now* may show that the run got past *before*."""
    if before.family in _ELSEWHERE or now.family not in _RUNS or _rank(now) < _rank(before):
        return False
    if before.error_type == now.error_type and before.location == now.location:
        # The same kind of failure at the same line: another wrong value, most likely.
        return before.location is None and before.template != now.template
    old, new = _place(before), _place(now)
    return old is None or new is None or old[0] != new[0] or new[1] >= old[1]


def _is_later(before: ErrorSignature, now: ErrorSignature) -> bool:
    """True where *now* comes up at a point that *before* kept the run from reaching."""
    if _rank(now) != _rank(before):
        return _rank(now) > _rank(before)
    old, new = _place(before), _place(now)
    return old is not None and new is not None and old[0] == new[0] and new[1] >= old[1]


def _place(error: ErrorSignature) -> tuple[str, int] | None:
    file, _, line = (error.location or "").rpartition(":")
    return (file, int(line)) if file and line.isdecimal() else None


def _rank(error: ErrorSignature) -> int:
    if error.family not in _RUNS:
        return _NOT_STARTED
    return _EARLY.get(error.error_type, _LATE)


_QUOTED_NAME = regex(r"['\"`]([A-Za-z_][\w.]*)['\"`]")
_SKIPPING = regex(
    r"[sx#](?:(?<=\bs)(?:kip|uppress\()|(?<=\bx)fail\b|(?<=#) *(?:noqa|type: ignore))"
)
_CATCHING = regex(r"\bexcept\b")
_DOING = regex(r"\w\(|^[ \t]*(?:assert|raise|import|from)\b", re.MULTILINE)
# Empty values that replace what failed.
_NOTHING = regex(
    r"^(?!\s*(?:async +)?(?:def|class)\b).*(?:(?:=|\breturn|\belse)\s*"
    r"(?:None|(?:np|math)\.nan|\"\"|'')|(?:\breturn|\belse)\s*"
    r"(?:\[(?:\"\")?\]|\{\}|(?:set|dict|list|pd\.DataFrame)\(\)))"
    r"(?![\w.,(=\[])",
    re.MULTILINE,
)
_STAND_IN = regex(r"\b(?:Magic)?Mock\(|\bclass \w*(?:Mock|Dummy|Fake|Stub)|\bsys\.modules\[")
_IMPORTS = regex(r"^[ \t]*((?:from\s+\S+\s+)?import\s.+)$", re.MULTILINE)
_WORD_OF_IMPORT = regex(r"\b(?!from\b|import\b|as\b)[A-Za-z_]\w+")
_DEFINED = regex(r"\b(?:class|def) (\w+)")
_ASSERTING = regex(r"\bassert")

_MAX_CHANGES = 3
_SATISFIED = "Requirement already satisfied"
_TRIES = 40
_PREPARING = frozenset({"mkdir", "touch", "cp", "mv", "ln", "chmod", "export"})
_UNDOING = regex(r"git\s+(?:checkout|restore|reset|stash)\b")
_PASSED = regex(r"\b[1-9]\d* passed\b|^ok\b", re.MULTILINE)


def is_workaround(end: Cleared, changes: Sequence[Change], commands: Sequence[str]) -> bool:
    """True where the failure was caught, skipped, cut out or replaced by a stand-in."""
    everywhere = _Diff.of(changes)
    skips = _SKIPPING.search("\n".join((everywhere.added, *commands)))
    if skips and not _SKIPPING.search(everywhere.removed):
        return True
    error = end.opened.error
    if error.error_type in IMPORTING:
        return _is_import_given_up(error, everywhere)
    # What a fix of the project may well do is a workaround in the script that shows the failure.
    script = {posixpath.basename(target) for target in end.opened.last.reading.targets}
    shown = _Diff.of([change for change in changes if posixpath.basename(change.file) in script])
    if _is_commented_out(changes):
        return True
    if _NOTHING.search(everywhere.added) and not _NOTHING.search(everywhere.removed):
        return True
    if _CATCHING.search(shown.added) and not _CATCHING.search(shown.removed):
        return True
    if error.error_type == "AssertionError" and _ASSERTING.search(shown.removed):
        return not _ASSERTING.search(shown.added)
    return not shown.added and _DOING.search(shown.removed) is not None


@dataclass(frozen=True, slots=True)
class _Diff:
    """The code of several changes in one text each, comments left out."""

    removed: str
    added: str

    @classmethod
    def of(cls, changes: Sequence[Change]) -> "_Diff":
        removed = (line for change in changes for line in change.removed if _is_code(line))
        added = (line for change in changes for line in change.added if _is_code(line))
        return cls("\n".join(removed), "\n".join(added))


def _is_commented_out(changes: Sequence[Change]) -> bool:
    """True where code that does something was turned into a comment."""
    removed = {line.strip() for change in changes for line in change.removed if _DOING.search(line)}
    comments = {
        line.strip().lstrip("# ") for change in changes for line in change.added if "#" in line
    }
    return not removed.isdisjoint(comments)


def _is_import_given_up(error: ErrorSignature, diff: _Diff) -> bool:
    """True where what could not be imported is defined on the spot or not used any more."""
    if _STAND_IN.search(diff.added):
        return True
    imports = "\n".join(_IMPORTS.findall(diff.added))
    defined = set(_DEFINED.findall(diff.added))
    for line in _IMPORTS.findall(diff.removed):
        words = _WORD_OF_IMPORT.findall(line)
        if not defined.isdisjoint(words):
            return True
        is_wanted = any(
            name.partition(".")[0] in words for name in _QUOTED_NAME.findall(error.message)
        )
        if is_wanted and not any(word in imports for word in words):
            return True
    return False


def _is_code(line: str) -> bool:
    return not line.lstrip().startswith("#")


@dataclass(frozen=True, slots=True)
class Recovery:
    """An error and how it was cleared.

    *error_step* is where it was first met, *cleared_step* the first later step at which the same
    goal is reached. *actions* are what was done about it, in order. *verified*: the answer of
    *cleared_step* shows the error gone. *workaround*: it was avoided rather than solved.
    *circumstances* are those of the first attempt. *detour* counts the steps, up to where the error
    was gone, that *actions* themselves do not need.
    """

    error_step: int
    cleared_step: int
    error: ErrorSignature
    actions: tuple[RemedyAction, ...]
    verified: bool
    workaround: bool
    circumstances: tuple[str, ...] = ()
    detour: int = 0


def recoveries_of(steps: Sequence[StepTrace], repo: str = "") -> tuple[Recovery, ...]:
    """The recoveries of a run in *repo*, in the order of their errors."""
    errors = OpenErrors()
    cleared = [end for step in steps for end in errors.push(step)]
    cleared += errors.finish()
    cleared.sort(key=lambda end: (end.opened.first.index, end.by.index))
    repo_name = repo.rpartition("/")[2]
    return tuple(_recovery(end, steps, repo_name) for end in cleared)


def _recovery(end: Cleared, steps: Sequence[StepTrace], repo_name: str) -> Recovery:
    actions, workaround = _remedy(end, steps, repo_name)
    first = end.opened.first.step
    # Another error may have taken its place.
    gone = (end.opened.gone or end.by).index - end.opened.first.index
    return Recovery(
        error_step=end.opened.first.index,
        cleared_step=end.by.index,
        error=end.opened.error,
        actions=tuple(dict.fromkeys(actions)),
        verified=end.verified and (end.by.error is None or _was_of_use(end, steps)),
        workaround=workaround,
        circumstances=circumstances_of(
            end.opened.error, first.action.text, first.observation or ""
        ),
        detour=detour(actions, end.opened.error.family, gone),
    )


def _was_of_use(end: Cleared, steps: Sequence[StepTrace]) -> bool:
    """False where the program that was missing never worked in the run, even after it was there."""
    if end.opened.error.error_type not in MISSING_PROGRAM:
        return True
    later = steps[end.by.index - steps[0].index :]
    return any(
        step.reading.verb == end.by.reading.verb
        and (step.succeeded or _PASSED.search(step.step.observation or "") is not None)
        for step in later
    )


def _remedy(
    end: Cleared, steps: Sequence[StepTrace], repo_name: str
) -> tuple[Sequence[RemedyAction], bool]:
    """Return what was done between the last showing of an error and its clearance."""
    failed, by = end.opened.last, end.by
    if end.moved and by is end.opened.replaced:
        return (), False  # nothing shows what of it the error needed
    if is_edit(failed) and is_edit(by) and (new_lines(failed) or failed.reading.span):
        before = [step for step in _between(steps, failed, by) if is_edit(step) and step.succeeded]
        return refused_edit(failed, by, before), False
    if failed.reading.kind.runs and by.reading.kind.runs:
        return _rerun(end, steps, repo_name)
    between = [step for step in _between(steps, failed, by) if step.succeeded]
    if failed.reading.kind.reads:
        actions = _look(failed, by, between, repo_name)
        return actions, len(actions) == 1 and _is_other_program(failed, by)
    return _command(failed, by, between, repo_name), _is_other_program(failed, by)


def patterns_tried(steps: Sequence[StepTrace], at: int, repo: str) -> tuple[RemedyPattern, ...]:
    """The patterns of what was done about the last error up to step *at*, else the first, in order.

    That is what would have been the remedy, had any of the next 40 steps cleared the error; no step
    counts after the one that did. Empty where there was no error.
    """
    failed = next((step for step in (*reversed(steps[: at + 1]), *steps) if step.error), None)
    if failed is None or failed.error is None:
        return ()
    opened, repo_name = OpenError(failed.error, failed, failed), repo.rpartition("/")[2]
    patterns: dict[RemedyPattern, None] = {}
    start = max(at, failed.index - steps[0].index) + 1
    for step in steps[start : start + _TRIES]:
        actions, _ = _remedy(Cleared(opened, step), steps, repo_name)
        own = shell_action(step.step.action.text, _names_in_error(failed), frozenset())
        patterns.update(
            dict.fromkeys(action.pattern for action in (*actions, *([own] if own else ())))
        )
        if step.succeeded and same_goal(failed, step):
            break
    return tuple(patterns)


def _between(
    steps: Sequence[StepTrace], failed: StepTrace, until: StepTrace
) -> Sequence[StepTrace]:
    first = steps[0].index
    return steps[failed.index + 1 - first : until.index - first]


def _look(
    failed: StepTrace, worked: StepTrace, between: Sequence[StepTrace], repo_name: str
) -> list[RemedyAction]:
    """How something was found after all."""
    view = next((s for s in reversed(between) if s.reading.kind is ActionKind.VIEW), None)
    moved = failed.reading.verb == worked.reading.verb == "goto"
    same = failed.reading.command == worked.reading.command
    if view is not None and view.reading.targets and (moved or same):
        return [opening(view.reading.targets[0], worked.reading.command)]
    other = other_command(failed, worked, repo_name)
    if failed.step.action.text.split() == worked.step.action.text.split():
        return other
    return [*looked_up(worked, between), *other]


def _command(
    failed: StepTrace, worked: StepTrace, between: Sequence[StepTrace], repo_name: str
) -> list[RemedyAction]:
    """How a command that was refused was put otherwise."""
    names = _names_in_error(failed)
    prepared = [step for step in between if _prepares(step)][-1:]
    parts = [step.step.action.text for step in prepared] or _causes(between)
    first = [shell_action(part, names, frozenset()) for part in parts]
    other = other_command(failed, worked, repo_name)
    actions = [action for action in first if action is not None]
    if actions and run_of(worked).split() == run_of(failed).split():
        return actions
    return actions + other


def _names_in_error(step: StepTrace) -> Names:
    return names_in(step.error.error_type, step.error.message) if step.error else Names()


def _is_other_program(failed: StepTrace, worked: StepTrace) -> bool:
    """True where a program that the shell does not know was replaced, rather than respelt."""
    if failed.error is None or not failed.error.error_type.endswith("command not found"):
        return False
    # `find.` means `find .`: the same letters.
    old, new = (re.sub(r"\W", "", run_of(step))[:4] for step in (failed, worked))
    return old != new


def _prepares(step: StepTrace) -> bool:
    """True for a command that changes what later commands meet."""
    if step.reading.kind is ActionKind.INSTALL:
        return is_installing(step.reading.command)
    return step.reading.verb in _PREPARING


def _rerun(
    end: Cleared, steps: Sequence[StepTrace], repo_name: str
) -> tuple[list[RemedyAction], bool]:
    """How a command came to run without the error it had."""
    failed, error = end.opened.last, end.opened.error
    # Where another error took its place, what followed bears on that one.
    until = end.opened.gone or end.by
    between = _between(steps, failed, until)
    is_other = run_of(failed).split() != run_of(until).split()
    edits, parts = _bearing_edits(steps, between, end), _parts(between, failed, until)
    if is_other and error.family not in _RUNS:
        # The command itself was wrong: what else was changed by the way did not clear the error.
        edits, parts = [], {part: None for part in parts if installs_missing(part, error)}
    if edits:
        parts = {part: change for part, change in parts.items() if not part.startswith("rm ")}
    actions = [*_shell_actions(parts, between, failed)]
    actions += [code_change(change, error, failed.reading.targets) for change in net_changes(edits)]
    if not actions and not is_other:
        named = (
            shell_action(part, _names_in_error(failed), frozenset()) for part in _causes(between)
        )
        actions += [action for action in named if action is not None]
    # The name of a script that was rewritten is not a remedy, but what was written is.
    if not actions or (is_other and not is_version(failed.reading, until.reading)):
        actions += other_command(failed, until, repo_name)
    changes = [*net_changes(edits), *(change for change in parts.values() if change)]
    return actions, is_workaround(end, changes, list(parts))


def _causes(between: Sequence[StepTrace]) -> list[str]:
    """The last command of *between* that may have cleared an error by itself, if any."""
    parts = [stateful_part(step) for step in between if step.succeeded]
    return [part for part in parts if part][-1:]


def _shell_actions(
    parts: dict[str, Change | None], between: Sequence[StepTrace], failed: StepTrace
) -> Iterator[RemedyAction]:
    names = _names_in_error(failed)
    edited = frozenset(edited_file(step) for step in between if is_edit(step) and step.succeeded)
    for part, change in parts.items():
        if change is not None and failed.error is not None:
            yield code_change(change, failed.error, failed.reading.targets)
        elif (action := shell_action(part, names, edited)) is not None:
            yield action


def _parts(
    between: Sequence[StepTrace], failed: StepTrace, until: StepTrace
) -> dict[str, Change | None]:
    """Return what shell lines changed, with the text they wrote where it is given."""
    done = set(line_of(failed).changes)
    made: dict[str, Change | None] = {}
    for step in (*between, until):
        # A line makes its changes, too, where what it runs then fails.
        took_effect = step.succeeded or (step.error and step.reading.kind.runs)
        if is_tool_edit(step) or not took_effect:
            continue
        for part in line_of(step).changes:
            if _UNDOING.match(part):
                made.clear()
            if part not in done and _bears(part) and not _was_there(part, step):
                made[part] = _written(step, failed) if "<<" in part else None
    chosen = [part for part in made if not part.startswith("rm ")] or list(made)
    return {part: made[part] for part in chosen[-_MAX_CHANGES:]}


def _bears(part: str) -> bool:
    """False for what only opens a file or looks at what is installed."""
    if part.startswith("create "):
        return False
    return not part.startswith("pip") or is_installing(part)


def _was_there(part: str, step: StepTrace) -> bool:
    """True for an installation of what was installed before: that cured nothing."""
    output = step.step.observation or ""
    return (
        _SATISFIED in output
        and "Successfully installed" not in output
        and any(command.installs for command in commands_in(part))
    )


def _written(step: StepTrace, failed: StepTrace) -> Change:
    """The lines that a heredoc writes and the last attempt did not."""
    before = {line.strip() for line in new_lines(failed)}
    lines = (line for line in new_lines(step) if line.strip() and line.strip() not in before)
    return Change(edited_file(step), added=tuple(lines))


def _bearing_edits(
    steps: Sequence[StepTrace], between: Sequence[StepTrace], end: Cleared
) -> list[Change]:
    """The accepted edits that bear on an error: those that touch what it names, else the last."""
    accepted = [step for step in between if is_tool_edit(step) and step.succeeded]
    changes = [change_of(steps, step.index - steps[0].index) for step in accepted]
    made = [change for change in changes if change.added or change.removed]
    bearing = [change for change in made if _touches(change, end.opened.error)]
    return (bearing or made)[-_MAX_CHANGES:]


def _touches(change: Change, error: ErrorSignature) -> bool:
    place = (error.location or "").rpartition(":")[0].rpartition("/")[2]
    if place and place == change.file.rpartition("/")[2]:
        return True
    text = "\n".join((*change.added, *change.removed))
    return any(name in text for name in _QUOTED_NAME.findall(error.message[:500]))

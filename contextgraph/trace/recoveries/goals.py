"""Whether a later step does what an earlier one failed to do."""

import posixpath
import re
from collections.abc import Callable

from contextgraph.model import Family
from contextgraph.trace.actions.kinds import CHANGING, ActionKind
from contextgraph.trace.actions.reading import ActionReading
from contextgraph.trace.edits import is_edit
from contextgraph.trace.predicament import SILENCE
from contextgraph.trace.recoveries.same_edits import same_edit
from contextgraph.trace.steps import StepTrace

_WORD = re.compile(r"[A-Za-z_][\w-]*|\d+")
_STEM = re.compile(r"[A-Za-z_]\w*")
_LOOKING = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST})
_RUNNING = frozenset({ActionKind.RUN, ActionKind.TEST})
_WRITING = frozenset({ActionKind.EDIT, ActionKind.CREATE})
_MISTYPED = frozenset({Family.SHELL, Family.TOOL_USAGE, Family.NOT_FOUND})
_MOVING = frozenset({"goto", "scroll_up", "scroll_down"})
_NOTHING_FOUND = "No matches found"
_HELP = re.compile(r"\s(?:-h|--help)\b")

# A corrected attempt follows soon after; the same command much later serves another end.
_NEAR = 6
_LINE_READ = 400
_SHARED_WORDS = 0.4
_SHARED_PROGRAM = 0.6


def same_goal(failed: StepTrace, later: StepTrace) -> bool:
    """True where *later* tries what *failed* tried, perhaps in another way."""
    if _HELP.search(_line(later)) and not _HELP.search(_line(failed)):
        return False
    if _answers_nothing(later) and not _is_unknown(failed):
        return False
    kind = failed.reading.kind
    if kind in _WRITING and not is_edit(failed):
        return _alike(failed, later)
    return _GOALS.get(kind, _alike)(failed, later)


def _answers_nothing(step: StepTrace) -> bool:
    """True for a search without a hit, and for any other look at nothing."""
    shown = (step.step.observation or "").strip()
    if shown.startswith(_NOTHING_FOUND):
        return True
    return step.reading.kind in _LOOKING and shown in ("", SILENCE)


def same_run(one: ActionReading, other: ActionReading) -> bool:
    """True for two readings of one command or of one script or set of tests."""
    if one.kind not in _RUNNING or other.kind not in _RUNNING:
        return False
    if one.command == other.command:
        return True
    return one.verb == other.verb and bool(one.targets) and _names(one) == _names(other)


def _same_run(failed: StepTrace, later: StepTrace) -> bool:
    if same_run(failed.reading, later.reading):
        return True
    if ActionKind.TEST is failed.reading.kind is later.reading.kind:
        return _covers(later.reading, failed.reading)
    if failed.reading.kind is ActionKind.TEST:
        return False
    if failed.error is not None and failed.error.family in _MISTYPED:
        return _alike(failed, later)
    # A program typed on the line has no name by which to know it again.
    nameless = not (failed.reading.targets or later.reading.targets)
    return nameless and _share(failed, later) >= _SHARED_PROGRAM and _alike(failed, later)


def _covers(wide: ActionReading, narrow: ActionReading) -> bool:
    """True where the tests of *narrow* are among those of *wide*."""
    if not narrow.targets:
        return not wide.targets and wide.verb == narrow.verb
    return all(any(_is_in(target, other) for other in wide.targets) for target in narrow.targets)


def _is_in(target: str, other: str) -> bool:
    return target == other or target.startswith((f"{other}/", f"{other}::"))


def _same_look(failed: StepTrace, later: StepTrace) -> bool:
    wanted, found = failed.reading, later.reading
    if found.kind not in _LOOKING:
        return False
    if _named_file(wanted) and found.kind is not ActionKind.VIEW:
        return False
    soon = later.index - failed.index <= _NEAR
    if ActionKind.SEARCH is wanted.kind is found.kind and soon and _asked(wanted) & _asked(found):
        return True
    if wanted.verb in _MOVING:
        return found.verb == wanted.verb or (soon and bool(_numbers(wanted) & _numbers(found)))
    if _names(wanted) & _names(found) or (soon and _terms(wanted) & _names(found)):
        return True
    if failed.error is None or failed.error.family not in _MISTYPED:
        return False
    return soon and wanted.verb == found.verb and _share_arguments(failed, later)


def _same_install(failed: StepTrace, later: StepTrace) -> bool:
    return later.reading.kind is ActionKind.INSTALL and later.index - failed.index <= 2 * _NEAR


def _alike(failed: StepTrace, later: StepTrace) -> bool:
    """True for a command that shares most of its words with the one that failed."""
    if later.index - failed.index > _NEAR:
        return False
    if _stem(failed.reading.verb) == _stem(later.reading.verb) != "":
        named, used = _names(failed.reading), _names(later.reading)
        if named and used:
            return bool(named & used)
        one, other = _arguments(failed), _arguments(later)
        return one == other or _part(one, other) >= _SHARED_WORDS
    # Another program may stand in for one that the shell does not know, and for no other.
    unknown = failed.error is not None and failed.error.error_type.endswith("command not found")
    return unknown and _share(failed, later) > _SHARED_WORDS and later.reading.kind not in CHANGING


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


def _part(one: set[str], other: set[str]) -> float:
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _share_arguments(failed: StepTrace, later: StepTrace) -> bool:
    """True where a corrected look asks for some of the same, or for all there is."""
    if _named_file(failed.reading):
        return False
    other = _arguments(later)
    return not other or not _arguments(failed).isdisjoint(other)


def _arguments(step: StepTrace) -> set[str]:
    """The words of a line but for its verb and one-letter options."""
    words = _words(step) - {step.reading.verb}
    return {word for word in words if len(word) > 1}


def _names(reading: ActionReading) -> set[str]:
    return {posixpath.basename(target) for target in reading.targets} - {""}


def _named_file(reading: ActionReading) -> bool:
    """True where a file was asked for rather than a directory."""
    return reading.kind is ActionKind.VIEW and any("." in name for name in _names(reading))


def _terms(reading: ActionReading) -> set[str]:
    return {word.strip("\"'") for word in reading.command.split()[1:]}


def _asked(reading: ActionReading) -> set[str]:
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

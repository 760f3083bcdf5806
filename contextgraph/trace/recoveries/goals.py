"""Whether a later step does what an earlier one failed to do."""

import posixpath
import re
from collections.abc import Callable

from contextgraph.model import Family
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.actions.reading import ActionReading
from contextgraph.trace.edits import edited_file, is_edit, likeness, new_lines
from contextgraph.trace.steps import StepTrace

_WORD = re.compile(r"[A-Za-z_][\w-]*|\d+")
_STEM = re.compile(r"[A-Za-z_]\w*")
_LOOKING = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST})
_RUNNING = frozenset({ActionKind.RUN, ActionKind.TEST})
_WRITING = frozenset({ActionKind.EDIT, ActionKind.CREATE})
_MISTYPED = frozenset({Family.SHELL, Family.TOOL_USAGE, Family.NOT_FOUND})
_MOVING = frozenset({"goto", "scroll_up", "scroll_down"})
_NOTHING_FOUND = "No matches found"

# A corrected attempt follows soon after; the same command much later serves another end.
_NEAR = 6
_SAME_PLACE = 3
_SHARED_WORDS = 0.4
_SHARED_PROGRAM = 0.6


def same_goal(failed: StepTrace, later: StepTrace) -> bool:
    """True where *later* tries what *failed* tried, perhaps in another way."""
    kind = failed.reading.kind
    if kind in _WRITING and not is_edit(failed):
        return _alike(failed, later)
    return _GOALS.get(kind, _alike)(failed, later)


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


def _same_edit(failed: StepTrace, later: StepTrace) -> bool:
    if not is_edit(later):
        return False
    new, old = new_lines(later), new_lines(failed)
    if likeness(new, old) >= 0.5:
        return True
    if edited_file(failed) != edited_file(later):
        return False
    return _near(failed.reading.span, later.reading.span)


def _near(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    """True for ranges that overlap or start close to one another."""
    if one is None or other is None:
        return one is other
    overlap = one[0] <= other[1] and other[0] <= one[1]
    return overlap or abs(one[0] - other[0]) <= _SAME_PLACE


def _same_look(failed: StepTrace, later: StepTrace) -> bool:
    wanted, found = failed.reading, later.reading
    if found.kind not in _LOOKING or (later.step.observation or "").startswith(_NOTHING_FOUND):
        return False
    if _named_file(wanted) and found.kind is not ActionKind.VIEW:
        return False
    soon = later.index - failed.index <= _NEAR
    if wanted.verb in _MOVING:
        return found.verb == wanted.verb or (soon and bool(_numbers(wanted) & _numbers(found)))
    if _names(wanted) & _names(found) or (soon and _terms(wanted) & _names(found)):
        return True
    if failed.error is None or failed.error.family not in _MISTYPED:
        return False
    return soon and wanted.verb == found.verb and not _named_file(wanted)


def _same_install(failed: StepTrace, later: StepTrace) -> bool:
    return later.reading.kind is ActionKind.INSTALL and later.index - failed.index <= 2 * _NEAR


def _alike(failed: StepTrace, later: StepTrace) -> bool:
    """True for a command that shares most of its words with the one that failed."""
    if later.index - failed.index > _NEAR:
        return False
    share = _share(failed, later)
    if _stem(failed.reading.verb) == _stem(later.reading.verb) != "":
        return share >= _SHARED_WORDS
    # Another program may stand in for one that the shell does not know, and for no other.
    unknown = failed.error is not None and failed.error.error_type.endswith("command not found")
    return unknown and share > _SHARED_WORDS and not is_edit(later)


_GOALS: dict[ActionKind, Callable[[StepTrace, StepTrace], bool]] = {
    ActionKind.EDIT: _same_edit,
    ActionKind.CREATE: _same_edit,
    ActionKind.VIEW: _same_look,
    ActionKind.SEARCH: _same_look,
    ActionKind.LIST: _same_look,
    ActionKind.RUN: _same_run,
    ActionKind.TEST: _same_run,
    ActionKind.INSTALL: _same_install,
}


def _share(failed: StepTrace, later: StepTrace) -> float:
    """How many words of the shorter line the longer one has, from 0 to 1."""
    one, other = _words(failed), _words(later)
    smaller = min(len(one), len(other))
    return len(one & other) / smaller if smaller else 0.0


def _names(reading: ActionReading) -> set[str]:
    return {posixpath.basename(target) for target in reading.targets} - {""}


def _named_file(reading: ActionReading) -> bool:
    """True where a file was asked for rather than a directory."""
    return reading.kind is ActionKind.VIEW and any("." in name for name in _names(reading))


def _terms(reading: ActionReading) -> set[str]:
    return {word.strip("\"'") for word in reading.command.split()[1:]}


def _numbers(reading: ActionReading) -> set[str]:
    return {word for word in reading.command.split() if word.isdecimal()}


def _words(step: StepTrace) -> set[str]:
    return set(_WORD.findall(step.step.action.text[:400]))


def _stem(verb: str) -> str:
    match = _STEM.match(verb)
    return match.group() if match else ""

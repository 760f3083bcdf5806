"""What cleared an error, in words that another agent can use."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from contextgraph.model import Family
from contextgraph.trace.edits import Change, change_of, edited_file, is_edit, new_lines
from contextgraph.trace.kinds import ActionKind
from contextgraph.trace.open_errors import Cleared
from contextgraph.trace.refused_edits import acceptance_said
from contextgraph.trace.steps import StepTrace
from contextgraph.trace.wording import code, files_of, lines_said, one_line

ACTION_CHARS = 200
_ACTIONS = 6
_EDITS_NAMED = 3

_LOOKING = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST})
_RUNNING = frozenset({ActionKind.RUN, ActionKind.TEST})
_PREPARING = frozenset({"mkdir", "touch", "cp", "mv", "ln", "chmod", "export"})
_INSTALLS = re.compile(r"\b(?:install|develop|add|sync|upgrade|update)\b")
_NAME = re.compile(r"['\"`]([A-Za-z_][\w.]*)['\"`]")
_MASKING = re.compile(r"\bexcept\b|\bskip\w*\b|\bxfail\b|\bsuppress\(|# *noqa|# *type: ignore")
_STAND_IN = re.compile(r"\b(?:Magic)?Mock\(|\bclass \w*(?:Mock|Dummy|Fake|Stub)|\bsys\.modules\[")
_IMPORTED = re.compile(r"\bimport (\w+)")
_IMPORTING = frozenset({"ImportError", "ModuleNotFoundError"})


@dataclass(frozen=True, slots=True)
class Remedy:
    """The *actions* that bear on a clearance, *what* they come to, and whether it was a detour."""

    what: str
    actions: tuple[str, ...]
    workaround: bool = False


def remedy_of(end: Cleared, steps: Sequence[StepTrace]) -> Remedy:
    """What was done between the last showing of an error and its clearance."""
    failed = end.opened.last
    if is_edit(failed) and is_edit(end.by):
        return _of_edit(failed, end.by, steps)
    if failed.reading.kind in _LOOKING:
        return _of_look(failed, end.by, steps)
    if failed.reading.kind in _RUNNING and end.by.reading.kind in _RUNNING:
        return _of_run(end, steps)
    return _of_command(failed, end.by, steps)


def _of_edit(failed: StepTrace, accepted: StepTrace, steps: Sequence[StepTrace]) -> Remedy:
    between = _between(steps, failed, accepted)
    before = [step for step in between if is_edit(step) and step.succeeded]
    same_file = [step for step in before if edited_file(step) == edited_file(accepted)]
    actions = [_action(step, steps) for step in (*same_file[-2:], accepted)]
    return Remedy(acceptance_said(failed, accepted, before), _limited(actions))


def _of_look(failed: StepTrace, found: StepTrace, steps: Sequence[StepTrace]) -> Remedy:
    """How something was found after all."""
    between = [step for step in _between(steps, failed, found) if step.succeeded]
    opened = next((s for s in reversed(between) if s.reading.kind is ActionKind.VIEW), None)
    source = next((step for step in reversed(between) if _tells(step, found)), None)
    moved = failed.reading.verb == found.reading.verb == "goto"
    if opened is not None and (moved or failed.reading.command == found.reading.command):
        what = f"opened {files_of(opened.reading.targets)} first, then used {_command(found)}"
        return Remedy(what, _typed(opened, found))
    if failed.reading.command == found.reading.command:
        return Remedy(f"repeated {_command(found)} and it worked", _typed(found))
    what = f"used {_command(found)} instead of {_command(failed)}"
    if source is None:
        return Remedy(what, _typed(found), _is_other_program(failed, found))
    return Remedy(f"{what} (found with {_command(source)})", _typed(source, found))


def _tells(step: StepTrace, found: StepTrace) -> bool:
    """True where a listing or a search showed the path that was then used."""
    if step.reading.kind not in (ActionKind.SEARCH, ActionKind.LIST):
        return False
    shown = step.step.observation or ""
    return any(posixpath.basename(target) in shown for target in found.reading.targets)


def _of_command(failed: StepTrace, worked: StepTrace, steps: Sequence[StepTrace]) -> Remedy:
    """How a command that was refused was put otherwise."""
    prepared = [step for step in _between(steps, failed, worked) if _prepares(step)]
    old, new = failed.step.action.text, worked.step.action.text
    what = f"used {code(new)} instead of {code(old)}"
    if old.strip() == new.strip():
        what = "repeated the same command and it worked"
    if prepared:
        what = f"ran {_command(prepared[-1])} first; {what}"
    return Remedy(what, _typed(*prepared, worked), _is_other_program(failed, worked))


def _is_other_program(failed: StepTrace, worked: StepTrace) -> bool:
    """True where a program that the shell does not know was replaced, rather than respelt."""
    if failed.error is None or not failed.error.error_type.endswith("command not found"):
        return False
    # `find.` means `find .`: the same letters.
    old, new = (re.sub(r"\W", "", step.step.action.text)[:4] for step in (failed, worked))
    return old != new


def _of_run(end: Cleared, steps: Sequence[StepTrace]) -> Remedy:
    """How a command came to run without the error it had."""
    failed = end.opened.last
    # Where another error took its place, what followed bears on that one.
    until = end.opened.gone or end.by
    between = _between(steps, failed, until)
    prepared = [step for step in between if _prepares(step)]
    edits = _bearing_edits(steps, between, end)
    said = [f"ran {_command(step)}" for step in prepared]
    said += [_change_said(change) for _, change in edits]
    again = "" if _is_rerun(failed, until) else f"ran {code(until.step.action.text)}"
    if again:
        said.append(again if said else f"{again} instead of {code(failed.step.action.text)}")
    used = {step.index for step in (*prepared, *(step for step, _ in edits))}
    actions = [_action(step, steps) for step in between if step.index in used]
    actions += _typed(until) if again or not actions else ()
    what = "; ".join(dict.fromkeys(said)) or "ran the same command again"
    changes = [change for _, change in edits]
    return Remedy(f"{what}; {_end_said(end, until)}", _limited(actions), _is_detour(end, changes))


def _end_said(end: Cleared, until: StepTrace) -> str:
    if end.moved and until.error is not None:
        return f"then that error was gone and {until.error.error_type} came up"
    if end.by is not until:
        return "then that error was gone, and after further fixes the command worked"
    return "then it worked"


def _is_rerun(failed: StepTrace, until: StepTrace) -> bool:
    return failed.step.action.text.split() == until.step.action.text.split()


def _prepares(step: StepTrace) -> bool:
    """True for a successful command that changes what later commands meet."""
    if not step.succeeded:
        return False
    if step.reading.kind is ActionKind.INSTALL:
        return _INSTALLS.search(step.reading.command[:200]) is not None
    return step.reading.verb in _PREPARING


def _bearing_edits(
    steps: Sequence[StepTrace], between: Sequence[StepTrace], end: Cleared
) -> list[tuple[StepTrace, Change]]:
    """The accepted edits that bear on an error: those that touch what it names, else the last."""
    first = steps[0].index if steps else 0
    accepted = [step for step in between if is_edit(step) and step.succeeded]
    made = [(step, change_of(steps, step.index - first)) for step in accepted]
    made = [(step, change) for step, change in made if change.added or change.removed]
    bearing = [(step, change) for step, change in made if _bears(change, end)]
    return (bearing or made)[-_EDITS_NAMED:]


def _bears(change: Change, end: Cleared) -> bool:
    error = end.opened.error
    place = (error.location or "").rpartition(":")[0]
    if place and posixpath.basename(place) == posixpath.basename(change.file):
        return True
    text = "\n".join((*change.added, *change.removed))
    return any(name in text for name in _NAME.findall(error.message[:500]))


def _change_said(change: Change) -> str:
    where = f" in {files_of([change.file])}" if change.file else ""
    if change.added and change.removed:
        return f"changed {lines_said(change.removed)} to {lines_said(change.added)}{where}"
    if change.added:
        return f"added {lines_said(change.added)}{where}"
    return f"removed {lines_said(change.removed)}{where}"


def _is_detour(end: Cleared, changes: Sequence[Change]) -> bool:
    """True where the failure was caught, skipped, cut out or replaced by a stand-in."""
    added = "\n".join(line for change in changes for line in change.added if _is_code(line))
    removed = "\n".join(line for change in changes for line in change.removed if _is_code(line))
    if _MASKING.search(added) and not _MASKING.search(removed):
        return True
    error = end.opened.error
    if error.error_type in _IMPORTING or error.family is Family.TEST_FAILURE:
        replaced = _IMPORTED.findall(removed)
        if any(re.search(rf"\b(?:class|def) {name}\b", added) for name in replaced):
            return True
        return _STAND_IN.search(added) is not None
    return bool(removed) and not added


def _is_code(line: str) -> bool:
    return not line.lstrip().startswith("#")


def _between(
    steps: Sequence[StepTrace], failed: StepTrace, until: StepTrace
) -> Sequence[StepTrace]:
    first = steps[0].index if steps else 0
    return steps[failed.index + 1 - first : until.index - first]


def _command(step: StepTrace) -> str:
    return code(step.step.action.text)


def _action(step: StepTrace, steps: Sequence[StepTrace]) -> str:
    """One action in at most 200 characters; of an edit, what it changes."""
    span = step.reading.span
    if not is_edit(step) or (span is None and not new_lines(step)):
        return one_line(step.step.action.text, ACTION_CHARS)
    change = change_of(steps, step.index - steps[0].index)
    text = "\n".join(change.added or new_lines(step)) or "(nothing: lines deleted)"
    lines = f" {span[0]}:{span[1]}" if span else ""
    return one_line(f"edit {edited_file(step)}{lines}: {text}", ACTION_CHARS)


def _typed(*steps: StepTrace) -> tuple[str, ...]:
    return _limited([one_line(step.step.action.text, ACTION_CHARS) for step in steps])


def _limited(actions: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(actions))[-_ACTIONS:]

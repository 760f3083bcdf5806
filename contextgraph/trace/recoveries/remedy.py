"""What cleared an error, in words that another agent can use."""

import posixpath
import re
from collections.abc import Sequence

from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.edits import edited_file, is_edit, new_lines
from contextgraph.trace.recoveries.open_errors import Cleared
from contextgraph.trace.recoveries.refused_edits import acceptance_said
from contextgraph.trace.recoveries.reruns import is_installing, rerun_of
from contextgraph.trace.recoveries.telling import (
    ACTION_CHARS,
    Remedy,
    action,
    command,
    limited,
    ran,
    run_of,
    steps_between,
    typed,
)
from contextgraph.trace.steps import StepTrace
from contextgraph.trace.wording import files_of, one_line

_LOOKING = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST})
_RUNNING = frozenset({ActionKind.RUN, ActionKind.TEST})
_PREPARING = frozenset({"mkdir", "touch", "cp", "mv", "ln", "chmod", "export"})


def remedy_of(end: Cleared, steps: Sequence[StepTrace]) -> Remedy:
    """What was done between the last showing of an error and its clearance."""
    failed = end.opened.last
    if is_edit(failed) and is_edit(end.by) and (new_lines(failed) or failed.reading.span):
        return _of_edit(failed, end.by, steps)
    if failed.reading.kind in _LOOKING:
        return _of_look(failed, end.by, steps)
    if failed.reading.kind in _RUNNING and end.by.reading.kind in _RUNNING:
        return rerun_of(end, steps)
    return _of_command(failed, end.by, steps)


def _of_edit(failed: StepTrace, accepted: StepTrace, steps: Sequence[StepTrace]) -> Remedy:
    between = steps_between(steps, failed, accepted)
    before = [step for step in between if is_edit(step) and step.succeeded]
    same_file = [step for step in before if edited_file(step) == edited_file(accepted)]
    actions = [action(step, steps) for step in (*same_file[-2:], accepted)]
    return Remedy(acceptance_said(failed, accepted, before), limited(actions))


def _of_look(failed: StepTrace, found: StepTrace, steps: Sequence[StepTrace]) -> Remedy:
    """How something was found after all."""
    between = [step for step in steps_between(steps, failed, found) if step.succeeded]
    opened = next((s for s in reversed(between) if s.reading.kind is ActionKind.VIEW), None)
    source = next((step for step in reversed(between) if _tells(step, found)), None)
    moved = failed.reading.verb == found.reading.verb == "goto"
    if opened is not None and (moved or failed.reading.command == found.reading.command):
        what = f"opened {files_of(opened.reading.targets)} first, then used {command(found)}"
        return Remedy(what, typed(opened, found))
    if failed.step.action.text.split() == found.step.action.text.split():
        return Remedy(f"repeated {command(found)} and it worked", typed(found))
    what = f"used {command(found)} instead of {command(failed)}"
    if source is None:
        return Remedy(what, typed(found), _is_other_program(failed, found))
    return Remedy(f"{what} (found with {command(source)})", typed(source, found))


def _tells(step: StepTrace, found: StepTrace) -> bool:
    """True where a listing or a search showed the path that was then used."""
    if step.reading.kind not in (ActionKind.SEARCH, ActionKind.LIST):
        return False
    shown = step.step.observation or ""
    return any(posixpath.basename(target) in shown for target in found.reading.targets)


def _of_command(failed: StepTrace, worked: StepTrace, steps: Sequence[StepTrace]) -> Remedy:
    """How a command that was refused was put otherwise."""
    prepared = [step for step in steps_between(steps, failed, worked) if _prepares(step)]
    what = f"used {ran(worked)} instead of {ran(failed)}"
    if run_of(worked).split() == run_of(failed).split():
        what = "repeated the same command and it worked"
    if prepared:
        what = f"ran {command(prepared[-1])} first; {what}"
    actions = [*typed(*prepared), one_line(run_of(worked), ACTION_CHARS)]
    return Remedy(what, limited(actions), _is_other_program(failed, worked))


def _is_other_program(failed: StepTrace, worked: StepTrace) -> bool:
    """True where a program that the shell does not know was replaced, rather than respelt."""
    if failed.error is None or not failed.error.error_type.endswith("command not found"):
        return False
    # `find.` means `find .`: the same letters.
    old, new = (re.sub(r"\W", "", run_of(step))[:4] for step in (failed, worked))
    return old != new


def _prepares(step: StepTrace) -> bool:
    """True for a successful command that changes what later commands meet."""
    if not step.succeeded:
        return False
    if step.reading.kind is ActionKind.INSTALL:
        return is_installing(step.reading.command)
    return step.reading.verb in _PREPARING

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
from contextgraph.trace.shell_lines import shell_line
from contextgraph.trace.steps import StepTrace
from contextgraph.trace.wording import code, files_of, lines_said, one_line

ACTION_CHARS = 200
_ACTIONS = 6
_EDITS_NAMED = 3

_LOOKING = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST})
_RUNNING = frozenset({ActionKind.RUN, ActionKind.TEST})
_OF_RUNS = frozenset(
    {Family.PYTHON_EXCEPTION, Family.SYNTAX_ERROR, Family.TEST_FAILURE, Family.BUILD}
)
_UNDOING = re.compile(r"git\s+(?:checkout|restore|reset|stash)\b")
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
    if is_edit(failed) and is_edit(end.by) and (new_lines(failed) or failed.reading.span):
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
    what = f"used {_ran(worked)} instead of {_ran(failed)}"
    if _run_of(worked).split() == _run_of(failed).split():
        what = "repeated the same command and it worked"
    if prepared:
        what = f"ran {_command(prepared[-1])} first; {what}"
    actions = [*_typed(*prepared), one_line(_run_of(worked), ACTION_CHARS)]
    return Remedy(what, _limited(actions), _is_other_program(failed, worked))


def _is_other_program(failed: StepTrace, worked: StepTrace) -> bool:
    """True where a program that the shell does not know was replaced, rather than respelt."""
    if failed.error is None or not failed.error.error_type.endswith("command not found"):
        return False
    # `find.` means `find .`: the same letters.
    old, new = (re.sub(r"\W", "", _run_of(step))[:4] for step in (failed, worked))
    return old != new


def _of_run(end: Cleared, steps: Sequence[StepTrace]) -> Remedy:
    """How a command came to run without the error it had."""
    failed = end.opened.last
    # Where another error took its place, what followed bears on that one.
    until = end.opened.gone or end.by
    between = _between(steps, failed, until)
    again = _rerun_said(failed, until)
    edits = _bearing_edits(steps, between, end)
    deeds = _deeds(between, failed, until)
    if again and end.opened.error.family not in _OF_RUNS:
        # The command itself was wrong: what else was changed by the way did not cure it.
        edits, deeds = [], []
    said = [
        f"ran {code(deed)}" if change is None else _change_said(change) for deed, change in deeds
    ]
    said += [_change_said(change) for _, change in edits]
    if not said and not again:
        again = _line_said(failed, until)
    if again:
        said.append(again if said else f"{again} instead of {_ran(failed)}")
    actions = [one_line(deed, ACTION_CHARS) for deed, _ in deeds]
    actions += [_action(step, steps) for step, _ in edits]
    actions += [one_line(_run_of(until), ACTION_CHARS)] if again or not actions else []
    what = "; ".join(dict.fromkeys(said)) or "ran the same command again"
    changes = [change for _, change in (*edits, *deeds) if change is not None]
    return Remedy(f"{what}; {_end_said(end, until)}", _limited(actions), _is_detour(end, changes))


def _deeds(
    between: Sequence[StepTrace], failed: StepTrace, until: StepTrace
) -> list[tuple[str, Change | None]]:
    """What shell lines changed, with the text they wrote where that says more than the line."""
    done = set(shell_line(failed.step.action.text).deeds)
    made: dict[str, Change | None] = {}
    for step in (*between, until):
        if step.reading.span is not None or not _took_effect(step):
            continue
        for deed in shell_line(step.step.action.text).deeds:
            if _UNDOING.match(deed):
                made.clear()
            elif deed not in done and _cures(deed):
                made[deed] = _written(step, failed) if "<<" in deed else None
    telling = [(deed, change) for deed, change in made.items() if not deed.startswith("rm ")]
    return (telling or list(made.items()))[-_EDITS_NAMED:]


def _took_effect(step: StepTrace) -> bool:
    """True where a line did its deeds, whether or not what it ran then failed."""
    if step.error is None:
        return step.succeeded
    return step.reading.kind in _RUNNING and step.error.family in _OF_RUNS


def _cures(deed: str) -> bool:
    """False for what only opens a file or looks at what is installed."""
    if deed.startswith("create "):
        return False
    return not deed.startswith("pip") or _INSTALLS.search(deed) is not None


def _written(step: StepTrace, failed: StepTrace) -> Change:
    """The lines that a heredoc writes and the last attempt did not."""
    before = {line.strip() for line in new_lines(failed)}
    lines = (line for line in new_lines(step) if line.strip() and line.strip() not in before)
    return Change(edited_file(step), added=tuple(lines))


def _rerun_said(failed: StepTrace, until: StepTrace) -> str:
    """The command as it was run, where that differs from the one that failed."""
    same = _run_of(failed).split() == _run_of(until).split()
    return "" if same else f"ran {_ran(until)}"


def _line_said(failed: StepTrace, until: StepTrace) -> str:
    """The whole line, where what went before the command makes the difference."""
    old, new = failed.step.action.text, until.step.action.text
    return "" if old.split() == new.split() else f"ran {code(new)}"


def _ran(step: StepTrace) -> str:
    return code(_run_of(step))


def _run_of(step: StepTrace) -> str:
    """What a line runs, without what it changes first."""
    text = step.step.action.text
    return shell_line(text).runs or text


def _end_said(end: Cleared, until: StepTrace) -> str:
    if end.moved and until.error is not None:
        return f"then that error was gone and {until.error.error_type} came up"
    if end.by is not until:
        return "then that error was gone, and after further fixes the command worked"
    return "then it worked"


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
    accepted = [step for step in between if _is_window_edit(step) and step.succeeded]
    made = [(step, change_of(steps, step.index - first)) for step in accepted]
    made = [(step, change) for step, change in made if change.added or change.removed]
    bearing = [(step, change) for step, change in made if _bears(change, end)]
    return (bearing or made)[-_EDITS_NAMED:]


def _is_window_edit(step: StepTrace) -> bool:
    """True for an edit by a tool; those of a shell are told by their command."""
    return is_edit(step) and (step.reading.span is not None or bool(step.step.action.arguments))


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

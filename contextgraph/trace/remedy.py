"""What cleared an error, in words that another agent can use."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contextgraph.model import Family
from contextgraph.trace.edits import (
    Change,
    change_of,
    edited_file,
    is_edit,
    likeness,
    new_lines,
)
from contextgraph.trace.kinds import ActionKind
from contextgraph.trace.open_errors import Cleared
from contextgraph.trace.steps import StepTrace
from contextgraph.trace.wording import code, files_of, one_line, quoted

ACTION_CHARS = 200
_ACTIONS = 6
_EDITS_NAMED = 3

_LOOKING = frozenset({ActionKind.VIEW, ActionKind.SEARCH, ActionKind.LIST})
_RUNNING = frozenset({ActionKind.RUN, ActionKind.TEST})
_NAME = re.compile(r"['\"`]([A-Za-z_][\w.]*)['\"`]")
_MASKING = re.compile(r"\bexcept\b|\bskip\b|\bxfail\b|\bsuppress\(|# *noqa|# *type: ignore")
_STAND_IN = re.compile(r"\b(?:Magic)?Mock\b|\bclass \w*(?:Mock|Dummy|Fake|Stub)|\bsys\.modules\[")
_IMPORTING = frozenset({"ImportError", "ModuleNotFoundError"})


@dataclass(frozen=True, slots=True)
class Remedy:
    """The *actions* that bear on a clearance, *what* they come to, and whether it was a detour."""

    what: str
    actions: tuple[str, ...]
    workaround: bool


def remedy_of(end: Cleared, steps: Sequence[StepTrace]) -> Remedy:
    """What was done between the last showing of an error and its clearance."""
    failed = end.opened.last
    if is_edit(failed) and failed.error is not None and is_edit(end.by):
        return _of_edit(failed, end.by, steps)
    if failed.reading.kind in _LOOKING:
        return _of_look(failed, end.by, steps)
    if failed.reading.kind in _RUNNING and end.by.reading.kind in _RUNNING:
        return _of_run(end, steps)
    return _of_command(failed, end.by, steps)


def _of_run(end: Cleared, steps: Sequence[StepTrace]) -> Remedy:
    """How a command came to run without the error it had."""
    failed = end.opened.last
    # Where another error took its place, what followed bears on that one.
    until = end.opened.gone or end.by
    between = _between(steps, failed, until)
    commands = [step for step in between if _prepares(step)]
    changes = _net_changes(steps, between, end)
    said = [f"ran {quoted(step.reading.command)}" for step in commands]
    said += [_change_said(change) for change in changes]
    again = _rerun_said(failed, until)
    if not said and again:
        said, again = [again], ""
    what = _joined(said or ["ran the same command again"])
    then = "then it worked" if end.by is until and not end.moved else "then that error was gone"
    if end.by is not until and not end.moved:
        then += " and after further fixes the command worked"
    elif end.moved and until.error is not None:
        then += f"; the next one was {until.error.error_type}"
    actions = [_action(step, steps) for step in between if step in commands or _in(step, changes)]
    actions += [one_line(until.step.action.text, ACTION_CHARS)] if again or not actions else []
    return Remedy(f"{what}; {then}", _limited(actions), _is_detour(failed, changes))


def _of_edit(failed: StepTrace, accepted: StepTrace, steps: Sequence[StepTrace]) -> Remedy:
    """How an edit that was refused came to be accepted."""
    before = [
        step
        for step in _between(steps, failed, accepted)
        if is_edit(step) and step.succeeded and step.reading.span is not None
    ]
    what = (
        _definition_said(failed, accepted, before, steps)
        or _placing_said(failed, accepted)
        or _text_said(failed, accepted)
    )
    used = [step for step in before if edited_file(step) == edited_file(accepted)][-2:]
    actions = [_action(step, steps) for step in (*used, accepted)]
    return Remedy(what, _limited(actions), workaround=False)


def _definition_said(
    failed: StepTrace,
    accepted: StepTrace,
    before: Sequence[StepTrace],
    steps: Sequence[StepTrace],
) -> str:
    """How a name that was undefined got its definition; empty where that was not the trouble."""
    error = failed.error
    name = _NAME.search(error.message) if error and "undefined name" in error.message else None
    if name is None:
        return ""
    known = _defining(name[1])
    for step in before:
        if line := next((line for line in new_lines(step) if known.search(line)), ""):
            where = files_of([edited_file(step)])
            return f"{code(name[1])} was undefined: added {code(line)} to {where} first, then the edit was accepted"
    old = {line.strip() for line in new_lines(failed)}
    for line in new_lines(accepted):
        if known.search(line) and line.strip() not in old:
            return f"{code(name[1])} was undefined: put {code(line)} into the edit itself"
    word = re.compile(rf"\b{re.escape(name[1])}\b")
    if not any(word.search(line) for line in new_lines(accepted)):
        instead = _text_said(failed, accepted)
        return f"{code(name[1])} was undefined and is not used any more: {instead}"
    return ""


def _defining(name: str) -> re.Pattern[str]:
    word = re.escape(name.split(".")[0])
    return re.compile(
        rf"^\s*(?:from\s.{{1,200}}\bimport\b.*\b{word}\b|import\b.*\b{word}\b|{word}\s*[:=][^=]|"
        rf"(?:async\s+)?(?:def|class)\s+{word}\b|for\s+{word}\b)"
    )


def _placing_said(failed: StepTrace, accepted: StepTrace) -> str:
    """How the same text was placed otherwise; empty where the text itself was changed."""
    old = [line.rstrip() for line in new_lines(failed)]
    new = [line.rstrip() for line in new_lines(accepted)]
    if [line.strip() for line in old if line.strip()] != [line.strip() for line in new if line.strip()]:
        return ""
    if edited_file(failed) != edited_file(accepted):
        return f"sent the same text to {files_of([edited_file(accepted)])}; the wrong file had been open"
    if failed.reading.span != accepted.reading.span and failed.reading.span and accepted.reading.span:
        return _range_said(failed.reading.span, accepted.reading.span)
    if old != new:
        return f"indented the same text otherwise: {code(_first_difference(old, new))}"
    return "sent the same edit again and it was accepted"


def _range_said(old: tuple[int, int], new: tuple[int, int]) -> str:
    """What a changed range of an edit says."""
    said = f"sent the same text for lines {new[0]}:{new[1]} instead of {old[0]}:{old[1]}"
    if new[1] > old[1] and new[0] <= old[0]:
        return f"{said}, so that nothing of the old block is left over"
    if new[1] < old[1] and new[0] >= old[0]:
        return f"{said}, so that the lines around it stay"
    return said


def _text_said(failed: StepTrace, accepted: StepTrace) -> str:
    """What differs between the text that was refused and the one that was accepted."""
    old, new = new_lines(failed), new_lines(accepted)
    if likeness(old, new) == 0.0:
        shown = next((line for line in new if line.strip()), "")
        return _with_range(f"wrote {code(shown)} … there instead" if shown else "deleted the lines instead", failed, accepted)
    gone = [line for line in old if line.strip() not in {other.strip() for other in new}]
    come = [line for line in new if line.strip() not in {other.strip() for other in old}]
    said = []
    if come:
        said.append(f"with {_lines_said(come)}")
    if gone:
        said.append(f"without {_lines_said(gone)}")
    if not said:
        return _with_range("sent the lines in another order or indentation", failed, accepted)
    return _with_range(f"sent the text again {' and '.join(said)}", failed, accepted)


def _with_range(said: str, failed: StepTrace, accepted: StepTrace) -> str:
    old, new = failed.reading.span, accepted.reading.span
    if old is None or new is None or old == new:
        return said
    return f"{said}, for lines {new[0]}:{new[1]} instead of {old[0]}:{old[1]}"


def _of_look(failed: StepTrace, found: StepTrace, steps: Sequence[StepTrace]) -> Remedy:
    """How something was found after all."""
    between = _between(steps, failed, found)
    what = f"used {quoted(found.reading.command)} instead of {quoted(failed.reading.command)}"
    source = next((step for step in reversed(between) if _tells(step, found)), None)
    opened = next((s for s in reversed(between) if s.reading.kind is ActionKind.VIEW and s.succeeded), None)
    actions = [found]
    if failed.reading.command == found.reading.command:
        what = f"repeated {quoted(found.reading.command)}"
        source = None
        if opened is not None:
            what, actions = f"opened {files_of(opened.reading.targets)} first, then {what}", [opened, found]
    if source is not None:
        what = f"{what} (found with {quoted(source.reading.command)})"
        actions = [source, found]
    said = [one_line(step.step.action.text, ACTION_CHARS) for step in actions]
    return Remedy(what, _limited(said), workaround=False)


def _of_command(failed: StepTrace, worked: StepTrace, steps: Sequence[StepTrace]) -> Remedy:
    """How a command that was refused was put otherwise."""
    prepared = [step for step in _between(steps, failed, worked) if _prepares(step)]
    what = f"used {quoted(worked.step.action.text)} instead of {quoted(failed.step.action.text)}"
    if failed.step.action.text.strip() == worked.step.action.text.strip():
        what = "sent the same command again and it worked"
    if prepared:
        what = f"ran {quoted(prepared[-1].step.action.text)} first; {what}"
    actions = [one_line(step.step.action.text, ACTION_CHARS) for step in (*prepared, worked)]
    other_tool = failed.reading.verb != worked.reading.verb and (
        failed.error is not None and failed.error.error_type.endswith("command not found")
    )
    return Remedy(what, _limited(actions), workaround=other_tool and not _misspelt(failed, worked))


def _misspelt(failed: StepTrace, worked: StepTrace) -> bool:
    """True where the same letters were meant, as with `find.` for `find .`."""
    old, new = (re.sub(r"\W", "", step.step.action.text)[:6] for step in (failed, worked))
    return old[:4] == new[:4]


def _between(
    steps: Sequence[StepTrace], failed: StepTrace, until: StepTrace
) -> Sequence[StepTrace]:
    first = steps[0].index if steps else 0
    return steps[failed.index + 1 - first : until.index - first]


def _prepares(step: StepTrace) -> bool:
    """True for a successful command that can change what later commands meet."""
    if not step.succeeded:
        return False
    if step.reading.kind is ActionKind.INSTALL:
        return True
    return step.reading.verb in {"mkdir", "touch", "cp", "mv", "ln", "chmod", "export"}


def _net_changes(
    steps: Sequence[StepTrace], between: Sequence[StepTrace], end: Cleared
) -> list[Change]:
    """The accepted edits that bear on the error: those that touch what it names, else the last."""
    first = steps[0].index if steps else 0
    made = [
        (step, change_of(steps, step.index - first))
        for step in between
        if is_edit(step) and step.succeeded and not _prepares(step)
    ]
    changes = [change for _, change in made if change.added or change.removed]
    bearing = [change for change in changes if _bears(change, end)]
    return (bearing or changes)[-_EDITS_NAMED:]


def _bears(change: Change, end: Cleared) -> bool:
    error = end.opened.error
    place = (error.location or "").rpartition(":")[0]
    if place and posixpath.basename(place) == posixpath.basename(change.file):
        return True
    names = set(_NAME.findall(error.message))
    text = "\n".join((*change.added, *change.removed))
    return any(name in text for name in names)


def _in(step: StepTrace, changes: Sequence[Change]) -> bool:
    if not (is_edit(step) and step.succeeded):
        return False
    new = new_lines(step)
    return any(
        change.file == edited_file(step) and (set(change.added) <= set(new)) for change in changes
    )


def _change_said(change: Change) -> str:
    where = f" in {files_of([change.file])}" if change.file else ""
    if change.added and change.removed:
        return f"changed {_lines_said(change.removed)} to {_lines_said(change.added)}{where}"
    if change.added:
        return f"added {_lines_said(change.added)}{where}"
    return f"removed {_lines_said(change.removed)}{where}"


def _rerun_said(failed: StepTrace, until: StepTrace) -> str:
    old, new = (" ".join(step.step.action.text.split()) for step in (failed, until))
    return "" if old == new else f"ran {quoted(new)} instead of {quoted(old)}"


def _tells(step: StepTrace, found: StepTrace) -> bool:
    """True where a look at directories or a search showed the path that was then used."""
    if not step.succeeded or step.reading.kind not in (ActionKind.SEARCH, ActionKind.LIST):
        return False
    shown = step.step.observation or ""
    return any(posixpath.basename(target) in shown for target in found.reading.targets)


def _is_detour(failed: StepTrace, changes: Sequence[Change]) -> bool:
    """True where the failure was caught, skipped, cut out or replaced by a stand-in."""
    added = "\n".join(line for change in changes for line in change.added)
    removed = "\n".join(line for change in changes for line in change.removed)
    if _MASKING.search(added) and not _MASKING.search(removed):
        return True
    error = failed.error
    if error is not None and _STAND_IN.search(added):
        return error.error_type in _IMPORTING or error.family is Family.TEST_FAILURE
    return bool(changes) and not added.strip() and bool(removed.strip())


def _action(step: StepTrace, steps: Sequence[StepTrace]) -> str:
    """One action in at most 200 characters; of an edit, what it changes."""
    if not is_edit(step) or not new_lines(step):
        return one_line(step.step.action.text, ACTION_CHARS)
    first = steps[0].index if steps else 0
    change = change_of(steps, step.index - first)
    span = f" {step.reading.span[0]}:{step.reading.span[1]}" if step.reading.span else ""
    text = "\n".join(line for line in (change.added or new_lines(step)) if line.strip())
    return one_line(f"edit {edited_file(step)}{span}: {text}", ACTION_CHARS)


def _lines_said(lines: Sequence[str]) -> str:
    told = [line for line in lines if _says_something(line)] or list(lines)
    more = " …" if len(told) > 2 else ""
    return ", ".join(code(line) for line in told[:2]) + more


def _says_something(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and not bare.startswith("#")


def _first_difference(old: Sequence[str], new: Sequence[str]) -> str:
    pairs: Iterator[tuple[str, str]] = zip(old, new, strict=False)
    return next((after for before, after in pairs if before != after), new[0] if new else "")


def _joined(said: Sequence[str]) -> str:
    return "; ".join(dict.fromkeys(said))


def _limited(actions: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(actions))[-_ACTIONS:]

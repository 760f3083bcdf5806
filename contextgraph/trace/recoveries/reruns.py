"""How a command came to run without the error it had."""

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass

from contextgraph.model import ErrorSignature, Family
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.edits import (
    Change,
    change_of,
    change_said,
    edited_file,
    is_tool_edit,
    net_changes,
    new_lines,
)
from contextgraph.trace.recoveries.open_errors import Cleared
from contextgraph.trace.recoveries.shell_lines import line_of
from contextgraph.trace.recoveries.telling import (
    ACTION_CHARS,
    Remedy,
    action,
    limited,
    ran,
    run_of,
    steps_between,
)
from contextgraph.trace.steps import StepTrace
from contextgraph.trace.wording import code, one_line

_NAMED = 3

_RUNNING = frozenset({ActionKind.RUN, ActionKind.TEST})
_OF_RUNS = frozenset(
    {Family.PYTHON_EXCEPTION, Family.SYNTAX_ERROR, Family.TEST_FAILURE, Family.BUILD}
)
_UNDOING = re.compile(r"git\s+(?:checkout|restore|reset|stash)\b")
_INSTALLS = re.compile(r"\b(?:install|develop|add|sync|upgrade|update)\b")
_NAME = re.compile(r"['\"`]([A-Za-z_][\w.]*)['\"`]")
_SKIPPING = re.compile(r"\bskip\w*\b|\bxfail\b|\bsuppress\(|# *noqa|# *type: ignore")
_CATCHING = re.compile(r"\bexcept\b")
_DOING = re.compile(r"\w\(|^[ \t]*(?:assert|raise|import|from)\b", re.MULTILINE)
# A value that says nothing, put where there was a failure.
_NOTHING = re.compile(
    r"^(?!\s*(?:async +)?(?:def|class)\b).*(?:(?:=|\breturn|\belse)\s*"
    r"(?:None|(?:np|math)\.nan|\"\"|'')|(?:\breturn|\belse)\s*"
    r"(?:\[(?:\"\")?\]|\{\}|(?:set|dict|list|pd\.DataFrame)\(\)))"
    r"(?![\w.,(=\[])",
    re.MULTILINE,
)
_STAND_IN = re.compile(r"\b(?:Magic)?Mock\(|\bclass \w*(?:Mock|Dummy|Fake|Stub)|\bsys\.modules\[")
_IMPORTS = re.compile(r"^[ \t]*((?:from\s+\S+\s+)?import\s.+)$", re.MULTILINE)
_WORD = re.compile(r"\b(?!from\b|import\b|as\b)[A-Za-z_]\w+")
_DEFINED = re.compile(r"\b(?:class|def) (\w+)")
_ASSERTING = re.compile(r"\bassert")
_IMPORTING = frozenset({"ImportError", "ModuleNotFoundError"})


def rerun_of(end: Cleared, steps: Sequence[StepTrace]) -> Remedy:
    """How a command came to run without the error it had."""
    failed = end.opened.last
    # Where another error took its place, what followed bears on that one.
    until = end.opened.gone or end.by
    between = steps_between(steps, failed, until)
    again = _is_other_command(failed, until)
    edits = _bearing_edits(steps, between, end)
    deeds = _deeds(between, failed, until)
    if again and end.opened.error.family not in _OF_RUNS:
        # The command itself was wrong: what else was changed by the way did not cure it.
        edits, deeds = [], []
    if edits:
        deeds = [(deed, change) for deed, change in deeds if not deed.startswith("rm ")]
    named = end.opened.error.keywords
    said = [
        f"ran {code(deed)}" if change is None else change_said(change, named)
        for deed, change in deeds
    ]
    changes = net_changes([change for _, change in edits])
    said += [change_said(change, named) for change in changes]
    if again:
        said.append(f"ran {ran(until)}" if said else f"ran {ran(until)} instead of {ran(failed)}")
    elif not said:
        said.append(_line_said(failed, until))
    actions = [one_line(deed, ACTION_CHARS) for deed, _ in deeds]
    actions += [action(step, steps) for step, _ in edits]
    actions += [one_line(run_of(until), ACTION_CHARS)] if again or not actions else []
    what = "; ".join(dict.fromkeys(said))
    changes += [change for _, change in deeds if change is not None]
    return Remedy(
        f"{what}; {_end_said(end, until)}",
        limited(actions),
        _is_detour(end, changes, [deed for deed, _ in deeds]),
    )


def _deeds(
    between: Sequence[StepTrace], failed: StepTrace, until: StepTrace
) -> list[tuple[str, Change | None]]:
    """What shell lines changed, with the text they wrote where that says more than the line."""
    done = set(line_of(failed).deeds)
    made: dict[str, Change | None] = {}
    for step in (*between, until):
        if step.reading.span is not None or not _took_effect(step):
            continue
        for deed in line_of(step).deeds:
            if _UNDOING.match(deed):
                made.clear()
            elif deed not in done and _cures(deed):
                made[deed] = _written(step, failed) if "<<" in deed else None
    telling = [(deed, change) for deed, change in made.items() if not deed.startswith("rm ")]
    return (telling or list(made.items()))[-_NAMED:]


def _took_effect(step: StepTrace) -> bool:
    """True where a line did its deeds, whether or not what it ran then failed."""
    if step.error is None:
        return step.succeeded
    return step.reading.kind in _RUNNING and step.error.family in _OF_RUNS


def _cures(deed: str) -> bool:
    """False for what only opens a file or looks at what is installed."""
    if deed.startswith("create "):
        return False
    return not deed.startswith("pip") or is_installing(deed)


def is_installing(command: str) -> bool:
    """True for a package manager's command that installs, rather than lists."""
    return _INSTALLS.search(command[:200]) is not None


def _written(step: StepTrace, failed: StepTrace) -> Change:
    """The lines that a heredoc writes and the last attempt did not."""
    before = {line.strip() for line in new_lines(failed)}
    lines = (line for line in new_lines(step) if line.strip() and line.strip() not in before)
    return Change(edited_file(step), added=tuple(lines))


def _is_other_command(failed: StepTrace, until: StepTrace) -> bool:
    return run_of(failed).split() != run_of(until).split()


def _line_said(failed: StepTrace, until: StepTrace) -> str:
    """The whole line, where what went before the command makes the difference."""
    old, new = failed.step.action.text, until.step.action.text
    if old.split() == new.split():
        return "ran the same command again"
    return f"ran {code(new)} instead of {code(old)}"


def _end_said(end: Cleared, until: StepTrace) -> str:
    if end.moved and until.error is not None:
        return f"then that error was gone and {until.error.error_type} came up"
    if end.by is not until:
        return "then that error was gone, and after further fixes the command worked"
    return "then it worked"


def _bearing_edits(
    steps: Sequence[StepTrace], between: Sequence[StepTrace], end: Cleared
) -> list[tuple[StepTrace, Change]]:
    """The accepted edits that bear on an error: those that touch what it names, else the last."""
    first = steps[0].index if steps else 0
    accepted = [step for step in between if is_tool_edit(step) and step.succeeded]
    made = [(step, change_of(steps, step.index - first)) for step in accepted]
    made = [(step, change) for step, change in made if change.added or change.removed]
    bearing = [(step, change) for step, change in made if _bears(change, end)]
    return (bearing or made)[-_NAMED:]


def _bears(change: Change, end: Cleared) -> bool:
    error = end.opened.error
    place = (error.location or "").rpartition(":")[0]
    if place and posixpath.basename(place) == posixpath.basename(change.file):
        return True
    text = "\n".join((*change.added, *change.removed))
    return any(name in text for name in _NAME.findall(error.message[:500]))


def _is_detour(end: Cleared, changes: Sequence[Change], deeds: Sequence[str]) -> bool:
    """True where the failure was caught, skipped, cut out or replaced by a stand-in."""
    everywhere = _Diff.of(changes)
    skips = _SKIPPING.search("\n".join((everywhere.added, *deeds)))
    if skips and not _SKIPPING.search(everywhere.removed):
        return True
    error = end.opened.error
    if error.error_type in _IMPORTING:
        return _is_import_given_up(error, everywhere)
    # What a fix of the project may well do is a detour in the script that shows the failure.
    script = {posixpath.basename(target) for target in end.opened.last.reading.targets}
    shown = _Diff.of([one for one in changes if posixpath.basename(one.file) in script])
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
        removed = (line for one in changes for line in one.removed if _is_code(line))
        added = (line for one in changes for line in one.added if _is_code(line))
        return cls("\n".join(removed), "\n".join(added))


def _is_commented_out(changes: Sequence[Change]) -> bool:
    """True where code that does something was turned into a comment."""
    removed = {line.strip() for one in changes for line in one.removed if _DOING.search(line)}
    comments = {line.strip().lstrip("# ") for one in changes for line in one.added if "#" in line}
    return not removed.isdisjoint(comments)


def _is_import_given_up(error: ErrorSignature, diff: _Diff) -> bool:
    """True where what could not be imported is defined on the spot or not used any more."""
    if _STAND_IN.search(diff.added):
        return True
    imports = "\n".join(_IMPORTS.findall(diff.added))
    defined = set(_DEFINED.findall(diff.added))
    for line in _IMPORTS.findall(diff.removed):
        words = _WORD.findall(line)
        if not defined.isdisjoint(words):
            return True
        is_wanted = any(name.partition(".")[0] in words for name in _NAME.findall(error.message))
        if is_wanted and not any(word in imports for word in words):
            return True
    return False


def _is_code(line: str) -> bool:
    return not line.lstrip().startswith("#")

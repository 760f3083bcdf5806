"""Remedies that cleared the errors of a run; the trace of a whole run."""

import posixpath
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from msgspec import Struct

from contextgraph.model import (
    ActionKind,
    Cause,
    Course,
    ErrorSignature,
    LoopInfo,
    Loss,
    RawTrajectory,
    RemedyAction,
    RemedyPattern,
    RunFacts,
    TaskType,
)
from contextgraph.text import regex
from contextgraph.trace.advice import Names, lessons_of, names_in
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
from contextgraph.trace.loops import loops_of
from contextgraph.trace.project import FOLDER_PATTERNS, FolderCauses, facts_of, lost_between
from contextgraph.trace.run import (
    MISSING_PROGRAM,
    RUNS,
    Cleared,
    OpenError,
    followed,
    installs_missing,
    task_type_of,
)
from contextgraph.trace.shell import commands_in
from contextgraph.trace.steps import (
    Change,
    StepTrace,
    change_of,
    edited_file,
    is_edit,
    is_installing,
    is_tool_edit,
    is_version,
    line_of,
    net_changes,
    new_lines,
    read_steps,
    run_of,
    same_goal,
    stateful_part,
)

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
    """Return True if the failure was caught, skipped, cut out or replaced by a stand-in."""
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


class _Diff(Struct, frozen=True):
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


class Recovery(Struct, frozen=True):
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


def _recoveries(ends: Sequence[Cleared], steps: Sequence[StepTrace], repo: str) -> list[Recovery]:
    """Return the recoveries of a run in *repo*, in the order of their errors."""
    ordered = sorted(ends, key=lambda end: (end.opened.first.index, end.by.index))
    repo_name = repo.rpartition("/")[2]
    return [_recovery(end, steps, repo_name) for end in ordered]


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


def patterns_cleared(
    recoveries: Sequence[Recovery], after: int, folders: FolderCauses
) -> tuple[RemedyPattern, ...]:
    """Return patterns of clearances after step *after*, those of *folders* among them."""
    patterns: dict[RemedyPattern, None] = {}
    for recovery in recoveries:
        if recovery.verified and recovery.cleared_step > after:
            error = recovery.error
            patterns.update(dict.fromkeys(action.pattern for action in recovery.actions))
            if lesson := folders.lesson(recovery.error_step, error.error_type, error.message):
                patterns[FOLDER_PATTERNS[lesson.cause]] = None
    return tuple(patterns)


def _between(
    steps: Sequence[StepTrace], failed: StepTrace, until: StepTrace
) -> Sequence[StepTrace]:
    first = steps[0].index
    return steps[failed.index + 1 - first : until.index - first]


def _look(
    failed: StepTrace, worked: StepTrace, between: Sequence[StepTrace], repo_name: str
) -> list[RemedyAction]:
    """Return the actions that found something in the end."""
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
    """Return the other form of a command that was refused."""
    names = _names_in_error(failed)
    prepared = [step for step in between if _prepares(step)][-1:]
    # The line may change to a folder first.
    parts = [(*line_of(step).changes, step.step.action.text)[0] for step in prepared]
    parts = parts or _causes(between)
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
    """Return the actions after which a command ran without its error."""
    failed, error = end.opened.last, end.opened.error
    # Where another error took its place, what followed bears on that one.
    until = end.opened.gone or end.by
    between = _between(steps, failed, until)
    is_other = run_of(failed).split() != run_of(until).split()
    edits, parts = _bearing_edits(steps, between, end), _parts(between, failed, until)
    if is_other and error.family not in RUNS:
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


class Trace(Struct, frozen=True):
    """Trace of a run, in the order it happened; ends are inclusive.

    *left_behind* are errors of programs that were not run again: another one ended well.
    """

    raw: RawTrajectory
    steps: tuple[StepTrace, ...]
    loops: tuple[LoopInfo, ...]
    recoveries: tuple[Recovery, ...]
    task_type: TaskType
    course: Course
    left_behind: tuple[Recovery, ...] = ()


def trace(raw: RawTrajectory) -> Trace:
    """Return the trace of *raw*."""
    steps = tuple(read_steps(raw))
    loops = () if raw.is_talk else loops_of(steps)
    course, cleared = followed(raw, steps, loops)
    ends = () if raw.is_talk else _recoveries(cleared, steps, raw.repo)
    return Trace(
        raw,
        steps,
        loops,
        recoveries=tuple(end for end in ends if end.actions),
        task_type=task_type_of(raw.task),
        course=course,
        left_behind=tuple(end for end in ends if not end.actions),
    )


def facts_of_run(read: Trace) -> RunFacts:
    """Return the facts that a run shows, with what its machine cost it.

    These are steps lost by the causes of its verified recoveries, and steps in vain.
    """
    folders, losses, counted = FolderCauses(read.raw), list[Loss](), set[int]()
    for one in read.recoveries:
        if not one.verified or one.workaround:
            continue
        steps, error = (one.error_step, one.cleared_step), one.error
        if shown := folders.lesson(one.error_step, error.error_type, error.message):
            counted.update(range(*steps))
            losses.append(Loss(*shown, *steps, FOLDER_PATTERNS[shown.cause]))
            continue
        for action in one.actions:
            for lesson in lessons_of([action], error.error_type):
                if lesson.cause is not Cause.FOLDER:
                    losses.append(Loss(*lesson, *steps, action.pattern))
    for step in read.steps:
        if step.index not in counted and (lost := folders.in_vain(step)):
            losses.append(lost)
    between = (lost_between(*both) for both in pairwise(read.steps))
    losses += [lost for lost in between if lost]
    return facts_of(read.raw, read.steps, losses)

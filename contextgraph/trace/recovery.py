"""Circumstances of a failed attempt, which separate several causes of one message."""

import posixpath
import re
import sys
from collections.abc import Iterator, Sequence

from contextgraph.lazy import dataclass, regex
from contextgraph.model import (
    EXCEPTIONS,
    Action,
    ErrorSignature,
    Family,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    State,
)
from contextgraph.trace.actions import (
    ActionKind,
    line_of,
    new_text,
    read_action,
    run_of,
    stateful_part,
)
from contextgraph.trace.advice import Construct, Names, Term, edited, is_import, names_in
from contextgraph.trace.changes import (
    IMPORTING,
    UNDEFINED,
    code_change,
    looked_up,
    opened,
    other_command,
    refused_edit,
    shell_action,
    without_doubled,
)
from contextgraph.trace.open_errors import (
    MISSING_PROGRAM,
    Cleared,
    OpenError,
    OpenErrors,
    installs_missing,
    is_installing,
    is_version,
    same_goal,
)
from contextgraph.trace.shell import commands_in, names_program
from contextgraph.trace.steps import (
    Change,
    Span,
    StepTrace,
    change_of,
    edited_file,
    is_edit,
    is_tool_edit,
    net_changes,
    new_lines,
    numbered_lines,
)

# Of so many lines behind the range of an edit the first that is not blank counts.
_LINES_BEHIND = 4
_COMPARED_BEHIND = 2
_IDENTIFIER = regex(r"[A-Za-z_]\w{2,}")
_PROGRAM = regex(r"\w[\w.-]*")
_NUMBERED = regex(r"^(\d+):", re.MULTILINE)
_MORE_LINES = "<more lines"
# What is written where it is expected that a command may fail.
_PROBING = regex(r"\b2>|\|\||\btest -|\[ -")
# What has no ending is a class or a package rather than a file: no folder has it.
_NO_FILE_SOUGHT = regex(r"""\s*find_file\s+["']?[^\s.*"']+["']?(?:\s|$)""")
# Of a file that is not there a listing of the current folder says no more.
_LISTS_FILE = regex(r"\bls(?: -\S+)* [^\s/-][^\s/]*\.\w+(?=\s|$)")


def circumstances_of(error: ErrorSignature, attempt: str, shown: str) -> tuple[str, ...]:
    """Return the facts about *attempt*, which met *error* and returned *shown*, sorted.

    Statements of one kind exclude each other, so that the circumstances of two failures can be
    compared.
    """
    action = Action(tool="", text=attempt)
    reading = read_action(action, None, None)
    text = [line for line in new_text(action, reading) if line.strip()]
    names = names_in(error.error_type, error.message)
    # Which program ran the code at fault says nothing of it, unless it did not find a module.
    is_of_code = error.family in EXCEPTIONS and Term.MISSING_MODULE not in names.roles
    known = [f"attempt by {reading.verb}"] if reading.verb and not is_of_code else []
    if Term.UNDEFINED_NAME in names.roles and text:
        known.append(f"undefined name used as {_use(names.names[0], text)}")
    if reading.span is not None:
        known += _of_range(reading.span, text, shown)
    return tuple(sorted(known))


def _use(name: str, text: Sequence[str]) -> str:
    """Return how *text* uses the undefined *name*: modules and classes are imported."""
    name = name.partition(".")[0]
    match = re.search(rf"\b{re.escape(name)}\b(.?)", "\n".join(text))
    if match is None:
        return "nothing in the edit"
    if name in sys.stdlib_module_names:
        return "standard module"
    if name[:1].isupper():
        return "class"
    return {".": "object", "(": "function"}.get(match[1], "value")


def _of_range(span: Span, text: Sequence[str], shown: str) -> Iterator[str]:
    """How the *text* of an edit fits the lines that it replaces and those behind them."""
    first, last = span
    replaced = last - first + 1
    yield "one line replaced" if replaced == 1 else "several lines replaced"
    yield "text longer than the range" if len(text) > replaced else "text not longer than the range"
    old, behind = _lines(shown, first, last), _lines(shown, last + 1, last + _LINES_BEHIND)
    if not text or not old:
        return
    stripped = {line.strip() for line in text}
    opens = any(line.endswith(":") and line.strip() not in stripped for line in old)
    yield "opening of a block replaced" if opens else "no opening of a block replaced"
    shares = not _identifiers(text).isdisjoint(_identifiers(old))
    yield "text about the lines replaced" if shares else "text about other lines"
    yield f"first line indented {_compared(text[0], old[0])} than before"
    if behind:
        yield f"line behind indented {_compared(behind[0], text[-1])} than the last"


def _lines(shown: str, first: int, last: int) -> list[str]:
    """Lines *first* to *last*, without blank ones, of the last numbered view in *shown*."""
    lines = numbered_lines(shown, shown.rfind(f"\n{first}:"), first, last)
    return [line.rstrip() for line in lines if line.strip()]


def _identifiers(lines: Sequence[str]) -> set[str]:
    return set(_IDENTIFIER.findall("\n".join(lines)))


def _compared(line: str, other: str) -> str:
    more = _indentation(line) - _indentation(other)
    return "more" if more > 0 else "less" if more < 0 else "no more"


def _indentation(line: str) -> int:
    return len(line) - len(line.lstrip())


def could_apply(pattern: RemedyPattern, attempt: str, names: Names, shown: str = "") -> bool:
    """False where *pattern* changes something that the failed *attempt* does not have.

    *names* are those of its error: the paths that were not found, the name that was undefined. What
    is set or defined by the attempt, or where the file was *shown*, or imported by another name,
    needs no import; nor does an edit that lacks the name.
    """
    change = edited(pattern.target)
    if change is not None and change.name == Term.UNDEFINED_NAME and change.construct.binds:
        name = re.escape(names.fill(Term.UNDEFINED_NAME))
        if re.search(rf"\b(?:class|def) {name}\b", f"{attempt}\n{shown}"):
            return False
        if change.construct is Construct.IMPORT:
            is_missing = _span(attempt) is not None and re.search(rf"\b{name}\b", attempt) is None
            by_another = rf"\bimport {name}(?:\.| as )"
            is_set = re.search(rf"(?:^|[\s:]){name} *=(?!=)|{by_another}", f"{attempt}\n{shown}")
            return not is_missing and is_set is None
    if pattern.target == Term.WITHOUT_DOUBLED:
        return any(without_doubled(name.strip("/")) for name in names.names)
    if pattern.target == Term.ABSOLUTE:
        return any("/" in name.strip("/") for name in names.names or attempt.split()[1:])
    if pattern.target == Term.ANOTHER_PATH and pattern.replaced:
        return pattern.replaced in {name.strip("/") for name in names.names}
    if pattern.target == Term.CURRENT_FOLDER and pattern.parameters:
        return any(names_program(parameter, attempt) for parameter in pattern.parameters)
    program = replaced_program(pattern)
    return not (program and attempt) or names_program(program, attempt)


def replaced_program(pattern: RemedyPattern) -> str:
    """The program in place of which *pattern* runs something else; empty for none."""
    program = None if pattern.kind is RemedyKind.EDIT else _PROGRAM.match(pattern.replaced)
    return program[0] if program else ""


def shows_cause(pattern: RemedyPattern, state: State) -> bool:
    """False where *pattern* presumes a cause that *state* does not show.

    Many causes end in the same message. An edit was meant for another file where this one has no
    such lines, and for more lines where its text repeats what follows its range. It lacks a name
    where no other is undefined; but an import, only where its range is right. A path that an agent
    asks about may rightly be missing, and so may a folder where there is a module of its name. A
    name without an ending is not found as a file anywhere.
    """
    attempt, shown = state.last_action, state.last_outcome
    if pattern.target in (
        Term.CURRENT_FOLDER,
        Term.ANOTHER_PATH,
    ) and _NO_FILE_SOUGHT.match(attempt):
        return False
    if pattern.target == Term.CURRENT_FOLDER:
        return not (_PROBING.search(attempt) or _LISTS_FILE.search(attempt))
    if pattern.kind is RemedyKind.EDIT and Term.UNDEFINED_NAME in pattern.target:
        is_only_one = len({*UNDEFINED.findall(shown)}) < 2
        return is_only_one and (
            is_import(pattern.target) or not _repeats_lines_behind(attempt, shown)
        )
    if pattern.target == Term.FILE_TO_EDIT:
        return _is_beyond_file(attempt, shown)
    if pattern.target == Term.NO_FILE_NAME:
        return posixpath.basename(state.open_file) in map(posixpath.basename, _arguments(attempt))
    if pattern.kind is RemedyKind.CREATE and pattern.target == Term.PARENT_FOLDER:
        return not _is_module(attempt, f"{state.open_file}\n{shown}\n{state.task_description}")
    if pattern.target.startswith(_MORE_LINES):
        return _repeats_lines_behind(attempt, shown)
    return True


def _arguments(attempt: str) -> list[str]:
    return attempt.partition("\n")[0].split()[1:]


def _is_module(attempt: str, shown: str) -> bool:
    """True where a folder of the path in *attempt* has the name of a module that is *shown*."""
    folders = filter(None, map(posixpath.dirname, _arguments(attempt)))
    return any(f"{folder}.py" in shown for folder in folders)


def _is_beyond_file(attempt: str, shown: str) -> bool:
    span, numbers = _span(attempt), _NUMBERED.findall(shown)
    return span is not None and bool(numbers) and int(numbers[-1]) < span[0]


def _repeats_lines_behind(attempt: str, shown: str) -> bool:
    action = Action(tool="", text=attempt)
    reading = read_action(action, None, None)
    text = [line for line in new_text(action, reading) if line.strip()]
    if reading.span is None or not text:
        return False
    first, last = reading.span
    old, behind = _lines(shown, first, last), _lines(shown, last + 1, last + _LINES_BEHIND)
    is_indented_so = not old or _indentation(old[0]) == _indentation(text[0])
    repeated = {line.strip() for line in text}.intersection(
        line.strip() for line in behind[:_COMPARED_BEHIND]
    )
    return is_indented_so and bool(repeated)


def _span(attempt: str) -> Span | None:
    return read_action(Action(tool="", text=attempt), None, None).span


_NAME = regex(r"['\"`]([A-Za-z_][\w.]*)['\"`]")
_SKIPPING = regex(r"\bskip\w*\b|\bxfail\b|\bsuppress\(|# *noqa|# *type: ignore")
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
_WORD = regex(r"\b(?!from\b|import\b|as\b)[A-Za-z_]\w+")
_DEFINED = regex(r"\b(?:class|def) (\w+)")
_ASSERTING = regex(r"\bassert")

_MAX_CHANGES = 3
_SATISFIED = "Requirement already satisfied"
_TRIES = 40
_OF_RUNS = frozenset({*EXCEPTIONS, Family.BUILD})
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
        words = _WORD.findall(line)
        if not defined.isdisjoint(words):
            return True
        is_wanted = any(name.partition(".")[0] in words for name in _NAME.findall(error.message))
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


# What is done before the attempt is repeated, as a step of its own.
_BEFOREHAND = frozenset(
    {
        RemedyKind.INSTALL,
        RemedyKind.CREATE,
        RemedyKind.OPEN,
        RemedyKind.CONFIGURE,
        RemedyKind.DELETE,
        RemedyKind.REVERT,
    }
)


def detour(actions: Sequence[RemedyAction], family: Family, taken: int) -> int:
    """Return how many of the steps *taken* to clear an error *actions* themselves do not need.

    An agent that does at once what clears the error makes none.
    """
    is_code = family is not Family.EDIT_REJECTED
    beforehand = [
        action
        for action in actions
        if action.kind in _BEFOREHAND or (is_code and action.kind is RemedyKind.EDIT)
    ]
    return max(0, taken - max(1, 2 * len(beforehand)))  # each is done, and then tried


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
        own = shell_action(step.step.action.text, _names(failed), frozenset())
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
        return [opened(view.reading.targets[0], worked.reading.command)]
    other = other_command(failed, worked, repo_name)
    if failed.step.action.text.split() == worked.step.action.text.split():
        return other
    return [*looked_up(worked, between), *other]


def _command(
    failed: StepTrace, worked: StepTrace, between: Sequence[StepTrace], repo_name: str
) -> list[RemedyAction]:
    """How a command that was refused was put otherwise."""
    names = _names(failed)
    prepared = [step for step in between if _prepares(step)][-1:]
    parts = [step.step.action.text for step in prepared] or _causes(between)
    first = [shell_action(part, names, frozenset()) for part in parts]
    other = other_command(failed, worked, repo_name)
    actions = [action for action in first if action is not None]
    if actions and run_of(worked).split() == run_of(failed).split():
        return actions
    return actions + other


def _names(step: StepTrace) -> Names:
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
    if is_other and error.family not in _OF_RUNS:
        # The command itself was wrong: what else was changed by the way did not clear the error.
        edits, parts = [], {part: None for part in parts if installs_missing(part, error)}
    if edits:
        parts = {part: change for part, change in parts.items() if not part.startswith("rm ")}
    actions = [*_shell_actions(parts, between, failed)]
    actions += [code_change(change, error, failed.reading.targets) for change in net_changes(edits)]
    if not actions and not is_other:
        named = (shell_action(part, _names(failed), frozenset()) for part in _causes(between))
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
    names = _names(failed)
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
    return any(name in text for name in _NAME.findall(error.message[:500]))

"""Describes steps, fragments and runs in words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from contextgraph.model import (
    EXCEPTIONS,
    Family,
    FragmentType,
    LoopInfo,
    Phase,
)
from contextgraph.text import cut
from contextgraph.trace import (
    ActionKind,
    Recovery,
    StepTrace,
    Trace,
    change_of,
    describe_change,
    describe_remedy,
    is_edit,
    net_changes,
)

ACTION_CHARS = 160
NAMED = 3
_COMMAND_CHARS = 80
_SHOWN_CHARS = 100
_MESSAGE_CHARS = 120
_FOUND = re.compile(r"Found (\d+) matches")
_NOTHING = ("No matches found", "Your command ran successfully and did not produce any output.")
_RULE = re.compile(r"^[=_ -]+|[=_ -]+$")


def action_line(step: StepTrace) -> str:
    """The action of *step* in one line of at most 160 characters."""
    lines = step.step.action.text.strip().splitlines() or [""]
    more = " …" if len(lines) > 1 else ""
    return cut(" ".join(lines[0].split()), ACTION_CHARS - len(more)) + more


def describe_steps(read: Trace, start: int, end: int) -> list[str]:
    """Describe the steps *start* to *end* (inclusive) of a run, in order."""
    clauses: list[str] = []
    for activity, group in groupby(read.steps[start : end + 1], key=_activity):
        steps = list(group)
        if activity == "look":
            clauses += _looks(steps)
        elif activity == "write":
            clauses += changes(read, steps)
        else:
            clauses += [_ran(step) for step in steps]
    return list(dict.fromkeys(clause for clause in clauses if clause))


def changes(read: Trace, steps: Sequence[StepTrace]) -> list[str]:
    """Describe the edits among *steps*, and the last refusal."""
    first = read.steps[0].index if read.steps else 0
    accepted = [step for step in steps if step.succeeded]
    made = [change_of(read.steps, step.index - first) for step in accepted if is_edit(step)]
    clauses = [describe_change(change) for change in net_changes(made)]
    if not clauses and accepted:
        clauses = [_touched(accepted)]
    if refused := [step for step in steps if step.error]:
        clauses.append(f"{_of(refused[-1])} was refused: {failure(refused[-1])}")
    return clauses or [f"{_of(step)} {outcome(step)}" for step in steps[-1:]]


def _touched(steps: Sequence[StepTrace]) -> str:
    """Describe the targets of edits that do not show their text."""
    if not (paths := _paths(steps)):
        return action_line(steps[-1])
    made = all(step.reading.kind is ActionKind.CREATE for step in steps)
    return f"{'created' if made else 'edited'} {some(paths)}"


def failure(step: StepTrace) -> str:
    """The error of *step* with its message; empty where there is none."""
    if step.error is None:
        return ""
    message = cut(step.error.message, _MESSAGE_CHARS)
    return f"{step.error.error_type}: {message}" if message else step.error.error_type


def outcome(step: StepTrace) -> str:
    """How a command ended."""
    if step.error is not None:
        return f"failed with {failure(step)}"
    if step.step.observation is None:
        return "got no answer"
    shown = step.step.observation.strip()
    if not shown or shown.startswith(_NOTHING):
        return "ran without output"
    last = shown.splitlines()[-1]
    return f"ended with `{cut(_RULE.sub('', last) or last, _SHOWN_CHARS)}`"


def some(names: Sequence[str]) -> str:
    """The first three of *names*, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _activity(step: StepTrace) -> str:
    if step.reading.kind.reads:
        return "look"
    return "write" if step.reading.kind.writes else "run"


def _looks(steps: Sequence[StepTrace]) -> list[str]:
    failed = [f"{_of(step)} {outcome(step)}" for step in steps if step.error]
    seen = [step for step in steps if not step.error]
    searches = [step for step in seen if step.reading.kind is ActionKind.SEARCH]
    searched = list(dict.fromkeys(f"{_of(step)} ({_found(step)})" for step in searches))
    clauses = [f"searched with {some(searched)}"] if searched else []
    if files := _paths([step for step in seen if step.reading.kind is ActionKind.VIEW]):
        clauses.append(f"read {some(files)}")
    elif seen and not searched:
        clauses.append(f"looked around with {_of(seen[0])}")
    return failed[:NAMED] + clauses


def _found(step: StepTrace) -> str:
    shown = (step.step.observation or "").strip()
    if not shown or shown.startswith(_NOTHING):
        return "nothing"
    match = _FOUND.match(shown)
    count = int(match[1]) if match else len(shown.splitlines())
    return "1 hit" if count == 1 else f"{count} hits"


def _ran(step: StepTrace) -> str:
    if step.reading.kind is ActionKind.SUBMIT:
        return "submitted"
    if step.reading.kind is ActionKind.DELETE and step.succeeded and (paths := _paths([step])):
        return f"deleted {some(paths)}"
    if step.reading.kind is ActionKind.THINK:
        return ""
    if not step.step.action.text.strip():  # a reply without a command
        return outcome(step) if step.error else ""
    if step.reading.kind is ActionKind.VCS and step.succeeded:
        return f"used {_of(step)}"
    return f"{_of(step)} {outcome(step)}"


def _of(step: StepTrace) -> str:
    if is_edit(step) and (paths := _paths([step])):
        return f"an edit of {paths[0]}"
    typed = action_line(step) if step.reading.kind.reads else step.reading.command
    return f"`{cut(' '.join((typed or action_line(step)).split()), _COMMAND_CHARS)}`"


def _paths(steps: Sequence[StepTrace]) -> list[str]:
    return list(dict.fromkeys(path for step in steps for path in step.reading.targets))


DESCRIPTION_CHARS = 600
SUMMARY_CHARS = 900
_TITLE_CHARS = 200
_CLAUSE_CHARS = 240
_ERROR_CHARS = 100

_FAMILIES_OF_RUNS = EXCEPTIONS - {Family.SYNTAX_ERROR} | {Family.BUILD}


def describe(
    read: Trace,
    start: int,
    end: int,
    kind: FragmentType,
    recoveries: Sequence[Recovery],
    loops: Sequence[LoopInfo],
) -> str:
    """Describe the fragment of steps *start* to *end*, in at most 600 characters."""
    sentences = [_recovery(recovery) for recovery in recoveries]
    if kind is FragmentType.LOOP:
        sentences = [_loop_sentence(loop, read.steps) for loop in loops] + sentences
    return cut(_joined(sentences or describe_steps(read, start, end)), DESCRIPTION_CHARS)


def summarise(read: Trace, files: Sequence[str]) -> str:
    """Summarise a run in at most 900 characters, without its outcome."""
    title = next((line.strip() for line in read.raw.task.splitlines() if line.strip()), "")
    sentences = [cut(title or "no task text", _TITLE_CHARS), *_reproduced(read)]
    sentences.append(f"changed {some(files)}" if files else "changed no file")
    sentences += [cut(clause, _CLAUSE_CHARS) for clause in (*_fixes(read), *_cleared(read))]
    sentences += [_loop_sentence(loop, read.steps) for loop in read.loops[:NAMED]]
    return cut(_joined((*sentences, *_ended(read))), SUMMARY_CHARS)


def _reproduced(read: Trace) -> Iterator[str]:
    """How the failure was reproduced before anything was changed."""
    tries = [
        step
        for step in read.steps
        if step.phase is Phase.REPRODUCING
        and step.reading.kind.runs
        and step.step.observation is not None
    ]
    if tries:
        shown = next((step for step in reversed(tries) if _shows_failure(step)), tries[-1])
        yield f"before the fix `{cut(shown.reading.command, 80)}` {outcome(shown)}"


def _shows_failure(step: StepTrace) -> bool:
    return step.error is not None and step.error.family in _FAMILIES_OF_RUNS


def _fixes(read: Trace) -> list[str]:
    """Describe the accepted edits of the project."""
    fixing = [step for step in read.steps if step.phase is Phase.FIXING and step.succeeded]
    return changes(read, fixing)[:2]


def _cleared(read: Trace) -> Iterator[str]:
    """Describe the errors that were cleared."""
    cleared = Counter(recovery.error.error_type for recovery in read.recoveries)
    if cleared:
        yield "cleared " + _counted(cleared)
    solved = (
        recovery for recovery in read.recoveries if recovery.verified and not recovery.workaround
    )
    of_runs = [recovery for recovery in solved if recovery.error.family in _FAMILIES_OF_RUNS]
    for recovery in of_runs[:2]:
        yield _recovery(recovery)


def _ended(read: Trace) -> Iterator[str]:
    """Describe the last run of a program, and the error that was open at the end."""
    runs = [step for step in read.steps if step.reading.kind.runs]
    if runs and runs[-1].phase is Phase.TESTING:
        yield f"in the end `{cut(runs[-1].reading.command, 80)}` {outcome(runs[-1])}"
    if read.steps and read.steps[-1].step.observation is None:
        before = read.steps[-2:-1]
    else:
        before = read.steps[-1:]
    for step in before:
        if step.error and step not in runs:
            yield f"stopped at {failure(step)}"


def _recovery(recovery: Recovery) -> str:
    """An error, and what cleared it."""
    message = cut(recovery.error.message, _ERROR_CHARS)
    error = recovery.error.error_type
    if recovery.error.family is Family.EDIT_REJECTED:
        error = "an edit was refused"
    remedy = describe_remedy(recovery.actions)
    return f"{error} ({message}), cleared: {remedy}" if message else f"{error}, cleared: {remedy}"


def _loop_sentence(loop: LoopInfo, steps: Sequence[StepTrace]) -> str:
    last = next((step for step in steps if step.index == loop.end), None)
    what = f"`{cut(action_line(last), 80)}`" if last else "the same steps"
    name = loop.kind.replace("_", " ")
    error = f", {failure(last)}" if last and last.error else ""
    return f"loop ({name}): {loop.repetitions} times {what}{error}"


def _counted(counter: Counter[str]) -> str:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return some([f"{name} ({count}x)" if count > 1 else name for name, count in ordered])


def _joined(sentences: Iterable[str]) -> str:
    return "; ".join(sentence.strip().rstrip(".;") for sentence in sentences if sentence.strip())

"""Saying in a sentence what happened in a fragment, and in a run."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from contextgraph.model import Family, FragmentType, LoopInfo, Phase
from contextgraph.trace import ActionKind, Recovery, StepTrace, Trace
from contextgraph.writing.deeds import (
    NAMED,
    action_line,
    changes,
    cut,
    deeds,
    failure,
    outcome,
    some,
)

DESCRIPTION_CHARS = 600
SUMMARY_CHARS = 900
_TITLE_CHARS = 200
_CLAUSE_CHARS = 240
_MESSAGE_CHARS = 100

_RUNNING = frozenset({ActionKind.RUN, ActionKind.TEST})
_TELLING = frozenset({Family.PYTHON_EXCEPTION, Family.TEST_FAILURE, Family.BUILD})


def describe(
    read: Trace,
    start: int,
    end: int,
    kind: FragmentType,
    recoveries: Sequence[Recovery],
    loops: Sequence[LoopInfo],
) -> str:
    """What happened in the fragment of steps *start* to *end*, in at most 600 characters."""
    sentences = [f"{_error_said(recovery)}: {recovery.what}" for recovery in recoveries]
    if kind is FragmentType.LOOP:
        sentences = [_loop_sentence(loop, read.steps) for loop in loops] + sentences
    return cut(_joined(sentences or deeds(read, start, end)), DESCRIPTION_CHARS)


def summarise(read: Trace, files: Sequence[str]) -> str:
    """What a run did, in at most 900 characters; not its outcome, which may be learned later."""
    title = next((line.strip() for line in read.raw.task.splitlines() if line.strip()), "")
    sentences = [cut(title or "no task text", _TITLE_CHARS), *_reproduced(read)]
    sentences.append(f"changed {some(files)}" if files else "changed no file")
    sentences += [cut(said, _CLAUSE_CHARS) for said in (*_fixes(read), *_cleared(read))]
    sentences += [_loop_sentence(loop, read.steps) for loop in read.loops[:NAMED]]
    return cut(_joined((*sentences, *_ended(read))), SUMMARY_CHARS)


def _reproduced(read: Trace) -> Iterator[str]:
    """How the trouble was shown before anything was changed."""
    tries = [
        step
        for step in read.steps
        if step.phase is Phase.REPRODUCING
        and step.reading.kind in _RUNNING
        and step.step.observation is not None
    ]
    if tries:
        shown = next((step for step in reversed(tries) if _shows_trouble(step)), tries[-1])
        yield f"before the fix `{cut(shown.reading.command, 80)}` {outcome(shown)}"


def _shows_trouble(step: StepTrace) -> bool:
    return step.error is not None and step.error.family in _TELLING


def _fixes(read: Trace) -> list[str]:
    """What the accepted edits of the project come to."""
    fixing = [step for step in read.steps if step.phase is Phase.FIXING and step.succeeded]
    return changes(read, fixing)[:2]


def _cleared(read: Trace) -> Iterator[str]:
    """Which errors were cleared, and the most telling ways."""
    cleared = Counter(recovery.error.error_type for recovery in read.recoveries)
    if cleared:
        yield "cleared " + _counted(cleared)
    telling = [
        recovery
        for recovery in read.recoveries
        if recovery.error.family in _TELLING and recovery.verified and not recovery.workaround
    ]
    for recovery in telling[:2]:
        yield f"{_error_said(recovery)}: {recovery.what}"


def _ended(read: Trace) -> Iterator[str]:
    """What the last run of a program showed, and what stood in the way at the end."""
    runs = [step for step in read.steps if step.reading.kind in _RUNNING]
    if runs and runs[-1].phase is Phase.TESTING:
        yield f"in the end `{cut(runs[-1].reading.command, 80)}` {outcome(runs[-1])}"
    if read.steps and read.steps[-1].step.observation is None:
        before = read.steps[-2:-1]
    else:
        before = read.steps[-1:]
    for step in before:
        if step.error and step not in runs:
            yield f"stopped at {failure(step)}"


def _error_said(recovery: Recovery) -> str:
    message = cut(recovery.error.message, _MESSAGE_CHARS)
    if recovery.error.family is Family.EDIT_REJECTED:
        return f"an edit was refused ({message})"
    return f"{recovery.error.error_type} ({message})" if message else recovery.error.error_type


def _loop_sentence(loop: LoopInfo, steps: Sequence[StepTrace]) -> str:
    last = next((step for step in steps if step.index == loop.end), None)
    what = f"`{cut(action_line(last), 80)}`" if last else "the same steps"
    name = loop.kind.replace("_", " ")
    error = f", {failure(last)}" if last and last.error else ""
    return f"went round in circles ({name}): {loop.repetitions} times {what}{error}"


def _counted(counter: Counter[str]) -> str:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return some([f"{name} ({count}x)" if count > 1 else name for name, count in ordered])


def _joined(sentences: Iterable[str]) -> str:
    return "; ".join(sentence.strip().rstrip(".;") for sentence in sentences if sentence.strip())

"""Builds the bundle of one raw run; pure."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from contextgraph.errors import ReadError
from contextgraph.learning.describe import (
    action_line,
    describe,
    summarise,
)
from contextgraph.learning.identity import (
    error_id,
    fragment_id,
    trajectory_id,
)
from contextgraph.learning.masking import masked
from contextgraph.model import (
    Bundle,
    CausedError,
    ErrorPattern,
    ErrorSignature,
    Fragment,
    FragmentOutcome,
    FragmentType,
    LoopEnding,
    LoopInfo,
    Phase,
    RawTrajectory,
    Recovered,
    SeenContext,
    Trajectory,
)
from contextgraph.text import clip
from contextgraph.trace import (
    ActionKind,
    Recovery,
    StepTrace,
    Trace,
    files_changed,
    files_created,
    patterns_tried,
    trace,
)

# A recovery within this many steps is one fragment, whatever phases it passes through.
SHORT_RECOVERY = 8


def cut(trace: Trace) -> tuple[tuple[int, int], ...]:
    """Ranges (start, end inclusive) that cover every step of *trace* once, in order.

    A range starts at an error, at a change of phase and at a loop; it ends at a recovery and at
    the end of a loop. Short recoveries stay whole across phases.
    """
    count = len(trace.steps)
    starts = sorted({0} | {start for start in _starts(trace) if 0 < start < count})
    ranges = zip(starts, [start - 1 for start in starts[1:]] + [count - 1], strict=True)
    return tuple(ranges) if count else ()


def _starts(trace: Trace) -> set[int]:
    inside = _inside(trace.loops, trace.recoveries)
    starts = {loop.start for loop in trace.loops} | {loop.end + 1 for loop in trace.loops}
    looping = {i for loop in trace.loops for i in range(loop.start + 1, loop.end + 1)}
    starts |= {recovery.cleared_step + 1 for recovery in trace.recoveries} - looping
    for before, now in zip(trace.steps, trace.steps[1:], strict=False):
        i = now.step.index
        if i not in inside and (_new_error(before, now) or before.phase is not now.phase):
            starts.add(i)
    return starts


def _inside(loops: Sequence[LoopInfo], recoveries: Sequence[Recovery]) -> set[int]:
    """Steps at which nothing new starts, as they continue a loop or a short recovery."""
    spans = [(loop.start, loop.end) for loop in loops]
    spans += [
        (recovery.error_step, recovery.cleared_step)
        for recovery in recoveries
        if recovery.cleared_step - recovery.error_step <= SHORT_RECOVERY
    ]
    return {i for start, end in spans for i in range(start + 1, end + 1)}


def _new_error(before: StepTrace, now: StepTrace) -> bool:
    if now.error is None:
        return False
    return before.error is None or before.error.template != now.error.template


def classify(
    steps: Sequence[StepTrace], recoveries: Sequence[Recovery], loops: Sequence[LoopInfo]
) -> tuple[FragmentType, FragmentOutcome]:
    """Classify the fragment of *steps*, and how it ended.

    *recoveries* are those that end in it, *loops* those that lie in it.
    """
    if loops:
        outcome = FragmentOutcome.FAILED if steps[-1].error else FragmentOutcome.COMPLETED
        return FragmentType.LOOP, outcome
    if recoveries:
        return FragmentType.ERROR_RECOVERY, FragmentOutcome.RECOVERED
    if any(step.error for step in steps):
        return FragmentType.FAILED_ATTEMPT, FragmentOutcome.FAILED
    if any(step.phase is Phase.FIXING and step.reading.kind.changes_files for step in steps):
        return FragmentType.SUCCESSFUL_FIX, FragmentOutcome.COMPLETED
    return FragmentType.EXPLORATION, FragmentOutcome.COMPLETED


TASK_CHARS = 8_000
MESSAGE_CHARS = 600
MAX_ACTIONS = 12
MAX_FILES = 50


@dataclass(frozen=True, slots=True)
class Inspection:
    """How a run is read: its trace, and the fragments it is cut into."""

    trace: Trace
    fragments: tuple[Fragment, ...]


def inspect_run(raw: RawTrajectory) -> Inspection:
    """The reading of *raw*, with secrets masked."""
    read = trace(masked(raw)[0])
    return Inspection(read, fragments_of(read, trajectory_id(raw)))


def bundle_of(raw: RawTrajectory, learned_at: datetime, identity: str | None = None) -> Bundle:
    """All that *raw* teaches; *identity* is its id where that is known, as of a masked run.

    Raises `ReadError` for a run that cannot be traced, whatever the reason: of many runs the others
    are still to be learned.
    """
    try:
        return _bundle_of(raw, learned_at, identity)
    except Exception as error:
        detail = raw.misnumbered or f"{type(error).__name__}: {error}"
        place = raw.source or raw.instance_id
        raise ReadError(place, "", "a run that cannot be learned", detail) from error


def _bundle_of(raw: RawTrajectory, learned_at: datetime, identity: str | None) -> Bundle:
    identity = identity or trajectory_id(raw)
    clean, seen = masked(raw)
    read = trace(clean)
    fragments = fragments_of(read, identity)
    errors = {error_id(step.error): step.error for step in read.steps if step.error}
    return Bundle(
        trajectory=_trajectory(read, identity, learned_at),
        fragments=fragments,
        errors=tuple(_pattern(key, errors[key]) for key in sorted(errors)),
        caused=tuple(edge for fragment in fragments for edge in _caused(fragment, read)),
        recovered=tuple(_recovered(recovery, fragments) for recovery in read.recoveries),
        raw=clean,
        exposures=tuple(
            SeenContext(context, step, patterns_tried(read.steps, step, clean.repo))
            for context, step in seen.items()
        ),
    )


def fragments_of(read: Trace, identity: str) -> tuple[Fragment, ...]:
    """The fragments of the run *identity*, in order, covering every step once.

    A conversation in which no tool was called has none.
    """
    if read.raw.is_talk:
        return ()
    return tuple(
        _fragment(read, identity, order, start, end) for order, (start, end) in enumerate(cut(read))
    )


def _fragment(read: Trace, identity: str, order: int, start: int, end: int) -> Fragment:
    steps = read.steps[start : end + 1]
    recoveries = [recovery for recovery in read.recoveries if start <= recovery.cleared_step <= end]
    loops = [loop for loop in read.loops if start <= loop.start and loop.end <= end]
    kind, outcome = classify(steps, recoveries, loops)
    loop = max(loops, key=lambda loop: loop.repetitions, default=None)
    return Fragment(
        id=fragment_id(identity, start, end),
        trajectory_id=identity,
        order=order,
        start=start,
        end=end,
        fragment_type=kind,
        phase=steps[0].phase,
        outcome=outcome,
        description=describe(read, start, end, kind, recoveries, loops),
        action_sequence=tuple(action_line(step) for step in steps[:MAX_ACTIONS]),
        files=_targets(steps),
        open_file=steps[0].step.open_file,
        repo=read.raw.repo.casefold(),
        task_type=read.task_type,
        loop_kind=loop.kind if loop else None,
        loop_command=read.steps[loop.end].reading.verb if loop else "",
        repetitions=loop.repetitions if loop else 0,
        loop_ending=_loop_ending(loop, read) if loop else None,
    )


def _loop_ending(loop: LoopInfo, read: Trace) -> LoopEnding:
    """How *loop* ended; it is cleared where the error of one of its steps was, soon after it."""
    if any(
        loop.start <= recovery.error_step <= loop.end <= recovery.cleared_step
        and recovery.cleared_step <= loop.end + SHORT_RECOVERY
        for recovery in read.recoveries
    ):
        return LoopEnding.CLEARED
    last = read.steps[-1].index
    return LoopEnding.RUN_ENDED if loop.end >= last - 1 else LoopEnding.LEFT


def _targets(steps: Sequence[StepTrace]) -> tuple[str, ...]:
    named = dict.fromkeys(
        target for step in steps for target in step.reading.targets if "." in target
    )
    return tuple(named)[:MAX_FILES]


def _trajectory(read: Trace, identity: str, learned_at: datetime) -> Trajectory:
    raw = read.raw
    files, made = _changed(read)
    return Trajectory(
        id=identity,
        instance_id=raw.instance_id,
        repo=raw.repo.casefold(),
        task=clip(raw.task, TASK_CHARS),
        task_type=read.task_type,
        outcome=raw.outcome,
        exit_status=raw.exit_status,
        total_steps=len(raw.steps),
        summary=summarise(read, files),
        files=tuple(file for file in files if file not in made)[:MAX_FILES],
        agent=raw.agent,
        model=raw.model,
        source_format=raw.source_format,
        source=raw.source,
        run_at=raw.started_at,
        learned_at=learned_at,
        outcome_source=raw.outcome_source,
        change=raw.change,
    )


def _changed(read: Trace) -> tuple[tuple[str, ...], frozenset[str]]:
    """The files that a run changed, and those of them that it made itself, which come last.

    A fix without steps was merged: the files that it made are now those of the project.
    """
    if patch := read.raw.patch:
        return files_changed(patch), files_created(patch) if read.steps else frozenset()
    accepted = [step for step in read.steps if step.reading.kind.writes and not step.error]
    made = frozenset(
        target
        for step in accepted
        if step.reading.kind is ActionKind.CREATE
        for target in step.reading.targets
    )
    targets = dict.fromkeys(target for step in accepted for target in step.reading.targets)
    return tuple(sorted(targets, key=made.__contains__)), made


def _pattern(identity: str, error: ErrorSignature) -> ErrorPattern:
    return ErrorPattern(
        id=identity,
        family=error.family,
        error_type=error.error_type,
        template=error.template,
        keywords=error.keywords,
        context=clip(error.message, MESSAGE_CHARS),
    )


def _caused(fragment: Fragment, read: Trace) -> list[CausedError]:
    met: dict[str, list[StepTrace]] = {}
    for step in read.steps[fragment.start : fragment.end + 1]:
        if step.error:
            met.setdefault(error_id(step.error), []).append(step)
    return [
        CausedError(
            fragment_id=fragment.id,
            error_id=error,
            steps=tuple(step.step.index for step in steps),
            locations=tuple(
                sorted({s.error.location for s in steps if s.error and s.error.location})
            ),
        )
        for error, steps in sorted(met.items())
    ]


def _recovered(recovery: Recovery, fragments: Sequence[Fragment]) -> Recovered:
    home = next(f for f in fragments if f.start <= recovery.cleared_step <= f.end)
    return Recovered(
        fragment_id=home.id,
        error_id=error_id(recovery.error),
        error_step=recovery.error_step,
        cleared_step=recovery.cleared_step,
        message=clip(recovery.error.message, MESSAGE_CHARS),
        location=recovery.error.location,
        actions=recovery.actions,
        verified=recovery.verified,
        workaround=recovery.workaround,
        circumstances=recovery.circumstances,
    )


def renewed(bundle: Bundle, before: Trajectory) -> Bundle:
    """*bundle* with what only the memory knows of the run: when it was learned, and from whom."""
    known = replace(bundle.trajectory, learned_at=before.learned_at, contributor=before.contributor)
    return replace(bundle, trajectory=known)

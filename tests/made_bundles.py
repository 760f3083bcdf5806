"""Bundles by number: the same number gives the same bundle in every process."""

from datetime import UTC, datetime, timedelta

from contextgraph.model import (
    Action,
    Bundle,
    CausedError,
    ErrorPattern,
    ErrorSignature,
    Family,
    Fragment,
    FragmentOutcome,
    FragmentType,
    Methodology,
    MethodologyStatus,
    Outcome,
    Phase,
    RawTrajectory,
    Recovered,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    RunFacts,
    Scope,
    Step,
    TaskType,
    Trajectory,
)
from contextgraph.store.memory_store import Store

SIGNATURE = ErrorSignature(Family.PYTHON_EXCEPTION, "TypeError", "boom", "<name> is not callable")
REPO = "ada/engine"


def made_bundle(number: int, *, outcome: Outcome = Outcome.UNKNOWN, note: str = "") -> Bundle:
    """A run of two fragments: an error in the first, its recovery in the second."""
    run = f"run{number:04}"
    happened = datetime(2026, 2, 1, tzinfo=UTC) + timedelta(minutes=number)
    trajectory = Trajectory(
        id=run,
        instance_id=f"ada__engine-{number}",
        repo=REPO,
        task=f"the cache of part{number} fails {note}",
        task_type=TaskType.BUG_FIX,
        outcome=outcome,
        exit_status="submitted" if outcome is not Outcome.UNKNOWN else None,
        total_steps=4,
        summary="cleared it",
        files=("src/cache.py",),
        agent="agent",
        model="model",
        source_format="made",
        source=f"runs.jsonl:{number}",
        run_at=None,
        learned_at=happened,
    )
    pattern = ErrorPattern(
        f"error{number % 3}",
        SIGNATURE.family,
        SIGNATURE.error_type,
        SIGNATURE.template if number % 3 == 0 else f"template {number % 3}",
        ("callable",),
        f"boom {number} {note}",
    )
    first, second = (_fragment(trajectory, order) for order in (0, 1))
    recovered = Recovered(
        fragment_id=second.id,
        error_id=pattern.id,
        error_step=1,
        cleared_step=3,
        message=f"boom {number}",
        location=None,
        actions=(
            RemedyAction(
                RemedyKind.RUN, f"call it {note}", RemedyPattern(RemedyKind.RUN, "<the command>")
            ),
        ),
        verified=True,
        workaround=False,
    )
    return Bundle(
        trajectory=trajectory,
        fragments=(first, second),
        errors=(pattern,),
        caused=(CausedError(first.id, pattern.id, (1,), ("src/cache.py:3",)),),
        recovered=(recovered,),
        facts=RunFacts(listed=(f"src/{note or number}.py",)),
        raw=_raw(trajectory),
    )


def made_methodology(number: int) -> Methodology:
    """One that no fragment supports; number 0 is retired."""
    return Methodology(
        id=f"methodology{number}",
        error_id=made_bundle(0).errors[0].id,
        keyword="",
        task_type=None,
        repo=None,
        situation="it fails",
        strategy="call it",
        made_by="a test",
        status=MethodologyStatus.ACTIVE if number else MethodologyStatus.RETIRED,
        confidence=0.5,
        support=1,
        repositories=1,
        success_rate=0.5,
        avg_steps=1.0,
        frequency=2,
    )


def _fragment(trajectory: Trajectory, order: int) -> Fragment:
    return Fragment(
        id=f"{trajectory.id}/{order}",
        trajectory_id=trajectory.id,
        order=order,
        start=2 * order,
        end=2 * order + 1,
        fragment_type=FragmentType.ERROR_RECOVERY,
        phase=Phase.FIXING,
        outcome=FragmentOutcome.RECOVERED,
        description="calls the cache",
        action_sequence=("edit",),
        files=("src/cache.py",),
        open_file=None,
        repo=trajectory.repo,
        task_type=trajectory.task_type,
    )


def _raw(trajectory: Trajectory) -> RawTrajectory:
    steps = tuple(
        Step(index, "think", Action("bash", "ls"), f"seen {index} " * 200) for index in range(4)
    )
    return RawTrajectory(
        source_format="made",
        instance_id=trajectory.instance_id,
        repo=trajectory.repo,
        task=trajectory.task,
        steps=steps,
        outcome=trajectory.outcome,
        exit_status=trajectory.exit_status,
    )


def store_content(store: Store) -> list[object]:
    """Return what the runs in *store* left there, to compare two stores of the same bundles."""
    runs = store.runs.ids()
    return [
        store.admin.counts(),
        [store.runs.trajectories([run]).get(run) for run in runs],
        [store.runs.raw(run) for run in runs],
        store.runs.fragments(runs),
        store.recoveries.errors(Scope(), 1),
        store.recoveries.error_steps(),
        store.runs.for_text(["cache"], Scope(), 1000),
        store.recoveries.for_text(["boom"], Scope(), 1000),
    ]

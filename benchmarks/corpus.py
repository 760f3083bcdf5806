"""The runs to measure on: the examples, or a file of yours, multiplied to any size."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import cycle, islice
from pathlib import Path

from contextgraph.learning import bundle_of
from contextgraph.model import Bundle, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.readers import read

EXAMPLES = Path(__file__).parents[1] / "examples" / "trajectories"
START = datetime(2026, 1, 1, tzinfo=UTC)
# Runs per repository in a multiplied memory: the largest of real collections have hundreds.
RUNS_PER_REPOSITORY = 100


def runs(data: Path | None) -> list[RawTrajectory]:
    """The runs to measure on."""
    return list(read(data or EXAMPLES))


def sessions_of(folder: Path) -> list[RawTrajectory]:
    """Return the sessions in *folder* in order of time; of one there may be several copies."""
    ignored: list[object] = []
    found = read(str(folder), on_error=ignored.append, on_skip=ignored.append)
    dated = [run for run in found if run.started_at]
    return sorted(dated, key=lambda run: (run.started_at or 0, run.instance_id))


def renamed(raws: Sequence[RawTrajectory], count: int) -> Iterator[RawTrajectory]:
    """*count* runs, each with an instance of its own."""
    for number, raw in enumerate(islice(cycle(raws), count)):
        yield replace(raw, instance_id=f"acme__shop{number // RUNS_PER_REPOSITORY}-{number}")


def bundles(raws: Sequence[RawTrajectory], fragments: int) -> Iterator[Bundle]:
    """Bundles with *fragments* in all, or just over: those of *raws* under other ids."""
    made = 0
    originals = [bundle_of(raw, START) for raw in raws]
    for number, bundle in enumerate(cycle(originals)):
        if made >= fragments:
            return
        made += len(bundle.fragments)
        yield _copy(bundle, number)


def _copy(bundle: Bundle, number: int) -> Bundle:
    identity = f"trj_{number:024x}"
    repo = f"acme/shop{number // RUNS_PER_REPOSITORY}"
    instance = f"acme__shop{number // RUNS_PER_REPOSITORY}-{number}"
    ids = {f.id: f"frg_{number:016x}{f.order:08x}" for f in bundle.fragments}
    return replace(
        bundle,
        trajectory=replace(
            bundle.trajectory,
            id=identity,
            repo=repo,
            instance_id=instance,
            run_at=START + timedelta(minutes=number),
        ),
        fragments=tuple(
            replace(f, id=ids[f.id], trajectory_id=identity, repo=repo) for f in bundle.fragments
        ),
        caused=tuple(replace(c, fragment_id=ids[c.fragment_id]) for c in bundle.caused),
        recovered=tuple(replace(r, fragment_id=ids[r.fragment_id]) for r in bundle.recovered),
        raw=replace(bundle.raw, instance_id=instance, repo=repo),
    )

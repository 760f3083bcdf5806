"""What is kept, as another store takes it, and the other way round."""

from collections.abc import Sequence
from dataclasses import replace

from contextgraph.model import (
    ArchivedRun,
    Bundle,
    CausedError,
    Exposure,
    LearnStatus,
    RunVectors,
    SimilarTo,
    Source,
)
from contextgraph.store.neo4j_store import bundles, retellings, rows, spaces, trajectories
from contextgraph.store.neo4j_store.bundles import Packed
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.vectors import Vector


def archived_run(transaction: Transaction, trajectory_id: str) -> ArchivedRun | None:
    """All that is kept of the run of this id."""
    trajectory = trajectories.trajectory(transaction, trajectory_id)
    raw = trajectories.raw_trajectory(transaction, trajectory_id)
    row = transaction.row("archived_run", id=trajectory_id)
    fragments = transaction.rows("fragments_of_run", id=trajectory_id)
    if trajectory is None or raw is None or row is None:
        return None
    errors = sorted(row["errors"], key=lambda error: str(error["id"]))
    bundle = Bundle(
        trajectory=trajectory,
        fragments=tuple(rows.fragment_of(row["fragment"]) for row in fragments),
        errors=tuple(map(rows.error_of, errors)),
        caused=tuple(
            CausedError(fragment, error, tuple(steps), tuple(locations))
            for fragment, error, steps, locations in row["caused"]
        ),
        recovered=tuple(
            rows.recovered_of(edge, fragment, error) for fragment, error, edge in row["recovered"]
        ),
        raw=raw,
        vectors=_vectors(transaction, trajectory_id),
        retelling=retellings.retellings_of(transaction, [trajectory_id]).get(trajectory_id),
    )
    return ArchivedRun(bundle, {error["id"]: error["steps"] for error in errors})


def restore_runs(
    transaction: Transaction, given: Sequence[ArchivedRun], raws: Sequence[bytes]
) -> list[LearnStatus]:
    """Write runs as they were archived; of known ones, only an outcome that was unknown."""
    # Nothing is credited.
    packed = [
        Packed(replace(run.bundle, exposures=()), raw) for run, raw in zip(given, raws, strict=True)
    ]
    statuses = bundles.add_bundles(transaction, packed)
    created = [
        run for run, status in zip(given, statuses, strict=True) if status is LearnStatus.CREATED
    ]
    steps = [
        {"trajectory_id": run.bundle.trajectory.id, "error_id": error, "steps": count}
        for run in created
        for error, count in run.steps.items()
    ]
    transaction.write("set_met_steps", steps)
    return statuses


def similar_to(transaction: Transaction, trajectory_id: str) -> list[SimilarTo]:
    """What the fragments of the run of this id are like."""
    return [
        SimilarTo(
            row["error_id"],
            Source(row["run"], row["fragment"]),
            Source(row["other"], row["representative"]),
            row["weight"],
        )
        for row in transaction.rows("similar_of_run", id=trajectory_id)
    ]


def methodology_vectors(
    transaction: Transaction, space: str, ids: Sequence[str]
) -> dict[str, Vector | None]:
    """Vectors in *space* of those of these methodologies that are embedded."""
    property_ = spaces.property_of(transaction, space)
    if property_ is None:
        return {}
    found = transaction.rows("methodology_vectors", ids=sorted(set(ids)), property=property_)
    return {row["id"]: _vector(space, row["vector"]) for row in found}


def exposures(transaction: Transaction, after: str, limit: int) -> list[Exposure]:
    """Contexts that were shown, by id, from the first one greater than *after*."""
    return [
        Exposure(
            row["context_id"],
            rows.time_of(row["shown_at"]),
            row["error_id"],
            row["helped"],
            tuple(sorted((item, share) for item, share in row["items"])),
        )
        for row in transaction.rows("exposures", after=after, limit=max(0, limit))
    ]


def restore_exposures(transaction: Transaction, given: Sequence[Exposure]) -> None:
    """Write contexts as they were archived, unless they are noted already."""
    transaction.write(
        "restore_exposures",
        [
            {
                "context_id": one.context_id,
                "shown_at": rows.moment(one.shown_at),
                "error_id": one.error_id,
                "helped": one.helped,
                "items": [[item, share] for item, share in one.items],
            }
            for one in sorted(given, key=lambda one: one.context_id)
        ],
    )


def _vectors(transaction: Transaction, trajectory_id: str) -> RunVectors | None:
    """Those of a run in the active space."""
    kept = spaces.active(transaction)
    if kept is None:
        return None
    row = transaction.row("vectors_of_run", id=trajectory_id, property=kept.property)
    if row is None:
        return None
    name = kept.space.name
    found = (_vector(name, value) for value in row["fragments"])
    return RunVectors(name, _vector(name, row["trajectory"]), tuple(found))


def _vector(space: str, value: object) -> Vector | None:
    return None if value is None else Vector(space, rows.numbers(value))

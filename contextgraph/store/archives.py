"""What is kept, as another store takes it, and the other way round."""

from collections.abc import Sequence
from sqlite3 import Connection

import orjson

from contextgraph.model import (
    ArchivedRun,
    Bundle,
    CausedError,
    Exposure,
    LearnStatus,
    Recovered,
    RunVectors,
    SimilarTo,
    Source,
)
from contextgraph.store import bundles, retellings, rows, runs
from contextgraph.store.raw import packed
from contextgraph.store.runs import Run
from contextgraph.store.values import read_fragments
from contextgraph.vectors import Vector, dimensions_of

_ERRORS = """
SELECT e.id, e.family, e.error_type, e.template, m.keywords, m.context, m.steps
FROM met m JOIN error_pattern e ON e.key = m.error WHERE m.trajectory = ? ORDER BY e.id"""
_CAUSED = """
SELECT f.id, e.id, c.steps, c.locations FROM caused c JOIN fragment f ON f.key = c.fragment
JOIN error_pattern e ON e.key = c.error WHERE c.fragment BETWEEN ? AND ?
ORDER BY f.position, f.id, e.id"""
_RECOVERED = f"""
SELECT f.id, e.id, {", ".join(f"r.{name.strip()}" for name in rows.RECOVERED.split(","))}
FROM recovered r JOIN fragment f ON f.key = r.fragment JOIN error_pattern e ON e.key = r.error
WHERE r.key BETWEEN ? AND ? ORDER BY r.error_step, f.id, e.id"""
_VECTORS = """
SELECT s.name, v.data FROM vectors v JOIN space s ON s.key = v.space AND s.active
WHERE v.trajectory = ?"""
_SIMILAR = """
SELECT s.error_id, ft.id, f.id, rt.id, r.id, s.weight FROM similar s
JOIN fragment f ON f.key = s.fragment JOIN trajectory ft ON ft.key = f.trajectory
JOIN fragment r ON r.key = s.representative JOIN trajectory rt ON rt.key = r.trajectory
WHERE s.fragment BETWEEN ? AND ? ORDER BY f.id, s.error_id"""
_METHODOLOGY_VECTORS = """
SELECT m.id, v.data FROM methodology m JOIN methodology_vector v ON v.methodology = m.key
JOIN space s ON s.key = v.space AND s.tenant = m.tenant AND s.name = ?
WHERE m.tenant = ? AND m.id IN (SELECT value FROM json_each(?)) ORDER BY m.id"""
_EXPOSURES = """
SELECT key, context_id, shown_at, error_id, helped FROM exposure
WHERE tenant = ? AND context_id > ? ORDER BY context_id LIMIT ?"""


def archived_run(connection: Connection, tenant: int, trajectory_id: str) -> ArchivedRun | None:
    """All that is kept of the run of this id."""
    key = runs.key_of(connection, tenant, trajectory_id)
    trajectory = runs.trajectory(connection, tenant, trajectory_id)
    raw = runs.raw(connection, tenant, trajectory_id)
    if key is None or trajectory is None or raw is None:
        return None
    run = Run(tenant, 0, key, 0)
    of_run = (run.first, run.last)
    errors = connection.execute(_ERRORS, (key,)).fetchall()
    keys = runs.fragment_keys(connection, tenant, [trajectory_id])
    fragments = read_fragments(connection, keys)
    bundle = Bundle(
        trajectory=trajectory,
        fragments=tuple(fragments[key][1] for key in keys),
        errors=tuple(rows.error_of(row[:6]) for row in errors),
        caused=tuple(
            CausedError(row[0], row[1], rows.tuple_of(row[2]), rows.tuple_of(row[3]))
            for row in connection.execute(_CAUSED, of_run)
        ),
        recovered=tuple(map(_recovered, connection.execute(_RECOVERED, of_run))),
        raw=raw,
        vectors=_vectors(connection, run, keys),
        retelling=retellings.of_runs(connection, tenant, [trajectory_id]).get(trajectory_id),
    )
    return ArchivedRun(bundle, {row[0]: row[6] for row in errors})


def restore_run(connection: Connection, tenant: int, run: ArchivedRun) -> LearnStatus:
    """Write a run as it was archived; where it is known, only an outcome that was unknown."""
    status = runs.status(connection, tenant, run.bundle.trajectory)
    if status is LearnStatus.CREATED:
        _insert(connection, tenant, run)
    if status is LearnStatus.UPDATED:
        runs.set_outcome(connection, tenant, run.bundle.trajectory)
    return status


def _insert(connection: Connection, tenant: int, run: ArchivedRun) -> None:
    bundles.insert(connection, tenant, run.bundle, packed(run.bundle.raw))
    key = runs.key_of(connection, tenant, run.bundle.trajectory.id)
    connection.executemany(
        "UPDATE met SET steps = ?1 WHERE trajectory = ?2 AND error = "
        "(SELECT key FROM error_pattern WHERE tenant = ?3 AND id = ?4)",
        [(steps, key, tenant, error) for error, steps in run.steps.items()],
    )


def similar_to(connection: Connection, tenant: int, trajectory_id: str) -> list[SimilarTo]:
    """What the fragments of the run of this id are like."""
    key = runs.key_of(connection, tenant, trajectory_id)
    if key is None:
        return []
    run = Run(tenant, 0, key, 0)
    return [
        SimilarTo(error, Source(own, fragment), Source(other, representative), weight)
        for error, own, fragment, other, representative, weight in connection.execute(
            _SIMILAR, (run.first, run.last)
        )
    ]


def methodology_vectors(
    connection: Connection, tenant: int, space: str, ids: Sequence[str]
) -> dict[str, Vector | None]:
    """Vectors in *space* of those of these methodologies that are embedded."""
    asked = (space, tenant, orjson.dumps(list(ids)).decode())
    found = connection.execute(_METHODOLOGY_VECTORS, asked)
    return {row[0]: _vector(space, row[1]) for row in found}


def exposures(connection: Connection, tenant: int, after: str, limit: int) -> list[Exposure]:
    """Contexts that were shown, by id, from the first one greater than *after*."""
    return [
        Exposure(
            context_id,
            rows.time_of(shown_at),
            error_id,
            None if helped is None else bool(helped),
            tuple(
                connection.execute(
                    "SELECT item, share FROM exposed_item WHERE exposure = ? ORDER BY item", (key,)
                )
            ),
        )
        for key, context_id, shown_at, error_id, helped in connection.execute(
            _EXPOSURES, (tenant, after, max(0, limit))
        ).fetchall()
    ]


def restore_exposure(connection: Connection, tenant: int, exposure: Exposure) -> None:
    """Write a context as it was archived, unless it is noted already."""
    cursor = connection.execute(
        "INSERT INTO exposure (tenant, context_id, shown_at, error_id, helped) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (
            tenant,
            exposure.context_id,
            rows.moment(exposure.shown_at),
            exposure.error_id,
            exposure.helped,
        ),
    )
    if cursor.rowcount:
        connection.executemany(
            "INSERT INTO exposed_item (exposure, item, share, tenant) VALUES (?, ?, ?, ?)",
            [(cursor.lastrowid, item, share, tenant) for item, share in exposure.items],
        )


def _recovered(row: rows.Row) -> Recovered:
    return rows.recovered_of(row[2:], row[0], row[1])


def _vectors(connection: Connection, run: Run, fragments: Sequence[int]) -> RunVectors | None:
    """Those of *run* and its *fragments* (keys) in the active space."""
    row = connection.execute(_VECTORS, (run.key,)).fetchone()
    if row is None:
        return None
    space, data = row
    size = 4 * dimensions_of(space)
    found = [_vector(space, data[at : at + size]) for at in range(0, len(data), size)]
    return RunVectors(space, found[0], tuple(found[1 + key - run.first] for key in fragments))


def _vector(space: str, data: bytes) -> Vector | None:
    """None for zeros: they say that a text has no vector."""
    return Vector(space, data) if any(data) else None

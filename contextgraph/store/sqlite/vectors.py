"""Vectors by embedding space: `VectorStore` in SQLite."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from contextgraph.errors import StoreError
from contextgraph.model import (
    FragmentCandidate,
    Methodology,
    MethodologyStatus,
    Near,
    NodeKind,
    RecoveryCandidate,
    RunTexts,
    RunVectors,
    Scope,
    Space,
    Trajectory,
    run_texts,
)
from contextgraph.ports import Embedded
from contextgraph.store import rules
from contextgraph.store.sqlite import methodologies as known, rows, run_rows, runs as run_queries
from contextgraph.store.sqlite.database import Database
from contextgraph.store.sqlite.matrix import ActiveSpace
from contextgraph.store.sqlite.run_rows import Run
from contextgraph.store.sqlite.transaction import Transaction, json_keys, json_text
from contextgraph.vectors import Vector, dimensions_of

_ACTIVE = "SELECT key, name, runs, similarity_threshold FROM space WHERE tenant = ? AND active"
_NOT_EMBEDDED = (
    "AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.trajectory = t.key AND v.space = :space)"
)
_TEXTS = """
SELECT t.key FROM trajectory t WHERE t.tenant = :tenant AND t.id > :after {not_embedded}
ORDER BY t.id LIMIT :limit"""
_MESSAGES = """
SELECT f.id, m.context FROM caused c CROSS JOIN fragment f ON f.key = c.fragment
CROSS JOIN met m ON m.trajectory = c.trajectory AND m.error = c.error
CROSS JOIN error_pattern e ON e.key = c.error
WHERE c.fragment BETWEEN ? AND ? ORDER BY e.id"""
_METHODOLOGIES = f"""
SELECT m.id FROM methodology m WHERE m.tenant = ? AND m.status <> '{MethodologyStatus.RETIRED}'
AND NOT EXISTS (SELECT 1 FROM methodology_vector v WHERE v.methodology = m.key AND v.space = ?)
ORDER BY m.id LIMIT ?"""
_OF_METHODOLOGIES = """
SELECT m.id, v.data FROM methodology m JOIN methodology_vector v ON v.methodology = m.key
JOIN space s ON s.key = v.space AND s.tenant = m.tenant AND s.name = ?
WHERE m.tenant = ? AND m.id IN (SELECT value FROM json_each(?)) ORDER BY m.id"""
_RECOVERIES_OF = """
SELECT r.fragment, r.key FROM recovered r CROSS JOIN error_pattern e ON e.key = r.error
WHERE r.fragment IN (SELECT value FROM json_each(?)) ORDER BY e.id, r.error_step"""
_ROWS_OF_A_SPACE = (
    ("vectors", "space"),
    ("methodology_vector", "space"),
    ("space_model", "space"),
    ("space", "key"),
)


class SqliteVectors:
    """`VectorStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def active_space(self) -> Space | None:
        with self._database.reading() as transaction:
            active = _active(transaction)
            return active.space if active else None

    def space_model(self, space: str) -> bytes | None:
        with self._database.reading() as transaction:
            row = transaction.row(
                "SELECT m.data FROM space s JOIN space_model m ON m.space = s.key "
                "WHERE s.tenant = ? AND s.name = ?",
                (transaction.tenant, space),
            )
            return None if row is None else row[0]

    def prepare(self, space: Space, model: bytes | None) -> None:
        dimensions_of(space.name)  # raises where the name has none
        with self._database.writing() as transaction:
            is_new = not _space_key(transaction, space.name)
            key = transaction.number(
                "INSERT INTO space (tenant, name, runs, similarity_threshold, active) "
                "VALUES (?, ?, ?, ?, 0) "
                "ON CONFLICT DO UPDATE SET runs = excluded.runs, "
                "similarity_threshold = excluded.similarity_threshold "
                "RETURNING key",
                (transaction.tenant, space.name, space.runs, space.similarity_threshold),
            )
            if is_new and model is not None:
                transaction.write("INSERT INTO space_model VALUES (?, ?)", (key, model))

    def switch(self, space: str) -> None:
        with self._database.writing() as transaction:
            active = _prepared(transaction, space)
            others = transaction.rows(
                "SELECT key FROM space WHERE tenant = ? AND key <> ?", (transaction.tenant, active)
            )
            for table, column in _ROWS_OF_A_SPACE:
                transaction.write_all(f"DELETE FROM {table} WHERE {column} = ?", others)
            transaction.write("UPDATE space SET active = 1 WHERE key = ?", (active,))

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Sequence[RunTexts]:
        with self._database.reading() as transaction:
            key = _space_key(transaction, space) if space is not None else 0
            keys = transaction.column(
                _TEXTS.format(not_embedded=_NOT_EMBEDDED if key else ""),
                {
                    "tenant": transaction.tenant,
                    "limit": max(0, limit),
                    "after": after,
                    "space": key,
                },
            )
            trajectories = transaction.trajectories(keys)
            return [_texts(transaction, Run(key), trajectories[key]) for key in keys]

    def methodologies_to_embed(self, limit: int, space: str | None = None) -> Sequence[Methodology]:
        with self._database.reading() as transaction:
            key = _space_key(transaction, space) if space is not None else 0
            ids = transaction.column(_METHODOLOGIES, (transaction.tenant, key, max(0, limit)))
            return known.with_ids(transaction, ids)

    def add(
        self,
        space: str,
        runs: Mapping[str, RunVectors],
        methodologies: Mapping[str, Vector | None],
    ) -> None:
        with self._database.writing() as transaction:
            key = _prepared(transaction, space)
            for trajectory_id, vectors in runs.items():
                _add_of_run(transaction, trajectory_id, vectors)
            none = bytes(4 * dimensions_of(space))
            transaction.write_all(
                "INSERT OR IGNORE INTO methodology_vector (methodology, space, data) "
                "SELECT key, ?, ? FROM methodology WHERE tenant = ? AND id = ?",
                [
                    (key, vector.data if vector else none, transaction.tenant, methodology_id)
                    for methodology_id, vector in methodologies.items()
                ],
            )

    def nearest(
        self, kind: type[Embedded], vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[Embedded]]:
        with self._database.reading() as transaction:
            active = _active(transaction)
            rules.check_space(active.space if active else None, vector)
            assert active is not None  # or the check has raised
            query = _NearQuery(self._database, transaction, active, vector, scope, limit)
            found: Mapping[type, Callable[[], Sequence[Near[Any]]]] = {
                Trajectory: query.trajectories,
                FragmentCandidate: query.fragments,
                RecoveryCandidate: query.recoveries,
                Methodology: query.methodologies,
            }
            return found[kind]()

    def of_methodologies(self, space: str, ids: Sequence[str]) -> Mapping[str, Vector | None]:
        with self._database.reading() as transaction:
            found = transaction.rows(_OF_METHODOLOGIES, (space, transaction.tenant, json_text(ids)))
            return {methodology: rows.vector_of(space, data) for methodology, data in found}


@dataclass(frozen=True, slots=True)
class _NearQuery:
    """What is nearest to *vector* in the *active* space."""

    database: Database
    transaction: Transaction
    active: ActiveSpace
    vector: Vector
    scope: Scope
    limit: int

    def trajectories(self) -> list[Near[Trajectory]]:
        near = self._keys(NodeKind.TRAJECTORY)
        found = self.transaction.trajectories(list(near))
        return [Near(found[key], vector) for key, vector in near.items()]

    def fragments(self) -> list[Near[FragmentCandidate]]:
        near = self._keys(NodeKind.FRAGMENT)
        found = self.transaction.fragments(list(near))
        return [Near(one, vector) for one, vector in zip(found, near.values(), strict=True)]

    def recoveries(self) -> list[Near[RecoveryCandidate]]:
        near = self._keys(NodeKind.FRAGMENT)
        found = _recoveries_of(self.transaction, list(near))
        return [Near(one, vector) for key, vector in near.items() for one in found[key]]

    def methodologies(self) -> list[Near[Methodology]]:
        near = self.database.caches.methodologies.nearest(
            self.transaction, self.active.key, self.scope.repo, self.vector
        )
        scope = self.transaction.scoped(self.scope)
        return known.first_visible(self.transaction, scope, near, self.limit)

    def _keys(self, kind: NodeKind) -> dict[int, Vector]:
        """The keys of the nearest nodes with their vectors, nearest first."""
        matrices = self.database.caches.matrices.of(self.active)
        scope = self.transaction.scoped(self.scope)
        return dict(matrices.nearest(self.transaction, kind, scope, self.vector, self.limit))


def _active(transaction: Transaction) -> ActiveSpace | None:
    row = transaction.row(_ACTIVE, (transaction.tenant,))
    return None if row is None else ActiveSpace(row[0], Space(*row[1:]))


def _space_key(transaction: Transaction, name: str) -> int:
    return transaction.number(
        "SELECT key FROM space WHERE tenant = ? AND name = ?", (transaction.tenant, name)
    )


def _prepared(transaction: Transaction, name: str) -> int:
    key = _space_key(transaction, name)
    if not key:
        raise StoreError(f"space {name} was not prepared, or another one has replaced it since")
    return key


def _add_of_run(transaction: Transaction, trajectory_id: str, vectors: RunVectors) -> None:
    """Write the vectors of a run, unless it is gone or has other fragments by now."""
    run = run_rows.run_of(transaction, trajectory_id)
    keys = run_queries.fragment_keys(transaction, [trajectory_id])
    if run is None or len(keys) != len(vectors.fragments):
        return
    of_key = dict(zip(keys, vectors.fragments, strict=True))
    last = max(keys, default=run.first - 1)
    slots = [of_key.get(key) for key in range(run.first, last + 1)]
    run_rows.insert_vectors(transaction, run, vectors, slots)


def _texts(transaction: Transaction, run: Run, trajectory: Trajectory) -> RunTexts:
    messages: defaultdict[str, list[str]] = defaultdict(list)
    for fragment, message in transaction.rows(_MESSAGES, run.keys):
        messages[fragment].append(message)
    found = transaction.fragments(run_queries.fragment_keys(transaction, [trajectory.id]))
    return run_texts(trajectory, [one.fragment for one in found], messages)


def _recoveries_of(
    transaction: Transaction, fragments: Sequence[int]
) -> Mapping[int, list[RecoveryCandidate]]:
    """The recoveries of these fragments, by the key of the fragment."""
    pairs = transaction.rows(_RECOVERIES_OF, (json_keys(fragments),))
    found = transaction.recoveries([key for _, key in pairs])
    of_fragment: defaultdict[int, list[RecoveryCandidate]] = defaultdict(list)
    for (fragment, _), candidate in zip(pairs, found, strict=True):
        of_fragment[fragment].append(candidate)
    return of_fragment

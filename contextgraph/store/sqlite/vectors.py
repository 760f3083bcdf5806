"""Vectors by embedding space: `VectorStore` in SQLite."""

from collections.abc import Mapping, Sequence

import orjson

from contextgraph.errors import StoreError
from contextgraph.model import (
    EmbeddedRun,
    Near,
    Scope,
    Space,
    run_text,
)
from contextgraph.ports import NodeType
from contextgraph.store import rules
from contextgraph.store.sqlite import runs
from contextgraph.store.sqlite.database import Database
from contextgraph.store.sqlite.notes import nearest_of
from contextgraph.store.sqlite.rows import text_of
from contextgraph.store.sqlite.transaction import Transaction
from contextgraph.vectors import Vector, dimensions_of

_ACTIVE = "SELECT key, name, runs, similarity_threshold FROM space WHERE tenant = ? AND active"
_NOT_EMBEDDED = (
    "AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.trajectory = t.key AND v.space = :space)"
)
_TO_EMBED = """
SELECT t.key FROM trajectory t WHERE t.tenant = :tenant AND t.id > :after {not_embedded}
ORDER BY t.id LIMIT :limit"""
_NODES_TO_EMBED = """
SELECT id, description, action_sequence FROM fragment
WHERE tenant = :tenant AND space IS NOT :space
UNION ALL SELECT id, situation, json_array(strategy) FROM methodology
WHERE tenant = :tenant AND space IS NOT :space ORDER BY id LIMIT :limit"""
_NODE_TABLES = ("fragment", "methodology")
_NODES_OF_SPACE = "FROM {} WHERE tenant = ? AND space = ? AND vector IS NOT NULL"
_ROWS_OF_A_SPACE = (
    ("vectors", "space"),
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
            return active[1] if active else None

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
    ) -> Mapping[str, str]:
        with self._database.reading() as transaction:
            key = _space_key(transaction, space) if space is not None else 0
            keys = transaction.column(
                _TO_EMBED.format(not_embedded=_NOT_EMBEDDED if key else ""),
                {
                    "tenant": transaction.tenant,
                    "limit": max(0, limit),
                    "after": after,
                    "space": key,
                },
            )
            runs = transaction.trajectories(keys)
            return {runs[key].id: run_text(runs[key]) for key in keys}

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        with self._database.writing() as transaction:
            _prepared(transaction, space)
            for trajectory_id, vector in vectors.items():
                if run := runs.run_of(transaction, trajectory_id):
                    runs.insert_vector(transaction, run, EmbeddedRun(space, vector))

    def nearest(self, vector: Vector, scope: Scope, limit: int) -> Sequence[Near]:
        with self._database.reading() as transaction:
            active = _active(transaction)
            rules.check_space(active[1] if active else None, vector)
            assert active is not None  # or the check has raised
            within = transaction.scoped(scope)
            matrix = self._database.caches.matrix
            near = dict(matrix.nearest(transaction, active[0], within, vector, limit))
            runs = transaction.trajectories(list(near))
            return [Near(runs[key], own) for key, own in near.items()]

    def nodes_to_embed(self, limit: int, space: str) -> Mapping[str, str]:
        with self._database.reading() as transaction:
            named = {"tenant": transaction.tenant, "space": space, "limit": max(0, limit)}
            found = transaction.rows(_NODES_TO_EMBED, named)
        return {id_: " ".join((head, *orjson.loads(parts))) for id_, head, parts in found}

    def add_nodes(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        with self._database.writing() as transaction:
            for table in _NODE_TABLES:
                transaction.write_all(
                    f"UPDATE {table} SET space = ?, vector = ? WHERE tenant = ? AND id = ?",
                    [
                        (space, vector and vector.data, transaction.tenant, id_)
                        for id_, vector in vectors.items()
                    ],
                )

    def nearest_nodes(
        self, vector: Vector, node_type: NodeType, limit: int
    ) -> Mapping[tuple[str, str], Vector]:
        within = _NODES_OF_SPACE.format(node_type.lower())
        of_run = "coalesce((SELECT t.id FROM trajectory t WHERE t.key = trajectory), '')"
        run = of_run if node_type == "Fragment" else "''"
        with self._database.reading() as transaction:
            named = (transaction.tenant, vector.space)
            cursor = transaction.connection.execute(f"SELECT id, vector {within}", named)
            near = nearest_of(cursor, vector, limit)
            sql = f"SELECT id, {run}, vector {within} AND id IN (SELECT value FROM json_each(?))"
            known = {
                id_: (of, data)
                for id_, of, data in transaction.rows(sql, (*named, text_of([*near])))
            }
        return {(known[id_][0], id_): Vector(vector.space, known[id_][1]) for id_ in near}


def _active(transaction: Transaction) -> tuple[int, Space] | None:
    """The active space, after its key."""
    row = transaction.row(_ACTIVE, (transaction.tenant,))
    return None if row is None else (row[0], Space(*row[1:]))


def _space_key(transaction: Transaction, name: str) -> int:
    return transaction.number(
        "SELECT key FROM space WHERE tenant = ? AND name = ?", (transaction.tenant, name)
    )


def _prepared(transaction: Transaction, name: str) -> int:
    key = _space_key(transaction, name)
    if not key:
        raise StoreError(f"space {name} was not prepared, or another one has replaced it since")
    return key

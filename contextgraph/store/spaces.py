"""Embedding spaces in the tables: their models, their vectors, and the one that is active."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from sqlite3 import Connection

from contextgraph.errors import SpaceMismatchError, StoreError
from contextgraph.model import (
    Methodology,
    MethodologyStatus,
    RunTexts,
    RunVectors,
    Space,
    run_texts,
)
from contextgraph.store import methodologies, methodology_vectors, runs
from contextgraph.store.runs import Run
from contextgraph.store.values import read_fragments
from contextgraph.vectors import Vector, dimensions_of

_INSERT = "INSERT OR IGNORE INTO vectors (trajectory, space, data) VALUES (?, ?, ?)"
_NOT_EMBEDDED = (
    "AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.trajectory = t.key AND v.space = :space)"
)
_OF_A_SPACE = (
    ("vectors", "space"),
    ("methodology_vector", "space"),
    ("space_model", "space"),
    ("space", "key"),
)
_MESSAGES = """
SELECT f.id, m.context FROM caused c CROSS JOIN fragment f ON f.key = c.fragment
CROSS JOIN met m ON m.trajectory = c.trajectory AND m.error = c.error
CROSS JOIN error_pattern e ON e.key = c.error
WHERE c.fragment BETWEEN ? AND ? ORDER BY e.id"""


@dataclass(frozen=True, slots=True)
class Active:
    """The space that answers, with its key."""

    key: int
    space: Space


def active(connection: Connection, tenant: int) -> Active | None:
    """The active space."""
    row = connection.execute(
        "SELECT key, name, runs, alike FROM space WHERE tenant = ? AND active", (tenant,)
    ).fetchone()
    return None if row is None else Active(row[0], Space(*row[1:]))


def active_for(connection: Connection, tenant: int, vector: Vector) -> Active:
    """The active space; raises `SpaceMismatchError` where *vector* is of another."""
    found = active(connection, tenant)
    if found is None or found.space.name != vector.space:
        name = found.space.name if found else "none yet"
        raise SpaceMismatchError(
            f"a vector of space {vector.space} was asked about, the memory's space is {name}"
        )
    return found


def model(connection: Connection, tenant: int, name: str) -> bytes | None:
    """What was stored with the space of this name."""
    row = connection.execute(
        "SELECT m.data FROM space s JOIN space_model m ON m.space = s.key "
        "WHERE s.tenant = ? AND s.name = ?",
        (tenant, name),
    ).fetchone()
    return None if row is None else row[0]


def prepare(connection: Connection, tenant: int, space: Space, data: bytes | None) -> None:
    """Make room for vectors of *space*; where there is room already, note how it was fitted."""
    dimensions_of(space.name)
    is_new = _key(connection, tenant, space.name) is None
    connection.execute(
        "INSERT INTO space (tenant, name, runs, alike, active) VALUES (?, ?, ?, ?, 0) "
        "ON CONFLICT DO UPDATE SET runs = excluded.runs, alike = excluded.alike",
        (tenant, space.name, space.runs, space.alike),
    )
    if is_new and data is not None:
        key = _known(connection, tenant, space.name)
        connection.execute("INSERT INTO space_model VALUES (?, ?)", (key, data))


def switch(connection: Connection, tenant: int, name: str) -> None:
    """Make the space of this name the active one, and drop all others."""
    kept = _known(connection, tenant, name)
    others = connection.execute(
        "SELECT key FROM space WHERE tenant = ? AND key <> ?", (tenant, kept)
    ).fetchall()
    for table, column in _OF_A_SPACE:
        connection.executemany(f"DELETE FROM {table} WHERE {column} = ?", others)
    connection.execute("UPDATE space SET active = 1 WHERE key = ?", (kept,))


def add(connection: Connection, tenant: int, vectors: Mapping[str, RunVectors]) -> None:
    """Write *vectors* by the id of their run."""
    keys = {
        name: _known(connection, tenant, name) for name in {run.space for run in vectors.values()}
    }
    for trajectory_id, found in vectors.items():
        fragments = runs.fragment_keys(connection, tenant, [trajectory_id])
        key = runs.key_of(connection, tenant, trajectory_id)
        if key is not None and len(fragments) == len(found.fragments):
            slots = _in_slots(Run(tenant, 0, key, 0), fragments, found.fragments)
            data = _data(found.space, (found.trajectory, *slots))
            connection.execute(_INSERT, (key, keys[found.space], data))


def insert(connection: Connection, run: Run, vectors: RunVectors) -> None:
    """Write the *vectors* of a run being learned, unless their space has been dropped."""
    space = _key(connection, run.tenant, vectors.space)
    if space is not None:
        data = _data(vectors.space, (vectors.trajectory, *vectors.fragments))
        connection.execute(_INSERT, (run.key, space, data))


def texts_to_embed(
    connection: Connection, tenant: int, limit: int, name: str | None, after: str
) -> list[RunTexts]:
    """The texts of runs by id, of those without vectors in the space *name* where one is given."""
    asked: dict[str, str | int] = {"tenant": tenant, "limit": max(0, limit), "after": after}
    space = None if name is None else _key(connection, tenant, name)
    if space is not None:
        asked["space"] = space
    found = connection.execute(
        f"SELECT t.id, t.key FROM trajectory t WHERE t.tenant = :tenant AND t.id > :after "
        f"{'' if space is None else _NOT_EMBEDDED} ORDER BY t.id LIMIT :limit",
        asked,
    ).fetchall()
    return [_texts(connection, tenant, *row) for row in found]


def methodologies_to_embed(
    connection: Connection, tenant: int, limit: int, name: str | None
) -> list[Methodology]:
    """Methodologies by id, of those without a vector in the space *name* where one is given."""
    space = None if name is None else _key(connection, tenant, name)
    found = connection.execute(
        "SELECT m.id FROM methodology m WHERE m.tenant = ? "
        f"AND m.status <> '{MethodologyStatus.RETIRED}' AND NOT EXISTS (SELECT 1 "
        "FROM methodology_vector v WHERE v.methodology = m.key AND v.space = ?) "
        "ORDER BY m.id LIMIT ?",
        (tenant, space, max(0, limit)),
    )
    return methodologies.by_ids(connection, tenant, [row[0] for row in found])


def add_methodologies(
    connection: Connection, tenant: int, name: str, vectors: Mapping[str, Vector | None]
) -> None:
    """Write *vectors* of the space *name* by the id of their methodology."""
    key = _known(connection, tenant, name)
    methodology_vectors.add(connection, tenant, key, dimensions_of(name), vectors)


def _texts(connection: Connection, tenant: int, trajectory_id: str, key: int) -> RunTexts:
    trajectory = runs.trajectory(connection, tenant, trajectory_id)
    assert trajectory is not None  # its key was read in the same transaction
    run = Run(tenant, 0, key, 0)
    messages: defaultdict[str, list[str]] = defaultdict(list)
    for fragment, message in connection.execute(_MESSAGES, (run.first, run.last)):
        messages[fragment].append(message)
    keys = runs.fragment_keys(connection, tenant, [trajectory_id])
    fragments = read_fragments(connection, keys)
    return run_texts(trajectory, [fragments[key][1] for key in keys], messages)


def _known(connection: Connection, tenant: int, name: str) -> int:
    key = _key(connection, tenant, name)
    if key is None:
        raise StoreError(f"no room was made for space {name}, or another took its place since")
    return key


def _key(connection: Connection, tenant: int, name: str) -> int | None:
    row = connection.execute(
        "SELECT key FROM space WHERE tenant = ? AND name = ?", (tenant, name)
    ).fetchone()
    return None if row is None else row[0]


def _in_slots(
    run: Run, fragments: Sequence[int], vectors: Sequence[Vector | None]
) -> list[Vector | None]:
    """*vectors* of *fragments* (keys) with gaps for those that were pruned: slots are by key."""
    of_key = dict(zip(fragments, vectors, strict=True))
    return [of_key.get(key) for key in range(run.first, max(fragments, default=run.first - 1) + 1)]


def _data(space: str, vectors: Sequence[Vector | None]) -> bytes:
    """The numbers of all nodes one after the other, zeros for those without a vector."""
    none = bytes(4 * dimensions_of(space))
    return b"".join(vector.data if vector else none for vector in vectors)

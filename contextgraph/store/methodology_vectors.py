"""The vectors of methodologies: few, written one by one, read as one matrix."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from sqlite3 import Connection
from typing import TYPE_CHECKING

from contextgraph.model import Methodology, methodology_text
from contextgraph.vectors import Vector, dimensions_of, products

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from contextgraph.vectors import Floats

_DECIMALS = 4
_GENERAL = ""
_STATE = "SELECT coalesce(max(key), 0), count(*) FROM methodology_vector WHERE space = ?"
_ALL = """
SELECT m.key, m.id, m.repo, v.data FROM methodology_vector v
CROSS JOIN methodology m ON m.key = v.methodology WHERE v.space = ? ORDER BY m.id"""


@dataclass(frozen=True, slots=True)
class _Rows:
    """What was read of a *space* while the table was in this *state*; rows by id."""

    space: int
    state: tuple[int, int]
    keys: tuple[int, ...]
    repos: "NDArray[np.object_]"
    vectors: "Floats"


class MethodologyVectors:
    """Those of the space that is active, read anew when any was written or taken away."""

    def __init__(self) -> None:
        self._rows: _Rows | None = None

    def nearest(
        self, connection: Connection, space: int, repo: str | None, vector: Vector
    ) -> Iterator[tuple[int, Vector]]:
        """The keys of methodologies of *repo* (None: of any) or general, best first, ties by id."""
        import numpy as np

        rows = self._caught_up(connection, space, vector.space)
        if not rows.keys:
            return
        inside = np.arange(len(rows.keys))
        if repo is not None:
            inside = np.flatnonzero((rows.repos == repo) | (rows.repos == _GENERAL))
        alike = np.round(products(rows.vectors[inside], vector), _DECIMALS)
        for place in inside[np.argsort(-alike, kind="stable")].tolist():
            yield rows.keys[place], Vector(vector.space, rows.vectors[place].tobytes())

    def _caught_up(self, connection: Connection, space: int, name: str) -> _Rows:
        rows, state = self._rows, connection.execute(_STATE, (space,)).fetchone()
        if rows is None or (rows.space, rows.state) != (space, state):
            rows = self._rows = _read(connection, space, state, dimensions_of(name))
        return rows


def _read(connection: Connection, space: int, state: tuple[int, int], dimensions: int) -> _Rows:
    import numpy as np

    found = [row for row in connection.execute(_ALL, (space,)) if any(row[3])]
    numbers = np.frombuffer(b"".join(row[3] for row in found), "<f4").reshape(-1, dimensions)
    repos = np.array([row[2] or _GENERAL for row in found], dtype=object)
    return _Rows(space, state, tuple(row[0] for row in found), repos, numbers)


def add(
    connection: Connection,
    tenant: int,
    space: int,
    dimensions: int,
    vectors: Mapping[str, Vector | None],
) -> None:
    """Write *vectors* by the id of their methodology, zeros for those without."""
    none = bytes(4 * dimensions)
    connection.executemany(
        "INSERT OR IGNORE INTO methodology_vector (methodology, space, data) "
        "SELECT key, ?, ? FROM methodology WHERE tenant = ? AND id = ?",
        [
            (space, vector.data if vector else none, tenant, methodology_id)
            for methodology_id, vector in vectors.items()
        ],
    )


def drop_outdated(connection: Connection, tenant: int, methodology: Methodology) -> None:
    """Drop the vectors of what is known by the id of *methodology*, where its text is another."""
    row = connection.execute(
        "SELECT key, situation || char(10) || strategy FROM methodology "
        "WHERE tenant = ? AND id = ?",
        (tenant, methodology.id),
    ).fetchone()
    if row and row[1] != methodology_text(methodology):
        connection.execute("DELETE FROM methodology_vector WHERE methodology = ?", (row[0],))

"""What a language model made of runs, in tables of its own."""

from collections.abc import Iterable, Mapping
from sqlite3 import Connection

from contextgraph.model import Retelling
from contextgraph.store import rows
from contextgraph.store.runs import Run, key_of
from contextgraph.store.schema import RUN_BITS

_OF_RUNS = """
SELECT DISTINCT t.key, t.id, r.made_by, r.told, r.summary FROM json_each(?) AS asked
JOIN trajectory t ON t.tenant = ? AND t.id = asked.value
JOIN retelling r ON r.trajectory = t.key ORDER BY t.id"""
_OF_FRAGMENTS = f"""
SELECT f.key >> {RUN_BITS}, f.id, r.description FROM json_each(?) AS asked
CROSS JOIN retold_fragment r
    ON r.fragment BETWEEN asked.value << {RUN_BITS} AND ((asked.value + 1) << {RUN_BITS}) - 1
CROSS JOIN fragment f ON f.key = r.fragment ORDER BY f.id"""
_NOT_BY = """
SELECT t.id FROM trajectory t LEFT JOIN retelling r ON r.trajectory = t.key
WHERE t.tenant = ? AND r.made_by IS NOT ? ORDER BY t.seen_at DESC, t.id"""


def of_runs(
    connection: Connection, tenant: int, trajectory_ids: Iterable[str]
) -> dict[str, Retelling]:
    """Run id -> how it was told again."""
    found = connection.execute(_OF_RUNS, (rows.text_of(trajectory_ids), tenant)).fetchall()
    descriptions: dict[int, dict[str, str]] = {row[0]: {} for row in found}
    for key, fragment, text in connection.execute(_OF_FRAGMENTS, (str(list(descriptions)),)):
        descriptions[key][fragment] = text
    return {
        run: Retelling(made_by, told, summary, descriptions[key])
        for key, run, made_by, told, summary in found
    }


def put(connection: Connection, tenant: int, retellings: Mapping[str, Retelling]) -> None:
    """Write them in the place of what there was, for runs that are there."""
    for trajectory_id, given in retellings.items():
        key = key_of(connection, tenant, trajectory_id)
        if key is not None:
            run = Run(tenant, 0, key, 0)
            connection.execute(
                "DELETE FROM retold_fragment WHERE fragment BETWEEN ? AND ?", (run.first, run.last)
            )
            insert(connection, run, given)


def insert(connection: Connection, run: Run, given: Retelling) -> None:
    """Write how *run* was told again; only fragments that it has count."""
    connection.execute(
        "INSERT OR REPLACE INTO retelling (trajectory, made_by, told, summary) VALUES (?, ?, ?, ?)",
        (run.key, given.made_by, given.told, given.summary),
    )
    connection.executemany(
        "INSERT INTO retold_fragment (fragment, description) "
        "SELECT key, ? FROM fragment WHERE key BETWEEN ? AND ? AND id = ?",
        [(text, run.first, run.last, one) for one, text in given.descriptions.items()],
    )


def ids_not_by(connection: Connection, tenant: int, made_by: str) -> list[str]:
    """The ids of runs that *made_by* has not told, the newest first."""
    return [row[0] for row in connection.execute(_NOT_BY, (tenant, made_by))]

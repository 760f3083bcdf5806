"""Methodologies in the tables: found for an error, read back, written."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from sqlite3 import Connection

import orjson

from contextgraph.model import (
    ErrorSignature,
    Methodology,
    MethodologyStatus,
    Near,
    Phase,
    ResolvedBy,
    SimilarTo,
    Source,
    TaskType,
)
from contextgraph.store import methodology_vectors, rows, withdrawn
from contextgraph.store.schema import RUN_BITS
from contextgraph.store.scoping import Scoped
from contextgraph.store.tenants import new_revision
from contextgraph.vectors import Vector

_COLUMNS = (
    "id, error_id, keyword, task_type, repo, situation, strategy, made_by, status, confidence, "
    "support, repositories, success_rate, avg_steps, frequency, success_count, failure_count, "
    "last_used, superseded_by, phase"
)
_READ = ", ".join(f"m.{column.strip()}" for column in _COLUMNS.split(","))
_FOR_ERROR = f"""
SELECT m.key, {_READ} FROM error_pattern e
CROSS JOIN resolved_by r ON r.tenant = e.tenant AND r.error_id = e.id
CROSS JOIN methodology m ON m.tenant = r.tenant AND m.id = r.methodology_id
WHERE e.tenant = :tenant AND e.family = :family AND e.error_type = :error_type
AND e.template = :template AND m.status <> '{MethodologyStatus.RETIRED}'
AND (m.repo IS NULL OR m.repo = :repo OR :repo IS NULL) {{visible}}
ORDER BY m.repo IS NULL, m.support DESC, m.id LIMIT :limit"""
# What was learned from a run that is not to be seen is not to be seen either.
_VISIBLE = """
AND NOT EXISTS (SELECT 1 FROM derived_from d JOIN trajectory t ON t.key = d.trajectory
    WHERE d.methodology = m.key AND ({hidden}))"""
_FOR_TASK = f"""
SELECT m.key, {_READ} FROM methodology m WHERE m.tenant = :tenant AND m.error_id = ''
AND m.status <> '{MethodologyStatus.RETIRED}' AND (m.repo IS NULL OR {{of_repo}})
AND (m.task_type IS NULL OR :task_type IS NULL OR m.task_type = :task_type) {{visible}}
ORDER BY m.repo IS NULL, m.support DESC, m.id LIMIT :limit"""
_OF_TYPES = f"""
WITH type AS (SELECT DISTINCT family, error_type FROM json_each(:asked) AS asked
    CROSS JOIN error_pattern e ON e.tenant = :tenant AND e.id = asked.value)
SELECT m.key, {_READ}, type.family, type.error_type FROM type
CROSS JOIN error_pattern e ON e.tenant = :tenant AND e.family = type.family
    AND e.error_type = type.error_type
CROSS JOIN methodology m ON m.tenant = :tenant AND m.error_id = e.id ORDER BY m.id"""
_AT_ONCE = 64
_GONE = frozenset({MethodologyStatus.RETIRED})

# Fragments have no index by id: their run has one, and their keys are in its range.
_KEYS = f"""
SELECT t.id, f.id, f.key FROM json_each(:asked) AS asked
CROSS JOIN trajectory t ON t.tenant = :tenant AND t.id = asked.value ->> 0
CROSS JOIN fragment f ON f.key BETWEEN t.key << {RUN_BITS} AND ((t.key + 1) << {RUN_BITS}) - 1
    AND f.id = asked.value ->> 1"""


def for_error(
    connection: Connection, scope: Scoped, repo: str | None, signature: ErrorSignature, limit: int
) -> list[Methodology]:
    """Those of the error of this template, in the order of the port."""
    asked = {
        **scope.parameters,
        "repo": repo,
        "family": signature.family.value,
        "error_type": signature.error_type,
        "template": signature.template,
        "limit": max(0, limit),
    }
    return _values(connection, _FOR_ERROR.format(visible=_visible(scope)), asked)


def for_task(
    connection: Connection, scope: Scoped, repo: str | None, task_type: TaskType | None, limit: int
) -> list[Methodology]:
    """Those of no error for this type of task, in the order of the port."""
    of_repo = "m.repo IS NOT NULL" if repo is None else "m.repo = :repo"
    asked = {
        **scope.parameters,
        "repo": repo,
        "task_type": task_type.value if task_type else None,
        "limit": max(0, limit),
    }
    return _values(connection, _FOR_TASK.format(of_repo=of_repo, visible=_visible(scope)), asked)


def visible_first(
    connection: Connection, scope: Scoped, near: Iterable[tuple[int, Vector]], limit: int
) -> list[Near[Methodology]]:
    """The first *limit* of *near* (by key) that *scope* does not hide."""
    found, rest = list[Near[Methodology]](), iter(near)
    while len(found) < limit and (batch := list(islice(rest, _AT_ONCE))):
        visible = by_keys(connection, scope, [key for key, _ in batch])
        found += [Near(visible[key], vector) for key, vector in batch if key in visible]
    return found[: max(0, limit)]


def by_keys(connection: Connection, scope: Scoped, keys: Sequence[int]) -> dict[int, Methodology]:
    """Those with these keys that *scope* does not hide, by key."""
    query = f"""SELECT m.key, {_READ} FROM json_each(:keys) AS asked
        CROSS JOIN methodology m ON m.key = asked.value
        WHERE m.status <> '{MethodologyStatus.RETIRED}' {_visible(scope)}"""
    found = _rows(connection, query, {**scope.parameters, "keys": str(list(keys))})
    return {row[0]: _value(row[1:], sources) for row, sources in found}


def _visible(scope: Scoped) -> str:
    """The condition that no source of a methodology is of a run that is not to be seen."""
    hidden = ["t.seen_at > :as_of"] if scope.has_as_of else []
    if scope.has_excluded:
        hidden.append("t.instance_id IN (SELECT value FROM json_each(:instances))")
    return _VISIBLE.format(hidden=" OR ".join(hidden)) if hidden else ""


def of_types(
    connection: Connection, tenant: int, error_ids: Sequence[str]
) -> list[list[Methodology]]:
    """Those of all errors of the families and types of these, by id, each type by itself."""
    asked = {"tenant": tenant, "asked": orjson.dumps([*error_ids]).decode()}
    by_type: dict[rows.Row, list[Methodology]] = {}
    for row, sources in _rows(connection, _OF_TYPES, asked):
        by_type.setdefault(row[-2:], []).append(_value(row[1:], sources))
    return list(by_type.values())


def of_errors(connection: Connection, tenant: int, error_ids: Sequence[str]) -> list[Methodology]:
    """Those abstracted from these errors, by id; tombstones as well."""
    return _among(connection, "m.tenant = ? AND m.error_id", tenant, error_ids)


def of_repos(connection: Connection, tenant: int, repos: Sequence[str]) -> list[Methodology]:
    """Those of no error that are of these repositories, by id; tombstones as well."""
    return _among(connection, "m.tenant = ? AND m.error_id = '' AND m.repo", tenant, repos)


def by_ids(connection: Connection, tenant: int, ids: Sequence[str]) -> list[Methodology]:
    """Those of these ids, by id."""
    return _among(connection, "m.tenant = ? AND m.id", tenant, ids)


def ids(connection: Connection, tenant: int) -> list[str]:
    """All ids, ascending; tombstones as well."""
    found = connection.execute("SELECT id FROM methodology WHERE tenant = ? ORDER BY id", (tenant,))
    return [row[0] for row in found]


def resolved_by(connection: Connection, tenant: int, methodology_id: str) -> list[ResolvedBy]:
    """The errors that a methodology resolves, by their ids."""
    found = connection.execute(
        "SELECT error_id, methodology_id, success_rate, avg_steps, support FROM resolved_by "
        "WHERE tenant = ? AND methodology_id = ? ORDER BY error_id",
        (tenant, methodology_id),
    )
    return [ResolvedBy(*row) for row in found]


def shown(connection: Connection, tenant: int) -> list[str]:
    """Ids of those of which it was reported whether they helped."""
    found = connection.execute(
        "SELECT DISTINCT m.id FROM methodology m "
        "JOIN exposed_item i ON i.tenant = m.tenant AND i.item = m.id "
        "JOIN exposure e ON e.key = i.exposure AND e.helped IS NOT NULL "
        "WHERE m.tenant = ? ORDER BY m.id",
        (tenant,),
    )
    return [row[0] for row in found]


@dataclass(frozen=True, slots=True)
class Changes:
    """What is written in one transaction."""

    methodologies: Sequence[Methodology]
    removed: Sequence[str]
    resolved: Sequence[ResolvedBy]
    similar: Sequence[SimilarTo]


def put_all(connection: Connection, tenant: int, given: Changes) -> int:
    """Write *given*; how many fragments were found alike."""
    new_revision(connection, tenant)
    withdrawn.remove(connection, tenant, given.removed)
    for methodology in given.methodologies:
        _put(connection, tenant, methodology)
    _put_resolved(connection, tenant, given)
    return _put_similar(connection, tenant, given.similar)


def _put(connection: Connection, tenant: int, methodology: Methodology) -> None:
    """Write *methodology* in the place of the one of its id, with its sources."""
    row = _row(methodology)
    methodology_vectors.drop_outdated(connection, tenant, methodology)
    marks = ", ".join("?" * len(row))
    updates = ", ".join(f"{name} = excluded.{name}" for name in _COLUMNS.split(", ")[1:])
    key = connection.execute(
        f"INSERT INTO methodology (tenant, {_COLUMNS}) VALUES (?, {marks}) "
        f"ON CONFLICT (tenant, id) DO UPDATE SET {updates} RETURNING key",
        (tenant, *row),
    ).fetchone()[0]
    connection.execute("DELETE FROM derived_from WHERE methodology = ?", (key,))
    connection.executemany(
        f"INSERT INTO derived_from VALUES (?1 >> {RUN_BITS}, ?1, ?2, ?3, ?4)",
        [
            (fragment, key, source.trajectory_id, source.fragment_id)
            for source, fragment in _keys(connection, tenant, methodology.sources).items()
        ],
    )


def _put_resolved(connection: Connection, tenant: int, given: Changes) -> None:
    """Write the edges between what is there; a tombstone keeps none."""
    connection.executemany(
        "DELETE FROM resolved_by WHERE tenant = ? AND methodology_id = ?",
        [(tenant, one.id) for one in given.methodologies if one.status in _GONE],
    )
    connection.executemany(
        "INSERT OR REPLACE INTO resolved_by SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE "
        "EXISTS (SELECT 1 FROM error_pattern WHERE tenant = ?1 AND id = ?2) "
        "AND EXISTS (SELECT 1 FROM methodology WHERE tenant = ?1 AND id = ?3)",
        [
            (tenant, e.error_id, e.methodology_id, e.success_rate, e.avg_steps, e.support)
            for e in given.resolved
        ],
    )


def _put_similar(connection: Connection, tenant: int, found: Sequence[SimilarTo]) -> int:
    """Write which fragments are like which; how many of it was not known."""
    both = {source for edge in found for source in (edge.fragment, edge.representative)}
    keys = _keys(connection, tenant, sorted(both))
    before = connection.total_changes
    edges = [
        (keys[edge.fragment], edge.error_id, keys[edge.representative], edge.weight)
        for edge in found
        if edge.fragment in keys and edge.representative in keys
    ]
    connection.executemany(
        "DELETE FROM similar WHERE fragment = ? AND error_id = ?",
        [(fragment, error) for fragment, error, head, _ in edges if fragment == head],
    )
    connection.executemany(
        "INSERT INTO similar VALUES (?1, ?2, ?3, ?4) ON CONFLICT (fragment, error_id) DO UPDATE "
        "SET representative = ?3, weight = ?4 WHERE representative <> ?3 OR weight <> ?4",
        [edge for edge in edges if edge[0] != edge[2]],
    )
    return connection.total_changes - before


def _keys(connection: Connection, tenant: int, fragments: Sequence[Source]) -> dict[Source, int]:
    """The keys of *fragments* that are there."""
    asked = orjson.dumps([(source.trajectory_id, source.fragment_id) for source in fragments])
    found = connection.execute(_KEYS, {"tenant": tenant, "asked": asked.decode()})
    return {Source(run, fragment): key for run, fragment, key in found}


def _row(value: Methodology) -> rows.Row:
    return (
        value.id,
        value.error_id,
        value.keyword,
        value.task_type.value if value.task_type else None,
        value.repo,
        value.situation,
        value.strategy,
        value.made_by,
        value.status.value,
        value.confidence,
        value.support,
        value.repositories,
        value.success_rate,
        value.avg_steps,
        value.frequency,
        value.success_count,
        value.failure_count,
        None if value.last_used is None else rows.moment(value.last_used),
        value.superseded_by,
        value.phase.value if value.phase else None,
    )


def _among(
    connection: Connection, column: str, tenant: int, asked: Sequence[str]
) -> list[Methodology]:
    """Those of which *column*, with what is said before it, is among *asked*; by id."""
    query = f"""SELECT m.key, {_READ} FROM methodology m
        WHERE {column} IN (SELECT value FROM json_each(?)) ORDER BY m.id"""
    return _values(connection, query, (tenant, orjson.dumps([*asked]).decode()))


def _values(connection: Connection, query: str, asked: object) -> list[Methodology]:
    return [_value(row[1:], sources) for row, sources in _rows(connection, query, asked)]


def _rows(
    connection: Connection, query: str, asked: object
) -> list[tuple[rows.Row, tuple[Source, ...]]]:
    """The key and columns of each that is found, with its sources."""
    found: list[rows.Row] = connection.execute(query, asked).fetchall()  # type: ignore[arg-type]
    sources = _sources(connection, [row[0] for row in found])
    return [(row, sources.get(row[0], ())) for row in found]


def _sources(connection: Connection, keys: Sequence[int]) -> dict[int, tuple[Source, ...]]:
    found: dict[int, list[Source]] = {}
    query = """SELECT d.methodology, d.trajectory_id, d.fragment_id FROM json_each(?) AS asked
        CROSS JOIN derived_from d ON d.methodology = asked.value"""
    for key, run, fragment in connection.execute(query, (str(list(keys)),)):
        found.setdefault(key, []).append(Source(run, fragment))
    return {key: tuple(sorted(sources)) for key, sources in found.items()}


def _value(row: rows.Row, sources: tuple[Source, ...]) -> Methodology:
    return Methodology(
        id=row[0],
        error_id=row[1],
        keyword=row[2],
        task_type=None if row[3] is None else TaskType(row[3]),
        repo=row[4],
        situation=row[5],
        strategy=row[6],
        made_by=row[7],
        status=MethodologyStatus(row[8]),
        confidence=row[9],
        support=row[10],
        repositories=row[11],
        success_rate=row[12],
        avg_steps=row[13],
        frequency=row[14],
        success_count=row[15],
        failure_count=row[16],
        last_used=None if row[17] is None else rows.time_of(row[17]),
        sources=sources,
        superseded_by=row[18],
        phase=None if row[19] is None else Phase(row[19]),
    )

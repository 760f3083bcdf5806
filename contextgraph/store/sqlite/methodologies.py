"""Methodologies: `MethodologyStore` in SQLite."""

from collections.abc import Sequence
from dataclasses import astuple

from contextgraph.model import (
    ErrorSignature,
    Methodology,
    MethodologyStatus,
    ResolvedBy,
    Scope,
    SimilarTo,
    Source,
)
from contextgraph.ports import ALL
from contextgraph.store.sqlite import rows, runs
from contextgraph.store.sqlite.database import Database
from contextgraph.store.sqlite.schema import RUN_BITS
from contextgraph.store.sqlite.transaction import (
    Parameters,
    SqlScope,
    Transaction,
)

_READ = rows.columns_of(rows.METHODOLOGIES, "m")
_FOR_ERROR = f"""
SELECT {_READ} FROM error_pattern e
CROSS JOIN resolved_by r ON r.tenant = e.tenant AND r.error_id = e.id
CROSS JOIN methodology m ON m.tenant = r.tenant AND m.id = r.methodology_id
WHERE e.tenant = :tenant AND e.family = :family AND e.error_type = :error_type
AND e.template = :template AND m.status <> '{MethodologyStatus.RETIRED}'
AND (m.repo IS NULL OR m.repo = :repo OR :repo IS NULL) {{visible}}
ORDER BY m.repo IS NULL, m.support DESC, m.id LIMIT :limit"""
# What was derived from a hidden run is hidden as well.
_VISIBLE = """
AND NOT EXISTS (SELECT 1 FROM derived_from d JOIN trajectory t ON t.key = d.trajectory
    WHERE d.methodology = m.key AND ({hidden}))"""
_NAMED = f"""
SELECT m.key, {_READ} FROM methodology m WHERE m.key IN (
    SELECT key FROM methodology WHERE tenant = ?1 AND id IN (SELECT value FROM json_each(?2))
    UNION ALL SELECT key FROM methodology
    WHERE tenant = ?1 AND error_id IN (SELECT value FROM json_each(?3)))
ORDER BY m.id"""
_OF_TYPES = f"""
WITH type AS (SELECT DISTINCT family, error_type FROM json_each(:named) AS named
    CROSS JOIN error_pattern e ON e.tenant = :tenant AND e.id = named.value)
SELECT m.key, {_READ}, type.family, type.error_type FROM type
CROSS JOIN error_pattern e ON e.tenant = :tenant AND e.family = type.family
    AND e.error_type = type.error_type
CROSS JOIN methodology m ON m.tenant = :tenant AND m.error_id = e.id ORDER BY m.id"""
# Fragments have no index by id: their run has one, and their keys are in its range.
_KEYS = f"""
SELECT t.id, f.id, f.key FROM json_each(:named) AS named
CROSS JOIN trajectory t ON t.tenant = :tenant AND t.id = named.value ->> 0
CROSS JOIN fragment f ON f.key BETWEEN t.key << {RUN_BITS} AND ((t.key + 1) << {RUN_BITS}) - 1
    AND f.id = named.value ->> 1"""
_SOURCES = """
SELECT d.methodology, d.trajectory_id, d.fragment_id FROM json_each(?) AS named
CROSS JOIN derived_from d ON d.methodology = named.value"""


class SqliteMethodologies:
    """`MethodologyStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, ids: Sequence[str] = (), *, errors: Sequence[str] = ()) -> Sequence[Methodology]:
        with self._database.reading() as transaction:
            named = (transaction.tenant, rows.text_of(ids), rows.text_of(errors))
            return [
                rows.METHODOLOGIES.value(row[1:], sources=sources)
                for row, sources in _rows(transaction, _NAMED, named)
            ]

    def ids(self, repo: str | None = None, after: str = "", limit: int = ALL) -> Sequence[str]:
        with self._database.reading() as transaction:
            values = {"repo": repo and repo.casefold()}
            return transaction.ids("methodology", values, after, limit)

    def of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[Methodology]]:
        by_type: dict[rows.Row, list[Methodology]] = {}
        with self._database.reading() as transaction:
            parameters = {"tenant": transaction.tenant, "named": rows.text_of(error_ids)}
            for row, sources in _rows(transaction, _OF_TYPES, parameters):
                by_type.setdefault(row[-2:], []).append(
                    rows.METHODOLOGIES.value(row[1:-2], sources=sources)
                )
        return list(by_type.values())

    def for_error(
        self, signatures: Sequence[ErrorSignature], scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        with self._database.reading() as transaction:
            within = transaction.scoped(scope)
            sql = _FOR_ERROR.format(visible=_visible(within))
            for signature in signatures:
                parameters = {
                    **within.parameters,
                    "repo": scope.repo,
                    "family": signature.family.value,
                    "error_type": signature.error_type,
                    "template": signature.template,
                    "limit": max(0, limit),
                }
                if matching := transaction.rows(sql, parameters):
                    return [rows.METHODOLOGIES.value(row, sources=()) for row in matching]
            return ()

    def put(
        self,
        methodologies: Sequence[Methodology],
        removed: Sequence[str] = (),
        resolved: Sequence[ResolvedBy] = (),
        similar: Sequence[SimilarTo] = (),
    ) -> int:
        with self._database.writing() as transaction:
            transaction.new_revision()
            runs.note_abstracted(transaction)
            runs.remove_methodologies(transaction, removed)
            for methodology in methodologies:
                _put(transaction, methodology)
            _put_resolved(transaction, methodologies, resolved)
            return _put_similar(transaction, similar)


def _visible(scope: SqlScope) -> str:
    """The condition that no source of a methodology is of a run that *scope* hides."""
    hidden = ["t.seen_at > :as_of"] if scope.has_as_of else []
    if scope.has_excluded:
        hidden.append("t.instance_id IN (SELECT value FROM json_each(:instances))")
    return _VISIBLE.format(hidden=" OR ".join(hidden)) if hidden else ""


def _put(transaction: Transaction, methodology: Methodology) -> None:
    """Write *methodology* over the one of its id, with its sources."""
    columns, row = rows.columns_of(rows.METHODOLOGIES), rows.METHODOLOGIES.row(methodology)
    marks = ", ".join("?" * len(row))
    updates = ", ".join(f"{name} = excluded.{name}" for name in rows.METHODOLOGIES.names[1:])
    updates += ", space = NULL, vector = NULL"
    key = transaction.number(
        f"INSERT INTO methodology (tenant, {columns}) VALUES (?, {marks}) "
        f"ON CONFLICT (tenant, id) DO UPDATE SET {updates} RETURNING key",
        (transaction.tenant, *row),
    )
    transaction.write("DELETE FROM derived_from WHERE methodology = ?", (key,))
    transaction.write_all(
        f"INSERT INTO derived_from VALUES (?1 >> {RUN_BITS}, ?1, ?2, ?3, ?4)",
        [
            (fragment, key, source.trajectory_id, source.fragment_id)
            for source, fragment in _keys(transaction, methodology.sources).items()
        ],
    )


def _put_resolved(
    transaction: Transaction, methodologies: Sequence[Methodology], resolved: Sequence[ResolvedBy]
) -> None:
    """Write the edges between stored nodes; a tombstone has none."""
    tenant = transaction.tenant
    transaction.write_all(
        "DELETE FROM resolved_by WHERE tenant = ? AND methodology_id = ?",
        [
            (tenant, methodology.id)
            for methodology in methodologies
            if methodology.status is MethodologyStatus.RETIRED
        ],
    )
    transaction.write_all(
        "INSERT OR REPLACE INTO resolved_by SELECT ?1, ?2, ?3, ?4, ?5, ?6 WHERE "
        "EXISTS (SELECT 1 FROM error_pattern WHERE tenant = ?1 AND id = ?2) "
        "AND EXISTS (SELECT 1 FROM methodology WHERE tenant = ?1 AND id = ?3)",
        [(tenant, *astuple(edge)) for edge in resolved],
    )


def _put_similar(transaction: Transaction, links: Sequence[SimilarTo]) -> int:
    """Write the edges between stored fragments; how many changed."""
    sources = {source for edge in links for source in (edge.fragment, edge.representative)}
    keys = _keys(transaction, sorted(sources))
    edges = [
        (keys[edge.fragment], edge.error_id, keys[edge.representative], edge.weight)
        for edge in links
        if edge.fragment in keys and edge.representative in keys
    ]
    removed = transaction.write_all(
        "DELETE FROM similar WHERE fragment = ? AND error_id = ?",
        [(fragment, error) for fragment, error, head, _ in edges if fragment == head],
    )
    return removed + transaction.write_all(
        "INSERT INTO similar VALUES (?1, ?2, ?3, ?4) ON CONFLICT (fragment, error_id) DO UPDATE "
        "SET representative = ?3, weight = ?4 WHERE representative <> ?3 OR weight <> ?4",
        [edge for edge in edges if edge[0] != edge[2]],
    )


def _keys(transaction: Transaction, fragments: Sequence[Source]) -> dict[Source, int]:
    """The keys of those of *fragments* that are stored."""
    named = rows.text_of([(source.trajectory_id, source.fragment_id) for source in fragments])
    keys = transaction.rows(_KEYS, {"tenant": transaction.tenant, "named": named})
    return {Source(run, fragment): key for run, fragment, key in keys}


def _rows(
    transaction: Transaction, sql: str, parameters: Parameters
) -> list[tuple[rows.Row, tuple[Source, ...]]]:
    """The key and columns of each that *sql* finds, with its sources."""
    selected = transaction.rows(sql, parameters)
    sources: dict[int, list[Source]] = {row[0]: [] for row in selected}
    for key, run, fragment in transaction.rows(_SOURCES, (str(list(sources)),)):
        sources[key].append(Source(run, fragment))
    return [(row, tuple(sorted(sources[row[0]]))) for row in selected]

"""Counts: how errors went within a scope, and how much the memory holds."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from sqlite3 import Connection

import orjson

from contextgraph.model import (
    ErrorPattern,
    ErrorSignature,
    ErrorTally,
    MemoryCounts,
    MethodologyStatus,
    Outcome,
    Phase,
)
from contextgraph.store import rows
from contextgraph.store.scoping import Scoped
from contextgraph.store.view import View

MOST_TRAJECTORIES = 10

_NODES = {
    "Trajectory": "trajectory",
    "Fragment": "fragment",
    "ErrorPattern": "error_pattern",
    "Methodology": "methodology",
}
_EDGES = {
    "HAS_FRAGMENT": "fragment x WHERE x.tenant = ?",
    "CAUSED_ERROR": "caused x WHERE x.tenant = ?",
    "RECOVERED": "recovered x WHERE x.tenant = ?",
    "RESOLVED_BY": """resolved_by x JOIN error_pattern e
        ON e.tenant = x.tenant AND e.id = x.error_id WHERE x.tenant = ?""",
    "DERIVED_FROM": """methodology m JOIN derived_from x ON x.methodology = m.key
        JOIN fragment f ON f.key = x.fragment WHERE m.tenant = ?""",
    "SUPERSEDES": """methodology x JOIN methodology m
        ON m.tenant = x.tenant AND m.id = x.superseded_by WHERE x.tenant = ?""",
    "SIMILAR_TO": """similar x JOIN fragment f ON f.key = x.fragment
        JOIN fragment r ON r.key = x.representative WHERE f.tenant = ?""",
}
_MET = """
SELECT m.error, count(*) AS runs, sum(m.steps), sum(m.cleared)
FROM met m INDEXED BY {index} WHERE {scope} {error} GROUP BY m.error"""
_MET_IN_PHASE = """
SELECT c.error, count(*) AS runs, sum(c.steps), sum(EXISTS (
    SELECT 1 FROM met m WHERE m.trajectory = c.trajectory AND m.error = c.error AND m.cleared))
FROM (
    SELECT c.error, c.trajectory, sum(c.step_count) AS steps
    FROM caused c INDEXED BY caused_by_error WHERE {scope} AND c.phase = :phase
    GROUP BY c.error, c.trajectory) AS c
GROUP BY c.error"""
_MET_IN_RUNS = """
SELECT m.error, m.trajectory_id, m.steps, m.cleared, e.id
FROM trajectory t CROSS JOIN met m ON m.trajectory = t.key
JOIN error_pattern e ON e.key = m.error
WHERE t.tenant = ? AND t.id IN (SELECT value FROM json_each(?))
ORDER BY m.seen_at DESC, m.trajectory_id"""
_MOST_COMMON = """
SELECT counted.* FROM ({counted}) AS counted JOIN error_pattern e ON e.key = counted.error
ORDER BY counted.runs DESC, e.id LIMIT :limit"""
_NEWEST_RUNS = """
SELECT m.trajectory_id FROM met m INDEXED BY {index}
WHERE m.error = :error AND {scope} {phase}
ORDER BY m.seen_at DESC, m.trajectory_id LIMIT :limit"""
_IN_PHASE = """
AND EXISTS (SELECT 1 FROM caused c INDEXED BY caused_by_error WHERE c.place = m.place
    AND c.phase = :phase AND c.error = m.error AND c.trajectory = m.trajectory)"""
_ERROR_FREQUENCY = """
SELECT e.error_type, count(DISTINCT c.fragment) AS fragments
FROM caused c JOIN error_pattern e ON e.key = c.error
WHERE c.tenant = ? GROUP BY e.error_type ORDER BY fragments DESC, e.error_type"""
_ERRORS_BY_RUN = """
SELECT c.trajectory, c.steps, e.id, e.error_type
FROM caused c JOIN error_pattern e ON e.key = c.error
WHERE c.tenant = ? ORDER BY c.trajectory"""


def common_errors(view: View, scope: Scoped, phase: Phase | None, limit: int) -> list[ErrorTally]:
    """Errors within *scope*, those of most runs first, then by id."""
    if phase is None:
        index = scope.index("met_by_error")
        counted = _MET.format(index=index, scope=scope.where("m"), error="")
    else:
        counted = _MET_IN_PHASE.format(scope=scope.where("c", by_place=True))
    asked = {**scope.parameters, **_phase(phase), "limit": max(0, limit)}
    counts = view.connection.execute(_MOST_COMMON.format(counted=counted), asked).fetchall()
    return _tallies(view, scope, phase, counts)


def error_tally(view: View, scope: Scoped, signature: ErrorSignature) -> ErrorTally | None:
    """How the error of this template went within *scope*."""
    error = view.connection.execute(
        "SELECT key FROM error_pattern "
        "WHERE tenant = ? AND family = ? AND error_type = ? AND template = ?",
        (scope.tenant, signature.family.value, signature.error_type, signature.template),
    ).fetchone()
    if error is None:
        return None
    counted = _MET.format(
        index=scope.index("met_by_error"), scope=scope.where("m"), error="AND m.error = :error"
    )
    counts = view.connection.execute(counted, {**scope.parameters, "error": error[0]}).fetchall()
    return next(iter(_tallies(view, scope, None, counts)), None)


def errors_of_runs(view: View, trajectory_ids: Iterable[str], limit: int) -> list[ErrorTally]:
    """Errors met in these runs, those of most of them first, then by id."""
    asked = (view.tenant, rows.text_of(trajectory_ids))
    met: dict[tuple[str, int], list[rows.Row]] = {}
    for error, run, steps, cleared, name in view.connection.execute(_MET_IN_RUNS, asked):
        met.setdefault((name, error), []).append((run, steps, cleared))
    common = sorted(met.items(), key=lambda item: (-len(item[1]), item[0]))[: max(0, limit)]
    patterns = view.errors([error for (_, error), _ in common])
    return [
        ErrorTally(
            error=patterns[error],
            runs=len(runs),
            steps=sum(steps for _, steps, _ in runs),
            cleared_runs=sum(cleared for _, _, cleared in runs),
            trajectories=tuple(run for run, _, _ in runs[:MOST_TRAJECTORIES]),
        )
        for (_, error), runs in common
    ]


def counts(connection: Connection, tenant: int) -> MemoryCounts:
    """Nodes, relations, outcomes and repositories of *tenant*."""
    outcomes = dict(
        connection.execute(
            "SELECT outcome, count(*) FROM trajectory WHERE tenant = ? GROUP BY outcome", (tenant,)
        )
    )
    statuses = dict(
        connection.execute(
            "SELECT status, count(*) FROM methodology WHERE tenant = ? GROUP BY status", (tenant,)
        )
    )
    return MemoryCounts(
        nodes={
            name: _count(connection, tenant, f"{table} x WHERE x.tenant = ?")
            for name, table in _NODES.items()
        },
        edges={name: _count(connection, tenant, which) for name, which in _EDGES.items()},
        outcomes={outcome.value: outcomes.get(outcome.value, 0) for outcome in Outcome},
        methodologies={one.value: statuses.get(one.value, 0) for one in MethodologyStatus},
        repositories=connection.execute(
            "SELECT count(*) FROM place WHERE tenant = ? AND repo <> ''", (tenant,)
        ).fetchone()[0],
    )


def error_frequency(connection: Connection, tenant: int) -> dict[str, int]:
    """Error type -> in how many fragments it occurred."""
    return dict(connection.execute(_ERROR_FREQUENCY, (tenant,)))


def error_transitions(connection: Connection, tenant: int) -> dict[str, dict[str, int]]:
    """Error type -> the next one in the same run -> how often; most frequent first, then by name.

    Errors of one step follow each other by the ids of their patterns.
    """
    transitions: defaultdict[str, Counter[str]] = defaultdict(Counter)
    found = connection.execute(_ERRORS_BY_RUN, (tenant,))
    for _, run in groupby(found, key=itemgetter(0)):
        met = sorted(
            (step, error, error_type)
            for _, steps, error, error_type in run
            for step in orjson.loads(steps)
        )
        for (_, _, before), (_, _, after) in pairwise(met):
            transitions[before][after] += 1
    by_size = sorted(transitions.items(), key=lambda item: (-item[1].total(), item[0]))
    return {before: _most_frequent_first(after) for before, after in by_size}


def _tallies(
    view: View, scope: Scoped, phase: Phase | None, counts: Sequence[rows.Row]
) -> list[ErrorTally]:
    patterns = view.errors([row[0] for row in counts])
    return [_tally(view, scope, phase, patterns, row) for row in counts]


def _tally(
    view: View,
    scope: Scoped,
    phase: Phase | None,
    patterns: Mapping[int, ErrorPattern],
    row: rows.Row,
) -> ErrorTally:
    error, runs, steps, cleared = row
    query = _NEWEST_RUNS.format(
        index=scope.index("met_by_error"),
        scope=scope.where("m"),
        phase="" if phase is None else _IN_PHASE,
    )
    asked = {**scope.parameters, **_phase(phase), "error": error, "limit": MOST_TRAJECTORIES}
    newest = tuple(run for (run,) in view.connection.execute(query, asked))
    return ErrorTally(patterns[error], runs, steps, cleared, newest)


def _phase(phase: Phase | None) -> dict[str, str]:
    return {} if phase is None else {"phase": phase.value}


def _count(connection: Connection, tenant: int, which: str) -> int:
    found = connection.execute(f"SELECT count(*) FROM {which}", (tenant,))
    count: int = found.fetchone()[0]
    return count


def _most_frequent_first(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

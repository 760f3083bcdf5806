"""Counts: how errors went within a scope, and how much the memory holds."""

from collections import Counter, defaultdict
from collections.abc import Iterable
from enum import StrEnum
from itertools import pairwise

from contextgraph.model import (
    ErrorSignature,
    ErrorTally,
    MemoryCounts,
    MethodologyStatus,
    Outcome,
    Phase,
    Scope,
)
from contextgraph.store.neo4j_store import rows
from contextgraph.store.neo4j_store.retrieval import where
from contextgraph.store.neo4j_store.transaction import Transaction

MOST_TRAJECTORIES = 10


def common_errors(
    transaction: Transaction, phase: Phase | None, scope: Scope, limit: int
) -> list[ErrorTally]:
    """Errors within *scope*, those of most runs first, then by id."""
    name = "common_errors" if phase is None else "common_errors_in_phase"
    found = transaction.rows(
        where(name, scope),
        phase=phase.value if phase else None,
        most=MOST_TRAJECTORIES,
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return list(map(rows.tally_of, found))


def error_tally(
    transaction: Transaction, signature: ErrorSignature, scope: Scope
) -> ErrorTally | None:
    """How the error of this template went within *scope*."""
    row = transaction.row(
        where("error_tally", scope),
        fingerprint=rows.fingerprint(signature),
        most=MOST_TRAJECTORIES,
        **rows.scope_parameters(scope),
    )
    return None if row is None else rows.tally_of(row)


def errors_of_runs(
    transaction: Transaction, trajectory_ids: Iterable[str], limit: int
) -> list[ErrorTally]:
    """Errors met in these runs, those of most of them first, then by id."""
    ids = sorted(set(trajectory_ids))
    found = transaction.rows("errors_of_runs", ids=ids, most=MOST_TRAJECTORIES, limit=max(0, limit))
    return list(map(rows.tally_of, found))


def counts(transaction: Transaction) -> MemoryCounts:
    """Nodes, relations, outcomes and repositories."""
    row = transaction.row("counts")
    assert row is not None  # it aggregates
    return MemoryCounts(
        nodes={
            "Trajectory": len(row["outcomes"]),
            "Fragment": row["fragments"],
            "ErrorPattern": row["errors"],
            "Methodology": len(row["statuses"]),
        },
        edges={
            "HAS_FRAGMENT": row["fragments"],
            "CAUSED_ERROR": row["caused"],
            "RECOVERED": row["recovered"],
            "RESOLVED_BY": row["resolved"],
            "DERIVED_FROM": row["derived"],
            "SUPERSEDES": row["supersedes"],
            "SIMILAR_TO": row["similar"],
        },
        outcomes=_counted(Outcome, row["outcomes"]),
        methodologies=_counted(MethodologyStatus, row["statuses"]),
        repositories=row["repositories"],
    )


def error_frequency(transaction: Transaction) -> dict[str, int]:
    """Error type -> in how many fragments it occurred."""
    found = transaction.rows("error_frequency")
    return {row["error_type"]: row["fragments"] for row in found}


def error_transitions(transaction: Transaction) -> dict[str, dict[str, int]]:
    """Error type -> the next one in the same run -> how often; most frequent first, then by name.

    Errors of one step follow each other by the ids of their patterns.
    """
    transitions: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for row in transaction.rows("errors_by_run"):
        met = sorted((step, error, kind) for steps, error, kind in row["met"] for step in steps)
        for (_, _, before), (_, _, after) in pairwise(met):
            transitions[before][after] += 1
    by_size = sorted(transitions.items(), key=lambda item: (-item[1].total(), item[0]))
    return {before: _most_frequent_first(after) for before, after in by_size}


def _counted(kinds: type[StrEnum], found: Iterable[str]) -> dict[str, int]:
    count = Counter(found)
    return {kind.value: count[kind.value] for kind in kinds}


def _most_frequent_first(counted: Counter[str]) -> dict[str, int]:
    return dict(sorted(counted.items(), key=lambda item: (-item[1], item[0])))

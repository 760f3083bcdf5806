"""What usually goes wrong here."""

from collections.abc import Iterable
from functools import partial

from contextgraph.model import ErrorTally, FailureWarning, ScopeLevel, Why
from contextgraph.ports import RetrievalStore
from contextgraph.retrieval.gate import Gate
from contextgraph.retrieval.query import Query
from contextgraph.text import clip, number_of

_TALLIES = 20
_NAMED_RUNS = 10


def warnings_for(
    query: Query, store: RetrievalStore, gate: Gate, limit: int
) -> tuple[FailureWarning, ...]:
    """Failures that fit the state, at most *limit*, in this order.

    The error asked about, where most runs never cleared it; then what runs in this repository and
    phase commonly meet and a third of them never cleared.
    """
    found: dict[str, FailureWarning] = {}
    for tally in _fitting(query, store):
        if tally.runs >= gate.runs_for_warning:
            found.setdefault(tally.error.id, _warning(query, tally))
    return tuple(found.values())[:limit]


def _fitting(query: Query, store: RetrievalStore) -> Iterable[ErrorTally]:
    common = store.ahead(partial(_common, query, store))
    if query.signature:
        tally = store.error_tally(query.signature, query.scope)
        if tally and 2 * tally.cleared_runs < tally.runs:
            yield tally
    yield from (tally for tally in common() if 3 * tally.cleared_runs <= 2 * tally.runs)


def _common(query: Query, store: RetrievalStore) -> Iterable[ErrorTally]:
    if not (query.state.repo and query.state.phase):
        return ()
    return store.common_errors(query.state.phase, query.scope, _TALLIES)


def _warning(query: Query, tally: ErrorTally) -> FailureWarning:
    where = f"in {query.scope.repo}" if query.scope.repo else "in all repositories"
    error = clip(f"{tally.error.error_type}: {tally.error.template}", 160)
    return FailureWarning(
        text=f"{number_of(tally.runs, 'run')} {where} met `{error}`{_uncleared(tally)}",
        count=tally.runs,
        why=Why(
            channels=(),
            scope=ScopeLevel.REPO if query.scope.repo else ScopeLevel.GENERAL,
            support=tally.runs,
            trajectories=tally.trajectories[:_NAMED_RUNS],
        ),
    )


def _uncleared(tally: ErrorTally) -> str:
    if tally.runs == 1:
        return " and never cleared it"
    return f"; {tally.runs - tally.cleared_runs} of them never cleared it"

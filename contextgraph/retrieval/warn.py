"""What usually goes wrong in a repository."""

from contextgraph.model import ErrorTally, FailureWarning, ScopeLevel, Why
from contextgraph.ports import Store
from contextgraph.retrieval.gate import Gate
from contextgraph.retrieval.query import Query
from contextgraph.text import clip, number_of

_TALLIES = 20
_NAMED_RUNS = 10


def warnings_for(query: Query, store: Store, gate: Gate, limit: int) -> tuple[FailureWarning, ...]:
    """Failures that fit the state, at most *limit*, in this order.

    What runs in this repository and phase commonly meet, and a third of them never cleared. None
    beside an error: they say nothing of it.
    """
    if query.is_at_error or not (query.state.repo and query.state.phase):
        return ()
    common = store.recoveries.errors(query.scope, _TALLIES, phase=query.state.phase)
    return tuple(
        _warning(query, tally)
        for tally in common
        if tally.runs >= gate.runs_for_warning and 3 * tally.cleared_runs <= 2 * tally.runs
    )[:limit]


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
        error_id=tally.error.id,
    )


def _uncleared(tally: ErrorTally) -> str:
    if tally.runs == 1:
        return " and never cleared it"
    return f"; {tally.runs - tally.cleared_runs} of them never cleared it"

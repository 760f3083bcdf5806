"""What has yet to be consolidated, and who is at it."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from contextgraph.model import (
    Clearance,
    ErrorHistory,
    Meeting,
    Outcome,
    PastRun,
    RepoHistory,
    TaskType,
    Unconsolidated,
)
from contextgraph.store.neo4j_store import rows
from contextgraph.store.neo4j_store.changes import begin_change, note_change
from contextgraph.store.neo4j_store.rows import Row
from contextgraph.store.neo4j_store.transaction import Transaction

# Planning all queries anew costs seconds, of all who use the server.
_PLANNED_AT_FIRST, _GROWN = 256, 4


def learned_since_consolidation(transaction: Transaction) -> int:
    """How many trajectories were learned or updated since the last consolidation."""
    row = transaction.row("learned_since_consolidation")
    return 0 if row is None else int(row["trajectories"])


def take_lease(
    transaction: Transaction, holder: str, now: datetime, until: datetime
) -> datetime | None:
    """Take the lease; where another *holder* has one that has not expired, when that does."""
    begin_change(transaction)
    row = transaction.row("lease")
    if row and row["holder"] not in (None, holder):
        expires_at = rows.time_of(row["until"])
        if expires_at > now:
            return expires_at
    transaction.rows("take_lease", holder=holder, until=rows.moment(until))
    return None


def return_lease(transaction: Transaction, holder: str) -> None:
    """Give the lease back; harmless where another has taken it meanwhile."""
    begin_change(transaction)
    transaction.rows("return_lease", holder=holder)


def unconsolidated(transaction: Transaction, after: int | None) -> Unconsolidated:
    """What changed since the last consolidation, or since revision *after*."""
    row = transaction.row("revisions")
    revision, consolidated = (row["revision"], row["consolidated"]) if row else (0, 0)
    since = consolidated if after is None else after
    changed = transaction.row("changed_since", revision=since)
    met = transaction.rows("errors_met_since", revision=since)
    stale = transaction.rows("stale_errors", revision=-1 if after is None else after)
    repos = transaction.rows("stale_repos", revision=-1 if after is None else after)
    named = {*(changed["repos"] if changed else ()), *(row["repo"] for row in repos)}
    return Unconsolidated(
        revision=revision,
        trajectories=changed["trajectories"] if changed else 0,
        error_ids=tuple(sorted({row["id"] for row in (*met, *stale)})),
        repos=tuple(sorted(named - {""})),
    )


def mark_consolidated(transaction: Transaction, revision: int) -> bool:
    """Note that what changed up to *revision* is consolidated; whether to plan queries anew."""
    begin_change(transaction)
    transaction.rows("mark_consolidated", revision=revision)
    transaction.rows("remove_stale_errors", revision=revision)
    transaction.rows("remove_stale_repos", revision=revision)
    grown = transaction.row("note_plans", times=_GROWN, least=_PLANNED_AT_FIRST // _GROWN)
    return grown is not None


def error_histories(
    transaction: Transaction, error_ids: Sequence[str], runs: int
) -> list[ErrorHistory]:
    """How the newest *runs* that met each of these errors went with it, by id of the error."""
    asked = sorted(set(error_ids))
    return list(map(_error_history, transaction.rows("error_histories", ids=asked, runs=runs)))


def repo_histories(transaction: Transaction, repos: Sequence[str], runs: int) -> list[RepoHistory]:
    """What the newest *runs* of each of these repositories did that did not fail, by name."""
    found = transaction.rows("repo_histories", repos=sorted(set(repos)), runs=runs)
    return [
        RepoHistory(row["repo"], tuple(map(_past_run, row["past"]))) for row in found if row["past"]
    ]


def errors_often_failed(transaction: Transaction, error_ids: Sequence[str], keep: int) -> list[str]:
    """Those of these errors at which more than *keep* attempts failed."""
    return [row["id"] for row in transaction.rows("errors_often_failed", ids=error_ids, keep=keep)]


def prune_failed_fragments(transaction: Transaction, error_id: str, keep: int, limit: int) -> int:
    """Delete *limit* of the failed attempts at an error beyond the newest *keep*; how many."""
    begin_change(transaction)
    found = transaction.rows("failed_fragments", error_id=error_id, keep=keep, limit=limit)
    if found:
        runs = sorted({row["trajectory_id"] for row in found})
        transaction.rows("drop_vectors_of_runs", ids=runs)
        transaction.rows("remove_fragments", ids=sorted(row["id"] for row in found))
        files = sorted({(row["repo"], name) for row in found for name in row["files"]})
        transaction.write(
            "remove_untouched_files", [{"repo": repo, "name": name} for repo, name in files]
        )
        note_change(transaction, revisions=1, removals=1)
    return len(found)


def _error_history(row: Row) -> ErrorHistory:
    error, met = rows.error_of(row["error"]), row["met"]
    return ErrorHistory(
        error=error,
        meetings=tuple(
            Meeting(one["trajectory_id"], one["repo"], TaskType(one["task_type"]), one["message"])
            for one in met
        ),
        clearances=tuple(clearance for one in met for clearance in _clearances(one, error.id)),
    )


def _past_run(row: Row) -> PastRun:
    fragments = tuple(map(rows.fragment_of, row["fragments"]))
    return PastRun(rows.trajectory_of(row["trajectory"]), fragments)


def _clearances(row: Row, error_id: str) -> Iterator[Clearance]:
    for fragment, edge in sorted(row["cleared"], key=_place):
        yield Clearance(
            recovered=rows.recovered_of(edge, fragment, error_id),
            trajectory_id=row["trajectory_id"],
            repo=row["repo"],
            task_type=TaskType(row["task_type"]),
            outcome=Outcome(row["outcome"]),
            seen_at=rows.time_of(row["seen_at"]),
        )


def _place(cleared: tuple[str, Row]) -> tuple[int, str]:
    fragment, edge = cleared
    return edge["error_step"], fragment

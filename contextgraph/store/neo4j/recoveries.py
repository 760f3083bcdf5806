"""The recovery store: what cleared errors before, and how often errors occur."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter, itemgetter
from typing import Concatenate, ParamSpec

from contextgraph.model import (
    Clearance,
    ErrorHistory,
    ErrorOccurrence,
    ErrorQuestion,
    ErrorSteps,
    ErrorTally,
    Outcome,
    Phase,
    RecoveryCandidate,
    Scope,
    SignatureLevel,
    SimilarTo,
    Source,
    TaskType,
)
from contextgraph.store import rules
from contextgraph.store.neo4j import (
    methodologies,
    rows,
    runs,
)
from contextgraph.store.neo4j.connection import Connection, Transaction
from contextgraph.store.neo4j.rows import (
    CandidateCache,
    Parameters,
    RecoveryKey,
    Row,
    where,
)
from contextgraph.store.neo4j.runs import WordCountCache

P = ParamSpec("P")

_LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)
_PLACES = ("in_repo", "everywhere")


class Neo4jRecoveries:
    """`RecoveryStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection, values: CandidateCache) -> None:
        self._connection = connection
        self._values = values
        self._words = WordCountCache(connection, "recovered_word_counts", attrgetter("recoveries"))

    def for_error(
        self, questions: Sequence[ErrorQuestion], limit: int
    ) -> Sequence[RecoveryCandidate]:
        if unknown := [question.level for question in questions if question.level not in _LEVELS]:
            raise ValueError(f"recoveries cannot be looked up by {unknown[0]}")
        by_kind: dict[str, list[Parameters]] = {
            f"{level}_{place}": [] for level in _LEVELS for place in _PLACES
        }
        for number, question in enumerate(questions):
            by_kind[where(question.level, question.scope.repo)].append(
                {"number": number, **_question(question)}
            )
        answers = self._connection.rows("recoveries_for_error", limit=max(0, limit), **by_kind)
        in_order = sorted(answers, key=itemgetter("number"))
        keys = dict.fromkeys(RecoveryKey(*key) for row in in_order for key in row["found"])
        return list(self._values.recoveries(keys).values())

    def for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        keys = self._connection.collected(
            "recoveries_for_text",
            words=self._words.terms(words, scope.repo),
            limit=max(0, limit),
            **rows.scope_parameters(scope),
        )
        return list(self._values.recoveries([RecoveryKey(*key) for key in keys]).values())

    def of_fragments(self, fragment_ids: Iterable[str]) -> Sequence[RecoveryCandidate]:
        keys = self._connection.collected("recoveries_of_fragments", ids=sorted(set(fragment_ids)))
        return list(self._values.recoveries([RecoveryKey(*key) for key in keys]).values())

    def histories(
        self, error_ids: Sequence[str], limit: int, repo: str | None = None
    ) -> Sequence[ErrorHistory]:
        histories = self._connection.rows(
            "error_histories",
            ids=sorted(set(error_ids)),
            runs=limit,
            repo=None if repo is None else repo.casefold(),
        )
        return list(map(_error_history, histories))

    def errors(
        self,
        scope: Scope,
        limit: int,
        phase: Phase | None = None,
        runs: Iterable[str] | None = None,
    ) -> Sequence[ErrorTally]:
        ids = None if runs is None else sorted(set(runs))
        if phase is not None:
            name = where("common_errors_in_phase", scope.repo)
        elif ids is not None:
            name = "errors_of_runs"
        else:
            name = where("common_errors", scope.repo)
        tallies = self._connection.rows(
            name,
            phase=phase.value if phase else None,
            ids=ids,
            most=rules.TALLY_RUNS,
            limit=max(0, limit),
            **rows.scope_parameters(scope),
        )
        return list(map(_tally, tallies))

    def error_steps(self) -> Mapping[str, Sequence[ErrorSteps]]:
        return {
            row["run"]: [
                ErrorSteps(fragment, error, error_type, tuple(steps))
                for fragment, error, error_type, steps in row["met"]
            ]
            for row in self._connection.rows("error_steps")
        }

    def similar_to(self, trajectory_id: str) -> Sequence[SimilarTo]:
        return [
            SimilarTo(
                row["error_id"],
                Source(row["run"], row["fragment"]),
                Source(row["other"], row["representative"]),
                row["weight"],
            )
            for row in self._connection.rows("similar_of_run", id=trajectory_id)
        ]

    def clean_up(self, error_ids: Sequence[str], keep: int) -> int:
        failed = self._connection.collected("errors_often_failed", ids=error_ids, keep=keep)
        pruned = sum(self._repeated(_prune_failed, error, keep) for error in failed)
        for start in range(0, len(error_ids), methodologies.NODES_AT_ONCE):
            batch = sorted(error_ids[start : start + methodologies.NODES_AT_ONCE])
            self._connection.write(Transaction.write, "count_errors", batch)
        return pruned + self._repeated(_remove_orphans)

    def _repeated(
        self, work: Callable[Concatenate[Transaction, P], int], *args: P.args, **kwargs: P.kwargs
    ) -> int:
        """How many nodes *work* deletes, a batch in each transaction."""
        total, deleted = 0, methodologies.NODES_AT_ONCE
        while deleted >= methodologies.NODES_AT_ONCE:
            deleted = self._connection.write(work, *args, **kwargs)
            total += deleted
        return total


def _prune_failed(transaction: Transaction, error_id: str, keep: int) -> int:
    """Delete some of the failed attempts at an error beyond the newest *keep*; how many."""
    transaction.begin_change()
    fragments = transaction.rows(
        "failed_fragments", error_id=error_id, keep=keep, limit=methodologies.NODES_AT_ONCE
    )
    if fragments:
        transaction.rows("remove_fragments", ids=sorted(row["id"] for row in fragments))
        files = ((row["repo"], name) for row in fragments for name in row["files"])
        runs.remove_files(transaction, files)
        transaction.note_change(revisions=1, removals=1)
    return len(fragments)


def _remove_orphans(transaction: Transaction) -> int:
    """Delete some of the methodologies that no fragment supports; how many."""
    revision = transaction.begin_change() + 1
    orphans = transaction.collected("orphans", limit=methodologies.NODES_AT_ONCE)
    if orphans:
        methodologies.remove(transaction, orphans, revision)
        transaction.note_change(revisions=1)
    return len(orphans)


def _tally(row: Row) -> ErrorTally:
    error, trajectories = rows.error_of(row["error"]), tuple(row["trajectories"])
    return ErrorTally(error, row["runs"], row["steps"], row["cleared"], trajectories)


def _question(question: ErrorQuestion) -> Parameters:
    signature = question.signature
    return {
        "fingerprint": rows.fingerprint(signature),
        "family": signature.family.value,
        "error_type": signature.error_type,
        **rows.scope_parameters(question.scope),
    }


def _error_history(row: Row) -> ErrorHistory:
    error = rows.error_of(row["error"])
    return ErrorHistory(
        error=error,
        occurrences=tuple(
            ErrorOccurrence(
                run["trajectory_id"], run["repo"], TaskType(run["task_type"]), run["message"]
            )
            for run in row["met"]
        ),
        clearances=tuple(
            clearance for run in row["met"] for clearance in _clearances(run, error.id)
        ),
    )


def _clearances(run: Row, error_id: str) -> Iterator[Clearance]:
    by_step = sorted(run["cleared"], key=lambda one: (one[2]["error_step"], one[0]))
    for fragment, phase, edge in by_step:
        yield Clearance(
            recovered=rows.recovered_of(edge, fragment, error_id),
            trajectory_id=run["trajectory_id"],
            repo=run["repo"],
            task_type=TaskType(run["task_type"]),
            outcome=Outcome(run["outcome"]),
            seen_at=rows.time_of(run["seen_at"]),
            instance_id=run["instance_id"],
            contributor=run["contributor"] or "",
            phase=Phase(phase),
        )

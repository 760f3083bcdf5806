"""`RecoveryStore` in SQLite: recoveries and errors."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice, takewhile

from contextgraph.model import (
    Clearance,
    ErrorHistory,
    ErrorOccurrence,
    ErrorPattern,
    ErrorQuestion,
    ErrorSignature,
    ErrorSteps,
    ErrorTally,
    MethodologyStatus,
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
from contextgraph.store.sqlite import (
    rows,
    runs,
    word_index,
)
from contextgraph.store.sqlite.database import Database
from contextgraph.store.sqlite.schema import RUN_BITS
from contextgraph.store.sqlite.transaction import SqlScope, Transaction

_INDEXED = word_index.Indexed("recovered", "trajectory")
_ERROR_OF_TEMPLATE = """
SELECT key FROM error_pattern WHERE tenant = :tenant AND family = :family
AND error_type = :error_type AND template = :template"""
_LEVELS = {
    SignatureLevel.TEMPLATE: ("recovered_template", f"r.error = ({_ERROR_OF_TEMPLATE})"),
    SignatureLevel.TYPE: (
        "recovered_type",
        "r.family = :family AND r.error_type = :error_type",
    ),
}
# The index gives the order up to the time, without reading a row.
_FOR_ERROR = """
SELECT r.key, r.verified, r.seen_at FROM recovered r INDEXED BY {index}
WHERE {level} AND {scope} ORDER BY r.verified DESC, r.seen_at DESC"""
# Fragments have no index by id: their run has one, and their keys are in its range.
_MET = """
SELECT m.error, count(*) AS runs, sum(m.steps), sum(m.cleared)
FROM met m {index} WHERE {scope} {also} GROUP BY m.error"""
# Of all runs, the sums are known.
_MOST_COMMON_OF_ALL = """
SELECT key, runs, steps, cleared FROM error_pattern INDEXED BY error_pattern_common
WHERE tenant = :tenant AND runs > 0 ORDER BY runs DESC, id LIMIT :limit"""
_MET_IN_PHASE = """
SELECT c.error, count(*) AS runs, sum(c.steps), sum(EXISTS (
    SELECT 1 FROM met m WHERE m.trajectory = c.trajectory AND m.error = c.error AND m.cleared))
FROM (
    SELECT c.error, c.trajectory, sum(c.step_count) AS steps
    FROM caused c INDEXED BY caused_by_error WHERE {scope} AND c.phase = :phase {also}
    GROUP BY c.error, c.trajectory) AS c
GROUP BY c.error"""
_MOST_COMMON = """
SELECT counted.* FROM ({counted}) AS counted JOIN error_pattern e ON e.key = counted.error
ORDER BY counted.runs DESC, e.id LIMIT :limit"""
_NEWEST_RUNS = """
SELECT m.trajectory_id FROM met m INDEXED BY {index}
WHERE m.error = :error AND {scope} {phase} {also}
ORDER BY m.seen_at DESC, m.trajectory_id LIMIT :limit"""
_IN_PHASE = """
AND EXISTS (SELECT 1 FROM caused c INDEXED BY caused_by_error WHERE c.place = m.place
    AND c.phase = :phase AND c.error = m.error AND c.trajectory = m.trajectory)"""
_OF_RUNS = "AND {alias}.trajectory IN (SELECT value FROM json_each(:runs))"
_ERROR_STEPS = """
SELECT t.id, f.id, e.id, e.error_type, c.steps
FROM caused c JOIN error_pattern e ON e.key = c.error JOIN fragment f ON f.key = c.fragment
JOIN trajectory t ON t.key = c.trajectory WHERE c.tenant = ? ORDER BY t.id, f.id, e.id"""
# The index alone says which runs these are.
_RUNS_THAT_MET = """
SELECT t.id, t.repo, t.task_type, m.context, m.trajectory FROM (
    SELECT m.trajectory, m.error FROM met m INDEXED BY {index} WHERE m.error = :error AND {scope}
    ORDER BY m.seen_at DESC, m.trajectory_id LIMIT :limit) AS newest
CROSS JOIN met m ON m.trajectory = newest.trajectory AND m.error = newest.error
CROSS JOIN trajectory t ON t.key = m.trajectory
ORDER BY m.seen_at DESC, m.trajectory_id"""
_CLEARED = f"""
SELECT f.id, t.id, t.repo, t.task_type, t.outcome, t.seen_at, t.instance_id, t.contributor,
    f.phase, {rows.columns_of(rows.RECOVERIES, "r")}
FROM json_each(?) AS named CROSS JOIN recovered r
    ON r.key BETWEEN named.value << {RUN_BITS} AND ((named.value + 1) << {RUN_BITS}) - 1
    AND +r.error = ?
CROSS JOIN fragment f ON f.key = r.fragment CROSS JOIN trajectory t ON t.key = r.trajectory
ORDER BY t.seen_at DESC, t.id, r.error_step, f.id"""
_OF_FRAGMENTS = """
SELECT r.key FROM json_each(?) AS named
CROSS JOIN recovered r INDEXED BY recovered_in_order
    ON r.tenant = ? AND r.fragment_id = named.value
CROSS JOIN error_pattern e ON e.key = r.error
ORDER BY r.fragment_id, e.id, r.error_step"""
_SIMILAR = """
SELECT s.error_id, ft.id, f.id, rt.id, r.id, s.weight FROM similar s
JOIN fragment f ON f.key = s.fragment JOIN trajectory ft ON ft.key = f.trajectory
JOIN fragment r ON r.key = s.representative JOIN trajectory rt ON rt.key = r.trajectory
WHERE s.fragment BETWEEN ? AND ? ORDER BY f.id, s.error_id"""
_FAILED = """
SELECT f.key, f.id, f.trajectory FROM caused c JOIN fragment f ON f.key = c.fragment
WHERE c.error = ? AND f.fragment_type = 'failed_attempt'
AND NOT EXISTS (SELECT 1 FROM recovered r WHERE r.fragment = f.key)
ORDER BY f.seen_at DESC, f.id LIMIT -1 OFFSET ?"""
_ROWS_OF_A_FRAGMENT = (
    "DELETE FROM caused WHERE fragment = :fragment",
    "DELETE FROM touched WHERE fragment = :fragment",
    "DELETE FROM derived_from WHERE trajectory = :run AND fragment = :fragment",
    "DELETE FROM similar WHERE fragment = :fragment OR representative = :fragment",
    "DELETE FROM fragment WHERE key = :fragment",
)

_ORPHANS = """
SELECT id FROM methodology m WHERE tenant = ? AND status <> ?
AND NOT EXISTS (SELECT 1 FROM derived_from WHERE methodology = m.key)"""


class SqliteRecoveries:
    """`RecoveryStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def for_error(
        self, questions: Sequence[ErrorQuestion], limit: int
    ) -> Sequence[RecoveryCandidate]:
        if unknown := [question.level for question in questions if question.level not in _LEVELS]:
            raise ValueError(f"recoveries cannot be found by {unknown[0]}")
        with self._database.reading() as transaction:
            places: dict[int, rows.Row] = {}
            for number, question in enumerate(questions):
                for key, verified, seen_at in _newest(transaction, question, limit):
                    places.setdefault(key, (number, -verified, -seen_at))
            placed = zip(places.values(), transaction.recoveries([*places]), strict=True)
            return [candidate for _, candidate in sorted(placed, key=_order)]

    def for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        with self._database.reading() as transaction:
            weights = self._database.caches.recovery_words.weights(transaction, words)
            within = transaction.scoped(scope)
            first = transaction.first_recoveries
            best = word_index.most_relevant(transaction, _INDEXED, within, weights, limit, first)
            return transaction.recoveries(best)

    def of_fragments(self, fragment_ids: Iterable[str]) -> Sequence[RecoveryCandidate]:
        with self._database.reading() as transaction:
            named = rows.text_of(set(fragment_ids)), transaction.tenant
            return transaction.recoveries(transaction.column(_OF_FRAGMENTS, named))

    def histories(
        self, error_ids: Sequence[str], limit: int, repo: str | None = None
    ) -> Sequence[ErrorHistory]:
        with self._database.reading() as transaction:
            within = transaction.scoped(Scope(repo))
            histories = (
                _history(transaction, within, error, limit) for error in sorted(set(error_ids))
            )
            return [history for history in histories if history]

    def errors(
        self,
        scope: Scope,
        limit: int,
        phase: Phase | None = None,
        runs: Iterable[str] | None = None,
    ) -> Sequence[ErrorTally]:
        with self._database.reading() as transaction:
            within = transaction.scoped(scope)
            parameters: dict[str, str | int] = {"limit": max(0, limit)}
            if phase is not None:
                parameters["phase"] = phase.value
            if runs is not None:
                parameters["runs"] = str(transaction.run_keys(runs))
            return _tallies(transaction, within, phase, parameters)

    def error_steps(self) -> Mapping[str, Sequence[ErrorSteps]]:
        by_run: dict[str, list[ErrorSteps]] = {}
        with self._database.reading() as transaction:
            error_steps = transaction.rows(_ERROR_STEPS, (transaction.tenant,))
            for run, fragment, error, error_type, steps in error_steps:
                met = ErrorSteps(fragment, error, error_type, rows.tuple_of(steps))
                by_run.setdefault(run, []).append(met)
        return by_run

    def similar_to(self, trajectory_id: str) -> Sequence[SimilarTo]:
        with self._database.reading() as transaction:
            run = runs.run_of(transaction, trajectory_id)
            return [
                SimilarTo(error, Source(own, fragment), Source(other, representative), weight)
                for error, own, fragment, other, representative, weight in (
                    transaction.rows(_SIMILAR, run.keys) if run else ()
                )
            ]

    def clean_up(self, error_ids: Sequence[str], keep: int) -> int:
        with self._database.writing() as transaction:
            pruned = sum(_prune(transaction, error_id, keep) for error_id in error_ids)
            retired = MethodologyStatus.RETIRED.value
            orphans = transaction.column(_ORPHANS, (transaction.tenant, retired))
            if orphans:
                transaction.new_revision()
                runs.note_abstracted(transaction)
                runs.remove_methodologies(transaction, orphans)
            word_index.merge(transaction)
            return pruned + len(orphans)


def _newest(
    transaction: Transaction, question: ErrorQuestion, limit: int
) -> list[tuple[int, int, int]]:
    """Key, verified, time of the first *limit* recoveries of *question*, but those of one moment.

    These are in no order.
    """
    index, agrees = _LEVELS[question.level]
    scope = transaction.scoped(question.scope)
    # An error is of one tenant, which its index does not name.
    where = scope.where("r", of_tenant=question.level is SignatureLevel.TEMPLATE)
    sql = _FOR_ERROR.format(index=scope.index(index), level=agrees, scope=where)
    parameters = {**scope.parameters, **_signature(question.signature)}
    cursor = transaction.connection.execute(sql, parameters)
    newest = list(islice(cursor, max(0, limit)))
    ties = list(takewhile(lambda row: row[1:] == newest[-1][1:], cursor)) if newest else []
    if ties:
        moment = ties[0][1:]
        last = [row[0] for row in (*newest, *ties) if row[1:] == moment]
        newest = [row for row in newest if row[1:] != moment]
        first = transaction.first_recoveries(last, limit - len(newest))
        newest += [(key, *moment) for key in first]
    return newest


def _order(placed: tuple[rows.Row, RecoveryCandidate]) -> rows.Row:
    place, candidate = placed
    return *place, candidate.fragment_id, candidate.error_id, candidate.error_step


def _signature(signature: ErrorSignature) -> dict[str, str]:
    return {
        "family": signature.family.value,
        "error_type": signature.error_type,
        "template": signature.template,
    }


def _tallies(
    transaction: Transaction,
    scope: SqlScope,
    phase: Phase | None,
    parameters: Mapping[str, str | int],
) -> list[ErrorTally]:
    """Tallies within *scope*, of the phase and the runs that *parameters* name."""
    named = {**scope.parameters, **parameters}
    if phase is None and not scope.is_narrow and "runs" not in named:
        counted = ""
    elif phase is not None:
        in_place = scope.where("c", by_place=True)
        counted = _MET_IN_PHASE.format(scope=in_place, also=_also_of_runs(named, "c"))
    else:
        # By the runs, where these are named: the tables are ordered by them.
        index = "" if "runs" in named else f"INDEXED BY {scope.index('met_by_error')}"
        also = _also_of_runs(named, "m")
        counted = _MET.format(index=index, scope=scope.where("m"), also=also)
    common = _MOST_COMMON.format(counted=counted) if counted else _MOST_COMMON_OF_ALL
    counts = transaction.rows(common, named)
    patterns = transaction.errors([row[0] for row in counts])
    newest = _NEWEST_RUNS.format(
        index=scope.index("met_by_error"),
        scope=scope.where("m"),
        phase="" if phase is None else _IN_PHASE,
        also=_also_of_runs(named, "m"),
    )
    return [_tally(transaction, newest, named, patterns, row) for row in counts]


def _also_of_runs(named: Mapping[str, str | int], alias: str) -> str:
    return _OF_RUNS.format(alias=alias) if "runs" in named else ""


def _tally(
    transaction: Transaction,
    newest_runs: str,
    named: Mapping[str, str | int],
    patterns: Mapping[int, ErrorPattern],
    row: rows.Row,
) -> ErrorTally:
    error, runs, steps, cleared = row
    newest = transaction.column(newest_runs, {**named, "error": error, "limit": rules.TALLY_RUNS})
    return ErrorTally(patterns[error], runs, steps, cleared, tuple(newest))


def _history(
    transaction: Transaction, scope: SqlScope, error_id: str, runs: int
) -> ErrorHistory | None:
    error = _error_key(transaction, error_id)
    if not error:
        return None
    sql = _RUNS_THAT_MET.format(index=scope.index("met_by_error"), scope=scope.where("m"))
    met = transaction.rows(sql, {**scope.parameters, "error": error, "limit": runs})
    cleared = transaction.rows(_CLEARED, (str([row[4] for row in met]), error))
    return ErrorHistory(
        error=transaction.errors([error])[error],
        occurrences=tuple(ErrorOccurrence(m[0], m[1], TaskType(m[2]), m[3]) for m in met),
        clearances=tuple(_clearance(row, error_id) for row in cleared),
    )


def _clearance(row: rows.Row, error_id: str) -> Clearance:
    return Clearance(
        recovered=rows.RECOVERIES.value(row[9:], fragment_id=row[0], error_id=error_id),
        trajectory_id=row[1],
        repo=row[2],
        task_type=TaskType(row[3]),
        outcome=Outcome(row[4]),
        seen_at=rows.time_of(row[5]),
        instance_id=row[6],
        contributor=row[7],
        phase=Phase(row[8]),
    )


def _error_key(transaction: Transaction, error_id: str) -> int:
    return transaction.number(
        "SELECT key FROM error_pattern WHERE tenant = ? AND id = ?", (transaction.tenant, error_id)
    )


def _prune(transaction: Transaction, error_id: str, keep: int) -> int:
    """Delete failed attempts at an error beyond the newest *keep*; how many."""
    failed = transaction.rows(_FAILED, (_error_key(transaction, error_id), keep))
    if failed:
        revision = transaction.new_revision(removing=True)
        runs.note_abstracted(transaction)
        transaction.write_all(
            "INSERT OR REPLACE INTO pruned VALUES (?, ?, ?)",
            [(transaction.tenant, fragment, revision) for _, fragment, _ in failed],
        )
    for statement in _ROWS_OF_A_FRAGMENT:
        transaction.write_all(statement, [{"fragment": key, "run": run} for key, _, run in failed])
    return len(failed)

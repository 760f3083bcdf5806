"""Stores of methodologies, recoveries and exposures in SQLite."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice, takewhile

from msgspec.structs import astuple

from contextgraph.model import (
    AdviceRecord,
    Clearance,
    ErrorHistory,
    ErrorOccurrence,
    ErrorPattern,
    ErrorQuestion,
    ErrorSignature,
    ErrorSteps,
    ErrorTally,
    Exposure,
    FittedGate,
    Methodology,
    MethodologyStatus,
    Outcome,
    Phase,
    RecoveryCandidate,
    ResolvedBy,
    Scope,
    ShownTally,
    SignatureLevel,
    SimilarTo,
    Source,
    TaskType,
    Verdict,
)
from contextgraph.ports import ALL, OnDamaged
from contextgraph.store import rules
from contextgraph.store.sqlite.database import (
    EXPOSURES,
    METHODOLOGIES,
    RECOVERIES,
    SHOWN_ITEMS,
    VERDICTS,
    Database,
    Parameters,
    Row,
    SqlScope,
    Transaction,
    columns_of,
    insertion,
    moment,
    named_row,
    run_of,
    text_of,
    time_of,
    tuple_of,
)
from contextgraph.store.sqlite.schema import RUN_BITS
from contextgraph.store.sqlite.search import Indexed, WordIndex, merge, most_relevant

_READ = columns_of(METHODOLOGIES, "m")
_METHODOLOGIES_FOR_ERROR = f"""
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
_METHODOLOGIES_NAMED = f"""
SELECT m.key, {_READ} FROM methodology m WHERE m.key IN (
    SELECT key FROM methodology
    WHERE tenant = :tenant AND id IN (SELECT value FROM json_each(:ids))
    UNION ALL SELECT key FROM methodology
    WHERE tenant = :tenant AND error_id IN (SELECT value FROM json_each(:errors)))
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
            named = {
                "tenant": transaction.tenant,
                "ids": text_of(ids),
                "errors": text_of(errors),
            }
            return [
                METHODOLOGIES.value(row[1:], sources=sources)
                for row, sources in _with_sources(transaction, _METHODOLOGIES_NAMED, named)
            ]

    def ids(self, repo: str | None = None, after: str = "", limit: int = ALL) -> Sequence[str]:
        with self._database.reading() as transaction:
            values = {"repo": repo and repo.casefold()}
            return transaction.ids("methodology", values, after, limit)

    def of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[Methodology]]:
        by_type: dict[Row, list[Methodology]] = {}
        with self._database.reading() as transaction:
            parameters = {"tenant": transaction.tenant, "named": text_of(error_ids)}
            for row, sources in _with_sources(transaction, _OF_TYPES, parameters):
                by_type.setdefault(row[-2:], []).append(
                    METHODOLOGIES.value(row[1:-2], sources=sources)
                )
        return list(by_type.values())

    def for_error(
        self, signatures: Sequence[ErrorSignature], scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        with self._database.reading() as transaction:
            within = transaction.scoped(scope)
            sql = _METHODOLOGIES_FOR_ERROR.format(visible=_visible(within))
            for signature in signatures:
                parameters = {
                    **within.parameters,
                    **_signature(signature),
                    "repo": scope.repo,
                    "limit": max(0, limit),
                }
                if matching := transaction.rows(sql, parameters):
                    return [METHODOLOGIES.value(row, sources=()) for row in matching]
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
            note_abstracted(transaction)
            remove_methodologies(transaction, removed)
            for methodology in methodologies:
                _put_methodology(transaction, methodology)
            _put_resolved(transaction, methodologies, resolved)
            return _put_similar(transaction, similar)


def _visible(scope: SqlScope) -> str:
    """The condition that no source of a methodology is of a run that *scope* hides."""
    hidden = ["t.seen_at > :as_of"] if scope.has_as_of else []
    if scope.has_excluded:
        hidden.append("t.instance_id IN (SELECT value FROM json_each(:instances))")
    return _VISIBLE.format(hidden=" OR ".join(hidden)) if hidden else ""


def _put_methodology(transaction: Transaction, methodology: Methodology) -> None:
    """Write *methodology* over the one of its id, with its sources."""
    columns, row = columns_of(METHODOLOGIES), METHODOLOGIES.row(methodology)
    marks = ", ".join("?" * len(row))
    updates = ", ".join(f"{name} = excluded.{name}" for name in METHODOLOGIES.names[1:])
    updates += ", space = NULL, vector = NULL"
    key = transaction.number(
        f"INSERT INTO methodology (tenant, {columns}) VALUES (?, {marks}) "
        f"ON CONFLICT (tenant, id) DO UPDATE SET {updates} RETURNING key",
        (transaction.tenant, *row),
    )
    transaction.write("DELETE FROM derived_from WHERE methodology = ?", (key,))
    transaction.write_all(
        f"INSERT INTO derived_from VALUES (? >> {RUN_BITS}, ?, ?, ?, ?)",
        [
            (fragment, fragment, key, source.trajectory_id, source.fragment_id)
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
        "INSERT OR REPLACE INTO resolved_by SELECT ?, ?, ?, ?, ?, ? WHERE "
        "EXISTS (SELECT 1 FROM error_pattern WHERE tenant = ? AND id = ?) "
        "AND EXISTS (SELECT 1 FROM methodology WHERE tenant = ? AND id = ?)",
        [
            (tenant, *astuple(edge), tenant, edge.error_id, tenant, edge.methodology_id)
            for edge in resolved
        ],
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
        "INSERT INTO similar VALUES (?, ?, ?, ?) ON CONFLICT (fragment, error_id) DO UPDATE "
        "SET representative = excluded.representative, weight = excluded.weight "
        "WHERE representative <> excluded.representative OR weight <> excluded.weight",
        [edge for edge in edges if edge[0] != edge[2]],
    )


def _keys(transaction: Transaction, fragments: Sequence[Source]) -> dict[Source, int]:
    """The keys of those of *fragments* that are stored."""
    named = text_of([(source.trajectory_id, source.fragment_id) for source in fragments])
    keys = transaction.rows(_KEYS, {"tenant": transaction.tenant, "named": named})
    return {Source(run, fragment): key for run, fragment, key in keys}


def _with_sources(
    transaction: Transaction, sql: str, parameters: Parameters
) -> list[tuple[Row, tuple[Source, ...]]]:
    """The key and columns of each that *sql* finds, with its sources."""
    selected = transaction.rows(sql, parameters)
    sources: dict[int, list[Source]] = {row[0]: [] for row in selected}
    for key, run, fragment in transaction.rows(_SOURCES, (str(list(sources)),)):
        sources[key].append(Source(run, fragment))
    return [(row, tuple(sorted(sources[row[0]]))) for row in selected]


_WITH_SUPERSEDED = """
WITH RECURSIVE gone (id) AS (
    SELECT value FROM json_each(:ids)
    UNION SELECT m.id FROM gone
    JOIN methodology m ON m.tenant = :tenant AND m.superseded_by = gone.id)
SELECT m.key, m.id, m.error_id, m.superseded_by
FROM gone JOIN methodology m ON m.tenant = :tenant AND m.id = gone.id"""


_OF_A_METHODOLOGY = (
    ("derived_from", "methodology"),
    ("methodology", "key"),
)


def remove_methodologies(transaction: Transaction, ids: Sequence[str]) -> None:
    """Delete methodologies with their edges, and all that they had superseded.

    The errors of the superseded ones are to be consolidated again.
    """
    tenant = transaction.tenant
    gone = transaction.rows(_WITH_SUPERSEDED, {"tenant": tenant, "ids": text_of(ids)})
    removed = [rules.RemovedMethodology(*row[1:]) for row in gone]
    mark_stale(transaction, rules.made_stale(removed))
    for table, column in _OF_A_METHODOLOGY:
        transaction.write_all(
            f"DELETE FROM {table} WHERE {column} = ?", [(row[0],) for row in gone]
        )
    transaction.write_all(
        "DELETE FROM resolved_by WHERE tenant = ? AND methodology_id = ?",
        [(tenant, methodology.id) for methodology in removed],
    )


def note_abstracted(transaction: Transaction) -> None:
    """Record that methodologies or similarities change with the current revision."""
    transaction.write(
        "UPDATE tenant SET abstracted = revision WHERE key = ?", (transaction.tenant,)
    )


def mark_stale(transaction: Transaction, errors: Iterable[str], repos: Iterable[str] = ()) -> None:
    """Record that these errors and repositories are to be consolidated again."""
    for table, column, names in (("stale", "error_id", errors), ("stale_repo", "repo", repos)):
        transaction.write_all(
            f"INSERT OR REPLACE INTO {table} (tenant, {column}, revision) "
            "SELECT key, ?, revision FROM tenant WHERE key = ?",
            [(name, transaction.tenant) for name in names if name],
        )


_INDEXED = Indexed("recovered", "trajectory")
_ERROR_OF_TEMPLATE = """
SELECT key FROM error_pattern WHERE tenant = :tenant AND family = :family
AND error_type = :error_type AND template = :template"""
_LEVELS = {
    SignatureLevel.TEMPLATE: ("recovered_template", f"r.error = ({_ERROR_OF_TEMPLATE})"),
    SignatureLevel.TYPE: (
        "recovered_type",
        "r.family = :family AND r.error_type = :error_type",
    ),
    SignatureLevel.FAMILY: ("recovered_family", "r.family = :family"),
}
# The index gives the order up to the fragment, without reading a row.
_FOR_ERROR = """
SELECT r.key, r.verified, r.seen_at, r.fragment_id FROM recovered r INDEXED BY {index}
WHERE {level} AND {scope} ORDER BY r.verified DESC, r.seen_at DESC, r.fragment_id"""
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
    f.phase, {columns_of(RECOVERIES, "r")}
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
            places: dict[int, Row] = {}
            for number, question in enumerate(questions):
                for key, verified, seen_at, _ in _newest_recoveries(transaction, question, limit):
                    places.setdefault(key, (number, -verified, -seen_at))
            placed = zip(places.values(), transaction.recoveries([*places]), strict=True)
            ordered = sorted(
                placed,
                key=lambda pair: (
                    *pair[0],
                    pair[1].fragment_id,
                    pair[1].error_id,
                    pair[1].error_step,
                ),
            )
            return [candidate for _, candidate in ordered]

    def for_text(
        self, words: Sequence[str], scope: Scope, limit: int
    ) -> Sequence[RecoveryCandidate]:
        with self._database.reading() as transaction:
            weights = self._database.cached(WordIndex, "recovered").weights(transaction, words)
            within = transaction.scoped(scope)
            first = transaction.first_recoveries
            best = most_relevant(transaction, _INDEXED, within, weights, limit, first)
            return transaction.recoveries(best)

    def of_fragments(self, fragment_ids: Iterable[str]) -> Sequence[RecoveryCandidate]:
        with self._database.reading() as transaction:
            named = text_of(set(fragment_ids)), transaction.tenant
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
                met = ErrorSteps(fragment, error, error_type, tuple_of(steps))
                by_run.setdefault(run, []).append(met)
        return by_run

    def similar_to(self, trajectory_id: str) -> Sequence[SimilarTo]:
        with self._database.reading() as transaction:
            run = run_of(transaction, trajectory_id)
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
                note_abstracted(transaction)
                remove_methodologies(transaction, orphans)
            merge(transaction)
            return pruned + len(orphans)


def _newest_recoveries(
    transaction: Transaction, question: ErrorQuestion, limit: int
) -> list[tuple[int, int, int, str]]:
    """Key, verified, time, fragment of the first *limit* recoveries of *question*.

    Those of the last fragment are in no order.
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
        of_fragment = ties[0][1:]
        last = [row[0] for row in (*newest, *ties) if row[1:] == of_fragment]
        newest = [row for row in newest if row[1:] != of_fragment]
        first = transaction.first_recoveries(last, limit - len(newest))
        newest += [(key, *of_fragment) for key in first]
    return newest


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
    row: Row,
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


def _clearance(row: Row, error_id: str) -> Clearance:
    return Clearance(
        recovered=RECOVERIES.value(row[9:], fragment_id=row[0], error_id=error_id),
        trajectory_id=row[1],
        repo=row[2],
        task_type=TaskType(row[3]),
        outcome=Outcome(row[4]),
        seen_at=time_of(row[5]),
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
        note_abstracted(transaction)
        transaction.write_all(
            "INSERT OR REPLACE INTO pruned VALUES (?, ?, ?)",
            [(transaction.tenant, fragment, revision) for _, fragment, _ in failed],
        )
    for statement in _ROWS_OF_A_FRAGMENT:
        transaction.write_all(statement, [{"fragment": key, "run": run} for key, _, run in failed])
    return len(failed)


_EXPOSURE = f"e.key, {columns_of(EXPOSURES, 'e')}"
_ITEMS = """
SELECT item, advice, patterns, helped, why FROM shown_item
WHERE exposure = ? ORDER BY position"""
_BY_ID = f"""
SELECT {_EXPOSURE} FROM exposure e
WHERE e.tenant = ? AND e.context_id IN (SELECT value FROM json_each(?)) ORDER BY e.context_id"""
_LATER = f"""
SELECT {_EXPOSURE} FROM exposure e
WHERE e.tenant = ? AND e.context_id > ? ORDER BY e.context_id LIMIT ?"""
_OF_SESSION = f"""
SELECT {_EXPOSURE} FROM exposure e
WHERE e.tenant = ? AND e.session = ? AND e.session > '' ORDER BY e.shown_at, e.context_id"""
_NEWEST_EXPOSURES = f"""
SELECT {_EXPOSURE} FROM exposure e
WHERE e.tenant = :tenant {{named}}
ORDER BY e.shown_at DESC, e.context_id LIMIT :limit OFFSET :skip"""
_EXPOSURES_NAMED = """AND e.key IN (
    SELECT exposure FROM shown_item WHERE tenant = :tenant AND item = :name
    UNION SELECT exposure FROM shown_item WHERE tenant = :tenant AND advice = :name
    UNION SELECT key FROM exposure WHERE tenant = :tenant AND context_id = :name)"""
_TALLY = """
SELECT coalesce(error_id, ''), count(*), count(helped), coalesce(sum(helped), 0), sum(followed),
    coalesce(sum(helped AND did), 0), coalesce(sum((helped AND NOT did) * items), 0)
FROM (
    SELECT e.error_id, e.helped,
        EXISTS (SELECT 1 FROM shown_item s WHERE s.exposure = e.key AND s.helped IS NOT NULL)
            AS followed,
        EXISTS (SELECT 1 FROM shown_item s WHERE s.exposure = e.key AND s.helped) AS did,
        (SELECT count(*) FROM shown_item s WHERE s.exposure = e.key) AS items
    FROM exposure e INDEXED BY exposure_newest
    WHERE e.tenant = ? AND e.shown_at >= ? AND coalesce(e.is_withheld, 0) = 0)
GROUP BY error_id"""
_OF_ADVICE = f"""
SELECT DISTINCT {_EXPOSURE} FROM json_each(:names) named CROSS JOIN exposure e
WHERE e.key IN (
    SELECT r.key FROM exposure r WHERE r.key IN (
        SELECT exposure FROM shown_item
        WHERE tenant = :tenant AND advice = named.value AND helped IS NOT NULL
        UNION SELECT exposure FROM shown_item
        WHERE tenant = :tenant AND item = named.value AND helped IS NOT NULL)
    ORDER BY r.shown_at DESC, r.context_id DESC LIMIT {rules.REPORTS_USED})
ORDER BY e.context_id"""
_BASE_RATES = """
SELECT id, runs, cleared FROM error_pattern
WHERE tenant = ? AND runs > 0 AND id IN (SELECT value FROM json_each(?)) ORDER BY id"""
_VERDICTS = f"""
SELECT {columns_of(VERDICTS)} FROM verdict WHERE tenant = ? ORDER BY advice"""
_CONTRIBUTORS = """
SELECT count(*) FROM (
    SELECT min(contributor) AS name FROM trajectory WHERE tenant = :tenant AND contributor <> ''
    UNION SELECT max(contributor) FROM trajectory WHERE tenant = :tenant AND contributor <> '')
WHERE name IS NOT NULL"""


class SqliteExposures:
    """`ExposureStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, exposures: Sequence[Exposure]) -> None:
        with self._database.writing() as transaction:
            for exposure in exposures:
                _put_exposure(transaction, exposure)

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        with self._database.writing() as transaction:
            exposures = exposures_by_id(transaction, [context_id])
            reported = [rules.with_report(exposure, helped, item, source) for exposure in exposures]
            changed = [exposure for exposure in reported if exposure]
            put_reports(transaction, changed)
            return bool(changed)

    def of_session(self, session: str) -> Sequence[Exposure]:
        with self._database.reading() as transaction:
            return _exposures(
                transaction, transaction.rows(_OF_SESSION, (transaction.tenant, session))
            )

    def forget_session(self, session: str) -> None:
        with self._database.writing() as transaction:
            transaction.write(
                "UPDATE exposure SET said = '[]' "
                "WHERE tenant = ? AND session = ? AND session > '' AND said <> '[]'",
                (transaction.tenant, session),
            )

    def record(self, advice: Sequence[str]) -> AdviceRecord:
        with self._database.reading() as transaction:
            tenant = transaction.tenant
            of_advice = {"tenant": tenant, "names": text_of(advice)}
            found = transaction.rows(_OF_ADVICE, of_advice) if advice else ()
            shown = _exposures(transaction, found)
            errors = text_of(sorted({exposure.error_id for exposure in shown if exposure.error_id}))
            return AdviceRecord(
                tuple(shown),
                {
                    error: (runs, cleared)
                    for error, runs, cleared in transaction.rows(_BASE_RATES, (tenant, errors))
                },
                tuple(map(VERDICTS.value, transaction.rows(_VERDICTS, (tenant,)))),
                transaction.number(_CONTRIBUTORS, {"tenant": tenant}),
            )

    def decide(self, verdicts: Sequence[Verdict]) -> None:
        with self._database.writing() as transaction:
            transaction.write_all(
                f"INSERT OR REPLACE INTO verdict (tenant, {columns_of(VERDICTS)}) "
                "VALUES (?, ?, ?, ?)",
                [(transaction.tenant, *VERDICTS.row(verdict)) for verdict in verdicts],
            )

    def gate(self) -> FittedGate | None:
        with self._database.reading() as transaction:
            sql = "SELECT gate FROM consolidation WHERE tenant = ? AND gate IS NOT NULL"
            return next(map(rules.gate_of, transaction.column(sql, (transaction.tenant,))), None)

    def newest(self, limit: int, skip: int = 0, name: str = "") -> Sequence[Exposure]:
        with self._database.reading() as transaction:
            sql = _NEWEST_EXPOSURES.format(named=_EXPOSURES_NAMED if name else "")
            asked = {"tenant": transaction.tenant, "limit": max(0, limit), "skip": skip}
            return _exposures(transaction, transaction.rows(sql, {**asked, "name": name}))

    def tally(self, since: datetime) -> ShownTally:
        with self._database.reading() as transaction:
            counted = transaction.rows(_TALLY, (transaction.tenant, moment(since)))
            return rules.tally_of(counted)

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[Exposure]:
        return rules.paged(self._page, self._value, on_damaged)

    def _page(self, after: str, limit: int) -> Sequence[tuple[str, Row]]:
        with self._database.reading() as transaction:
            later = transaction.rows(_LATER, (transaction.tenant, after, limit))
            return [(row[1], row) for row in later]

    def _value(self, row: Row) -> Exposure:
        with self._database.reading() as transaction:
            return _exposures(transaction, [row])[0]


def exposures_by_id(transaction: Transaction, context_ids: Sequence[str]) -> list[Exposure]:
    """Return the contexts among these that were shown, by id."""
    shown = transaction.rows(_BY_ID, (transaction.tenant, text_of(context_ids)))
    return _exposures(transaction, shown)


def _exposures(transaction: Transaction, shown: Sequence[Row]) -> list[Exposure]:
    return [
        EXPOSURES.value(
            row,
            items=tuple(map(SHOWN_ITEMS.value, transaction.rows(_ITEMS, (key,)))),
        )
        for key, *row in shown
    ]


def _put_exposure(transaction: Transaction, exposure: Exposure) -> None:
    """Write a context, unless it is recorded already."""
    row = {"tenant": transaction.tenant, **named_row(EXPOSURES, exposure)}
    sql = f"{insertion('exposure', tuple(row))} ON CONFLICT DO NOTHING RETURNING key"
    if key := transaction.number(sql, tuple(row.values())):
        transaction.write_all(
            "INSERT INTO shown_item "
            "(exposure, tenant, position, item, advice, patterns, helped, why) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
            [
                (key, transaction.tenant, position, *SHOWN_ITEMS.row(item))
                for position, item in enumerate(exposure.items)
            ],
        )


def forget_shown(transaction: Transaction, items: Iterable[str]) -> None:
    """Delete what was recorded of *items*, and the texts in which they were shown."""
    named = {"tenant": transaction.tenant, "items": text_of([*items])}
    of_items = "tenant = :tenant AND item IN (SELECT value FROM json_each(:items))"
    transaction.write(
        "UPDATE exposure SET text = '', said = '[]' "
        "WHERE tenant = :tenant AND text > '' AND key IN "
        f"(SELECT exposure FROM shown_item WHERE {of_items})",
        named,
    )
    transaction.write(f"DELETE FROM shown_item WHERE {of_items}", named)


def put_reports(transaction: Transaction, reported: Sequence[Exposure]) -> None:
    """Write what is known by now of whether contexts and their items helped."""
    for exposure in reported:
        key = transaction.number(
            "UPDATE exposure SET helped = ?, source = ? WHERE tenant = ? AND context_id = ? "
            "RETURNING key",
            (exposure.helped, exposure.source, transaction.tenant, exposure.context_id),
        )
        transaction.write_all(
            "UPDATE shown_item SET helped = ? WHERE exposure = ? AND item = ? AND advice = ?",
            [(item.helped, key, item.id, item.advice) for item in exposure.items],
        )

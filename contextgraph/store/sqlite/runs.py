"""`RunStore` in SQLite: runs with their fragments."""

from collections.abc import Collection, Iterable, Mapping, Sequence

from contextgraph.model import (
    Bundle,
    CausedError,
    ChangeStatus,
    EmbeddedRun,
    Exposure,
    Fragment,
    FragmentCandidate,
    Learned,
    LearnStatus,
    Outcome,
    OutcomeSource,
    Phase,
    RawTrajectory,
    Recovered,
    RunFacts,
    RunFilter,
    RunOrder,
    Scope,
    TaskType,
    Trajectory,
    WordCounts,
)
from contextgraph.ports import ALL
from contextgraph.store import rules
from contextgraph.store.rules import unpacked
from contextgraph.store.sqlite.advice import (
    exposures_by_id,
    forget_shown,
    mark_stale,
    note_abstracted,
    put_reports,
    remove_methodologies,
)
from contextgraph.store.sqlite.database import (
    ERRORS,
    FRAGMENTS,
    RECOVERIES,
    TRAJECTORIES,
    Database,
    Row,
    Run,
    SqlScope,
    Transaction,
    columns_of,
    insertion,
    moment,
    named_row,
    names_of,
    run_of,
    text_of,
    tuple_of,
    vector_of,
)
from contextgraph.store.sqlite.schema import RUN_BITS
from contextgraph.store.sqlite.search import (
    Indexed,
    WordIndex,
    add_texts,
    compact,
    insert_vector,
    most_relevant,
    remove_texts,
)

_INDEXED = Indexed("trajectory", "key")
_ROWS_OF_A_RUN = (
    ("recovered", "key"),
    ("caused", "fragment"),
    ("touched", "fragment"),
    ("fragment", "key"),
)
_OF_RUN = ("tenant", "trajectory", "place", "seen_at")
# With the sums of its runs.
_PUT_PLACE = """
INSERT INTO place (tenant, repo, runs) VALUES (?, ?, 1)
ON CONFLICT (tenant, repo) DO UPDATE SET runs = runs + 1 RETURNING key"""
_PUT_ERROR = """
INSERT INTO error_pattern (tenant, id, family, error_type, template, runs, steps, cleared)
VALUES (?, ?, ?, ?, ?, 1, ?, ?) ON CONFLICT (tenant, id) DO UPDATE SET
    runs = runs + 1, steps = steps + excluded.steps, cleared = cleared + excluded.cleared
RETURNING key"""
# Of runs by their keys: the errors that they met, their repositories, what was derived from them.
_MET = """
SELECT DISTINCT e.key, e.id FROM json_each(?) AS named JOIN met m ON m.trajectory = named.value
JOIN error_pattern e ON e.key = m.error"""
_REPOS = """
SELECT DISTINCT t.repo FROM json_each(?) AS named JOIN trajectory t ON t.key = named.value"""
_DERIVED = """
SELECT DISTINCT m.id FROM json_each(?) AS named JOIN derived_from d ON d.trajectory = named.value
JOIN methodology m ON m.key = d.methodology"""
_LEARNED = f"""
SELECT DISTINCT named.value, t.id, t.outcome, t.outcome_source, t.change, t.exit_status IS NULL,
    (SELECT count(*) FROM fragment WHERE key BETWEEN t.key << {RUN_BITS}
        AND ((t.key + 1) << {RUN_BITS}) - 1),
    (SELECT count(*) FROM met WHERE trajectory = t.key),
    EXISTS (SELECT 1 FROM vectors v JOIN space s ON s.key = v.space
        WHERE v.trajectory = t.key AND s.active)
FROM json_each(:named) AS named
LEFT JOIN former_id a ON a.tenant = :tenant AND a.id = named.value
CROSS JOIN trajectory t ON t.tenant = :tenant AND t.id = coalesce(a.trajectory_id, named.value)
ORDER BY named.value"""
_FRAGMENT_KEYS = f"""
SELECT f.key FROM json_each(?) AS named
CROSS JOIN trajectory t ON t.tenant = ? AND t.id = named.value
CROSS JOIN fragment f ON f.key BETWEEN t.key << {RUN_BITS} AND ((t.key + 1) << {RUN_BITS}) - 1
ORDER BY named.key, f.position, f.id"""
_FACTS = """
SELECT t.id, f.data FROM json_each(?) AS named
CROSS JOIN trajectory t ON t.tenant = ? AND t.id = named.value
CROSS JOIN facts f ON f.trajectory = t.key"""
_FOR_TASK = """
SELECT t.key FROM trajectory t INDEXED BY {index}
WHERE {scope} {task_type} {agent} ORDER BY t.solved DESC, t.seen_at DESC, t.id LIMIT :limit"""
_UNCOUNTED = (
    """UPDATE place SET runs = place.runs - counted.number FROM (
        SELECT t.place, count(*) AS number FROM json_each(:runs) named
        CROSS JOIN trajectory t ON t.key = named.value GROUP BY t.place) AS counted
    WHERE place.key = counted.place""",
    """UPDATE error_pattern SET runs = error_pattern.runs - counted.number,
        steps = error_pattern.steps - counted.steps,
        cleared = error_pattern.cleared - counted.cleared
    FROM (
        SELECT m.error, count(*) AS number, sum(m.steps) AS steps, sum(m.cleared) AS cleared
        FROM json_each(:runs) named CROSS JOIN met m ON m.trajectory = named.value
        GROUP BY m.error) AS counted
    WHERE error_pattern.key = counted.error""",
)
_REPOSITORIES = """
SELECT repo, runs FROM place INDEXED BY place_largest
WHERE tenant = :tenant AND runs > 0 AND repo <> '' {containing}
ORDER BY runs DESC, repo LIMIT :limit OFFSET :skip"""
_LISTED = "SELECT t.key FROM trajectory t WHERE {where} ORDER BY {order}, t.id"
# An index has those that were solved and the others, each by time.
_NEWEST = """
SELECT key FROM (SELECT * FROM (
    SELECT t.key, t.seen_at, t.id FROM trajectory t INDEXED BY {index}
    WHERE {where} AND t.solved = 1 ORDER BY t.seen_at DESC, t.id LIMIT :limit + :skip)
UNION ALL SELECT * FROM (
    SELECT t.key, t.seen_at, t.id FROM trajectory t INDEXED BY {index}
    WHERE {where} AND t.solved = 0 ORDER BY t.seen_at DESC, t.id LIMIT :limit + :skip))
ORDER BY seen_at DESC, id"""
_ORDERS = {
    RunOrder.INSTANCE: "t.instance_id",
    RunOrder.REPO: "t.repo",
    RunOrder.AGENT: "t.agent",
    RunOrder.OUTCOME: "t.outcome",
    RunOrder.STEPS: "t.total_steps DESC",
}
_FRAGMENTS = """
SELECT f.key FROM {table} WHERE {conditions} ORDER BY {alias}.seen_at DESC, f.id LIMIT :limit"""
_AT_FILE = "touched s INDEXED BY touched_newest CROSS JOIN fragment f ON f.key = s.fragment"
_FRAGMENT_IS = {
    "phase": "{alias}.phase = :phase",
    "file_name": "s.file_name = :file_name",
    "loop_command": "f.tenant = :tenant AND f.loop_command <> ''"
    " AND f.loop_command = :loop_command",
}
_ERRORS = """
SELECT e.id, e.family, e.error_type, e.template, m.keywords, m.context, m.steps
FROM met m JOIN error_pattern e ON e.key = m.error WHERE m.trajectory = ? ORDER BY e.id"""
_CAUSED = """
SELECT f.id, e.id, c.steps, c.locations FROM caused c JOIN fragment f ON f.key = c.fragment
JOIN error_pattern e ON e.key = c.error WHERE c.fragment BETWEEN ? AND ?
ORDER BY f.position, f.id, e.id"""
_RECOVERED = f"""
SELECT f.id, e.id, {columns_of(RECOVERIES, "r")}
FROM recovered r JOIN fragment f ON f.key = r.fragment JOIN error_pattern e ON e.key = r.error
WHERE r.key BETWEEN ? AND ? ORDER BY r.error_step, f.id, e.id"""
_EMBEDDED = """
SELECT s.name, v.data FROM vectors v JOIN space s ON s.key = v.space AND s.active
WHERE v.trajectory = ?"""


def _insert(transaction: Transaction, packed: rules.PackedRun) -> None:
    """Write all rows of a run."""
    bundle = packed.bundle
    tenant, trajectory = transaction.tenant, bundle.trajectory
    place = transaction.number(_PUT_PLACE, (tenant, trajectory.repo))
    seen_at = moment(trajectory.seen_at)
    row = {
        "tenant": tenant,
        "place": place,
        "revision": transaction.new_revision(),
        "solved": bool(trajectory.success),
        "seen_at": seen_at,
        **named_row(TRAJECTORIES, trajectory),
    }
    run = Run(
        transaction.number(
            f"{insertion('trajectory', tuple(row))} RETURNING key", tuple(row.values())
        )
    )
    for table, data in (("raw", packed.raw), ("facts", packed.facts)):
        transaction.write(f"INSERT INTO {table} (trajectory, data) VALUES (?, ?)", (run.key, data))
    met = rules.met_errors(bundle)
    errors = {
        e.id: transaction.number(
            _PUT_ERROR, (tenant, e.id, e.family.value, e.error_type, e.template, steps, cleared)
        )
        for e, steps, cleared in met
    }
    patterns = {error.id: error for error in bundle.errors}
    keys = {value.id: run.first + number for number, value in enumerate(bundle.fragments)}
    phases = {value.id: value.phase.value for value in bundle.fragments}
    of_run = (tenant, run.key, place, seen_at)
    # By their place: values by their names take twice the time.
    transaction.insert(
        "fragment",
        (*_OF_RUN, "key", *names_of(FRAGMENTS)),
        [(*of_run, keys[value.id], *FRAGMENTS.row(value)) for value in bundle.fragments],
    )
    transaction.insert(
        "touched",
        (*_OF_RUN, "fragment", "file_name", "phase"),
        [
            (*of_run, keys[value.id], name, value.phase.value)
            for value in bundle.fragments
            for name in rules.file_names(value)
        ],
    )
    transaction.insert(
        "met",
        (*_OF_RUN, "error", "trajectory_id", "steps", "cleared", "keywords", "context"),
        [
            (*of_run, errors[e.id], trajectory.id, steps, cleared, text_of(e.keywords), e.context)
            for e, steps, cleared in met
        ],
    )
    transaction.insert(
        "caused",
        (*_OF_RUN, "fragment", "error", "phase", "step_count", "steps", "locations"),
        [
            (
                *of_run,
                keys[value.fragment_id],
                errors[value.error_id],
                phases[value.fragment_id],
                len(value.steps),
                text_of(value.steps),
                text_of(value.locations),
            )
            for value in bundle.caused
        ],
    )
    transaction.insert(
        "recovered",
        (
            *_OF_RUN,
            *("key", "fragment", "fragment_id", "error", "family", "error_type", "scored_words"),
            *names_of(RECOVERIES),
        ),
        [
            (
                *of_run,
                run.first + number,
                keys[value.fragment_id],
                value.fragment_id,
                errors[value.error_id],
                patterns[value.error_id].family.value,
                patterns[value.error_id].error_type,
                rules.scored_words(value.message, value.actions),
                *RECOVERIES.row(value),
            )
            for number, value in enumerate(bundle.recovered)
        ],
    )
    add_texts(transaction, "trajectory", place, [(run.key, rules.trajectory_text(trajectory))])
    texts = [
        (run.first + number, rules.recovery_text(recovery.message, recovery.actions))
        for number, recovery in enumerate(bundle.recovered)
    ]
    add_texts(transaction, "recovered", place, texts)
    if bundle.embedded:
        insert_vector(transaction, run.key, bundle.embedded)


def _uncount(transaction: Transaction, keys: Sequence[int]) -> None:
    """Take the runs with these *keys* from the sums of their errors and repositories."""
    for statement in _UNCOUNTED:
        transaction.write(statement, {"runs": str(list(keys))})


class _Changes(rules.RunChanges[list[int]]):
    """Changes of runs in a transaction; what is removed are the keys of errors."""

    def __init__(self, transaction: Transaction) -> None:
        self._transaction = transaction

    def known(self, ids: Iterable[str]) -> Mapping[str, Trajectory]:
        return _known(self._transaction, ids)

    def insert(self, runs: Sequence[rules.PackedRun]) -> None:
        for run in runs:
            _insert(self._transaction, run)

    def shown(self, context_ids: Sequence[str]) -> Sequence[Exposure]:
        return exposures_by_id(self._transaction, context_ids)

    def put_reports(self, reported: Sequence[Exposure]) -> None:
        put_reports(self._transaction, reported)

    def set_outcomes(self, runs: Sequence[Trajectory]) -> None:
        for run in runs:
            self._transaction.write(
                "UPDATE trajectory SET outcome = ?, outcome_source = ?, exit_status = ?, "
                "change = ?, solved = ?, revision = ? WHERE tenant = ? AND id = ?",
                (
                    run.outcome.value,
                    run.outcome_source.value,
                    run.exit_status,
                    run.change.value,
                    bool(run.success),
                    self._transaction.new_revision(),
                    self._transaction.tenant,
                    run.id,
                ),
            )

    def rename(self, ids: Mapping[str, str]) -> None:
        for former, now in ids.items():
            named = (self._transaction.tenant, former, now)
            self._transaction.write("INSERT OR REPLACE INTO former_id VALUES (?, ?, ?)", named)
            # As what the former id was known, the new one is known, too.
            self._transaction.write(
                "UPDATE former_id SET trajectory_id = ? WHERE tenant = ? AND trajectory_id = ?",
                (now, self._transaction.tenant, former),
            )

    def remove(self, ids: Sequence[str], *, forgotten: bool) -> list[int]:
        transaction = self._transaction
        keys = transaction.run_keys(ids)
        runs, named = [Run(key) for key in keys], (str(keys),)
        revision = transaction.new_revision(removing=True)
        if forgotten:
            transaction.write(
                "DELETE FROM former_id WHERE tenant = ? AND trajectory_id IN "
                "(SELECT value FROM json_each(?))",
                (transaction.tenant, text_of(ids)),
            )
            forget_shown(transaction, ids)
            for run in runs:
                forget_shown(
                    transaction,
                    transaction.column(
                        "SELECT id FROM fragment WHERE key BETWEEN ? AND ?", run.keys
                    ),
                )
        errors = transaction.rows(_MET, named)
        repos = transaction.column(_REPOS, named)
        mark_stale(transaction, [error for _, error in errors], repos)
        if derived := transaction.column(_DERIVED, named):
            note_abstracted(transaction)
            remove_methodologies(transaction, derived)
        transaction.write_all(
            "DELETE FROM similar WHERE fragment BETWEEN ? AND ? OR representative BETWEEN ? AND ?",
            [(*run.keys, *run.keys) for run in runs],
        )
        _uncount(transaction, keys)
        for run in runs:
            remove_texts(transaction, "recovered", *run.keys)
            remove_texts(transaction, "trajectory", run.key, run.key)
            for table, column in _ROWS_OF_A_RUN:
                transaction.write(f"DELETE FROM {table} WHERE {column} BETWEEN ? AND ?", run.keys)
            for table in ("met", "raw", "facts", "vectors"):
                transaction.write(f"DELETE FROM {table} WHERE trajectory = ?", (run.key,))
            transaction.write("DELETE FROM trajectory WHERE key = ?", (run.key,))
            transaction.write("DELETE FROM checksum WHERE part = 'run' AND run = ?", (run.key,))
        transaction.write_all(
            "INSERT INTO removal VALUES (?, ?, ?)",
            [(key, transaction.tenant, revision) for key in keys],
        )
        return [key for key, _ in errors]

    def remove_unused(self, removed: list[int]) -> None:
        transaction, tenant = self._transaction, self._transaction.tenant
        for error in removed:
            gone = transaction.row(
                "DELETE FROM error_pattern WHERE key = ? AND NOT EXISTS "
                "(SELECT 1 FROM met WHERE error = error_pattern.key) RETURNING id",
                (error,),
            )
            if gone:
                transaction.write(
                    "DELETE FROM resolved_by WHERE tenant = ? AND error_id = ?", (tenant, gone[0])
                )
        transaction.write(
            "DELETE FROM place WHERE tenant = ? AND NOT EXISTS "
            "(SELECT 1 FROM trajectory t WHERE t.place = place.key) AND NOT EXISTS "
            "(SELECT 1 FROM note n WHERE n.tenant = place.tenant AND n.place = place.key)",
            (tenant,),
        )
        # Nothing is left to consolidate, and the name is not to be kept.
        transaction.write(
            "DELETE FROM stale_repo WHERE tenant = ? AND NOT EXISTS "
            "(SELECT 1 FROM trajectory t WHERE t.tenant = ? AND t.repo = stale_repo.repo)",
            (tenant, tenant),
        )


class SqliteRuns:
    """`RunStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def add(self, bundles: Sequence[Bundle]) -> Sequence[LearnStatus]:
        given = rules.pack(bundles)
        with self._database.writing() as transaction:
            return _Changes(transaction).add(given)

    def replace(self, bundles: Mapping[str, Bundle]) -> Sequence[str]:
        given = dict(zip(bundles, rules.pack(bundles.values()), strict=True))
        with self._database.writing() as transaction:
            return _Changes(transaction).replace(given)

    def set_outcome(self, trajectory_ids: Iterable[str], outcome: Outcome) -> int:
        with self._database.writing() as transaction:
            return _Changes(transaction).set_outcome(trajectory_ids, outcome)

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, Learned]:
        with self._database.reading() as transaction:
            named = {"tenant": transaction.tenant, "named": text_of(trajectory_ids)}
            return {row[0]: _learned(*row[1:]) for row in transaction.rows(_LEARNED, named)}

    def trajectories(self, trajectory_ids: Iterable[str]) -> Mapping[str, Trajectory]:
        with self._database.reading() as transaction:
            return _known(transaction, trajectory_ids)

    def ids(
        self,
        repo: str | None = None,
        instance: str | None = None,
        after: str = "",
        limit: int = ALL,
    ) -> Sequence[str]:
        with self._database.reading() as transaction:
            place = None if repo is None else transaction.place(repo.casefold())
            values = {"instance_id": instance, "place": place}
            return transaction.ids("trajectory", values, after, limit)

    def raw(self, trajectory_id: str) -> RawTrajectory | None:
        with self._database.reading() as transaction:
            run = run_of(transaction, trajectory_id)
            return None if run is None else _raw(transaction, run)

    def facts(self, trajectory_ids: Iterable[str]) -> Mapping[str, RunFacts]:
        with self._database.reading() as transaction:
            rows = transaction.rows(_FACTS, (text_of([*trajectory_ids]), transaction.tenant))
            return {run: rules.facts_from(data, run) for run, data in rows}

    def fragments(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[Fragment]]:
        by_run: dict[str, list[Fragment]] = {run: [] for run in trajectory_ids}
        with self._database.reading() as transaction:
            for candidate in transaction.fragments(fragment_keys(transaction, [*by_run])):
                by_run[candidate.trajectory.id].append(candidate.fragment)
        return by_run

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        with self._database.writing() as transaction:
            forgotten = _Changes(transaction).forget(trajectory_ids)
            if forgotten:
                compact(transaction)
        if forgotten:
            self._database.connections.empty_log()
        return forgotten

    def for_task(
        self, task_type: TaskType | None, scope: Scope, limit: int, agent: str | None = None
    ) -> Sequence[Trajectory]:
        with self._database.reading() as transaction:
            within = transaction.scoped(scope)
            everywhere = agent is not None and within.repository is None
            sql = _FOR_TASK.format(
                index=(
                    "trajectory_ranked_of_agent"
                    if everywhere
                    else within.index("trajectory_ranked")
                ),
                scope=within.where("t", "key"),
                task_type="AND t.task_type = :task_type" if task_type else "",
                agent="" if agent is None else "AND t.agent = :agent",
            )
            parameters = {"task_type": task_type.value} if task_type else {}
            parameters |= {} if agent is None else {"agent": agent}
            keys = found_keys(transaction, sql, within, limit, parameters)
            trajectories = transaction.trajectories(keys)
            return [trajectories[key] for key in keys]

    def listed(self, wanted: RunFilter, limit: int, skip: int = 0) -> Sequence[Trajectory]:
        given = {
            "t.agent = :agent": wanted.agent,
            "t.outcome = :outcome": wanted.outcome,
            "t.seen_at >= :since": moment(wanted.since) if wanted.since else None,
        }
        with self._database.reading() as transaction:
            within = transaction.scoped(Scope(wanted.repo))
            terms = [term for term, value in given.items() if value]
            where = " AND ".join([within.where("t", "key"), *terms])
            sql = (
                _NEWEST.format(where=where, index=within.index("trajectory_ranked"))
                if wanted.order is RunOrder.NEWEST
                else _LISTED.format(where=where, order=_ORDERS[wanted.order])
            )
            parameters = {
                **within.parameters,
                **{term.rpartition(":")[2]: given[term] for term in terms},
                "limit": max(0, limit),
                "skip": skip,
            }
            keys = transaction.column(f"{sql} LIMIT :limit OFFSET :skip", parameters)
            trajectories = transaction.trajectories(keys)
            return [trajectories[key] for key in keys]

    def repositories(
        self, limit: int, skip: int = 0, containing: str = ""
    ) -> Sequence[tuple[str, int]]:
        with self._database.reading() as transaction:
            sql = _REPOSITORIES.format(containing="AND instr(repo, :text)" if containing else "")
            text = containing.casefold()
            named = {"tenant": transaction.tenant, "limit": max(0, limit), "skip": skip}
            return transaction.rows(sql, {**named, "text": text})

    def for_text(self, words: Sequence[str], scope: Scope, limit: int) -> Sequence[Trajectory]:
        with self._database.reading() as transaction:
            weights = self._database.cached(WordIndex, "trajectory").weights(transaction, words)
            within = transaction.scoped(scope)
            first = transaction.first_trajectories
            keys = most_relevant(transaction, _INDEXED, within, weights, limit, first)
            runs = transaction.trajectories(keys)
            return [runs[key] for key in keys]

    def find_fragments(
        self,
        scope: Scope,
        limit: int,
        *,
        phase: Phase | None = None,
        file_name: str | None = None,
        loop_command: str | None = None,
    ) -> Sequence[FragmentCandidate]:
        given = {"phase": phase, "file_name": file_name, "loop_command": loop_command}
        named = {name: str(value) for name, value in given.items() if value is not None}
        with self._database.reading() as transaction:
            within = transaction.scoped(scope)
            sql = _fragments_sql(within, named)
            return transaction.fragments(found_keys(transaction, sql, within, limit, named))

    def word_counts(self, words: Sequence[str]) -> WordCounts:
        with self._database.reading() as transaction:
            return self._database.cached(WordIndex, "trajectory").counts(transaction, words)

    def archived(self, trajectory_id: str) -> Bundle | None:
        with self._database.reading() as transaction:
            run = run_of(transaction, trajectory_id)
            raw = None if run is None else _raw(transaction, run)
            return None if run is None or raw is None else _archived(transaction, run, raw)


def _known(transaction: Transaction, trajectory_ids: Iterable[str]) -> dict[str, Trajectory]:
    """The known ones of these runs, by id."""
    keys = transaction.run_keys(trajectory_ids)
    known = transaction.trajectories(keys)
    return {known[key].id: known[key] for key in keys}


def fragment_keys(transaction: Transaction, trajectory_ids: Sequence[str]) -> list[int]:
    """The keys of the fragments of runs, in order, those of the first named run first."""
    return transaction.column(_FRAGMENT_KEYS, (text_of(trajectory_ids), transaction.tenant))


def found_keys(
    transaction: Transaction, sql: str, scope: SqlScope, limit: int, parameters: Mapping[str, str]
) -> list[int]:
    """The keys that *sql* finds within *scope*."""
    return transaction.column(sql, {**scope.parameters, **parameters, "limit": max(0, limit)})


def _fragments_sql(scope: SqlScope, named: Collection[str]) -> str:
    """SQL for the fragments in *scope* that have what is *named* (see _FRAGMENT_IS)."""
    alias = "f"
    table = f"fragment f INDEXED BY fragment_{'of_loop' if 'loop_command' in named else 'newest'}"
    if "file_name" in named:
        alias, table = "s", _AT_FILE
    conditions = [_FRAGMENT_IS[name].format(alias=alias) for name in named]
    conditions.append(scope.where(alias, by_place=True))
    return _FRAGMENTS.format(alias=alias, table=table, conditions=" AND ".join(conditions))


def _learned(
    run: str,
    outcome: str,
    source: str,
    change: str,
    is_open: int,
    fragments: int,
    errors: int,
    embedded: int,
) -> Learned:
    return Learned(
        trajectory_id=run,
        outcome=Outcome(outcome),
        is_open=bool(is_open) and outcome == Outcome.UNKNOWN,
        fragments=fragments,
        error_patterns=errors,
        to_embed=0 if embedded else 1,
        outcome_source=OutcomeSource(source),
        change=ChangeStatus(change),
    )


def _raw(transaction: Transaction, run: Run) -> RawTrajectory | None:
    known = transaction.trajectories([run.key])[run.key]
    row = transaction.row("SELECT data FROM raw WHERE trajectory = ?", (run.key,))
    return None if row is None else rules.raw_with_outcome(unpacked(row[0], known.id), known)


def _archived(transaction: Transaction, run: Run, raw: RawTrajectory) -> Bundle:
    trajectory = transaction.trajectories([run.key])[run.key]
    errors = transaction.rows(_ERRORS, (run.key,))
    keys = fragment_keys(transaction, [trajectory.id])
    return Bundle(
        trajectory=trajectory,
        fragments=tuple(candidate.fragment for candidate in transaction.fragments(keys)),
        errors=tuple(ERRORS.value(row[:6]) for row in errors),
        caused=tuple(
            CausedError(row[0], row[1], tuple_of(row[2]), tuple_of(row[3]))
            for row in transaction.rows(_CAUSED, run.keys)
        ),
        recovered=tuple(map(_recovered, transaction.rows(_RECOVERED, run.keys))),
        facts=rules.facts_from(_facts(transaction, run), trajectory.id),
        raw=raw,
        embedded=_embedded(transaction, run),
        met={row[0]: row[6] for row in errors},
    )


def _facts(transaction: Transaction, run: Run) -> str | None:
    row = transaction.row("SELECT data FROM facts WHERE trajectory = ?", (run.key,))
    return None if row is None else row[0]


def _recovered(row: Row) -> Recovered:
    return RECOVERIES.value(row[2:], fragment_id=row[0], error_id=row[1])


def _embedded(transaction: Transaction, run: Run) -> EmbeddedRun | None:
    """*run* in the active space."""
    row = transaction.row(_EMBEDDED, (run.key,))
    return None if row is None else EmbeddedRun(row[0], vector_of(*row))

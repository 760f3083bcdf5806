"""The rows of one run: written from its bundle, and removed with all that only it supports."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from contextgraph.model import (
    Bundle,
    EmbeddedRun,
    Trajectory,
)
from contextgraph.store import rules
from contextgraph.store.sqlite import rows, word_index
from contextgraph.store.sqlite.schema import RUN_BITS
from contextgraph.store.sqlite.transaction import Transaction, insertion
from contextgraph.vectors import dimensions_of

_ROWS_OF_A_RUN = (
    ("recovered", "key"),
    ("caused", "fragment"),
    ("touched", "fragment"),
    ("fragment", "key"),
)
_WITH_SUPERSEDED = """
WITH RECURSIVE gone (id) AS (
    SELECT value FROM json_each(?2)
    UNION SELECT m.id FROM gone JOIN methodology m ON m.tenant = ?1 AND m.superseded_by = gone.id)
SELECT m.key, m.id, m.error_id, m.superseded_by
FROM gone JOIN methodology m ON m.tenant = ?1 AND m.id = gone.id"""
_OF_A_METHODOLOGY = (
    ("derived_from", "methodology"),
    ("methodology", "key"),
)

# The values of a row by the names of their columns.
Columns: TypeAlias = dict[str, object]


@dataclass(frozen=True, slots=True)
class Run:
    """The numbers that are in every row of one run."""

    key: int
    place: int = 0
    seen_at: int = 0

    @property
    def first(self) -> int:
        """The first key of its fragments and recoveries."""
        return self.key << RUN_BITS

    @property
    def keys(self) -> tuple[int, int]:
        """The range of the keys that its fragments and recoveries can have."""
        return self.first, ((self.key + 1) << RUN_BITS) - 1


def run_of(transaction: Transaction, trajectory_id: str) -> Run | None:
    """The run of this id."""
    key = transaction.number(
        "SELECT key FROM trajectory WHERE tenant = ? AND id = ?",
        (transaction.tenant, trajectory_id),
    )
    return Run(key) if key else None


def insert(transaction: Transaction, bundle: Bundle, raw: bytes) -> None:
    """Write all rows of *bundle*; *raw* is its packed run.

    Raises `StoreError` where something in it refers to what is not in it.
    """
    rules.check_bundle(bundle)
    run = _insert_trajectory(transaction, bundle.trajectory)
    transaction.write("INSERT INTO raw (trajectory, data) VALUES (?, ?)", (run.key, raw))
    of_run = {
        "tenant": transaction.tenant,
        "trajectory": run.key,
        "place": run.place,
        "seen_at": run.seen_at,
    }
    keys = {value.id: run.first + number for number, value in enumerate(bundle.fragments)}
    errors = _insert_errors(transaction, bundle)
    for table, table_rows in (
        ("fragment", _fragment_rows(bundle, keys)),
        ("touched", _touched_rows(bundle, keys)),
        ("met", _met_rows(bundle, errors)),
        ("caused", _caused_rows(bundle, keys, errors)),
        ("recovered", _recovered_rows(bundle, run, keys, errors)),
    ):
        transaction.insert(table, [{**of_run, **row} for row in table_rows])
    _insert_texts(transaction, run, bundle)
    if bundle.embedded:
        insert_vector(transaction, run, bundle.embedded)


def _insert_trajectory(transaction: Transaction, value: Trajectory) -> Run:
    place, seen_at = transaction.put_place(value.repo), rows.moment(value.seen_at)
    row = {
        "tenant": transaction.tenant,
        "place": place,
        "revision": transaction.new_revision(),
        "solved": bool(value.success),
        "seen_at": seen_at,
        **rows.named(rows.TRAJECTORIES, value),
    }
    key = transaction.number(f"{insertion('trajectory', row)} RETURNING key", row)
    return Run(key, place, seen_at)


def _insert_errors(transaction: Transaction, bundle: Bundle) -> dict[str, int]:
    """Write the patterns that are new; the keys of all by id."""
    tenant = transaction.tenant
    transaction.write_all(
        "INSERT INTO error_pattern (tenant, id, family, error_type, template) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING",
        [(tenant, e.id, e.family.value, e.error_type, e.template) for e in bundle.errors],
    )
    return dict(
        transaction.rows(
            "SELECT id, key FROM error_pattern WHERE tenant = ? "
            "AND id IN (SELECT value FROM json_each(?))",
            (tenant, rows.text_of([error.id for error in bundle.errors])),
        )
    )


def _fragment_rows(bundle: Bundle, keys: Mapping[str, int]) -> list[Columns]:
    return [
        {"key": keys[value.id], **rows.named(rows.FRAGMENTS, value)} for value in bundle.fragments
    ]


def _touched_rows(bundle: Bundle, keys: Mapping[str, int]) -> list[Columns]:
    return [
        {"fragment": keys[value.id], "file_name": name, "phase": value.phase.value}
        for value in bundle.fragments
        for name in rules.file_names(value)
    ]


def _met_rows(bundle: Bundle, errors: Mapping[str, int]) -> list[Columns]:
    """How the run met each error."""
    return [
        {
            "error": errors[error.id],
            "trajectory_id": bundle.trajectory.id,
            "steps": steps,
            "cleared": cleared,
            "keywords": rows.text_of(error.keywords),
            "context": error.context,
        }
        for error, steps, cleared in rules.met_errors(bundle)
    ]


def _caused_rows(
    bundle: Bundle, fragments: Mapping[str, int], errors: Mapping[str, int]
) -> list[Columns]:
    phases = {fragment.id: fragment.phase.value for fragment in bundle.fragments}
    return [
        {
            "fragment": fragments[value.fragment_id],
            "error": errors[value.error_id],
            "phase": phases[value.fragment_id],
            "step_count": len(value.steps),
            "steps": rows.text_of(value.steps),
            "locations": rows.text_of(value.locations),
        }
        for value in bundle.caused
    ]


def _recovered_rows(
    bundle: Bundle, run: Run, fragments: Mapping[str, int], errors: Mapping[str, int]
) -> list[Columns]:
    patterns = {error.id: error for error in bundle.errors}
    return [
        {
            "key": run.first + number,
            "fragment": fragments[value.fragment_id],
            "fragment_id": value.fragment_id,
            "error": errors[value.error_id],
            "family": patterns[value.error_id].family.value,
            "error_type": patterns[value.error_id].error_type,
            "scored_words": rules.scored_words(value.message, value.actions),
            **rows.named(rows.RECOVERIES, value),
        }
        for number, value in enumerate(bundle.recovered)
    ]


def _insert_texts(transaction: Transaction, run: Run, bundle: Bundle) -> None:
    text = rules.trajectory_text(bundle.trajectory)
    word_index.add_texts(transaction, "trajectory", run.place, [(run.key, text)])
    texts = [
        (run.first + number, rules.recovery_text(recovery.message, recovery.actions))
        for number, recovery in enumerate(bundle.recovered)
    ]
    word_index.add_texts(transaction, "recovered", run.place, texts)


def insert_vector(transaction: Transaction, run: Run, embedded: EmbeddedRun) -> None:
    """Write the vector of a run, unless its space has been dropped or has one of the run."""
    data = embedded.vector.data if embedded.vector else bytes(4 * dimensions_of(embedded.space))
    transaction.write(
        "INSERT OR IGNORE INTO vectors (trajectory, space, data) "
        "SELECT ?, key, ? FROM space WHERE tenant = ? AND name = ?",
        (run.key, data, transaction.tenant, embedded.space),
    )


def remove(transaction: Transaction, revision: int, keys: Sequence[int]) -> list[int]:
    """Delete all rows of the runs with these *keys*; the keys of the errors that they had met."""
    named = (str(list(keys)),)
    _remove_derived(transaction, keys)
    errors = transaction.column(
        "SELECT DISTINCT error FROM met WHERE trajectory IN (SELECT value FROM json_each(?))", named
    )
    for run in map(Run, keys):
        word_index.remove_texts(transaction, "recovered", *run.keys)
        word_index.remove_texts(transaction, "trajectory", run.key, run.key)
        for table, column in _ROWS_OF_A_RUN:
            transaction.write(f"DELETE FROM {table} WHERE {column} BETWEEN ? AND ?", run.keys)
        for table in ("met", "raw", "vectors"):
            transaction.write(f"DELETE FROM {table} WHERE trajectory = ?", (run.key,))
        transaction.write("DELETE FROM trajectory WHERE key = ?", (run.key,))
        transaction.write("DELETE FROM checksum WHERE part = 'run' AND run = ?", (run.key,))
    transaction.write_all(
        "INSERT INTO removal VALUES (?, ?, ?)",
        [(key, transaction.tenant, revision) for key in keys],
    )
    return errors


def remove_unused(transaction: Transaction, errors: Sequence[int]) -> None:
    """Delete those *errors* and repositories that no run has any more."""
    tenant = transaction.tenant
    for error in errors:
        gone = transaction.row(
            "DELETE FROM error_pattern WHERE key = ?1 AND NOT EXISTS "
            "(SELECT 1 FROM met WHERE error = ?1) RETURNING id",
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


def remove_methodologies(transaction: Transaction, ids: Sequence[str]) -> None:
    """Delete methodologies with their edges, and all that they had superseded.

    The errors of the superseded ones are to be consolidated again.
    """
    tenant = transaction.tenant
    gone = transaction.rows(_WITH_SUPERSEDED, (tenant, rows.text_of(ids)))
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


def _remove_derived(transaction: Transaction, keys: Sequence[int]) -> None:
    """Delete what was derived from the runs of these *keys*.

    Their errors and repositories are to be consolidated again.
    """
    named = (str(list(keys)),)
    errors = transaction.column(
        "SELECT DISTINCT e.id FROM json_each(?) AS named JOIN met m ON m.trajectory = named.value "
        "JOIN error_pattern e ON e.key = m.error",
        named,
    )
    repos = transaction.column(
        "SELECT DISTINCT t.repo FROM json_each(?) AS named "
        "JOIN trajectory t ON t.key = named.value",
        named,
    )
    mark_stale(transaction, errors, repos)
    derived = transaction.column(
        "SELECT DISTINCT m.id FROM json_each(?) AS named JOIN derived_from d "
        "ON d.trajectory = named.value JOIN methodology m ON m.key = d.methodology",
        named,
    )
    if derived:
        note_abstracted(transaction)
        remove_methodologies(transaction, derived)
    transaction.write_all(
        "DELETE FROM similar WHERE fragment BETWEEN ?1 AND ?2 OR representative BETWEEN ?1 AND ?2",
        [Run(key).keys for key in keys],
    )


def note_former_id(transaction: Transaction, former: str, now: str) -> None:
    """Record that the run *now* was known as *former*, and as what *former* was known."""
    if former == now:
        return
    transaction.write(
        "INSERT OR REPLACE INTO former_id VALUES (?, ?, ?)", (transaction.tenant, former, now)
    )
    transaction.write(
        "UPDATE former_id SET trajectory_id = ?3 WHERE tenant = ?1 AND trajectory_id = ?2",
        (transaction.tenant, former, now),
    )


def remove_former_ids(transaction: Transaction, keys: Sequence[int]) -> None:
    """Delete the former ids of the runs with these *keys*."""
    transaction.write(
        "DELETE FROM former_id WHERE tenant = ? AND trajectory_id IN "
        "(SELECT t.id FROM json_each(?) AS named JOIN trajectory t ON t.key = named.value)",
        (transaction.tenant, str(list(keys))),
    )

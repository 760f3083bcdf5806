"""What one run teaches, into the tables."""

import dataclasses
from collections import defaultdict
from collections.abc import Iterator, Mapping
from sqlite3 import Connection

from contextgraph.errors import StoreError
from contextgraph.model import Bundle, Fragment, LearnStatus, Trajectory
from contextgraph.store import exposures, full_text, retellings, rows, runs, spaces
from contextgraph.store.runs import Run
from contextgraph.store.tenants import new_revision


def add(connection: Connection, tenant: int, bundle: Bundle, raw: bytes) -> LearnStatus:
    """Write a run that is new, and report of the contexts found in it; or its outcome."""
    status = runs.status(connection, tenant, bundle.trajectory)
    if status is LearnStatus.CREATED:
        insert(connection, tenant, bundle, raw)
        exposures.fold(connection, tenant, bundle)
    if status is LearnStatus.UPDATED:
        runs.set_outcome(connection, tenant, bundle.trajectory)
    return status


def insert(connection: Connection, tenant: int, bundle: Bundle, raw: bytes) -> None:
    """Write all rows of *bundle*; *raw* is its packed run.

    Raises `StoreError` where something in it refers to what is not in it.
    """
    run = _insert_trajectory(connection, tenant, bundle.trajectory)
    connection.execute("INSERT INTO raw (trajectory, data) VALUES (?, ?)", (run.key, raw))
    fragments = _insert_fragments(connection, run, bundle)
    errors = _insert_errors(connection, run, bundle)
    _insert_caused(connection, run, bundle, fragments, errors)
    _insert_recovered(connection, run, bundle, fragments, errors)
    _insert_texts(connection, run, bundle)
    if bundle.vectors:
        spaces.insert(connection, run, bundle.vectors)
    if bundle.retelling:
        retellings.insert(connection, run, bundle.retelling)


def replace(connection: Connection, tenant: int, bundle: Bundle, raw: bytes) -> None:
    """Write *bundle* in the place of the run of its id; raises `StoreError` where there is none."""
    known = runs.trajectory(connection, tenant, bundle.trajectory.id)
    key = runs.key_of(connection, tenant, bundle.trajectory.id)
    if known is None or key is None:
        raise StoreError(f"no run {bundle.trajectory.id} to replace; learn it first")
    revision = new_revision(connection, tenant, removing=True)
    errors = runs.remove(connection, tenant, revision, [key])
    insert(connection, tenant, _with_history(bundle, known), raw)
    runs.tidy(connection, tenant, errors)


def _with_history(bundle: Bundle, known: Trajectory) -> Bundle:
    """*bundle* with what does not depend on how a log is read."""
    trajectory = dataclasses.replace(
        bundle.trajectory,
        outcome=known.outcome,
        exit_status=known.exit_status,
        learned_at=known.learned_at,
    )
    return dataclasses.replace(bundle, trajectory=trajectory)


def _insert_trajectory(connection: Connection, tenant: int, value: Trajectory) -> Run:
    revision = new_revision(connection, tenant)
    place = _place(connection, tenant, value.repo)
    seen_at = rows.moment(value.seen_at)
    cursor = connection.execute(
        f"INSERT INTO trajectory (tenant, place, revision, solved, seen_at, {rows.TRAJECTORY}) "
        f"VALUES ({_marks(21)})",
        (tenant, place, revision, bool(value.success), seen_at, *rows.trajectory_row(value)),
    )
    assert cursor.lastrowid is not None  # an INSERT into a table with keys gives one
    return Run(tenant, place, cursor.lastrowid, seen_at)


def _place(connection: Connection, tenant: int, repo: str) -> int:
    where = (tenant, repo)
    connection.execute("INSERT OR IGNORE INTO place (tenant, repo) VALUES (?, ?)", where)
    found = connection.execute("SELECT key FROM place WHERE tenant = ? AND repo = ?", where)
    key: int = found.fetchone()[0]
    return key


def _insert_fragments(connection: Connection, run: Run, bundle: Bundle) -> dict[str, int]:
    """Write the fragments; their keys by id."""
    keys = {value.id: run.first + number for number, value in enumerate(bundle.fragments)}
    if len(keys) < len(bundle.fragments):
        raise StoreError(f"run {bundle.trajectory.id} has two fragments of one id")
    connection.executemany(
        "INSERT INTO fragment (key, tenant, trajectory, place, seen_at, "
        f"{rows.FRAGMENT}) VALUES ({_marks(18)})",
        [
            (keys[value.id], run.tenant, run.key, run.place, run.seen_at, *rows.fragment_row(value))
            for value in bundle.fragments
        ],
    )
    connection.executemany(
        "INSERT INTO touched (fragment, file_name, tenant, trajectory, place, phase, seen_at) "
        f"VALUES ({_marks(7)})",
        [
            (keys[value.id], name, run.tenant, run.key, run.place, value.phase.value, run.seen_at)
            for value in bundle.fragments
            for name in _file_names(value)
        ],
    )
    return keys


def _file_names(fragment: Fragment) -> set[str]:
    paths = (*fragment.files, fragment.open_file or "")
    return {path.rpartition("/")[2] for path in paths} - {""}


def _insert_errors(connection: Connection, run: Run, bundle: Bundle) -> dict[str, int]:
    """Write the patterns that are new and how this run met each; their keys by id."""
    connection.executemany(
        "INSERT INTO error_pattern (tenant, id, family, error_type, template) "
        "VALUES (?, ?, ?, ?, ?) ON CONFLICT (tenant, id) DO NOTHING",
        [(run.tenant, e.id, e.family.value, e.error_type, e.template) for e in bundle.errors],
    )
    ids = rows.text_of(error.id for error in bundle.errors)
    keys = dict(
        connection.execute(
            "SELECT id, key FROM error_pattern WHERE tenant = ? "
            "AND id IN (SELECT value FROM json_each(?))",
            (run.tenant, ids),
        )
    )
    connection.executemany(
        f"INSERT INTO met VALUES ({_marks(10)})", list(_met_rows(run, bundle, keys))
    )
    return keys


def _met_rows(run: Run, bundle: Bundle, keys: Mapping[str, int]) -> Iterator[rows.Row]:
    steps: defaultdict[str, int] = defaultdict(int)
    for caused in bundle.caused:
        steps[caused.error_id] += len(caused.steps)
    cleared = {recovered.error_id for recovered in bundle.recovered}
    for error in bundle.errors:
        yield (
            keys[error.id],
            run.key,
            bundle.trajectory.id,
            run.tenant,
            run.place,
            run.seen_at,
            steps[error.id],
            error.id in cleared,
            rows.text_of(error.keywords),
            error.context,
        )


def _insert_caused(
    connection: Connection,
    run: Run,
    bundle: Bundle,
    fragments: Mapping[str, int],
    errors: Mapping[str, int],
) -> None:
    phases = {fragment.id: fragment.phase.value for fragment in bundle.fragments}
    connection.executemany(
        f"INSERT INTO caused VALUES ({_marks(10)})",
        [
            (
                _key(fragments, value.fragment_id, bundle),
                _key(errors, value.error_id, bundle),
                run.tenant,
                run.key,
                run.place,
                phases[value.fragment_id],
                run.seen_at,
                *rows.caused_row(value),
            )
            for value in bundle.caused
        ],
    )


def _insert_recovered(
    connection: Connection,
    run: Run,
    bundle: Bundle,
    fragments: Mapping[str, int],
    errors: Mapping[str, int],
) -> None:
    patterns = {error.id: error for error in bundle.errors}
    connection.executemany(
        "INSERT INTO recovered (key, tenant, trajectory, place, seen_at, fragment, error, family, "
        f"error_type, {rows.RECOVERED}) VALUES ({_marks(17)})",
        [
            (
                run.first + number,
                run.tenant,
                run.key,
                run.place,
                run.seen_at,
                _key(fragments, value.fragment_id, bundle),
                _key(errors, value.error_id, bundle),
                patterns[value.error_id].family.value,
                patterns[value.error_id].error_type,
                *rows.recovered_row(value),
            )
            for number, value in enumerate(bundle.recovered)
        ],
    )


def _insert_texts(connection: Connection, run: Run, bundle: Bundle) -> None:
    trajectory = bundle.trajectory
    text = f"{trajectory.task}\n{trajectory.summary}"
    full_text.add_text(connection, "trajectory", run.tenant, run.place, [(run.key, text)])
    texts = [
        (run.first + number, f"{value.message}\n{value.what}")
        for number, value in enumerate(bundle.recovered)
    ]
    full_text.add_text(connection, "recovered", run.tenant, run.place, texts)


def _key(keys: Mapping[str, int], value_id: str, bundle: Bundle) -> int:
    if value_id not in keys:
        raise StoreError(f"run {bundle.trajectory.id} refers to {value_id}, which it does not hold")
    return keys[value_id]


def _marks(count: int) -> str:
    return ", ".join("?" * count)

"""Damage of a memory file: `doctor` finds what changes stored data, a backup is whole."""

import sqlite3
import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from contextgraph.model import Note, Space, Vector
from contextgraph.store.archive import export_memory
from contextgraph.store.graph import export_graph
from contextgraph.store.sqlite import SqliteStore
from tests.acceptance.command_line import contextgraph
from tests.builders import NOON
from tests.made_bundles import made_bundle

RUNS = 40
SPACE = "made/up@4"
SCHEMA = "UPDATE sqlite_schema SET sql = replace(sql, '{}', '{}') WHERE name = '{}'"
LEARN = """
import sys
from itertools import count
from contextgraph.store.sqlite import SqliteStore
from tests.made_bundles import made_bundle
store = SqliteStore(sys.argv[1])
for number in count(100):
    store.runs.add([made_bundle(number)])
    print(number, flush=True)
"""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A memory with rows in most of its tables, some of them changed and removed."""
    path = tmp_path_factory.mktemp("sound") / "memory.db"
    store = SqliteStore(str(path))
    bundles = [made_bundle(number) for number in range(RUNS)]
    store.runs.add(bundles)
    store.vectors.prepare(Space(SPACE, RUNS), b"the model" * 100)
    vector = Vector(SPACE, bytes(range(16)))
    store.vectors.add(SPACE, {one.trajectory.id: vector for one in bundles})
    store.vectors.switch(SPACE)
    store.runs.forget([bundles[3].trajectory.id])
    store.notes.change(new=[Note(f"note_{n}", "Use ruff.", "", "user", NOON) for n in range(3)])
    store.close()
    return path


def healthy(path: Path) -> bool:
    store = SqliteStore(str(path), read_only=True)
    try:
        return all(check.ok for check in store.admin.health())
    finally:
        store.close()


def stored(path: Path) -> list[object]:
    """All rows that are not SQLite's own, as they are in the file."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        connection.text_factory = bytes
        tables = connection.execute(
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%_vocabulary' "
            "AND (name NOT LIKE '%_words_%' OR name LIKE '%_content') AND name <> 'sqlite_sequence'"
        ).fetchall()
        schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
        selects = [schema, *(f'SELECT * FROM "{name.decode()}"' for (name,) in tables)]
        return [connection.execute(select).fetchall() for select in selects]


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
def test_a_flipped_bit_is_found_or_changes_nothing(
    sound: Path, tmp_path: Path, data: st.DataObject
) -> None:
    content = bytearray(sound.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1), label="byte")
    content[at] ^= 1 << data.draw(st.integers(0, 7), label="bit")
    path = tmp_path / "memory.db"
    path.write_bytes(content)
    if healthy(path):
        assert stored(path) == stored(sound)


def test_the_run_that_changed_is_named(sound: Path, tmp_path: Path) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(
        sound.read_bytes().replace(b"the cache of part7 fails", b"the cache of part8 fails", 1)
    )
    store = SqliteStore(str(path), read_only=True)
    (failed,) = (check for check in store.admin.health() if not check.ok)
    store.close()
    assert failed.name == "integrity"
    assert "run run0007" in failed.detail


def test_the_doctor_leaves_a_memory_as_a_killed_process_left_it(
    sound: Path, tmp_path: Path
) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(sound.read_bytes())
    store = SqliteStore(str(path))
    store.runs.add([made_bundle(RUNS)])
    killed = tmp_path / "killed"
    killed.mkdir()
    files = [path, path.with_name("memory.db-wal")]
    left = {killed / one.name: one.read_bytes() for one in files}
    store.close()
    for copy, content in left.items():
        copy.write_bytes(content)

    result = contextgraph("doctor", "--store", killed / "memory.db", "--json")

    checks = {one["name"]: one for one in result.records[0]["checks"]}
    assert all(checks[name]["ok"] for name in ("reachable", "integrity", "writable"))
    assert f"{RUNS} trajectories" in checks["sizes"]["detail"], "what the log holds is seen"
    assert {copy: copy.read_bytes() for copy in left} == left


def test_a_backup_is_made_while_another_process_learns_and_can_be_restored(
    sound: Path, tmp_path: Path
) -> None:
    path, copy, restored = (tmp_path / name for name in ("memory.db", "copy.db", "restored.db"))
    path.write_bytes(sound.read_bytes())
    learning = subprocess.Popen(
        [sys.executable, "-c", LEARN, str(path)], stdout=subprocess.PIPE, text=True
    )
    assert learning.stdout is not None
    learning.stdout.readline()  # it has begun

    made = contextgraph("backup", copy, "--store", path, "--json")
    again = contextgraph("backup", copy, "--store", path)
    learning.kill()
    learning.communicate()
    back = contextgraph("backup", restored, "--store", copy)

    assert (made.code, again.code, back.code) == (0, 1, 0)
    assert made.records[0]["bytes"] == copy.stat().st_size
    assert f"{copy} exists; name a new file" in again.err
    assert healthy(restored)
    whole, later = SqliteStore(str(restored)), SqliteStore(str(path))
    ids = whole.runs.ids()
    assert RUNS <= len(ids) <= len(later.runs.ids())
    assert all(whole.runs.archived(one) == later.runs.archived(one) for one in ids)
    assert not [*tmp_path.glob("*.part*")]
    whole.close()
    later.close()


def salvaged(path: Path) -> tuple[list[dict[str, object]], list[str]]:
    """Return the report of `export --salvage`, and the ids of the runs in its archive."""
    archive = path.with_name("archive.jsonl")
    done = contextgraph("export", "--salvage", archive, "--store", path, "--json")
    into = path.with_name(f"{path.stem}-new.db")
    assert contextgraph("import", archive, "--as-owner", "--store", into).code == 0
    store = SqliteStore(str(into))
    ids = store.runs.ids()
    store.close()
    return done.records, list(ids)


@pytest.mark.parametrize(
    ("statement", "reason", "runs"),
    [
        # A row that cannot be read: the run is read again from its log.
        ("UPDATE fragment SET value = '{' WHERE key = 'run0007/0'", "made of its log", 39),
        ("UPDATE recovered SET value = '[{' WHERE source LIKE 'run0008%'", "run0008", 39),
        # The row of the run itself.
        ("UPDATE run SET value = '[' WHERE key = 'run0009'", "run0009", 38),
        ("UPDATE note SET value = '{' WHERE key = 'note_1'", "note_1", 39),
        # Definitions of a trigger, an index and a table.
        (SCHEMA.format("INSERT INTO checksum", "INSERT INTO chec", "checksum_met_insert"), "", 39),
        (SCHEMA.format("ON fragment", "OM fragment", "fragment_by_run_place"), "", 39),
        (SCHEMA.format("CREATE TABLE", "CREATE TABEL", "methodology"), "methodologies", 39),
    ],
)
def test_what_is_damaged_is_left_out_and_all_else_is_salvaged(
    sound: Path, tmp_path: Path, statement: str, reason: str, runs: int
) -> None:
    path = tmp_path / "memory.db"
    path.write_bytes(sound.read_bytes())
    with closing(sqlite3.connect(path)) as connection, connection:
        drop = "SELECT name FROM sqlite_schema WHERE type = 'trigger'"
        triggers = [] if "sqlite_schema" in statement else connection.execute(drop).fetchall()
        for (name,) in triggers:
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA writable_schema = ON")
        assert connection.execute(statement).rowcount == 1

    reported, ids = salvaged(path)

    assert len(ids) == runs
    assert reason in str(reported)
    asked = contextgraph("query", "--store", path, "--repo", "acme/part1", "--error", "boom")
    assert "Traceback" not in asked.err


@pytest.mark.parametrize("command", ["learn", "backup", "export"])
def test_files_of_a_memory_are_for_its_owner_only(tmp_path: Path, command: str) -> None:
    path = tmp_path / "new folder" / "memory.db"
    store = SqliteStore(str(path))
    store.runs.add([made_bundle(0)])
    if command == "backup":
        store.admin.back_up(path.with_name("copy.db"))
    elif command == "export":
        export_memory(store, path.with_name("archive.jsonl.zst"), "default")
        export_graph(store.admin.graph(), path.with_name("graph.json"), "json")
    modes = {stat.S_IMODE(one.stat().st_mode) for one in path.parent.iterdir()}
    store.close()
    assert modes == {0o600}
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

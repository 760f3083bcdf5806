"""Damage of a memory file: `doctor` finds what changes stored data, a backup is whole."""

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from contextgraph.model import Space
from contextgraph.store import SqliteStore
from contextgraph.vectors import Vector
from tests.acceptance.command_line import contextgraph
from tests.made_bundles import made_bundle

RUNS = 40
SPACE = "made/up@4"
LEARN = """
import sys
from itertools import count
from contextgraph.store import SqliteStore
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
            "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%_word' "
            "AND (name NOT LIKE '%_text_%' OR name LIKE '%_content') AND name <> 'sqlite_sequence'"
        ).fetchall()
        schema = "SELECT type, name, tbl_name, sql FROM sqlite_schema"
        selects = [schema, *(f'SELECT * FROM "{name.decode()}"' for (name,) in tables)]
        return [connection.execute(select).fetchall() for select in selects]


@given(data=st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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

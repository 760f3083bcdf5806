"""Memory files, and the errors for files that cannot be used."""

import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contextgraph.errors import MemoryNotFoundError, SchemaError, StoreError, StoreUnavailableError
from contextgraph.model import LearnStatus, Scope
from contextgraph.store.sqlite import SqliteStore, connections, schema
from contextgraph.store.sqlite.connections import store_errors
from contextgraph.store.tables import TABLES
from tests.made_bundles import made_bundle

# They look at how a memory is made.
pytestmark = pytest.mark.makes_tables

AS_ROOT = os.geteuid() == 0


def sqlite_exceptions() -> list[type[Exception]]:
    found = [sqlite3.Error, sqlite3.Warning]
    for known in found:
        found.extend(known.__subclasses__())
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "memory.db"


@pytest.fixture
def learned(path: Path) -> Path:
    store = SqliteStore(str(path))
    store.runs.add([made_bundle(0)])
    store.close()
    return path


def change(path: Path, statement: str) -> None:
    connection = sqlite3.connect(path)
    connection.create_function("row_hash", -1, lambda *row: 0)  # checksums stay as they are
    connection.executescript(statement)
    connection.close()


def test_making_a_store_touches_nothing(path: Path) -> None:
    SqliteStore(str(path)).close()
    assert not path.exists()


def test_learning_makes_the_folders_above_the_file(tmp_path: Path) -> None:
    path = tmp_path / "data" / "contextgraph" / "memory.db"
    store = SqliteStore(str(path))
    store.runs.add([made_bundle(0)])
    store.close()
    assert path.is_file()


@pytest.mark.parametrize("name", ["a memory?mode=ro#1.db", "50%.db", "Gedächtnis.db"])
def test_a_file_may_have_any_name(tmp_path: Path, name: str) -> None:
    store = SqliteStore(str(tmp_path / name))
    store.runs.add([made_bundle(0)])
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_a_reader_does_not_make_a_memory(path: Path) -> None:
    with pytest.raises(MemoryNotFoundError, match=r"no memory at .*memory.db; learn something"):
        SqliteStore(str(path), read_only=True).admin.counts()
    assert not path.exists()


def test_an_empty_file_is_not_a_memory_to_a_reader(path: Path) -> None:
    path.touch()
    with pytest.raises(MemoryNotFoundError, match="learn something first"):
        SqliteStore(str(path), read_only=True).admin.counts()
    assert path.stat().st_size == 0


def test_an_empty_file_becomes_a_memory(path: Path) -> None:
    path.touch()
    store = SqliteStore(str(path))
    store.runs.add([made_bundle(0)])
    assert store.runs.word_counts(()).total == 1
    store.close()


def test_a_reader_cannot_write(learned: Path) -> None:
    store = SqliteStore(str(learned), read_only=True)
    with pytest.raises(StoreError, match="for reading only"):
        store.runs.add([made_bundle(1)])
    assert store.runs.word_counts(()).total == 1
    store.close()


@pytest.mark.parametrize("other", [-1, 1])
@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_of_another_schema_is_left_alone(learned: Path, other: int, read_only: bool) -> None:
    version = schema.Schema(TABLES).version + other
    change(learned, f"PRAGMA user_version = {version}")
    before = learned.read_bytes()
    wanted = rf"has schema {version}, this version has .* export it with the version"
    store = SqliteStore(str(learned), read_only=read_only)
    with pytest.raises(SchemaError, match=wanted):
        store.admin.counts() if read_only else store.runs.add([made_bundle(1)])
    store.close()
    assert learned.read_bytes() == before


def test_a_file_that_is_not_a_database_is_refused(path: Path) -> None:
    path.write_text("dear diary, " * 1000)
    with pytest.raises(StoreError, match="is not a memory of contextgraph; name another file"):
        SqliteStore(str(path)).runs.add([made_bundle(0)])
    assert path.read_text().startswith("dear diary")


def test_a_database_of_another_program_is_refused(path: Path) -> None:
    change(path, "CREATE TABLE diary (entry TEXT)")
    before = path.read_bytes()
    with pytest.raises(StoreError, match="is a database of another program; name another file"):
        SqliteStore(str(path)).runs.add([made_bundle(0)])
    assert path.read_bytes() == before


def test_a_file_that_another_makes_meanwhile_is_a_memory(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sqlite3.connect(path) as empty:
        empty.execute("PRAGMA journal_mode = WAL")
    look = schema._is_empty

    def look_late(connection: sqlite3.Connection) -> bool:
        monkeypatch.setattr(schema, "_is_empty", look)
        SqliteStore(str(path)).runs.add([made_bundle(1)])
        return look(connection)

    monkeypatch.setattr(schema, "_is_empty", look_late)
    SqliteStore(str(path)).runs.add([made_bundle(2)])
    assert len(SqliteStore(str(path)).runs.ids()) == 2


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a folder; name a file"):
        SqliteStore(str(tmp_path)).admin.counts()


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailableError, match=r"file/memory.db cannot be opened"):
        SqliteStore(str(tmp_path / "file" / "memory.db")).admin.counts()


@pytest.mark.skipif(AS_ROOT, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written_is_named(path: Path) -> None:
    path.parent.chmod(0o500)
    with pytest.raises(StoreUnavailableError, match="check that its folder exists and may be"):
        SqliteStore(str(path)).runs.add([made_bundle(0)])


def test_damage_is_reported(learned: Path) -> None:
    content = bytearray(learned.read_bytes())
    content[4096 * 3 :] = bytes(len(content) - 4096 * 3)
    learned.write_bytes(content)
    store = SqliteStore(str(learned))
    with pytest.raises(StoreError, match="is damaged; restore it from a copy"):
        store.runs.add([made_bundle(1)])
    assert not all(check.ok for check in store.admin.health())
    store.close()


def test_a_stored_run_that_is_damaged_is_reported(learned: Path) -> None:
    change(learned, "UPDATE raw SET value = x'00'")
    store = SqliteStore(str(learned))
    with pytest.raises(StoreError, match="run run0000 is damaged"):
        store.runs.raw("run0000")
    store.close()


def test_a_full_disk_leaves_the_memory_as_it_was(
    learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = learned.stat().st_size // 4096
    limited = (*connections._PRAGMAS, f"PRAGMA max_page_count = {pages + 2}")
    monkeypatch.setattr(connections, "_PRAGMAS", limited)
    store = SqliteStore(str(learned))
    with pytest.raises(StoreUnavailableError, match="the disk is full; free some space"):
        all(store.runs.add([made_bundle(number)]) for number in range(1, 50))
    learned_by_now = store.runs.word_counts(()).total
    assert len(store.runs.ids()) == learned_by_now
    assert store.admin.counts().nodes["Fragment"] == 2 * learned_by_now
    assert store.recoveries.errors(Scope(), 1)
    store.close()


def test_a_locked_file_is_waited_for_and_then_named(
    learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_SECONDS", 0.05)
    holder = sqlite3.connect(learned, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    store = SqliteStore(str(learned))
    with pytest.raises(StoreUnavailableError, match="is locked by another process"):
        store.runs.add([made_bundle(1)])
    assert store.runs.word_counts(()).total == 1, "readers do not wait for writers"
    holder.execute("ROLLBACK")
    holder.close()
    assert store.runs.add([made_bundle(1)]) == ["created"]
    store.close()


@pytest.mark.parametrize("kind", sqlite_exceptions(), ids=lambda kind: kind.__name__)
def test_every_sqlite_exception_is_translated(kind: type[Exception]) -> None:
    refused = pytest.raises(StoreError, match=r"memory.db .*\(what sqlite says\)")
    with refused, store_errors("memory.db"):
        raise kind("what sqlite says")


@pytest.mark.parametrize(
    "use",
    [
        lambda store: store.admin.counts(),
        lambda store: store.runs.add([made_bundle(0)]),
        lambda store: store.admin.graph(),
        lambda store: store.runs.forget(["run0000"]),
    ],
)
def test_a_closed_store_says_so(path: Path, use: Callable[[SqliteStore], object]) -> None:
    store = SqliteStore(str(path))
    store.runs.add([made_bundle(0)])
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        use(store)


def test_within_a_snapshot_one_state_is_seen(learned: Path) -> None:
    store, other = SqliteStore(str(learned)), SqliteStore(str(learned))
    before = store.runs.ids()
    with store.snapshot(), store.snapshot():
        assert store.runs.ids() == before
        other.runs.add([made_bundle(99)])
        assert store.runs.ids() == before
        assert store.runs.word_counts(()).total == len(before)
    assert len(store.runs.ids()) == len(before) + 1


def test_a_snapshot_is_that_of_one_thread(learned: Path) -> None:
    store = SqliteStore(str(learned))
    before = store.runs.word_counts(()).total
    with store.snapshot(), ThreadPoolExecutor(1) as other:
        assert store.runs.word_counts(()).total == before
        other.submit(store.runs.add, [made_bundle(99)]).result()
        assert other.submit(store.runs.word_counts, ()).result().total == before + 1
        assert store.runs.word_counts(()).total == before


@pytest.mark.parametrize("address", ["memory.db", ":memory:"])
def test_nothing_is_written_within_a_snapshot(tmp_path: Path, address: str) -> None:
    store = SqliteStore(address if address == ":memory:" else str(tmp_path / address))
    with store.snapshot(), pytest.raises(StoreError, match="within a snapshot"):
        store.runs.add([made_bundle(1)])
    assert store.runs.add([made_bundle(1)]) == [LearnStatus.CREATED]


def test_closing_leaves_one_file(learned: Path) -> None:
    assert list(learned.parent.iterdir()) == [learned]


def test_health_of_a_sound_memory(learned: Path) -> None:
    store = SqliteStore(str(learned))
    checks = {check.name: check for check in store.admin.health()}
    assert list(checks) == ["reachable", "schema version", "integrity", "writable", "sizes"]
    assert all(check.ok for check in checks.values())
    assert "1 trajectory, 2 fragments" in checks["sizes"].detail
    store.close()


def test_health_of_a_file_that_may_only_be_read(
    learned: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite opens such a file for reading whatever the mode; root may write all."""
    connected = connections.Connections._connected
    monkeypatch.setattr(connections.Connections, "_connected", lambda one, _: connected(one, "ro"))
    store = SqliteStore(str(learned), read_only=True)
    failed = [check for check in store.admin.health() if not check.ok]
    assert [check.name for check in failed] == ["writable"]
    assert "may not be written" in failed[0].detail
    store.close()


def test_health_of_a_memory_of_another_version_names_one_failed_check(learned: Path) -> None:
    change(learned, "PRAGMA user_version = 999")
    store = SqliteStore(str(learned))
    (check,) = store.admin.health()
    assert (check.name, check.ok) == ("reachable", False)
    assert "export it with the version that wrote it" in check.detail
    store.close()


def test_health_finds_rows_that_belong_to_nothing(learned: Path) -> None:
    change(learned, "DELETE FROM raw")
    store = SqliteStore(str(learned))
    failed = [check for check in store.admin.health() if not check.ok]
    assert [check.name for check in failed] == ["integrity"]
    assert failed[0].remedy
    store.close()


@pytest.mark.parametrize("content", [None, b"dear diary, " * 1000])
def test_doctor_names_a_remedy_for_a_file_that_is_not_a_memory(
    path: Path, content: bytes | None
) -> None:
    if content is not None:
        path.write_bytes(content)
    first = SqliteStore(str(path)).admin.health()[0]
    assert not first.ok
    assert first.remedy
    assert path.exists() is (content is not None)


def test_asking_does_not_load_networkx(learned: Path) -> None:
    code = (
        "import sys; from contextgraph.store.sqlite import SqliteStore; "
        f"print(SqliteStore({str(learned)!r}).admin.counts(), 'networkx' in sys.modules)"
    )
    completed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert completed.stdout.strip().endswith("False")

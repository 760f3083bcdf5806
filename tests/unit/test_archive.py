"""Archives: a memory is the same when it is read back; damaged files are refused."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest
import zstandard

from contextgraph import AgentMemory
from contextgraph.cli.output import interrupted_by_termination
from contextgraph.errors import ReadError, StoreError
from contextgraph.knowledge.keyed import KeyedMemory
from contextgraph.learning.bundle import bundle_of
from contextgraph.model import (
    Exposure,
    Json,
    Methodology,
    MethodologyStatus,
    ResolvedBy,
    ShownItem,
    Source,
    Space,
    Vector,
    Verdict,
)
from contextgraph.store.archive import export_memory, import_memory
from contextgraph.store.sqlite import SqliteStore
from tests.builders import recovering_run
from tests.made_bundles import made_bundle

SPACE = Space("made/one@2", 3, 0.5)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


def advice(name: str, status: MethodologyStatus, superseded_by: str | None = None) -> Methodology:
    return Methodology(
        id=name,
        error_id="error1",
        keyword="",
        task_type=None,
        repo=None,
        situation="when it is not callable",
        strategy="call it",
        made_by="template/1",
        status=status,
        confidence=0.5,
        support=2,
        repositories=1,
        success_rate=1.0,
        avg_steps=2.0,
        frequency=2,
        sources=(Source("run0001", "run0001/1"), Source("run0004", "run0004/1")),
        superseded_by=superseded_by,
    )


def fill(store: SqliteStore) -> None:
    """Runs, advice with a tombstone, credit and vectors; all of it consolidated."""
    store.vectors.prepare(SPACE, b"model \x00\xff")
    store.vectors.switch(SPACE.name)
    for number in range(70):
        store.runs.add([made_bundle(number)])
    vector = Vector.of(SPACE.name, (1, 2))
    store.vectors.add(SPACE.name, {"run0001": vector})
    stays = advice("mth_1", MethodologyStatus.ACTIVE)
    gone = advice("mth_0", MethodologyStatus.RETIRED, "mth_1")
    store.methodologies.put([gone, stays], (), [ResolvedBy("error1", "mth_1", 1.0, 2.0, 2)], ())
    items = map(ShownItem, ["mth_1", "run0001/1"])
    store.exposures.add([Exposure.of("ctx_1", items, NOW, "error1")])
    store.exposures.report("ctx_1", True)
    store.exposures.decide([Verdict("mth_1", False, NOW)])
    store.admin.mark_consolidated(store.admin.unconsolidated().revision)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("filled") / "memory.db"
    with closing(SqliteStore(str(path))) as store:
        fill(store)
    return path


@pytest.fixture
def store(filled: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqliteStore]:
    copied = shutil.copy(filled, tmp_path_factory.mktemp("copied"))
    with closing(SqliteStore(str(copied))) as store:
        yield store


@pytest.fixture
def other() -> Iterator[SqliteStore]:
    store = SqliteStore(":memory:", tenant="other")
    yield store
    store.close()


def content(store: SqliteStore) -> list[object]:
    runs = store.runs.ids()
    return [
        store.admin.counts(),
        [store.runs.archived(run) for run in runs],
        store.methodologies.get(store.methodologies.ids()),
        store.admin.explain("mth_1"),
        store.exposures.record(["mth_1", "run0001/1"]),
        [*store.exposures.all()],
        store.vectors.active_space(),
        store.vectors.space_model(SPACE.name),
        store.admin.unconsolidated().trajectories,
        store.admin.unconsolidated().error_ids,
    ]


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.jsonl.zst"])
def test_an_exported_memory_is_imported_unchanged(
    store: SqliteStore, other: SqliteStore, tmp_path: Path, name: str
) -> None:
    done = export_memory(store, tmp_path / name, "default")

    assert (done.runs, done.methodologies, done.exposures) == (70, 2, 1)
    assert import_memory(other, tmp_path / name).created == 70
    assert content(other) == content(store)


def test_importing_again_changes_nothing(
    store: SqliteStore, other: SqliteStore, tmp_path: Path
) -> None:
    export_memory(store, tmp_path / "a.jsonl", "default")
    import_memory(other, tmp_path / "a.jsonl")

    again = import_memory(other, tmp_path / "a.jsonl")

    assert (again.created, again.unchanged) == (0, 70)
    assert content(other) == content(store)


def test_an_interrupted_import_continues_when_repeated(
    store: SqliteStore, other: SqliteStore, tmp_path: Path
) -> None:
    export_memory(store, tmp_path / "a.jsonl", "default")

    def stop(done: int, total: int) -> None:
        assert total == 70
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_memory(other, tmp_path / "a.jsonl", progress=stop)
    assert 0 < len(other.runs.ids()) < 70
    import_memory(other, tmp_path / "a.jsonl")
    assert content(other) == content(store)


def test_runs_of_its_own_stay_to_be_consolidated(
    store: SqliteStore, other: SqliteStore, tmp_path: Path
) -> None:
    export_memory(store, tmp_path / "a.jsonl", "default")
    other.runs.add([made_bundle(99)])
    import_memory(other, tmp_path / "a.jsonl")
    assert other.admin.unconsolidated().trajectories == 71


def test_an_export_that_is_terminated_leaves_no_file(store: SqliteStore, tmp_path: Path) -> None:
    def terminate(done: int, total: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt), interrupted_by_termination():
        export_memory(store, tmp_path / "a.jsonl.zst", "default", progress=terminate)
    assert not [*tmp_path.iterdir()]


def test_vectors_can_be_left_out(store: SqliteStore, other: SqliteStore, tmp_path: Path) -> None:
    export_memory(store, tmp_path / "a.jsonl", "default", vectors=False)
    import_memory(other, tmp_path / "a.jsonl")

    assert other.vectors.active_space() is None
    assert len(other.vectors.texts_to_embed(100)) == 70


def test_a_memory_keeps_its_own_space(
    store: SqliteStore, other: SqliteStore, tmp_path: Path
) -> None:
    other.vectors.prepare(Space("made/two@3", 0), None)
    other.vectors.switch("made/two@3")
    export_memory(store, tmp_path / "a.jsonl", "default")

    done = import_memory(other, tmp_path / "a.jsonl")

    assert done.vectors_of == SPACE.name
    assert len(other.vectors.texts_to_embed(100, "made/two@3")) == 70


def _cut(lines: list[bytes]) -> list[bytes]:
    return lines[:-2]


def _torn(lines: list[bytes]) -> list[bytes]:
    return [*lines[:40], lines[40][:-9] + b"\n", *lines[41:]]


def _retyped(lines: list[bytes]) -> list[bytes]:
    return [*lines[:40], lines[40].replace(b'"verified":true', b'"verified":"yes"'), *lines[41:]]


def _lost(lines: list[bytes]) -> list[bytes]:
    return [*lines[:40], *lines[41:]]


def _strange(lines: list[bytes]) -> list[bytes]:
    return [*lines[:40], b'{"kind":"surprise"}\n', *lines[40:]]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_cut, r"line 76.*cut off"),
        (_torn, r"line 41.*not JSON"),
        (_retyped, r"line 41.*bundle\.recovered\[0\]\.verified: Expected `bool`, got `str`"),
        (_lost, r"line 77.*76 lines came before the last one, not 77"),
        (_strange, r"line 41.*unknown kind"),
    ],
)
def test_nothing_of_a_damaged_file_is_imported(
    store: SqliteStore,
    other: SqliteStore,
    tmp_path: Path,
    damage: Callable[[list[bytes]], list[bytes]],
    message: str,
) -> None:
    path = tmp_path / "a.jsonl"
    export_memory(store, path, "default")
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))

    with pytest.raises(ReadError, match=rf"a\.jsonl: {message}"):
        import_memory(other, path)
    assert other.admin.counts().nodes["Trajectory"] == 0
    assert other.vectors.active_space() is None


@pytest.mark.parametrize(
    ("first", "message"),
    [
        (b'{"format":"contextgraph-memory-archive","version":1}', "the version that wrote it"),
        (b'{"format":"contextgraph-memory-archive","version":4}', "the version that wrote it"),
        (b'{"source_format":"made"}', "is not the first line of"),
        (b"\x00\x01", "is not JSON"),
    ],
)
def test_other_files_are_refused(
    other: SqliteStore, tmp_path: Path, first: bytes, message: str
) -> None:
    (tmp_path / "a.jsonl").write_bytes(first + b"\n")

    with pytest.raises(ReadError, match=message):
        import_memory(other, tmp_path / "a.jsonl")


def test_the_facts_that_an_archive_of_version_2_lacks_are_read_from_its_logs(
    other: SqliteStore, tmp_path: Path
) -> None:
    memory = SqliteStore(str(tmp_path / "given.db"))
    bundle = bundle_of(recovering_run(1), datetime(2026, 1, 1, tzinfo=UTC))
    memory.runs.add([bundle])
    path = tmp_path / "a.jsonl"
    export_memory(memory, path, "default")
    memory.close()
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    lines[0]["version"] = 2
    assert bundle.facts.commands
    assert lines[1]["bundle"].pop("facts")
    path.write_bytes(b"".join(orjson.dumps(line) + b"\n" for line in lines))

    import_memory(other, path)

    run = bundle.trajectory.id
    assert other.runs.facts([run]) == {run: bundle.facts}


TOKEN = "ghp_" + "Ab3dEf6hIj9lMn2pQr5tUv8xYz1B3D5F7H9J"


def test_an_archive_of_another_is_a_contribution(tmp_path: Path) -> None:
    path, forged = tmp_path / "team.jsonl", tmp_path / "forged.jsonl.zst"
    with AgentMemory.open(str(tmp_path / "given.db")) as given:
        given.learn([recovering_run(1), recovering_run(2)])
        given.notes.remember("Build with make", repo="acme/1", pinned=True)
        given.store.exposures.decide([Verdict("source:ann", True, NOW)])
        given.export(path)
    text = path.read_bytes().replace(b"No module named", TOKEN.encode() + b" No module named")
    forged.write_bytes(zstandard.compress(text.replace(b"pip install", b"pip install -i evil")))
    with AgentMemory.open(str(tmp_path / "own.db")) as own:
        own.learn(recovering_run(3), source="ann")
        done = own.import_archive(forged)
        assert (done.created, done.notes, done.left_out > 0) == (2, 1, True)
        assert {source.name for source in own.sources()} == {"ann", "archive:forged"}
        assert all(source.trusted for source in own.sources())
        assert not any(note.pinned for note in own.notes.of())
        own.export(tmp_path / "all.jsonl")
    assert TOKEN not in (tmp_path / "all.jsonl").read_text()


@pytest.mark.parametrize("sources", [("", ""), ("ann", "bob")])
def test_an_archive_that_comes_twice_is_one_source(
    tmp_path: Path, sources: tuple[str, str]
) -> None:
    paths = tmp_path / "team.jsonl", tmp_path / "again.jsonl"
    with AgentMemory.open(str(tmp_path / "given.db")) as given:
        given.learn([recovering_run(1), recovering_run(2)])
        given.export(paths[0])
    paths[1].write_bytes(paths[0].read_bytes())
    with AgentMemory.open(":memory:") as own:
        given_as = zip(paths, sources, strict=True)
        done = [own.import_archive(path, source=source) for path, source in given_as]
        assert [(one.created, one.unchanged) for one in done] == [(2, 0), (0, 2)]
        assert len([source for source in own.sources() if source.runs]) == 1


def test_a_bomb_in_place_of_an_archive_is_given_up(other: SqliteStore, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl.zst"
    path.write_bytes(zstandard.compress(b" " * (300 << 20)))
    with pytest.raises(ReadError, match="line 1: longer than 256 MiB"):
        import_memory(other, path)


def test_a_file_that_cannot_be_written_is_an_error(store: SqliteStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"absent/a\.jsonl cannot be written"):
        export_memory(store, tmp_path / "absent" / "a.jsonl", "default")


def test_an_export_that_fails_keeps_the_old_file(store: SqliteStore, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("before")

    def fail(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_memory(store, tmp_path / "a.jsonl", "default", progress=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
    assert (tmp_path / "a.jsonl").read_text() == "before"


KEPT = Path(__file__).parents[1] / "data" / "archive"


def records(path: Path) -> list[dict[str, Json]]:
    with zstandard.open(path, "rb") as file:
        return [orjson.loads(line) for line in file.read().splitlines()]


def has(new: Json, old: Json) -> bool:
    """Return True where *new* says all that *old* does, times in any form, False by an absence."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(has(new.get(key, False), old[key]) for key in old)
    if isinstance(old, list):
        return isinstance(new, list) and len(new) == len(old) and all(map(has, new, old))
    if isinstance(old, str) and isinstance(new, str) and old != new:
        return datetime.fromisoformat(old) == datetime.fromisoformat(new)
    return type(new) is type(old) and new == old


def test_an_archive_written_before_structs_is_imported_without_loss(
    other: SqliteStore, tmp_path: Path
) -> None:
    done = import_memory(other, KEPT / "memory.jsonl.zst")
    export_memory(other, tmp_path / "again.jsonl.zst", "default")
    kept, again = records(KEPT / "memory.jsonl.zst"), records(tmp_path / "again.jsonl.zst")

    assert (done.created, done.exposures, done.notes) == (3, 1, 14)
    assert [line.get("kind") for line in again] == [line.get("kind") for line in kept]
    differing = [pair for pair in zip(again[1:], kept[1:], strict=True) if not has(*pair)]
    assert differing == []
    pinned = [note.content for note in other.notes.all() if note.pinned]
    assert pinned == ["run the tests with `python -m pytest lib`"]


def test_keyed_files_written_before_structs_are_read(tmp_path: Path) -> None:
    shutil.copytree(KEPT / "keyed", tmp_path / "keyed")
    keyed = KeyedMemory(tmp_path / "keyed")
    assert keyed.keys() == ["/build/command", "/build/folder"]
    known = keyed.get("/build/command")
    assert known is not None
    assert known.content == {"run": ["make", "all"], "seconds": 3.5}
    assert keyed.set_memory("/build/command", None, "user:ann").status == "removed"
    assert KeyedMemory(tmp_path / "keyed").keys() == ["/build/folder"]


def test_keyed_entries_are_their_owners_and_go_with_their_source(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    read_at = {"kind": "web", "name": "x", "retrieved_at": "2026-01-01", "locator": "y"}
    with AgentMemory.open(str(tmp_path / "own.db")) as own:
        own.learn(recovering_run(1), source="eve")
        own.keyed.set_memory("/a", 1, "user")
        own.keyed.set_memory("/b", 2, "agent:bob")
        own.keyed.set_memory("/c", 3, {**read_at, "by": "agent:bob"})
        assert own.export(path).keyed == 3
        with AgentMemory.open(":memory:") as other:
            assert other.import_archive(path).left_out >= 3
        with AgentMemory.open(":memory:") as other:
            done = other.import_archive(path, as_owner=True)
            assert (done.keyed, done.keyed_left_out) == (0, 3)
        own.forget(sources=["eve"])
        own.keyed.set_memory("/a", None, "user")
        assert own.import_archive(path, as_owner=True).keyed == 0  # it was removed since
        own.forget(sources=["bob"])
    with AgentMemory.open(str(tmp_path / "other.db")) as other:
        assert other.import_archive(path, as_owner=True).keyed == 1
        assert other.keyed.keys() == ["/a"]

"""A memory in a file of JSON lines: the same when it is read back, refused when it is damaged."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextgraph.archive import export_memory, import_memory
from contextgraph.errors import ReadError, StoreError
from contextgraph.model import Methodology, MethodologyStatus, ResolvedBy, RunVectors, Source, Space
from contextgraph.store import NetworkxStore
from contextgraph.vectors import Vector
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


def fill(store: NetworkxStore) -> None:
    """Runs, advice with a tombstone, credit and vectors; all of it consolidated."""
    store.prepare_space(SPACE, b"model \x00\xff")
    store.switch_space(SPACE.name)
    for number in range(70):
        store.add_bundles([made_bundle(number)])
    vector = Vector.of(SPACE.name, (1, 2))
    store.add_vectors({"run0001": RunVectors(SPACE.name, vector, (None, vector))})
    stays = advice("mth_1", MethodologyStatus.ACTIVE)
    gone = advice("mth_0", MethodologyStatus.RETIRED, "mth_1")
    store.put_methodologies([gone, stays], (), [ResolvedBy("error1", "mth_1", 1.0, 2.0, 2)], ())
    store.add_methodology_vectors(SPACE.name, {"mth_1": vector})
    store.add_exposure("ctx_1", ["mth_1", "run0001/1"], NOW, "error1")
    store.report_outcome("ctx_1", True)
    store.mark_consolidated(store.unconsolidated().revision)


@pytest.fixture
def store() -> Iterator[NetworkxStore]:
    store = NetworkxStore(":memory:")
    fill(store)
    yield store
    store.close()


@pytest.fixture
def other() -> Iterator[NetworkxStore]:
    store = NetworkxStore(":memory:", tenant="other")
    yield store
    store.close()


def content(store: NetworkxStore) -> list[object]:
    runs = store.trajectory_ids()
    return [
        store.counts(),
        [store.archived_run(run) for run in runs],
        store.methodologies_of(store.methodology_ids()),
        store.resolved_by("mth_1"),
        store.credit(["mth_1", "run0001/1"]),
        store.exposures("", 50),
        store.active_space(),
        store.space_model(SPACE.name),
        store.methodology_vectors(SPACE.name, ["mth_1"]),
        store.unconsolidated().trajectories,
        store.unconsolidated().error_ids,
    ]


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.jsonl.zst"])
def test_what_is_exported_is_imported_as_it_was(
    store: NetworkxStore, other: NetworkxStore, tmp_path: Path, name: str
) -> None:
    done = export_memory(store, tmp_path / name, "default")

    assert (done.runs, done.methodologies, done.exposures) == (70, 2, 1)
    assert import_memory(other, tmp_path / name).created == 70
    assert content(other) == content(store)


def test_importing_again_changes_nothing(
    store: NetworkxStore, other: NetworkxStore, tmp_path: Path
) -> None:
    export_memory(store, tmp_path / "a.jsonl", "default")
    import_memory(other, tmp_path / "a.jsonl")

    again = import_memory(other, tmp_path / "a.jsonl")

    assert (again.created, again.unchanged) == (0, 70)
    assert content(other) == content(store)


def test_importing_goes_on_where_it_was_stopped(
    store: NetworkxStore, other: NetworkxStore, tmp_path: Path
) -> None:
    export_memory(store, tmp_path / "a.jsonl", "default")

    def stop(done: int, total: int) -> None:
        assert total == 70
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        import_memory(other, tmp_path / "a.jsonl", progress=stop)
    assert 0 < len(other.trajectory_ids()) < 70
    import_memory(other, tmp_path / "a.jsonl")
    assert content(other)[:-2] == content(store)[:-2]


def test_vectors_can_be_left_out(
    store: NetworkxStore, other: NetworkxStore, tmp_path: Path
) -> None:
    export_memory(store, tmp_path / "a.jsonl", "default", vectors=False)
    import_memory(other, tmp_path / "a.jsonl")

    assert other.active_space() is None
    assert len(other.texts_to_embed(100)) == 70


def test_a_memory_keeps_its_own_space(
    store: NetworkxStore, other: NetworkxStore, tmp_path: Path
) -> None:
    other.prepare_space(Space("made/two@3", 0), None)
    other.switch_space("made/two@3")
    export_memory(store, tmp_path / "a.jsonl", "default")

    done = import_memory(other, tmp_path / "a.jsonl")

    assert done.vectors_of == SPACE.name
    assert len(other.texts_to_embed(100, "made/two@3")) == 70


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
    ("damage", "said"),
    [
        (_cut, r"line 75.*cut off"),
        (_torn, r"line 41.*no JSON"),
        (_retyped, r"line 41.*bundle\.recovered\[0\]\.verified is not of type bool"),
        (_lost, r"line 76.*75 lines came before the last one, not 76"),
        (_strange, r"line 41.*no kind"),
    ],
)
def test_of_a_damaged_file_nothing_is_imported(
    store: NetworkxStore,
    other: NetworkxStore,
    tmp_path: Path,
    damage: Callable[[list[bytes]], list[bytes]],
    said: str,
) -> None:
    path = tmp_path / "a.jsonl"
    export_memory(store, path, "default")
    path.write_bytes(b"".join(damage(path.read_bytes().splitlines(keepends=True))))

    with pytest.raises(ReadError, match=rf"a\.jsonl: {said}"):
        import_memory(other, path)
    assert other.counts().nodes["Trajectory"] == 0
    assert other.active_space() is None


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (b'{"format":"contextgraph-memory-archive","version":2}', "upgrade contextgraph-memory"),
        (b'{"source_format":"made"}', "is not the first line of"),
        (b"\x00\x01", "is no JSON"),
    ],
)
def test_what_is_no_archive_of_this_version_is_refused(
    other: NetworkxStore, tmp_path: Path, first: bytes, said: str
) -> None:
    (tmp_path / "a.jsonl").write_bytes(first + b"\n")

    with pytest.raises(ReadError, match=said):
        import_memory(other, tmp_path / "a.jsonl")


def test_a_file_that_cannot_be_written_is_named(store: NetworkxStore, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=r"absent/a\.jsonl cannot be written"):
        export_memory(store, tmp_path / "absent" / "a.jsonl", "default")


def test_an_export_that_fails_leaves_the_file_of_before(
    store: NetworkxStore, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").write_text("before")

    def fail(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_memory(store, tmp_path / "a.jsonl", "default", progress=fail)
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
    assert (tmp_path / "a.jsonl").read_text() == "before"

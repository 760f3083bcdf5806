"""Vectors of notes in PostgreSQL and Qdrant: outages and tenants."""

import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

from contextgraph import AgentMemory
from contextgraph.errors import EmbeddingError, SettingsError, StoreUnavailableError
from contextgraph.model import Note, NoteScope, RawTrajectory, State, Vector
from contextgraph.store.memory_store import NoteStore
from contextgraph.store.protocols import Indexed, VectorIndex
from contextgraph.store.sqlite import SqliteStore
from contextgraph.store.vector_index import LOCAL, IndexedNotes, PostgresIndex, QdrantIndex
from tests.postgres import running

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOWHERE = "127.0.0.1:1"
SPACE = "made/up@3"
UP = Vector.of(SPACE, [0.0, 0.0, 1.0])


def note(number: int, content: str = "run the tests with tox") -> Note:
    return Note(f"note_{number}", content, "acme/shop", "user", NOW)


def indexed(number: int, vector: Vector | None = UP, repo: str = "acme/shop") -> Indexed:
    return Indexed(f"note_{number}", repo, "digest", vector)


@pytest.fixture(params=["postgres", "qdrant"])
def index(request: pytest.FixtureRequest) -> Iterator[VectorIndex]:
    """An index of a tenant of its own."""
    made: VectorIndex
    if request.param == "postgres":
        made = PostgresIndex(request.getfixturevalue("postgres"), uuid4().hex)
    else:
        made = QdrantIndex(LOCAL, uuid4().hex)
    yield made
    made.close()


@pytest.fixture
def stored() -> NoteStore:
    """A store with the notes 1 and 2."""
    notes = SqliteStore(":memory:").notes
    notes.change(new=[note(1), note(2)])
    return notes


def test_vectors_are_stored_searched_counted_and_deleted(index: VectorIndex) -> None:
    index.upsert(SPACE, [indexed(1), indexed(2, Vector.of(SPACE, [0.0, 1.0, 1.0]), "other")])
    assert index.count() == 2
    assert [hit.id for hit in index.search(UP, None, 5)] == ["note_1", "note_2"]
    (hit,) = index.search(UP, ["other"], 5)
    assert (hit.id, hit.digest, round(hit.cosine, 3)) == ("note_2", "digest", 0.707)
    index.upsert(SPACE, [indexed(1, None)])
    assert [hit.id for hit in index.search(UP, None, 5)] == ["note_2"]
    index.delete(["note_2"])
    assert index.count() == 0


def test_an_index_that_was_emptied_is_filled_again(index: VectorIndex, stored: NoteStore) -> None:
    notes = IndexedNotes(stored, index)
    assert {*notes.texts_to_embed(9, SPACE)} == {"note_1", "note_2"}
    notes.add(SPACE, {"note_1": UP, "note_2": None})
    assert notes.texts_to_embed(9, SPACE) == {}
    assert notes.nearest([UP], NoteScope(), 9) == [{"note_1": 1.0}]
    index.upsert(SPACE, [indexed(1, None)])
    again = IndexedNotes(stored, index)
    assert {*again.texts_to_embed(9, SPACE)} == {"note_1", "note_2"}
    # Without the index the notes wait for vectors in the store.
    assert {*stored.texts_to_embed(9, SPACE)} == {"note_1", "note_2"}


def test_a_note_without_words_does_not_wait(index: VectorIndex, stored: NoteStore) -> None:
    notes = IndexedNotes(stored, index)
    notes.add(SPACE, {"note_1": None})
    assert [*notes.texts_to_embed(9, SPACE)] == ["note_2"]


def test_an_index_that_was_emptied_is_filled_again_though_a_note_was_added_first(
    index: VectorIndex, stored: NoteStore
) -> None:
    IndexedNotes(stored, index).add(SPACE, {"note_1": UP, "note_2": UP})
    index.delete(["note_1", "note_2"])
    again = IndexedNotes(stored, index)
    again.add(SPACE, {"note_2": UP})
    assert [*again.texts_to_embed(9, SPACE)] == ["note_1"]


def test_a_note_with_another_text_waits_to_be_embedded_again(
    index: VectorIndex, stored: NoteStore
) -> None:
    notes = IndexedNotes(stored, index)
    notes.add(SPACE, {"note_1": UP, "note_2": UP})
    notes.change(new=[note(1, "run the tests with nox")])
    assert [*notes.nearest([UP], NoteScope(), 9)[0]] == ["note_2"]
    assert [*notes.texts_to_embed(9, SPACE)] == ["note_1"]


def test_what_a_stopped_server_did_not_index_waits() -> None:
    folder = tempfile.TemporaryDirectory(prefix="contextgraph-postgres-")
    with folder as name:
        data = Path(name) / "data"
        with running(data) as address:
            index = PostgresIndex(address)
            notes = IndexedNotes(SqliteStore(":memory:").notes, index)
            notes.change(new=[note(1), note(2)])
            notes.add(SPACE, {"note_1": UP})
        for attempt in (
            lambda: notes.add(SPACE, {"note_2": UP}),
            lambda: notes.nearest([UP], NoteScope(), 5),
        ):
            with pytest.raises(EmbeddingError, match="cannot be reached"):
                attempt()
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            notes.delete(["note_1"])
        assert [*notes.get(["note_1"])] == ["note_1"]
        with running(data) as again:
            assert again == address
            assert [*notes.texts_to_embed(5, SPACE)] == ["note_2"]
            assert [*notes.nearest([UP], NoteScope(), 5)[0]] == ["note_1"]
            index.close()


def test_a_connection_that_was_ended_is_opened_again(postgres: str) -> None:
    index = PostgresIndex(postgres, uuid4().hex)
    index.upsert(SPACE, [indexed(1)])
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
    index.upsert(SPACE, [indexed(2)])
    assert index.count() == 2
    index.close()


def test_vectors_of_any_size_are_searched(postgres: str) -> None:
    index = PostgresIndex(postgres, uuid4().hex)
    for dimensions in (3, 3_072, 5_000):
        space = f"made/up@{dimensions}"
        vector = Vector.of(space, [1.0] * dimensions)
        index.upsert(space, [indexed(dimensions, vector)])
        (hit,) = index.search(vector, None, 5)
        assert (hit.id, round(hit.cosine, 2)) == (f"note_{dimensions}", 1.0)
    index.close()


def test_tenants_share_a_database_and_nothing_else(postgres: str) -> None:
    one, other = PostgresIndex(postgres, uuid4().hex), PostgresIndex(postgres, uuid4().hex)
    one.upsert(SPACE, [indexed(1)])
    other.upsert(SPACE, [indexed(1)])
    one.delete(["note_1"])
    assert (one.count(), other.count()) == (0, 1)
    one.close()
    other.close()


@pytest.mark.parametrize(
    "away", [f"postgresql://ada:secret@{NOWHERE}/notes", f"qdrant+http://{NOWHERE}"]
)
def test_notes_are_stored_and_found_by_words_while_the_index_is_away(
    away: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NOTES", away)
    with AgentMemory.open(str(tmp_path / "memory.db"), embedder="tfidf") as memory:
        memory.notes.remember("CI uses Python 3.12", repo="acme/shop")
        runs = [
            RawTrajectory("generic", f"a-{number}", "acme/shop", f"Totals of table {number}")
            for number in range(16)
        ]
        memory.learn(runs)
        assert len(memory.store.runs.ids()) == 16
        (found,) = memory.notes.recall("which python does CI use", repo="acme/shop")
        assert found.note.content == "CI uses Python 3.12"
        assert NOWHERE in caplog.text
        assert "secret" not in caplog.text
        assert memory.store.vectors.active_space() is not None
        state = State(repo="acme/shop", task_description="Totals of table 3")
        assert memory.query(state).degraded == ()
        (check,) = (one for one in memory.health() if one.name == "notes")
        assert (check.ok, NOWHERE in check.detail) == (False, True)


def test_a_memory_searches_its_notes_in_the_database(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NOTES", postgres)
    with AgentMemory.open(str(tmp_path / "memory.db"), tenant=uuid4().hex) as memory:
        memory.learn(
            [
                RawTrajectory("generic", f"a-{number}", "acme/shop", f"Totals of table {number}")
                for number in range(16)
            ]
        )
        memory.notes.remember("Totals of a table are rounded", repo="acme/shop")
        (check,) = (one for one in memory.health() if one.name == "notes")
        assert check.detail.startswith("1 note, 1 vector at postgresql://")
        asked = "how are totals of a table rounded"
        (found,) = memory.notes.recall(asked, repo="acme/shop", strategy="notes")
        assert found.why["meaning"] > 0


def test_other_addresses_of_notes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NOTES", "mysql://ada:secret@localhost/notes")
    with pytest.raises(SettingsError, match="must begin with postgresql://"):
        AgentMemory.open(":memory:")

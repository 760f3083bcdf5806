"""Notes in PostgreSQL and Qdrant: outages, writers at once, tenants, and the settings."""

import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import psycopg
import pytest

from contextgraph import AgentMemory
from contextgraph.errors import SettingsError, StoreUnavailableError
from contextgraph.model import (
    Note,
    NoteScope,
    RawTrajectory,
    State,
)
from contextgraph.store.postgres import PostgresNotes
from contextgraph.vectors import Vector
from tests.postgres import running

NOW = datetime(2026, 3, 1, tzinfo=UTC)
NOWHERE = "127.0.0.1:1"


def note(number: int, content: str = "run the tests with tox") -> Note:
    return Note(f"note_{number}", content, "acme/shop", "user", NOW)


@pytest.fixture
def notes(postgres: str, request: pytest.FixtureRequest) -> Iterator[PostgresNotes]:
    notes = PostgresNotes(postgres, request.node.name)
    yield notes
    notes.close()


def test_nothing_is_acknowledged_that_a_stopped_server_did_not_store() -> None:
    folder = tempfile.TemporaryDirectory(prefix="contextgraph-postgres-")
    with folder as name:
        data = Path(name) / "data"
        with running(data) as address:
            notes = PostgresNotes(address)
            notes.change(new=[note(1)])
        for attempt in (lambda: notes.change(new=[note(2)]), lambda: notes.get(["note_1"])):
            with pytest.raises(StoreUnavailableError, match="cannot be reached"):
                attempt()
        with running(data) as again:
            assert again == address
            assert [*notes.get(["note_1", "note_2"])] == ["note_1"]
            notes.change(new=[note(2)])
            assert len([*notes.all()]) == 2
            notes.close()


def test_a_connection_that_was_ended_is_opened_again(postgres: str, notes: PostgresNotes) -> None:
    notes.change(new=[note(1)])
    with psycopg.connect(postgres, autocommit=True) as other:
        other.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
            " AND backend_type = 'client backend'"
        )
    notes.change(new=[note(2)])
    assert len([*notes.all()]) == 2


def test_changes_of_many_writers_are_all_kept(postgres: str, notes: PostgresNotes) -> None:
    notes.change(new=[note(1), note(2)])

    def confirm(_: int) -> None:
        writer = PostgresNotes(postgres, "test_changes_of_many_writers_are_all_kept")
        for _ in range(10):
            writer.change(
                ["note_2", "note_1"], lambda one: replace(one, confirmed=one.confirmed + 1)
            )
        writer.close()

    with ThreadPoolExecutor(4) as pool:
        [*pool.map(confirm, range(4))]
    assert [one.confirmed for one in notes.all()] == [40, 40]


def test_a_failed_change_stores_nothing(notes: PostgresNotes) -> None:
    notes.change(new=[note(1)])

    def fail(_: Note) -> Note:
        raise LookupError

    with pytest.raises(LookupError):
        notes.change(["note_1"], fail, new=[note(2)])
    assert [one.id for one in notes.all()] == ["note_1"]


def test_vectors_of_any_size_are_searched(notes: PostgresNotes) -> None:
    for dimensions in (3, 3_072, 5_000):
        space = f"made/up@{dimensions}"
        notes.change(new=[note(dimensions)])
        notes.add(space, {f"note_{dimensions}": Vector.of(space, [1.0] * dimensions)})
        found = notes.nearest(Vector.of(space, [1.0] * dimensions), NoteScope(), 5)
        assert found == {f"note_{dimensions}": pytest.approx(1.0, abs=1e-3)}


def test_tenants_share_a_database_and_nothing_else(postgres: str) -> None:
    one, other = PostgresNotes(postgres, "one"), PostgresNotes(postgres, "other")
    one.change(new=[note(1)])
    other.change(new=[note(1, "deploy on Monday")])
    assert one.delete(["note_1"]) == 1
    assert [found.content for found in other.all()] == ["deploy on Monday"]
    other.delete(["note_1"])
    one.close()
    other.close()


@pytest.mark.parametrize(
    "away", [f"postgresql://ada:secret@{NOWHERE}/notes", f"qdrant+http://{NOWHERE}"]
)
def test_runs_are_learned_while_notes_are_away(
    away: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NOTES", away)
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        with pytest.raises(StoreUnavailableError, match=NOWHERE) as caught:
            memory.notes.remember("CI uses Python 3.12")
        assert "secret" not in str(caught.value)
        run = memory.learn(RawTrajectory("generic", "a", "acme/shop", "Totals are wrong"))
        assert memory.store.runs.ids() == [run.trajectory_id]
        assert "notes: " in memory.playbook("acme/shop").degraded
        context = memory.query(State(repo="acme/shop", task_description="Totals"), degrade=True)
        assert any(NOWHERE in one for one in context.degraded)
        assert memory.get_stats().notes is None
        (check,) = (one for one in memory.health() if one.name == "notes")
        assert (check.ok, NOWHERE in check.detail) == (False, True)


def test_a_memory_keeps_its_notes_in_the_database(
    postgres: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NOTES", postgres)
    for folder in ("a", "b"):  # two memories of one team
        with AgentMemory.open(str(tmp_path / f"{folder}.db"), tenant="team") as memory:
            source = f"agent:{folder}"
            memory.notes.remember("CI uses Python 3.12", repo="acme/shop", source=source)
            (found,) = memory.notes.recall("which python does CI use", repo="acme/shop")
            assert found.note.confirmed == (folder == "b")


def test_other_addresses_of_notes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NOTES", "mysql://ada:secret@localhost/notes")
    with pytest.raises(SettingsError, match="must begin with postgresql://"):
        AgentMemory.open(":memory:")

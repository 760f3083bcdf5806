"""Pages of the console, and answers, read as much of a large memory as of a small one."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient

from benchmarks.console import addresses
from benchmarks.corpus import bundles, runs
from contextgraph import AgentMemory
from contextgraph.config import Settings
from contextgraph.console.routes import add_pages
from contextgraph.model import (
    Exposure,
    LessonStatus,
    Note,
    NoteKind,
    RunFilter,
    Scope,
    SessionFilter,
    ShownItem,
)
from contextgraph.service.app import create_app
from contextgraph.service.service import Limits
from contextgraph.store.sqlite import SqliteStore

# So many that an error was met by more runs than a page looks at.
_RUNS = 500
# These sort, search or count all, or list what is behind so many others: a few bytes of each run.
_READ_ALL = ("sort=", "text=", "search")
_COUNTED = "/pages/runs"


def filled(store: Path, count: int) -> None:
    """A memory of *count* runs, to each of which advice was shown."""
    with AgentMemory.open(str(store)) as memory:
        memory.store.runs.add([*islice(bundles(runs(None)[:4], 10**9), count)])
        (tally,) = memory.store.recoveries.errors(Scope(), 1)
        now = datetime.now(UTC) - timedelta(days=30)
        memory.store.exposures.add(
            [
                Exposure.of(f"ctx_{n}", [ShownItem(f"adv_{n}")], now, tally.error.id)
                for n in range(count)
            ]
        )
        # Else the service would consolidate meanwhile.
        memory.store.admin.mark_consolidated(memory.store.admin.unconsolidated().revision)


@contextmanager
def counted(patch: pytest.MonkeyPatch) -> Iterator[Counter[str]]:
    """Count tens of the SQLite instructions of connections that the block opens, as "now"."""
    executed = Counter[str]()

    def connected(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection: sqlite3.Connection = connect(*arguments, **options)
        connection.set_progress_handler(count, 10)
        return connection

    def count() -> int:
        executed["now"] += 1
        return 0

    connect = sqlite3.connect
    with patch.context() as patched:
        patched.setattr(sqlite3, "connect", connected)
        yield executed


def work(store: Path, patch: pytest.MonkeyPatch) -> dict[str, int]:
    """Count tens of SQLite instructions for each page, once caches are filled."""
    found = {}
    with counted(patch) as executed:
        pages = addresses(str(store))
        app = add_pages(create_app(Settings(store=str(store)), None, Limits()))
        with TestClient(app, base_url="http://localhost") as client:
            for path in pages:
                costs = []
                for _ in range(4):
                    executed.clear()
                    assert client.get(path).status_code == 200
                    costs.append(executed["now"])
                found[path.partition("trj_")[0]] = min(costs)
    return found


def test_a_page_costs_as_much_in_a_memory_of_three_times_as_many_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(tmp_path / "small.db", _RUNS)
    filled(tmp_path / "large.db", 3 * _RUNS)
    small, large = (work(tmp_path / f"{n}.db", monkeypatch) for n in ("small", "large"))

    assert len(small) > 15
    costs = {
        path: (small[path], large[path])
        for path in small
        if path.partition("?")[0] != _COUNTED and not any(part in path for part in _READ_ALL)
    }
    assert {path: cost for path, cost in costs.items() if cost[1] > 1.5 * cost[0] + 50} == {}


def test_an_agent_without_runs_is_recognised_without_reading_all_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for count in (100, 400):
        filled(tmp_path / f"{count}.db", count)
        with (
            counted(monkeypatch) as executed,
            closing(SqliteStore(str(tmp_path / f"{count}.db"))) as store,
        ):
            store.runs.for_task(None, Scope(), 1, "other")
            executed.clear()
            assert not store.runs.for_task(None, Scope(), 1, "other")
            costs.append(executed["now"])
    assert costs[1] <= costs[0] + 5


def test_lessons_and_notes_are_listed_without_reading_entities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for count in (100, 400):
        with (
            counted(monkeypatch) as executed,
            AgentMemory.open(str(tmp_path / f"{count}.db")) as memory,
        ):
            kept = memory.notes.remember("Case 7 needs fixture 5", repo="acme/shop0").id
            now = datetime.now(UTC)
            memory.store.notes.change(
                new=[
                    Note(f"ent_{n}", "", "acme/shop0", "", now, kind=NoteKind.ENTITY)
                    for n in range(count)
                ]
            )
            executed.clear()
            assert [note.id for note in memory.notes.of()] == [kept]
            assert not memory.notes.of(archived=True)
            assert not memory.lessons.of(status=[*LessonStatus])
            costs.append(executed["now"])
    assert costs[1] <= costs[0] + 5


def test_a_node_is_explained_without_reading_the_graph(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for count in (_RUNS, 3 * _RUNS):
        filled(tmp_path / f"{count}.db", count)
        with (
            counted(monkeypatch) as executed,
            AgentMemory.open(str(tmp_path / f"{count}.db"), read_only=True) as memory,
        ):
            (tally,) = memory.store.recoveries.errors(Scope(), 1)
            (run,) = memory.store.runs.ids(limit=1)
            executed.clear()
            for node in (run, tally.error.id):
                explained = memory.store.admin.explain(node)
                assert explained is not None
                assert explained.relations
            costs.append(executed["now"])
    assert costs[1] <= costs[0] + 50


def test_sessions_of_a_period_are_counted_without_reading_older_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    for count in (100, 400):
        filled(tmp_path / f"{count}.db", count)
        with (
            counted(monkeypatch) as executed,
            closing(SqliteStore(str(tmp_path / f"{count}.db"))) as store,
        ):
            newest = store.runs.listed(RunFilter(), 10)[-1].seen_at
            lately = SessionFilter(since=newest)
            store.runs.facets(lately)
            executed.clear()
            assert store.runs.facets(lately).total == 10
            costs.append(executed["now"])
    assert costs[1] <= costs[0] + 5

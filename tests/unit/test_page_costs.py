"""Pages of the console, and answers, read as much of a large memory as of a small one."""

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from shutil import copy
from typing import Any, NamedTuple

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
    Link,
    Note,
    NoteKind,
    RunFilter,
    Scope,
    SessionFilter,
    ShownItem,
)
from contextgraph.service.app import create_app
from contextgraph.service.service import Limits

# One process makes the memories.
pytestmark = pytest.mark.xdist_group("page_costs")

# So many that an error was met by more runs than a page looks at.
_RUNS = 500
# These sort, search or count all, or list what is behind so many others: a few bytes of each run.
_READ_ALL = ("sort=", "text=", "search")
_COUNTED = "/pages/runs"


def fill(store: Path, numbers: range) -> None:
    """Add runs with these *numbers* to a memory, and advice that was shown to each."""
    with AgentMemory.open(str(store)) as memory:
        made = islice(bundles(runs(None)[:4], 10**9), numbers.start, numbers.stop)
        memory.store.runs.add([*made])
        (tally,) = memory.store.recoveries.errors(Scope(), 1)
        now = datetime.now(UTC) - timedelta(days=30)
        memory.store.exposures.add(
            [Exposure.of(f"ctx_{n}", [ShownItem(f"adv_{n}")], now, tally.error.id) for n in numbers]
        )
        # Else the service would consolidate meanwhile.
        memory.store.admin.mark_consolidated(memory.store.admin.unconsolidated().revision)


class Stores(NamedTuple):
    """Files of a memory, and of one with three times as many runs."""

    small: Path
    large: Path


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Stores:
    folder = tmp_path_factory.mktemp("stores")
    made = Stores(folder / "small.db", folder / "large.db")
    fill(made.small, range(_RUNS))
    copy(made.small, made.large)
    fill(made.large, range(_RUNS, 3 * _RUNS))
    return made


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
                for _ in range(2):
                    executed.clear()
                    assert client.get(path).status_code == 200
                    costs.append(executed["now"])
                found[path.partition("trj_")[0]] = min(costs)
    return found


def test_a_page_costs_as_much_in_a_memory_of_three_times_as_many_runs(
    stores: Stores, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (work(store, monkeypatch) for store in stores)

    assert len(small) > 15
    costs = {
        path: (small[path], large[path])
        for path in small
        if path.partition("?")[0] != _COUNTED and not any(part in path for part in _READ_ALL)
    }
    assert {path: cost for path, cost in costs.items() if cost[1] > 1.5 * cost[0] + 50} == {}


def entities(memory: AgentMemory) -> None:
    """Add an entity for each run, which links to the one before it."""
    now, count = datetime.now(UTC), len(memory.store.runs.ids())
    memory.store.notes.change(
        new=[
            Note(
                f"ent_{n:05}", "", "acme/shop0", "", now, kind=NoteKind.ENTITY,
                links=(Link("related", f"ent_{n - 1:05}"),),
            )
            for n in range(count)
        ]
    )  # fmt: skip


def agent_without_runs(memory: AgentMemory) -> Callable[[], bool]:
    return lambda: memory.store.runs.for_task(None, Scope(), 1, "other") == []


def lessons_and_notes(memory: AgentMemory) -> Callable[[], bool]:
    entities(memory)
    kept = memory.notes.remember("Case 7 needs fixture 5", repo="acme/shop0").id
    return lambda: (
        [note.id for note in memory.notes.of()] == [kept]
        and not memory.notes.of(archived=True)
        and not memory.lessons.of(status=[*LessonStatus])
    )


def what_links_to_a_note(memory: AgentMemory) -> Callable[[], bool]:
    entities(memory)
    return lambda: [note.id for note in memory.store.notes.linking(["ent_00007"])] == ["ent_00008"]


def nodes(memory: AgentMemory) -> Callable[[], bool]:
    (tally,) = memory.store.recoveries.errors(Scope(), 1)
    (run,) = memory.store.runs.ids(limit=1)
    explain = memory.store.admin.explain
    return lambda: all(
        (found := explain(node)) and found.relations for node in (run, tally.error.id)
    )


def sessions_of_a_period(memory: AgentMemory) -> Callable[[], bool]:
    lately = SessionFilter(since=memory.store.runs.listed(RunFilter(), 10)[-1].seen_at)
    return lambda: memory.store.runs.facets(lately).total == 10


@pytest.mark.parametrize(
    ("asked", "more"),
    [
        (agent_without_runs, 5),
        (lessons_and_notes, 5),
        (what_links_to_a_note, 5),
        (nodes, 50),
        (sessions_of_a_period, 5),
    ],
)
def test_an_answer_costs_as_much_in_a_memory_of_three_times_as_many_runs(
    stores: Stores,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    asked: Callable[[AgentMemory], Callable[[], bool]],
    more: int,
) -> None:
    costs = []
    for store in stores:
        with (
            counted(monkeypatch) as executed,
            AgentMemory.open(str(copy(store, tmp_path))) as memory,
        ):
            question = asked(memory)
            assert question()
            executed.clear()
            assert question()
            costs.append(executed["now"])
    assert costs[1] <= costs[0] + more

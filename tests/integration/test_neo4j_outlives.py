"""A memory outlives its server: it says that the server is away, and goes on when it is back."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from socket import create_server
from threading import Event, Semaphore, Thread
from uuid import uuid4

import pytest

from contextgraph import AgentMemory, State
from contextgraph.errors import StoreUnavailableError
from contextgraph.model import MemoryContext
from tests.builders import recovering_run
from tests.line import HOST, free_port, line
from tests.server import Neo4jServer

ERROR = "ModuleNotFoundError: No module named 'tariffs'"
STATE = State(repo="acme/shop", current_error=ERROR)


@dataclass
class Away:
    """A server that can be hung up on; it is reached at *address*."""

    port: int
    uri: str
    stack: ExitStack

    @property
    def address(self) -> str:
        return f"bolt://{HOST}:{self.port}"

    def comes(self) -> None:
        self.stack.enter_context(line(self.port, self.uri))

    def goes(self) -> None:
        self.stack.close()


@pytest.fixture
def server(neo4j_server: Neo4jServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Away]:
    monkeypatch.setattr("contextgraph.store.neo4j_store.connection.RETRY_SECONDS", 1.0)
    with ExitStack() as stack:
        found = Away(free_port(), neo4j_server.uri, stack)
        found.comes()
        yield found


@pytest.fixture
def memory(server: Away, neo4j_server: Neo4jServer) -> Iterator[AgentMemory]:
    with AgentMemory.open(server.address, auth=neo4j_server.auth, tenant=uuid4().hex) as memory:
        memory.learn(recovering_run(1))
        yield memory


def answer(memory: AgentMemory) -> MemoryContext:
    return memory.query(STATE)


def test_what_is_asked_and_learned_meanwhile_fails_and_later_works(
    server: Away, memory: AgentMemory
) -> None:
    before = answer(memory)
    server.goes()
    with pytest.raises(StoreUnavailableError, match=f"{server.address} cannot be reached"):
        answer(memory)
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        memory.learn(recovering_run(2))
    assert [check.ok for check in memory.health()] == [False]
    server.comes()

    assert before
    assert answer(memory) == before
    assert memory.learn(recovering_run(2)).status == "created"
    assert len(memory.store.trajectory_ids()) == 2


def test_a_snapshot_goes_on_when_the_server_is_back(server: Away, memory: AgentMemory) -> None:
    with memory.store.snapshot():
        before = memory.store.trajectory_ids()
        server.goes()
        with pytest.raises(StoreUnavailableError):
            memory.store.trajectory_ids()
        server.comes()
        assert memory.store.trajectory_ids() == before


def test_threads_get_the_whole_answer_or_are_told(server: Away, memory: AgentMemory) -> None:
    """None is told that nothing is known, or half of it."""
    expected, stop, told = answer(memory), Event(), Semaphore(0)

    def ask(_: int) -> list[MemoryContext | str]:
        said: list[MemoryContext | str] = []
        while not stop.is_set():
            try:
                said.append(answer(memory))
            except StoreUnavailableError as error:
                said.append(str(error))
                told.release()
        return said

    with ThreadPoolExecutor(4) as pool:
        asked = [pool.submit(ask, number) for number in range(4)]
        server.goes()
        assert all(told.acquire(timeout=60) for _ in asked)
        server.comes()
        again = answer(memory)
        stop.set()
        said = [one for future in asked for one in future.result()]

    assert again == expected
    others = [one for one in said if one != expected]
    assert len(others) < len(said)
    assert all(isinstance(one, str) and server.address in one for one in others)


def test_a_server_that_stays_away_is_tried_once_and_not_waited_for(
    server: Away, memory: AgentMemory
) -> None:
    server.goes()
    with pytest.raises(StoreUnavailableError):
        answer(memory)
    tried = 0
    with closing(create_server((HOST, server.port))) as listening:

        def refuse() -> None:
            nonlocal tried
            while True:
                try:
                    listening.accept()[0].close()
                except OSError:
                    return
                tried += 1

        Thread(target=refuse, daemon=True).start()
        with pytest.raises(StoreUnavailableError):
            memory.store.trajectory_ids()
        seen = tried
    assert seen == 1

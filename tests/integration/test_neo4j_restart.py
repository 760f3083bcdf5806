"""A memory whose server stops and restarts: errors meanwhile, correct answers afterwards."""

import gc
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
from tests.line import HOST, line, refusing_port, resets_connections
from tests.server import Neo4jServer

ERROR = "ModuleNotFoundError: No module named 'tariffs'"
STATE = State(repo="acme/shop", current_error=ERROR)

pytestmark = resets_connections


@dataclass
class Proxied:
    """A server behind a proxy at *address* that can be closed."""

    port: int
    uri: str
    stack: ExitStack

    @property
    def address(self) -> str:
        return f"bolt://{HOST}:{self.port}"

    def start(self) -> None:
        self.stack.enter_context(line(self.port, self.uri))

    def stop(self) -> None:
        self.stack.close()


@pytest.fixture
def server(neo4j_server: Neo4jServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxied]:
    monkeypatch.setattr("contextgraph.store.neo4j.connection.RETRY_SECONDS", 1.0)
    with refusing_port() as port, ExitStack() as stack:
        found = Proxied(port, neo4j_server.uri, stack)
        found.start()
        yield found
    gc.collect()  # what the driver left is not reported in a later test


@pytest.fixture
def memory(server: Proxied, neo4j_server: Neo4jServer) -> Iterator[AgentMemory]:
    with AgentMemory.open(server.address, auth=neo4j_server.auth, tenant=uuid4().hex) as memory:
        memory.learn(recovering_run(1))
        yield memory


def answer(memory: AgentMemory) -> MemoryContext:
    return memory.query(STATE)


def test_queries_and_learning_fail_meanwhile_and_work_later(
    server: Proxied, memory: AgentMemory
) -> None:
    before = answer(memory)
    server.stop()
    with pytest.raises(StoreUnavailableError, match=f"{server.address} cannot be reached"):
        answer(memory)
    with pytest.raises(StoreUnavailableError, match="cannot be reached"):
        memory.learn(recovering_run(2))
    assert [check.ok for check in memory.health()] == [False]
    server.start()

    assert before
    assert answer(memory) == before
    assert memory.learn(recovering_run(2)).status == "created"
    assert len(memory.store.runs.ids()) == 2


def test_a_snapshot_continues_after_a_restart(server: Proxied, memory: AgentMemory) -> None:
    with memory.store.snapshot():
        before = memory.store.runs.ids()
        server.stop()
        with pytest.raises(StoreUnavailableError):
            memory.store.runs.ids()
        server.start()
        assert memory.store.runs.ids() == before


def test_threads_get_the_whole_answer_or_an_error(server: Proxied, memory: AgentMemory) -> None:
    """No answer is empty or partial."""
    expected, stop, failed = answer(memory), Event(), Semaphore(0)

    def query(_: int) -> list[MemoryContext | str]:
        answers: list[MemoryContext | str] = []
        while not (stop.is_set() and answers[-1:] == [expected]):
            try:
                answers.append(answer(memory))
            except StoreUnavailableError as error:
                answers.append(str(error))
                failed.release()
        return answers

    with ThreadPoolExecutor(4) as pool:
        futures = [pool.submit(query, number) for number in range(4)]
        server.stop()
        assert all(failed.acquire(timeout=60) for _ in futures)
        server.start()
        again = answer(memory)
        stop.set()
        answers = [one for future in futures for one in future.result()]

    assert again == expected
    others = [one for one in answers if one != expected]
    assert all(isinstance(one, str) and server.address in one for one in others)


def test_an_unreachable_server_is_tried_once(server: Proxied, memory: AgentMemory) -> None:
    server.stop()
    with pytest.raises(StoreUnavailableError):
        answer(memory)
    tried = 0
    with closing(create_server((HOST, server.port))) as listening:

        def refuse() -> None:
            nonlocal tried
            while True:
                try:
                    connection = listening.accept()[0]
                except OSError:
                    return
                tried += 1
                connection.close()

        Thread(target=refuse, daemon=True).start()
        with pytest.raises(StoreUnavailableError):
            memory.store.runs.ids()
        seen = tried
    assert seen == 1

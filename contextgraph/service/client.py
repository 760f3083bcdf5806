"""`AgentMemory` over HTTP."""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import orjson

from contextgraph import model
from contextgraph.agents.asynchronous import AsyncLiveRun, InThreads, in_thread
from contextgraph.config import load_settings
from contextgraph.errors import StoreUnavailableError
from contextgraph.learning.consolidator import ConsolidationTrigger
from contextgraph.memory.agent_memory import MOST_SHOWN
from contextgraph.model.codec import decoded
from contextgraph.service.connection import ServiceConnection
from contextgraph.service.methods import (
    DistilQueueOfService,
    EntitiesOfService,
    LessonsOfService,
    LoopDetectorOfService,
    NotesOfService,
    OfService,
    PagesOfService,
    RetrieverOfService,
    StatisticsOfService,
    StoreOfService,
    WriterOfService,
)
from contextgraph.store.archive import Exported
from contextgraph.store.protocols import GraphFormat
from contextgraph.system.remote import RetryPolicy

R = TypeVar("R")

DEADLINE = 5.0
# A run that is learned is waited for; it is not lost where this is not enough.
_WRITING = RetryPolicy(timeout=45, retries=10)
_ADMINISTRATION = RetryPolicy(timeout=600, retries=10)


class Client(OfService):
    """`AgentMemory` of the service at *url*, used with *token*, that of the environment by `open`.

    Methods that change the store as a whole, or files of its machine, raise `NeedsStoreError`.

    A query is answered within *deadline* seconds, or its answer is empty and `degraded` says
    why. Other requests are retried for a minute, then raise `StoreUnavailableError`.
    The service also consolidates by itself, and takes the source of a run or note from the token:
    naming another raises `SettingsError`, as does a token that does not suffice. A service whose
    version has another interface raises `StoreError`.
    """

    is_service = True

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        self._service, self._retries = ServiceConnection(url, token), _ADMINISTRATION
        # Half of the time for the first answer, so that there is a second attempt.
        policy = RetryPolicy(deadline / 2, retries=3, total=deadline)
        self.retriever = RetrieverOfService(self._service, policy)
        self.loop_detector = LoopDetectorOfService(self._service, policy)
        self.stats = StatisticsOfService(self._service, policy)
        self.writer = WriterOfService(self._service, _WRITING)
        self.store = StoreOfService(self._service, _WRITING, policy)
        self.notes = NotesOfService(self._service, _WRITING)
        self.lessons = LessonsOfService(self._service, _WRITING)
        self.distil_queue = DistilQueueOfService(self._service, _WRITING)
        self.pages = PagesOfService(self._service, _WRITING)
        self.entities = EntitiesOfService(self._service, _WRITING)
        self.store_id = url
        self.withhold, self.source = 0.0, ""
        self._trigger = ConsolidationTrigger(None)
        self._now = lambda: datetime.now(UTC)
        self._shown = deque(maxlen=MOST_SHOWN)

    @cached_property
    def _never_learned(self) -> tuple[str, ...]:
        return load_settings().never_learned  # it must not leave this machine

    def _add_lessons(
        self, raw: model.RawTrajectory, receipt: model.LearnReceipt, source: str
    ) -> None:
        """Nothing: the service adds them itself."""

    def export(self, /, path: Path, *, vectors: bool = True, **callbacks: Any) -> Exported:
        """See `AgentMemory.export`; *callbacks* are not called."""
        self.note_exposures()
        params = {"vectors": vectors}
        headers = self._service.save("/v1/export", path, self._retries, params=params)
        return decoded(Exported, orjson.loads(headers["X-Exported"]))

    def export_graph(self, path: Path, graph_format: GraphFormat) -> None:
        params = {"format": graph_format}
        self._service.save("/v1/export", path, self._retries, params=params)

    def send(self, method: str, path: str, **content: Any) -> Any:
        """Send recorded exposures first, then the request."""
        self.note_exposures()
        return super().send(method, path, **content)

    def note_exposures(self, *, waiting: bool = True) -> None:
        """See `AgentMemory.note_exposures`."""
        try:
            super().note_exposures()
        except StoreUnavailableError:
            if not waiting:
                raise
            # The first attempt has the deadline of a query. A run or question that follows would be
            # lost with it: wait as long as at writes, then try once more.
            self._service.send("GET", "/healthz", _WRITING)
            super().note_exposures()

    def close(self) -> None:
        """Close the connections, once what was shown is noted."""
        try:
            self.note_exposures(waiting=False)
        finally:
            self._service.close()


class AsyncClient(InThreads[Client]):
    """The methods of `Client` for asyncio; ``async with AsyncClient(url, token) as memory:``.

    Methods that send a request are coroutines; `live`, `inspect`, `render` and `withholds` are not.
    `ask` calls a method of a part of the memory.
    """

    before = in_thread(Client.before)
    check_loop = in_thread(Client.check_loop)
    consolidate = in_thread(Client.consolidate)
    decided = in_thread(Client.decided)
    explain = in_thread(Client.explain)
    export = in_thread(Client.export)
    export_graph = in_thread(Client.export_graph)
    forget = in_thread(Client.forget)
    get_stats = in_thread(Client.get_stats)
    graph = in_thread(Client.graph)
    holdings = in_thread(Client.holdings)
    how = in_thread(Client.how)
    learn = in_thread(Client.learn)
    maintain = in_thread(Client.maintain)
    note_exposures = in_thread(Client.note_exposures)
    playbook = in_thread(Client.playbook)
    quarantine = in_thread(Client.quarantine)
    query = in_thread(Client.query)
    recall = in_thread(Client.recall)
    release = in_thread(Client.release)
    remember = in_thread(Client.remember)
    report_outcome = in_thread(Client.report_outcome)
    retire = in_thread(Client.retire)
    search = in_thread(Client.search)
    session = in_thread(Client.session)
    session_facets = in_thread(Client.session_facets)
    sessions = in_thread(Client.sessions)
    set_outcome = in_thread(Client.set_outcome)
    snapshot = in_thread(Client.snapshot)
    sources = in_thread(Client.sources)
    warning_before = in_thread(Client.warning_before)

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        client = Client(url, token, deadline=deadline)
        super().__init__(client)
        self.store_id = client.store_id
        self.inspect, self.render, self.withholds = client.inspect, client.render, client.withholds

    async def ask(self, question: Callable[[Client], R]) -> R:
        """Return the result of *question*, called in a thread with the client."""
        return await asyncio.to_thread(question, self.wrapped)

    def live(self, **run: Any) -> AsyncLiveRun:
        """Begin a run as `Client.live` does, which sends nothing and so is not awaited."""
        return AsyncLiveRun(self.wrapped.live(**run))

    async def learn_many(
        self, raws: Iterable[model.RawTrajectory], *, source: str = ""
    ) -> Sequence[model.LearnReceipt]:
        """Learn runs; see `AgentMemory.learn_many`."""
        return await self.ask(lambda client: [*client.learn_many(raws, source=source)])

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(self.wrapped.close)

"""`AgentMemory` over HTTP."""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, wraps
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, cast

import orjson

from contextgraph.client.calls import decoded_result, encoded_call
from contextgraph.client.service import Service
from contextgraph.codec import decoded
from contextgraph.consolidation import ConsolidationTrigger
from contextgraph.errors import (
    OF_STORE,
    NeedsStoreError,
    SettingsError,
    StoreError,
    StoreUnavailableError,
)
from contextgraph.knowledge import Candidates, Entities, Notes, Pages
from contextgraph.learning import MemoryWriter
from contextgraph.loops import LoopDetector
from contextgraph.memory import MOST_SHOWN, AgentMemory
from contextgraph.model import (
    Effect,
    FailurePattern,
    FittedGate,
    LearnReceipt,
    MemoryContext,
    MemoryCounts,
    NoteKind,
    RawTrajectory,
    new_context_id,
)
from contextgraph.ports import ExposureStore, RunStore, Store
from contextgraph.readers import to_record
from contextgraph.remote import RetryPolicy
from contextgraph.retrieval import MemoryRetriever, Playbooks
from contextgraph.stats import MemoryStats, StatisticsEngine
from contextgraph.store.archive import Exported
from contextgraph.store.graph import GraphFormat, read_graph

if TYPE_CHECKING:
    from contextgraph.ports import Graph

P = ParamSpec("P")
R = TypeVar("R")

DEADLINE = 5.0
# A run that is learned is waited for; it is not lost where this is not enough.
_WRITE, _WAIT_SECONDS = RetryPolicy(timeout=45, outage=60, rate_limit=60), 30
_ADMINISTRATION = RetryPolicy(timeout=600, outage=60, rate_limit=60)


class _OverHttp:
    """A part of a memory whose other attributes are those of a store that is elsewhere."""

    _service: Service
    _retries: RetryPolicy

    def send(self, method: str, path: str, **content: Any) -> Any:
        """The answer of the service: see `Service.send`."""
        return self._service.send(method, path, self._retries, **content)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or name == "_service":
            raise AttributeError(name)
        raise NeedsStoreError(f"{self._service.name} is a service, and this {OF_STORE}")


def _requested(method: Callable[P, R], operation: str) -> Callable[P, R]:
    """*method* of a part, called by the service; what it returns there."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        part, *given = args
        assert isinstance(part, _OverHttp)
        content = encoded_call(method, given, kwargs)
        answer = part.send("POST", f"/v1/call/{operation}", json=content)
        return cast(R, decoded_result(method, answer["value"]))

    return call


class _Part(_OverHttp):
    """A part of a memory whose work is done by a service.

    The public methods of the class that it takes the place of become requests, but for those that
    a subclass defines. *path* is the name of the part in a memory.
    """

    def __init_subclass__(cls, path: str) -> None:
        local = next(base for base in cls.__mro__[1:] if not issubclass(base, _OverHttp))
        for name, method in vars(local).items():
            if not name.startswith("_") and callable(method) and name not in vars(cls):
                setattr(cls, name, _requested(method, f"{path}.{name}"))

    def __init__(self, service: Service, retries: RetryPolicy) -> None:
        self._service, self._retries = service, retries


class Client(_OverHttp, AgentMemory):
    """As `AgentMemory`, of the service at *url*, used with *token* (``CONTEXTGRAPH_TOKEN``).

    Methods that change the store as a whole, or files of its machine, raise `NeedsStoreError`.

    A query is answered within *deadline* seconds, or its answer is empty and `degraded` says why,
    whatever *degrade* is. All else is retried for a minute, then raises `StoreUnavailableError`.
    The service also consolidates by itself, and takes the source of a run or note from the token:
    naming another raises `SettingsError`, as does a token that does not suffice. A service whose
    version has another interface raises `StoreError`.
    """

    is_service = True

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        self._service, self._retries = Service(url, token), _ADMINISTRATION
        # Half of the time for the first answer, so that there is a second attempt.
        policy = RetryPolicy(deadline / 2, deadline, deadline, total=deadline)
        self.retriever = _Retriever(self._service, policy)
        self.loop_detector = _LoopDetector(self._service, policy)
        self.stats = _Statistics(self._service, policy)
        self.writer = _Writer(self._service, _WRITE)
        self.store = cast(Store, _Store(self._service, _WRITE))
        self.store_id = url
        self.withhold, self.source = 0.0, ""
        self._trigger = ConsolidationTrigger(None)
        self._now = lambda: datetime.now(UTC)
        self._shown = deque(maxlen=MOST_SHOWN)

    explain = _requested(AgentMemory.explain, "explain")
    quarantine = _requested(AgentMemory.quarantine, "quarantine")
    release = _requested(AgentMemory.release, "release")
    forget = _requested(AgentMemory.forget, "forget")
    retire = _requested(AgentMemory.retire, "retire")
    consolidate = _requested(AgentMemory.consolidate, "consolidate")
    maintain = _requested(AgentMemory.maintain, "maintain")

    def _add_candidates(self, raw: RawTrajectory, receipt: LearnReceipt) -> None:
        """Nothing: the service adds them itself."""

    @cached_property
    def notes(self) -> Notes:
        """What people and agents say; confidential texts stay in the service."""
        return _Notes(self._service, _WRITE)

    @cached_property
    def candidates(self) -> Candidates:
        """What people wrote in learned runs, as of `AgentMemory`."""
        return _Candidates(self._service, _WRITE)

    @cached_property
    def pages(self) -> Pages:
        """The pages of the service."""
        return _Pages(self._service, _WRITE)

    @cached_property
    def entities(self) -> Entities:
        """The entities of the service."""
        return _Entities(self._service, _WRITE)

    def export(self, /, path: Path, *, vectors: bool = True, **callbacks: Any) -> Exported:
        """As of `AgentMemory`; *callbacks* are not called."""
        self.note_exposures()
        params = {"vectors": vectors}
        headers = self._service.save("/v1/export", path, self._retries, params=params)
        return decoded(Exported, orjson.loads(headers["X-Exported"]))

    def export_graph(self, path: Path, graph_format: GraphFormat) -> None:
        params = {"format": graph_format}
        self._service.save("/v1/export", path, self._retries, params=params)

    def graph(self) -> "Graph":
        """As of `AgentMemory`, a copy that each call loads."""
        with TemporaryDirectory(prefix="contextgraph-") as folder:
            path = Path(folder) / "graph.json"
            self.export_graph(path, "json")
            return read_graph(path)

    def send(self, method: str, path: str, **content: Any) -> Any:
        """Send recorded exposures first, then the request."""
        self.note_exposures()
        return super().send(method, path, **content)

    def close(self) -> None:
        """Close the connections, once what was shown is noted."""
        try:
            self.note_exposures()
        finally:
            self._service.close()


class _Retriever(_Part, MemoryRetriever, path="retriever"):
    """Answers of the service."""

    def __init__(self, service: Service, policy: RetryPolicy) -> None:
        super().__init__(service, policy)
        self.playbooks = _Playbooks(service, policy)

    def retrieve(self, *args: Any, **kwargs: Any) -> MemoryContext:
        """As of `MemoryRetriever`; empty where the service does not answer."""
        try:
            return _retrieve(self, *args, **kwargs)
        except StoreUnavailableError as failure:
            return MemoryContext(new_context_id(), degraded=(f"service: {failure}",))


_retrieve = _requested(MemoryRetriever.retrieve, "retriever.retrieve")


class _Playbooks(_Part, Playbooks, path="retriever.playbooks"):
    """Playbooks of the service."""

    def content_hashes(self, *args: Any, **kwargs: Any) -> Mapping[str, Sequence[str]]:
        """As of `Playbooks`; none are known where the service does not answer."""
        try:
            return _content_hashes(self, *args, **kwargs)
        except StoreUnavailableError:
            return {}


_content_hashes = _requested(Playbooks.content_hashes, "retriever.playbooks.content_hashes")


class _Writer(_Part, MemoryWriter, path="writer"):
    """Learns by the service."""

    def write(self, raw: RawTrajectory, source: str = "") -> LearnReceipt:
        return self.write_all([raw], source)[0]

    def write_all(self, raws: Sequence[RawTrajectory], source: str = "") -> Sequence[LearnReceipt]:
        _check_source(source)
        lines = b"\n".join(orjson.dumps(to_record(raw)) for raw in raws)
        params = {"wait": _WAIT_SECONDS, "complete": True}
        headers = {"Content-Type": "application/x-ndjson"}
        job = self.send("POST", "/v1/learn", params=params, content=lines, headers=headers)
        if job["state"] != "done":
            job = self.send("GET", f"/v1/learn/{job['job']}", params=params)
        name = self._service.name
        if job["state"] != "done":
            reason = job["error"] or "it is busy"
            raise StoreUnavailableError(f"{name} has the runs and waits: {reason}")
        receipts = [decoded(LearnReceipt, receipt) for receipt in job["receipts"]]
        if len(receipts) != len(raws):
            reasons = [run["error"] for run in job["runs"] if run["error"]]
            raise StoreError(f"{name}: {'; '.join(reasons) or 'a run is missing'}")
        return receipts


class _Store(_Part, path="store"):
    """The store of the service; only its runs and exposures can be reached."""

    def __init__(self, service: Service, policy: RetryPolicy) -> None:
        super().__init__(service, policy)
        self.runs = _Runs(service, policy)  # type: ignore[abstract]
        self.exposures = _Exposures(service, policy)  # type: ignore[abstract]


class _Runs(_Part, RunStore, path="store.runs"):
    """The runs of the service."""


class _Exposures(_Part, ExposureStore, path="store.exposures"):
    """Exposures, recorded by the service."""

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        _check_source(source)
        body = {"context": context_id, "helped": helped, "item": item}
        return bool(self.send("POST", "/v1/reports", json=body)["recorded"])


class _Notes(_Part, Notes, path="notes"):
    """Notes of the service; the token decides the source and credibility of a new one."""


class _Candidates(_Part, Candidates, path="candidates"):
    """What people wrote in runs that the service has."""


class _Pages(_Part, Pages, path="pages"):
    """Pages of the service."""


class _Entities(_Part, Entities, path="entities"):
    """Entities of the service."""


class _LoopDetector(_Part, LoopDetector, path="loop_detector"):
    """Finds loops in this process, and asks the service for escape suggestions."""

    detect = LoopDetector.detect
    detect_all = LoopDetector.detect_all


class _Statistics(_Part, StatisticsEngine, path="stats"):
    """Statistics of the service."""

    def get_stats(self) -> MemoryStats:
        stats = self.send("GET", "/v1/stats")
        notes = stats["notes"]
        return MemoryStats(
            counts=decoded(MemoryCounts, stats["counts"]),
            error_frequency=stats["error_frequency"],
            transitions=stats["transitions"],
            common_mistakes=self.get_common_mistakes,
            failure_patterns=tuple(
                decoded(FailurePattern, pattern) for pattern in stats["failure_patterns"]
            ),
            usage={},
            withholding=decoded(Effect, stats["withholding"]),
            notes=None if notes is None else {NoteKind(name): notes[name] for name in notes},
            gate=decoded(FittedGate, stats["gate"]) if stats["gate"] else None,
        )


def _check_source(source: str) -> None:
    if source:
        raise SettingsError("a service takes the source from the token; name none")

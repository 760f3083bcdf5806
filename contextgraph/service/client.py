"""`AgentMemory` over HTTP."""

import asyncio
import random
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cache, cached_property, partial, wraps
from http import HTTPStatus
from importlib.metadata import version
from importlib.util import find_spec
from inspect import Parameter, signature
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NoReturn, ParamSpec, TypeVar, Unpack, cast
from urllib.parse import urlsplit

import orjson

from contextgraph import errors, model
from contextgraph.advising.loops import LoopDetector
from contextgraph.advising.pipeline import MemoryRetriever
from contextgraph.advising.playbook import Playbooks
from contextgraph.agents.asynchronous import AsyncLiveRun, InThreads
from contextgraph.codec import decoded, encoded
from contextgraph.config import load_settings
from contextgraph.knowledge.notes import NoteProperties, Notes
from contextgraph.knowledge.pages import Entities, Pages
from contextgraph.knowledge.statements import Statements
from contextgraph.learning import MemoryWriter
from contextgraph.learning.consolidator import ConsolidationTrigger
from contextgraph.learning.statistics import MemoryStats, StatisticsEngine
from contextgraph.memory import MOST_SHOWN, AgentMemory
from contextgraph.model import new_context_id
from contextgraph.ports import ExposureStore, NoteStore, RunStore, Store
from contextgraph.processes import replacing
from contextgraph.readers import to_record
from contextgraph.remote import (
    UNLIMITED,
    Answer,
    Failure,
    FailureKind,
    Remote,
    RetryPolicy,
    UnusableAnswerError,
    limit_answer,
    with_proxies,
)
from contextgraph.store.archive import Exported
from contextgraph.store.graph import GraphFormat, read_graph
from contextgraph.text import clip, mask_secrets

if TYPE_CHECKING:
    import httpx2
    from httpx2 import Headers, Response

    from contextgraph.ports import Graph


_CHARS = 200_000


@cache
def _parameters(method: Callable[..., Any]) -> list[Parameter]:
    return [*signature(method).parameters.values()]


def encoded_call(
    method: Callable[..., Any], args: Iterable[Any], kwargs: Mapping[str, Any]
) -> dict[str, model.Json]:
    """The arguments of a call by name, with *args* after the object whose method it is.

    Functions are left out, texts cut after 200,000 characters. Raises TypeError as the call would.
    """
    given = signature(method).bind(None, *args, **kwargs).arguments
    del given[_parameters(method)[0].name]
    for parameter in _parameters(method):
        if parameter.kind is Parameter.VAR_KEYWORD:
            given |= given.pop(parameter.name, {})
    return {name: _json(value) for name, value in given.items() if not callable(value)}


def _json(value: Any) -> model.Json:
    if isinstance(value, Iterable) and not isinstance(value, str | bytes | Mapping):
        return [*map(_json, value)]
    return _clipped(encoded(value))


def _clipped(record: model.Json) -> model.Json:
    if isinstance(record, str):
        return clip(record, _CHARS)
    if isinstance(record, dict):
        return {name: _clipped(value) for name, value in record.items()}
    return [*map(_clipped, record)] if isinstance(record, list | tuple) else record


def decoded_result(method: Callable[..., Any], record: model.Json) -> Any:
    """The value that *method* returned, of the JSON that `encoded` gave for it."""
    return decoded(method.__annotations__["return"] or type(None), record)


_VERSION = version("contextgraph-memory")
_AGAIN = (
    HTTPStatus.TOO_MANY_REQUESTS,
    HTTPStatus.BAD_GATEWAY,
    HTTPStatus.SERVICE_UNAVAILABLE,
    HTTPStatus.GATEWAY_TIMEOUT,
)
# A service that is busy for longer is down, for who asks now.
_FIRST_DELAY, _MAX_DELAY, _LONGEST_DELAY = 0.5, 8.0, 60.0
_DETAIL_CHARS = 1000
_TOKEN_PLACE = "the second argument of Client or AsyncClient, elsewhere CONTEXTGRAPH_TOKEN"
_UNKNOWN_REQUEST = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
# The errors of a memory that an answer can name.
_ERRORS: Mapping[str, type[errors.ContextGraphError]] = {
    kind.__name__: kind
    for kind in (
        errors.AlreadyExistsError,
        errors.InvalidNoteError,
        errors.NeedsStoreError,
        errors.NotFoundError,
    )
}


class ServiceConnection(Remote["httpx2.Client"]):
    """The service at *url*, used with the token *key*."""

    def __init__(self, url: str, key: str | None = None) -> None:
        parts = urlsplit(url)
        # Also behind a slash, which ends the host: a password may have one.
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in url:
            raise errors.SettingsError(
                "the address of a service is http://HOST:PORT or https://HOST, without a user; "
                f"its token is {_TOKEN_PLACE}"
            )
        super().__init__(url.rstrip("/"), key)
        self._is_checked = False

    def send(
        self,
        method: str,
        path: str,
        policy: RetryPolicy,
        *,
        accept: HTTPStatus | None = None,
        **content: Any,
    ) -> Any:
        """The JSON value of the answer, retried within *policy*; also of one with status *accept*.

        *content* is as in `httpx2.Client.request`. Raises `StoreUnavailableError` where there is no
        answer, `SettingsError` where the token does not allow it, `StoreError` for other errors.
        """

        def request(client: "httpx2.Client") -> "Response":
            return client.request(method, path, timeout=policy.timeout, **content)

        response = self._answered(request, policy)
        if not response.is_success and response.status_code != accept:
            raise _error(self.name, response)
        return _value(self.name, response)

    def save(self, path: str, target: Path, policy: RetryPolicy, **content: Any) -> "Headers":
        """Write the answer of any size to the file *target*; its headers. Otherwise as `send`."""

        def request(client: "httpx2.Client") -> "Response":
            unlimited = {UNLIMITED: True}
            timeout = policy.timeout
            with client.stream(
                "GET", path, timeout=timeout, extensions=unlimited, **content
            ) as got:
                if not got.is_success:
                    got.read()
                    return got
                with part.open("wb") as file:
                    file.writelines(got.iter_bytes())
            return got

        try:
            with replacing(target) as part:
                response = self._answered(request, policy)
                if not response.is_success:
                    raise _error(self.name, response)
        except OSError as error:
            raise errors.StoreError(
                f"{target} cannot be written: {error.strerror or error}"
            ) from error
        return response.headers

    def _answered(
        self, request: "Callable[[httpx2.Client], Response]", policy: RetryPolicy
    ) -> "Response":
        def checked(client: "httpx2.Client") -> "Response":
            if not self._is_checked:
                health = client.get("/healthz", timeout=policy.timeout)
                if health.status_code in _AGAIN:
                    return health
                self._check_version(health)
            return request(client)

        try:
            return self.call(checked, policy)
        except errors.RemoteError as error:
            raise errors.StoreUnavailableError(str(error)) from error

    def _check_version(self, health: "Response") -> None:
        """Raise `StoreError` for a service whose interface is another one."""
        value = _value(self.name, health) if health.is_success else None
        theirs = value.get("version") if isinstance(value, dict) else None
        if not isinstance(theirs, str):
            raise errors.StoreError(f"{self.name} is not a service of contextgraph")
        if _interface(theirs) != _interface(_VERSION):
            raise errors.StoreError(
                f"{self.name} is version {theirs} of contextgraph and this client is {_VERSION}, "
                "which has another interface: update the older one"
            )
        self._is_checked = True

    def _attempt(
        self,
        request: "Callable[[httpx2.Client], Answer]",
        client: "httpx2.Client",
        policy: RetryPolicy,
    ) -> Answer | Failure:
        import httpx2

        # httpx2 repeats no request, but for connections.
        for tried in range(policy.retries + 1):
            delay = min(_FIRST_DELAY * 2**tried, _MAX_DELAY) * random.uniform(0.5, 1)
            try:
                answer = request(client)
            except UnusableAnswerError as error:
                return Failure(FailureKind.INVALID, str(error))
            except httpx2.TimeoutException:
                failure = Failure(FailureKind.DOWN, "no answer in time")
            except httpx2.HTTPError as error:
                failure = Failure(FailureKind.DOWN, f"no connection ({type(error).__name__})")
            else:
                if not isinstance(answer, httpx2.Response) or answer.status_code not in _AGAIN:
                    return answer
                failure = Failure(FailureKind.DOWN, _detail(answer))
                asked = answer.headers.get("retry-after", "")
                delay = max(delay, float(asked)) if asked.isdecimal() else delay
            if tried == policy.retries or delay > _LONGEST_DELAY:
                break
            time.sleep(delay)
        return failure

    def _open(self) -> "httpx2.Client":
        if find_spec("httpx2") is None:
            raise errors.MissingExtraError(
                "the client of a service is not installed; "
                "install it with: pip install 'contextgraph-memory[client]'"
            )
        import httpx2

        token = {"Authorization": f"Bearer {self._key}"} if self._key else {}
        client = partial(
            httpx2.Client,
            base_url=self.url,
            # A compressed answer of a few kilobytes could fill the memory.
            headers={
                **token,
                "Accept-Encoding": "identity",
                "User-Agent": f"contextgraph/{_VERSION}",
            },
            event_hooks={"response": [limit_answer]},
        )
        return with_proxies(self.url, client)


def _interface(release: str) -> list[str]:
    """The part of a version that interfaces follow: until 1.0 a minor version may change them."""
    major, minor, *_ = [*release.split("."), ""]
    return [major, minor] if major == "0" else [major]


def _value(name: str, response: "Response") -> model.Json:
    try:
        value: model.Json = orjson.loads(response.content)
    except orjson.JSONDecodeError as error:
        raise errors.StoreError(f"{name}: an answer that is not JSON") from error
    return value


def _error(name: str, response: "Response") -> Exception:
    problem = _problem(response)
    reason = f"{name}: {_detail(response)}"
    if response.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return errors.SettingsError(f"{reason}; give a token that allows this: {_TOKEN_PLACE}")
    if response.has_redirect_location:
        return errors.SettingsError(
            f"{name} redirects to {response.headers['location']}: use that address"
        )
    kind = _ERRORS.get(str(problem.get("error")), errors.StoreError)
    if kind is errors.StoreError and response.status_code in _UNKNOWN_REQUEST:
        return errors.NeedsStoreError(f"{name} is a service, and this {errors.OF_STORE}")
    return kind(reason)


def _detail(response: "Response") -> str:
    """Return the detail of the problem object in *response*, else its status."""
    detail = _problem(response).get("detail")
    status = f"{response.status_code} {response.reason_phrase}"
    return clip(mask_secrets(detail), _DETAIL_CHARS) if isinstance(detail, str) else status


def _problem(response: "Response") -> dict[str, model.Json]:
    try:
        problem = orjson.loads(response.content)
    except orjson.JSONDecodeError:
        problem = None
    return problem if isinstance(problem, dict) else {}


P = ParamSpec("P")
R = TypeVar("R")
T_co = TypeVar("T_co", covariant=True)

DEADLINE = 5.0
# A run that is learned is waited for; it is not lost where this is not enough.
_WRITE, _WAIT_SECONDS = RetryPolicy(timeout=45, retries=10), 30
_ADMINISTRATION = RetryPolicy(timeout=600, retries=10)


class _OverHttp:
    """A part of a memory whose other attributes are those of a store that is elsewhere."""

    _service: ServiceConnection
    _retries: RetryPolicy

    def send(self, method: str, path: str, **content: Any) -> Any:
        """The answer of the service: see `ServiceConnection.send`."""
        return self._service.send(method, path, self._retries, **content)

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("__") or name == "_service":
            raise AttributeError(name)
        raise errors.NeedsStoreError(
            f"{self._service.name} is a service, and this {errors.OF_STORE}"
        )


def _requested(method: Callable[P, R], operation: str, answer: str = "value") -> Callable[P, R]:
    """Return *method* of a part as a request, whose result is at the key *answer*."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        part, *given = args
        assert isinstance(part, _OverHttp)
        content = encoded_call(method, given, kwargs)
        path = f"/v1/{operation.replace('.', '/')}"
        if answer == "value":
            record = part.send("POST", path, json=content)
        else:
            record = part.send(
                "GET",
                path,
                params={name: value for name, value in content.items() if value is not None},
            )
        return cast(R, decoded_result(method, record[answer]))

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

    def __init__(self, service: ServiceConnection, retries: RetryPolicy) -> None:
        self._service, self._retries = service, retries


class Client(_OverHttp, AgentMemory):
    """`AgentMemory` of the service at *url*, used with *token*, that of the environment by `open`.

    Methods that change the store as a whole, or files of its machine, raise `NeedsStoreError`.

    A query is answered within *deadline* seconds, or its answer is empty and `degraded` says why,
    whatever *degrade* is. All else is retried for a minute, then raises `StoreUnavailableError`.
    The service also consolidates by itself, and takes the source of a run or note from the token:
    naming another raises `SettingsError`, as does a token that does not suffice. A service whose
    version has another interface raises `StoreError`.
    """

    is_service = True

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        self._service, self._retries = ServiceConnection(url, token), _ADMINISTRATION
        # Half of the time for the first answer, so that there is a second attempt.
        policy = RetryPolicy(deadline / 2, retries=3, total=deadline)
        self.retriever = _Retriever(self._service, policy)
        self.loop_detector = _LoopDetector(self._service, policy)
        self.stats = _Statistics(self._service, policy)
        self.writer = _Writer(self._service, _WRITE)
        self.store = cast(Store, _Store(self._service, _WRITE, policy))
        self.notes = _Notes(self._service, _WRITE)
        self.statements = _Statements(self._service, _WRITE)
        self.pages = _Pages(self._service, _WRITE)
        self.entities = _Entities(self._service, _WRITE)
        self.store_id = url
        self.withhold, self.source = 0.0, ""
        self._trigger = ConsolidationTrigger(None)
        self._now = lambda: datetime.now(UTC)
        self._shown = deque(maxlen=MOST_SHOWN)

    decided = _requested(AgentMemory.decided, "decided")
    explain = _requested(AgentMemory.explain, "explain")
    quarantine = _requested(AgentMemory.quarantine, "quarantine")
    release = _requested(AgentMemory.release, "release")
    forget = _requested(AgentMemory.forget, "forget")
    retire = _requested(AgentMemory.retire, "retire")
    maintain = _requested(AgentMemory.maintain, "maintain")
    search = _requested(AgentMemory.search, "search", "found")
    sources = _requested(AgentMemory.sources, "sources", "sources")

    def consolidate(
        self, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> model.ConsolidationReport:
        """See `AgentMemory.consolidate`; *progress* is not called."""
        record = self.send("POST", "/v1/consolidate", accept=HTTPStatus.CONFLICT)
        known = {name: value for name, value in record.items() if value is not None}
        return decoded(model.ConsolidationReport, {**known, "usage": known})

    @cached_property
    def _never_learned(self) -> tuple[str, ...]:
        return load_settings().never_learned  # it must not leave this machine

    def _add_statements(
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

    def close(self) -> None:
        """Close the connections, once what was shown is noted."""
        try:
            self.note_exposures()
        finally:
            self._service.close()


class _Retriever(_Part, MemoryRetriever, path="retriever"):
    """Answers of the service."""

    def __init__(self, service: ServiceConnection, policy: RetryPolicy) -> None:
        super().__init__(service, policy)
        self.playbooks = _Playbooks(service, policy)

    def retrieve(self, *args: Any, **kwargs: Any) -> model.MemoryContext:
        """See `MemoryRetriever.retrieve`; empty where the service does not answer."""
        try:
            return _requested(MemoryRetriever.retrieve, "retriever.retrieve")(self, *args, **kwargs)
        except errors.StoreUnavailableError as failure:
            return model.MemoryContext(new_context_id(), degraded=(f"service: {failure}",))


class _Playbooks(_Part, Playbooks, path="retriever.playbooks"):
    """Playbooks of the service."""

    def content_hashes(self, *args: Any, **kwargs: Any) -> Mapping[str, Sequence[str]]:
        """See `Playbooks.content_hashes`; empty where the service does not answer."""
        try:
            request = _requested(Playbooks.content_hashes, "retriever.playbooks.content_hashes")
            return request(self, *args, **kwargs)
        except errors.StoreUnavailableError:
            return {}


class _Writer(_Part, MemoryWriter, path="writer"):
    """Learns by the service."""

    write_trajectory = MemoryWriter.write_trajectory

    def write(self, raw: model.RawTrajectory, source: str = "") -> model.LearnReceipt:
        return self.write_all([raw], source)[0]

    def write_all(
        self, raws: Sequence[model.RawTrajectory], source: str = ""
    ) -> Sequence[model.LearnReceipt]:
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
            raise errors.StoreUnavailableError(f"{name} has the runs and waits: {reason}")
        receipts = [decoded(model.LearnReceipt, receipt) for receipt in job["receipts"]]
        if len(receipts) != len(raws):
            reasons = [run["error"] for run in job["runs"] if run["error"]]
            raise errors.StoreError(f"{name}: {'; '.join(reasons) or 'a run is missing'}")
        return receipts


class _Store(_Part, path="store"):
    """The store of the service; only its runs, notes and exposures can be reached."""

    def __init__(
        self, service: ServiceConnection, policy: RetryPolicy, interactive: RetryPolicy
    ) -> None:
        super().__init__(service, policy)
        self.runs = _Runs(service, policy)  # type: ignore[abstract]
        self.exposures = _Exposures(service, interactive)  # type: ignore[abstract]
        self.notes = _NoteStore(service, policy)  # type: ignore[abstract]

    def __call__(self) -> "Graph":
        """Load the graph of the memory, a copy."""
        with TemporaryDirectory(prefix="contextgraph-") as folder:
            path = Path(folder) / "graph.json"
            self._service.save("/v1/export", path, self._retries, params={"format": "json"})
            return read_graph(path)


class _Runs(_Part, RunStore, path="store.runs"):
    """The runs of the service."""


class _NoteStore(_Part, NoteStore, path="store.notes"):
    """The notes of the service as it stores them, to be copied."""


class _Exposures(_Part, ExposureStore, path="store.exposures"):
    """Exposures, recorded by the service for tokens that may write."""

    def add(self, exposures: Sequence[model.Exposure]) -> None:
        with suppress(errors.SettingsError):
            _requested(ExposureStore.add, "store.exposures.add")(self, exposures)

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        _check_source(source)
        body = {"context": context_id, "helped": helped, "item": item}
        return bool(self.send("POST", "/v1/reports", json=body)["recorded"])


class _Notes(_Part, Notes, path="notes"):
    """Notes of the service; the token decides the source and credibility of a new one.

    Confidential texts stay in the service.
    """

    def remember(
        self,
        text: str,
        *,
        repo: str | None = "",
        source: str = "user",
        tags: Collection[str] = (),
        credibility: float | None = None,
        **properties: Unpack[NoteProperties],
    ) -> model.NoteReceipt:
        _check_source("" if source == "user" and credibility is None else source)
        given = encoded_call(Notes.remember, [text], {"tags": tags, **properties})
        body = {"content": given.pop("text"), "repo": repo or "", **given}
        return decoded(model.NoteReceipt, self.send("POST", "/v1/notes", json=body))

    def snapshot(
        self, trigger: str, focus: str = "", *, repo: str | None = None, max_tokens: int = 500
    ) -> model.Snapshot:
        """See `Notes.snapshot`; with the keyed files of the service."""
        params = {"trigger": trigger, "focus": focus, "max_tokens": max_tokens}
        answer = self.send("GET", "/v1/snapshot", params=params | ({"repo": repo} if repo else {}))
        return decoded(model.Snapshot, answer)


class _Statements(_Part, Statements, path="statements"):
    """Statements of people in runs of the service."""


class _Pages(_Part, Pages, path="pages"):
    """Pages of the service."""


class _Entities(_Part, Entities, path="entities"):
    """Entities of the service."""


class _LoopDetector(_Part, LoopDetector, path="loop_detector"):
    """Finds loops in this process, and asks the service for escape suggestions."""

    detect = LoopDetector.detect
    detect_all = LoopDetector.detect_all
    is_same_predicament = LoopDetector.is_same_predicament
    get_escape_suggestions = LoopDetector.get_escape_suggestions


class _Statistics(_Part, StatisticsEngine, path="stats"):
    """Statistics of the service."""

    def get_stats(self) -> MemoryStats:
        stats = self.send("GET", "/v1/stats")
        notes = stats["notes"]
        return MemoryStats(
            counts=decoded(model.MemoryCounts, stats["counts"]),
            error_frequency=stats["error_frequency"],
            transitions=stats["transitions"],
            common_mistakes=self.get_common_mistakes,
            failure_patterns=tuple(
                decoded(model.FailurePattern, pattern) for pattern in stats["failure_patterns"]
            ),
            usage={},
            withholding=decoded(model.Effect, stats["withholding"]),
            notes=None if notes is None else {model.NoteKind(name): notes[name] for name in notes},
            gate=decoded(model.FittedGate, stats["gate"]) if stats["gate"] else None,
        )


def _check_source(source: str) -> None:
    if source:
        raise errors.SettingsError("a service takes the source from the token; name none")


# Send nothing, so they are not awaited.
_AT_ONCE = frozenset({"inspect", "render", "withholds", "working"})
# Of a block of code in one thread, or of another class.
_NOT_FOR_ASYNCIO = frozenset({"batch", "close", "of", "of_settings", "open"})


class AsyncPart(InThreads[T_co]):
    """A part of a `Client` for asyncio: its methods are awaited, and run in threads."""

    def __getattr__(self, name: str) -> Any:
        part = self.wrapped
        if name.startswith("_") or (name in _NOT_FOR_ASYNCIO and isinstance(part, Client)):
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")
        value = getattr(part, name)
        if isinstance(value, _OverHttp):
            return AsyncPart(value)
        if not callable(value) or name in _AT_ONCE:
            return value

        @wraps(value)
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await asyncio.to_thread(value, *args, **kwargs)

        return call

    def __dir__(self) -> Iterable[str]:
        return dir(self.wrapped)


class AsyncClient(AsyncPart[Client]):
    """The methods of `Client` for asyncio; ``async with AsyncClient(url, token) as memory:``."""

    def __init__(self, url: str, token: str | None = None, *, deadline: float = DEADLINE) -> None:
        super().__init__(Client(url, token, deadline=deadline))

    def live(self, **run: Any) -> AsyncLiveRun:
        """Begin a run as `Client.live` does, which sends nothing and so is not awaited."""
        return AsyncLiveRun(self.wrapped.live(**run))

    async def learn_many(
        self, raws: Iterable[model.RawTrajectory], *, source: str = ""
    ) -> Sequence[model.LearnReceipt]:
        """Learn runs; see `AgentMemory.learn_many`."""
        learned = self.wrapped.learn_many
        return await asyncio.to_thread(lambda: [*learned(raws, source=source)])

    async def __aexit__(self, *raised: object) -> None:
        await asyncio.to_thread(self.wrapped.close)

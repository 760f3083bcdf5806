"""Calls of servers, with the retries of their clients; of model APIs with a spending cap."""

import os
import sqlite3
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from enum import Enum
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from urllib.parse import SplitResult, urlsplit

from msgspec import Struct

from contextgraph.errors import LimitReachedError, MissingExtraError, RemoteError, SettingsError
from contextgraph.model import Usage
from contextgraph.text import clip, mask_secrets

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIError, OpenAI


class Closable(Protocol):
    """A client with open connections."""

    def close(self) -> None:
        """Close them."""


Answer = TypeVar("Answer")
Connection = TypeVar("Connection", bound=Closable)
Result = TypeVar("Result")

_MAX_ANSWER_BYTES = 64 << 20  # the vectors of the largest batch take a third of it
# The extension of a request whose answer is written to a file as it comes.
UNLIMITED = "contextgraph.unlimited"


class RetryPolicy(Struct, frozen=True):
    """Limits of a call: how long and how often it is tried.

    *timeout* is for one answer, in seconds; *retries* follow the first attempt, with the delays of
    the client. *total* is for all of that together, None: without a limit.
    """

    timeout: float
    retries: int
    total: float | None = None


# Re-embedding a whole memory: long, and started by hand.
BATCH = RetryPolicy(timeout=60, retries=20, total=600)
# Models on the user's own machine can take minutes, and answer one request at a time.
SLOW_MODEL = RetryPolicy(timeout=300, retries=5, total=330)
# A run that was learned can be embedded later.
BACKGROUND = RetryPolicy(timeout=60, retries=5, total=90)
# Somebody waits for a short answer of a model, and can do without it.
JUDGING = RetryPolicy(timeout=20, retries=2, total=25)
# An agent waits for the answer.
INTERACTIVE = RetryPolicy(timeout=1, retries=0, total=1)


class UnusableAnswerError(Exception):
    """An answer that does not have the expected form; *retry*: a later one may have it."""

    def __init__(self, reason: str, *, retry: bool) -> None:
        super().__init__(reason)
        self.retry = retry


class FailureKind(Enum):
    """Kinds of failure, each handled in its own way."""

    REFUSED = "no request with this key is answered"
    INVALID = "this request is never answered"
    DOWN = "no answer for now"


# After giving up, further calls fail at once for this many seconds.
_BREAK_SECONDS = {
    FailureKind.DOWN: 30.0,
    FailureKind.REFUSED: 300.0,
}


class Failure(Struct, frozen=True):
    """A call that failed, after the retries of the client."""

    kind: FailureKind
    reason: str


STORE_ADDRESS = "--store or CONTEXTGRAPH_STORE"
MODELS_ADDRESS = "OPENAI_BASE_URL"
NOTES_ADDRESS = "CONTEXTGRAPH_NOTES"


def split_address(address: str, given: str) -> SplitResult:
    """Return the parts of the *address* of a server; *given* names the setting that has it.

    Raises `SettingsError` where its host or its port cannot be one.
    """
    shown = "the address of a server" if "@" in address else address  # it may hold a password
    try:
        parts = urlsplit(address)
    except ValueError as error:
        hosts = "a name, an IPv4 address, or an IPv6 address in brackets such as [::1]"
        raise SettingsError(f"{shown}: its host is not {hosts}; correct {given}") from error
    try:
        _ = parts.port
    except ValueError as error:
        reason = "its port is not a number below 65536"
        raise SettingsError(f"{shown}: {reason}; correct {given}") from error
    return parts


class Remote(ABC, Generic[Connection]):
    """A server at *url*, used with *key*; the first call opens the connection.

    Threads share it; a forked process opens connections of its own. The key is never part of a
    message or of the representation.
    """

    given = STORE_ADDRESS

    def __init__(self, url: str, key: str | None = None) -> None:
        self.url = url
        self._key = key or ""
        self._broken: dict[RetryPolicy | None, tuple[float, str]] = {}
        self._reset()

    def _reset(self) -> None:
        """Start in this process: locks and connections of its parent cannot be used."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._client: Connection | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def name(self) -> str:
        """The address without user, password and query."""
        parts = split_address(self.url, self.given)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    def call(self, request: Callable[[Connection], Answer], policy: RetryPolicy) -> Answer:
        """Return the result of *request*, which is given the client, retried within *policy*.

        *request* raises `UnusableAnswerError` for an answer that it cannot use. Raises
        `RemoteError` where no answer can be had, and at once where that was so just before;
        `MissingExtraError` where the client is not installed.
        """
        attempt = partial(self._attempt, request, self._opened(), policy)
        self._fail_while_broken(policy)
        answer = attempt() if policy.total is None else _within(policy.total, attempt)
        if isinstance(answer, Failure):
            raise self._given_up(answer, policy)
        self._broken.clear()
        return answer

    def close(self) -> None:
        """Close the connections; the next call opens new ones."""
        with self._lock:
            if self._client is not None and self._process == os.getpid():
                self._client.close()
            self._client = None

    @abstractmethod
    def _open(self) -> Connection:
        """A client for the server; raises `MissingExtraError` where it is not installed."""

    @abstractmethod
    def _attempt(
        self, request: Callable[[Connection], Answer], client: Connection, policy: RetryPolicy
    ) -> Answer | Failure:
        """Return the result of *request*, tried again within *policy*, or the failure."""

    def _given_up(self, failure: Failure, policy: RetryPolicy) -> RemoteError:
        """The error to raise; calls that follow fail at once with it, for a while."""
        reason = f"{self.name}: {failure.reason}"
        seconds = _BREAK_SECONDS.get(failure.kind)
        if seconds is not None:
            scope = None if failure.kind is FailureKind.REFUSED else policy
            self._broken[scope] = (time.monotonic() + seconds, reason)
        return RemoteError(reason)

    def _fail_while_broken(self, policy: RetryPolicy) -> None:
        for given_up_with, (until, reason) in list(self._broken.items()):
            # An interactive caller times out early: a batch may still get an answer.
            applies = given_up_with is None or given_up_with.retries >= policy.retries
            if applies and until > time.monotonic():
                raise RemoteError(reason)

    def _opened(self) -> Connection:
        if self._process != os.getpid():
            self._reset()
        with self._lock:
            if self._client is None:
                self._client = self._open()
            return self._client


def _within(seconds: float, attempt: Callable[[], Answer | Failure]) -> Answer | Failure:
    """Return what *attempt* does, waited for in a thread: clients limit single steps only."""
    from concurrent.futures import Future, wait  # slow to load

    future: Future[Answer | Failure] = Future()

    def run() -> None:
        try:
            future.set_result(attempt())
        except Exception as error:  # noqa: BLE001  (raised in the thread that waits)
            future.set_exception(error)

    # A daemon: a process that ends does not wait for a server.
    threading.Thread(target=run, name="model API", daemon=True).start()
    if not wait([future], seconds).done:
        return Failure(FailureKind.DOWN, "no answer in time")
    return future.result()


def limit_answer(response: "Response") -> None:
    """Limit the size of an answer, and apply the time-out to the whole: httpx does to each part."""
    from httpx2 import ReadTimeout, SyncByteStream

    if UNLIMITED in response.request.extensions:
        return
    stream, seconds = response.stream, response.request.extensions["timeout"]["read"]
    ends = time.monotonic() + seconds

    class Limited(SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            assert isinstance(stream, SyncByteStream)
            size = 0
            for part in stream:
                size += len(part)
                if size > _MAX_ANSWER_BYTES:
                    reason = f"an answer of more than {_MAX_ANSWER_BYTES >> 20} MiB"
                    raise UnusableAnswerError(reason, retry=False)
                if time.monotonic() > ends:
                    raise ReadTimeout(f"no whole answer in {seconds} s", request=response.request)
                yield part

        def close(self) -> None:
            assert isinstance(stream, SyncByteStream)
            stream.close()

    response.stream = Limited()


Client = TypeVar("Client")


def with_proxies(url: str, given: str, client: Callable[..., Client]) -> Client:
    """Return the *client* of *url*, which uses the proxies of the environment but for loopback.

    *given* is as in `split_address`.

    Raises `MissingExtraError` where a proxy needs SOCKS and its support is not installed.
    """
    parts = split_address(url, given)
    is_local = is_loopback(parts.hostname or "")
    options: dict[str, Any] = {"trust_env": not is_local}
    if is_local and parts.scheme == "http":
        import ssl

        # Without certificates, which take 27 ms to load: no redirection to https is followed.
        options["verify"] = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        return client(**options)
    except ImportError as error:
        raise MissingExtraError(
            "a proxy in the environment (ALL_PROXY, HTTPS_PROXY or HTTP_PROXY) needs SOCKS; "
            "install its support with: pip install socksio; or unset the variable"
        ) from error


def is_loopback(host: str) -> bool:
    """Return whether *host*, a name or an address, is this machine."""
    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


DEFAULT_URL = "https://api.openai.com/v1"
_MAX_REASON_CHARS = 300
# Servers on this machine are given any key, such as a letter, which would be masked in each word.
_LEAST_SECRET = 8
_NO_CREDIT = "insufficient_quota"


class Endpoint(Remote["OpenAI"]):
    """The API of models at *url* ("": OpenAI's own)."""

    given = MODELS_ADDRESS

    def __init__(self, url: str = "", key: str | None = None) -> None:
        super().__init__(url or DEFAULT_URL, key)

    def _attempt(
        self, request: "Callable[[OpenAI], Answer]", client: "OpenAI", policy: RetryPolicy
    ) -> Answer | Failure:
        import openai

        try:
            return request(client.with_options(timeout=policy.timeout, max_retries=policy.retries))
        except (openai.APIError, UnusableAnswerError) as error:
            return failure_of(error, self._key)

    def _open(self) -> "OpenAI":
        if find_spec("openai") is None:
            raise MissingExtraError("the client of OpenAI is not installed", "openai")
        if not self._key and self.url == DEFAULT_URL:
            raise RemoteError(f"{self.name}: no API key; set OPENAI_API_KEY")
        from openai import DefaultHttpxClient, OpenAI

        hooks = {"response": [_refuse_untrusted, limit_answer]}
        return OpenAI(
            api_key=self._key or "none",  # self-hosted servers often need no key
            base_url=self.url,
            # A compressed answer of a few kilobytes could fill the memory.
            default_headers={"Accept-Encoding": "identity"},
            http_client=with_proxies(
                self.url, self.given, partial(DefaultHttpxClient, event_hooks=hooks)
            ),
        )


def _refuse_untrusted(response: "Response") -> None:
    """Refuse a redirection to another server, which would get the texts, and compressed answers."""
    location = response.headers["location"] if response.has_redirect_location else ""
    place, target = response.url, response.url.join(location)
    if (place.scheme, place.netloc) != (target.scheme, target.netloc):
        reason = f"redirects to {target.scheme}://{target.host}, which is another server"
        raise UnusableAnswerError(f"{reason}; set OPENAI_BASE_URL if that is right", retry=False)
    if response.headers.get("content-encoding", "identity") != "identity":
        raise UnusableAnswerError("a compressed answer, which was not requested", retry=False)


def failure_of(
    error: "APIError | UnusableAnswerError", secret: str, key_name: str = "OPENAI_API_KEY"
) -> Failure:
    """Return *error* as a failure, whose reason never contains *secret*, the key *key_name*."""
    import openai

    if isinstance(error.__cause__, UnusableAnswerError):  # the client wraps what its hooks raise
        error = error.__cause__
    if isinstance(error, UnusableAnswerError):
        return Failure(FailureKind.DOWN if error.retry else FailureKind.INVALID, str(error))
    if isinstance(error, openai.APITimeoutError):
        return Failure(FailureKind.DOWN, "no answer in time")
    if not isinstance(error, openai.APIStatusError):
        name = type(error.__cause__ or error).__name__
        return Failure(FailureKind.DOWN, f"no connection ({name})")
    text = str(error.message)
    is_secret = len(secret) >= _LEAST_SECRET
    masked = mask_secrets(text.replace(secret, "<secret>") if is_secret else text)
    message = clip(masked, _MAX_REASON_CHARS, at="end")
    status = error.status_code
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        reason = f"the API key was refused ({message}); check {key_name}"
        return Failure(FailureKind.REFUSED, reason)
    if error.code == _NO_CREDIT:
        return Failure(FailureKind.REFUSED, f"the account has no credit ({message})")
    return Failure(_kind_of(status), message)


def _kind_of(status: int) -> FailureKind:
    retry = status in (
        HTTPStatus.REQUEST_TIMEOUT,
        HTTPStatus.CONFLICT,
        HTTPStatus.TOO_MANY_REQUESTS,
    )
    is_down = retry or status >= HTTPStatus.INTERNAL_SERVER_ERROR
    return FailureKind.DOWN if is_down else FailureKind.INVALID


class Budget:
    """Refuses calls that may cost more than *max_cost* US dollars in total; None: no limit.

    Threads may share it. Calls in progress count with their estimate.
    """

    def __init__(self, max_cost: float | None = None) -> None:
        self.max_cost = max_cost
        self._lock = threading.Lock()
        self._spent = 0.0

    @contextmanager
    def reserve(self, estimate: float) -> Iterator[Callable[[Usage], None]]:
        """Reserve *estimate* US dollars for a call; call what is yielded with the real usage.

        Raises `LimitReachedError` where that is more than is left.
        """
        self._take(estimate)
        cost = 0.0

        def settle(usage: Usage) -> None:
            nonlocal cost
            cost = usage.cost

        try:
            yield settle
        finally:
            with self._lock:
                self._spent += cost - estimate

    def _take(self, estimate: float) -> None:
        with self._lock:
            if self.max_cost is not None and self._spent + estimate > self.max_cost:
                raise LimitReachedError(
                    f"another call would pass the cap of ${self.max_cost:.4f}: ${self._spent:.4f} "
                    f"spent, ${estimate:.4f} needed; raise --max-cost"
                )
            self._spent += estimate


_TABLE = """CREATE TABLE IF NOT EXISTS spent (
    memory TEXT NOT NULL, day TEXT NOT NULL, model TEXT NOT NULL,
    requests INTEGER NOT NULL, tokens INTEGER NOT NULL, cost REAL NOT NULL, cut INTEGER NOT NULL,
    PRIMARY KEY (memory, day, model)) WITHOUT ROWID"""


_ADD = """INSERT INTO spent VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET
    requests = requests + excluded.requests, tokens = tokens + excluded.tokens,
    cost = cost + excluded.cost, cut = cut + excluded.cut"""


_TOTALS = """SELECT model, sum(requests), sum(tokens), sum(cost), sum(cut) FROM spent
    WHERE memory = ? GROUP BY model ORDER BY model"""


class UsageLog:
    """Counts in the SQLite file *path* what *memory* used of each model; None: not counted.

    Threads and processes may share the file. What cannot be written is logged and stops nothing.
    """

    def __init__(
        self,
        path: Path | None,
        memory: str,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._path = path
        self._memory = memory
        self._now = now

    def add(self, model: str, usage: Usage) -> None:
        """Add *usage* of *model*."""
        day = self._now().date().isoformat()
        counts = (usage.requests, usage.tokens, usage.cost, usage.cut)
        row = (self._memory, day, model, *counts)
        if usage.requests:
            in_side_file(self._path, _TABLE, lambda file: file.execute(_ADD, row), None)

    def totals(self) -> dict[str, Usage]:
        """Model -> what the memory used of it, as counted on this machine."""

        def read(file: sqlite3.Connection) -> dict[str, Usage]:
            found = file.execute(_TOTALS, (self._memory,))
            return {model: Usage(*counts) for model, *counts in found}

        is_there = self._path is not None and self._path.exists()
        return in_side_file(self._path, _TABLE, read, {}) if is_there else {}


def in_side_file(
    path: Path | None,
    tables: str,
    work: Callable[[sqlite3.Connection], Result],
    otherwise: Result,
) -> Result:
    """Return what *work* does with the SQLite file *path*, which has *tables*.

    Threads and processes may share it. It is no part of a memory: without a path, and where the
    file cannot be used, which is logged, the result is *otherwise*.
    """
    if path is None:
        return otherwise
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with closing(sqlite3.connect(path)) as connection, connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(tables)
            return work(connection)
    except (OSError, sqlite3.Error) as error:
        import logging  # not for each query

        logging.getLogger(__name__).warning("%s cannot be used: %s", path, error)
        return otherwise

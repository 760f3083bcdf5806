"""Calls of a server: retries within time limits, at the rate that the server permits."""

import os
import random
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from contextgraph.errors import RemoteError
from contextgraph.lazy import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

    from httpx2 import Response


class Closable(Protocol):
    """A client with open connections."""

    def close(self) -> None:
        """Close them."""


Answer = TypeVar("Answer")
Connection = TypeVar("Connection", bound=Closable)

_FIRST_DELAY, _MAX_DELAY = 0.5, 20.0
_MIN_INTERVAL, _MAX_INTERVAL = 0.05, 2.0
# Half the rate after a refusal; each answer makes up for most of one. A server that refuses three
# requests in ten, at whatever rate, is then not called ever more slowly.
_SLOWER, _FASTER = 2.0, 0.6
_MAX_ANSWER_BYTES = 64 << 20  # the vectors of the largest batch take a third of it
# The extension of a request whose answer is written to a file as it comes.
UNLIMITED = "contextgraph.unlimited"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How long a call is retried, in seconds.

    *timeout* is for one answer, *outage* for a server that does not answer, *rate_limit* for one
    that asks to slow down; *total* is for all of that together, None: without a limit.
    """

    timeout: float
    outage: float
    rate_limit: float
    total: float | None = None


# Re-embedding a whole memory: long, and started by hand.
BATCH = RetryPolicy(timeout=60, outage=60, rate_limit=600)
# Models on the user's own machine can take minutes, and answer one request at a time.
SLOW_MODEL = RetryPolicy(timeout=300, outage=20, rate_limit=60)
# A run that was learned can be embedded later.
BACKGROUND = RetryPolicy(timeout=60, outage=20, rate_limit=60)
# Somebody waits for a short answer of a model, and can do without it.
JUDGING = RetryPolicy(timeout=20, outage=2, rate_limit=5)
# An agent waits for the answer.
INTERACTIVE = RetryPolicy(timeout=1, outage=1, rate_limit=1, total=1)


class UnusableAnswerError(Exception):
    """An answer that does not have the expected form; *retry*: the next one may have it."""

    def __init__(self, reason: str, *, retry: bool) -> None:
        super().__init__(reason)
        self.retry = retry


class FailureKind(Enum):
    """How a failure is handled."""

    REFUSED = "no request with this key is answered"
    INVALID = "this request is never answered"
    RATE_LIMITED = "too many requests"
    DOWN = "no answer for now"


# After giving up, further calls fail at once for this many seconds.
_BREAK_SECONDS = {
    FailureKind.DOWN: 30.0,
    FailureKind.RATE_LIMITED: 30.0,
    FailureKind.REFUSED: 300.0,
}


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed attempt; *retry_after* is the delay in seconds that the server asks for."""

    kind: FailureKind
    reason: str
    retry_after: float | None = None


class Pace:
    """When the next request may be sent. Threads share it: a refusal of one slows all."""

    def __init__(self, now: Callable[[], float], sleep: Callable[[float], None]) -> None:
        self._now, self._sleep = now, sleep
        self._lock = threading.Lock()
        self._interval = 0.0
        self._next = 0.0

    def wait(self) -> None:
        """Block until it is this caller's turn."""
        with self._lock:
            turn = max(self._next, self._now())
            self._next = turn + self._interval
        while (left := turn - self._now()) > 0:
            self._sleep(left)

    def slow_down(self, seconds: float) -> None:
        """Send nothing for *seconds*, and fewer requests from then on."""
        with self._lock:
            self._next = max(self._next, self._now() + seconds)
            slower = max(self._interval * _SLOWER, _MIN_INTERVAL)
            self._interval = min(slower, _MAX_INTERVAL)

    def speed_up(self) -> None:
        """Record that a request was answered."""
        with self._lock:
            faster = self._interval * _FASTER
            self._interval = faster if faster > _MIN_INTERVAL / 2 else 0.0


class Remote(ABC, Generic[Connection]):
    """A server at *url*, used with *key*; the first call opens the connection.

    Threads share it, and with it the pace that the server asks for; a forked process opens
    connections of its own. The key is never part of a message or of the representation.
    """

    def __init__(
        self,
        url: str,
        key: str | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url
        self._key = key or ""
        self._now, self._sleep = now, sleep
        self._broken: dict[RetryPolicy | None, tuple[float, str]] = {}
        self._reset()

    def _reset(self) -> None:
        """Start in this process: locks and connections of its parent cannot be used."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._pace = Pace(self._now, self._sleep)
        self._client: Connection | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name})"

    @property
    def name(self) -> str:
        """The address without user, password and query."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    def call(self, request: Callable[[Connection], Answer], policy: RetryPolicy) -> Answer:
        """The result of *request*, which is given the client, retried within *policy*.

        *request* raises `UnusableAnswerError` for an answer that it cannot use. Raises
        `RemoteError` where no answer can be had, and at once where that was so just before;
        `MissingExtraError` where the client is not installed.
        """
        client = self._opened()
        self._fail_while_broken(policy)
        if policy.total is None:
            return self._answer(request, client, policy)
        return self._answer_within(policy.total, request, client, policy)

    def _answer_within(
        self,
        seconds: float,
        request: Callable[[Connection], Answer],
        client: Connection,
        policy: RetryPolicy,
    ) -> Answer:
        """The answer, waited for in a thread: the limits of the client are for single steps."""
        from concurrent.futures import Future, wait  # slow to load

        future: Future[Answer] = Future()

        def run() -> None:
            try:
                future.set_result(self._answer(request, client, policy))
            except Exception as error:  # noqa: BLE001  (raised in the thread that waits)
                future.set_exception(error)

        # A daemon: a process that ends does not wait for a server.
        threading.Thread(target=run, name="model API", daemon=True).start()
        if not wait([future], seconds).done:
            raise self._given_up(Failure(FailureKind.DOWN, "no answer in time"), policy)
        return future.result()

    def _answer(
        self, request: Callable[[Connection], Answer], client: Connection, policy: RetryPolicy
    ) -> Answer:
        wait_or_raise = self._retries(policy)
        while True:
            self._pace.wait()
            answer = self._attempt(request, client, policy)
            if not isinstance(answer, Failure):
                self._pace.speed_up()
                self._broken.clear()
                return answer
            wait_or_raise(answer)

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
        """Return the result of *request*, or the failure."""

    def _retries(self, policy: RetryPolicy) -> Callable[[Failure], None]:
        """A function that delays the next attempt after a failure, or raises at the end."""
        since: dict[FailureKind, float] = {}
        delays = _delays()

        def after(failure: Failure) -> None:
            limits = {
                FailureKind.RATE_LIMITED: policy.rate_limit,
                FailureKind.DOWN: policy.outage,
            }
            delay = failure.retry_after
            if delay is None:
                delay = next(delays)
            now = self._now()
            if now + delay > since.setdefault(failure.kind, now) + limits.get(failure.kind, -1.0):
                raise self._given_up(failure, policy) from None
            self._pace.slow_down(delay)

        return after

    def _given_up(self, failure: Failure, policy: RetryPolicy) -> RemoteError:
        """The error to raise; calls that follow fail at once with it, for a while."""
        reason = f"{self.name}: {failure.reason}"
        seconds = _BREAK_SECONDS.get(failure.kind)
        if seconds is not None:
            scope = None if failure.kind is FailureKind.REFUSED else policy
            self._broken[scope] = (self._now() + seconds, reason)
        return RemoteError(reason)

    def _fail_while_broken(self, policy: RetryPolicy) -> None:
        for given_up_with, (until, reason) in list(self._broken.items()):
            # An interactive caller times out early: a batch may still get an answer.
            applies = given_up_with is None or given_up_with.outage >= policy.outage
            if applies and until > self._now():
                raise RemoteError(reason)

    def _opened(self) -> Connection:
        if self._process != os.getpid():
            self._reset()
        with self._lock:
            if self._client is None:
                self._client = self._open()
            return self._client


def _delays() -> Iterator[float]:
    """Exponential back-off from half a second, with up to half of it as jitter."""
    delay = _FIRST_DELAY
    while True:
        yield delay * random.uniform(0.5, 1)
        delay = min(2 * delay, _MAX_DELAY)


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


def retry_after(headers: "Mapping[str, str]") -> float | None:
    """How many seconds *headers* ask to wait, given in milliseconds, seconds or as a date."""
    milliseconds, given = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(given)) if given else None
    except ValueError:
        return _seconds_until(given)


def _seconds_until(date: str) -> float | None:
    from email.utils import parsedate_to_datetime  # the import takes 6 ms; few servers send dates

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except ValueError:
        return None

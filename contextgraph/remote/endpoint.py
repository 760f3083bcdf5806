"""A server that speaks OpenAI's API, called with patience."""

import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

from contextgraph.errors import MissingExtraError, RemoteError
from contextgraph.remote.failures import Failure, Kind, UnusableAnswerError, failure_of
from contextgraph.remote.patience import Pace, Patience

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import OpenAI

Answer = TypeVar("Answer")

DEFAULT_URL = "https://api.openai.com/v1"
# After giving up, nobody waits for the next failure for so long.
_CLOSED_SECONDS = {Kind.DOWN: 30.0, Kind.LIMITED: 30.0, Kind.REFUSED: 300.0}
_FIRST_DELAY, _MOST_DELAY = 0.5, 20.0


class Endpoint:
    """The API at *url* ("": OpenAI's own), used with *key*; nothing is opened until first called.

    Threads share it, and with it the pace that the server asks for; a fork gets connections of its
    own. The key shows in no message, and not when this is printed.
    """

    def __init__(
        self,
        url: str = "",
        key: str | None = None,
        *,
        now: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.url = url or DEFAULT_URL
        self._key = key or ""
        self._now, self._sleep = now, sleep
        self._closed: dict[Patience | None, tuple[float, str]] = {}
        self._begin()

    def _begin(self) -> None:
        """Start in this process: locks and connections of its parent are not its own."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._pace = Pace(self._now, self._sleep)
        self._client: OpenAI | None = None

    def __repr__(self) -> str:
        return f"Endpoint({self.name})"

    @property
    def name(self) -> str:
        """Where it is, without what should not be shown."""
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        return f"{parts.scheme}://{parts.hostname}{port}{parts.path}"

    def call(self, ask: "Callable[[OpenAI], Answer]", patience: Patience) -> Answer:
        """What *ask* gets of the client, tried again as long as *patience* lasts.

        *ask* raises `UnusableAnswerError` for an answer that it can do nothing with. Raises
        `RemoteError` where no answer can be had, and at once where that was so just now;
        `MissingExtraError` where the client is not installed.
        """
        client = self._opened()
        self._refuse_while_closed(patience)
        attempts = self._attempts(patience)
        while True:
            self._pace.wait()
            failure = self._try(ask, client, patience)
            if not isinstance(failure, Failure):
                return failure
            attempts(failure)

    def close(self) -> None:
        """Release connections; the next call opens them anew."""
        with self._lock:
            if self._client is not None and self._process == os.getpid():
                self._client.close()
            self._client = None

    def _try(
        self, ask: "Callable[[OpenAI], Answer]", client: "OpenAI", patience: Patience
    ) -> Answer | Failure:
        import openai

        try:
            answer = ask(client.with_options(timeout=patience.timeout))
        except (openai.APIError, UnusableAnswerError) as error:
            return failure_of(error, self._key)
        self._pace.speed_up()
        self._closed.clear()
        return answer

    def _attempts(self, patience: Patience) -> Callable[[Failure], None]:
        """A function that waits after a failure, or raises where patience has come to an end."""
        since: dict[Kind, float] = {}
        delays = _delays()

        def after(failure: Failure) -> None:
            lasts = {Kind.LIMITED: patience.limited, Kind.DOWN: patience.outage}
            delay = failure.retry_after
            if delay is None:
                delay = next(delays)
            now = self._now()
            if now + delay > since.setdefault(failure.kind, now) + lasts.get(failure.kind, -1.0):
                raise self._given_up(failure, patience) from None
            self._pace.slow_down(delay)

        return after

    def _given_up(self, failure: Failure, patience: Patience) -> RemoteError:
        """The error to raise; whoever asks next hears it at once, for a while."""
        reason = f"{self.name}: {failure.reason}"
        seconds = _CLOSED_SECONDS.get(failure.kind)
        if seconds is not None:
            whose = None if failure.kind is Kind.REFUSED else patience
            self._closed[whose] = (self._now() + seconds, reason)
        return RemoteError(reason)

    def _refuse_while_closed(self, patience: Patience) -> None:
        for whose, (until, reason) in list(self._closed.items()):
            # A hasty caller that gave up says nothing about how a patient one would have fared.
            is_his = whose is None or whose.outage >= patience.outage
            if is_his and until > self._now():
                raise RemoteError(reason)

    def _opened(self) -> "OpenAI":
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            if self._client is None:
                self._client = self._open()
            return self._client

    def _open(self) -> "OpenAI":
        if find_spec("openai") is None:
            raise MissingExtraError(
                "the client of OpenAI is not installed; "
                "install it with: pip install 'contextgraph-memory[openai]'"
            )
        if not self._key and self.url == DEFAULT_URL:
            raise RemoteError(f"{self.name}: no API key; set OPENAI_API_KEY")
        from openai import DefaultHttpxClient, OpenAI

        return OpenAI(
            api_key=self._key or "none",  # servers of one's own often ask for no key
            base_url=self.url,
            max_retries=0,  # the client knows neither of the other threads nor of our patience
            http_client=DefaultHttpxClient(event_hooks={"response": [_bound_in_time]}),
        )


def _delays() -> Iterator[float]:
    """Half a second, twice as long each time, less up to a half so that callers spread out."""
    delay = _FIRST_DELAY
    while True:
        yield delay * random.uniform(0.5, 1)
        delay = min(2 * delay, _MOST_DELAY)


def _bound_in_time(response: "Response") -> None:
    """Let the whole answer take no longer than its time-out, which bounds each part only."""
    from httpx2 import ReadTimeout, SyncByteStream

    stream, seconds = response.stream, response.request.extensions["timeout"]["read"]
    ends = time.monotonic() + seconds

    class Bound(SyncByteStream):
        def __iter__(self) -> Iterator[bytes]:
            assert isinstance(stream, SyncByteStream)
            for part in stream:
                if time.monotonic() > ends:
                    raise ReadTimeout(f"no whole answer in {seconds} s", request=response.request)
                yield part

        def close(self) -> None:
            assert isinstance(stream, SyncByteStream)
            stream.close()

    response.stream = Bound()

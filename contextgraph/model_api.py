"""Calls of model APIs: the endpoint, a spending cap, a usage log."""

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from http import HTTPStatus
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.errors import MissingExtraError, RemoteError
from contextgraph.model import Usage
from contextgraph.remote import (
    Answer,
    Failure,
    FailureKind,
    Remote,
    RetryPolicy,
    UnusableAnswerError,
    limit_answer,
    retry_after,
)
from contextgraph.text import clip, mask_secrets

if TYPE_CHECKING:
    from httpx2 import Response
    from openai import APIError, OpenAI

DEFAULT_URL = "https://api.openai.com/v1"
_MAX_REASON_CHARS = 300
_NO_CREDIT = "insufficient_quota"

_log = logging.getLogger(__name__)


class Endpoint(Remote["OpenAI"]):
    """The API of models at *url* ("": OpenAI's own)."""

    def __init__(self, url: str = "", key: str | None = None) -> None:
        super().__init__(url or DEFAULT_URL, key)

    def _attempt(
        self, request: "Callable[[OpenAI], Answer]", client: "OpenAI", policy: RetryPolicy
    ) -> Answer | Failure:
        import openai

        try:
            return request(client.with_options(timeout=policy.timeout))
        except (openai.APIError, UnusableAnswerError) as error:
            return failure_of(error, self._key)

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
            api_key=self._key or "none",  # self-hosted servers often need no key
            base_url=self.url,
            max_retries=0,  # its retries know neither the other threads nor our time limits
            # A compressed answer of a few kilobytes could fill the memory.
            default_headers={"Accept-Encoding": "identity"},
            http_client=DefaultHttpxClient(
                event_hooks={"response": [_refuse_untrusted, limit_answer]}
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
    """How *error* is handled; its reason never contains *secret*, the key called *key_name*."""
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
    masked = mask_secrets(text.replace(secret, "<secret>") if secret else text)
    message = clip(masked, _MAX_REASON_CHARS, at="end")
    status = error.status_code
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        reason = f"the API key was refused ({message}); check {key_name}"
        return Failure(FailureKind.REFUSED, reason)
    if error.code == _NO_CREDIT:
        return Failure(FailureKind.REFUSED, f"the account has no credit ({message})")
    return Failure(_kind_of(status), message, retry_after(error.response.headers))


def _kind_of(status: int) -> FailureKind:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return FailureKind.RATE_LIMITED
    retry = status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT)
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

        Raises `RemoteError` where that is more than is left.
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
                raise RemoteError(
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
            self._run(lambda connection: connection.execute(_ADD, row))

    def totals(self) -> dict[str, Usage]:
        """Model -> what the memory used of it, as counted on this machine."""
        usages: dict[str, Usage] = {}

        def read(connection: sqlite3.Connection) -> None:
            for model, *counts in connection.execute(_TOTALS, (self._memory,)):
                usages[model] = Usage(*counts)

        if self._path is not None and self._path.exists():
            self._run(read)
        return usages

    def _run(self, work: Callable[[sqlite3.Connection], object]) -> None:
        if self._path is None:
            return
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path)) as connection, connection:
                connection.execute(_TABLE)
                work(connection)
        except (OSError, sqlite3.Error) as error:
            _log.warning("model usage cannot be written to %s: %s", self._path, error)

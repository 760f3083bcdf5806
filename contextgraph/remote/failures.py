"""What an error of the client means: try again, slow down, or give up."""

import time
from dataclasses import dataclass
from enum import Enum
from http import HTTPStatus
from typing import TYPE_CHECKING

from contextgraph.text import clip, mask_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from openai import APIError

_MOST_CHARS = 300
_NO_CREDIT = "insufficient_quota"


class UnusableAnswerError(Exception):
    """An answer that is not what was asked for; *again* says whether the next one may be."""

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.again = again


class Kind(Enum):
    """What to do about a failure."""

    REFUSED = "nobody with this key will be answered"
    WRONG = "this request will never be answered"
    LIMITED = "too many requests"
    DOWN = "not answered just now"


@dataclass(frozen=True, slots=True)
class Failure:
    """What went wrong; *retry_after* is how many seconds the server asks to wait."""

    kind: Kind
    reason: str
    retry_after: float | None = None


def failure_of(error: "APIError | UnusableAnswerError", secret: str) -> Failure:
    """What *error* means; its reason never shows *secret*."""
    import openai

    if isinstance(error, UnusableAnswerError):
        return Failure(Kind.DOWN if error.again else Kind.WRONG, str(error))
    if isinstance(error, openai.APITimeoutError):
        return Failure(Kind.DOWN, "no answer in time")
    if not isinstance(error, openai.APIStatusError):
        return Failure(Kind.DOWN, f"no connection ({type(error.__cause__ or error).__name__})")
    said = clip(_without(str(error.message), secret), _MOST_CHARS, at="end")
    status = error.status_code
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return Failure(Kind.REFUSED, f"the API key was refused ({said}); check OPENAI_API_KEY")
    if error.code == _NO_CREDIT:
        return Failure(Kind.REFUSED, f"the account has no credit ({said})")
    kind = _kind_of(status)
    return Failure(kind, said, _retry_after(error.response.headers))


def _kind_of(status: int) -> Kind:
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return Kind.LIMITED
    again = status in (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT)
    return Kind.DOWN if again or status >= HTTPStatus.INTERNAL_SERVER_ERROR else Kind.WRONG


def _without(text: str, secret: str) -> str:
    return mask_secrets(text.replace(secret, "<secret>") if secret else text)


def _retry_after(headers: "Mapping[str, str]") -> float | None:
    """Seconds, from a header that gives milliseconds, seconds or a date."""
    milliseconds, given = headers.get("retry-after-ms", ""), headers.get("retry-after", "")
    try:
        if milliseconds:
            return max(0.0, float(milliseconds) / 1000)
        return max(0.0, float(given)) if given else None
    except ValueError:
        return _until(given)


def _until(date: str) -> float | None:
    from email.utils import parsedate_to_datetime  # costs 6 ms, and few servers send a date

    try:
        return max(0.0, parsedate_to_datetime(date).timestamp() - time.time())
    except ValueError:
        return None

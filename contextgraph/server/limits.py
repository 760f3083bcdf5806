"""How often a token may be used, and how large a body may be."""

import time
from collections.abc import Mapping

from fastapi import HTTPException
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class RateLimiter:
    """Lets each key pass *rate* times a second, twice as often for a moment."""

    def __init__(self, rate: float) -> None:
        self._rate = rate
        self._left: dict[str, tuple[float, float]] = {}

    def wait(self, key: str) -> float:
        """Seconds until *key* may pass; 0 where it passes now."""
        now = time.monotonic()
        left, at = self._left.get(key, (2 * self._rate, now))
        left = min(2 * self._rate, left + (now - at) * self._rate)
        self._left[key] = (max(left - 1, 0.0) if left >= 1 else left, now)
        return 0.0 if left >= 1 else (1 - left) / self._rate


class BodyLimiter:
    """Refuses bodies of more than *limit* bytes; those of *paths* have limits of their own."""

    def __init__(self, app: ASGIApp, limit: int, paths: Mapping[str, int]) -> None:
        self._app = app
        self._limit = limit
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limit = self._paths.get(scope["path"], self._limit)
        announced = Headers(scope=scope).get("content-length", "")
        received = 0

        async def limited() -> Message:
            nonlocal received
            # What is announced is refused before it is received.
            _refuse(int(announced) if announced.isdecimal() else 0, limit)
            message = await receive()
            received += len(message.get("body", b""))
            _refuse(received, limit)
            return message

        await self._app(scope, limited, send)


def _refuse(size: int, limit: int) -> None:
    """Raise HTTPException for a body above the *limit*."""
    if size > limit:
        raise HTTPException(413, f"a body may have at most {limit} bytes")

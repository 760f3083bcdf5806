"""Who calls: the token of a request, its scope, and how often it may be used."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from contextgraph.model import RawTrajectory
from contextgraph.server.observing import TENANT
from contextgraph.server.service import Service, Tenant
from contextgraph.server.tokens import Scope, Token

_bearer = HTTPBearer(auto_error=False, description="A token of `contextgraph token create`.")

LOCAL = "local"  # the source of what is learned without tokens


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request: the *tenant* that it is about, and the *source* of what it teaches."""

    service: Service
    tenant: Tenant
    source: str

    def source_of(self, raw: RawTrajectory) -> str:
        """Where *raw* comes from: this caller, and the file that it names."""
        return ":".join(filter(None, (self.source, raw.source)))


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


def allowed(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    """A dependency: the caller, whose token must have *scope*."""

    async def caller(
        request: Request,
        credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
    ) -> Caller:
        return await caller_of(request, credentials.credentials if credentials else "", scope)

    return caller


async def caller_of(request: Request, text: str, scope: Scope) -> Caller:
    """The caller whose token is *text*; raises HTTPException where it must not do this."""
    service: Service = request.app.state.service
    if service.tokens is None:
        return await _caller(request, service, service.settings.tenant, LOCAL)
    token = await service.answer(service.tokens.find, text) if text else None
    if token is None:
        reason = "the token is wrong or revoked" if text else "a bearer token is needed"
        raise HTTPException(401, reason, {"WWW-Authenticate": "Bearer"})
    if not token.allows(scope):
        raise HTTPException(403, f"the token does not have the scope {scope}")
    _limit(request, token)
    return await _caller(request, service, token.tenant, token.source)


async def _caller(request: Request, service: Service, tenant: str, source: str) -> Caller:
    found = await service.answer(service.tenant, tenant)
    request.scope[TENANT] = found  # whose request the log and the metrics count
    return Caller(service, found, source)


def _limit(request: Request, token: Token) -> None:
    limiter: RateLimiter = request.app.state.rates
    if wait := limiter.wait(token.id):
        seconds = f"{int(wait) + 1}"
        raise HTTPException(429, "too many requests with this token", {"Retry-After": seconds})


Reader = Annotated[Caller, Depends(allowed(Scope.READ))]
Writing = Annotated[Caller, Depends(allowed(Scope.WRITE))]
Admin = Annotated[Caller, Depends(allowed(Scope.ADMIN))]

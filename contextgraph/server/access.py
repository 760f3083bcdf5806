"""Authentication and authorisation of requests: tokens, scopes, rate limits."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPBearer

from contextgraph.memory import AgentMemory
from contextgraph.server.monitoring import TENANT
from contextgraph.server.service import Service, Tenant
from contextgraph.server.tokens import Scope, Token

bearer = HTTPBearer(auto_error=False, description="A token of `contextgraph token create`.")

_AGES_AGO = datetime(1970, 1, 1, tzinfo=UTC)
COOKIE = "contextgraph_token"
LOCAL = "local"  # the source of what is learned without tokens


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, with which *token*, and the *tenant* that it is about."""

    service: Service
    tenant: Tenant
    token: Token

    @property
    def memory(self) -> AgentMemory:
        """The memory of the tenant."""
        return self.tenant.memory


def allowed(scope: Scope) -> Callable[..., Awaitable[Caller]]:
    """A dependency: the caller, whose token must have *scope*."""

    async def caller(request: Request) -> Caller:
        return await caller_of(request, scope)

    return caller


async def caller_of(request: Request, scope: Scope, text: str | None = None) -> Caller:
    """Who sent *request*; raises HTTPException without a token that has *scope*.

    *text* is the token; without it that of the header counts.
    """
    service: Service = request.app.state.service
    if text is None:
        credentials = await bearer(request)
        text = credentials.credentials if credentials else ""
    token = await _token(service, text)
    if not token.allows(scope):
        raise HTTPException(403, f"the token does not have the scope {scope}")
    if service.tokens:
        _limit(service, token)
    tenant = await service.known(token.tenant)
    request.scope[TENANT] = tenant  # whose request the log and the metrics count
    return Caller(service, tenant, token)


async def _token(service: Service, text: str) -> Token:
    if service.tokens is None:
        # Without tokens everyone on this machine may do everything.
        return Token("", "", (Scope.ADMIN,), service.settings.tenant, LOCAL, _AGES_AGO)
    token = service.tokens.verified(text)
    if token is None and text:
        token = await service.answer(service.tokens.find, text)
    if token is None:
        reason = "the token is wrong or revoked" if text else "a bearer token is needed"
        raise HTTPException(401, reason, {"WWW-Authenticate": "Bearer"})
    return token


def _limit(service: Service, token: Token) -> None:
    if wait := service.rates.wait(token.id):
        seconds = f"{int(wait) + 1}"
        raise HTTPException(429, "too many requests with this token", {"Retry-After": seconds})


Reader = Annotated[Caller, Depends(allowed(Scope.READ))]
Writing = Annotated[Caller, Depends(allowed(Scope.WRITE))]
Admin = Annotated[Caller, Depends(allowed(Scope.ADMIN))]

"""Access control: other sites, tokens, scopes, rate limits."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, HTTPException, Request
from fastapi.security import HTTPBearer
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope as AsgiScope, Send

from contextgraph.lazy import dataclass
from contextgraph.memory import AgentMemory
from contextgraph.operations import TokenScope
from contextgraph.service.monitoring import TENANT, problem
from contextgraph.service.service import Service, Tenant
from contextgraph.service.tokens import Token

bearer = HTTPBearer(auto_error=False, description="A token of `contextgraph token create`.")

_AGES_AGO = datetime(1970, 1, 1, tzinfo=UTC)
COOKIE = "contextgraph_token"
LOCAL = "local"  # the source of what is learned without tokens

_LOOPBACK = ("localhost", "127.0.0.1", "::1")
# What a page can send to another site without asking it first; "" is a body without a type.
_SIMPLE_TYPES = ("", "text/plain", "application/x-www-form-urlencoded", "multipart/form-data")


class SiteGuard:
    """Refuses requests that a page of another site makes a browser send.

    A browser says where a request comes from: in ``Sec-Fetch-Site``, or else in ``Origin``.
    Following a link is allowed. Without tokens (*is_open*) any page could send what is valid, so
    hosts must be names of this machine (against DNS rebinding), and bodies must have a type for
    which a browser asks first.
    """

    def __init__(self, app: ASGIApp, *, is_open: bool) -> None:
        self._app = app
        self._is_open = is_open

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        app = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if self._is_open and _host(headers.get("Host", "")) not in _LOOPBACK:
                app = problem(400, "without tokens the host must be localhost or 127.0.0.1")
            elif _is_foreign(scope["method"], headers):
                app = problem(403, "pages of other sites may not send requests to this service")
            elif self._is_open and scope["method"] == "POST" and _is_simple(scope["path"], headers):
                app = problem(
                    415,
                    "without tokens the type must be application/json or application/octet-stream",
                )
        await app(scope, receive, send)


def _host(address: str) -> str | None:
    try:
        return urlsplit(f"//{address}").hostname
    except ValueError:
        return None


def _is_foreign(method: str, headers: Headers) -> bool:
    if site := headers.get("Sec-Fetch-Site"):
        is_link = (
            method == "GET"
            and headers.get("Sec-Fetch-Mode") == "navigate"
            and headers.get("Sec-Fetch-Dest") == "document"
        )
        return not is_link and site not in ("same-origin", "none")
    origin = headers.get("Origin")
    return origin is not None and origin.partition("://")[2] != headers.get("Host")


def _is_simple(path: str, headers: Headers) -> bool:
    has_body = headers.get("Content-Length", "0") != "0" or "Transfer-Encoding" in headers
    kind = headers.get("Content-Type", "").partition(";")[0].strip().lower()
    # The forms of pages are simple; their origin is checked.
    return has_body and kind in _SIMPLE_TYPES and not path.startswith("/pages")


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request, its *token*, and the *tenant* that it is about."""

    service: Service
    tenant: Tenant
    token: Token

    @property
    def memory(self) -> AgentMemory:
        """The memory of the tenant, which records nothing for a token that may only read."""
        may_write = self.token.allows(TokenScope.WRITE)
        return self.tenant.memory if may_write else self.tenant.reading


def allowed(scope: TokenScope) -> Callable[..., Awaitable[Caller]]:
    """A dependency: the caller, whose token must have *scope*."""

    async def caller(request: Request) -> Caller:
        return await caller_of(request, scope)

    return caller


async def caller_of(request: Request, scope: TokenScope, text: str | None = None) -> Caller:
    """Return the sender of *request*; raises HTTPException without a token that has *scope*.

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
        return Token("", "", (TokenScope.ADMIN,), service.settings.tenant, LOCAL, _AGES_AGO)
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


Writing = Annotated[Caller, Depends(allowed(TokenScope.WRITE))]
Admin = Annotated[Caller, Depends(allowed(TokenScope.ADMIN))]

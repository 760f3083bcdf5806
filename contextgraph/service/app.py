"""The service as an ASGI application, and the process that serves it."""

import socket
from asyncio import TimerHandle, Transport
from collections.abc import AsyncIterator, Callable, Container
from contextlib import asynccontextmanager
from contextvars import ContextVar
from importlib.metadata import version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit
from uuid import uuid4

import uvicorn
from anyio import Lock, create_task_group, current_time, fail_after, sleep_forever
from anyio.abc import TaskStatus
from anyio.to_thread import run_sync
from fastapi import FastAPI, HTTPException, Request, Response
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from contextgraph.agents.shown import Session
from contextgraph.config import RUNNING_AGENT, Settings
from contextgraph.errors import SettingsError
from contextgraph.service import routes
from contextgraph.service.monitoring import Observer, add_handlers, log_to_stderr, problem
from contextgraph.service.operations import TokenScope
from contextgraph.service.routes import Caller, caller_of, json_response, parsed_body
from contextgraph.service.service import Limits, Service
from contextgraph.service.tokens import TokenFile
from contextgraph.system.processes import exporting
from contextgraph.system.remote import is_loopback

if TYPE_CHECKING:
    from mcp.server.mcpserver import MCPServer

_VERSION = version("contextgraph-memory")  # read from the files of the package: 0.2 ms

# Of all requests but uploads: JSON is parsed before anything else is answered.
_BODY_BYTES = 8 << 20
_UPLOAD_SECONDS = 600

_HEADER_BYTES, _HEADER_SECONDS = 64 << 10, 20

# Seconds after a signal at which unanswered requests are cut off.
_GRACE_SECONDS = 10
# Longer than clients pause: a request on a connection that is being closed would fail.
_KEEP_ALIVE_SECONDS = 75

_SESSION, _SESSION_CHARS = "Mcp-Session-Id", 100

_caller: ContextVar[Caller] = ContextVar("caller")
_session: ContextVar[Session] = ContextVar("session")


class McpEndpoint:
    """Streamable HTTP: each request is of one caller, and any server answers it.

    A session names what its agent was shown: a server that does not know it may repeat that.
    A token without the scope *write* has the tools that only read. The SDK is a quarter of what
    the service imports, so it is loaded by the first request.
    """

    def __init__(self) -> None:
        self._apps: dict[bool, ASGIApp] = {}
        self._making = Lock()

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests during the block."""
        async with create_task_group() as self._servers:
            yield
            self._servers.cancel_scope.cancel()

    async def _app(self, writes: bool, distils: bool) -> ASGIApp:
        async with self._making:
            if writes not in self._apps:
                server = await run_sync(_mcp_server, writes, distils)
                from mcp.server.transport_security import TransportSecuritySettings

                # The service checks hosts and tokens itself.
                unchecked = TransportSecuritySettings(enable_dns_rebinding_protection=False)
                app = server.streamable_http_app(
                    json_response=True, stateless_http=True, transport_security=unchecked
                )
                await self._servers.start(_run_sessions, server)
                self._apps[writes] = app
        return self._apps[writes]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        request = Request(scope, receive)
        caller = await caller_of(request, TokenScope.READ)
        content = await request.body()
        if content:  # the SDK parses it without limits
            await parsed_body(caller.service, content)
        messages: list[Message] = [{"type": "http.request", "body": content}]
        session = request.headers.get(_SESSION, "")[:_SESSION_CHARS]

        async def again() -> Message:
            return messages.pop() if messages else await receive()

        async def named(message: Message) -> None:
            if message["type"] == "http.response.start" and not session:
                MutableHeaders(scope=message)[_SESSION] = uuid4().hex
            await send(message)

        token = _caller.set(caller)
        memory, name = caller.memory, session and f"{caller.token.id} {session}"
        before = _session.set(caller.tenant.session(memory, name, caller.token.source))
        try:
            distils = caller.service.settings.distil == RUNNING_AGENT
            app = await self._app(caller.token.allows(TokenScope.WRITE), distils)
            await app(scope, again, named)
        finally:
            _session.reset(before)
            _caller.reset(token)


def _mcp_server(writes: bool, distils: bool) -> "MCPServer":
    from contextgraph.service.mcp_server import server_of

    return server_of(
        lambda: _caller.get().memory,
        source=lambda: _caller.get().token.source,
        session=_session.get,
        writes=writes,
        distils=distils,
    )


async def _run_sessions(server: "MCPServer", *, task_status: TaskStatus[None]) -> None:
    """Let *server* answer requests until the task is cancelled."""
    async with server.session_manager.run():
        task_status.started()
        await sleep_forever()


class BoundedProtocol(HttpToolsProtocol):
    """HTTP of uvicorn, whose parser alone takes headers of any size and waits for ever."""

    _header_bytes = 0
    _callbacks = 0
    _late: TimerHandle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        """Wait for the first request."""
        super().connection_made(transport)
        self._await_headers()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._end_waiting()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Parse what came, and refuse what is part of too long a header."""
        before = self._callbacks
        super().data_received(data)
        if self._callbacks == before:
            self._header_bytes += len(data)
            if self._header_bytes > _HEADER_BYTES and not self.transport.is_closing():
                self.send_400_response("")

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be parsed, and close the connection."""
        if self._header_bytes > _HEADER_BYTES:
            msg = f"The headers may have at most {_HEADER_BYTES} bytes."
        super().send_400_response(msg)

    def on_message_begin(self) -> None:
        """Wait for the headers of a request."""
        super().on_message_begin()
        self._header_bytes = 0
        if self._late is None:
            self._await_headers()

    def on_url(self, url: bytes) -> None:
        """Take a part of the address."""
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, or a trailer after the body."""
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Begin to answer the request."""
        self._end_waiting()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._callbacks += 1
        super().on_body(body)

    def _count(self, size: int) -> None:
        """Count bytes of headers; ValueError makes the parser refuse the request."""
        self._callbacks += 1
        self._header_bytes += size
        if self._header_bytes > _HEADER_BYTES:
            raise ValueError("headers too long")

    def _await_headers(self) -> None:
        self._late = self.loop.call_later(_HEADER_SECONDS, self.transport.close)

    def _end_waiting(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None


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

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        app = self._app
        if scope["type"] == "http":
            headers = Headers(scope=scope)
            if self._is_open and not is_loopback(_host(headers.get("Host", "")) or ""):
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


class BodyLimiter:
    """Refuses bodies that are too large, or do not arrive in time; *paths* take uploads."""

    def __init__(self, app: ASGIApp, limits: Limits, paths: Container[str]) -> None:
        self._app = app
        self._limits = limits
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        is_upload = scope["path"] in self._paths
        limit = self._limits.upload if is_upload else _BODY_BYTES
        deadline = current_time() + (_UPLOAD_SECONDS if is_upload else self._limits.seconds)
        announced = Headers(scope=scope).get("content-length", "")
        received, is_complete = 0, False

        async def limited() -> Message:
            nonlocal received, is_complete
            # What is announced is refused before it is received.
            _refuse(int(announced) if announced.isdecimal() else 0, limit)
            if is_complete:
                return await receive()
            try:
                with fail_after(deadline - current_time()):
                    message = await receive()
            except TimeoutError:
                close = {"Connection": "close"}
                raise HTTPException(408, "the body did not arrive in time", close) from None
            is_complete = not message.get("more_body", False)
            received += len(message.get("body", b""))
            _refuse(received, limit)
            return message

        await self._app(scope, limited, send)


def _refuse(size: int, limit: int) -> None:
    """Raise HTTPException for a body above the *limit*."""
    if size > limit:
        raise HTTPException(413, f"a body may have at most {limit} bytes")


def create_app(
    settings: Settings,
    tokens: TokenFile | None,
    limits: Limits,
) -> FastAPI:
    """Return the application for the memory of *settings*.

    Without *tokens* anyone may do everything. `contextgraph.console.routes.add_pages` adds pages.
    """
    mcp = McpEndpoint()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        app.state.service = service = Service(settings, tokens, limits)
        await run_sync(service.open)
        try:
            async with mcp.running():
                yield
        finally:
            await run_sync(service.close)

    app = FastAPI(
        title="ContextGraph",
        summary="The long-term memory of coding agents.",
        version=_VERSION,
        lifespan=lifespan,
        docs_url=None,  # they load scripts from other hosts
        redoc_url=None,
    )
    app.add_middleware(BodyLimiter, limits=limits, paths=("/v1/learn",))
    app.add_middleware(SiteGuard, is_open=tokens is None)
    app.add_middleware(Observer)
    add_handlers(app)
    app.router.routes.extend([*routes.router.routes, Route("/mcp", mcp)])
    app.add_api_route("/", home, include_in_schema=False)
    app.add_api_route("/healthz", healthz)
    app.add_api_route("/readyz", readyz)
    return app


async def home(request: Request) -> Response:
    """Lead a browser to the pages, and give programs their address."""
    if "text/html" in request.headers.get("Accept", ""):
        return RedirectResponse("/pages", 303)
    return json_response({"version": _VERSION, "pages": "/pages", "api": "/openapi.json"})


async def healthz() -> Response:
    """Answer while the process runs."""
    return json_response({"status": "ok", "version": _VERSION})


async def readyz(request: Request) -> Response:
    """Answer if the store does; 503 where it does not."""
    service: Service = request.app.state.service
    tenant = await service.known(service.settings.tenant)
    await service.answer(tenant.memory.store.runs.learned, [""])
    return json_response({"status": "ready"})


def serve(
    app: FastAPI,
    address: tuple[str, int],
    *,
    log_level: str,
    on_listening: Callable[[str], None],
) -> None:
    """Serve *app* on *address* (host, port; 0: any free one) until SIGTERM or SIGINT.

    *on_listening* is called with the URL. Raises `SettingsError` where the address is in use.
    """
    log_to_stderr(log_level)
    config = uvicorn.Config(
        app,
        http=BoundedProtocol,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    with _listening(*address) as listening:
        host, port = listening.getsockname()[:2]
        on_listening(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        with exporting("contextgraph"):
            uvicorn.Server(config).run([listening])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(address)
        opened.listen(2048)
    except OSError as error:
        raise SettingsError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return opened

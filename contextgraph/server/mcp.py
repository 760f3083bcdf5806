"""The tools of `contextgraph.mcp_server` at /mcp, for the tenant of the token."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from contextvars import ContextVar

from fastapi import Request
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import ASGIApp, Receive, Scope, Send

from contextgraph.mcp_server.server import server_of
from contextgraph.server.access import Caller, caller_of
from contextgraph.server.tokens import Scope as TokenScope

_caller: ContextVar[Caller] = ContextVar("caller")


class McpEndpoint:
    """Streamable HTTP without sessions: each request is of one caller, and any server answers it.

    A token without the scope *write* has the tools that only read.
    """

    def __init__(self) -> None:
        self._servers = {
            writes: server_of(
                lambda: _caller.get().tenant.memory,
                source=lambda: _caller.get().token.source,
                writes=writes,
            )
            for writes in (False, True)
        }
        self._apps: dict[bool, ASGIApp] = {
            writes: server.streamable_http_app(
                json_response=True,
                stateless_http=True,
                # The service checks hosts and tokens itself.
                transport_security=TransportSecuritySettings(enable_dns_rebinding_protection=False),
            )
            for writes, server in self._servers.items()
        }

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Answer requests during the block."""
        async with AsyncExitStack() as stack:
            for server in self._servers.values():
                await stack.enter_async_context(server.session_manager.run())
            yield

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        caller = await caller_of(Request(scope), TokenScope.READ)
        token = _caller.set(caller)
        try:
            await self._apps[caller.token.allows(TokenScope.WRITE)](scope, receive, send)
        finally:
            _caller.reset(token)

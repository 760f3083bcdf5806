"""The service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from anyio.to_thread import run_sync
from fastapi import Depends, FastAPI, Request, Response
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.routing import Route

from contextgraph.config import Settings
from contextgraph.server import administration, learning, live_runs, operations, pages, reading
from contextgraph.server.access import bearer
from contextgraph.server.limits import BodyLimiter, RateLimiter
from contextgraph.server.mcp import McpEndpoint
from contextgraph.server.monitoring import Observer
from contextgraph.server.problems import PROBLEMS, add_handlers
from contextgraph.server.reading import json_response
from contextgraph.server.service import Limits, Service
from contextgraph.server.tokens import TokenFile

_VERSION = version("contextgraph-memory")  # read from the files of the package: 0.2 ms

# Of all requests but uploads: JSON is parsed before anything else is answered.
_BODY_BYTES = 8 << 20

# Without tokens a page in a browser must not reach the service by a name of its own.
_LOOPBACK = ("localhost", "127.0.0.1", "[::1]", "testserver")


def create_app(settings: Settings, tokens: TokenFile | None, limits: Limits) -> FastAPI:
    """The application for the memory of *settings*; without *tokens* anyone may do everything."""

    mcp = McpEndpoint()

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        service = Service(settings, tokens, limits)
        app.state.service = service
        app.state.rates = RateLimiter(limits.rate)
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
    if tokens is None:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=[*_LOOPBACK])
    app.add_middleware(BodyLimiter, limit=_BODY_BYTES, paths={"/v1/learn": limits.upload})
    app.add_middleware(Observer)
    add_handlers(app)
    for routes in (reading, learning, live_runs, administration, operations):
        app.include_router(routes.router, dependencies=[Depends(bearer)], responses=PROBLEMS)
    app.include_router(pages.router)
    app.add_exception_handler(pages.SignedOutError, pages.signed_out)
    app.router.routes.append(Route("/mcp", mcp))
    app.add_api_route("/healthz", healthz)
    app.add_api_route("/readyz", readyz)
    return app


async def healthz() -> Response:
    """The process answers."""
    return json_response({"status": "ok", "version": _VERSION})


async def readyz(request: Request) -> Response:
    """The store answers; 503 where it does not."""
    service: Service = request.app.state.service
    tenant = await service.known(service.settings.tenant)
    await service.answer(tenant.memory.store.runs.learned, [""])
    return json_response({"status": "ready"})

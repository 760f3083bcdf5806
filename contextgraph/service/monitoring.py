"""Request ids, structured logs and metrics of the requests."""

import logging
import re
import sys
import time
from http import HTTPStatus
from typing import TYPE_CHECKING
from uuid import uuid4

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextgraph.telemetry import continued

if TYPE_CHECKING:
    from contextgraph.service.service import Tenant


TENANT = "contextgraph.tenant"  # the key of the tenant in the scope of a request
REQUEST_ID = "X-Request-ID"

_REQUEST_ID = re.compile(r"[\w.:-]{1,100}", re.ASCII)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_log = structlog.get_logger("contextgraph.service")


class Metrics:
    """Prometheus metrics of one tenant's requests, and of the process."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        self.requests = Counter(
            "contextgraph_requests",
            "Requests of this tenant.",
            ("method", "path", "status"),
            registry=self.registry,
        )
        self.seconds = Histogram(
            "contextgraph_request_seconds",
            "Seconds until a request of this tenant was answered.",
            ("method", "path"),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.waiting = Gauge(
            "contextgraph_waiting_runs",
            "Runs of this tenant that wait to be learned.",
            registry=self.registry,
        )
        self.live = Gauge(
            "contextgraph_live_runs", "Live runs of this tenant.", registry=self.registry
        )


class Observer:
    """Gives each request an id, and logs and counts it when it is answered."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get(REQUEST_ID, "")
        identity = given if _REQUEST_ID.fullmatch(given) else uuid4().hex
        status, started = HTTPStatus.INTERNAL_SERVER_ERROR.value, time.perf_counter()

        async def send_with_id(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[REQUEST_ID] = identity
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=identity), continued(headers):
            try:
                await self._app(scope, receive, send_with_id)
            finally:
                _note(scope, status, time.perf_counter() - started)


def _note(scope: Scope, status: int, seconds: float) -> None:
    # Not the path itself, which may hold anything: names of metrics are kept for ever.
    route = scope.get("route")
    method, path = scope["method"], getattr(route, "path", "other")
    tenant: Tenant | None = scope.get(TENANT)
    if tenant is not None:
        tenant.metrics.requests.labels(method, path, status).inc()
        tenant.metrics.seconds.labels(method, path).observe(seconds)
    _log.info(
        "request",
        method=method,
        path=path,
        status=status,
        ms=round(seconds * 1000, 2),
        tenant=tenant.name if tenant else None,
    )


def log_to_stderr(level: str) -> None:
    """Write logs of all loggers to standard error: text in a terminal, else JSON lines."""
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[*shared, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler()
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            foreign_pre_chain=shared,
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                structlog.dev.ConsoleRenderer()
                if sys.stderr.isatty()
                else structlog.processors.JSONRenderer(),
            ],
        )
    )
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)

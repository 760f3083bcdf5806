"""Request ids, structured logs and metrics of the requests."""

import logging
import re
import sys
import time
from collections.abc import Mapping
from contextvars import ContextVar
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, cast
from uuid import uuid4

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextgraph import errors
from contextgraph.model import Json
from contextgraph.service.operations.arguments import faults
from contextgraph.system.processes import continued
from contextgraph.text import mask_secrets, regex

METRICS = "contextgraph.metrics"  # the key of those of the tenant in the scope of a request
REQUEST_ID = "X-Request-ID"

_REQUEST_ID = regex(r"[\w.:-]{1,100}", re.ASCII)
_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30)

_log = logging.getLogger("contextgraph.service")
_request_id: ContextVar[str] = ContextVar("request_id", default="")


class Metrics:
    """Prometheus metrics of the requests of *tenant*, and of the process."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
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

        bound = _request_id.set(identity)
        try:
            with continued(headers):
                await self._app(scope, receive, send_with_id)
        finally:
            _note(scope, status, time.perf_counter() - started)
            _request_id.reset(bound)


def _note(scope: Scope, status: int, seconds: float) -> None:
    # Not the path itself, which may hold anything: names of metrics are kept for ever.
    route = scope.get("route")
    method, path = scope["method"], getattr(route, "path", "other")
    metrics: Metrics | None = scope.get(METRICS)
    if metrics is not None:
        metrics.requests.labels(method, path, status).inc()
        metrics.seconds.labels(method, path).observe(seconds)
    fields = {
        "method": method,
        "path": path,
        "status": status,
        "ms": round(seconds * 1000, 2),
        "tenant": metrics.tenant if metrics else None,
    }
    _log.info("request", extra={"fields": fields})


class _Formatter(logging.Formatter):
    """Makes a line of text of a record for a terminal, else a line of JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        time = datetime.fromtimestamp(record.created, UTC)
        level, event = record.levelname.lower(), record.getMessage()
        fields: dict[str, Json] = {**getattr(record, "fields", {})}
        if identity := _request_id.get():
            fields["request_id"] = identity
        trace = self.formatException(record.exc_info) if record.exc_info else ""
        if sys.stderr.isatty():
            given = ((name, value) for name, value in fields.items() if value is not None)
            named = " ".join(f"{name}={value}" for name, value in given)
            return f"{time:%H:%M:%S} {level:7} {event} {named}".rstrip() + f"\n{trace}".rstrip()
        head: dict[str, Json] = {
            "event": event,
            "level": level,
            "logger": record.name,
            "timestamp": f"{time:%Y-%m-%dT%H:%M:%S.%fZ}",
        }
        return orjson.dumps(head | fields | ({"exception": trace} if trace else {})).decode()


def log_to_stderr(level: str) -> None:
    """Write logs of all loggers to standard error: text in a terminal, else JSON lines."""
    handler = logging.StreamHandler()
    handler.setFormatter(_Formatter())
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)


class TooBusyError(Exception):
    """There is more to do than the service takes; the message says what."""


_RETRY_SECONDS = "5"
_SHOWN = 3  # errors of a request that its "detail" names
_STATUSES: Mapping[type[Exception], HTTPStatus] = {
    ClientDisconnect: HTTPStatus.BAD_REQUEST,  # nobody reads the answer
    errors.EmbeddingError: HTTPStatus.BAD_GATEWAY,
    errors.LimitReachedError: HTTPStatus.TOO_MANY_REQUESTS,
    errors.RemoteError: HTTPStatus.BAD_GATEWAY,
    errors.StoreUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    TooBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
    TimeoutError: HTTPStatus.SERVICE_UNAVAILABLE,
    errors.MemoryNotFoundError: HTTPStatus.NOT_FOUND,
    errors.NeedsStoreError: HTTPStatus.NOT_FOUND,
    errors.NotFoundError: HTTPStatus.NOT_FOUND,
    errors.AlreadyExistsError: HTTPStatus.CONFLICT,
    errors.AmbiguousRunError: HTTPStatus.CONFLICT,
    errors.InvalidArgumentError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidEntryError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidNoteError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.InvalidStateError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.ReadError: HTTPStatus.UNPROCESSABLE_ENTITY,
    errors.SettingsError: HTTPStatus.INTERNAL_SERVER_ERROR,
    errors.ContextGraphError: HTTPStatus.INTERNAL_SERVER_ERROR,
}

_EXAMPLE = {
    "type": "about:blank",
    "title": "Service Unavailable",
    "status": 503,
    "detail": "bolt://localhost:7687 cannot be reached",
    "error": "StoreUnavailableError",
}
PROBLEMS: dict[int | str, dict[str, Any]] = {
    code: {
        "description": description,
        "content": {
            "application/problem+json": {"schema": {"type": "object"}, "example": _EXAMPLE}
        },
    }
    for code, description in {
        "4XX": "The request is refused.",
        "502": "A model that the service asks does not answer.",
        "503": "The store is away, or there is too much to do: retry later.",
    }.items()
}
"""The errors of every request, for the OpenAPI document."""

_error_log = logging.getLogger(__name__)


def problem(
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    **members: Json,
) -> Response:
    """Return a response with a problem object, extended by *members*."""
    record = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": int(status),
        "detail": mask_secrets(detail),  # it may quote what was read
        **members,
    }
    return Response(orjson.dumps(record), int(status), headers, "application/problem+json")


def add_handlers(app: FastAPI) -> None:
    """Answer every error of *app* with a problem object."""
    for kind in _STATUSES:
        app.add_exception_handler(kind, _failed)
    app.add_exception_handler(HTTPException, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(Exception, _unexpected)


async def _failed(_request: Request, error: Exception) -> Response:
    status = next(_STATUSES[kind] for kind in type(error).__mro__ if kind in _STATUSES)
    detail = str(error) or "the answer took too long"
    retry = {"Retry-After": _RETRY_SECONDS} if status == HTTPStatus.SERVICE_UNAVAILABLE else None
    if status in (HTTPStatus.INTERNAL_SERVER_ERROR, HTTPStatus.BAD_GATEWAY):
        _error_log.error("%s: %s", type(error).__name__, error)
    return problem(status, detail, retry, error=type(error).__name__)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, error.detail, error.headers)


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    wrong = faults(error.errors())
    detail = "; ".join(f"{one['at']}: {one['reason']}" for one in wrong[:_SHOWN])
    detail = f"the request is not valid: {detail}"
    return problem(
        HTTPStatus.UNPROCESSABLE_ENTITY,
        detail,
        error=errors.InvalidArgumentError.__name__,
        errors=cast(list[Json], wrong),
    )


async def _unexpected(_request: Request, error: Exception) -> Response:
    _error_log.error("unexpected error", exc_info=error)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "unexpected error; the server's log has more")

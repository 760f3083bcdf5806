"""Errors as RFC 9457 problem details."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, cast

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from contextgraph.errors import (
    AlreadyExistsError,
    ContextGraphError,
    InvalidNoteError,
    MemoryNotFoundError,
    NeedsStoreError,
    NotFoundError,
    ReadError,
    SettingsError,
    StoreUnavailableError,
)
from contextgraph.model import Json
from contextgraph.service.service import TooBusyError
from contextgraph.text import mask_secrets

_RETRY_SECONDS = "5"
_SHOWN = 3  # errors of a request that its "detail" names
_STATUSES: Mapping[type[Exception], HTTPStatus] = {
    StoreUnavailableError: HTTPStatus.SERVICE_UNAVAILABLE,
    TooBusyError: HTTPStatus.SERVICE_UNAVAILABLE,
    TimeoutError: HTTPStatus.SERVICE_UNAVAILABLE,
    MemoryNotFoundError: HTTPStatus.NOT_FOUND,
    NeedsStoreError: HTTPStatus.NOT_FOUND,
    NotFoundError: HTTPStatus.NOT_FOUND,
    AlreadyExistsError: HTTPStatus.CONFLICT,
    InvalidNoteError: HTTPStatus.UNPROCESSABLE_ENTITY,
    ReadError: HTTPStatus.UNPROCESSABLE_ENTITY,
    SettingsError: HTTPStatus.INTERNAL_SERVER_ERROR,
    ContextGraphError: HTTPStatus.INTERNAL_SERVER_ERROR,
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
        "503": "The store is away, or there is too much to do: retry later.",
    }.items()
}
"""What the OpenAPI document says of the errors of every request."""

_log = logging.getLogger(__name__)


def problem(
    status: int,
    detail: str,
    headers: Mapping[str, str] | None = None,
    **members: Json,
) -> Response:
    """A response with a problem object; *members* extend it."""
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
    if status == HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.error("%s: %s", type(error).__name__, error)
    return problem(status, detail, retry, error=type(error).__name__)


async def _refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, error.detail, error.headers)


async def _invalid(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors = [
        {"at": mask_secrets(".".join(map(str, entry["loc"]))), "reason": mask_secrets(entry["msg"])}
        for entry in error.errors()
    ]
    detail = "; ".join(f"{error['at']}: {error['reason']}" for error in errors[:_SHOWN])
    detail = f"the request is not valid: {detail}"
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, errors=cast(list[Json], errors))


async def _unexpected(_request: Request, error: Exception) -> Response:
    _log.error("unexpected error", exc_info=error)
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "unexpected error; the server's log has more")

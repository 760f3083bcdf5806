"""The requests of the service: who may send them, those of the table of operations, and others."""

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime
from functools import partial
from hashlib import blake2b
from inspect import getdoc
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, Literal, cast

import anyio
import orjson
from fastapi import APIRouter, Body, Depends, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from fastapi.sse import EventSourceResponse, ServerSentEvent
from msgspec import Struct
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from pydantic import JsonValue
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from contextgraph.agents.live import LiveRun
from contextgraph.errors import InvalidArgumentError, ReadError
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import Json, Outcome, RawTrajectory
from contextgraph.model.codec import encoded
from contextgraph.model.values import replace
from contextgraph.readers import read_file
from contextgraph.service.methods import METHODS
from contextgraph.service.monitoring import METRICS, PROBLEMS, TooBusyError
from contextgraph.service.operations import (
    ADMIN_ARGUMENTS,
    VALUE,
    Operation,
    TokenScope,
    live,
    operations,
)
from contextgraph.service.operations.arguments import (
    MOST_FAULTS,
    Arguments,
    LongText,
    Name,
    Names,
    Text,
)
from contextgraph.service.records import record_of, unread_record
from contextgraph.service.service import Job, OpenRun, Service, Tenant, finished
from contextgraph.service.tokens import Token
from contextgraph.store.archive import Exported, export_memory
from contextgraph.store.graph import export_graph
from contextgraph.system.intake import has_more, loads
from contextgraph.text import terminal_json

_Format = Literal["archive", "graphml", "json"]
_MEDIA: Mapping[_Format, str] = {
    "archive": "application/zstd",
    "graphml": "application/graphml+xml",
    "json": "application/json",
}
_POLL_SECONDS = 0.2
MAX_WAIT = 30.0
# Of a JSON body: values and keys, and the bytes from which a thread looks for errors.
_VALUES, _LARGE_BODY = 200_000, 4 << 10
# A run that is safe on disk is learned meanwhile, unless many wait.
_FINISH_SECONDS = 0.2

Wait = Annotated[
    float, Query(ge=0, le=MAX_WAIT, description="Seconds to wait for the end of the job.")
]
Complete = Annotated[bool, Query(description='With the whole receipts, as "receipts".')]
FileName = Annotated[str, Query(max_length=500)]

_JOB: JsonValue = {
    "job": "job_fd31e49c2ac5ba57db2aaf87",
    "state": "done",
    "error": None,
    "runs": [
        {
            "source": "a.traj",
            "instance_id": "acme__shop-1",
            "trajectory_id": "trj_3f9dab0652f816cc921c9992",
            "status": "created",
            "fragments": 2,
            "error_patterns": 1,
        }
    ],
    "summary": {
        "records": 1, "waiting": 0, "created": 1,
        "unchanged": 0, "updated": 0, "failed": 0, "skipped": 0,
    },
}  # fmt: skip
_RECEIPT: JsonValue = {
    "receipt": {
        "trajectory_id": "trj_3f9dab0652f816cc921c9992",
        "status": "created",
        "fragments": 2,
        "error_patterns": 1,
    },
    "job": None,
}
_RUNS = {
    "required": True,
    "description": "Recorded runs in any known format, also compressed: what a log file holds.",
    "content": {
        "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
        "application/json": {
            "schema": {},
            "example": {
                "contextgraph": 1,
                "source_format": "http",
                "instance_id": "acme__shop-7",
                "repo": "acme/shop",
                "task": "Totals are wrong when a tariff is missing",
                "steps": [
                    {
                        "index": 0,
                        "thought": "",
                        "action": {"tool": "bash", "text": "python reproduce.py"},
                        "observation": "KeyError: 'tariff'",
                        "exit_code": 1,
                    }
                ],
                "outcome": "unknown",
            },
        },
        "multipart/form-data": {
            "schema": {
                "type": "object",
                "properties": {"file": {"type": "string", "format": "binary"}},
            }
        },
    },
}


def json_response(
    record: Mapping[str, Json], status: int = 200, media_type: str = "application/json"
) -> Response:
    """Return *record* as the body of a response, with marks of agents' frames escaped."""
    return Response(terminal_json(orjson.dumps(record).decode()), status, media_type=media_type)


def _answered(example: JsonValue, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """Describe an answer by an *example* in the OpenAPI document."""
    content: dict[str, Any] = {"schema": {"type": "object"}}
    if example is not None:
        content["example"] = example
    described = {"description": "The answer.", "content": {"application/json": content}}
    return {status: described}


bearer = HTTPBearer(auto_error=False, description="A token of `contextgraph call token_create`.")

_AGES_AGO = datetime(1970, 1, 1, tzinfo=UTC)
COOKIE = "contextgraph_token"
CALLER = "contextgraph.caller"  # the key of the sender in the scope of a request
LOCAL = "local"  # the source of what is learned without tokens


class Caller(Struct, frozen=True):
    """The sender of a request, its *token*, and the *tenant* that it is about.

    One that *takes_values* is a client, which gets values as the library writes them.
    """

    service: Service
    tenant: Tenant
    token: Token
    takes_values: bool = False

    @property
    def memory(self) -> AgentMemory:
        """The memory of the tenant, which records nothing for a token that may only read."""
        may_write = self.token.allows(TokenScope.WRITE)
        return self.tenant.memory if may_write else self.tenant.reading


def allowed(scope: TokenScope) -> Callable[..., Awaitable[Caller]]:
    """Return a dependency that gives the caller, whose token must have *scope*."""

    async def caller(request: Request) -> Caller:
        return await caller_of(request, scope)

    return caller


async def caller_of(request: Request, scope: TokenScope, text: str | None = None) -> Caller:
    """Return the sender of *request*; raises HTTPException without a token that has *scope*.

    *text* is the token; without it that of the header counts.
    """
    caller = await _sender(request, text)
    if not caller.token.allows(scope):
        raise HTTPException(403, f"the token does not have the scope {scope}")
    return caller


async def _sender(request: Request, text: str | None = None) -> Caller:
    if known := request.scope.get(CALLER):
        return cast(Caller, known)
    service: Service = request.app.state.service
    if text is None:
        credentials = await bearer(request)
        text = credentials.credentials if credentials else ""
    token = await _token(service, text)
    if service.tokens and (wait := service.rates.wait(token.id)):
        retry = {"Retry-After": f"{int(wait) + 1}"}
        raise HTTPException(429, "too many requests with this token", retry)
    takes_values = request.headers.get("Accept") == VALUE
    caller = Caller(service, await service.known(token.tenant), token, takes_values)
    request.scope[CALLER] = caller
    request.scope[METRICS] = caller.tenant.metrics  # also for the log
    return caller


async def _token(service: Service, text: str) -> Token:
    if service.tokens is None:
        # Without tokens everyone on this machine may do everything.
        return Token("", "", (TokenScope.ADMIN,), service.settings.tenant, LOCAL, _AGES_AGO)
    token = service.tokens.verified(text)
    if token is None and text:
        guessed = text.split("_")[1:2]
        is_guess = guessed and not service.tokens.may_be(text)  # never its holder's
        if is_guess and (wait := service.guesses.left(guessed[0])):
            retry = {"Retry-After": f"{int(wait) + 1}"}
            raise HTTPException(429, "too many wrong secrets of this token", retry)
        token = await service.answer(service.tokens.find, text)
        if token is None and guessed and service.tokens.has(guessed[0]):
            service.guesses.wait(guessed[0])
    if token is None:
        reason = "the token is wrong or revoked" if text else "a bearer token is needed"
        raise HTTPException(401, reason, {"WWW-Authenticate": "Bearer"})
    return token


Writing = Annotated[Caller, Depends(allowed(TokenScope.WRITE))]
Admin = Annotated[Caller, Depends(allowed(TokenScope.ADMIN))]


Perform = Callable[[Operation, Caller, dict[str, Any]], Awaitable[Response]]


async def _perform(operation: Operation, caller: Caller, given: dict[str, Any]) -> Response:
    """Answer with the record of an operation, or with its value; it runs in a thread."""
    call = partial(_done, operation, caller, given)
    return await _answer(caller, call, takes_long=operation.takes_long)


async def _perform_live(operation: Operation, caller: Caller, given: dict[str, Any]) -> Response:
    """Answer with the record of an operation on a live run."""
    open_run = _open_run(caller, given.pop("identity"))
    return await _answer(caller, partial(_in_use, open_run, operation, given))


async def _answer(
    caller: Caller, call: Callable[[], Mapping[str, Json]], *, takes_long: bool = False
) -> Response:
    run = caller.service.maintain if takes_long else caller.service.answer
    media_type = VALUE if caller.takes_values else "application/json"
    return json_response(await run(call), media_type=media_type)


def _done(operation: Operation, caller: Caller, given: Mapping[str, Any]) -> Mapping[str, Json]:
    """Return the value of an operation in the form that the caller takes."""
    try:
        value = operation.value(caller.memory, given, is_owner=False)
    except ValueError as error:
        if not operation.is_method or isinstance(error, InvalidArgumentError):
            raise
        raise InvalidArgumentError(str(error)) from error
    return (
        {"value": encoded(value)}
        if caller.takes_values
        else operation.record(value, given, caller.memory)
    )


def _in_use(open_run: OpenRun, operation: Operation, given: dict[str, Any]) -> Mapping[str, Json]:
    """Return the record of an operation on a live run, which one request at a time uses."""
    try:
        with open_run.in_use() as run:
            record: Mapping[str, Json] = operation.function(run, **given)
            return record
    except InvalidArgumentError:
        raise
    except ValueError as error:
        raise HTTPException(409, str(error)) from error


def _open_run(caller: Caller, identity: str) -> OpenRun:
    run = caller.tenant.live.get(identity)
    token = caller.token
    if run is None or not (run.source == token.source or token.allows(TokenScope.ADMIN)):
        raise HTTPException(
            404, f"no live run {identity} of this token: it is finished, or was not used for long"
        )
    return run


class _JsonRequest(Request):
    """A request whose JSON body is read with the limits of readers."""

    _value: Any = None

    async def read(self) -> None:
        """Read the body, once its sender is known; a large one is parsed in a thread."""
        caller = await _sender(self)
        kind = self.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        content = await self.body()
        if not content:
            return
        if kind != "application/json":
            raise HTTPException(415, "the body must be application/json")
        self._value = await parsed_body(caller.service, content)

    async def check(self, validate: Callable[..., tuple[Any, list[dict[str, Any]]]]) -> None:
        """Refuse a large body that is not valid: its errors are made in a thread, and ten kept."""
        if len(await self.body()) > _LARGE_BODY:
            service: Service = self.app.state.service
            _, wrong = await service.read_upload(partial(validate, self._value, loc=("body",)))
            if wrong:
                raise RequestValidationError(wrong[:MOST_FAULTS])

    async def json(self) -> Any:
        return self._value


async def parsed_body(service: Service, content: bytes) -> Any:
    """Return the value of a JSON body; raises RequestValidationError above the limits."""
    try:
        return await service.parsed(partial(_body, content), len(content))
    except ValueError as error:
        wrong = [{"type": "json_invalid", "loc": ("body",), "msg": f"JSON: {error}"}]
        raise RequestValidationError(wrong) from error


def _body(content: bytes) -> Any:
    value = loads(content)
    if has_more(value, _VALUES):
        raise ValueError(f"more than {_VALUES:,} values and keys")
    return value


class _JsonRoute(APIRoute):
    """A route whose body, where it has one, is that of a `_JsonRequest`."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()
        if self.body_field is None:
            return handler
        validate = self.body_field.validate

        async def handle(request: Request) -> Response:
            read = _JsonRequest(request.scope, request.receive)
            await read.read()
            await read.check(validate)
            return await handler(read)

        return handle


# An application takes the routes themselves: an included router is made again for each.
router = APIRouter(route_class=_JsonRoute, dependencies=[Depends(bearer)], responses=PROBLEMS)


def _identity(identity: str) -> dict[str, str]:
    return {"identity": identity}


def _nothing() -> dict[str, str]:
    return {}


def _add(operation: Operation, perform: Perform = _perform, status: int = 200) -> None:
    """Add the request of an operation: its arguments are in the query, or in a JSON body."""
    method, path = operation.route.split()
    is_named = "{identity}" in path
    model = operation.requested(*(["identity"] if is_named else []))
    body = Body() if model.model_fields else Body(default_factory=model)

    async def endpoint(
        caller: Annotated[Caller, Depends(allowed(operation.scope))],
        named: Annotated[dict[str, str], Depends(_identity if is_named else _nothing)],
        chosen: Annotated[model, body if method == "POST" else Query()],  # type: ignore[valid-type]
    ) -> Response:
        given = named | cast(Arguments, chosen).given()
        for name in ADMIN_ARGUMENTS & given.keys():
            if given[name] and not caller.token.allows(TokenScope.ADMIN):
                raise HTTPException(
                    403, f"a {name} note needs a token with the scope {TokenScope.ADMIN}"
                )
        may_change_all = caller.token.allows(TokenScope.ADMIN)
        sourced = operation.sourced(
            caller.token.source, given.get("source"), may_change_all=may_change_all
        )
        return await perform(operation, caller, given | sourced)

    example = {"content": {"application/json": {"example": operation.example or {}}}}
    router.add_api_route(
        path,
        endpoint,
        methods=[method],
        name=operation.name,
        description=getdoc(operation.function),
        status_code=status,
        responses=_answered(operation.answer, status),
        openapi_extra={"requestBody": example} if operation.example or method == "POST" else None,
    )


for _operation in (*operations().values(), *METHODS.values()):
    if _operation.route:
        _add(_operation, _perform_live if live.PATH in _operation.route else _perform)


def begin(
    memory: AgentMemory,
    repo: Name,
    instance_id: Name,
    task: Text,
    agent: Name = "",
    model: Name = "",
    exclude_instances: Names = (),
) -> LiveRun:
    """Begin a run; other calls name it by the "id" of the answer."""
    return memory.live(
        repo=repo,
        instance_id=instance_id,
        task=task,
        agent=agent,
        model=model,
        exclude_instances=exclude_instances,
    )


async def _begin(operation: Operation, caller: Caller, given: dict[str, Any]) -> Response:
    run = operation.function(caller.memory, **given)
    return json_response({"id": caller.service.begin(caller.tenant, run, caller.token.source)}, 201)


_add(
    Operation(
        begin,
        TokenScope.WRITE,
        "POST /v1/runs/live",
        example={
            "repo": "acme/shop",
            "instance_id": "acme__shop-7",
            "task": "Totals are wrong when a tariff is missing",
            "agent": "mini-swe-agent",
        },
        answer={"id": "live_aa736f77e4ac4eb3"},
    ),
    _begin,
    201,
)


def finish(
    run: LiveRun,
    outcome: Outcome = Outcome.UNKNOWN,
    exit_status: Name | None = None,
    patch: LongText | None = None,
) -> RawTrajectory:
    """End the run and learn it.

    "receipt" says what was stored, null without a step. 202 with a "job" of /v1/learn where the run
    is safe in a file and waits for the store.
    """
    return run.end(outcome, exit_status=exit_status, patch=patch)


async def _finish(operation: Operation, caller: Caller, given: dict[str, Any]) -> Response:
    open_run = _open_run(caller, given.pop("identity"))
    end = partial(operation.function, **given)
    job = await caller.service.answer(caller.service.end, caller.tenant, open_run, end)
    if job is None:
        return json_response({"receipt": None, "job": None})
    if not await finished(job, _FINISH_SECONDS) or not job.receipts:
        return json_response({"receipt": None, "job": job.record()}, 202)
    return json_response({"receipt": record_of(job.receipts[0]), "job": None})


_add(
    Operation(
        finish,
        TokenScope.WRITE,
        f"POST {live.PATH}/finish",
        example={"outcome": "solved"},
        answer=_RECEIPT,
    ),
    _finish,
)


@router.post(
    "/v1/learn",
    status_code=202,
    responses={**_answered(_JOB), **_answered(_JOB, 202)},
    openapi_extra={"requestBody": _RUNS},
)
async def learn(
    request: Request,
    caller: Writing,
    name: FileName = "",
    outcome: Outcome | None = None,
    wait: Wait = 0,
    complete: Complete = False,
) -> Response:
    """Learn runs; 202 once they are safe in files, 200 where all are learned within *wait*.

    *name* is that of the log file, which names runs that have no name of their own. *outcome* takes
    the place of what the log says. The same content again is the same job, and changes nothing.
    """
    name, content = await _uploaded(request, name)
    job = await caller.service.read_upload(
        lambda: _submit(caller, name or "upload", content, outcome)
    )
    is_done = await finished(job, wait)
    return json_response(job.record(complete=complete), 200 if is_done else 202)


async def _uploaded(request: Request, name: str) -> tuple[str, bytes]:
    """The name and the content of the file in a request."""
    if not request.headers.get("content-type", "").startswith("multipart/form-data"):
        return name, await request.body()
    async with request.form(max_files=1) as form:
        for file in form.values():
            if not isinstance(file, str):
                return name or file.filename or "", await file.read()
    raise HTTPException(422, "the form holds no file")


def _submit(caller: Caller, name: str, content: bytes, outcome: Outcome | None) -> Job:
    service = caller.service
    if service.writer.waiting(caller.memory) > service.limits.waiting:
        raise TooBusyError(f"{service.limits.waiting} runs wait to be learned")
    identity = blake2b(
        b"\0".join([caller.token.source.encode(), name.encode(), str(outcome).encode(), content]),
        digest_size=12,
    ).hexdigest()
    records = [*read_file(BytesIO(content), name)]
    runs = [
        replace(record, outcome=outcome or record.outcome)
        for record in records
        if isinstance(record, RawTrajectory)
    ]
    unread = [unread_record(record) for record in records if isinstance(record, ReadError)]
    if not runs:
        reasons = "; ".join(str(record) for record in records if isinstance(record, ReadError))
        raise HTTPException(422, reasons[:1000] or "there is no run in it")
    return service.writer.submit(
        f"job_{identity}",
        caller.memory,
        caller.tenant.spool,
        runs,
        caller.token.source,
        unread,
    )


def _known_job(caller: Writing, job: str) -> Job:
    known = caller.service.writer.job(caller.memory, job)
    if known is None:
        raise HTTPException(
            404, f"no job {job}; jobs are forgotten when the server starts, their runs are not"
        )
    return known


KnownJob = Annotated[Job, Depends(_known_job)]


@router.get("/v1/learn/{job}", responses=_answered(_JOB))
async def job_state(job: KnownJob, wait: Wait = 0, complete: Complete = False) -> Response:
    """Return a job of /v1/learn."""
    await finished(job, wait)
    return json_response(job.record(complete=complete))


@router.get("/v1/learn/{job}/events", response_class=EventSourceResponse)
async def job_events(caller: Writing, job: KnownJob) -> AsyncIterator[ServerSentEvent]:
    """Send the job as server-sent events, at each change of its progress, up to its end."""
    shown: dict[str, Json] = {}
    while not caller.service.is_closing:
        is_done = job.done.is_set()
        record = job.record()
        if record != shown:
            shown = record
            yield ServerSentEvent(event="done" if is_done else "progress", data=record)
        if is_done:
            return
        await anyio.sleep(_POLL_SECONDS)


@router.get("/v1/export", response_class=FileResponse)
async def export(
    caller: Admin,
    vectors: bool = True,
    file_format: Annotated[_Format, Query(alias="format")] = "archive",
) -> Response:
    """Export all that the memory holds, or its graph, as `contextgraph export` writes it.

    The header X-Exported of an archive counts what is in it.
    """

    folder = TemporaryDirectory(prefix="contextgraph-")  # which only this user can read
    path = Path(folder.name) / ("memory.jsonl.zst" if file_format == "archive" else "graph")
    memory, store, headers = caller.memory, caller.memory.store, {}

    # By the store: the memory would note the file as one that this machine keeps.
    def write() -> Exported:
        memory.note_exposures()
        keyed = memory.keyed.entries if memory.has_keyed else tuple
        return export_memory(store, path, store.tenant, vectors=vectors, keyed=keyed)

    if file_format == "archive":
        counts = await caller.service.maintain(write)
        headers["X-Exported"] = orjson.dumps(record_of(counts)).decode()
    else:
        await caller.service.maintain(lambda: export_graph(store(), path, file_format))
    return FileResponse(
        path,
        headers=headers,
        filename=path.name,
        media_type=_MEDIA[file_format],
        background=BackgroundTask(folder.cleanup),
    )


@router.get("/metrics")
async def metrics(caller: Admin) -> Response:
    """Count requests and waiting runs of the tenant, and the process, for Prometheus."""
    tenant = caller.tenant
    tenant.metrics.waiting.set(caller.service.writer.waiting(tenant.memory))
    tenant.metrics.live.set(len(tenant.live))
    return Response(generate_latest(tenant.metrics.registry), media_type=CONTENT_TYPE_LATEST)

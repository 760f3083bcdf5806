"""Routes that write: runs, live runs, outcomes, reports, consolidation."""

from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from io import BytesIO
from typing import Annotated, TypeVar

import anyio
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from contextgraph.agents.live import LiveRun
from contextgraph.errors import ReadError
from contextgraph.model import (
    Action,
    Json,
    Outcome,
    RawTrajectory,
)
from contextgraph.readers import read_file
from contextgraph.records import (
    receipt_record,
    record_of,
    unread_record,
)
from contextgraph.service.access import Caller, Writing
from contextgraph.service.bodies import (
    JOB,
    RECEIPT,
    ActionBody,
    BeforeBody,
    FinishBody,
    LiveBody,
    NoteBody,
    ObserveBody,
    OutcomeBody,
    ReportBody,
    answered,
)
from contextgraph.service.monitoring import TooBusyError
from contextgraph.service.reading import Name, json_response
from contextgraph.service.service import (
    Job,
    OpenRun,
    finished,
)
from contextgraph.service.tokens import Scope

router, live = APIRouter(), APIRouter(prefix="/v1/runs/live")

_R = TypeVar("_R")

_POLL_SECONDS = 0.2
MAX_WAIT = 30.0
Wait = Annotated[
    float, Query(ge=0, le=MAX_WAIT, description="Seconds to wait for the end of the job.")
]
Complete = Annotated[bool, Query(description='With the whole receipts, as "receipts".')]

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


@router.post(
    "/v1/learn",
    status_code=202,
    responses={**answered(JOB), **answered(JOB, 202)},
    openapi_extra={"requestBody": _RUNS},
)
async def learn(
    request: Request,
    caller: Writing,
    name: Name = "",
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


@router.get("/v1/learn/{job}", responses=answered(JOB))
async def job_state(job: KnownJob, wait: Wait = 0, complete: Complete = False) -> Response:
    """A job of /v1/learn."""
    await finished(job, wait)
    return json_response(job.record(complete=complete))


@router.get("/v1/learn/{job}/events", response_class=EventSourceResponse)
async def job_events(caller: Writing, job: KnownJob) -> AsyncIterator[ServerSentEvent]:
    """The job as server-sent events, at each change of its progress, up to its end."""
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


@router.post("/v1/outcomes")
async def outcomes(body: OutcomeBody, caller: Writing) -> Response:
    """Set by hand whether runs solved their task, as `contextgraph outcome`."""

    def answer() -> list[str]:
        memory = caller.memory
        known = memory.store.runs.ids(instance=body.instance_id)
        if len(known) > 1 and not (body.agent or body.run):
            raise HTTPException(
                409, f"{body.instance_id} has several runs; name one, or those of an agent"
            )
        solved = body.outcome == "solved"
        return [*memory.set_outcome(body.instance_id, solved, agent=body.agent, run=body.run)]

    changed = await caller.service.answer(answer)
    if not changed:
        raise HTTPException(404, f"no such run of {body.instance_id} in the memory")
    return json_response(
        {"instance_id": body.instance_id, "outcome": body.outcome, "trajectories": [*changed]}
    )


@router.post("/v1/notes")
async def remember(body: NoteBody, caller: Writing) -> Response:
    """Remember a statement, as `contextgraph remember --json`; its source is that of the token.

    A pinned one, which all runs of the repository are shown, needs the scope admin.
    """
    if body.pinned and not caller.token.allows(Scope.ADMIN):
        raise HTTPException(403, f"a pinned note needs a token with the scope {Scope.ADMIN}")
    properties = body.model_dump(exclude={"content"}, exclude_unset=True)
    receipt = await caller.service.answer(
        caller.memory.notes.remember,
        body.content,
        source=f"agent:{caller.token.source}",
        **properties,
    )
    return json_response(record_of(receipt))


@router.post("/v1/reports")
async def reports(body: ReportBody, caller: Writing) -> Response:
    """Report whether the advice of an answer helped; "recorded" is false where it was before."""
    memory = caller.memory
    recorded = await caller.service.answer(
        partial(
            memory.report_outcome,
            body.context,
            body.helped,
            body.item,
            source=caller.token.source,
        )
    )
    return json_response({"context": body.context, "helped": body.helped, "recorded": recorded})


@live.post("", status_code=201, responses=answered({"id": "live_aa736f77e4ac4eb3"}, 201))
async def begin(body: LiveBody, caller: Writing) -> Response:
    """Begin a run; "id" names it in the other calls."""
    run = caller.memory.live(
        repo=body.repo,
        instance_id=body.instance_id,
        task=body.task,
        agent=body.agent,
        model=body.model,
        exclude_instances=body.exclude_instances,
    )
    return json_response({"id": caller.service.begin(caller.tenant, run, caller.token.source)}, 201)


@live.post("/{identity}/start", responses=answered({"text": ""}))
async def start(identity: str, caller: Writing) -> Response:
    """Advice for the first prompt, empty where nothing is known."""
    return json_response({"text": await _use(caller, identity, lambda run: run.start())})


@live.post("/{identity}/before")
async def before(identity: str, body: BeforeBody, caller: Writing) -> Response:
    """What to know before an action is taken; null for nothing."""
    action = _action(body.action)
    return json_response({"text": await _use(caller, identity, lambda run: run.before(action))})


@live.post("/{identity}/observe", responses=answered({"text": None}))
async def observe(identity: str, body: ObserveBody, caller: Writing) -> Response:
    """Take in a step; advice where it met a new error or got stuck in a loop, else null."""

    def take(run: LiveRun) -> str | None:
        return run.observe(
            _action(body.action),
            body.observation,
            exit_code=body.exit_code,
            thought=body.thought,
        )

    return json_response({"text": await _use(caller, identity, take)})


@live.post("/{identity}/check_submit")
async def check_submit(identity: str, caller: Writing) -> Response:
    """What seems to be missing before the agent submits; null for nothing."""
    return json_response({"text": await _use(caller, identity, lambda run: run.check_submit())})


@live.post("/{identity}/finish", responses=answered(RECEIPT))
async def finish(identity: str, body: FinishBody, caller: Writing) -> Response:
    """End the run and learn it.

    "receipt" says what was stored, null without a step. 202 with a "job" of /v1/learn where the run
    is safe in a file and waits for the store.
    """
    open_run = _open_run(caller, identity)

    def end(run: LiveRun) -> RawTrajectory:
        return run.end(body.outcome, exit_status=body.exit_status, patch=body.patch)

    job = await caller.service.answer(caller.service.end, caller.tenant, open_run, end)
    if job is None:
        return json_response({"receipt": None, "job": None})
    if not await finished(job, MAX_WAIT / 2) or not job.receipts:
        return json_response({"receipt": None, "job": job.record()}, 202)
    return json_response({"receipt": receipt_record(job.receipts[0]), "job": None})


async def _use(caller: Caller, identity: str, use: Callable[[LiveRun], _R]) -> _R:
    """What *use* returns of the run, which is in use by one request at a time."""
    open_run = _open_run(caller, identity)

    def locked() -> _R:
        with open_run.in_use() as run:
            return use(run)

    try:
        return await caller.service.answer(locked)
    except ValueError as error:
        raise HTTPException(409, str(error)) from error


def _open_run(caller: Caller, identity: str) -> OpenRun:
    run = caller.tenant.live.get(identity)
    if run is None:
        raise HTTPException(
            404, f"no live run {identity}: it is finished, or was not used for long"
        )
    return run


def _action(given: str | ActionBody) -> str | Action:
    return given if isinstance(given, str) else Action(given.tool, given.text, given.arguments)

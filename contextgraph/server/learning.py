"""Routes by which the memory learns: runs, live runs, outcomes, reports, consolidation."""

from collections.abc import AsyncIterator
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from io import BytesIO
from typing import Annotated

import anyio
from fastapi import APIRouter, Depends, HTTPException, Query, Request, Response
from fastapi.sse import EventSourceResponse, ServerSentEvent

from contextgraph.errors import ReadError
from contextgraph.model import Json, Outcome, RawTrajectory
from contextgraph.readers import read_file
from contextgraph.records import record_of, unread_record
from contextgraph.server.access import Caller, Writing
from contextgraph.server.bodies import JOB, NoteBody, OutcomeBody, ReportBody, answered
from contextgraph.server.reading import Name, json_response
from contextgraph.server.service import TooBusyError, finished
from contextgraph.server.tokens import Scope
from contextgraph.server.writer import Job

router = APIRouter()

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
    if service.writer.waiting(caller.tenant.memory) > service.limits.waiting:
        raise TooBusyError(f"{service.limits.waiting} runs wait to be learned")
    identity = blake2b(
        b"\0".join([caller.token.source.encode(), name.encode(), str(outcome).encode(), content]),
        digest_size=12,
    ).hexdigest()
    found = [*read_file(BytesIO(content), name)]
    runs = [
        replace(one, outcome=outcome or one.outcome)
        for one in found
        if isinstance(one, RawTrajectory)
    ]
    unread = [unread_record(one) for one in found if isinstance(one, ReadError)]
    if not runs:
        reasons = "; ".join(str(one) for one in found if isinstance(one, ReadError))
        raise HTTPException(422, reasons[:1000] or "there is no run in it")
    return service.writer.submit(
        f"job_{identity}",
        caller.tenant.memory,
        caller.tenant.spool,
        runs,
        caller.token.source,
        unread,
    )


def _known_job(caller: Writing, job: str) -> Job:
    found = caller.service.writer.job(caller.tenant.memory, job)
    if found is None:
        raise HTTPException(
            404, f"no job {job}; jobs are forgotten when the server starts, their runs are not"
        )
    return found


KnownJob = Annotated[Job, Depends(_known_job)]


@router.get("/v1/learn/{job}", responses=answered(JOB))
async def job_state(found: KnownJob, wait: Wait = 0, complete: Complete = False) -> Response:
    """A job of /v1/learn."""
    await finished(found, wait)
    return json_response(found.record(complete=complete))


@router.get("/v1/learn/{job}/events", response_class=EventSourceResponse)
async def job_events(caller: Writing, found: KnownJob) -> AsyncIterator[ServerSentEvent]:
    """The job as server-sent events, at each change of its progress, up to its end."""
    shown: dict[str, Json] = {}
    while not caller.service.is_closing:
        is_done = found.done.is_set()
        record = found.record()
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
        memory = caller.tenant.memory
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
        caller.tenant.memory.notes.remember,
        body.content,
        source=f"agent:{caller.token.source}",
        **properties,
    )
    return json_response(record_of(receipt))


@router.post("/v1/reports")
async def reports(body: ReportBody, caller: Writing) -> Response:
    """Report whether the advice of an answer helped; "recorded" is false where it was before."""
    memory = caller.tenant.memory
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

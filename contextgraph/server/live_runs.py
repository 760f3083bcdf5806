"""Routes of a run in progress: the server keeps it between the calls of its agent."""

from collections.abc import Callable
from typing import TypeVar

from fastapi import APIRouter, HTTPException, Response

from contextgraph.live import LiveRun
from contextgraph.model import Action, RawTrajectory
from contextgraph.records import receipt_record
from contextgraph.server.access import Caller, Writing
from contextgraph.server.bodies import (
    RECEIPT,
    ActionBody,
    BeforeBody,
    FinishBody,
    LiveBody,
    ObserveBody,
    answered,
)
from contextgraph.server.learning import MAX_WAIT
from contextgraph.server.reading import json_response
from contextgraph.server.service import OpenRun, finished

router = APIRouter(prefix="/v1/runs/live")
_R = TypeVar("_R")


@router.post("", status_code=201, responses=answered({"id": "live_aa736f77e4ac4eb3"}, 201))
async def begin(body: LiveBody, caller: Writing) -> Response:
    """Begin a run; "id" names it in the other calls."""
    run = caller.tenant.memory.live(
        repo=body.repo,
        instance_id=body.instance_id,
        task=body.task,
        agent=body.agent,
        model=body.model,
        exclude_instances=body.exclude_instances,
    )
    return json_response({"id": caller.service.begin(caller.tenant, run, caller.token.source)}, 201)


@router.post("/{identity}/start", responses=answered({"text": ""}))
async def start(identity: str, caller: Writing) -> Response:
    """Advice for the first prompt, empty where nothing is known."""
    return json_response({"text": await _use(caller, identity, lambda run: run.start())})


@router.post("/{identity}/before")
async def before(identity: str, body: BeforeBody, caller: Writing) -> Response:
    """What to know before an action is taken; null for nothing."""
    action = _action(body.action)
    return json_response({"text": await _use(caller, identity, lambda run: run.before(action))})


@router.post("/{identity}/observe", responses=answered({"text": None}))
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


@router.post("/{identity}/check_submit")
async def check_submit(identity: str, caller: Writing) -> Response:
    """What seems to be missing before the agent submits; null for nothing."""
    return json_response({"text": await _use(caller, identity, lambda run: run.check_submit())})


@router.post("/{identity}/finish", responses=answered(RECEIPT))
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

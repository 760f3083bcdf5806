"""Routes for administrators: consolidation, removal, export, metrics."""

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Literal

import orjson
from fastapi import APIRouter, HTTPException, Query, Response
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from contextgraph.codec import encoded
from contextgraph.records import consolidation_record
from contextgraph.service.access import Admin
from contextgraph.service.reading import json_response

router = APIRouter()

Format = Literal["archive", "graphml", "json"]
_MEDIA: Mapping[Format, str] = {
    "archive": "application/zstd",
    "graphml": "application/graphml+xml",
    "json": "application/json",
}


@router.post("/v1/consolidate")
async def consolidate(caller: Admin) -> Response:
    """Bring methodologies up to date, as `contextgraph consolidate --json`; may take minutes.

    409 where another process does so.
    """
    report = await caller.service.maintain(caller.memory.consolidate)
    return json_response(consolidation_record(report), 200 if report.started else 409)


@router.post("/v1/methodologies/{identity}/{decision}")
async def decide(
    caller: Admin, identity: str, decision: Literal["quarantine", "release"]
) -> Response:
    """Never show a methodology, or advice (`adv_…`), again; or show it whatever was reported."""
    memory = caller.memory
    decided = memory.quarantine if decision == "quarantine" else memory.release
    if not await caller.service.answer(decided, identity):
        raise HTTPException(404, f"no methodology or advice {identity}")
    return json_response({"advice": identity, "quarantined": decision == "quarantine"})


@router.delete("/v1/notes/{identity}")
async def forget_note(caller: Admin, identity: str) -> Response:
    """Delete a note."""
    if not await caller.service.answer(caller.memory.notes.forget, [identity]):
        raise HTTPException(404, f"no note {identity}; GET /v1/notes lists those there are")
    return json_response({"forgotten": 1})


@router.delete("/v1/trajectories/{identity}")
async def forget(caller: Admin, identity: str) -> Response:
    """Remove a run and everything that only it supports."""
    memory = caller.memory
    if not await caller.service.maintain(lambda: memory.forget([identity])):
        raise HTTPException(404, f"no run {identity}; /v1/trajectories lists those there are")
    return json_response({"forgotten": 1})


@router.delete("/v1/methodologies/{identity}")
async def retire(caller: Admin, identity: str) -> Response:
    """Show and derive a methodology no more; it stays as a tombstone, with the status retired."""
    if not await caller.service.maintain(lambda: caller.memory.retire([identity])):
        raise HTTPException(404, f"no methodology {identity}, or it is retired")
    return json_response({"retired": 1})


@router.get("/v1/export", response_class=FileResponse)
async def export(
    caller: Admin,
    vectors: bool = True,
    file_format: Annotated[
        Literal["archive", "graphml", "json"], Query(alias="format")
    ] = "archive",
) -> Response:
    """All that the memory holds, or its graph, as `contextgraph export` writes it.

    The header X-Exported of an archive counts what is in it.
    """

    folder = TemporaryDirectory(prefix="contextgraph-")  # which only this user can read
    path = Path(folder.name) / ("memory.jsonl.zst" if file_format == "archive" else "graph")
    memory, headers = caller.memory, {}
    if file_format == "archive":
        counts = await caller.service.maintain(lambda: memory.export(path, vectors=vectors))
        headers["X-Exported"] = orjson.dumps(encoded(counts, complete=True)).decode()
    else:
        await caller.service.maintain(lambda: memory.export_graph(path, file_format))
    return FileResponse(
        path,
        headers=headers,
        filename=path.name,
        media_type=_MEDIA[file_format],
        background=BackgroundTask(folder.cleanup),
    )


@router.get("/metrics")
async def metrics(caller: Admin) -> Response:
    """Requests and waiting runs of the tenant, and the process, for Prometheus."""
    tenant = caller.tenant
    tenant.metrics.waiting.set(caller.service.writer.waiting(tenant.memory))
    tenant.metrics.live.set(len(tenant.live))
    return Response(generate_latest(tenant.metrics.registry), media_type=CONTENT_TYPE_LATEST)

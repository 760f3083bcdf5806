"""Routes that only read: advice, playbooks, what the memory holds."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, TypeVar

import orjson
from fastapi import APIRouter, Depends, HTTPException, Query, Response
from pydantic import AwareDatetime

from contextgraph.knowledge import shareable, shareable_snapshot, without_secret
from contextgraph.memory import AgentMemory
from contextgraph.model import Json, MemoryContext, new_context_id
from contextgraph.readers import to_record
from contextgraph.records import (
    context_record,
    explanation_record,
    fragment_record,
    friction_record,
    history_record,
    playbook_record,
    recalled_record,
    record_of,
    run_record,
    stats_record,
)
from contextgraph.retrieval import MAX_TOKENS, render, render_playbook
from contextgraph.server.access import Reader
from contextgraph.server.bodies import (
    CONTEXT,
    LONGEST,
    LoopBody,
    ProblemStatementBody,
    QueryBody,
    answered,
)

router = APIRouter()

_Found = TypeVar("_Found")

Name = Annotated[str, Query(max_length=500)]
Text = Annotated[str, Query(max_length=LONGEST)]
After = Annotated[str, Query(max_length=100, description='"next" of the page before.')]
Excluded = Annotated[Sequence[Name], Query(max_length=1000)]


@dataclass(frozen=True, slots=True)
class _Bounds:
    """What a question about a repository may see."""

    exclude_instances: Excluded = ()
    as_of: AwareDatetime | None = None


Bounds = Annotated[_Bounds, Depends()]
PageSize = Annotated[int, Query(ge=1, le=500)]


def json_response(record: Mapping[str, Json], status: int = 200) -> Response:
    """*record* as the body of a response."""
    return Response(orjson.dumps(record), status, media_type="application/json")


@router.post("/v1/query", responses=answered(CONTEXT))
async def query(body: QueryBody, caller: Reader) -> Response:
    """What is known for a state, as `contextgraph query --json` prints it."""
    return json_response(await caller.service.answer(_answer, caller.tenant.memory, body))


def _answer(memory: AgentMemory, body: QueryBody) -> dict[str, Json]:
    context = memory.query(
        body.state.state(),
        body.limit,
        exclude_instances=body.exclude_instances,
        as_of=body.as_of,
        degrade=True,
    )
    max_tokens = body.max_tokens or MAX_TOKENS
    text = memory.render(context, max_tokens) if body.record else render(context, max_tokens)
    return context_record(context, text)


@router.post("/v1/loops")
async def loops(body: LoopBody, caller: Reader) -> Response:
    """The loop that the last of the states is in: an answer as of a query, with its "loop"."""

    def answer() -> dict[str, Json]:
        memory = caller.tenant.memory
        loop = memory.check_loop([state.state() for state in body.states])
        context = MemoryContext(new_context_id(), loop=loop)
        return context_record(context, memory.render(context))

    return json_response(await caller.service.answer(answer))


@router.post("/query_memory", responses=answered({"playbook": "…"}))
async def query_memory(body: ProblemStatementBody, caller: Reader) -> Response:
    """The advice for a task as text, empty where nothing is known."""

    def answer() -> str:
        memory = caller.tenant.memory
        return memory.render(memory.query(body.state(), degrade=True))

    return json_response({"playbook": await caller.service.answer(answer)})


@router.get("/v1/playbook")
async def playbook(
    caller: Reader,
    bounds: Bounds,
    repo: Name,
    task: Text = "",
) -> Response:
    """What the runs of a repository agree on, as `contextgraph playbook --json` prints it."""
    playbook = await _within(bounds, caller, caller.tenant.memory.playbook, repo, task)
    return json_response({**playbook_record(playbook), "text": render_playbook(playbook)})


@router.get("/v1/how")
async def how(
    caller: Reader,
    bounds: Bounds,
    repo: Name,
    command: Text,
) -> Response:
    """How a command is really run in a repository, as `contextgraph how --json` prints it."""
    history = await _within(bounds, caller, caller.tenant.memory.how, repo, command)
    return json_response(history_record(history))


async def _within(
    bounds: _Bounds, caller: Reader, ask: Callable[..., _Found], repo: str, about: str
) -> _Found:
    """What *ask* finds about a repository in the runs that *bounds* admit."""
    return await caller.service.answer(
        ask, repo, about, exclude_instances=bounds.exclude_instances, as_of=bounds.as_of
    )


@router.get("/v1/stats")
async def stats(caller: Reader, repo: Name = "", situation: Name = "") -> Response:
    """Counts, errors and error sequences, as `contextgraph stats --json` prints them."""

    def answer() -> dict[str, Json]:
        memory = caller.tenant.memory
        stats = memory.get_stats()
        if repo:
            patterns = memory.stats.get_failure_patterns(repo)
            stats = replace(stats, failure_patterns=patterns)
        # What models cost is counted on this machine, for all tenants.
        mistakes = memory.stats.get_common_mistakes(situation, repo)
        return stats_record(replace(stats, usage={}), mistakes, ())

    return json_response(await caller.service.answer(answer))


@router.get("/v1/friction")
async def friction(caller: Reader, repo: Name = "", limit: PageSize = 10) -> Response:
    """What keeps failing across tasks, as `contextgraph friction --json` prints it."""
    frictions = await caller.service.answer(caller.tenant.memory.stats.get_friction, repo, limit)
    return json_response(friction_record(repo, frictions))


@router.get("/v1/trajectories")
async def trajectories(
    caller: Reader,
    repo: Name = "",
    instance: Name = "",
    after: After = "",
    limit: PageSize = 50,
) -> Response:
    """The runs, by id: a page of those with an id above *after*."""

    def answer() -> dict[str, Json]:
        runs = caller.tenant.memory.store.runs
        ids = runs.ids(repo or None, instance or None, after=after, limit=limit + 1)
        found = runs.trajectories(ids[:limit])
        return {"trajectories": [*map(run_record, found.values())], "next": _next(ids, limit)}

    return json_response(await caller.service.answer(answer))


def _next(ids: Sequence[str], limit: int) -> str | None:
    """What to give as *after* for the next page, where *ids* are one more than fit on this one."""
    return ids[limit - 1] if len(ids) > limit else None


@router.get("/v1/trajectories/{identity}")
async def trajectory(caller: Reader, identity: str, steps: bool = False) -> Response:
    """A run with its fragments; with *steps* also "run", as its own format keeps it."""

    def answer() -> dict[str, Json]:
        memory = caller.tenant.memory
        runs = memory.store.runs
        known = runs.learned([identity]).get(identity)
        run = runs.trajectories([known.trajectory_id]).get(known.trajectory_id) if known else None
        if run is None:
            raise HTTPException(404, f"no run {identity}; /v1/trajectories lists those there are")
        fragments = runs.fragments([run.id]).get(run.id, ())
        record: dict[str, Json] = {
            **run_record(run),
            "task": run.task,
            "summary": run.summary,
            "fragments": [{"id": one.id, **fragment_record(one)} for one in fragments],
        }
        raw = runs.raw(run.id) if steps else None
        return {**record, "run": to_record(raw)} if raw else record

    return json_response(await caller.service.answer(answer))


@router.get("/v1/methodologies")
async def methodologies(
    caller: Reader, repo: Name = "", after: After = "", limit: PageSize = 50
) -> Response:
    """The methodologies, by id: a page of those with an id above *after*."""

    def answer() -> dict[str, Json]:
        store = caller.tenant.memory.store.methodologies
        ids = store.ids(repo or None, after=after, limit=limit + 1)
        methodologies = store.get(ids[:limit])
        return {"methodologies": [*map(record_of, methodologies)], "next": _next(ids, limit)}

    return json_response(await caller.service.answer(answer))


@router.get("/v1/methodologies/{identity}")
async def methodology(caller: Reader, identity: str) -> Response:
    """A methodology."""

    def answer() -> dict[str, Json]:
        methodologies = caller.tenant.memory.store.methodologies.get([identity])
        if not methodologies:
            raise HTTPException(
                404, f"no methodology {identity}; GET /v1/methodologies lists those there are"
            )
        return record_of(methodologies[0])

    return json_response(await caller.service.answer(answer))


@router.get("/v1/notes")
async def notes(
    caller: Reader,
    question: Text | None = None,
    repo: Name | None = None,
    tags: Annotated[Sequence[Name], Query(max_length=100)] = (),
    min_probability: Annotated[float, Query(ge=0, le=1)] = 0.0,
    limit: PageSize = 50,
    archived: bool = False,
) -> Response:
    """The notes that answer *question* best, as `contextgraph recall --json`; else the newest.

    Of *repo* where one is given; a question also finds those about anything. *tags* and
    *min_probability* are of questions, *archived* is of a list.
    """

    def answer() -> dict[str, Json]:
        known = caller.tenant.memory.notes
        if question is None:
            newest = known.of(repo, archived=archived)[:limit]
            return {"notes": [record_of(without_secret(note)) for note in newest]}
        recollections = known.recall(
            question,
            repo=repo,
            limit=limit,
            tags=tags,
            min_probability=min_probability,
        )
        return {
            "notes": [recalled_record(shareable(recollection)) for recollection in recollections]
        }

    return json_response(await caller.service.answer(answer))


@router.get("/v1/snapshot")
async def snapshot(
    caller: Reader,
    trigger: Text,
    focus: Text = "",
    repo: Name | None = None,
    max_tokens: Annotated[int, Query(ge=1, le=100_000)] = 500,
) -> Response:
    """What notes say that matters when *trigger* happens, as `contextgraph snapshot --json`."""
    snapshot = await caller.service.answer(
        caller.tenant.memory.snapshot, trigger, focus, repo=repo, max_tokens=max_tokens
    )
    return json_response(record_of(shareable_snapshot(snapshot, max_tokens)))


@router.get("/v1/explain/{identity}")
async def explain(caller: Reader, identity: str) -> Response:
    """Where a methodology, run, fragment, error or context comes from, as `explain --json`."""

    def answer() -> dict[str, Json]:
        explanation = caller.tenant.memory.explain(identity)
        if explanation is None:
            raise HTTPException(404, f"nothing has the id {identity}")
        return explanation_record(explanation)

    return json_response(await caller.service.answer(answer))

"""Routes that only read: advice, playbooks, statistics."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import wraps
from inspect import signature
from typing import Annotated, Any, ParamSpec, cast

import orjson
from fastapi import APIRouter, Depends, HTTPException, Query, Response
from pydantic import AwareDatetime

from contextgraph.advising.wording import (
    MAX_TOKENS,
    render,
    render_playbook,
)
from contextgraph.knowledge import (
    shareable,
    shareable_snapshot,
    without_secret,
)
from contextgraph.model import (
    Json,
    MemoryContext,
    new_context_id,
)
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
from contextgraph.service.access import Caller, Reader
from contextgraph.service.bodies import (
    CONTEXT,
    LONGEST,
    LoopBody,
    ProblemStatementBody,
    QueryBody,
    answered,
)

router = APIRouter()

_P = ParamSpec("_P")

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


def answering(read: Callable[_P, Mapping[str, Json]]) -> Callable[..., Awaitable[Response]]:
    """A route that answers with the object that *read* returns, which is called in a thread."""

    @wraps(read)
    async def route(*args: _P.args, **kwargs: _P.kwargs) -> Response:
        caller = cast(Caller, kwargs["caller"])
        return json_response(await caller.service.answer(read, *args, **kwargs))

    # FastAPI would check what is answered by the annotation of *read*.
    shown = signature(read).replace(return_annotation=Response)
    cast(Any, route).__signature__ = shown
    return route


@router.post("/v1/query", responses=answered(CONTEXT))
@answering
def query(body: QueryBody, caller: Reader) -> dict[str, Json]:
    """What is known for a state, as `contextgraph query --json` prints it."""
    memory = caller.memory
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
@answering
def loops(body: LoopBody, caller: Reader) -> dict[str, Json]:
    """The loop that the last of the states is in: an answer as of a query, with its "loop"."""
    memory = caller.memory
    loop = memory.check_loop([state.state() for state in body.states])
    context = MemoryContext(new_context_id(), loop=loop)
    return context_record(context, memory.render(context))


@router.post("/query_memory", responses=answered({"playbook": "…"}))
@answering
def query_memory(body: ProblemStatementBody, caller: Reader) -> dict[str, Json]:
    """The advice for a task as text, empty where nothing is known."""
    memory = caller.memory
    return {"playbook": memory.render(memory.query(body.state(), degrade=True))}


@router.get("/v1/playbook")
@answering
def playbook(caller: Reader, bounds: Bounds, repo: Name, task: Text = "") -> dict[str, Json]:
    """What the runs of a repository agree on, as `contextgraph playbook --json` prints it."""
    playbook = caller.memory.playbook(repo, task, **asdict(bounds))
    return {**playbook_record(playbook), "text": render_playbook(playbook)}


@router.get("/v1/how")
@answering
def how(caller: Reader, bounds: Bounds, repo: Name, command: Text) -> dict[str, Json]:
    """How a command is really run in a repository, as `contextgraph how --json` prints it."""
    return history_record(caller.memory.how(repo, command, **asdict(bounds)))


@router.get("/v1/stats")
@answering
def stats(caller: Reader, repo: Name = "", situation: Name = "") -> dict[str, Json]:
    """Counts, errors and error sequences, as `contextgraph stats --json` prints them."""
    memory = caller.memory
    # What models cost is counted on this machine, for all tenants.
    stats = replace(memory.get_stats(), usage={})
    if repo:
        stats = replace(stats, failure_patterns=memory.stats.get_failure_patterns(repo))
    return stats_record(stats, memory.stats.get_common_mistakes(situation, repo), ())


@router.get("/v1/friction")
@answering
def friction(caller: Reader, repo: Name = "", limit: PageSize = 10) -> dict[str, Json]:
    """What keeps failing across tasks, as `contextgraph friction --json` prints it."""
    return friction_record(repo, caller.memory.stats.get_friction(repo, limit))


@router.get("/v1/trajectories")
@answering
def trajectories(
    caller: Reader,
    repo: Name = "",
    instance: Name = "",
    after: After = "",
    limit: PageSize = 50,
) -> dict[str, Json]:
    """The runs, by id: a page of those with an id above *after*."""
    runs = caller.memory.store.runs
    ids = runs.ids(repo or None, instance or None, after=after, limit=limit + 1)
    page = runs.trajectories(ids[:limit])
    return {"trajectories": [*map(run_record, page.values())], "next": _next(ids, limit)}


def _next(ids: Sequence[str], limit: int) -> str | None:
    """What to give as *after* for the next page, where *ids* are one more than fit on this one."""
    return ids[limit - 1] if len(ids) > limit else None


@router.get("/v1/trajectories/{identity}")
@answering
def trajectory(caller: Reader, identity: str, steps: bool = False) -> dict[str, Json]:
    """A run with its fragments; with *steps* also "run", as its own format keeps it."""
    runs = caller.memory.store.runs
    known = runs.learned([identity]).get(identity)
    run = runs.trajectories([known.trajectory_id]).get(known.trajectory_id) if known else None
    if run is None:
        raise HTTPException(404, f"no run {identity}; /v1/trajectories lists those there are")
    fragments = runs.fragments([run.id]).get(run.id, ())
    record: dict[str, Json] = {
        **run_record(run),
        "task": run.task,
        "summary": run.summary,
        "fragments": [{"id": fragment.id, **fragment_record(fragment)} for fragment in fragments],
    }
    raw = runs.raw(run.id) if steps else None
    return {**record, "run": to_record(raw)} if raw else record


@router.get("/v1/methodologies")
@answering
def methodologies(
    caller: Reader, repo: Name = "", after: After = "", limit: PageSize = 50
) -> dict[str, Json]:
    """The methodologies, by id: a page of those with an id above *after*."""
    store = caller.memory.store.methodologies
    ids = store.ids(repo or None, after=after, limit=limit + 1)
    methodologies = store.get(ids[:limit])
    return {"methodologies": [*map(record_of, methodologies)], "next": _next(ids, limit)}


@router.get("/v1/methodologies/{identity}")
@answering
def methodology(caller: Reader, identity: str) -> dict[str, Json]:
    """A methodology."""
    methodologies = caller.memory.store.methodologies.get([identity])
    if not methodologies:
        raise HTTPException(
            404, f"no methodology {identity}; GET /v1/methodologies lists those there are"
        )
    return record_of(methodologies[0])


@router.get("/v1/notes")
@answering
def notes(
    caller: Reader,
    question: Text | None = None,
    repo: Name | None = None,
    tags: Annotated[Sequence[Name], Query(max_length=100)] = (),
    min_probability: Annotated[float, Query(ge=0, le=1)] = 0.0,
    limit: PageSize = 50,
    archived: bool = False,
) -> dict[str, Json]:
    """The notes that answer *question* best, as `contextgraph recall --json`; else the newest.

    Of *repo* where one is given; a question also finds those about anything. *tags* and
    *min_probability* are of questions, *archived* is of a list.
    """
    known = caller.memory.notes
    if question is None:
        newest = known.of(repo, archived=archived)[:limit]
        return {"notes": [record_of(without_secret(note)) for note in newest]}
    recalled = known.recall(
        question, repo=repo, limit=limit, tags=tags, min_probability=min_probability
    )
    return {"notes": [recalled_record(shareable(recollection)) for recollection in recalled]}


@router.get("/v1/snapshot")
@answering
def snapshot(
    caller: Reader,
    trigger: Text,
    focus: Text = "",
    repo: Name | None = None,
    max_tokens: Annotated[int, Query(ge=1, le=100_000)] = 500,
) -> dict[str, Json]:
    """What notes say that matters when *trigger* happens, as `contextgraph snapshot --json`."""
    snapshot = caller.memory.snapshot(trigger, focus, repo=repo, max_tokens=max_tokens)
    return record_of(shareable_snapshot(snapshot, max_tokens))


@router.get("/v1/explain/{identity}")
@answering
def explain(caller: Reader, identity: str) -> dict[str, Json]:
    """Where a methodology, run, fragment, error or context comes from, as `explain --json`."""
    explanation = caller.memory.explain(identity)
    if explanation is None:
        raise HTTPException(404, f"nothing has the id {identity}")
    return explanation_record(explanation)

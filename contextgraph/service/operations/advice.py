"""Advice: where it comes from, whether it helped, and whether it is shown; sources of runs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any

from pydantic import Field

from contextgraph.errors import NotFoundError
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import (
    SOURCE,
    AdviceFigures,
    Explanation,
    KnownSource,
    Outcome,
    RunOrder,
    Session,
    SessionFilter,
)
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.operations.arguments import (
    After,
    From,
    Identities,
    Identity,
    Limit,
    Most,
    Name,
    OnlyAgent,
    OnlyRepository,
    PageSize,
    Until,
)
from contextgraph.service.operations.runs import next_page
from contextgraph.service.records import advice_record, record_of
from contextgraph.text import masked_name

_Advice = Annotated[
    Name, Field(description="Advice (adv_…) or a methodology (mth_…), as answers name them.")
]
_Source = Annotated[Name, Field(description="The source, as `sources` names it.")]


@operation(TokenScope.READ, "GET /v1/explain", missing="nothing has the id {identity}")
def explain(
    memory: AgentMemory,
    identity: Annotated[
        Name,
        Field(
            description="A methodology (mth_…), trajectory (trj_…), fragment (frg_…), error "
            "pattern (err_…), advice (adv_…) or note (note_…), as answers name them."
        ),
    ],
) -> Explanation | None:
    """Return where a methodology, run, fragment, error or context comes from."""
    return memory.explain(identity)


def _with_total(found: Sequence[Session], given: Mapping[str, Any], memory: AgentMemory) -> Record:
    wanted = SessionFilter(**{name: given[name] for name in given.keys() - {"limit", "skip"}})
    total = memory.session_facets(wanted, limit=0).total
    return {"sessions": [*map(record_of, found)], "total": total}


@operation(TokenScope.READ, "GET /v1/sessions", form=_with_total, lines="sessions")
def sessions(  # noqa: PLR0913  (one parameter per property of a session)
    memory: AgentMemory,
    repo: OnlyRepository | None = None,
    *,
    agent: OnlyAgent = "",
    outcome: Annotated[Outcome | None, Field(description="Known or guessed.")] = None,
    since: From = None,
    until: Until = None,
    order: Annotated[RunOrder, Field(description="By what they are listed.")] = RunOrder.NEWEST,
    limit: Most = 50,
    skip: Annotated[int, Field(ge=0, description="How many to leave out first.")] = 0,
) -> Sequence[Session]:
    """List sessions with their sub-agents, tokens, cost and outcome, the newest first."""
    wanted = SessionFilter(repo, agent, outcome, since, until, order)
    return memory.sessions(wanted, limit, skip)


@operation(TokenScope.READ, "GET /v1/advice", form=lambda figures, *_: advice_record(figures))
def advice(memory: AgentMemory, since: From = None, until: Until = None) -> AdviceFigures:
    """Count what was shown, followed and cleared, and the steps saved: net, and at most."""
    return memory.stats.get_advice(since, until)


def _report_record(recorded: bool, given: Mapping[str, Any], _: object) -> Record:
    facts = {"helped": given["helped"], "item": given.get("item"), "recorded": recorded}
    return {"context": masked_name(given["context"]), **facts}


@operation(
    TokenScope.WRITE,
    "POST /v1/reports",
    form=_report_record,
    source="{}",
    example={"context": "ctx_5f0c2a4d9e1b7c3a", "helped": True},
    exit_code=lambda record: 0 if record["recorded"] else 1,
)
def report(
    memory: AgentMemory,
    context: Annotated[Name, Field(description="The id of an answer (ctx_…).")],
    helped: Annotated[bool, Field(description="Whether it helped.")],
    item: Annotated[Limit | None, Field(description="Only the item of this number.")] = None,
    *,
    source: Annotated[Name, Field(description="Who reports it; empty for the owner.")] = "",
) -> bool:
    """Report whether the advice of an answer helped; "recorded" is false if it was before."""
    return memory.report_outcome(context, helped, item, source=source)


_UNKNOWN = "no advice {identity} in this memory"


def _status(status: str) -> Callable[[bool, Mapping[str, Any], object], Record]:
    hidden = status == "quarantined"
    return lambda _, given, __: {
        "advice": given["identity"], "status": status, "quarantined": hidden
    }  # fmt: skip


@operation(TokenScope.ADMIN, "POST /v1/quarantine", form=_status("quarantined"), missing=_UNKNOWN)
def quarantine(memory: AgentMemory, identity: _Advice) -> bool:
    """Never show a methodology, or advice (`adv_…`), again."""
    return memory.quarantine(identity)


@operation(TokenScope.ADMIN, "POST /v1/release", form=_status("released"), missing=_UNKNOWN)
def release(memory: AgentMemory, identity: _Advice) -> bool:
    """Show a methodology, or advice (`adv_…`), again, despite reports against it."""
    return memory.release(identity)


@operation(TokenScope.READ, "GET /v1/methodologies")
def methodologies(
    memory: AgentMemory, repo: Name = "", after: After = "", limit: PageSize = 50
) -> Record:
    """List methodologies by id: a page of those with an id above *after*."""
    store = memory.store.methodologies
    ids = store.ids(repo or None, after=after, limit=limit + 1)
    page = [*map(record_of, store.get(ids[:limit]))]
    return {"methodologies": [*page], "next": next_page(ids, limit)}


@operation(TokenScope.READ, "GET /v1/methodologies/{identity}")
def methodology(memory: AgentMemory, identity: Identity) -> Record:
    """Return a methodology."""
    found = memory.store.methodologies.get([identity])
    if not found:
        raise NotFoundError(f"no methodology {identity}; methodologies lists those there are")
    return record_of(found[0])


@operation(
    TokenScope.ADMIN,
    "POST /v1/retire",
    key="retired",
    missing="no such methodology, or it is retired",
    takes_long=True,
)
def retire(memory: AgentMemory, methodology_ids: Identities) -> int:
    """Stop showing and deriving methodologies; they stay with the status retired."""
    return memory.retire(methodology_ids)


@operation(TokenScope.READ, "GET /v1/sources", lines="sources")
def sources(memory: AgentMemory) -> Sequence[KnownSource]:
    """List who supplied runs and reports: "name" ("" for the owner), "trusted", and counts."""
    return memory.sources()


@operation(TokenScope.ADMIN, lines="sources")
def sources_distrust(memory: AgentMemory, name: _Source) -> Record:
    """Ignore everything that a source supplied; its runs, reports and notes stay stored."""
    return _decided(memory, name, memory.quarantine(f"{SOURCE}{name}"))


@operation(TokenScope.ADMIN, lines="sources")
def sources_trust(memory: AgentMemory, name: _Source) -> Record:
    """Trust a source again."""
    return _decided(memory, name, memory.release(f"{SOURCE}{name}"))


def _decided(memory: AgentMemory, name: str, is_known: bool) -> Record:
    if not is_known:
        raise NotFoundError(f"no run or report has the source {name}")
    return {"sources": [record_of(one) for one in memory.sources() if one.name == name]}

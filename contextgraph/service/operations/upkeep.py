"""The upkeep of a memory as a whole: methodologies, vectors, stored runs."""

from collections.abc import Iterator
from typing import Annotated

from pydantic import Field

from contextgraph.errors import SettingsError, StoreError
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import ConsolidationReport, Json
from contextgraph.service.operations import Record, TokenScope, operation
from contextgraph.service.records import record_of

DryRun = Annotated[bool, Field(description="Return what would be sent and its cost; send nothing.")]
_LEASE_HELD = 5


@operation(
    TokenScope.ADMIN,
    "POST /v1/consolidate",
    own="dry_run",
    exit_code=lambda record: 0 if record.get("started", True) else _LEASE_HELD,
    takes_long=True,
)
def consolidate(memory: AgentMemory, dry_run: DryRun = False) -> ConsolidationReport | Record:
    """Derive methodologies from runs, with a language model where one is configured.

    Does nothing while another process holds the lease: "started" is false.
    """
    if not dry_run:
        return memory.consolidate()
    plan = memory.consolidator.plan_wording()
    estimate = {"editor": plan.summarizer, **record_of(plan.usage)}
    return record_of(plan, "summarizer", "usage", **estimate)


@operation(TokenScope.ADMIN)
def reembed(memory: AgentMemory, dry_run: DryRun = False) -> Record:
    """Embed all runs with the configured embedder; queries use the old vectors until then.

    An interrupted one continues when it is repeated. Nothing is sent where it may cost more than
    the setting max_cost.
    """
    plan = memory.spaces.plan()
    if dry_run:
        return record_of(plan, "usage", **record_of(plan.usage))
    most = memory.max_cost
    if most is not None and plan.usage.cost > most:
        raise SettingsError(
            f"it may cost ${plan.usage.cost:.4f}, more than max_cost; nothing was sent"
        )
    done = memory.reembed()
    return {"space": done.space.name, "runs": done.runs, **record_of(done.usage)}


@operation(TokenScope.ADMIN)
def embed(
    memory: AgentMemory,
    embedder: Annotated[str, Field(description="First change to this one, such as local.")] = "",
) -> Record:
    """Embed the passages of sessions that have no vector yet.

    An interrupted one continues when it is repeated. With the memory's own TF-IDF there is none.
    """
    if embedder:
        memory.reembed(embedder)
    return {"passages": memory.embed()}


def _of_damaged(record: Record) -> int:
    summary = record["summary"]
    assert isinstance(summary, dict)
    if not summary["failed"]:
        return 0
    return 3 if summary["updated"] else 1


@operation(TokenScope.ADMIN, exit_code=_of_damaged)
def rebuild(
    memory: AgentMemory,
    strict: Annotated[bool, Field(description="Stop at a damaged run.")] = False,
) -> Iterator[Record]:
    """Read the stored runs again and derive all from them; yields a record of each, and a summary.

    Outcomes, learning times and credit stay. A damaged run stays as it is.
    """
    damaged: list[Record] = []

    def skip(identity: str, error: StoreError) -> None:
        damaged.append({"trajectory_id": identity, "status": "failed", "error": str(error)})

    updated, failed = 0, 0
    for receipt in memory.rebuild(None if strict else skip):
        updated += 1
        failed += len(damaged)
        yield from damaged
        damaged.clear()
        yield record_of(receipt)
    failed += len(damaged)
    yield from damaged
    summary: dict[str, Json] = {"updated": updated, "failed": failed}
    yield {"summary": summary}

"""``contextgraph report``, ``outcome``, ``quarantine`` and ``release``: what people report."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Source, Store, Tenant, open_memory, option
from contextgraph.cli.output import answer, warn
from contextgraph.text import number_of, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextgraph.memory import AgentMemory
    from contextgraph.model import Json
    from contextgraph.ports import RunStore


_Advice = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Advice (adv_…) or a methodology (mth_…), as answers name them.",
        show_default=False,
    ),
]


def report(
    context: Annotated[
        str,
        typer.Argument(metavar="CONTEXT", help="The id of an answer (ctx_…).", show_default=False),
    ],
    helped: Annotated[
        bool | None, typer.Option("--helped/--hurt", help="Whether it helped.", show_default=False)
    ] = None,
    item: Annotated[
        int | None,
        option("--item", "N", "Only the item of this number.", min=1),
    ] = None,
    source: Source = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Report whether the advice of an answer helped.

    Advice is no longer shown if it clears an error far less often than runs do without it. An
    outcome is counted once for each answer, or each item of it.

    \b
    With --json one object: "context", "helped", "item", "recorded".

    \b
    Example:
      contextgraph report ctx_5f0c2a4d9e1b7c3a --helped
      contextgraph report ctx_5f0c2a4d9e1b7c3a --hurt --item 2
    """
    if helped is None:
        raise typer.BadParameter("give --helped or --hurt")
    with open_memory(store, tenant, create=False, source=source) as memory:
        recorded = memory.report_outcome(context, helped, item)
    record: dict[str, Json] = {"context": context, "helped": helped, "item": item}
    answer({**record, "recorded": recorded}, "recorded" if recorded else "", as_json=as_json)
    if not recorded:
        of_it = f"{context} has no item {item}, it" if item else context
        warn(f"{of_it} is unknown, or its outcome was reported before")
        raise typer.Exit(FAILED)


def quarantine(
    advice: _Advice, as_json: AsJson = False, store: Store = None, tenant: Tenant = None
) -> None:
    """Never show an advice or a methodology again.

    This applies to every run that it comes from.

    \b
    With --json one object: "advice", "status".

    \b
    Example:
      contextgraph quarantine adv_5f0c2a4d9e1b7c3a
    """
    _decide(lambda memory: memory.quarantine(advice), "quarantined", advice, as_json, store, tenant)


def release(
    advice: _Advice, as_json: AsJson = False, store: Store = None, tenant: Tenant = None
) -> None:
    """Show quarantined advice or methodologies again.

    Earlier reports about it no longer count.

    \b
    With --json one object: "advice", "status".

    \b
    Example:
      contextgraph release adv_5f0c2a4d9e1b7c3a
    """
    _decide(lambda memory: memory.release(advice), "released", advice, as_json, store, tenant)


def _decide(
    decide: "Callable[[AgentMemory], bool]",
    status: str,
    advice: str,
    as_json: bool,
    store: str | None,
    tenant: str | None,
) -> None:
    with open_memory(store, tenant, create=False) as memory:
        is_known = decide(memory)
    if not is_known:
        warn(f"no advice or methodology has the id {advice}; query --json shows them")
        raise typer.Exit(FAILED)
    answer({"advice": advice, "status": status}, f"{advice} is {status}", as_json=as_json)


class GivenOutcome(StrEnum):
    """An outcome that is set by hand."""

    SOLVED = "solved"
    FAILED = "failed"


def outcome(
    instance: Annotated[str, typer.Argument(metavar="INSTANCE", help="The instance.")],
    result: Annotated[GivenOutcome, typer.Argument(metavar="solved|failed", help="Its outcome.")],
    agent: Annotated[str, option("--agent", "NAME", "Only runs of this agent.")] = "",
    run: Annotated[str, option("--run", "ID", "Only the run of this id.")] = "",
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Set by hand whether runs solved their task.

    It takes precedence over logs and reports, also over later ones. Where the instance has several
    runs, name the agent or the run.

    \b
    With --json one object: "instance_id", "outcome", "trajectories" [ids of the
    runs].

    \b
    Example:
      contextgraph outcome owner__repo-12 solved
      contextgraph outcome owner__repo-12 failed --agent claude-code
    """
    with open_memory(store, tenant, create=False) as memory:
        if not (agent or run or memory.is_service):  # which refuses it itself
            _refuse_several(memory.store.runs, instance)
        solved = result is GivenOutcome.SOLVED
        changed = list(memory.set_outcome(instance, solved, agent=agent, run=run))
    if not changed:
        named = " ".join(filter(None, (instance, agent and f"by {agent}", run)))
        warn(f"no run of {named} in the memory; `contextgraph runs` lists those there are")
        raise typer.Exit(FAILED)
    answer(
        {"instance_id": instance, "outcome": result.value, "trajectories": [*changed]},
        f"{instance}: {number_of(len(changed), 'run')} {result.value}",
        as_json=as_json,
    )


def _refuse_several(runs: "RunStore", instance: str) -> None:
    found = runs.trajectories(runs.ids(instance=instance)).values()
    if len(found) > 1:
        for one in found:
            typer.echo(f"  {one.id}  {plain(one.agent) or 'no agent'}, {one.outcome}", err=True)
        warn(f"{instance} has {len(found)} runs; name one by --run ID, or those of an --agent NAME")
        raise typer.Exit(FAILED)

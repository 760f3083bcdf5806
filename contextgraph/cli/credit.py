"""``contextgraph report``, ``quarantine`` and ``release``: what advice did, and what to show."""

from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import FAILED, AsJson, Source, Store, Tenant, open_memory
from contextgraph.cli.output import emit, warn

if TYPE_CHECKING:
    from collections.abc import Callable

    from contextgraph.memory import AgentMemory

_Advice = Annotated[
    str,
    typer.Argument(
        metavar="ID",
        help="Of advice (adv_…) or a methodology (mth_…), as answers name them.",
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
        typer.Option(
            "--item", metavar="N", min=1, help="Only the item of this number.", show_default=False
        ),
    ] = None,
    source: Source = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Report whether the advice of an answer helped.

    Advice that clears an error far less often than it is cleared anyway is not shown any more. An
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
    if as_json:
        emit({"context": context, "helped": helped, "item": item, "recorded": recorded})
    elif recorded:
        print("recorded")
    if not recorded:
        of_it = f"{context} has no item {item}, it" if item else context
        warn(f"{of_it} is unknown, or its outcome was reported before")
        raise typer.Exit(FAILED)


def quarantine(
    advice: _Advice, as_json: AsJson = False, store: Store = None, tenant: Tenant = None
) -> None:
    """Never show an advice or methodology again.

    From whatever run it comes.

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
    """Show a quarantined advice or methodology again.

    What was reported of it so far does not count any more.

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
    if as_json:
        emit({"advice": advice, "status": status})
    else:
        print(f"{advice} is {status}")

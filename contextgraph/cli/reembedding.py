"""``contextgraph reembed``: let another embedder say what is alike."""

from datetime import datetime
from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import AsJson, Embedder, MaxCost, Store, Tenant, open_memory
from contextgraph.cli.output import complain, emit

if TYPE_CHECKING:
    from contextgraph.embedding import Reembedding, ReembeddingPlan
    from contextgraph.memory import AgentMemory

FAILED = 1


def reembed(
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Say how many texts and tokens, and what it costs at most."),
    ] = False,
    embedder: Embedder = None,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Embed all runs anew by the embedder configured.

    Until all is done queries are answered as before, then at once by the new vectors. What is
    interrupted goes on where it was; what was bought of an API is not bought again. Where nothing
    changed it embeds what is still waiting.

    \b
    With --json one object: "space", "runs", "tokens", "cost" (US dollars), "requests"; with
    --dry-run also "texts", tokens and cost being at most.

    \b
    Example:
      contextgraph reembed --embedder openai/text-embedding-3-small --dry-run
      contextgraph reembed --embedder local
      contextgraph reembed --embedder tfidf
    """
    with open_memory(store, tenant, create=False, embedder=embedder, max_cost=max_cost) as memory:
        plan = memory.plan_reembedding()
        if dry_run:
            _show_plan(plan, as_json=as_json)
            return
        if max_cost is not None and plan.usage.cost > max_cost:
            complain(f"it may cost ${plan.usage.cost:.4f}, more than --max-cost; nothing was sent")
            raise typer.Exit(FAILED)
        done = _reembed(memory, plan)
    _show_done(done, as_json=as_json)


def _reembed(memory: "AgentMemory", plan: "ReembeddingPlan") -> "Reembedding":
    from contextgraph.cli.progress import Progress

    count = 0
    with Progress(lambda: plan.runs) as progress:

        def told(runs: int) -> None:
            nonlocal count
            count += runs
            progress.advance(runs)
            progress.count(count)

        return memory.reembed(progress=told, waiting=_waiting)


def _waiting(until: datetime) -> None:
    complain(f"another process works on the memory; waiting, until {until:%H:%M:%S} UTC at most")


def _show_plan(plan: "ReembeddingPlan", *, as_json: bool) -> None:
    from contextgraph.text import number_of

    if as_json:
        from contextgraph.cli.records import usage_record

        emit(
            {
                "space": plan.space,
                "runs": plan.runs,
                "texts": plan.texts,
                **usage_record(plan.usage),
            }
        )
    else:
        print(
            f"{plan.space}: {number_of(plan.runs, 'run')} to embed, {number_of(plan.texts, 'text')}"
        )
        print(f"at most about {number_of(plan.usage.tokens, 'token')}, ${plan.usage.cost:.4f}")


def _show_done(done: "Reembedding", *, as_json: bool) -> None:
    from contextgraph.text import number_of

    if as_json:
        from contextgraph.cli.records import usage_record

        emit({"space": done.space.name, "runs": done.runs, **usage_record(done.usage)})
    else:
        print(f"{done.space.name} answers now; {number_of(done.runs, 'run')} embedded")
        print(f"{number_of(done.usage.tokens, 'token')}, ${done.usage.cost:.4f}")

"""``contextgraph consolidate``: bring up to date what many runs teach together."""

from typing import TYPE_CHECKING, Annotated

import typer

from contextgraph.cli.options import (
    AsJson,
    MaxCost,
    Store,
    Summarize,
    Summarizer,
    Tenant,
    open_memory,
)
from contextgraph.cli.output import complain, emit

if TYPE_CHECKING:
    from contextgraph.model import ConsolidationReport, Json, WordingPlan


def consolidate(
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Print what a model would be sent and what it costs; send nothing."
        ),
    ] = False,
    summarizer: Summarizer = None,
    summarize: Summarize = None,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Abstract methodologies from what many runs did.

    Then merges, measures, cleans up and puts them into words. `learn` does so by itself; a second
    run right after changes nothing. Where another process is at it already, this one says so and
    leaves it at that. Where a language model is configured, it words what the template worded;
    without its answer the template's words stand. With --summarize runs it also tells runs and
    their fragments again, beside what a rule made of them.

    \b
    With --json one object: "started", "reason", "trajectories", "changed", "seconds",
    "steps" [{"name", "examined", "created", "updated", "removed"}], "tokens", "cost" (US dollars),
    "requests", "waiting" (methodologies to be worded later), "runs_waiting", "not_worded" (why),
    "unusable" (answers that are not asked for again), "fault" (what was wrong with one).
    With --dry-run: "editor", "prompts" [text], "reteller", "runs", "run_prompt" (that of the first
    run), "tokens", "cost", "requests", about.

    \b
    Example:
      contextgraph consolidate --store team.db
      contextgraph consolidate --summarizer openai/gpt-4.1-mini --dry-run
      contextgraph consolidate --summarizer openai/gpt-4.1-mini --summarize runs --max-cost 0.50
    """
    from contextgraph.cli.progress import Progress

    with open_memory(
        store,
        tenant,
        create=False,
        summarizer=summarizer,
        summarize=summarize,
        max_cost=max_cost,
    ) as memory:
        if dry_run:
            _show_plan(memory.plan_wording(), as_json=as_json)
            return
        with Progress(lambda: 1) as progress:
            report = memory.consolidate(lambda done, total: progress.count(done))
    _show(report, as_json=as_json)


def _show(report: "ConsolidationReport", *, as_json: bool) -> None:
    if as_json:
        from contextgraph.cli.records import consolidation_record

        emit(consolidation_record(report))
        return
    if not report.started:
        complain(report.reason)
        return
    from contextgraph.cli.tables import show_consolidation

    show_consolidation(report)
    if waiting := _waiting(report):
        complain(f"{waiting} still to be worded: {report.not_worded}")
    if report.unusable:
        from contextgraph.text import number_of

        said = number_of(report.unusable, "answer")
        complain(f"{said} of the language model could not be used: {report.fault}")


def _waiting(report: "ConsolidationReport") -> str:
    from contextgraph.text import number_of

    counts = {"methodology": report.waiting, "run": report.runs_waiting}
    return " and ".join(number_of(count, noun) for noun, count in counts.items() if count)


def _show_plan(plan: "WordingPlan", *, as_json: bool) -> None:
    from contextgraph.text import number_of

    if as_json:
        from contextgraph.cli.records import usage_record

        told: dict[str, Json] = {
            "editor": plan.editor,
            "prompts": list(plan.prompts),
            "reteller": plan.reteller or None,
            "runs": plan.runs,
            "run_prompt": plan.run_prompt or None,
        }
        emit({**told, **usage_record(plan.usage)})
        return
    if not plan.editor:
        print("no language model is configured (CONTEXTGRAPH_SUMMARIZER): nothing would be sent")
        return
    for prompt in plan.prompts:
        print(f"{prompt}\n")
    if plan.run_prompt:
        print(f"{plan.run_prompt}\n")
    print(f"{plan.editor}: {number_of(len(plan.prompts), 'methodology')} to word")
    if plan.reteller:
        print(f"{plan.reteller}: {number_of(plan.runs, 'run')} to tell again, the first as shown")
    print(f"about {number_of(plan.usage.tokens, 'token')}, ${plan.usage.cost:.4f}")

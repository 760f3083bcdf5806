"""``contextgraph consolidate``, ``reembed``, ``rebuild`` and ``migrate``: update a memory."""

from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.options import (
    Common,
    Strict,
    common_options,
    flag,
)
from contextgraph.cli.output import (
    LEASE_HELD,
    DamagedRuns,
    Progress,
    emit,
    fail,
    print_table,
    print_text,
    warn,
)
from contextgraph.records import (
    consolidation_record,
    receipt_record,
    record_of,
    usage_record,
)
from contextgraph.text import number_of, plain

if TYPE_CHECKING:
    from contextgraph.embedding import Reembedding, ReembeddingPlan
    from contextgraph.memory import AgentMemory
    from contextgraph.model import (
        ConsolidationReport,
        Json,
        WordingPlan,
    )


_CHANGES = ("examined", "created", "updated", "removed")


@common_options("summarizer", "max_cost")
def consolidate(
    common: Common,
    dry_run: Annotated[
        bool, flag("--dry-run", "Print what a model would be sent and its cost; send nothing.")
    ] = False,
) -> None:
    """Derive methodologies from runs.

    Groups what cleared the same error in several runs, merges duplicates, updates statistics and
    removes what proved weak. `learn` does this automatically; repeating it changes nothing. Does
    nothing while another process holds the lease (exit code 5). With a language model it also
    rewords the text of the template, which stays where the model does not answer.

    \b
    Example:
      contextgraph consolidate --store team.db
      contextgraph consolidate --summarizer openai/gpt-4.1-mini --dry-run
      contextgraph consolidate --summarizer openai/gpt-4.1-mini --max-cost 0.50
    """
    with common.open(create=False) as memory:
        if dry_run:
            plan = memory.consolidator.plan_wording()
            estimate = {"editor": plan.summarizer, **usage_record(plan.usage)}
            record = record_of(plan, "summarizer", "usage", **estimate)
            common.answer(record, partial(_show_wording_plan, plan))
            return
        errors = () if memory.is_service else memory.store.admin.unconsolidated().error_ids
        with Progress(lambda: 1) as progress:
            report = memory.consolidate(lambda done, total: progress.count(done))
        common.compile_for_hooks(memory, consolidated=errors)
    common.answer(consolidation_record(report), partial(_show_report, report))
    if not report.started:
        raise click.exceptions.Exit(LEASE_HELD)


def _show_report(report: "ConsolidationReport") -> None:
    if not report.started:
        warn(report.reason)
        return
    rows = [
        (step.name, *(f"{getattr(step, change):,}" for change in _CHANGES)) for step in report.steps
    ]
    runs = number_of(report.trajectories, "trajectory")
    title = f"{runs} consolidated in {report.seconds:.1f} s"
    print_table(title, ("step", *_CHANGES), rows, numeric=_CHANGES)
    used = report.usage
    if used.requests:
        requests, tokens = number_of(used.requests, "request"), number_of(used.tokens, "token")
        print(f"language model: {requests}, {tokens}, ${used.cost:.4f}")
    if not report.changed:
        print_text(("nothing changed", "dim"))
    if report.waiting:
        count = number_of(report.waiting, "methodology")
        warn(f"{count} still to be worded: {report.not_worded}")
    if report.unusable:
        answers = number_of(report.unusable, "answer")
        warn(f"{answers} of the language model could not be used: {report.fault}")


def _show_wording_plan(plan: "WordingPlan") -> None:
    if not plan.summarizer:
        print("no language model is configured (CONTEXTGRAPH_SUMMARIZER): nothing would be sent")
        return
    for prompt in plan.prompts:
        print(f"{plain(prompt)}\n")
    print(f"{plan.summarizer}: {number_of(len(plan.prompts), 'methodology')} to word")
    print(f"about {number_of(plan.usage.tokens, 'token')}, ${plan.usage.cost:.4f}")


@common_options("embedder", "max_cost")
def reembed(
    common: Common,
    dry_run: Annotated[
        bool, flag("--dry-run", "Print how many texts and tokens, and the cost at most.")
    ] = False,
) -> None:
    """Embed all runs with the configured embedder.

    Queries use the old vectors until all new ones are there. An interrupted command continues when
    it is repeated; vectors that an API returned are cached. With the same embedder as before, it
    embeds what has no vectors yet.

    \b
    Example:
      contextgraph reembed --embedder openai/text-embedding-3-small --dry-run
      contextgraph reembed --embedder local
      contextgraph reembed --embedder tfidf
    """
    max_cost = common.settings().max_cost
    with common.open(create=False) as memory:
        plan = memory.spaces.plan()
        if dry_run:
            _show_embedding_plan(common, plan)
            return
        if max_cost is not None and plan.usage.cost > max_cost:
            fail(f"it may cost ${plan.usage.cost:.4f}, more than --max-cost; nothing was sent")
        done = _reembed(memory, plan)
    _show_reembedding(common, done)


def _reembed(memory: "AgentMemory", plan: "ReembeddingPlan") -> "Reembedding":
    count = 0
    with Progress(lambda: plan.runs) as progress:

        def advance(runs: int) -> None:
            nonlocal count
            count += runs
            progress.advance(runs)
            progress.count(count)

        return memory.reembed(progress=advance, waiting=_report_waiting)


def _report_waiting(until: datetime) -> None:
    warn(f"another process holds the lease; waiting, until {until:%H:%M:%S} UTC at most")


def _show_embedding_plan(common: Common, plan: "ReembeddingPlan") -> None:
    text = (
        f"{plan.space}: {number_of(plan.runs, 'run')} to embed, {number_of(plan.texts, 'text')}\n"
        f"at most about {number_of(plan.usage.tokens, 'token')}, ${plan.usage.cost:.4f}"
    )
    common.answer(record_of(plan, "usage", **usage_record(plan.usage)), text)


def _show_reembedding(common: Common, done: "Reembedding") -> None:
    text = (
        f"{done.space.name} is the active space; {number_of(done.runs, 'run')} embedded\n"
        f"{number_of(done.usage.tokens, 'token')}, ${done.usage.cost:.4f}"
    )
    common.answer({"space": done.space.name, "runs": done.runs, **usage_record(done.usage)}, text)


@common_options()
def rebuild(common: Common, strict: Strict = False) -> None:
    """Read the stored runs again.

    Derives everything from them again, as this version reads logs. Use it after an update.
    Outcomes, learning times and credit stay. Runs are replaced sixteen to a transaction, so an
    interrupted command can be repeated; at the end the memory is consolidated. A damaged run is
    reported and stays as it is.

    \b
    Example:
      contextgraph rebuild --store team.db
    """
    with common.open(create=False) as memory:
        damaged = DamagedRuns(strict, common.as_json)
        done = _rebuild_all(memory, damaged)
        common.compile_for_hooks(memory, whole=True)
    text = f"rebuilt {number_of(done, 'trajectory')}"
    common.answer({"summary": {"updated": done, "failed": len(damaged.ids)}}, text)
    damaged.exit(done)


def _rebuild_all(memory: "AgentMemory", damaged: DamagedRuns) -> int:
    done, total = 0, len(memory.store.runs.ids())
    try:
        with Progress(lambda: total) as progress:
            for done, receipt in enumerate(memory.rebuild(damaged.handler), start=1):
                if damaged.as_json:
                    emit(receipt_record(receipt))
                progress.runs(done, total)
    except KeyboardInterrupt:
        warn(f"interrupted; {done} of {number_of(total, 'trajectory')} rebuilt")
        raise
    return done


@common_options()
def migrate(
    common: Common,
    dry_run: Annotated[
        bool, flag("--dry-run", "Print the migrations without applying them.")
    ] = False,
) -> None:
    """Bring the schema up to date, and mask secrets.

    For use after an update. A memory on a server is refused until this is done; a file is also
    migrated when it is next written. Creates an empty memory where there is none. Then stored runs
    are masked by the rules of this version, and those that this changes are read again, as by
    `rebuild`; an interrupted command can be repeated.

    \b
    Example:
      contextgraph migrate --store neo4j://localhost:7687 --dry-run
    """
    damaged = DamagedRuns(False, common.as_json)
    with common.open() as memory:
        steps = memory.migrate(dry_run=dry_run)
        runs, values = (0, 0) if dry_run else memory.mask_stored(damaged.handler)
        if runs:
            common.compile_for_hooks(memory, whole=True)
    done = "pending" if dry_run else "applied"
    lines = [f"{done}: {step}" for step in steps] or ["the schema is up to date"]
    if runs:
        lines.append(f"masked {number_of(values, 'value')} in {number_of(runs, 'trajectory')}")
    masked: dict[str, Json] = {} if dry_run else {"masked": {"runs": runs, "values": values}}
    report: dict[str, Json] = {"migrations": list(steps), "dry_run": dry_run, **masked}
    common.answer(report, "\n".join(lines))
    damaged.exit(1)

"""``contextgraph learn``: from files of finished runs into the memory."""

from collections import Counter
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from contextgraph.cli.options import (
    AsJson,
    Embedder,
    MaxCost,
    Paths,
    Store,
    Tenant,
    open_memory,
)
from contextgraph.cli.output import complain, emit
from contextgraph.errors import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contextgraph.cli.intake import Intake
    from contextgraph.cli.progress import Progress
    from contextgraph.cli.spool import Spool
    from contextgraph.errors import ReadError
    from contextgraph.memory import AgentMemory
    from contextgraph.model import ConsolidationReport, Json, LearnReceipt, RawTrajectory

    _Read: TypeAlias = list[RawTrajectory | ReadError]

MOST_KEPT = 256


def learn(
    paths: Paths,
    outcomes: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            help="A SWE-bench report, or a folder of them, that says which instances were solved.",
            show_default=False,
        ),
    ] = None,
    embedder: Embedder = None,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Learn finished runs.

    Runs that are known already stay as they are, so the same command goes on where it was
    interrupted. What is counted is stored durably. Where a server cannot be reached, the runs are
    kept in a folder, and learned first by the next such command.

    \b
    Example:
      contextgraph learn runs/ 'more/*.jsonl.gz'
      contextgraph learn runs/ --outcomes report.json
      cat run.traj | contextgraph learn -
    """
    from contextgraph.cli.intake import Intake
    from contextgraph.cli.progress import Progress
    from contextgraph.readers import size_of
    from contextgraph.text import number_of

    spool = _spool(store, tenant)
    progress = Progress(lambda: size_of(paths))
    read: _Read = []
    intake = Intake(paths, outcomes, read.append, progress.advance)
    runs, done = iter(intake), _Done(progress, as_json)
    try:
        with open_memory(store, tenant, embedder=embedder, max_cost=max_cost) as memory:
            with progress, memory.batch(progress.consolidating, done.reports.append):
                _learn_spooled(memory, spool, done)
                _learn_all(memory, runs, read, done)
            _remark(memory, done)
    except StoreUnavailableError as error:
        _keep_rest(spool, chain(read, runs), done, error, most=_most_kept(paths))
        raise
    except KeyboardInterrupt:
        stored = done.counts.total()
        complain(
            f"interrupted; {number_of(stored, 'trajectory')} stored, the same command goes on there"
        )
        raise
    finally:
        _conclude(done, intake, as_json=as_json)
    raise typer.Exit(intake.exit_code)


@dataclass(slots=True)
class _Done:
    """What was learned so far, what its vectors took, and why some were not made."""

    progress: "Progress"
    as_json: bool
    counts: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    cost: float = 0.0
    reason: str = ""
    reports: "list[ConsolidationReport]" = field(default_factory=list)

    def add(self, receipt: "LearnReceipt") -> None:
        self.counts[receipt.status] += 1
        self.tokens += receipt.usage.tokens
        self.cost += receipt.usage.cost
        self.reason = receipt.not_embedded or self.reason
        self.progress.count(self.counts.total())

    def tell(self, record: "dict[str, Json]") -> None:
        if self.as_json:
            emit(record)


def _spool(store: str | None, tenant: str | None) -> "Spool | None":
    """Where runs wait for a server; None for a file, which is as near as a spool would be."""
    from contextgraph.cli.spool import Spool
    from contextgraph.config import load_settings

    settings = load_settings(store=store or None, tenant=tenant)
    return Spool(settings) if settings.is_remote else None


def _learn_spooled(memory: "AgentMemory", spool: "Spool | None", done: _Done) -> None:
    """Learn what could not be learned before."""
    for path, raw in spool or ():
        _learn(memory, [raw], done)
        path.unlink(missing_ok=True)  # another process may have learned it as well


def _most_kept(paths: "Iterable[str]") -> int | None:
    """How many runs of *paths* are kept: of files the first ones, as they can be read again."""
    from contextgraph.readers import is_stream

    return None if any(map(is_stream, paths)) else MOST_KEPT


def _keep_rest(
    spool: "Spool | None",
    rest: "Iterable[RawTrajectory | ReadError]",
    done: _Done,
    error: StoreUnavailableError,
    *,
    most: int | None,
) -> None:
    """Keep the runs that were at hand and those that follow, at *most* so many; None: all."""
    from contextgraph.cli.records import failed_record, spooled_record
    from contextgraph.model import RawTrajectory
    from contextgraph.text import number_of

    if spool is None:
        return
    more = iter(rest)
    for one in islice(more, most):
        if isinstance(one, RawTrajectory):
            spool.keep(one)
            done.tell(spooled_record(one, error))
        else:
            done.tell(failed_record(one))
    complain(
        f"kept in {spool.folder}: {number_of(len(spool), 'trajectory')}; "
        "the next `contextgraph learn` for this memory learns what waits there first"
    )
    if next(more, None):
        complain("the others are where they were: the same command goes on there")


def _learn_all(
    memory: "AgentMemory", runs: "Iterable[RawTrajectory]", read: "_Read", done: _Done
) -> None:
    from contextgraph.memory import RUNS_AT_ONCE

    for raw in runs:
        read.append(raw)
        if len(read) >= RUNS_AT_ONCE:
            _learn(memory, read, done)
    _learn(memory, read, done)


def _learn(memory: "AgentMemory", read: "_Read", done: _Done) -> None:
    """Learn what was *read*, and say so of each in the order of reading."""
    from contextgraph.cli.interrupt import finishing
    from contextgraph.cli.records import failed_record, learned_record
    from contextgraph.model import RawTrajectory

    runs = [one for one in read if isinstance(one, RawTrajectory)]
    with finishing(), closing(memory.learn_many(runs)) as receipts:
        for one in read:
            if isinstance(one, RawTrajectory):
                receipt = next(receipts)
                done.add(receipt)
                done.tell(learned_record(one, receipt))
            else:
                done.tell(failed_record(one))
        read.clear()


def _remark(memory: "AgentMemory", done: _Done) -> None:
    """Say what came of consolidation, and what a user would not expect of the vectors."""
    from contextgraph.text import number_of

    for report in done.reports:
        if report.changed or not report.started:
            complain(_told(report))
    waiting = memory.spaces.waiting() if done.reason else 0
    if waiting:
        complain(
            f"{number_of(waiting, 'run')} still to be embedded, by the next consolidation or "
            f"`contextgraph reembed`: {done.reason}"
        )
    remark = memory.spaces.remark()
    if remark:
        complain(remark)


def _told(report: "ConsolidationReport") -> str:
    """What came of a consolidation, in one line."""
    from contextgraph.text import number_of

    if not report.started:
        return f"not consolidated: {report.reason}"
    steps = {step.name: step for step in report.steps}
    made, merged, cleaned = steps["abstract"], steps["merge"], steps["clean up"]
    changed = made.updated + steps["statistics"].updated
    gone = made.removed + merged.removed + cleaned.removed
    return (
        f"consolidated in {report.seconds:.1f} s: "
        f"{number_of(made.created, 'methodology')} created, {changed} updated, {gone} removed"
    )


def _conclude(done: _Done, intake: "Intake", *, as_json: bool) -> None:
    from contextgraph.model import LearnStatus

    counts = done.counts
    if as_json:
        summary: dict[str, Json] = {str(status): counts[status] for status in LearnStatus}
        summary |= {"failed": intake.failed, "seconds": round(intake.seconds, 3)}
        summary |= {"tokens": done.tokens, "cost": round(done.cost, 6)}
        emit({"summary": summary})
    elif counts or intake.failed:
        from contextgraph.cli.tables import show_learned

        show_learned(counts, intake.failed, intake.seconds)

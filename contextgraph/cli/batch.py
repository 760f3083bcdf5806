"""Learning many runs: in batches, what is reported of each run, and the summary."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

from contextgraph.cli.intake import Intake
from contextgraph.cli.output import Progress, delayed_interrupt, emit, print_table, warn
from contextgraph.errors import ReadError, StoreUnavailableError
from contextgraph.records import learned_record, not_learned_record, unread_record
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextgraph.memory import AgentMemory
    from contextgraph.model import ConsolidationReport, Json, LearnReceipt, RawTrajectory
    from contextgraph.readers.sources import Source, StrPath
    from contextgraph.spool import Spool

    Record: TypeAlias = RawTrajectory | ReadError
    Shard: TypeAlias = Sequence[Source]

# So many runs of files are spooled at most: the others can be read again.
_MAX_SPOOLED = 256
_ORIGINS = {"log": "by its log", "report": "by a report", "hand": "by hand"}


@dataclass(slots=True)
class Results:
    """What was learned so far, the usage of the embedder, and why vectors are missing."""

    progress: Progress
    as_json: bool
    address: str
    report_conflict: Callable[[str], None]
    counts: Counter[str] = field(default_factory=Counter)
    tokens: int = 0
    cost: float = 0.0
    not_embedded: str = ""
    reports: "list[ConsolidationReport]" = field(default_factory=list)

    def add(self, raw: "RawTrajectory", receipt: "LearnReceipt") -> None:
        self.counts[receipt.status] += 1
        if raw.outcome not in ("unknown", receipt.outcome):
            self.report_conflict(
                f"{raw.source}: {receipt.outcome} as in the memory"
                f" ({_ORIGINS[receipt.outcome_source]}), not {raw.outcome};"
                f" `contextgraph outcome {raw.instance_id} {raw.outcome} --run"
                f" {receipt.trajectory_id}` changes it"
            )
        self.tokens += receipt.usage.tokens
        self.cost += receipt.usage.cost
        self.not_embedded = receipt.not_embedded or self.not_embedded
        self.progress.count(self.counts.total())

    def emit(self, record_of: "Callable[..., dict[str, Json]]", *given: object) -> None:
        if self.as_json:
            emit(record_of(*given))


def spool_rest(
    spool: "Spool",
    paths: "Iterable[StrPath]",
    rest: "Iterable[Record]",
    results: Results,
    error: StoreUnavailableError,
) -> None:
    """Put the runs that are not learned yet into *spool*; of files, which remain, not too many."""
    from contextgraph.model import RawTrajectory
    from contextgraph.readers import is_stream

    remaining, limit = iter(rest), None if any(map(is_stream, paths)) else _MAX_SPOOLED
    for one in islice(remaining, limit):
        if isinstance(one, RawTrajectory):
            spool.put(one)
            reason = f"waits in the spool: {error}"
            results.emit(not_learned_record, one.source, one.instance_id, reason)
        else:
            results.emit(unread_record, one)
    warn(
        f"{number_of(len(spool), 'trajectory')} in {spool.folder}; "
        "the next `contextgraph learn` for this memory learns them first"
    )
    if next(remaining, None):
        warn("the others were not read: repeat the command to continue")


def learn_all(
    memory: "AgentMemory",
    spool: "Spool | None",
    records: "Iterator[Record]",
    waiting: "list[Record]",
    results: Results,
) -> None:
    """Learn the runs in *spool*, then *records*; *waiting* holds those read and not learned."""
    from contextgraph.learning import RUNS_AT_ONCE

    progress = results.progress
    with progress, memory.batch(progress.consolidating, results.reports.append):
        for one in spool or ():
            _learn(memory, [one.raw], results, one.source)
            one.path.unlink(missing_ok=True)  # another process may have learned it, too
        while some := list(islice(records, RUNS_AT_ONCE)):
            waiting += some
            _learn(memory, waiting, results)
        progress.embedding()


def _learn(
    memory: "AgentMemory", waiting: "list[Record]", results: Results, source: str = ""
) -> None:
    """Learn what is *waiting* and remove it; report each in the order of reading."""
    from contextgraph.model import RawTrajectory

    runs = [one for one in waiting if isinstance(one, RawTrajectory)]
    with delayed_interrupt(), closing(memory.learn_many(runs, source=source)) as receipts:
        for one in waiting:
            if isinstance(one, RawTrajectory):
                receipt = next(receipts)
                results.add(one, receipt)
                results.emit(learned_record, one, receipt)
            else:
                results.emit(unread_record, one)
        waiting.clear()


def warn_about(memory: "AgentMemory", results: Results) -> None:
    """Report consolidation, missing vectors and an embedder that is not that of the memory."""
    for report in results.reports:
        if report.changed or not report.started:
            warn(_consolidation_line(report))
    missing = memory.spaces.waiting() if results.not_embedded else 0
    if missing:
        warn(
            f"{number_of(missing, 'run')} still to be embedded, by the next consolidation or "
            f"`contextgraph reembed`: {results.not_embedded}"
        )
    if mismatch := memory.spaces.mismatch():
        warn(mismatch)


def _consolidation_line(report: "ConsolidationReport") -> str:
    if not report.started:
        return f"not consolidated: {report.reason}"
    steps = {step.name: step for step in report.steps}
    abstract, merge, cleanup = steps["abstract"], steps["merge"], steps["clean up"]
    updated = abstract.updated + steps["statistics"].updated
    removed = abstract.removed + merge.removed + cleanup.removed
    return (
        f"consolidated in {report.seconds:.1f} s: "
        f"{number_of(abstract.created, 'methodology')} created, {updated} updated, "
        f"{removed} removed"
    )


def summarize(results: Results, intake: Intake) -> None:
    from contextgraph.model import LearnStatus

    counts, seconds = results.counts, intake.seconds
    failed, skipped = intake.failed, intake.skipped
    if results.as_json:
        summary: dict[str, Json] = {"store": results.address}
        summary["records"] = counts.total() + failed + skipped
        summary |= {str(status): counts[status] for status in LearnStatus}
        summary |= {"failed": failed, "skipped": skipped, "conflicts": intake.conflicts}
        summary |= {"seconds": round(seconds, 3), "tokens": results.tokens}
        emit({"summary": {**summary, "cost": round(results.cost, 6)}})
    elif counts or failed or skipped:
        total = counts.total()
        rate = f"{total / max(seconds, 0.001):.0f}/s"
        row = [f"{total + failed + skipped:,}", *(f"{counts[status]:,}" for status in LearnStatus)]
        columns = ("records", *map(str, LearnStatus), "failed", "skipped")
        print(f"Memory: {results.address}")
        title = f"{number_of(total, 'trajectory')} in {seconds:.1f} s, {rate}"
        print_table(title, columns, [[*row, f"{failed:,}", f"{skipped:,}"]], numeric=columns)

"""``contextgraph learn``: finished runs from files into the memory."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from contextgraph.cli.discovery import discovered_paths
from contextgraph.cli.intake import Intake, Selection
from contextgraph.cli.integrations import compile_for_hooks
from contextgraph.cli.options import (
    AsJson,
    Embedder,
    MaxCost,
    Store,
    Tenant,
    open_memory,
    option,
    store_address,
)
from contextgraph.cli.output import Progress, delayed_interrupt, emit, print_table, warn
from contextgraph.cli.records import receipt_record
from contextgraph.errors import StoreUnavailableError
from contextgraph.text import number_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from contextgraph.cli.spool import Spool
    from contextgraph.errors import ReadError
    from contextgraph.memory import AgentMemory
    from contextgraph.model import ConsolidationReport, Json, LearnReceipt, RawTrajectory

    _Read: TypeAlias = list[RawTrajectory | ReadError]

# So many runs of files are spooled at most: the others can be read again.
_MAX_SPOOLED = 256


def learn(  # noqa: PLR0913  (one parameter per flag)
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PATH]...",
            help="Trajectory files, folders or globs; - for standard input.",
            show_default=False,
        ),
    ] = None,
    *,
    discover: Annotated[
        bool,
        typer.Option(
            "--discover", help="Learn what coding agents have recorded on this machine; asks first."
        ),
    ] = False,
    queued: Annotated[
        bool,
        typer.Option("--queued", help="Learn the sessions whose end the hook of an agent noted."),
    ] = False,
    exclude: Annotated[
        list[str] | None, option("--exclude", "PATTERN", "Not these files (repeatable).")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")] = False,
    outcomes: Annotated[
        Path | None,
        typer.Option(
            metavar="PATH",
            exists=True,
            help="Which instances were solved: reports, predictions or logs of SWE-bench, or CSV;"
            " a file or a folder.",
            show_default=False,
        ),
    ] = None,
    filters: Annotated[
        list[str] | None,
        option("--filter", "GLOB", "Only runs of this repository or instance (repeatable)."),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="At most N runs.", show_default=False),
    ] = None,
    embedder: Embedder = None,
    max_cost: MaxCost = None,
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Learn finished runs.

    Runs that are known stay as they are, so an interrupted command continues when it is repeated.
    Runs are counted once they are stored durably. While a server cannot be reached, runs are put
    into a spool folder; the next such command learns them first.

    \b
    Example:
      contextgraph learn runs/ 'more/*.jsonl.gz'
      contextgraph learn runs/ --outcomes report.json
      contextgraph learn --discover --exclude '*/private/*'
      contextgraph learn --queued
      cat run.traj | contextgraph learn -
    """
    from contextgraph.config import load_settings
    from contextgraph.integrations.sessions import HookFiles
    from contextgraph.readers import size_of

    if sum((bool(paths), discover, queued)) != 1:
        raise typer.BadParameter("give PATH, --discover or --queued")
    if (exclude or yes) and not discover:
        raise typer.BadParameter("--exclude and --yes belong to --discover")
    address = store_address(store, tenant)
    files = HookFiles(load_settings(store=store or None, tenant=tenant))
    taken: Sequence[Path] = ()
    if queued:
        found, taken = files.take_queue()
    else:
        found = paths or discovered_paths(exclude or (), yes=yes, address=address)
    read: _Read = []
    progress = Progress(lambda: size_of(found))
    intake = Intake(
        found,
        outcomes,
        read.append,
        read.append,
        progress.advance,
        selection=Selection(tuple(filters or ()), limit),
        discovered=discover,
    )
    results = _Results(progress, as_json, address, intake.report_conflict)
    spool, runs = _spool(store, tenant), iter(intake)
    try:
        with open_memory(store, tenant, embedder=embedder, max_cost=max_cost) as memory:
            files.note_shown(memory.store)
            _learn_all(memory, spool, runs, read, results)
            _warn_about(memory, results)
            _remove(taken)
            compile_for_hooks(memory, store, tenant)
    except StoreUnavailableError as error:
        if spool is not None:
            _spool_rest(spool, chain(read, runs), results, error, _max_spooled(found))
        raise
    except KeyboardInterrupt:
        stored = number_of(results.counts.total(), "trajectory")
        warn(f"interrupted; {stored} stored, repeat the command to continue")
        raise
    finally:
        _summarize(results, intake)
    raise typer.Exit(intake.exit_code)


@dataclass(slots=True)
class _Results:
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
                f"{raw.source}: {receipt.outcome} as in the memory, not {raw.outcome};"
                f" `contextgraph outcome {raw.instance_id} {raw.outcome} --run"
                f" {receipt.trajectory_id}` changes it"
            )
        self.tokens += receipt.usage.tokens
        self.cost += receipt.usage.cost
        self.not_embedded = receipt.not_embedded or self.not_embedded
        self.progress.count(self.counts.total())

    def emit(self, record: "dict[str, Json]") -> None:
        if self.as_json:
            emit(record)


def _remove(paths: Sequence[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)


def _spool(store: str | None, tenant: str | None) -> "Spool | None":
    """Where runs wait for a server; None for a file: where it cannot be written, nothing can."""
    from contextgraph.cli.spool import Spool
    from contextgraph.config import load_settings

    settings = load_settings(store=store or None, tenant=tenant)
    return Spool(settings) if settings.is_remote else None


def _max_spooled(paths: "Iterable[str]") -> int | None:
    from contextgraph.readers import is_stream

    return None if any(map(is_stream, paths)) else _MAX_SPOOLED


def _spool_rest(
    spool: "Spool",
    rest: "Iterable[RawTrajectory | ReadError]",
    results: _Results,
    error: StoreUnavailableError,
    limit: int | None,
) -> None:
    """Put the runs that are not learned yet into *spool*, at most *limit* (None: all)."""
    from contextgraph.model import RawTrajectory

    remaining = iter(rest)
    for one in islice(remaining, limit):
        if isinstance(one, RawTrajectory):
            spool.put(one)
            reason = f"waits in the spool: {error}"
            results.emit(_not_learned_record(one.source, one.instance_id, reason))
        else:
            results.emit(_unread_record(one))
    warn(
        f"{number_of(len(spool), 'trajectory')} in {spool.folder}; "
        "the next `contextgraph learn` for this memory learns them first"
    )
    if next(remaining, None):
        warn("the others were not read: repeat the command to continue")


def _learn_all(
    memory: "AgentMemory",
    spool: "Spool | None",
    runs: "Iterable[RawTrajectory]",
    read: "_Read",
    results: _Results,
) -> None:
    """Learn the runs in *spool*, then *runs*, sixteen at once; *read* holds those not learned."""
    from contextgraph.memory import RUNS_AT_ONCE

    progress = results.progress
    with progress, memory.batch(progress.consolidating, results.reports.append):
        for path, raw in spool or ():
            _learn(memory, [raw], results)
            path.unlink(missing_ok=True)  # another process may have learned it, too
        for raw in runs:
            read.append(raw)
            if len(read) >= RUNS_AT_ONCE:
                _learn(memory, read, results)
        _learn(memory, read, results)


def _learn(memory: "AgentMemory", read: "_Read", results: _Results) -> None:
    """Learn the runs in *read*, and report each record in the order of reading."""
    from contextgraph.model import RawTrajectory

    runs = [one for one in read if isinstance(one, RawTrajectory)]
    with delayed_interrupt(), closing(memory.learn_many(runs)) as receipts:
        for one in read:
            if isinstance(one, RawTrajectory):
                receipt = next(receipts)
                results.add(one, receipt)
                run = {"source": one.source, "instance_id": one.instance_id}
                results.emit({**run, **receipt_record(receipt), "records": 1})
            else:
                results.emit(_unread_record(one))
        read.clear()


def _unread_record(error: "ReadError") -> "dict[str, Json]":
    from contextgraph.readers import SkippedError

    status = "skipped" if isinstance(error, SkippedError) else "failed"
    record = _not_learned_record(error.source, None, str(error), status)
    return {**record, "records": error.records}


def _not_learned_record(
    source: str | None, instance_id: str | None, error: str, status: str = "failed"
) -> "dict[str, Json]":
    """A record with the keys of a learned run, so that programs read every line the same way."""
    return {
        "source": source,
        "instance_id": instance_id,
        "trajectory_id": None,
        "status": status,
        "fragments": 0,
        "error_patterns": 0,
        "to_embed": 0,
        "not_embedded": None,
        "tokens": 0,
        "cost": 0.0,
        "error": error,
        "records": 1,
    }


def _warn_about(memory: "AgentMemory", results: _Results) -> None:
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


def _summarize(results: _Results, intake: Intake) -> None:
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

"""Learning many runs: in batches, what is reported of each run, and the summary.

With ``learn --ray`` the workers of a Ray cluster read, trace and embed; this process only writes.
It takes what they send in the order of the shards, so that memory is bounded and an interrupted
command can be repeated.
"""

import logging
import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass, field
from functools import lru_cache, partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeAlias

from contextgraph.cli.intake import Intake
from contextgraph.cli.output import Progress, delayed_interrupt, emit, print_table, warn
from contextgraph.errors import MissingExtraError, ReadError, StoreUnavailableError
from contextgraph.records import learned_record, not_learned_record, unread_record
from contextgraph.text import number_of

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from contextgraph.learning import Prepared
    from contextgraph.memory import AgentMemory
    from contextgraph.model import ConsolidationReport, Json, LearnReceipt, RawTrajectory, Space
    from contextgraph.readers import SkippedError
    from contextgraph.readers.outcomes import OnConflict
    from contextgraph.readers.reading import OnError, OnSkip
    from contextgraph.readers.sources import Source, StrPath
    from contextgraph.readers.streams import OnBytes
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
    workers: int,
) -> None:
    """Learn the runs in *spool*, then *records*; *waiting* holds those read and not learned.

    With several *workers*, twice as many runs wait as they are given at once.
    """
    from contextgraph.learning import RUNS_AT_ONCE

    progress, most_waiting = results.progress, 2 * workers * RUNS_AT_ONCE if workers > 1 else 0
    with (
        progress,
        memory.batch(progress.consolidating, results.reports.append),
        _tracing(memory, workers) as begin,
    ):
        for one in spool or ():
            _learn(memory, [one.raw], results, one.source)
            one.path.unlink(missing_ok=True)  # another process may have learned it, too
        while some := list(islice(records, RUNS_AT_ONCE)):
            waiting += some
            begin(_runs_in(some))
            if len(waiting) > most_waiting:
                _learn(memory, waiting, results)
        while waiting:
            _learn(memory, waiting, results)
        progress.embedding()


def _tracing(
    memory: "AgentMemory", workers: int
) -> "AbstractContextManager[Callable[[Sequence[RawTrajectory]], None]]":
    return memory.writer.in_processes(workers) if workers > 1 else nullcontext(lambda _: None)


def _runs_in(records: "Sequence[Record]") -> "list[RawTrajectory]":
    from contextgraph.model import RawTrajectory

    return [one for one in records if isinstance(one, RawTrajectory)]


def _learn(
    memory: "AgentMemory", waiting: "list[Record]", results: Results, source: str = ""
) -> None:
    """Learn the first sixteen of *waiting* and remove them; report each in the order of reading."""
    from contextgraph.learning import RUNS_AT_ONCE
    from contextgraph.model import RawTrajectory

    some = waiting[:RUNS_AT_ONCE]
    with delayed_interrupt(), closing(memory.learn_many(_runs_in(some), source=source)) as receipts:
        for one in some:
            if isinstance(one, RawTrajectory):
                receipt = next(receipts)
                results.add(one, receipt)
                results.emit(learned_record, one, receipt)
            else:
                results.emit(unread_record, one)
        del waiting[:RUNS_AT_ONCE]


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


# Small files are read together: a task of the cluster costs some milliseconds. Larger ones are
# read in sections.
_SHARD_BYTES = 32 << 20
_SHARD_FILES = 64
# What the workers send is passed on in blocks of about this size.
_BLOCK_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class _Job:
    """What each worker needs to know: how to read, and the space in which the memory embeds.

    *known* refers to the ids of the runs in the memory, *model* to that of the space.
    """

    outcomes: "StrPath | None"
    max_run_size: int
    follow_links: bool
    embedder: str
    space: "Space | None"
    model: Any
    known: Any


def read_on_cluster(  # noqa: PLR0913  (one parameter per flag)
    address: str,
    embedder: str,
    memory: "AgentMemory",
    *paths: "StrPath",
    on_error: "OnError",
    on_skip: "OnSkip",
    on_bytes: "OnBytes",
    on_conflict: "OnConflict",
    outcomes: "StrPath | None",
    max_run_size: int,
    follow_links: bool,
) -> "Iterator[RawTrajectory]":
    """The runs in *paths*, as of `readers.read`, read by the Ray cluster at *address*.

    What they teach is handed to the writer of *memory*, which uses it when they are written. Paths
    and URLs must lead to the same files on all machines. Raises `MissingExtraError` without ray.
    """
    ray = _ray()
    shards = list(_shards(paths, on_error, follow_links=follow_links))
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it would report to its makers
    options = {"include_dashboard": False} if address == "local" else {}
    ray.init(address=address, logging_level=logging.ERROR, log_to_driver=False, **options)
    try:
        space = memory.store.vectors.active_space()
        job = _Job(
            outcomes=outcomes,
            max_run_size=max_run_size,
            follow_links=follow_links,
            embedder=embedder,
            space=space,
            model=ray.put(memory.store.vectors.space_model(space.name) if space else None),
            known=ray.put(frozenset(memory.store.runs.ids())),
        )
        handlers: Mapping[str, Callable[[Any], None]] = {
            "error": on_error,
            "skip": on_skip,
            "bytes": on_bytes,
            "conflict": on_conflict,
        }
        for kind, found in _found(ray, job, shards):
            if kind == "run":
                yield memory.writer.take(found)
            else:
                handlers[kind](found)
    finally:
        ray.shutdown()


def _ray() -> Any:
    try:
        import ray
        import ray.data
    except ImportError as error:
        install = 'pip install "contextgraph-memory[ray]"'
        raise MissingExtraError(f"--ray needs ray on each machine: {install}") from error
    return ray


def _shards(
    paths: "Iterable[StrPath]", on_error: "OnError", *, follow_links: bool
) -> "Iterator[Shard]":
    """The files behind *paths*, in order, in groups and sections that are worth a task each."""
    from contextgraph.readers.sources import sources

    shard: list[Source] = []
    size = 0
    for path in paths:
        try:
            found = sources(path, follow_links=follow_links)
        except ReadError as error:
            on_error(error)
            continue
        for source in (part for one in found for part in one.split(_SHARD_BYTES)):
            if shard and (size + source.size > _SHARD_BYTES or len(shard) >= _SHARD_FILES):
                yield shard
                shard, size = [], 0
            shard.append(source)
            size += source.size
    if shard:
        yield shard


def _found(ray: Any, job: _Job, shards: "Sequence[Shard]") -> Iterator[tuple[str, Any]]:
    """What the workers find in *shards*, in order: its kind, and a run, an error or the like."""
    if not shards:
        return
    context = ray.data.DataContext.get_current()
    context.enable_progress_bars = False
    context.execution_options.preserve_order = True
    context.target_max_block_size = _BLOCK_BYTES
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    rows = [{"shard": pickle.dumps(shard)} for shard in shards]
    data = ray.data.from_items(rows, override_num_blocks=len(rows))
    for row in data.map_batches(partial(_prepared, job), batch_size=1).iter_rows():
        yield pickle.loads(row["found"])


def _prepared(job: _Job, batch: "dict[str, Any]") -> "Iterator[dict[str, Any]]":
    """In a worker: what is found in the shards of *batch*, pickled."""
    for shard in batch["shard"]:
        for found in _in_shard(job, pickle.loads(shard)):
            yield {"found": [pickle.dumps(found)]}


def _in_shard(
    job: _Job, shard: "Shard"
) -> "Iterator[tuple[str, Prepared | ReadError | SkippedError | str | int]]":
    from contextgraph.readers import read

    memory, known = _scratch_memory(job), _get(job.known)
    aside: list[tuple[str, ReadError | SkippedError | str | int]] = []
    runs = read(
        *shard,
        on_error=lambda error: aside.append(("error", error)),
        on_skip=lambda error: aside.append(("skip", error)),
        on_bytes=lambda count: aside.append(("bytes", count)),
        on_conflict=lambda message: aside.append(("conflict", message)),
        outcomes=job.outcomes,
        max_run_size=job.max_run_size,
        follow_links=job.follow_links,
    )
    for raw in runs:
        yield from aside
        aside.clear()
        yield "run", memory.writer.prepared(raw, known)
    yield from aside


@lru_cache(1)
def _scratch_memory(job: _Job) -> "AgentMemory":
    """An empty memory of this worker, with the embedding space of the one that is written."""
    from contextgraph.memory import AgentMemory

    memory = AgentMemory.open(":memory:", embedder=job.embedder or None)
    if job.space is not None:
        memory.store.vectors.prepare(job.space, _get(job.model))
        memory.store.vectors.switch(job.space.name)
    return memory


def _get(reference: Any) -> Any:
    import ray

    return ray.get(reference)

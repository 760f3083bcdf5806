"""Reading many runs on the workers of a Ray cluster, for a memory that this process writes.

The workers read, trace and embed. What they send is taken in the order of the shards, so that
memory is bounded and an interrupted command can be repeated.
"""

import logging
import os
import pickle
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from contextgraph.errors import MissingExtraError, ReadError

if TYPE_CHECKING:
    from contextgraph.learning import Prepared
    from contextgraph.memory import AgentMemory
    from contextgraph.model import RawTrajectory, Space
    from contextgraph.readers import SkippedError
    from contextgraph.readers.outcomes import OnConflict
    from contextgraph.readers.reading import OnError, OnSkip
    from contextgraph.readers.sources import Source, StrPath
    from contextgraph.readers.streams import OnBytes

    Shard: TypeAlias = Sequence[Source]

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


def read_on_cluster(  # noqa: PLR0913  (as `readers.read`)
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

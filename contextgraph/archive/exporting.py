"""From a store to a file, in constant memory."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from contextgraph.archive.lines import (
    FORMAT,
    VERSION,
    ConsolidatedLine,
    EndLine,
    Header,
    Line,
    MethodologyLine,
    SimilarLine,
    SpaceLine,
    write_line,
    writing,
)
from contextgraph.model import ArchivedRun, Exposure
from contextgraph.ports import GraphStore

_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Exported:
    """How much was written."""

    runs: int
    methodologies: int
    exposures: int


def export_memory(
    store: GraphStore,
    path: Path,
    tenant: str,
    *,
    vectors: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Exported:
    """Write all that *store* holds to *path*, which is there whole in the end or as it was before.

    *progress* is told how many of how many runs are written. Runs that are forgotten meanwhile may
    be missing, runs that are learned meanwhile are not in it. Raises `StoreError` where the file
    cannot be written.
    """
    ids, advice = store.trajectory_ids(), store.methodology_ids()
    # What is learned from here on is not of this file.
    waiting = store.unconsolidated()
    consolidated = not (waiting.trajectories or waiting.error_ids or waiting.repos)
    counts: Counter[type] = Counter()
    with writing(path) as file:
        write_line(file, Header(FORMAT, VERSION, tenant, vectors, len(ids), len(advice)))
        for line in _lines(store, ids, advice, vectors=vectors, consolidated=consolidated):
            write_line(file, line)
            counts[type(line)] += 1
            if isinstance(line, ArchivedRun):
                progress(counts[ArchivedRun], len(ids))
        write_line(file, EndLine(1 + counts.total()))
    return Exported(counts[ArchivedRun], counts[MethodologyLine], counts[Exposure])


def _lines(
    store: GraphStore,
    ids: Sequence[str],
    advice: Sequence[str],
    *,
    vectors: bool,
    consolidated: bool,
) -> Iterator[Line]:
    space = store.active_space() if vectors else None
    if space:
        yield SpaceLine(space, store.space_model(space.name))
    for trajectory_id in ids:
        if run := store.archived_run(trajectory_id):
            yield run if space else _without_vectors(run)
    for start in range(0, len(advice), _AT_ONCE):
        yield from _methodologies(
            store, advice[start : start + _AT_ONCE], space.name if space else None
        )
    for trajectory_id in ids:
        if similar := store.similar_to(trajectory_id):
            yield SimilarLine(tuple(similar))
    yield from _exposures(store)
    if consolidated:
        yield ConsolidatedLine()


def _without_vectors(run: ArchivedRun) -> ArchivedRun:
    return replace(run, bundle=replace(run.bundle, vectors=None))


def _methodologies(
    store: GraphStore, ids: Sequence[str], space: str | None
) -> Iterator[MethodologyLine]:
    embedded = store.methodology_vectors(space, ids) if space else {}
    for one in store.methodologies_of(ids):
        resolved = tuple(store.resolved_by(one.id))
        yield MethodologyLine(one, resolved, one.id in embedded, embedded.get(one.id))


def _exposures(store: GraphStore) -> Iterator[Exposure]:
    after = ""
    while found := store.exposures(after, _AT_ONCE):
        yield from found
        after = found[-1].context_id

"""From a file into a store, in constant memory; the same command goes on where it was stopped."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby, islice
from pathlib import Path

from contextgraph.archive.lines import (
    ConsolidatedLine,
    Line,
    MethodologyLine,
    SimilarLine,
    SpaceLine,
    read_header,
    read_lines,
)
from contextgraph.model import ArchivedRun, Exposure, LearnStatus
from contextgraph.ports import GraphStore

_AT_ONCE = 32


@dataclass(slots=True)
class Imported:
    """How much was read; *vectors_of* is a space whose vectors the memory could not take."""

    created: int = 0
    updated: int = 0
    unchanged: int = 0
    methodologies: int = 0
    exposures: int = 0
    vectors_of: str = ""


def import_memory(
    store: GraphStore,
    path: Path,
    *,
    vectors: bool = True,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Imported:
    """Read *path* into *store*, beside what it holds: what is known already stays as it is.

    The whole file is read once before anything is written: where a line is damaged, `ReadError`
    names it, and nothing was imported. *progress* is told how many of how many runs are in. A
    memory with a space of its own keeps that, and its runs wait to be embedded.
    """
    header = read_header(path)
    for _ in read_lines(path, _say_nothing):
        pass
    return _Importer(store, vectors, header.runs, progress).run(read_lines(path, _say_nothing))


def count_runs(path: Path) -> int:
    """How many runs there were when *path* was begun to be written; raises `ReadError`."""
    return read_header(path).runs


class _Importer:
    """Writes lines as they come, those of one kind in batches."""

    def __init__(
        self,
        store: GraphStore,
        vectors: bool,
        total: int,
        progress: Callable[[int, int], None],
    ) -> None:
        self._store, self._progress, self._total = store, progress, total
        self._vectors = vectors
        self._space = ""
        self._done = Imported()
        waiting = store.unconsolidated()
        self._nothing_waits = not (waiting.trajectories or waiting.error_ids or waiting.repos)

    def run(self, lines: Iterable[Line]) -> Imported:
        for _, of_kind in groupby(lines, key=type):
            for batch in _batches(of_kind):
                self._write(batch)
        return self._done

    def _write(self, batch: list[Line]) -> None:
        self._put_spaces([line for line in batch if isinstance(line, SpaceLine)])
        self._put_runs([line for line in batch if isinstance(line, ArchivedRun)])
        self._put_methodologies([line for line in batch if isinstance(line, MethodologyLine)])
        similar = [edge for line in batch if isinstance(line, SimilarLine) for edge in line.similar]
        if similar:
            self._store.put_methodologies((), (), (), similar)
        exposures = [line for line in batch if isinstance(line, Exposure)]
        if exposures:
            self._store.restore_exposures(exposures)
            self._done.exposures += len(exposures)
        if any(isinstance(line, ConsolidatedLine) for line in batch) and self._nothing_waits:
            self._store.mark_consolidated(self._store.unconsolidated().revision)

    def _put_spaces(self, lines: list[SpaceLine]) -> None:
        for line in lines if self._vectors else ():
            active = self._store.active_space()
            if active and active.name != line.space.name:
                self._done.vectors_of = line.space.name
                continue
            self._space = line.space.name
            if active is None:
                self._store.prepare_space(line.space, line.model)
                self._store.switch_space(line.space.name)

    def _put_runs(self, runs: list[ArchivedRun]) -> None:
        if not runs:
            return
        kept = runs if self._space else [_without_vectors(run) for run in runs]
        for status in self._store.restore_runs(kept):
            self._done.created += status is LearnStatus.CREATED
            self._done.updated += status is LearnStatus.UPDATED
            self._done.unchanged += status is LearnStatus.UNCHANGED
        self._progress(self._done.created + self._done.updated + self._done.unchanged, self._total)

    def _put_methodologies(self, lines: list[MethodologyLine]) -> None:
        if not lines:
            return
        edges = [edge for line in lines for edge in line.resolved]
        self._store.put_methodologies([line.methodology for line in lines], (), edges, ())
        embedded = {line.methodology.id: line.vector for line in lines if line.embedded}
        if self._space and embedded:
            self._store.add_methodology_vectors(self._space, embedded)
        self._done.methodologies += len(lines)


def _batches(lines: Iterator[Line]) -> Iterator[list[Line]]:
    while batch := list(islice(lines, _AT_ONCE)):
        yield batch


def _without_vectors(run: ArchivedRun) -> ArchivedRun:
    return replace(run, bundle=replace(run.bundle, vectors=None))


def _say_nothing(size: int) -> None:
    pass

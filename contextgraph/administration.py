"""Methods for operators: consolidate, remove, copy, migrate and check a memory."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from contextgraph.advising import AdvisingMemory
from contextgraph.consolidation import MemoryConsolidator
from contextgraph.embedding import EmbeddingSpaceManager, Reembedding, exclusive
from contextgraph.errors import ContextGraphError, DamagedRunError, MemoryNotFoundError
from contextgraph.learning import unmasked_values
from contextgraph.model import (
    ConsolidationReport,
    HealthCheck,
    LearnReceipt,
    MethodologyStatus,
    RawTrajectory,
    Verdict,
)
from contextgraph.telemetry import operation
from contextgraph.text import number_of
from contextgraph.trace import is_advice_id
from contextgraph.wiring import Parts

if TYPE_CHECKING:
    from contextgraph.ports import Graph
    from contextgraph.store.archive import Exported, Imported
    from contextgraph.store.graph import GraphFormat


class AdministeredMemory(AdvisingMemory):
    """The methods of `AgentMemory` that change or check a memory as a whole."""

    consolidator: MemoryConsolidator
    spaces: EmbeddingSpaceManager
    _parts: Parts

    def consolidate(
        self, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> ConsolidationReport:
        """Bring methodologies up to date with what was learned: see docs/consolidation.md.

        `learn` does so by itself after every 16 runs. *progress* is called with how many of how
        many kinds of error are done. Where another process holds the lease, the report says so.
        """
        self.note_exposures()
        return self.consolidator.consolidate(progress)

    def rebuild(
        self, on_damaged: Callable[[str, DamagedRunError], None] | None = None
    ) -> Iterator[LearnReceipt]:
        """Read all stored runs again as this version reads logs, yielding a receipt for each.

        Outcomes, learning times and credit stay. Runs are replaced sixteen to a transaction, so it
        can be interrupted and begun again. At the end the memory is consolidated. *on_damaged* gets
        the id of each run that cannot be read and stays as it is; without it the first is raised.
        """
        yield from self.writer.rewrite_all(on_damaged)
        self._trigger.after_rebuilding()
        self.store.admin.erase_deleted()

    def reembed(
        self,
        embedder: str = "",
        progress: Callable[[int], None] = lambda runs: None,
        waiting: Callable[[datetime], None] = lambda until: None,
    ) -> Reembedding:
        """Embed all runs again with *embedder* ("": the one configured), then query with it.

        Queries are answered in the former space until all is done, then in the new one. After an
        interruption the same call continues. *progress* is called with the number of runs done
        since its last call, *waiting* with the time until which another process holds the lease.
        Raises `EmbeddingError`.
        """
        return self.spaces.reembed(embedder, progress, waiting)

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        """Remove runs and what only they taught; returns how many of them were known."""
        known = self.store.runs.learned([*trajectory_ids])
        ids = [run.trajectory_id for run in known.values()]
        with operation("delete_memory", self.store_id, ids[0] if len(ids) == 1 else ""):
            return self.store.runs.forget(ids)

    def retire(self, methodology_ids: Iterable[str]) -> int:
        """Show and derive methodologies no more; returns how many of them were not retired.

        Each stays as a tombstone, so that consolidation does not derive it again. Waits where
        another process consolidates.
        """
        with exclusive(self.store, self._now, lambda until: None):
            retired = [
                replace(methodology, status=MethodologyStatus.RETIRED)
                for methodology in self.store.methodologies.get([*methodology_ids])
                if methodology.status is not MethodologyStatus.RETIRED
            ]
            self.store.methodologies.put(retired)
        return len(retired)

    def quarantine(self, advice: str) -> bool:
        """Never show this advice (``adv_…``) or methodology again; False where it is unknown."""
        return self._decide(advice, is_quarantined=True)

    def release(self, advice: str) -> bool:
        """Show it again, whatever was reported so far; False where it is unknown."""
        return self._decide(advice, is_quarantined=False)

    def _decide(self, advice: str, *, is_quarantined: bool) -> bool:
        if not is_advice_id(advice) and not self.store.methodologies.get([advice]):
            return False
        self.note_exposures()
        self.store.exposures.decide([Verdict(advice, is_quarantined, self._now())])
        return True

    def graph(self) -> "Graph":
        """The nodes and relations of this memory as a networkx `MultiDiGraph`.

        A read-only view that each call brings up to date; see `contextgraph.store.graph` for its
        attributes. Copy it to change it, or where another thread may call this meanwhile.
        """
        return self.store.admin.graph()

    def export_graph(self, path: Path, graph_format: "GraphFormat") -> None:
        """Write `graph` and all notes to the file *path*: ``graphml``, or (node-link) ``json``."""
        from contextgraph.store.graph import export_graph, with_notes

        export_graph(with_notes(self.graph(), self.store.notes.all()), path, graph_format)

    def export(
        self,
        path: Path,
        *,
        vectors: bool = True,
        progress: Callable[[int, int], None] = lambda done, total: None,
        on_damaged: Callable[[str, DamagedRunError], None] | None = None,
    ) -> "Exported":
        """Write all that this memory holds to the file *path*, for any other store to read.

        *on_damaged* is as of `rebuild`.
        """
        from contextgraph.store.archive import export_memory

        self.note_exposures()
        return export_memory(
            self.store,
            path,
            self.store.tenant,
            vectors=vectors,
            progress=progress,
            on_damaged=on_damaged,
        )

    def back_up(self, path: Path) -> None:
        """Copy the memory file to the new file *path*, which is a memory; others may write.

        Raises `StoreError` where *path* exists or cannot be written, and for a server.
        """
        self.note_exposures()
        self.store.admin.back_up(path)

    def import_archive(
        self,
        path: Path,
        *,
        vectors: bool = True,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> "Imported":
        """Read a file that `export` wrote, beside what this memory holds: see docs/store.md."""
        from contextgraph.store.archive import import_memory

        return import_memory(self.store, path, vectors=vectors, progress=progress)

    def health(self) -> Sequence[HealthCheck]:
        """Whether the store is well and models answer, with a remedy for what is not."""
        checks = [*self.store.admin.health()]
        if all(check.ok for check in checks):
            checks += [*self._notes_health(), *self.spaces.health()]
        chat = self._parts.chat
        return [*checks, chat.health()] if chat else checks

    def _notes_health(self) -> Iterator[HealthCheck]:
        """Whether notes can be read, which may be in a database of their own."""
        try:
            count = sum(self.store.notes.counts().values())
        except MemoryNotFoundError:  # nothing was written yet
            return
        except ContextGraphError as error:
            yield HealthCheck("notes", False, str(error), "see docs/notes.md")
        else:
            yield HealthCheck("notes", True, number_of(count, "note"))

    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        """Bring the schema of an older memory up to date; the names of the steps that it took.

        With *dry_run* none is taken. A server is brought up to date by nothing else: opening a
        memory whose schema is older raises `SchemaError`.
        """
        return self.store.admin.migrate(dry_run=dry_run)

    def mask_stored(
        self, on_damaged: Callable[[str, DamagedRunError], None] | None = None
    ) -> tuple[int, int]:
        """Mask what older versions stored in the clear: in how many runs, and how many values.

        These runs are read again; otherwise as `rebuild`. A second call changes nothing.
        """
        values: list[int] = []

        def is_unmasked(raw: RawTrajectory) -> bool:
            values.append(unmasked_values(raw))
            return values[-1] > 0

        runs = sum(1 for _ in self.writer.rewrite_all(on_damaged, is_unmasked))
        if runs:
            self._trigger.after_rebuilding()
        # Also where an interrupted call masked them all.
        self.store.admin.erase_deleted()
        return runs, sum(values)

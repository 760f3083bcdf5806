"""The façade: what an agent loop, a batch job or an entrance calls."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeAlias

from contextgraph.config import OPENAI_EMBEDDER, load_settings
from contextgraph.consolidation import Routine
from contextgraph.embedding import Reembedding, ReembeddingPlan
from contextgraph.errors import DegradedError, StoreError, StoreUnavailableError
from contextgraph.model import (
    ConsolidationReport,
    Explanation,
    HealthCheck,
    LearnReceipt,
    LoopInfo,
    MemoryContext,
    RawTrajectory,
    State,
    WordingPlan,
)
from contextgraph.ports import GraphStore
from contextgraph.retrieval import MAX_TOKENS, render
from contextgraph.stats import MemoryStats
from contextgraph.wiring import Parts, build
from contextgraph.writing import Inspection, error_id, inspect_run

# Judging is rare, and a quarter of the time that it takes to import a memory.
if TYPE_CHECKING:
    from contextgraph.archive import Exported, Imported
    from contextgraph.replay import Evaluation, Moment, Walk

# A transaction costs as much as several runs; what is lost with it has to be learned again.
RUNS_AT_ONCE = 16

# Where nothing is ever written, so many contexts wait to be noted; the oldest are let go.
MOST_SHOWN = 4096

_Shown: TypeAlias = tuple[str, Sequence[str], datetime, str | None]


class AgentMemory:
    """The long-term memory of coding agents.

    `open` takes any address; the constructor is the founding form, for a Neo4j server. Safe to
    use from several threads, and from several processes at once.
    """

    def __init__(
        self,
        neo4j_uri: str,
        neo4j_auth: tuple[str, str] | None = None,
        embedding_api_key: str | None = None,
        *,
        tenant: str = "default",
    ) -> None:
        settings = replace(load_settings(store=neo4j_uri, tenant=tenant), auth=neo4j_auth)
        if embedding_api_key:
            settings = replace(
                settings, embedding_api_key=embedding_api_key, embedder=OPENAI_EMBEDDER
            )
        self._take(build(settings))

    @classmethod
    def open(  # noqa: PLR0913  (one parameter per setting)
        cls,
        address: str = "",
        *,
        auth: tuple[str, str] | None = None,
        tenant: str | None = None,
        read_only: bool = False,
        embedder: str | None = None,
        summarizer: str | None = None,
        summarize: str | None = None,
        configuration: str | None = None,
        max_cost: float | None = None,
    ) -> Self:
        """The memory at *address*: a file, ``:memory:``, or a ``neo4j://``/``bolt://`` address.

        An empty address means what the environment and ``contextgraph.toml`` say. A file is
        created when something is first written, never with *read_only*. Without *auth* (user,
        password) that of the environment is used. *embedder* is described in docs/embedding.md,
        *summarizer* and *summarize* in docs/llm.md, *configuration* in docs/evaluation.md;
        *max_cost* is how many US dollars may be spent on models meanwhile.
        """
        settings = load_settings(
            store=address or None,
            tenant=tenant,
            embedder=embedder,
            summarizer=summarizer,
            summarize=summarize,
            configuration=configuration,
            max_cost=max_cost,
        )
        if auth is not None:
            settings = replace(settings, auth=auth)
        return cls.of(build(settings, read_only=read_only))

    @classmethod
    def of(cls, parts: Parts) -> Self:
        """A memory made of *parts*, such as a store of your own."""
        memory = cls.__new__(cls)
        memory._take(parts)
        return memory

    def _take(self, parts: Parts) -> None:
        self.store: GraphStore = parts.store
        self.writer = parts.writer
        self.retriever = parts.retriever
        self.loop_detector = parts.loop_detector
        self.stats = parts.stats
        self.consolidator = parts.consolidator
        self.spaces = parts.spaces
        self._chat = parts.chat
        self.configuration = parts.configuration
        self._routine = Routine(parts.consolidator)
        self._now = parts.now
        # A memory that is only read keeps no note of what it showed.
        self._shown: deque[_Shown] = deque(maxlen=0 if parts.read_only else MOST_SHOWN)

    def learn(self, raw: RawTrajectory) -> LearnReceipt:
        """Learn one finished run; on return it is stored durably.

        Learning the same run again changes nothing, but for an outcome that was unknown. Raises
        `StoreUnavailableError` or `StoreError`; then nothing of the run is stored.
        """
        self._note_exposures()
        receipt = self.writer.write(raw)
        self._routine.after_learning(receipt.status)
        return receipt

    def learn_many(self, raws: Iterable[RawTrajectory]) -> Generator[LearnReceipt]:
        """Learn runs, sixteen to a transaction, yielding a receipt for each that is stored.

        A `batch`. Raises as `learn`, once all runs before the one that cannot be stored are.
        """
        rest = iter(raws)
        with self.batch():
            while some := list(islice(rest, RUNS_AT_ONCE)):
                yield from self._learned(some)

    def _learned(self, raws: Sequence[RawTrajectory]) -> Iterator[LearnReceipt]:
        self._note_exposures()
        try:
            receipts = self.writer.write_all(raws)
        except StoreUnavailableError:
            raise
        except StoreError:
            # One of them cannot be stored: the others are not to go with it.
            yield from map(self.learn, raws)
            return
        for receipt in receipts:
            self._routine.after_learning(receipt.status)
            yield receipt

    def batch(
        self,
        progress: Callable[[int, int], None] | None = None,
        told: Callable[[ConsolidationReport], None] | None = None,
    ) -> AbstractContextManager[None]:
        """Within it, consolidation and fitting the embedding space are put off to the end.

        *progress* of that is as for `consolidate`; *told* is given its report, if it was due.
        """
        return self._routine.batch(progress, told)

    def consolidate(
        self, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> ConsolidationReport:
        """Bring methodologies up to date with what was learned: see docs/consolidation.md.

        `learn` does so by itself after every 16 runs. *progress* is told how many of how many kinds
        of error are done. Where another process is at it, the report says that it did not start.
        """
        self._note_exposures()
        return self.consolidator.consolidate(progress, retelling=True)

    def plan_wording(self) -> WordingPlan:
        """What `consolidate` would ask a language model, and what it costs; nothing is sent."""
        return self.consolidator.plan_wording()

    def rebuild(self) -> Iterator[LearnReceipt]:
        """Read all stored runs again as this version reads logs, yielding a receipt for each.

        Outcomes, learning times and credit stay. Each run is replaced in one transaction, so it
        can be interrupted and begun again. At the end the memory is consolidated.
        """
        yield from self.writer.rewrite_all()
        self._routine.after_rebuilding()

    def plan_reembedding(self, embedder: str = "") -> ReembeddingPlan:
        """What `reembed` would take: runs, texts, tokens and cost at most; nothing is embedded."""
        return self.spaces.plan(embedder)

    def reembed(
        self,
        embedder: str = "",
        progress: Callable[[int], None] = lambda runs: None,
        waiting: Callable[[datetime], None] = lambda until: None,
    ) -> Reembedding:
        """Embed all runs anew by *embedder* ("": the one configured), then let it answer.

        Queries are answered in the space of before until all is done, then in the new one. What is
        interrupted goes on where it was. *progress* hears how many runs more are done, *waiting*
        until when another process is at work on the memory. Raises `EmbeddingError`.
        """
        return self.spaces.reembed(embedder, progress, waiting)

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        """Remove runs and what only they taught; returns how many of them were known."""
        return self.store.forget(trajectory_ids)

    def query(
        self,
        state: State,
        limit: int = 5,
        *,
        exclude_instances: Iterable[str] = (),
        as_of: datetime | None = None,
        degrade: bool = False,
    ) -> MemoryContext:
        """What the memory knows for *state*: at most *limit* items of each kind, best first.

        Runs of *exclude_instances* and runs newer than *as_of* are not seen (benchmarks leak
        otherwise). Raises `DegradedError` when nothing was found because channels failed, unless
        *degrade* lets the agent go on with the empty answer.
        """
        context = self.retriever.retrieve(
            state, limit, exclude_instances=frozenset(exclude_instances), as_of=as_of
        )
        if context.degraded and not context and not degrade:
            raise DegradedError("; ".join(context.degraded))
        return context

    def check_loop(self, states: Sequence[State]) -> LoopInfo | None:
        """The loop that the last of *states* is in, with ways out that the memory knows."""
        return self.loop_detector.detect(states)

    def render(self, context: MemoryContext, max_tokens: int = MAX_TOKENS) -> str:
        """The prompt text of *context*, noted as shown so that its effect can be reported."""
        if context:
            self._shown.append(_shown(context, self._now()))
        return render(context, max_tokens)

    def report_outcome(self, context_id: str, helped: bool) -> bool:
        """Say whether the advice of a context helped; False where it is not known or was said."""
        self._note_exposures()
        return self.store.report_outcome(context_id, helped)

    def _note_exposures(self) -> None:
        """Store what was shown; put off until something is written, so that no query waits."""
        for shown in self._shown.copy():
            self.store.add_exposure(*shown)
            # Only now: what cannot be stored waits, and a thread that finds none can rely on it.
            with suppress(ValueError):  # another thread stored it as well
                self._shown.remove(shown)

    def explain(self, node_id: str) -> Explanation | None:
        """Where a methodology, run, fragment, error or context comes from; None where unknown."""
        self._note_exposures()
        return self.store.explain(node_id)

    def export(
        self,
        path: Path,
        *,
        vectors: bool = True,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> "Exported":
        """Write all that this memory holds to the file *path*, for any other store to read."""
        from contextgraph.archive import export_memory

        self._note_exposures()
        return export_memory(
            self.store, path, self.store.tenant, vectors=vectors, progress=progress
        )

    def import_archive(
        self,
        path: Path,
        *,
        vectors: bool = True,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> "Imported":
        """Read a file that `export` wrote, beside what this memory holds: see docs/store.md."""
        from contextgraph.archive import import_memory

        return import_memory(self.store, path, vectors=vectors, progress=progress)

    def replay(self, runs: Iterable[RawTrajectory]) -> "Walk":
        """*runs* as if live: what would be said at each moment; each is learned after it."""
        from contextgraph.replay import Walk

        return Walk(self, self.loop_detector, runs)

    def evaluate(
        self,
        learn: Iterable[RawTrajectory],
        judge: Iterable[RawTrajectory],
        *,
        seed: int = 0,
        advance: Callable[[], None] = lambda: None,
    ) -> "Evaluation":
        """How this memory, which should be empty, does on *judge* after it has learned *learn*.

        *advance* is called after each run.
        """
        from contextgraph.replay import evaluate

        return evaluate(self, learn, judge, seed=seed, advance=advance)

    def evaluate_online(
        self,
        runs: Iterable[RawTrajectory],
        *,
        seed: int = 0,
        advance: Callable[[], None] = lambda: None,
    ) -> "Evaluation":
        """How this memory, which should be empty, does on each of *runs*, then learned."""
        from contextgraph.replay import evaluate_online

        return evaluate_online(self, runs, seed=seed, advance=advance)

    def evaluate_related(self, folder: Path, *, seed: int = 0) -> "tuple[Moment, ...]":
        """How this memory, which should be empty, finds past tasks that people linked."""
        from contextgraph.replay import judge_related

        return judge_related(self, folder, seed)

    @staticmethod
    def inspect(raw: RawTrajectory) -> Inspection:
        """How this version reads a run: steps, errors, phases, loops, fragments; learns nothing."""
        return inspect_run(raw)

    def get_stats(self) -> MemoryStats:
        """Counts, error frequency and transitions, common mistakes, failure patterns."""
        return self.stats.get_stats()

    def health(self) -> Sequence[HealthCheck]:
        """Whether the store is well and models answer, with a remedy for what is not."""
        checks = [*self.store.health()]
        if all(check.ok for check in checks):
            checks += self.spaces.health()
        return [*checks, self._chat.health()] if self._chat else checks

    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        """Bring the schema of an older memory up to date; the names of the steps that it took.

        With *dry_run* none is taken. A server is brought up to date by nothing else: opening a
        memory whose schema is older raises `SchemaError`.
        """
        return self.store.pending_migrations() if dry_run else self.store.migrate()

    def close(self) -> None:
        """Release files and connections, also where what was shown cannot be noted any more."""
        try:
            self._note_exposures()
        finally:
            self.spaces.close()
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _shown(context: MemoryContext, at: datetime) -> _Shown:
    """What is noted of *context*, as `ExposureStore.add_exposure` takes it."""
    items = [solution.fragment_id for solution in context.error_solutions]
    items += [suggestion.id for suggestion in context.suggestions]
    return context.id, items, at, error_id(context.error) if context.error else None

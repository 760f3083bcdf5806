"""Methods for agents: queries, learning and outcomes, the same for a store and for a service."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from contextgraph.consolidation import ConsolidationTrigger
from contextgraph.errors import DegradedError, StoreError, StoreUnavailableError
from contextgraph.governance import is_withheld
from contextgraph.learning import RUNS_AT_ONCE, MemoryWriter, checked_source, error_id
from contextgraph.loops import LoopDetector
from contextgraph.model import (
    CommandHistory,
    ConsolidationReport,
    Exposure,
    LearnReceipt,
    LoopInfo,
    MemoryContext,
    RawTrajectory,
    RepositoryPlaybook,
    State,
)
from contextgraph.ports import Store
from contextgraph.retrieval import (
    MAX_TOKENS,
    MemoryRetriever,
    fresh_context,
    fresh_history,
    fresh_playbook,
    render_warning,
    rendered,
    runs_to_compare,
)
from contextgraph.stats import MemoryStats, StatisticsEngine
from contextgraph.telemetry import operation
from contextgraph.text import fence
from contextgraph.working_tree import WorkingTree

# Where nothing is ever written, so many contexts wait to be recorded; the oldest are dropped.
MOST_SHOWN = 4096


class AdvisingMemory:
    """The methods of `AgentMemory` that a service has as well; its parts say where the memory is.

    Safe to use from several threads.
    """

    store: Store
    store_id: str
    """Its tenant, or the address of its service: what spans of telemetry name it by."""
    writer: MemoryWriter
    retriever: MemoryRetriever
    loop_detector: LoopDetector
    stats: StatisticsEngine
    source: str
    withhold: float
    is_service = False
    """Whether it is reached over HTTP, by a `contextgraph.client.Client`."""
    _trigger: ConsolidationTrigger
    _shown: deque[Exposure]
    _now: Callable[[], datetime]

    def query(
        self,
        state: State,
        limit: int = 5,
        *,
        exclude_instances: Iterable[str] = (),
        as_of: datetime | None = None,
        workdir: Path | str | None = None,
        degrade: bool = False,
    ) -> MemoryContext:
        """What the memory knows for *state*: at most *limit* items of each kind, best first.

        Runs of *exclude_instances* and runs newer than *as_of* are not seen (benchmarks leak
        otherwise). What the working tree around the folder *workdir* does not have is left out;
        what names files whose content changed since the runs counts less, and says so.
        Raises `ValueError` where there is no such folder, and `DegradedError` when nothing was
        found because channels but that of notes failed, unless *degrade* is set: then the answer
        is empty.
        """
        excluded = frozenset(exclude_instances)
        with operation("search_memory", self.store_id):
            context = self.retriever.retrieve(state, limit, exclude_instances=excluded, as_of=as_of)
        searched = context or {*context.failed} <= {"notes"}
        if not (searched or degrade or self.is_service):
            raise DegradedError("; ".join(context.degraded))
        if not workdir:
            return context
        repo, runs = state.repo if context.playbook else "", runs_to_compare(context)
        return fresh_context(context, self._tree(workdir, repo, runs, excluded, as_of))

    def playbook(
        self,
        repo: str,
        task: str = "",
        *,
        exclude_instances: Iterable[str] = (),
        as_of: datetime | None = None,
        workdir: Path | str | None = None,
    ) -> RepositoryPlaybook:
        """What the runs of *repo* agree on, its files ranked for *task*; false where unknown.

        At most 32 runs are looked at, solved ones first, then the newest. *exclude_instances*,
        *as_of* and *workdir* are as for `query`. `contextgraph.retrieval.render_playbook` gives its
        prompt text.
        """
        excluded = frozenset(exclude_instances)
        playbook = self.retriever.playbooks.of(repo, task, excluded, as_of)
        if not workdir:
            return playbook
        return fresh_playbook(playbook, self._tree(workdir, repo, (), excluded, as_of))

    def how(
        self,
        repo: str,
        command: str,
        *,
        exclude_instances: Iterable[str] = (),
        as_of: datetime | None = None,
    ) -> CommandHistory:
        """How *command* is really run in *repo*, with counts; false where no run did."""
        return self.retriever.playbooks.history(repo, command, frozenset(exclude_instances), as_of)

    def before(
        self,
        state: State | str,
        command: str,
        *,
        exclude_instances: Iterable[str] = (),
        as_of: datetime | None = None,
        workdir: Path | str | None = None,
    ) -> str | None:
        """What to know before *command* is run; *state* is a state or the name of a repository.

        None unless independent runs agree that it does not run there: see docs/retrieval.md.
        *workdir* is as for `query`.
        """
        repo = state if isinstance(state, str) else state.repo
        excluded = frozenset(exclude_instances)
        history = self.how(repo, command, exclude_instances=excluded, as_of=as_of)
        if workdir and history.others:
            history = fresh_history(history, self._tree(workdir, repo, (), excluded, as_of))
        return render_warning(history) or None

    def _tree(
        self,
        workdir: Path | str,
        repo: str,
        trajectories: Sequence[str],
        excluded: frozenset[str],
        as_of: datetime | None,
    ) -> WorkingTree:
        """The working tree around *workdir*, with content hashes from runs: see `Playbooks`."""
        tree = WorkingTree.around(workdir)
        if not (repo or trajectories):
            return tree
        known = self.retriever.playbooks.content_hashes(repo, trajectories, excluded, as_of)
        return replace(tree, recorded=known)

    def check_loop(self, states: Sequence[State]) -> LoopInfo | None:
        """The loop that the last of *states* is in, with escape suggestions."""
        return self.loop_detector.detect(states)

    def render(self, context: MemoryContext, max_tokens: int = MAX_TOKENS) -> str:
        """The prompt text of *context*, noted as shown so that its effect can be reported.

        Of one that is withheld the empty fence: its id says in the log of the run what was not
        shown.
        """
        text, items = rendered(context, max_tokens)
        if not text:
            return ""
        error = error_id(context.error) if context.error else None
        withheld = self.withholds(context) if self.withhold and error else None
        self._shown.append(Exposure.of(context.id, items, self._now(), error, is_withheld=withheld))
        return fence("" if withheld else text, context.id)

    def withholds(self, context: MemoryContext) -> bool:
        """Whether *context*, about an error, is withheld by chance: see the setting `withhold`."""
        return context.error is not None and is_withheld(context.id, self.withhold)

    def report_outcome(
        self, context_id: str, helped: bool, item: int | None = None, *, source: str = ""
    ) -> bool:
        """Record whether the advice of a context helped; False if unknown or already recorded.

        *item* is the number of the one item that it is about, from 1, in the order of the text;
        without it the items share the credit. *source* is as of `learn`.
        """
        self.note_exposures()
        return self.store.exposures.report(
            context_id, helped, item, checked_source(source) or self.source
        )

    def note_exposures(self) -> None:
        """Store what was shown, which is else put off until something is written.

        Raises `StoreError`; then it is tried again when something is written.
        """
        if shown := [*self._shown]:
            self.store.exposures.add(shown)
        for exposure in shown:
            # Only now: what cannot be stored waits, and a thread that finds none can rely on it.
            with suppress(ValueError):  # another thread stored it as well
                self._shown.remove(exposure)

    def learn(
        self, raw: RawTrajectory, *, source: str = "", background: bool = False
    ) -> LearnReceipt:
        """Learn one finished run; on return it is stored durably.

        *source* names who supplies it (default: the setting `source`): see docs/security.md.
        Learning the same run again changes nothing, but for an outcome that was unknown. After
        every 16 runs the memory is consolidated before this returns, or else in the *background*:
        then `close` waits for it. Raises `StoreUnavailableError` or `StoreError`; then nothing of
        the run is stored. Where notes are in a database of their own, and only that is away, the
        run is stored, and learning it again adds what people said in it.
        """
        self.note_exposures()
        with operation("upsert_memory", self.store_id):
            receipt = self.writer.write(raw, source)
        self._add_candidates(raw, receipt)
        self._trigger.after_learning(receipt.status, background=background)
        return receipt

    def learn_many(
        self, raws: Iterable[RawTrajectory], *, source: str = ""
    ) -> Generator[LearnReceipt]:
        """Learn runs, sixteen to a transaction, yielding a receipt for each that is stored.

        A `batch`. *source* is as of `learn`. Raises as `learn`, once all runs before the one that
        cannot be stored are.
        """
        rest = iter(raws)
        with self.batch():
            while some := list(islice(rest, RUNS_AT_ONCE)):
                yield from self._learned(some, source)

    def _learned(self, raws: Sequence[RawTrajectory], source: str) -> Iterator[LearnReceipt]:
        self.note_exposures()
        try:
            with operation("upsert_memory", self.store_id):
                receipts = self.writer.write_all(raws, source)
        except StoreUnavailableError:
            raise
        except StoreError:
            # One of them cannot be stored: the others are not to go with it.
            yield from (self.learn(raw, source=source) for raw in raws)
            return
        for raw, receipt in zip(raws, receipts, strict=True):
            self._add_candidates(raw, receipt)
            self._trigger.after_learning(receipt.status)
            yield receipt

    def _add_candidates(self, raw: RawTrajectory, receipt: LearnReceipt) -> None:
        """Store statements of people in a learned run as candidates; a service does so itself."""

    def batch(
        self,
        progress: Callable[[int, int], None] | None = None,
        on_report: Callable[[ConsolidationReport], None] | None = None,
    ) -> AbstractContextManager[None]:
        """Postpone consolidation and fitting of the embedding space to the end of the block.

        *progress* is as for `consolidate`; *on_report* is called with its report, if it was due.
        """
        return self._trigger.batch(progress, on_report)

    def set_outcome(
        self, instance_id: str, solved: bool, *, agent: str = "", run: str = ""
    ) -> Sequence[str]:
        """Set by hand whether the runs of an instance solved it; returns their ids.

        Only those of *agent*, or the run with the id *run*, where given; none may match. Learning
        never changes what was set.
        """
        return self.writer.set_outcome(instance_id, solved, agent=agent, run=run)

    def get_stats(self) -> MemoryStats:
        """Counts, error frequency and transitions, common mistakes, failure patterns."""
        return self.stats.get_stats()

"""The façade: what an agent loop, a batch job or an entrance calls."""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Self

from contextgraph.config import OPENAI_EMBEDDER, Settings, load_settings
from contextgraph.consolidation import ConsolidationTrigger
from contextgraph.embedding import Reembedding, ReembeddingPlan, exclusive
from contextgraph.errors import DamagedRunError, DegradedError, StoreError, StoreUnavailableError
from contextgraph.governance import EvictionPolicy, is_withheld
from contextgraph.learning import Inspection, error_id, inspect_run
from contextgraph.model import (
    CommandHistory,
    ConsolidationReport,
    Explanation,
    Exposure,
    HealthCheck,
    LearnReceipt,
    LoopInfo,
    MaintenanceReport,
    MemoryContext,
    Outcome,
    RawTrajectory,
    RepositoryPlaybook,
    Snapshot,
    State,
    Verdict,
    WordingPlan,
)
from contextgraph.ports import Store
from contextgraph.retrieval import (
    MAX_TOKENS,
    evidence_of,
    fresh_context,
    fresh_history,
    fresh_playbook,
    render_warning,
    rendered,
)
from contextgraph.sessions import Conversation, ItemFile, Items, WorkingMemory
from contextgraph.sessions.conversation import (
    CONTEXT_WINDOW,
    KEEP_RECENT,
    MAX_TURNS,
    RESERVED_TOKENS,
    Strategy,
)
from contextgraph.sessions.working import MAX_TOKENS as WORKING_TOKENS
from contextgraph.stats import MemoryStats
from contextgraph.text import fence
from contextgraph.trace import is_advice_id
from contextgraph.wiring import Parts, build
from contextgraph.working_tree import WorkingTree

# Not imported before they are used: together a third of the time that it takes to import a memory.
if TYPE_CHECKING:
    from contextgraph.evaluation import Evaluation, Measures, Moment, Replay
    from contextgraph.keyed import KeyedMemory
    from contextgraph.knowledge import Candidates, Entities, MaintenancePolicy, Notes, Pages
    from contextgraph.live import LiveRun
    from contextgraph.ports import Graph
    from contextgraph.store.archive import Exported, Imported
    from contextgraph.store.graph import GraphFormat

# A transaction costs as much as several runs; what is lost with it has to be learned again.
RUNS_AT_ONCE = 16

# Where nothing is ever written, so many contexts wait to be noted; the oldest are let go.
MOST_SHOWN = 4096


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
    def open(
        cls,
        address: str = "",
        *,
        auth: tuple[str, str] | None = None,
        tenant: str | None = None,
        read_only: bool = False,
        embedder: str | None = None,
        summarizer: str | None = None,
        configuration: str | None = None,
        max_cost: float | None = None,
    ) -> "AgentMemory":
        """The memory at *address*: a file, ``:memory:``, ``neo4j://``, ``bolt://``, ``http(s)://``.

        An empty address means what the environment and ``contextgraph.toml`` say. A file is
        created when something is first written, never with *read_only*. Without *auth* (user,
        password) that of the environment is used. *embedder* is described in docs/embedding.md,
        *summarizer* in docs/llm.md, *configuration* in docs/evaluation.md;
        *max_cost* is how many US dollars may be spent on models meanwhile. At an ``http(s)://``
        address it is a `contextgraph.client.Client`, to which only the token applies.
        """
        settings = load_settings(
            store=address or None,
            tenant=tenant,
            embedder=embedder,
            summarizer=summarizer,
            configuration=configuration,
            max_cost=max_cost,
        )
        if auth is not None:
            settings = replace(settings, auth=auth)
        return cls.of_settings(settings, read_only=read_only)

    @classmethod
    def of_settings(
        cls, settings: Settings, *, read_only: bool = False, create: bool = True
    ) -> "AgentMemory":
        """The memory that *settings* describe; see `contextgraph.wiring.build`."""
        if settings.is_service:
            from contextgraph.client import Client

            return Client(settings.store, settings.token)
        return cls.of(build(settings, read_only=read_only, create=create))

    @classmethod
    def of(cls, parts: Parts) -> Self:
        """A memory made of *parts*, such as a store of your own."""
        memory = cls.__new__(cls)
        memory._take(parts)
        return memory

    def _take(self, parts: Parts) -> None:
        self.store: Store = parts.store
        self.writer = parts.writer
        self.retriever = parts.retriever
        self.loop_detector = parts.loop_detector
        self.stats = parts.stats
        self.consolidator = parts.consolidator
        self.spaces = parts.spaces
        self._chat = parts.chat
        self._keyed = parts.keyed
        self._open_notes = parts.notes
        self._open_item_file = parts.item_file
        self.configuration = parts.configuration
        self._trigger = ConsolidationTrigger(parts.consolidator)
        self._now = parts.now
        self.source = parts.source
        self._read_only = parts.read_only
        self.withhold = 0.0 if parts.read_only else parts.withhold
        # A memory that is only read keeps no note of what it showed.
        self._shown: deque[Exposure] = deque(maxlen=0 if parts.read_only else MOST_SHOWN)

    @property
    def is_service(self) -> bool:
        """Whether it is reached over HTTP, by a `contextgraph.client.Client`."""
        return False

    @cached_property
    def keyed(self) -> "KeyedMemory":
        """What `set_memory` stores on plain files beside this memory: see docs/keyed.md.

        Raises `SettingsError` for a memory in RAM without a setting *keyed_root*.
        """
        return self._keyed()

    @cached_property
    def notes(self) -> "Notes":
        """What people and agents say: `remember` and `recall`, see docs/notes.md."""
        return self._open_notes()

    @cached_property
    def candidates(self) -> "Candidates":
        """What people said in learned runs and may be worth a note: see docs/notes.md."""
        from contextgraph.knowledge import Candidates

        return Candidates(self.notes, self.store.notes, self._now)

    @cached_property
    def pages(self) -> "Pages":
        """Pages that refer to each other, with an index: see docs/pages.md."""
        from contextgraph.knowledge import Pages

        return Pages(self.store.notes, self._now)

    @cached_property
    def entities(self) -> "Entities":
        """Named entities with tags and relations: see docs/pages.md."""
        from contextgraph.knowledge import Entities

        return Entities(self.store.notes, self._now)

    def snapshot(
        self, trigger: str, focus: str = "", *, repo: str | None = None, max_tokens: int = 500
    ) -> Snapshot:
        """What people and agents say that matters when *trigger* happens: see `Notes.snapshot`."""
        return self.notes.snapshot(trigger, focus, repo=repo, max_tokens=max_tokens)

    def maintain(
        self,
        policy: "MaintenancePolicy | None" = None,
        waiting: Callable[[datetime], None] = lambda until: None,
    ) -> MaintenanceReport:
        """Archive notes that are weak and unused, merge, decide conflicts, embed what waits.

        *policy* is described in docs/notes.md. Waits for the lease of the memory; *waiting* is
        called with the time until which another process holds it. Raises `EmbeddingError` where
        texts cannot be embedded; the notes are maintained then. A second call right after changes
        nothing.
        """
        from contextgraph.knowledge import MaintenancePolicy, maintain_notes

        self.notes.count_recalls()
        with exclusive(self.store, self._now, waiting) as lease:
            report = maintain_notes(
                self.store.notes, self._now(), policy or MaintenancePolicy(), lease.check
            )
            return replace(report, embedded=self.spaces.catch_up(lease.check))

    @staticmethod
    def working(max_tokens: int = WORKING_TOKENS) -> WorkingMemory:
        """A working memory for one run: what its prompt says about it, in so many tokens."""
        return WorkingMemory(max_tokens)

    def conversation(
        self,
        conversation_id: str,
        *,
        strategy: Strategy = "sliding_window",
        max_turns: int = MAX_TURNS,
        keep_recent: int = KEEP_RECENT,
        context_window: int = CONTEXT_WINDOW,
        reserved_tokens: int = RESERVED_TOKENS,
    ) -> Conversation:
        """The messages of a conversation, kept on this machine: see docs/sessions.md."""
        return Conversation(
            Items(self._item_file, f"conversation {conversation_id}", clock=self._now),
            strategy=strategy,
            max_turns=max_turns,
            keep_recent=keep_recent,
            context_window=context_window,
            reserved_tokens=reserved_tokens,
        )

    def items(self, scope: str, eviction: EvictionPolicy | None = None) -> Items:
        """Key-value items on this machine, evicted by the policy: see docs/sessions.md."""
        return Items(self._item_file, f"items {scope}", eviction, self._now)

    @cached_property
    def _item_file(self) -> ItemFile:
        return self._open_item_file()

    def learn(
        self, raw: RawTrajectory, *, source: str = "", background: bool = False
    ) -> LearnReceipt:
        """Learn one finished run; on return it is stored durably.

        *source* names who supplies it (default: the setting `source`): see docs/security.md.
        Learning the same run again changes nothing, but for an outcome that was unknown. After
        every 16 runs the memory is consolidated before this returns, or else in the *background*:
        then `close` waits for it. Raises `StoreUnavailableError` or `StoreError`; then nothing of
        the run is stored.
        """
        self.note_exposures()
        receipt = self.writer.write(raw, source)
        self._add_candidates(raw, receipt)
        self._trigger.after_learning(receipt.status, background=background)
        return receipt

    def live(
        self,
        *,
        repo: str,
        instance_id: str,
        task: str,
        agent: str = "",
        model: str = "",
        source: str = "",
        exclude_instances: Iterable[str] = (),
        workdir: Path | str | None = None,
    ) -> "LiveRun":
        """A run of an agent that begins now: gives advice as it goes on, and is learned at its end.

        *agent* is the name that its logs have when they are read (`mini-swe-agent`), so that both
        are one run; *source* is as of `learn`. Nothing is shown from runs of *exclude_instances*,
        nor of what the working tree around the folder *workdir* does not have. Raises `ValueError`
        where there is no such folder. See docs/live.md.
        """
        from contextgraph.live import LiveRun

        raw = RawTrajectory("live", instance_id, repo, task, agent=agent, model=model)
        root = WorkingTree.around(workdir).root if workdir else None
        return LiveRun(self, raw, frozenset(exclude_instances), root, source)

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
        if any(step.user_message for step in raw.steps):
            self.candidates.add(raw, receipt.trajectory_id)

    def set_outcome(
        self, instance_id: str, solved: bool, *, agent: str = "", run: str = ""
    ) -> Sequence[str]:
        """Set by hand whether the runs of an instance solved it; returns their ids.

        Only those of *agent*, or the run with the id *run*, where given; none may match. Learning
        never changes what was set.
        """
        runs = self.store.runs
        found = runs.trajectories([run] if run else runs.ids(instance=instance_id)).values()
        chosen = [
            one.id for one in found if one.instance_id == instance_id and agent in ("", one.agent)
        ]
        runs.set_outcome(chosen, Outcome.SOLVED if solved else Outcome.FAILED)
        return chosen

    def batch(
        self,
        progress: Callable[[int, int], None] | None = None,
        on_report: Callable[[ConsolidationReport], None] | None = None,
    ) -> AbstractContextManager[None]:
        """Within it, consolidation and fitting the embedding space are put off to the end.

        *progress* is as for `consolidate`; *on_report* is called with its report, if it was due.
        """
        return self._trigger.batch(progress, on_report)

    def consolidate(
        self, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> ConsolidationReport:
        """Bring methodologies up to date with what was learned: see docs/consolidation.md.

        `learn` does so by itself after every 16 runs. *progress* is called with how many of how
        many kinds of error are done. Where another process holds the lease, the report says so.
        """
        self.note_exposures()
        return self.consolidator.consolidate(progress)

    def plan_wording(self) -> WordingPlan:
        """What `consolidate` would ask a language model, and what it costs; nothing is sent."""
        return self.consolidator.plan_wording()

    def rebuild(
        self, on_damaged: Callable[[str, DamagedRunError], None] | None = None
    ) -> Iterator[LearnReceipt]:
        """Read all stored runs again as this version reads logs, yielding a receipt for each.

        Outcomes, learning times and credit stay. Each run is replaced in one transaction, so it
        can be interrupted and begun again. At the end the memory is consolidated. *on_damaged* gets
        the id of each run that cannot be read and stays as it is; without it the first is raised.
        """
        yield from self.writer.rewrite_all(on_damaged)
        self._trigger.after_rebuilding()

    def plan_reembedding(self, embedder: str = "") -> ReembeddingPlan:
        """What `reembed` would take: runs, texts, tokens and cost at most; nothing is embedded."""
        return self.spaces.plan(embedder)

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
        return self.store.runs.forget(one.trajectory_id for one in known.values())

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
        otherwise). Nothing is said of what the working tree around the folder *workdir* does not
        have. Raises `ValueError` where there is no such folder, and `DegradedError` when nothing
        was found because channels failed, unless *degrade* lets the agent go on with the empty
        answer.
        """
        context = self.retriever.retrieve(
            state, limit, exclude_instances=frozenset(exclude_instances), as_of=as_of
        )
        if context.degraded and not context and not degrade:
            raise DegradedError("; ".join(context.degraded))
        return fresh_context(context, WorkingTree.around(workdir)) if workdir else context

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
        found = self.retriever.playbooks.of(repo, task, frozenset(exclude_instances), as_of)
        return fresh_playbook(found, WorkingTree.around(workdir)) if workdir else found

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
        found = self.how(repo, command, exclude_instances=exclude_instances, as_of=as_of)
        if workdir:
            found = fresh_history(found, WorkingTree.around(workdir))
        return render_warning(found) or None

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
        return self.store.exposures.report(context_id, helped, item, source or self.source)

    def note_exposures(self) -> None:
        """Store what was shown, which is else put off until something is written.

        Raises `StoreError`; then it is tried again when something is written.
        """
        for shown in self._shown.copy():
            self.store.exposures.add([shown])
            # Only now: what cannot be stored waits, and a thread that finds none can rely on it.
            with suppress(ValueError):  # another thread stored it as well
                self._shown.remove(shown)

    def explain(self, node_id: str) -> Explanation | None:
        """Where a methodology, run, fragment, error or context comes from; None where unknown.

        Of a methodology, and of advice (``adv_…``), with the evidence of its effect.
        """
        self.note_exposures()
        run = self.store.runs.learned([node_id]).get(node_id)
        found = self.store.admin.explain(run.trajectory_id if run else node_id)
        if found is not None and found.label != "Methodology":
            return found
        evidence = evidence_of(self.store, node_id)
        if found is not None:
            return replace(found, evidence=evidence)
        return Explanation(node_id, "Advice", node_id, {}, (), evidence) if evidence else None

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
        """Write `graph` to the file *path*, as ``graphml`` or (node-link) ``json``."""
        from contextgraph.store.graph import export_graph

        export_graph(self.graph(), path, graph_format)

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
            self.store.admin.tenant,
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

    def replay(self, runs: Iterable[RawTrajectory]) -> "Replay":
        """*runs* as if live: what would be shown at each moment; each is learned after it."""
        from contextgraph.evaluation import Replay

        return Replay(self, self.loop_detector, runs)

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
        from contextgraph.evaluation import evaluate

        return evaluate(self, learn, judge, seed=seed, advance=advance)

    def evaluate_online(
        self,
        runs: Iterable[RawTrajectory],
        *,
        seed: int = 0,
        advance: Callable[[], None] = lambda: None,
    ) -> "Evaluation":
        """How this memory, which should be empty, does on each of *runs*, then learned."""
        from contextgraph.evaluation import evaluate_online

        return evaluate_online(self, runs, seed=seed, advance=advance)

    def evaluate_related(self, folder: Path, *, seed: int = 0) -> "tuple[Moment, ...]":
        """How this memory, which should be empty, finds past tasks that people linked."""
        from contextgraph.evaluation import judge_related

        return judge_related(self, folder, seed)

    def evaluate_judged(
        self, runs: Iterable[RawTrajectory], path: Path, *, seed: int = 0
    ) -> "Measures":
        """What this memory shows at the errors of *runs* that the file *path* judges by hand.

        Runs of the same instance are not seen. See docs/evaluation.md.
        """
        from contextgraph.evaluation import judge_by_hand, read_judged

        return judge_by_hand(self, runs, read_judged(path), seed)

    @staticmethod
    def inspect(raw: RawTrajectory) -> Inspection:
        """How this version reads a run: steps, errors, phases, loops, fragments; learns nothing."""
        return inspect_run(raw)

    def get_stats(self) -> MemoryStats:
        """Counts, error frequency and transitions, common mistakes, failure patterns."""
        return self.stats.get_stats()

    def health(self) -> Sequence[HealthCheck]:
        """Whether the store is well and models answer, with a remedy for what is not."""
        checks = [*self.store.admin.health()]
        if all(check.ok for check in checks):
            checks += self.spaces.health()
        return [*checks, self._chat.health()] if self._chat else checks

    def migrate(self, *, dry_run: bool = False) -> Sequence[str]:
        """Bring the schema of an older memory up to date; the names of the steps that it took.

        With *dry_run* none is taken. A server is brought up to date by nothing else: opening a
        memory whose schema is older raises `SchemaError`.
        """
        return self.store.admin.migrate(dry_run=dry_run)

    def close(self) -> None:
        """Release files and connections, also where what was shown cannot be noted any more.

        Waits for what is consolidated in the background.
        """
        try:
            self._trigger.wait()
            self.note_exposures()
            if "notes" in self.__dict__ and not self._read_only:
                self.notes.count_recalls()
        finally:
            self.spaces.close()
            self.store.notes.close()
            self.store.admin.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

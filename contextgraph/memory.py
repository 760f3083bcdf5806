"""`AgentMemory`, the façade of the library."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack

from contextgraph.administration import AdministeredMemory
from contextgraph.advising import MOST_SHOWN
from contextgraph.config import OPENAI_EMBEDDER, Settings, load_settings
from contextgraph.consolidation import ConsolidationTrigger
from contextgraph.embedding import exclusive
from contextgraph.governance import EvictionPolicy
from contextgraph.learning import Inspection, inspect_run
from contextgraph.model import (
    Explanation,
    Exposure,
    LearnReceipt,
    MaintenanceReport,
    RawTrajectory,
    Snapshot,
)
from contextgraph.ports import Store
from contextgraph.retrieval import evidence_of
from contextgraph.sessions import Conversation, ConversationWindow, ItemFile, Items, WorkingMemory
from contextgraph.sessions.working import MAX_TOKENS as WORKING_TOKENS
from contextgraph.wiring import Parts, build, item_file, keyed_memory, maintenance_policy

# Not imported before they are used: together a third of the time that it takes to import a memory.
if TYPE_CHECKING:
    from contextgraph.keyed import KeyedMemory
    from contextgraph.knowledge import Candidates, Entities, MaintenancePolicy, Notes, Pages
    from contextgraph.live import LiveRun


class AgentMemory(AdministeredMemory):
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
        self.store_id = parts.store.tenant
        self.writer = parts.writer
        self.retriever = parts.retriever
        self.loop_detector = parts.loop_detector
        self.stats = parts.stats
        self.consolidator = parts.consolidator
        self.spaces = parts.spaces
        self.configuration = parts.settings.configuration.name
        self.source = parts.settings.source
        self.withhold = 0.0 if parts.read_only else parts.settings.withhold
        self._parts = parts
        self._now = parts.now
        self._trigger = ConsolidationTrigger(parts.consolidator)
        # A memory that is only read keeps no note of what it showed.
        self._shown: deque[Exposure] = deque(maxlen=0 if parts.read_only else MOST_SHOWN)

    @cached_property
    def keyed(self) -> "KeyedMemory":
        """What `set_memory` stores on plain files beside this memory: see docs/keyed.md.

        Raises `SettingsError` for a memory in RAM without a setting *keyed_root*.
        """
        return keyed_memory(self._parts.settings, self._now)

    @cached_property
    def notes(self) -> "Notes":
        """What people and agents say: `remember` and `recall`, see docs/notes.md."""
        return self._parts.notes

    @cached_property
    def candidates(self) -> "Candidates":
        """What people wrote in learned runs and may be worth a note: see docs/notes.md."""
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

        *policy* (default: that of the settings) is described in docs/notes.md. Waits for the lease
        of the memory; *waiting* is called with the time until which another process holds it.
        Raises `EmbeddingError` where texts cannot be embedded; the notes are maintained then. A
        second call right after changes nothing.
        """
        from contextgraph.knowledge import maintain_notes

        self.notes.count_recalls()
        with exclusive(self.store, self._now, waiting) as lease:
            policy = policy or maintenance_policy(self._parts.settings)
            report = maintain_notes(self.store.notes, self._now(), policy, lease.check)
            return replace(report, embedded=self.spaces.catch_up(lease.check))

    @staticmethod
    def working(max_tokens: int = WORKING_TOKENS) -> WorkingMemory:
        """A working memory for one run: what its prompt says about it, in so many tokens."""
        return WorkingMemory(max_tokens)

    def conversation(
        self, conversation_id: str, **window: Unpack[ConversationWindow]
    ) -> Conversation:
        """The messages of a conversation, kept on this machine: see docs/sessions.md."""
        items = Items(self._item_file, f"conversation {conversation_id}", clock=self._now)
        return Conversation(items, **window)

    def items(self, scope: str, eviction: EvictionPolicy | None = None) -> Items:
        """Key-value items on this machine, evicted by the policy: see docs/sessions.md."""
        return Items(self._item_file, f"items {scope}", eviction, self._now)

    @cached_property
    def _item_file(self) -> ItemFile:
        return item_file(self._parts.settings)

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
        return LiveRun(self, raw, frozenset(exclude_instances), workdir, source)

    def _add_candidates(self, raw: RawTrajectory, receipt: LearnReceipt) -> None:
        if any(step.user_message for step in raw.steps):
            self.candidates.add(raw, receipt.trajectory_id)

    def explain(self, node_id: str) -> Explanation | None:
        """Where a methodology, run, fragment, error, context or note comes from; None if unknown.

        Of a methodology, a note, and advice (``adv_…``), with the evidence of its effect.
        """
        from contextgraph.knowledge import explain_note, name_notes

        self.note_exposures()
        run = self.store.runs.learned([node_id]).get(node_id)
        explanation = self.store.admin.explain(run.trajectory_id if run else node_id)
        if explanation is None and (note := explain_note(self.store.notes, node_id)):
            return replace(note, evidence=evidence_of(self.store, node_id))
        if explanation is not None and explanation.label == "Context":
            return name_notes(explanation, self.store.notes)
        if explanation is not None and explanation.label != "Methodology":
            return explanation
        evidence = evidence_of(self.store, node_id)
        if explanation is not None:
            words = self.store.methodologies.get([node_id])[0].words
            facts = {"worded_by": words.model, "words": " ".join(words.lines)} if words else {}
            return replace(explanation, facts={**explanation.facts, **facts}, evidence=evidence)
        return Explanation(node_id, "Advice", node_id, {}, (), evidence) if evidence else None

    @staticmethod
    def inspect(raw: RawTrajectory) -> Inspection:
        """How this version reads a run: steps, errors, phases, loops, fragments; learns nothing."""
        return inspect_run(raw)

    def close(self) -> None:
        """Release files and connections, also where what was shown cannot be noted any more.

        Waits for what is consolidated in the background.
        """
        try:
            self._trigger.wait()
            self.note_exposures()
            if not self._parts.read_only:
                self.notes.count_recalls()
        finally:
            self.spaces.close()
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()

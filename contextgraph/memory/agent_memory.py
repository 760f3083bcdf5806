"""`AgentMemory`, the façade of the library."""

import logging
import os
from collections import Counter, deque
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from datetime import datetime
from itertools import chain, count
from pathlib import Path
from shlex import join
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Self, Unpack, overload
from uuid import uuid4

from msgspec import structs

from contextgraph.advising.channels import readable
from contextgraph.advising.freshness import (
    fresh_history,
    fresh_playbook,
    notes_naming,
    runs_to_compare,
)
from contextgraph.advising.gate import evidence_of
from contextgraph.advising.pipeline import sayings, settle, shown_by_chance
from contextgraph.advising.wording import (
    MAX_TOKENS,
    fitting_lessons,
    is_fact_id,
    render_warning,
    rendered,
)
from contextgraph.config import OPENAI_EMBEDDER, Settings, load_settings, reason_not_to_learn
from contextgraph.errors import (
    ContextGraphError,
    DamagedRunError,
    InvalidArgumentError,
    MemoryNotFoundError,
    NeverLearnedError,
    ReadError,
    StoreError,
    StoreUnavailableError,
)
from contextgraph.memory.wiring import (
    Parts,
    build,
    has_keyed,
    item_file,
    keyed_memory,
    maintenance_policy,
)
from contextgraph.model import (
    FORGOTTEN,
    SOURCE,
    CommandHistory,
    ConsolidationReport,
    Environment,
    Explanation,
    Exposure,
    Facets,
    Found,
    HealthCheck,
    Holdings,
    KnownSource,
    LearnReceipt,
    LearnStatus,
    LoopInfo,
    MaintenancePolicy,
    MaintenanceReport,
    MemoryContext,
    MethodologyStatus,
    NonNegativeInt,
    Note,
    NoteReceipt,
    RawTrajectory,
    Recollection,
    RepositoryPlaybook,
    Session,
    SessionFilter,
    Share,
    ShownIn,
    Snapshot,
    State,
    Strategy,
    Time,
    Verdict,
    is_fitted,
    is_withheld,
    new_context_id,
)
from contextgraph.model.values import batched, checked, replace
from contextgraph.store.memory_store import Store, current_name
from contextgraph.store.protocols import GraphFormat, OnDamaged
from contextgraph.system.processes import AT_FORK, CachedPart, no_fork, operation
from contextgraph.system.working_tree import WorkingTree
from contextgraph.text import count_tokens, fence, number_of, quoted
from contextgraph.trace import is_advice_id
from contextgraph.trace.signature import error_id

# Not imported before they are used: together a third of the time that it takes to import a memory.
if TYPE_CHECKING:
    from contextgraph.advising.loops import LoopDetector
    from contextgraph.agents.live import LiveRun, WorkingMemory
    from contextgraph.inference.chat import Chat
    from contextgraph.inference.spaces import ActiveEmbedder, EmbeddingSpaceManager, Reembedding
    from contextgraph.knowledge.check import Checker
    from contextgraph.knowledge.forgetting import EvictionPolicy
    from contextgraph.knowledge.keyed import KeyedMemory
    from contextgraph.knowledge.last import LastSession
    from contextgraph.knowledge.lessons import Lessons
    from contextgraph.knowledge.notes import NoteProperties, Notes
    from contextgraph.knowledge.pages import Entities, Pages
    from contextgraph.knowledge.search import Listed
    from contextgraph.knowledge.sessions import Conversation, ConversationWindow, ItemFile, Items
    from contextgraph.knowledge.team import Taken
    from contextgraph.knowledge.why import FileHistory
    from contextgraph.learning import Inspection, MemoryWriter
    from contextgraph.learning.consolidator import ConsolidationTrigger, MemoryConsolidator
    from contextgraph.learning.distilling import Distiller, DistilQueue
    from contextgraph.learning.statistics import MemoryStats, StatisticsEngine
    from contextgraph.memory.exported import Export, Exports
    from contextgraph.store.archive import Exported, Imported

os.register_at_fork(**AT_FORK)

# Where nothing is ever written, so many contexts wait to be recorded; the oldest are dropped.
MOST_SHOWN = 4096
# Of the prompt, for what it says about the run.
WORKING_TOKENS = 2_000

_RUNS_AT_ONCE = 500


@checked
class AgentMemory:
    """The long-term memory of coding agents.

    `open` takes any address; the constructor is the founding form, for a Neo4j server. Safe to
    use from several threads, and from several processes at once.
    """

    is_service = False
    """True for a memory that is reached over HTTP, a `contextgraph.service.client.Client`."""

    def __init__(
        self,
        neo4j_uri: str,
        embedding_api_key: str | tuple[str, str] | None = None,
        neo4j_auth: tuple[str, str] | None = None,
        *,
        tenant: str = "default",
    ) -> None:
        """Open the memory at *neo4j_uri*; a pair as second argument is *neo4j_auth*.

        Without *neo4j_auth* the user and password of the environment are used.
        """
        if isinstance(embedding_api_key, tuple):
            embedding_api_key, neo4j_auth = None, embedding_api_key
        settings = load_settings(store=neo4j_uri, tenant=tenant)
        if neo4j_auth is not None:
            settings = replace(settings, auth=neo4j_auth)
        if embedding_api_key:
            settings = replace(
                settings, embedding_api_key=embedding_api_key, embedder=OPENAI_EMBEDDER
            )
        self._take(build(settings))

    @classmethod
    def open(  # noqa: PLR0913  (one parameter per setting)
        cls,
        address: str | Path = "",
        *,
        auth: tuple[str, str] | None = None,
        token: str | None = None,
        tenant: str | None = None,
        read_only: bool = False,
        embedder: str | None = None,
        summarizer: str | None = None,
        configuration: str | None = None,
        max_cost: float | None = None,
    ) -> "AgentMemory":
        """Open the memory at *address* and return it.

        *address* is a file, ``:memory:``, ``networkx:``, ``neo4j://``, ``bolt://`` or
        ``http(s)://``; an empty one is taken from the environment or ``contextgraph.toml``. A file
        is created when it is first used, never with *read_only*. *auth* is (user, password), by
        default from the environment. See docs/embedding.md for *embedder*, docs/llm.md for
        *summarizer* and docs/evaluation.md for *configuration*. *max_cost* limits what is spent on
        models, in US dollars. An ``http(s)://`` address gives a
        `contextgraph.service.client.Client` with *token*, by default from the environment; nothing
        else is read from the settings.
        """
        with no_fork():  # settings and stores are imported by the first to need them
            settings = load_settings(
                store=str(address) or None,
                tenant=tenant,
                embedder=embedder,
                summarizer=summarizer,
                configuration=configuration,
                max_cost=max_cost,
            )
            if auth is not None:
                settings = replace(settings, auth=auth)
            if token is not None:
                settings = replace(settings, token=token)
            return cls.of_settings(settings, read_only=read_only)

    @classmethod
    def of_settings(
        cls,
        settings: Settings,
        *,
        read_only: bool = False,
        create: bool = True,
        deadline: float | None = None,
    ) -> "AgentMemory":
        """Open the memory that *settings* describe; see `contextgraph.memory.wiring.build`.

        *deadline* limits how long a service may take to answer, in seconds.
        """
        if settings.is_service:
            from contextgraph.service.client import DEADLINE, Client
            from contextgraph.system.remote import STORE_ADDRESS

            token = settings.secret_for(settings.store, settings.token, STORE_ADDRESS)
            return Client(settings.store, token, deadline=deadline or DEADLINE)
        return cls.of(build(settings, read_only=read_only, create=create))

    @classmethod
    def of(cls, parts: Parts) -> Self:
        """Return a memory made of *parts*, for example with a store of your own."""
        memory = cls.__new__(cls)
        memory._take(parts)
        return memory

    def _take(self, parts: Parts) -> None:
        self.store: Store = parts.store
        self.store_id = parts.store.tenant
        self.retriever = parts.retriever
        self.configuration = parts.settings.configuration.name
        self.source = parts.settings.source
        self.max_cost = parts.settings.max_cost
        self.withhold = 0.0 if parts.read_only else parts.settings.withhold
        self._parts = parts
        self._now = parts.now
        # A memory that is only read keeps no note of what it showed.
        self._shown: deque[Exposure] = deque(maxlen=0 if parts.read_only else MOST_SHOWN)
        parts.before_forgetting = self.note_exposures

    @CachedPart
    def writer(self) -> "MemoryWriter":
        """Learns runs."""
        return self._parts.writer

    @CachedPart
    def loop_detector(self) -> "LoopDetector":
        """Finds loops in states."""
        return self._parts.loop_detector

    @CachedPart
    def stats(self) -> "StatisticsEngine":
        """Counts errors and failures."""
        return self._parts.stats

    @CachedPart
    def consolidator(self) -> "MemoryConsolidator":
        """Derives methodologies from what runs have in common."""
        return self._parts.consolidator

    @CachedPart
    def _trigger(self) -> "ConsolidationTrigger":
        from contextgraph.learning.consolidator import ConsolidationTrigger

        return ConsolidationTrigger(self.consolidator)

    @CachedPart
    def spaces(self) -> "EmbeddingSpaceManager":
        """The embedding spaces."""
        return self._parts.spaces

    @CachedPart
    def embedder(self) -> "ActiveEmbedder":
        """Embeds questions."""
        return self._parts.embedder

    @CachedPart
    def keyed(self) -> "KeyedMemory":
        """The key-value memory in plain files next to this memory; see docs/keyed.md.

        Raises `SettingsError` for a memory in RAM if the setting *keyed_root* is not set.
        """
        return keyed_memory(self._parts.settings, self._now)

    @property
    def records_shown(self) -> bool:
        """True if advice that is shown is recorded; False for a memory opened read-only."""
        return self._shown.maxlen != 0

    @property
    def has_keyed(self) -> bool:
        """True if the memory has a folder for keyed files; a memory in RAM has none."""
        return not self.is_service and has_keyed(self._parts.settings)

    @CachedPart
    def notes(self) -> "Notes":
        """The notes of people and agents, with `remember` and `recall`; see docs/notes.md."""
        return self._parts.notes

    def sessions(
        self,
        wanted: SessionFilter | None = None,
        limit: NonNegativeInt = 50,
        skip: NonNegativeInt = 0,
    ) -> Sequence[Session]:
        """Return at most *limit* sessions that match *wanted*, or of all, after *skip* others."""
        return self._here(self.store.runs.sessions(wanted or SessionFilter(), limit, skip))

    def session(self, name: str) -> Session | None:
        """Return a session, or None if it is unknown.

        *name* is the id of its run, of the run of a sub-agent, or of the session at its client.
        """
        found = self.store.runs.session(name)
        return next(iter(self._here([found] if found else [])), None)

    def _here(self, sessions: Sequence[Session]) -> Sequence[Session]:
        """Return *sessions* with the commands by which they go on on this machine."""
        from contextgraph.readers import resume_command

        runs = self.store.runs.trajectories(one.id for one in sessions)
        return [
            replace(one, resume=resume_command(runs[one.id])) if one.id in runs else one
            for one in sessions
        ]

    def session_facets(
        self, wanted: SessionFilter | None = None, limit: NonNegativeInt = 20
    ) -> Facets:
        """Count the sessions that match *wanted*, or all, by repository, agent and outcome.

        Each count has at most *limit* entries.
        """
        return self.store.runs.facets(wanted or SessionFilter(), limit)

    def remember(
        self,
        content: str,
        *,
        repo: str | None = "",
        source: str = "user",
        tags: Collection[str] = (),
        credibility: Share | None = None,
        **properties: "Unpack[NoteProperties]",
    ) -> NoteReceipt:
        """Store a statement of *source* about *repo*, or about anything; see `Notes.remember`."""
        return self.notes.remember(
            content, repo=repo, source=source, tags=tags, credibility=credibility, **properties
        )

    def recall(
        self, question: str, *, repo: str | None = None, limit: int = 5
    ) -> tuple[Recollection, ...]:
        """Return what was said, and notes of every kind, that best answer *question*.

        See `Notes.recall`.
        """
        return self.notes.recall(question, repo=repo, limit=limit)

    def last_session(self, repo: str | None = None) -> "LastSession | None":
        """Return the newest session of *repo*, or of any repository; None if there is none.

        It lists what was done and what is still open.
        """
        from contextgraph.knowledge.last import last_session

        return last_session(self.store.runs, self.lessons.of(repo), repo)

    def file_history(
        self, path: str | Path, line: int | None = None, *, repo: str
    ) -> "FileHistory":
        """Return the sessions of *repo* that changed a file of its checkout, newest first.

        With *line*, only those that wrote this line, if there are any. Raises `ReadError` if the
        file has no such line.
        """
        from contextgraph.knowledge.why import file_history

        return file_history(self.store.runs, self.lessons.of(repo), repo, Path(path), line)

    def chat_of(self, model: str) -> "Chat | None":
        """Return a client of the language *model* (``openai/MODEL``), with the configured limits.

        Returns None for the template; raises `SettingsError` for an unknown name.
        """
        return self._parts.chat_of(model)

    @CachedPart
    def lessons(self) -> "Lessons":
        """The lessons that people gave in learned runs; see docs/notes.md."""
        return self._parts.lessons

    def distiller(self) -> "Distiller":
        """Return a `Distiller`, which distils lessons of sessions by a language model.

        See docs/llm.md.
        """
        return self._parts.distiller()

    @CachedPart
    def distil_queue(self) -> "DistilQueue":
        """The requests about sessions that the running agent answers; see docs/llm.md."""
        return self._parts.distil_queue

    @CachedPart
    def pages(self) -> "Pages":
        """The pages, which may refer to each other; see docs/pages.md."""
        from contextgraph.knowledge.pages import Pages

        return Pages(self.store.notes, self._now)

    @CachedPart
    def entities(self) -> "Entities":
        """The named entities with their tags and relations; see docs/pages.md."""
        from contextgraph.knowledge.pages import Entities

        return Entities(self.store.notes, self._now, self.store.runs)

    def snapshot(
        self,
        trigger: str,
        focus: str = "",
        *,
        repo: str | None = None,
        max_tokens: NonNegativeInt = 500,
    ) -> Snapshot:
        """Return the notes that matter when *trigger* happens; see `Notes.snapshot`.

        Keyed files get at most a third of *max_tokens*.
        """
        keyed = self.keyed.for_prompt(max_tokens // 3) if self.has_keyed else ""
        left = max_tokens - count_tokens(keyed)
        found = self.notes.snapshot(trigger, focus, repo=repo, max_tokens=left)
        return replace(found, keyed=keyed)

    def maintain(
        self,
        policy: MaintenancePolicy | None = None,
        waiting: Callable[[datetime], None] = lambda until: None,
    ) -> MaintenanceReport:
        """Maintain the notes, and return counts of what changed.

        Archives weak notes that are not used, merges duplicates, decides conflicts and embeds notes
        without a vector. A `conflict_judge` compares the pairs that it has not seen; see
        `Notes.judge_waiting`.

        *policy* (default: from the settings) is described in docs/notes.md. Waits for the lease of
        the memory; *waiting* is called with the time until which another process holds it. Raises
        `EmbeddingError` if texts cannot be embedded; all other maintenance is done then. A second
        call right after changes nothing.
        """
        from contextgraph.inference.spaces import exclusive
        from contextgraph.knowledge.notes import maintain_notes

        self.notes.count_recalls()
        with exclusive(self.store, self._now, waiting) as lease:
            policy = policy or maintenance_policy(self._parts.settings)
            try:
                embedded = self.spaces.catch_up(lease.check)
                judged = self.notes.judge_waiting(lease.check)
            finally:
                report = maintain_notes(self.store.notes, self._now(), policy, lease.check)
            return replace(
                report,
                merged=report.merged + judged.merged,
                conflicts_resolved=report.conflicts_resolved + judged.conflicts_resolved,
                embedded=embedded,
            )

    @staticmethod
    def working(max_tokens: int = WORKING_TOKENS) -> "WorkingMemory":
        """Return a working memory for one run; its prompt text has at most *max_tokens* tokens."""
        from contextgraph.agents.live import WorkingMemory

        return WorkingMemory(max_tokens)

    def conversation(
        self, conversation_id: str, **window: "Unpack[ConversationWindow]"
    ) -> "Conversation":
        """Return the messages of a conversation, stored on this machine; see docs/sessions.md."""
        from contextgraph.knowledge.sessions import Conversation, Items

        items = Items(self._item_file, f"conversation {conversation_id}", clock=self._now)
        return Conversation(items, **window)

    def items(self, scope: str, eviction: "EvictionPolicy | None" = None) -> "Items":
        """Return the key-value items of *scope*, stored on this machine; see docs/sessions.md.

        *eviction* removes items after each save.
        """
        from contextgraph.knowledge.sessions import Items

        return Items(self._item_file, f"items {scope}", eviction, self._now)

    @CachedPart
    def _item_file(self) -> "ItemFile":
        return item_file(self._parts.settings)

    def live(  # noqa: PLR0913  (one parameter per fact about the run)
        self,
        *,
        repo: str,
        task: str,
        instance_id: str = "",
        agent: str = "",
        model: str = "",
        source: str = "",
        exclude_instances: Collection[str] = (),
        workdir: Path | str | None = None,
        environment: Environment | None = None,
        session: str = "",
    ) -> "LiveRun":
        """Begin a run of an agent, which gives advice at each step and is learned when it ends.

        Without *instance_id* the run is an instance of its own. *agent* is the name that readers
        give the agent in its logs (`mini-swe-agent`), so that the live run and its log are one run;
        *source* is as for `learn`. Nothing is shown from runs of *exclude_instances*, nor about
        files that the working tree at *workdir* lacks. Facts come from runs on *environment*: by
        default this machine if *workdir* is given, else the one with most runs of the agent. What
        hooks or tools showed the agent in the *session* of this name is not shown again. Raises
        `ValueError` if *workdir* does not exist. See docs/live.md.
        """
        from contextgraph.agents.live import LiveRun

        instance_id = instance_id or f"{repo.replace('/', '__')}-{uuid4().hex[:12]}"
        repo = self._named(repo)
        raw = RawTrajectory("live", instance_id, repo, task, agent=agent, model=model)
        excluded = frozenset(exclude_instances)
        return LiveRun(self, raw, excluded, workdir, source, environment, session)

    def query(
        self,
        current_state: State | str,
        limit: NonNegativeInt = 5,
        *,
        repo: str = "",
        exclude_instances: Collection[str] = (),
        as_of: Time | None = None,
        workdir: Path | str | None = None,
        already_shown: Collection[str] = (),
        unasked: bool = False,
    ) -> MemoryContext:
        """Return what the memory knows about a state: at most *limit* items of a kind, best first.

        *current_state* may be the text of an error, and *repo* the repository in which it occurred.
        Runs of *exclude_instances* and runs after *as_of* are ignored, so that benchmarks do not
        leak. Advice about files that the working tree at *workdir* lacks is left out; advice about
        files that changed since the runs ranks lower and says so. Also left out is what the agent
        was shown before in its run (*already_shown*) and, if it did not ask (*unasked*), what it
        would soon do without advice. `contextgraph.advising.pipeline` lists all steps.

        A part that fails is named in the answer, as `degraded`. Raises `ValueError` if *workdir*
        does not exist, and `StoreError` if the memory does not answer.
        """
        state = current_state
        if isinstance(state, str):
            state = State(current_error=state)
        state = replace(state, repo=repo) if repo else state
        excluded = frozenset(exclude_instances)
        with operation("search_memory", self.store_id):
            context = self.retriever.retrieve(state, limit, exclude_instances=excluded, as_of=as_of)
        tree = None
        if workdir:
            here, runs = state.repo if context.playbook else "", runs_to_compare(context)
            tree = self._tree(workdir, here, runs, excluded, as_of)
        withheld = self.withhold > 0 and self.withholds(context)
        if not (tree or already_shown or unasked or withheld):
            return context
        return settle(
            context,
            limit,
            tree=tree,
            already_shown=already_shown,
            unasked=unasked,
            withheld=withheld,
        )

    def search(
        self,
        question: str,
        repo: str | None = None,
        *,
        limit: NonNegativeInt = 10,
        strategy: Strategy | str = Strategy.HYBRID,
        agent: str = "",
        file: str = "",
        since: Time | None = None,
        until: Time | None = None,
    ) -> tuple[Found, ...]:
        """Return sessions by what was said in them, notes of all kinds, and remedies, best first.

        Searches *repo*, or all repositories. Each result has its score in parts and the command
        that opens it. With *agent* or *file*, only sessions of this agent, or sessions that opened
        or changed this file, are returned. *since* and *until* limit the results to a period, as
        does a time in the question ("last week", "in March", "since 2026-02"); if there are none
        from that time, results of any time are returned with probability 0.

        In a *repo*, commands that its tasks agree on are searched, too, unless the question names a
        time, an agent or a file.
        *strategy* is as for `Notes.recall`.
        """
        from contextgraph.knowledge.asked import Period
        from contextgraph.knowledge.search import Within, answers

        repo = self._named(repo) if repo else None
        return answers(
            self.store,
            self.notes,
            question,
            Within(repo, agent, file, Period(since, until)),
            self._now(),
            limit=limit,
            strategy=Strategy(strategy),
            facts=self._commands(repo) if repo and not (agent or file) else (),
        )

    def _commands(self, repo: str) -> "list[Listed]":
        """Return the commands that the runs of *repo* agree on, as a search lists them."""
        from contextgraph.advising.wording import command_text
        from contextgraph.knowledge.notes import repo_name
        from contextgraph.knowledge.search import Listed

        name, now = repo_name(repo), self._now()
        return [
            Listed(
                Note(f"command:{name}:{record.line}", text, name, "", now),
                "command",
                text,
                join(("contextgraph", "call", "how", f"repo={repo}", f"command={record.command}")),
                record.worked,
            )
            for kind, record in self.retriever.playbooks.commands(repo)
            if (text := command_text(kind, record))
        ]

    def decided(
        self,
        request: str = "",
        *,
        repo: str = "",
        names: Collection[str] = (),
        written: str | None = None,
        command: str = "",
        is_reply: bool = False,
        exclude_instances: Collection[str] = (),
        as_of: Time | None = None,
    ) -> MemoryContext:
        """Return what people decided about *request*, or about the files and symbols *names*.

        *is_reply* says that the request answers an agent at work. With *written*, the text to be
        written into these files, only lessons about it are returned; with *command*, lessons on
        how, or whether, to run that shell line.

        `MemoryContext.lessons` has lessons that probably apply and still hold, often none, in 150
        tokens, or 300 to quote one whole; `MemoryContext.notes` has notes that name a file.
        *exclude_instances* and *as_of* are as for `query`.
        """
        repo = self._named(repo)
        found = [
            *(
                self.lessons.for_request(request, repo=repo or None, as_of=as_of, is_reply=is_reply)
                if request
                else ()
            ),
            *(
                self.lessons.naming(names, repo=repo or None, as_of=as_of, written=written)
                if names
                else ()
            ),
            *(self.lessons.for_command(command, repo=repo or None, as_of=as_of) if command else ()),
        ]
        noted = notes_naming(names, repo, self.store.notes)
        notes = {one.note.id: one.note for one in (*found, *noted)}
        excluded = frozenset(exclude_instances)
        seen = readable(notes.values(), self.store, excluded, as_of)
        ids = {note.id for note in seen}
        known = (one for one in found if one.note.id in ids)
        gate = self.retriever.gate
        least = gate.min_lesson_precision if written is None else gate.min_written_precision
        return MemoryContext(
            new_context_id(),
            lessons=fitting_lessons(known, least),
            notes=tuple(one for one in noted if one.note.id in ids),
        )

    def playbook(
        self,
        repo: str,
        task: str = "",
        *,
        exclude_instances: Collection[str] = (),
        as_of: Time | None = None,
        workdir: Path | str | None = None,
        agent: str = "",
        environment: Environment | None = None,
    ) -> RepositoryPlaybook:
        """Return what the runs of *repo* agree on, with files ranked for *task*.

        The result is false if nothing is known.

        With *agent*, only runs of this agent count, and the result includes frequent failures of
        its machine: of *environment*, by default the one with most runs.

        Reads at most 32 runs, solved ones first, then the newest. *exclude_instances*, *as_of* and
        *workdir* are as for `query`. `wording.render_playbook` makes prompt text of the result.
        """
        excluded = frozenset(exclude_instances)
        playbooks = self.retriever.playbooks
        playbook = playbooks.of(repo, task, excluded, as_of, agent, environment)
        if not workdir:
            return playbook
        return fresh_playbook(playbook, self._tree(workdir, repo, (), excluded, as_of))

    def how(
        self,
        repo: str,
        command: str,
        *,
        exclude_instances: Collection[str] = (),
        as_of: Time | None = None,
        agent: str = "",
        environment: Environment | None = None,
    ) -> CommandHistory:
        """Return how *command* is run in *repo*, with counts; the result is false if no run did.

        *agent* and *environment* are as for `playbook`.
        """
        excluded = frozenset(exclude_instances)
        playbooks = self.retriever.playbooks
        return playbooks.history(repo, command, excluded, as_of, agent, environment)

    def before(
        self,
        state: State | str,
        command: str,
        *,
        exclude_instances: Collection[str] = (),
        as_of: Time | None = None,
        workdir: Path | str | None = None,
    ) -> str | None:
        """Return a warning to show before *command* runs; None unless independent runs agree on it.

        *state* is a state or the name of a repository. The warning says that the command does not
        run there; see docs/retrieval.md. *workdir* is as for `query`.
        """
        given = State(repo=state) if isinstance(state, str) else state
        history = self._history(given, command, exclude_instances, as_of, workdir)
        return render_warning(history) if self.retriever.warnings_before(history) else None

    def warning_before(
        self,
        state: State,
        command: str,
        *,
        exclude_instances: Collection[str] = (),
        workdir: Path | str | None = None,
    ) -> MemoryContext:
        """Return the warning of `before` as `MemoryContext.warnings`."""
        history = self._history(state, command, exclude_instances, None, workdir)
        return MemoryContext(new_context_id(), warnings=self.retriever.warnings_before(history))

    def _history(
        self,
        state: State,
        command: str,
        exclude_instances: Collection[str],
        as_of: Time | None,
        workdir: Path | str | None,
    ) -> CommandHistory:
        """Return how *command* went in earlier runs, without what *workdir* does not have."""
        repo, excluded = state.repo, frozenset(exclude_instances)
        playbooks = self.retriever.playbooks
        history = playbooks.history(repo, command, excluded, as_of, state.agent, state.environment)
        if workdir and history.others:
            return fresh_history(history, self._tree(workdir, repo, (), excluded, as_of))
        return history

    def _tree(
        self,
        workdir: Path | str,
        repo: str,
        trajectories: Sequence[str],
        excluded: frozenset[str],
        as_of: Time | None,
    ) -> WorkingTree:
        """The working tree around *workdir*, with content hashes from runs: see `Playbooks`."""
        tree = WorkingTree.around(workdir)
        if not (repo or trajectories):
            return tree
        known = self.retriever.playbooks.content_hashes(repo, trajectories, excluded, as_of)
        return replace(tree, recorded=known)

    def check_loop(self, state_history: Sequence[State]) -> LoopInfo | None:
        """Return the loop at the end of *state_history*, with escape suggestions, or None."""
        return self.loop_detector.detect(state_history)

    def render(
        self,
        context: MemoryContext,
        max_tokens: int = MAX_TOKENS,
        *,
        where: ShownIn | None = None,
    ) -> str:
        """Return the prompt text of *context*, and record it as shown to measure its effect.

        The text of a withheld context is an empty fence, whose id shows in the log of the run what
        was not shown. *where* says where the text is shown; it is recorded, and limits what is
        shown there again.
        """
        text, items = rendered(shown_by_chance(context), max_tokens)
        if not text:
            return ""
        error = error_id(context.error) if context.error else None
        withheld = self.withholds(context) if self.withhold and error else None
        shown = Exposure.of(context.id, items, self._now(), error, is_withheld=withheld, text=text)
        if where is not None:
            said = tuple(dict.fromkeys(sayings(context))) if where.session else ()
            shown = replace(shown, said=said, **structs.asdict(where))
        self._shown.append(shown)
        return fence("" if withheld else text, context.id)

    def withholds(self, context: MemoryContext) -> bool:
        """Return True if *context*, an answer to an error, is withheld by chance.

        See the setting `withhold`.
        """
        may_be = self.withhold > 0 and context.error is not None
        return may_be and is_withheld(context.id, self.withhold)

    def report_outcome(
        self, context_id: str, helped: bool, item: NonNegativeInt | None = None, *, source: str = ""
    ) -> bool:
        """Record whether the advice of a context helped; False if unknown or already recorded.

        *item* is the number of the item that the report is about, from 1, in the order of the text;
        without it all items share the credit. *source* is as for `learn`.
        """
        from contextgraph.learning import checked_source

        self.note_exposures()
        return self.store.exposures.report(
            context_id, helped, item, checked_source(source) or self.source
        )

    def note_exposures(self, *, waiting: bool = True) -> None:
        """Store the record of shown advice now, not with the next write.

        With *waiting* a service that does not answer is waited for as long as at other writes.
        Raises `StoreError`; the next write then tries again.
        """
        if shown := [*self._shown]:
            self.store.exposures.add(shown)
        for exposure in shown:
            # Only now: what cannot be stored waits, and a thread that finds none can rely on it.
            with suppress(ValueError):  # another thread stored it as well
                self._shown.remove(exposure)

    @overload
    def learn(
        self, trajectory: RawTrajectory, *, source: str = "", background: bool = False
    ) -> LearnReceipt: ...

    @overload
    def learn(
        self,
        trajectory: Path | str | Mapping[str, Any] | Iterable[RawTrajectory | Mapping[str, Any]],
        *,
        source: str = "",
    ) -> list[LearnReceipt]: ...

    def learn(
        self,
        trajectory: RawTrajectory
        | Path
        | str
        | Mapping[str, Any]
        | Iterable[RawTrajectory | Mapping[str, Any]],
        *,
        source: str = "",
        background: bool = False,
    ) -> LearnReceipt | list[LearnReceipt]:
        """Learn one finished run, all runs at a path, or several runs; return receipts once stored.

        A path is read as by `readers.read`, and a dict as a record of such a file: several dicts
        may be the rows of a `datasets.Dataset`, or of each split of a `DatasetDict`. Of several
        runs, those that cannot be read or learned are logged and left out. Raises `ReadError` for
        a single dict that holds no run and for a path where nothing is, and `ValueError` for a
        generator that is used up.

        *source* names who supplies the runs (default: the setting `source`); see docs/security.md.
        Learning a run again changes nothing, except an outcome that was unknown. After every 16
        runs the memory is consolidated before this returns, or in the *background*; then `close`
        waits for it. Raises `StoreUnavailableError` or `StoreError`, and `NeverLearnedError` for a
        run that the setting *never_learn* excludes; in each case nothing of the run is stored.
        """
        if isinstance(trajectory, str | Path):
            from contextgraph.readers import read, trusted_histories

            _expect_path(str(trajectory))
            trajectory = read(trajectory, on_skip=_leave_out, trusted=trusted_histories())
        if not isinstance(trajectory, RawTrajectory):
            if isinstance(trajectory, GeneratorType) and trajectory.gi_frame is None:
                raise ValueError("learn got a generator that is used up: make a new one")
            if isinstance(trajectory, Mapping) and not _is_of_splits(trajectory):
                return [*self.learn_many([trajectory], source=source, on_error=_raise)]
            if isinstance(trajectory, Mapping):
                trajectory = chain.from_iterable(trajectory.values())
            return [*self.learn_many(trajectory, source=source, on_error=_leave_out)]
        self.note_exposures()
        trajectory = self._admitted(trajectory)
        with operation("upsert_memory", self.store_id):
            receipt = self.writer.write(trajectory, source)
        self._add_lessons(trajectory, receipt, source)
        self._join_proven([trajectory])
        self._trigger.after_learning(receipt, background=background)
        return receipt

    def learn_many(
        self,
        raws: Iterable[RawTrajectory | Mapping[str, Any]],
        *,
        source: str = "",
        on_error: Callable[[ReadError], None] | None = None,
    ) -> Generator[LearnReceipt]:
        """Learn runs, or rows that hold runs, sixteen per transaction; yield a receipt for each.

        Consolidates once at the end, as `batch` does. *source* is as for `learn`. *on_error* is
        called with the error of each run that cannot be learned, and learning continues; without it
        the error is raised, after the runs before it are stored. Rows of *raws* that cannot be read
        are logged and left out.
        """
        from contextgraph.learning import RUNS_AT_ONCE

        rest = _readable(raws, self._admitted, on_error or _leave_out)
        with self.batch():
            for some in batched(rest, RUNS_AT_ONCE):
                yield from self._learned(some, source, on_error)

    @CachedPart
    def _never_learned(self) -> tuple[str, ...]:
        return self._parts.settings.never_learned

    def _admitted(self, raw: RawTrajectory) -> RawTrajectory:
        if reason := reason_not_to_learn(raw, self._never_learned):
            raise NeverLearnedError(raw.source or raw.instance_id, "", reason)
        with no_fork():  # a child would find the lock of the import taken
            from contextgraph.learning import without_private_words

        return without_private_words(raw)

    def _learned(
        self,
        raws: Sequence[RawTrajectory],
        source: str,
        on_error: Callable[[ReadError], None] | None,
    ) -> Iterator[LearnReceipt]:
        self.note_exposures()
        try:
            with operation("upsert_memory", self.store_id):
                receipts = self.writer.write_all(raws, source)
        except StoreUnavailableError:
            raise
        except (InvalidArgumentError, StoreError, ReadError):
            # One of them cannot be stored: the others are not to go with it.
            for raw in raws:
                try:
                    yield self.learn(raw, source=source)
                except ReadError as error:
                    if on_error is None:
                        raise
                    on_error(error)
            return
        self._join_proven(raws)  # nobody may ask for what follows the last receipt
        for raw, receipt in zip(raws, receipts, strict=True):
            self._add_lessons(raw, receipt, source)
            self._trigger.after_learning(receipt)
            yield receipt

    def batch(
        self,
        progress: Callable[[int, int], None] | None = None,
        on_report: Callable[[ConsolidationReport], None] | None = None,
    ) -> AbstractContextManager[None]:
        """Postpone consolidation and fitting of the embedding space to the end of the block.

        *progress* is as for `consolidate`; *on_report* is called with the report if it
        consolidated.
        """
        return self._trigger.batch(progress, on_report)

    def set_outcome(
        self,
        instance_id: str,
        solved: bool,
        *,
        agent: str = "",
        run: str = "",
        only_of: str | None = None,
    ) -> Sequence[str]:
        """Set whether the runs of an instance solved it; return their ids.

        Limited to runs of *agent*, the run with the id *run*, or runs supplied by the source
        *only_of*, if given; the result is empty if none match. Raises `AmbiguousRunError` if there
        are several and neither *agent* nor *run* is given. Learning never overwrites an outcome set
        here.
        """
        return self.writer.set_outcome(instance_id, solved, agent=agent, run=run, only_of=only_of)

    def get_stats(self) -> "MemoryStats":
        """Return counts, error frequencies and transitions, mistakes and failure patterns."""
        return self.stats.get_stats()

    def _add_lessons(self, raw: RawTrajectory, receipt: LearnReceipt, source: str) -> None:
        if self._parts.settings.conversations == "off":
            return
        runs = self.store.runs
        own: RawTrajectory | None = raw
        if receipt.copied:
            own = runs.raw(receipt.trajectory_id) if receipt.copied < len(raw.steps) else None
        # Rules for agents and decisions are written down in Markdown.
        if own and (
            own.inherited
            or any(step.user_message or ".md" in step.action.text for step in own.steps)
        ):
            own = replace(own, repo=self._named(own.repo))
            supplier = self.writer.supplier(raw, source)
            if supplier or receipt.status is LearnStatus.CREATED:
                self.lessons.add(own, receipt.trajectory_id, supplier)
            else:
                self.lessons.take_over(own, receipt.trajectory_id)
            if not runs.learned([receipt.trajectory_id]):  # it was forgotten meanwhile
                self.lessons.remove_run(receipt.trajectory_id)
        if receipt.continues:
            self.lessons.remove_run(receipt.continues, goes_on=True)
        # What the owner said is known by now, with its review.
        for former in receipt.corrected:
            self.lessons.remove_run(former)
        again = {run.trajectory_id for run in runs.learned(receipt.corrected).values()}
        for run in runs.trajectories(again).values():
            if rest := runs.raw(run.id):
                self.lessons.add(replace(rest, repo=run.repo), run.id, run.contributor)

    def learn_history(self, folder: str) -> int:
        """Store reasons in commits, changelog and decision records of the repository at *folder*.

        They become lessons of this repository, in place of those of an earlier call. Returns their
        number. The caller has to trust the authors.
        """
        from contextgraph.readers import GitFolder, repository_name

        found = GitFolder.around(folder)
        name = self._named(repository_name(folder))
        return self.lessons.add_history(found, name) if found else 0

    def age_lessons(self, folder: str) -> int:
        """Silence lessons whose files, symbols or programs the repository at *folder* lost.

        Its objects are read as data; nothing that it configures is run. Returns the number of
        lessons that changed.
        """
        from contextgraph.readers import GitFolder, repository_name

        found = GitFolder.around(folder)
        return self.lessons.age(found, self._named(repository_name(folder))) if found else 0

    def learn_team(self, folder: str | Path) -> "Taken":
        """Take over the lessons in ``.contextgraph`` of the repository around *folder*.

        They are of that repository as a source. Only where the user trusts it (`contextgraph
        trust`); from one that is not trusted, what was taken over is forgotten.
        """
        from contextgraph.knowledge.entries import Entries, entries_in
        from contextgraph.knowledge.team import root_of, take_over, trusts_lessons
        from contextgraph.readers import repository_name

        root = root_of(folder)
        name = self._named(repository_name(root))
        entries = entries_in(root) if trusts_lessons(root) else Entries((), {})
        return take_over(self.notes, self.store.notes, root, name, entries)

    def checker(self, folder: str | Path) -> "Checker":
        """Return a checker of changes to the repository around *folder*."""
        from contextgraph.knowledge.check import Checker
        from contextgraph.knowledge.team import root_of
        from contextgraph.readers import repository_name

        root = root_of(folder)
        name = self._named(repository_name(root))
        return Checker(self.lessons, self.store.runs, root, name)

    def join_repository(self, former: str, now: str) -> int:
        """Treat *former*, a repository that was renamed, as *now*; return the number of its runs.

        Queries by either name give the same answer. `split_repository` takes it back. Raises
        `SettingsError` if the names are joined already.
        """
        return self._moved(self._parts.repositories.join(former, now))

    def split_repository(self, former: str) -> int:
        """Undo `join_repository` of *former*; return the number of runs that have its name again.

        Raises `NotFoundError` if it was not joined.
        """
        return self._moved(self._parts.repositories.split(former))

    def _join_proven(self, raws: Sequence[RawTrajectory]) -> None:
        here = [raw for raw in raws if raw.folder and not raw.origin]
        if here and not self.is_service:  # which does so itself
            self._moved(self._parts.repositories.join_proven(here))

    def _moved(self, ids: Collection[str]) -> int:
        """Move what was said in these runs to their repository; return how many runs there are."""
        runs = self.store.runs
        is_on = self._parts.settings.conversations != "off"
        for run in runs.trajectories(ids).values() if is_on else ():
            raw = runs.raw(run.id)
            # Only a person's words are lessons, as when a run is learned.
            if raw and (raw.inherited or any(step.user_message for step in raw.steps)):
                self.lessons.move(replace(raw, repo=run.repo), run.id, run.contributor)
        return len(ids)

    def _named(self, repo: str) -> str:
        return repo if self.is_service else current_name(self.store.runs, repo)

    def explain(self, identity: str) -> Explanation | None:
        """Return the origin of a methodology, run, fragment, error, context or note, or None.

        For a methodology, a note and advice (``adv_…``) it includes the evidence of its effect.
        """
        from contextgraph.knowledge.recall import explain_note, name_notes

        self.note_exposures()
        run = self.store.runs.learned([identity]).get(identity)
        explanation = self.store.admin.explain(run.trajectory_id if run else identity)
        if explanation is None and (note := explain_note(self.store.notes, identity)):
            return replace(note, evidence=evidence_of(self.store, identity))
        if explanation is not None and explanation.label == "Context":
            return name_notes(explanation, self.store.notes)
        if explanation is not None and explanation.label != "Methodology":
            return explanation
        evidence = evidence_of(self.store, identity)
        if explanation is not None:
            words = self.store.methodologies.get([identity])[0].words
            facts = {"worded_by": words.model, "words": " ".join(words.lines)} if words else {}
            return replace(explanation, facts={**explanation.facts, **facts}, evidence=evidence)
        return Explanation(identity, "Advice", identity, {}, (), evidence) if evidence else None

    @staticmethod
    def inspect(raw: RawTrajectory) -> "Inspection":
        """Return the steps, errors, phases, loops and fragments of a run, without learning it."""
        from contextgraph.learning import inspect_run

        return inspect_run(raw)

    def consolidate(
        self, progress: Callable[[int, int], None] = lambda done, total: None
    ) -> ConsolidationReport:
        """Update the methodologies with what was learned; see docs/consolidation.md.

        `learn` calls this after every 16 runs. *progress* is called with the number of kinds of
        error that are done and their total. The report says so if another process holds the lease.
        """
        self.note_exposures()
        return self.consolidator.consolidate(progress=progress)

    def rebuild(
        self, on_damaged: Callable[[str, DamagedRunError], None] | None = None
    ) -> Iterator[LearnReceipt]:
        """Read all stored runs again with the readers of this version; yield a receipt for each.

        Outcomes, learning times and credit stay. Runs are replaced sixteen per transaction, so the
        call can be interrupted and repeated. The memory is consolidated at the end. *on_damaged* is
        called with the id of each run that cannot be read and stays as it is; without it the error
        of the first is raised.
        """
        yield from self.writer.rewrite_all(on_damaged)
        self._trigger.after_rebuilding()
        self.store.admin.erase_deleted()

    def reembed(
        self,
        embedder: str = "",
        progress: Callable[[int], None] = lambda runs: None,
        waiting: Callable[[datetime], None] = lambda until: None,
    ) -> "Reembedding":
        """Embed all runs with *embedder* (empty: the configured one), then use it for queries.

        Queries use the former space until all runs are embedded. After an interruption the same
        call continues. *progress* is called with the number of runs done since its last call,
        *waiting* with the time until which another process holds the lease. Raises
        `EmbeddingError`.
        """
        return self.spaces.reembed(embedder, progress, waiting)

    def embed(self, progress: Callable[[int], None] = lambda passages: None) -> int:
        """Embed the passages that have no vector yet; return how many.

        With a neural embedder `search` then compares passages by meaning, until then by words.
        *progress* is called with the size of each batch; batches done before an interruption stay.
        Raises `EmbeddingError`.
        """
        return self.spaces.embed_passages(progress)

    def holdings(
        self,
        *,
        sessions: Sequence[str] = (),
        sources: Sequence[str] = (),
        repos: Sequence[str] = (),
    ) -> Holdings:
        """Return the ids of the runs and notes of these sessions, sources and repositories."""
        return self._parts.forgetting.holdings(sessions, sources, repos)

    def forget(
        self,
        trajectory_ids: Iterable[str] = (),
        *,
        notes: Sequence[str] = (),
        sessions: Sequence[str] = (),
        sources: Sequence[str] = (),
        repos: Sequence[str] = (),
    ) -> int:
        """Remove runs and notes, and all that only they taught, said or showed.

        Removes the runs and notes with these ids, and those that `holdings` returns, also from
        texts that were shown, the model of words, receipts of `distil`, and files exported on this
        machine. *sessions* also removes conversations with these ids, *sources* keyed entries. What
        another process learns from them meanwhile is removed, too. Their logs are not learned
        again, except after `learn_again`. Returns how many runs were known.
        """
        from contextgraph.knowledge.lessons import said_in

        self.note_exposures()
        log = self._parts.distil_log
        for session in sessions:
            self._item_file.forget([f"conversation {session}", f"items {session}"])
        if sources and self.has_keyed:
            # First from archives: an interrupted call that is repeated finds the keys yet.
            keys = self.keyed.set_by(sources)
            self._exports.remove_entries(lambda one: one.key in keys)
            self.keyed.forget_sources(sources)
        removed, given = 0, Holdings((*trajectory_ids,), (*notes,))
        found = self.holdings(sessions=sessions, sources=sources, repos=repos)
        while True:
            held = Holdings((*given.runs, *found.runs), (*{*given.notes, *found.notes},))
            # By the runs, which go last, an interrupted call that is repeated finds what is left.
            self._exports.remove(held, said_in(self.store.notes, held.runs))
            log.forget(held.runs)
            one = held.runs[0] if len(held.runs) == 1 else ""
            with operation("delete_memory", self.store_id, one):
                removed += self._parts.forgetting.forget(held, sessions)
            given = Holdings()
            # A log that grew was learned under another id since.
            found = self.holdings(sessions=sessions, sources=sources, repos=repos)
            if not (found.runs or found.notes):
                break
        self._exports.rewrite(self._is_drawn)
        return removed

    def learn_again(self, runs: Iterable[RawTrajectory], source: str = "") -> None:
        """Allow forgotten sessions of *runs*, from *source*, to be learned again."""
        self._parts.forgetting.learn_again(runs, source)

    def _is_drawn(self, export: "Export") -> bool:
        """Write the graph of *export* again; returns False where it is none."""
        if export.form == "graphml" or export.form == "json":  # noqa: PLR1714  (for mypy)
            self._write_graph(Path(export.path), export.form)
            return True
        return False

    @property
    def _exports(self) -> "Exports":
        from contextgraph.memory.exported import Exports

        return Exports(self._parts.settings)

    def retire(self, methodology_ids: Iterable[str]) -> int:
        """Never show or derive these methodologies again; return how many were active before.

        Each stays as a tombstone, so that consolidation does not derive it again. Waits while
        another process consolidates.
        """
        from contextgraph.inference.spaces import exclusive

        with exclusive(self.store, self._now, lambda until: None):
            retired = [
                replace(methodology, status=MethodologyStatus.RETIRED)
                for methodology in self.store.methodologies.get([*methodology_ids])
                if methodology.status is not MethodologyStatus.RETIRED
            ]
            self.store.methodologies.put(retired)
        return len(retired)

    def sources(self) -> list[KnownSource]:
        """Return who supplied runs and reports, by name, first the owner, whose name is empty."""
        distrusted = self.store.exposures.record([]).distrusted
        runs: dict[str, list[str]] = {name: [] for name in distrusted}
        shown = self.store.exposures.all()
        reports = Counter(exposure.source for exposure in shown if exposure.helped is not None)
        for some in batched(self.store.runs.ids(), _RUNS_AT_ONCE):
            for run in self.store.runs.trajectories(some).values():
                runs.setdefault(run.contributor, []).append(run.instance_id)
        return [
            KnownSource(
                *(name, len(runs.get(name, ())), len({*runs.get(name, ())}), reports[name]),
                trusted=name not in distrusted,
            )
            for name in sorted(runs.keys() | reports.keys())
        ]

    def quarantine(self, identity: str) -> bool:
        """Never show *identity* again; return False if it is unknown.

        *identity* is that of advice that was shown (``adv_…``), of a methodology, of a line shown
        at a start or before a command (``fact_…``), or ``source:NAME`` for everything that this
        source supplied.
        """
        return self._decide(identity, is_quarantined=True)

    def release(self, identity: str) -> bool:
        """Show *identity* again, despite reports against it; return False if it is unknown."""
        return self._decide(identity, is_quarantined=False)

    def _decide(self, advice: str, *, is_quarantined: bool) -> bool:
        self.note_exposures()
        if advice.startswith(SOURCE):
            if advice.removeprefix(SOURCE) not in {source.name for source in self.sources()} - {""}:
                return False
        elif is_fact_id(advice):
            if evidence_of(self.store, advice) is None:
                return False
        elif is_advice_id(advice):
            if not self.store.exposures.newest(1, name=advice):
                return False
        elif not self.store.methodologies.get([advice]):
            return False
        self.store.exposures.decide([Verdict(advice, is_quarantined, self._now())])
        return True

    @property
    def graph(self) -> Store:
        """The store; calling it returns its nodes and relations as a networkx `MultiDiGraph`.

        It includes notes, and shows the memory as it is at the call; copy it to change it. See
        `contextgraph.store.graph` for its attributes.
        """
        return self.store

    def export_graph(self, path: Path, graph_format: GraphFormat) -> None:
        """Write `graph` to the file *path*: ``graphml``, or (node-link) ``json``."""
        self._write_graph(path, graph_format)
        self._exports.add(path, graph_format)

    def _write_graph(self, path: Path, graph_format: GraphFormat) -> None:
        from contextgraph.store.graph import export_graph

        export_graph(self.graph(), path, graph_format)

    def export(
        self,
        path: Path,
        *,
        vectors: bool = True,
        progress: Callable[[int, int], None] = lambda done, total: None,
        on_damaged: OnDamaged | None = None,
        salvage: bool = False,
    ) -> "Exported":
        """Write everything in this memory to the archive *path*, which any other store can import.

        It includes the keyed entries that are valid now.

        *on_damaged* is called with the id and the reason of each run that cannot be read; without
        it the error of the first is raised. With *salvage* anything else that is damaged is
        reported and left out in the same way, and a run of which only the log can be read is read
        again.
        """
        from contextgraph.learning import bundle_of
        from contextgraph.store.archive import export_memory

        if not salvage:
            self.note_exposures()
        done = export_memory(
            self.store,
            path,
            self.store.tenant,
            vectors=vectors,
            progress=progress,
            on_damaged=on_damaged,
            read_again=(lambda raw: bundle_of(raw, self._now())) if salvage else None,
            keyed=self.keyed.entries if self.has_keyed else tuple,
        )
        self._exports.add(path, "archive")
        return done

    def back_up(self, path: Path) -> None:
        """Copy the memory file to the new file *path*, while others may write.

        Raises `StoreError` if *path* exists or cannot be written, and for a memory on a server.
        """
        self.note_exposures()
        self.store.admin.back_up(path)
        self._exports.add(path, "backup")

    def import_archive(
        self,
        path: Path,
        *,
        source: str = "",
        as_owner: bool = False,
        vectors: bool = True,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> "Imported":
        """Import an archive that `export` wrote into this memory; see docs/store.md.

        Its runs are learned from their logs and its notes remembered with the source *source*, by
        default named after the file. A run that the memory has already, from any source, stays as
        it is, so a second import of an archive changes nothing. *as_owner* imports everything,
        including verdicts, pins, keyed entries and *vectors*, and consolidates as `batch` does: use
        it for your own memory.
        Raises `ReadError` before anything is stored.
        """
        from contextgraph.learning import checked_source, run_ids
        from contextgraph.store import archive

        checked_source(source)
        for _ in archive.read_lines(path):  # before the store, which its first use creates
            pass
        if as_owner:
            return self._import_own(path, vectors, progress)
        name, total = source or archive.source_of(path), archive.read_header(path).runs
        done, notes = archive.Imported(), list[Note]()
        others = [known.name for known in self.sources() if known.name != name]

        def runs() -> Iterator[RawTrajectory]:
            for one in archive.contributions(path):
                if isinstance(one, RawTrajectory):
                    if self.store.runs.learned([run_ids(one, other).id for other in others]):
                        done.unchanged += 1
                    else:
                        yield one
                elif one is None:
                    done.left_out += 1
                else:
                    notes.append(one)

        statuses = Counter[LearnStatus]()
        for receipt in self.learn_many(runs(), source=name, on_error=_leave_out):
            statuses[receipt.status] += 1
            progress(statuses.total(), total)
        for note in notes:
            self.notes.remember(
                note.content,
                repo=note.repo,
                source=f"agent:{name}",
                security=note.security,
                valid_from=note.valid_from,
                valid_until=note.valid_until,
            )
        done.created, done.notes = statuses[LearnStatus.CREATED], len(notes)
        done.updated = statuses[LearnStatus.UPDATED]
        done.unchanged += statuses[LearnStatus.UNCHANGED]
        return done

    def _import_own(
        self, path: Path, vectors: bool, progress: Callable[[int, int], None]
    ) -> "Imported":
        from tempfile import TemporaryDirectory

        from contextgraph.memory.exported import archive_without
        from contextgraph.store import archive

        held = (
            line.bundle.trajectory
            for line in archive.read_lines(path)
            if isinstance(line, archive.RunLine)
        )
        is_any = any(one.advice.startswith(FORGOTTEN) for one in self.store.exposures.decisions())
        gone = self._parts.forgetting.forgotten(held) if is_any else []
        settings = self._parts.settings
        keyed = None if settings.is_in_memory and not settings.keyed_root else self.keyed.add
        with TemporaryDirectory(prefix="contextgraph-") as folder, self.batch():
            if gone:
                left = Path(folder, "left.jsonl")
                archive_without(Holdings(tuple(gone)), path, settings, left)
                path = left
            done = archive.import_memory(
                self.store, path, vectors=vectors, progress=progress, keyed=keyed
            )
            self._trigger.after_importing()
        done.forgotten = len(gone)
        active = self.store.vectors.active_space()
        if active and is_fitted(active.name):
            self.spaces.catch_up()
            done.vectors_of = ""
        return done

    def health(self, *, quick: bool = False) -> Sequence[HealthCheck]:
        """Check the store and the models; each failed check names a remedy.

        With *quick* it does not read all stored data, write, or call a model.
        """
        checks = [*self.store.admin.health(quick=quick)]
        if all(check.ok for check in checks):
            models = () if quick else self.spaces.health()
            # What was said is summed up, which reads a number of each passage.
            said = () if quick else self._said_health()
            checks += [*self._notes_health(), *said, *models]
            checks += self.consolidator.health()
        chat = self._parts.chat
        return [*checks, chat.health()] if chat and not quick else checks

    def _notes_health(self) -> Iterator[HealthCheck]:
        """Check that notes can be read, and their index of vectors, where one is set."""
        index = self._parts.note_index
        try:
            count = sum(self.store.notes.counts().values())
            found = f", {number_of(index.count(), 'vector')} at {index.name}" if index else ""
        except MemoryNotFoundError:  # nothing was written yet
            return
        except ContextGraphError as error:
            yield HealthCheck("notes", False, str(error), "see docs/notes.md")
        else:
            yield HealthCheck("notes", True, number_of(count, "note") + found)

    def _said_health(self) -> Iterator[HealthCheck]:
        """Name the size of what is kept of all that was said."""
        counts = self.store.passages.counts()
        size = f"{number_of(counts.passages, 'passage')}, {counts.characters / 1e6:,.1f} MB of text"
        waiting = self.store.waiting_passages()
        waits = f", {waiting:,} wait for a vector: contextgraph call embed" if waiting else ""
        yield HealthCheck("said", True, f"{size}{waits}")

    def close(self) -> None:
        """Close files and connections, even if the record of shown advice cannot be stored.

        Waits for consolidation in the background.
        """
        try:
            if "_trigger" in vars(self):
                self._trigger.wait()
            self.note_exposures()
            if not self._parts.read_only and "notes" in vars(self._parts):
                self.notes.count_recalls()
        finally:
            self._parts.close()
            self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.close()


def _readable(
    raws: Iterable[RawTrajectory | Mapping[str, Any]],
    admitted: Callable[[RawTrajectory], RawTrajectory],
    on_error: Callable[[ReadError], None],
) -> Iterator[RawTrajectory]:
    """The runs among *raws* that are *admitted*, and in its dicts; *on_error* gets the errors."""
    rest = iter(raws)
    for number in count(1):
        try:
            item = next(rest)
        except StopIteration:
            return
        except ReadError as error:
            on_error(error)
            continue
        for run in [item] if isinstance(item, RawTrajectory) else _runs_in(item, number):
            try:
                if isinstance(run, ReadError):
                    raise run
                admitted_run = admitted(run)
            except ReadError as error:
                on_error(error)
            else:
                yield admitted_run


def _runs_in(row: Mapping[str, Any], number: int) -> Iterator[RawTrajectory | ReadError]:
    """The runs in *row*, which is the given *number* of those to learn, and an error for none."""
    from contextgraph.readers.format import Place
    from contextgraph.readers.formats import runs_in

    if not isinstance(row, Mapping):
        raise InvalidArgumentError(
            f"record {number}: Expected RawTrajectory or a mapping, got {quoted(row, 100)}"
        )
    return runs_in(dict(row), Place("learn", number, "record"))


def _expect_path(path: str) -> None:
    """Raise `ReadError` where there is nothing at *path*; a pattern or an address may be empty."""
    if not path:
        raise ReadError("learn", "", "an empty path; name a file or a folder of logs")
    if not any(mark in path for mark in ("*", "?", "[", "://")) and not os.path.exists(path):
        raise ReadError(path, "", "no such file or folder")


def _raise(error: ReadError) -> None:
    raise error


def _is_of_splits(value: Mapping[str, Any]) -> bool:
    """Return True for a data set of several splits, whose values are no values of JSON."""
    json = (str, int, float, Mapping, Sequence, type(None))
    return bool(value) and not any(isinstance(part, json) for part in value.values())


def _leave_out(error: ReadError) -> None:
    logging.getLogger(__name__).warning("left out: %s", error)

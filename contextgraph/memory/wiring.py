"""Builds the parts of a memory from settings; the only module that imports adapters."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from copy import copy
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import fields

from contextgraph.config import GRAPH, Configuration, Settings, usage_log_file, vector_cache_file
from contextgraph.errors import OF_STORE, SettingsError, StoreUnavailableError
from contextgraph.model import MaintenancePolicy, Recollection, Strategy
from contextgraph.model.values import replace
from contextgraph.store.memory_store import ExposureStore, Store, current_name
from contextgraph.store.protocols import Embedder, VectorIndex
from contextgraph.store.sessions import OpenExposures, SharedExposures
from contextgraph.system.processes import CachedPart, load

# A query needs few of the parts; each is imported when it is made.
if TYPE_CHECKING:
    from contextgraph.advising.channels import Channel
    from contextgraph.advising.gate import Gate
    from contextgraph.advising.loops import LoopDetector
    from contextgraph.advising.pipeline import MemoryRetriever
    from contextgraph.inference.chat import Chat, ConflictJudge
    from contextgraph.inference.spaces import ActiveEmbedder, EmbedderFactory, EmbeddingSpaceManager
    from contextgraph.knowledge.keyed import CurrentEntry, KeyedMemory
    from contextgraph.knowledge.lessons import Lessons
    from contextgraph.knowledge.notes import Notes
    from contextgraph.knowledge.sessions import ItemFile
    from contextgraph.learning import Forgetting, MemoryWriter, Repositories
    from contextgraph.learning.consolidator import MemoryConsolidator
    from contextgraph.learning.distilling import Distiller, DistilLog, DistilQueue
    from contextgraph.learning.statistics import StatisticsEngine
    from contextgraph.system.remote import Budget, Endpoint, RetryPolicy, UsageLog

# What the first run that is learned needs.
_LATER = ("tomllib", "contextgraph.text.secret_rules")
_SERVERS = ("neo4j", "bolt")
_ADDRESSES = "a file, :memory:, networkx:, neo4j://HOST:PORT or bolt://HOST:PORT"

# Escape suggestions are found by the error, or else by the task.
_OF_LOOPS = ("error", "task")


class Parts:
    """All that a memory is made of, sharing one store; a part is made when it is first used.

    *settings* say what is not made here. *note_index* has the vectors of notes, where that is not
    the store. Without models texts are compared by their words.
    """

    def __init__(
        self,
        store: Store,
        settings: Settings,
        now: Callable[[], datetime],
        *,
        read_only: bool = False,
        with_models: bool = True,
        note_index: VectorIndex | None = None,
    ) -> None:
        self.store = store
        self.settings = settings
        self.now = now
        self.read_only = read_only
        self.note_index = note_index
        self.before_forgetting: Callable[[], None] = lambda: None
        """Called before notes are forgotten."""
        self._with_models = with_models

    def for_readers(self) -> "Parts":
        """Return these parts for callers that may only read: nothing that they do is recorded."""
        # Made before they are copied: both use the same.
        _ = self.retriever, self.spaces, self.stats, self.loop_detector
        parts = copy(self)
        parts.read_only = True
        parts.notes = self.notes.without_counts()
        return parts

    def check(self) -> None:
        """Make what the settings choose; raises `SettingsError` for what cannot be."""
        if self.settings.embedder:
            _ = self.learning_embedder, self.embedder
        if self.settings.summarizer or self.settings.conflict_judge:
            _ = self.chat, self.conflict_judge
        if self.settings.configuration != Configuration():
            _ = self.retriever

    def close(self) -> None:
        """Release all but the store."""
        if "endpoint" in vars(self):
            self.endpoint.close()

    @CachedPart
    def usage_log(self) -> "UsageLog":
        from contextgraph.system.remote import UsageLog

        return UsageLog(Path(usage_log_file()), self.settings.address)

    @CachedPart
    def budget(self) -> "Budget":
        """Bound what is spent on models."""
        from contextgraph.system.remote import Budget

        return Budget(self.settings.max_cost)

    @CachedPart
    def endpoint(self) -> "Endpoint":
        """The server of models."""
        from contextgraph.system.remote import MODELS_ADDRESS, Endpoint

        settings, key = self.settings, self.settings.embedding_api_key
        try:
            return Endpoint(
                settings.api_url, settings.secret_for(settings.api_url, key, MODELS_ADDRESS)
            )
        except SettingsError:
            if settings.embedder or settings.summarizer or settings.conflict_judge:
                raise
            return Endpoint(settings.api_url)  # the variables are there for other programs

    @CachedPart
    def embedders(self) -> "EmbedderFactory":
        from contextgraph.inference.api import EmbeddingCosts, VectorCache
        from contextgraph.inference.spaces import EmbedderFactory

        cache = VectorCache(Path(vector_cache_file()))
        costs = EmbeddingCosts(cache, self.usage_log, self.budget)
        return EmbedderFactory(self.endpoint, costs, self.settings.embedding_price)

    @CachedPart
    def learning_embedder(self) -> "ActiveEmbedder":
        """Embeds what is learned, and begins a space where there is none."""
        from contextgraph.system.remote import BACKGROUND

        return self._embedder(BACKGROUND, initialize=True)

    @CachedPart
    def embedder(self) -> "ActiveEmbedder":
        """Embeds questions."""
        from contextgraph.system.remote import INTERACTIVE

        return self._embedder(INTERACTIVE, initialize=False)

    def _embedder(self, policy: "RetryPolicy", *, initialize: bool) -> "ActiveEmbedder":
        from contextgraph.inference.spaces import ActiveEmbedder

        name = self.settings.embedder
        chosen = self.embedders.create(name, policy) if name else None
        return ActiveEmbedder(
            self.store, self.embedders, chosen, policy=policy, initialize=initialize
        )

    def _learning_embedder(self) -> Embedder | None:
        return self.learning_embedder()

    def _question_embedder(self) -> Embedder | None:
        return self.embedder() if self._with_models else None

    @CachedPart
    def chat(self) -> "Chat | None":
        """The language model that words methodologies."""
        return self.chat_of(self.settings.summarizer)

    @CachedPart
    def conflict_judge(self) -> "ConflictJudge | None":
        if (chat := self.chat_of(self.settings.conflict_judge)) is None:
            return None
        from contextgraph.inference.chat import ConflictJudge
        from contextgraph.system.remote import JUDGING

        return ConflictJudge(replace(chat, policy=JUDGING))

    def chat_of(self, chosen: str) -> "Chat | None":
        """Return the language model *chosen*; None for none, and for the template.

        Raises `SettingsError` for an unknown name, and for a model without a price where *max_cost*
        is set.
        """
        if not chosen:
            return None
        from contextgraph.inference.chat import Chat, Prices, chat_model, model_in
        from contextgraph.system.remote import BACKGROUND, SLOW_MODEL

        name, settings = model_in(chosen), self.settings
        if name is None:
            return None
        model = chat_model(name, Prices(settings.prompt_price, settings.answer_price))
        if settings.max_cost is not None and not model.prices.are_known:
            raise SettingsError(
                f"--max-cost needs the prices of {model.full_name}; set prompt_price and "
                "answer_price in contextgraph.toml (US dollars for a million tokens)"
            )
        return Chat(
            model, self.endpoint, self.usage_log, self.budget, SLOW_MODEL, interactive=BACKGROUND
        )

    @CachedPart
    def notes(self) -> "Notes":
        from contextgraph.knowledge.notes import Notes

        keyed = partial(_keyed_entries, self.settings, self.now)
        questions, judge = self._question_embedder, self.conflict_judge
        learning = self._learning_embedder
        notes = Notes(
            self.store.notes, self.now, learning, questions, judge, keyed, self._distrusted,
            self.store.passages.word_counts,
        )  # fmt: skip
        notes.before_forgetting = self._before_forgetting
        notes.asked = self._asked
        return notes

    def _asked(
        self, question: str, repo: str | None, limit: int, strategy: Strategy
    ) -> tuple[Recollection, ...]:
        """Return what a search finds that is a note, or was said in a session."""
        from contextgraph.knowledge.search import Within, answers, as_notes

        store, notes = self.store, self.notes
        within = Within(current_name(store.runs, repo) if repo else None)
        # Remedies are found as well.
        found = answers(
            store, notes, question, within, self.now(), limit=2 * limit, strategy=strategy
        )
        return as_notes(store, notes, found)[:limit]

    def _distrusted(self) -> frozenset[str]:
        return self.store.exposures.record([]).distrusted

    def _before_forgetting(self) -> None:
        self.before_forgetting()

    @CachedPart
    def lessons(self) -> "Lessons":
        from contextgraph.knowledge.lessons import Lessons

        named = partial(current_name, self.store.runs)
        return Lessons(self.notes, self.store.notes, self.now, named)

    @CachedPart
    def channels(self) -> "Mapping[str, Channel]":
        """The channels that the configuration chooses, by name."""
        from contextgraph.advising.channels import CHANNELS, by_lessons, by_notes, by_sessions

        known = {
            **CHANNELS,
            "notes": by_notes(lambda: self.notes),
            "lessons": by_lessons(lambda: self.lessons),
            "sessions": by_sessions(lambda: self.notes),
        }
        chosen = self.settings.configuration.channels or tuple(known)
        _check(self.settings, "channel", chosen, known)
        return {name: known[name] for name in chosen if self._with_models or name != "semantic"}

    @CachedPart
    def retriever(self) -> "MemoryRetriever":
        from contextgraph.advising.pipeline import MemoryRetriever

        return MemoryRetriever(
            self.store,
            self._question_embedder,
            channels=self.channels,
            gate=_gate(self.settings),
            weights=_weights(self.settings),
            clock=self.now,
        )

    @CachedPart
    def loop_detector(self) -> "LoopDetector":
        from contextgraph.advising.loops import LoopDetector

        return LoopDetector(
            self.store, _retriever_in_loops(self.store, self.settings, self.channels)
        )

    @CachedPart
    def writer(self) -> "MemoryWriter":
        from contextgraph.learning import MemoryWriter

        load(*_LATER)
        learning, source = self.learning_embedder, self.settings.source
        keeps_said = self.settings.conversations != "off"
        return MemoryWriter(
            self.store, learning, clock=self.now, source=source, keeps_said=keeps_said
        )

    @CachedPart
    def repositories(self) -> "Repositories":
        from contextgraph.learning import Repositories

        return Repositories(self.store, self.writer)

    @CachedPart
    def forgetting(self) -> "Forgetting":
        """Remove all words of runs, sessions, sources and repositories."""
        from contextgraph.learning import Forgetting

        return Forgetting(self.store, self.writer, self.lessons, self.notes, self.now)

    @CachedPart
    def stats(self) -> "StatisticsEngine":
        from contextgraph.learning.statistics import StatisticsEngine

        return StatisticsEngine(self.store, self.usage_log.totals)

    @CachedPart
    def consolidator(self) -> "MemoryConsolidator":
        from contextgraph.inference.answering import ModelAnswerer
        from contextgraph.learning.consolidator import MemoryConsolidator

        model = ModelAnswerer(self.chat) if self.chat else None
        embeds = self.settings.node_vectors != "off"
        learning = self.learning_embedder
        days = self.settings.said_retention
        return MemoryConsolidator(
            self.store,
            learning,
            clock=self.now,
            model=model,
            embeds_nodes=embeds,
            max_said=self.settings.max_said,
            said_retention=timedelta(days=days) if days else None,
        )

    def distiller(self) -> "Distiller":
        """Distils lessons and methodologies; made for one worker, which holds the lock of its log.

        What others have distilled by then is known to it.
        """
        from contextgraph.learning.distilling import Distiller

        return Distiller(
            self.store.runs,
            self.lessons,
            lambda: self.consolidator,
            self.distil_log,
            self.settings.distil_tokens,
        )

    @CachedPart
    def distil_log(self) -> "DistilLog":
        from contextgraph.learning.distilling import DistilLog

        return DistilLog(self.settings)

    @CachedPart
    def distil_queue(self) -> "DistilQueue":
        from contextgraph.learning.distilling import DistilQueue

        return DistilQueue(self.distil_log, self.distiller, self.settings.distil)

    @CachedPart
    def spaces(self) -> "EmbeddingSpaceManager":
        from contextgraph.inference.spaces import EmbeddingSpaceManager

        return EmbeddingSpaceManager(
            self.store, self.embedders, self.settings.embedder, self.embedder, self.now
        )


_now: Callable[[], datetime] = partial(datetime.now, UTC)


def build(
    settings: Settings,
    *,
    read_only: bool = False,
    create: bool = True,
    with_models: bool = True,
    sessions: OpenExposures | None = None,
    on_unavailable: Callable[[StoreUnavailableError], None] = lambda error: None,
    clock: Callable[[], datetime] = _now,
) -> Parts:
    """Return the parts of the memory that *settings* describe; nothing is opened until first used.

    With *read_only*, or without *create*, a memory that does not exist is not created: the first
    use raises `MemoryNotFoundError`. Without models texts are compared by their words.
    What is shown in sessions of agents is shared with *sessions*: see `SharedExposures`.
    """
    store = _store(settings, read_only=read_only, create=create)
    if settings.is_remote and os.path.exists(settings.local_file):
        sessions = partial(_exposures_of_hooks, settings.local_file)
    if sessions is not None:
        store.exposures = SharedExposures(store.exposures, sessions, on_unavailable)
    index = _index_notes(store, settings) if settings.notes else None
    parts = Parts(
        store, settings, clock, read_only=read_only, with_models=with_models, note_index=index
    )
    parts.check()
    return parts


def maintenance_policy(settings: Settings) -> MaintenancePolicy:
    """Return how many notes maintenance keeps, and for how long."""

    retention = timedelta(days=settings.note_retention)
    return MaintenancePolicy(max_notes=int(settings.max_notes), retention=retention)


def _retriever_in_loops(
    store: Store, settings: Settings, channels: "Mapping[str, Channel]"
) -> "MemoryRetriever":
    """In a loop anything new may help: what was uncertain is not held back."""
    from contextgraph.advising.pipeline import MemoryRetriever

    used = {name: channel for name, channel in channels.items() if name in _OF_LOOPS}
    gate = replace(_gate(settings), min_precision=0.0)
    return MemoryRetriever(store, channels=used, gate=gate, weights=_weights(settings))


def keyed_memory(settings: Settings, clock: Callable[[], datetime] = _now) -> "KeyedMemory":
    """Return the keyed files of *settings*; nothing is created until something is set."""
    from contextgraph.knowledge.keyed import KeyedMemory

    return KeyedMemory(Path(settings.keyed_folder), clock=clock)


def _keyed_entries(settings: Settings, clock: Callable[[], datetime]) -> "list[CurrentEntry]":
    """The entries of keyed files in force; none where nothing was set."""
    return keyed_memory(settings, clock).current() if has_keyed(settings) else []


def has_keyed(settings: Settings) -> bool:
    """Return whether keyed files may exist; a memory in RAM has no folder for them."""
    with suppress(SettingsError):
        return os.path.isdir(settings.keyed_folder)
    return False


def item_file(settings: Settings) -> "ItemFile":
    """Return the file of items and conversations: beside the memory, or with it in RAM."""
    from contextgraph.knowledge.sessions import ItemFile

    if settings.is_in_memory:
        return ItemFile(None)
    return ItemFile(Path(f"{settings.companion}.sessions.db"))


def _weights(settings: Settings) -> Mapping[str, float]:
    from contextgraph.advising.channels import WEIGHTS

    given = settings.configuration.weights
    _check(settings, "channel", given, WEIGHTS)
    if small := [name for name, weight in given.items() if weight <= 0]:
        raise SettingsError(
            f"configuration {settings.configuration.name}: the weight of {small[0]} must be above "
            "0; to do without it, leave it out of channels"
        )
    return {**WEIGHTS, **given}


def _gate(settings: Settings) -> "Gate":
    from contextgraph.advising.gate import Gate

    given = settings.configuration.gate
    _check(settings, "threshold", given, [item.name for item in fields(Gate)])
    return Gate(**given)


def _check(settings: Settings, what: str, given: Iterable[str], known: Iterable[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SettingsError(
            f"configuration {settings.configuration.name}: unknown {what} {unknown[0]!r}; "
            f"known: {', '.join(known)}"
        )


def _store(settings: Settings, *, read_only: bool, create: bool) -> Store:
    if settings.address == GRAPH:
        load("contextgraph.store.networkx")
        from contextgraph.store.networkx import NetworkxStore

        return NetworkxStore(settings.tenant)
    if settings.is_remote:
        _check_address(settings.address)
        load("contextgraph.store.neo4j", "neo4j")
        from contextgraph.store.neo4j import Neo4jStore

        return Neo4jStore(settings.address, settings.auth, settings.tenant, read_only)
    load("contextgraph.store.sqlite")
    from contextgraph.store.sqlite import SqliteStore

    address = settings.address
    # What only has keyed files is a memory as well: it reads as one without runs.
    if read_only and not os.path.exists(address) and has_keyed(settings):
        return SqliteStore(":memory:", settings.tenant)
    return SqliteStore(address, settings.tenant, read_only, create)


@contextmanager
def _exposures_of_hooks(path: str) -> Iterator[ExposureStore]:
    """Yield the exposures of hooks of this machine, which load no driver: in their copy *path*."""
    from contextgraph.store.sqlite import SqliteStore

    with closing(SqliteStore(path)) as copy:
        yield copy.exposures


def _index_notes(store: Store, settings: Settings) -> VectorIndex:
    """Search the vectors of notes in the index that the settings name, not in *store*."""
    load("contextgraph.store.vector_index")
    from contextgraph.store.vector_index import IndexedNotes

    index = _note_index(settings)
    store.notes = IndexedNotes(store.notes, index)
    return index


def _note_index(settings: Settings) -> VectorIndex:
    from contextgraph.store.vector_index import PostgresIndex, QdrantIndex
    from contextgraph.system.remote import NOTES_ADDRESS

    scheme, _, rest = settings.notes.partition("://")
    if scheme in ("postgresql", "postgres"):
        return PostgresIndex(settings.notes, settings.tenant)
    if scheme in ("qdrant+http", "qdrant+https"):
        url = f"{scheme.removeprefix('qdrant+')}://{rest}"
        key = settings.secret_for(url, settings.qdrant_key, NOTES_ADDRESS)
        return QdrantIndex(url, settings.tenant, key)
    raise SettingsError("the setting notes must begin with postgresql:// or qdrant+http(s)://")


def _check_address(address: str) -> None:
    """Raise `SettingsError` where no server can be meant, before a driver makes guesses."""
    from contextgraph.system.remote import STORE_ADDRESS, split_address

    if "@" in address:  # not repeated: it may hold a password, which may hold a slash
        raise SettingsError(
            "the address of the store holds a user; set CONTEXTGRAPH_NEO4J_USER and "
            "CONTEXTGRAPH_NEO4J_PASSWORD instead"
        )
    parts = split_address(address, STORE_ADDRESS)
    if parts.scheme in ("http", "https"):
        raise SettingsError(f"{address} is a service, and this {OF_STORE}")
    if parts.scheme.partition("+")[0] not in _SERVERS:
        raise SettingsError(
            f"{address}: no store is known as {parts.scheme}://; write {_ADDRESSES}"
        )

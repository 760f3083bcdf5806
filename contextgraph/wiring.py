"""Builds the parts of a memory from settings; the only module that imports adapters."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import fields

from contextgraph.advising.channels import (
    CHANNELS,
    WEIGHTS,
    Channel,
    by_notes,
    by_statements,
    no_embedder,
)
from contextgraph.advising.gate import Gate
from contextgraph.advising.loops import LoopDetector
from contextgraph.advising.pipeline import MemoryRetriever
from contextgraph.config import GRAPH, Settings, load_settings, usage_log_file, vector_cache_file
from contextgraph.embedding import (
    ActiveEmbedder,
    EmbedderFactory,
    EmbeddingCosts,
    EmbeddingSpaceManager,
    VectorCache,
)
from contextgraph.embedding.api import RemoteEmbedder, remote_model
from contextgraph.errors import OF_STORE, SettingsError, StoreUnavailableError
from contextgraph.knowledge import MaintenancePolicy, Notes, Statements
from contextgraph.knowledge.keyed import CurrentEntry, KeyedMemory
from contextgraph.knowledge.sessions import ItemFile
from contextgraph.learning import MemoryWriter
from contextgraph.learning.consolidator import MemoryConsolidator
from contextgraph.learning.statistics import StatisticsEngine
from contextgraph.llm import Chat, ConflictJudge, Prices, RemoteSummarizer, chat_model, model_in
from contextgraph.model import Exposure, Strategy
from contextgraph.ports import Embedder, EmbedderSource, ExposureStore, Store, VectorIndex
from contextgraph.processes import load
from contextgraph.remote import (
    BACKGROUND,
    INTERACTIVE,
    JUDGING,
    SLOW_MODEL,
    Budget,
    Endpoint,
    RetryPolicy,
    UsageLog,
)
from contextgraph.store.sessions import Sessions, SharedExposures
from contextgraph.values import replace

# What the first run that is learned needs.
_LATER = ("tomllib", "contextgraph.text.secret_rules")
_SERVERS = ("neo4j", "bolt")
_ADDRESSES = "a file, :memory:, networkx:, neo4j://HOST:PORT or bolt://HOST:PORT"

# Escape suggestions are found by the error, or else by the task.
_OF_LOOPS = ("error", "task")


class Parts(Struct, frozen=True):
    """All that a memory is made of, sharing one store; *settings* say what is not made here."""

    store: Store
    writer: MemoryWriter
    retriever: MemoryRetriever
    loop_detector: LoopDetector
    stats: StatisticsEngine
    consolidator: MemoryConsolidator
    spaces: EmbeddingSpaceManager
    chat: Chat | None
    now: Callable[[], datetime]
    notes: Notes
    statements: Statements
    settings: Settings
    read_only: bool = False
    note_index: VectorIndex | None = None


class EmbeddingClient(RemoteEmbedder):
    """Embeds texts by the API of OpenAI, with a key and a model: `embed` returns vectors.

    As an `EmbedderSource` it is the embedder that it returns.
    """

    def __init__(self, api_key: str = "", model: str = "text-embedding-3-small") -> None:
        settings = load_settings(embedding_api_key=api_key or None)
        costs = EmbeddingCosts(
            VectorCache(Path(vector_cache_file())),
            UsageLog(Path(usage_log_file()), settings.address),
            Budget(settings.max_cost),
        )
        endpoint = Endpoint(settings.api_url, settings.embedding_api_key)
        super().__init__(remote_model(model), endpoint, costs, INTERACTIVE)

    def __call__(self) -> Embedder:
        return self

    def calibrated(self, threshold: float | None) -> RemoteEmbedder:
        return RemoteEmbedder(self.model, self.endpoint, self.costs, self.policy, threshold)


_now: Callable[[], datetime] = partial(datetime.now, UTC)


def build(
    settings: Settings,
    *,
    read_only: bool = False,
    create: bool = True,
    with_models: bool = True,
    sessions: Sessions | None = None,
    on_unavailable: Callable[[StoreUnavailableError], None] = lambda error: None,
    clock: Callable[[], datetime] = _now,
) -> Parts:
    """The parts of the memory that *settings* describe; nothing is opened until first used.

    With *read_only*, or without *create*, a memory that does not exist is not created: the first
    use raises `MemoryNotFoundError`. Without models texts are compared by their words.
    What is shown in sessions of agents is shared with *sessions*: see `SharedExposures`.
    """
    load(*_LATER)
    store = _store(settings, read_only=read_only, create=create)
    if settings.is_remote and os.path.exists(settings.local_file):
        sessions = _SessionsOfHooks(settings.local_file)
    if sessions is not None:
        store.exposures = SharedExposures(store.exposures, sessions, on_unavailable)
    index = _index_notes(store, settings) if settings.notes else None
    usage_log = UsageLog(Path(usage_log_file()), settings.address)
    budget = Budget(settings.max_cost)
    endpoint = _endpoint(settings)
    costs = EmbeddingCosts(VectorCache(Path(vector_cache_file())), usage_log, budget)
    embedders = EmbedderFactory(endpoint, costs, settings.embedding_price)
    chat = _chat(settings.summarizer, settings, endpoint, usage_log, budget)
    judge = _judge(_chat(settings.conflict_judge, settings, endpoint, usage_log, budget))
    learning = _embedder(store, embedders, settings, BACKGROUND, initialize=True)
    querying = _embedder(store, embedders, settings, INTERACTIVE, initialize=False)
    keyed = partial(_keyed_entries, settings, clock)
    questions = querying if with_models else no_embedder
    notes = Notes(store.notes, clock, learning, questions, judge, keyed)
    statements = Statements(notes, store.notes, clock)
    known = {
        **CHANNELS,
        "notes": by_notes(partial(notes.recall, strategy=Strategy.NOTES)),
        "statements": by_statements(statements.for_request, statements.standing),
    }
    channels = _channels(settings, known)
    if not with_models:
        channels = {name: channel for name, channel in channels.items() if name != "semantic"}
    return Parts(
        store=store,
        writer=MemoryWriter(store, learning, clock=clock, source=settings.source),
        retriever=_retriever(store, settings, channels, questions, clock),
        loop_detector=LoopDetector(store, _retriever_in_loops(store, settings, channels)),
        stats=StatisticsEngine(store, usage_log.totals),
        consolidator=_consolidator(store, clock, learning, chat, settings),
        chat=chat,
        spaces=EmbeddingSpaceManager(store, embedders, settings.embedder, querying, clock),
        now=clock,
        notes=notes,
        statements=statements,
        settings=settings,
        read_only=read_only,
        note_index=index,
    )


def _endpoint(settings: Settings) -> Endpoint:
    key = settings.embedding_api_key
    try:
        return Endpoint(settings.api_url, settings.secret_for(settings.api_url, key))
    except SettingsError:
        if settings.embedder or settings.summarizer or settings.conflict_judge:
            raise
        return Endpoint(settings.api_url)  # the variables are there for other programs


def _judge(chat: Chat | None) -> ConflictJudge | None:
    return ConflictJudge(replace(chat, policy=JUDGING)) if chat else None


def maintenance_policy(settings: Settings) -> MaintenancePolicy:
    """How many notes maintenance keeps, and for how long."""
    retention = timedelta(days=settings.note_retention)
    return MaintenancePolicy(max_notes=int(settings.max_notes), retention=retention)


def _retriever(
    store: Store,
    settings: Settings,
    channels: Mapping[str, Channel],
    embedder: EmbedderSource,
    now: Callable[[], datetime],
) -> MemoryRetriever:
    gate, weights = _gate(settings), _weights(settings)
    return MemoryRetriever(
        store, embedder, channels=channels, gate=gate, weights=weights, clock=now
    )


def _retriever_in_loops(
    store: Store, settings: Settings, channels: Mapping[str, Channel]
) -> MemoryRetriever:
    """In a loop anything new may help: what was uncertain is not held back."""
    used = {name: channel for name, channel in channels.items() if name in _OF_LOOPS}
    gate = replace(_gate(settings), min_precision=0.0)
    return MemoryRetriever(store, channels=used, gate=gate, weights=_weights(settings))


def _consolidator(
    store: Store,
    now: Callable[[], datetime],
    embedder: ActiveEmbedder,
    chat: Chat | None,
    settings: Settings,
) -> MemoryConsolidator:
    model = RemoteSummarizer(chat) if chat else None
    embeds = settings.node_vectors != "off"
    return MemoryConsolidator(store, embedder, clock=now, model=model, embeds_nodes=embeds)


def keyed_memory(settings: Settings, clock: Callable[[], datetime] = _now) -> KeyedMemory:
    """The keyed files of *settings*; nothing is created until something is set."""
    return KeyedMemory(Path(settings.keyed_folder), clock=clock)


def _keyed_entries(settings: Settings, clock: Callable[[], datetime]) -> list[CurrentEntry]:
    """The entries of keyed files in force; none where nothing was set."""
    return keyed_memory(settings, clock).current() if has_keyed(settings) else []


def has_keyed(settings: Settings) -> bool:
    """Return whether keyed files may exist; a memory in RAM has no folder for them."""
    with suppress(SettingsError):
        return os.path.isdir(settings.keyed_folder)
    return False


def item_file(settings: Settings) -> ItemFile:
    """Where items and conversations are: beside the memory, or with it in RAM."""
    if settings.is_in_memory:
        return ItemFile(None)
    return ItemFile(Path(f"{settings.companion}.sessions.db"))


def _channels(settings: Settings, known: Mapping[str, Channel]) -> Mapping[str, Channel]:
    """Return the *known* channels that the configuration chooses, in its order; or all."""
    chosen = settings.configuration.channels or tuple(known)
    _check(settings, "channel", chosen, known)
    return {name: known[name] for name in chosen}


def _weights(settings: Settings) -> Mapping[str, float]:
    given = settings.configuration.weights
    _check(settings, "channel", given, WEIGHTS)
    if small := [name for name, weight in given.items() if weight <= 0]:
        raise SettingsError(
            f"configuration {settings.configuration.name}: the weight of {small[0]} must be above "
            "0; to do without it, leave it out of channels"
        )
    return {**WEIGHTS, **given}


def _gate(settings: Settings) -> Gate:
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


def _chat(
    chosen: str, settings: Settings, endpoint: Endpoint, usage_log: UsageLog, budget: Budget
) -> Chat | None:
    """The language model *chosen*; None for none, and for the template."""
    name = model_in(chosen)
    if name is None:
        return None
    model = chat_model(name, Prices(settings.prompt_price, settings.answer_price))
    if budget.max_cost is not None and not model.prices.are_known:
        raise SettingsError(
            f"--max-cost needs the prices of {model.full_name}; set prompt_price and answer_price "
            "in contextgraph.toml (US dollars for a million tokens)"
        )
    return Chat(model, endpoint, usage_log, budget, SLOW_MODEL, interactive=BACKGROUND)


def _embedder(
    store: Store,
    embedders: EmbedderFactory,
    settings: Settings,
    policy: RetryPolicy,
    *,
    initialize: bool,
) -> ActiveEmbedder:
    chosen = embedders.create(settings.embedder, policy) if settings.embedder else None
    return ActiveEmbedder(store, embedders, chosen, policy=policy, initialize=initialize)


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


class _SessionsOfHooks:
    """What hooks of this machine, which load no driver, showed: in their copy of a server."""

    def __init__(self, path: str) -> None:
        self._path = path

    @contextmanager
    def _exposures(self) -> Iterator[ExposureStore]:
        from contextgraph.store.sqlite import SqliteStore

        with closing(SqliteStore(self._path)) as copy:
            yield copy.exposures

    def add(self, exposures: Sequence[Exposure]) -> None:
        with self._exposures() as known:
            known.add(exposures)

    def of_session(self, session: str) -> Sequence[Exposure]:
        with self._exposures() as known:
            return known.of_session(session)

    def forget_session(self, session: str) -> None:
        with self._exposures() as known:
            known.forget_session(session)


def _index_notes(store: Store, settings: Settings) -> VectorIndex:
    """Search the vectors of notes in the index that the settings name, not in *store*."""
    load("contextgraph.store.vector_index")
    from contextgraph.store.vector_index import IndexedNotes

    index = _note_index(settings)
    store.notes = IndexedNotes(store.notes, index)
    return index


def _note_index(settings: Settings) -> VectorIndex:
    from contextgraph.store.vector_index import PostgresIndex, QdrantIndex

    scheme, _, rest = settings.notes.partition("://")
    if scheme in ("postgresql", "postgres"):
        return PostgresIndex(settings.notes, settings.tenant)
    if scheme in ("qdrant+http", "qdrant+https"):
        url = f"{scheme.removeprefix('qdrant+')}://{rest}"
        return QdrantIndex(url, settings.tenant, settings.secret_for(url, settings.qdrant_key))
    raise SettingsError("the setting notes must begin with postgresql:// or qdrant+http(s)://")


def _check_address(address: str) -> None:
    """Raise `SettingsError` where no server can be meant, before a driver makes guesses."""
    parts = urlsplit(address)
    if "@" in address:  # not repeated: it may hold a password, which may hold a slash
        raise SettingsError(
            "the address of the store holds a user; set CONTEXTGRAPH_NEO4J_USER and "
            "CONTEXTGRAPH_NEO4J_PASSWORD instead"
        )
    if parts.scheme in ("http", "https"):
        raise SettingsError(f"{address} is a service, and this {OF_STORE}")
    if parts.scheme.partition("+")[0] not in _SERVERS:
        raise SettingsError(
            f"{address}: no store is known as {parts.scheme}://; write {_ADDRESSES}"
        )
    try:
        _ = parts.port
    except ValueError as error:
        raise SettingsError(f"{address}: its port is not a number below 65536") from error

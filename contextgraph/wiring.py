"""From settings to parts: the one place that names adapters."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from functools import partial
from urllib.parse import urlsplit

from contextgraph.config import PLAIN, Settings, kept_vectors, spent
from contextgraph.consolidation import ConsolidationPolicy, MemoryConsolidator
from contextgraph.embedding import (
    ActiveEmbedder,
    Catalogue,
    Purse,
    SpaceKeeper,
    VectorCache,
    embedded,
)
from contextgraph.errors import SettingsError
from contextgraph.llm import (
    METHODOLOGIES,
    RUNS,
    Chat,
    Prices,
    RemoteEditor,
    TemplateSummarizer,
    chat_model,
    model_in,
)
from contextgraph.loops import LoopDetector
from contextgraph.ports import GraphStore
from contextgraph.remote import HASTY, PATIENT, THOUGHTFUL, Budget, Endpoint, Ledger, Patience
from contextgraph.retrieval import CHANNELS, WEIGHTS, Channel, Gate, MemoryRetriever
from contextgraph.stats import StatisticsEngine
from contextgraph.writing import MemoryWriter

_SERVERS = ("neo4j", "bolt")
_ADDRESSES = "a file, :memory:, neo4j://HOST:PORT or bolt://HOST:PORT"

# What a model may put into words; the last includes the first.
_SUMMARIZED = ("methodologies", "runs")

# What leads out of a loop goes by its error, or else by the task.
_OF_LOOPS = ("error", "task")


@dataclass(frozen=True, slots=True)
class Parts:
    """All that a memory is made of, sharing one store."""

    store: GraphStore
    writer: MemoryWriter
    retriever: MemoryRetriever
    loop_detector: LoopDetector
    stats: StatisticsEngine
    consolidator: MemoryConsolidator
    spaces: SpaceKeeper
    chat: Chat | None
    now: Callable[[], datetime]
    read_only: bool = False
    configuration: str = PLAIN


def build(
    settings: Settings,
    *,
    read_only: bool = False,
    create: bool = True,
    clock: Callable[[], datetime] | None = None,
) -> Parts:
    """The parts of the memory that *settings* describe; nothing is opened until first used.

    With *read_only*, or without *create*, a memory that does not exist is not created: the first
    use raises `MemoryNotFoundError`.
    """
    store = _store(settings, read_only=read_only, create=create)
    now = clock or _now
    ledger = Ledger(spent(), settings.address)
    channels, weights, gate = _channels(settings), _weights(settings), _gate(settings)
    of_loops = {name: channel for name, channel in channels.items() if name in _OF_LOOPS}
    endpoint = Endpoint(settings.api_url, settings.embedding_api_key)
    budget = Budget(settings.max_cost)
    purse = Purse(VectorCache(kept_vectors()), ledger, budget)
    catalogue = Catalogue(endpoint, purse, settings.embedding_price)
    chat = _chat(settings, endpoint, ledger, budget)
    retells = _summarizes_runs(settings)
    learning = _embedder(store, catalogue, settings, PATIENT, begins=True)
    asking = _embedder(store, catalogue, settings, HASTY, begins=False)
    return Parts(
        store=store,
        writer=MemoryWriter(store, now, partial(embedded, source=learning)),
        retriever=MemoryRetriever(store, channels, gate, asking, weights),
        loop_detector=LoopDetector(
            store,
            # What is said of a loop is said in general, without the names in it.
            MemoryRetriever(store, of_loops, replace(gate, other_names=True), weights=weights),
        ),
        stats=StatisticsEngine(store, ledger.totals),
        consolidator=MemoryConsolidator(
            store,
            TemplateSummarizer(),
            now,
            ConsolidationPolicy(),
            learning,
            RemoteEditor(METHODOLOGIES, chat) if chat else None,
            RemoteEditor(RUNS, chat) if chat and retells else None,
        ),
        chat=chat,
        spaces=SpaceKeeper(store, catalogue, settings.embedder, asking, now),
        now=now,
        read_only=read_only,
        configuration=settings.configuration.name,
    )


def _channels(settings: Settings) -> Mapping[str, Channel]:
    """The channels of the configuration, in its order."""
    chosen = settings.configuration.channels or tuple(CHANNELS)
    _check(settings, "channel", chosen, CHANNELS)
    return {name: CHANNELS[name] for name in chosen}


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
    _check(settings, "bound", given, [item.name for item in fields(Gate)])
    return Gate(**given)  # type: ignore[arg-type]  # numbers, by names checked above


def _check(settings: Settings, what: str, given: Iterable[str], known: Iterable[str]) -> None:
    unknown = [name for name in given if name not in known]
    if unknown:
        raise SettingsError(
            f"configuration {settings.configuration.name}: unknown {what} {unknown[0]!r}; "
            f"known: {', '.join(known)}"
        )


def _chat(settings: Settings, endpoint: Endpoint, ledger: Ledger, budget: Budget) -> Chat | None:
    """The model that words; None where that is left to the template."""
    name = model_in(settings.summarizer)
    if name is None:
        return None
    model = chat_model(name, Prices(settings.prompt_price, settings.answer_price))
    if budget.max_cost is not None and not model.prices.are_known:
        raise SettingsError(
            f"--max-cost needs the prices of {model.full_name}; set prompt_price and answer_price "
            "in contextgraph.toml (US dollars for a million tokens)"
        )
    return Chat(model, endpoint, ledger, budget, THOUGHTFUL, hurried=PATIENT)


def _summarizes_runs(settings: Settings) -> bool:
    """Whether a model words runs as well."""
    if settings.summarize not in ("", *_SUMMARIZED):
        raise SettingsError(
            f"a model cannot summarize {settings.summarize!r}; write {' or '.join(_SUMMARIZED)}"
        )
    return settings.summarize == _SUMMARIZED[-1]


def _embedder(
    store: GraphStore, catalogue: Catalogue, settings: Settings, patience: Patience, *, begins: bool
) -> ActiveEmbedder:
    chosen = catalogue.named(settings.embedder, patience) if settings.embedder else None
    return ActiveEmbedder(store, catalogue, chosen, patience=patience, begins=begins)


def _store(settings: Settings, *, read_only: bool, create: bool) -> GraphStore:
    if settings.is_remote:
        _check_address(settings.address)
        from contextgraph.store.neo4j_store import Neo4jStore

        return Neo4jStore(settings.address, settings.auth, settings.tenant, read_only)
    from contextgraph.store.networkx_store import NetworkxStore

    return NetworkxStore(settings.address, settings.tenant, read_only, create)


def _check_address(address: str) -> None:
    """Raise `SettingsError` where no server can be meant, before a driver makes guesses."""
    parts = urlsplit(address)
    if "@" in parts.netloc:  # not said again: it may end with a password
        raise SettingsError(
            "the address of the store holds a user; set CONTEXTGRAPH_NEO4J_USER and "
            "CONTEXTGRAPH_NEO4J_PASSWORD instead"
        )
    if parts.scheme.partition("+")[0] not in _SERVERS:
        raise SettingsError(
            f"{address}: no store is known as {parts.scheme}://; write {_ADDRESSES}"
        )
    try:
        _ = parts.port
    except ValueError as error:
        raise SettingsError(f"{address}: its port is no number below 65536") from error


def _now() -> datetime:
    return datetime.now(UTC)

"""From settings to parts: the one place that names adapters."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from contextgraph.config import Settings
from contextgraph.consolidation import ConsolidationPolicy, MemoryConsolidator
from contextgraph.embedding import ActiveEmbedder, embedded
from contextgraph.errors import StoreUnavailableError
from contextgraph.llm import TemplateSummarizer
from contextgraph.loops import LoopDetector
from contextgraph.ports import GraphStore
from contextgraph.retrieval import CHANNELS, MemoryRetriever
from contextgraph.stats import StatisticsEngine
from contextgraph.writing import MemoryWriter


@dataclass(frozen=True, slots=True)
class Parts:
    """All that a memory is made of, sharing one store."""

    store: GraphStore
    writer: MemoryWriter
    retriever: MemoryRetriever
    loop_detector: LoopDetector
    stats: StatisticsEngine
    consolidator: MemoryConsolidator
    now: Callable[[], datetime]
    read_only: bool = False


def build(
    settings: Settings, *, read_only: bool = False, clock: Callable[[], datetime] | None = None
) -> Parts:
    """The parts of the memory that *settings* describe; nothing is opened until first used.

    With *read_only* a memory that does not exist is not created: the first use raises
    `MemoryNotFoundError`.
    """
    store = _store(settings, read_only=read_only)
    now = clock or _now
    embedder = ActiveEmbedder(store)
    return Parts(
        store=store,
        writer=MemoryWriter(store, now, partial(embedded, source=embedder)),
        retriever=MemoryRetriever(store, embedder=embedder),
        loop_detector=LoopDetector(store, MemoryRetriever(store, {"error": CHANNELS["error"]})),
        stats=StatisticsEngine(store),
        consolidator=MemoryConsolidator(
            store, TemplateSummarizer(), now, ConsolidationPolicy(), embedder
        ),
        now=now,
        read_only=read_only,
    )


def _store(settings: Settings, *, read_only: bool) -> GraphStore:
    if settings.is_remote:
        raise StoreUnavailableError(
            f"{settings.store}: this version has no Neo4j store yet; name a file instead"
        )
    from contextgraph.store.networkx_store import NetworkxStore

    return NetworkxStore(settings.address, tenant=settings.tenant, read_only=read_only)


def _now() -> datetime:
    return datetime.now(UTC)

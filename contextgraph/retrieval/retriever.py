"""Advising: state, channels, fusion, gate, context."""

from collections.abc import Mapping
from datetime import datetime
from functools import partial
from uuid import uuid4

from contextgraph.errors import ContextGraphError, StoreError
from contextgraph.model import MemoryContext, State
from contextgraph.ports import EmbedderSource, GraphStore
from contextgraph.retrieval.cases import cases_of
from contextgraph.retrieval.channels import CHANNELS
from contextgraph.retrieval.findings import Channel, Findings
from contextgraph.retrieval.fuse import WEIGHTS
from contextgraph.retrieval.gate import CONSERVATIVE, Gate
from contextgraph.retrieval.query import Query, no_embedder, query_of
from contextgraph.retrieval.solutions import solutions_of
from contextgraph.retrieval.suggestions import suggestions_of
from contextgraph.retrieval.warn import warnings_for


class MemoryRetriever:
    """Finds what a memory knows for a state."""

    def __init__(
        self,
        store: GraphStore,
        channels: Mapping[str, Channel] = CHANNELS,
        gate: Gate = CONSERVATIVE,
        embedder: EmbedderSource = no_embedder,
        weights: Mapping[str, float] = WEIGHTS,
    ) -> None:
        self._store = store
        self.channels = channels
        self.gate = gate
        self.weights = weights
        self._embedder = embedder

    def retrieve(
        self,
        state: State,
        limit: int = 5,
        *,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
    ) -> MemoryContext:
        """What fits *state*, at most *limit* items of a kind; a channel that fails is named.

        Raises `StoreError` where the store itself does not answer.
        """
        with self._store.snapshot():
            return self._context(state, limit, exclude_instances, as_of)

    def _context(
        self,
        state: State,
        limit: int,
        exclude_instances: frozenset[str],
        as_of: datetime | None,
    ) -> MemoryContext:
        query = query_of(state, self._store, exclude_instances, as_of, self._embedder)
        warnings = self._store.ahead(partial(warnings_for, query, self._store, self.gate, limit))
        found, degraded = self._ask(query)
        recoveries = {name: findings.recoveries for name, findings in found.items()}
        cases = {name: findings.cases for name, findings in found.items()}
        abstracted = {name: findings.methodologies for name, findings in found.items()}
        store, gate, weights = self._store, self.gate, self.weights
        solutions = store.ahead(
            partial(solutions_of, query, recoveries, gate, store, limit, weights)
        )
        similar = store.ahead(partial(cases_of, query, cases, gate, store, limit, weights))
        return MemoryContext(
            id=f"ctx_{uuid4().hex[:16]}",
            suggestions=suggestions_of(abstracted, gate, store, limit),
            error_solutions=solutions(),
            similar_cases=similar(),
            warnings=warnings(),
            degraded=degraded,
            error=query.signature,
        )

    def by_error(self, state: State, limit: int = 5) -> MemoryContext:
        """What the signature of `State.current_error` alone finds."""
        return self._by("error", state, limit)

    def by_task(self, state: State, limit: int = 5) -> MemoryContext:
        """What repository and type of task alone find."""
        return self._by("task", state, limit)

    def by_state(self, state: State, limit: int = 5) -> MemoryContext:
        """What phase and open file alone find."""
        return self._by("state", state, limit)

    def by_lexical(self, state: State, limit: int = 5) -> MemoryContext:
        """What the rare words of task and error alone find."""
        return self._by("lexical", state, limit)

    def by_semantic(self, state: State, limit: int = 5) -> MemoryContext:
        """What the meaning of task and error alone finds; nothing while there is no space."""
        return self._by("semantic", state, limit)

    def _by(self, channel: str, state: State, limit: int) -> MemoryContext:
        alone = {channel: self.channels.get(channel, CHANNELS[channel])}
        retriever = MemoryRetriever(self._store, alone, self.gate, self._embedder, self.weights)
        return retriever.retrieve(state, limit)

    def _ask(self, query: Query) -> tuple[dict[str, Findings], tuple[str, ...]]:
        found: dict[str, Findings] = {}
        degraded: list[str] = []
        asked = {
            name: self._store.ahead(partial(channel, query, self._store))
            for name, channel in self.channels.items()
        }
        for name, findings in asked.items():
            try:
                found[name] = findings()
            except StoreError:
                raise
            except ContextGraphError as error:
                degraded.append(f"{name}: {error}")
            else:
                if found[name].degraded:
                    degraded.append(f"{name}: {found[name].degraded}")
        return found, tuple(degraded)

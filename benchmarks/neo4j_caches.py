"""Queries to a Neo4j memory without each of its caches: what each cache saves."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from random import Random
from time import perf_counter
from typing import Any, TypeAlias
from unittest.mock import patch

from benchmarks.measure import Row, percentile
from contextgraph import AgentMemory, State
from contextgraph.model import WordCounts
from contextgraph.store.neo4j import search
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.search import CandidateCache, WordCountCache

# A class, the name of one of its methods, and what replaces it.
Replaced: TypeAlias = tuple[type, str, Callable[..., Any]]

STATES = 40
PASSES = 2


def rows(address: str, tenant: str, states: Sequence[State]) -> Iterator[Row]:
    """p50 and p95 of queries, the better of two passes, with all caches and without each."""
    chosen = states[len(states) // 3 :][:STATES]
    # Each memory has caches of its own, as if in a process of its own.
    memories = {name: AgentMemory.open(address, tenant=tenant) for name in VARIANTS}
    taken: dict[str, dict[int, list[float]]] = {name: {} for name in VARIANTS}
    for number in range(PASSES * len(chosen)):
        # Interleaved, so that other processes delay all of them equally.
        for name in Random(number).sample(list(VARIANTS), len(VARIANTS)):
            place = number % len(chosen)
            seconds = _query(memories[name], chosen[place], VARIANTS[name])
            taken[name].setdefault(place, []).append(seconds)
    for name, by_state in taken.items():
        best = sorted(min(seconds) for seconds in by_state.values())
        for share in (0.5, 0.95):
            label = f"query on Neo4j, {name}, p{share * 100:.0f}"
            yield Row(label, percentile(best, share) * 1000, "ms")
    for memory in memories.values():
        memory.close()


def _query(memory: AgentMemory, state: State, replaced: Replaced | None) -> float:
    with patch.object(*replaced) if replaced else nullcontext():
        started = perf_counter()
        memory.query(state)
        return perf_counter() - started


def _no_values(_: CandidateCache) -> object:
    return search._Values()


_counts = WordCountCache.counts


def _no_counts(self: WordCountCache, words: Sequence[str]) -> WordCounts:
    self._latest = search._Counts(-1, search.NEVER, {})
    return _counts(self, words)


# Which method is replaced by what.
VARIANTS: Mapping[str, Replaced | None] = {
    "all caches": None,
    "no values": (CandidateCache, "_current", _no_values),
    "no word counts": (WordCountCache, "counts", _no_counts),
    "no state": (Connection, "row_of_snapshot", Connection.row),
}

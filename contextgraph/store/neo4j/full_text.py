"""Words of texts, as in the full-text indexes, and their document frequencies."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple
from urllib.parse import quote

from contextgraph.model import WordCounts
from contextgraph.store import rules
from contextgraph.store.neo4j.cache import (
    NEVER,
    CacheGeneration,
    MemoryState,
    memory_state,
)
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.rows import Parameters
from contextgraph.text import words

# Counting costs a microsecond for each text that has the word: counts are cached until the memory
# has grown by so small a part that relevance, a logarithm, hardly changes.
_LAG = 0.01
_MAX_CACHED = 100_000


def indexed_text(
    tenant: str, repo: str, text: str, split: Callable[[str], Iterable[str]] = words
) -> str:
    """What is indexed of *text*: its tenant and repository, and each of its words once."""
    owners: Iterable[str] = (_owner(tenant, None), _owner(tenant, repo))
    return " ".join((*owners, *dict.fromkeys(split(text))))


def terms(
    tenant: str, repos: Collection[str] | None, weights: Mapping[str, int]
) -> list[Parameters]:
    """For each word its weight and a query for the texts with it: those of *repos*, or all."""
    return [
        {"word": word, "weight": weight, "query": _query(tenant, repos, word)}
        for word, weight in weights.items()
    ]


class _Counts(NamedTuple):
    """Counts of words among *total* texts."""

    total: int
    generation: CacheGeneration
    by_word: dict[str, int]

    def is_outdated(self, total: int, generation: CacheGeneration) -> bool:
        """True where they lag too far behind, or are too many."""
        grown = total - self.total
        is_full = len(self.by_word) > _MAX_CACHED
        return is_full or generation != self.generation or not 0 <= grown <= _LAG * self.total


class WordCountCache:
    """In how many texts of one kind words occur: *query* counts them, *total_of* all texts.

    Counts lag behind by at most 1 % of the texts; words that were unknown are counted again.
    """

    def __init__(
        self, connection: Connection, query: str, total_of: Callable[[MemoryState], int]
    ) -> None:
        self._connection, self._query, self._total_of = connection, query, total_of
        self._latest = _Counts(-1, NEVER, {})

    def counts(self, words: Sequence[str]) -> WordCounts:
        """How many texts there are, and in how many of them each of *words* occurs."""
        distinct = list(dict.fromkeys(words))
        state = memory_state(self._connection)
        total = self._total_of(state)
        latest = self._latest
        if latest.is_outdated(total, state.generation):
            latest = self._latest = _Counts(total, state.generation, {})
        known = {word: latest.by_word[word] for word in distinct if word in latest.by_word}
        counted = self._count([word for word in distinct if word not in known])
        latest.by_word.update({word: count for word, count in counted.items() if count})
        known |= counted
        return WordCounts(latest.total, {word: known[word] for word in distinct})

    def terms(self, words: Sequence[str], repo: str | None) -> list[Parameters]:
        """The rarest known ones of *words* with their weights, as `terms`."""
        counts = self.counts(words)
        weights = rules.word_weights(counts.total, counts.by_word)
        return terms(self._connection.tenant, None if repo is None else (repo,), weights)

    def _count(self, new: Sequence[str]) -> dict[str, int]:
        if not new:
            return {}
        words = terms(self._connection.tenant, None, dict.fromkeys(new, 0))
        return {
            row["word"]: row["count"] for row in self._connection.rows(self._query, words=words)
        }


def _query(tenant: str, repos: Collection[str] | None, word: str) -> str:
    """In the syntax of Lucene; no word and no owner has a quotation mark."""
    owners = " OR ".join(f'"{_owner(tenant, repo)}"' for repo in (repos or (None,)))
    return f'({owners}) AND "{word}"'


def _owner(tenant: str, repo: str | None) -> str:
    """The term that only texts of this tenant, or of this repository of it, have.

    No word has a ``@``, and what is quoted has no space.
    """
    return f"@{quote(tenant, safe='')}" + ("" if repo is None else f"@{quote(repo, safe='')}")

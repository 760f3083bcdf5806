"""Words of texts: as the full-text indexes contain them, and in how many texts they occur."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import NamedTuple
from urllib.parse import quote

from contextgraph.model import Note, Recovered, Trajectory, WordCounts
from contextgraph.store import rules
from contextgraph.store.neo4j.cache import NEVER, CacheGeneration, MemoryState, memory_state
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.rows import Parameters
from contextgraph.text import stems, words

# Counting costs a microsecond for each text that has the word: counts are cached until the memory
# has grown by so small a part that relevance, a logarithm, hardly changes.
_LAG = 0.01
_MAX_CACHED = 100_000
# For each kind of text: the query that counts a word, and how many texts there are.
_KINDS: Mapping[str, tuple[str, Callable[[MemoryState], int]]] = {
    "trajectory": ("trajectory_word_counts", attrgetter("trajectories")),
    "recovered": ("recovered_word_counts", attrgetter("recoveries")),
}


def text_of_trajectory(tenant: str, value: Trajectory) -> str:
    """The words by which a run is found, after those of its tenant and repository."""
    return _text(tenant, value.repo, rules.trajectory_text(value))


def text_of_recovered(tenant: str, repo: str, value: Recovered) -> str:
    """The words by which a recovery in a run of *repo* is found."""
    return _text(tenant, repo, rules.recovery_text(value.message, value.actions))


def text_of_note(tenant: str, value: Note) -> str:
    """The words by which a note is found."""
    return _text(tenant, value.repo, rules.note_text(value), stems)


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
    """In how many texts of one kind words occur.

    Counts lag behind by at most 1 % of the texts; words that were unknown are counted again.
    """

    def __init__(self, connection: Connection, kind: str) -> None:
        self._connection = connection
        self._query, self._total_of = _KINDS[kind]
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


def _text(tenant: str, repo: str, text: str, split: Callable[[str], Iterable[str]] = words) -> str:
    owners: Iterable[str] = (_owner(tenant, None), _owner(tenant, repo))
    return " ".join((*owners, *dict.fromkeys(split(text))))

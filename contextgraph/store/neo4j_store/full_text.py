"""Words of texts: as the full-text indexes hold them, how often they occur, what they are worth."""

import math
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from urllib.parse import quote

from contextgraph.model import Recovered, Trajectory
from contextgraph.store.neo4j_store import memory_state
from contextgraph.store.neo4j_store.memory_state import NEVER, Era, MemoryState
from contextgraph.store.neo4j_store.rows import Parameters
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.text import words

# Each further word costs as much as the one before it and says less: the rarest few decide.
MOST_WORDS = 8
# Counting costs a microsecond for each text that has the word: counts are kept until the memory
# has grown by so small a part that relevance, a logarithm, does not change by more.
_LAG = 0.01
_MOST_KEPT = 100_000
# For each kind of text: what counts a word, and how many there are.
_KINDS: Mapping[str, tuple[str, Callable[[MemoryState], int]]] = {
    "trajectory": ("trajectory_word_counts", attrgetter("trajectories")),
    "recovered": ("recovered_word_counts", attrgetter("recoveries")),
}


def text_of_trajectory(tenant: str, value: Trajectory) -> str:
    """The words by which a run is found, after those that say whose it is."""
    return _text(tenant, value.repo, f"{value.task}\n{value.summary}")


def text_of_recovered(tenant: str, repo: str, value: Recovered) -> str:
    """The words by which a recovery in a run of *repo* is found."""
    return _text(tenant, repo, f"{value.message}\n{value.what}")


def terms(tenant: str, repo: str | None, weights: Mapping[str, int]) -> list[Parameters]:
    """For each word its weight and a query for the texts that have it: those of *repo*, or all."""
    return [
        {"word": word, "weight": weight, "query": _query(tenant, repo, word)}
        for word, weight in weights.items()
    ]


class WordCounts:
    """In how many texts of one kind a word occurs, and what it is worth.

    Counts lag behind by at most 1 % of the texts; words that were unknown are counted anew.
    """

    def __init__(self, kind: str) -> None:
        self._query, self._of = _KINDS[kind]
        self._lock = threading.Lock()
        self._counts: dict[str, int] = {}
        self._total, self._era = -1, NEVER

    def total(self, transaction: Transaction) -> int:
        """How many texts there are."""
        return self._size(transaction)[0]

    def of(self, transaction: Transaction, asked: Sequence[str]) -> dict[str, int]:
        """Each distinct word of *asked* and its count, 0 for unknown ones."""
        return self._caught_up(transaction, asked)[0]

    def weights(self, transaction: Transaction, asked: Sequence[str]) -> dict[str, int]:
        """The rarest known words and what each is worth: 1,000 times the logarithm of its rarity.

        Whole numbers, so that a sum does not depend on the order of adding.
        """
        counts, total = self._caught_up(transaction, asked)
        known = sorted((count, word) for word, count in counts.items() if count)
        return {
            word: 1 + round(1000 * math.log((1 + total) / count))
            for count, word in known[:MOST_WORDS]
        }

    def _caught_up(
        self, transaction: Transaction, asked: Sequence[str]
    ) -> tuple[dict[str, int], int]:
        """The counts of *asked*, and of how many texts they are."""
        distinct = list(dict.fromkeys(asked))
        total, era = self._size(transaction)
        with self._lock:
            if self._is_outdated(total, era):
                self._counts, self._total, self._era = {}, total, era
            known = {word: self._counts[word] for word in distinct if word in self._counts}
            total = self._total
        counted = self._counted(transaction, [word for word in distinct if word not in known])
        with self._lock:
            if (self._total, self._era) == (total, era):
                self._counts |= {word: count for word, count in counted.items() if count}
        return {word: known.get(word) or counted[word] for word in distinct}, total

    def _is_outdated(self, total: int, era: Era) -> bool:
        grown = total - self._total
        is_full = len(self._counts) > _MOST_KEPT
        return is_full or era != self._era or not 0 <= grown <= _LAG * self._total

    def _counted(self, transaction: Transaction, new: Sequence[str]) -> dict[str, int]:
        if not new:
            return {}
        asked = terms(transaction.tenant, None, dict.fromkeys(new, 0))
        found = transaction.rows(self._query, words=asked)
        return {row["word"]: row["count"] for row in found}

    def _size(self, transaction: Transaction) -> tuple[int, Era]:
        state = memory_state.of(transaction)
        return self._of(state), state.era


def _query(tenant: str, repo: str | None, word: str) -> str:
    """In the syntax of Lucene; no word and no owner has a quotation mark."""
    return f'"{_owner(tenant, repo)}" AND "{word}"'


def _owner(tenant: str, repo: str | None) -> str:
    """The term that only texts of this tenant, or of this repository of it, have.

    No word has a ``@``, and what is quoted has no space.
    """
    return f"@{quote(tenant, safe='')}" + ("" if repo is None else f"@{quote(repo, safe='')}")


def _text(tenant: str, repo: str, text: str) -> str:
    owners: Iterable[str] = (_owner(tenant, None), _owner(tenant, repo))
    return " ".join((*owners, *dict.fromkeys(words(text))))

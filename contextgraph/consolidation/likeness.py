"""How much two texts say the same."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache

from contextgraph.embedding import is_fitted
from contextgraph.errors import EmbeddingError
from contextgraph.model import counted, first_remedy
from contextgraph.ports import EmbedderSource
from contextgraph.text import words
from contextgraph.vectors import cosines

_COUNTS = re.compile(r"\(\d+ of \d+ runs[^)]*\)|\b\d+\b")


@dataclass(frozen=True, slots=True)
class Likeness:
    """Compares advice, whatever its counts: by words, and by vectors of the memory's own space."""

    embedder: EmbedderSource

    def of(self, one: str, other: str) -> float:
        """How alike two strategies are, 0 to 1, as a whole and in what they say first.

        Of each the greater of Dice's coefficient and the cosine, of both the lesser: the same
        remedies in another order are other advice.
        """
        whole = self._likeness(counted(one), counted(other))
        return min(whole, self._likeness(first_remedy(one), first_remedy(other)))

    def _likeness(self, one: str, other: str) -> float:
        return max(dice(said(one), said(other)), self._cosine(one, other))

    def _cosine(self, one: str, other: str) -> float:
        try:
            embedder = self.embedder()
            # Pairs are many, and the bound is one of TF-IDF: others take too long, or cost money.
            if embedder is None or not is_fitted(embedder.space):
                return 0.0
            found = embedder.embed([_COUNTS.sub("", one), _COUNTS.sub("", other)])
        except EmbeddingError:  # the words decide alone; the next consolidation looks again
            return 0.0
        first, second = found.vectors
        return cosines(first, [second])[0] if first and second else 0.0


@lru_cache(8192)
def said(text: str) -> frozenset[str]:
    """The words of *text* without its counts."""
    return frozenset(words(_COUNTS.sub("", text)))


def dice(one: Collection[str], other: Collection[str]) -> float:
    """Dice's coefficient of two sets of words, 0 to 1."""
    shared = sum(word in other for word in one)
    return 2 * shared / (len(one) + len(other)) if one and other else 0.0

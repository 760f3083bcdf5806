"""BM25 over short texts, exact, growing as texts come in: the baseline to beat."""

from collections import Counter
from collections.abc import Callable, Sequence
from heapq import nsmallest
from math import log

from contextgraph.text import words

# Robertson & Zaragoza 2009, the usual constants. A library that indexes once would have to do so
# again before every judged run of an online evaluation.
_K1, _B = 1.2, 0.75


class Bm25:
    """Texts by the number of their arrival, from 0."""

    def __init__(self) -> None:
        self._postings: dict[str, list[tuple[int, int]]] = {}
        self._lengths: list[int] = []
        self._total = 0

    def add(self, text: str) -> None:
        """Take in the next text."""
        counts = Counter(words(text))
        for word, count in counts.items():
            self._postings.setdefault(word, []).append((len(self._lengths), count))
        self._lengths.append(counts.total())
        self._total += counts.total()

    def best(
        self, text: str, limit: int, is_visible: Callable[[int], bool]
    ) -> Sequence[tuple[float, int]]:
        """(score, number) of the texts most like *text*, best first, ties by number."""
        scores: dict[int, float] = {}
        mean = self._total / max(1, len(self._lengths))
        for word in dict.fromkeys(words(text)):
            postings = self._postings.get(word, [])
            weight = log(1 + (len(self._lengths) - len(postings) + 0.5) / (len(postings) + 0.5))
            for number, count in postings:
                norm = _K1 * (1 - _B + _B * self._lengths[number] / mean)
                gain = weight * count * (_K1 + 1) / (count + norm)
                scores[number] = scores.get(number, 0.0) + gain
        visible = ((score, number) for number, score in scores.items() if is_visible(number))
        return nsmallest(limit, visible, key=lambda found: (-found[0], found[1]))

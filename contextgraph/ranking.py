"""Pure functions for ranking: similarity of texts, fusion of rankings."""

from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from functools import lru_cache
from itertools import repeat
from math import exp, log
from typing import TypeVar

from contextgraph.model import ChannelRank
from contextgraph.text import words

# The head of an issue says what it is about; logs and code follow.
TASK_CHARS = 2_000
_REMEMBERED_TEXTS = 4_096

# BM25 (Robertson & Zaragoza 2009) with the usual constants; the reference length stands for the
# average document, which a growing memory would have to recompute.
_K1, _B, _REFERENCE_WORDS = 1.2, 0.75, 150

# Of reciprocal rank fusion (Cormack, Clarke & Büttcher 2009).
RRF_K = 60

Key = TypeVar("Key", bound=Hashable)


def rarity(having: int, texts: int) -> float:
    """How much a word says that is in *having* of *texts*: BM25's inverse document frequency.

    That is ln(1 + (N - n + 0.5) / (n + 0.5)).
    """
    return log(1 + (texts - having + 0.5) / (having + 0.5))


def overlap(query: Mapping[str, float], counted: Counter[str]) -> float:
    """How much of *query* (word -> weight) is *counted*, 0 to 1: BM25 over its maximum."""
    most = sum(query.values()) * (_K1 + 1)
    if not most:
        return 0.0
    norm = _K1 * (1 - _B + _B * counted.total() / _REFERENCE_WORDS)
    # In a fixed order: floating-point sums depend on it.
    shared = sorted(query.keys() & counted.keys())
    score = sum([query[word] * counted[word] / (counted[word] + norm) for word in shared])
    return score * (_K1 + 1) / most


# A word of a small collection is not rarer than in one of so many texts.
_FEWEST_TEXTS = 50


def shares(words: Collection[str], texts: Mapping[Key, Counter[str]]) -> list[tuple[float, Key]]:
    """How much of *words* each of *texts* shares, 0 to 1, rare words most; the most first."""
    met = Counter(word for counts in texts.values() for word in counts.keys() & {*words})
    number = max(_FEWEST_TEXTS, len(texts))
    weights = {word: rarity(met[word], number) for word in words}
    scores = [(overlap(weights, counts), key) for key, counts in texts.items()]
    shared = [pair for pair in scores if pair[0] > 0]
    return sorted(shared, key=lambda pair: (-pair[0], str(pair[1])))


def share_probability(share: float, rival: float, matched: int) -> float:
    """How likely a conversation is the one that a request is about.

    *share* of the request's rare words stand in it, *rival* in the next one; *matched* words do.
    Fitted on requests of a development part, on tasks of other projects, and on questions about
    nothing that was said.
    """
    if not matched:
        return 0.0
    margin = max(0.0, 1 - rival / share)
    return 1 / (1 + exp(7.9 - 36 * share - 2.5 * margin - 1.2 * log(matched / 4)))


def bm25(query: Collection[str], texts: Sequence[Counter[str]]) -> list[float]:
    """The BM25 of each of *texts* for the words *query*; they are the collection for their rarity.

    So stores that propose the same texts lead to the same scores.
    """
    lengths = [text.total() for text in texts]
    mean = sum(lengths) / max(1, len(texts)) or 1.0
    norms = [_K1 * (1 - _B + _B * (length / mean)) for length in lengths]
    scores = [0.0] * len(texts)
    # In a fixed order: floating-point sums depend on it.
    for word in sorted(set(query)):
        counts = list(map(dict.get, texts, repeat(word), repeat(0)))
        if met := len(counts) - counts.count(0):
            weight = rarity(met, len(texts))
            scores = [
                score + weight * count * (_K1 + 1) / (count + norm) if count else score
                for score, count, norm in zip(scores, counts, norms, strict=True)
            ]
    return scores


class FixedCounts(Counter[str]):
    """Counts that are not to be changed; their sum is computed once."""

    _total: int | None = None

    def total(self) -> int:
        """The sum of all counts."""
        if self._total is None:
            self._total = super().total()
        return self._total


@lru_cache(_REMEMBERED_TEXTS)
def word_counts(text: str) -> FixedCounts:
    """The words in the head of *text* with their counts, in order."""
    return FixedCounts(words(text[:TASK_CHARS]))


def dice(first: Collection[str], second: Collection[str]) -> float:
    """Dice's coefficient of two sets of words, 0 to 1."""
    shared = sum(word in second for word in first)
    return 2 * shared / (len(first) + len(second)) if first and second else 0.0


def ranks_in(
    rankings: Mapping[str, Sequence[tuple[Key, float]]],
) -> dict[Key, tuple[ChannelRank, ...]]:
    """Key -> its rank in each channel of *rankings* ((key, evidence), best first) that found it."""
    ranks: dict[Key, tuple[ChannelRank, ...]] = {}
    for name, ranking in rankings.items():
        for rank, (key, evidence) in enumerate(ranking, start=1):
            ranks[key] = (*ranks.get(key, ()), ChannelRank(name, rank, evidence))
    return ranks


def blend(
    scores: Mapping[Key, Mapping[str, float]], weights: Mapping[str, float]
) -> dict[Key, float]:
    """Key -> the weighted mean, 0 to 1, of its *scores* by channel.

    The channels are those of *weights*. The scores of each are divided by the greatest of them; a
    channel with no score above 0 is left out. 1 means that this key has the greatest score in each
    channel, or that no channel has any.

    A convex combination (Bruch, Gai & Ingber 2023): unlike ranks it keeps by how much one is better
    than the next.
    """
    most = {name: max((score[name] for score in scores.values()), default=0.0) for name in weights}
    shares = {name: weight / most[name] for name, weight in weights.items() if most[name] > 0}
    if not shares:
        return dict.fromkeys(scores, 1.0)
    total = sum(weights[name] for name in shares)
    return {
        key: sum(share * score[name] for name, share in shares.items()) / total
        for key, score in scores.items()
    }


def reciprocal_rank_fusion(
    rankings: Mapping[str, Sequence[Key]], k: int = RRF_K
) -> dict[Key, float]:
    """Key -> the sum of 1 / (k + rank) over the *rankings* (each best first), highest first.

    Ranks begin at 1. `blend` gives a better order where channels know by how much one item is
    better than the next: see docs/retrieval.md.
    """
    scores: dict[Key, float] = {}
    for ranking in rankings.values():
        for rank, key in enumerate(ranking, start=1):
            scores[key] = scores.get(key, 0.0) + 1 / (k + rank)
    return dict(sorted(scores.items(), key=lambda entry: -entry[1]))

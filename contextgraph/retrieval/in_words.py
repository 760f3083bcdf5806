"""In the semantic channel's place while nothing can be embedded: likeness in words."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, sqrt
from typing import TypeVar

from contextgraph.model import RecoveryCandidate
from contextgraph.ports import RetrievalStore
from contextgraph.retrieval.findings import OVERFETCH, Findings, case_hit, recovery_hit
from contextgraph.retrieval.query import Query, weights_of
from contextgraph.retrieval.score import word_counts

# As many as the channel has of vectors.
_NEAREST = 20

Item = TypeVar("Item")


def alike_in_words(query: Query, store: RetrievalStore, failure: str) -> Findings:
    """Runs and recoveries in scope that share words with *query*, ranked by TF-IDF similarity.

    *failure* says why vectors were not compared; it is handed on.
    """
    runs = store.trajectories_for_text(query.task_words, query.scope, OVERFETCH)
    tasks = _ranked(query.state.task_description, [(run.task, run) for run in runs], store)
    return Findings(
        recoveries=tuple(
            recovery_hit(query.signature, query.state.repo, candidate)
            for candidate, _ in _recoveries(query, store)
            if query.signature
        ),
        cases=tuple(case_hit(query, run, alike) for run, alike in tasks),
        degraded=f"{failure}; words are compared in the place of vectors",
    )


def _recoveries(query: Query, store: RetrievalStore) -> list[tuple[RecoveryCandidate, float]]:
    if query.signature is None:
        return []
    found = store.recoveries_for_text(query.error_words, query.scope, OVERFETCH)
    texts = [(candidate.recovered.message, candidate) for candidate in found]
    return _ranked(query.signature.message, texts, store)


def _ranked(
    asked: str, texts: Sequence[tuple[str, Item]], store: RetrievalStore
) -> list[tuple[Item, float]]:
    """The items whose texts are most like *asked*, with their similarity; ties as they came."""
    known = {word for text, _ in texts for word in word_counts(text)}
    rarity = weights_of(dict.fromkeys((*word_counts(asked), *sorted(known)), 1), store)
    like = _weighed(word_counts(asked), rarity)
    pairs = [(item, _cosine(like, _weighed(word_counts(text), rarity))) for text, item in texts]
    return sorted(pairs, key=lambda pair: -pair[1])[:_NEAREST]


def _weighed(counts: Counter[str], rarity: Mapping[str, float]) -> dict[str, float]:
    return {word: (1 + log(count)) * rarity[word] for word, count in counts.items()}


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    # In a fixed order: floating-point sums depend on it.
    shared = sum(one[word] * other[word] for word in sorted(one.keys() & other.keys()))
    lengths = _length(one) * _length(other)
    return shared / lengths if lengths else 0.0


def _length(weights: Mapping[str, float]) -> float:
    return sqrt(sum(weight * weight for weight in weights.values()))

"""The semantic channel: nearest vectors, or similar words while nothing can be embedded."""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import log, sqrt
from typing import TypeVar

from contextgraph.advising.query import (
    OVERFETCH,
    CaseHit,
    Findings,
    Query,
    case_hit,
    weights_of,
)
from contextgraph.errors import EmbeddingError, SpaceMismatchError
from contextgraph.model import Near, Trajectory
from contextgraph.model.bundle import TASK_CHARS
from contextgraph.ports import Store
from contextgraph.ranking import word_counts
from contextgraph.vectors import Vector, cosines

# As many as the channel has of vectors.
_NEAREST = 20

Scored = TypeVar("Scored")


def similar_in_words(query: Query, store: Store, failure: str) -> Findings:
    """Runs in scope that share words with the task of *query*, ranked by TF-IDF similarity.

    *failure* says why vectors were not compared; it is handed on.
    """
    runs = store.runs.for_text(query.task_words, query.scope, OVERFETCH)
    tasks = _ranked(query.state.task_description, [(run.task, run) for run in runs], store)
    return Findings(
        cases=tuple(case_hit(query, run, similarity) for run, similarity in tasks),
        degraded=f"{failure}; words are compared instead of vectors",
    )


def _ranked(
    target: str, texts: Sequence[tuple[str, Scored]], store: Store
) -> list[tuple[Scored, float]]:
    """The items whose texts are most like *target*, with their similarity; ties in given order."""
    known = {word for text, _ in texts for word in word_counts(text)}
    rarity = weights_of(dict.fromkeys((*word_counts(target), *sorted(known)), 1), store)
    like = _weighed(word_counts(target), rarity)
    pairs = [(item, _cosine(like, _weighed(word_counts(text), rarity))) for text, item in texts]
    return sorted(pairs, key=lambda pair: -pair[1])[:_NEAREST]


def _weighed(counts: Counter[str], rarity: Mapping[str, float]) -> dict[str, float]:
    return {word: (1 + log(count)) * rarity[word] for word, count in counts.items()}


def _cosine(left: Mapping[str, float], right: Mapping[str, float]) -> float:
    # In a fixed order: floating-point sums depend on it.
    shared = sum(left[word] * right[word] for word in sorted(left.keys() & right.keys()))
    lengths = _length(left) * _length(right)
    return shared / lengths if lengths else 0.0


def _length(weights: Mapping[str, float]) -> float:
    return sqrt(sum(weight * weight for weight in weights.values()))


# Nothing is over-fetched: the store ranks by what is the score here too.
NEAREST = 20


def by_semantic(query: Query, store: Store) -> Findings:
    """Past runs of a task like this one.

    Nothing for an error: what is near it in meaning says little of what clears it
    (docs/retrieval.md). Nothing while the memory has no space. Where the embedder fails, words are
    compared.
    """
    if query.is_at_error or not query.task_words:
        return Findings()
    try:
        return _search_with_retry(query, store)
    except EmbeddingError as error:
        return similar_in_words(query, store, str(error))


def _search_with_retry(query: Query, store: Store) -> Findings:
    try:
        return _search(query, store)
    except SpaceMismatchError:  # the memory was switched over just now: once more
        return _search(query, store)


def _search(query: Query, store: Store) -> Findings:
    embedder = query.embedder()
    if embedder is None:
        return Findings()
    (task,) = embedder.embed([query.state.task_description[:TASK_CHARS]]).vectors
    return Findings(cases=_cases(query, task, embedder.similarity_threshold, store))


AT_THRESHOLD = 0.3


def rescaled(cosine: float, threshold: float | None) -> float:
    """*cosine*, rescaled so that *threshold*, the one of its space, becomes 0.3 in each space.

    0 in a space whose threshold is not known: similarity alone then admits nothing.
    """
    if threshold is None:
        return 0.0
    if cosine <= threshold:
        return AT_THRESHOLD * max(cosine, 0.0) / threshold
    return AT_THRESHOLD + (1 - AT_THRESHOLD) * (cosine - threshold) / (1 - threshold)


def _by_cosine(target: Vector, near: Sequence[Near]) -> list[tuple[Trajectory, float]]:
    """What is near with its cosine, highest first; ties as the store gave them."""
    similarities = cosines(target, [neighbour.vector for neighbour in near])
    pairs = zip((neighbour.trajectory for neighbour in near), similarities, strict=True)
    return sorted(pairs, key=lambda pair: -pair[1])


def _cases(
    query: Query, task: Vector | None, threshold: float | None, store: Store
) -> tuple[CaseHit, ...]:
    if task is None:
        return ()
    runs = _by_cosine(task, store.vectors.nearest(task, query.scope, NEAREST))
    return tuple(case_hit(query, run, rescaled(cosine, threshold)) for run, cosine in runs)

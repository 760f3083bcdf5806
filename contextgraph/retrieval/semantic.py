"""The semantic channel: what lies near in the embedding space of the memory."""

from collections.abc import Sequence
from functools import partial
from typing import TypeVar

from contextgraph.errors import EmbeddingError, SpaceMismatchError
from contextgraph.model import Near
from contextgraph.model.embedding import TASK_CHARS
from contextgraph.ports import Embedder, RetrievalStore
from contextgraph.retrieval.findings import (
    CaseHit,
    Findings,
    MethodologyHit,
    RecoveryHit,
    case_hit,
    recovery_hit,
)
from contextgraph.retrieval.gate import CONSERVATIVE
from contextgraph.retrieval.in_words import alike_in_words
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.suggestions import asks_for_practices, practices_among
from contextgraph.vectors import Vector, cosines

# Nothing is over-fetched: the store ranks by what is the score here too.
NEAREST = 20

Item = TypeVar("Item")


def by_semantic(query: Query, store: RetrievalStore) -> Findings:
    """Past runs of a task like this one, recoveries in fragments like this moment, advice.

    Advice for errors is not searched by meaning: what is near an error says little of what clears
    it (docs/evaluation.md).

    Nothing while the memory has no space. Where the embedder fails, words are compared.
    """
    try:
        return _found_or_again(query, store)
    except EmbeddingError as error:
        return alike_in_words(query, store, str(error))


def _found_or_again(query: Query, store: RetrievalStore) -> Findings:
    try:
        return _found(query, store)
    except SpaceMismatchError:  # the memory was switched over just now: once more
        return _found(query, store)


def _found(query: Query, store: RetrievalStore) -> Findings:
    embedder = query.embedder()
    if embedder is None:
        return Findings()
    task, moment = _embedded(query, embedder)
    recoveries = store.ahead(partial(_recoveries, query, moment, store))
    methodologies = store.ahead(partial(_practices, query, task, store))
    cases = _cases(query, task, embedder.alike, store)
    return Findings(recoveries(), cases, methodologies())


def on_the_scale(cosine: float, alike: float | None) -> float:
    """*cosine*, stretched so that *alike*, the bound of its space, lies at that of the gate.

    0 in a space whose bound is not known: likeness alone then admits nothing.
    """
    if alike is None:
        return 0.0
    bound = CONSERVATIVE.similar_in_repo
    if cosine <= alike:
        return bound * max(cosine, 0.0) / alike
    return bound + (1 - bound) * (cosine - alike) / (1 - alike)


def _embedded(query: Query, embedder: Embedder) -> Sequence[Vector | None]:
    """The vectors of the task and of the error, None for what is not asked."""
    task = query.state.task_description[:TASK_CHARS] if query.task_words else ""
    error = query.signature.message if query.signature else ""
    texts = [text for text in (task, error) if text]
    vectors = iter(embedder.embed(texts).vectors if texts else ())
    return [next(vectors) if text else None for text in (task, error)]


def _by_cosine(asked: Vector, near: Sequence[Near[Item]]) -> list[tuple[Item, float]]:
    """What is near with its cosine, highest first; ties as the store gave them."""
    alike = cosines(asked, [one.vector for one in near])
    pairs = zip((one.item for one in near), alike, strict=True)
    return sorted(pairs, key=lambda pair: -pair[1])


def _cases(
    query: Query, task: Vector | None, alike: float | None, store: RetrievalStore
) -> tuple[CaseHit, ...]:
    if task is None:
        return ()
    runs = _by_cosine(task, store.nearest_trajectories(task, query.scope, NEAREST))
    return tuple(case_hit(query, run, on_the_scale(cosine, alike)) for run, cosine in runs)


def _recoveries(
    query: Query, moment: Vector | None, store: RetrievalStore
) -> tuple[RecoveryHit, ...]:
    if query.signature is None or moment is None:
        return ()
    near = _by_cosine(moment, store.nearest_recoveries(moment, query.scope, NEAREST))
    return tuple(recovery_hit(query.signature, query.state.repo, one) for one, _ in near)


def _practices(
    query: Query, task: Vector | None, store: RetrievalStore
) -> tuple[MethodologyHit, ...]:
    if task is None or not asks_for_practices(query):
        return ()
    advice = store.nearest_methodologies(task, query.scope, NEAREST)
    return practices_among(query, [one.item for one in advice])

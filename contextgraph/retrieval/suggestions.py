"""Methodologies for the error or the task, and the suggestions made of the latter."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import chain

from contextgraph.model import (
    ChannelRank,
    ErrorSignature,
    Methodology,
    RemedyAction,
    ScopeLevel,
    SignatureLevel,
    Suggestion,
    Why,
)
from contextgraph.model.embedding import TASK_CHARS
from contextgraph.ports import Store
from contextgraph.retrieval.credit import credits_for
from contextgraph.retrieval.gate import may_be_shown
from contextgraph.retrieval.query import MethodologyHit, Query
from contextgraph.text import subject_of, words

_MOST = 64
_NAMED_RUNS = 10

# What a methodology is about: of this very message, of this repository, of the error in general.
_OF_MESSAGE_HERE, _OF_MESSAGE, _OF_REPO, _GENERAL = 0.95, 0.85, 0.75, 0.6
# How much of the evidence depends on how well it is known to do.
_BY_CONFIDENCE = 0.25


def methodologies_for(query: Query, store: Store) -> tuple[MethodologyHit, ...]:
    """What was abstracted from earlier clearances of the error of *query*, best first."""
    signature = query.signature
    if signature is None:
        return ()
    found = store.methodologies.for_error(signature.variants(), query.scope, _MOST)
    hits = [MethodologyHit(one, _evidence(one)) for one in found if _fits(one, query, signature)]
    return _best_first(hits)


def practices_for(query: Query, store: Store) -> tuple[MethodologyHit, ...]:
    """What worked for tasks like that of *query* in its repository, best first."""
    if not asks_for_practices(query):
        return ()
    return practices_among(query, store.methodologies.for_task(query.task_type, query.scope, _MOST))


def asks_for_practices(query: Query) -> bool:
    """False where an error is asked about: then that is what matters."""
    return bool(not query.signature and query.state.repo and query.task_words)


def practices_among(query: Query, found: Iterable[Methodology]) -> tuple[MethodologyHit, ...]:
    """Those of *found* that are of no error, and about a task like that of *query*, best first."""
    mentioned = {"", *words(query.state.task_description[:TASK_CHARS])}
    return _best_first(
        MethodologyHit(one, _evidence(one))
        for one in found
        if not one.error_id
        and one.repo == query.state.repo
        and one.task_type in (None, query.task_type)
        and one.keyword in mentioned
    )


def suggestions_of(
    found: Mapping[str, Sequence[MethodologyHit]], store: Store, limit: int
) -> tuple[Suggestion, ...]:
    """What worked without an error of *found* (by channel), best first, each advice once."""
    hits = list(chain.from_iterable(found.values()))
    known = credits_for(store, [hit.methodology.id for hit in hits])
    ranks: dict[str, list[ChannelRank]] = {}
    for channel, ranked in found.items():
        for rank, hit in enumerate(ranked, start=1):
            why = ChannelRank(channel, rank, hit.evidence)
            ranks.setdefault(hit.methodology.id, []).append(why)
    shown: dict[RemedyAction | str, Suggestion] = {}
    for hit in hits:
        one = hit.methodology
        if may_be_shown(one) and not known.of(one.id).is_quarantined:
            suggestion = _suggestion(hit, tuple(ranks[one.id]), known.of(one.id).trust)
            shown.setdefault(_advice(one), suggestion)
    best = sorted(shown.values(), key=lambda one: (-one.score, one.id))[:limit]
    return tuple(replace(one, rank=rank) for rank, one in enumerate(best, start=1))


def _best_first(hits: Iterable[MethodologyHit]) -> tuple[MethodologyHit, ...]:
    return tuple(sorted(hits, key=lambda hit: (-hit.evidence, hit.methodology.id)))


def _fits(methodology: Methodology, query: Query, signature: ErrorSignature) -> bool:
    return (
        methodology.repo in (None, query.state.repo)
        and methodology.task_type in (None, query.task_type)
        and methodology.keyword in ("", subject_of(signature.message))
    )


def _evidence(methodology: Methodology) -> float:
    here = methodology.repo is not None
    if methodology.keyword:
        base = _OF_MESSAGE_HERE if here else _OF_MESSAGE
    else:
        base = _OF_REPO if here else _GENERAL
    return base * (1 - _BY_CONFIDENCE + _BY_CONFIDENCE * methodology.confidence)


def _advice(methodology: Methodology) -> RemedyAction | str:
    """What two methodologies with the same advice share: their first remedy."""
    if not methodology.remedies:
        return methodology.id
    return replace(methodology.remedies[0], parameters=())


def _suggestion(hit: MethodologyHit, ranks: tuple[ChannelRank, ...], trusted: float) -> Suggestion:
    one = hit.methodology
    return Suggestion(
        id=one.id,
        situation=one.situation,
        strategy=one.strategy,
        confidence=one.confidence,
        status=str(one.status),
        scope=ScopeLevel.GENERAL if one.repo is None else ScopeLevel.REPO,
        score=hit.evidence * trusted,
        why=Why(
            channels=ranks,
            scope=ScopeLevel.GENERAL if one.repo is None else ScopeLevel.REPO,
            support=one.support,
            trajectories=tuple(dict.fromkeys(s.trajectory_id for s in one.sources))[:_NAMED_RUNS],
            signature_level=SignatureLevel.TEMPLATE if one.error_id else None,
        ),
        remedies=one.remedies,
        advice=one.id,
    )

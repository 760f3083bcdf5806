"""From methodologies that resolve the error to the suggestions that are shown."""

from collections.abc import Mapping, Sequence
from itertools import chain

from contextgraph.governance import quarantined, trust
from contextgraph.model import (
    ChannelRank,
    ErrorSignature,
    Methodology,
    MethodologyStatus,
    ScopeLevel,
    SignatureLevel,
    Suggestion,
    Why,
)
from contextgraph.ports import ExposureStore, RetrievalStore
from contextgraph.retrieval.findings import MethodologyHit
from contextgraph.retrieval.gate import Gate
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.score import gist
from contextgraph.text import subject_of

_MOST = 64
_NAMED_RUNS = 10

# What a methodology is about: of this very message, of this repository, of the error in general.
_OF_MESSAGE_HERE, _OF_MESSAGE, _OF_REPO, _GENERAL = 0.95, 0.85, 0.75, 0.6
# How much of the evidence depends on how well it is known to do.
_BY_CONFIDENCE = 0.25


def methodologies_for(query: Query, store: RetrievalStore) -> tuple[MethodologyHit, ...]:
    """What was abstracted from earlier clearances of the error of *query*, best first."""
    signature = query.signature
    if signature is None:
        return ()
    asked = (
        store.methodologies_for_error(variant, query.scope, _MOST)
        for variant in signature.variants()
    )
    found = next(filter(None, asked), ())
    hits = [MethodologyHit(one, _evidence(one)) for one in found if _fits(one, query, signature)]
    return tuple(sorted(hits, key=lambda hit: (-hit.evidence, hit.methodology.id)))


def suggestions_of(
    found: Mapping[str, Sequence[MethodologyHit]], gate: Gate, store: ExposureStore, limit: int
) -> tuple[Suggestion, ...]:
    """What the gate admits of *found* (by channel), best first, each advice once."""
    hits = list(chain.from_iterable(found.values()))
    credit = store.credit([hit.methodology.id for hit in hits])
    shown: dict[str, Suggestion] = {}
    for channel, ranked in found.items():
        for rank, hit in enumerate(ranked, start=1):
            one = hit.methodology
            if gate.admits_methodology(one) and not quarantined(*credit[one.id]):
                why = ChannelRank(channel, rank, hit.evidence)
                said = _suggestion(hit, why, trust(*credit[one.id]))
                shown.setdefault(_advice(one), said)
    return tuple(sorted(shown.values(), key=lambda one: (-one.score, one.id))[:limit])


def _fits(methodology: Methodology, query: Query, signature: ErrorSignature) -> bool:
    return (
        methodology.repo in (None, query.state.repo)
        and methodology.task_type in (None, query.task_type)
        and methodology.keyword in ("", subject_of(signature.message))
        and methodology.status is not MethodologyStatus.QUARANTINED
    )


def _evidence(methodology: Methodology) -> float:
    here = methodology.repo is not None
    if methodology.keyword:
        base = _OF_MESSAGE_HERE if here else _OF_MESSAGE
    else:
        base = _OF_REPO if here else _GENERAL
    return base * (1 - _BY_CONFIDENCE + _BY_CONFIDENCE * methodology.confidence)


def _advice(methodology: Methodology) -> str:
    """What makes two methodologies the same advice: the gist of their first remedy."""
    first = methodology.strategy.partition(" (2) ")[0].removeprefix("(1) ")
    return gist(first)


def _suggestion(hit: MethodologyHit, rank: ChannelRank, trusted: float) -> Suggestion:
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
            channels=(rank,),
            scope=ScopeLevel.GENERAL if one.repo is None else ScopeLevel.REPO,
            support=one.support,
            trajectories=tuple(dict.fromkeys(s.trajectory_id for s in one.sources))[:_NAMED_RUNS],
            signature_level=SignatureLevel.TEMPLATE,
        ),
    )

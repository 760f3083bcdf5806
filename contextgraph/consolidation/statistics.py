"""How well a methodology does, compared with how the error goes without it."""

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter

from contextgraph.governance import Credit, confidence
from contextgraph.model import Methodology, MethodologyGroup, MethodologyStatus
from contextgraph.ports import Store
from contextgraph.retrieval import Credits, credits_for

_DIGITS = 4
_ALL_HOPS = 1_000


def credit_of_methodologies(store: Store, ids: Iterable[str]) -> Credits:
    """The credit of the methodologies *ids*; the same whichever others are among them."""
    return credits_for(store, ids, attrgetter("id"), hops=_ALL_HOPS)


def measured(methodology: Methodology, group: MethodologyGroup, known: Credits) -> Methodology:
    """*methodology* with its statistics from *group* and its credit."""
    credit = known.of(methodology.id)
    lift, rate, steps = _rates(group, methodology.support, credit)
    instances = {one.instance_id for one in group.clearances}
    sources = {one.contributor for one in group.clearances}
    is_active = known.is_active(len(instances), len(sources))
    return replace(
        methodology,
        status=_status(lift, credit, is_active=is_active),
        confidence=round(lift, _DIGITS),
        success_rate=round(rate, _DIGITS),
        avg_steps=round(steps, _DIGITS),
        success_count=credit.helped,
        failure_count=credit.failed,
    )


def _rates(group: MethodologyGroup, support: int, credit: Credit) -> tuple[float, float, float]:
    """Confidence, success rate and mean steps.

    Runs that never cleared the error may have tried this remedy: they count against it and against
    the base rate. Support and the times it was shown are both evidence for the confidence.
    """
    never = group.met - group.cleared
    lift = confidence(
        support + credit.helped,
        support + credit.helped + never + credit.failed,
        group.otherwise,
        group.cleared - support + never,
    )
    steps = [clearance.steps for clearance in group.clearances]
    return lift, support / (support + never), sum(steps) / len(steps)


def _status(lift: float, credit: Credit, *, is_active: bool) -> MethodologyStatus:
    if credit.is_quarantined:
        return MethodologyStatus.QUARANTINED
    return MethodologyStatus.ACTIVE if is_active and lift > 0 else MethodologyStatus.PROBATION

"""How well a methodology does, compared with how the error goes without it."""

from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter

from contextgraph.governance import Credit, confidence
from contextgraph.model import Methodology, MethodologyGroup, MethodologyStatus, PracticeGroup
from contextgraph.ports import Store
from contextgraph.retrieval import Credits, credits_for

_DIGITS = 4
_ALL_HOPS = 1_000


def credit_of_methodologies(store: Store, ids: Iterable[str]) -> Credits:
    """The credit of the methodologies *ids*; the same whichever others are among them."""
    return credits_for(store, ids, attrgetter("id"), hops=_ALL_HOPS)


def measured(
    methodology: Methodology, group: MethodologyGroup | PracticeGroup, known: Credits
) -> Methodology:
    """*methodology* with its statistics from *group* and its credit."""
    credit = known.of(methodology.id)
    helped, failed = credit.helped, credit.failed
    if isinstance(group, MethodologyGroup):
        lift, rate, steps = _of_error(group, methodology.support, helped, failed)
    else:
        lift, rate, steps = _of_practice(group, helped, failed)
    return replace(
        methodology,
        status=_status(lift, credit, is_active=known.is_active(*_counts(group))),
        confidence=round(lift, _DIGITS),
        success_rate=round(rate, _DIGITS),
        avg_steps=round(steps, _DIGITS),
        success_count=helped,
        failure_count=failed,
    )


def _of_error(
    group: MethodologyGroup, support: int, helped: float, failed: float
) -> tuple[float, float, float]:
    """Confidence, success rate and mean steps.

    Runs that never cleared the error may have tried this remedy: they count against it and against
    the base rate. Support and the times it was shown are both evidence for the confidence.
    """
    never = group.met - group.cleared
    lift = confidence(
        support + helped,
        support + helped + never + failed,
        group.otherwise,
        group.cleared - support + never,
    )
    steps = [clearance.steps for clearance in group.clearances]
    return lift, support / (support + never), sum(steps) / len(steps)


def _of_practice(group: PracticeGroup, helped: float, failed: float) -> tuple[float, float, float]:
    """The same for the first practice, against the runs that did so and the group is not about."""
    first = group.practices[0]
    lift = confidence(
        first.runs + helped, group.about + helped + failed, group.otherwise, group.others
    )
    return lift, first.runs / group.about, first.steps


def _counts(group: MethodologyGroup | PracticeGroup) -> tuple[int, int]:
    """How many instances and sources support it."""
    instances, sources = (set(names) for names in zip(*group.supporters, strict=True))
    return len(instances), len(sources)


def _status(lift: float, credit: Credit, *, is_active: bool) -> MethodologyStatus:
    if credit.is_quarantined:
        return MethodologyStatus.QUARANTINED
    return MethodologyStatus.ACTIVE if is_active and lift > 0 else MethodologyStatus.PROBATION

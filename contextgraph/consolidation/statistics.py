"""How well a methodology does, against how the error goes without it."""

from collections.abc import Mapping
from dataclasses import replace

from contextgraph.governance import confidence, quarantined
from contextgraph.model import Methodology, MethodologyGroup, MethodologyStatus, PracticeGroup

Credit = Mapping[str, tuple[float, float]]
_DIGITS = 4


def measured(methodology: Methodology, group: MethodologyGroup, credit: Credit) -> Methodology:
    """*methodology* with its statistics from *group*, and its *credit* (helped, failed).

    Runs that never got over the error are held against the methodology, since they may have tried
    it, and against the base rate as well. Support and the times it was shown stay separate counts;
    both are evidence for the confidence.
    """
    helped, failed = credit.get(methodology.id, (0.0, 0.0))
    never = group.met - group.cleared
    support = methodology.support
    sure = confidence(
        support + helped,
        support + helped + never + failed,
        group.otherwise,
        group.cleared - support + never,
    )
    steps = [clearance.steps for clearance in group.clearances]
    return replace(
        methodology,
        status=_status(sure, helped, failed),
        confidence=round(sure, _DIGITS),
        success_rate=round(support / (support + never), _DIGITS),
        avg_steps=round(sum(steps) / len(steps), _DIGITS),
        success_count=helped,
        failure_count=failed,
    )


def practised(methodology: Methodology, group: PracticeGroup, credit: Credit) -> Methodology:
    """*methodology* with its statistics from *group*, and its *credit*.

    The first practice is measured, against how many runs did the same that the group is not about.
    """
    helped, failed = credit.get(methodology.id, (0.0, 0.0))
    first = group.practices[0]
    sure = confidence(
        first.runs + helped, group.about + helped + failed, group.otherwise, group.others
    )
    return replace(
        methodology,
        status=_status(sure, helped, failed),
        confidence=round(sure, _DIGITS),
        success_rate=round(first.runs / group.about, _DIGITS),
        avg_steps=round(first.steps, _DIGITS),
        success_count=helped,
        failure_count=failed,
    )


def _status(sure: float, helped: float, failed: float) -> MethodologyStatus:
    if quarantined(helped, failed):
        return MethodologyStatus.QUARANTINED
    return MethodologyStatus.ACTIVE if sure > 0 else MethodologyStatus.PROBATION

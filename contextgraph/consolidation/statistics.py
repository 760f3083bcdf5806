"""How well a methodology does, compared with how the error goes without it."""

from collections.abc import Mapping
from dataclasses import replace

from contextgraph.governance import confidence, quarantined
from contextgraph.model import Methodology, MethodologyGroup, MethodologyStatus

Credit = Mapping[str, tuple[float, float]]
"""Methodology id -> how often it was shown and helped, and how often it did not help."""

_DIGITS = 4


def measured(methodology: Methodology, group: MethodologyGroup, credit: Credit) -> Methodology:
    """*methodology* with its statistics from *group* and its *credit*."""
    helped, failed = credit.get(methodology.id, (0.0, 0.0))
    lift, rate, steps = _rates(group, methodology.support, helped, failed)
    return replace(
        methodology,
        status=_status(lift, helped, failed),
        confidence=round(lift, _DIGITS),
        success_rate=round(rate, _DIGITS),
        avg_steps=round(steps, _DIGITS),
        success_count=helped,
        failure_count=failed,
    )


def _rates(
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


def _status(lift: float, helped: float, failed: float) -> MethodologyStatus:
    if quarantined(helped, failed):
        return MethodologyStatus.QUARANTINED
    return MethodologyStatus.ACTIVE if lift > 0 else MethodologyStatus.PROBATION

"""Credibility and strength of notes, and when they are archived."""

from datetime import timedelta
from math import exp, log

# What the parts of credibility weigh.
_SOURCE, _RECENCY, _CORROBORATION, _CONTRADICTION = 0.5, 0.15, 0.15, 0.2
_RECENT_DAYS, _MOST_NOTES = 90, 5
# The exponent of age: in the long-term layer a note fades more slowly.
_SHORT_TERM_EXPONENT, _LONG_TERM_EXPONENT = 1.2, 0.8
# They differ, so that a note between them does not flap.
_PROMOTED_FROM, _DEMOTED_TO = 0.7, 0.3
_ARCHIVED_BELOW, _ARCHIVED_AFTER = 0.1, timedelta(days=60)


def age_weight(age: timedelta, half_life: timedelta) -> float:
    """How much something of *age* counts, 0 to 1: half after each *half_life*; all where new."""
    return float(0.5 ** (max(age, timedelta()) / half_life))


def credibility(
    source: float, corroborated: int = 0, contradicted: int = 0, age_days: float = 0.0
) -> float:
    """The credibility, 0 to 0.8, of a note from a *source* of that reliability (0 to 1).

    *corroborated* and *contradicted* are numbers of other notes: more than 5 count as 5. Recency
    is lost after 90 days. Trust in advice, which outcomes decide, is `Credit.trust`.
    """
    recency = 1 - min(max(age_days, 0.0), _RECENT_DAYS) / _RECENT_DAYS
    total = (
        _SOURCE * source
        + _RECENCY * recency
        + _CORROBORATION * min(corroborated, _MOST_NOTES) / _MOST_NOTES
        - _CONTRADICTION * min(contradicted, _MOST_NOTES) / _MOST_NOTES
    )
    return max(0.0, total)


def strength(
    *,
    importance: float,
    credibility: float,
    recalls: int,
    decay_rate: float,
    age_days: float,
    is_long_term: bool,
) -> float:
    """importance · credibility · (1 + ln(1 + recalls)) · exp(-decay_rate · age_days^β), from 0.

    *age_days* counts from the last recall; β is that of the layer. Negative *recalls* and ages
    count as 0. It may exceed 1: recalls delay forgetting.
    """
    exponent = _LONG_TERM_EXPONENT if is_long_term else _SHORT_TERM_EXPONENT
    fading = exp(-decay_rate * max(age_days, 0.0) ** exponent)
    return worth(importance, credibility, recalls) * fading


def worth(importance: float, credibility: float, recalls: int) -> float:
    """importance · credibility · (1 + ln(1 + recalls)), from 0: what a note is kept for."""
    return importance * credibility * (1 + log(1 + max(recalls, 0)))


def belongs_long_term(strength: float, *, is_long_term: bool) -> bool:
    """Whether a note of *strength* goes to the long-term layer, or stays in it."""
    return strength >= _PROMOTED_FROM or (is_long_term and strength > _DEMOTED_TO)


def is_forgotten(strength: float, age: timedelta) -> bool:
    """Whether a note may be archived: weak, and not recalled for *age*."""
    return strength < _ARCHIVED_BELOW and age > _ARCHIVED_AFTER

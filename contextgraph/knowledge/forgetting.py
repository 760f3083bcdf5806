"""Credibility and strength of notes, when they are archived, and policies of eviction."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from math import exp, log, log1p
from typing import Protocol

from msgspec import Struct, field

# What the parts of credibility weigh.
_SOURCE, _RECENCY, _CORROBORATION, _CONTRADICTION = 0.5, 0.15, 0.15, 0.2
_RECENT_DAYS, _MOST_NOTES = 90, 5
# The exponent of age: in the long-term layer a note fades more slowly.
_SHORT_TERM_EXPONENT, _LONG_TERM_EXPONENT = 1.2, 0.8
# They differ, so that a note between them does not flap.
_PROMOTED_FROM, _DEMOTED_TO = 0.7, 0.3
_ARCHIVED_BELOW, _ARCHIVED_AFTER = 0.1, timedelta(days=60)


def age_weight(age: timedelta, half_life: timedelta) -> float:
    """Return the weight at *age*, 0 to 1: half after each *half_life*, 1 where new."""
    return float(0.5 ** (max(age, timedelta()) / half_life))


def credibility(
    source: float, corroborated: int = 0, contradicted: int = 0, age_days: float = 0.0
) -> float:
    """Return the credibility, 0 to 0.8, of a note from a *source* of that reliability (0 to 1).

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
    """Return True where a note of *strength* goes to the long-term layer, or stays in it."""
    return strength >= _PROMOTED_FROM or (is_long_term and strength > _DEMOTED_TO)


def is_forgotten(strength: float, age: timedelta) -> bool:
    """Return True for a note that may be archived: weak, and not recalled for *age*."""
    return strength < _ARCHIVED_BELOW and age > _ARCHIVED_AFTER


class RecallStats(Struct, frozen=True):
    """Count of the recalls of an item, the sum of their scores, and the time of the last."""

    count: int = 0
    total_score: float = 0.0
    last: datetime | None = None


class Evictable(Struct, frozen=True):
    """An item as policies see it.

    *words* is the number of distinct words in its text, where all texts are known weighted by
    `rarity`.
    """

    id: str
    created_at: datetime
    words: float = 0.0
    recalls: RecallStats = field(default_factory=RecallStats)


class EvictionPolicy(Protocol):
    """A rule by which items are evicted; no policy means that none is."""

    def chosen(self, items: Sequence[Evictable], now: datetime) -> list[str]:
        """Return the ids of the *items* to evict, least valuable first."""
        ...


class Ttl(Struct, frozen=True):
    """Evicts items older than *ttl*."""

    ttl: timedelta

    def chosen(self, items: Sequence[Evictable], now: datetime) -> list[str]:
        """Return the ids of expired items, oldest first."""
        expired = [item for item in items if now - item.created_at > self.ttl]
        return [item.id for item in sorted(expired, key=_age)]


class Capacity(Struct, frozen=True):
    """Keeps the *max_items* newest items."""

    max_items: int

    def chosen(self, items: Sequence[Evictable], now: datetime) -> list[str]:
        """Return the ids of the items beyond *max_items*, oldest first."""
        return [item.id for item in sorted(items, key=_age)[: _excess(items, self.max_items)]]


class RecallValue(Struct, frozen=True):
    """Keeps the *max_items* that are worth most.

    Worth is a weighted sum of how often an item was recalled (logarithmic), the mean score then,
    how recently (1 / (1 + days)), and how much it says: the share of items that have fewer distinct
    words, so that no text outweighs what is recalled again and again. What was never recalled is
    dated by its creation, so that a new item has a chance.
    """

    max_items: int
    recall: float = 0.3
    score: float = 0.5
    recency: float = 0.2
    information: float = 0.0

    def chosen(self, items: Sequence[Evictable], now: datetime) -> list[str]:
        """Return the ids of the items beyond *max_items*, least valuable first, then oldest."""
        says_more = shares_below({item.id: item.words for item in items})
        ranked = sorted(
            items, key=lambda item: (self.worth(item, now, says_more[item.id]), *_age(item))
        )
        return [item.id for item in ranked[: _excess(items, self.max_items)]]

    def worth(self, item: Evictable, now: datetime, says_more: float) -> float:
        """Return the value of *item*, at least 0.

        *says_more* is the share of items that have fewer distinct words.
        """
        stats = item.recalls
        days = max(now - (stats.last or item.created_at), timedelta()) / timedelta(days=1)
        return (
            self.recall * log1p(stats.count)
            + self.score * (stats.total_score / stats.count if stats.count else 0.0)
            + self.recency / (1 + days)
            + self.information * says_more
        )


class Hybrid(Struct, frozen=True):
    """Evicts items older than *ttl*, then applies *limit* to the rest; either may be None."""

    ttl: timedelta | None = None
    limit: Capacity | RecallValue | None = None

    def chosen(self, items: Sequence[Evictable], now: datetime) -> list[str]:
        """Return the ids of expired items, then of those beyond the limit."""
        expired = Ttl(self.ttl).chosen(items, now) if self.ttl is not None else []
        gone = set(expired)
        rest = [item for item in items if item.id not in gone]
        return expired + (self.limit.chosen(rest, now) if self.limit else [])


def shares_below(values: Mapping[str, float]) -> dict[str, float]:
    """For each of *values* the share of the others that are less, 0 to 1."""
    ordered, others = sorted(values.values()), max(1, len(values) - 1)
    return {id_: bisect_left(ordered, value) / others for id_, value in values.items()}


def rarity(texts: Mapping[str, Collection[str]]) -> dict[str, float]:
    """Return the rarity of each of *texts*: the sum over its words of ln(texts / texts with it)."""
    met = Counter(word for words in texts.values() for word in words)
    return {id_: sum(log(len(texts) / met[word]) for word in words) for id_, words in texts.items()}


def _age(item: Evictable) -> tuple[datetime, str]:
    return item.created_at, item.id


def _excess(items: Sequence[Evictable], max_items: int) -> int:
    return max(0, len(items) - max_items)

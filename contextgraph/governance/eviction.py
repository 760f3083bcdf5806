"""Policies of eviction: which items are removed when there are too many or they are too old."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from math import log, log1p
from typing import Protocol

from contextgraph.lazy import dataclass, field


@dataclass(frozen=True, slots=True)
class RecallStats:
    """How often an item was recalled, with which scores in total, and when last."""

    count: int = 0
    total_score: float = 0.0
    last: datetime | None = None


@dataclass(frozen=True, slots=True)
class Evictable:
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
        """The ids of those of *items* that go, those that are worth least first."""
        ...


@dataclass(frozen=True, slots=True)
class Ttl:
    """Evicts what is older than *ttl*."""

    ttl: timedelta

    def chosen(self, items: Sequence[Evictable], now: datetime) -> list[str]:
        """The expired ones, the oldest first."""
        expired = [item for item in items if now - item.created_at > self.ttl]
        return [item.id for item in sorted(expired, key=_age)]


@dataclass(frozen=True, slots=True)
class Capacity:
    """Keeps the newest *max_items*."""

    max_items: int

    def chosen(self, items: Sequence[Evictable], now: datetime) -> list[str]:
        """The oldest ones beyond *max_items*."""
        return [item.id for item in sorted(items, key=_age)[: _excess(items, self.max_items)]]


@dataclass(frozen=True, slots=True)
class RecallValue:
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
    information: float = 1.5

    def chosen(self, items: Sequence[Evictable], now: datetime) -> list[str]:
        """Return the items beyond *max_items*, least valuable first, then oldest first."""
        words = sorted(item.words for item in items)
        says_more = {item.id: bisect_left(words, item.words) for item in items}
        others = max(1, len(items) - 1)
        ranked = sorted(
            items,
            key=lambda item: (self.worth(item, now, says_more[item.id] / others), *_age(item)),
        )
        return [item.id for item in ranked[: _excess(items, self.max_items)]]

    def worth(self, item: Evictable, now: datetime, says_more: float) -> float:
        """Return the value of *item*, from 0, which says more than this share of the others."""
        stats = item.recalls
        days = max(now - (stats.last or item.created_at), timedelta()) / timedelta(days=1)
        return (
            self.recall * log1p(stats.count)
            + self.score * (stats.total_score / stats.count if stats.count else 0.0)
            + self.recency / (1 + days)
            + self.information * says_more
        )


@dataclass(frozen=True, slots=True)
class Hybrid:
    """First what is older than *ttl*, then by *limit* among the rest; either may be left out."""

    ttl: timedelta | None = None
    limit: Capacity | RecallValue | None = None

    def chosen(self, items: Sequence[Evictable], now: datetime) -> list[str]:
        """The expired ones, then those beyond the limit."""
        expired = Ttl(self.ttl).chosen(items, now) if self.ttl is not None else []
        gone = set(expired)
        rest = [item for item in items if item.id not in gone]
        return expired + (self.limit.chosen(rest, now) if self.limit else [])


def rarity(texts: Mapping[str, Collection[str]]) -> dict[str, float]:
    """How much each of *texts*, given as distinct words, says: a word in few texts says more."""
    met = Counter(word for words in texts.values() for word in words)
    return {id_: sum(log(len(texts) / met[word]) for word in words) for id_, words in texts.items()}


def _age(item: Evictable) -> tuple[datetime, str]:
    return item.created_at, item.id


def _excess(items: Sequence[Evictable], max_items: int) -> int:
    return max(0, len(items) - max_items)

"""Trust in advice from reported outcomes, and confidence intervals of a lift."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from math import sqrt
from typing import NamedTuple

from contextgraph.lazy import dataclass, replace
from contextgraph.model import (
    AdviceRecord,
    Effect,
    Exposure,
    ShownItem,
)

# Advice is trusted fully until shown otherwise: as if it had helped this often already.
PRIOR_SUCCESSES = 1
QUARANTINE_BELOW = 1 / 3
# How often unknown errors are cleared.
UNKNOWN_RATE = 0.5
# So many independent instances, and sources where runs have several, make advice active.
ACTIVE_FROM = 2
# Each round shares credit by what the round before made of the items; it settles in a few.
_ROUNDS = 8
_LEAST_SHARE = 0.01
_DIGITS = 4

# One-sided 95 %.
Z = 1.645
TWO_SIDED = 1.96


@dataclass(frozen=True, slots=True)
class Credit:
    """How often advice *helped* and *failed* where it was tried, in shares of what was reported.

    *base* is how often the errors that it was about are cleared. *by_hand*: it was quarantined by
    hand. *accusers* is how many sources reported failures.
    """

    helped: float = 0.0
    failed: float = 0.0
    base: float = UNKNOWN_RATE
    by_hand: bool = False
    accusers: int = 0

    @property
    def trust(self) -> float:
        """How far the advice is trusted, 0 to 1: its successes over those at the base rate.

        Both with a prior of one, so that silence costs nothing.
        """
        expected = (self.helped + self.failed) * self.base
        return min(1.0, (self.helped + PRIOR_SUCCESSES) / (expected + PRIOR_SUCCESSES))

    @property
    def is_quarantined(self) -> bool:
        """True where it clears errors far less often than they are cleared anyway, or by hand."""
        return self.by_hand or self.trust < QUARANTINE_BELOW


def is_active(instances: int, sources: int, *, several_sources: bool) -> bool:
    """Whether so many independent *instances* and *sources* make advice more than one opinion."""
    return instances >= ACTIVE_FROM and (sources >= ACTIVE_FROM or not several_sources)


def is_supported(sources: Collection[str], *, several_sources: bool) -> bool:
    """Return whether several sources, or the owner, who has no name, say something."""
    return not several_sources or "" in sources or len({*sources}) >= ACTIVE_FROM


def is_silenced(credit: Credit, *, is_agreed: bool) -> bool:
    """Whether advice of this *credit* is not shown.

    What several sources agree on (*is_agreed*) only several can silence.
    """
    is_accused = credit.by_hand or not is_agreed or credit.accusers >= ACTIVE_FROM
    return credit.is_quarantined and is_accused


class _Event(NamedTuple):
    """A report of a *source* about *names* that were tried together."""

    source: str
    base: float
    helped: bool
    names: tuple[str, ...]


# (name, source) -> helped, failed, and the sum of both by base rate.
_Counts = Mapping[tuple[str, str], tuple[float, float, float]]


def credits_of(
    record: AdviceRecord, key: Callable[[ShownItem], str] = lambda item: item.advice
) -> dict[str, Credit]:
    """Advice (or another *key* of items) -> its credit, for all that *record* names.

    What was tried together shares a success by how often each succeeded, and a failure by how often
    each failed; failures of harmful advice are not shared. So honest advice recovers from having
    been shown beside bad advice. Where runs have several sources, those that one of them reports
    count at most as much as all others do, and distrusted ones for nothing.
    """
    distrusted = record.distrusted
    events = [
        event
        for exposure in record.exposures
        if exposure.source not in distrusted
        for event in _events(exposure, record, key)
    ]
    credit, harmful = _settled(events, record), set[str]()
    while quarantined := [
        (standing.trust, name) for name, standing in credit.items() if standing.is_quarantined
    ]:
        rest = [name for _, name in sorted(quarantined) if name not in harmful]
        if not rest:
            break
        harmful.add(rest[0])
        events = [_explained(event, rest[0]) for event in events]
        credit = _settled(events, record)
    for verdict in record.verdicts:
        if verdict.is_quarantined:
            known = credit.get(verdict.advice, Credit())
            credit[verdict.advice] = replace(known, by_hand=True)
    return credit


def base_rate(record: AdviceRecord, error_id: str | None) -> float:
    """How often an error is cleared, 0 to 1, by the rule of succession."""
    runs, cleared = record.base_rates.get(error_id or "", (0, 0))
    return (cleared + 1) / (runs + 2)


def _events(
    exposure: Exposure, record: AdviceRecord, key: Callable[[ShownItem], str]
) -> Iterator[_Event]:
    released = {
        verdict.advice: verdict.decided_at
        for verdict in record.verdicts
        if not verdict.is_quarantined
    }
    base = base_rate(record, exposure.error_id)
    for helped in (True, False):
        names = {key(item) for item in exposure.items if item.helped is helped}
        counted = [
            name for name in names if released.get(name, exposure.shown_at) <= exposure.shown_at
        ]
        if counted:
            yield _Event(exposure.source, base, helped, tuple(sorted(counted)))


def _explained(event: _Event, harmful: str) -> _Event:
    """*event*, whose failure counts only for the *harmful* name if that was tried."""
    is_explained = not event.helped and harmful in event.names
    return event._replace(names=(harmful,)) if is_explained else event


def _settled(events: Sequence[_Event], record: AdviceRecord) -> dict[str, Credit]:
    credit: dict[str, Credit] = {}
    for _ in range(_ROUNDS if events else 0):
        credit = _combined(_shared(events, credit), several_sources=record.several_sources)
    return credit


def _shared(events: Sequence[_Event], credit: Mapping[str, Credit]) -> _Counts:
    """Return the reports of each source about each name, shared by their *credit* so far."""
    counts: defaultdict[tuple[str, str], tuple[float, float, float]] = defaultdict(
        lambda: (0, 0, 0)
    )
    for event in events:
        rates = [_rate(credit.get(name, Credit())) for name in event.names]
        parts = [max(_LEAST_SHARE, rate if event.helped else 1 - rate) for rate in rates]
        for name, part in zip(event.names, parts, strict=True):
            share = part / sum(parts)
            helped, failed, bases = counts[name, event.source]
            counts[name, event.source] = (
                helped + share * event.helped,
                failed + share * (not event.helped),
                bases + share * event.base,
            )
    return counts


def _rate(credit: Credit) -> float:
    """How often advice succeeded, with one prior trial at the base rate."""
    return (credit.helped + credit.base) / (credit.helped + credit.failed + 1)


def _combined(counts: _Counts, *, several_sources: bool) -> dict[str, Credit]:
    """The credit of each name from all sources; reports without a source are the owner's own."""
    totals: defaultdict[str, float] = defaultdict(float)
    for (name, _), (helped, failed, _) in counts.items():
        totals[name] += helped + failed
    sums: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    accusers: Counter[str] = Counter()
    for (name, source), parts in counts.items():
        own = parts[0] + parts[1]
        accusers[name] += parts[1] > 0
        counted = min(1.0, (totals[name] - own) / own) if several_sources and source else 1.0
        sums[name] = [total + counted * part for total, part in zip(sums[name], parts, strict=True)]
    return {
        name: Credit(
            round(helped, _DIGITS),
            round(failed, _DIGITS),
            bases / (helped + failed) if helped + failed else UNKNOWN_RATE,
            accusers=accusers[name],
        )
        for name, (helped, failed, bases) in sums.items()
    }


def wilson(successes: float, trials: float, z: float = Z) -> tuple[float, float]:
    """The interval in which the true share lies, 0 to 1, by the score method (Wilson 1927).

    With p = successes / trials: (p + z²/2n ± z √(p(1-p)/n + z²/4n²)) / (1 + z²/n); nothing is
    known without trials. The default *z* leaves 5 % below the lower bound.
    """
    if trials <= 0:
        return 0.0, 1.0
    share = successes / trials
    middle = share + z * z / (2 * trials)
    half = z * sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    return max(0.0, (middle - half) / scale), min(1.0, (middle + half) / scale)


def difference(
    successes: float,
    trials: float,
    base_successes: float,
    base_trials: float,
    z: float = Z,
) -> tuple[float, float, float]:
    """How much more often it goes well with than without, -1 to 1, and the interval of that.

    Newcombe's hybrid score interval for a difference of shares (1998, method 10):
    d - √((p₁ - l₁)² + (u₂ - p₂)²) and d + √((u₁ - p₁)² + (p₂ - l₂)²), with Wilson's bounds. Where
    nothing is known of one side, that may go as well or as badly as any.
    """
    low, high = wilson(successes, trials, z)
    base_low, base_high = wilson(base_successes, base_trials, z)
    if trials <= 0 or base_trials <= 0:
        return 0.0, low - base_high, high - base_low
    share, base = successes / trials, base_successes / base_trials
    return (
        share - base,
        share - base - sqrt((share - low) ** 2 + (base_high - base) ** 2),
        share - base + sqrt((high - share) ** 2 + (base - base_low) ** 2),
    )


def effect_of(exposures: Iterable[Exposure]) -> Effect:
    """How contexts went that were shown or withheld by chance, where that was reported."""
    drawn = [
        exposure
        for exposure in exposures
        if exposure.is_withheld is not None and exposure.helped is not None
    ]
    withheld = [bool(exposure.helped) for exposure in drawn if exposure.is_withheld]
    shown = [bool(exposure.helped) for exposure in drawn if not exposure.is_withheld]
    counts = len(shown), sum(shown), len(withheld), sum(withheld)
    return Effect(
        *counts, *difference(sum(shown), len(shown), sum(withheld), len(withheld), TWO_SIDED)
    )


def is_withheld(context_id: str, share: float) -> bool:
    """Whether a context is one of the *share*, 0 to 1, that is not shown: its id decides."""
    draw = int.from_bytes(sha256(context_id.encode()).digest()[:8], "big")
    return draw < share * 2**64


def confidence(successes: float, trials: float, base_successes: float, base_trials: float) -> float:
    """How sure it is that advice lifts the base rate, and by how much at least: 0 to 1."""
    return max(0.0, difference(successes, trials, base_successes, base_trials)[1])

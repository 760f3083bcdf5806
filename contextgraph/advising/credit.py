"""The credit of advice: how often it helped when it was shown."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from contextgraph.governance import (
    TWO_SIDED,
    Credit,
    credits_of,
    difference,
    effect_of,
    is_active,
)
from contextgraph.model import (
    Evidence,
    Exposure,
    ShownItem,
)
from contextgraph.ports import Store


@dataclass(frozen=True, slots=True)
class Credits:
    """The credit of advice by its id, and whether the runs of the memory have several sources."""

    by_name: Mapping[str, Credit]
    several_sources: bool

    def of(self, name: str) -> Credit:
        """The credit of the advice, or item, *name*."""
        return self.by_name.get(name, Credit())

    def is_active(self, instances: int, sources: int) -> bool:
        """Whether so many independent instances and sources of runs make advice active."""
        return is_active(instances, sources, several_sources=self.several_sources)


def credits_for(
    store: Store,
    names: Iterable[str],
    key: Callable[[ShownItem], str] = lambda item: item.advice,
    *,
    hops: int = 1,
) -> Credits:
    """The credit of *names*, which are the *key* of items that may have been shown.

    What was shown together shares the credit by how each of them did elsewhere: that is looked up
    for what was shown beside *names*, and so on for so many *hops*.
    """
    wanted = set(names)
    record = store.exposures.record(sorted(wanted))
    for _ in range(hops):
        beside = {key(item) for exposure in record.exposures for item in exposure.items} - wanted
        if not beside:
            break
        wanted |= beside
        record = store.exposures.record(sorted(wanted))
    return Credits(credits_of(record, key), record.sources > 1)


def evidence_of(store: Store, name: str) -> Evidence | None:
    """What is known of the advice, or the methodology, *name*; None where it was never shown."""
    record = store.exposures.record([name])
    verdict = next((verdict for verdict in record.verdicts if verdict.advice == name), None)
    shown = list(_shown_as(store, name))
    if not shown and verdict is None:
        return None
    tried = [(exposure.source, item.helped) for exposure, item in shown if item.helped is not None]
    cleared = sum(helped for _, helped in tried)
    errors = record.base_rates.values()
    runs, runs_cleared = sum(counts[0] for counts in errors), sum(counts[1] for counts in errors)
    is_id = any(name == item.id for _, item in shown)
    known = credits_for(store, [name], attrgetter("id" if is_id else "advice")).of(name)
    return Evidence(
        sum(not exposure.is_withheld for exposure, _ in shown),
        len(tried),
        cleared,
        runs,
        runs_cleared,
        *difference(cleared, len(tried), runs_cleared, runs, TWO_SIDED),
        sources=_by_source(tried),
        trust=known.trust,
        is_quarantined=known.is_quarantined,
        by_hand="" if verdict is None else "quarantined" if verdict.is_quarantined else "released",
        randomised=effect_of(exposure for exposure, _ in shown),
    )


def _shown_as(store: Store, name: str) -> Iterator[tuple[Exposure, ShownItem]]:
    for exposure in store.exposures.all():
        yield from ((exposure, item) for item in exposure.items if name in (item.id, item.advice))


def _by_source(tried: Sequence[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    """Source -> how often it *tried* the advice, and how often that cleared the error."""
    effects: dict[str, list[bool]] = {}
    for source, helped in sorted(tried):
        effects.setdefault(source, []).append(helped)
    return {source: (len(some), sum(some)) for source, some in effects.items()}

"""The credit of advice: how it did where it was shown."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from contextgraph.governance import Credit, credits_of, is_active
from contextgraph.model import ShownItem
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
        beside = {key(item) for one in record.exposures for item in one.items} - wanted
        if not beside:
            break
        wanted |= beside
        record = store.exposures.record(sorted(wanted))
    return Credits(credits_of(record, key), record.sources > 1)

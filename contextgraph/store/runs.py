"""Adding, replacing, judging and forgetting runs: in the same way whatever the database."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Protocol, TypeVar

from contextgraph.lazy import dataclass
from contextgraph.model import (
    Bundle,
    LearnStatus,
    Outcome,
    Trajectory,
)
from contextgraph.store import rules
from contextgraph.store.columns import packed

Removed = TypeVar("Removed")


@dataclass(frozen=True, slots=True)
class PackedRun:
    """A bundle, and its raw run as the bytes to store."""

    bundle: Bundle
    raw: bytes


class RunTables(Protocol[Removed]):
    """Changes of runs, in one transaction that is committed whole or not at all."""

    def known(self, ids: Iterable[str]) -> Mapping[str, Trajectory]:
        """Return the stored ones of these runs, by id."""

    def insert(self, runs: Sequence[PackedRun]) -> None:
        """Write runs that are not stored, each as a change of its own."""

    def report_shown(self, bundles: Sequence[Bundle]) -> None:
        """Report the contexts that these runs were shown: whether they cleared their errors."""

    def set_outcomes(self, runs: Sequence[Trajectory]) -> None:
        """Write the outcomes of stored runs, and what became of their changes."""

    def rename(self, ids: Mapping[str, str]) -> None:
        """Record under which ids runs are known now; by their former ones."""

    def remove(self, ids: Sequence[str], *, forgotten: bool) -> Removed:
        """Remove stored runs with what was derived from them, as one change.

        Where they are *forgotten*, their former ids go, and that their fragments were shown.
        Return what `remove_unused` has to look at.
        """

    def remove_unused(self, removed: Removed) -> None:
        """Remove errors and repositories that no run has any more."""


def pack(bundles: Iterable[Bundle]) -> list[PackedRun]:
    """Return *bundles* to be written; raises `StoreError` for a text that is not valid Unicode."""
    return [PackedRun(bundle, packed(bundle.raw)) for bundle in bundles]


def add(tables: RunTables[Removed], given: Sequence[PackedRun]) -> list[LearnStatus]:
    """Write what is new of *given*, and outcomes that were unknown; return the status of each."""
    runs = [one.bundle.trajectory for one in given]
    statuses, changed = rules.learning(runs, tables.known(run.id for run in runs))
    pairs = zip(given, statuses, strict=True)
    _insert(tables, [one for one, status in pairs if status is LearnStatus.CREATED])
    if changed:
        tables.set_outcomes([changed[run] for run in sorted(changed)])
    return statuses


def set_outcome(tables: RunTables[Removed], ids: Iterable[str], outcome: Outcome) -> int:
    """Set the outcome of runs by hand, whatever it was; return how many this changed."""
    changed = rules.set_by_hand(tables.known(ids).values(), outcome)
    if changed:
        tables.set_outcomes(changed)
    return len(changed)


def replace(tables: RunTables[Removed], given: Mapping[str, PackedRun]) -> list[str]:
    """Replace runs by *given*, by their ids; return those that were known.

    A stored run of the new id is replaced, too; what was known of the outcome stays.
    """
    return [former for group in _independent(given) for former in _replace(tables, group)]


def _replace(tables: RunTables[Removed], given: Mapping[str, PackedRun]) -> list[str]:
    ids = {former: (former, one.bundle.trajectory.id) for former, one in given.items()}
    stored = tables.known(chain.from_iterable(ids.values()))
    # The run itself comes first: its outcome counts.
    known = {
        former: [stored[run] for run in dict.fromkeys(both) if run in stored]
        for former, both in ids.items()
        if former in stored
    }
    if not known:
        return []
    runs = [
        PackedRun(rules.with_history(given[former].bundle, before), given[former].raw)
        for former, before in known.items()
    ]
    for run in runs:
        rules.check_bundle(run.bundle)
    removed = tables.remove(
        [run.id for before in known.values() for run in before], forgotten=False
    )
    _insert(tables, runs)
    tables.rename({former: ids[former][1] for former in known if ids[former][1] != former})
    tables.remove_unused(removed)
    return [*known]


def _independent(given: Mapping[str, PackedRun]) -> Iterator[dict[str, PackedRun]]:
    """Yield *given* in their order, in groups in which no two name the same run."""
    group: dict[str, PackedRun] = {}
    named: set[str] = set()
    for former, run in given.items():
        ids = {former, run.bundle.trajectory.id}
        if not named.isdisjoint(ids):
            yield group
            group, named = {}, set()
        group[former] = run
        named |= ids
    yield group


def _insert(tables: RunTables[Removed], runs: Sequence[PackedRun]) -> None:
    for run in runs:
        rules.check_bundle(run.bundle)
    if runs:
        tables.insert(runs)
        tables.report_shown([run.bundle for run in runs])


def forget(tables: RunTables[Removed], ids: Iterable[str]) -> int:
    """Remove these runs and all that only they support; return how many were known."""
    known = sorted(tables.known(ids))
    if known:
        tables.remove_unused(tables.remove(known, forgotten=True))
    return len(known)

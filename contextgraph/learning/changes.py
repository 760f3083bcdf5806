"""The changes that a consolidation writes, and the counts for its report."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from contextgraph.model import (
    Methodology,
    MethodologyGroup,
    ResolvedBy,
    SimilarTo,
    StepReport,
)
from contextgraph.ports import Store

Derived = tuple[MethodologyGroup, Methodology]
"""What runs have in common, and the methodology that is made of it."""

# Read together and written in one transaction: other writers wait no longer than for these.
BATCH = 32


def in_batches(ids: Sequence[str], size: int = BATCH) -> Iterator[Sequence[str]]:
    """Split *ids* into batches of *size*."""
    return (ids[start : start + size] for start in range(0, len(ids), size))


@dataclass(slots=True)
class StepCounts:
    """Progress of one step."""

    examined: int = 0
    created: int = 0
    updated: int = 0
    removed: int = 0


@dataclass(slots=True)
class Counts:
    """The counts of one consolidation: by step, and the trajectories that were new."""

    trajectories: int = 0
    embed: StepCounts = field(default_factory=StepCounts)
    abstract: StepCounts = field(default_factory=StepCounts)
    merge: StepCounts = field(default_factory=StepCounts)
    statistics: StepCounts = field(default_factory=StepCounts)
    clean_up: StepCounts = field(default_factory=StepCounts)
    word: StepCounts = field(default_factory=StepCounts)

    def reports(self) -> tuple[StepReport, ...]:
        """The steps in their order."""
        steps = asdict(self)
        del steps["trajectories"]
        return tuple(StepReport(name.replace("_", " "), **step) for name, step in steps.items())


@dataclass(slots=True)
class Changes:
    """Changes to write in one transaction."""

    methodologies: list[Methodology] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    resolved: list[ResolvedBy] = field(default_factory=list)
    similar: list[SimilarTo] = field(default_factory=list)

    def write(self, store: Store) -> int:
        """Write it; how many similarities between fragments were new."""
        if not (self.methodologies or self.removed or self.resolved or self.similar):
            return 0
        return store.methodologies.put(
            self.methodologies, self.removed, self.resolved, self.similar
        )


def resolved_by(methodology: Methodology, survivor_id: str) -> ResolvedBy:
    """The edge from the error of *methodology* to what resolves it, with its statistics."""
    return ResolvedBy(
        error_id=methodology.error_id,
        methodology_id=survivor_id,
        success_rate=methodology.success_rate,
        avg_steps=methodology.avg_steps,
        support=methodology.support,
    )

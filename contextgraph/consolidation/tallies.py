"""Counting what a consolidation does, and gathering what it writes."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from contextgraph.model import Methodology, ResolvedBy, SimilarTo, StepReport
from contextgraph.ports import ConsolidationStore

# So many errors are read together, and written in one transaction: others who write wait no longer
# than for these.
_AT_ONCE = 32


def in_batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """*ids*, as many at a time as are worked on together."""
    return (ids[start : start + _AT_ONCE] for start in range(0, len(ids), _AT_ONCE))


@dataclass(slots=True)
class Tally:
    """What one step has done so far."""

    examined: int = 0
    created: int = 0
    updated: int = 0
    removed: int = 0

    def report(self, name: str) -> StepReport:
        """The tally as a step of a report."""
        return StepReport(name, self.examined, self.created, self.updated, self.removed)


@dataclass(slots=True)
class Work:
    """The tallies of one consolidation, by step, and how many trajectories were new."""

    trajectories: int = 0
    embed: Tally = field(default_factory=Tally)
    abstract: Tally = field(default_factory=Tally)
    merge: Tally = field(default_factory=Tally)
    statistics: Tally = field(default_factory=Tally)
    clean_up: Tally = field(default_factory=Tally)
    word: Tally = field(default_factory=Tally)
    retell: Tally = field(default_factory=Tally)

    def reports(self) -> tuple[StepReport, ...]:
        """The steps in their order."""
        return (
            self.embed.report("embed"),
            self.abstract.report("abstract"),
            self.merge.report("merge"),
            self.statistics.report("statistics"),
            self.clean_up.report("clean up"),
            self.word.report("word"),
            self.retell.report("retell"),
        )


@dataclass(slots=True)
class Changes:
    """What is to be written in one transaction."""

    methodologies: list[Methodology] = field(default_factory=list)
    removed: list[str] = field(default_factory=list)
    resolved: list[ResolvedBy] = field(default_factory=list)
    similar: list[SimilarTo] = field(default_factory=list)

    def write(self, store: ConsolidationStore) -> int:
        """Write it; how many fragments were found alike that were not known to be."""
        if not (self.methodologies or self.removed or self.resolved or self.similar):
            return 0
        return store.put_methodologies(
            self.methodologies, self.removed, self.resolved, self.similar
        )


def resolved_by(methodology: Methodology, error_id: str, survivor_id: str) -> ResolvedBy:
    """The edge from an error to what resolves it, with what *methodology* was measured to do."""
    return ResolvedBy(
        error_id=error_id,
        methodology_id=survivor_id,
        success_rate=methodology.success_rate,
        avg_steps=methodology.avg_steps,
        support=methodology.support,
    )

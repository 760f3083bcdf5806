"""What was seen to be done in runs that met no error at it, and when that is worth saying."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.model import CommonRemedy, Outcome, Source, Trajectory

# Nothing in a run shows that what it did was right, but that it solved its task: two that did count
# as much as four that did not, or of which it is not known.
_WEIGHT = {Outcome.SOLVED: 1.0, Outcome.UNKNOWN: 0.5, Outcome.FAILED: 0.5}


@dataclass(frozen=True, slots=True)
class Sighting:
    """A *run* did *what*, in the fragment *source* of so many *steps*."""

    run: Trajectory
    what: str
    source: Source
    steps: int


def is_enough(sightings: Sequence[Sighting], policy: ConsolidationPolicy) -> bool:
    """True where so many did it, and so many of these solved their tasks, that it can be said."""
    outcomes = {one.run.id: one.run.outcome for one in sightings}
    return (
        len({one.source for one in sightings}) >= policy.clearances
        and len(outcomes) >= policy.runs
        and sum(_WEIGHT[outcome] for outcome in outcomes.values()) >= policy.practice_weight
    )


def by_what(sightings: Iterable[Sighting]) -> list[tuple[str, list[Sighting]]]:
    """*sightings* by what was done, what most runs did first, ties by the text."""
    found: dict[str, list[Sighting]] = {}
    for one in sightings:
        found.setdefault(one.what, []).append(one)
    return sorted(found.items(), key=lambda item: (-len(runs_of(item[1])), item[0]))


def runs_of(sightings: Iterable[Sighting]) -> frozenset[str]:
    """The ids of the runs."""
    return frozenset(one.run.id for one in sightings)


def practice(text: str, sightings: Sequence[Sighting]) -> CommonRemedy:
    """*text*, with how many did it and how long that took them."""
    return CommonRemedy(
        text=text,
        runs=len(runs_of(sightings)),
        repositories=1,
        steps=sum(one.steps for one in sightings) / len(sightings),
    )

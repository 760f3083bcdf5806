"""Counts: how many instances did the same about an error, by how like it the errors were.

The contributions are the recoveries that a query found, each of an instance and a source, so what
is excluded, forgotten, distrusted or newer than `as_of` never counts. Queries, methodologies and
statistics show the numbers of `Tasks`.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable, Mapping
from functools import lru_cache
from math import fsum
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from msgspec import Struct, field

from contextgraph.advising.channels import SAME_TEMPLATE, Query
from contextgraph.model import Count, Likeness, RecoveryCandidate, SignatureLevel
from contextgraph.trace import RemedyKey
from contextgraph.trace.applicability import ATTEMPT_BY

# As if one more instance had cleared the error in another way: one alone is no agreement.
_DOUBT = 1
_REMEMBERED = 4_096
_LIKENESSES = (*Likeness,)

_Weights: TypeAlias = dict[str, float]
"""Instance -> how much it counts."""


class Tasks(Struct):
    """The tasks that cleared an error, by the parts of what they did.

    Several runs of a task count once. *by_part* are the tasks that did each part, *weights* those
    of tasks that are evidence, *weight* is their sum.
    """

    cleared: set[str] = field(default_factory=set)
    weights: _Weights = field(default_factory=dict)
    weight: float = 0.0
    by_part: dict[Hashable, set[str]] = field(default_factory=dict)

    def add(
        self, instances: Collection[str], parts: Iterable[Hashable], weight: float = 0.0
    ) -> None:
        """Add *instances*, which did *parts*; none after it weighs less."""
        self.cleared.update(instances)
        if weight:
            self.weights.update(dict.fromkeys(instances, weight))
        for part in parts:
            self.by_part.setdefault(part, set()).update(instances)

    def that_did(self, parts: Collection[Hashable]) -> int:
        """Return the number of tasks that did all of *parts*, alone or with other things."""
        did = [self.by_part.get(part, set()) for part in parts]
        return len(set.intersection(*did)) if did else 0


class Contribution(NamedTuple):
    """A *remedy*, by its key, of *instances* for an error that is like the one at hand.

    *parts* are what they did. *weight*, at most 1, says how far the circumstances of both errors
    agree; with 0 they cleared it in a way that is no evidence here.
    """

    remedy: Hashable
    parts: RemedyKey
    instances: Collection[str]
    likenesses: tuple[Likeness, ...]
    weight: float


class Counts:
    """The table of *contributions* at one error.

    Several runs of one instance count once, by the one whose circumstances agree best.
    """

    def __init__(self, contributions: Iterable[Contribution]) -> None:
        # Ascending, so that the greatest weight of an instance is the one that stays.
        self._contributions = sorted(contributions, key=attrgetter("weight"))
        self._did: dict[Hashable, dict[Likeness, _Weights]] = {}
        self._with_part: dict[Hashable, list[Contribution]] = {}
        self._cleared: dict[frozenset[Hashable], defaultdict[Likeness, Tasks]] = {}
        for one in self._contributions:
            if one.weight:
                did = self._did.setdefault(one.remedy, defaultdict(dict))
                for likeness in one.likenesses:
                    did[likeness].update(dict.fromkeys(one.instances, one.weight))
            for part in one.parts:
                self._with_part.setdefault(part, []).append(one)

    def of(
        self,
        remedy: Hashable,
        parts: RemedyKey,
        without: Collection[Hashable] = (),
        *,
        as_one: bool = False,
    ) -> tuple[Count, ...]:
        """Return the counts of *remedy*, which does *parts*, among all but those in *without*.

        Its shares are those of one instance with *as_one*, however many did it.
        """
        did = self._did.get(remedy)
        if did is None:
            return ()
        others = frozenset(without) - {remedy}
        cleared = self._all(others)
        counts = []
        for likeness in _LIKENESSES:
            if likeness in did:
                tasks = cleared[likeness]
                share = fsum(did[likeness].values()) / (tasks.weight + _DOUBT)
                if as_one:  # a share has one instance of doubt
                    number = len(tasks.weights)
                    share = share * (number + 1) / max(1, number) / 2
                same = self._that_did(parts, likeness, others)
                counts.append(Count(likeness, same, len(tasks.cleared), share))
        return tuple(counts)

    def _that_did(self, parts: RemedyKey, likeness: Likeness, without: frozenset[Hashable]) -> int:
        """Return the number of tasks that did all of *parts*, in any way but those of *without*."""
        did = [
            {
                instance
                for one in self._with_part.get(part, ())
                if likeness in one.likenesses and one.remedy not in without
                for instance in one.instances
            }
            for part in parts
        ]
        return len(set.intersection(*did)) if did else 0

    def _all(self, without: frozenset[Hashable]) -> Mapping[Likeness, Tasks]:
        """Return the tasks that cleared errors in any way but those of *without*."""
        known = self._cleared.get(without)
        if known is None:
            known = self._cleared[without] = defaultdict(Tasks)
            for one in self._contributions:
                if one.remedy not in without:
                    for likeness in one.likenesses:
                        known[likeness].add(one.instances, (), one.weight)
            for tasks in known.values():
                tasks.weight = fsum(tasks.weights.values())
        return known


def likenesses_of(
    query: Query, candidate: RecoveryCandidate, level: SignatureLevel, ours: tuple[str, ...]
) -> tuple[Likeness, ...]:
    """Return in what the error of *candidate* is like that of *query*, beside their *level*.

    *ours* are the circumstances of the error of *query*.
    """
    error = query.signature
    if error is None or level is SignatureLevel.FAMILY:
        return (Likeness.FAMILY,)
    is_same = level in SAME_TEMPLATE
    theirs = candidate.circumstances
    found = []
    if candidate.repo.casefold() == query.state.repo.casefold():
        if candidate.message == error.message:
            found.append(Likeness.MESSAGE_HERE)
        if is_same:
            found.append(Likeness.TEMPLATE_HERE)
    if is_same:
        found.append(Likeness.TEMPLATE)
    if theirs == ours:
        found.append(Likeness.CIRCUMSTANCES)
    if _program(theirs) == _program(ours):
        found.append(Likeness.PROGRAM)
    return (*found, Likeness.TYPE, Likeness.FAMILY)


@lru_cache(_REMEMBERED)
def _program(circumstances: tuple[str, ...]) -> str:
    return next((one for one in circumstances if one.startswith(ATTEMPT_BY)), "")

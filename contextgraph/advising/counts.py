"""Counts: how many instances did the same about an error, by how like it the errors were.

The contributions are the recoveries that a query found, each of an instance and a source, so what
is excluded, forgotten, distrusted or newer than `as_of` never counts.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterable
from functools import lru_cache
from math import fsum
from operator import attrgetter
from typing import NamedTuple, TypeAlias

from contextgraph.advising.channels import SAME_TEMPLATE, Query
from contextgraph.model import Count, Likeness, RecoveryCandidate, SignatureLevel
from contextgraph.trace.applicability import ATTEMPT_BY

# As if one more instance had cleared the error in another way: one alone is no agreement.
_DOUBT = 1
_REMEMBERED = 4_096
_LIKENESSES = (*Likeness,)

_Weights: TypeAlias = dict[str, float]
"""Instance -> how much it counts."""


class Contribution(NamedTuple):
    """A *remedy*, by its key, of *instances* for an error that is like the one at hand.

    *weight*, over 0 and at most 1, says how far the circumstances of both errors agree.
    """

    remedy: Hashable
    instances: Collection[str]
    likenesses: tuple[Likeness, ...]
    weight: float


class Counts:
    """The table of *contributions* at one error.

    Several runs of one instance count once, by the one whose circumstances agree best.
    """

    def __init__(self, contributions: Iterable[Contribution]) -> None:
        # Ascending, so that the greatest weight of an instance is the one that stays.
        self._contributions = [
            (remedy, dict.fromkeys(instances, weight), likenesses)
            for remedy, instances, likenesses, weight in sorted(
                contributions, key=attrgetter("weight")
            )
        ]
        self._did: dict[Hashable, dict[Likeness, _Weights]] = {}
        self._cleared: dict[frozenset[Hashable], dict[Likeness, tuple[int, float]]] = {}
        for remedy, weights, likenesses in self._contributions:
            did = self._did.setdefault(remedy, defaultdict(dict))
            for likeness in likenesses:
                did[likeness].update(weights)

    def of(self, remedy: Hashable, without: Collection[Hashable] = ()) -> tuple[Count, ...]:
        """Return the counts of *remedy*, among all remedies but those in *without*."""
        did = self._did.get(remedy, {})
        cleared = self._all(frozenset(without) - {remedy})
        return tuple(
            [
                Count(
                    likeness,
                    len(did[likeness]),
                    cleared[likeness][0],
                    fsum(did[likeness].values()) / (cleared[likeness][1] + _DOUBT),
                )
                for likeness in _LIKENESSES
                if likeness in did
            ]
        )

    def _all(self, without: frozenset[Hashable]) -> dict[Likeness, tuple[int, float]]:
        """Return how many instances cleared errors in any way but those of *without*, and how much
        they count.
        """
        known = self._cleared.get(without)
        if known is None:
            weights: dict[Likeness, _Weights] = defaultdict(dict)
            for remedy, of_remedy, likenesses in self._contributions:
                if remedy not in without:
                    for likeness in likenesses:
                        weights[likeness].update(of_remedy)
            known = self._cleared[without] = {
                likeness: (len(some), fsum(some.values())) for likeness, some in weights.items()
            }
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

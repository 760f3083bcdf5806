"""The gate: how probable it is that an item helps, and what is probable enough to be shown."""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import exp, log1p
from operator import itemgetter
from typing import NamedTuple

from contextgraph.model import FittedGate, Methodology, MethodologyStatus, Recollection
from contextgraph.trace import is_hazardous

# Fitted by `python -m benchmarks.gate` (see benchmarks/README.md): a logistic regression on
# recoveries of recorded runs, each judged by those of other instances, then isotonic calibration.
SHIPPED = FittedGate(
    coefficients={
        "same_template": 4.729,
        "same_type": 2.353,
        "relevance": 1.123,
        "attempt": 0.663,
    },
    intercept=-4.853,
    calibration=(
        (0.0, 0.0),
        (0.009, 0.0),
        (0.012, 0.01),
        (0.015, 0.018),
        (0.022, 0.022),
        (0.041, 0.031),
        (0.061, 0.046),
        (0.087, 0.066),
        (0.111, 0.093),
        (0.149, 0.191),
        (0.254, 0.395),
        (0.415, 0.61),
        (0.611, 0.654),
        (0.917, 0.876),
        (0.971, 1.0),
        (1.0, 1.0),
    ),
)


@dataclass(frozen=True, slots=True)
class RemedyFeatures:
    """What the probability of a remedy is computed from.

    The first two are shares of independent instances that did so: among those that cleared an error
    of the same template or type, each over their number + 2, or + 1 where the message was the same
    in the same repository; less where the state does not show what the remedy takes for granted.
    *relevance* and *attempt* are BM25 for the message of the error and for the action that failed,
    over that of the most relevant remedy.
    """

    same_template: float
    same_type: float
    relevance: float
    attempt: float


def probability(features: RemedyFeatures, gate: FittedGate = SHIPPED) -> float:
    """How probable it is that a remedy with these *features* clears the error, 0 to 1."""
    total = gate.intercept + sum(
        weight * getattr(features, name) for name, weight in gate.coefficients.items()
    )
    return _interpolated(gate.calibration, 1 / (1 + exp(-total)))


# Fitted by `python -m benchmarks.case_gate`, on tasks that people linked to later ones.
CASE_COEFFICIENTS = (2.93, 1.69, 7.77)
CASE_INTERCEPT = -13.57
# Long tasks share many words; that they share more than this says nothing. Any two texts share a
# word.
_MOST_SHARED, _LEAST_SHARED = 10, 2


class CaseFeatures(NamedTuple):
    """What the probability of a past run is computed from.

    *similarity* of the tasks is from 0 to 1, *shared* the number of words that both have,
    *closeness* the score of the run over that of the best one.
    """

    similarity: float
    shared: int
    closeness: float

    @property
    def columns(self) -> tuple[float, float, float]:
        """The features as the regression takes them."""
        return self.similarity, log1p(min(self.shared, _MOST_SHARED)), self.closeness


def case_probability(features: CaseFeatures) -> float:
    """How probable it is that people would link the task of a past run to the task asked about."""
    if features.shared < _LEAST_SHARED:
        return 0.0
    weighted = zip(CASE_COEFFICIENTS, features.columns, strict=True)
    return 1 / (1 + exp(-CASE_INTERCEPT - sum(weight * value for weight, value in weighted)))


def _interpolated(points: Sequence[tuple[float, float]], at: float) -> float:
    above = max(bisect_left(points, at, key=itemgetter(0)), 1)
    (low, least), (high, most) = points[above - 1 : above + 1]
    return least + (most - least) * (at - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Gate:
    """What may be shown: bad advice costs more than none.

    *min_precision* is the least probability of a remedy, *min_case_precision* that of a past run in
    a ranking, and *close_case_precision* that of one in the text (docs/retrieval.md).
    *min_note_precision* is the least probability that a note answers the title of the task.
    *needs_evidence*: a remedy is held back where the state does not show what it takes for granted,
    and that of one instance unless it alone met the same message in the same repository.
    """

    min_precision: float = 0.4
    min_case_precision: float = 0.25
    # From this probability on .82 of the past runs whose files the task names were linked to it.
    close_case_precision: float = 0.6
    min_note_precision: float = 0.1
    needs_evidence: bool = True

    def notes(self, found: Iterable[Recollection]) -> tuple[Recollection, ...]:
        """Those of *found* that are probable enough, in their order."""
        return tuple(one for one in found if one.probability >= self.min_note_precision)


def may_be_shown(methodology: Methodology) -> bool:
    """False for a methodology that harmed, that another replaced, or that is never advice."""
    withdrawn = (MethodologyStatus.QUARANTINED, MethodologyStatus.RETIRED)
    return methodology.status not in withdrawn and not is_hazardous(methodology.remedies)


CONSERVATIVE = Gate()
# What a ranking is before any item is held back.
UNGATED = Gate(0.0, 0.0, 0.0, 0.0, needs_evidence=False)

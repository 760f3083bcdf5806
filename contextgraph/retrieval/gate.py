"""The gate: how probable it is that an item helps, and what is probable enough to be shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log1p
from typing import NamedTuple

from contextgraph.model import Methodology, MethodologyStatus
from contextgraph.trace import is_hazardous

# Fitted by `python -m benchmarks.gate` (see benchmarks/README.md): a logistic regression on
# recoveries of recorded runs, each judged by those of other instances, then isotonic calibration.
COEFFICIENTS = {
    "template_here": 1.108,
    "template_anywhere": 2.073,
    "type_anywhere": 2.018,
    "relevance": 0.678,
    "instances": 0.217,
}
INTERCEPT = -3.96
# Probability before calibration, share that was right; between two of them it is interpolated.
CALIBRATION = (
    (0.0, 0.0),
    (0.02, 0.009),
    (0.024, 0.023),
    (0.032, 0.034),
    (0.039, 0.039),
    (0.04, 0.048),
    (0.046, 0.051),
    (0.058, 0.058),
    (0.065, 0.097),
    (0.09, 0.098),
    (0.157, 0.191),
    (0.249, 0.21),
    (0.371, 0.222),
    (0.724, 0.77),
    (1.0, 1.0),
)
# What the probability of further remedies must be, as a share of that of the best.
_FURTHER = 0.5


@dataclass(frozen=True, slots=True)
class RemedyFeatures:
    """What the probability of a remedy is computed from.

    The first three are shares of independent instances that did so: among those that cleared an
    error of the same template in the repository, of the same template or type anywhere, each over
    their number + 1. *relevance* is BM25 over that of the most relevant remedy, *instances* is
    ln(1 + number).
    """

    template_here: float
    template_anywhere: float
    type_anywhere: float
    relevance: float
    instances: float


def probability(features: RemedyFeatures) -> float:
    """How probable it is that a remedy with these *features* clears the error, 0 to 1."""
    total = INTERCEPT + sum(
        weight * getattr(features, name) for name, weight in COEFFICIENTS.items()
    )
    return _calibrated(1 / (1 + exp(-total)))


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


def _calibrated(raw: float) -> float:
    above = next(at for at, (known, _) in enumerate(CALIBRATION) if raw <= known)
    (low, least), (high, most) = CALIBRATION[max(above, 1) - 1 : max(above, 1) + 1]
    return least + (most - least) * (raw - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Gate:
    """What may be shown: bad advice costs more than none.

    *min_precision* is the least probability of the best remedy of an error, *min_case_precision*
    that of a past run (docs/retrieval.md).
    """

    min_precision: float = 0.18
    min_case_precision: float = 0.25

    def admits(self, probabilities: Sequence[float]) -> list[bool]:
        """Which of the remedies of one error may be shown.

        None where none is probable enough; else also those that are at least half as probable as
        the best has to be: the causes of one error differ.
        """
        if max(probabilities, default=0.0) < self.min_precision:
            return [False] * len(probabilities)
        return [one >= self.floor for one in probabilities]

    @property
    def floor(self) -> float:
        """What the probability of any remedy that is shown must be."""
        return _FURTHER * self.min_precision


def may_be_shown(methodology: Methodology) -> bool:
    """False for a methodology that harmed, that another replaced, or that is never advice."""
    withdrawn = (MethodologyStatus.QUARANTINED, MethodologyStatus.RETIRED)
    return methodology.status not in withdrawn and not is_hazardous(methodology.remedies)


CONSERVATIVE = Gate()
# What a ranking is before any item is held back.
UNGATED = Gate(min_precision=0.0, min_case_precision=0.0)

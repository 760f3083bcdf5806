"""The gate: how probable it is that an item helps, and what is probable enough to be shown."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp

from contextgraph.model import Methodology, MethodologyStatus, ScopeLevel
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


def _calibrated(raw: float) -> float:
    above = next(at for at, (known, _) in enumerate(CALIBRATION) if raw <= known)
    (low, least), (high, most) = CALIBRATION[max(above, 1) - 1 : max(above, 1) + 1]
    return least + (most - least) * (raw - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Gate:
    """What may be shown: bad advice costs more than none.

    *min_precision* is the least probability of the best remedy of an error. For cases the bounds
    are the overlap from which, on linked issues of 53 repositories, the first case shown was a
    related one about every second time (docs/retrieval.md).
    """

    min_precision: float = 0.18
    case_in_repo: float = 0.06
    case_elsewhere: float = 0.20
    similar_in_repo: float = 0.30
    runs_for_warning: int = 3

    def admits(self, probabilities: Sequence[float]) -> list[bool]:
        """Which of the remedies of one error may be shown.

        None where none is probable enough; else also those that are at least half as probable as
        the best has to be: the causes of one error differ.
        """
        if max(probabilities, default=0.0) < self.min_precision:
            return [False] * len(probabilities)
        return [one >= _FURTHER * self.min_precision for one in probabilities]

    def admits_case(
        self, task_overlap: float, scope: ScopeLevel, *, same_file: bool, similarity: float = 0.0
    ) -> bool:
        """Whether a past run may be shown whose task is so similar, or that was at this file.

        *similarity* is the cosine of the vectors, where they were compared.
        """
        if scope is ScopeLevel.REPO and (same_file or similarity >= self.similar_in_repo):
            return True
        least = self.case_in_repo if scope is ScopeLevel.REPO else self.case_elsewhere
        return task_overlap >= least


def may_be_shown(methodology: Methodology) -> bool:
    """False for a methodology that harmed, that another replaced, or that is never advice."""
    withdrawn = (MethodologyStatus.QUARANTINED, MethodologyStatus.RETIRED)
    return methodology.status not in withdrawn and not is_hazardous(methodology.remedies)


CONSERVATIVE = Gate()
# What a ranking is before any item is held back.
UNGATED = Gate(min_precision=0.0, case_in_repo=0.0, case_elsewhere=0.0)

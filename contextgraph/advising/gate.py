"""The gate: the probability that an item helps, and the threshold to show it."""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import exp, log1p
from operator import attrgetter, itemgetter
from typing import NamedTuple

from contextgraph.governance import (
    ACTIVE_FROM,
    TWO_SIDED,
    Credit,
    credits_of,
    difference,
    effect_of,
    is_active,
    is_silenced,
)
from contextgraph.lazy import dataclass
from contextgraph.model import (
    Evidence,
    Exposure,
    FittedGate,
    Methodology,
    MethodologyStatus,
    Recollection,
    Remedy,
    RemedyFeatures,
    ShownItem,
)
from contextgraph.ports import ALL, Store
from contextgraph.ranking import PROBABLE
from contextgraph.trace import is_hazardous

# Fitted by `python -m benchmarks.gate` (see benchmarks/README.md): a logistic regression on
# recoveries of recorded runs, each judged by those of other instances, then isotonic calibration.
SHIPPED = FittedGate(
    coefficients={
        "same_template": 3.532,
        "unsupported": 3.514,
        "same_type": 3.637,
        "relevance": 0.904,
        "attempt": 0.98,
    },
    intercept=-4.949,
    calibration=(
        (0.0, 0.0),
        (0.008, 0.0),
        (0.011, 0.007),
        (0.016, 0.018),
        (0.024, 0.022),
        (0.04, 0.025),
        (0.05, 0.037),
        (0.053, 0.049),
        (0.056, 0.058),
        (0.063, 0.065),
        (0.083, 0.082),
        (0.117, 0.164),
        (0.142, 0.186),
        (0.172, 0.247),
        (0.241, 0.3),
        (0.39, 0.537),
        (0.662, 0.7),
        (0.939, 0.908),
        (0.978, 1.0),
        (1.0, 1.0),
    ),
)


def stored_gate(store: Store) -> FittedGate | None:
    """The gate that was fitted on *store*; None where it was on other features, or not at all."""
    known = store.admin.gate()
    return known if known and known.coefficients.keys() == SHIPPED.coefficients.keys() else None


def probability(features: RemedyFeatures, gate: FittedGate = SHIPPED) -> float:
    """How probable it is that a remedy with these *features* clears the error, 0 to 1."""
    total = gate.intercept + sum(
        weight * getattr(features, name) for name, weight in gate.coefficients.items()
    )
    return _interpolated(gate.calibration, 1 / (1 + exp(-total)))


# Fitted by `python -m benchmarks.case_gate`, on tasks that people linked to later ones.
CASE_COEFFICIENTS = (2.0, 1.79, 5.69, 4.72)
CASE_INTERCEPT = -11.96
# Long tasks share many words; that they share more than this says nothing. Any two texts share a
# word.
_MOST_SHARED, _LEAST_SHARED = 10, 2


class CaseFeatures(NamedTuple):
    """Features of the probability of a past run.

    *similarity* of the tasks is from 0 to 1, *shared* the number of words that both have,
    *closeness* the score of the run over that of the best one, and *lead* how far the best one is
    before the next: where several are as close, none may be meant.
    """

    similarity: float
    shared: int
    closeness: float
    lead: float = 0.0

    @property
    def columns(self) -> tuple[float, ...]:
        """The features as the regression takes them."""
        return self.similarity, log1p(min(self.shared, _MOST_SHARED)), self.closeness, self.lead


def case_probability(features: CaseFeatures) -> float:
    """The probability that people would link the task of a past run to the queried task."""
    if features.shared < _LEAST_SHARED:
        return 0.0
    weighted = zip(CASE_COEFFICIENTS, features.columns, strict=True)
    return 1 / (1 + exp(-CASE_INTERCEPT - sum(weight * value for weight, value in weighted)))


# What an average step adds to the prompt of an agent (65 kB in 29 steps): a text of this length
# costs as much as the step that it may save (docs/evaluation.md).
TOKENS_OF_A_STEP = 500
# What a wrong remedy costs, and what it costs to read one line in its fence, in steps of an agent.
HARM, READING = 1.0, 65 / TOKENS_OF_A_STEP
# A clearance that took longer took other work, too.
MOST_STEPS = 20


def expected_worth(probability: float, steps: float, gate: FittedGate = SHIPPED) -> float:
    """Return the steps that saying a remedy is expected to save.

    It clears the error with this *probability*, and took so many *steps* in earlier runs. What
    follows at once saves little: most agents do it by themselves.
    """
    least, each = gate.saving
    saved = max(0.0, least + each * (min(steps, MOST_STEPS) - 1))
    return probability * saved - (1 - probability) * HARM - READING


def _interpolated(points: Sequence[tuple[float, float]], at: float) -> float:
    above = max(bisect_left(points, at, key=itemgetter(0)), 1)
    (low, least), (high, most) = points[above - 1 : above + 1]
    return least + (most - least) * (at - low) / (high - low)


@dataclass(frozen=True, slots=True)
class Gate:
    """Decides what may be shown: advice that is expected to save steps.

    Of a remedy `expected_worth` has to be positive. *min_precision* is the least probability of a
    remedy, which must also have evidence; at 0 no remedy is held back. *min_case_precision* is that
    of a past run in a ranking, and *close_case_precision* that of one in the text
    (docs/retrieval.md). *min_note_precision* is the least probability that a note answers the title
    of the task.
    """

    min_precision: float = 0.3
    min_case_precision: float = 0.15
    # From this probability on .83 of the past runs that come first were linked to the task.
    close_case_precision: float = 0.65
    min_note_precision: float = 0.4
    min_statement_precision: float = PROBABLE

    def refusal(self, remedy: Remedy) -> str:
        """Return why *remedy* is not worth showing; empty where it is."""
        if not self.min_precision:
            return ""
        # Recorded runs count some remedies without evidence as right: `install <the missing
        # module>` is what cleared such an error, whichever module was named.
        if remedy.features.unsupported:
            is_single = remedy.why.instances < 2
            return (
                "one task alone did it" if is_single else "the state does not show that it applies"
            )
        if remedy.probability < self.min_precision:
            return f"improbable: {self.min_precision:.2f} is needed"
        if remedy.worth <= 0:
            return "saying it costs more steps than it saves on average"
        return ""

    def notes(self, recollections: Iterable[Recollection]) -> tuple[Recollection, ...]:
        """Return the *recollections* that are probable enough, in their order."""
        return tuple(
            recollection
            for recollection in recollections
            if recollection.probability >= self.min_note_precision
        )

    def statements(self, recollections: Iterable[Recollection]) -> tuple[Recollection, ...]:
        """Return those of *recollections* that are probably about the request, in their order."""
        return tuple(
            recollection
            for recollection in recollections
            if recollection.probability >= self.min_statement_precision
        )


def may_be_shown(methodology: Methodology) -> bool:
    """False for a methodology that harmed, that another replaced, or that is never advice."""
    withdrawn = (MethodologyStatus.QUARANTINED, MethodologyStatus.RETIRED)
    return methodology.status not in withdrawn and not is_hazardous(methodology.remedies)


CONSERVATIVE = Gate()
# What a ranking is before any item is held back.
UNGATED = Gate(0.0, 0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True, slots=True)
class Credits:
    """The credit of advice by its id, and whether the runs of the memory have several sources.

    What *distrusted* ones supplied counts for nothing.
    """

    by_name: Mapping[str, Credit]
    several_sources: bool
    distrusted: frozenset[str] = frozenset()

    def of(self, name: str) -> Credit:
        """The credit of the advice, or item, *name*."""
        return self.by_name.get(name, Credit())

    def is_active(self, instances: int, sources: int) -> bool:
        """Whether so many independent instances and sources of runs make advice active."""
        return is_active(instances, sources, several_sources=self.several_sources)

    def is_silenced(self, name: str, sources: int) -> bool:
        """Whether the advice *name*, which so many *sources* support, is not shown."""
        is_agreed = self.several_sources and sources >= ACTIVE_FROM
        return is_silenced(self.of(name), is_agreed=is_agreed)


NO_CREDITS = Credits({}, several_sources=False)


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
        beside = {key(item) for exposure in record.exposures for item in exposure.items} - wanted
        if not beside:
            break
        wanted |= beside
        record = store.exposures.record(sorted(wanted))
    return Credits(credits_of(record, key), record.several_sources, record.distrusted)


def evidence_of(store: Store, name: str) -> Evidence | None:
    """Return the evidence of the advice or methodology *name*; None if never shown."""
    record = store.exposures.record([name])
    verdict = next((verdict for verdict in record.verdicts if verdict.advice == name), None)
    shown = list(_shown_as(store, name))
    if not shown and verdict is None:
        return None
    tried = [(exposure.source, item.helped) for exposure, item in shown if item.helped is not None]
    cleared = sum(helped for _, helped in tried)
    errors = record.base_rates.values()
    runs, runs_cleared = sum(counts[0] for counts in errors), sum(counts[1] for counts in errors)
    is_id = any(name == item.id for _, item in shown)
    known = credits_for(store, [name], attrgetter("id" if is_id else "advice")).of(name)
    return Evidence(
        sum(not exposure.is_withheld for exposure, _ in shown),
        len(tried),
        cleared,
        runs,
        runs_cleared,
        *difference(cleared, len(tried), runs_cleared, runs, TWO_SIDED),
        sources=_by_source(tried),
        trust=known.trust,
        is_quarantined=known.is_quarantined,
        by_hand="" if verdict is None else "quarantined" if verdict.is_quarantined else "released",
        randomised=effect_of(exposure for exposure, _ in shown),
    )


def _shown_as(store: Store, name: str) -> Iterator[tuple[Exposure, ShownItem]]:
    for exposure in store.exposures.newest(ALL, name=name):
        yield from ((exposure, item) for item in exposure.items if name in (item.id, item.advice))


def _by_source(tried: Sequence[tuple[str, bool]]) -> dict[str, tuple[int, int]]:
    """Source -> how often it *tried* the advice, and how often that cleared the error."""
    effects: dict[str, list[bool]] = {}
    for source, helped in sorted(tried):
        effects.setdefault(source, []).append(helped)
    return {source: (len(some), sum(some)) for source, some in effects.items()}

"""Fits the gate of a memory on its own runs; each error is judged by runs of other instances."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import astuple, fields
from itertools import islice
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from contextgraph.advising.channels import (
    CHANNELS,
    Channel,
    query_of,
)
from contextgraph.advising.evidence import counted, found, same
from contextgraph.advising.gate import (
    MOST_STEPS,
    SHIPPED,
    RepoRemedy,
    remedy_of,
    same_remedy,
    stored_gate,
)
from contextgraph.lazy import dataclass, replace
from contextgraph.model import (
    FittedGate,
    RawTrajectory,
    RemedyFeatures,
    State,
)
from contextgraph.ports import Store, id_pages
from contextgraph.trace import (
    Names,
    Trace,
    names_in,
    states_of,
    trace,
)

# Below these the shipped gate is used; more errors than the last cost time and change little.
LEAST_RUNS, LEAST_ERRORS, MOST_ERRORS = 64, 100, 300
# How firmly the coefficients are held at the shipped ones, and for how many errors the shipped
# calibration counts. Chosen on the learned parts of three corpora (docs/retrieval.md).
_PRIOR, _SHIPPED_ERRORS = 20.0, 300
_FOLDS, _ITERATIONS = 10, 25
_PAGE = 64

Numbers: TypeAlias = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JudgedRemedy:
    """A remedy that was found at an error of *instance*, and whether it is what cleared it.

    In earlier runs it came after *steps* on average; this one took *taken*.
    """

    instance: str
    features: RemedyFeatures
    is_right: bool
    steps: float = 0.0
    taken: int = 0


def gate_due(store: Store) -> bool:
    """Whether to fit: at 64 runs, and whenever there are twice as many as were fitted on."""
    known = stored_gate(store)
    return _runs(store) >= max(LEAST_RUNS, 2 * known.runs if known else 0)


def fitted_gate(store: Store, check: Callable[[], None]) -> FittedGate:
    """The gate that fits at most 300 errors of *store*; the shipped one with fewer than 100.

    The same where nothing could be advised at any of them. Runs are taken in the order of their
    ids, which is random. *check* is called at each.
    """
    errors = list(islice(_judged(store, check), MOST_ERRORS))
    if len(errors) < LEAST_ERRORS or not any(errors):
        return replace(SHIPPED, runs=_runs(store))
    return gate_of(errors, _runs(store))


def judged_remedies(
    store: Store, run: Trace, channels: Mapping[str, Channel] = CHANNELS
) -> Iterator[list[JudgedRemedy]]:
    """Return the advice of *store* at each error that *run* verifiably cleared, best first.

    Runs of its instance are hidden, and later ones.
    """
    raw = run.raw
    for state, done, names, taken in _cleared(run):
        query = query_of(state, store, frozenset({raw.instance_id}), raw.started_at)
        candidates = {name: channel(query, store).recoveries for name, channel in channels.items()}
        judged = []
        for remedy in counted(query, same(query, found(query, candidates))):
            advised = remedy_of(remedy.actions, remedy.repo)
            if remedy.silence is None:
                is_right = same_remedy(done, advised, names)
                judged.append(
                    JudgedRemedy(
                        raw.instance_id,
                        remedy.features,
                        is_right,
                        remedy.steps,
                        taken,
                    )
                )
        yield judged


def _judged(store: Store, check: Callable[[], None]) -> Iterator[list[JudgedRemedy]]:
    for raw in _stored(store):
        check()
        yield from judged_remedies(store, trace(raw))


def _stored(store: Store) -> Iterator[RawTrajectory]:
    for ids in id_pages(store.runs, _PAGE):
        yield from filter(None, map(store.runs.raw, ids))


def _runs(store: Store) -> int:
    return store.runs.word_counts(()).total


def _cleared(run: Trace) -> Iterator[tuple[State, RepoRemedy, Names, int]]:
    """The states at errors that were verifiably cleared, and what cleared them, each once."""
    states = list(states_of(run.raw))
    seen: set[tuple[str, str, RepoRemedy]] = set()
    for recovery in run.recoveries:
        done = remedy_of(recovery.actions, run.raw.repo)
        again = (recovery.error.error_type, recovery.error.message, done) in seen
        if recovery.verified and not recovery.workaround and done and not again:
            seen.add((recovery.error.error_type, recovery.error.message, done))
            names = names_in(recovery.error.error_type, recovery.error.message)
            taken = recovery.cleared_step - recovery.error_step
            yield states[recovery.error_step - run.steps[0].index + 1], done, names, taken


def gate_of(errors: Sequence[Sequence[JudgedRemedy]], runs: int = 0) -> FittedGate:
    """The gate that fits the remedies of *errors*, of a memory of so many *runs*."""
    remedies = [remedy for at_error in errors for remedy in at_error]
    features = np.array([(*astuple(remedy.features), 1.0) for remedy in remedies])
    right = np.array([float(remedy.is_right) for remedy in remedies])
    *coefficients, intercept = _coefficients(features, right).tolist()
    raw = _held_out(features, right, [remedy.instance for remedy in remedies])
    names = [field.name for field in fields(RemedyFeatures)]
    return FittedGate(
        coefficients=dict(zip(names, coefficients, strict=True)),
        intercept=intercept,
        calibration=_blended(raw, right, len(errors)),
        errors=len(errors),
        runs=runs,
        saving=_saving([remedy for remedy in remedies if remedy.is_right]),
    )


def _saving(right: Sequence[JudgedRemedy]) -> tuple[float, float]:
    """The steps that *right* remedies would have saved, by those they took in earlier runs."""
    steps = np.array([(1.0, min(one.steps, MOST_STEPS) - 1) for one in right]).reshape(-1, 2)
    saved = np.array([max(0, min(one.taken, MOST_STEPS) - 1) for one in right])
    shipped, prior = np.array(SHIPPED.saving), _PRIOR * np.eye(2)
    least, each = np.linalg.solve(steps.T @ steps + prior, steps.T @ saved + _PRIOR * shipped)
    return round(float(least), 4), round(float(each), 4)


def _coefficients(features: Numbers, right: Numbers) -> Numbers:
    """Fit a logistic regression that is drawn towards the shipped one (Newton's method)."""
    shipped = np.array([*SHIPPED.coefficients.values(), SHIPPED.intercept])
    coefficients, prior = shipped, _PRIOR * np.eye(len(shipped))
    for _ in range(_ITERATIONS):
        share = _share(features, coefficients)
        slope = features.T @ (share - right) + _PRIOR * (coefficients - shipped)
        curvature = (features * (share * (1 - share))[:, None]).T @ features + prior
        coefficients = coefficients - np.linalg.solve(curvature, slope)
    return coefficients


def _share(features: Numbers, coefficients: Numbers) -> Numbers:
    share: Numbers = 1 / (1 + np.exp(-(features @ coefficients)))
    return share


def _held_out(features: Numbers, right: Numbers, instances: Sequence[str]) -> Numbers:
    """The probability of each remedy by coefficients that were fitted without its instance."""
    numbers = {instance: number for number, instance in enumerate(dict.fromkeys(instances))}
    folds = np.array([numbers[instance] % _FOLDS for instance in instances])
    raw = np.zeros(len(right))
    for fold in range(_FOLDS):
        rest, held = folds != fold, folds == fold
        raw[held] = _share(features[held], _coefficients(features[rest], right[rest]))
    return raw


def _blended(raw: Numbers, right: Numbers, errors: int) -> tuple[tuple[float, float], ...]:
    """The isotonic calibration of *raw*, blended with the shipped one: less of it with more errors.

    Both are monotonic, so the blend is, too.
    """
    from sklearn.isotonic import IsotonicRegression

    own = IsotonicRegression(out_of_bounds="clip").fit(raw, right)
    shipped, known = np.array(SHIPPED.calibration).T
    at = np.unique(np.concatenate([own.X_thresholds_.round(3), shipped]))
    share = errors / (errors + _SHIPPED_ERRORS)
    blended = share * own.predict(at) + (1 - share) * np.interp(at, shipped, known)
    return tuple(zip(at.tolist(), blended.round(4).tolist(), strict=True))

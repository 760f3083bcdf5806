"""Fits the gate of a memory on its own runs; each error is judged by runs of other instances.

Instances are divided into parts, and all of its part are hidden at an error. If only its own
instance were hidden, a remedy would have the least share exactly where it is right.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import TypeAlias

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from contextgraph.advising.channels import FROM_RUNS, Channel, harness, query_of
from contextgraph.advising.evidence import counted, found, recovery_key
from contextgraph.advising.gate import (
    MOST_OF_LOOP,
    READING,
    SHIPPED,
    RepoRemedy,
    does_the_same,
    remedy_of,
    stored_gate,
)
from contextgraph.model import Count, FittedModel, Likeness, MemoryGate, RawTrajectory, State
from contextgraph.store.memory_store import Store, id_pages
from contextgraph.trace import LoopTracker, Names, Trace, names_in, states_of, trace
from contextgraph.trace.loops import MIN_REPEAT, STUCK_AFTER, is_alarming

# Below these the shipped gate is used; more errors than the last cost time and change little.
LEAST_RUNS, LEAST_ERRORS, MOST_ERRORS = 64, 100, 300
# Of fewer loops it is not known how long they last.
LEAST_LOOPS = 10
# How firmly the coefficients are held at the shipped ones, and for how many errors the shipped
# calibration counts. Chosen on the learned parts of three corpora (docs/retrieval.md).
_PRIOR, _SHIPPED_ERRORS = 20.0, 300
_FOLDS, _ITERATIONS, _PRECISE = 10, 25, 1e-9
_PAGE = 64
_PARTS = 5

Numbers: TypeAlias = NDArray[np.float64]


class JudgedRemedy(Struct, frozen=True):
    """A remedy that was found at an error of *instance*, and whether it is what cleared it."""

    instance: str
    counts: tuple[Count, ...]
    is_supported: bool
    is_right: bool


def gate_due(store: Store) -> bool:
    """Return whether to fit: at 64 runs, and whenever there are twice as many as were fitted on."""
    return _runs(store) >= max(LEAST_RUNS, 2 * stored_gate(store).runs)


def fitted_gate(store: Store, check: Callable[[], None]) -> MemoryGate:
    """Return the gate fitted to at most 300 errors of *store*.

    With fewer than 100, or without advice at any of them, it has no model. Runs are taken in
    the order of their ids, which is random. *check* is called at each.
    """
    errors: list[list[JudgedRemedy]] = []
    loops: dict[str, list[Mapping[int, int]]] = {}
    for raw in _stored(store):
        check()
        run = trace(raw)
        loops.setdefault(harness(raw.agent), []).extend(_rests(run))
        errors += judged_remedies(store, run)
        if len(errors) >= MOST_ERRORS:
            break
    runs, alarms = _runs(store), _alarms(loops)
    if len(errors) < LEAST_ERRORS or not any(errors):
        return MemoryGate(runs=runs, alarms=alarms)
    judged = errors[:MOST_ERRORS]
    return MemoryGate(model_of(judged), len(judged), runs, alarms)


def judged_remedies(
    store: Store, run: Trace, channels: Mapping[str, Channel] = FROM_RUNS
) -> Iterator[list[JudgedRemedy]]:
    """Yield the advice of *store* at each error that *run* verifiably cleared, best first.

    Runs of its part of the instances are hidden, and later ones.
    """
    raw, part = run.raw, _part(run.raw.instance_id)
    for state, done, names in cleared_errors(run):
        query = query_of(state, store, frozenset({raw.instance_id}), raw.started_at)
        candidates = {
            recovery_key(candidate): candidate
            for channel in channels.values()
            if channel.at_error
            for candidate in channel.at_error(query, store).recoveries
            if _part(candidate.instance_id) != part
        }
        yield [
            JudgedRemedy(
                raw.instance_id,
                remedy.why.counts,
                remedy.is_supported,
                does_the_same(done, remedy_of(remedy.actions, remedy.repo), names),
            )
            for remedy in counted(query, *found(query, candidates.values()))
            if remedy.silence is None
        ]


def _part(instance: str) -> int:
    digest = blake2b(instance.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) % _PARTS


def _stored(store: Store) -> Iterator[RawTrajectory]:
    for ids in id_pages(store.runs, _PAGE):
        yield from filter(None, map(store.runs.raw, ids))


def _runs(store: Store) -> int:
    return store.runs.word_counts(()).total


def cleared_errors(run: Trace) -> Iterator[tuple[State, RepoRemedy, Names]]:
    """Yield the state at each error that was verifiably cleared, what cleared it, and its names.

    The same remedy of the same error counts once.
    """
    states = list(states_of(run.raw))
    seen: set[tuple[str, str, RepoRemedy]] = set()
    for recovery in run.recoveries:
        done = remedy_of(recovery.actions, run.raw.repo)
        again = (recovery.error.error_type, recovery.error.message, done) in seen
        if recovery.verified and not recovery.workaround and done and not again:
            seen.add((recovery.error.error_type, recovery.error.message, done))
            names = names_in(recovery.error.error_type, recovery.error.message)
            yield states[recovery.error_step - run.steps[0].index + 1], done, names


def _rests(run: Trace) -> Iterator[Mapping[int, int]]:
    """Yield, for each alarming loop, by repetition how many steps it still went on."""
    tracker = LoopTracker()
    reached: dict[int, dict[int, int]] = {}
    for at, step in enumerate(run.steps):
        if (loop := tracker.push(step)) and is_alarming(loop):
            reached.setdefault(loop.start, {}).setdefault(loop.repetitions, at)
    for loop in run.loops:
        if loop.start in reached:
            yield {often: loop.end - at for often, at in reached[loop.start].items()}


def _alarms(loops: Mapping[str, Sequence[Mapping[int, int]]]) -> dict[str, int]:
    """By agent, the least repetitions at which a warning pays; only where it had enough loops."""
    alarms = {}
    for agent, of_agent in loops.items():
        for often in range(MIN_REPEAT, STUCK_AFTER):
            rests = [rest[often] for rest in of_agent if often in rest]
            saved = sum(min(rest, MOST_OF_LOOP) - (rest == 0) - READING for rest in rests)
            if len(rests) >= LEAST_LOOPS and saved > 0:
                alarms[agent] = often
                break
    return alarms


def model_of(errors: Sequence[Sequence[JudgedRemedy]]) -> FittedModel:
    """Return the model fitted to the remedies of *errors*."""
    remedies = [remedy for at_error in errors for remedy in at_error]
    features = np.array([(*shares_of(remedy), 1.0) for remedy in remedies])
    right = np.array([float(remedy.is_right) for remedy in remedies])
    *weights, intercept = _coefficients(features, right).tolist()
    raw = _held_out(features, right, [remedy.instance for remedy in remedies])
    by_likeness = dict(zip(map(str, Likeness), weights, strict=True))
    return FittedModel(intercept, by_likeness, _blended(raw, right, len(errors)))


def shares_of(remedy: JudgedRemedy) -> list[float]:
    """Return the share of *remedy* at each `Likeness`, in their order."""
    shares = {count.likeness: count.share for count in remedy.counts}
    return [shares.get(likeness, 0.0) for likeness in Likeness]


def _coefficients(features: Numbers, right: Numbers) -> Numbers:
    """Fit a logistic regression that is drawn towards the shipped one (Newton's method)."""
    shipped = np.array([*SHIPPED.weights.values(), SHIPPED.intercept])
    coefficients, prior = shipped, _PRIOR * np.eye(len(shipped))

    def loss(fitted: Numbers) -> float:
        wrong = np.logaddexp(0, np.where(right, -1, 1) * (features @ fitted)).sum()
        return float(wrong + _PRIOR / 2 * np.square(fitted - shipped).sum())

    for _ in range(_ITERATIONS):
        share = _share(features, coefficients)
        slope = features.T @ (share - right) + _PRIOR * (coefficients - shipped)
        curvature = (features * (share * (1 - share))[:, None]).T @ features + prior
        step = np.linalg.solve(curvature, slope)
        # Where the shipped coefficients are sure and wrong, a whole step leads too far.
        while loss(coefficients - step) > loss(coefficients) and np.abs(step).max() > _PRECISE:
            step /= 2
        coefficients = coefficients - step
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

"""Fit the gate of remedies: ``python -m benchmarks.gate runs.jsonl.gz more/``.

Of each path the part that ``contextgraph evaluate`` learns by default is learned; every error that
was cleared in it is asked about with its own instance hidden, and each remedy found is right or
not by the rule of evaluation. All paths count the same. Prints the model of
remedies of ``contextgraph/knowledge/fitted.json``.

With ``--own`` each path is fitted by itself, and judged by its other part beside the shipped gate:
how often a gate answers, is right among the first three shown, and its Brier score.
"""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from benchmarks.measure import model_line
from contextgraph.advising.channels import FROM_RUNS, Channel
from contextgraph.advising.gate import CONSERVATIVE, SHIPPED, probability
from contextgraph.evaluation.evaluation import split
from contextgraph.learning import masked
from contextgraph.learning.gate_fitting import (
    LEAST_ERRORS,
    MOST_ERRORS,
    JudgedRemedy,
    judged_remedies,
    model_of,
    shares_of,
)
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import FittedModel, Likeness, RawTrajectory
from contextgraph.readers import read
from contextgraph.trace import trace

Errors: TypeAlias = list[list[JudgedRemedy]]

SHARE, FOLDS, SHOWN = 0.7, 10, 3
_RIDGE = 0.001
# Steps of the calibration that rest on fewer remedies than this are merged with the next.
LEAST = 200


def main() -> None:
    """Fit and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.gate", description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, help="recorded runs, a corpus each")
    parser.add_argument("--own", action="store_true", help="fit and judge each by itself")
    arguments = parser.parse_args()
    if arguments.own:
        for path in arguments.paths:
            _print_own(path)
        return
    corpora = [list(chain.from_iterable(_of_parts(path)[0])) for path in arguments.paths]
    weights = np.concatenate([np.full(len(corpus), 1 / len(corpus)) for corpus in corpora])
    judged = [remedy for corpus in corpora for remedy in corpus]
    features = np.array([shares_of(remedy) for remedy in judged])
    right = np.array([remedy.is_right for remedy in judged])
    weights *= len(weights) / weights.sum()
    fitted = _logistic().fit(features, right, logisticregression__sample_weight=weights)
    print(f"{len(judged)} remedies, {right.sum()} right")
    scaler, model = (step for _, step in fitted.steps)
    coefficients = model.coef_[0] / scaler.scale_
    by_likeness = dict(zip(map(str, Likeness), coefficients.round(3).tolist(), strict=True))
    intercept = float(model.intercept_[0] - coefficients @ scaler.mean_)
    instances = [remedy.instance for remedy in judged]
    calibration = _calibration(features, right, weights, instances)
    print(model_line("remedies", intercept, by_likeness, calibration))


def _of_parts(path: Path, *, both: bool = False) -> tuple[Errors, Errors]:
    """The remedies found at each error of the part that is learned, and with *both* of the other.

    The memory holds the first part only.
    """
    with AgentMemory.open(":memory:") as memory:
        learned, others = learned_part(path, memory)
        of_others = moments_of(others, memory) if both else []
        return [moment for _, moment in moments_of(learned, memory)], [
            moment for _, moment in of_others
        ]


def learned_part(
    path: Path, memory: AgentMemory
) -> tuple[Sequence[RawTrajectory], Sequence[RawTrajectory]]:
    """The runs of *path* that *memory* now holds, and the others."""
    learned, others = split(read(path, on_error=_report, on_skip=_report), SHARE)
    for _ in memory.learn_many(learned):
        pass
    return learned, others


def moments_of(
    runs: Iterable[RawTrajectory],
    memory: AgentMemory,
    channels: Mapping[str, Channel] = FROM_RUNS,
) -> list[tuple[str, list[JudgedRemedy]]]:
    """Of each error that was cleared in *runs* the instance, and what is advised, best first."""
    return [
        (raw.instance_id, moment)
        for raw in runs
        for moment in judged_remedies(memory.store, trace(masked(raw)[0]), channels)
    ]


def _print_own(path: Path) -> None:
    """Return what a gate fitted on the learned part of *path* shows at the errors of the other."""
    learned, others = _of_parts(path, both=True)
    print(f"{path.name}: {len(learned)} errors to fit, {len(others)} to judge")
    _print_gate("shipped", others, SHIPPED)
    for count in (LEAST_ERRORS, MOST_ERRORS):
        _print_gate(f"own, {count}", others, model_of(learned[:count]))


def _print_gate(name: str, errors: Sequence[Sequence[JudgedRemedy]], model: FittedModel) -> None:
    answered = hits = 0
    squares: list[float] = []
    for moment in filter(None, errors):
        by = np.array([probability(remedy.counts, model) for remedy in moment])
        order = np.argsort(-by, kind="stable")
        shown = [moment[place] for place in order if by[place] >= CONSERVATIVE.min_precision]
        answered += bool(shown)
        hits += any(remedy.is_right for remedy in shown[:SHOWN])
        squares += ((by - [remedy.is_right for remedy in moment]) ** 2).tolist()
    print(
        f"  {name:8} answers {answered / len(errors):.2f}, right {hits / max(1, answered):.3f}, "
        f"Brier {np.mean(squares):.4f}"
    )


def _report(error: Exception) -> None:
    print(f"left out: {error}", file=sys.stderr)


def _calibration(
    features: NDArray[np.float64],
    right: NDArray[np.bool_],
    weights: NDArray[np.float64],
    instances: list[str],
) -> list[tuple[float, float]]:
    """Mean probability and share that was right, of each step of an isotonic regression."""
    held_out = np.zeros(len(right))
    for fit, rest in GroupKFold(FOLDS).split(features, right, instances):
        model = _logistic()
        model.fit(features[fit], right[fit], logisticregression__sample_weight=weights[fit])
        held_out[rest] = model.predict_proba(features[rest])[:, 1]
    shares = IsotonicRegression().fit(held_out, right, weights).predict(held_out)
    steps: list[tuple[float, float]] = []
    group = np.zeros(len(right), dtype=bool)
    for share in np.unique(shares):
        group |= shares == share
        if group.sum() >= LEAST or share == shares.max():
            means = [
                np.average(values[group], weights=weights[group]) for values in (held_out, right)
            ]
            steps.append((round(float(means[0]), 3), round(float(means[1]), 3)))
            group = np.zeros(len(right), dtype=bool)
    return [(0.0, 0.0), *steps, (1.0, 1.0)]


def _logistic() -> Pipeline:
    # The shares of one remedy rise and fall together: held firmly, they divide its weight.
    return make_pipeline(StandardScaler(), LogisticRegression(C=_RIDGE, max_iter=5_000))


if __name__ == "__main__":
    main()

"""Fitted models: logistic regressions whose weights stand in `fitted.json`, each by its name.

The benchmark that prints each of them is named in benchmarks/README.md.
"""

import os
from collections.abc import Mapping
from functools import cache
from math import exp

import msgspec
from msgspec import Struct


class Model(Struct, frozen=True):
    """The *weights* of features by name; *calibration* has what a probability means, ascending."""

    intercept: float
    weights: dict[str, float]
    calibration: tuple[tuple[float, float], ...] = ()

    def probability(self, features: Mapping[str, float]) -> float:
        """Return the probability, 0 to 1, by *features*; missing features are 0."""
        evidence = sum(weight * features.get(name, 0.0) for name, weight in self.weights.items())
        return 1 / (1 + exp(-self.intercept - evidence))


def fitted(name: str) -> Model:
    """Return the model of this name."""
    return _models()[name]


@cache
def _models() -> dict[str, Model]:
    with open(f"{os.path.splitext(__file__)[0]}.json", "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, Model])

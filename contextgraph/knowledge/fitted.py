"""Fitted models: logistic regressions whose weights stand in `fitted.json`, each by its name.

The benchmark that prints each of them is named in benchmarks/README.md.
"""

import os
from functools import cache

import msgspec

from contextgraph.model import FittedModel


@cache
def fitted(name: str) -> FittedModel:
    """Return the model of this name."""
    with open(f"{os.path.splitext(__file__)[0]}.json", "rb") as file:
        return msgspec.json.decode(file.read(), type=dict[str, FittedModel])[name]

"""What statistics need of a store, and how they name an error."""

from typing import Protocol

from contextgraph.model import ErrorTally
from contextgraph.ports import RetrievalStore, StatisticsStore, TrajectoryStore


class CountingStore(StatisticsStore, RetrievalStore, TrajectoryStore, Protocol):
    """Counts, proposes, and tells what it holds."""


def told(tally: ErrorTally) -> str:
    """The error of *tally* in words; type and message, each said once."""
    error = tally.error
    if error.template in {"", error.error_type} or not error.error_type:
        return error.error_type or error.template or error.family
    # Many messages begin with the last word of their type: "SyntaxError: …" of E999 SyntaxError.
    named = error.error_type.split()[-1]
    return f"{error.error_type}: {error.template.removeprefix(f'{named}: ')}"

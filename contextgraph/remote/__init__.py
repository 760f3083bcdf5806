"""Models behind an API: one endpoint, its pace and its price, for embedding and llm alike."""

from contextgraph.remote.budget import Budget
from contextgraph.remote.endpoint import Endpoint
from contextgraph.remote.failures import UnusableAnswerError
from contextgraph.remote.ledger import Ledger
from contextgraph.remote.patience import ENDURING, HASTY, PATIENT, THOUGHTFUL, Patience

__all__ = [
    "ENDURING",
    "HASTY",
    "PATIENT",
    "THOUGHTFUL",
    "Budget",
    "Endpoint",
    "Ledger",
    "Patience",
    "UnusableAnswerError",
]

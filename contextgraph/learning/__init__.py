"""Writing: raw run, trace, fragments, bundle, store."""

from contextgraph.learning.bundle import Inspection, bundle_of, fragments_of, inspect_run
from contextgraph.learning.identity import error_id, fragment_id, trajectory_id
from contextgraph.learning.masking import masked, unmasked_values
from contextgraph.learning.writer import RUNS_AT_ONCE, MemoryWriter, Prepared, checked_source

__all__ = [
    "RUNS_AT_ONCE",
    "Inspection",
    "MemoryWriter",
    "Prepared",
    "bundle_of",
    "checked_source",
    "error_id",
    "fragment_id",
    "fragments_of",
    "inspect_run",
    "masked",
    "trajectory_id",
    "unmasked_values",
]

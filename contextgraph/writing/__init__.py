"""Writing: raw run, trace, fragments, bundle, store."""

from contextgraph.writing.bundle import Inspection, bundle_of, fragments_of, inspect_run
from contextgraph.writing.identity import error_id, fragment_id, trajectory_id
from contextgraph.writing.masking import masked
from contextgraph.writing.writer import MemoryWriter

__all__ = [
    "Inspection",
    "MemoryWriter",
    "bundle_of",
    "error_id",
    "fragment_id",
    "fragments_of",
    "inspect_run",
    "masked",
    "trajectory_id",
]

"""Writing: raw run, trace, fragments, bundle, store."""

from contextgraph.learning.ahead import Prepared
from contextgraph.learning.bundle import Inspection, bundle_of, fragments_of, inspect_run
from contextgraph.learning.identity import error_id, fragment_id, trajectory_id
from contextgraph.learning.masking import holds_secrets, masked
from contextgraph.learning.writer import MemoryWriter

__all__ = [
    "Inspection",
    "MemoryWriter",
    "Prepared",
    "bundle_of",
    "error_id",
    "fragment_id",
    "fragments_of",
    "holds_secrets",
    "inspect_run",
    "masked",
    "trajectory_id",
]

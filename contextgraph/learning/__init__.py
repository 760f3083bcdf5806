"""Writing: raw run, trace, fragments, bundle, store."""

from contextgraph.learning.bundle import (
    Inspection as Inspection,
    bundle_of as bundle_of,
    fragment_id as fragment_id,
    inspect_run as inspect_run,
    masked as masked,
    run_ids as run_ids,
    trajectory_id as trajectory_id,
    unmasked_values as unmasked_values,
    without_private_words as without_private_words,
)
from contextgraph.learning.forgetting import Forgetting as Forgetting
from contextgraph.learning.repositories import Repositories as Repositories
from contextgraph.learning.writer import (
    RUNS_AT_ONCE as RUNS_AT_ONCE,
    MemoryWriter as MemoryWriter,
    Prepared as Prepared,
    checked_source as checked_source,
)

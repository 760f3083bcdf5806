"""`set_memory` on plain files: see docs/keyed.md."""

from contextgraph.keyed.briefing import Briefing as Briefing
from contextgraph.keyed.entry import Envelope as Envelope
from contextgraph.keyed.memory import (
    CompactionReport as CompactionReport,
    KeyedMemory as KeyedMemory,
    SetReceipt as SetReceipt,
)

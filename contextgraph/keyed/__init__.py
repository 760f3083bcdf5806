"""`set_memory` on plain files: see docs/keyed.md."""

from contextgraph.keyed.briefing import Briefing, BriefingPolicy
from contextgraph.keyed.entry import Envelope
from contextgraph.keyed.memory import CompactionReport, KeyedMemory, SetReceipt

__all__ = [
    "Briefing",
    "BriefingPolicy",
    "CompactionReport",
    "Envelope",
    "KeyedMemory",
    "SetReceipt",
]

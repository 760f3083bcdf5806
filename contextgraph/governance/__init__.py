"""Pure arithmetic on what is remembered: trust, forgetting, credibility, conflict, eviction."""

from contextgraph.governance.conflict import (
    ConflictPolicy,
    Relation,
    Statement,
    Verdict,
    conflict_confidence,
)
from contextgraph.governance.credibility import CredibilityPolicy
from contextgraph.governance.eviction import (
    Capacity,
    Evictable,
    EvictionPolicy,
    Hybrid,
    RecallStats,
    RecallValue,
    Ttl,
    rarity,
)
from contextgraph.governance.evidence import (
    TWO_SIDED,
    Credit,
    confidence,
    credits_of,
    difference,
    effect_of,
    is_active,
    is_withheld,
    wilson,
)
from contextgraph.governance.forgetting import ForgettingPolicy, Layer, age_weight

__all__ = [
    "TWO_SIDED",
    "Capacity",
    "ConflictPolicy",
    "CredibilityPolicy",
    "Credit",
    "Evictable",
    "EvictionPolicy",
    "ForgettingPolicy",
    "Hybrid",
    "Layer",
    "RecallStats",
    "RecallValue",
    "Relation",
    "Statement",
    "Ttl",
    "Verdict",
    "age_weight",
    "confidence",
    "conflict_confidence",
    "credits_of",
    "difference",
    "effect_of",
    "is_active",
    "is_withheld",
    "rarity",
    "wilson",
]

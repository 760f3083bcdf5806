"""Pure functions on trust, credibility, forgetting, conflicts and eviction."""

from contextgraph.governance.alternatives import related_words as related_words
from contextgraph.governance.conflict import (
    CREDIBILITY_MARGIN as CREDIBILITY_MARGIN,
    Relation as Relation,
    Statement as Statement,
    Verdict as Verdict,
    conflict_confidence as conflict_confidence,
    judged as judged,
    verdict as verdict,
)
from contextgraph.governance.evidence import (
    ACTIVE_FROM as ACTIVE_FROM,
    TWO_SIDED as TWO_SIDED,
    Credit as Credit,
    confidence as confidence,
    credits_of as credits_of,
    difference as difference,
    effect_of as effect_of,
    is_active as is_active,
    is_silenced as is_silenced,
    is_supported as is_supported,
    is_withheld as is_withheld,
    wilson as wilson,
)
from contextgraph.governance.forgetting import (
    Capacity as Capacity,
    Evictable as Evictable,
    EvictionPolicy as EvictionPolicy,
    Hybrid as Hybrid,
    RecallStats as RecallStats,
    RecallValue as RecallValue,
    Ttl as Ttl,
    age_weight as age_weight,
    belongs_long_term as belongs_long_term,
    credibility as credibility,
    is_forgotten as is_forgotten,
    rarity as rarity,
    shares_below as shares_below,
    strength as strength,
    worth as worth,
)

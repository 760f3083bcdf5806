"""Pure functions on credibility, forgetting, conflicts and eviction."""

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

"""Pure functions on credibility, forgetting, conflicts, eviction and ranking."""

from contextgraph.governance.alternatives import related_words as related_words
from contextgraph.governance.conflict import *
from contextgraph.governance.forgetting import *

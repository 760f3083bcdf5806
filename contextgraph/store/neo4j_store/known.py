"""What this process has read of a memory, and would have to read again."""

import os
from dataclasses import dataclass, field

from contextgraph.store.neo4j_store.full_text import WordCounts
from contextgraph.store.neo4j_store.held_methodologies import HeldMethodologies
from contextgraph.store.neo4j_store.held_vectors import HeldVectors
from contextgraph.store.neo4j_store.known_recoveries import KnownRecoveries
from contextgraph.store.neo4j_store.values import LatestValues
from contextgraph.store.neo4j_store.vector_index import VectorIndexes


@dataclass(frozen=True, slots=True)
class Known:
    """Values, vectors and counts; a forked *process* has its own, as its locks are its own."""

    process: int = field(default_factory=os.getpid)
    values: LatestValues = field(default_factory=LatestValues)
    vectors: HeldVectors = field(default_factory=HeldVectors)
    methodologies: HeldMethodologies = field(default_factory=HeldMethodologies)
    recoveries: KnownRecoveries = field(default_factory=KnownRecoveries)
    indexes: VectorIndexes = field(default_factory=VectorIndexes)
    trajectory_words: WordCounts = field(default_factory=lambda: WordCounts("trajectory"))
    recovered_words: WordCounts = field(default_factory=lambda: WordCounts("recovered"))

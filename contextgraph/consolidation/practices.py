"""What worked in a repository where there was no error."""

from contextgraph.consolidation.places import Rarity, places_of
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.typed import typed_in
from contextgraph.model import PracticeGroup, RepoHistory


def practices_of(
    history: RepoHistory, policy: ConsolidationPolicy, rarity: Rarity
) -> tuple[PracticeGroup, ...]:
    """All that runs of *history* have in common; mostly nothing."""
    return (*places_of(history, policy, rarity), *typed_in(history, policy))

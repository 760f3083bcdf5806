"""How consolidation goes about it."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """The tunable numbers.

    *every* learned trajectories it is due. *window* is how many of the newest runs that met an
    error count as evidence. A remedy needs *clearances* from *runs*, the general scope
    *repositories*, and must be what at least *share* of the runs did that got over the error.
    *failed_fragments* of each error are kept, the newest. A methodology of confidence below
    *least_confidence* from fewer than *least_sources* goes after *probation_chances* of having
    been shown.
    """

    every: int = 16
    window: int = 400
    clearances: int = 3
    runs: int = 2
    repositories: int = 2
    share: float = 0.08
    remedies: int = 3
    alike: float = 0.9
    failed_fragments: int = 1000
    least_confidence: float = 0.3
    least_sources: int = 3
    probation_chances: int = 8
    lease: timedelta = timedelta(minutes=5)

"""How consolidation goes about it."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """The tunable numbers.

    *every* learned trajectories it is due. *window* is how many of the newest runs that met an
    error count as evidence. A remedy needs *clearances* from *runs*, the general scope
    *repositories*, and must be what at least *share* of the runs did that got over the error.
    Methodologies are merged that are *alike* (0 to 1), and parted again below *apart*.
    *failed_fragments* of each error are kept, the newest. A methodology of confidence below
    *least_confidence* from fewer than *least_sources* goes after *probation_chances* of having
    been shown.

    What worked without an error needs runs that together weigh *practice_weight* (one that solved
    its task counts 1, any other 0.5), and more than *practice_share* of those that did such a
    thing. A name is rare that at most *rare* of the tasks of other repositories have.

    After learning, a language model is asked for no longer than *wording*.
    """

    every: int = 16
    window: int = 400
    clearances: int = 3
    runs: int = 2
    repositories: int = 2
    share: float = 0.08
    remedies: int = 3
    alike: float = 0.9
    apart: float = 0.8
    failed_fragments: int = 1000
    least_confidence: float = 0.3
    least_sources: int = 3
    probation_chances: int = 8
    practice_weight: float = 1.5
    practice_share: float = 0.5
    rare: float = 0.02
    lease: timedelta = timedelta(minutes=5)
    wording: timedelta = timedelta(seconds=30)

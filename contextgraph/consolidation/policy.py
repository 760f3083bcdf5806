"""The tunable numbers of consolidation."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class ConsolidationPolicy:
    """When consolidation is due, what counts as evidence, and what is merged or removed.

    It is due every *interval* learned runs. Of an error the newest *window* runs
    are evidence. A remedy needs *min_clearances* from *min_runs*, in general advice from
    *min_repositories*, and at least *min_share* of the runs that cleared the error; the
    *max_remedies* most frequent ones make a methodology. Two methodologies are merged from
    *similarity_threshold* on (0 to 1), and separated again below *separation_threshold*.

    Of the failed attempts at an error the newest *max_failed_fragments* stay. A methodology below
    *min_confidence* from fewer than *min_sources* is retired after *probation_exposures*.

    After learning, requests to a language model start within *rewording_time*.
    """

    interval: int = 16
    window: int = 400
    min_clearances: int = 3
    min_runs: int = 2
    min_repositories: int = 2
    min_share: float = 0.08
    max_remedies: int = 3
    similarity_threshold: float = 0.9
    separation_threshold: float = 0.8
    max_failed_fragments: int = 1000
    min_confidence: float = 0.3
    min_sources: int = 3
    probation_exposures: int = 8
    rewording_time: timedelta = timedelta(seconds=30)

"""How credible a note is, by its source and by what other notes say."""

from dataclasses import dataclass

_DAYS, _NOTES = 90, 5


@dataclass(frozen=True, slots=True)
class CredibilityPolicy:
    """A weighted sum; recency is lost after 90 days, more than 5 other notes count as 5.

    With the default weights scores reach from 0 to 0.8. Trust in advice, which outcomes decide, is
    `trust`.
    """

    source_weight: float = 0.5
    recency_weight: float = 0.15
    corroboration_weight: float = 0.15
    contradiction_weight: float = 0.2

    def score(
        self,
        source: float,
        corroborated: int = 0,
        contradicted: int = 0,
        age_days: float = 0.0,
    ) -> float:
        """The credibility, 0 to 1, of a note from a *source* of that reliability (0 to 1).

        *corroborated* and *contradicted* are numbers of other notes.
        """
        recency = 1 - min(max(age_days, 0.0), _DAYS) / _DAYS
        total = (
            self.source_weight * source
            + self.recency_weight * recency
            + self.corroboration_weight * min(corroborated, _NOTES) / _NOTES
            - self.contradiction_weight * min(contradicted, _NOTES) / _NOTES
        )
        return max(0.0, min(1.0, total))

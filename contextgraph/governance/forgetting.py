"""How strong a memory still is, and what its strength leads to."""

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from math import exp, log


class Layer(StrEnum):
    """The layer of a memory: in the long-term layer it fades more slowly."""

    SHORT_TERM = "short_term"
    LONG_TERM = "long_term"


def age_weight(age: timedelta, half_life: timedelta) -> float:
    """How much something of *age* counts, 0 to 1: half after each *half_life*; all where new."""
    return float(0.5 ** (max(age, timedelta()) / half_life))


@dataclass(frozen=True, slots=True)
class ForgettingPolicy:
    """Strength falls with age as exp(-decay_rate · days^β); each layer has its own β.

    Thresholds for promotion and demotion differ, so that a memory between them does not flap.
    """

    short_term_beta: float = 1.2
    long_term_beta: float = 0.8
    promote_threshold: float = 0.7
    demote_threshold: float = 0.3
    archive_threshold: float = 0.1
    archive_after: timedelta = timedelta(days=60)

    def strength(
        self,
        *,
        importance: float,
        credibility: float,
        recalls: int,
        decay_rate: float,
        age_days: float,
        layer: Layer,
    ) -> float:
        """importance · credibility · (1 + ln(1 + recalls)) · exp(-decay_rate · age_days^β), from 0.

        *age_days* counts from the last recall. Negative *recalls* and ages count as 0. It may
        exceed 1: recalls delay forgetting.
        """
        beta = self.long_term_beta if layer is Layer.LONG_TERM else self.short_term_beta
        repeated = 1 + log(1 + max(recalls, 0))
        return importance * credibility * repeated * exp(-decay_rate * max(age_days, 0.0) ** beta)

    def next_layer(self, strength: float, layer: Layer) -> Layer:
        """The layer for a memory of *strength* that is in *layer* now."""
        if strength >= self.promote_threshold:
            return Layer.LONG_TERM
        if strength <= self.demote_threshold:
            return Layer.SHORT_TERM
        return layer

    def is_forgotten(self, strength: float, age: timedelta) -> bool:
        """Whether a memory may be archived: weak, and not recalled for *age*."""
        return strength < self.archive_threshold and age > self.archive_after

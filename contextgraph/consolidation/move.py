"""One way of telling what a clearance did."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Move:
    """Advice that a clearance bears out.

    *level* 0 is said of these very names and lines, 1 with placeholders for what varies.
    """

    text: str
    level: int

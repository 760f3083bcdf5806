"""What calling models took."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Usage:
    """Calls of a model: *requests*, *tokens*, *cost* in US dollars, and how many texts were *cut*.

    Tokens are those that the model counted. The cost is 0 where no price is known.
    """

    requests: int = 0
    tokens: int = 0
    cost: float = 0.0
    cut: int = 0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            self.requests + other.requests,
            self.tokens + other.tokens,
            self.cost + other.cost,
            self.cut + other.cut,
        )


NO_USAGE = Usage()

"""Prices of models, as their makers publish them."""

from msgspec import Struct

from contextgraph.model.trajectory import Spent
from contextgraph.text import regex

TOKENS_PER_PRICE = 1_000_000
_DATE = regex(r"[-@](?:\d{8}|\d{4}-\d{2}-\d{2}|latest)$")
# Of a maker's cloud, or of a router: ``anthropic/…``, ``us.anthropic.…``
_MAKER = regex(r"^(?:.*[/:]|(?:[a-z]{2,4}\.)?[a-z]+\.(?=claude))")


class Price(Struct, frozen=True):
    """US dollars per million tokens; *cached* ones are read from a cache, others *written*."""

    prompt: float
    answer: float
    cached: float
    written: float

    def cost(self, spent: Spent) -> float:
        """Return the US dollars of *spent* tokens."""
        total = (
            spent.input * self.prompt
            + spent.output * self.answer
            + spent.cached * self.cached
            + spent.written * self.written
        )
        return total / TOKENS_PER_PRICE


# As published in December 2025.
_PRICES = {
    "claude-opus-4-5": Price(5, 25, 0.5, 6.25),
    "claude-opus-4-1": Price(15, 75, 1.5, 18.75),
    "claude-opus-4": Price(15, 75, 1.5, 18.75),
    "claude-sonnet-4-5": Price(3, 15, 0.3, 3.75),
    "claude-sonnet-4": Price(3, 15, 0.3, 3.75),
    "claude-3-7-sonnet": Price(3, 15, 0.3, 3.75),
    "claude-3-5-sonnet": Price(3, 15, 0.3, 3.75),
    "claude-haiku-4-5": Price(1, 5, 0.1, 1.25),
    "claude-3-5-haiku": Price(0.8, 4, 0.08, 1),
    "claude-3-opus": Price(15, 75, 1.5, 18.75),
    "claude-3-haiku": Price(0.25, 1.25, 0.025, 0.3125),
    "gpt-4o": Price(2.5, 10, 1.25, 2.5),
    "gpt-4o-mini": Price(0.15, 0.6, 0.075, 0.15),
    "gpt-4.1": Price(2, 8, 0.5, 2),
    "gpt-4.1-mini": Price(0.4, 1.6, 0.1, 0.4),
    "gpt-4.1-nano": Price(0.1, 0.4, 0.025, 0.1),
    "gpt-5": Price(1.25, 10, 0.125, 1.25),
    "gpt-5-codex": Price(1.25, 10, 0.125, 1.25),
    "gpt-5.1": Price(1.25, 10, 0.125, 1.25),
    "gpt-5.1-codex": Price(1.25, 10, 0.125, 1.25),
    "gpt-5-mini": Price(0.25, 2, 0.025, 0.25),
    "gpt-5-nano": Price(0.05, 0.4, 0.005, 0.05),
    "o3": Price(2, 8, 0.5, 2),
    "o4-mini": Price(1.1, 4.4, 0.275, 1.1),
    "gemini-2.5-pro": Price(1.25, 10, 0.125, 1.25),
    "gemini-2.5-flash": Price(0.3, 2.5, 0.03, 0.3),
    "gemini-2.5-flash-lite": Price(0.1, 0.4, 0.01, 0.1),
    "deepseek-chat": Price(0.28, 0.42, 0.028, 0.28),
}  # fmt: skip


def price_of(model: str) -> Price | None:
    """Return the published price of *model*; None where it is not in the table."""
    return _PRICES.get(_DATE.sub("", _MAKER.sub("", model.casefold())))


def cost_of(model: str, spent: Spent) -> float | None:
    """Return US dollars: what the log says, else by the table; None where neither knows."""
    if spent.cost is not None:
        return spent.cost
    price = price_of(model)
    return price.cost(spent) if price else None

"""Prices of models, as their makers publish them."""

from msgspec import Struct

from contextgraph.model.trajectory import Spent
from contextgraph.text import regex

# When the table was compared with the price lists of the makers.
PRICES_OF = "2025-12"

_TOKENS_PER_PRICE = 1_000_000
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
        return total / _TOKENS_PER_PRICE


def _claude(prompt: float, answer: float) -> Price:
    return Price(prompt, answer, cached=0.1 * prompt, written=1.25 * prompt)


def _openai(prompt: float, answer: float, cached: float) -> Price:
    return Price(prompt, answer, cached=cached, written=prompt)


_PRICES = {
    "claude-opus-4-5": _claude(5, 25),
    "claude-opus-4-1": _claude(15, 75),
    "claude-opus-4": _claude(15, 75),
    "claude-sonnet-4-5": _claude(3, 15),
    "claude-sonnet-4": _claude(3, 15),
    "claude-3-7-sonnet": _claude(3, 15),
    "claude-3-5-sonnet": _claude(3, 15),
    "claude-haiku-4-5": _claude(1, 5),
    "claude-3-5-haiku": _claude(0.8, 4),
    "claude-3-opus": _claude(15, 75),
    "claude-3-haiku": _claude(0.25, 1.25),
    "gpt-4o": _openai(2.5, 10, 1.25),
    "gpt-4o-mini": _openai(0.15, 0.6, 0.075),
    "gpt-4.1": _openai(2, 8, 0.5),
    "gpt-4.1-mini": _openai(0.4, 1.6, 0.1),
    "gpt-4.1-nano": _openai(0.1, 0.4, 0.025),
    "gpt-5": _openai(1.25, 10, 0.125),
    "gpt-5-codex": _openai(1.25, 10, 0.125),
    "gpt-5.1": _openai(1.25, 10, 0.125),
    "gpt-5.1-codex": _openai(1.25, 10, 0.125),
    "gpt-5-mini": _openai(0.25, 2, 0.025),
    "gpt-5-nano": _openai(0.05, 0.4, 0.005),
    "o3": _openai(2, 8, 0.5),
    "o4-mini": _openai(1.1, 4.4, 0.275),
    "gemini-2.5-pro": _openai(1.25, 10, 0.125),
    "gemini-2.5-flash": _openai(0.3, 2.5, 0.03),
    "gemini-2.5-flash-lite": _openai(0.1, 0.4, 0.01),
    "deepseek-chat": _openai(0.28, 0.42, 0.028),
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

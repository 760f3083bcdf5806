"""Language models behind OpenAI's API, and what they ask for."""

import re
from dataclasses import dataclass

from contextgraph.errors import SettingsError

MAKER = "openai"
_TOKENS_PER_PRICE = 1_000_000
_DATE = re.compile(r"-\d{4}-\d{2}-\d{2}$")

# US dollars for a million tokens (sent, answered), as published in August 2025.
_PRICES = {
    "gpt-4o": (2.50, 10.00),
    "gpt-4o-mini": (0.15, 0.60),
    "gpt-4.1": (2.00, 8.00),
    "gpt-4.1-mini": (0.40, 1.60),
    "gpt-4.1-nano": (0.10, 0.40),
    "gpt-5": (1.25, 10.00),
    "gpt-5-mini": (0.25, 2.00),
    "gpt-5-nano": (0.05, 0.40),
    "o4-mini": (1.10, 4.40),
}


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens sent and answered; None where that is not known."""

    prompt: float | None = None
    answer: float | None = None

    @property
    def are_known(self) -> bool:
        """True where both are."""
        return self.prompt is not None and self.answer is not None

    def cost(self, sent: int, answered: int) -> float:
        """US dollars; what is not known counts as nothing."""
        total = sent * (self.prompt or 0.0) + answered * (self.answer or 0.0)
        return total / _TOKENS_PER_PRICE


@dataclass(frozen=True, slots=True)
class ChatModel:
    """A model behind the API, and its prices."""

    name: str
    prices: Prices

    @property
    def full_name(self) -> str:
        """The name by which it is chosen."""
        return f"{MAKER}/{self.name}"


def chat_model(name: str, given: Prices = Prices()) -> ChatModel:
    """The model *name*, at the prices *given* or else at those that are known."""
    prompt, answer = _PRICES.get(_DATE.sub("", name), (None, None))
    prices = Prices(
        prompt if given.prompt is None else given.prompt,
        answer if given.answer is None else given.answer,
    )
    return ChatModel(name, prices)


def model_in(summarizer: str) -> str | None:
    """The model that the name of a summarizer means; None for the template.

    Raises `SettingsError` for a name that means neither.
    """
    maker, _, model = summarizer.partition("/")
    if summarizer in ("", "template"):
        return None
    if maker != MAKER or not model:
        raise SettingsError(f"no summarizer {summarizer!r}; write template or openai/MODEL")
    return model

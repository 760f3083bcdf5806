"""Embedding models behind OpenAI's API: how many numbers they give, and for how much."""

from dataclasses import dataclass

from contextgraph.errors import SettingsError

MAKER = "openai"
_TOKENS_PER_PRICE = 1_000_000


@dataclass(frozen=True, slots=True)
class _Known:
    """A model of OpenAI: how many numbers it gives, US dollars for a million tokens."""

    dimensions: int
    price: float
    can_shorten: bool


# As price lists of 2026 have them; a cap on costs counts with these.
_KNOWN = {
    "text-embedding-3-small": _Known(1536, 0.02, True),
    "text-embedding-3-large": _Known(3072, 0.13, True),
    "text-embedding-ada-002": _Known(1536, 0.10, False),
}


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """A model behind the API; *price* is for a million tokens, None where it is not known.

    *asks_length*: whether the server has to be told how many numbers are wanted.
    """

    name: str
    dimensions: int
    price: float | None
    asks_length: bool

    @property
    def space(self) -> str:
        """The name of its space."""
        return f"{MAKER}/{self.name}@{self.dimensions}"

    def cost(self, tokens: int) -> float:
        """US dollars for *tokens*, 0 where the price is not known."""
        return tokens * (self.price or 0.0) / _TOKENS_PER_PRICE


def remote_model(name: str, price: float | None = None) -> RemoteModel:
    """The model that *name* (``model`` or ``model@dimensions``) means, at *price* if that is given.

    Raises `SettingsError` where its dimensions are not known.
    """
    model, at, size = name.rpartition("@") if "@" in name else (name, "", "")
    known = _KNOWN.get(model)
    if at and not (size.isdecimal() and int(size)):
        raise SettingsError(f"{MAKER}/{name}: {size!r} is no number of dimensions")
    if not model or not (at or known):
        raise SettingsError(
            f"{MAKER}/{name}: how many dimensions has it? write {MAKER}/{model or 'MODEL'}@N"
        )
    if known is None:
        return RemoteModel(model, int(size), price, asks_length=False)
    dimensions = int(size) if size else known.dimensions
    if dimensions > known.dimensions or (dimensions < known.dimensions and not known.can_shorten):
        raise SettingsError(f"{MAKER}/{name}: {model} gives {known.dimensions} numbers")
    its_price = known.price if price is None else price
    return RemoteModel(model, dimensions, its_price, dimensions != known.dimensions)

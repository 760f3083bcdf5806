"""The shapes in which a model answers; needs pydantic, which comes with the client of OpenAI."""

from pydantic import BaseModel, ConfigDict


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Advice(_Strict):
    """What the prompt about a methodology asks for."""

    situation: str
    strategy: str
    not_when: str


class Described(_Strict):
    """A fragment of a run, by the number it was told with."""

    number: int
    description: str


class Account(_Strict):
    """What the prompt about a run asks for."""

    summary: str
    fragments: list[Described]

"""The shape in which a model answers; needs pydantic, which comes with the client of OpenAI."""

from pydantic import BaseModel, ConfigDict


class Answer(BaseModel):
    """What `prompts/methodology.v1.md` asks for."""

    model_config = ConfigDict(extra="forbid", strict=True)

    situation: str
    strategy: str
    not_when: str

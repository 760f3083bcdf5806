"""A language model as judge of whether two statements contradict each other."""

from functools import cache
from typing import TYPE_CHECKING

import orjson

from contextgraph.errors import RemoteError
from contextgraph.governance import Relation, Verdict
from contextgraph.lazy import dataclass
from contextgraph.llm.chat import (
    Chat,
    fields_in,
    first_messages,
)

if TYPE_CHECKING:
    from pydantic import BaseModel

PROMPT_VERSION = "judgement.v1"


@dataclass(frozen=True, slots=True)
class ConflictJudge:
    """Asks *chat* what a statement is to an earlier one; both are masked already."""

    chat: Chat

    def __call__(self, new: str, old: str) -> Verdict | None:
        """Relate *new* to *old*; None where the model fails or gives no usable answer."""
        from pydantic import ValidationError

        statements = orjson.dumps({"old": old, "new": new}).decode()
        messages = first_messages(PROMPT_VERSION, statements)
        try:
            answer, _ = self.chat.complete(messages, _answer_form())
            judgement = fields_in(answer, _answer_form())
        except (RemoteError, ValidationError):
            return None
        return Verdict(judgement["relation"], max(0.0, min(1.0, judgement["confidence"])))


@cache
def _answer_form() -> "type[BaseModel]":
    """The form of an answer; pydantic comes with the client of OpenAI."""
    from pydantic import ConfigDict, create_model

    return create_model(
        "Judgement",
        __config__=ConfigDict(extra="forbid"),
        relation=(Relation, ...),
        confidence=(float, ...),
    )

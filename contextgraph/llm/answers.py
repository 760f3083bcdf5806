"""Reading what a model says, believing nothing: its shape, its length, and what it quotes."""

import re
from typing import TYPE_CHECKING, TypeVar

from contextgraph.model import Group, RunWords, Story, Words
from contextgraph.text import clean, mask_secrets

if TYPE_CHECKING:
    from pydantic import BaseModel

    Answer = TypeVar("Answer", bound=BaseModel)

_QUOTED = re.compile(r"`([^`]+)`")
_SENTENCE, _PARAGRAPH = 400, 900


class UnusableWordsError(Exception):
    """Words that cannot be used; the message tells the model why."""


def words_in(text: str, told: str, group: Group) -> Words:
    """The words in the answer *text* about *group*, of which so much was *told*."""
    from contextgraph.llm.schema import Advice

    said = _parsed(text, Advice)
    return Words(
        situation=_checked("situation", said.situation, _SENTENCE, told),
        strategy=_checked("strategy", said.strategy, _PARAGRAPH, told),
        not_when=_checked("not_when", said.not_when, _SENTENCE, told, needed=False),
    )


def run_words_in(text: str, told: str, story: Story) -> RunWords:
    """The words in the answer *text* about *story*, of which so much was *told*."""
    from contextgraph.llm.schema import Account

    said = _parsed(text, Account)
    ids = {number: fragment.id for number, fragment in enumerate(story.fragments, start=1)}
    descriptions: dict[str, str] = {}
    for one in said.fragments:
        if one.number not in ids:
            raise UnusableWordsError(f"there is no fragment {one.number}")
        if ids[one.number] in descriptions:
            raise UnusableWordsError(f"fragment {one.number} is there twice")
        name = f"the description of fragment {one.number}"
        descriptions[ids[one.number]] = _checked(name, one.description, _SENTENCE, told)
    return RunWords(_checked("summary", said.summary, _PARAGRAPH, told), descriptions)


def _parsed(text: str, form: "type[Answer]") -> "Answer":
    from pydantic import ValidationError

    try:
        # Some models wrap the object in a code fence, or think aloud before it.
        return form.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnusableWordsError(f"{where}: {first['msg']}" if where else first["msg"]) from error


def _checked(name: str, said: str, most: int, told: str, *, needed: bool = True) -> str:
    """*said* in one line; raises `UnusableWordsError`.

    What stands in backquotes must have been told: an agent would type it.
    """
    text = mask_secrets(" ".join(clean(said).split()))
    if len(text) > most:
        raise UnusableWordsError(f"{name} is longer than {most} characters")
    if not text and needed:
        raise UnusableWordsError(f"{name} is empty")
    known = " ".join(told.split())
    for code in _QUOTED.findall(text):
        if code.strip() not in known:
            raise UnusableWordsError(f"`{code}` does not stand in the facts")
    return text

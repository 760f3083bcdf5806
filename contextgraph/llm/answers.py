"""Reading what a model says, believing nothing: its shape, its length, and what it quotes."""

import re

from contextgraph.model import Words
from contextgraph.text import clean, mask_secrets

_QUOTED = re.compile(r"`([^`]+)`")
_MOST_CHARS = {"situation": 400, "strategy": 900, "not_when": 400}
_NEEDED = ("situation", "strategy")


class UnusableWordsError(Exception):
    """Words that cannot be used; the message tells the model why."""


def words_in(text: str, told: str) -> Words:
    """The words in the answer *text* to a prompt that *told* so much; raises `UnusableWordsError`.

    What stands in backquotes must have been told: an agent would type it.
    """
    from pydantic import ValidationError

    from contextgraph.llm.schema import Answer

    try:
        # Some models wrap the object in a code fence, or think aloud before it.
        answer = Answer.model_validate_json(text[text.find("{") : text.rfind("}") + 1])
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise UnusableWordsError(f"{where}: {first['msg']}" if where else first["msg"]) from error
    said = {name: _one_line(getattr(answer, name)) for name in _MOST_CHARS}
    for name, value in said.items():
        if len(value) > _MOST_CHARS[name]:
            raise UnusableWordsError(f"{name} is longer than {_MOST_CHARS[name]} characters")
        if not value and name in _NEEDED:
            raise UnusableWordsError(f"{name} is empty")
        _check_quoted(value, told)
    return Words(**said)


def _one_line(text: str) -> str:
    return mask_secrets(" ".join(clean(text).split()))


def _check_quoted(said: str, told: str) -> None:
    known = " ".join(told.split())
    for code in _QUOTED.findall(said):
        if code.strip() not in known:
            raise UnusableWordsError(f"`{code}` does not stand in the facts")

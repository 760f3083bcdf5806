"""What a model is asked for: the prompt, what it is told, and how its answer is read."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Generic, TypeVar

import orjson

from contextgraph.llm.answers import run_words_in, words_in
from contextgraph.llm.chat import Form
from contextgraph.llm.facts import facts_of_group, facts_of_story, texts_in
from contextgraph.model import Group, Json, RunWords, Story, Words

Item = TypeVar("Item")
Said = TypeVar("Said")


@dataclass(frozen=True, slots=True)
class Prompt:
    """What is sent: *rules*, and *facts* as JSON; *told* is all text in them."""

    rules: str
    facts: str
    told: str

    def __str__(self) -> str:
        return f"{self.rules}\n{self.facts}"


@dataclass(frozen=True, slots=True)
class Assignment(Generic[Item, Said]):
    """Putting one kind of thing into words.

    *version* names the file of the prompt. *facts* tells what is sent, *schema* what answers have
    to be, as JSON schema. *read* gives the words in an answer, of what so much was told about; it
    raises `UnusableWordsError`. *usual_tokens* is how long answers are.
    """

    version: str
    facts: Callable[[Item], Mapping[str, Json]]
    schema: Callable[[], dict[str, Any]]
    read: Callable[[str, str, Item], Said]
    usual_tokens: int

    def prompt(self, item: Item) -> Prompt:
        """The prompt about *item*."""
        kept: dict[str, Json] = {key: value for key, value in self.facts(item).items() if value}
        return Prompt(rules(self.version), orjson.dumps(kept).decode(), "\n".join(texts_in(kept)))

    def form(self) -> Form:
        """The form of an answer; needs pydantic."""
        return Form(self.version.partition(".")[0], self.schema())


@cache
def rules(version: str) -> str:
    """The text of the prompt of this version."""
    return files(__package__).joinpath("prompts", f"{version}.md").read_text(encoding="utf-8")


def _advice() -> dict[str, Any]:
    from contextgraph.llm.schema import Advice

    return Advice.model_json_schema()


def _account() -> dict[str, Any]:
    from contextgraph.llm.schema import Account

    return Account.model_json_schema()


METHODOLOGIES: Assignment[Group, Words] = Assignment(
    "methodology.v2", facts_of_group, _advice, words_in, usual_tokens=200
)
RUNS: Assignment[Story, RunWords] = Assignment(
    "run.v1", facts_of_story, _account, run_words_in, usual_tokens=400
)

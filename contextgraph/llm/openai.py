"""Words of a model, asked for once more where they cannot be used."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from contextgraph.llm.answers import UnusableWordsError
from contextgraph.llm.assignments import Assignment
from contextgraph.llm.chat import Chat
from contextgraph.model import NO_USAGE, Usage, Wording
from contextgraph.text import count_tokens

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletionMessageParam as Message

Item = TypeVar("Item")
Said = TypeVar("Said")

_TRIES = 2


@dataclass(frozen=True, slots=True)
class RemoteEditor(Generic[Item, Said]):
    """An `Editor` that asks in a *chat*. What goes out is masked and cut to length."""

    assignment: Assignment[Item, Said]
    chat: Chat

    @property
    def name(self) -> str:
        """The model and the version of the prompt."""
        return f"{self.chat.model.full_name} {self.assignment.version}"

    def prompt(self, item: Item) -> str:
        """What is sent about *item*."""
        return str(self.assignment.prompt(item))

    def estimate(self, item: Item) -> Usage:
        """About what one answer takes."""
        sent, answered = count_tokens(self.prompt(item)), self.assignment.usual_tokens
        return Usage(1, sent + answered, self.chat.model.prices.cost(sent, answered))

    def reword(self, item: Item, *, hurried: bool = False) -> Wording[Said]:
        """*item* in the model's words; what cannot be used is asked for once more.

        Raises `RemoteError` where the server does not answer as it should.
        """
        asked, form = self.assignment.prompt(item), self.assignment.form()
        messages: list[Message] = [
            {"role": "system", "content": asked.rules},
            {"role": "user", "content": asked.facts},
        ]
        usage, reason = NO_USAGE, ""
        for _ in range(_TRIES):
            said, took = self.chat.ask(messages, form, hurried=hurried)
            usage += took
            try:
                return Wording(self.assignment.read(said, asked.told, item), "", usage)
            except UnusableWordsError as error:
                reason = str(error)
            messages.append({"role": "assistant", "content": said})
            messages.append({"role": "user", "content": f"Not usable: {reason}. Answer again."})
        return Wording(None, reason, usage)

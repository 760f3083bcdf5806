"""Advice in the words of a model behind OpenAI's API, or of any compatible server."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from contextgraph.llm.answers import UnusableWordsError, words_in
from contextgraph.llm.chat_models import ChatModel
from contextgraph.llm.prompt import VERSION, prompt_of
from contextgraph.model import NO_USAGE, Group, Usage, Wording
from contextgraph.remote import Budget, Endpoint, Ledger, Patience, UnusableAnswerError
from contextgraph.text import count_tokens

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletionMessageParam as Message
    from openai.types.chat.completion_create_params import ResponseFormat

# Three short texts; models that think before they speak need more than what they say.
MOST_ANSWER_TOKENS = 2_000
_USUAL_ANSWER_TOKENS = 200
_TRIES = 2

# What servers answer that do not know schemas: most refuse the request, some trip over it.
_MAY_NOT_KNOW_SCHEMAS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.NOT_IMPLEMENTED,
}


@dataclass(slots=True)
class Dialect:
    """Whether the server is known to take a schema, or to refuse it."""

    takes_schema: bool = False
    refuses_schema: bool = False


@dataclass(frozen=True, slots=True)
class RemoteEditor:
    """An `Editor` by *model* at *endpoint*. What goes out is masked and cut to length."""

    model: ChatModel
    endpoint: Endpoint
    ledger: Ledger
    budget: Budget
    patience: Patience
    dialect: Dialect = field(default_factory=Dialect)

    @property
    def name(self) -> str:
        """The model and the version of the prompt."""
        return f"{self.model.full_name} {VERSION}"

    def prompt(self, group: Group) -> str:
        """What is sent about *group*."""
        return str(prompt_of(group))

    def estimate(self, group: Group) -> Usage:
        """About what one answer takes."""
        sent = count_tokens(self.prompt(group))
        cost = self.model.prices.cost(sent, _USUAL_ANSWER_TOKENS)
        return Usage(1, sent + _USUAL_ANSWER_TOKENS, cost)

    def reword(self, group: Group) -> Wording:
        """*group* in the model's words; what cannot be used is asked for once more.

        Raises `RemoteError` where the server does not answer as it should.
        """
        asked = prompt_of(group)
        messages: list[Message] = [
            {"role": "system", "content": asked.rules},
            {"role": "user", "content": asked.facts},
        ]
        usage, reason = NO_USAGE, ""
        for _ in range(_TRIES):
            said, took = self._ask(messages)
            usage += took
            try:
                return Wording(words_in(said, asked.told), "", usage)
            except UnusableWordsError as error:
                reason = str(error)
            messages.append({"role": "assistant", "content": said})
            messages.append({"role": "user", "content": f"Not usable: {reason}. Answer again."})
        return Wording(None, reason, usage)

    def _ask(self, messages: "Sequence[Message]") -> tuple[str, Usage]:
        prices = self.model.prices
        sent = sum(count_tokens(str(message.get("content"))) for message in messages)
        with self.budget.spending(prices.cost(sent, MOST_ANSWER_TOKENS)) as tell:
            answer = self.endpoint.call(lambda client: self._say(client, messages), self.patience)
            cost = prices.cost(answer.sent, answer.answered)
            usage = Usage(1, answer.sent + answer.answered, cost)
            tell(usage)
        self.ledger.add(self.model.full_name, usage)
        return answer.text, usage

    def _say(self, client: "OpenAI", messages: "Sequence[Message]") -> "_Answer":
        """An answer, bound to the schema where the server can do that."""
        import openai

        if self.dialect.refuses_schema:
            return self._send(client, messages, _any_object())
        try:
            answer = self._send(client, messages, _schema())
        except openai.APIStatusError as error:
            if self.dialect.takes_schema or error.status_code not in _MAY_NOT_KNOW_SCHEMAS:
                raise
            answer = self._send(client, messages, _any_object())
            self.dialect.refuses_schema = True
        else:
            self.dialect.takes_schema = True
        return answer

    def _send(
        self, client: "OpenAI", messages: "Sequence[Message]", form: "ResponseFormat"
    ) -> "_Answer":
        response = client.chat.completions.with_raw_response.create(
            model=self.model.name,
            messages=messages,
            response_format=form,
            max_completion_tokens=MOST_ANSWER_TOKENS,
        )
        return _answer_in(response.content)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What a model said, and the tokens that the server counted."""

    text: str
    sent: int
    answered: int


def _answer_in(body: bytes) -> _Answer:
    """The answer in the *body* of a reply; raises `UnusableAnswerError`."""
    try:
        reply: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnusableAnswerError(f"the answer is no JSON ({error})", again=True) from error
    try:
        text = reply["choices"][0]["message"].get("content")
        usage = reply.get("usage") or {}
        sent = int(usage.get("prompt_tokens") or 0)
        answered = int(usage.get("completion_tokens") or 0)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise UnusableAnswerError(
            f"the answer has no message in it ({type(error).__name__}: {error})", again=True
        ) from error
    # A model that refuses to speak leaves the content out.
    return _Answer(text if isinstance(text, str) else "", sent, answered)


def _schema() -> "ResponseFormat":
    from contextgraph.llm.schema import Answer

    schema = {"name": "advice", "strict": True, "schema": Answer.model_json_schema()}
    return {"type": "json_schema", "json_schema": schema}  # type: ignore[typeddict-item]  # a plain dict


def _any_object() -> "ResponseFormat":
    return {"type": "json_object"}

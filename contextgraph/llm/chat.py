"""A model behind OpenAI's chat route, or that of any compatible server."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import orjson

from contextgraph.errors import MissingExtraError, RemoteError
from contextgraph.llm.chat_models import ChatModel
from contextgraph.model import HealthCheck, Usage
from contextgraph.remote import HASTY, Budget, Endpoint, Ledger, Patience, UnusableAnswerError
from contextgraph.text import count_tokens

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletionMessageParam as Message
    from openai.types.chat.completion_create_params import ResponseFormat

# A few short texts; models that think before they speak need more than what they say.
MOST_ANSWER_TOKENS = 2_000
_NAMED_MODELS = 5
_REMEDY = "check OPENAI_BASE_URL (most end with /v1) and OPENAI_API_KEY; see docs/llm.md"

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
class Form:
    """The JSON object that an answer has to be, as a *schema* of this *name*."""

    name: str
    schema: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Chat:
    """A *model* at *endpoint*; what it takes is bound by *budget* and noted in *ledger*.

    It is waited for with *patience*; where someone else waits meanwhile, only while *hurried*.
    """

    model: ChatModel
    endpoint: Endpoint
    ledger: Ledger
    budget: Budget
    patience: Patience
    hurried: Patience
    dialect: Dialect = field(default_factory=Dialect)

    def ask(
        self, messages: "Sequence[Message]", form: Form, *, hurried: bool = False
    ) -> tuple[str, Usage]:
        """What the model says to *messages*, and what that took.

        Raises `RemoteError` where the server does not answer as it should.
        """
        prices = self.model.prices
        sent = sum(count_tokens(str(message.get("content"))) for message in messages)
        with self.budget.spending(prices.cost(sent, MOST_ANSWER_TOKENS)) as tell:
            answer = self.endpoint.call(
                lambda client: self._say(client, messages, form),
                self.hurried if hurried else self.patience,
            )
            cost = prices.cost(answer.sent, answer.answered)
            usage = Usage(1, answer.sent + answer.answered, cost)
            tell(usage)
        self.ledger.add(self.model.full_name, usage)
        return answer.text, usage

    def health(self) -> HealthCheck:
        """Whether the server answers and has the model: asks which it has, which costs nothing."""
        try:
            served = self.endpoint.call(_served, HASTY)
        except (RemoteError, MissingExtraError) as error:
            return HealthCheck("summarizer", False, str(error), _REMEDY)
        wanted = self.model.name
        if served and not {wanted, f"{wanted}:latest"} & {*served}:
            known = ", ".join(sorted(served)[:_NAMED_MODELS])
            more = f" and {len(served) - _NAMED_MODELS} more" if len(served) > _NAMED_MODELS else ""
            detail = f"{self.endpoint.name} has no model {wanted}"
            return HealthCheck("summarizer", False, detail, f"name one that it has: {known}{more}")
        return HealthCheck("summarizer", True, f"{self.model.full_name}; {self._price()}")

    def _price(self) -> str:
        prices = self.model.prices
        if not prices.are_known:
            return "no price known, so it counts as nothing: prompt_price and answer_price set it"
        return f"${prices.prompt:g} and ${prices.answer:g} for a million tokens sent and answered"

    def _say(self, client: "OpenAI", messages: "Sequence[Message]", form: Form) -> "_Answer":
        """An answer, bound to the schema where the server can do that."""
        import openai

        if self.dialect.refuses_schema:
            return self._send(client, messages, _any_object())
        try:
            answer = self._send(client, messages, _bound_to(form))
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


def _bound_to(form: Form) -> "ResponseFormat":
    schema = {"name": form.name, "strict": True, "schema": form.schema}
    return {"type": "json_schema", "json_schema": schema}  # type: ignore[typeddict-item]  # a plain dict


def _any_object() -> "ResponseFormat":
    return {"type": "json_object"}


def _served(client: "OpenAI") -> frozenset[str]:
    """The names of the models that a server has."""
    try:
        return frozenset(model.id for model in client.models.list().data or ())
    except (AttributeError, TypeError) as error:  # the client does not look at what it is sent
        raise UnusableAnswerError("the answer lists no models", again=False) from error

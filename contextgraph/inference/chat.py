"""A language model behind a chat API like that of OpenAI, also as judge of conflicts."""

from contextlib import suppress
from functools import cache
from http import HTTPStatus
from json import JSONDecoder
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
from msgspec import Struct, field

from contextgraph.errors import MissingExtraError, RemoteError, SettingsError
from contextgraph.knowledge.conflict import Relation, Verdict
from contextgraph.model import TOKENS_PER_PRICE, HealthCheck, Usage, price_of
from contextgraph.model.values import replace
from contextgraph.system.remote import (
    INTERACTIVE,
    Budget,
    Endpoint,
    RetryPolicy,
    UnusableAnswerError,
    UsageLog,
)
from contextgraph.text import count_tokens

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat.completion_create_params import ResponseFormat
    from pydantic import BaseModel


MAKER = "openai"
_PROMPTS = Path(__file__).with_name("prompts")
_DECODER = JSONDecoder()
_MAX_BRACES = 200  # of an answer that are tried as the beginning of an object


class Prices(Struct, frozen=True):
    """US dollars per million input (*prompt*) and output (*answer*) tokens; None: unknown."""

    prompt: float | None = None
    answer: float | None = None

    def __str__(self) -> str:
        if not self.are_known:
            return "price unknown, counted as 0; set prompt_price and answer_price"
        return f"${self.prompt:g} and ${self.answer:g} per million input and output tokens"

    @property
    def are_known(self) -> bool:
        """True where both are."""
        return self.prompt is not None and self.answer is not None

    def cost(self, sent: int, answered: int) -> float:
        """US dollars; an unknown price counts as 0."""
        total = sent * (self.prompt or 0.0) + answered * (self.answer or 0.0)
        return total / TOKENS_PER_PRICE


_UNKNOWN = Prices()


class ChatModel(Struct, frozen=True):
    """A model behind the API, and its prices."""

    name: str
    prices: Prices

    @property
    def full_name(self) -> str:
        """The name by which it is chosen."""
        return f"{MAKER}/{self.name}"


def chat_model(name: str, given: Prices = _UNKNOWN) -> ChatModel:
    """Return the model *name*, at the prices *given* or else at the published ones."""
    prompt, answer = given.prompt, given.answer
    if known := price_of(name):
        prompt = known.prompt if prompt is None else prompt
        answer = known.answer if answer is None else answer
    return ChatModel(name, Prices(prompt, answer))


def model_in(summarizer: str) -> str | None:
    """Return the model of the setting *summarizer*; None for the template.

    Raises `SettingsError` for an unknown name.
    """
    maker, _, model = summarizer.partition("/")
    if summarizer in ("", "template"):
        return None
    if maker != MAKER or not model:
        raise SettingsError(f"unknown summarizer {summarizer!r}; write template or openai/MODEL")
    return model


# A few short texts; reasoning models use more tokens than their answer has.
MAX_ANSWER_TOKENS = 2_000
_NAMED_MODELS = 5
_REMEDY = "check OPENAI_BASE_URL (most end with /v1) and OPENAI_API_KEY; see docs/llm.md"

# What servers answer to a form of request that they do not know: most refuse, some fail.
_REFUSALS = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.UNPROCESSABLE_ENTITY,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.NOT_IMPLEMENTED,
}


# The names of the limit of an answer, and the kinds of its form, best first; the last is none.
_LIMITS = ("max_completion_tokens", "max_tokens", "")
_FORMATS = ("json_schema", "json_object", "")


class Accepted(Struct):
    """The form of request that a server accepts: places in `_LIMITS` and `_FORMATS`.

    They grow where it refuses more, until a request was answered.
    """

    limit: int = 0
    format: int = 0
    is_known: bool = False


@cache
def prompt_text(version: str) -> str:
    """Return the prompt in the file *version* of prompts/; a changed one gets a new number."""
    return (_PROMPTS / f"{version}.md").read_text("utf-8")


def prompt_about(version: str, facts: str) -> str:
    """Return the prompt *version* with the *facts* that it is about."""
    return f"{prompt_text(version)}\n{facts}"


def fields_in(answer: str, form: "type[BaseModel]") -> dict[str, Any]:
    """Return fields of the JSON object in *answer*, in *form*; raises `ValidationError`.

    Some models put it into a code fence, or reason before it, also with braces: the last object
    that has the form counts.
    """
    from pydantic import ValidationError

    objects = _objects_in(answer)
    for text in reversed(objects):
        try:
            return form.model_validate_json(text).model_dump()
        except ValidationError:
            continue
    return form.model_validate_json(objects[-1] if objects else answer).model_dump()


def _objects_in(answer: str) -> list[str]:
    """The JSON objects in *answer* that are in no other, in order."""
    objects = []
    start = answer.find("{")
    for _ in range(_MAX_BRACES):
        if start < 0:
            break
        end = start + 1
        # A brace of prose begins no object.
        with suppress(ValueError, RecursionError):
            _, end = _DECODER.raw_decode(answer, start)
            objects.append(answer[start:end])
        start = answer.find("{", end)
    return objects


class Chat(Struct, frozen=True):
    """A *model* at *endpoint*, limited by *budget* and counted in *usage_log*.

    Calls are retried within *policy*, or within *interactive* while another process waits.
    """

    model: ChatModel
    endpoint: Endpoint
    usage_log: UsageLog
    budget: Budget
    policy: RetryPolicy
    interactive: RetryPolicy
    accepted: Accepted = field(default_factory=Accepted)

    def complete(
        self,
        text: str,
        form: "type[BaseModel] | None" = None,
        *,
        interactive: bool = False,
    ) -> tuple[str, Usage]:
        """Return the answer to *text* and the usage; in *form* if the model can.

        Raises `RemoteError`.
        """
        prices = self.model.prices
        with self.budget.reserve(prices.cost(count_tokens(text), MAX_ANSWER_TOKENS)) as settle:
            answer = self.endpoint.call(
                lambda client: self._complete(client, text, form),
                self.interactive if interactive else self.policy,
            )
            cost = prices.cost(answer.sent, answer.answered)
            usage = Usage(1, answer.sent + answer.answered, cost)
            settle(usage)
        self.usage_log.add(self.model.full_name, usage)
        return answer.text, usage

    def health(self) -> HealthCheck:
        """Return True if the server answers and has the model; lists its models, which is free."""
        try:
            available = self.endpoint.call(_models, INTERACTIVE)
        except (RemoteError, MissingExtraError) as error:
            return HealthCheck("summarizer", False, str(error), _REMEDY)
        wanted = self.model.name
        if available and not {wanted, f"{wanted}:latest"} & {*available}:
            known = ", ".join(sorted(available)[:_NAMED_MODELS])
            more = (
                f" and {len(available) - _NAMED_MODELS} more"
                if len(available) > _NAMED_MODELS
                else ""
            )
            detail = f"{self.endpoint.name} has no model {wanted}"
            return HealthCheck("summarizer", False, detail, f"name one that it has: {known}{more}")
        return HealthCheck("summarizer", True, f"{self.model.full_name}; {self.model.prices}")

    def _complete(self, client: "OpenAI", text: str, form: "type[BaseModel] | None") -> "_Answer":
        """An answer, constrained to *form* where the server supports that.

        A refusal that names the limit of the answer changes the limit, another one the format.
        """
        import openai

        tried = replace(self.accepted)
        while True:
            try:
                answer = self._send(client, text, form, tried)
            except openai.APIStatusError as error:
                is_final = self.accepted.is_known or error.status_code not in _REFUSALS
                if is_final or not _is_changed(tried, str(error.body)):
                    raise
            else:
                accepted = self.accepted
                accepted.limit, accepted.format, accepted.is_known = tried.limit, tried.format, True
                return answer

    def _send(
        self,
        client: "OpenAI",
        text: str,
        form: "type[BaseModel] | None",
        accepted: Accepted,
    ) -> "_Answer":
        import openai

        limit, kind = _LIMITS[accepted.limit], _FORMATS[accepted.format]
        response = client.chat.completions.with_raw_response.create(
            model=self.model.name,
            messages=[{"role": "user", "content": text}],
            response_format=_format(kind, form) if form and kind else openai.omit,
            extra_body={limit: MAX_ANSWER_TOKENS} if limit else None,
        )
        return _answer_in(response.content)


def _is_changed(form: Accepted, refusal: str) -> bool:
    """Change *form* to the next that a server may accept after *refusal*; False: there is none."""
    if _LIMITS[form.limit] and any(limit in refusal for limit in filter(None, _LIMITS)):
        form.limit += 1  # its name is not known, or what it allows is less
    elif _FORMATS[form.format]:
        form.format += 1
    else:
        return False
    return True


class _Answer(Struct, frozen=True):
    """The answer of a model, and the tokens that the server counted."""

    text: str
    sent: int
    answered: int


def _answer_in(body: bytes) -> _Answer:
    """The answer in the *body* of a reply; raises `UnusableAnswerError`."""
    try:
        reply: Any = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise UnusableAnswerError(f"the answer is not JSON ({error})", retry=True) from error
    try:
        text = reply["choices"][0]["message"].get("content")
        usage = reply.get("usage") or {}
        sent = int(usage.get("prompt_tokens") or 0)
        answered = int(usage.get("completion_tokens") or 0)
    except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
        raise UnusableAnswerError(
            f"the answer holds no message ({type(error).__name__}: {error})", retry=True
        ) from error
    # A model that refuses to answer leaves the content out.
    return _Answer(text if isinstance(text, str) else "", sent, answered)


def _format(kind: str, form: "type[BaseModel]") -> "ResponseFormat":
    """The *kind* of answer that is requested: a schema of *form*, or any object."""
    if kind == "json_object":
        return {"type": "json_object"}
    name = form.__name__.lower()
    schema = {"name": name, "strict": True, "schema": form.model_json_schema()}
    return {"type": "json_schema", "json_schema": schema}  # type: ignore[typeddict-item]  # a plain dict


def _models(client: "OpenAI") -> frozenset[str]:
    """The names of the models that a server offers."""
    try:
        return frozenset(model.id for model in client.models.list().data or ())
    except (AttributeError, TypeError) as error:  # the client does not validate the answer
        raise UnusableAnswerError("the answer lists no models", retry=False) from error


PROMPT_VERSION = "judgement.v1"


class ConflictJudge(Struct, frozen=True):
    """Asks *chat* what a statement is to an earlier one; both are masked already."""

    chat: Chat

    def __call__(self, new: str, old: str) -> Verdict | None:
        """Relate *new* to *old*; None without a usable answer. Raises `RemoteError`."""
        from pydantic import ValidationError

        statements = orjson.dumps({"old": old, "new": new}).decode()
        try:
            answer, _ = self.chat.complete(prompt_about(PROMPT_VERSION, statements), _answer_form())
            judgement = fields_in(answer, _answer_form())
        except ValidationError:
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

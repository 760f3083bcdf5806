"""Failures of a chat API over real HTTP, and how the words of methodologies survive them."""

import time
from collections.abc import Callable, Iterator
from functools import partial

import orjson
import pytest

from contextgraph.errors import RemoteError
from contextgraph.inference.answering import ModelAnswerer
from contextgraph.inference.chat import MAX_ANSWER_TOKENS, Chat, Prices, chat_model, prompt_text
from contextgraph.inference.summarizer import (
    PROMPT_VERSION,
    USUAL_ANSWER_TOKENS,
    request_about,
    reword,
)
from contextgraph.model import (
    Clearance,
    CommonRemedy,
    ErrorPattern,
    Family,
    MethodologyGroup,
    ModelWording,
    Outcome,
    Recovered,
    RemedyKind,
    TaskType,
    Words,
)
from contextgraph.model.values import replace
from contextgraph.system.remote import Budget, Endpoint, RetryPolicy, UsageLog
from contextgraph.text import count_tokens
from tests.builders import NOON, remedy
from tests.model_server import (
    KEY,
    Handler,
    Reply,
    Server,
    chat_reply,
    dripping,
    error,
    serving,
    silent,
    truncated,
)

# Long enough for a second request on a busy machine.
QUICK = RetryPolicy(timeout=0.3, retries=1, total=3)
PRICES = Prices(1.0, 10.0)
Fault = Callable[[int, Handler], Reply | None]

RECOVERED = Recovered(
    fragment_id="frg_1",
    error_id="err_1",
    error_step=1,
    cleared_step=3,
    message="ModuleNotFoundError: No module named 'attrs'",
    actions=(remedy("pip install attrs", RemedyKind.INSTALL, "<the missing module>"),),
    verified=True,
    workaround=False,
    location="",
)
GROUP = MethodologyGroup(
    error=ErrorPattern(
        id="err_1",
        family=Family.PYTHON_EXCEPTION,
        error_type="ModuleNotFoundError",
        template="No module named <name>",
        keywords=("module",),
        context="",
    ),
    keyword="",
    task_type=TaskType.BUG_FIX,
    repo="acme/shop",
    met=4,
    cleared=4,
    otherwise=0,
    remedies=(
        CommonRemedy(
            "run `pip install <the missing module>` first", 4, 4, 1, 2.0, RECOVERED.actions[0]
        ),
        CommonRemedy("run `pip install -e .` first", 3, 4, 1, 2.0, RECOVERED.actions[0]),
    ),
    clearances=(
        Clearance(RECOVERED, "trj_1", "acme/shop", TaskType.BUG_FIX, Outcome.UNKNOWN, NOON),
    ),
)
NAME = "openai/gpt-test methodology.v2"
WORDS = Words(
    NAME,
    "When ModuleNotFoundError comes up in acme/shop.",
    "first run `pip install <the missing module>` first. Otherwise, "
    "first run `pip install -e .` first.",
    "Not without a need.",
)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def model_at(server: Server, budget: Budget | None = None, key: str = KEY) -> ModelAnswerer:
    endpoint = Endpoint(server.url, key)
    server.clients.append(endpoint)
    model = chat_model("gpt-test", PRICES)
    chat = Chat(model, endpoint, UsageLog(None, "memory.db"), budget or Budget(), QUICK, QUICK)
    return ModelAnswerer(chat)


def worded(
    answerer: ModelAnswerer, group: MethodologyGroup = GROUP, *, interactive: bool = False
) -> ModelWording:
    return reword(group, answerer.name, partial(answerer, interactive=interactive))


def always(reply: Reply) -> Fault:
    return lambda number, handler: reply


def answering(server: Server, *contents: str | None) -> Fault:
    """A fault: the model answers with these *contents* in order, then always with the last."""

    def fault(number: int, handler: Handler) -> Reply:
        content = contents[min(number, len(contents) - 1)]
        return 200, {}, orjson.dumps(chat_reply(server.requests[number], content))

    return fault


def form(server: Server, number: int) -> str:
    kind = server.chats[number]["response_format"]["type"]
    assert isinstance(kind, str)
    return kind


def test_a_group_is_worded(server: Server) -> None:
    made = worded(model_at(server))
    (request,) = server.chats
    assert made.words == WORDS
    assert made.usage.requests == 1
    assert made.usage.cost == pytest.approx(
        (1.0 * _tokens(request, "prompt") + 10.0 * _tokens(request, "completion")) / 1e6
    )
    schema = request["response_format"]["json_schema"]
    assert schema["strict"]
    assert schema["schema"]["required"] == ["situation", "strategy", "not_when"]
    assert schema["schema"]["additionalProperties"] is False
    assert request["max_completion_tokens"] == MAX_ANSWER_TOKENS


def _tokens(request: object, kind: str) -> int:
    from tests.model_server import chat

    counted = chat(Server(), request)["usage"][f"{kind}_tokens"]  # type: ignore[arg-type]  # a body
    assert isinstance(counted, int)
    return counted


def test_the_prompt_has_all_counted_facts(server: Server) -> None:
    remote = model_at(server)
    worded(remote)
    (message,) = server.chats[0]["messages"]
    assert message == {"role": "user", "content": request_about(GROUP)}
    rules, _, facts = message["content"].rpartition("\n")
    assert rules.strip().endswith(prompt_text(PROMPT_VERSION).strip())
    sent = orjson.loads(facts)
    assert sent["remedies"] == [remedy.text for remedy in GROUP.remedies]
    assert sent["error"]["message"] == "No module named <name>"
    assert sent["examples"][0]["actions"] == ["pip install attrs"]
    assert "never an instruction" in rules


def test_secrets_do_not_leave_the_machine(server: Server) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    recovered = replace(RECOVERED, actions=(remedy(f"git clone https://{token}@host/x"),))
    clearance = replace(GROUP.clearances[0], recovered=recovered)
    common = CommonRemedy(
        f"run `git clone https://{token}@host/x` first", 3, 4, 1, 2.0, RECOVERED.actions[0]
    )
    worded(model_at(server), replace(GROUP, remedies=(common,), clearances=(clearance,)))
    assert token not in orjson.dumps(server.chats[0]).decode()


def test_a_401_stops_at_once_and_the_key_is_not_shown(server: Server) -> None:
    server.key = "another"
    remote = model_at(server)
    for _ in range(3):
        with pytest.raises(RemoteError, match=r"key was refused .*check OPENAI_API_KEY") as raised:
            worded(remote)
        assert KEY not in str(raised.value)
    assert len(server.requests) == 1


def test_a_429_delays_the_next_request(server: Server) -> None:
    limited = error(429, "slow down", Retry_After="1")
    server.fault = lambda number, handler: limited if number == 0 else None
    assert worded(model_at(server)).words == WORDS
    assert server.at[1] - server.at[0] >= 1


def test_a_500_is_retried(server: Server) -> None:
    server.fault = lambda number, handler: error(500, "boom") if number < 2 else None
    assert worded(model_at(server)).words == WORDS
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (silent, "no answer in time"),
        (dripping, "no answer in time"),
        (truncated, "no connection"),
        (always((200, {}, b'{"choices": [{"mes')), "the answer is not JSON"),
        (always((200, {}, b"[]")), "holds no message"),
        (always((200, {}, b'{"choices": []}')), "holds no message"),
    ],
)
def test_an_unusable_answer_is_given_up(server: Server, fault: Fault, reason: str) -> None:
    server.fault = fault
    is_answered = not reason.startswith("no ")  # what is answered is not asked for again
    remote = model_at(server)
    policy = QUICK if "in time" in reason else RetryPolicy(timeout=60, retries=1)
    with pytest.raises(RemoteError, match=reason):
        worded(replace(remote, chat=replace(remote.chat, policy=policy)))
    assert len(server.requests) == (1 if is_answered else 2)


def test_an_interactive_call_gives_up_sooner(server: Server) -> None:
    def slow(number: int, handler: Handler) -> Reply | None:
        time.sleep(0.6)
        return None

    server.fault = slow
    remote = model_at(server)
    remote = replace(remote, chat=replace(remote.chat, policy=RetryPolicy(timeout=9, retries=0)))
    assert worded(remote).words == WORDS
    with pytest.raises(RemoteError, match="no answer in time"):
        worded(remote, interactive=True)


GOOD = orjson.dumps(
    {"situation": WORDS.situation, "strategy": WORDS.strategy, "not_when": WORDS.not_when}
).decode()
UNUSABLE = [
    ("", "Invalid JSON"),
    (None, "Invalid JSON"),
    ("I would rather not.", "Invalid JSON"),
    (GOOD[:-20], "Invalid JSON"),
    ('{"situation": "x", "strategy": "y"}', "not_when: Field required"),
    (GOOD.replace("}", ', "more": 1}'), "more: Extra inputs"),
    ('{"situation": "x", "strategy": 3, "not_when": ""}', "strategy: Input should be"),
    ('{"situation": " ", "strategy": "y", "not_when": ""}', "situation is empty"),
    (f'{{"situation": "x", "strategy": "{"y" * 901}", "not_when": ""}}', "strategy is longer"),
    (
        '{"situation": "x", "strategy": "run `rm -rf /` first", "not_when": ""}',
        "`rm -rf /` does not occur in the facts",
    ),
]


@pytest.mark.parametrize(("content", "reason"), UNUSABLE)
def test_unusable_words_are_requested_once_more_with_the_reason(
    server: Server, content: str | None, reason: str
) -> None:
    server.fault = answering(server, content, GOOD)
    made = worded(model_at(server))
    assert made.words == WORDS
    assert made.usage.requests == 2
    (again,) = server.chats[1]["messages"]
    assert again["content"].startswith(request_about(GROUP))
    assert f"--- your answer before\n\n{content or ''}" in again["content"]
    assert reason in again["content"]


@pytest.mark.parametrize(("content", "reason"), UNUSABLE)
def test_words_that_stay_unusable_are_given_up(
    server: Server, content: str | None, reason: str
) -> None:
    server.fault = answering(server, content)
    made = worded(model_at(server))
    assert made.words == Words(NAME)
    assert reason in made.reason
    assert made.usage.requests == len(server.chats) == 2


@pytest.mark.parametrize(
    "around",
    [
        "```json\n{}\n```",
        "<think>let me see</think>\n{}",
        '<think>as {"title": …}, {fields} or {"a": 1}</think>\n{}\nSo {that} is it.',
    ],
)
def test_text_around_an_answer_is_ignored(server: Server, around: str) -> None:
    server.fault = answering(server, around.replace("{}", GOOD, 1))
    assert worded(model_at(server)).words == WORDS


def refusing_schemas(status: int, server: Server) -> Fault:
    def fault(number: int, handler: Handler) -> Reply | None:
        kind = server.requests[number]["response_format"]["type"]
        refused = error(status, "response_format json_schema is not supported")
        return refused if kind == "json_schema" else None

    return fault


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_server_that_refuses_schemas_is_sent_none_from_then_on(
    server: Server, status: int
) -> None:
    server.fault = refusing_schemas(status, server)
    remote = model_at(server)
    assert [worded(remote).words for _ in range(3)] == [WORDS] * 3
    forms = [form(server, number) for number in range(len(server.chats))]
    refused = 1 + QUICK.retries if status == 500 else 1  # a failure of the server is tried again
    assert forms == ["json_schema"] * refused + ["json_object"] * 3


@pytest.mark.parametrize("known", ["max_tokens", ""])
def test_a_server_that_refuses_the_name_of_a_limit_is_sent_the_other_or_none(
    server: Server, known: str
) -> None:
    def fault(number: int, handler: Handler) -> Reply | None:
        unknown = {"max_completion_tokens", "max_tokens"} & server.requests[number].keys() - {known}
        return error(400, f"Extra inputs are not permitted: {unknown}") if unknown else None

    server.fault = fault
    remote = model_at(server)
    assert [worded(remote).words for _ in range(2)] == [WORDS] * 2
    sent = [{"max_completion_tokens", "max_tokens"} & body.keys() for body in server.chats]
    named = {known} if known else set()
    assert sent[-2:] == [named, named]
    assert len(sent) == (3 if known else 4)
    assert form(server, -1) == "json_schema"


def test_a_server_that_allows_shorter_answers_is_sent_no_limit(server: Server) -> None:
    def fault(number: int, handler: Handler) -> Reply | None:
        limits = {"max_completion_tokens", "max_tokens"} & server.requests[number].keys()
        return error(400, "max_tokens is too large: at most 256 tokens") if limits else None

    server.fault = fault
    assert worded(model_at(server)).words == WORDS


def test_a_key_of_a_letter_masks_nothing(server: Server) -> None:
    server.key = "x"
    server.fault = always(error(404, "The model example-x is not there"))
    with pytest.raises(RemoteError, match="The model example-x is not there"):
        worded(model_at(server, key="x"))


def test_a_server_that_knows_no_form_of_answers_is_sent_none(server: Server) -> None:
    def fault(number: int, handler: Handler) -> Reply | None:
        named = "response_format" in server.requests[number]
        return error(400, "this model answers in text") if named else None

    server.fault = fault
    assert worded(model_at(server)).words == WORDS
    assert len(server.chats) == 3


def test_a_server_that_accepted_a_schema_is_always_sent_one(server: Server) -> None:
    server.fault = lambda number, handler: error(500, "boom") if number == 1 else None
    remote = model_at(server)
    assert [worded(remote).words for _ in range(2)] == [WORDS] * 2
    assert {form(server, number) for number in range(3)} == {"json_schema"}


def test_an_invalid_request_is_not_retried(server: Server) -> None:
    server.fault = always(error(404, "The model `gpt-test` does not exist"))
    with pytest.raises(RemoteError, match="does not exist"):
        worded(model_at(server))
    assert len(server.requests) == 3  # one for each form of an answer


def test_no_more_is_spent_than_the_budget(server: Server) -> None:
    limit = chat_model("gpt-test", PRICES).prices.cost(1_500, MAX_ANSWER_TOKENS)
    budget = Budget(limit)
    remote = model_at(server, budget=budget)
    cost = worded(remote).usage.cost
    assert 0 < cost < limit
    for _ in range(int((limit - _max_cost(remote)) / cost)):
        worded(remote)
    requests = len(server.requests)
    with pytest.raises(RemoteError, match="pass the cap"):
        worded(remote)
    assert len(server.requests) == requests


def _max_cost(remote: ModelAnswerer) -> float:
    """The most that one more request may cost."""
    tokens = count_tokens(request_about(GROUP))
    return remote.cost(tokens, MAX_ANSWER_TOKENS)


def test_an_estimate_sends_nothing_and_is_not_too_low(server: Server) -> None:
    remote = model_at(server)
    guess = remote.cost(count_tokens(request_about(GROUP)), USUAL_ANSWER_TOKENS)
    assert not server.requests
    cost = worded(remote).usage.cost
    assert cost <= guess <= 3 * cost


def test_prices_of_dated_models_are_known_and_can_be_given() -> None:
    assert chat_model("gpt-4.1-mini-2025-04-14").prices == chat_model("gpt-4.1-mini").prices
    assert chat_model("gpt-4.1-mini").prices.are_known
    assert not chat_model("qwen3").prices.are_known
    assert chat_model("gpt-4.1-mini", Prices(answer=9.0)).prices == Prices(0.40, 9.0)

"""Each way in which a chat API fails, over real HTTP, and what an editor makes of it."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import orjson
import pytest

from contextgraph.errors import RemoteError
from contextgraph.llm import METHODOLOGIES, Chat, Prices, RemoteEditor, chat_model
from contextgraph.llm.chat import MOST_ANSWER_TOKENS
from contextgraph.model import (
    Clearance,
    CommonRemedy,
    ErrorPattern,
    Family,
    Group,
    MethodologyGroup,
    Outcome,
    Recovered,
    TaskType,
    Words,
)
from contextgraph.remote import Budget, Endpoint, Ledger, Patience
from contextgraph.text import count_tokens
from tests.builders import NOON
from tests.model_server import (
    KEY,
    Handler,
    Reply,
    Server,
    dripping,
    error,
    said,
    serving,
    silent,
    truncated,
)

QUICK = Patience(timeout=0.3, outage=0.7, limited=3)
PRICES = Prices(1.0, 10.0)
Fault = Callable[[int, Handler], Reply | None]

RECOVERED = Recovered(
    fragment_id="frg_1",
    error_id="err_1",
    error_step=1,
    cleared_step=3,
    message="ModuleNotFoundError: No module named 'attrs'",
    what="ran `pip install attrs`; then it worked",
    actions=("pip install attrs",),
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
        CommonRemedy("run `pip install <the missing module>` first", 4, 1, 2.0),
        CommonRemedy("run `pip install -e .` first", 3, 1, 2.0),
    ),
    clearances=(
        Clearance(RECOVERED, "trj_1", "acme/shop", TaskType.BUG_FIX, Outcome.UNKNOWN, NOON),
    ),
)
WORDS = Words(
    "When ModuleNotFoundError comes up in acme/shop.",
    "first run `pip install <the missing module>` first. Otherwise, "
    "first run `pip install -e .` first.",
    "Not without a need.",
)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def editor(server: Server, budget: Budget | None = None) -> RemoteEditor[Group, Words]:
    endpoint = Endpoint(server.url, KEY)
    server.clients.append(endpoint)
    model = chat_model("gpt-test", PRICES)
    chat = Chat(model, endpoint, Ledger(None, "memory.db"), budget or Budget(), QUICK, QUICK)
    return RemoteEditor(METHODOLOGIES, chat)


def always(reply: Reply) -> Fault:
    return lambda number, handler: reply


def saying(server: Server, *contents: str | None) -> Fault:
    """A fault: the model says these *contents* first, the last one for ever."""

    def fault(number: int, handler: Handler) -> Reply:
        content = contents[min(number, len(contents) - 1)]
        return 200, {}, orjson.dumps(said(server.asked[number], content))

    return fault


def form(server: Server, number: int) -> str:
    kind = server.chats[number]["response_format"]["type"]
    assert isinstance(kind, str)
    return kind


def test_a_group_comes_back_in_words(server: Server) -> None:
    made = editor(server).reword(GROUP)
    (asked,) = server.chats
    assert made.words == WORDS
    assert made.usage.requests == 1
    assert made.usage.cost == pytest.approx(
        (1.0 * _tokens(asked, "prompt") + 10.0 * _tokens(asked, "completion")) / 1e6
    )
    schema = asked["response_format"]["json_schema"]
    assert schema["strict"]
    assert schema["schema"]["required"] == ["situation", "strategy", "not_when"]
    assert schema["schema"]["additionalProperties"] is False
    assert asked["max_completion_tokens"] == MOST_ANSWER_TOKENS


def _tokens(asked: object, kind: str) -> int:
    from tests.model_server import chat

    counted = chat(Server(), asked)["usage"][f"{kind}_tokens"]  # type: ignore[arg-type]  # a body
    assert isinstance(counted, int)
    return counted


def test_the_model_is_told_what_was_counted_and_one_prompt_has_all_of_it(server: Server) -> None:
    mine = editor(server)
    mine.reword(GROUP)
    rules, facts = (message["content"] for message in server.chats[0]["messages"])
    assert mine.prompt(GROUP) == f"{rules}\n{facts}"
    told = orjson.loads(facts)
    assert told["remedies"] == [remedy.text for remedy in GROUP.remedies]
    assert told["error"]["message"] == "No module named <name>"
    assert told["examples"][0]["actions"] == ["pip install attrs"]
    assert "never an instruction" in rules


def test_secrets_do_not_leave_the_machine(server: Server) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"
    recovered = replace(RECOVERED, what=f"ran `git clone https://{token}@host/x`; then it worked")
    clearance = replace(GROUP.clearances[0], recovered=recovered)
    remedy = CommonRemedy(f"run `git clone https://{token}@host/x` first", 3, 1, 2.0)
    editor(server).reword(replace(GROUP, remedies=(remedy,), clearances=(clearance,)))
    assert token not in orjson.dumps(server.chats[0]).decode()


def test_a_401_stops_at_once_and_the_key_is_not_shown(server: Server) -> None:
    server.key = "another"
    mine = editor(server)
    for _ in range(3):
        with pytest.raises(RemoteError, match=r"key was refused .*check OPENAI_API_KEY") as told:
            mine.reword(GROUP)
        assert KEY not in str(told.value)
    assert len(server.asked) == 1


def test_a_429_is_obeyed(server: Server) -> None:
    limited = error(429, "slow down", Retry_After="1")
    server.fault = lambda number, handler: limited if number == 0 else None
    assert editor(server).reword(GROUP).words == WORDS
    assert server.at[1] - server.at[0] >= 1


def test_a_500_is_tried_again(server: Server) -> None:
    server.fault = lambda number, handler: error(500, "boom") if number < 2 else None
    assert editor(server).reword(GROUP).words == WORDS
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (silent, "no answer in time"),
        (dripping, "no answer in time"),
        (truncated, "no connection"),
        (always((200, {}, b'{"choices": [{"mes')), "the answer is no JSON"),
        (always((200, {}, b"[]")), "no message in it"),
        (always((200, {}, b'{"choices": []}')), "no message in it"),
    ],
)
def test_an_answer_that_is_none_is_asked_for_again_and_given_up(
    server: Server, fault: Fault, reason: str
) -> None:
    server.fault = fault
    begun = time.monotonic()
    with pytest.raises(RemoteError, match=reason):
        editor(server).reword(GROUP)
    assert len(server.asked) > 1
    assert time.monotonic() - begun < 5


def test_where_someone_waits_a_slow_answer_is_given_up_sooner(server: Server) -> None:
    def slow(number: int, handler: Handler) -> Reply | None:
        time.sleep(0.6)
        return None

    server.fault = slow
    mine = editor(server)
    mine = replace(mine, chat=replace(mine.chat, patience=Patience(timeout=9, outage=9, limited=9)))
    assert mine.reword(GROUP).words == WORDS
    with pytest.raises(RemoteError, match="no answer in time"):
        mine.reword(GROUP, hurried=True)


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
        "`rm -rf /` does not stand in the facts",
    ),
]


@pytest.mark.parametrize(("content", "reason"), UNUSABLE)
def test_words_that_cannot_be_used_are_asked_for_once_more_with_the_reason(
    server: Server, content: str | None, reason: str
) -> None:
    server.fault = saying(server, content, GOOD)
    made = editor(server).reword(GROUP)
    assert made.words == WORDS
    assert made.usage.requests == 2
    *_, before, again = server.chats[1]["messages"]
    assert before == {"role": "assistant", "content": content or ""}
    assert reason in again["content"]


@pytest.mark.parametrize(("content", "reason"), UNUSABLE)
def test_words_that_can_never_be_used_are_given_up(
    server: Server, content: str | None, reason: str
) -> None:
    server.fault = saying(server, content)
    made = editor(server).reword(GROUP)
    assert made.words is None
    assert reason in made.reason
    assert made.usage.requests == len(server.chats) == 2


@pytest.mark.parametrize("around", ["```json\n{}\n```", "<think>let me see</think>\n{}"])
def test_what_models_put_around_an_answer_is_left_out(server: Server, around: str) -> None:
    server.fault = saying(server, around.replace("{}", GOOD))
    assert editor(server).reword(GROUP).words == WORDS


def refusing_schemas(status: int, server: Server) -> Fault:
    def fault(number: int, handler: Handler) -> Reply | None:
        asked = server.asked[number]["response_format"]["type"]
        refused = error(status, "response_format json_schema is not supported")
        return refused if asked == "json_schema" else None

    return fault


@pytest.mark.parametrize("status", [400, 422, 500])
def test_a_server_that_refuses_schemas_is_asked_for_json_from_then_on(
    server: Server, status: int
) -> None:
    server.fault = refusing_schemas(status, server)
    mine = editor(server)
    assert [mine.reword(GROUP).words for _ in range(3)] == [WORDS] * 3
    forms = [form(server, number) for number in range(len(server.chats))]
    assert forms == ["json_schema", "json_object", "json_object", "json_object"]


def test_a_server_that_took_a_schema_is_not_asked_for_less(server: Server) -> None:
    server.fault = lambda number, handler: error(500, "boom") if number == 1 else None
    mine = editor(server)
    assert [mine.reword(GROUP).words for _ in range(2)] == [WORDS] * 2
    assert {form(server, number) for number in range(3)} == {"json_schema"}


def test_a_request_that_is_wrong_in_any_form_is_given_up(server: Server) -> None:
    server.fault = always(error(404, "The model `gpt-test` does not exist"))
    with pytest.raises(RemoteError, match="does not exist"):
        editor(server).reword(GROUP)
    assert len(server.asked) == 2


def test_no_more_is_spent_than_may_be(server: Server) -> None:
    bound = chat_model("gpt-test", PRICES).prices.cost(1_500, MOST_ANSWER_TOKENS)
    budget = Budget(bound)
    mine = editor(server, budget=budget)
    cost = mine.reword(GROUP).usage.cost
    assert 0 < cost < bound
    for _ in range(int((bound - _most(mine)) / cost)):
        mine.reword(GROUP)
    asked = len(server.asked)
    with pytest.raises(RemoteError, match="pass the cap"):
        mine.reword(GROUP)
    assert len(server.asked) == asked


def _most(mine: RemoteEditor[Group, Words]) -> float:
    """What one more request may cost."""
    return mine.chat.model.prices.cost(count_tokens(mine.prompt(GROUP)), MOST_ANSWER_TOKENS)


def test_an_estimate_sends_nothing_and_is_rather_too_high(server: Server) -> None:
    mine = editor(server)
    guess = mine.estimate(GROUP).cost
    assert not server.asked
    cost = mine.reword(GROUP).usage.cost
    assert cost <= guess <= 3 * cost


def test_prices_of_dated_models_are_known_and_can_be_given() -> None:
    assert chat_model("gpt-4.1-mini-2025-04-14").prices == chat_model("gpt-4.1-mini").prices
    assert chat_model("gpt-4.1-mini").prices.are_known
    assert not chat_model("qwen3").prices.are_known
    assert chat_model("gpt-4.1-mini", Prices(answer=9.0)).prices == Prices(0.40, 9.0)

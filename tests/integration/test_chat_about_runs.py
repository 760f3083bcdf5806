"""What a model may say about a run, over real HTTP, and what is sent of it."""

from collections.abc import Iterator
from dataclasses import replace

import orjson
import pytest

from contextgraph.llm import RUNS, Chat, Prices, RemoteEditor, chat_model
from contextgraph.model import FragmentType, Outcome, Phase, RunWords, Story, story_of
from contextgraph.model.retelling import FRAGMENTS_TOLD
from contextgraph.remote import Budget, Endpoint, Ledger, Patience
from contextgraph.writing import bundle_of
from tests.builders import NO_MODULE, NOON, run
from tests.model_server import KEY, Handler, Reply, Server, facts_in, said, serving

QUICK = Patience(timeout=0.3, outage=0.7, limited=3)
BUNDLE = bundle_of(
    run(
        [
            ("ls shop", "prices.py\nreports.py", 0),
            ("python reproduce.py", NO_MODULE, 1),
            ("pip install tariffs", "Successfully installed tariffs", 0),
            ("python reproduce.py", "total: 12\n", 0),
        ]
    ),
    NOON,
)
STORY = story_of(BUNDLE.trajectory, BUNDLE.fragments)


@pytest.fixture
def server() -> Iterator[Server]:
    with serving() as running:
        yield running


def editor(server: Server) -> RemoteEditor[Story, RunWords]:
    endpoint = Endpoint(server.url, KEY)
    server.clients.append(endpoint)
    chat = Chat(
        chat_model("gpt-test", Prices(1, 1)), endpoint, Ledger(None, "m"), Budget(), QUICK, QUICK
    )
    return RemoteEditor(RUNS, chat)


def saying(server: Server, content: str) -> None:
    def fault(number: int, handler: Handler) -> Reply:
        return 200, {}, orjson.dumps(said(server.asked[number], content))

    server.fault = fault


def account(summary: str = "It was told.", **described: str) -> str:
    """An answer; *described* are descriptions by ``n`` and their number."""
    fragments = [{"number": int(n[1:]), "description": text} for n, text in described.items()]
    return orjson.dumps({"summary": summary, "fragments": fragments}).decode()


def test_a_run_comes_back_in_words(server: Server) -> None:
    saying(server, account("Installed `tariffs`.", n2="Ran `pip install tariffs`."))
    made = editor(server).reword(STORY)
    ran = {STORY.fragments[1].id: "Ran `pip install tariffs`."}
    assert made.words == RunWords("Installed `tariffs`.", ran)
    schema = server.chats[0]["response_format"]["json_schema"]
    assert (schema["name"], schema["strict"]) == ("run", True)
    assert schema["schema"]["required"] == ["summary", "fragments"]
    (described,) = schema["schema"]["$defs"].values()
    assert (described["additionalProperties"], described["required"]) == (
        False,
        ["number", "description"],
    )


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("no idea", "Invalid JSON"),
        ('{"summary": "x"}', "fragments: Field required"),
        (account(" "), "summary is empty"),
        (account("x" * 901), "summary is longer than 900"),
        (account("Ran `make install`."), "`make install` does not stand in the facts"),
        (account(n1=""), "description of fragment 1 is empty"),
        (account(n1="x" * 401), "description of fragment 1 is longer than 400"),
        (account(n1="Ran `make`."), "`make` does not stand in the facts"),
        (account(n0="x"), "there is no fragment 0"),
        (account(n9="x"), "there is no fragment 9"),
        (
            account(n1="a", n2="b").replace('"number":2', '"number":1'),
            "fragment 1 is there twice",
        ),
        ('{"summary": "x", "fragments": [{"number": "1", "description": "a"}]}', "valid integer"),
    ],
)
def test_words_that_cannot_be_used_are_given_up(server: Server, content: str, reason: str) -> None:
    saying(server, content)
    made = editor(server).reword(STORY)
    assert made.words is None
    assert reason in made.reason
    assert len(server.chats) == 2


def test_the_work_is_told_rather_than_looking_around() -> None:
    (part, *_) = BUNDLE.fragments
    looking = replace(part, fragment_type=FragmentType.EXPLORATION, phase=Phase.UNDERSTANDING)
    parts = [replace(looking, id=f"frg_{order}", order=order) for order in range(20)]
    parts[15] = replace(parts[15], phase=Phase.FIXING)
    parts[17] = replace(parts[17], fragment_type=FragmentType.ERROR_RECOVERY)
    told = [one.order for one in story_of(BUNDLE.trajectory, parts).fragments]
    assert told == [0, 1, 2, 3, 4, 5, 15, 17]


def test_a_story_tells_the_same_until_its_text_changes() -> None:
    solved = replace(BUNDLE.trajectory, outcome=Outcome.SOLVED, exit_status="submitted")
    assert story_of(solved, BUNDLE.fragments).fingerprint == STORY.fingerprint
    first, *rest = BUNDLE.fragments
    for other in (
        Story(replace(BUNDLE.trajectory, summary="other"), STORY.fragments),
        Story(BUNDLE.trajectory, (replace(first, description="other"), *rest)),
        Story(BUNDLE.trajectory, (*rest,)),
    ):
        assert other.fingerprint != STORY.fingerprint


def test_what_is_sent_of_a_run_is_bounded_and_says_nothing_of_its_outcome(server: Server) -> None:
    long = "word " * 10_000
    run_of_many = replace(BUNDLE.trajectory, task=long, summary=long, files=("a.py",) * 99)
    part = replace(BUNDLE.fragments[0], description=long, action_sequence=(long,) * 12)
    parts = [replace(part, id=f"frg_{number}", order=number) for number in range(40)]
    mine = editor(server)
    mine.reword(story_of(run_of_many, parts))
    facts = facts_in(server.chats[0])
    assert [one["number"] for one in facts["fragments"]] == [*range(1, FRAGMENTS_TOLD + 1)]
    assert len(mine.prompt(story_of(run_of_many, parts))) < 16_000
    assert set(facts) == {
        "repository",
        "kind_of_task",
        "task",
        "summary",
        "files_changed",
        "fragments",
    }

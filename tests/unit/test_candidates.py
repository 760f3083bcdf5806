"""Candidates for notes: what people said in recorded sessions, and its review."""

from collections.abc import Iterator

import pytest

from contextgraph import AgentMemory
from contextgraph.knowledge.corrections import corrections_in
from contextgraph.model import (
    Action,
    RawTrajectory,
    Step,
)

SHOP = "acme/shop"
RULE = "Don't commit generated files."


def session(*messages: str, instance: str = "a") -> RawTrajectory:
    """A session in which a person wrote *messages*, one after each step."""
    steps = (
        Step(index, "", Action("bash", f"make {index}"), "ok", user_message=message)
        for index, message in enumerate(messages)
    )
    return RawTrajectory("claude-code", instance, SHOP, f"Task {instance}", tuple(steps))


def candidates_in(message: str) -> list[str]:
    return [one.text for one in corrections_in(session(message))]


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as memory:
        yield memory


@pytest.mark.parametrize(
    "sentence",
    [
        "Never push to main directly.",
        "use pnpm instead of npm",
        "please don't edit files under vendor/",
        "stop asking me multiple choice questions",
        "we always squash before merging",
        "the config should live in pyproject.toml",
        "from now on write the test first",
        "No mocks in integration tests",
        "I prefer small commits",
        "you need to run the tests yourself",
        "make sure to keep the public API as it is",
        "以后请用 pnpm 安装依赖，不要用 npm",
    ],
)
def test_what_holds_beyond_the_moment_is_read(sentence: str) -> None:
    assert candidates_in(f"Thanks. {sentence}") == [sentence]


@pytest.mark.parametrize(
    "message",
    [
        "yes",
        "go ahead",
        "What is the local URL again?",
        "should we always squash before merging?",
        "now add a goodbye function",
        "it should be fine now",
        "stop",
        "no I think we are good",
        "Implement this plan: " + "you should never do this. " * 60,
        "```\nnever push to main\n```",
        "Your last output did not use any tool calls! You must always use one.",
    ],
)
def test_questions_pasted_texts_and_instructions_of_the_moment_are_not(message: str) -> None:
    assert candidates_in(message) == []


def test_what_a_program_writes_after_each_step_is_not_read() -> None:
    assert [*corrections_in(session("you must always answer", "you must always answer"))] == []


def test_a_correction_waits_for_its_review(memory: AgentMemory) -> None:
    run = memory.learn(session("go ahead", f"no. {RULE} use the token ghp_" + "a1B2" * 9))
    first, *_ = candidates = memory.candidates.of(SHOP)
    assert RULE in {one.content for one in candidates}
    assert not any("a1B2" in one.content for one in candidates)
    assert first.locator == f"{run.trajectory_id}#1"
    assert memory.notes.recall("commit generated files", repo=SHOP) == ()
    assert memory.notes.of(SHOP) == ()
    assert memory.candidates.of("bob/pump") == ()


def test_an_accepted_candidate_is_a_note_and_a_rejected_one_does_not_return(
    memory: AgentMemory,
) -> None:
    run = session(RULE, "Always squash before merging.")
    memory.learn(run)
    squash, generated = sorted(memory.candidates.of(), key=lambda one: one.content)
    assert memory.candidates.accept([generated.id, "candidate_unknown"]) == 1
    assert memory.candidates.reject([squash.id]) == 1
    (found,) = memory.notes.recall("may I commit generated files", repo=SHOP)
    assert (found.note.content, found.note.source) == (RULE, "user:session")
    assert found.note.locator == generated.locator
    memory.learn(run)
    memory.learn(session("Always squash before merging.", instance="b"))
    assert memory.candidates.of() == ()
    assert len(memory.notes.of()) == 1


def test_what_two_sessions_say_is_a_note(memory: AgentMemory) -> None:
    memory.learn(session(RULE))
    memory.learn(session(RULE))
    assert len(memory.candidates.of()) == 1
    memory.learn(session("please do not commit the generated files", instance="b"))
    assert memory.candidates.of() == ()
    (note,) = memory.notes.of(SHOP)
    assert note.content == RULE


def test_how_often_a_rule_had_to_be_repeated_is_counted(memory: AgentMemory) -> None:
    memory.notes.remember(RULE, repo=SHOP)
    assert memory.candidates.repeated(SHOP) == ()
    for instance in ("a", "b", "b"):
        memory.learn(session(RULE, instance=instance))
    ((note, count),) = memory.candidates.repeated(SHOP)
    assert (note.content, count) == (RULE, 2)
    assert memory.candidates.of() == ()

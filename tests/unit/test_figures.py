"""Sessions: their sub-agents, tokens, cost and guessed ending; figures of what was shown."""

from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

import orjson
import pytest

from contextgraph import AgentMemory
from contextgraph.model import (
    INDEX_MOMENT,
    Action,
    AdviceFigures,
    Basis,
    ChangeStatus,
    Exposure,
    Outcome,
    RawTrajectory,
    Scope,
    SessionFilter,
    ShownItem,
    ShownTally,
    Spent,
    Step,
    cost_of,
    price_of,
    steps_text,
    waiting_text,
)
from contextgraph.model.values import replace
from contextgraph.readers import read
from tests.builders import NO_MODULE, NOON, run, step

CLIENT = "8bda05a6-149b-4fd3-b417-985bf1623e7e"
PASSED, RED = "1 passed in 0.1s", "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed in 0.1s"


def edit(index: int) -> Step:
    arguments = {"file_path": "shop/tariff.py", "old_string": "3", "new_string": "4"}
    return Step(index, "", Action("Edit", "shop/tariff.py", arguments), "updated")


def reply(index: int, user_message: str | None = None) -> Step:
    return Step(index, "The total is 4 now.", Action("", ""), user_message=user_message)


def session(*steps: Step, number: int = 1, **fields: object) -> RawTrajectory:
    raw = RawTrajectory(
        "test",
        f"s-{number}",
        "acme/shop",
        "# Totals\nMend them.",
        steps,
        agent="claude-code",
        started_at=NOON + timedelta(days=number),
        session=CLIENT,
    )
    return replace(raw, **fields)


@pytest.fixture
def memory() -> AgentMemory:
    return AgentMemory.open(":memory:")


def test_sub_agents_are_in_their_session_with_their_tokens(memory: AgentMemory) -> None:
    model = "claude-sonnet-4-5-20250929"
    spent = Spent(input=1_000, cached=10_000, output=100)
    helper = session(
        step(0, "grep a"), agent="claude-code/subagent", model=model, spent=spent, task="Find it."
    )
    memory.learn([session(edit(0), reply(1), model=model, spent=spent), helper])
    memory.learn([session(edit(0), reply(1), number=2, session="")])
    newest, first = memory.sessions()
    assert (newest.agents, newest.tokens, newest.cost, newest.resume) == ((), None, None, "")
    (part,) = first.agents
    assert (first.title, first.steps, first.all_steps) == ("Totals", 2, 3)
    assert (part.title, part.agents, part.tokens) == ("Find it.", (), 11_100)
    assert first.tokens == 22_200
    assert first.cost == pytest.approx(2 * (1_000 * 3 + 10_000 * 0.3 + 100 * 15) / 1e6)
    assert first.resume == ""  # no client here keeps it
    assert memory.session(part.id) == memory.session(CLIENT) == memory.session(first.id) == first
    assert memory.session("trj_unknown") is None


def test_sessions_are_filtered_and_counted_by_repository_agent_and_outcome(
    memory: AgentMemory,
) -> None:
    memory.learn([session(edit(0), step(1, "pytest", PASSED), number=1)])
    memory.learn(
        [session(edit(0), step(1, "pytest", RED), number=2, repo="acme/till", session="b")]
    )
    memory.learn([session(reply(0), number=3, agent="codex-cli", outcome=Outcome.FAILED)])
    facets = memory.session_facets()
    assert facets.total == 3
    assert facets.repos == {"acme/shop": 2, "acme/till": 1}
    assert facets.agents == {"claude-code": 2, "codex-cli": 1}
    assert facets.outcomes == {"failed": 2, "solved": 1}
    failed = memory.sessions(SessionFilter(outcome=Outcome.FAILED))
    assert [one.is_guess for one in failed] == [False, True]
    assert memory.session_facets(SessionFilter(outcome=Outcome.FAILED)).total == 2
    before = memory.sessions(SessionFilter("Acme/Shop", until=NOON + timedelta(days=3)))
    assert [one.agent for one in before] == ["claude-code"]


TESTS = (edit(0), step(1, "pytest", PASSED))


@pytest.mark.parametrize(
    ("steps", "outcome", "basis"),
    [
        (TESTS, Outcome.SOLVED, Basis.TESTS),
        ((edit(0), step(1, "pytest", RED)), Outcome.FAILED, Basis.TESTS),
        ((*TESTS, edit(2)), Outcome.UNKNOWN, Basis.NOTHING),
        ((step(0, "pytest", PASSED), reply(1)), Outcome.UNKNOWN, Basis.NOTHING),
        ((*TESTS, reply(2)), Outcome.SOLVED, Basis.TESTS),
        ((*TESTS, reply(2, f"No:\n{NO_MODULE}"), reply(3)), Outcome.FAILED, Basis.WORDS),
        ((edit(0), step(1, "git commit -m x", "1 file changed")), Outcome.SOLVED, Basis.COMMIT),
        ((edit(0), step(1, "gh pr merge 12", "Merged")), Outcome.SOLVED, Basis.MERGED),
        ((edit(0), step(1, "make all", "", interrupted=True)), Outcome.FAILED, Basis.STOPPED),
        ((edit(0), step(1, "python a.py", NO_MODULE)), Outcome.FAILED, Basis.ERROR),
        ((edit(0), step(1, "python a.py", "12")), Outcome.SOLVED, Basis.RAN),
        ((edit(0), reply(1)), Outcome.SOLVED, Basis.ANSWERED),
        ((step(0, "cat a"), reply(1)), Outcome.UNKNOWN, Basis.NOTHING),
        ((reply(0, "thanks, that explains it"),), Outcome.UNKNOWN, Basis.NOTHING),
        ((step(0, "cat a", "x"),), Outcome.UNKNOWN, Basis.NOTHING),
    ],
)
def test_an_ending_is_guessed_with_its_reason(
    memory: AgentMemory, steps: Sequence[Step], outcome: Outcome, basis: Basis
) -> None:
    memory.learn([session(*steps)])
    (found,) = memory.sessions()
    assert (found.outcome, found.ending.basis) == (outcome, basis)
    assert found.ending.reason
    assert found.is_guess == (outcome is not Outcome.UNKNOWN)
    # A guess is no outcome for those who learn from it.
    (learned,) = memory.store.runs.trajectories([found.id]).values()
    assert learned.outcome is Outcome.UNKNOWN


def test_later_commits_say_more_than_the_steps(memory: AgentMemory) -> None:
    memory.learn([session(*TESTS, change=ChangeStatus.REVERTED)])
    assert memory.sessions()[0].ending.basis is Basis.CHANGE
    assert memory.sessions()[0].outcome is Outcome.FAILED


def test_each_reply_of_claude_code_counts_once(tmp_path: Path) -> None:
    usage = {"input_tokens": 2, "cache_creation_input_tokens": 30, "cache_read_input_tokens": 400}
    common = {"sessionId": CLIENT, "timestamp": "2026-03-01T12:00:00Z"}
    lines = [{**common, "type": "user", "uuid": "u", "message": {"role": "user", "content": "Go"}}]
    for number, (reply_id, output) in enumerate((("m1", 1), ("m1", 50), ("m2", 7))):
        message = {
            "id": reply_id,
            "role": "assistant",
            "content": [{"type": "text", "text": f"{number}"}],
            "usage": {**usage, "output_tokens": output},
        }
        lines.append({**common, "type": "assistant", "uuid": f"{number}", "message": message})
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join(map(orjson.dumps, lines)))
    (found,) = read(path)
    assert found.spent == Spent(input=4, cached=800, written=60, output=57)


def test_prices_are_of_the_model_whatever_its_maker_adds_to_the_name() -> None:
    for name in (
        "claude-opus-4-1-20250805",
        "us.anthropic.claude-opus-4-1",
        "anthropic/claude-opus-4-1",
    ):
        assert price_of(name) == price_of("claude-opus-4-1")
    assert cost_of("unheard-of", Spent(input=10)) is None
    assert cost_of("unheard-of", Spent(input=10, cost=0.5)) == 0.5


def test_steps_saved_have_a_sign_and_are_at_most_the_ceiling(memory: AgentMemory) -> None:
    slow = [("python reproduce.py", NO_MODULE, 1), *[("ls lib", "", 0)] * 3]
    slow.append(("PYTHONPATH=lib python reproduce.py", "total: 12\n", 0))
    memory.learn([run(slow, instance_id=f"acme__shop-{number}") for number in (1, 2, 3)])
    (error,) = memory.store.recoveries.errors(Scope(), 1)
    for number, helped in enumerate((True, None, False)):
        items = (ShownItem(f"frg_{number}", helped=helped),)
        shown = Exposure(
            f"ctx_{number}", NOON, error.error.id, helped, items, text="Run it so. " * 9
        )
        memory.store.exposures.add([shown])
    figures = memory.stats.get_advice(NOON, NOON + timedelta(seconds=1))
    assert (figures.shown, figures.known, figures.cleared, figures.followed) == (3, 2, 1, 2)
    assert (figures.ceiling, figures.tokens > 0) == (6, True)
    assert figures.saved == pytest.approx(3 - figures.tokens / 500)
    assert figures == memory.stats.get_figures(ShownTally.of(memory.store.exposures.all()))
    assert memory.stats.get_advice(until=NOON).shown == 0
    index = Exposure("ctx_index", NOON, text="Lessons on: imports", moment=INDEX_MOMENT)
    memory.store.exposures.add([index])
    listed = memory.stats.get_advice(NOON)
    assert (listed.shown, listed.tokens) == (3, figures.tokens + index.tokens)
    assert listed == memory.stats.get_figures(ShownTally.of(memory.store.exposures.all()))
    assert (steps_text(3), steps_text(-0.26), steps_text(-0.01)) == (
        "+3.0 steps",
        "-0.3 steps",
        "0 steps",
    )


@pytest.mark.parametrize(
    ("saved", "text"),
    [(-0.4, "no result known yet; it cost 0.4 steps to read"), (-0.04, "no result known yet")],
)
def test_what_reading_cost_is_said_where_it_is_something(saved: float, text: str) -> None:
    assert waiting_text(AdviceFigures(shown=1, saved=saved)) == text

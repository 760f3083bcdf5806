"""Why runs fail: conditions, their rates, what prevented them, and warnings while a run goes on."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.model import Condition, Outcome, Phase, State
from contextgraph.model.values import replace
from tests.builders import NO_MODULE, run

EDIT = ("sed -i 's/1/2/' shop/totals.py", "", 0)
TEST = ("python -m pytest -q", "3 passed\n", 0)
LOOKS = [(f"cat shop/part{number}.py", "rate = 1", 0) for number in range(24)]
SOLVED, FAILED = Outcome.SOLVED, Outcome.FAILED


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[AgentMemory]:
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        for number in range(12):
            name = f"acme__shop-{number}"
            memory.learn(run([*LOOKS[number:], TEST], instance_id=name, outcome=FAILED))
            solved = [*LOOKS[: number // 2], TEST, EDIT, TEST]
            memory.learn(run(solved, instance_id=f"acme__shop-{50 + number}", outcome=SOLVED))
        yield memory


def test_the_condition_that_explains_most_failures_is_first(memory: AgentMemory) -> None:
    first, *_ = memory.stats.get_failure_patterns("acme/shop")
    assert first.condition == "No existing file was changed"
    assert first.what == "0 of 12 runs solved, 12 of 12 others"
    assert (first.runs, first.solved, first.solved_without) == (12, 0.0, 1.0)
    assert first.share_of_steps == 1.0
    assert first.prevention == ("solved runs first changed a file at step 4 (median)",)
    assert memory.get_stats().failure_patterns[0] == first


def test_a_file_that_no_solved_run_of_the_task_changed_is_the_wrong_place(
    tmp_path: Path,
) -> None:
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        for number in range(6):
            name = f"acme__shop-{number}"
            other = ("sed -i 's/1/2/' shop/other.py", "", 0)
            memory.learn(run([TEST, EDIT, TEST], instance_id=name, agent="a", outcome=SOLVED))
            memory.learn(run([TEST, other, TEST], instance_id=name, agent="b", outcome=FAILED))
        first, *_ = memory.stats.get_failure_patterns()
    assert first.condition == "No file was changed that a solved run of the task changed"
    assert (first.runs, first.solved, first.share_of_steps) == (6, 0.0, 1.0)


def test_a_running_agent_is_warned_once_where_hardly_any_such_run_was_solved(
    memory: AgentMemory,
) -> None:
    live = memory.live(repo="acme/shop", task="Totals are wrong", instance_id="acme__shop-99")
    shown = [live.observe(command, output, exit_code=code) for command, output, code in LOOKS]
    (warning,) = filter(None, shown)
    assert shown.index(warning) == 9
    expected = (
        "No existing file was changed: 0 of 12 earlier runs of which this was true by step 10"
    )
    assert expected in warning
    assert "12 of 12 others" in warning


def test_an_agent_that_has_changed_a_file_is_not_warned(memory: AgentMemory) -> None:
    live = memory.live(repo="acme/shop", task="Totals are wrong", instance_id="acme__shop-99")
    commands = [LOOKS[0], EDIT, *LOOKS[1:]]
    assert not any(live.observe(line, output, exit_code=code) for line, output, code in commands)


def test_an_error_that_was_never_cleared_costs_the_steps_at_which_it_was_met(
    tmp_path: Path,
) -> None:
    timed_out = ("python -m pytest -q", "EXECUTION TIMED OUT", 1)
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        for number in range(3):
            memory.learn(run([timed_out] * 4, instance_id=f"acme__shop-{number}"))
        (friction,) = memory.stats.get_friction()
    assert (friction.tasks, friction.cleared, friction.cost) == (3, 0, 12.0)


def test_an_answer_has_three_parts_each_with_its_own_gate(tmp_path: Path) -> None:
    missing = ("python reproduce.py", NO_MODULE, 1)
    cleared = [missing, ("PYTHONPATH=lib python reproduce.py", "total: 12\n", 0), EDIT, TEST]
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        for number in range(8):
            memory.learn(run(cleared, instance_id=f"acme__shop-{number}", outcome=SOLVED))
            left = [missing, *LOOKS[: 12 + number]]
            memory.learn(run(left, instance_id=f"acme__shop-{20 + number}", outcome=FAILED))
        memory.consolidate()
        state = State(
            repo="acme/shop",
            current_error=NO_MODULE,
            last_action="python reproduce.py",
            steps=12,
            conditions=(Condition.NO_EDIT,),
        )
        context = memory.query(state)
        patterns = memory.stats.get_failure_patterns("acme/shop")
        (pattern,) = [one for one in patterns if one.condition == Condition.NO_EDIT.text]
        assert "PYTHONPATH=lib" in context.suggestions[0].description
        unedited, left_open = context.warnings
        assert unedited.text == (
            f"{pattern.condition}: 0 of 8 earlier runs of which this was true by step 12 were "
            f"solved, and 8 of 8 others; {pattern.prevented}"
        )
        assert left_open.text == (
            "ModuleNotFoundError: 8 of 16 earlier tasks here that met such an error "
            "never cleared it"
        )
        assert [case.outcome for case in context.similar_cases] == [SOLVED] * 5
        assert unedited.text in memory.render(context)
        assert not memory.query(replace(state, steps=3, conditions=())).warnings[1:]
        # Unasked, only what is sure is shown.
        assert memory.query(state, unasked=True).warnings == (unedited,)
        said = [unedited.subject]
        assert memory.query(state, already_shown=said).warnings == (left_open,)


def test_what_is_missing_at_the_end_is_that_of_the_state(memory: AgentMemory) -> None:
    state = State(repo="acme/shop", steps=9, conditions=(Condition.NO_EDIT, Condition.LOOPED))
    (warning,) = memory.query(replace(state, phase=Phase.SUBMITTING)).warnings
    assert warning.text.startswith("No existing file was changed: 0 of 12 earlier runs of which")
    elsewhere = [f"acme__shop-{number}" for number in range(12)]
    ending = replace(state, phase=Phase.SUBMITTING)
    assert memory.query(ending, exclude_instances=elsewhere).warnings == ()

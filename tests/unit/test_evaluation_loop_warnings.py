"""Steps that warnings of loops would have saved."""

from contextgraph.evaluation.judging import loop_warnings
from contextgraph.evaluation.measures import REPEATING, SAME_ACTION, STUCK, LoopWarnings
from contextgraph.model import RawTrajectory
from contextgraph.trace import states_of, trace
from tests.builders import NO_MODULE, run

FAILING = ("python reproduce.py", NO_MODULE, 1)
FREE = [(f"cat lib/part{number}.py", f"part = {number}", 0) for number in range(6)]


def warnings(commands: list[tuple[str, str, int]]) -> LoopWarnings:
    raw: RawTrajectory = run(commands)
    return loop_warnings(trace(raw), list(states_of(raw)))


def test_a_loop_at_the_end_is_wasted_and_a_warning_saves_what_follows_it() -> None:
    found = warnings([FAILING] * 8)

    assert found.wasted == 8
    assert found.saved == {STUCK: 2, REPEATING: 5, SAME_ACTION: 5}
    assert found.false_alarms == {STUCK: 0, REPEATING: 0, SAME_ACTION: 0}


def test_a_loop_that_ended_by_itself_wastes_nothing_and_its_warning_was_false() -> None:
    found = warnings([*[FAILING] * 4, *FREE])

    assert found.wasted == 0
    assert found.saved == {STUCK: 0, REPEATING: 0, SAME_ACTION: 0}
    assert found.false_alarms == {STUCK: 0, REPEATING: 1, SAME_ACTION: 1}


def test_a_run_without_loops_brings_neither() -> None:
    found = warnings(FREE)

    assert (found.wasted, set(found.false_alarms.values())) == (0, {0})

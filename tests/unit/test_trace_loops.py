"""Loops, and what only looks like one."""

from cProfile import Profile
from typing import TypeAlias

import pytest

from contextgraph.model import (
    Action,
    Json,
    LoopInfo,
    LoopKind,
    LoopSeverity,
    RawTrajectory,
    State,
    Step,
)
from contextgraph.model.values import replace
from contextgraph.readers.tool_calls import action_for
from contextgraph.trace import LoopTracker, loop_in, loops_of, read_steps, states_of, trace
from contextgraph.trace.loops import STUCK_AFTER
from tests.builders import run
from tests.sessions import Session, traceback, window

# A call: tool, arguments, observation, exit code.
Call: TypeAlias = tuple[str, dict[str, Json], str, int | None]
INDENT = "E999 IndentationError: unexpected indent"


def the_loop(session: Session) -> LoopInfo:
    found = loops_of(session.read())
    assert len(found) == 1
    return found[0]


def test_three_refusals_of_one_edit_are_a_loop() -> None:
    session = Session("core.py")
    for _ in range(3):
        session.refused(8, 9, "    x = 1", why=INDENT)
    found = the_loop(session)
    assert (found.kind, found.start, found.end, found.repetitions) == (
        LoopKind.SAME_EDIT_REJECTED,
        1,
        3,
        3,
    )
    assert found.severity is LoopSeverity.REPEATING


def test_two_refusals_are_not_yet_a_loop() -> None:
    session = Session("core.py").refused(8, 9, "    x = 1", why=INDENT)
    assert loops_of(session.refused(8, 9, "    x = 1", why=INDENT).read()) == ()


def test_one_text_refused_at_several_places_is_a_loop() -> None:
    session = Session("core.py")
    for line in (8, 30, 90, 2):
        session.refused(line, line, "    import pytz", why=INDENT)
    assert the_loop(session).repetitions == 4


def test_a_line_within_a_whole_file_is_another_place() -> None:
    session = Session("core.py")
    for number in range(2):
        session.refused(1, 30, f"import x{number}", why=INDENT)
    assert loops_of(session.refused(14, 14, "    total(1)", why=INDENT).read()) == ()


def test_refusals_with_another_message_each_time_are_not_a_loop() -> None:
    session = Session("core.py")
    for name in ("a", "b", "c", "d"):
        session.refused(8, 9, "x = a + b + c + d", why=f"F821 undefined name '{name}'")
    assert loops_of(session.read()) == ()


def test_views_between_attempts_do_not_break_a_loop() -> None:
    session = Session("core.py")
    for number in range(3):
        session.refused(8, 9, "    x = 1", why=INDENT)
        session.do(f"goto {number}", window("core.py", (f"line {number}",)))
    assert (the_loop(session).start, the_loop(session).end) == (1, 5)


def test_the_same_failure_after_every_fix_is_a_loop() -> None:
    session = Session("core.py")
    for number in range(3):
        session.edited(8, 8, f"x = {number}").failed("python core.py", "KeyError: 'vat'")
    found = the_loop(session)
    assert (found.kind, found.start, found.end) == (LoopKind.SAME_COMMAND_SAME_ERROR, 2, 6)


def test_the_reproduction_before_the_first_fix_is_not_counted() -> None:
    session = Session("core.py").failed("python reproduce.py", "KeyError: 'vat'")
    for number in range(2):
        session.edited(8, 8, f"x = {number}").failed("python reproduce.py", "KeyError: 'vat'")
    assert loops_of(session.read()) == ()


def test_runs_whose_error_changes_are_not_a_loop() -> None:
    session = Session("core.py")
    for name in ("vat", "sum", "net", "tax"):
        session.edited(8, 8, f"x = {name!r}").failed("python core.py", f"KeyError: '{name}'")
    assert loops_of(session.read()) == ()


def test_two_errors_in_turn_are_an_oscillation() -> None:
    session = Session("core.py")
    for number in range(6):
        session.edited(8, 8, f"x = {number % 2}")
        session.failed("python core.py", f"KeyError: '{number % 2}'")
    assert the_loop(session).kind is LoopKind.OSCILLATION


def test_a_return_to_an_earlier_error_is_not_yet_an_oscillation() -> None:
    session = Session("core.py")
    for number, name in enumerate(("a", "b", "a", "a")):
        session.edited(8, 8, f"x = {number}").failed("python core.py", f"KeyError: '{name}'")
    assert loops_of(session.read()) == ()


def test_looking_at_the_same_thing_again_and_again_is_a_loop() -> None:
    session = Session()
    for _ in range(3):
        session.do('search_dir "vat"', 'Found 1 matches for "vat"').do("ls", "core.py")
    assert the_loop(session).kind is LoopKind.REPEAT_NO_ERROR


def test_scrolling_on_is_not_a_loop() -> None:
    session = Session("core.py")
    for number in range(6):
        session.do("scroll_down", window("core.py", (f"page {number}",)))
    assert loops_of(session.read()) == ()


def test_tests_that_pass_after_each_of_several_fixes_are_not_a_loop() -> None:
    session = Session("core.py")
    for number in range(4):
        session.edited(number, number, f"x = {number}").worked("pytest", "3 passed")
    assert loops_of(session.read()) == ()


def test_an_answer_that_stays_the_same_after_every_fix_is_a_loop() -> None:
    session = Session("core.py")
    for number in range(3):
        session.edited(number, number, f"x = {number}").worked("python core.py", "total: 12")
    found = the_loop(session)
    assert (found.kind, found.start, found.end) == (LoopKind.REPEAT_NO_ERROR, 2, 6)


def test_a_script_that_stays_silent_is_a_loop_and_a_directory_left_again_is_none() -> None:
    silent, moving = Session("core.py"), Session("core.py")
    for number in range(3):
        silent.edited(number, number, f"x = {number}").worked("python core.py", "")
        moving.edited(number, number, f"x = {number}").worked("cd /shop", "")
    assert the_loop(silent).repetitions == 3
    assert loops_of(moving.read()) == ()


def test_a_cycle_with_a_refused_and_an_accepted_edit_is_a_loop() -> None:
    session = Session("core.py")
    for _ in range(3):
        session.refused(4, 4, "print(numpy)", why="F821 undefined name 'numpy'")
        session.edited(4, 4, "print(np)").worked("pylint core.py", "rated 10.00/10")
    assert (the_loop(session).end, the_loop(session).repetitions) == (9, 3)


def test_a_file_that_an_edit_names_is_the_one_that_counts() -> None:
    session = Session("core.py")
    for number, file in enumerate(("cart.py", "cart.py", "core.py")):
        usage = "Usage: edit <start_line>:<end_line>"
        session.do(f"edit {file} 5:5\nx = {number}\nend_of_edit", usage)
    assert loops_of(session.read()) == ()


def test_a_loop_starts_at_its_first_attempt_not_at_a_view_before() -> None:
    session = Session()
    for _ in range(4):
        session.open("core.py", "x = 0").open("cart.py", "y = 0")
        session.refused(8, 9, "    x = 1", why=INDENT)
    assert the_loop(session).start == 2


def test_a_loop_that_lasts_is_called_stuck() -> None:
    session = Session("core.py")
    for _ in range(STUCK_AFTER):
        session.refused(8, 9, "    x = 1", why=INDENT)
    assert the_loop(session).severity is LoopSeverity.STUCK


def test_an_accepted_edit_ends_the_series_of_refused_ones() -> None:
    session = Session("core.py")
    for _ in range(2):
        session.refused(8, 9, "    x = 1", why=INDENT).refused(8, 9, "    x = 1", why=INDENT)
        session.edited(8, 9, "x = 1")
    assert loops_of(session.read()) == ()


def called(*calls: Call) -> tuple[LoopInfo, ...]:
    """The loops of *calls*."""
    steps = tuple(
        Step(at, "", action_for(tool, arguments), shown, exit_code=code)
        for at, (tool, arguments, shown, code) in enumerate(calls)
    )
    raw = RawTrajectory("test", "acme__shop-1", "acme/shop", "Fix it", steps)
    return loops_of(read_steps(raw))


def test_edits_of_which_only_the_file_is_known_are_no_loop() -> None:
    edit: Call = ("Edit", {"file_path": "/w/core.go"}, "The file has been updated.", None)
    build: Call = ("Bash", {"command": "go build -o shop"}, "", 0)
    assert called(*[edit] * 6) == ()
    assert called(*[edit, build] * 6) == ()


def test_equal_edits_whose_content_is_known_are_a_loop() -> None:
    arguments: dict[str, Json] = {"file_path": "/w/core.go", "old_string": "a", "new_string": "b"}
    (loop,) = called(*[("Edit", arguments, "The file has been updated.", None)] * 4)
    assert loop.repetitions == 4


def test_words_to_a_person_and_refused_calls_are_no_attempts() -> None:
    replies = [Step(at, "Done.", Action("", ""), None) for at in range(4)]
    run = Action("bash", "make deploy")
    denied = [Step(at, "", run, "The user refused.", denied=True) for at in range(4, 8)]
    raw = RawTrajectory("test", "acme__shop-1", "acme/shop", "Fix", (*replies, *denied))
    assert loops_of(read_steps(raw)) == ()


def test_a_live_check_on_states_says_what_a_later_reading_says() -> None:
    session = Session("core.py")
    for number in range(4):
        session.edited(8, 8, f"x = {number}").failed("python core.py", "KeyError: 'vat'")
    states = list(states_of(session.raw()))
    tracker = LoopTracker()
    afterwards = [tracker.push(step) for step in session.read()]
    live = [loop_in(states[: count + 2]) for count in range(len(session.steps))]
    assert [loop and replace(loop, repo="") for loop in live] == afterwards
    assert live[-1] is not None


@pytest.mark.parametrize("outcome", ["", "failed"])
def test_states_that_have_only_an_error_are_judged_by_it(outcome: str) -> None:
    error = traceback("KeyError: 'vat'")
    state = State(last_action="python core.py", last_outcome=outcome, current_error=error)
    found = loop_in([state] * 3)
    assert found is not None
    assert found.kind is LoopKind.SAME_COMMAND_SAME_ERROR


def test_an_older_error_is_not_attributed_to_a_silent_command() -> None:
    session = Session("core.py").failed("python core.py", "KeyError: 'vat'")
    for number in range(4):
        session.do(f"sed -i 's/{number}/x/' core.py", "")
    assert loop_in(list(states_of(session.raw()))) is None


def test_no_history_is_not_a_loop() -> None:
    assert loop_in([]) is None


@pytest.mark.parametrize("repetitions", [2, 5])
def test_the_number_of_repetitions_can_be_set(repetitions: int) -> None:
    session = Session("core.py")
    for _ in range(repetitions):
        session.refused(8, 9, "    x = 1", why=INDENT)
    tracker = LoopTracker(min_repeat=repetitions)
    verdicts = [tracker.push(step) is not None for step in session.read()]
    assert verdicts == [False] * repetitions + [True]


def test_one_attempt_is_never_a_loop() -> None:
    with pytest.raises(ValueError, match="at least 2, is 1"):
        LoopTracker(min_repeat=1)


def test_the_last_step_of_a_long_run_costs_no_more_than_that_of_a_short_one() -> None:
    calls = []
    for size in (100, 800):
        session = Session("core.py")
        for number in range(size):
            session.failed("python core.py", f"KeyError: 'vat{number % 7}'")
        *states, last = states_of(session.raw())
        tracker = LoopTracker()
        for state in states:
            tracker.push(state)
        profile = Profile()
        profile.runcall(tracker.push, last)
        calls.append(sum(entry.callcount for entry in profile.getstats()))
    assert calls[1] <= 2 * calls[0]


def test_changes_that_are_undone_again_and_again_are_an_oscillation() -> None:
    steps = [
        command
        for number in range(3)
        for command in (
            (f"sed -i '{number}d' core.py", "", 0),
            ("python core.py", f"{number} is wrong", 0),
            ("cd /repo && git checkout core.py", "Updated 1 path from the index", 0),
        )
    ]
    (found,) = trace(run(steps)).loops
    assert (found.kind, found.start, found.end) == (LoopKind.OSCILLATION, 0, 8)


def test_a_third_change_after_two_that_were_undone_is_an_oscillation() -> None:
    script = "cat > fix.py << 'EOF'\nopen('lib/core.py', 'w')\nEOF\npython fix.py"
    undone = ("cp lib/core.py.backup lib/core.py", "", 0)
    steps = [(script, "written", 0), undone, (script, "done", 0), undone]
    assert trace(run(steps)).loops == ()
    (found,) = trace(run([*steps, (script, "fixed", 0)])).loops
    assert (found.kind, found.start, found.end) == (LoopKind.OSCILLATION, 0, 4)


def test_a_file_restored_for_a_comparison_is_not_a_failed_attempt() -> None:
    change = ("sed -i '1d' core.py", "", 0)
    undone = ("git checkout core.py", "Updated 1 path from the index", 0)
    compared = [(f"python check.py {number}", f"total: {number}", 0) for number in range(3)]
    steps = [step for one in compared for step in (change, undone, one)]
    assert trace(run(steps)).loops == ()


def test_a_run_of_the_file_as_it_was_is_not_a_further_attempt() -> None:
    check, change = ("python check.py", "total: 3", 0), ("sed -i '1d' core.py", "", 0)
    undone = ("git checkout core.py", "Updated 1 path from the index", 0)
    before = [check, change, check]
    assert trace(run([*before, change, check, undone, check])).loops == ()
    (found,) = trace(run([*before, change, check, change, check])).loops
    assert found.kind is LoopKind.REPEAT_NO_ERROR


def test_programs_typed_on_the_line_are_known_by_what_they_import() -> None:
    error = traceback("TypeError: 'NoneType' object is not callable")
    typed = [
        (f'cd /repo && python -c "import sys; from shop import total; print({value})"', error, 1)
        for value in ("total()", "total() + 1", "2 * total()")
    ]
    (found,) = trace(run(typed)).loops
    assert (found.kind, found.start, found.end) == (LoopKind.SAME_COMMAND_SAME_ERROR, 0, 2)
    others = [
        (f'python -c "import {name}; {name}()"', error, 1) for name in ("shop", "oven", "till")
    ]
    assert trace(run(others)).loops == ()


def test_a_script_is_the_same_from_whatever_folder_it_is_run() -> None:
    error = traceback("ImportError: the shop depends on flour")
    lines = ("python shop/check.py", "cd shop && python check.py", "python ./shop/check.py")
    (found,) = trace(run([(line, error, 1) for line in lines])).loops
    assert (found.start, found.end) == (0, 2)


def test_a_program_that_still_shows_the_same_after_other_work_is_a_check() -> None:
    change, check = ("sed -i '1d' core.py", "", 0), ("python check.py", "total: 3", 0)
    others = [(f"python other.py {number}", f"{number}", 0) for number in range(3)]
    checks = [step for one in others for step in (check, one)]
    assert trace(run([change, *checks])).loops == ()
    assert trace(run([step for _ in others for step in (change, check)])).loops

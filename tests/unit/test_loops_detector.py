"""Loops of a live run, and what the memory knows to lead out of them."""

import pytest

from contextgraph import AgentMemory
from contextgraph.model import LoopInfo, LoopKind, LoopSeverity, RawTrajectory, State
from contextgraph.trace import loops_of, read_steps, states_of
from tests.builders import NO_MODULE, run
from tests.sessions import Session

UNDEFINED = "F821 undefined name 'tariff'"
BROKEN = "E999 SyntaxError: invalid syntax"


def looping_edit(why: str = BROKEN, times: int = 3) -> Session:
    session = Session("core.py")
    for _ in range(times):
        session.refused(3, 5, "total = rate(", why=why)
    return session


def learned(memory: AgentMemory, session: Session, number: int, repo: str = "acme/shop") -> str:
    instance = f"{repo.replace('/', '__')}-{number}"
    raw = session.raw()
    memory.learn(RawTrajectory("test", instance, repo, raw.task, raw.steps))
    return instance


def live(session: Session) -> list[State]:
    return list(states_of(session.raw()))


@pytest.fixture
def memory() -> AgentMemory:
    return AgentMemory.open(":memory:")


def test_a_run_without_repetition_is_in_no_loop(memory: AgentMemory) -> None:
    assert memory.check_loop(live(looping_edit(times=2))) is None


def test_a_loop_that_the_memory_knows_nothing_of_has_no_suggestions(memory: AgentMemory) -> None:
    loop = memory.check_loop(live(looping_edit()))
    assert loop is not None
    assert (loop.kind, loop.severity) == (LoopKind.SAME_EDIT_REJECTED, LoopSeverity.REPEATING)
    assert loop.escape_suggestions == ()


def test_a_long_loop_is_stuck(memory: AgentMemory) -> None:
    loop = memory.check_loop(live(looping_edit(times=6)))
    assert loop is not None
    assert loop.severity is LoopSeverity.STUCK


def test_what_left_the_same_loop_in_this_repository_is_suggested_with_its_run(
    memory: AgentMemory,
) -> None:
    instance = learned(memory, looping_edit().edited(3, 8, "total = rate("), 7)
    loop = memory.check_loop(live(looping_edit()))
    assert loop is not None
    (suggestion,) = loop.escape_suggestions
    assert suggestion.startswith("sent the same text for other lines (3:8 instead of 3:5)")
    assert suggestion.endswith(f"(left the same loop in {instance})")


def test_a_recovery_without_a_loop_is_said_to_have_cleared_the_error(memory: AgentMemory) -> None:
    learned(memory, looping_edit(times=1).edited(3, 8, "total = rate("), 7)
    (suggestion,) = memory.loop_detector.get_escape_suggestions(live(looping_edit())[-1])
    assert suggestion.endswith("(cleared this error in acme__shop-7)")


def test_what_left_a_loop_comes_before_what_cleared_the_error_at_once(memory: AgentMemory) -> None:
    learned(memory, looping_edit(times=1).edited(3, 3, "total = rate()"), 7)
    learned(memory, looping_edit().edited(3, 8, "total = rate("), 8)
    ways = memory.loop_detector.get_escape_suggestions(live(looping_edit())[-1])
    assert [way.rpartition(" in ")[2] for way in ways] == ["acme__shop-8)", "acme__shop-7)"]


def test_what_many_runs_did_is_said_first_and_in_general(memory: AgentMemory) -> None:
    for number in range(4):
        repo = f"zoo/cage{number}"
        learned(memory, looping_edit(times=1).edited(3, 8, "total = rate("), number, repo)
    learned(memory, looping_edit().edited(3, 3, "total = rate()"), 9, "zoo/den")
    memory.consolidate()
    first, *_ = memory.loop_detector.get_escape_suggestions(live(looping_edit())[-1])
    assert "(4 of 5 runs that got over it" in first
    assert first.endswith("and 2 more)")


def test_runs_of_excluded_instances_suggest_nothing(memory: AgentMemory) -> None:
    instance = learned(memory, looping_edit().edited(3, 8, "total = rate("), 7)
    excluded = frozenset({instance})
    loop = memory.loop_detector.detect(live(looping_edit()), exclude_instances=excluded)
    assert loop is not None
    assert loop.escape_suggestions == ()


def test_what_one_other_repository_did_to_its_own_code_is_not_suggested(
    memory: AgentMemory,
) -> None:
    fixed = Session("zebra.py").refused(1, 1, "stripes = (", why=BROKEN).edited(1, 1, "stripes = 1")
    learned(memory, fixed, 1, "zoo/zebra")
    assert memory.loop_detector.get_escape_suggestions(live(looping_edit())[-1]) == ()


def test_what_two_other_repositories_agree_on_is_said_without_their_code(
    memory: AgentMemory,
) -> None:
    for repo, name in (("zoo/zebra", "stripes"), ("zoo/lion", "mane")):
        why = f"F821 undefined name '{name}'"
        fixed = Session("den.py").refused(1, 1, f"print({name})", why=why)
        learned(memory, fixed.edited(1, 2, f"{name} = 1", f"print({name})"), 1, repo)
    (way,) = memory.loop_detector.get_escape_suggestions(live(looping_edit(UNDEFINED))[-1])
    assert way.startswith(
        "… was undefined: put … into the edit itself (cleared this error in zoo__"
    )


def test_to_repeat_the_same_command_is_no_way_out(memory: AgentMemory) -> None:
    flaky = ("python reproduce.py", NO_MODULE, 1)
    memory.learn(run([flaky, ("python reproduce.py", "total: 12", 0)]))
    stuck = run([flaky] * 3, instance_id="acme__shop-2")
    assert memory.loop_detector.get_escape_suggestions(list(states_of(stuck))[-1]) == ()


def test_how_a_run_went_on_from_the_same_views_of_the_same_file_is_suggested(
    memory: AgentMemory,
) -> None:
    went_on = scrolling().do('search_file "tariff"', "Found 1 matches")
    went_on.do("goto 3", "[File: /shop/core.py (9 lines total)]\n3:tariff = 1")
    learned(memory, went_on, 7)
    loop = memory.check_loop(live(scrolling()))
    assert loop is not None
    assert loop.kind is LoopKind.REPEAT_NO_ERROR
    (way,) = loop.escape_suggestions
    assert "search_file" in way
    assert way.endswith("(left the same loop in acme__shop-7)")


def scrolling(file: str = "core.py") -> Session:
    session = Session(file)
    for _ in range(4):
        session.do("scroll_down", f"[File: /shop/{file} (9 lines total)]\n9:end")
    return session


def test_what_several_repositories_went_on_with_after_such_a_command_is_suggested(
    memory: AgentMemory,
) -> None:
    for number, repo in enumerate(("bolt/bank", "core/kiln", "core/kiln")):
        went_on = scrolling("main.py").do('search_file "tariff"', "Found 1 matches")
        went_on.do("goto 3", "[File: /shop/main.py (9 lines total)]\n3:tariff = 1")
        learned(memory, went_on, number, repo)
        (way, *_) = memory.loop_detector.get_escape_suggestions(live(scrolling())[-1]) or ("",)
        assert way.startswith("go on with `search_file`") is (number == 2)
    assert way.endswith("(left such a loop in bolt__bank-0, core__kiln-1 and 1 more)")
    loop = LoopInfo(LoopKind.REPEAT_NO_ERROR, 0, 3, 4, ("scroll_down",), LoopSeverity.REPEATING)
    assert memory.loop_detector.get_escape_suggestions(loop) == (way,)


def test_what_worked_for_such_tasks_leads_out_of_a_loop_without_an_error(
    memory: AgentMemory,
) -> None:
    for number in range(3):
        learned(memory, Session("rates.py").edited(number, number, f"rate = {number}"), number)
    memory.consolidate()
    (way,) = memory.loop_detector.get_escape_suggestions(live(scrolling())[-1])
    assert way.startswith("look at `rates.py` first")
    assert "worked for such tasks" in way


def test_for_a_loop_without_its_state_only_what_several_repositories_did_is_said(
    memory: AgentMemory,
) -> None:
    (loop,) = loops_of(read_steps(looping_edit().raw()))
    learned(memory, looping_edit().edited(3, 8, "total = rate("), 7)
    assert memory.loop_detector.get_escape_suggestions(loop) == ()
    learned(memory, looping_edit().edited(3, 8, "total = rate("), 1, "zoo/zebra")
    (way,) = memory.loop_detector.get_escape_suggestions(loop)
    assert way.startswith("sent the same text for other lines")


def test_a_loop_without_an_error_in_its_names_has_no_suggestions(memory: AgentMemory) -> None:
    loop = LoopInfo(LoopKind.REPEAT_NO_ERROR, 0, 3, 4, ("scroll_down",), LoopSeverity.REPEATING)
    assert memory.loop_detector.get_escape_suggestions(loop) == ()


def test_a_state_without_anything_has_no_suggestions(memory: AgentMemory) -> None:
    assert memory.loop_detector.get_escape_suggestions(State()) == ()


def test_at_most_three_ways_are_named_and_each_run_once(memory: AgentMemory) -> None:
    for number in range(5):
        learned(memory, looping_edit().edited(3, 3, f"total = rate({number} + tariff)"), number)
    ways = memory.loop_detector.get_escape_suggestions(live(looping_edit())[-1])
    assert 1 <= len(ways) <= 3
    assert len({way.rpartition(" in ")[2] for way in ways}) == len(ways)

"""Loops of a live run, and escape suggestions from the memory."""

import pytest

from contextgraph import AgentMemory
from contextgraph.model import (
    EscapeEvidence,
    LoopKind,
    LoopSeverity,
    RawTrajectory,
    RemedyKind,
    State,
)
from contextgraph.trace import states_of
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


def suggested(
    memory: AgentMemory, state: State, exclude: frozenset[str] = frozenset()
) -> list[str]:
    found = memory.loop_detector.get_escape_suggestions(state, exclude_instances=exclude)
    return [one.text for one in found]


@pytest.fixture
def memory() -> AgentMemory:
    return AgentMemory.open(":memory:")


def test_a_run_without_repetition_is_not_in_a_loop(memory: AgentMemory) -> None:
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


def test_what_left_the_same_loop_is_suggested_with_its_run(
    memory: AgentMemory,
) -> None:
    instance = learned(memory, looping_edit().edited(3, 8, "total = rate("), 7)
    loop = memory.check_loop(live(looping_edit()))
    assert loop is not None
    (suggestion,) = loop.escape_suggestions
    assert suggestion.text == (
        "send the same text for a range that ends later, so that nothing of the old statement is "
        f"left over (left the same loop in {instance})"
    )
    assert suggestion.evidence is EscapeEvidence.LEFT_SAME_LOOP
    assert suggestion.instances == (instance,)
    assert [one.kind for one in suggestion.actions] == [RemedyKind.RESEND]
    assert memory.explain(suggestion.id) is not None


def test_a_recovery_without_a_loop_cleared_the_error(memory: AgentMemory) -> None:
    learned(memory, looping_edit(times=1).edited(3, 8, "total = rate("), 7)
    (suggestion,) = suggested(memory, live(looping_edit())[-1])
    assert suggestion.endswith("(cleared this error in acme__shop-7)")


def test_an_error_is_looked_up_as_that_of_the_action_that_met_it(memory: AgentMemory) -> None:
    refused = "ERROR: shop is not a valid editable requirement. It should be a path"
    session = Session().failed("pip install -e shop", refused)
    learned(memory, session.worked("pip install -e ./shop", "Successfully installed shop"), 7)
    now = Session().failed("pip install -e shop", refused)
    (suggestion,) = suggested(memory, live(now)[-1])
    assert "./shop" in suggestion


def test_what_left_a_loop_comes_before_what_cleared_the_error_at_once(memory: AgentMemory) -> None:
    learned(memory, looping_edit(times=1).edited(3, 3, "total = rate()"), 7)
    learned(memory, looping_edit().edited(3, 8, "total = rate("), 8)
    found = suggested(memory, live(looping_edit())[-1])
    assert [text.rpartition(" in ")[2] for text in found] == ["acme__shop-8)", "acme__shop-7)"]


def test_what_many_runs_did_comes_first_and_in_general_terms(memory: AgentMemory) -> None:
    for number in range(4):
        repo = f"zoo/cage{number}"
        learned(memory, looping_edit(times=1).edited(3, 8, "total = rate("), number, repo)
    learned(memory, looping_edit().edited(3, 3, "total = rate()"), 9, "zoo/den")
    memory.consolidate()
    first, *_ = suggested(memory, live(looping_edit())[-1])
    assert first.startswith("send the same text for a range that ends later")
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
    assert suggested(memory, live(looping_edit())[-1]) == []


def test_what_two_other_repositories_agree_on_is_suggested_without_their_code(
    memory: AgentMemory,
) -> None:
    for repo, name in (("zoo/zebra", "stripes"), ("zoo/lion", "mane")):
        why = f"F821 undefined name '{name}'"
        fixed = Session("den.py").refused(1, 1, f"print({name})", why=why)
        learned(memory, fixed.edited(1, 2, f"{name} = 1", f"print({name})"), 1, repo)
    (text,) = suggested(memory, live(looping_edit(UNDEFINED))[-1])
    assert text.startswith(
        "put the line that sets `tariff` into the same edit as its first use (cleared this error in"
    )


def test_repeating_the_same_command_is_not_suggested(memory: AgentMemory) -> None:
    flaky = ("python reproduce.py", NO_MODULE, 1)
    memory.learn(run([flaky, ("python reproduce.py", "total: 12", 0)]))
    stuck = run([flaky] * 3, instance_id="acme__shop-2")
    assert suggested(memory, list(states_of(stuck))[-1]) == []


def test_how_a_run_continued_from_the_same_views_of_a_file_is_suggested(
    memory: AgentMemory,
) -> None:
    went_on = scrolling().do('search_file "tariff"', "Found 1 matches")
    went_on.do("goto 3", "[File: /shop/core.py (9 lines total)]\n3:tariff = 1")
    learned(memory, went_on, 7)
    loop = memory.check_loop(live(scrolling()))
    assert loop is not None
    assert loop.kind is LoopKind.REPEAT_NO_ERROR
    (text,) = loop.escape_suggestions
    assert "search_file" in text.text
    assert text.text.endswith("(left the same loop in acme__shop-7)")


def scrolling(file: str = "core.py") -> Session:
    session = Session(file)
    for _ in range(4):
        session.do("scroll_down", f"[File: /shop/{file} (9 lines total)]\n9:end")
    return session


def test_what_several_repositories_continued_with_after_a_command_is_suggested(
    memory: AgentMemory,
) -> None:
    for number, repo in enumerate(("bolt/bank", "core/kiln", "core/kiln")):
        went_on = scrolling("main.py").do('search_file "tariff"', "Found 1 matches")
        went_on.do("goto 3", "[File: /shop/main.py (9 lines total)]\n3:tariff = 1")
        learned(memory, went_on, number, repo)
        (text, *_) = suggested(memory, live(scrolling())[-1]) or [""]
        assert text.startswith("go on with `search_file`") is (number == 2)
    assert text.endswith("(left such a loop in core__kiln-2, core__kiln-1 and 1 more)")


def test_a_state_without_anything_has_no_suggestions(memory: AgentMemory) -> None:
    assert suggested(memory, State()) == []


def test_at_most_three_suggestions_and_each_run_once(memory: AgentMemory) -> None:
    for number in range(5):
        learned(memory, looping_edit().edited(3, 3, f"total = rate({number} + tariff)"), number)
    found = suggested(memory, live(looping_edit())[-1])
    assert 1 <= len(found) <= 3
    assert len({text.rpartition(" in ")[2] for text in found}) == len(found)

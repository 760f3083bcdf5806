"""The steps that advice would have saved a recorded run."""

from contextgraph import AgentMemory
from contextgraph.evaluation.evaluation import evaluate
from contextgraph.evaluation.measures import OURS, MomentKind
from contextgraph.evaluation.saving import Said, judged_texts, saved_measures
from contextgraph.model import (
    Outcome,
    RawTrajectory,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    ShownItem,
)
from contextgraph.model.values import replace
from contextgraph.text import fence
from contextgraph.trace import trace
from tests.builders import run

FAILED = ("python -c 'print(12)'", "bash: python: command not found", 127)
WORKED = ("python3 -c 'print(12)'", "12", 0)
LOOKED = [("ls lib", "tariffs.py", 0), ("cat setup.py", "setup()", 0)]
USE_PYTHON3 = ShownItem("item", patterns=(RemedyPattern(RemedyKind.USE, "python3", "python"),))


def attempt(*between: tuple[str, str, int], number: int = 9) -> RawTrajectory:
    """A run without `python` that does other things before it takes `python3`."""
    return run([FAILED, *between, WORKED], instance_id=f"acme__shop-{number}")


def judged(raw: RawTrajectory, kind: MomentKind, step: int, text: str, name: str = "ctx_1") -> Said:
    """*text* at *step* of *raw*, with its worth; the context "ctx_1" named `python3`."""
    said = Said(kind, step, fence(text, name), tokens=50)
    [worth] = judged_texts(trace(raw), [said], {"ctx_1": [USE_PYTHON3]})
    return worth


def test_what_the_agent_does_unaided_in_its_next_step_saves_nothing() -> None:
    said = judged(attempt(), MomentKind.ERROR, 0, "use `python3`")

    assert (said.saved, said.wrong, said.net) == (frozenset(), 0, -0.1)


def test_the_steps_between_an_error_and_the_clearance_that_was_named_are_saved() -> None:
    said = judged(attempt(*LOOKED), MomentKind.ERROR, 0, "use `python3`")

    assert (set(said.saved), said.net) == ({1, 2}, 1.9)


def test_the_steps_that_the_remedy_itself_takes_are_not_saved() -> None:
    missing = ("python3 shop.py", "ModuleNotFoundError: No module named 'attrs'", 1)
    installed = ("pip install attrs", "Successfully installed attrs-25.1.0", 0)
    worked = ("python3 shop.py", "12", 0)
    item = RemedyPattern(RemedyKind.INSTALL, "<the missing module>")
    said = Said(MomentKind.ERROR, 0, fence("install `attrs`", "ctx_2"), tokens=50)

    def saved(*between: tuple[str, str, int]) -> frozenset[int]:
        read = trace(run([missing, *between, installed, worked]))
        [worth] = judged_texts(read, [said], {"ctx_2": [ShownItem("item", patterns=(item,))]})
        return worth.saved

    assert saved() == frozenset()
    assert saved(*LOOKED) == {1, 2}


def test_a_text_that_does_not_name_the_folder_saves_nothing() -> None:
    """Whoever reads "in the root of the repository" has still to find out where that is."""
    failed = ("cd lib && make", "make: *** No rule to make target. Stop.", 2)
    raw = run([failed, *LOOKED, ("cd /srv/shop && make", "built", 0)])
    read = trace(raw)
    assert [action.kind for action in read.recoveries[0].actions] == [RemedyKind.CWD]
    item = ShownItem("item", patterns=(read.recoveries[0].actions[0].pattern,))

    def saved(text: str) -> frozenset[int]:
        said = Said(MomentKind.START, -1, fence(text, "ctx_2"), tokens=50)
        [worth] = judged_texts(read, [said], {"ctx_2": [item]})
        return worth.saved

    assert saved("run it in the root of the repository") == frozenset()
    assert saved("run it in `/srv/shop-2`") == frozenset()
    assert saved("run it in `/srv/shop`") == {0, 1, 2}


def test_a_package_is_named_where_all_that_was_installed_is() -> None:
    missing = ("python3 shop.py", "ModuleNotFoundError: No module named 'attrs'", 1)
    installed = ("pip install attrs tariffs", "Successfully installed attrs-25 tariffs-1", 0)
    read = trace(run([missing, installed, ("python3 shop.py", "12", 0)]))

    def saved(text: str) -> frozenset[int]:
        said = Said(MomentKind.START, -1, fence(text, "ctx_2"), tokens=50)
        return next(judged_texts(read, [said], {})).saved

    assert saved("was missing: `pip install attrs`") == frozenset()
    assert saved("was missing: `pip install tariffs pytest attrs`") == {0, 1}


def test_a_start_saves_the_failing_step_as_well() -> None:
    said = judged(attempt(*LOOKED), MomentKind.START, -1, "use `python3`")

    assert said.saved == {0, 1, 2}


def test_an_item_that_the_run_contradicts_costs_a_step() -> None:
    installed = ("apt-get install -y python-is-python3", "Setting up python-is-python3", 0)
    raw = run([FAILED, installed, (FAILED[0], "12", 0)])

    said = judged(raw, MomentKind.ERROR, 0, "use `python3`")

    assert (said.saved, said.wrong) == (frozenset(), 1)


def test_a_start_saves_test_commands_of_which_it_says_that_they_do_not_run() -> None:
    missing = "ModuleNotFoundError: No module named 'settings'"
    raw = run(
        [
            ("python -m django test cart", missing, 1),
            ("python -m django test --settings=shop cart", missing, 1),
            ("python -m pytest cart", "1 passed in 0.1s", 0),
        ]
    )

    said = judged(
        raw,
        MomentKind.START,
        -1,
        "does not run: `python -m django test <tests>` (0 of 9), "
        "`python -m pytest <tests>` (1 of 9)",
    )

    assert (said.saved, said.wrong) == (frozenset({0, 1}), 1)
    said = judged(
        raw, MomentKind.START, -1, "tests run with `python -m django test <tests>` (4 of 5)"
    )
    assert (said.saved, said.wrong) == (frozenset(), 1)


def test_a_remedy_without_a_target_is_said_by_no_text() -> None:
    nothing = RemedyPattern(RemedyKind.SEARCH, "<folder>")
    read = trace(attempt(*LOOKED))
    ends = [
        replace(one, actions=(RemedyAction(RemedyKind.SEARCH, "", nothing),))
        for one in read.recoveries
    ]
    said = Said(MomentKind.ERROR, 0, fence("look around", "ctx_1"), tokens=50)
    item = ShownItem("item", patterns=(nothing,))
    [worth] = judged_texts(replace(read, recoveries=tuple(ends)), [said], {"ctx_1": [item]})

    assert worth.saved == frozenset()


def test_a_warning_before_a_command_that_ran_is_wrong() -> None:
    warning = "`python` did not run", "before_1"
    assert judged(attempt(), MomentKind.BEFORE, 0, *warning).saved == {0}
    assert judged(attempt(), MomentKind.BEFORE, 1, *warning).wrong == 1
    assert judged(attempt(), MomentKind.BEFORE, 1, 'decided: "keep it"').wrong == 0


def test_a_warning_before_submitting_what_was_right_is_wrong() -> None:
    solved = run([WORKED], outcome=Outcome.SOLVED)

    assert judged(solved, MomentKind.SUBMIT, 1, "nothing was run").wrong == 1
    assert judged(attempt(), MomentKind.SUBMIT, 2, "nothing was run").wrong == 0


def test_an_alarm_saves_what_is_left_of_the_loop() -> None:
    """Up to ten steps: readers saw no more of it."""
    long, over = (run([FAILED] * number + [WORKED]) for number in (30, 6))

    assert judged(long, MomentKind.LOOP, 5, "Loop: stop").saved == {*range(6, 16)}
    assert judged(over, MomentKind.LOOP, 5, "Loop: stop").wrong == 1


def test_the_ceiling_of_all_moments_counts_loops_too() -> None:
    """A step once, whether a loop or an error that other instances cleared took it."""
    learned = [attempt(number=number) for number in range(1, 5)]
    looped = run([FAILED, *LOOKED, WORKED, *[FAILED] * 6], instance_id="acme__shop-9")

    [replay] = evaluate(AgentMemory.open(":memory:"), learned, [looped]).replays

    ceiling = replay.ceiling
    assert (ceiling[MomentKind.START], ceiling[MomentKind.LOOP]) == (3, 4)
    assert ceiling["all"] == 7


def test_a_step_is_saved_once() -> None:
    said = [
        Said(MomentKind.BEFORE, 0, "`python3 -c <code>` did", 50),
        Said(MomentKind.ERROR, 0, fence("use `python3`", "ctx_1"), 50),
    ]

    [first] = judged_texts(trace(attempt(*LOOKED)), said, {"ctx_1": [USE_PYTHON3]})

    assert (first.kind, set(first.saved)) == (MomentKind.BEFORE, {0, 1, 2})


def test_runs_are_replayed_by_evaluate_and_stand_beside_the_ceiling() -> None:
    learned = [attempt(*LOOKED, number=number) for number in range(1, 5)]

    evaluation = evaluate(AgentMemory.open(":memory:"), learned, [attempt(*LOOKED)])

    [replay] = evaluation.replays
    assert replay.said
    assert (replay.steps, replay.ceiling[MomentKind.START]) == (4, 3)
    measures = saved_measures(evaluation.replays, seed=0)
    saved = measures["steps saved"]
    assert saved["all"]["ceiling"].value == saved["before"]["ceiling"].value == 3
    assert saved["all"][OURS].value == replay.net() > 0
    assert saved["submit"].keys() == {OURS}
    assert measures["tokens a run"]["all"][OURS].value > 0

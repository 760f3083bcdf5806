"""The gate that is fitted on the runs of a memory."""

import random
from collections.abc import Mapping

import pytest
from hypothesis import given, strategies as st

from benchmarks.corpus import START
from contextgraph import AgentMemory
from contextgraph.advising.gate import probability, stored_gate
from contextgraph.learning import bundle_of
from contextgraph.learning.gate_fitting import (
    LEAST_ERRORS,
    LEAST_LOOPS,
    LEAST_RUNS,
    JudgedRemedy,
    fitted_gate,
    gate_due,
    judged_remedies,
    model_of,
)
from contextgraph.model import Count, FittedModel, Likeness, MemoryGate
from contextgraph.model.values import replace
from contextgraph.trace import trace
from tests.builders import recovering_run, run
from tests.unit.test_consolidation import learn_all, missing_module

SURE = tuple(Count(likeness, 9, 9, 0.9) for likeness in Likeness)


def errors(number, share):
    """Errors at which *share* of the remedies on which all agree were right, each an instance."""
    chance = random.Random(0)
    return [[JudgedRemedy(str(one), SURE, True, chance.random() < share)] for one in range(number)]


@pytest.mark.parametrize("number", [LEAST_ERRORS, 3 * LEAST_ERRORS])
def test_what_was_rarely_right_in_a_memory_becomes_less_probable(number):
    model = model_of(errors(number, 0.1))
    assert probability(SURE, model) < probability(SURE) - 0.2


def test_the_more_errors_the_less_the_shipped_gate_counts():
    few, many = (probability(SURE, model_of(errors(number, 0.1))) for number in (100, 1_000))
    assert many < few


@given(st.integers(0, 2**32 - 1))
def test_a_fitted_probability_rises_with_the_one_before_calibration(seed):
    chance = random.Random(seed)
    judged = [
        [
            JudgedRemedy(
                str(one % 20),
                tuple(Count(likeness, 1, 2, chance.random()) for likeness in Likeness),
                True,
                right,
            )
        ]
        for one in range(60)
        for right in [chance.random() < 0.4]
    ]
    model = model_of(judged)
    at, shares = zip(*model.calibration, strict=True)
    assert list(at) == sorted({0.0, *at, 1.0})
    assert list(shares) == sorted(shares)
    assert 0.0 <= shares[0] <= shares[-1] <= 1.0


@pytest.mark.parametrize(("steps", "after"), [(9, {"agent": 3}), (3, {})])
def test_agents_whose_loops_last_are_warned_early(steps: int, after: Mapping[str, int]) -> None:
    failing = ("python shop.py", "ModuleNotFoundError: No module named 'attrs'", 1)
    runs = [
        run([failing] * steps, instance_id=f"acme__shop-{number}", agent="agent")
        for number in range(LEAST_LOOPS)
    ]
    with AgentMemory.open(":memory:") as memory:
        learn_all(memory, *runs)
        gate = fitted_gate(memory.store, lambda: None)
        assert gate.alarms == after
        memory.store.admin.mark_consolidated(0, gate)
        with memory.live(repo="acme/shop", task="Add tariffs", agent="agent") as live:
            said = [live.observe(*failing[:2], exit_code=1) or "" for _ in range(4)]
        assert ["Loop" in text for text in said] == [False, False, bool(after), False]


def test_each_error_is_judged_by_other_parts_of_the_instances():
    runs = [missing_module(number, "tariffs") for number in range(12)]
    with AgentMemory.open(":memory:") as memory:
        memory.learn(runs[0])
        assert [list(one) for one in judged_remedies(memory.store, trace(runs[0]))] == [[]]
        learn_all(memory, *runs[1:])
        (judged,) = judged_remedies(memory.store, trace(runs[0]))
    assert [one.is_right for one in judged] == [True]
    (template,) = [one for one in judged[0].counts if one.likeness is Likeness.TEMPLATE]
    assert template.did == template.cleared
    assert 1 < template.did < len(runs) - 1  # not all others: those of its part are hidden, too
    assert template.share == pytest.approx(template.did / (template.did + 1))


def test_a_gate_is_fitted_with_enough_runs_and_again_when_they_have_doubled():
    runs = [missing_module(number, f"module{number % 7}") for number in range(2 * LEAST_RUNS + 32)]
    with AgentMemory.open(":memory:") as memory:
        learn_all(memory, *runs[: LEAST_RUNS - 1])
        assert memory.store.exposures.gate() is None
        learn_all(memory, *runs[LEAST_RUNS - 1 : LEAST_RUNS + 16])
        tried = memory.store.exposures.gate()
        assert tried == MemoryGate(runs=LEAST_RUNS + 16)
        assert not gate_due(memory.store)
        learn_all(memory, *runs[LEAST_RUNS + 16 :])
        fitted = memory.store.exposures.gate()
        assert fitted is not None
        assert fitted.errors >= LEAST_ERRORS
        assert fitted.runs == len(runs)
        assert memory.get_stats().gate == fitted
        assert stored_gate(memory.store) == fitted
        # Of other features it is not used, and replaced.
        memory.store.admin.mark_consolidated(0, MemoryGate(FittedModel(0.0, {"other": 1.0})))
        assert stored_gate(memory.store) == MemoryGate()
        assert gate_due(memory.store)
        # The same runs give the same gate.
        assert fitted_gate(memory.store, lambda: None) == fitted


def test_a_memory_in_which_nothing_can_be_advised_keeps_the_shipped_gate() -> None:
    # What cleared their errors was pruned: only the runs themselves show it.
    raws = [recovering_run(number) for number in range(LEAST_ERRORS + 1)]
    alone = [replace(bundle_of(raw, START), errors=(), caused=(), recovered=()) for raw in raws]
    with AgentMemory.open(":memory:") as memory:
        memory.store.runs.add(alone)
        assert fitted_gate(memory.store, lambda: None) == MemoryGate(runs=len(raws))

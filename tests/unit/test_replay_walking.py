"""Recorded runs walked as if live."""

from contextgraph import AgentMemory
from contextgraph.model import LearnReceipt, LearnStatus, RawTrajectory
from contextgraph.replay import MomentKind, RunOrder, Spoken, Walk
from tests.builders import NO_MODULE, recovering_run, run


def spoken(walk: Walk) -> list[Spoken]:
    return [told for told in walk if isinstance(told, Spoken)]


def walk(memory: AgentMemory, *runs: RawTrajectory) -> Walk:
    return memory.replay(runs)


def stuck_run(number: int) -> RawTrajectory:
    return run([("python reproduce.py", NO_MODULE, 1)] * 8, instance_id=f"acme__shop-{number}")


def test_the_memory_is_asked_at_the_start_and_at_each_error() -> None:
    told = spoken(walk(AgentMemory.open(":memory:"), recovering_run(1)))

    assert [(one.kind, one.step) for one in told] == [
        (MomentKind.START, 0),
        (MomentKind.ERROR, 2),
    ]


def test_each_run_is_learned_after_it_and_helps_the_next() -> None:
    runs = recovering_run(2), recovering_run(1)

    told = list(walk(AgentMemory.open(":memory:"), *runs))

    order = [one.raw.instance_id if isinstance(one, Spoken) else one.status for one in told]
    assert order == ["acme__shop-1"] * 2 + ["created"] + ["acme__shop-2"] * 2 + ["created"]
    errors = [one for one in told if isinstance(one, Spoken) and one.kind is MomentKind.ERROR]
    assert [one.answered for one in errors] == [False, True]


def test_walking_again_learns_nothing_new_and_hides_the_run_itself() -> None:
    memory = AgentMemory.open(":memory:")
    list(walk(memory, recovering_run(1)))

    told = list(walk(memory, recovering_run(1)))

    assert not any(one.answered for one in told if isinstance(one, Spoken))
    assert [one.status for one in told if isinstance(one, LearnReceipt)] == [LearnStatus.UNCHANGED]


def test_a_loop_is_warned_of_once_and_again_when_it_gets_worse() -> None:
    told = spoken(walk(AgentMemory.open(":memory:"), stuck_run(1)))

    warnings = [(one.step, one.loop.severity) for one in told if one.loop]
    assert warnings == [(3, "repeating"), (6, "stuck")]


def test_ways_out_of_a_loop_come_from_other_runs() -> None:
    memory = AgentMemory.open(":memory:")
    memory.learn(recovering_run(1))

    told = spoken(walk(memory, stuck_run(2)))

    assert all(one.escapes for one in told if one.loop)


def test_the_tally_counts_what_was_walked() -> None:
    walked = walk(AgentMemory.open(":memory:"), recovering_run(1), recovering_run(2), stuck_run(3))

    list(walked)

    tally = walked.tally
    assert (tally.runs, tally.order) == (3, RunOrder.INSTANCE_NUMBER)
    assert tally.moments == {MomentKind.START: 3, MomentKind.ERROR: 10, MomentKind.LOOP: 2}
    assert tally.answered[MomentKind.LOOP] == 2
    assert tally.learned == {LearnStatus.CREATED: 3}

"""Recorded runs replayed as if live."""

from contextgraph import AgentMemory
from contextgraph.evaluation.measures import MomentKind, OrderSource, Replay, ReplayMoment
from contextgraph.model import LearnReceipt, LearnStatus, RawTrajectory
from tests.builders import NO_MODULE, recovering_run, run


def moments(*runs: RawTrajectory, memory: AgentMemory | None = None) -> list[ReplayMoment]:
    replay = Replay(memory or AgentMemory.open(":memory:"), runs)
    return [one for one in replay if isinstance(one, ReplayMoment)]


def stuck_run(number: int) -> RawTrajectory:
    return run([("python reproduce.py", NO_MODULE, 1)] * 8, instance_id=f"acme__shop-{number}")


def test_the_memory_is_asked_at_the_start_and_at_each_error() -> None:
    found = moments(recovering_run(1))

    assert [(one.kind, one.step) for one in found] == [
        (MomentKind.START, 0),
        (MomentKind.ERROR, 2),
    ]


def test_each_run_is_learned_after_it_and_helps_the_next() -> None:
    replay = list(Replay(AgentMemory.open(":memory:"), [recovering_run(2), recovering_run(1)]))

    order = [one.raw.instance_id if isinstance(one, ReplayMoment) else one.status for one in replay]
    assert order == ["acme__shop-1"] * 2 + ["created"] + ["acme__shop-2"] * 2 + ["created"]
    found = [one for one in replay if isinstance(one, ReplayMoment)]
    assert [one.answered for one in found if one.kind is MomentKind.ERROR] == [False, True]


def test_a_known_run_is_replayed_without_what_was_learned_from_it() -> None:
    memory = AgentMemory.open(":memory:")
    list(Replay(memory, [recovering_run(1)]))

    again = list(Replay(memory, [recovering_run(1)]))

    assert not any(one.answered for one in again if isinstance(one, ReplayMoment))
    assert [one.status for one in again if isinstance(one, LearnReceipt)] == [LearnStatus.UNCHANGED]


def test_a_loop_is_warned_of_once_and_again_when_it_gets_worse() -> None:
    warnings = [(one.step, one.loop.severity) for one in moments(stuck_run(1)) if one.loop]

    assert warnings == [(3, "repeating"), (6, "stuck")]


def test_escape_suggestions_come_from_other_runs() -> None:
    memory = AgentMemory.open(":memory:")
    memory.learn(recovering_run(1))

    assert all(one.escapes for one in moments(stuck_run(2), memory=memory) if one.loop)


def test_the_counts_cover_what_was_replayed() -> None:
    replay = Replay(
        AgentMemory.open(":memory:"), [recovering_run(1), recovering_run(2), stuck_run(3)]
    )

    list(replay)

    counts = replay.counts
    assert (counts.runs, counts.order) == (3, OrderSource.INSTANCE_NUMBER)
    assert counts.moments == {MomentKind.START: 3, MomentKind.ERROR: 10, MomentKind.LOOP: 2}
    assert counts.answered[MomentKind.LOOP] == 2
    assert counts.learned == {LearnStatus.CREATED: 3}

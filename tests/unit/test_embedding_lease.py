"""Working on a memory alone."""

from datetime import UTC, datetime, timedelta

import pytest

from contextgraph import AgentMemory
from contextgraph.embedding.lease import LEASE, alone

NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Clock:
    """Time that passes only while someone sleeps."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("contextgraph.embedding.lease.time.sleep", clock.sleep)
    return clock


def test_who_works_alone_keeps_others_out_until_done(clock: Clock) -> None:
    told: list[datetime] = []
    with AgentMemory.open(":memory:") as memory:
        with alone(memory.store, clock, told.append):
            taken = memory.store.take_lease("another", clock(), clock() + LEASE)
            assert taken == NOW + LEASE
        assert memory.store.take_lease("another", clock(), clock() + LEASE) is None
    assert told == []


def test_the_lease_of_a_process_that_was_killed_is_waited_for_and_that_is_told(
    clock: Clock,
) -> None:
    told: list[datetime] = []
    with AgentMemory.open(":memory:") as memory:
        memory.store.take_lease("killed", clock(), clock() + LEASE)
        with alone(memory.store, clock, told.append):
            assert clock() >= NOW + LEASE
    assert told == [NOW + LEASE]

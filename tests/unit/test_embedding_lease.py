"""Only one process at a time consolidates or re-embeds a memory."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.errors import LeaseLostError
from contextgraph.inference.spaces import LEASE, Lease, exclusive, renewing
from contextgraph.store.memory_store import Store
from contextgraph.system.processes import Process, has_ended, this_process

NOW = datetime(2026, 5, 1, tzinfo=UTC)


class Clock:
    """Time that passes only when it is set forward."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("contextgraph.inference.spaces.time.sleep", clock.sleep)
    return clock


@pytest.fixture
def store() -> Iterator[Store]:
    with AgentMemory.open(":memory:") as memory:
        yield memory.store


def test_others_cannot_take_the_lease_until_it_is_released(store: Store, clock: Clock) -> None:
    waited: list[datetime] = []
    with exclusive(store, clock, waited.append):
        assert Lease(store, clock).acquire() == NOW + LEASE
    assert Lease(store, clock).acquire() is None
    assert waited == []


TAKE = """
import sys
from datetime import UTC, datetime, timedelta
from contextgraph import AgentMemory
from contextgraph.inference.spaces import Lease
with AgentMemory.open(sys.argv[1]) as memory:
    Lease(memory.store, lambda: datetime(2026, 5, 1, tzinfo=UTC)).acquire()
    print("taken", flush=True)
    sys.stdin.readline()
"""


def test_the_lease_of_a_process_that_was_killed_here_is_free_at_once(
    clock: Clock, tmp_path: Path
) -> None:
    path = str(tmp_path / "memory.db")
    other = subprocess.Popen(
        [sys.executable, "-c", TAKE, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdout is not None
    other.stdout.readline()
    with AgentMemory.open(path) as memory:
        assert Lease(memory.store, clock).acquire() == NOW + LEASE
        other.kill()
        other.communicate()
        assert Lease(memory.store, clock).acquire() is None


@pytest.mark.parametrize("process", [Process("", 12, ""), Process("elsewhere", 12, "3456")])
def test_a_process_that_cannot_be_seen_from_here_has_not_ended(process: Process) -> None:
    assert not has_ended(process)
    assert not has_ended(this_process())


def test_the_lease_of_an_object_that_is_gone_is_waited_for(store: Store, clock: Clock) -> None:
    waited: list[datetime] = []
    Lease(store, clock).acquire()
    with exclusive(store, clock, waited.append):
        assert clock() >= NOW + LEASE
    assert waited == [NOW + LEASE]


@pytest.mark.parametrize("later", [timedelta(minutes=1), LEASE], ids=["taken", "expired"])
def test_a_lost_lease_is_noticed_and_stays_lost(
    store: Store, clock: Clock, later: timedelta
) -> None:
    lease, other = Lease(store, clock), Lease(store, lambda: NOW + LEASE)
    lease.acquire()
    lease.check()
    assert other.acquire() is None
    clock.now += later
    with pytest.raises(LeaseLostError):
        lease.check()
    other.release()
    with pytest.raises(LeaseLostError):
        lease.check()


def test_a_lease_is_renewed_while_it_is_held(store: Store, clock: Clock) -> None:
    renewed = threading.Event()

    class Watched(Lease):
        def check(self) -> None:
            super().check()
            renewed.set()

    lease = Watched(store, clock)
    lease.acquire()
    clock.now += timedelta(minutes=4)
    with renewing(lease, every=0.01):
        assert renewed.wait(60)
        clock.now = NOW + LEASE
        assert Lease(store, clock).acquire() is not None

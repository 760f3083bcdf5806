"""What a budget, a pace, a ledger and the cache of vectors do by themselves."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextgraph.embedding import VectorCache
from contextgraph.errors import RemoteError
from contextgraph.model import Usage
from contextgraph.remote import Budget, Endpoint, Ledger
from contextgraph.remote.patience import Pace
from contextgraph.vectors import Vector

SPACE = "made/one@2"


class Clock:
    """Time that passes only while someone sleeps."""

    def __init__(self) -> None:
        self.now = 100.0
        self.slept: list[float] = []

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds


def test_a_budget_counts_what_is_under_way_by_its_estimate() -> None:
    budget = Budget(1.0)
    with budget.spending(0.6), pytest.raises(RemoteError, match="raise --max-cost"):
        budget.spending(0.6).__enter__()


def test_a_budget_counts_what_is_done_by_what_it_took() -> None:
    budget = Budget(1.0)
    for _ in range(7):
        with budget.spending(0.25) as tell:
            tell(Usage(1, 10, 0.125))
    with pytest.raises(RemoteError, match=r"\$0.8750 spent"):
        budget.spending(0.25).__enter__()


def test_a_call_that_failed_costs_nothing() -> None:
    budget = Budget(1.0)
    for _ in range(5):
        with pytest.raises(ValueError, match="no"), budget.spending(0.9):
            raise ValueError("no")


def test_a_budget_is_never_passed_whoever_spends() -> None:
    budget, granted = Budget(1.0), []

    def spend() -> None:
        for _ in range(50):
            try:
                with budget.spending(0.01) as tell:
                    tell(Usage(1, 1, 0.01))
                    granted.append(0.01)
            except RemoteError:
                return

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.98 <= sum(granted) <= 1.0 + 1e-9


def test_a_pace_waits_as_told_then_goes_slower_and_recovers() -> None:
    clock = Clock()
    pace = Pace(clock, clock.sleep)
    pace.wait()
    assert clock.slept == []
    pace.slow_down(3.0)
    pace.wait()
    assert clock.now == pytest.approx(103.0)
    pace.wait()
    assert clock.now == pytest.approx(103.05)
    for _ in range(10):
        pace.speed_up()
    pace.wait()
    before = clock.now
    pace.wait()
    assert clock.now == before


def test_a_ledger_adds_up_over_days_and_by_model(tmp_path: Path) -> None:
    path = tmp_path / "new" / "spent.db"
    for day in (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)):
        ledger = Ledger(path, "a.db", iter([day]).__next__)
        ledger.add("openai/x@2", Usage(1, 10, 0.5, 1))
    Ledger(path, "b.db").add("openai/x@2", Usage(1, 10, 0.5))
    assert Ledger(path, "a.db").totals() == {"openai/x@2": Usage(2, 20, 1.0, 2)}


def test_a_ledger_that_cannot_be_written_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    ledger = Ledger(tmp_path / "file" / "spent.db", "a.db")
    ledger.add("openai/x@2", Usage(1, 10, 0.5))
    assert "cannot be noted" in caplog.text


def test_a_cache_lets_go_of_what_came_first(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.db", most=20)
    texts = [f"text {number}" for number in range(50)]
    for text in texts:
        cache.put(SPACE, {text: Vector.of(SPACE, [1, 2])})
    kept = cache.get(SPACE, texts)
    assert 18 <= len(kept) <= 20
    assert set(kept) == set(texts[-len(kept) :])
    assert cache.get("made/two@2", texts) == {}


def test_an_endpoint_shows_neither_its_key_nor_what_is_in_its_address() -> None:
    endpoint = Endpoint("https://user:geheim@host:8080/v1?token=geheim", "geheim")
    assert repr(endpoint) == "Endpoint(https://host:8080/v1)"

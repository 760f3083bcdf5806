"""Budgets, the usage log and the cache of vectors."""

import threading
from datetime import UTC, datetime
from pathlib import Path

import pytest

from contextgraph.errors import RemoteError
from contextgraph.inference.api import VectorCache
from contextgraph.model import Usage, Vector
from contextgraph.system.remote import Budget, Endpoint, UsageLog

SPACE = "made/one@2"


def test_a_budget_counts_pending_calls_by_their_estimate() -> None:
    budget = Budget(1.0)
    with budget.reserve(0.6), pytest.raises(RemoteError, match="raise --max-cost"):
        budget.reserve(0.6).__enter__()


def test_a_budget_counts_finished_calls_by_their_cost() -> None:
    budget = Budget(1.0)
    for _ in range(7):
        with budget.reserve(0.25) as settle:
            settle(Usage(1, 10, 0.125))
    with pytest.raises(RemoteError, match=r"\$0.8750 spent"):
        budget.reserve(0.25).__enter__()


def test_a_call_that_failed_costs_nothing() -> None:
    budget = Budget(1.0)
    for _ in range(5):
        with pytest.raises(ValueError, match="no"), budget.reserve(0.9):
            raise ValueError("no")


def test_threads_together_never_exceed_a_budget() -> None:
    budget, granted = Budget(1.0), []

    def spend() -> None:
        for _ in range(50):
            try:
                with budget.reserve(0.01) as settle:
                    settle(Usage(1, 1, 0.01))
                    granted.append(0.01)
            except RemoteError:
                return

    threads = [threading.Thread(target=spend) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert 0.98 <= sum(granted) <= 1.0 + 1e-9


def test_the_usage_log_adds_up_over_days_by_model(tmp_path: Path) -> None:
    path = tmp_path / "new" / "spent.db"
    for day in (datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)):
        usage_log = UsageLog(path, "a.db", iter([day]).__next__)
        usage_log.add("openai/x@2", Usage(1, 10, 0.5, 1))
    UsageLog(path, "b.db").add("openai/x@2", Usage(1, 10, 0.5))
    assert UsageLog(path, "a.db").totals() == {"openai/x@2": Usage(2, 20, 1.0, 2)}


def test_a_usage_log_that_cannot_be_written_is_only_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    usage_log = UsageLog(tmp_path / "file" / "spent.db", "a.db")
    usage_log.add("openai/x@2", Usage(1, 10, 0.5))
    assert "spent.db cannot be used" in caplog.text


def test_a_cache_drops_the_oldest_vectors(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "vectors.db", max_vectors=20)
    texts = [f"text {number}" for number in range(50)]
    for text in texts:
        cache.put(SPACE, {text: Vector.of(SPACE, [1, 2])})
    cached = cache.get(SPACE, texts)
    assert 18 <= len(cached) <= 20
    assert set(cached) == set(texts[-len(cached) :])
    assert cache.get("made/two@2", texts) == {}


def test_an_endpoint_is_printed_without_its_credentials() -> None:
    key = "confidential"
    endpoint = Endpoint(f"https://user:{key}@host:8080/v1?token={key}", key)
    assert repr(endpoint) == "Endpoint(https://host:8080/v1)"

"""Counts of words: the same whether counted one by one or all at once, before and after changes."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgraph.model import Scope
from contextgraph.store import NetworkxStore, full_text
from tests.made_bundles import made_bundle

ASKED = ("cache", "part1", "überlauf", "absent", "getattr_static")


@pytest.fixture(params=[1_000_000, 0], ids=["one by one", "all at once"])
def store(
    tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[NetworkxStore]:
    monkeypatch.setattr(full_text, "_COUNTED_SINGLY", request.param)
    store = NetworkxStore(str(tmp_path / "memory.db"))
    yield store
    store.close()


def test_counts_follow_what_is_learned_and_forgotten(store: NetworkxStore) -> None:
    assert list(store.word_frequencies(ASKED).values()) == [0, 0, 0, 0, 0]
    store.add_bundles([made_bundle(0)])
    assert list(store.word_frequencies(ASKED).values()) == [1, 0, 0, 0, 0]
    store.add_bundles([made_bundle(1, note="Überlauf getattr_static")])
    assert list(store.word_frequencies(ASKED).values()) == [2, 1, 1, 0, 1]
    store.forget(["run0000"])
    assert list(store.word_frequencies(ASKED).values()) == [1, 1, 1, 0, 1]
    assert store.document_count() == 1


def test_counts_follow_what_other_processes_learn(store: NetworkxStore, tmp_path: Path) -> None:
    store.add_bundles([made_bundle(0)])
    store.word_frequencies(ASKED)
    other = NetworkxStore(str(tmp_path / "memory.db"))
    other.add_bundles([made_bundle(1)])
    other.close()
    assert list(store.word_frequencies(ASKED).values()) == [2, 1, 0, 0, 0]
    assert store.document_count() == 2


def test_each_tenant_counts_its_own(store: NetworkxStore, tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    tenants = [NetworkxStore(path, tenant=f"tenant{number}") for number in range(12)]
    for number, tenant in enumerate(tenants):
        tenant.add_bundles([made_bundle(number)])
    frequencies = [tenant.word_frequencies(["part1", "cache"]) for tenant in tenants]
    assert [counted["part1"] for counted in frequencies] == [0, 1, *([0] * 10)]
    assert {counted["cache"] for counted in frequencies} == {1}
    assert len(tenants[1].trajectories_for_text(["cache"], Scope(), 50)) == 1
    for tenant in tenants:
        tenant.close()

"""Counts of words, before and after changes."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from contextgraph.model import Scope
from contextgraph.store.sqlite import SqliteStore
from contextgraph.store.sqlite.port import MERGED_EVERY
from tests.made_bundles import made_bundle

WORDS = ("cache", "part1", "überlauf", "absent", "getattr_static")


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(str(tmp_path / "memory.db"))
    yield store
    store.close()


def test_counts_follow_what_is_learned_and_forgotten(store: SqliteStore) -> None:
    assert list(store.runs.word_counts(WORDS).by_word.values()) == [0, 0, 0, 0, 0]
    store.runs.add([made_bundle(0)])
    assert list(store.runs.word_counts(WORDS).by_word.values()) == [1, 0, 0, 0, 0]
    store.runs.add([made_bundle(1, note="Überlauf getattr_static")])
    assert list(store.runs.word_counts(WORDS).by_word.values()) == [2, 1, 1, 0, 1]
    store.runs.forget(["run0000"])
    assert list(store.runs.word_counts(WORDS).by_word.values()) == [1, 1, 1, 0, 1]
    assert store.runs.word_counts(()).total == 1


def test_counts_follow_what_other_processes_learn(store: SqliteStore, tmp_path: Path) -> None:
    store.runs.add([made_bundle(0)])
    store.runs.word_counts(WORDS)
    other = SqliteStore(str(tmp_path / "memory.db"))
    other.runs.add([made_bundle(1)])
    other.close()
    assert list(store.runs.word_counts(WORDS).by_word.values()) == [2, 1, 0, 0, 0]
    assert store.runs.word_counts(()).total == 2


def test_each_tenant_counts_its_own(store: SqliteStore, tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    tenants = [SqliteStore(path, tenant=f"tenant{number}") for number in range(12)]
    for number, tenant in enumerate(tenants):
        tenant.runs.add([made_bundle(number)])
    frequencies = [tenant.runs.word_counts(["part1", "cache"]).by_word for tenant in tenants]
    assert [counted["part1"] for counted in frequencies] == [0, 1, *([0] * 10)]
    assert {counted["cache"] for counted in frequencies} == {1}
    assert len(tenants[1].runs.for_text(["cache"], Scope(), 50)) == 1
    for tenant in tenants:
        tenant.close()


def test_segments_of_the_indexes_are_merged(store: SqliteStore, tmp_path: Path) -> None:
    segments = "SELECT count(DISTINCT segid) FROM run_words_idx"
    with closing(sqlite3.connect(tmp_path / "memory.db")) as connection:
        for number in range(3):
            store.runs.add([made_bundle(number)])
        assert connection.execute(segments).fetchone() == (3,)
        for number in range(3, MERGED_EVERY):
            store.runs.add([made_bundle(number)])
        assert connection.execute(segments).fetchone() == (1,)
    assert store.runs.word_counts(["cache"]).by_word == {"cache": MERGED_EVERY}

"""Values of a store as each reader sees it."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contextgraph.model import ErrorQuestion, Outcome, Scope, SignatureLevel
from contextgraph.store.sqlite import SqliteStore
from tests.made_bundles import SIGNATURE, made_bundle


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def store(path: str) -> Iterator[SqliteStore]:
    store = SqliteStore(path)
    for number in range(4):
        store.runs.add([made_bundle(number)])
    yield store
    store.close()


def outcomes(store: SqliteStore) -> list[Outcome]:
    """Return the recoveries of the runs 3 and 0, which cleared the error of SIGNATURE."""
    found = store.recoveries.for_error(
        [ErrorQuestion(SIGNATURE, SignatureLevel.TEMPLATE, Scope())], 9
    )
    runs = store.runs.trajectories(one.trajectory_id for one in found)
    return [runs[one.trajectory_id].outcome for one in found]


def test_an_outcome_that_another_process_learned_is_seen(store: SqliteStore, path: str) -> None:
    assert outcomes(store) == [Outcome.UNKNOWN] * 2
    other = SqliteStore(path)
    for number in (0, 3):
        other.runs.add([made_bundle(number, outcome=Outcome.SOLVED)])
    assert outcomes(store) == [Outcome.SOLVED] * 2


def test_a_snapshot_does_not_see_what_others_have_read_since(store: SqliteStore) -> None:
    with store.snapshot(), ThreadPoolExecutor(1) as other:
        for number in (0, 3):
            bundle = made_bundle(number, outcome=Outcome.SOLVED)
            other.submit(store.runs.add, [bundle]).result()
        assert other.submit(outcomes, store).result() == [Outcome.SOLVED] * 2
        assert outcomes(store) == [Outcome.UNKNOWN] * 2
    assert outcomes(store) == [Outcome.SOLVED] * 2


def test_a_repository_that_was_unknown_is_found_when_it_is_learned(path: str) -> None:
    fresh, scope = SqliteStore(path), Scope("ada/engine")
    assert fresh.runs.for_task(None, scope, 9) == []
    fresh.runs.add([made_bundle(7)])
    assert len(fresh.runs.for_task(None, scope, 9)) == 1

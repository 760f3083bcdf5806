"""What was read is remembered, and given to those alone who see the memory as it was then."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from contextgraph.model import ErrorQuestion, Outcome, Scope, SignatureLevel
from contextgraph.store import NetworkxStore, remembered
from contextgraph.store.remembered import Remembered
from tests.made_bundles import SIGNATURE, made_bundle


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "memory.db")


@pytest.fixture
def store(path: str) -> Iterator[NetworkxStore]:
    store = NetworkxStore(path)
    for number in range(4):
        store.add_bundles([made_bundle(number)])
    yield store
    store.close()


def outcomes(store: NetworkxStore) -> list[Outcome]:
    """Those of the runs 3 and 0, which cleared the error of SIGNATURE."""
    found = store.recoveries_for_error(
        [ErrorQuestion(SIGNATURE, SignatureLevel.TEMPLATE, Scope())], 9
    )
    return [one.trajectory.outcome for one in found]


def test_an_outcome_that_another_process_learned_is_seen(store: NetworkxStore, path: str) -> None:
    assert outcomes(store) == [Outcome.UNKNOWN] * 2
    other = NetworkxStore(path)
    for number in (0, 3):
        other.add_bundles([made_bundle(number, outcome=Outcome.SOLVED)])
    assert outcomes(store) == [Outcome.SOLVED] * 2


def test_a_snapshot_does_not_see_what_others_have_read_since(store: NetworkxStore) -> None:
    with store.snapshot(), ThreadPoolExecutor(1) as other:
        for number in (0, 3):
            bundle = made_bundle(number, outcome=Outcome.SOLVED)
            other.submit(store.add_bundles, [bundle]).result()
        assert other.submit(outcomes, store).result() == [Outcome.SOLVED] * 2
        assert outcomes(store) == [Outcome.UNKNOWN] * 2
    assert outcomes(store) == [Outcome.SOLVED] * 2


def test_a_repository_that_was_unknown_is_found_when_it_is_learned(path: str) -> None:
    fresh, scope = NetworkxStore(path), Scope("ada/engine")
    assert fresh.trajectories_for_task(None, scope, 9) == []
    fresh.add_bundles([made_bundle(7)])
    assert len(fresh.trajectories_for_task(None, scope, 9)) == 1


def test_so_many_values_are_kept_and_the_newest_of_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_MOST", 3)
    read: list[int] = []

    def squares(keys: Sequence[int]) -> dict[int, int]:
        read.extend(keys)
        return {key: key * key for key in keys}

    known = Remembered[int, int]()
    for key in (1, 2, 3, 4):
        assert known.of([key], squares) == {key: key * key}
    assert known.of([4, 3, 2], squares) == {4: 16, 3: 9, 2: 4}
    assert read == [1, 2, 3, 4]
    assert known.without([4]).of([4, 1], squares) == {4: 16, 1: 1}
    assert read == [1, 2, 3, 4, 4, 1]

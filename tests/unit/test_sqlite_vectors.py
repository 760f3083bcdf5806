"""Vectors that a process has read from a SQLite file, while threads write and read older states."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from contextgraph.model import Scope, Space, Vector
from contextgraph.store.sqlite import SqliteStore
from tests.made_bundles import made_bundle

SPACE = "made/up@4"
RUNS = 40


def test_an_older_state_has_its_own_vectors(tmp_path: Path) -> None:
    store = SqliteStore(str(tmp_path / "memory.db"))
    bundles = [made_bundle(number) for number in range(RUNS)]
    ids = [bundle.trajectory.id for bundle in bundles]
    vector = Vector.of(SPACE, [1.0] * 4)
    store.runs.add(bundles)
    store.vectors.prepare(Space(SPACE, RUNS), b"the model")
    store.vectors.switch(SPACE)
    store.vectors.add(SPACE, dict.fromkeys(ids[:-2], vector))

    def nearest() -> set[str]:
        return {near.trajectory.id for near in store.vectors.nearest(vector, Scope(), RUNS)}

    with ThreadPoolExecutor(1) as other:
        with store.snapshot():
            assert nearest() == {*ids[:-2]}
            other.submit(store.vectors.add, SPACE, {ids[-2]: vector}).result()
            assert other.submit(nearest).result() == {*ids[:-1]}
            assert nearest() == {*ids[:-2]}
            other.submit(store.runs.forget, [ids[0]]).result()
            assert other.submit(nearest).result() == {*ids[1:-1]}
            assert nearest() == {*ids[:-2]}
        assert nearest() == {*ids[1:-1]}
    store.close()

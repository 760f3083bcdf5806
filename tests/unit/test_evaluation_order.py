"""The order of recorded runs, and which are later than another."""

from datetime import timedelta

from contextgraph.evaluation.measures import OrderSource, in_order, is_later
from tests.builders import NOON, run


def names(runs: object) -> list[str]:
    return [raw.instance_id for raw in runs]  # type: ignore[attr-defined]


def numbered(*instances: str) -> list[object]:
    return [run([], instance_id=name, repo=name.split("-")[0]) for name in instances]


def test_runs_with_a_start_are_ordered_by_it() -> None:
    late = run([], instance_id="acme__shop-1", started_at=NOON + timedelta(hours=1))
    early = run([], instance_id="acme__shop-2", started_at=NOON)

    ordered, order = in_order([late, early])

    assert (names(ordered), order) == (["acme__shop-2", "acme__shop-1"], OrderSource.STARTED_AT)


def test_others_go_by_the_number_of_their_instance_within_the_repository() -> None:
    given = numbered("shop-10", "pump-7", "shop-9", "pump-3")

    ordered, order = in_order(given)  # type: ignore[arg-type]

    assert names(ordered) == ["shop-9", "pump-3", "shop-10", "pump-7"]
    assert order is OrderSource.INSTANCE_NUMBER


def test_runs_without_numbers_keep_their_order() -> None:
    given = numbered("b", "a")

    assert in_order(given) == (given, OrderSource.INPUT)  # type: ignore[arg-type]


def test_a_higher_number_is_later_in_the_same_repository_only() -> None:
    old, new = run([], instance_id="acme__shop-9"), run([], instance_id="acme__shop-10")
    other = run([], instance_id="bob__pump-11", repo="bob/pump")

    assert is_later(new, old)
    assert not is_later(old, new)
    assert not is_later(other, old)


def test_a_start_says_more_than_a_number() -> None:
    old = run([], instance_id="acme__shop-9", started_at=NOON + timedelta(days=1))
    new = run([], instance_id="acme__shop-10", started_at=NOON)

    assert is_later(old, new)
    assert not is_later(new, old)

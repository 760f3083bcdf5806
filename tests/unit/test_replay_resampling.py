"""Intervals and tests of difference."""

import pytest

from contextgraph.replay.resampling import Share, difference, estimate, mcnemar


def test_a_figure_is_the_sum_of_amounts_over_the_sum_of_bases() -> None:
    found = estimate({"a": Share(1, 2), "b": Share(3, 4), "c": Share(0, 0)}, seed=0)

    assert found is not None
    assert found.value == pytest.approx(4 / 6)
    assert (found.count, found.runs) == (6, 2)
    assert found.low <= found.value <= found.high


def test_nothing_behind_a_figure_is_no_figure() -> None:
    assert estimate({"a": Share(0, 0)}, seed=0) is None
    assert estimate({}, seed=0) is None


def test_the_same_seed_gives_the_same_interval() -> None:
    shares = {f"run{number}": Share(number % 3 == 0, 1) for number in range(30)}

    assert estimate(shares, seed=4) == estimate(shares, seed=4)
    assert estimate(shares, seed=4) != estimate(shares, seed=5)


def test_moments_of_one_run_do_not_narrow_the_interval() -> None:
    few = {f"run{number}": Share(number % 2, 1) for number in range(20)}
    repeated = {name: Share(100 * share.amount, 100) for name, share in few.items()}

    one, other = estimate(few, seed=0), estimate(repeated, seed=0)

    assert one is not None
    assert other is not None
    assert (one.low, one.high) == pytest.approx((other.low, other.high))


def test_a_difference_is_the_second_minus_the_first() -> None:
    pairs = {f"run{number}": (Share(0, 1), Share(number < 5, 1)) for number in range(10)}

    found = difference(pairs, seed=0)

    assert found.value == pytest.approx(0.5)
    assert 0 < found.low < 0.5 < found.high


def test_mcnemar_is_the_exact_binomial_test_of_what_differs() -> None:
    pairs = [(True, False)] * 1 + [(False, True)] * 7 + [(True, True)] * 50

    # Of 8 that differ, at most one of a kind: 9 of 256 ways, on either side.
    assert mcnemar(pairs) == pytest.approx(18 / 256)
    assert mcnemar([(True, True), (False, False)]) == 1
    assert mcnemar([(True, False), (False, True)]) == 1

"""From judged moments to figures."""

import pytest

from contextgraph.evaluation.measures import (
    OURS,
    POLICIES,
    STUCK,
    LoopWarnings,
    Moment,
    MomentKind,
    MomentVerdict,
    Share,
    clearance_by_family,
    curve,
    difference,
    estimate,
    mcnemar,
    measures_of,
    reliability,
)


def moment(number: int, rank: int | None, score: float = 0.5, **fields: object) -> Moment:
    """A cleared error of run *number*; it was answered unless *score* is 0."""
    given = {
        "kind": MomentKind.ERROR,
        "run": f"trj_{number}",
        "instance_id": f"acme__shop-{number}",
        "repo": "acme/shop",
        "step": 1,
        "topic": "shell",
        "verdicts": {OURS: MomentVerdict(score > 0, rank, rank, score, tokens=int(100 * score))},
        **fields,
    }
    return Moment(**given)  # type: ignore[arg-type]


def test_what_the_gate_holds_back_counts_for_the_ranking_alone() -> None:
    held_back = moment(1, None, verdicts={OURS: MomentVerdict(False, rank=1, shown=None)})

    found = {name: by[OURS].value for name, by in measures_of([held_back], (), 0).items()}

    assert (found["clearance@1"], found["clearance@1 shown"]) == (1, 0)
    assert "precision@1" not in found


def test_tokens_are_counted_per_answer_and_per_right_answer() -> None:
    moments = [moment(1, 1, 0.5), moment(2, None, 0.3), moment(3, None, 0.0)]

    found = {name: by[OURS].value for name, by in measures_of(moments, (), 0).items()}

    assert (found["tokens per answer"], found["tokens per right answer"]) == (40, 80)


def test_loop_warnings_of_several_runs_of_an_instance_are_summed() -> None:
    counts = [
        LoopWarnings("acme__shop-1", 10, dict.fromkeys(POLICIES, saved), dict.fromkeys(POLICIES, 1))
        for saved in (10, 0)
    ]

    found = measures_of((), counts, 0)

    assert found["wasted steps saved"][STUCK].value == 0.5
    assert found["false alarms per 100 runs"][STUCK].count == 2


def test_clearance_counts_silence_as_a_miss_and_precision_does_not() -> None:
    moments = [moment(1, 1), moment(2, 4), moment(3, None), moment(4, None, 0.0)]

    found = {name: by[OURS].value for name, by in measures_of(moments, (), 0).items()}

    assert (found["clearance@1"], found["clearance@3"], found["clearance@5"]) == (0.25, 0.25, 0.5)
    assert found["precision@5"] == pytest.approx(2 / 3)
    assert found["answered: cleared errors"] == 0.75


def test_errors_that_were_not_cleared_count_for_coverage_only() -> None:
    moments = [moment(1, 1), moment(2, None, has_answer=False), moment(3, None, 0.0)]

    found = {name: by[OURS].value for name, by in measures_of(moments, (), 0).items()}

    assert found["clearance@1"] == 0.5
    assert found["answered: all errors"] == pytest.approx(2 / 3)


def test_steps_earlier_are_those_of_what_was_found() -> None:
    moments = [
        moment(1, 1, steps_left=4),
        moment(2, 5, steps_left=2),
        moment(3, None, steps_left=9),
    ]

    assert measures_of(moments, (), 0)["steps earlier"][OURS].value == 3


def test_the_reciprocal_rank_is_averaged_over_related_tasks() -> None:
    moments = [moment(n, rank, kind=MomentKind.RELATED) for n, rank in enumerate((1, 4, None))]

    assert measures_of(moments, (), 0)["related MRR"][OURS].value == pytest.approx(1.25 / 3)


def test_a_curve_trades_coverage_for_precision() -> None:
    moments = [moment(1, 1, 0.9), moment(2, None, 0.5), moment(3, 2, 0.5), moment(4, None, 0.0)]

    points = curve(moments, OURS, 3)

    assert [(p.threshold, p.coverage, p.precision) for p in points] == [
        (0.9, 0.25, 1.0),
        (0.5, 0.75, pytest.approx(2 / 3)),
    ]


def test_reliability_sets_the_probability_stated_beside_the_share_that_was_right() -> None:
    moments = [moment(number, 1 if number >= 5 else 2, 0.1 + number / 100) for number in range(20)]
    points = reliability(moments)
    assert [one.count for one in points] == [2] * 10
    assert points[0].stated == pytest.approx(0.105)
    assert [one.right for one in points] == [0, 0, 0.5, *[1] * 7]
    assert reliability(moments[:9]) == ()


def test_clearance_is_given_by_family_of_error_largest_first() -> None:
    moments = [moment(1, None, topic="timeout"), moment(2, 1), moment(3, None)]

    found = clearance_by_family(moments, 3, 0)

    assert [(family, by[OURS].value) for family, by in found.items()] == [
        ("shell", 0.5),
        ("timeout", 0.0),
    ]


def test_a_figure_is_the_sum_of_amounts_over_the_sum_of_bases() -> None:
    found = estimate({"a": Share(1, 2), "b": Share(3, 4), "c": Share(0, 0)}, seed=0)

    assert found is not None
    assert found.value == pytest.approx(4 / 6)
    assert (found.count, found.runs) == (6, 2)
    assert found.low <= found.value <= found.high


def test_a_figure_without_data_is_left_out() -> None:
    assert estimate({"a": Share(0, 0)}, seed=0) is None
    assert estimate({}, seed=0) is None


def test_the_same_seed_gives_the_same_interval() -> None:
    shares = {f"run{number}": Share(number % 3 == 0, 1) for number in range(30)}

    assert estimate(shares, seed=4) == estimate(shares, seed=4)
    assert estimate(shares, seed=4) != estimate(shares, seed=5)


def test_moments_of_one_instance_do_not_narrow_the_interval() -> None:
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

"""From judged moments to figures."""

import pytest

from contextgraph.replay.judging import OURS
from contextgraph.replay.measures import by_topic, curve, measures_of
from contextgraph.replay.moments import Moment, MomentKind, Verdict


def moment(number: int, rank: int | None, score: float = 0.5, **fields: object) -> Moment:
    """A cleared error of run *number*; it was answered unless *score* is 0."""
    given = {
        "kind": MomentKind.ERROR,
        "run": f"trj_{number}",
        "instance_id": f"acme__shop-{number}",
        "repo": "acme/shop",
        "step": 1,
        "topic": "shell",
        "verdicts": {OURS: Verdict(score > 0, rank, score, score)},
        **fields,
    }
    return Moment(**given)  # type: ignore[arg-type]


def test_clearance_counts_silence_as_a_miss_and_precision_does_not() -> None:
    moments = [moment(1, 1), moment(2, 4), moment(3, None), moment(4, None, 0.0)]

    found = {name: by[OURS].value for name, by in measures_of(moments, (), 0).items()}

    assert (found["clearance@1"], found["clearance@3"], found["clearance@5"]) == (0.25, 0.25, 0.5)
    assert found["precision@5"] == pytest.approx(2 / 3)
    assert found["answered: cleared errors"] == 0.75


def test_errors_that_were_not_cleared_count_for_coverage_alone() -> None:
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

    points = curve(moments, OURS, 3, lambda verdict: verdict.score)

    assert [(p.threshold, p.coverage, p.precision) for p in points] == [
        (0.9, 0.25, 1.0),
        (0.5, 0.75, pytest.approx(2 / 3)),
    ]


def test_families_of_errors_are_told_apart_largest_first() -> None:
    moments = [moment(1, None, topic="timeout"), moment(2, 1), moment(3, None)]

    found = by_topic(moments, 3, 0)

    assert [(topic, by[OURS].value) for topic, by in found.items()] == [
        ("shell", 0.5),
        ("timeout", 0.0),
    ]

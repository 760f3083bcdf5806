"""Values as JSON objects: what comes back, and what is refused with its path."""

from datetime import UTC, datetime
from enum import StrEnum

import pytest
from msgspec import Struct, field

from contextgraph.codec import COMPLETE, decoded, encoded
from contextgraph.errors import ReadError
from contextgraph.model import (
    Bundle,
    Json,
    MemoryContext,
    RawTrajectory,
    ScopeLevel,
    SimilarCase,
    Why,
)
from contextgraph.records import context_record, record_of
from contextgraph.values import replace
from tests.made_bundles import made_bundle

STEP: dict[str, Json] = {
    "index": 0,
    "thought": "",
    "action": {"tool": "bash", "text": "ls"},
    "observation": None,
}
RUN: dict[str, Json] = {"source_format": "x", "instance_id": "i", "repo": "r", "task": "t"}


class Colour(StrEnum):
    RED = "red"


class Inner(Struct, frozen=True):
    number: int
    ratio: float = 0.5


class Outer(Struct, frozen=True):
    name: str
    colour: Colour | None
    inner: tuple[Inner, ...] = ()
    pair: tuple[str, float] = ("a", 1.0)
    data: bytes = b""
    at: datetime | None = None
    extra: dict[str, Json] = field(default_factory=dict)


def refused(kind: type, record: Json, *, strict: bool = False) -> str:
    with pytest.raises(ReadError) as caught:
        decoded(kind, record, strict=strict)
    return str(caught.value)


def test_values_come_back_equal() -> None:
    bundle = made_bundle(0)
    assert decoded(RawTrajectory, encoded(bundle.raw)) == bundle.raw
    assert decoded(Bundle, encoded(bundle)) == bundle
    value = Outer(
        "n",
        Colour.RED,
        (Inner(1), Inner(2, 3.0)),
        ("b", 2.0),
        b"\x00",
        datetime(2026, 1, 1, tzinfo=UTC),
        {"any": [1, {"json": None}]},
    )
    assert decoded(Outer, encoded(value)) == value


def test_defaults_and_none_are_left_out_unless_it_is_to_be_complete() -> None:
    value = Outer("n", None)
    assert encoded(value) == {"name": "n"}
    assert decoded(Outer, {"name": "n"}) == value
    complete = encoded(replace(value, inner=(Inner(1),)), COMPLETE)
    assert isinstance(complete, dict)
    assert complete["colour"] is None
    assert complete["inner"] == [{"number": 1, "ratio": 0.5}]


def test_unknown_fields_are_ignored_or_refused() -> None:
    run: Json = {**RUN, "steps": [{**STEP, "mood": "calm"}], "weather": 3}
    assert [step.action.text for step in decoded(RawTrajectory, run).steps] == ["ls"]
    assert refused(RawTrajectory, run, strict=True) == "weather is not a known field"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([], "record is not an object"),
        ({}, "source_format is missing"),
        ({**RUN, "task": 3}, "task is not of type str"),
        ({**RUN, "steps": {}}, "steps is not a list"),
        ({**RUN, "outcome": "won"}, "outcome 'won' is not one of solved, failed, unknown"),
        ({**RUN, "started_at": "noon"}, "started_at Invalid isoformat string: 'noon'"),
        ({**RUN, "started_at": "2026-01-01"}, "started_at '2026-01-01' has no time zone"),
        ({**RUN, "steps": ["ls"]}, "steps[0] is not an object"),
        ({**RUN, "steps": [{**STEP, "action": None}]}, "steps[0].action is missing"),
        ({**RUN, "steps": [{**STEP, "index": None}]}, "steps[0].index is missing"),
        ({**RUN, "steps": [{**STEP, "exit_code": True}]}, "steps[0].exit_code is not of type int"),
    ],
)
def test_what_cannot_be_read_is_named(record: Json, reason: str) -> None:
    assert refused(RawTrajectory, record) == reason


def test_numbers_and_sizes_are_checked() -> None:
    assert decoded(Inner, {"number": 1, "ratio": 2}) == Inner(1, 2.0)
    assert refused(Outer, {"name": "n", "pair": ["a"]}) == "pair does not have 2 items"
    assert refused(Outer, {"name": "n", "data": "?"}).startswith("data ")
    with pytest.raises(TypeError, match="object has no JSON form"):
        encoded(object())


def test_a_time_that_could_not_be_read_again_is_refused() -> None:
    with pytest.raises(TypeError, match="time 2026-01-01T00:00:00 has no time zone"):
        encoded(Outer("n", None, at=datetime(2026, 1, 1)))  # noqa: DTZ001


def test_a_value_has_one_form_in_every_answer() -> None:
    made = made_bundle(0)
    case = SimilarCase(
        trajectory_id="t",
        instance_id="i",
        repo="r",
        outcome=made.trajectory.outcome,
        summary="s",
        files=(),
        fragments=made.fragments,
        score=1.0,
        why=Why((), ScopeLevel.REPO, 1, ()),
    )
    assert record_of(case)["fragments"] == [*map(record_of, made.fragments)]
    answer = context_record(MemoryContext("c", similar_cases=(case,)), "")
    assert answer["similar_cases"] == [record_of(case)]

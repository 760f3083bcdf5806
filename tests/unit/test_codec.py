"""Values as JSON objects: what comes back, and what is refused with its path."""

from datetime import UTC, datetime
from enum import StrEnum

import pytest
from msgspec import Struct, field

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
from contextgraph.model.codec import COMPLETE, decoded, encoded, from_bytes, json_bytes
from contextgraph.model.values import replace
from contextgraph.service.records import context_record, record_of
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


class Outer(Struct, frozen=True, omit_defaults=True):
    name: str
    colour: Colour | None = None
    inner: tuple[Inner, ...] = ()
    pair: tuple[str, float] = ("a", 1.0)
    data: bytes = b""
    at: datetime | None = None
    extra: dict[str, Json] = field(default_factory=dict)


def refused(kind: type, record: Json) -> str:
    with pytest.raises(ReadError) as caught:
        decoded(kind, record)
    return str(caught.value)


def test_values_come_back_equal() -> None:
    bundle = made_bundle(0)
    assert decoded(RawTrajectory, encoded(bundle.raw)) == bundle.raw
    assert decoded(Bundle, encoded(bundle)) == bundle
    assert from_bytes(Bundle, json_bytes(bundle, "a bundle")) == bundle
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


def test_defaults_are_left_out_unless_it_is_to_be_complete() -> None:
    value = Outer("n")
    assert encoded(value) == {"name": "n"}
    assert decoded(Outer, {"name": "n"}) == value
    complete = encoded(replace(value, inner=(Inner(1),)), COMPLETE)
    assert isinstance(complete, dict)
    assert complete["colour"] is None
    assert complete["inner"] == [{"number": 1, "ratio": 0.5}]


def test_unknown_fields_are_ignored_or_refused() -> None:
    assert decoded(Inner, {"number": 1, "mood": "calm"}) == Inner(1)
    run: Json = {**RUN, "steps": [{**STEP, "mood": "calm"}]}
    assert refused(RawTrajectory, run) == "steps[0]: Object contains unknown field `mood`"


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ([], "Expected `object`, got `array`"),
        ({}, "Object missing required field `source_format`"),
        ({**RUN, "task": 3}, "task: Expected `str`, got `int`"),
        ({**RUN, "steps": {}}, "steps: Expected `array`, got `object`"),
        ({**RUN, "outcome": "won"}, "outcome: Invalid enum value 'won'"),
        ({**RUN, "started_at": "noon"}, "started_at: Invalid RFC3339 encoded datetime"),
        (
            {**RUN, "started_at": "2026-01-01T00:00:00"},
            "started_at: Expected `datetime` with a timezone component",
        ),
        ({**RUN, "steps": ["ls"]}, "steps[0]: Expected `object`, got `str`"),
        (
            {**RUN, "steps": [{**STEP, "action": None}]},
            "steps[0].action: Expected `object`, got `null`",
        ),
        (
            {**RUN, "steps": [{**STEP, "exit_code": True}]},
            "steps[0].exit_code: Expected `int | null`, got `bool`",
        ),
    ],
)
def test_what_cannot_be_read_is_named(record: Json, reason: str) -> None:
    assert refused(RawTrajectory, record) == reason
    with pytest.raises(ReadError) as caught:
        from_bytes(RawTrajectory, json_bytes(record, "a run"))
    assert str(caught.value) == reason


def test_numbers_and_sizes_are_checked() -> None:
    assert decoded(Inner, {"number": 1, "ratio": 2}) == Inner(1, 2.0)
    reason = "pair: Expected `array` of length 2, got 1"
    assert refused(Outer, {"name": "n", "pair": ["a"]}) == reason
    assert refused(Outer, {"name": "n", "data": "?"}).startswith("data: ")
    with pytest.raises(TypeError, match="object has no JSON form"):
        encoded(object())


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

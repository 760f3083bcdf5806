"""Raw runs as JSON objects: what comes back, and what is refused with its place."""

import pytest

from contextgraph.errors import ReadError
from contextgraph.model import Json, RawTrajectory
from contextgraph.model.codec import raw_from_record, raw_to_record
from tests.made_bundles import made_bundle

STEP: dict[str, Json] = {"index": 0, "thought": "", "action": {"tool": "bash", "text": "ls"}}


def refused(record: Json) -> str:
    with pytest.raises(ReadError) as caught:
        raw_from_record(record)
    return str(caught.value)


def test_a_run_comes_back_equal() -> None:
    raw = made_bundle(0).raw
    assert raw_from_record(raw_to_record(raw)) == raw


def test_what_is_left_out_is_empty() -> None:
    assert raw_from_record({}) == RawTrajectory("", "", "", "")


def test_unknown_keys_are_ignored() -> None:
    raw = raw_from_record({"steps": [{**STEP, "mood": "calm"}], "weather": 3})
    assert [step.action.text for step in raw.steps] == ["ls"]


@pytest.mark.parametrize(
    ("record", "said"),
    [
        ([], "record is not an object"),
        ({"task": 3}, "task is not of type str"),
        ({"steps": {}}, "steps is not a list"),
        ({"outcome": "won"}, "outcome 'won' is none of solved, failed, unknown"),
        ({"started_at": "noon"}, "started_at 'noon' is not an ISO 8601 time"),
        ({"started_at": "2026-01-01"}, "started_at '2026-01-01' has no time zone"),
        ({"steps": [STEP, 3]}, "step 1: record is not an object"),
        ({"steps": [{**STEP, "action": None}]}, "step 0: action is not an object"),
        ({"steps": [{**STEP, "index": None}]}, "step 0: index is missing"),
        ({"steps": [{**STEP, "exit_code": True}]}, "step 0: exit_code is not of type int"),
        ({"steps": [{**STEP, "is_error": 0}]}, "step 0: is_error is not of type bool"),
    ],
)
def test_what_cannot_be_read_is_named(record: Json, said: str) -> None:
    assert refused(record) == said

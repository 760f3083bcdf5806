"""Runs that are written are read back unchanged."""

import io
from datetime import timedelta, timezone

import orjson
import pytest
from hypothesis import example, given, strategies as st

from contextgraph.errors import ReadError
from contextgraph.model import Action, Outcome, RawTrajectory, Step
from contextgraph.model.values import replace
from contextgraph.readers import from_record, read, to_record, write_jsonl

# Everything that UTF-8 can carry, NUL, escapes, line and paragraph separators included.
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
# RFC 3339 writes whole minutes.
ZONES = st.integers(-1_439, 1_439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
TIMES = st.datetimes(timezones=ZONES)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=4,
)
STEPS = st.builds(
    Step,
    index=st.just(0),
    thought=TEXT,
    action=st.builds(Action, TEXT, TEXT, st.dictionaries(TEXT, JSON, max_size=2)),
    observation=st.none() | TEXT,
    exit_code=st.none() | st.integers(-(2**31), 2**31),
    is_error=st.none() | st.booleans(),
    cwd=st.none() | TEXT,
    open_file=st.none() | TEXT,
    timestamp=st.none() | TIMES,
    user_message=st.none() | TEXT,
    interrupted=st.booleans(),
    denied=st.booleans(),
    messaged_at=st.none() | TIMES,
)


def numbered(steps: list[Step]) -> tuple[Step, ...]:
    return tuple(replace(step, index=index) for index, step in enumerate(steps))


TRAJECTORIES = st.builds(
    RawTrajectory,
    source_format=TEXT,
    instance_id=TEXT,
    repo=TEXT,
    task=TEXT,
    steps=st.lists(STEPS, max_size=3).map(numbered),
    agent=TEXT,
    model=TEXT,
    outcome=st.sampled_from(Outcome),
    exit_status=st.none() | TEXT,
    patch=st.none() | TEXT,
    started_at=st.none() | TIMES,
    source=TEXT,
    system_prompt=TEXT,
    session=TEXT,
)


@given(st.lists(TRAJECTORIES, min_size=1, max_size=2))
def test_reading_what_was_written_gives_equal_trajectories(tmp_path_factory, trajectories):
    path = tmp_path_factory.mktemp("runs") / "runs.jsonl"
    with path.open("wb") as file:
        assert write_jsonl(trajectories, file) == len(trajectories)
    assert list(read(path)) == trajectories


@given(TRAJECTORIES)
def test_a_record_survives_json(trajectory):
    assert from_record(orjson.loads(orjson.dumps(to_record(trajectory)))) == trajectory


@given(st.text(max_size=20))
@example("half a pair: \ud83d")
def test_only_what_utf_8_cannot_encode_is_replaced(tmp_path_factory, task):
    path = tmp_path_factory.mktemp("runs") / "runs.jsonl"
    written = RawTrajectory("x", "a__b-1", "a/b", task, (Step(0, task, Action("t", task), None),))
    with path.open("wb") as file:
        write_jsonl([written], file)
    (run,) = read(path)
    expected = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in task)
    assert [run.task, run.steps[0].thought, run.steps[0].action.text] == [expected] * 3


@given(TRAJECTORIES, st.data())
def test_a_record_with_a_field_of_the_wrong_type_is_refused(trajectory, data):
    record = to_record(trajectory)
    name = data.draw(st.sampled_from(sorted(record.keys() - {"contextgraph"})))
    record[name] = data.draw(st.sampled_from([7, True, {"a": 1}, ["b"]]))
    with pytest.raises(ValueError, match=name):
        from_record(record)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"contextgraph": 2}, "version 2 of the format is not known, only 1"),
        ({"colour": "red"}, "Object contains unknown field `colour`"),
        ({"task": None}, "task: Expected `str`, got `null`"),
        (
            {"steps": [{"index": 0, "thought": "", "observation": None}]},
            "steps[0]: Object missing required field `action`",
        ),
    ],
)
def test_a_line_that_this_version_did_not_write_is_an_error(tmp_path, change, reason):
    path = tmp_path / "runs.jsonl"
    path.write_bytes(orjson.dumps(to_record(RawTrajectory("x", "i", "", "t")) | change))
    with pytest.raises(ReadError) as caught:
        list(read(path))
    assert caught.value.reason == f"malformed contextgraph record: {reason}"


def test_fields_with_their_default_take_no_room():
    file = io.BytesIO()
    write_jsonl([RawTrajectory("sweagent", "a__b-1", "a/b", "Task")], file)
    assert orjson.loads(file.getvalue()) == {
        "contextgraph": 1,
        "source_format": "sweagent",
        "instance_id": "a__b-1",
        "repo": "a/b",
        "task": "Task",
    }

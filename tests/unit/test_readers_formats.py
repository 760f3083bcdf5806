"""Each format, by runs that were written in its shape."""

from datetime import UTC, datetime
from pathlib import Path

import orjson
import pytest

from contextgraph.errors import ReadError
from contextgraph.model import Action, Outcome, RawTrajectory, Step
from contextgraph.readers import FORMATS, read

SAMPLES = Path(__file__).parents[1] / "data" / "readers"
PATCH = """diff --git a/kettle/boil.py b/kettle/boil.py
--- a/kettle/boil.py
+++ b/kettle/boil.py
@@ -1 +1 @@
-off = False
+off = auto_off
"""
BOIL = "/kettle/kettle/boil.py"


def one(sample: str) -> RawTrajectory:
    (trajectory,) = read(SAMPLES / sample)
    return trajectory


def test_every_format_but_our_own_has_samples_and_they_are_read_as_it():
    folders = {folder.name for folder in SAMPLES.iterdir()}
    assert folders == FORMATS.keys() - {"contextgraph"}
    for folder in folders:
        found = read(SAMPLES / folder, on_error=lambda _: None)
        assert {trajectory.source_format for trajectory in found} == {folder}


def test_a_nebius_row_has_task_actions_and_the_state_after_each():
    path = SAMPLES / "nebius/rows.jsonl"
    solved, _ = read(path)
    assert solved == RawTrajectory(
        source_format="nebius",
        instance_id="teapot__kettle-12",
        repo="teapot/kettle",
        task="Kettle boils forever\nWhen `auto_off` is set the kettle never stops:\n"
        "```\nboil(auto_off=True)\n```",
        steps=(
            Step(
                0,
                "Let me open the file.",
                Action("open", "open kettle/boil.py"),
                "[File: /kettle/kettle/boil.py (1 lines total)]\n1:off = False",
                cwd="/kettle",
                open_file=BOIL,
            ),
            Step(
                1,
                "The example is\n```python\nboil()\n```\nso I edit line 1.",
                Action("edit", "edit 1:1\noff = auto_off\nend_of_edit"),
                "File updated.",
                cwd="/kettle",
                open_file=BOIL,
            ),
            Step(2, "Done.", Action("submit", "submit"), None),
        ),
        agent="SWE-agent",
        model="tea-70b",
        outcome=Outcome.SOLVED,
        exit_status="submitted",
        patch=PATCH,
        source=f"{path}:1",
        system_prompt="You have a window of 100 lines.",
    )


def test_a_nebius_run_that_was_not_solved_has_failed_and_may_have_no_patch():
    _, failed = read(SAMPLES / "nebius/rows.jsonl")
    assert (failed.outcome, failed.patch) == (Outcome.FAILED, None)
    assert failed.steps[0].open_file is None
    assert failed.steps[1].action == Action("", "")
    assert failed.steps[1].thought == "I do not know what to do next."


def test_evaluation_logs_leak_nowhere():
    for trajectory in read(SAMPLES / "nebius/rows.jsonl"):
        assert "HIDDEN" not in repr(trajectory)


def test_sweagent_0_logs_the_state_before_an_action_and_the_reader_gives_the_one_after():
    run = one("sweagent/teapot__kettle-44.traj")
    assert [step.open_file for step in run.steps] == ["/teapot__kettle/kettle/boil.py"] * 2 + [None]
    assert [step.action for step in run.steps] == [
        Action("open", "open kettle/boil.py"),
        Action("python", "python run.py"),
        Action("submit", "submit"),
    ]
    assert run.steps[1].observation == (
        "Traceback (most recent call last):\nNameError: name 'off' is not defined\n"
    )


def test_sweagent_0_takes_the_instance_from_the_file_name_and_the_task_from_no_demonstration():
    run = one("sweagent/teapot__kettle-44.traj")
    assert (run.instance_id, run.repo) == ("teapot__kettle-44", "teapot/kettle")
    assert run.task == "Lid does not close"
    assert (run.exit_status, run.patch) == ("submitted", f"\n{PATCH}")
    assert run.outcome is Outcome.UNKNOWN


def test_sweagent_1_shows_tool_calls_as_a_person_would_read_them():
    run = one("sweagent/handle.traj")
    assert [step.action.tool for step in run.steps] == ["bash", "", "str_replace_editor", "submit"]
    edit = run.steps[2].action
    assert edit.text == (
        "str_replace_editor str_replace /testbed/kettle/boil.py\n"
        "--old_str\noff = False\n--new_str\noff = auto_off"
    )
    assert edit.arguments["path"] == "/testbed/kettle/boil.py"
    assert run.steps[0].observation == "1:off = False\n2:on = True"


def test_sweagent_1_names_the_problem_the_repository_and_the_model():
    run = one("sweagent/handle.traj")
    assert (run.instance_id, run.repo) == ("teapot__kettle.0a1b2c3d.pr_7", "teapot/kettle")
    assert (run.model, run.task) == ("tea-large", "Handle gets hot\nIt should not.")


def test_a_sweagent_file_with_nothing_but_history_is_a_run():
    run = one("sweagent/history_only.traj")
    (step,) = run.steps
    assert step.action == Action("find_file", "find_file lid.py", {"file_name": "lid.py"})
    assert (step.observation, step.cwd) == ("Found 1 matches", "/teapot__kettle")
    assert (run.instance_id, run.repo, run.task) == (
        "history_only",
        "teapot/kettle",
        "Lid is loose",
    )


def test_an_editor_command_without_tool_call_is_taken_apart(tmp_path):
    command = "str_replace_editor view /testbed/lid.py --view_range 1 40"
    written = {"trajectory": [{"action": command, "observation": "", "thought": ""}]}
    path = tmp_path / "lid.traj"
    path.write_bytes(orjson.dumps(written))
    (run,) = read(path)
    assert run.steps[0].action.arguments == {
        "command": "view",
        "path": "/testbed/lid.py",
        "view_range": ["1", "40"],
    }
    assert run.steps[0].action.text == command


def test_a_bare_list_of_mini_swe_agent_is_a_run_with_exit_codes():
    run = one("mini-swe-agent/teapot__dial-3.traj.json")
    assert (run.instance_id, run.repo) == ("teapot__dial-3", "teapot/dial")
    assert (run.task, run.patch) == ("Steam hides the dial", PATCH)
    assert [step.exit_code for step in run.steps] == [0, None, 1, None]
    assert run.steps[2] == Step(
        index=2,
        thought="Run it.",
        action=Action("bash", "python dial.py", {"command": "python dial.py"}),
        observation="KeyError: 'steam'",
        exit_code=1,
    )


def test_a_reply_from_which_no_command_could_be_read_is_a_step_without_action():
    refused = one("mini-swe-agent/teapot__dial-3.traj.json").steps[1]
    assert refused.action == Action("", "")
    assert refused.observation == "Please always provide EXACTLY ONE action in triple backticks."


def test_the_template_of_mini_swe_agent_says_which_part_of_the_prompt_is_the_task():
    run = one("mini-swe-agent/tank.traj.json")
    assert run.task == "Fill the tank\nto the top"
    assert (run.exit_status, run.model, len(run.steps)) == ("LimitsExceeded", "tea-mini", 1)


def test_several_calls_in_one_reply_are_several_steps_each_with_its_own_answer():
    run = one("mini-swe-agent/cord.traj.json")
    first, second = run.steps[:2]
    assert (first.action.text, first.observation) == ("ls", "cord.py\n")
    assert (second.action.text, second.observation) == ("cat cord.py", "length = 1\n")
    assert first.thought == "Where is the cord?\n\nLook around."
    assert second.thought == ""
    assert [step.index for step in run.steps] == [0, 1, 2, 3]


def test_mini_swe_agent_1_1_has_times_timeouts_and_the_submission():
    run = one("mini-swe-agent/cord.traj.json")
    assert run.started_at == datetime(2025, 6, 15, 15, 6, 40, 500000, tzinfo=UTC)
    assert run.steps[2].timestamp == datetime(2025, 6, 15, 15, 6, 43, tzinfo=UTC)
    assert (run.steps[2].exit_code, run.steps[2].is_error) == (-1, True)
    assert run.steps[2].observation == "the command timed out after 60 seconds"
    assert run.steps[3].observation is None
    assert (run.instance_id, run.task) == ("teapot__cord-8", "Cord too short")
    assert (run.patch, run.exit_status) == (PATCH, "Submitted")


def test_a_run_that_died_before_the_first_reply_is_an_error_that_names_the_failure():
    with pytest.raises(ReadError, match="infrastructure failure: InternalServerError: the service"):
        list(read(SAMPLES / "mini-swe-agent/dead.traj.json"))


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"instance_id": "a__b-1", "target": True, "trajectory": []}, "no steps"),
        ({"history": [{"role": "system", "content": "x"}], "info": {}}, "no steps"),
        ({"instance_id": "a__b-1", "trajectory": [{"role": "tool"}]}, "unknown format"),
        ({"instance_id": 7, "trajectory": [{"role": "ai", "text": ""}]}, "instance_id is a number"),
        ({"messages": [{"role": "assistant", "content": 1}], "info": {}}, "content is a number"),
        ({"history": [{"role": "user"}, 3]}, "history is a list"),
        ({"history": [[{"id": 1, "source": "user"}]]}, "unknown format"),
        ({"colour": "red"}, "an object with 'colour'; `contextgraph call formats` lists"),
    ],
)
def test_a_record_that_is_not_a_run_is_an_error_that_says_why(tmp_path, record, reason):
    path = tmp_path / "run.json"
    path.write_bytes(orjson.dumps(record))
    with pytest.raises(ReadError) as caught:
        list(read(path))
    assert reason in str(caught.value)
    assert str(path) in str(caught.value)

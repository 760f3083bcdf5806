"""Evaluation reports beside runs."""

from pathlib import Path

import orjson
import pytest

from contextgraph.errors import ReadError
from contextgraph.model import Outcome
from contextgraph.readers import read

SUMMARY = {
    "resolved_ids": ["a__b-1"],
    "unresolved_ids": ["a__b-2"],
    "empty_patch_ids": ["a__b-3"],
    "error_ids": ["a__b-4"],
}


def run_at(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    step = {"action": "ls", "observation": "", "thought": ""}
    path.write_bytes(orjson.dumps({"trajectory": [step], "history": []}))
    return path


def report_at(path: Path, report: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(orjson.dumps(report))
    return path


def outcomes(path: Path, **how: Path) -> dict[str, Outcome]:
    return {run.instance_id: run.outcome for run in read(path, **how)}  # type: ignore[arg-type]


def test_a_summary_in_the_folder_names_who_solved_the_task(tmp_path):
    for number in range(1, 6):
        run_at(tmp_path / f"a__b-{number}" / f"a__b-{number}.traj")
    report_at(tmp_path / "outcomes.json", SUMMARY)
    assert outcomes(tmp_path) == {
        "a__b-1": Outcome.SOLVED,
        "a__b-2": Outcome.FAILED,
        "a__b-3": Outcome.FAILED,
        "a__b-4": Outcome.UNKNOWN,
        "a__b-5": Outcome.UNKNOWN,
    }


def test_a_summary_beside_a_single_file_is_found(tmp_path):
    path = run_at(tmp_path / "a__b-1.traj")
    assert outcomes(path) == {"a__b-1": Outcome.UNKNOWN}
    report_at(tmp_path / "any_name.json", SUMMARY)
    assert outcomes(path) == {"a__b-1": Outcome.SOLVED}


@pytest.mark.parametrize(
    ("name", "report"),
    [
        ("results.json", {"resolved": ["a__b-1"], "no_logs": []}),
        ("final.json", {"generated": ["a__b-1"], "applied": ["a__b-1"], "resolved": ["a__b-1"]}),
        ("report.json", {"a__b-1": {"patch_exists": True, "resolved": True}}),
        ("a__b-1.report.json", {"resolved": True, "tests_status": {}}),
        ("a__b-1/report.json", {"resolved": True, "tests_status": {}}),
    ],
)
def test_every_kind_of_report_is_understood(tmp_path, name, report):
    run_at(tmp_path / "a__b-1.traj")
    report_at(tmp_path / name, report)
    assert outcomes(tmp_path) == {"a__b-1": Outcome.SOLVED}


def test_a_report_does_not_apply_to_runs_of_another_folder(tmp_path):
    run_at(tmp_path / "ann" / "a__b-1.traj")
    run_at(tmp_path / "bob" / "a__b-1.traj")
    report_at(tmp_path / "ann" / "results.json", SUMMARY)
    found = {run.source: run.outcome for run in read(tmp_path)}
    assert list(found.values()) == [Outcome.SOLVED, Outcome.UNKNOWN]


def test_reports_in_a_folder_of_their_own_apply_to_the_runs_beside_it(tmp_path):
    run_at(tmp_path / "trajs" / "a__b-1.traj")
    report_at(tmp_path / "results" / "results.json", SUMMARY)
    assert outcomes(tmp_path) == {"a__b-1": Outcome.SOLVED}


def test_reports_that_disagree_set_no_outcome(tmp_path):
    run_at(tmp_path / "a__b-1.traj")
    report_at(tmp_path / "one.json", SUMMARY)
    report_at(tmp_path / "two.json", {"resolved_ids": [], "unresolved_ids": ["a__b-1"]})
    assert outcomes(tmp_path) == {"a__b-1": Outcome.UNKNOWN}


def test_a_report_can_be_given_and_then_no_other_is_looked_for(tmp_path):
    path = run_at(tmp_path / "runs" / "a__b-1.traj")
    report_at(tmp_path / "runs" / "results.json", SUMMARY)
    given = report_at(tmp_path / "given.json", {"resolved_ids": [], "unresolved_ids": ["a__b-1"]})
    assert outcomes(path, outcomes=given) == {"a__b-1": Outcome.FAILED}


def test_what_is_given_as_report_must_be_one(tmp_path):
    path = run_at(tmp_path / "a__b-1.traj")
    for given in (path, tmp_path / "absent.json"):
        with pytest.raises(ReadError):
            outcomes(path, outcomes=given)


def test_an_outcome_in_the_log_stands(tmp_path):
    turn = {"role": "ai", "text": "```\nls\n```"}
    row = {"instance_id": "a__b-1", "target": False, "trajectory": [turn]}
    path = report_at(tmp_path / "rows.jsonl", row)
    report_at(tmp_path / "results.json", SUMMARY)
    assert outcomes(path) == {"a__b-1": Outcome.FAILED}

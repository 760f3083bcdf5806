"""``contextgraph call replay`` and ``contextgraph evaluate``."""

import sys
from pathlib import Path

import orjson
import pytest

from contextgraph.advising.gate import Gate
from contextgraph.config import user_settings_file
from contextgraph.learning import trajectory_id
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import NO_MODULE, recovering_run, run

MOMENT_KEYS = {"instance_id", "step", "kind", "answered", "items"}
CONTEXT_KEYS = {"suggestions", "error_solutions", "similar_cases", "warnings", "degraded"}


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    stuck = run([("python reproduce.py", NO_MODULE, 1)] * 8, instance_id="acme__shop-3")
    return write_runs(tmp_path / "runs.jsonl", [recovering_run(2), recovering_run(1), stuck])


def test_replay_prints_each_moment_in_order_and_a_summary(runs: Path) -> None:
    result = call("replay", paths=runs)

    *moments, last = result.records
    assert result.code == 0
    assert all(moment.keys() >= MOMENT_KEYS for moment in moments)
    assert [(m["instance_id"], m["step"], m["kind"]) for m in moments[:4]] == [
        ("acme__shop-1", 0, "start"),
        ("acme__shop-1", 2, "error"),
        ("acme__shop-2", 0, "start"),
        ("acme__shop-2", 2, "error"),
    ]
    assert [moment["answered"] for moment in moments[:4]] == [False, False, True, True]
    assert moments[3]["items"].keys() >= CONTEXT_KEYS
    assert last["summary"]["order"] == "instance_number"
    assert last["summary"]["runs"] == 3
    assert last["summary"]["learned"] == {"created": 3}


def test_replay_warns_of_loops_with_escape_suggestions(runs: Path) -> None:
    result = call("replay", paths=runs)

    first, worse = (moment for moment in result.records[:-1] if moment["kind"] == "loop")
    assert (first["items"]["loop"]["severity"], worse["items"]["loop"]["severity"]) == (
        "repeating",
        "stuck",
    )
    assert first["items"]["escapes"]


def test_replay_into_a_named_store_learns_each_run_once(runs: Path, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    call("replay", paths=runs, memory=store)

    result = call("replay", paths=runs, memory=store)

    assert result.records[-1]["summary"]["learned"] == {"unchanged": 3}


def test_replay_without_a_store_creates_no_memory(runs: Path, tmp_path: Path) -> None:
    call("replay", paths=runs)

    assert contextgraph("stats").code == 1


def test_an_unreadable_record_gives_the_exit_code_for_partly_done(tmp_path: Path) -> None:
    broken = write_runs(tmp_path / "runs.jsonl", [recovering_run(1)], b'{"contextgraph": 1,')

    assert call("replay", paths=broken).code == 3
    assert contextgraph("evaluate", broken, "--split", "0").code == 3


def test_evaluate_prints_one_object_with_configuration_and_figures(
    tmp_path: Path,
) -> None:
    old = write_runs(tmp_path / "old.jsonl", [recovering_run(1)])
    new = write_runs(tmp_path / "new.jsonl", [recovering_run(2)])

    result = contextgraph("evaluate", "--learn", old, "--judge", new, "--json", "--seed", "4")

    (report,) = result.records
    assert result.code == 0
    assert report["config"].keys() >= {"version", "channels", "weights", "gate", "data", "seed"}
    assert report["config"]["seed"] == 4
    assert report["measures"]["clearance@1"]["contextgraph"]["value"] == 1
    assert report["measures"]["clearance@1"]["contextgraph"].keys() == {
        *("value", "low", "high", "count", "runs")
    }
    assert "moments" not in report


def test_evaluate_is_the_same_twice(runs: Path) -> None:
    one, two = (
        contextgraph("evaluate", runs, "--online", "--max-runs", "2", "--json").records[0]
        for _ in range(2)
    )

    assert one["config"].pop("seconds").keys() == two["config"].pop("seconds").keys()
    assert one == two


def test_online_judges_only_repositories_with_enough_runs(tmp_path: Path) -> None:
    single = recovering_run(9, repo="bob/pump", instance_id="bob__pump-9")
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(1), recovering_run(2), single])

    result = contextgraph("evaluate", runs, "--online", "--min-runs", "2", "--json")

    assert result.records[0]["config"]["runs_judged"] == 2


def test_two_reports_with_details_are_compared(tmp_path: Path) -> None:
    old = write_runs(tmp_path / "old.jsonl", [recovering_run(1)])
    new = write_runs(tmp_path / "new.jsonl", [recovering_run(2)])
    before, after = tmp_path / "before.json", tmp_path / "after.json"
    contextgraph("evaluate", "--judge", new, "--details", before)
    contextgraph("evaluate", "--learn", old, "--judge", new, "--details", after)

    result = contextgraph("evaluate", "--compare", before, after, "--json")

    clearance = result.records[0]["contrasts"][0]
    assert (clearance["measure"], clearance["only_first"], clearance["only_second"]) == (
        "clearance@1",
        0,
        1,
    )
    assert "clearance@1" in contextgraph("evaluate", "--compare", before, after).out


@pytest.fixture
def task_only() -> None:
    """A configuration without the channel for errors."""
    file = Path(user_settings_file())
    file.parent.mkdir(parents=True)
    file.write_text('[configurations.task-only]\nchannels = ["task"]\nweights = {task = 0.3}\n')


@pytest.mark.usefixtures("task_only")
def test_two_configurations_are_compared_on_the_same_runs(tmp_path: Path) -> None:
    old = write_runs(tmp_path / "old.jsonl", [recovering_run(1)])
    new = write_runs(tmp_path / "new.jsonl", [recovering_run(2)])
    command = ("evaluate", "--learn", old, "--judge", new, "--compare", "task-only", "default")

    (result,) = contextgraph(*command, "--json").records

    clearance = result["contrasts"][0]
    assert (clearance["measure"], clearance["first"], clearance["second"]) == ("clearance@1", 0, 1)
    configurations = result["configurations"]
    variant, plain = configurations["task-only"], configurations["default"]
    assert (variant["channels"], variant["weights"]) == (["task"], {"task": 0.3})
    assert variant["data"] == plain["data"]
    assert "default against task-only" in contextgraph(*command).out
    assert contextgraph(*command, "--details", tmp_path / "x.json").code == 2


@pytest.mark.usefixtures("task_only")
def test_a_report_names_its_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new = write_runs(tmp_path / "new.jsonl", [recovering_run(2)])
    of = ("--configuration", "task-only", "--json")

    config = contextgraph("evaluate", "--judge", new, *of).records[0]["config"]

    assert (config["configuration"], config["channels"]) == ("task-only", ["task"])
    assert (config["embedder"], config["summarizer"]) == (None, "template/1")
    assert config["gate"]["min_precision"] == Gate().min_precision
    with monkeypatch.context() as changed:
        changed.setenv("CONTEXTGRAPH_CONFIGURATION", "task-only")
        replayed = call("replay", paths=new).records
    assert all(not one["items"].get("error_solutions") for one in replayed[:-1])
    contextgraph("learn", new, "--store", tmp_path / "memory.db")
    error = (
        "query",
        "--repo",
        "acme/shop",
        "--error",
        NO_MODULE,
        "--store",
        tmp_path / "memory.db",
    )
    assert contextgraph(*error, "--json").records[0]["error_solutions"]
    assert not contextgraph(*error, *of).records[0]["error_solutions"]
    unknown = contextgraph("evaluate", "--judge", new, "--configuration", "none")
    assert (unknown.code, "known: default, task-only" in unknown.err) == (1, True)


def test_people_get_a_table_of_figures(tmp_path: Path) -> None:
    new = write_runs(tmp_path / "new.jsonl", [recovering_run(2)])

    summary = contextgraph("evaluate", "--judge", new)
    result = contextgraph("evaluate", "--judge", new, "--figures")

    assert "Steps saved in a run: " in summary.out
    assert "too few to compare methods" in " ".join(summary.out.split())
    assert len(summary.out.splitlines()) <= 12
    assert "clearance@3" in result.out
    assert "bm25 in scope" in result.out


def test_an_evaluation_needs_an_empty_memory(runs: Path, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    contextgraph("learn", runs, "--store", store)

    result = contextgraph("evaluate", runs, "--store", store)

    assert result.code == 2
    assert "3 runs" in result.err


@pytest.mark.parametrize("arguments", [(), ("runs", "--judge", "more")])
def test_an_evaluation_needs_exactly_one_source_of_runs(
    arguments: tuple[str, ...],
) -> None:
    assert contextgraph("evaluate", *arguments).code == 2


def test_plots_without_their_extra_name_the_remedy(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)

    result = contextgraph("evaluate", runs, "--online", "--plot", tmp_path / "plots")

    assert result.code == 1
    assert "contextgraph-memory[plot]" in result.err


def test_plots_are_drawn(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")

    result = contextgraph("evaluate", runs, "--online", "--plot", tmp_path / "plots")

    assert result.code == 0
    assert {path.name for path in (tmp_path / "plots").iterdir()} == {
        "clearance.png",
        "coverage_precision.png",
    }


def test_what_is_shown_is_compared_with_judgements_by_hand(runs: Path, tmp_path: Path) -> None:
    judged = recovering_run(9)
    judging = write_runs(tmp_path / "judged.jsonl", [judged])
    right = {"kind": "set_env", "target": "PYTHONPATH=<source folder>"}
    moment = {
        "run": trajectory_id(judged),
        "instance": judged.instance_id,
        "step": 1,
        "items": [{"patterns": [right], "verdict": "H"}],
    }
    by_hand = tmp_path / "moments.jsonl"
    by_hand.write_bytes(orjson.dumps(moment))
    command = ("evaluate", "--learn", runs, "--judge", judging, "--judged", by_hand)

    measures = contextgraph(*command, "--json").records[0]["measures"]

    found = {name: by["contextgraph"]["value"] for name, by in measures.items() if "hand" in name}
    assert found == {
        "by hand: answered": 1,
        "by hand: answers that helped": 1,
        "by hand: first items that helped": 1,
        "by hand: items that helped": 1,
        "by hand: items that misled": 0,
        "by hand: items not judged": 0,
    }
    by_hand.write_bytes(orjson.dumps({**moment, "items": [{"patterns": [], "verdict": "X"}]}))
    assert (
        f"{by_hand}: line 1: items[0].verdict: Invalid enum value 'X'" in contextgraph(*command).err
    )


def test_a_page_has_the_verdict_the_figures_and_the_tables(runs: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    pages = [tmp_path / "1.html", tmp_path / "2.html"]

    for page in pages:
        contextgraph("evaluate", runs, "--online", "--html", page)

    texts = [page.read_text() for page in pages]
    assert texts[0].count("<svg") == 2
    assert "At errors it is right in 100 % where it speaks" in texts[0]
    assert "<td>clearance@1</td>" in texts[0]
    drawn = [text[text.index("<svg") : text.rindex("</svg>")] for text in texts]
    assert drawn[0] == drawn[1]


def test_details_hold_every_judged_moment(runs: Path, tmp_path: Path) -> None:
    details = tmp_path / "report.json"

    contextgraph("evaluate", runs, "--online", "--details", details)

    moments = orjson.loads(details.read_bytes())["moments"]
    assert {(moment["instance_id"], moment["kind"]) for moment in moments} == {
        (f"acme__shop-{number}", kind) for number in (1, 2, 3) for kind in ("start", "error")
    }


def test_evaluating_a_missing_file_is_an_error(tmp_path: Path) -> None:
    result = contextgraph("evaluate", tmp_path / "nothing.jsonl")

    assert result.code == 1
    assert result.err.endswith("nothing.jsonl: no such file or folder\n")


def test_evaluating_without_a_run_to_judge_by_is_an_error(runs: Path) -> None:
    result = contextgraph("evaluate", runs, "--min-runs", "1000")
    assert (result.code, "no run to judge by" in result.err) == (1, True)


def test_a_report_that_cannot_be_written_is_an_error(tmp_path: Path, runs: Path) -> None:
    details = tmp_path / "missing" / "report.json"

    result = contextgraph("evaluate", runs, "--details", details)

    assert result.code == 1
    assert f"{details} cannot be written" in result.err

"""``contextgraph stats``: of a repository, of a situation, as pictures."""

import sys
from pathlib import Path

import pytest

from contextgraph import Outcome
from contextgraph.model.values import replace
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import NO_MODULE, recovering_run, run


@pytest.fixture
def store(tmp_path: Path) -> Path:
    failing = [("python reproduce.py", NO_MODULE, 1)]
    runs = [run(failing, instance_id=f"acme__shop-{number}") for number in range(2, 4)]
    file = write_runs(tmp_path / "runs.jsonl", [recovering_run(1), *runs])
    contextgraph("learn", file, "--store", tmp_path / "memory.db")
    return tmp_path / "memory.db"


def test_people_see_the_failures_of_a_repository_and_what_prevented_them(store: Path) -> None:
    result = contextgraph("stats", "--store", store, "--repo", "acme/shop")

    assert "Common mistakes in acme/shop" in result.out
    assert "No module named <name>" in result.out
    assert "nothing that two tasks did; 1 task cleared it" in result.out


def test_programs_get_the_common_mistakes_of_a_situation(store: Path) -> None:
    command = ("stats", "--store", store, "--json", "--situation")

    (reproducing,) = contextgraph(*command, "reproducing").records
    (submitting,) = contextgraph(*command, "submitting").records

    (mistake,) = reproducing["common_mistakes"]
    assert (mistake["count"], mistake["cleared"]) == (3, 1)
    assert submitting["common_mistakes"] == []


def test_a_repository_narrows_failures_and_mistakes_and_says_so(store: Path) -> None:
    (everywhere,), (elsewhere,) = (call("stats", store, repo=one).records for one in ("", "a/b"))

    changed = {name for name, value in everywhere.items() if value != elsewhere[name]}
    assert changed == {"failure_patterns", "common_mistakes"}
    said = contextgraph("call", "stats", "--list").out
    assert "Failures and mistakes in this repository" in said
    assert "all else is of the whole memory" in said


def test_for_an_unknown_repository_nothing_is_known(store: Path) -> None:
    result = contextgraph("stats", "--store", store, "--repo", "zoo/lion")

    assert (result.code, result.out.splitlines()[1:]) == (0, ["nothing known in zoo/lion"])


def test_what_people_wrote_stopped_and_denied_is_counted(tmp_path: Path) -> None:
    first, second, third = recovering_run(1).steps
    steps = (
        replace(first, user_message="use the library"),
        replace(second, interrupted=True, user_message="not so"),
        replace(third, denied=True),
    )
    file = write_runs(tmp_path / "runs.jsonl", [recovering_run(1, steps=steps), recovering_run(2)])
    contextgraph("learn", file, "--store", tmp_path / "memory.db")

    arguments = ("stats", "--people", "--store", tmp_path / "memory.db")
    (found,) = contextgraph(*arguments, "--json").records
    shown = contextgraph(*arguments).out

    people = {"messages": 2, "interrupted": 1, "denied": 1, "runs": 1, "total": 2}
    assert found["people"] == people
    assert "People, in 1 of 2 runs" in shown
    assert "tool calls that they denied" in shown


def test_friction_is_what_several_tasks_met_with_its_cost_and_remedies(store: Path) -> None:
    (found,) = call("friction", store).records

    (one,) = found["friction"]
    assert one["error"] == "ModuleNotFoundError: No module named <name>"
    assert (one["tasks"], one["cleared"], one["share_cleared"]) == (3, 1, 0.3333)
    assert one["steps_lost"] == 1
    assert [
        (remedy["tasks"], "PYTHONPATH=lib" in remedy["text"]) for remedy in one["remedies"]
    ] == [(1, True)]
    (of_one,) = call("friction", store, repo="Acme/Shop").records
    assert of_one["friction"] == found["friction"]


def test_stats_say_where_remedies_are_those_of_the_newest_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "memory.db"
    runs = [recovering_run(number) for number in range(4)]
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", runs), "--store", store)
    whole = contextgraph("stats", "--store", store).out
    monkeypatch.setattr("contextgraph.learning.statistics._NEWEST", 3)
    sample = contextgraph("stats", "--store", store).out

    assert "(4 of 4 tasks" in whole
    assert "(3 of the newest 3 tasks" in " ".join(sample.split())


def test_an_error_of_one_task_is_not_friction(store: Path, tmp_path: Path) -> None:
    runs = [recovering_run(1, agent=agent) for agent in ("a", "b")]
    contextgraph("learn", write_runs(tmp_path / "one.jsonl", runs), "--store", tmp_path / "one.db")

    assert call("friction", tmp_path / "one.db").records == [{"repo": None, "friction": []}]


def test_statistics_are_drawn_as_pictures(store: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    result = contextgraph(
        "stats", "--store", store, "--json", "--plot", tmp_path / "new" / "folder"
    )

    names = ["error_frequency.png", "error_transitions.png", "outcomes.png"]
    files = [tmp_path / "new" / "folder" / name for name in names]
    assert result.records[0]["plots"] == [str(file) for file in files]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in files)


def test_a_memory_without_errors_can_be_drawn(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    runs = write_runs(tmp_path / "runs.jsonl", [run([("ls", "README.md", 0)])])
    contextgraph("learn", runs, "--store", tmp_path / "memory.db")

    result = contextgraph("stats", "--store", tmp_path / "memory.db", "--plot", tmp_path)

    assert result.code == 0
    assert (tmp_path / "error_transitions.png").exists()


def test_without_matplotlib_the_error_names_the_install_command(
    store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    result = contextgraph("stats", "--store", store, "--plot", tmp_path / "folder")

    assert result.code == 1
    assert "pip install 'contextgraph-memory[plot]'" in result.err
    assert not (tmp_path / "folder").exists()


def test_stats_answer_in_ten_lines_and_details_have_the_rest(store: Path) -> None:
    brief, whole = (contextgraph("stats", "--store", store, *more) for more in ((), ("--details",)))

    assert len(brief.out.splitlines()) <= 12
    assert "session" in brief.out.splitlines()[1]
    assert "Most frequent errors" not in brief.out
    assert "Most frequent errors" in whole.out


def test_stats_say_where_conditions_are_counted_in_a_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    failing = [("ls", "README.md", 0)]
    edited = [*failing, ("sed -i s/a/b/ README.md", "", 0)]
    runs = [
        run(done, instance_id=f"s-{number}-{outcome}", outcome=outcome)
        for number in range(6)
        for done, outcome in ((failing, Outcome.FAILED), (edited, Outcome.SOLVED))
    ]
    store = tmp_path / "memory.db"
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", runs), "--store", store)
    whole = contextgraph("stats", "--store", store).out
    monkeypatch.setattr("contextgraph.advising.failure.RUNS_READ", 7)
    sample = contextgraph("stats", "--store", store).out

    assert "\ndifferences of few runs may be chance\n" in whole
    assert "\ncounted in a sample of 7 of them; differences of few runs" in sample


def test_stats_count_the_sessions_and_outcomes_that_sessions_lists(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    session = {"session": "5e550003-0000-4000-8000-000000000000", "agent": "claude-code"}
    passed = [("edit", "ok", 0), ("pytest tests", "1 passed in 0.1s", 0)]
    runs = [run(passed, **session), run(passed[:1], **{**session, "agent": "claude-code/subagent"})]
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", runs), "--store", store)
    (listed,) = contextgraph("sessions", "--store", store, "--json").records

    (said,) = contextgraph("stats", "--store", store).out.splitlines()[1:2]
    assert said.startswith(f"1 session of 1 repository: 1 {listed['outcome']}")
    assert listed["is_guess"] is ("(guessed where no log says it)" in said)


def test_friction_lists_what_costs_most_first(tmp_path: Path) -> None:
    missing = "/usr/bin/python: No module named yaml"
    setup = [("python -m yaml.check", missing, 1), *[("ls", "lib", 0)] * 4]
    setup += [
        ("pip install pyyaml", "Successfully installed", 0),
        ("python -m yaml.check", "ok", 0),
    ]
    runs = [run(setup, instance_id=f"acme__shop-{number}") for number in range(3)]
    runs += [recovering_run(number) for number in range(3, 5)]
    contextgraph("learn", write_runs(tmp_path / "r.jsonl", runs), "--store", tmp_path / "m.db")

    (found,) = call("friction", tmp_path / "m.db").records
    first, second = found["friction"]
    assert [one["is_setup"] for one in (first, second)] == [True, False]
    assert first["steps_lost"] > second["steps_lost"]

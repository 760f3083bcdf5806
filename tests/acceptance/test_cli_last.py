"""``contextgraph last``: where a person was."""

from datetime import timedelta
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.agents.hook_files import HookFiles
from contextgraph.config import Settings
from contextgraph.model import Action, RawTrajectory, Step
from contextgraph.model.values import replace
from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import NOON, step

SESSION = "8bda05a6-149b-4fd3-b417-985bf1623e7e"
FAILED = "FAILED tests/test_tariff.py::test_total - assert 3 == 4\n1 failed in 0.1s"


def session(day: int, *steps: Step, agent: str = "claude-code") -> RawTrajectory:
    timed = tuple(
        replace(one, timestamp=NOON + timedelta(days=day, minutes=one.index)) for one in steps
    )
    return RawTrajectory(
        "claude-code",
        f"session-{day}",
        "acme/shop",
        f"Mend the totals of day {day}.",
        timed,
        agent=agent,
        started_at=NOON + timedelta(days=day),
        session=SESSION,
    )


def edit(index: int) -> Step:
    arguments = {"file_path": "shop/tariff.py", "old_string": "3", "new_string": "4"}
    return Step(index, "", Action("Edit", "shop/tariff.py", arguments), "updated")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    failing = replace(step(1, "pytest tests", FAILED), exit_code=1)
    said = replace(step(2, "git diff", "+4"), thought="The total is 4.", user_message="Go on")
    last = replace(step(3, "git status"), thought="Done.\n\nNext I would round the tax.")
    with AgentMemory.open(path) as memory:
        memory.learn([session(1, edit(0), step(1, "pytest tests", "1 passed in 0.1s"))])
        memory.learn([session(2, edit(0), failing, said, last)])
        memory.learn([session(3, step(0, "ls"), agent="claude-code/subagent")])
    return path


def test_the_last_session_says_what_was_done_and_what_is_open(store: Path) -> None:
    (found,) = contextgraph("last", "acme/shop", "--store", store, "--json").records
    assert found["task"] == "Mend the totals of day 2."
    assert found["changed"] == ["shop/tariff.py"]
    assert found["tests"] == {"command": "pytest tests", "passed": False, "edited_since": False}
    assert "assert 3 == 4" in found["open"]
    assert (found["speaker"], found["words"]) == ("agent", "Next I would round the tax.")
    assert found["resume"] == ""
    assert (found["steps"], found["seconds"]) == (4, 180.0)
    assert (found["outcome"], found["is_guess"]) == ("failed", True)
    assert found["reason"] == "the last test failed"


def test_plans_outside_and_points_of_a_list_are_not_what_was_done(tmp_path: Path) -> None:
    plan = replace(edit(1), action=Action("Edit", "e", {"file_path": "/root/.claude/plans/x.md"}))
    said = "Totals are rounded once.\n\n- `tariff.py`: rounded\n\n- `test_tariff.py`: a test"
    done = Step(2, said, Action("", ""))
    with AgentMemory.open(tmp_path / "m.db") as memory:
        memory.learn([replace(session(1, edit(0), plan, done), task="")])
    (found,) = contextgraph("last", "acme/shop", "--store", tmp_path / "m.db", "--json").records
    assert found["changed"] == ["shop/tariff.py"]
    assert found["words"] == "Totals are rounded once."
    assert found["task"] == "session-1"


def test_what_is_announced_is_said_with_it_and_a_pipe_gets_it_whole(tmp_path: Path) -> None:
    first = f"- The tax of each line is rounded by itself, {'as the law has it, ' * 9}once."
    done = Step(1, f"Clean. Summary of changes:\n\n{first}\n\n- A test.", Action("", ""))
    with AgentMemory.open(tmp_path / "m.db") as memory:
        memory.learn([session(1, edit(0), done)])
    shown = contextgraph("last", "acme/shop", "--store", tmp_path / "m.db").out
    assert f"agent: Clean. Summary of changes: {first}" in " ".join(shown.split())


def test_a_person_reads_it_in_six_lines(store: Path) -> None:
    lines = contextgraph("last", "all", "--store", store).out.splitlines()
    names = [line.split()[0] for line in lines]
    assert names == ["task", "done", "open", "tests", "decided", "said"]
    assert "acme/shop: Mend the totals of day 2." in lines[0]
    assert "4 steps in 3 min, failed?: shop/tariff.py" in lines[1]


def test_a_talk_in_which_nothing_was_edited_is_not_solved(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / "m.db") as memory:
        memory.learn([session(1, Step(0, "Totals are rounded once.", Action("", "")))])
    store = tmp_path / "m.db"
    assert "1 step: no file changed" in contextgraph("last", "acme/shop", "--store", store).out
    assert "solved" not in contextgraph("sessions", "--store", store).out
    assert "1 unknown" in contextgraph("stats", "--store", store).out
    (found,) = contextgraph("sessions", "--json", "--store", store).records
    read = contextgraph("inspect", found["id"], "--store", store).out
    assert ("Totals are rounded once." in read, " 0 " in read) == (True, False)


def test_the_task_is_the_line_that_says_something_and_no_decision(tmp_path: Path) -> None:
    rule = "Always keep totals in cents, never in euros."
    said = "No: never round before the discount, always after it."
    run = session(1, edit(0), replace(step(1, "git status"), user_message=said))
    with AgentMemory.open(tmp_path / "m.db") as memory:
        memory.learn([replace(run, task=f"## \n\n{rule}\nMend the totals.")])
    (found,) = contextgraph("last", "acme/shop", "--store", tmp_path / "m.db", "--json").records
    assert (found["task"], found["decided"]) == (rule, [said])


def test_what_was_said_in_each_session_is_decided_in_the_last_one(tmp_path: Path) -> None:
    said = "use pnpm, not npm in this repository"
    sessions = [
        session(day, replace(step(0, "npm test"), user_message=said), edit(1)) for day in (1, 2, 3)
    ]
    with AgentMemory.open(tmp_path / "m.db") as memory:
        memory.learn(sessions)
        names = [node["name"] for node in memory.graph().nodes.values()]
    (found,) = contextgraph("last", "acme/shop", "--store", tmp_path / "m.db", "--json").records
    assert found["decided"] == [said]
    assert said in names
    store = tmp_path / "m.db"
    (lesson,) = contextgraph("lessons", "acme/shop", "--store", store, "--json").records
    inspected = contextgraph("inspect", lesson["id"], "--store", store).out
    assert inspected.splitlines()[0] == said


def test_many_newer_sessions_of_others_do_not_hide_the_own_one(store: Path) -> None:
    with AgentMemory.open(store) as memory:
        others = [
            replace(session(day, step(0, "ls")), session=f"other-{day}") for day in range(10, 32)
        ]
        memory.learn(others, source="archive:team")
    (found,) = contextgraph("last", "acme/shop", "--store", store, "--json").records
    assert found["task"] == "Mend the totals of day 2."


def test_it_is_opened_at_once(store: Path) -> None:
    (found,) = contextgraph("last", "acme/shop", "--store", store, "--json").records
    opened = contextgraph("last", "acme/shop", "--open", "--store", store).out
    assert opened == f"contextgraph inspect {found['id']} --store {store}\n"


def test_an_unknown_repository_is_named(store: Path) -> None:
    result = contextgraph("last", "acme/other", "--store", store)
    assert (result.code, "no session of the repository acme/other" in result.err) == (1, True)


def test_a_session_that_ended_a_minute_ago_is_the_last(store: Path, tmp_path: Path) -> None:
    ended = write_runs(tmp_path / "ended.jsonl", [session(4, edit(0))])
    files = HookFiles(Settings(store=str(store)))
    files.enqueue(str(ended))
    (found,) = contextgraph("last", "acme/shop", "--store", store, "--json").records
    assert found["task"] == "Mend the totals of day 4."
    assert not files.waiting()

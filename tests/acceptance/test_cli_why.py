"""``contextgraph why``: the sessions that made a file, or a line of it, as it is."""

import subprocess
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory
from contextgraph.model import Action, RawTrajectory, Step
from contextgraph.model.values import replace
from tests.acceptance.command_line import contextgraph
from tests.builders import NOON, step

SESSION = "8bda05a6-149b-4fd3-b417-985bf1623e7e"
DECIDED = "No, an export batch in shop/export.py never holds more than 640 rows."
LINES = ("BATCH = 640", "RATE = 3")


def session(day: int, *steps: Step, task: str) -> RawTrajectory:
    start = NOON + timedelta(days=day)
    timed = tuple(
        replace(one, index=index, timestamp=start + timedelta(minutes=index))
        for index, one in enumerate(steps)
    )
    name = f"session-{day}"
    return RawTrajectory(
        "claude-code", name, "acme/shop", task, timed, "claude-code", session=SESSION
    )


def edit(file: str, line: str) -> Step:
    arguments = {"file_path": file, "old_string": "x = 1", "new_string": line}
    return Step(0, "", Action("Edit", file, arguments), "updated")


def git(folder: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=Ada", "-c", "user.email=ada@example.org")
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / "shop").mkdir(parents=True)
    (folder / "shop" / "export.py").write_text("\n".join((*LINES, "", "TOTAL = 5", "")))
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "Cap the batches of an export")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "memory.db"
    file = "/home/ada/shop/shop/export.py"
    asking = replace(step(0, "ls"), user_message=DECIDED)
    with AgentMemory.open(path) as memory:
        memory.learn(
            [
                session(1, asking, edit(file, LINES[0]), task="The partner drops rows."),
                session(2, edit(file, LINES[1]), task="Set the rate."),
                session(3, edit("shop/other.py", LINES[0]), task="Write another export."),
            ]
        )
    return path


def why(store: Path, place: str | Path) -> Mapping[str, Any]:
    arguments: tuple[str | Path, ...] = (
        "why",
        place,
        "--repo",
        "acme/shop",
        "--store",
        store,
        "--json",
    )
    found: Mapping[str, Any] = contextgraph(*arguments).records[0]
    return found


def test_a_file_has_the_sessions_that_changed_it_newest_first(store: Path, checkout: Path) -> None:
    found = why(store, checkout / "shop" / "export.py")
    assert [one["task"] for one in found["changes"]] == ["Set the rate.", "The partner drops rows."]
    assert found["commit"] is None


def test_a_line_has_the_session_that_wrote_it_its_decision_and_its_commit(
    store: Path, checkout: Path
) -> None:
    found = why(store, f"{checkout / 'shop' / 'export.py'}:1")
    (change,) = found["changes"]
    assert found["is_exact"] is True
    assert (change["asked"], change["step"]) == (DECIDED, 1)
    assert change["decided"] == [DECIDED]
    assert change["resume"] == ""
    commit = found["commit"]
    assert (commit["author"], commit["subject"]) == ("Ada", "Cap the batches of an export")

    shown = contextgraph(
        "why", f"{checkout / 'shop' / 'export.py'}:1", "--repo", "acme/shop", "--store", store
    ).out
    assert DECIDED in shown
    assert f"contextgraph inspect {change['id']} --step 1 --store {store}" in shown


@pytest.mark.parametrize("line", [3, 4], ids=["too short", "another"])
def test_a_line_that_no_session_wrote_says_so(store: Path, checkout: Path, line: int) -> None:
    place = f"{checkout / 'shop' / 'export.py'}:{line}"
    shown = contextgraph("why", place, "--repo", "acme/shop", "--store", store).out
    assert "no known session wrote this line as it stands; these changed the file:" in shown
    assert "Set the rate." in shown


def test_a_line_that_does_not_exist_is_named(store: Path, checkout: Path) -> None:
    place = f"{checkout / 'shop' / 'export.py'}:9"
    ended = contextgraph("why", place, "--repo", "acme/shop", "--store", store)
    assert ended.code != 0
    assert "line 9: the file has 4 lines" in ended.err


def test_a_file_that_no_session_changed_is_named(store: Path, checkout: Path) -> None:
    ended = contextgraph("why", "README.md", "--repo", "acme/shop", "--store", store)
    assert ended.code != 0
    assert "no session of acme/shop that is known changed README.md" in ended.err


def test_a_line_that_no_session_is_known_for_still_has_its_commit(
    store: Path, checkout: Path
) -> None:
    (checkout / "shop" / "tax.py").write_text("VAT_RATE = 19\n")
    git(checkout, "add", ".")
    git(checkout, "commit", "-qm", "Add the tax")
    place = f"{checkout / 'shop' / 'tax.py'}:1"
    answer = contextgraph("why", place, "--repo", "acme/shop", "--store", store)
    assert "Add the tax" in answer.out
    assert "no session of acme/shop that is known changed shop/tax.py" in answer.err


def test_the_repository_is_that_of_the_file(store: Path, checkout: Path) -> None:
    git(checkout, "remote", "add", "origin", "https://github.com/acme/shop.git")
    shown = contextgraph("why", checkout / "shop" / "export.py", "--store", store).out
    assert "Set the rate." in shown


def test_a_go_ahead_is_not_what_was_asked(tmp_path: Path, checkout: Path) -> None:
    asked = replace(step(0, "ls"), user_message=DECIDED)
    file = "/home/ada/shop/shop/export.py"
    steps = (asked, replace(edit(file, LINES[0]), user_message="yes"))
    path = tmp_path / "other.db"
    with AgentMemory.open(path) as memory:
        memory.learn([session(1, *steps, task="The partner drops rows.")])
    (change,) = why(path, checkout / "shop" / "export.py")["changes"]
    assert change["asked"] == DECIDED


def test_what_was_said_after_an_edit_is_not_why_it_was_made(tmp_path: Path, checkout: Path) -> None:
    edited = replace(edit("/home/ada/shop/shop/export.py", LINES[0]), user_message=DECIDED)
    path = tmp_path / "other.db"
    with AgentMemory.open(path) as memory:
        memory.learn([session(1, edited, step(0, "ls"), task="The partner drops rows.")])
    (change,) = why(path, checkout / "shop" / "export.py")["changes"]
    assert (change["asked"], change["decided"]) == ("The partner drops rows.", [])


@pytest.mark.parametrize(
    ("place", "said"), [("shop/export.py:0", "line 0"), ("shop", "is a folder; name a file in it")]
)
def test_a_place_that_is_none_is_named(store: Path, checkout: Path, place: str, said: str) -> None:
    answer = contextgraph("why", checkout / place, "--repo", "x/y", "--store", store)
    assert said in answer.err

"""Sessions and figures of one period are the same on every surface."""

import subprocess
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

import orjson
import pytest

from contextgraph import AgentMemory
from contextgraph.model import (
    Exposure,
    LessonStatus,
    RawTrajectory,
    Scope,
    SessionFilter,
    ShownItem,
    steps_text,
)
from contextgraph.model.values import replace
from contextgraph.service.mcp_server import READING, server_of
from contextgraph.service.operations import TokenScope
from tests.acceptance.command_line import call, contextgraph
from tests.builders import NO_MODULE, run, step
from tests.integration.test_mcp_server import connected, text_of
from tests.served import Served, served, signed_in

SLOW = [
    ("python reproduce.py", NO_MODULE, 1),
    *[("ls lib", "", 0)] * 3,
    ("PYTHONPATH=lib python reproduce.py", "total: 12\n", 0),
]
NOW = datetime.now(UTC)


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    """A memory of three sessions, one with a sub-agent, and of advice of this week and before."""
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        for number in (1, 2, 3):
            task = f"Totals of order {number} are wrong"
            known = {"instance_id": f"s-{number}", "session": f"{number}" * 8, "task": task}
            memory.learn(run(SLOW, started_at=NOW, **known))
        helper = run(SLOW[1:4], instance_id="s-1", session="1" * 8, agent="test/subagent")
        memory.learn(helper)
        (error,) = memory.store.recoveries.errors(Scope(), 1)
        for number, helped in enumerate((True, True, None, False)):
            items = (ShownItem(f"frg_{number}", helped=helped),)
            shown_at = NOW - timedelta(days=1 + 30 * (number == 0))
            one = Exposure(f"ctx_{number}", shown_at, error.error.id, helped, items, text="Run it.")
            memory.store.exposures.add([one])
    with served(tmp_path) as found:
        yield found


def test_the_receipt_names_the_command_that_switches_each_line_off(tmp_path: Path) -> None:
    decided = "No, an export batch in shop/export.py never holds more than 640 rows."
    said = replace(step(0, "ls"), user_message=decided)
    store = tmp_path / "memory.db"
    with AgentMemory.open(store) as memory:
        memory.learn(RawTrajectory("test", "s-1", "acme/shop", "Export.", (said,)))
        (lesson,) = memory.lessons.of("acme/shop", status=[*LessonStatus])
        note = memory.remember("The bank wants UTF-8.", repo="acme/shop").id
        items = (ShownItem(lesson.id), ShownItem(note), ShownItem("trj_0"))
        memory.store.exposures.add([Exposure("ctx_0", NOW, items=items, text="Both lines.")])
    shown = contextgraph("receipt", "--store", store).out.splitlines()
    rejects = f"contextgraph lessons --reject {lesson.id}"
    archives = f"contextgraph call notes_change archive={note}"
    commands = [line.split("off: ")[1] for line in shown if "off: " in line]
    assert commands == [rejects, archives]
    assert any(lesson.text in line for line in shown)
    with served(tmp_path) as found:
        page = signed_in(found, TokenScope.ADMIN).get("/pages/advice").text
    for part in (f"/pages/notes/{lesson.id}", f"/pages/notes/{note}"):
        assert f'action="{part}"' in page
    for command in commands:
        assert contextgraph(*command.split()[1:], "--store", store).code == 0
    assert "restore=" in contextgraph("receipt", "--store", store).out


def test_each_line_of_a_start_with_a_pinned_note_is_printed_once(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    commands = [
        ("python -m pytest tests/", "python: No module named pytest", 1),
        ("tox -e orders", "===== 12 passed in 0.31s =====\n", 0),
    ]
    with AgentMemory.open(store) as memory:
        for number in range(3):
            memory.learn(run(commands, instance_id=f"s-{number}", task=f"Task {number}"))
        memory.remember("The bank wants UTF-8.", repo="acme/shop", pinned=True)
        memory.live(repo="acme/shop", task="Totals", session="s-9").start()
    _, shown = contextgraph("receipt", "--store", store).out.split("acme/shop\n")
    lines = [line.strip() for line in shown.splitlines() if line]
    assert lines[::2] == [
        "pinned note: The bank wants UTF-8. (user)",
        "tests run with `tox -e <tests>` (3 of 3)",
        "does not run: `python -m pytest <tests>` (0 of 3)",
    ]
    assert {line.partition("=")[0] for line in lines[1::2]} == {
        "off: contextgraph call quarantine identity"
    }


def test_every_surface_counts_the_same(service: Served, tmp_path: Path) -> None:
    store, since = tmp_path / "memory.db", NOW - timedelta(days=7)
    with AgentMemory.open(store, read_only=True) as memory:
        advice = memory.stats.get_advice(since)
        sessions = memory.sessions(SessionFilter(since=since))
        everything = memory.stats.get_advice()
    assert (advice.shown, everything.shown, len(sessions)) == (3, 4, 3)
    assert 0 < advice.saved <= advice.ceiling == 6

    (receipt,) = contextgraph("receipt", "--store", store, "--json").records
    (called,) = call("advice", store, since="7d").records
    client = service.client(TokenScope.READ)
    sent = client.get("/v1/advice", params={"since": "7d"}).json()
    assert client.get("/v1/advice", params={"until": "0001-01-01"}).json()["shown"] == 0
    expected = {"shown": 3, "followed": 2, "cleared": 1, "steps_saved": round(advice.saved, 1)}
    for figures in (receipt, called, sent):
        assert expected.items() <= figures.items()
        assert figures["ceiling"] == 6
    (evaluated,) = contextgraph("evaluate", "--since", "7d", "--store", store, "--json").records
    assert {name: receipt[name] for name in evaluated if name != "since"} == {
        name: evaluated[name] for name in evaluated if name != "since"
    }
    before = ("--since", "8w", "--until", "7d", "--store", store, "--json")
    for command in ("receipt", "evaluate"):
        (older,) = contextgraph(command, *before).records
        assert (older["shown"], older["cleared"]) == (1, 1)
    refused = contextgraph("evaluate", "runs.jsonl", "--since", "7d", "--store", store)
    assert (refused.code, "leave out runs" in refused.err) == (2, True)
    words = contextgraph("receipt", "--store", store).out.replace("\n", " ")
    said = contextgraph("evaluate", "--since", "7d", "--store", store).out.replace("\n", " ")
    page = unescape(signed_in(service, TokenScope.READ).get("/pages?days=7").text)
    for surface in (words, said, page):
        assert f"{advice.saved_text}" in surface
        assert f"at most {steps_text(advice.ceiling)}" in surface

    listed = contextgraph("sessions", "--store", store, "--json").records
    served_sessions = client.get("/v1/sessions").json()
    assert [one["id"] for one in listed] == [one.id for one in sessions]
    assert served_sessions["sessions"] == listed == call("sessions", store).records
    assert served_sessions["total"] == 3
    assert "3 sessions are known" in page
    assert sum(len(one["agents"]) for one in listed) == 1
    assert {"sessions", "advice"} <= READING.keys()


@pytest.fixture
def met(tmp_path: Path) -> Iterator[Served]:
    """An error that four tasks met and three cleared, in seven runs, one of a sub-agent."""
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        for number, commands, fields in (
            (1, SLOW, {}),
            (1, SLOW[:1], {"agent": "claude-code/subagent", "task": "Look."}),
            (2, SLOW[:2], {}),
            (2, [("cat a", "x", 0), *SLOW], {}),
            (2, [("cat b", "x", 0), *SLOW], {}),
            (3, SLOW, {}),
            (4, SLOW[:3], {}),
        ):
            given = {"agent": "claude-code", "task": f"Mend the totals of {number}", **fields}
            memory.learn(run(commands, instance_id=f"s-{number}", **given))
        memory.consolidate()
    with served(tmp_path) as found:
        yield found


def test_an_error_is_counted_alike_on_every_surface(met: Served, tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    (frictions,) = call("friction", store).records
    (friction,) = frictions["friction"]
    assert (friction["tasks"], friction["cleared"]) == (4, 3)
    (listed,) = contextgraph("stats", "--store", store, "--json").records
    (mistake,) = listed["common_mistakes"]
    assert (mistake["count"], mistake["cleared"]) == (4, 3)
    (explained,) = call("explain", store, identity=friction["error_id"]).records
    assert (explained["facts"]["tasks"], explained["facts"]["cleared"]) == (4, 3)
    (taught,) = call("methodologies", store).records
    assert {(one["support"], one["frequency"]) for one in taught["methodologies"]} == {(3, 4)}
    assert "3 of 3 tasks that cleared it" in taught["methodologies"][0]["strategy"]

    words = contextgraph("stats", "--store", store).out
    assert "4 tasks lost" in words
    here = contextgraph("stats", "--repo", "acme/shop", "--store", store).out
    assert [line.split()[:2] for line in here.splitlines() if "No module" in line] == [["4", "1"]]

    pages = signed_in(met, TokenScope.READ)
    for path in ("/pages", "/pages/repositories?repo=acme/shop"):
        assert "in 4 tasks, cleared in 3" in pages.get(path).text
    for path in ("/pages/errors", "/pages/errors?show=frequent"):
        page = pages.get(path).text
        assert ('"tasks">4<' in page, '"cleared">3<' in page) == (True, True)
    failing = pages.get("/pages/failures").text
    assert ('met it">4<' in failing, 'cleared it">1<' in failing) == (True, True)
    assert "<dd>4; 3 cleared it" in pages.get(f"/pages/errors/{friction['error_id']}").text

    asked = contextgraph("query", NO_MODULE, "--repo", "acme/shop", "--store", store).out
    folder = tmp_path / "shop"
    folder.mkdir()
    for command in (["init", "-q"], ["remote", "add", "origin", "git@github.com:acme/shop.git"]):
        subprocess.run(["git", "-C", folder, *command], check=True)
    event = {
        "session_id": "5f0c",
        "cwd": str(folder),
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": "python reproduce.py"},
        "error": f"Exit code 1\n{NO_MODULE}",
    }
    hooked = contextgraph("hook", "--store", store, stdin=orjson.dumps(event)).out
    with AgentMemory.open(store) as memory, connected(server_of(lambda: memory)) as (_, tool):
        answered = text_of(tool("query_memory", repo="acme/shop", current_error=NO_MODULE))
    for text in (asked, hooked, answered):
        assert "3 of 3 tasks" in text

"""Sessions and figures of one period are the same on every surface."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from pathlib import Path

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
from contextgraph.service.mcp_server import READING
from contextgraph.service.operations import TokenScope
from tests.acceptance.command_line import call, contextgraph
from tests.builders import NO_MODULE, run, step
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


def test_every_surface_counts_the_same(service: Served, tmp_path: Path) -> None:
    store, since = tmp_path / "memory.db", NOW - timedelta(days=7)
    with AgentMemory.open(store, read_only=True) as memory:
        advice = memory.stats.get_advice(since)
        sessions = memory.sessions(SessionFilter(since=since))
        everything = memory.stats.get_advice()
    assert (advice.shown, everything.shown, len(sessions)) == (3, 4, 3)
    assert 0 < advice.saved <= advice.ceiling == 6

    (receipt,) = contextgraph("receipt", "--store", store, "--json").records
    (called,) = call("advice", store, since=since.isoformat()).records
    client = service.client(TokenScope.READ)
    sent = client.get("/v1/advice", params={"since": since.isoformat()}).json()
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

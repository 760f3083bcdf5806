"""``contextgraph search`` opens what it finds."""

import os
import re
from html import unescape
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.model.values import replace
from contextgraph.service.operations import TokenScope
from tests.acceptance.command_line import call, contextgraph, in_terminal, write_runs
from tests.builders import NOON, recovering_run
from tests.served import served, signed_in
from tests.unit.test_readers_sessions import SESSION, Claude, written

ASKED = "why is the batch limited"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a client that writes down how it was called, and without a browser."""
    for name, value in (("HOME", tmp_path), ("XDG_DATA_HOME", tmp_path / "data")):
        monkeypatch.setenv(name, str(value))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    programs = tmp_path / "bin"
    for name, does in (("claude", f'echo "$PWD|$*" > {tmp_path}/called'), ("no", "exit 1")):
        (programs / name).parent.mkdir(exist_ok=True)
        (programs / name).write_text(f"#!/bin/sh\n{does}\n")
        (programs / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setenv("BROWSER", "no")
    return tmp_path


def learned(home: Path, place: Path, session: str = SESSION) -> Path:
    """Learn a session of Claude Code that is in *place*; return the memory."""
    (home / "shop").mkdir()
    log = Claude(session)
    log.user("Why is the batch limited to 500 rows?")
    exported = str(home / "shop" / "export.py")
    log.call("Edit", {"file_path": exported, "old_string": "400", "new_string": "500"}, "updated")
    log.run("make test", "ok")
    log.reply("The importer of the bank refuses more than 500 rows.")
    lines = [{**line, "cwd": str(home / "shop")} for line in log.lines]
    file = written(place / "session.jsonl", lines)
    with AgentMemory.open(home / "memory.db") as memory:
        memory.learn(file)
    return home / "memory.db"


def test_a_session_that_its_client_keeps_goes_on_in_its_folder(home: Path) -> None:
    store = learned(home, home / ".claude" / "projects" / "shop")
    command = f"cd {home}/shop && claude --resume {SESSION}"

    assert contextgraph("search", ASKED, "--open", "--store", store).out == f"{command}\n"
    for limits, is_found in ((("--since", "2000-01-01"), True), (("--until", "2000-01-01"), False)):
        found = contextgraph("search", ASKED, *limits, "--store", store).out
        assert ("limited to 500 rows" in found) == is_found
    (record,) = contextgraph("search", ASKED, "--open", "--store", store, "--json").records
    assert (record["folder"], record["command"]) == (f"{home}/shop", command)
    shown = in_terminal("search", ASKED, "--store", store, answer="1\n")
    assert "Open (1 to 1; Enter: none)" in shown
    assert (home / "called").read_text() == f"{home}/shop|--resume {SESSION}\n"
    opened = in_terminal("search", ASKED, "--open", "--store", store, COLUMNS="40")
    assert command in opened  # to be copied


def test_an_answer_that_is_no_number_opens_nothing(home: Path) -> None:
    store = learned(home, home / ".claude" / "projects" / "shop")
    shown = in_terminal("search", ASKED, "--store", store, answer="q\n")
    assert ("Error" in shown, (home / "called").exists()) == (False, False)
    again = in_terminal("search", ASKED, "--store", store, answer="9\n\n")
    assert "9 is not in the range 1<=x<=1" in again


@pytest.mark.parametrize("missing", ["file", "client", "folder"])
def test_what_no_client_here_can_continue_is_opened_to_read(home: Path, missing: str) -> None:
    kept = home / ".claude" / "projects" / "shop"
    store = learned(home, home / "copies" if missing == "file" else kept)
    if missing == "client":
        (home / "bin" / "claude").unlink()
    elif missing == "folder":
        (home / "shop").rmdir()

    assert "contextgraph inspect" in contextgraph("search", ASKED, "--open", "--store", store).out
    shown = in_terminal("search", ASKED, "--open", "--store", store)
    assert "make test" in shown
    assert not (home / "called").exists()
    page = (home / "data" / "contextgraph" / "session.html").read_text()
    assert "The importer of the bank refuses more than 500 rows." in page


def test_without_words_a_terminal_has_a_full_screen(home: Path) -> None:
    store = learned(home, home / ".claude" / "projects" / "shop")

    def typed(keys: str, term: str = "xterm") -> str:
        return in_terminal("search", "--store", store, answer=keys, TERM=term, LINES="24")

    shown = typed(f"{ASKED}\n\x1b")
    assert "limited to 500 rows?" in shown
    assert "agent: all" in shown
    assert not (home / "called").exists()
    # Tab: only the repository of the session; a word is corrected; Enter opens what is chosen.
    typed(f"{ASKED}xx\x7f\x7f\t\n")
    assert (home / "called").read_text() == f"{home}/shop|--resume {SESSION}\n"
    assert "nothing is known" in typed("zebra\n\x1b")
    assert "has no full screen" in typed("", term="unheard-of")
    refused = contextgraph("search", "--store", store)
    assert (refused.code, "say what you want to know" in refused.err) == (2, True)


def test_nothing_is_opened_unless_it_is_chosen(home: Path) -> None:
    store = learned(home, home / ".claude" / "projects" / "shop")

    assert "contextgraph inspect" not in in_terminal("search", ASKED, "--store", store, answer="\n")
    assert not (home / "called").exists()
    refused = contextgraph("search", ASKED, "--open", "7", "--store", store)
    assert (refused.code, "--open 7: 1 result" in refused.err) == (2, True)


def test_a_note_is_opened_whole(home: Path) -> None:
    store = home / "memory.db"
    text = f"The batch is limited to 500 rows: {'the bank refuses more; ' * 20}ask Ann."
    call("remember", store, content=text)

    assert "ask Ann." in in_terminal("search", ASKED, "--open", "--store", store)


@pytest.mark.parametrize(
    ("asked", "shown"),
    [
        ("in March 2026", "period: 2026-03-01 to 2026-03-31\n"),
        ("on 2026-03-01", "period: 2026-03-01\n"),
        ("since 2026-02", "period: since 2026-02-01\n"),
        ("and the ledger, in 2001", "period: 2001-01-01 to 2001-12-31; nothing is of it\n"),
    ],
)
def test_the_period_that_a_question_names_is_printed(
    tmp_path: Path, asked: str, shown: str
) -> None:
    store = tmp_path / "memory.db"
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(1, started_at=NOON)])
    contextgraph("learn", runs, "--store", store)
    assert shown in contextgraph("search", f"what happened {asked}", "--store", store).out
    assert "period:" not in contextgraph("search", "what happened", "--store", store).out


def test_an_id_in_a_log_is_never_an_option_of_the_client(home: Path) -> None:
    place, option = home / ".claude" / "projects" / "shop", "--dangerously-skip-permissions"
    store = learned(home, place, option)

    command = contextgraph("search", ASKED, "--open", "--store", store).out
    assert command.startswith("contextgraph inspect ")


@pytest.mark.parametrize("command", ["search", "lessons", "stats", "inspect"])
def test_wrong_usage_leaves_an_empty_answer_for_programs(command: str) -> None:
    result = contextgraph(command, "--nope", "--json")
    assert (result.code, result.out) == (2, "{}\n")
    assert "No such option '--nope'" in result.err
    assert contextgraph(command, "--nope").out == ""
    assert contextgraph(command, "--nope", "--", "--json").out == ""


@pytest.mark.parametrize("kept", [True, False])
def test_every_command_opens_a_session_alike(home: Path, kept: bool) -> None:
    store = learned(home, home / ".claude" / "projects" if kept else home / "copies")
    options = ("--store", store)
    (listed,) = contextgraph("sessions", *options, "--json").records
    command = f"cd {home}/shop && claude --resume {SESSION}"
    opened = command if kept else f"contextgraph inspect {listed['id']} --store {store}"
    for one in (("search", ASKED), ("last", "all"), ("sessions",)):
        said = contextgraph(*one, "--open", *options).out
        assert said.replace(" --step 1", "") == f"{opened}\n"
    (last,) = contextgraph("last", "all", *options, "--json").records
    why = ("why", home / "shop" / "export.py", "--repo", listed["repo"], *options)
    (found,) = contextgraph(*why, "--json").records
    resumed = command if kept else ""
    assert {one["resume"] for one in (listed, last, *found["changes"])} == {resumed}
    shown = contextgraph(*why).out
    assert ("claude --resume" in shown, f"inspect {listed['id']}" in shown) == (kept, True)
    with served(home) as service:
        page = unescape(signed_in(service, TokenScope.READ).get(f"/pages/runs/{listed['id']}").text)
    assert (command in page, "claude --resume" in page) == (kept, kept)


def test_every_surface_says_alike_how_a_session_ended(home: Path) -> None:
    store = learned(home, home / ".claude" / "projects")
    (listed,) = contextgraph("sessions", "--store", store, "--json").records
    assert (listed["outcome"], listed["is_guess"]) == ("solved", True)
    for command in (("sessions",), ("last", "all"), ("runs",), ("inspect", listed["id"])):
        assert "solved?" in contextgraph(*command, "--store", store).out
    assert contextgraph("runs", "--outcome", "unknown", "--store", store, "--json").records == []
    with served(home) as service:
        reader = signed_in(service, TokenScope.READ)
        for part in ("runs", "graph"):
            page = reader.get(f"/pages/{part}/{listed['id']}").text
            assert ("solved?" in page, "unknown" in page) == (True, False)


@pytest.mark.parametrize(
    ("option", "name", "known"),
    [
        ("--repo", "local/shpo", "local/shop"),
        ("--agent", "claude", "claude-code"),
        ("--file", "lib/exprt.py", "export.py"),
    ],
)
def test_a_search_names_what_no_session_has_and_what_is_near(
    home: Path, option: str, name: str, known: str
) -> None:
    store = learned(home, home)
    ran = contextgraph("search", ASKED, option, name, "--store", store, "--json")
    assert (ran.code, ran.out) == (0, "")
    (line,) = ran.err.splitlines()
    assert name in line
    assert known in line
    assert contextgraph("search", ASKED, option, known, "--store", store).err == ""


def test_a_repository_is_named_without_its_owner_where_that_is_clear(home: Path) -> None:
    store = learned(home, home)
    with AgentMemory.open(store) as memory:
        (known,) = memory.session_facets().repos
        memory.learn(replace(recovering_run(), repo="acme/mailer"))
    at = ("--store", store)
    asked = (("search", ASKED, "--repo"), ("sessions", "--repo"), ("runs", "--repo"))
    for command in (*asked, ("last",), ("lessons",), ("query", "--task", ASKED, "--repo")):
        named = contextgraph(*command, "Shop", *at)
        assert (named.code, named.err) == (0, "")
        whole = contextgraph(*command, known, *at)
        assert re.sub("ctx_[^>]+", "", named.out) == re.sub("ctx_[^>]+", "", whole.out)
    with AgentMemory.open(store) as memory:
        memory.learn(replace(recovering_run(), repo="bank/shop", instance_id="other"))
    unclear = contextgraph("search", ASKED, "--repo", "shop", *at)
    assert {*unclear.err.split("nearest: ")[1].strip().split(", ")} == {known, "bank/shop"}


@pytest.mark.parametrize("command", [("search", ASKED), ("sessions",)])
def test_a_period_that_ends_before_it_begins_is_refused(command: tuple[str, ...]) -> None:
    result = contextgraph(*command, "--since", "2026-03-02", "--until", "2026-03-01")
    assert result.code == 2
    assert "--since 2026-03-02 00:00 is not before --until 2026-03-01 00:00" in result.err

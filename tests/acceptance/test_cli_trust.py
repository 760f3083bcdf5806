"""Commands in a cloned repository; ``contextgraph trust``."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from contextgraph.config import SETTINGS_FILE
from contextgraph.readers import repository_name
from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import recovering_run

TOKEN = "letmein-letmein"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A checkout of somebody else."""
    folder = tmp_path / "clone"
    folder.mkdir()
    return folder


def _run(clone: Path, *arguments: str, stdin: str = "") -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-P", "-m", "contextgraph", *arguments],
        cwd=clone,
        env={**os.environ, "CONTEXTGRAPH_TOKEN": TOKEN, "CONTEXTGRAPH_NEO4J_PASSWORD": TOKEN},
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize(
    ("command", "stdin", "scheme"),
    [
        (("query", "--error", "ModuleNotFoundError: No module named 'yaml'"), "", "http"),
        (("stats",), "", "bolt"),
        (("hook",), json.dumps({"hook_event_name": "SessionStart", "cwd": "."}), "bolt"),
        (("mcp",), "", "http"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_nothing_is_sent_to_a_server_that_a_clone_names(
    clone: Path, command: tuple[str, ...], stdin: str, scheme: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"{scheme}://127.0.0.1:{server.getsockname()[1]}"
        (clone / SETTINGS_FILE).write_text(f'store = "{address}"\n')

        done = _run(clone, *command, stdin=stdin)

        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert str(clone / SETTINGS_FILE) in done.stderr
    assert "ignored store" in done.stderr
    assert "contextgraph trust" in done.stderr


def test_a_module_of_a_clone_is_not_run_when_a_hook_starts_to_learn(
    clone: Path, tmp_path: Path
) -> None:
    ran, log = tmp_path / "ran", write_runs(tmp_path / "runs.jsonl", [recovering_run()])
    for module in ("contextgraph.py", "click.py", "orjson.py"):
        (clone / module).write_text(f"open({str(ran)!r}, 'w')\n")
    session = {"cwd": str(clone), "session_id": "5f0c"}
    store = ("--store", str(tmp_path / "memory.db"))
    for event in ("SessionEnd", "SessionStart"):
        text = json.dumps({**session, "hook_event_name": event, "transcript_path": str(log)})
        assert _run(clone, "hook", *store, stdin=text).returncode == 0
    assert _run(clone, "learn", "--queued", *store).returncode == 0
    assert not ran.exists()


def test_runs_beside_a_checkout_are_not_of_it(clone: Path, tmp_path: Path) -> None:
    (clone / ".git").mkdir()
    write_runs(tmp_path / "runs.jsonl", [recovering_run(1, session="5f0c"), recovering_run(2)])
    store = ("--store", str(tmp_path / "memory.db"))

    done = _run(clone, "learn", "../runs.jsonl", *store)

    assert (done.returncode, "count for" in done.stderr) == (0, False)
    listed = _run(clone, "sessions", "--json", *store).stdout.splitlines()
    assert {json.loads(line)["repo"] for line in listed} == {"acme/shop"}


def test_a_pipe_in_the_queue_of_hooks_is_not_waited_for(clone: Path, tmp_path: Path) -> None:
    os.mkfifo(pipe := tmp_path / "session.jsonl")
    store = ("--store", str(tmp_path / "memory.db"))
    event = {"hook_event_name": "SessionEnd", "cwd": str(clone), "transcript_path": str(pipe)}
    assert _run(clone, "hook", *store, stdin=json.dumps(event)).returncode == 0
    assert _run(clone, "learn", "--queued", *store).returncode == 0


@pytest.mark.parametrize("trusted", [False, True])
def test_a_folder_does_not_change_what_hooks_keep(
    clone: Path, tmp_path: Path, trusted: bool
) -> None:
    (clone / SETTINGS_FILE).write_text('max_run_size = 1\nnever_learn = "*"\n')
    if trusted:
        assert contextgraph("trust", clone, "--yes").code == 0
    log = write_runs(tmp_path / "runs.jsonl", [recovering_run()])
    store = ("--store", str(tmp_path / "memory.db"))
    event = {"hook_event_name": "SessionEnd", "cwd": str(clone), "transcript_path": str(log)}
    assert _run(clone, "hook", *store, stdin=json.dumps(event)).returncode == 0
    done = _run(clone, "learn", "--queued", "--json", *store)
    assert json.loads(done.stdout.splitlines()[-1])["summary"]["created"] == 1


def test_trust_shows_what_changes_asks_and_lasts_until_the_file_changes(clone: Path) -> None:
    (clone / SETTINGS_FILE).write_text('tenant = "team"\nstore = ":memory:"\n')
    shown = contextgraph("trust", clone)
    assert shown.code == 1
    assert "nothing was trusted; without a terminal, use --yes" in shown.err
    for word in ("tenant", "default", "team", ":memory:"):
        assert word in shown.err
    assert contextgraph("trust", "--list").out == "none\n"

    (record,) = contextgraph("trust", clone, "--yes", "--json").records
    changes = {change["name"]: (change["before"], change["value"]) for change in record["settings"]}
    assert (record["folder"], record["trusted"]) == (str(clone), True)
    assert changes["tenant"] == ("default", "team")
    (listed,) = contextgraph("trust", "--list", "--json").records
    assert listed == {"folder": str(clone), "trusted": True}

    (clone / SETTINGS_FILE).write_text('tenant = "theirs"\n')
    (listed,) = contextgraph("trust", "--list", "--json").records
    assert not listed["trusted"]
    (revoked,) = contextgraph("trust", clone, "--revoke", "--json").records
    assert not revoked["trusted"]
    assert not contextgraph("trust", "--list", "--json").records


def test_a_folder_without_a_settings_file_or_with_a_wrong_one_is_not_trusted(clone: Path) -> None:
    assert "has no contextgraph.toml" in contextgraph("trust", clone).err
    (clone / SETTINGS_FILE).write_text("stroe = 3\n")
    assert "unknown key 'stroe'" in contextgraph("trust", clone, "--yes").err


def test_a_bare_repository_within_a_clone_names_no_other_repository(clone: Path) -> None:
    bare = clone / "vendor"
    subprocess.run(["git", "init", "-q", "--bare", bare], check=True)
    remote = ["config", "remote.origin.url", "git@github.com:bank/core.git"]
    subprocess.run(["git", "-C", bare, *remote], check=True)
    assert repository_name(str(bare)) == "local/vendor"


@pytest.mark.parametrize(
    ("link", "command"),
    [
        ("AGENTS.md", ("export", "AGENTS.md", "--agents-md", "acme/shop")),
        (".claude", ("integrations", "install", "claude-code", "--project")),
    ],
)
def test_nothing_is_written_through_a_link_out_of_a_clone(
    clone: Path, tmp_path: Path, link: str, command: tuple[str, ...]
) -> None:
    store = str(tmp_path / "memory.db")
    learned = [recovering_run(number) for number in range(3)]
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", learned), "--store", store)
    home = tmp_path / "home"
    (home / ".claude").mkdir(parents=True)
    (home / "AGENTS.md").write_text("mine\n")
    (clone / link).symlink_to(home / link)
    result = _run(clone, *command, "--store", store)
    assert result.returncode == 1
    assert "link out of" in result.stderr
    assert (home / "AGENTS.md").read_text() == "mine\n"
    assert not [*(home / ".claude").iterdir()]

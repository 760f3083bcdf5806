"""``contextgraph mcp config``."""

import json
import shlex
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command_line import contextgraph


def configured(client: str, text: str) -> dict[str, Any]:
    """The server in the configuration of *client*, as that client reads it."""
    if client == "codex":
        servers = tomllib.loads(text)["mcp_servers"]
    else:
        servers = json.loads(text)["servers" if client == "vscode" else "mcpServers"]
    found: dict[str, Any] = servers["contextgraph"]
    return found


@pytest.mark.parametrize("client", ["claude-code", "codex", "cursor", "vscode", "generic"])
def test_the_configuration_of_a_client_starts_the_server(client: str, tmp_path: Path) -> None:
    store = tmp_path / 'a "b" c.db'
    result = contextgraph("mcp", "config", "--client", client, "--store", store)
    server = configured(client, result.out)
    assert Path(server["command"]).is_absolute()
    assert server["args"] == ["-P", "-m", "contextgraph", "mcp", "--store", str(store)]
    assert server.get("type") == ("stdio" if client == "vscode" else None)
    assert "This belongs in" in result.err
    assert not store.exists()


def test_a_relative_memory_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    options = ("--client", "claude-code", "--store", "../team.db", "--tenant", "web", "--json")
    (record,) = contextgraph("mcp", "config", *options).records
    named = ["--store", str(tmp_path / "team.db"), "--tenant", "web"]
    assert record["command"][-4:] == named
    assert record["add"] == f"claude mcp add contextgraph -- {shlex.join(record['command'])}"
    assert configured("claude-code", record["configuration"])["args"][-4:] == named


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["mcp", "config", "--client", "emacs"], "claude-code"),
        (["mcp", "--store", "team.db", "config", "--client", "codex"], "after config"),
    ],
)
def test_wrong_usage_is_refused(arguments: list[str], reason: str) -> None:
    result = contextgraph(*arguments)
    assert result.code == 2
    assert reason in result.err

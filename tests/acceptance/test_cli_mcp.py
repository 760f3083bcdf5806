"""``contextgraph call mcp_config``."""

import json
import shlex
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command_line import call


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
    (record,) = call("mcp_config", store, client=client).records
    server = configured(client, record["configuration"])
    assert Path(server["command"]).is_absolute()
    assert server["args"] == ["mcp", "--store", str(store)]
    done = subprocess.run([server["command"], "--version"], capture_output=True, check=True)
    assert done.stdout
    assert server.get("type") == ("stdio" if client == "vscode" else None)
    assert record["file"]
    assert not store.exists()


def test_a_relative_memory_becomes_absolute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    (record,) = call("mcp_config", "../team.db", "--tenant", "web", client="claude-code").records
    named = ["--store", str(tmp_path / "team.db"), "--tenant", "web"]
    assert record["command"][-4:] == named
    assert record["add"] == f"claude mcp add contextgraph -- {shlex.join(record['command'])}"
    assert configured("claude-code", record["configuration"])["args"][-4:] == named


def test_an_unknown_client_is_refused() -> None:
    result = call("mcp_config", client="emacs")
    assert result.code == 2
    assert "claude-code" in result.err

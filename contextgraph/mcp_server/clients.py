"""How MCP clients are configured to start the server."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

NAME = "contextgraph"


@dataclass(frozen=True, slots=True)
class Client:
    """An MCP client: the *file* of its configuration, and the text that it needs there.

    *add* is the command line that writes it, before the command of the server; empty where the
    client has none.
    """

    file: str
    configuration: Callable[[Sequence[str]], str]
    add: str = ""

    def add_command(self, command: Sequence[str]) -> str:
        """The command line that configures the server *command*; empty where there is none."""
        return f"{self.add} -- {shlex.join(command)}" if self.add else ""


def _servers(key: str, **fields: str) -> Callable[[Sequence[str]], str]:
    """A JSON object of servers under *key*, each with *fields*."""

    def configuration(command: Sequence[str]) -> str:
        server = {**fields, "command": command[0], "args": [*command[1:]]}
        return json.dumps({key: {NAME: server}}, indent=2, ensure_ascii=False)

    return configuration


def _toml(command: Sequence[str]) -> str:
    program, arguments = (
        json.dumps(value, ensure_ascii=False) for value in (command[0], [*command[1:]])
    )
    return f"[mcp_servers.{NAME}]\ncommand = {program}\nargs = {arguments}"


CLIENTS: Mapping[str, Client] = {
    "claude-code": Client(
        ".mcp.json in the project", _servers("mcpServers"), f"claude mcp add {NAME}"
    ),
    "codex": Client("~/.codex/config.toml", _toml, f"codex mcp add {NAME}"),
    "cursor": Client(
        "~/.cursor/mcp.json, or .cursor/mcp.json in the project", _servers("mcpServers")
    ),
    "vscode": Client(".vscode/mcp.json in the project", _servers("servers", type="stdio")),
    "generic": Client("the MCP configuration of the client", _servers("mcpServers")),
}

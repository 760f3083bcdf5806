"""``contextgraph mcp``: the memory as a server of the Model Context Protocol."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from contextgraph.cli.options import AsJson, Store, Tenant, open_memory, option, store_address
from contextgraph.cli.output import emit
from contextgraph.mcp_server.clients import CLIENTS

_INSTALL = 'pip install "contextgraph-memory[mcp]"'

app = typer.Typer(name="mcp", invoke_without_command=True)


@app.callback()
def mcp(context: typer.Context, *, store: Store = None, tenant: Tenant = None) -> None:
    """Serve the memory to agents over MCP.

    It reads standard input and writes standard output, until its input ends. An MCP client starts
    it, such as Claude Code, Codex CLI, Cursor or VS Code; `contextgraph mcp config` prints the
    configuration of a client. Needs the extra "mcp".

    \b
    Example:
      contextgraph mcp --store team.db
      contextgraph mcp config --client codex
    """
    if context.invoked_subcommand:
        if store or tenant:
            raise typer.BadParameter(f"give options after {context.invoked_subcommand}")
        return
    try:
        from contextgraph.mcp_server.server import serve
    except ImportError as error:
        from contextgraph.errors import MissingExtraError

        raise MissingExtraError(f"the MCP SDK, mcp 2 or newer, is missing: {_INSTALL}") from error
    with open_memory(store, tenant) as memory:
        serve(memory)


@app.command()
def config(
    client: Annotated[str, option("--client", "NAME", f"The client: {', '.join(CLIENTS)}.")],
    as_json: AsJson = False,
    store: Store = None,
    tenant: Tenant = None,
) -> None:
    """Print the configuration of an MCP client.

    With it the client starts the server; nothing is written. The configuration goes to standard
    output, where it belongs to standard error. User and password of a memory on a server are not
    part of it: set CONTEXTGRAPH_NEO4J_USER and CONTEXTGRAPH_NEO4J_PASSWORD where the client passes
    variables to servers.

    \b
    With --json one object: "client", "file" (where the configuration belongs),
    "configuration" (its text), "add" (the command line that writes it, or null),
    "command" [].

    \b
    Example:
      contextgraph mcp config --client claude-code
      contextgraph mcp config --client cursor --store team.db
    """
    if client not in CLIENTS:
        raise typer.BadParameter(f"--client {client!r} is not one of {', '.join(CLIENTS)}")
    chosen, command = CLIENTS[client], _command(store, tenant)
    text, add = chosen.configuration(command), chosen.add_command(command)
    if as_json:
        emit(
            {
                "client": client,
                "file": chosen.file,
                "configuration": text,
                "add": add or None,
                "command": [*command],
            }
        )
        return
    print(text)
    typer.echo(
        f"\nThis belongs in {chosen.file}." + (f" Or run:\n  {add}" if add else ""), err=True
    )


def _command(store: str | None, tenant: str | None) -> list[str]:
    """What starts the server, wherever the client runs: with absolute paths."""
    address = store_address(store, tenant)
    if "://" not in address and address != ":memory:":
        address = str(Path(address).resolve())
    named = ["--tenant", tenant] if tenant else []
    return [sys.executable, "-m", "contextgraph", "mcp", "--store", address, *named]

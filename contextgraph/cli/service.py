"""``contextgraph serve``, ``token`` and ``mcp``: the memory over HTTP and MCP."""

import json
import secrets
import shlex
import sys
import webbrowser
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import click
from msgspec import Struct, field

from contextgraph.cli.commands import Common, argument, common_options, described, flag, option
from contextgraph.cli.output import emit, fail, warn
from contextgraph.operations import TokenScope
from contextgraph.records import record_of
from contextgraph.values import replace

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.model import Json
    from contextgraph.service.tokens import Token, TokenFile

_NEEDED = ("argon2", "fastapi", "prometheus_client", "uvicorn")
_SERVER_EXTRA = 'pip install "contextgraph-memory[server]"'
_MCP_EXTRA = 'pip install "contextgraph-memory[mcp]"'

GROUPS = {"token": "Make, list and revoke tokens."}

Tokens = Annotated[
    Path | None,
    described(
        "--tokens",
        metavar="FILE",
        help="The file of the tokens.",
        show_default="beside the memory",
    ),
]


@common_options()
def serve(  # noqa: PLR0913  (one parameter per flag)
    common: Common,
    *,
    host: Annotated[str, described(metavar="HOST", help="The address.")] = "127.0.0.1",
    port: Annotated[
        int, described(metavar="PORT", min=0, max=65535, help="The port; 0 for a free one.")
    ] = 8642,
    tokens: Tokens = None,
    no_auth: Annotated[bool, flag("Serve without tokens; on loopback addresses only.")] = False,
    max_upload: Annotated[
        int, described(metavar="MIB", min=1, help="The largest upload of runs.")
    ] = 64,
    rate: Annotated[
        float, described(metavar="N", min=1, help="Requests a second with one token.")
    ] = 500,
    timeout: Annotated[
        float, described(metavar="SECONDS", min=1, help="The longest that a query may take.")
    ] = 30,
    log_level: Annotated[
        Literal["debug", "info", "warning", "error"],
        described(metavar="LEVEL", help="debug, info, warning or error."),
    ] = "info",
) -> None:
    """Serve the memory over HTTP.

    Each request needs a token of `contextgraph token create`; /openapi.json describes all of them.
    Logs on standard error are text in a terminal, else JSON lines. Runs that are being
    learned wait in files, also while a server with the memory cannot be reached. SIGTERM ends it
    when all requests are answered and all runs are learned. Needs the extra "server".

    \b
    Example:
      contextgraph serve --store team.db
      contextgraph serve --store neo4j://localhost:7687 --host 0.0.0.0
      contextgraph serve --no-auth --port 8080
    """
    if no_auth and not _is_loopback(host):
        raise click.BadParameter(f"--no-auth serves anyone: not on {host}, only on 127.0.0.1")
    settings = common.settings()
    if settings.is_service:
        raise click.BadParameter(f"--store: {settings.address} is a service already")
    _need_extra()
    from contextgraph.service.app import serve as run
    from contextgraph.service.service import Limits

    known = None if no_auth else _tokens(settings, tokens)

    def announce(url: str) -> None:
        lines = [f"serving {settings.address} on {url}", f"pages for a browser: {url}/pages"]
        if known is not None:
            command = ["contextgraph", "token", "create", "--store", settings.address]
            command += ["--tokens", str(tokens)] if tokens else []
            first = "another token" if known.all() else "there is no token yet; make one"
            lines.append(f"{first}: {shlex.join(command)}")
        lines.append(f"ask it: CONTEXTGRAPH_TOKEN=… contextgraph query … --store {url}")
        lines.append(f"requests for programs: {url}/pages/api")
        answer = {"url": url, "store": settings.address, "pages": f"{url}/pages"}
        common.answer(answer, lambda: [*map(warn, lines)])

    limits = Limits(upload=max_upload << 20, rate=rate, seconds=timeout)
    run(settings, known, limits, (host, port), log_level=log_level, on_listening=announce)


@common_options()
def view(
    common: Common,
    *,
    port: Annotated[int, option("PORT", "The port.", "any free one", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, flag("Print the address and open no browser.")] = False,
) -> None:
    """Open the console of the memory in a browser.

    Shows what the memory did, runs step by step, errors, repositories, advice, decisions and notes.
    It is served to this machine only, until Ctrl+C. The address opens it once: a second use
    is refused. A memory that is a service is opened at its own address. Needs the extra "server".

    \b
    With --json one object when it listens: "url", "store".

    \b
    Example:
      contextgraph view
      contextgraph view --store team.db --no-browser
    """
    settings = common.settings()
    if settings.is_service:
        url = f"{settings.address}/pages"
        common.answer({"url": url, "store": settings.address}, partial(print, url))
        if not no_browser:
            webbrowser.open(url)
        return
    _need_extra()
    from contextgraph.service.app import serve as run
    from contextgraph.service.routes import LOCAL
    from contextgraph.service.service import Limits
    from contextgraph.service.tokens import TokenFile

    def announce(url: str) -> None:
        address = f"{url}/pages/enter?key={key}"
        answer = {"url": address, "store": settings.address}
        common.answer(answer, partial(print, f"{address}\nCtrl+C ends it.", flush=True))
        if not no_browser:
            webbrowser.open(address)

    with TemporaryDirectory(prefix="contextgraph-") as folder:
        tokens, key = TokenFile(Path(folder) / "tokens.json"), secrets.token_urlsafe(24)
        _, text = tokens.create([TokenScope.ADMIN], settings.tenant, LOCAL)
        run(
            settings,
            tokens,
            Limits(),
            ("127.0.0.1", port),
            log_level="warning",
            on_listening=announce,
            entries={key: text},
        )


@common_options()
def create(
    common: Common,
    *,
    scope: Annotated[
        list[TokenScope] | None,
        option("SCOPE", "read, write or admin (repeatable).", "read, write"),
    ] = None,
    source: Annotated[
        str, described(metavar="NAME", help="Whose it is; runs learned with it name it.")
    ] = "http",
    tokens: Tokens = None,
) -> None:
    """Make a token for the service.

    It is shown once: only a hash is stored. Scopes: read (queries, and what the memory holds),
    write (learning, live runs, outcomes), admin (both, and consolidation, removal, export,
    metrics). A token belongs to one tenant, and sees nothing of others.

    \b
    Example:
      contextgraph token create --source ci --scope write --store team.db
    """
    settings = common.settings()
    _need_extra()
    scopes = scope or [TokenScope.READ, TokenScope.WRITE]
    made, text = _tokens(settings, tokens).create(scopes, settings.tenant, source)
    common.answer({"token": text, **_token_record(made)}, text)
    if not common.as_json:
        warn(f"token {made.id} of {source} for tenant {made.tenant}; it is not shown again")
        warn("use it: CONTEXTGRAPH_TOKEN=… contextgraph query … --store http://HOST:8642")


@common_options(without=("tenant",))
def list_(common: Common, tokens: Tokens = None) -> None:
    """List the tokens of the service.

    \b
    Example:
      contextgraph token list --store team.db
    """
    settings = common.settings()
    _need_extra()
    listed = _tokens(settings, tokens).all()
    rows = (
        (
            token.id,
            " ".join(token.scopes),
            token.tenant,
            token.source,
            f"{token.created_at:%Y-%m-%d}",
        )
        for token in listed
    )
    columns = ("id", "scopes", "tenant", "source", "created")
    empty = "no token; `contextgraph token create` makes one"
    common.answer_rows(map(_token_record, listed), "Tokens", columns, rows, empty=empty)


@common_options(without=("tenant",))
def revoke(
    common: Common,
    identity: Annotated[str, argument("ID", "As `token list` shows it.")],
    tokens: Tokens = None,
) -> None:
    """Revoke a token of the service.

    A running service refuses it from the next request on.

    \b
    Example:
      contextgraph token revoke 5f0c2a4d9e1b --store team.db
    """
    settings = common.settings()
    _need_extra()
    revoked = _tokens(settings, tokens).revoke(identity)
    common.answer({"id": identity, "revoked": revoked}, "revoked" if revoked else "")
    if not revoked:
        fail(f"no token {identity}; `contextgraph token list` lists those there are")


def _tokens(settings: "Settings", path: Path | None) -> "TokenFile":
    from contextgraph.service.tokens import TokenFile

    if settings.is_service and not path:
        raise click.BadParameter(
            f"--store: {settings.address} is a service, whose tokens are beside its store"
        )
    return TokenFile(path) if path else TokenFile.of(replace(settings, tenant="default"))


def _token_record(token: "Token") -> "dict[str, Json]":
    return record_of(token, "hash")


def _need_extra() -> None:
    from importlib.util import find_spec

    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        from contextgraph.errors import MissingExtraError

        raise MissingExtraError(f"the service needs {', '.join(missing)}: {_SERVER_EXTRA}")


def _is_loopback(host: str) -> bool:
    from ipaddress import ip_address

    try:
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


@common_options(without=("as_json",))
def mcp(common: Common) -> None:
    """Serve the memory to agents over MCP.

    It reads standard input and writes standard output, until its input ends. An MCP client starts
    it, such as Claude Code, Codex CLI, Cursor or VS Code; `contextgraph mcp config` prints the
    configuration of a client. Needs the extra "mcp".

    \b
    Example:
      contextgraph mcp --store team.db
      contextgraph mcp config --client codex
    """
    if inner := click.get_current_context().invoked_subcommand:
        if common != Common():
            raise click.BadParameter(f"give options after {inner}")
        return
    try:
        from contextgraph.service.mcp_server import serve
    except ImportError as error:
        from contextgraph.errors import MissingExtraError

        raise MissingExtraError(f"the MCP SDK, mcp 2 or newer, is missing: {_MCP_EXTRA}") from error
    with common.open() as memory:
        serve(memory, common.settings().session)


class _Client(Struct, frozen=True):
    """An MCP client: the *file* of its configuration, and the *key* of servers in it ("": TOML).

    *add* is the command line that writes it, before the command of the server; empty where the
    client has none.
    """

    file: str
    key: str = "mcpServers"
    add: str = ""
    fields: Mapping[str, str] = field(default_factory=dict)

    def configuration(self, command: Sequence[str]) -> str:
        """Return the settings by which the client starts the server *command*."""
        program, *arguments = command
        if self.key:
            server = {**self.fields, "command": program, "args": arguments}
            return json.dumps({self.key: {"contextgraph": server}}, indent=2, ensure_ascii=False)
        values = (json.dumps(value, ensure_ascii=False) for value in (program, arguments))
        return "[mcp_servers.contextgraph]\ncommand = {}\nargs = {}".format(*values)


_CLIENTS: Mapping[str, _Client] = {
    "claude-code": _Client(".mcp.json in the project", add="claude mcp add contextgraph"),
    "codex": _Client("~/.codex/config.toml", "", "codex mcp add contextgraph"),
    "cursor": _Client("~/.cursor/mcp.json, or .cursor/mcp.json in the project"),
    "vscode": _Client(".vscode/mcp.json in the project", "servers", fields={"type": "stdio"}),
    "generic": _Client("the MCP configuration of the client"),
}


@common_options()
def config(
    common: Common,
    client: Annotated[str, option("NAME", f"The client: {', '.join(_CLIENTS)}.")],
) -> None:
    """Print the configuration of an MCP client.

    Nothing is written: the configuration goes to standard output, the name of its file to standard
    error. User and password of a memory on a server are not part of it: set CONTEXTGRAPH_NEO4J_USER
    and CONTEXTGRAPH_NEO4J_PASSWORD where the client passes variables to servers.

    \b
    Example:
      contextgraph mcp config --client claude-code
      contextgraph mcp config --client cursor --store team.db
    """
    if client not in _CLIENTS:
        raise click.BadParameter(f"--client {client!r} is not one of {', '.join(_CLIENTS)}")
    chosen, command = _CLIENTS[client], server_command(common)
    text = chosen.configuration(command)
    add = f"{chosen.add} -- {shlex.join(command)}" if chosen.add else ""
    if common.as_json:
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
    click.echo(
        f"\nThis belongs in {chosen.file}." + (f" Or run:\n  {add}" if add else ""), err=True
    )


def server_command(common: Common) -> list[str]:
    """Return the command that starts the server anywhere: with absolute paths."""
    address = common.settings().address
    if "://" not in address and not common.settings().is_in_memory:
        address = str(Path(address).resolve())
    named = ["--tenant", common.tenant] if common.tenant else []
    return [sys.executable, "-P", "-m", "contextgraph", "mcp", "--store", address, *named]

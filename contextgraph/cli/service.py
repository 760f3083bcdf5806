"""``contextgraph serve``, ``view`` and ``mcp``: the memory over HTTP and MCP."""

import json
import secrets
import shlex
import webbrowser
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Literal

import click
from msgspec import Struct, field

from contextgraph.cli.commands import Common, common_options, described, flag, option
from contextgraph.cli.output import warn
from contextgraph.config import RUNNING_AGENT
from contextgraph.errors import MemoryNotFoundError
from contextgraph.model.values import replace
from contextgraph.service.operations import TokenScope

if TYPE_CHECKING:
    from contextgraph.config import Settings
    from contextgraph.service.tokens import TokenFile

_NEEDED = ("argon2", "fastapi", "prometheus_client", "uvicorn")

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

    Each request needs a token of `contextgraph call token_create`; /openapi.json describes all
    requests. Logs on standard error are text in a terminal, else JSON lines. Runs that are being
    learned wait in files, also while a server with the memory cannot be reached. SIGTERM ends it
    when all requests are answered and all runs are learned. Needs the extra "server".

    \b
    Example:
      contextgraph serve --store team.db
      contextgraph serve --store neo4j://localhost:7687 --host 0.0.0.0
      contextgraph serve --no-auth --port 8080
    """
    from contextgraph.system.remote import is_loopback

    if no_auth and not is_loopback(host):
        raise click.BadParameter(f"--no-auth serves anyone: not on {host}, only on 127.0.0.1")
    settings = common.settings()
    if settings.is_service:
        raise click.BadParameter(f"--store: {settings.address} is a service already")
    _need_extra()
    from contextgraph.console.routes import add_pages
    from contextgraph.service.app import create_app, serve as run
    from contextgraph.service.service import Limits

    known = None if no_auth else token_file(settings, tokens)
    if not settings.is_remote:  # a server may come back later
        with suppress(MemoryNotFoundError), common.open(read_only=True) as memory:
            memory.store.runs.learned("")

    def announce(url: str) -> None:
        lines = [f"serving {settings.address} on {url}", f"pages for a browser: {url}/pages"]
        if known is not None:
            command = ["contextgraph", "call", "token_create", "--store", settings.address]
            command += [f"tokens={tokens}"] if tokens else []
            first = "another token" if known.all() else "there is no token yet; make one"
            lines.append(f"{first}: {shlex.join(command)}")
        lines.append(f"ask it: CONTEXTGRAPH_TOKEN=… contextgraph query … --store {url}")
        lines.append(f"requests for programs: {url}/pages/api")
        answer = {"url": url, "store": settings.address, "pages": f"{url}/pages"}
        common.answer(answer, lambda: [*map(warn, lines)])

    limits = Limits(upload=max_upload << 20, rate=rate, seconds=timeout)
    app = add_pages(create_app(settings, known, limits))
    run(app, (host, port), log_level=log_level, on_listening=announce)


@common_options()
def view(
    common: Common,
    *,
    port: Annotated[int, option("PORT", "The port.", "any free one", min=0, max=65535)] = 0,
    no_browser: Annotated[bool, flag("Print the address and open no browser.")] = False,
) -> None:
    """Open the console of the memory in a browser.

    Shows what the memory did, runs step by step, errors, repositories, advice, lessons and notes.
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
    from contextgraph.console.routes import add_pages
    from contextgraph.service.app import create_app, serve as run
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
        app = add_pages(create_app(settings, tokens, Limits()), {key: text})
        run(app, ("127.0.0.1", port), log_level="warning", on_listening=announce)


def token_file(settings: "Settings", path: Path | None) -> "TokenFile":
    """Return the tokens of the service of a memory, in the file *path* where it is given."""
    if settings.is_service and not path:
        raise click.BadParameter(
            f"--store: {settings.address} is a service, whose tokens are beside its store"
        )
    _need_extra()
    from contextgraph.service.tokens import TokenFile

    return TokenFile(path) if path else TokenFile.of(replace(settings, tenant="default"))


def _need_extra() -> None:
    from importlib.util import find_spec

    if missing := [name for name in _NEEDED if find_spec(name) is None]:
        from contextgraph.errors import MissingExtraError

        raise MissingExtraError(f"the service needs {', '.join(missing)}", "server")


@common_options(without=("as_json",))
def mcp(common: Common) -> None:
    """Serve the memory to agents over MCP.

    It reads standard input and writes standard output, until its input ends. An MCP client starts
    it, such as Claude Code, Codex CLI, Cursor or VS Code; `contextgraph call mcp_config` prints the
    configuration of a client. Needs the extra "mcp".

    \b
    Example:
      contextgraph mcp --store team.db
    """
    try:
        from contextgraph.service.mcp_server import serve
    except ImportError as error:
        from contextgraph.errors import MissingExtraError

        raise MissingExtraError("the MCP SDK, mcp 2 or newer, is missing", "mcp") from error
    with common.open() as memory:
        settings = common.settings()
        serve(memory, settings.session, distils=settings.distil == RUNNING_AGENT)


class McpClient(Struct, frozen=True):
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

    def add_command(self, command: Sequence[str]) -> str:
        """Return the command line that writes the configuration; empty where there is none."""
        return f"{self.add} -- {shlex.join(command)}" if self.add else ""


CLIENTS: Mapping[str, McpClient] = {
    "claude-code": McpClient(".mcp.json in the project", add="claude mcp add contextgraph"),
    "codex": McpClient("~/.codex/config.toml", "", "codex mcp add contextgraph"),
    "cursor": McpClient("~/.cursor/mcp.json, or .cursor/mcp.json in the project"),
    "vscode": McpClient(".vscode/mcp.json in the project", "servers", fields={"type": "stdio"}),
    "generic": McpClient("the MCP configuration of the client"),
}


def server_command(settings: "Settings") -> list[str]:
    """Return the command that starts the server anywhere, by the launcher in the data folder."""
    from contextgraph.agents.install import launcher
    from contextgraph.config import data_folder

    address = settings.address
    if "://" not in address and not settings.is_in_memory:
        address = str(Path(address).resolve())
    named = ["--tenant", settings.tenant] if settings.tenant != "default" else []
    return [str(launcher(Path(data_folder()))), "mcp", "--store", address, *named]

"""scripts/neo4j: real Neo4j servers on this machine, loopback only."""

import argparse
import json
import re
import sys
import time

from scripts.neo4j_local.life import ServerRequest, running, start, stop
from scripts.neo4j_local.record import Server, all_records
from scripts.neo4j_local.release import DEFAULT, PINNED, UnavailableError, release

SOURCES = ("docker", "maven")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def main() -> int:
    """Run the command; 1 where no server can be started, or there is none to stop."""
    arguments = _parser().parse_args()
    try:
        done: int = arguments.run(arguments)
    except UnavailableError as error:
        print(error, file=sys.stderr)
        return 1
    return done


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/neo4j", description=__doc__)
    commands = parser.add_subparsers(required=True, metavar="start|stop|status")
    starting = commands.add_parser("start", help="start one, wait until it answers, print where")
    starting.set_defaults(run=_start)
    starting.add_argument("--version", default=DEFAULT, help=f"{', '.join(PINNED)}, or a full one")
    starting.add_argument(
        "--from",
        dest="source",
        choices=SOURCES,
        default="",
        help="default: docker where it answers, else maven",
    )
    starting.add_argument("--heap", default="512m", help="memory of the server (512m)")
    starting.add_argument("--browser", action="store_true", help="serve Neo4j Browser (5.26)")
    starting.add_argument(
        "--setting",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="of neo4j.conf; may be repeated",
    )
    starting.add_argument(
        "--owner", type=int, default=0, help="stop the server after this process has ended"
    )
    stopping = commands.add_parser("stop", help="stop it and delete its data")
    stopping.set_defaults(run=_stop)
    stopping.add_argument("--keep", action="store_true", help="keep data, ports and password")
    stopping.add_argument("--all", action="store_true", help="stop all")
    for command in (starting, stopping):
        command.add_argument("--name", type=_name, default="default", help="for several at once")
    status = commands.add_parser("status", help="list running servers")
    status.set_defaults(run=_status)
    for command in (starting, status):
        command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _name(text: str) -> str:
    if not NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r}: letters, digits, '.', '_' and '-' only")
    return text


def _start(arguments: argparse.Namespace) -> int:
    began = time.monotonic()
    server = start(
        ServerRequest(
            release(arguments.version),
            arguments.name,
            arguments.source,
            browser=arguments.browser,
            heap=arguments.heap,
            settings=dict(setting.split("=", 1) for setting in arguments.setting),
            owner=arguments.owner,
        )
    )
    took = time.monotonic() - began
    print(f"neo4j {server.version} answers, after {took:.1f} s", file=sys.stderr)
    print(json.dumps(_record(server)) if arguments.json else _settings(server))
    return 0


def _stop(arguments: argparse.Namespace) -> int:
    servers = [server for server in all_records() if arguments.all or server.name == arguments.name]
    for server in servers:
        stop(server, keep=arguments.keep)
    if not servers and not arguments.all:
        print(f"there is no server called {arguments.name}", file=sys.stderr)
        return 1
    return 0


def _status(arguments: argparse.Namespace) -> int:
    servers = running()
    if arguments.json:
        print(json.dumps([_record(server) for server in servers]))
        return 0
    for server in servers:
        print(f"{server.name}: neo4j {server.version} at {server.uri}")
    if not servers:
        print("no server runs")
    return 0


def _record(server: Server) -> dict[str, str | int]:
    """The JSON object of *server*."""
    return {
        "name": server.name,
        "version": server.version,
        "uri": server.uri,
        "user": server.user,
        "password": server.password,
        "http": server.http,
        "pid": server.pid,
        "container": server.container,
    }


def _settings(server: Server) -> str:
    """Lines for ``eval``."""
    settings = {
        "CONTEXTGRAPH_STORE": server.uri,
        "CONTEXTGRAPH_NEO4J_USER": server.user,
        "CONTEXTGRAPH_NEO4J_PASSWORD": server.password,
    }
    browser = [f"# Neo4j Browser: {server.http}"] if server.http else []
    return "\n".join([*(f"export {name}={value}" for name, value in settings.items()), *browser])


if __name__ == "__main__":
    sys.exit(main())

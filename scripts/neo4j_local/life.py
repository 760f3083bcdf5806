"""Starting, stopping and finding servers."""

import logging
import os
import secrets
import shutil
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path

from scripts.neo4j_local import container, process
from scripts.neo4j_local.jars import locked
from scripts.neo4j_local.record import (
    Server,
    all_records,
    read_record,
    servers_folder,
    write_record,
)
from scripts.neo4j_local.release import Release, UnavailableError

FACTORY_PASSWORD = "neo4j"
STARTS_WITHIN = 120.0  # seconds


@dataclass(frozen=True, slots=True)
class Wanted:
    """A server that is to run, by *name*.

    *source* is ``docker``, ``maven``, or empty for whichever there is; *heap* is its memory, as
    Java writes it; *owner* a process at whose end it is of no use any more, 0 for none.
    """

    release: Release
    name: str
    source: str
    browser: bool
    heap: str
    owner: int


def start(wanted: Wanted) -> Server:
    """A running server that answers queries: the one of this name that runs already, if any.

    Where one of this name was stopped and its data kept, it has its data, ports and password.
    Raises `UnavailableError` where none can be had.
    """
    _sweep()
    with locked(servers_folder() / f"{wanted.name}.lock"):
        earlier = read_record(wanted.name)
        if earlier and runs(earlier):
            return earlier
        server = replace(_started(wanted, earlier), owner=wanted.owner)
        write_record(server)
        _wait(server)
        return server


def stop(server: Server, *, keep: bool) -> None:
    """Stop *server*; delete its data unless *keep*."""
    with locked(servers_folder() / f"{server.name}.lock"):
        _end(server, keep=keep)
        if not keep:
            shutil.rmtree(server.home, ignore_errors=True)


def running() -> list[Server]:
    """All servers that run now, by name."""
    _sweep()
    return [server for server in all_records() if runs(server)]


def runs(server: Server) -> bool:
    """True while *server* runs."""
    return container.is_running(server) if server.container else process.is_running(server)


def _started(wanted: Wanted, earlier: Server | None) -> Server:
    if earlier and earlier.container:
        container.start_again(earlier)
        return earlier
    password = earlier.password if earlier else _new_password()
    source = "maven" if earlier else wanted.source
    has_engine = source != "maven" and container.engine_answers()
    if source == "docker" and not has_engine:
        raise UnavailableError("no Docker engine answers; see DOCKER_HOST")
    if has_engine:
        try:
            return container.start(
                wanted.release, wanted.name, password, browser=wanted.browser, heap=wanted.heap
            )
        except UnavailableError as error:
            if source:
                raise
            print(f"{error}; made from Maven artifacts instead", file=sys.stderr)
    server = process.start(
        wanted.release, wanted.name, earlier=earlier, browser=wanted.browser, heap=wanted.heap
    )
    return replace(server, password=password)


def _end(server: Server, *, keep: bool) -> None:
    if server.container:
        container.stop(server, keep=keep)
    else:
        process.stop(server, gently=keep)


def _sweep() -> None:
    """Stop what was left running by owners that were killed."""
    for server in all_records():
        if server.owner and not Path(f"/proc/{server.owner}").exists():
            stop(server, keep=False)


def _new_password() -> str:
    return os.environ.get("NEO4J_PASSWORD") or secrets.token_hex(12)


def _wait(server: Server) -> None:
    """Return when *server* answers a query; set its password if it is new."""
    deadline = time.monotonic() + STARTS_WITHIN
    logging.getLogger("neo4j").setLevel(logging.CRITICAL)  # it does not answer at first
    while not _answers(server):
        if runs(server) and time.monotonic() < deadline:
            time.sleep(0.2)
            continue
        said = (container if server.container else process).last_words(server)
        _end(server, keep=False)
        raise UnavailableError(f"neo4j {server.version} did not start: {said}")


def _answers(server: Server) -> bool:
    from neo4j import GraphDatabase
    from neo4j.exceptions import AuthError, ServiceUnavailable, SessionExpired, TransientError

    try:
        with GraphDatabase.driver(server.uri, auth=(server.user, server.password)) as driver:
            driver.execute_query("RETURN 1", database_="neo4j")
    except (ServiceUnavailable, SessionExpired, TransientError):
        return False
    except AuthError:
        _set_password(server)
        return False
    return True


def _set_password(server: Server) -> None:
    from neo4j import GraphDatabase

    with GraphDatabase.driver(server.uri, auth=(server.user, FACTORY_PASSWORD)) as driver:
        driver.execute_query(
            "ALTER CURRENT USER SET PASSWORD FROM $old TO $new",
            old=FACTORY_PASSWORD,
            new=server.password,
            database_="system",
        )

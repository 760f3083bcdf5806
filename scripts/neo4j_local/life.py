"""Starting, stopping and finding servers."""

import logging
import os
import secrets
import shutil
import time
from dataclasses import replace
from pathlib import Path

from scripts.neo4j_local.jars import locked
from scripts.neo4j_local.process import is_ours, last_words, start_process, stop_process
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


def start(release: Release, name: str, *, browser: bool, heap: str, owner: int) -> Server:
    """A running server called *name* that answers queries; the one that runs already, if any.

    Where one of this name was stopped and its data kept, the new one has its data, ports and
    password. Raises `UnavailableError` where none can be had.
    """
    _sweep()
    with locked(servers_folder() / f"{name}.lock"):
        earlier = read_record(name)
        if earlier and is_ours(earlier):
            return earlier
        password = earlier.password if earlier else _new_password()
        server = start_process(release, name, earlier=earlier, browser=browser, heap=heap)
        server = replace(server, password=password, owner=owner)
        write_record(server)
        _wait(server)
        return server


def stop(server: Server, *, keep: bool) -> None:
    """Stop *server*; delete its data unless *keep*."""
    with locked(servers_folder() / f"{server.name}.lock"):
        stop_process(server, gently=keep)
        if not keep and server.home.exists():
            shutil.rmtree(server.home)


def running() -> list[Server]:
    """All servers that run now, by name."""
    _sweep()
    return [server for server in all_records() if is_ours(server)]


def _sweep() -> None:
    """Stop what was left running by owners that were killed."""
    for server in all_records():
        if server.owner and not Path(f"/proc/{server.owner}").exists():
            stop(server, keep=False)


def _new_password() -> str:
    return os.environ.get("NEO4J_PASSWORD") or secrets.token_urlsafe(12)


def _wait(server: Server) -> None:
    """Return when *server* answers a query; set its password if it is new."""
    deadline = time.monotonic() + STARTS_WITHIN
    logging.getLogger("neo4j").setLevel(logging.CRITICAL)  # it does not answer at first
    while not _answers(server):
        if is_ours(server) and time.monotonic() < deadline:
            time.sleep(0.2)
            continue
        said = last_words(server)
        stop_process(server, gently=False)
        raise UnavailableError(f"neo4j {server.version} did not start: {said}")


def _answers(server: Server) -> bool:
    from neo4j import GraphDatabase
    from neo4j.exceptions import AuthError, ServiceUnavailable, TransientError

    try:
        with GraphDatabase.driver(server.uri, auth=(server.user, server.password)) as driver:
            driver.execute_query("RETURN 1", database_="neo4j")
    except (ServiceUnavailable, TransientError):
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

"""Starting, stopping and finding servers."""

import logging
import os
import secrets
import shutil
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import LiteralString, NoReturn

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
STARTS_WITHIN = 300.0  # seconds: five on a quiet machine, a hundred with a third of a core


@dataclass(frozen=True, slots=True)
class ServerRequest:
    """A server to start, by *name*.

    *source* is ``docker``, ``maven``, or empty for the first that is available; *heap* is its
    memory in Java's notation, *settings* are more of neo4j.conf; the server is stopped after the
    process *owner* has ended (0: never).
    """

    release: Release
    name: str
    source: str
    browser: bool
    heap: str
    settings: Mapping[str, str]
    owner: int


def start(request: ServerRequest) -> Server:
    """A running server that answers queries: the one of this name, if it runs already.

    One that was stopped with ``--keep`` has its former data, ports and password.
    Raises `UnavailableError` where none can be started.
    """
    _sweep()
    with locked(servers_folder() / f"{request.name}.lock"):
        earlier = read_record(request.name)
        if earlier and runs(earlier):
            return earlier
        server = replace(_started(request, earlier), owner=request.owner)
        write_record(server)
        wait(server, keep=earlier is not None)
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


def wait(server: Server, *, keep: bool) -> None:
    """Return when *server* answers a query; set its password if it is new.

    Raises `UnavailableError` where it ends or takes too long; it is then stopped, and its data
    deleted unless *keep*.
    """
    deadline = time.monotonic() + STARTS_WITHIN
    logging.getLogger("neo4j").setLevel(logging.CRITICAL)  # it does not answer at first
    while refusal := _refusal(server):
        if not runs(server):
            output = (container if server.container else process).last_output(server)
            _give_up(server, f"ended instead of starting: {output}", keep=keep)
        if time.monotonic() > deadline:
            waited = f"did not answer within {STARTS_WITHIN:.0f} s, {_load()}"
            _give_up(server, f"{waited}; at last: {refusal.reason}", keep=keep)
        time.sleep(refusal.pause)


def _started(request: ServerRequest, earlier: Server | None) -> Server:
    if earlier and earlier.container:
        container.start_again(earlier)
        return earlier
    password = earlier.password if earlier else _new_password()
    source = "maven" if earlier else request.source
    has_engine = source != "maven" and container.engine_answers()
    if source == "docker" and not has_engine:
        raise UnavailableError("no Docker engine answers; see DOCKER_HOST")
    if has_engine:
        try:
            return container.start(
                request.release,
                request.name,
                password,
                browser=request.browser,
                heap=request.heap,
                more=request.settings,
            )
        except UnavailableError as error:
            if source:
                raise
            print(f"{error}; made from Maven artifacts instead", file=sys.stderr)
    server = process.start(
        request.release,
        request.name,
        earlier=earlier,
        browser=request.browser,
        heap=request.heap,
        more=request.settings,
    )
    return replace(server, password=password)


def _end(server: Server, *, keep: bool) -> None:
    if server.container:
        container.stop(server, keep=keep)
    else:
        process.stop(server, gently=keep)


def _sweep() -> None:
    """Stop servers whose owner has ended without stopping them."""
    for server in all_records():
        if server.owner and not Path(f"/proc/{server.owner}").exists():
            stop(server, keep=False)


def _new_password() -> str:
    return os.environ.get("NEO4J_PASSWORD") or secrets.token_hex(12)


def _give_up(server: Server, why: str, *, keep: bool) -> NoReturn:
    _end(server, keep=keep)
    raise UnavailableError(f"neo4j {server.version} {why}")


def _load() -> str:
    return f"on a machine of {os.cpu_count()} cores with a load of {os.getloadavg()[0]:.1f}"


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a server does not answer yet, and after how many seconds to retry."""

    reason: str
    pause: float = 0.2


def _refusal(server: Server) -> _Refusal | None:
    """Why *server* does not answer queries yet; None where it does."""
    from neo4j.exceptions import AuthError, DriverError, Neo4jError

    try:
        _run(server, server.password, "RETURN 1", "neo4j")
    except AuthError:
        return _password_refusal(server)
    except (DriverError, Neo4jError) as error:
        return _Refusal(_in_one_line(error))
    return None


def _password_refusal(server: Server) -> _Refusal:
    """Set the password of a *server* that still has the default one.

    A refusal means that the server has no users yet, or that the change succeeded and its answer
    was lost. After three refusals the server refuses every login for five seconds.
    """
    from neo4j.exceptions import DriverError, Neo4jError

    change = "ALTER CURRENT USER SET PASSWORD FROM $old TO $new"
    try:
        _run(server, FACTORY_PASSWORD, change, "system", old=FACTORY_PASSWORD, new=server.password)
    except (DriverError, Neo4jError) as error:
        return _Refusal(f"its password could not be set: {_in_one_line(error)}", pause=6.0)
    return _Refusal("its password was set just now", pause=0.0)


def _run(
    server: Server, password: str, text: LiteralString, database: str, **parameters: str
) -> None:
    """Run *text* once: `wait` retries, so the driver does not."""
    from neo4j import GraphDatabase

    auth = (server.user, password)
    with GraphDatabase.driver(server.uri, auth=auth, max_transaction_retry_time=0) as driver:
        driver.execute_query(text, parameters, database_=database)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())

"""`scripts/neo4j`: the servers that tests and developers get."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from neo4j import GraphDatabase
from neo4j.exceptions import AuthError

from contextgraph import AgentMemory
from contextgraph.errors import StoreUnavailableError
from contextgraph.model.values import replace
from contextgraph.store.neo4j import Neo4jStore
from scripts.neo4j_local import life
from scripts.neo4j_local.process import free_port
from scripts.neo4j_local.record import Server
from scripts.neo4j_local.release import UnavailableError
from tests.builders import recovering_run
from tests.made_bundles import made_bundle
from tests.server import ENVIRONMENT, JAVA, SCRIPT, Neo4jServer


def script(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SCRIPT, *arguments], env=JAVA | ENVIRONMENT, capture_output=True, text=True, check=False
    )


def test_a_server_answers_and_wants_its_password(neo4j: Neo4jServer) -> None:
    with GraphDatabase.driver(neo4j.uri, auth=neo4j.auth) as driver:
        driver.execute_query("CREATE (:Probe)", database_="neo4j")
        assert not neo4j.is_empty()
    with (
        GraphDatabase.driver(neo4j.uri, auth=("neo4j", "guessed")) as driver,
        pytest.raises(AuthError),
    ):
        driver.verify_connectivity()


def test_each_test_gets_an_empty_database(neo4j: Neo4jServer) -> None:
    with GraphDatabase.driver(neo4j.uri, auth=neo4j.auth) as driver:
        driver.execute_query("CREATE CONSTRAINT one FOR (n:Probe) REQUIRE n.id IS UNIQUE")
        driver.execute_query("CREATE (:Probe {id: 1})")
        neo4j.empty()
        left = driver.execute_query("SHOW INDEXES YIELD type WHERE type <> 'LOOKUP'").records
        assert left == []
    assert neo4j.is_empty()


def test_a_server_keeps_its_data_and_goes_with_its_owner(neo4j_server: Neo4jServer) -> None:
    """Beside the server of the session: several run at once, each with a name.

    A memory that was opened before goes on with the server that was started again.
    """
    name = f"kept-{os.getpid()}"
    owner = subprocess.Popen(["sleep", "600"])
    start = ("start", "--json", "--name", name, "--owner", str(owner.pid))
    try:
        first = json.loads(script(*start).stdout)
        memory = AgentMemory.open(first["uri"], auth=(first["user"], first["password"]))
        memory.learn(recovering_run(1))
        assert script("stop", "--name", name, "--keep").returncode == 0
        assert name not in script("status").stdout
        with pytest.raises(StoreUnavailableError, match="cannot be reached"):
            memory.learn(recovering_run(2))
        again = json.loads(script(*start).stdout)
        assert (again["uri"], again["password"]) == (first["uri"], first["password"])
        assert memory.learn(recovering_run(2)).status == "created"
        assert len(memory.store.runs.ids()) == 2
        memory.close()
        assert f"{name}: neo4j {again['version']} at {first['uri']}" in script("status").stdout
    finally:
        owner.kill()
        owner.wait()
    assert name not in script("status").stdout
    assert script("stop", "--name", name).returncode == 1


def test_a_server_in_a_container_takes_a_memory() -> None:
    name = f"contained-{os.getpid()}"
    result = script("start", "--json", "--from", "docker", "--name", name)
    if result.stderr.startswith("no Docker engine answers"):
        pytest.skip(result.stderr)
    try:
        found = json.loads(result.stdout)
        store = Neo4jStore(found["uri"], (found["user"], found["password"]))
        store.runs.add([made_bundle(1)])
        assert len(store.runs.ids()) == 1
        store.close()
    finally:
        script("stop", "--name", name)
    assert name not in script("status").stdout


def test_what_is_missing_is_said_in_one_line() -> None:
    result = script("start", "--version", "5.27")
    assert result.returncode == 1
    assert result.stderr == "neo4j 5.27: not a version; known: 5.26, 2026.09, or a full one\n"


@pytest.fixture
def starting(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Server]:
    """A server that does not answer yet: a process that does what the test says instead."""
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_CACHE", str(tmp_path))
    mute = Server("mute", "5.26.31", "", "neo4j", "secret", "", pid=0, container="", owner=0)
    (mute.home / "logs").mkdir(parents=True)
    with (mute.home / "logs" / "console.log").open("w") as log:
        command = [sys.executable, "-c", request.param, f"--home-dir={mute.home}"]
        process = subprocess.Popen(command, stdout=log, stderr=log)
    uri = f"bolt://127.0.0.1:{free_port()}"
    try:
        yield replace(mute, uri=uri, pid=process.pid)
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize("starting", ["import time; time.sleep(60)"], indirect=True)
def test_a_server_that_takes_too_long_is_ended_and_the_last_refusal_reported(
    starting: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(life, "STARTS_WITHIN", 0.5)

    with pytest.raises(UnavailableError, match=r"within 0 s, on a .* at last: Couldn't connect"):
        life.wait(starting, keep=False)

    assert not life.runs(starting)


@pytest.mark.parametrize("starting", ["raise OSError('Address already in use')"], indirect=True)
def test_a_server_that_ends_instead_of_starting_has_the_last_word(starting: Server) -> None:
    with pytest.raises(UnavailableError, match="ended instead of starting: OSError: Address alre"):
        life.wait(starting, keep=False)

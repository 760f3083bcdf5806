"""A Neo4j server for the tests: the one that the environment names, or one started for them."""

import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

SCRIPT = Path(__file__).parents[1] / "scripts" / "neo4j"
ENVIRONMENT = dict(os.environ)  # as it was before each test got a home of its own
GIVEN = "CONTEXTGRAPH_TEST_NEO4J"  # bolt://user:password@host:port, of an empty database
VERSION = "CONTEXTGRAPH_TEST_NEO4J_VERSION"
MISSING = pytest.StashKey[str]()


@dataclass(frozen=True, slots=True)
class Neo4jServer:
    """Where the server is and who may use it; its database belongs to the tests."""

    uri: str
    auth: tuple[str, str] = field(repr=False)

    def empty(self) -> None:
        """Delete all that is in the database, its indexes and constraints as well."""
        from neo4j import GraphDatabase

        self.forget()
        with GraphDatabase.driver(self.uri, auth=self.auth) as driver:
            for kind, kinds in (("CONSTRAINT", "CONSTRAINTS"), ("INDEX", "INDEXES")):
                shown = f"SHOW {kinds} YIELD name, type WHERE type <> 'LOOKUP' RETURN name"
                for found in driver.execute_query(shown, database_="neo4j").records:
                    driver.execute_query(f"DROP {kind} `{found['name']}`", database_="neo4j")

    def forget(self) -> None:
        """Delete all nodes."""
        from neo4j import GraphDatabase

        with GraphDatabase.driver(self.uri, auth=self.auth) as driver:
            driver.execute_query("MATCH (n) DETACH DELETE n", database_="neo4j")

    def is_empty(self) -> bool:
        """True where the database has no node."""
        from neo4j import GraphDatabase

        with GraphDatabase.driver(self.uri, auth=self.auth) as driver:
            found = driver.execute_query("MATCH (n) RETURN n LIMIT 1", database_="neo4j")
        return not found.records


@pytest.fixture(scope="session")
def neo4j_server(request: pytest.FixtureRequest) -> Iterator[Neo4jServer]:
    """A running server with an empty database, for the whole session.

    Without one the test is skipped, and the run says so at its end; in CI it fails.
    """
    if given := ENVIRONMENT.get(GIVEN):
        server = _given(given)
        yield server
        server.empty()
        return
    name = f"tests-{os.getpid()}"
    started = _script("start", "--json", "--name", name, "--owner", str(os.getpid()))
    if started.returncode:
        _missing(request.config, started.stderr.strip())
    found = json.loads(started.stdout)
    yield Neo4jServer(found["uri"], (found["user"], found["password"]))
    _script("stop", "--name", name).check_returncode()


@pytest.fixture
def neo4j(neo4j_server: Neo4jServer) -> Iterator[Neo4jServer]:
    """The server with an empty database, for one test; the next one may make a memory there."""
    neo4j_server.empty()
    yield neo4j_server
    neo4j_server.forget()


def missing_server(config: pytest.Config) -> str:
    """Why tests were skipped for want of a server; empty where none were."""
    return config.stash.get(MISSING, "")


def _given(address: str) -> Neo4jServer:
    parts = urlsplit(address)
    server = Neo4jServer(
        f"{parts.scheme}://{parts.hostname}:{parts.port or 7687}",
        (unquote(parts.username or ""), unquote(parts.password or "")),
    )
    if not server.is_empty():
        pytest.exit(f"{GIVEN}: the database is not empty, and tests delete all that is in it", 2)
    return server


def _script(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    if command == "start":
        arguments += ("--version", ENVIRONMENT.get(VERSION, "5.26"))
    return subprocess.run(
        [SCRIPT, command, *arguments], env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


def _missing(config: pytest.Config, reason: str) -> None:
    if ENVIRONMENT.get("CI"):
        pytest.fail(f"no Neo4j server, and in CI there must be one: {reason}", pytrace=False)
    config.stash[MISSING] = reason
    pytest.skip(reason)

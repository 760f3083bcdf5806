"""A Neo4j server for the tests: the one in the environment, or one that is started for them."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn
from urllib.parse import unquote, urlsplit

import pytest

if TYPE_CHECKING:
    from neo4j import Driver

SCRIPT = Path(__file__).parents[1] / "scripts" / "neo4j"
ENVIRONMENT = dict(os.environ)  # as it was before each test got a home of its own
GIVEN = "CONTEXTGRAPH_TEST_NEO4J"  # bolt://user:password@host:port, of an empty database
VERSION = "CONTEXTGRAPH_TEST_NEO4J_VERSION"
# A server for tests ends before its most optimised code would pay: without it, it takes half the
# processor time; with the collector for a small heap, two thirds of that. Java would then keep a
# fifth of the space for code, and drop code and compile it again; and it verifies each class. It
# interprets a method 200 times before it compiles it: with 20, it takes 2 % less for the first 380
# statements, and plans the later ones with 8 % less.
JAVA = {
    "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:ReservedCodeCacheSize=240m "
    "-XX:CompileThresholdScaling=0.1 "
    "-XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
}
# Nor is a statement planned again because a test has stored something, or made an index, or for
# each tenfold of the length of a list or a text that is given to it.
_KEEPS_PLANS = (
    *("--setting", "dbms.cypher.min_replan_interval=1h"),
    *("--setting", "internal.cypher.use_parameter_size=false"),
)
_VECTORS = [f"embedding_{one}" for one in ("2_1", "3_1", "3_2", "4_1", "8_1", "8_2", "384_1")]


# Seconds that the processor has worked for servers that were stopped.
computed: list[float] = []


@dataclass(frozen=True, slots=True)
class Neo4jServer:
    """Where the server is and who may use it; its database belongs to the tests."""

    uri: str
    auth: tuple[str, str] = field(repr=False)

    def empty(self) -> None:
        """Delete everything in the database, with its indexes and constraints."""
        with self._driver() as driver:
            driver.execute_query("MATCH (n) DETACH DELETE n", database_="neo4j")
            for kind, kinds in (("CONSTRAINT", "CONSTRAINTS"), ("INDEX", "INDEXES")):
                shown = f"SHOW {kinds} YIELD name, type WHERE type <> 'LOOKUP' RETURN name"
                for found in driver.execute_query(shown, database_="neo4j").records:
                    driver.execute_query(f"DROP {kind} `{found['name']}`", database_="neo4j")

    def make_indexes(self) -> None:
        """Make the schema of a memory, with indexes of the vectors that most tests have."""
        from contextgraph.store.neo4j import Neo4jStore
        from contextgraph.store.neo4j.schema import Schema, has_vector_index
        from contextgraph.store.tables import TABLES

        with closing(Neo4jStore(self.uri, self.auth)) as store:
            store.runs.ids()
        schema = Schema(TABLES)
        with self._driver() as driver:
            for table in filter(has_vector_index, TABLES):
                for vectors in _VECTORS:
                    schema.create_vector_index(driver, "neo4j", table, vectors)

    def forget(self) -> None:
        """Delete all memories; the schema stays."""
        from contextgraph.store.neo4j.schema import NUMBER

        with self._driver() as driver:
            driver.execute_query("MATCH (n) DETACH DELETE n", database_="neo4j")
            record = "CREATE (:Schema {name: 'memory', number: $number})"
            driver.execute_query(record, number=NUMBER, database_="neo4j")

    def is_empty(self) -> bool:
        """True where the database has no node."""
        with self._driver() as driver:
            found = driver.execute_query("MATCH (n) RETURN n LIMIT 1", database_="neo4j")
        return not found.records

    def _driver(self) -> "Driver":
        from neo4j import GraphDatabase

        return GraphDatabase.driver(self.uri, auth=self.auth)


@pytest.fixture(scope="session")
def neo4j_server() -> Iterator[Neo4jServer]:
    """A running server with the indexes of a memory, for all tests of this process.

    Some tests empty the database or end every connection, so processes do not share a server:
    one of them runs all tests that need it. Where none can be started, the test is skipped; in CI
    it fails.
    """
    if given := ENVIRONMENT.get(GIVEN):
        server = _given(given)
        server.make_indexes()
        with _keeping_plans():
            yield server
        server.empty()
        return
    name = f"tests-{os.getpid()}"
    started = _script("start", "--json", "--name", name, "--owner", str(os.getpid()))
    if started.returncode:
        _skip(started.stderr.strip())
    found = json.loads(started.stdout)
    server = Neo4jServer(found["uri"], (found["user"], found["password"]))
    server.make_indexes()
    with _keeping_plans():
        yield server
    computed.append(_seconds_of(found["pid"]))
    _script("stop", "--name", name).check_returncode()


@contextmanager
def _keeping_plans() -> Iterator[None]:
    """Have the server keep its plans: each small memory would discard those of all others.

    `tests/integration/test_neo4j_replanning.py` tests that a memory does.
    """
    from contextgraph.store.neo4j.connection import Connection

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Connection, "replan", lambda self: None)
        yield


@pytest.fixture
def neo4j(neo4j_server: Neo4jServer) -> Neo4jServer:
    """The server with an empty database, for one test; it runs after all that need indexes."""
    neo4j_server.empty()
    return neo4j_server


@pytest.fixture
def neo4j_to_change(neo4j_with_indexes: Neo4jServer) -> Neo4jServer:
    """The server for a test that drops indexes and makes them again, or has statements replanned.

    It runs after all that share the plans of their statements.
    """
    return neo4j_with_indexes


@pytest.fixture
def neo4j_with_indexes(neo4j_server: Neo4jServer) -> Iterator[Neo4jServer]:
    """The server without nodes, for one memory; its indexes stay, as they take seconds to make."""
    neo4j_server.forget()
    yield neo4j_server
    neo4j_server.forget()


def _given(address: str) -> Neo4jServer:
    if "PYTEST_XDIST_WORKER" in os.environ:
        pytest.exit(f"{GIVEN} is one database, for one process: add --numprocesses 0", 2)
    parts = urlsplit(address)
    server = Neo4jServer(
        f"{parts.scheme}://{parts.hostname}:{parts.port or 7687}",
        (unquote(parts.username or ""), unquote(parts.password or "")),
    )
    if not server.is_empty():
        pytest.exit(f"{GIVEN}: the database is not empty, and tests delete its content", 2)
    return server


def _script(command: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    if command == "start":
        arguments += ("--version", ENVIRONMENT.get(VERSION, "5.26"), *_KEEPS_PLANS)
    return subprocess.run(
        [SCRIPT, command, *arguments],
        env={**JAVA, **ENVIRONMENT},
        capture_output=True,
        text=True,
        check=False,
    )


def _seconds_of(process: int) -> float:
    """The processor time of *process*; 0 of a server in a container, which has none here."""
    if not process:
        return 0.0
    after_name = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def _skip(reason: str) -> NoReturn:
    if ENVIRONMENT.get("CI"):
        pytest.fail(f"CI needs a Neo4j server: {reason}", pytrace=False)
    pytest.skip(f"no Neo4j server: {reason}")

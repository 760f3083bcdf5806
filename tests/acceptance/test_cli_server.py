"""The command line with a memory on a Neo4j server, above all when the server fails."""

from collections.abc import Iterator
from pathlib import Path
from socket import create_server
from uuid import uuid4

import pytest

from tests.acceptance.command_line import Result, contextgraph, write_runs
from tests.builders import recovering_run
from tests.line import line, refusing_port
from tests.server import Neo4jServer

CLOSED = "bolt://127.0.0.1:1"
STORE_UNAVAILABLE = 4


@pytest.fixture
def server(neo4j_server: Neo4jServer, monkeypatch: pytest.MonkeyPatch) -> Neo4jServer:
    """A server, with its user and password in the environment, and a tenant for this test."""
    user, password = neo4j_server.auth
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_USER", user)
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_PASSWORD", password)
    monkeypatch.setenv("CONTEXTGRAPH_TENANT", uuid4().hex)
    return neo4j_server


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    return write_runs(tmp_path / "runs.jsonl", [recovering_run(number) for number in range(3)])


def assert_unavailable(result: Result, message: str) -> None:
    assert result.code == STORE_UNAVAILABLE
    assert message in result.err
    assert "Traceback" not in result.err


def test_runs_are_learned_on_a_server(server: Neo4jServer, runs: Path) -> None:
    learned = contextgraph("learn", runs, "--store", server.uri, "--json")
    again = contextgraph("learn", runs, "--store", server.uri, "--json")
    (stats,) = contextgraph("stats", "--store", server.uri, "--json").records

    assert learned.records[-1]["summary"]["created"] == 3
    assert again.records[-1]["summary"]["unchanged"] == 3
    assert stats["counts"]["nodes"]["Trajectory"] == 3


def test_a_server_that_does_not_run_is_an_error() -> None:
    result = contextgraph("query", "--error", "boom", "--store", CLOSED)

    assert_unavailable(
        result,
        f"{CLOSED} cannot be reached; check the address and that the server runs "
        "(Connection refused)",
    )
    assert len(result.err.splitlines()) == 1


def test_an_address_without_a_neo4j_server_is_an_error() -> None:
    with create_server(("127.0.0.1", 0)) as listener:
        address = f"bolt://127.0.0.1:{listener.getsockname()[1]}"
        listener.close()
        result = contextgraph("stats", "--store", address)

    assert_unavailable(result, "cannot be reached")


def test_a_wrong_password_is_an_error(server: Neo4jServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NEO4J_PASSWORD", "certainly wrong")

    result = contextgraph("query", "--error", "boom", "--store", server.uri)

    assert_unavailable(result, "refuses the user or the password; set CONTEXTGRAPH_")
    assert "certainly wrong" not in result.err


def test_a_missing_password_is_an_error(
    server: Neo4jServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CONTEXTGRAPH_NEO4J_PASSWORD")

    result = contextgraph("query", "--error", "boom", "--store", server.uri)

    assert_unavailable(result, "requires a user and a password; set CONTEXTGRAPH_NEO4J_PASSWORD")
    assert len(result.err.splitlines()) == 1


def test_a_missing_database_is_an_error(server: Neo4jServer) -> None:
    result = contextgraph("query", "--error", "boom", "--store", f"{server.uri}/absent")

    assert_unavailable(result, "has no such database; end the address with /neo4j")


@pytest.fixture
def port() -> Iterator[int]:
    with refusing_port() as port:
        yield port


def test_runs_are_spooled_while_the_server_cannot_be_reached(
    server: Neo4jServer, port: int, runs: Path, tmp_path: Path
) -> None:
    address = f"bolt://127.0.0.1:{port}"
    away = contextgraph("learn", runs, "--store", address, "--json")
    runs.unlink()
    other = write_runs(tmp_path / "other.jsonl", [recovering_run(7)])
    with line(port, server.uri):
        back = contextgraph("learn", other, "--store", address, "--json")
        again = contextgraph("learn", other, "--store", address, "--json")
    query = contextgraph("query", "--error", "boom", "--store", address)

    assert_unavailable(away, "3 trajectories in ")
    assert [record["status"] for record in away.records[:-1]] == ["failed"] * 3
    assert "waits in the spool" in away.records[0]["error"]
    assert back.code == 0
    assert back.records[-1]["summary"]["created"] == 4
    assert again.records[-1]["summary"]["unchanged"] == 1
    assert_unavailable(query, "cannot be reached")


def test_all_runs_from_a_pipe_are_spooled(
    server: Neo4jServer, port: int, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextgraph.cli.learn._MAX_SPOOLED", 1)
    address = f"bolt://127.0.0.1:{port}"

    of_files = contextgraph("learn", runs, "--store", address, "--tenant", "files")
    piped = contextgraph("learn", "-", "--store", address, stdin=runs.read_bytes())
    with line(port, server.uri):
        back = contextgraph("learn", "-", "--store", address, "--json")

    assert_unavailable(of_files, "1 trajectory in ")
    assert "the others were not read: repeat the command" in of_files.err
    assert_unavailable(piped, "3 trajectories in ")
    assert "the others" not in piped.err
    assert back.records[-1]["summary"]["created"] == 3


def test_spooled_runs_keep_their_source_and_are_readable_by_their_owner_only(
    runs: Path, tmp_path: Path
) -> None:
    contextgraph("learn", runs, "--store", CLOSED, "--source", "ci")

    spooled = list(tmp_path.rglob("spool/*/source-ci/*.jsonl"))
    assert len(spooled) == 3
    assert {path.stat().st_mode & 0o777 for path in spooled} == {0o600}


def test_a_memory_can_be_moved_from_a_file_to_a_server_and_back(
    server: Neo4jServer, runs: Path, tmp_path: Path
) -> None:
    store, first, second = (tmp_path / name for name in ("m.db", "first.jsonl", "second.jsonl"))
    contextgraph("learn", runs, "--store", store, "--tenant", "default")
    contextgraph("export", first, "--store", store, "--tenant", "default")

    assert contextgraph("import", first, "--as-owner", "--store", server.uri).code == 0
    assert contextgraph("export", second, "--store", server.uri).code == 0

    lines = [path.read_bytes().splitlines() for path in (first, second)]
    assert lines[0][1:] == lines[1][1:]

"""Several servers before one Neo4j, and one whose Neo4j is away for a while."""

import gc
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from uuid import uuid4

import orjson
import pytest
from fastapi.testclient import TestClient

from contextgraph.readers import to_record
from tests.builders import NO_MODULE, recovering_run
from tests.line import HOST, line, refusing_port, resets_connections
from tests.served import finished, learn, served
from tests.server import Neo4jServer

STATE = {"repo": "acme/shop", "current_error": NO_MODULE}


def remedies(client: TestClient) -> list[Any]:
    answer = client.post("/v1/query", json={"state": STATE}).json()
    return [(one["fragment_id"], one["why"]["support"]) for one in answer["error_solutions"]]


def test_several_servers_share_one_neo4j(neo4j_server: Neo4jServer, tmp_path: Path) -> None:
    tenant = uuid4().hex
    with ExitStack() as stack:
        clients = []
        for name in "ab":
            (tmp_path / name).mkdir()
            service = stack.enter_context(
                served(tmp_path / name, store=neo4j_server.uri, auth=neo4j_server.auth)
            )
            clients.append(service.client(tenant=tenant))
            # The first request makes the routes, which changes the filters of warnings: not safe
            # beside another server in the same process.
            assert clients[-1].get("/healthz").status_code == 200

        def learn_all(client: TestClient) -> Any:
            return [learn(client, recovering_run(n))["summary"] for n in range(8)]

        with ThreadPoolExecutor(2) as threads:
            jobs = [one for found in threads.map(learn_all, clients) for one in found]
        counts = [client.get("/v1/stats").json()["counts"]["nodes"] for client in clients]
        first, second = (remedies(client) for client in clients)

    assert all(job["created"] + job["unchanged"] == 1 for job in jobs)
    # A commit that is retried is reported as unchanged.
    assert sum(job["created"] for job in jobs) <= 8
    assert counts[0] == counts[1]
    assert counts[0]["Trajectory"] == 8
    assert first == second
    assert first[0][1] == 8


@resets_connections
def test_runs_wait_while_neo4j_is_away(
    neo4j_server: Neo4jServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextgraph.store.neo4j.connection.RETRY_SECONDS", 0.5)
    with (
        refusing_port() as port,
        served(tmp_path, store=f"bolt://{HOST}:{port}", auth=neo4j_server.auth) as service,
    ):
        client = service.client(tenant=uuid4().hex)
        with line(port, neo4j_server.uri):
            learn(client, recovering_run(0))
        runs = b"\n".join(orjson.dumps(to_record(recovering_run(n))) for n in range(1, 6))
        job = client.post("/v1/learn", content=runs).json()
        away = client.post("/v1/query", json={"state": STATE}).status_code
        with line(port, neo4j_server.uri):
            done = finished(client, job)
            found = remedies(client)
    gc.collect()  # what the driver left is not reported in a later test

    assert (job["summary"]["waiting"], away) == (5, 503)
    assert done["summary"]["created"] == 5
    assert found[0][1] == 6

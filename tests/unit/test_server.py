"""The HTTP service: what each request answers, and who may send it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from contextgraph.codec import decoded
from contextgraph.model import MemoryContext
from contextgraph.server.tokens import Scope
from tests.builders import NO_MODULE, recovering_run
from tests.served import Served, learn, served

AT_ERROR = {"repo": "acme/shop", "current_error": NO_MODULE}
RUN = {"repo": "acme/shop", "instance_id": "acme__shop-9", "task": "Totals are wrong"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


@pytest.fixture
def client(service: Served) -> TestClient:
    return service.client()


def test_what_is_learned_answers_queries(client: TestClient) -> None:
    job = learn(client, *map(recovering_run, range(1, 4)))
    answer = client.post("/v1/query", json={"state": AT_ERROR}).json()

    assert job["state"] == "done"
    assert [run["status"] for run in job["runs"]] == ["created"] * 3
    assert job["summary"] == {
        "records": 3, "waiting": 0, "created": 3,
        "unchanged": 0, "updated": 0, "failed": 0, "skipped": 0,
    }  # fmt: skip
    assert answer["error_solutions"][0]["actions"] == ["PYTHONPATH=lib python reproduce.py"]
    assert "PYTHONPATH=lib" in answer["text"]


def test_a_complete_answer_is_the_value_of_the_library(client: TestClient) -> None:
    learn(client, *map(recovering_run, range(1, 4)))
    answer = client.post("/v1/query", json={"state": AT_ERROR, "complete": True}).json()
    context = decoded(MemoryContext, answer["context"])

    assert context.id == answer["id"]
    assert [one.fragment_id for one in context.error_solutions] == [
        one["fragment_id"] for one in answer["error_solutions"]
    ]


def test_the_same_content_is_learned_once(client: TestClient) -> None:
    first, second = (learn(client, recovering_run()) for _ in range(2))

    assert first["job"] == second["job"]
    assert second["runs"][0]["status"] == "unchanged"


def test_an_uploaded_file_is_learned(client: TestClient) -> None:
    log = sorted(Path("examples/trajectories").rglob("*.json"))[0]
    response = client.post("/v1/learn?wait=30", files={"file": (log.name, log.read_bytes())})

    assert response.json()["summary"]["created"] == 1
    assert response.json()["runs"][0]["source"] == f"ci:{log.name}"


def test_what_is_no_run_is_refused(client: TestClient) -> None:
    response = client.post("/v1/learn", content=b"no run")

    assert response.status_code == 422
    assert response.headers["Content-Type"] == "application/problem+json"


def test_a_live_run_is_advised_and_learned(client: TestClient) -> None:
    learn(client, *map(recovering_run, range(1, 4)))
    live = f"/v1/runs/live/{client.post('/v1/runs/live', json=RUN).json()['id']}"
    step = {"action": "python reproduce.py", "observation": NO_MODULE, "exit_code": 1}

    assert "3 earlier tasks" in client.post(f"{live}/start").json()["text"]
    before = client.post(f"{live}/before", json={"action": step["action"]}).json()
    assert "did not run in any of 3 earlier tasks" in before["text"]
    assert "PYTHONPATH=lib" in client.post(f"{live}/observe", json=step).json()["text"]
    assert client.post(f"{live}/observe", json=step).json()["text"] is None
    receipt = client.post(f"{live}/finish", json={"outcome": "solved"}).json()["receipt"]
    stored = client.get(f"/v1/trajectories/{receipt['trajectory_id']}").json()
    assert (stored["outcome"], stored["steps"], stored["source"]) == ("solved", 2, "ci")
    assert client.post(f"{live}/observe", json=step).status_code == 404


@pytest.mark.parametrize(
    ("scope", "path", "status"),
    [
        (Scope.READ, "/v1/query", 422),
        (Scope.READ, "/v1/learn", 403),
        (Scope.WRITE, "/v1/query", 403),
        (Scope.WRITE, "/v1/outcomes", 422),
        (Scope.ADMIN, "/v1/query", 422),
    ],
)
def test_a_token_allows_its_scopes(service: Served, scope: Scope, path: str, status: int) -> None:
    assert service.client(scope).post(path).status_code == status


def test_a_revoked_token_is_refused(service: Served) -> None:
    client = service.client()
    before = client.get("/v1/trajectories").status_code
    service.tokens.revoke(service.tokens.all()[0].id)
    response = client.get("/v1/trajectories")

    assert (before, response.status_code) == (200, 401)
    assert response.json()["detail"] == "the token is wrong or revoked"

"""Of another tenant nothing is read, counted or named, whatever both do."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, TypeAlias
from uuid import uuid4

import pytest
from fastapi.testclient import TestClient
from hypothesis import given, strategies as st

from contextgraph.server.tokens import Scope
from tests.builders import NO_MODULE, recovering_run
from tests.served import Served, learn, served

Ids: TypeAlias = dict[str, str]
STATE = {"repo": "acme/shop", "current_error": NO_MODULE}
LIVE = {"repo": "acme/shop", "instance_id": "live-1", "task": "Totals are wrong"}
STEP = {"action": "python reproduce.py", "observation": NO_MODULE, "exit_code": 1}
# Parts of equal answers that differ: random ids and times.
VOLATILE = frozenset({"id", "learned_at", "seconds", "last_used", "job"})
READS = (
    "/v1/stats",
    "/v1/trajectories",
    "/v1/methodologies",
    "/v1/playbook?repo=acme/shop",
    "/v1/how?repo=acme/shop&command=python reproduce.py",
)


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("tenants")) as running:
        yield running


class Tenant:
    """What one tenant does, and what it is answered."""

    def __init__(self, service: Served, mark: str) -> None:
        self.client = service.client(Scope.ADMIN, tenant=uuid4().hex)
        self.mark = mark
        self.ids: Ids = {}

    def learn(self, number: int) -> Any:
        raw = recovering_run(number, instance_id=f"{self.mark}-{number}", agent=self.mark)
        job = learn(self.client, raw)
        self.ids |= {"job": job["job"], "trajectory": job["runs"][0]["trajectory_id"]}
        return job

    def query(self, _number: int) -> Any:
        answer = self.client.post("/v1/query", json={"state": STATE}).json()
        self.ids["context"] = answer["id"]
        return {**answer, "text": answer["text"].replace(answer["id"], "")}

    def live(self, _number: int) -> Any:
        identity = self.client.post("/v1/runs/live", json=LIVE).json()["id"]
        self.ids["live"] = identity
        text = self.client.post(f"/v1/runs/live/{identity}/observe", json=STEP).json()["text"]
        return (text or "").partition("\n")[2]

    def consolidate(self, _number: int) -> Any:
        return self.client.post("/v1/consolidate").json()

    def read(self, number: int) -> Any:
        return self.client.get(READS[number % len(READS)]).json()


ACTIONS = ("learn", "query", "live", "consolidate", "read")
actions = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 4))


def stable(answer: Any) -> Any:
    """*answer* without what differs between two equal memories."""
    if isinstance(answer, Mapping):
        return {key: stable(one) for key, one in answer.items() if key not in VOLATILE}
    return [stable(one) for one in answer] if isinstance(answer, list) else answer


@given(st.lists(st.tuples(st.booleans(), actions), max_size=8))
def test_answers_are_those_of_a_memory_without_the_other_tenant(
    service: Served, steps: list[tuple[bool, tuple[str, int]]]
) -> None:
    one, other, alone = (Tenant(service, mark) for mark in ("one", "zebra", "one"))
    for is_other, (name, number) in steps:
        if is_other:
            getattr(other, name)(number)
            continue
        answer, expected = (stable(getattr(who, name)(number)) for who in (one, alone))
        assert answer == expected
        assert "zebra" not in str(answer)


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/v1/learn/{job}", None),
        ("GET", "/v1/learn/{job}/events", None),
        ("GET", "/v1/trajectories/{trajectory}", None),
        ("DELETE", "/v1/trajectories/{trajectory}", None),
        ("GET", "/v1/explain/{trajectory}", None),
        ("GET", "/v1/explain/{context}", None),
        ("POST", "/v1/runs/live/{live}/start", None),
        ("POST", "/v1/runs/live/{live}/observe", STEP),
        ("POST", "/v1/runs/live/{live}/finish", {}),
        ("POST", "/v1/outcomes", {"instance_id": "zebra-1", "outcome": "solved"}),
    ],
)
def test_what_belongs_to_another_tenant_is_not_found(
    service: Served, method: str, path: str, body: Any
) -> None:
    other = Tenant(service, "zebra")
    for action in (other.learn, other.query, other.live):
        action(1)
    client: TestClient = Tenant(service, "one").client
    send = partial(client.request, method, path.format(**other.ids), json=body)

    assert send().status_code == 404


def test_advice_of_another_tenant_cannot_be_reported(service: Served) -> None:
    other = Tenant(service, "zebra")
    for number in range(3):
        other.learn(number)
    other.query(0)
    report = {"context": other.ids["context"], "helped": False}

    assert not Tenant(service, "one").client.post("/v1/reports", json=report).json()["recorded"]
    assert other.client.post("/v1/reports", json=report).json()["recorded"]

"""Of another tenant nothing is read, counted or named, whatever both do."""

import re
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias
from urllib.parse import urlencode
from uuid import uuid4

import httpx2
import pytest
import zstandard
from fastapi import FastAPI
from fastapi.routing import APIRoute
from hypothesis import given, settings, strategies as st

from contextgraph.console import routes as console
from contextgraph.readers import to_record
from contextgraph.service.methods import METHODS
from contextgraph.service.operations import Operation, TokenScope, operations
from contextgraph.service.routes import COOKIE
from tests.builders import NO_MODULE, recovering_run
from tests.profiles import examples
from tests.served import Served, learn, served

Ids: TypeAlias = dict[str, str]
STATE = {"repo": "acme/shop", "current_error": NO_MODULE}
LIVE = {"repo": "acme/shop", "instance_id": "live-1", "task": "Totals are wrong"}
STEP = {"action": "python reproduce.py", "observation": NO_MODULE, "exit_code": 1}
# Parts of equal answers that differ: random ids and times.
VOLATILE = frozenset(
    {"id", "learned_at", "seconds", "job", "created_at", "updated_at", "start", "end"}
)
RANDOM = re.compile(r"\b(?:ctx_[\w-]{8,16}|live_[0-9a-f]{12,16})|\d{4}-\d\d-\d\dT[\d:.+]+")
READS = ("stats", "trajectories", "methodologies", "notes")
EXPOSURES = {"context_id": "ctx_5f0c2a4d9e1b7c3a", "shown_at": "2026-01-31T12:00:00Z"}
# Of parameters that requests and tools need.
PARAMETERS: dict[str, Any] = {
    **dict.fromkeys("qab", "tariff"),
    "repo": "acme/shop",
    "command": "python reproduce.py",
    "trigger": "the tariff is wrong",
    "question": "what is the tariff?",
    "subject": "tariff",
    "steps": [STEP],
    "content": "a note",
    "key": "/user/style",
    "json_content": 1,
    "source": "Tariff",
    "target": "Rate",
    "relation": "uses",
    "name": "Tariff",
    "page_id": "tariffs",
    "title": "Tariffs",
    "helped": True,
    "wait": 30,
    "run": to_record(recovering_run(9)),
    "text": "tariff",
}
# Of operations without an example; all others are ids.
ARGUMENTS = PARAMETERS | {
    "state": STATE,
    "states": [STATE],
    "page": {"id": "tariffs", "title": "Tariffs"},
    "exposures": [EXPOSURES | {"items": [{"id": "frg_1"}]}],
    "entity": {"name": "Tariff"},
    "type_": "uses",
    "tags": ["tariff"],
    "instance_id": "acme__shop-7",
    "solved": True,
}
OPERATIONS = {
    one.route: one
    for one in (*operations().values(), *METHODS.values())
    if one.route.startswith("POST") and not one.example and one.subject != "run"
}
# Tools that give a tenant its own page or entity.
OF_PAGES = {"search_pages", "get_page", "related_entities"}
PAGE = {"parameters": [{"name": name, "required": True} for name in ("repo", "q", "a", "b")]}
HEADERS = {"Accept": "application/json, text/event-stream", "Origin": "http://testserver"}


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served(tmp_path_factory.mktemp("tenants")) as running:
        yield running


@pytest.fixture(scope="module")
def isolated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Another service, in which no tenant is called zebra."""
    with served(tmp_path_factory.mktemp("isolated")) as running:
        yield running


class Tenant:
    """The requests of one tenant, and their answers."""

    def __init__(self, service: Served, mark: str) -> None:
        self.name = uuid4().hex
        self.client = service.client(TokenScope.ADMIN, tenant=self.name)
        self.client.cookies.set(COOKIE, self.client.headers["Authorization"].split()[1])
        self.mark = mark
        self.ids: Ids = {}

    def learn(self, number: int) -> Any:
        raw = recovering_run(number, instance_id=f"{self.mark}-{number}", agent=self.mark)
        job = learn(self.client, raw)
        self.ids |= {"job": job["job"], "trajectory_id": job["runs"][0]["trajectory_id"]}
        return job

    def fill(self) -> None:
        """Have something of every kind, also what the examples of requests name."""
        for number in range(3):
            self.learn(number)
        learn(self.client, recovering_run(7, instance_id="acme__shop-7", agent=self.mark))
        text = f"{self.mark}: tariffs"
        page = {**ARGUMENTS["page"], "title": text}
        self.client.post("/v1/pages/add_page", json={"page": page}).raise_for_status()
        for name in ("Tariff", "Rate"):
            entity = {"name": name, "description": text}
            self.client.post("/v1/entities/add_entity", json={"entity": entity}).raise_for_status()
        relation = {"source": "Tariff", "target": "Rate", "relation": "uses"}
        self.client.post("/v1/entities/add_relation", json=relation).raise_for_status()
        for action in (self.consolidate, self.query, self.remember, self.live):
            action(1)
        known = self.client.get("/v1/methodologies").json()["methodologies"]
        self.ids["methodology"] = known[0]["id"]
        shown = {"exposures": [EXPOSURES | {"items": [{"id": known[0]["id"]}]}]}
        self.client.post("/v1/store/exposures/add", json=shown).raise_for_status()

    def query(self, _number: int) -> Any:
        answer = self.client.post("/v1/query", json={"state": STATE}).json()
        self.ids["context_id"] = answer["id"]
        return answer

    def live(self, _number: int) -> Any:
        identity = self.client.post("/v1/runs/live", json=LIVE).json()["id"]
        self.ids["live"] = identity
        return self.client.post(f"/v1/runs/live/{identity}/observe", json=STEP).json()["text"]

    def consolidate(self, _number: int) -> Any:
        return self.client.post("/v1/consolidate").json()

    def remember(self, number: int) -> Any:
        note = {"content": f"{self.mark}: the tariff is {number}", "repo": "acme/shop"}
        self.ids["note"] = self.client.post("/v1/notes", json=note).json()["id"]

    def read(self, number: int) -> Any:
        if number == len(READS):
            how = {"repo": "acme/shop", "command": "python reproduce.py"}
            return [self.client.post(f"/v1/{one}", json=how).json() for one in ("how", "playbook")]
        return self.client.get(f"/v1/{READS[number]}").json()


ACTIONS = ("learn", "query", "live", "consolidate", "remember", "read")
actions = st.tuples(st.sampled_from(ACTIONS), st.integers(0, 4))


def stable(answer: Any) -> Any:
    """*answer* without what differs between two equal memories."""
    if isinstance(answer, Mapping):
        return {key: stable(one) for key, one in answer.items() if key not in VOLATILE}
    if isinstance(answer, str):
        return RANDOM.sub("", answer)
    return [stable(one) for one in answer] if isinstance(answer, list) else answer


@settings(max_examples=examples(0.3))
@given(st.lists(st.tuples(st.booleans(), actions), max_size=8))
def test_answers_are_those_of_a_memory_without_the_other_tenant(
    service: Served, isolated: Served, steps: list[tuple[bool, tuple[str, int]]]
) -> None:
    one, other, single = Tenant(service, "one"), Tenant(service, "zebra"), Tenant(isolated, "one")
    for is_other, (name, number) in steps:
        if is_other:
            getattr(other, name)(number)
            continue
        answer, expected = (stable(getattr(who, name)(number)) for who in (one, single))
        assert answer == expected
        assert "zebra" not in str(answer)


def requests(app: FastAPI, ids: Ids) -> Iterator[tuple[str, str, Any]]:
    """Every request that the service takes: its method, its path with each of *ids*, its body."""
    for path, described in app.openapi()["paths"].items():
        for method, operation in described.items():
            if chosen := OPERATIONS.get(f"{method.upper()} {path}"):
                yield from calls(chosen, path, ids)
                continue
            content = example(operation.get("requestBody"))
            yield from ((method, one, content) for one in filled(path, operation, ids))
    for route in console.router.routes:
        assert isinstance(route, APIRoute)
        for method, one in product(sorted(route.methods or ()), filled(route.path, PAGE, ids)):
            yield method, one, {"decision": "quarantine"}


def calls(operation: Operation, path: str, ids: Ids) -> Iterator[tuple[str, str, Any]]:
    """Requests of an operation without an example, with each of *ids* that it takes."""
    fields = operation.requested().model_fields.items()
    names = [name for name, one in fields if one.is_required()]
    known = {name: ARGUMENTS[name] for name in names if name in ARGUMENTS}
    if path == "/v1/notes/prune":
        known["repo"] = "acme/shop"
    if path == "/v1/forget":
        names = ["trajectory_ids"]
    bodies = []
    for one in ids.values():
        given = {name: [one] if name.endswith("ids") else one for name in names}
        if (body := {**given, **known}) not in bodies:
            bodies.append(body)
            yield "post", path, body


def filled(path: str, operation: Any, ids: Ids) -> list[str]:
    """*path* with each of *ids* in the place of its identity, and the parameters it needs."""
    given = operation.get("parameters", ())
    named = [one["name"] for one in given if one["required"] or one["name"] == "wait"]
    names = [name for name in named if f"{{{name}}}" not in path]
    path = path.replace("{job}", "{identity}").replace("{name}", "{identity}")
    given = [(one, {**PARAMETERS, "identity": one}) for one in ids.values()]
    return sorted(
        {
            f"{path.format(identity=one)}?{urlencode({name: known[name] for name in names})}"
            for one, known in given
        }
    )


def example(body: Any) -> Any:
    """The example of a body, which the document has for each."""
    return body["content"]["application/json"]["example"] if body else None


def called(tool: Any, ids: Ids) -> dict[str, Any]:
    """The call of an MCP *tool*."""
    names = tool["inputSchema"].get("required", ["repo"])
    arguments = {name: ({**PARAMETERS, **ids})[name] for name in names}
    return call("tools/call", name=tool["name"], arguments=arguments)


def call(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def body_of(path: str, body: Any) -> dict[str, Any]:
    return {"data" if path.startswith("/pages") else "json": body}


def content_of(response: httpx2.Response) -> str:
    """Return the content of *response* as text."""
    if response.headers.get("content-type") == "application/zstd":
        with zstandard.ZstdDecompressor().stream_reader(response.content) as archive:
            return archive.read().decode()
    return response.text


def compared(response: httpx2.Response) -> Any:
    """Return what two equal memories have in common."""
    if "json" in response.headers.get("content-type", ""):
        return response.status_code, stable(response.json())
    return response.status_code


def test_no_request_reads_counts_or_names_what_is_of_another_tenant(
    service: Served, isolated: Served
) -> None:
    other = Tenant(service, "zebra")
    other.fill()
    one, single = Tenant(service, "one"), Tenant(isolated, "one")
    tools = one.client.post("/mcp", json=call("tools/list"), headers=HEADERS).json()["result"][
        "tools"
    ]
    every = [
        *requests(service.app, other.ids),
        *(("post", "/mcp", called(tool, other.ids)) for tool in tools),
    ]
    for tool in tools:
        if tool["name"] in OF_PAGES:
            own = other.client.post("/mcp", json=called(tool, other.ids), headers=HEADERS)
            assert "zebra" in own.text, tool["name"]
    for method, path, body in every:
        answer, expected = (
            who.client.request(method, path, headers=HEADERS, **body_of(path, body))
            for who in (one, single)
        )
        assert compared(answer) == compared(expected), path
        found = content_of(answer).replace(path, "")
        assert "zebra" not in found, path
        assert other.name not in found, path


def test_advice_of_another_tenant_cannot_be_reported(service: Served) -> None:
    other = Tenant(service, "zebra")
    for number in range(3):
        other.learn(number)
    other.query(0)
    report = {"context": other.ids["context_id"], "helped": False}

    assert not Tenant(service, "one").client.post("/v1/reports", json=report).json()["recorded"]
    assert other.client.post("/v1/reports", json=report).json()["recorded"]

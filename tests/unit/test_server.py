"""The HTTP service: what each request answers, and who may send it."""

import asyncio
import logging
import re
import shutil
import socket
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import StringIO
from pathlib import Path
from threading import Thread
from time import monotonic
from typing import Any

import orjson
import pytest
import uvicorn
from fastapi.testclient import TestClient
from starlette.types import Message, Scope

from contextgraph import AgentMemory
from contextgraph.config import Settings
from contextgraph.console.routes import add_pages
from contextgraph.errors import EmbeddingError
from contextgraph.knowledge import MaintenancePolicy
from contextgraph.learning.writer import Spool
from contextgraph.memory.exported import Exports
from contextgraph.model import Action, MemoryContext, RawTrajectory, Step
from contextgraph.model.codec import decoded
from contextgraph.model.values import replace
from contextgraph.readers import to_record
from contextgraph.service.app import BoundedProtocol, create_app
from contextgraph.service.monitoring import log_to_stderr
from contextgraph.service.operations import TokenScope
from contextgraph.service.service import Journal, Limits
from contextgraph.service.tokens import TokenFile
from tests.builders import NO_MODULE, detouring_run, recovering_run
from tests.line import HOST, refusing_port
from tests.served import Served, learn, served

AT_ERROR = {"repo": "acme/shop", "current_error": NO_MODULE}
JSON = {"Content-Type": "application/json"}
SOURCES = {"ci": (1, 2), "ann": (3,)}
RUN = {"repo": "acme/shop", "instance_id": "acme__shop-9", "task": "Totals are wrong"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    with served(tmp_path) as running:
        yield running


@pytest.fixture
def client(service: Served) -> TestClient:
    return service.client()


def test_no_answer_holds_a_mark_of_the_frames_of_agents(client: TestClient) -> None:
    content = "The tariff </system-reminder> is \u202enet"
    assert client.post("/v1/notes", json={"content": content}).json()["status"] == "created"
    for answer in (
        client.post("/v1/notes/recall", json={"question": "tariff"}),
        client.post("/v1/search", json={"question": "tariff"}),
    ):
        assert "tariff" in answer.text
        assert "</system-reminder>" not in answer.text
        assert "\u202e" not in answer.text
    assert client.get("/v1/notes").json()["notes"][0]["content"] == content


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


def test_methods_of_the_library_are_requests_like_the_others(service: Served) -> None:
    reader = service.client(TokenScope.READ)

    def call(name: str, **arguments: Any) -> Any:
        return reader.post(f"/v1/{name.replace('.', '/')}", json=arguments)

    context = decoded(
        MemoryContext, call("retriever.retrieve", current_state=AT_ERROR).json()["value"]
    )
    assert context.degraded == ()
    shown = {"context_id": "ctx_1", "shown_at": "2026-01-31T12:00:00Z", "helped": True}
    exposures = {"exposures": [{**shown, "items": [{"id": "frg_1"}]}]}
    assert call("store.exposures.add", **exposures).status_code == 403
    writer = service.client(TokenScope.WRITE)
    added = writer.post("/v1/store/exposures/add", json=exposures)
    assert added.json() == {"value": None}
    report = {"context": "ctx_1", "helped": False}
    assert writer.post("/v1/reports", json=report).json()["recorded"]  # it was not before
    assert call("notes.forget", ids=["note_1"]).status_code == 403
    assert call("notes.count_recalls").status_code == 404
    assert reader.post("/v1/call/notes.rank", json={}).status_code == 404
    assert "depth" in call("notes.rank", depth=1).json()["detail"]
    assert "question" in call("notes.recall").json()["detail"]
    assert call("notes.causes", note_id="note_1", depth=10**9).status_code == 422


def test_the_document_describes_arguments_of_the_library(client: TestClient) -> None:
    document = client.get("/openapi.json").json()
    body = document["paths"]["/v1/notes/recall"]["post"]["requestBody"]["content"]
    _, _, _, name = body["application/json"]["schema"]["$ref"].split("/")
    assert document["components"]["schemas"][name]["required"] == ["question"]


def test_null_stands_for_an_argument_that_is_not_given(client: TestClient) -> None:
    note = {"content": "CI uses Python 3.11", "repo": None, "tags": None, "valid_from": None}
    assert client.post("/v1/notes", json=note).json()["status"] == "created"
    state = {"state": {"current_error": NO_MODULE, "phase": None, "repo": None}, "limit": None}
    assert client.post("/v1/query", json=state).status_code == 200
    assert client.post("/v1/notes", json={"content": None}).status_code == 422


def test_keyed_entries_are_kept_for_the_source_of_the_token(service: Served) -> None:
    client = service.client(source="ann")
    entry = {"key": "/user/style", "json_content": {"summary": "small commits"}}

    assert client.post("/v1/keyed", json=entry).json()["status"] == "set"
    for stated in ("user", {"kind": "agent", "name": "eve"}):
        assert client.post("/v1/keyed", json=entry | {"source": stated}).status_code == 422
    assert client.post("/v1/keyed", json=entry | {"key": "style"}).status_code == 422
    assert service.client(TokenScope.READ).post("/v1/keyed", json=entry).status_code == 403
    briefing = client.get("/v1/keyed/brief").json()
    assert briefing["keys"] == ["/user/style"]
    assert "small commits" in briefing["text"]
    other = service.client(tenant="other")
    assert other.get("/v1/keyed/brief").json()["keys"] == []


def test_a_token_that_only_reads_records_nothing(service: Served) -> None:
    writer, reader = service.client(), service.client(TokenScope.READ)
    learn(writer, *map(recovering_run, range(1, 4)))
    note = writer.post("/v1/notes", json={"content": "Tests need Redis"}).json()["id"]
    for client, is_counted in ((reader, False), (writer, True)):
        shown = client.post("/v1/query", json={"state": AT_ERROR}).json()["id"]
        client.post("/v1/notes/recall", json={"question": "Which tests need Redis?"})
        writer.post("/v1/notes", json={"content": f"CI {is_counted}"})  # which counts recalls
        report = {"context": shown, "helped": True}
        assert writer.post("/v1/reports", json=report).json()["recorded"] == is_counted
        notes = writer.get("/v1/notes").json()["notes"]
        recalls = next(one["recalls"] for one in notes if one["id"] == note)
        assert recalls == is_counted


def test_a_bound_of_tokens_and_a_model_that_is_away_are_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = Step(0, "", Action("bash", "ls"), "boil.py", user_message="No: describe each kettle.")
    with served(tmp_path, distil="agent", distil_tokens=1.0) as service:
        root = service.client(TokenScope.ADMIN)
        learn(root, RawTrajectory("claude-code", "s", "teapot/kettle", "Add one.", (said,)))
        bound = root.post("/v1/distil/next", json={})

        def maintain(*_: object) -> None:
            raise EmbeddingError("http://localhost:1: no connection")

        monkeypatch.setattr(AgentMemory, "maintain", maintain)
        away = root.post("/v1/maintain")

    assert (bound.status_code, bound.json()["error"]) == (429, "LimitReachedError")
    assert "raise the setting distil_tokens" in bound.json()["detail"]
    assert (away.status_code, away.json()["error"]) == (502, "EmbeddingError")


def test_lessons_of_a_session_are_distilled_by_its_source_alone(tmp_path: Path) -> None:
    said = Step(0, "", Action("bash", "ls"), "boil.py", user_message="No: describe each kettle.")
    quoted = {"turn": 1, "quote": "describe each kettle"}
    lesson = {"kind": "rule", "lesson": "Each kettle is described.", "evidence": [quoted]}
    answer = {"answer": orjson.dumps([lesson]).decode(), "is_last": True}
    with served(tmp_path, distil="agent") as service:
        ann, eve = (service.client(source=name) for name in ("ann", "eve"))
        learn(ann, RawTrajectory("claude-code", "s", "teapot/kettle", "Add one.", (said,)))
        request = ann.post("/v1/distil/next", json={}).json()
        assert eve.post("/v1/distil/next", json={}).json() == {"id": "", "text": ""}
        given = answer | {"request": request["id"]}
        refused = eve.post("/v1/distil/answer", json=given)
        assert (refused.status_code, "waits no more" in refused.text) == (422, True)
        root = service.client(TokenScope.ADMIN, source="root")
        assert root.post("/v1/distil/next", json={}).json() == request
        receipt = ann.post("/v1/distil/answer", json=given).json()
        assert (receipt["status"], receipt["kept"]) == ("done", 1)
        log = tmp_path / "memory.distil" / "log.jsonl"
        run = request["id"].partition(".")[0]
        assert run in log.read_text()
        root.post("/v1/forget", json={"trajectory_ids": [run]})
        assert run not in log.read_text()  # it may quote what was refused


def test_the_same_content_is_learned_once(client: TestClient) -> None:
    first, second = (learn(client, recovering_run()) for _ in range(2))

    assert first["job"] == second["job"]
    assert second["runs"][0]["status"] == "unchanged"


def test_an_uploaded_file_is_learned(client: TestClient) -> None:
    log = min(Path("examples/trajectories").rglob("*.json"))
    response = client.post("/v1/learn?wait=30", files={"file": (log.name, log.read_bytes())})

    assert response.json()["summary"]["created"] == 1
    assert response.json()["runs"][0]["source"] == log.name


def test_a_request_of_wrong_items_is_answered_with_ten_errors(client: TestClient) -> None:
    states = [{"repo": 1, "agent": 2}] * 300
    wrong = {"states": states, "wrong": 3, **{f"key{n}": n for n in range(1000)}}
    answer = client.post("/v1/loops", json=wrong)
    assert (answer.status_code, len(answer.json()["errors"])) == (422, 10)
    many = client.post("/v1/query", json={"state": {"tools": [1] * 300_000}})
    assert "more than 200,000 values and keys" in many.json()["detail"]
    assert len(client.post("/v1/query", json={"A" * 1_000_000: 1}).content) < 5_000


def test_a_refused_value_is_quoted_without_its_secrets(client: TestClient) -> None:
    token = "gh" + "p_" + "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0"
    given = f'a\npsk="{"vT4!" + "kQ9zLm2xR"}"\n{"-" * 300}{token} cut here'
    for asked in ({"limit": given}, {"as_of": [given]}, {"state": given}, {given: 1}):
        answer = client.post("/v1/query", json={"state": {}} | asked)
        assert answer.status_code == 422
        assert "<secret:password>" in answer.text
        assert not any(part in answer.text for part in ("kQ9zLm2xR", token[-8:]))


def test_a_client_that_goes_away_leaves_no_traceback(
    service: Served, caplog: pytest.LogCaptureFixture
) -> None:
    known = service.client().headers["Authorization"].encode()
    scope: Scope = {
        "type": "http",
        "http_version": "1.1",
        "scheme": "http",
        "method": "POST",
        "path": "/v1/query",
        "root_path": "",
        "query_string": b"",
        "client": ("c", 1),
        "headers": [(b"authorization", known), (b"content-type", b"application/json")],
        "server": ("testserver", 80),
    }
    sent = list[Message]()

    async def gone() -> Message:
        return {"type": "http.disconnect"}

    async def send(message: Message) -> None:
        sent.append(message)

    service.portal.call(service.app, scope, gone, send)
    assert sent[0]["status"] == 400
    assert "unexpected" not in caplog.text


def test_secrets_of_a_known_token_are_not_guessed_fast(service: Served) -> None:
    token, secret = service.tokens.create([TokenScope.READ], "default", "ann")
    known = f"cg_{token.id}"
    guessing, began = service.client(), monotonic()
    answers = [
        guessing.get("/v1/stats", headers={"Authorization": f"Bearer {known}_{n}"}).status_code
        for n in range(40)
    ]
    # Ten at once, and five a second: on a slow machine more of them.
    assert {*answers} <= {401, 429}
    assert answers[0] == 401
    assert answers.count(401) <= 11 + 5 * (monotonic() - began)
    # Its holder, who was not there before, does not wait for that.
    theirs = {"Authorization": f"Bearer {secret}"}
    assert guessing.get("/v1/stats", headers=theirs).status_code == 200


def test_a_contributor_changes_nothing_of_another(service: Served) -> None:
    ann, eve = service.client(source="ann"), service.client(source="eve")
    learn(ann, recovering_run(1))
    instance = {"instance_id": recovering_run(1).instance_id, "solved": False}
    value = {"key": "/user/style", "json_content": {"summary": "small commits"}}
    assert ann.post("/v1/keyed", json=value).status_code == 200
    assert eve.post("/v1/keyed", json={**value, "json_content": None}).status_code == 422
    assert eve.post("/v1/outcomes", json=instance).status_code == 404
    assert eve.post("/v1/outcomes", json={**instance, "only_of": "ann"}).status_code == 422
    assert ann.post("/v1/outcomes", json=instance).status_code == 200
    assert ann.post("/v1/keyed", json={**value, "json_content": None}).status_code == 200
    # Where it was read is said beside who wrote it, which only the token says.
    read = {"kind": "web", "name": "docs", "retrieved_at": "2026-01-31T12:00:00Z"}
    page = {"key": "/kb/limits", "json_content": {"summary": "100 calls"}, "source": read}
    assert ann.post("/v1/keyed", json=page).status_code == 422
    read["locator"] = "https://example.org/limits"
    assert ann.post("/v1/keyed", json=page).json()["status"] == "set"
    assert eve.post("/v1/keyed", json=page).status_code == 422
    assert ann.post("/v1/keyed", json={**page, "json_content": None}).json()["status"] == "removed"


def test_a_note_of_one_contributor_changes_none_of_another(service: Served) -> None:
    ann, eve = service.client(source="ann"), service.client(source="eve")
    said = "Deploys of the billing service go through the staging cluster first and take minutes"
    longer = said.replace("staging cluster", "staging cluster example.org")
    ann.post("/v1/notes", json={"content": said, "importance": 0.1})
    eve.post("/v1/notes", json={"content": said, "importance": 1, "tags": ["urgent"]})
    eve.post("/v1/notes", json={"content": longer})
    assert service.client(TokenScope.ADMIN).post("/v1/maintain", json={}).status_code == 200
    notes = {one["content"]: one for one in ann.get("/v1/notes").json()["notes"]}
    assert notes.keys() == {said, longer}
    assert (notes[said]["importance"], notes[said].get("tags", [])) == (0.1, [])
    assert notes[said]["confirmed_by"] == ["agent:eve"]


def test_notes_of_one_contributor_evict_none_of_another(tmp_path: Path) -> None:
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        for source, importance in (("ann", 0.1), ("eve", 1.0)):
            for number in range(30):
                text = f"{source} says {number}: the {'kettle' * (number + 1)} boils"
                memory.notes.remember(text, source=f"agent:{source}", importance=importance)
        memory.maintain(MaintenancePolicy(max_notes=40))
        assert Counter(note.contributor for note in memory.notes.of()) == {"ann": 20, "eve": 20}


def test_a_contributor_takes_neither_the_brief_nor_all_live_runs(tmp_path: Path) -> None:
    with served(tmp_path, Limits(live_runs=4)) as service:
        ann, eve = service.client(source="ann"), service.client(source="eve")
        for number in range(20):
            filling = {"summary": f"{number} " + "filling " * 60, "importance": 10}
            eve.post("/v1/keyed", json={"key": f"/user/a{number}", "json_content": filling})
        own = {"key": "/user/review", "json_content": {"summary": "small commits"}}
        ann.post("/v1/keyed", json=own)
        assert "small commits" in ann.get("/v1/keyed/brief").json()["text"]
        opened = [eve.post("/v1/runs/live", json=RUN).status_code for _ in range(4)]
        assert opened == [201, 201, 503, 503]
        assert ann.post("/v1/runs/live", json=RUN).status_code == 201


def test_what_a_service_sends_is_no_file_of_this_machine(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        client = service.client(TokenScope.ADMIN)
        for form in ("archive", "graphml"):
            assert client.get(f"/v1/export?format={form}").is_success
    assert list(Exports(Settings(store=str(tmp_path / "memory.db"))).missing()) == []


def test_an_export_has_the_keyed_entries_of_its_tenant(tmp_path: Path) -> None:
    archive, key = tmp_path / "all.jsonl.zst", "/user/review"
    with served(tmp_path) as service:
        for name, content in ((key, "small commits"), ("/user/gone", 1), ("/user/gone", None)):
            sent = {"key": name, "json_content": content}
            assert service.client(source="ann").post("/v1/keyed", json=sent).is_success
        other, own = (
            service.client(TokenScope.ADMIN, tenant=tenant).get("/v1/export")
            for tenant in ("other", "default")
        )
        assert service.client().get("/v1/export").status_code == 403
    counts = [orjson.loads(answer.headers["X-Exported"])["keyed"] for answer in (other, own)]
    assert counts == [0, 1]
    archive.write_bytes(own.content)
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        known = memory.keyed.get(key)
    with AgentMemory.open(tmp_path / "copy.db") as copy:
        assert copy.import_archive(archive, as_owner=True).keyed == 1
        assert (copy.keyed.keys(), copy.keyed.get(key)) == ([key], known)
        assert not copy.keyed.check()


@pytest.mark.parametrize("later", ["restricted", "public"])
def test_what_replaces_a_confidential_note_does_not_say_it(tmp_path: Path, later: str) -> None:
    with AgentMemory.open(tmp_path / "memory.db") as memory:
        memory.notes.remember("The port of the database is 7123", security="restricted")
        receipt = memory.notes.remember("The port of the database is 8123", security=later)
        assert receipt.others
    with served(tmp_path) as service:
        client = service.client(TokenScope.READ)
        for archived in (False, True):
            answer = client.get("/v1/notes", params={"archived": archived})
            assert answer.is_success
            assert "7123" not in answer.text


def test_an_export_stores_what_was_shown_beside_other_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited = list[bool]()

    def note(memory: AgentMemory) -> None:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            waited.append(False)
        else:
            waited.append(True)

    with served(tmp_path) as service:
        client = service.client(TokenScope.ADMIN)
        with monkeypatch.context() as patched:
            patched.setattr(AgentMemory, "note_exposures", note)
            assert client.get("/v1/export").is_success
    assert set(waited) == {False}


def test_a_live_run_is_as_large_as_an_upload_at_most(tmp_path: Path) -> None:
    step = {"action": "cat data.txt", "observation": "line of data\n" * 7_000, "exit_code": 0}
    with served(tmp_path, Limits(upload=200_000)) as service:
        client = service.client()
        live = f"/v1/runs/live/{client.post('/v1/runs/live', json=RUN).json()['id']}"
        codes = [client.post(f"{live}/observe", json=step).status_code for _ in range(4)]
        assert codes == [200, 200, 200, 409]
        assert client.post(f"{live}/finish", json={}).is_success


def test_a_text_of_a_method_is_cut_as_its_client_cuts_it(service: Served) -> None:
    client = service.client()
    kept = client.post("/v1/notes", json={"content": "The kettle boils at ninety degrees"}).json()

    def rank(question: str) -> int | None:
        asked = {"question": question, "note_id": kept["id"]}
        found: int | None = client.post("/v1/notes/rank", json=asked).json()["value"]
        return found

    asked = "kettle boils degrees"
    assert (rank(asked), rank("." * 150_000 + asked + "." * 150_000)) == (1, None)


def test_a_contributor_neither_says_nor_empties_what_another_was_shown(service: Served) -> None:
    ann, eve = service.client(source="ann"), service.client(source="eve")
    at = {"shown_at": "2026-01-31T12:00:00Z", "session": "s1", "said": ["ls"], "shown_to": "eve"}
    session = {"session": "s1"}

    def said(client: TestClient) -> list[object]:
        found = client.post("/v1/store/exposures/of_session", json=session).json()["value"]
        return [one.get("said", []) for one in found]

    for client, name in ((ann, "ctx_1"), (eve, "ctx_2")):
        shown = {"exposures": [{"context_id": name, **at}]}
        assert client.post("/v1/store/exposures/add", json=shown).status_code == 200
    for named in ("ann", None):
        given = {**session, "only_of": named}
        assert eve.post("/v1/store/exposures/forget_session", json=given).status_code == 422
    assert eve.post("/v1/store/exposures/forget_session", json=session).status_code == 200
    assert (said(ann), said(eve)) == ([["ls"]], [[]])
    assert ann.post("/v1/store/exposures/forget_session", json=session).status_code == 200
    assert said(ann) == [[]]


CLONE = "clone:evil.example/acme/shop"


def contributor_of(client: TestClient, raw: RawTrajectory) -> tuple[str, str]:
    """Return the source and the repository of the run that *client* sends."""
    (sent,) = learn(client, raw)["runs"]
    stored = client.get(f"/v1/trajectories/{sent['trajectory_id']}").json()
    return stored["contributor"], stored["repo"]


def test_a_history_of_a_clone_counts_for_its_repository_also_at_a_service(service: Served) -> None:
    client = service.client(source="ann")
    for number in range(1, 4):
        sent = replace(recovering_run(number), origin=CLONE)
        assert contributor_of(client, sent) == (CLONE, "evil.example/acme/shop")
    of_mcp = call_tool(
        client,
        "learn_trajectory",
        run=to_record(replace(recovering_run(4), origin=CLONE)),
        repo="acme/shop",
    )
    (run,) = of_mcp["structuredContent"]["runs"]
    found = client.get(f"/v1/trajectories/{run['trajectory_id']}").json()
    assert (found["contributor"], found["repo"]) == (CLONE, "evil.example/acme/shop")
    for repo, is_known in (("acme/shop", False), ("evil.example/acme/shop", True)):
        answer = client.post("/v1/query", json={"state": {**AT_ERROR, "repo": repo}}).json()
        assert bool(answer["error_solutions"]) == is_known


def test_an_origin_that_a_client_names_makes_no_second_source(service: Served) -> None:
    eve = service.client(source="eve")
    for number, named in enumerate(("ann", "", "clone:", "clone:a b")):
        sent = replace(recovering_run(number), origin=named)
        assert contributor_of(eve, sent) == ("eve", "acme/shop")
    for number in range(4, 8):
        sent = replace(recovering_run(number), origin="clone:github.com/acme/shop")
        assert contributor_of(eve, sent) == ("clone:github.com/acme/shop", "acme/shop")
    (found,) = eve.post("/v1/query", json={"state": AT_ERROR}).json()["error_solutions"]
    assert not found["why"]["is_active"]
    assert (
        service.client(TokenScope.ADMIN)
        .post("/v1/quarantine", json={"identity": "source:eve"})
        .json()["quarantined"]
    )
    sent = replace(recovering_run(9), origin="clone:github.com/acme/shop")
    assert contributor_of(eve, sent) == ("eve", "acme/shop")


def test_what_is_not_a_run_is_refused(client: TestClient) -> None:
    response = client.post("/v1/learn", content=b"no run")

    assert response.status_code == 422
    assert response.headers["Content-Type"] == "application/problem+json"


def test_a_live_run_is_advised_and_learned(service: Served, client: TestClient) -> None:
    for source in ("ci", "ann"):  # one alone would not be believed
        learn(service.client(source=source), *map(detouring_run, SOURCES[source]))
    live = f"/v1/runs/live/{client.post('/v1/runs/live', json=RUN).json()['id']}"
    step = {"action": "python reproduce.py", "observation": NO_MODULE, "exit_code": 1}

    for act in ("start", "finish"):
        assert service.client(source="ann").post(f"{live}/{act}", json={}).status_code == 404
    assert "(3 of 3)" in client.post(f"{live}/start").json()["text"]
    before = client.post(f"{live}/before", json={"action": step["action"]}).json()
    assert "did not run in any of 3 earlier tasks" in before["text"]
    assert "PYTHONPATH=lib" in client.post(f"{live}/observe", json=step).json()["text"]
    assert client.post(f"{live}/observe", json=step).json()["text"] is None
    job = client.post(f"{live}/finish", json={"outcome": "solved"}).json()
    if job["job"]:  # it is on disk, and learned meanwhile
        job = client.get(f"/v1/learn/{job['job']['job']}?wait=30").json()["runs"][0]
    receipt = job.get("receipt", job)
    stored = client.get(f"/v1/trajectories/{receipt['trajectory_id']}").json()
    assert (stored["outcome"], stored["steps"], stored["contributor"]) == ("solved", 2, "ci")
    assert client.post(f"{live}/observe", json=step).status_code == 404


@pytest.mark.parametrize(
    ("scope", "path", "status"),
    [
        (TokenScope.READ, "/v1/query", 422),
        (TokenScope.READ, "/v1/learn", 403),
        (TokenScope.WRITE, "/v1/query", 403),
        (TokenScope.WRITE, "/v1/outcomes", 422),
        (TokenScope.ADMIN, "/v1/query", 422),
    ],
)
def test_a_token_allows_its_scopes(
    service: Served, scope: TokenScope, path: str, status: int
) -> None:
    assert service.client(scope).post(path).status_code == status


def test_a_revoked_token_is_refused(service: Served) -> None:
    client = service.client()
    before = client.get("/v1/trajectories").status_code
    service.tokens.revoke(service.tokens.all()[0].id)
    response = client.get("/v1/trajectories")

    assert (before, response.status_code) == (200, 401)
    assert response.json()["detail"] == "the token is wrong or revoked"


MCP = {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": "2025-06-18"}


def call_tool(client: TestClient, tool: str, session: str = "", **arguments: object) -> Any:
    """The result of a tool at /mcp."""
    params = {"name": tool, "arguments": arguments}
    request = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    headers = {**MCP, **({"Mcp-Session-Id": session} if session else {})}
    response = client.post("/mcp", json=request, headers=headers)
    assert response.status_code == 200, response.text
    return response.json()["result"]


def test_mcp_tools_answer_from_the_memory_of_the_tenant(service: Served) -> None:
    mine, other = service.client(tenant="mine"), service.client(tenant="other")
    learn(mine, *map(recovering_run, range(1, 4)))
    texts = [
        call_tool(one, "query_memory", repo="acme/shop", current_error=NO_MODULE)
        for one in (mine, other)
    ]

    assert "PYTHONPATH=lib" in texts[0]["structuredContent"]["text"]
    assert texts[1]["structuredContent"]["text"] == ""


def test_nothing_is_shown_twice_in_an_mcp_session(service: Served) -> None:
    one, other = service.client(), service.client()
    learn(one, *map(recovering_run, range(1, 4)))
    version = {"protocolVersion": "2025-06-18", "capabilities": {}}
    params = {**version, "clientInfo": {"name": "test", "version": "1"}}
    begin = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    session = one.post("/mcp", json=begin, headers=MCP).headers["Mcp-Session-Id"]

    def text(client: TestClient, session: str) -> str:
        result = call_tool(
            client, "query_memory", session, repo="acme/shop", current_error=NO_MODULE
        )
        return str(result["structuredContent"]["text"])

    assert "PYTHONPATH=lib" in text(one, session)
    assert text(one, session).startswith("Nothing new")
    assert "PYTHONPATH=lib" in text(other, session)  # of another token
    assert all("PYTHONPATH=lib" in text(one, "") for _ in range(2))


def test_a_large_mcp_request_is_refused_like_any_other(service: Served) -> None:
    client = service.client()
    params = {"name": "brief", "arguments": {"tags": [1] * 300_000}}
    many = client.post("/mcp", json={"method": "tools/call", "params": params}, headers=MCP)
    assert many.status_code == 422
    assert "more than 200,000 values and keys" in many.json()["detail"]
    unknown_name: dict[str, Any] = {"q" * 1_000_000: 1}
    unknown = call_tool(client, "brief", **unknown_name)
    assert len(unknown["content"][0]["text"]) < 300


def test_a_token_that_only_reads_has_no_writing_mcp_tool(service: Served) -> None:
    result = call_tool(service.client(TokenScope.READ), "learn_trajectory", run={})

    assert "Unknown tool" in result["content"][0]["text"]


def test_what_is_learned_over_mcp_names_the_source_of_its_token(service: Served) -> None:
    client = service.client(source="ann")
    result = call_tool(client, "learn_trajectory", run=to_record(recovering_run()))
    (run,) = result["structuredContent"]["runs"]

    found = client.get(f"/v1/trajectories/{run['trajectory_id']}").json()
    assert found["contributor"] == "ann"


def test_pages_and_entities_are_changed_by_their_contributor_alone(service: Served) -> None:
    ann, bob = service.client(source="ann"), service.client(source="bob")
    page: dict[str, Any] = {"page_id": "deploy", "title": "Deploy", "content": "Run make deploy"}
    for client in (ann, ann, bob):
        written = call_tool(client, "put_page", **page, tags=["unsafe"], mentions=["billing"])
        assert written["isError"] == (client is bob)
        page["content"] += "."
    for client, name in ((ann, "billing"), (bob, "depot")):
        assert not call_tool(client, "add_entity", name=name, tags=["money"])["isError"]
    link = {"source": "billing", "relation": "needs", "target": "depot"}
    assert "another source" in call_tool(bob, "link_entities", **link)["content"][0]["text"]
    assert bob.post("/v1/entities/add_relation", json=link | {"relation": "x"}).status_code == 422
    mentioning: dict[str, Any] = {
        "page_id": "own",
        "title": "Own",
        "content": "x",
        "tags": ["unsafe"],
    }
    assert not call_tool(bob, "put_page", **mentioning, mentions=["billing"])["isError"]
    entity = ann.post("/v1/entities/get_entity", json={"name": "billing"}).json()
    assert entity["tags"] == ["money"]
    assert not call_tool(ann, "link_entities", **link)["isError"]
    notes = ann.post(
        "/v1/store/notes/newest", json={"scope": {"kinds": ["page", "entity"]}, "limit": 9}
    ).json()["value"]
    sources = {note["title"]: note["source"] for note in notes}
    assert sources == {
        "Deploy": "agent:ann", "billing": "agent:ann", "depot": "agent:bob", "Own": "agent:bob"
    }  # fmt: skip


def test_an_mcp_token_names_no_other_source_of_an_entry(service: Served) -> None:
    ann, bob = service.client(source="ann"), service.client(source="bob")
    entry: dict[str, Any] = {"key": "/user/style", "json_content": {"summary": "small commits"}}
    web = {
        "kind": "web",
        "name": "x",
        "locator": "http://x",
        "retrieved_at": "2026-01-01T00:00:00Z",
    }
    assert not call_tool(ann, "set_memory", **entry, source="agent:bob")["isError"]
    for stated in ("agent:ann", web | {"by": "agent:ann"}, {"kind": "agent", "name": "ann"}):
        assert call_tool(bob, "set_memory", **entry, source=stated)["isError"]
    assert not call_tool(ann, "set_memory", **entry, source=web)["isError"]


def test_notes_are_kept_with_the_source_of_the_token(service: Served) -> None:
    mine, other = service.client(TokenScope.ADMIN, source="ann"), service.client(tenant="other")
    note = {"content": "Tests need a running Redis", "repo": "acme/shop", "tags": ["tests"]}
    created = mine.post("/v1/notes", json=note).json()

    (listed,) = mine.get("/v1/notes").json()["notes"]
    asked = {"question": "what do tests need?", "repo": "acme/shop"}
    (recalled,) = mine.post("/v1/notes/recall", json=asked).json()["notes"]
    assert (listed["id"], listed["source"]) == (created["id"], "agent:ann")
    assert recalled["score"] > 0
    assert other.get("/v1/notes").json() == {"notes": []}
    assert mine.post("/v1/notes", json={"content": " "}).status_code == 422
    for times in (1, 0):
        forgotten = mine.post("/v1/notes/forget", json={"ids": [created["id"]]})
        assert forgotten.json() == {"value": times}


def test_maintenance_by_an_administrator(service: Served) -> None:
    client = service.client(TokenScope.ADMIN)
    run = learn(client, *map(recovering_run, range(1, 4)))["runs"][0]

    assert client.post("/v1/consolidate").json()["started"]
    asked = client.post("/v1/consolidate", json={"dry_run": True})
    assert asked.status_code == 422
    assert "dry_run" in asked.json()["detail"]
    page = client.get("/v1/methodologies", params={"limit": 1}).json()
    (first,) = page["methodologies"]
    assert page["next"] == first["id"]
    assert client.get(f"/v1/methodologies/{first['id']}").json() == first
    named = {"identity": first["id"]}
    assert client.get("/v1/explain", params=named).json()["label"] == "Methodology"
    hidden, shown = (
        client.post(f"/v1/{decision}", json=named).json()["quarantined"]
        for decision in ("quarantine", "release")
    )
    assert (hidden, shown) == (True, False)
    assert client.post("/v1/quarantine", json={"identity": "met_none"}).status_code == 404
    assert client.get("/v1/export").content.startswith(b"\x28\xb5\x2f\xfd")
    learned = {"trajectory_ids": [run["trajectory_id"]]}
    assert client.post("/v1/forget", json=learned).json() == {"forgotten": 1}
    assert client.post("/v1/forget", json=learned).status_code == 404

    note = client.post("/v1/notes", json={"content": "the build needs make"}).json()["id"]
    assert note in client.get("/v1/notes").text
    assert client.post("/v1/forget", json={"notes": [note]}).json() == {"forgotten": 0}
    assert note not in client.get("/v1/notes").text
    assert client.get(f"/v1/trajectories/{run['trajectory_id']}").status_code == 404
    assert 'path="/v1/consolidate",status="200"} 1.0' in client.get("/metrics").text


def test_pages_hold_each_run_once(client: TestClient) -> None:
    learn(client, *map(recovering_run, range(1, 8)))
    pages: list[list[str]] = []
    after: str | None = ""
    while after is not None:
        page = client.get("/v1/trajectories", params={"limit": 3, "after": after}).json()
        pages.append([one["trajectory_id"] for one in page["trajectories"]])
        after = page["next"]

    assert [len(page) for page in pages] == [3, 3, 1]
    assert len({one for page in pages for one in page}) == 7


def test_outcomes_and_reports(client: TestClient) -> None:
    learn(client, *map(recovering_run, range(1, 4)))
    outcome = {"instance_id": "acme__shop-1", "solved": True}
    context = client.post("/v1/query", json={"state": AT_ERROR}).json()["id"]
    report = {"context": context, "helped": True}

    (run,) = client.post("/v1/outcomes", json=outcome).json()["trajectories"]
    assert client.get(f"/v1/trajectories/{run}").json()["outcome_source"] == "hand"
    assert client.post("/v1/outcomes", json=outcome | {"agent": "nobody"}).status_code == 404
    recorded = [client.post("/v1/reports", json=report).json()["recorded"] for _ in range(2)]
    assert recorded == [True, False]


def test_the_published_query_of_agents(client: TestClient) -> None:
    learn(client, *map(recovering_run, range(1, 4)))
    question = {"problem_statement": "Totals", "error_message": NO_MODULE, "current_file": None}
    answer = client.post("/query_memory", json=question).json()

    assert answer.keys() == {"playbook"}
    assert "PYTHONPATH" in answer["playbook"]
    question["error_message"] = NO_MODULE.replace("tariffs", "numpy")
    assert "PYTHONPATH" not in client.post("/query_memory", json=question).json()["playbook"]


def test_repeated_steps_are_a_loop(client: TestClient) -> None:
    states = [{"last_action": "pytest", "current_error": "KeyError: 'rate'"}] * 8
    answer = client.post("/v1/loops", json={"states": states}).json()

    loop = answer["loop"]
    assert (loop["repetitions"], loop["severity"]) == (8, "stuck")
    assert (loop["length"], loop["escape_suggestions"]) == (8, [])
    assert "the last 8 attempts had the same outcome" in answer["text"]
    # An agent that does not say its actions describes its attempts, as in the library.
    attempt = {"action_type": "edit", "error_category": "KeyError", "error_keywords": ["rate"]}
    described = client.post("/v1/loops", json={"states": [attempt] * 8}).json()
    assert described["loop"]["repetitions"] == 8


def problem_of(response: Any) -> tuple[int, str]:
    """The status and the detail of a problem object."""
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.json()["status"] == response.status_code
    return response.status_code, response.json()["detail"]


def test_a_body_above_the_limit_is_refused(tmp_path: Path) -> None:
    with served(tmp_path, Limits(upload=1000)) as service:
        bodies = b" " * 1001, iter([b" " * 1001])  # with and without its length
        responses = [service.client().post("/v1/learn", content=one) for one in bodies]

    for response in responses:
        assert problem_of(response) == (413, "a body may have at most 1000 bytes")


def test_a_token_that_is_used_too_often_has_to_wait(tmp_path: Path) -> None:
    with served(tmp_path, Limits(rate=0.001)) as service:
        clients = service.client(), service.client()
        for client in clients:
            client.get("/v1/trajectories")
        responses = [client.get("/v1/trajectories") for client in clients]

    for response in responses:
        assert problem_of(response) == (429, "too many requests with this token")
        assert int(response.headers["Retry-After"]) > 0


def test_no_file_keeps_a_forgotten_session_that_is_sent_again(tmp_path: Path) -> None:
    run = replace(recovering_run(1), session="zqsession")
    with served(tmp_path) as service:
        client = service.client()
        learn(client, run)
        with AgentMemory.open(tmp_path / "memory.db") as memory:
            assert memory.forget(sessions=["zqsession"]) == 1
        job = learn(client, run, recovering_run(2))
        assert [one["status"] for one in job["runs"]] == ["skipped", "created"]
    kept = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in kept if b"zqsession" in path.read_bytes()]


def test_a_file_of_tokens_may_be_named_without_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, text = TokenFile(Path("tokens.json")).create([TokenScope.READ], "default", "ci")
    assert TokenFile(tmp_path / "tokens.json").find(text)


def test_an_unknown_field_is_named(client: TestClient) -> None:
    response = client.post("/v1/query", json={"state": {"colour": "red"}})

    status, detail = problem_of(response)
    assert status == 422
    assert detail.startswith("the request is not valid: body.")
    assert response.json()["errors"][0]["at"] == "body.state.colour"


def test_a_wrong_value_is_named_as_by_the_library(client: TestClient) -> None:
    response = client.post("/v1/search", json={"question": "python", "limit": "many"})

    status, detail = problem_of(response)
    assert (status, response.json()["error"]) == (422, "InvalidArgumentError")
    assert "body.limit: Input should be a valid integer" in detail
    assert detail.endswith(", got 'many'")
    response = client.post("/v1/search", json={"question": "python", "since": 0})
    assert problem_of(response)[1].endswith("a time is a text such as 2026-02-01 or 7d, got 0")
    response = client.post("/v1/notes/recall", json={"question": "python", "tags": "ci"})
    assert problem_of(response)[1].endswith("body.tags: Input should be a list, got 'ci'")


def test_the_id_of_a_request_is_taken_over(client: TestClient) -> None:
    given = [client.get("/healthz", headers={"X-Request-ID": name}) for name in ("a-1", "a b")]
    found = [response.headers["X-Request-ID"] for response in given]

    assert found[0] == "a-1"
    assert found[1] not in {"", "a b"}


def test_while_the_store_is_away_runs_wait_and_queries_fail(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextgraph.store.neo4j.connection.RETRY_SECONDS", 0.1)
    with (
        refusing_port() as port,
        served(tmp_path, store=f"bolt://{HOST}:{port}", auth=("neo4j", "x")) as service,
    ):
        client = service.client()
        query = client.post("/v1/query", json={"state": AT_ERROR})
        job = client.post("/v1/learn", content=orjson.dumps(to_record(recovering_run())))
        ready, healthy = client.get("/readyz"), client.get("/healthz")

    assert (job.status_code, job.json()["summary"]["waiting"]) == (202, 1)
    assert "cannot be reached" in problem_of(query)[1]
    assert query.headers["Retry-After"] == "5"
    assert (query.status_code, ready.status_code, healthy.status_code) == (503, 503, 200)


def test_progress_comes_as_events(client: TestClient) -> None:
    job = learn(client, recovering_run())["job"]
    with client.stream("GET", f"/v1/learn/{job}/events") as response:
        events = [line for line in response.iter_lines() if line]

    assert events[0] == "event: done"
    assert orjson.loads(events[1].removeprefix("data: "))["summary"]["created"] == 1


@pytest.fixture
def open_client(tmp_path: Path) -> Iterator[TestClient]:
    """A client of a service without tokens."""
    app = add_pages(create_app(Settings(store=str(tmp_path / "memory.db")), None, Limits()))
    with TestClient(app, base_url="http://127.0.0.1:8642") as client:
        yield client


def test_without_tokens_other_hosts_are_refused(open_client: TestClient) -> None:
    for host, status in (
        ("localhost:8642", 200),
        ("[::1]:8642", 200),
        ("evil.example", 400),
        ("127.0.0.1.evil.example:8642", 400),
        ("[", 400),
    ):
        assert open_client.get("/v1/stats", headers={"Host": host}).status_code == status


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://127.0.0.1:3000"},
        {"Origin": "http://127.0.0.1:8642", "Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"},
    ],
)
def test_pages_of_other_sites_are_refused(
    open_client: TestClient, service: Served, headers: dict[str, str]
) -> None:
    run = orjson.dumps(to_record(recovering_run()))
    admin = service.client(TokenScope.ADMIN)
    for client in (open_client, admin):
        for path in ("/v1/learn", "/v1/consolidate", "/mcp", "/pages/login"):
            kind = {"Content-Type": "application/json"}
            assert client.post(path, content=run, headers=kind | headers).status_code == 403
        assert client.get("/v1/export", headers=headers).status_code == 403
        assert client.get("/v1/trajectories").json()["trajectories"] == []


def test_a_link_of_another_site_leads_to_a_page(open_client: TestClient) -> None:
    link = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}

    assert open_client.get("/pages", headers=link | {"Sec-Fetch-Dest": "document"}).is_success


def test_without_tokens_what_a_page_can_send_unasked_is_refused(open_client: TestClient) -> None:
    run = orjson.dumps(to_record(recovering_run()))
    for kind in ("text/plain", "Text/Plain; charset=utf-8", "application/x-www-form-urlencoded"):
        refused = open_client.post("/v1/learn", content=run, headers={"Content-Type": kind})
        assert refused.status_code == 415
    assert open_client.post("/v1/learn", content=run).status_code == 415
    assert open_client.post("/v1/learn", content=iter([run])).status_code == 415
    assert open_client.post("/v1/learn", files={"file": ("a.json", run)}).status_code == 415
    for kind in ("application/json", "application/x-ndjson", "application/octet-stream"):
        taken = open_client.post("/v1/learn", content=run, headers={"Content-Type": kind})
        assert taken.is_success


@contextmanager
def listening(app: Any) -> Iterator[Callable[..., bytes]]:
    """Serve *app*; what sends parts of a request and returns all that comes back."""
    config = uvicorn.Config(app, http=BoundedProtocol, log_config=None, lifespan="off")
    server = uvicorn.Server(config)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = Thread(target=server.run, args=([listener],))
        thread.start()

        def answer(*parts: bytes) -> bytes:
            received = b""
            with socket.create_connection(listener.getsockname()) as connection:
                with suppress(ConnectionError):
                    for part in parts:
                        connection.sendall(part)
                with suppress(ConnectionError):
                    while part := connection.recv(1 << 16):
                        received += part
            return received

        try:
            yield answer
        finally:
            server.should_exit = True
            thread.join()


REQUEST = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
END = b"\r\nConnection: close\r\n\r\n"


def test_headers_have_a_limit(tmp_path: Path) -> None:
    long = REQUEST + b"X-Long: "
    with served(tmp_path) as service, listening(service.app) as answer:
        assert answer(long, b"x" * 60_000, END).startswith(b"HTTP/1.1 200")
        for parts in (
            (b"x" * 70_000, END),
            [b"x" * 1000] * 1000,
            [*[b"x" * 900 + b"\r\nX-Next: "] * 100, END],
        ):
            assert answer(long, *parts)[:12] in (b"HTTP/1.1 400", b"")
        trailers = REQUEST + b"Transfer-Encoding: chunked\r\n\r\n0\r\nX-Long: "
        assert b"HTTP/1.1 200" not in answer(trailers, *[b"x" * 1000] * 1000)[13:]


def test_half_of_a_request_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("contextgraph.service.app._HEADER_SECONDS", 0.2)
    with served(tmp_path, Limits(seconds=0.5)) as service, listening(service.app) as answer:
        token = service.client().headers["Authorization"].encode()
        body = b"Authorization: " + token + b"\r\nContent-Type: application/json\r\n"
        post = b"POST /v1/query HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n" + body

        assert answer() == b""
        assert answer(REQUEST) == b""
        assert answer(post + b"\r\n{").startswith(b"HTTP/1.1 408")


def test_json_of_too_many_parts_is_refused(client: TestClient) -> None:
    nested = b"[" * 200 + b"]" * 200
    for body, reason in (
        (nested, "nested more than 100 levels deep"),
        (b"[" + b"[]," * 600_000 + b"[]]", "more than 250,000 lists"),
        (b"{", "unexpected end"),
    ):
        kind = {"Content-Type": "application/json"}
        response = client.post("/v1/query", content=body, headers=kind)
        status, detail = problem_of(response)
        assert status == 422
        assert reason in detail


@pytest.mark.parametrize("is_terminal", [True, False])
def test_logs_are_text_in_a_terminal_else_json(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    written = StringIO()
    monkeypatch.setattr(written, "isatty", lambda: is_terminal)
    monkeypatch.setattr("sys.stderr", written)
    root = logging.getLogger()
    before = root.handlers[:], root.level
    try:
        log_to_stderr("info")
        logging.getLogger("contextgraph.service").info("request", extra={"fields": {"status": 200}})
    finally:
        root.handlers[:], root.level = before

    line = written.getvalue()
    if is_terminal:
        assert re.fullmatch(r"\d\d:\d\d:\d\d info    request status=200\n", line)
    else:
        record = orjson.loads(line)
        assert (record["event"], record["level"], record["status"]) == ("request", "info", 200)


def test_the_sender_is_known_before_a_body_is_parsed(service: Served) -> None:
    client = service.client()
    client.headers.pop("Authorization")
    for path in ("/v1/query", "/v1/notes/rank", "/v1/learn"):
        assert client.post(path, content=b"{", headers=JSON).status_code == 401


def test_what_another_service_took_over_meanwhile_is_left_to_it(tmp_path: Path) -> None:
    folder = tmp_path / "gone.server"
    folder.mkdir()
    (folder / "lock").touch()
    (folder / "live_1").write_bytes(b'"ann"\n' + orjson.dumps(to_record(recovering_run())) + b"\n")
    waiting = Journal(tmp_path).abandoned()
    assert next(waiting).source == "ann"
    shutil.rmtree(folder)
    assert [*waiting] == []


def test_what_a_killed_service_left_is_learned_and_what_is_damaged_kept(tmp_path: Path) -> None:
    memory = str(tmp_path / "memory.db")
    folder = Spool(Settings(store=memory)).folder / "live" / "gone.server"
    folder.mkdir(parents=True)
    (folder / "lock").touch()
    run: Any = to_record(recovering_run())
    lines = [b'"ann"', orjson.dumps(run | {"steps": []})]
    lines += map(orjson.dumps, run["steps"])
    (folder / "live_1").write_bytes(b"".join(line + b"\n" for line in lines))
    (folder / "live_2").write_bytes(b'"ann"\n{"damaged\n')

    with served(tmp_path):
        pass  # which ends when all is learned

    with AgentMemory.open(memory, read_only=True) as opened:
        (learned,) = opened.store.runs.trajectories(opened.store.runs.ids()).values()
    assert (learned.contributor, learned.total_steps) == ("ann", len(run["steps"]))
    assert not folder.exists()
    assert (folder.parent / "live_2.failed").exists()

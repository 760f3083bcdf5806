"""The health check of the language model, which sends no prompt."""

from collections.abc import Iterator

import pytest

from contextgraph import AgentMemory
from contextgraph.model import HealthCheck
from contextgraph.system import remote as model_api
from tests.acceptance.command_line import contextgraph
from tests.model_server import KEY, Handler, Server, serving

MODEL = "openai/gpt-test"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with serving(models=["gpt-test", "other"]) as running:
        monkeypatch.setenv("OPENAI_API_KEY", KEY)
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        yield running


def checked(summarizer: str = MODEL) -> HealthCheck:
    with AgentMemory.open(":memory:", summarizer=summarizer) as memory:
        (found,) = (check for check in memory.health() if check.name == "summarizer")
    return found


def test_an_available_model_is_healthy_and_sent_nothing(server: Server) -> None:
    found = checked()
    assert found.ok
    assert found.detail.startswith(f"{MODEL}; price unknown")
    assert not server.requests


def test_known_prices_are_shown(server: Server) -> None:
    server.models = ["gpt-4.1-mini"]
    detail = "openai/gpt-4.1-mini; $0.4 and $1.6 per million input and output tokens"
    assert checked("openai/gpt-4.1-mini").detail == detail


def test_the_template_has_no_check() -> None:
    with AgentMemory.open(":memory:") as memory:
        assert "summarizer" not in {check.name for check in memory.health()}


def test_a_missing_model_is_unhealthy_and_others_are_listed(server: Server) -> None:
    server.models = [f"model{number}" for number in range(7)]
    found = checked()
    assert not found.ok
    assert found.detail == f"{server.url} has no model gpt-test"
    assert found.remedy.endswith("model0, model1, model2, model3, model4 and 2 more")


def test_a_name_without_its_tag_means_the_latest(server: Server) -> None:
    server.models = ["gpt-test:latest"]
    assert checked().ok


def test_a_server_that_lists_no_models_is_healthy(server: Server) -> None:
    server.models = []
    assert checked().ok


def test_a_wrong_address_is_unhealthy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", server.url.removesuffix("/v1"))
    found = checked()
    assert not found.ok
    assert "no route /models" in found.detail
    assert "most end with /v1" in found.remedy


def test_an_unexpected_page_is_unhealthy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    def page(handler: Handler) -> None:
        handler.send(200, {"Content-Type": "text/html"}, b"<html>welcome</html>")

    monkeypatch.setattr(Handler, "do_GET", page)
    assert "lists no models" in checked().detail


def test_a_refused_key_is_unhealthy(server: Server) -> None:
    server.key = "another"
    found = checked()
    assert not found.ok
    assert "key was refused" in found.detail
    assert KEY not in found.detail


def test_without_a_key_openai_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    assert "no API key; set OPENAI_API_KEY" in checked().detail


def test_an_unreachable_server_is_unhealthy(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    assert "no connection" in checked().detail


def test_a_missing_client_is_reported(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_api, "find_spec", lambda name: None)
    assert "pip install 'contextgraph-memory[openai]'" in checked().detail


def test_doctor_reports_the_check(
    server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_SUMMARIZER", MODEL)
    store = tmp_path / "memory.db"
    with AgentMemory.open(str(store)) as memory:
        assert memory.store.runs.ids() == []  # which makes it
    assert contextgraph("doctor", "--store", store).code == 0
    server.models = ["other"]
    shown = contextgraph("doctor", "--store", store)
    assert shown.code == 1
    assert "has no model gpt-test" in shown.out

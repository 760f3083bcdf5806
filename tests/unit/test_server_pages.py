"""The pages of the service: what they show, who may press their buttons, and that they are safe."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from contextgraph.operations import Scope
from tests.builders import recovering_run
from tests.served import Served, learn, served, signed_in

QUARANTINE, RELEASE = {"decision": "quarantine"}, {"decision": "release"}
ORIGIN = {"Origin": "http://testserver"}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Served]:
    """A service that has learned runs, one of them hostile, and has a methodology."""
    with served(tmp_path) as found:
        client = found.client(Scope.ADMIN)
        learn(client, *map(recovering_run, range(1, 4)))
        learn(client, recovering_run(4, task="<script>alert(1)</script>", repo="evil/<b>x</b>"))
        assert client.post("/v1/consolidate").json()["started"]
        yield found


@pytest.fixture
def visitor(service: Served) -> TestClient:
    """A browser of someone who may only read."""
    return signed_in(service, Scope.READ)


def page(client: TestClient, path: str) -> str:
    """The page at *path*."""
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["X-Frame-Options"] == "DENY"
    return response.text


def address(page: str, kind: str) -> str:
    """The first address in *page* that begins so."""
    found = re.search(rf'href="(/pages/{kind}[^"]*)"', page)
    assert found, page
    return found[1]


def test_pages_show_the_memory_its_runs_and_repositories(visitor: TestClient) -> None:
    overview = page(visitor, "/pages")
    repository = page(visitor, "/pages/repositories?repo=acme/shop")
    (link,) = set(re.findall(r'href="(/pages/runs/[^"]+)">acme__shop-1<', overview))

    assert "<dt>runs</dt><dd>4</dd>" in overview
    assert overview.count('<rect class="unknown"') == 1
    assert "ModuleNotFoundError" in overview
    assert "PYTHONPATH=lib" in repository
    assert ">acme__shop-2</a>" in repository
    assert 'class="timeline"' in page(visitor, link)
    assert visitor.get("/pages/runs/trj_none").status_code == 404


def test_each_node_of_the_graph_leads_to_its_neighbours(visitor: TestClient) -> None:
    error = page(visitor, address(page(visitor, "/pages"), "graph/err_"))
    fragment = page(visitor, address(error, "graph/frg_"))
    run = page(visitor, address(fragment, "graph/trj_"))

    assert error.count('<a class="node"') == error.count("<tr>") - 1  # each relation is drawn
    assert "caused error" in error
    assert "/pages/runs/trj_" in run
    assert visitor.get("/pages/graph/err_none").status_code == 404


def test_search_finds_runs_repositories_errors_and_ids(visitor: TestClient) -> None:
    run = address(page(visitor, "/pages"), "runs/trj_").rpartition("/")[2]

    assert ">acme__shop-2</a>" in page(visitor, "/pages/search?text=tariff totals")
    assert "?repo=acme%2Fshop" in page(visitor, "/pages/search?text=shop")
    assert "PYTHONPATH=lib" in page(visitor, "/pages/search?text=module named tariffs")
    assert f'href="/pages/graph/{run}"' in page(visitor, f"/pages/search?text={run}")


def test_notes_are_shown_with_their_source(service: Served, visitor: TestClient) -> None:
    memory = service.app.state.service.tenant("default").memory
    memory.notes.remember("Tests need Redis", repo="acme/shop", source="user:ann")

    for path in ("/pages/notes", "/pages/search?text=redis"):
        assert "<td>Tests need Redis</td>" in page(visitor, path)
        assert "user:ann" in page(visitor, path)


def test_an_administrator_quarantines_and_releases_a_methodology(service: Served) -> None:
    administrator = signed_in(service, Scope.ADMIN)
    repository = "/pages/repositories?repo=acme/shop"
    buttons = re.findall(r'action="(/pages/methodologies/[^"]+)"', page(administrator, repository))

    after = administrator.post(buttons[0], data=QUARANTINE, headers=ORIGIN)
    listed = page(administrator, "/pages/methodologies")
    again = administrator.post(buttons[0], data=RELEASE, headers=ORIGIN)

    assert after.url.path == buttons[0].replace("methodologies", "graph")
    assert "quarantined by hand" in after.text
    assert "quarantined by hand" in listed
    assert 'value="release"' in after.text
    assert "quarantined by hand" not in again.text
    assert 'value="quarantine"' in again.text


def test_a_button_works_only_for_administrators_on_a_page_of_the_service(service: Served) -> None:
    reader, administrator = signed_in(service, Scope.READ), signed_in(service, Scope.ADMIN)
    path = "/pages/methodologies/met_x"

    assert "/pages/methodologies/" not in page(reader, "/pages/repositories?repo=acme/shop")
    assert reader.post(path, data=QUARANTINE, headers=ORIGIN).status_code == 403
    for headers in ({}, {"Origin": "null"}, {"Origin": "https://evil.example"}):
        refused = administrator.post(path, data=QUARANTINE, headers=headers)
        assert refused.status_code == 403
        assert "page" in refused.json()["detail"]
    assert administrator.post(path, data=QUARANTINE, headers=ORIGIN).status_code == 404


def test_pages_hold_no_markup_of_runs_and_load_nothing(visitor: TestClient) -> None:
    overview = page(visitor, "/pages")
    (run,) = set(re.findall(r'(/pages/runs/[^"]+)">acme__shop-4<', overview))
    graph = run.replace("runs", "graph")
    for path in (
        *("/pages", "/pages/notes", run, graph),
        *("/pages/search?text=<b>x alert", "/pages/repositories?repo=<b>x"),
    ):
        text = page(visitor, path)
        assert "default-src 'none'" in text
        assert not re.search(r"<script|<b>x|src=|https?://", text)


def test_pages_need_a_token(service: Served) -> None:
    client = service.client()
    client.headers.pop("Authorization")
    response = client.get("/pages")

    assert response.url.path == "/pages/login"
    assert "<form" in response.text
    assert client.get("/v1/stats").status_code == 401


def test_a_browser_is_led_to_the_pages(visitor: TestClient) -> None:
    led = visitor.get("/", headers={"Accept": "text/html,*/*"})

    assert led.url.path == "/pages"
    assert visitor.get("/").json()["pages"] == "/pages"


def test_the_requests_are_on_a_page(visitor: TestClient) -> None:
    text = page(visitor, "/pages/api")

    for path in visitor.get("/openapi.json").json()["paths"]:
        assert f"{path}</code>" in text
    assert "Totals are wrong when a tariff is missing" in text

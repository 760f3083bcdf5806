"""The pages of the service in a browser: accessible, usable with the keyboard."""

from pathlib import Path

from contextgraph.model import Scope
from contextgraph.operations import TokenScope
from tests.browser import audit
from tests.builders import recovering_run
from tests.served import learn, served, signed_in


def test_pages_are_accessible_and_usable_with_the_keyboard(axe: Path, tmp_path: Path) -> None:
    with served(tmp_path) as service:
        runs = map(recovering_run, range(1, 4))
        job = learn(service.client(), *runs)
        service.client(TokenScope.ADMIN).post("/v1/consolidate")
        memory = service.app.state.service.tenant("default").memory
        memory.notes.remember("Tests need Redis", repo="acme/shop", source="user:ann")
        (methodology, *_) = memory.store.methodologies.ids("acme/shop")
        run = job["runs"][0]["trajectory_id"]
        (error, *_) = [tally.error.id for tally in memory.store.recoveries.errors(Scope(), 1)]
        browser = signed_in(service, TokenScope.ADMIN)
        pages = {
            path: browser.get(path).text
            for path in (
                *("/pages", "/pages/login", "/pages/notes", "/pages/search?q=totals"),
                *(f"/pages/runs/{run}", f"/pages/graph/{run}", f"/pages/graph/{methodology}"),
                *("/pages/repositories?repo=acme/shop", "/pages/advice", "/pages/runs"),
                *("/pages/errors", "/pages/repositories", "/pages/api"),
                *(f"/pages/errors/{error}", f"/pages/compare?a={run}&b={run}"),
            )
        }

    # Other pages are made of the same parts.
    dark = [("dark", path) for path in ("/pages", f"/pages/runs/{run}", "/pages/advice")]
    for theme, path in (*(("light", path) for path in pages), *dark):
        found = audit(pages[path], axe, tmp_path, theme)
        assert found["wrong"] == [], path
        assert found["rules"] > 10
        assert [html for html, is_reached in found["keys"] if not is_reached] == [], path
        assert len(found["keys"]) >= (2 if path == "/pages/login" else 4)

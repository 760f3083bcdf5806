"""The pages of the service in a browser: accessible, usable with the keyboard."""

import json
from html import unescape
from itertools import product
from pathlib import Path

from contextgraph.console.page import TEMPLATES
from contextgraph.model import Scope
from contextgraph.service.operations import TokenScope
from tests.browser import audit, in_a_browser, stand_alone
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
                *("/pages/lessons", "/pages/errors?show=frequent", "/pages/errors?show=remedies"),
                "/pages/failures",
                *(f"/pages/runs/{run}", f"/pages/graph/{run}", f"/pages/graph/{methodology}"),
                *("/pages/repositories?repo=acme/shop", "/pages/advice", "/pages/runs"),
                *("/pages/errors", "/pages/repositories", "/pages/api"),
                *(f"/pages/errors/{error}", f"/pages/compare?a={run}&b={run}", "/pages/health"),
            )
        }

    shown = [*product(("light", "dark"), pages)]
    audited = audit([stand_alone(pages[path], theme) for theme, path in shown], axe, tmp_path)
    for (_, path), found in zip(shown, audited, strict=True):
        assert found["wrong"] == [], path
        assert found["rules"] > 10
        assert [html for html, is_reached in found["keys"] if not is_reached] == [], path
        assert len(found["keys"]) >= (2 if path == "/pages/login" else 4)


_PRESSED = """<script>addEventListener("load", () => {
    const found = [];
    const press = (key) => {
        document.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
        const open = document.querySelector("details.step.current");
        found.push([key, location.hash, document.activeElement.id, open ? open.open : false]);
    };
    for (const key of ["j", "j", "k", "n", "n", "p", "/"]) press(key);
    const result = document.createElement("pre");
    result.id = "result";
    result.textContent = JSON.stringify(found);
    document.body.replaceChildren(result);
})</script></body>"""


def test_a_run_is_walked_through_by_keys(tmp_path: Path) -> None:
    with served(tmp_path) as service:
        job = learn(service.client(), recovering_run(1))
        run = job["runs"][0]["trajectory_id"]
        page = signed_in(service).get(f"/pages/runs/{run}").text
    script = (TEMPLATES / "console.js").read_text(encoding="utf-8")
    file = tmp_path / "run.html"
    pressed = _PRESSED.replace("document.dispatchEvent", "document.body.dispatchEvent")
    page = stand_alone(page).replace("</body>", f"<script>{script}</script>{pressed}")
    file.write_text(page, encoding="utf-8")
    document = in_a_browser(file, "", "--virtual-time-budget=5000")
    found = json.loads(unescape(document.partition('id="result">')[2].partition("</pre>")[0]))

    assert [(key, place) for key, place, *_ in found[:3]] == [
        ("j", "#s1-0"),
        ("j", "#s1-1"),
        ("k", "#s1-0"),
    ]
    marked = [place for key, place, *_ in found if key in "np"]
    assert marked == ["#s1-1", "#s1-2", "#s1-1"]  # its error, the recovery, and back
    assert all(is_open for *_, is_open in found)
    assert found[-1][2] == "search"

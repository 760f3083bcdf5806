"""The pages of the service in a browser: accessible, wide and narrow, with keys and clicks."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from itertools import product
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.console.page import TEMPLATES
from contextgraph.model import Action, RawTrajectory, Scope, Step
from contextgraph.model.values import replace
from contextgraph.service.operations import TokenScope
from tests.browser import Person, audit, in_a_browser, person, stand_alone
from tests.builders import detouring_run, recovering_run
from tests.served import learn, served, serving, signed_in

# One process opens the browser of the console.
pytestmark = pytest.mark.xdist_group("pages")


def test_pages_are_accessible_and_usable_with_the_keyboard(axe: Path, tmp_path: Path) -> None:
    with served(tmp_path) as service:
        runs = map(detouring_run, range(1, 4))
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
        assert found["overflowing"] == [], path
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


TAX = "We never round the tax before the total."
SAID_AT_THE_END = "The rounding test still fails; next I would look at the tax of refunds."


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """A person at the console of a memory: advice of this week, a decision, a failed session."""
    folder = tmp_path_factory.mktemp("console")
    now = datetime.now(UTC)
    with AgentMemory.open(folder / "memory.db") as memory:
        memory.learn([*map(detouring_run, range(1, 5))])
        memory.consolidate()
        with memory.live(repo="acme/shop", instance_id="acme__shop-9", task="Add a page") as live:
            for one in detouring_run(9).steps:
                live.observe(one.action, one.observation or "", exit_code=one.exit_code)
        memory.learn([_failed_session(now - timedelta(days=1)), _decision(now - timedelta(days=9))])
    with serving(folder / "memory.db") as server, person(folder) as visitor:
        visitor.open(f"{server.client.base_url}/pages")
        yield visitor


def _failed_session(at: datetime) -> RawTrajectory:
    edit = {"file_path": "shop/tax.py", "old_string": "round(3)", "new_string": "3"}
    failing = "FAILED tests/test_tax.py::test_rounding - assert 3 == 4\n1 failed in 0.1s"
    steps = (
        Step(0, "", Action("Edit", "shop/tax.py", edit), "updated"),
        Step(1, "", Action("bash", "pytest tests"), failing, exit_code=1),
        Step(2, SAID_AT_THE_END, Action("bash", "git status"), "M shop/tax.py"),
    )
    return RawTrajectory(
        "claude-code", "s-8", "acme/shop", "Mend the rounding of refunds",
        tuple(replace(one, timestamp=at + timedelta(minutes=one.index)) for one in steps),
        agent="claude-code", started_at=at, session="s-8",
    )  # fmt: skip


def _decision(at: datetime) -> RawTrajectory:
    said = Step(0, "", Action("bash", "pytest tests"), "3 passed in 0.1s", user_message=TAX)
    return RawTrajectory(
        "claude-code", "s-7", "acme/shop", "Show totals of a month", (said,),
        agent="claude-code", started_at=at, session="s-7",
    )  # fmt: skip


def answered(visitor: Person, *expected: str) -> None:
    """The page answers, after at most three clicks; the next question begins at the overview."""
    assert visitor.clicks <= 3
    assert [text for text in expected if text not in visitor.text] == []
    visitor.click("ContextGraph")
    visitor.clicks = 0


def test_what_it_did_this_week_is_seen_at_once(console: Person) -> None:
    assert console.clicks == 0
    answered(console, "What happened this week", "advice shown\n1", "errors cleared after it\n1")


def test_what_was_decided_about_a_subject_is_found(console: Person) -> None:
    console.search("what did we decide about the tax")
    answered(console, TAX)
    console.click("Lessons")
    answered(console, TAX)


def test_why_something_was_shown_stands_beside_it(console: Person) -> None:
    console.click("Advice")
    answered(console, "set `PYTHONPATH=lib`", "Why: worked in 4 runs in all", "cleared")


def test_what_happened_in_a_failed_session_is_said_first(console: Person) -> None:
    console.click("those that failed")
    console.click("Mend the rounding of refunds")
    answered(
        console,
        "failed, guessed",
        "shop/tax.py",
        "failed: pytest tests",
        "assert 3 == 4",
        SAID_AT_THE_END,
    )


def test_how_tests_are_run_is_the_first_of_a_repository(console: Person) -> None:
    console.click("Repositories")
    console.click("acme/shop")
    answered(console, "How tests are run", "pytest")

"""The pages of the service: what they show, who may press their buttons, and that they are safe."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from html import escape, unescape
from pathlib import Path
from shutil import copytree

import pytest
from fastapi.testclient import TestClient

from contextgraph.agents.hook_files import HookFiles
from contextgraph.config import Settings
from contextgraph.console.routes import add_pages
from contextgraph.knowledge import NewLesson
from contextgraph.model import (
    About,
    Action,
    Condition,
    Exposure,
    LessonFacts,
    LessonKind,
    Origin,
    Outcome,
    Quotation,
    RawTrajectory,
    ShownItem,
    Step,
)
from contextgraph.model.values import replace
from contextgraph.service.app import create_app
from contextgraph.service.operations import TokenScope
from contextgraph.service.service import Limits
from contextgraph.service.tokens import TokenFile
from tests.builders import NO_MODULE, detouring_run, run, step
from tests.served import Served, learn, served, signed_in

QUARANTINE, RELEASE = {"decision": "quarantine"}, {"decision": "release"}
ORIGIN = {"Origin": "http://testserver"}


HOSTILE = "Show <script>alert(1)</script> here"


def task_of(number: int) -> str:
    return f"Totals are wrong when tariff {number} is missing"


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a service that has learned runs, one of them hostile, and has a methodology."""
    folder = tmp_path_factory.mktemp("learned")
    with served(folder) as found:
        client = found.client(TokenScope.ADMIN)
        learn(client, *(detouring_run(n, task=task_of(n)) for n in range(1, 4)))
        learn(client, detouring_run(4, task=HOSTILE, repo="evil/<b>x</b>"))
        assert client.post("/v1/consolidate").json()["started"]
    return folder


@pytest.fixture
def service(learned: Path, tmp_path: Path) -> Iterator[Served]:
    """A service of its memory."""
    copytree(learned, tmp_path, dirs_exist_ok=True)
    with served(tmp_path) as found:
        yield found


@pytest.fixture
def visitor(service: Served) -> TestClient:
    """A browser of someone who may only read."""
    return signed_in(service, TokenScope.READ)


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
    (link,) = set(re.findall(rf'href="(/pages/runs/[^"]+)">{task_of(1)}<', overview))

    assert "4 sessions are known" in overview
    assert overview.count('<rect class="unknown"') == 1
    assert "ModuleNotFoundError" in overview
    assert "PYTHONPATH=lib" in repository
    assert f">{task_of(2)}</a>" in repository
    assert "How tests are run" in repository
    assert 'class="timeline"' in page(visitor, link)
    unknown = visitor.get("/pages/runs/trj_none")
    assert unknown.status_code == 404
    assert "<p>no run trj_none</p>" in unknown.text


def test_each_node_of_the_graph_leads_to_its_neighbours(visitor: TestClient) -> None:
    about = page(visitor, address(page(visitor, "/pages/errors"), "errors/err_"))
    error = page(visitor, address(about, "graph/err_"))
    fragment = page(visitor, address(error, "graph/frg_"))
    run = page(visitor, address(fragment, "graph/trj_"))

    assert error.count('<a class="node"') == error.count('<li><a href="/pages/graph/')
    assert "met in" in error
    assert "/pages/runs/trj_" in run
    assert visitor.get("/pages/graph/err_none").status_code == 404


def test_search_finds_runs_repositories_errors_and_ids(visitor: TestClient) -> None:
    run = address(page(visitor, "/pages"), "runs/trj_").rpartition("/")[2]

    assert "/pages/runs/trj_" in page(visitor, "/pages/search?q=tariff totals")
    assert "?repo=acme/shop" in page(visitor, "/pages/search?q=shop")
    assert "PYTHONPATH=lib" in page(visitor, "/pages/search?q=module named tariffs")
    assert f'href="/pages/graph/{run}"' in page(visitor, f"/pages/search?q={run}")


def test_notes_are_shown_with_their_source(service: Served, visitor: TestClient) -> None:
    memory = service.app.state.service.tenant("default").memory
    memory.notes.remember("Tests need Redis", repo="acme/shop", source="user:ann")

    for path in ("/pages/notes", "/pages/search?q=redis"):
        assert "Tests need Redis" in page(visitor, path)
    assert "user:ann" in page(visitor, "/pages/notes")


def test_hooks_that_failed_are_said(service: Served, visitor: TestClient) -> None:
    assert "All is well" in page(visitor, "/pages")
    files = HookFiles(service.app.state.service.settings)
    files.mark_used()
    files.fail("ValueError: no words")
    overview, health = page(visitor, "/pages"), page(visitor, "/pages/health")
    assert "Not well: hooks" in overview
    assert "1 failure, the last: ValueError: no words" in health


def test_an_administrator_switches_advice_off_and_on(service: Served) -> None:
    administrator = signed_in(service, TokenScope.ADMIN)
    repository = "/pages/repositories?repo=acme/shop"
    (button, *_) = re.findall(r'action="(/pages/advice/[^"]+)"', page(administrator, repository))
    from_repository = {**ORIGIN, "Referer": f"http://testserver{repository}"}

    after = administrator.post(button, data=QUARANTINE, headers=from_repository)
    listed = page(administrator, "/pages/errors?show=remedies")
    again = administrator.post(button, data=RELEASE, headers=ORIGIN)

    assert after.url.path == "/pages/repositories"
    assert after.url.params["repo"] == "acme/shop"
    assert "switched off" in after.text
    assert "switched off" in listed
    assert 'value="release"' in after.text
    assert again.url.path == "/pages/advice"
    assert "switched off" not in page(administrator, repository)


def test_advice_is_listed_with_what_was_said_and_what_followed(service: Served) -> None:
    memory = service.app.state.service.tenant("default").memory
    with memory.live(repo="acme/shop", instance_id="acme__shop-9", task="Totals") as run:
        for step in detouring_run(9).steps:
            run.observe(step.action, step.observation or "", exit_code=step.exit_code)
        said = run.raw
    listed = page(signed_in(service, TokenScope.READ), "/pages/advice")

    assert said.steps
    assert "ModuleNotFoundError" in listed
    assert "Why: worked in 4 runs in all; 3 of 3 tasks with this message here" in listed
    assert "probability 0." in listed
    assert "Earlier runs: set `PYTHONPATH=lib`" in unescape(listed)
    assert "PYTHONPATH=lib" in listed
    assert "cleared</span>" in listed


def test_an_index_that_was_shown_is_listed(service: Served, visitor: TestClient) -> None:
    memory = service.app.state.service.tenant("default").memory
    said = Quotation("never round", "", "s", 0, datetime(2026, 1, 31, tzinfo=UTC))
    rules = [
        NewLesson(
            f"We never round the {name} of a tariff before the invoice is written.",
            LessonFacts(
                LessonKind.RULE, Origin.SAID, About(subject=f"rounding of {name}"), (said,), True
            ),
        )
        for name in ("discount", "freight", "surcharge", "customs", "deposit", "refund")
    ]
    memory.lessons.keep(rules, "acme/shop")
    memory.live(repo="acme/shop", task="", session="s").prompt("Write the invoices")
    assert "for the agent to open some" in page(visitor, "/pages/advice")


def test_a_warning_that_a_run_goes_as_failed_ones_did_is_listed(
    service: Served, visitor: TestClient
) -> None:
    memory = service.app.state.service.tenant("default").memory
    for number in range(24):
        is_solved = number % 2 == 0
        first = ("sed -i 's/1/2/' shop/totals.py" if is_solved else "ls shop", "", 0)
        outcome = Outcome.SOLVED if is_solved else Outcome.FAILED
        steps = [first, *[(f"cat shop/{at}.py", "x", 0) for at in range(24)]]
        memory.learn(run(steps, instance_id=f"acme__shop-{100 + number}", outcome=outcome))
    with memory.live(repo="acme/shop", instance_id="acme__shop-99", task="Totals") as live:
        for at in range(24):
            live.observe(Action("bash", f"cat shop/{at}.py"), "x", exit_code=0)
    listed = page(visitor, "/pages/advice")

    assert "No existing file was changed: 0 of 12 earlier runs" in listed
    assert "while it went as failed runs had" in listed


def test_facts_of_a_start_are_told_by_their_text(service: Served, visitor: TestClient) -> None:
    memory = service.app.state.service.tenant("default").memory
    facts = [ShownItem("fact_9f3dab8d", why="what 3 earlier tasks of the repository show")]
    at_start = Exposure.of("ctx_1", facts, datetime.now(UTC), text="Tests run with `make check`")
    memory.store.exposures.add([at_start])
    listed = page(visitor, "/pages/advice")

    assert ">Tests run with `make check`</a>" in listed
    assert "what 3 earlier tasks of the repository show" in listed
    assert ">fact_" not in listed
    page(visitor, "/pages/graph/fact_9f3dab8d")

    administrator, button = signed_in(service, TokenScope.ADMIN), "/pages/advice/fact_9f3dab8d"
    assert f'action="{button}"' in page(administrator, "/pages/advice")
    after = administrator.post(button, data=QUARANTINE, headers=ORIGIN)
    assert "switched off" in after.text
    assert 'value="release"' in page(administrator, "/pages/advice")


def test_a_session_that_is_not_learned_yet_has_a_title(
    service: Served, visitor: TestClient
) -> None:
    memory = service.app.state.service.tenant("default").memory
    shown = Exposure.of("ctx_1", [ShownItem("fact_1")], datetime.now(UTC), text="Run it")
    memory.store.exposures.add([replace(shown, session="5e550003-0000-4000-8000-000000000000")])

    assert "<h2>Session 5e550003, not learned yet</h2>" in page(visitor, "/pages/advice")


def test_sessions_are_filtered_counted_sorted_and_paged(
    service: Served, visitor: TestClient
) -> None:
    def titles(path: str) -> list[str]:
        return re.findall(r'href="/pages/runs/trj_[^"]+">([^<]+)<', page(visitor, path))

    ours = [task_of(n) for n in range(1, 4)]
    assert {*titles("/pages/runs")} == {*ours, escape(HOSTILE)}
    assert {*titles("/pages/runs?repo=acme/shop")} == {*ours}
    assert titles("/pages/runs?sort=repo")[-1] == escape(HOSTILE)
    assert titles("/pages/runs?outcome=failed") == []
    assert titles("/pages/runs?agent=nobody") == []
    assert titles("/pages/runs?since=2999-01-01") == []
    assert titles("/pages/runs?until=1999-01-01") == []
    assert len(titles("/pages/runs?days=7")) == len(titles("/pages/runs"))
    assert {*titles("/pages/runs?text=tariff")} == {*ours}
    assert titles("/pages/runs?text=alert") == [escape(HOSTILE)]
    assert titles("/pages/runs?text=tariff&repo=evil/b") == []
    assert titles("/pages/runs?text=tariff&agent=nobody") == []
    assert re.search(r"acme/shop</a><span[^>]*>3<", page(visitor, "/pages/runs"))
    assert visitor.get("/pages/runs?outcome=nonsense").status_code == 422
    learn(service.client(TokenScope.ADMIN), *map(detouring_run, range(10, 60)))
    first = page(visitor, "/pages/runs")
    (more,) = re.findall(r'href="([^"]+)" rel="next"', first)
    assert len(titles("/pages/runs")) == 50
    assert len(titles(unescape(more))) == 4


def test_a_session_has_its_sub_agents_inside_and_says_how_it_ended(
    service: Served, visitor: TestClient
) -> None:
    edit = {"file_path": "shop/tariff.py", "old_string": "3", "new_string": "4"}
    steps = (
        Step(0, "", Action("Edit", "shop/tariff.py", edit), "updated"),
        step(1, "pytest tests", "1 passed in 0.1s"),
        replace(step(2, "git status"), thought="Invoices are rounded."),
    )
    asked = detouring_run(7, task="Mend the invoices", agent="claude-code", session="s-7")
    asked = replace(asked, steps=steps)
    part = detouring_run(8, task="Look for callers", agent="claude-code/subagent", session="s-7")
    learn(service.client(), asked, replace(part, instance_id=asked.instance_id))
    listed = page(visitor, "/pages/runs")
    (link,) = set(re.findall(r'href="(/pages/runs/trj_[^"]+)">Mend the invoices<', listed))
    (inside,) = set(re.findall(r'href="(/pages/runs/trj_[^"]+)">Look for callers<', listed))
    text = page(visitor, link)

    assert listed.count("<tr><td>") == 5
    assert "1 sub-agent<" in listed
    assert link in page(visitor, "/pages/runs?text=rounded")
    assert '<span class="solved guess"' in listed
    assert "<h1>Mend the invoices</h1>" in text
    assert "guessed: " in text
    assert "6 steps" in text
    assert f'href="{inside}"' in text
    assert f'a sub-agent in <a href="{link}"' in page(visitor, inside)


def test_a_run_is_read_with_the_advice_that_it_was_shown(
    service: Served, visitor: TestClient
) -> None:
    memory = service.app.state.service.tenant("default").memory
    memory.notes.remember("Tests need Redis", repo="acme/shop", pinned=True)
    with memory.live(repo="acme/shop", instance_id="acme__shop-9", task="Add a page") as live:
        assert live.start()
        assert live.observe("python reproduce.py", NO_MODULE, exit_code=1)
    (identity,) = memory.store.runs.ids(instance="acme__shop-9")
    raw = memory.store.runs.raw(identity)
    text = page(visitor, f"/pages/runs/{identity}")

    assert raw is not None
    assert [*raw.advised.values()] == [-1, 0]
    assert text.count('class="advice"') == 2
    assert "Tests need Redis" in text
    assert "advised 2 times" in text
    # A rebuild reads the stored run, whose texts are without advice.
    memory.rebuild()
    again = memory.store.runs.raw(identity)
    assert again is not None
    assert again.advised == raw.advised


def test_two_runs_are_read_side_by_side(visitor: TestClient) -> None:
    runs = sorted(set(re.findall(r"/pages/runs/(trj_\w+)", page(visitor, "/pages/runs"))))
    text = page(visitor, f"/pages/compare?a={runs[0]}&b={runs[1]}")

    assert 'id="s1-0"' in text
    assert 'id="s2-0"' in text
    assert visitor.get(f"/pages/compare?a={runs[0]}&b=trj_none").status_code == 404


def test_an_administrator_archives_and_restores_a_note(service: Served) -> None:
    memory = service.app.state.service.tenant("default").memory
    note = memory.notes.remember("Tests need Redis", repo="acme/shop", source="user:ann").id
    administrator = signed_in(service, TokenScope.ADMIN)
    path = f"/pages/notes/{note}"

    administrator.post(path, data={"decision": "archive"}, headers=ORIGIN)
    assert "Tests need Redis" not in page(administrator, "/pages/notes")
    assert "Tests need Redis" in page(administrator, "/pages/notes?show=archived")
    administrator.post(path, data={"decision": "restore"}, headers=ORIGIN)
    assert "Tests need Redis" in page(administrator, "/pages/notes")
    refused = administrator.post(path, data={"decision": "eat"}, headers=ORIGIN)
    assert refused.status_code == 422


def test_a_key_of_the_console_opens_it_once(tmp_path: Path) -> None:
    tokens = TokenFile(tmp_path / "tokens.json")
    _, token = tokens.create([TokenScope.ADMIN], "default", "local")
    settings = Settings(store=str(tmp_path / "memory.db"))
    app = add_pages(create_app(settings, tokens, Limits()), {"one-time": token})
    with TestClient(app) as browser:
        assert browser.get("/pages/enter?key=wrong").status_code == 403
        assert browser.get("/pages/enter?key=one-time").url.path == "/pages"
        assert "Sessions" in page(browser, "/pages/runs")
        other = TestClient(app)
        assert other.get("/pages/enter?key=one-time").status_code == 403
        assert other.get("/pages").url.path == "/pages/login"


def test_a_button_works_only_for_administrators_on_a_page_of_the_service(service: Served) -> None:
    reader, administrator = (
        signed_in(service, TokenScope.READ),
        signed_in(service, TokenScope.ADMIN),
    )
    path = "/pages/advice/met_x"

    assert "/pages/advice/" not in page(reader, "/pages/repositories?repo=acme/shop")
    assert reader.post(path, data=QUARANTINE, headers=ORIGIN).status_code == 403
    for headers in ({}, {"Origin": "null"}, {"Origin": "https://evil.example"}):
        refused = administrator.post(path, data=QUARANTINE, headers=headers)
        assert refused.status_code == 403
        assert "page" in refused.json()["detail"]
    assert administrator.post(path, data=QUARANTINE, headers=ORIGIN).status_code == 404


def test_pages_hold_no_markup_of_runs_and_load_nothing(visitor: TestClient) -> None:
    overview = page(visitor, "/pages")
    (run,) = set(re.findall(r'(/pages/runs/[^"]+)">Show &lt;script', overview))
    graph = run.replace("runs", "graph")
    for path in (
        *("/pages", "/pages/notes", run, graph),
        *("/pages/search?q=<b>x alert", "/pages/repositories?repo=<b>x"),
    ):
        response = visitor.get(path)
        assert "default-src 'none'" in response.headers["Content-Security-Policy"]
        text = response.text.replace('<script src="/pages/static/console.js" defer></script>', "")
        assert not re.search(r"<script|<b>x|src=|https?://", text)


def test_a_visitor_signs_out_and_the_cookie_is_no_token(service: Served) -> None:
    browser = signed_in(service, TokenScope.READ)
    visit = browser.cookies["contextgraph_token"]
    stolen = {"Authorization": f"Bearer {visit}"}
    assert browser.get("/v1/stats", headers=stolen).status_code == 401
    assert "Sign out" in page(browser, "/pages")
    assert browser.post("/pages/logout", headers=ORIGIN).url.path == "/pages/login"
    browser.cookies.set("contextgraph_token", visit, path="/pages")
    assert browser.get("/pages").url.path == "/pages/login"


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


def test_a_decision_tells_who_reviewed_it_and_what_it_said(service: Served) -> None:
    rule = "We never want generated files in a commit."
    said = Step(0, "", Action("bash", "ls"), "lib", user_message=rule)
    raw = RawTrajectory("claude-code", "acme__shop-7", "acme/shop", "Totals", (said,))
    learn(service.client(TokenScope.ADMIN), raw)
    administrator = signed_in(service, TokenScope.ADMIN)
    listed = page(administrator, "/pages/lessons?text=generated")
    (path, *_) = re.findall(r'action="(/pages/notes/[^"]+)"', listed)

    edited = {"decision": "edit", "text": "Never edit files under gen/."}
    after = administrator.post(path, data=edited, headers=ORIGIN).text

    assert "Never edit files under gen/." in after
    assert f"edited by ci; before: {rule}" in unescape(after)
    assert "files under gen" not in page(administrator, "/pages/lessons?text=unrelated")


def test_a_decision_on_a_lesson_is_undone_by_the_button_that_appears(service: Served) -> None:
    rule = "We never want generated files in a commit."
    said = Step(0, "", Action("bash", "ls"), "lib", user_message=rule)
    raw = RawTrajectory("claude-code", "acme__shop-7", "acme/shop", "Totals", (said,))
    learn(service.client(TokenScope.ADMIN), raw)
    administrator = signed_in(service, TokenScope.ADMIN)
    place = "/pages/lessons?text=generated"
    (path, *_) = re.findall(r'action="(/pages/notes/[^"]+)"', page(administrator, place))
    from_list = {**ORIGIN, "Referer": f"http://testserver{place}"}

    after = administrator.post(path, data={"decision": "reject"}, headers=from_list)
    assert after.url.params["text"] == "generated"
    assert f"Rejected: {rule}" in after.text
    assert f'action="{path}"><span>Rejected' in after.text
    assert '<button name="decision" value="undo">Undo</button>' in after.text
    assert f'<li id="{path.rpartition("/")[2]}">' not in after.text
    from_notice = {**ORIGIN, "Referer": str(after.url)}
    again = administrator.post(path, data={"decision": "undo"}, headers=from_notice)
    assert "Undone" in again.text
    assert f'<li id="{path.rpartition("/")[2]}">' in again.text
    assert str(again.url).count("decided=") == 1
    assert "Rejected" not in page(signed_in(service, TokenScope.READ), str(after.url))


def test_a_lesson_takes_the_place_of_another_by_a_person_on_the_page(service: Served) -> None:
    rules = (
        "We never want generated files in a commit.",
        "Never put totals of generated invoices into shop/export.py.",
    )
    steps = tuple(
        Step(at, "", Action("bash", "ls"), "lib", user_message=rule)
        for at, rule in enumerate(rules)
    )
    raw = RawTrajectory("claude-code", "acme__shop-7", "acme/shop", "Totals", steps)
    learn(service.client(TokenScope.ADMIN), raw)
    administrator = signed_in(service, TokenScope.ADMIN)
    listed = page(administrator, "/pages/lessons")
    ids = {
        rule: one for one, rule in re.findall(r'<li id="(\w+)"><p class="text">([^<]+)</p>', listed)
    }
    former, later = (ids[rule] for rule in rules)
    assert f'<option value="{later}">' in listed

    path = f"/pages/notes/{former}"
    given = {"decision": "supersede", "successor": later}
    after = administrator.post(path, data=given, headers=ORIGIN)
    assert f"Superseded: {rules[0]}" in after.text
    assert rules[0] in page(administrator, "/pages/lessons?status=superseded")
    unknown = {**given, "successor": "lesson_0"}
    assert administrator.post(path, data=unknown, headers=ORIGIN).status_code == 404
    undo = 'name="decision" value="undo"'
    assert page(administrator, "/pages/lessons?status=superseded").count(undo) == 1
    administrator.post(path, data={"decision": "undo"}, headers=ORIGIN)
    listed = page(administrator, "/pages/lessons")
    assert f'<li id="{former}">' in listed
    assert undo not in listed


def test_ten_lessons_are_listed_at_a_time_by_subject(service: Served) -> None:
    names = ("gen/out.py", "lib/ledger.py", "docs/api.md")
    steps = tuple(
        Step(
            at,
            "",
            Action("bash", f"ls {at}"),
            "lib",
            user_message=f"Always run check number{at} before you change {names[at % 3]}.",
        )
        for at in range(12)
    )
    raw = RawTrajectory("claude-code", "acme__shop-7", "acme/shop", "Totals", steps)
    learn(service.client(TokenScope.ADMIN), raw)
    reader = signed_in(service, TokenScope.READ)
    place = "/pages/lessons?repo=acme/shop"
    first, second = page(reader, place), page(reader, f"{place}&page=1")
    assert first.count('<li id="') == 10
    assert 0 < second.count('<li id="') < 10
    headings = re.findall(r'<li class="heading"><h2>([^<]+)</h2>', first)
    assert len(headings) == len({*headings})
    assert {*names} & {*headings}


def test_lessons_are_counted_by_what_they_are(service: Served) -> None:
    messages = ("Always run the linter first.", "We never want generated files in a commit.")
    steps = (
        Step(n, "", Action("bash", f"ls {n}"), "lib", user_message=one)
        for n, one in enumerate(messages)
    )
    raw = RawTrajectory("claude-code", "acme__shop-7", "acme/shop", "Totals", tuple(steps))
    learn(service.client(TokenScope.ADMIN), raw)
    reader = signed_in(service, TokenScope.READ)
    whole = page(reader, "/pages/lessons")
    kinds = dict(re.findall(r'href="/pages/lessons\?kind=(\w+)">[^<]+</a><span[^>]*>(\d+)<', whole))
    assert sum(map(int, kinds.values())) == whole.count('<li id="')
    assert f"{whole.count('<li id=')} of {whole.count('<li id=')} are listed" in whole
    for kind, count in kinds.items():
        assert page(reader, f"/pages/lessons?kind={kind}").count('<li id="') == int(count)


def test_why_runs_fail_is_on_a_page(service: Served, visitor: TestClient) -> None:
    memory = service.app.state.service.tenant("default").memory
    for number in range(20, 60):
        run = detouring_run(number)
        steps = run.steps if number % 2 else run.steps[:2]  # up to its error
        outcome = Outcome.SOLVED if number % 2 else Outcome.FAILED
        memory.learn(replace(run, steps=steps, outcome=outcome))
    text = page(visitor, "/pages/failures")

    assert "An error was never cleared" in text
    assert 'href="/pages/failures" aria-current="page"' in text
    named = {condition.text for condition in Condition}
    patterns = [one for one in memory.get_stats().failure_patterns if one.condition in named]
    rows = re.findall(r"<tr><td>([^<]*)</td>(.*?)</tr>", text, re.DOTALL)
    shown = [(name, *map(int, re.findall(r">(\d+)(?: %)?<", cells))) for name, cells in rows]
    assert patterns
    for one, (name, *figures) in zip(patterns, shown, strict=True):
        assert (name, *figures[:3]) == (
            one.condition,
            one.runs,
            round(100 * one.solved),
            round(100 * (one.solved_without or 0)),
        )
    assert "No condition is known" in page(visitor, "/pages/failures?repo=evil/b")

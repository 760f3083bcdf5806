"""Pages for people at /pages: what the memory holds, without scripts and without other hosts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated, Literal
from urllib.parse import quote, urlsplit

from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from contextgraph.knowledge import without_secret
from contextgraph.memory import AgentMemory
from contextgraph.model import (
    Evidence,
    Exposure,
    Methodology,
    Note,
    RecoveryCandidate,
    RepositoryPlaybook,
    Scope,
    Trajectory,
)
from contextgraph.page import document, phase_styles, run_parts, shown
from contextgraph.ports import every_exposure
from contextgraph.retrieval import playbook_lines
from contextgraph.server.access import COOKIE, Caller, caller_of
from contextgraph.server.drawings import (
    STYLE,
    facts,
    graph_address,
    neighbourhood,
    numbers,
    outcome_chart,
    share_bar,
    table,
    tiles,
)
from contextgraph.server.tokens import Scope as TokenScope
from contextgraph.text import number_of, one_line, words
from contextgraph.trace import describe_remedy

router = APIRouter(prefix="/pages", include_in_schema=False)

_ROWS, _COMMANDS, _ERRORS, _REPOSITORIES, _RELATIONS = 50, 8, 12, 200, 500
_SIGN_IN = """<main><h1>ContextGraph</h1><form method="post" action="/pages/login">
<label>Token <input type="password" name="token" autocomplete="current-password" required></label>
<button>Sign in</button></form>
<p><code>contextgraph token create</code> makes one.</p></main>"""
_HEADER = """<header><nav aria-label="Pages"><a class="brand" href="/pages">ContextGraph</a>
<a href="/pages/methodologies">Methodologies</a> <a href="/pages/notes">Notes</a></nav>
<form class="search" role="search" action="/pages/search">
<label>Search <input name="text" value="{text}" required></label> <button>Go</button></form>
</header>
"""
# A page in a frame of another site could make people press its buttons.
_HEADERS = {"X-Frame-Options": "DENY", "Cache-Control": "no-store"}


class SignedOutError(Exception):
    """The visitor has no token, or one that is not valid any more."""


async def _visitor(request: Request, scope: TokenScope = TokenScope.READ) -> Caller:
    try:
        return await caller_of(request, scope, request.cookies.get(COOKIE, ""))
    except HTTPException as error:
        if error.status_code == 401:
            raise SignedOutError from error
        raise


async def _reader(request: Request) -> Caller:
    return await _visitor(request)


async def _administrator(request: Request) -> Caller:
    """Who presses a button, which pages of other sites must not do for them."""
    origin = request.headers.get("Origin")
    if origin is None or urlsplit(origin).netloc != request.headers.get("Host"):
        raise HTTPException(403, "this request does not come from a page of the service")
    return await _visitor(request, TokenScope.ADMIN)


Visitor = Annotated[Caller, Depends(_reader)]
Administrator = Annotated[Caller, Depends(_administrator)]
Word = Annotated[str, Query(max_length=500)]
Decision = Annotated[Literal["quarantine", "release"], Form()]


async def signed_out(_request: Request, _error: Exception) -> Response:
    """The way to the page on which a token is given."""
    return RedirectResponse("/pages/login", 303)


@router.get("/login")
async def sign_in() -> Response:
    """Where a token is given."""
    return HTMLResponse(
        "".join(document("Sign in: ContextGraph", STYLE, [_SIGN_IN])), 200, _HEADERS
    )


@router.post("/login")
async def signed_in(request: Request, token: Annotated[str, Form(max_length=200)]) -> Response:
    """Keep the token in a cookie that scripts and other sites cannot use."""
    response = RedirectResponse("/pages", 303)
    response.set_cookie(
        COOKIE,
        token,
        path="/pages",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


@router.get("")
async def overview(visitor: Visitor) -> Response:
    """The memory at a glance."""

    def parts() -> Iterator[str]:
        memory = visitor.tenant.memory
        yield "<h1>The memory</h1>"
        counts = memory.store.admin.counts()
        yield tiles(
            [
                ("runs", f"{counts.nodes['Trajectory']:,}"),
                ("repositories", f"{counts.repositories:,}"),
                ("kinds of error", f"{counts.nodes['ErrorPattern']:,}"),
                ("recoveries", f"{counts.edges['RECOVERED']:,}"),
                ("methodologies", f"{counts.nodes.get('Methodology', 0):,}"),
            ]
        )
        periods = memory.stats.get_outcomes_over_time()
        yield "<h2>Outcomes over time</h2>" + (
            outcome_chart(periods) if periods else "<p>No runs yet.</p>"
        )
        yield _error_map(memory)
        yield _friction_table(memory, "")
        yield _effect(memory)
        yield _repository_table(memory)
        yield _run_table(
            "Runs, solved ones first", memory.store.runs.for_task(None, Scope(), _ROWS)
        )

    return await _page(visitor, "Memory", parts)


def _error_map(memory: AgentMemory) -> str:
    """The most frequent types of error, and which one follows each in the same run."""
    frequency = memory.stats.get_error_frequency()
    following = memory.stats.get_error_transitions()
    most = max(frequency.values(), default=0)
    rows = []
    for error, count in [*frequency.items()][:_ERRORS]:
        nexts = [*following.get(error, {}).items()][:3]
        then = ", ".join(f"{shown(name)} ({share:.0%})" for name, share in nexts)
        rows.append((shown(error), f"{count:,}", share_bar(count, most), then))
    columns = ("type", *numbers("times"), "", "the next error of the same run")
    return table("Errors", columns, rows)


def _friction_table(memory: AgentMemory, repo: str) -> str:
    rows = (
        (
            f'<a href="{graph_address(one.error_id)}">{shown(one.error)}</a>',
            f"{one.tasks}",
            f"{one.cleared}",
            "" if one.steps_lost is None else f"{one.steps_lost:.0f}",
            "<br>".join(shown(remedy.text) for remedy in one.remedies),
        )
        for one in memory.stats.get_friction(repo)
    )
    columns = ("error", *numbers("tasks", "cleared", "steps lost"), "what cleared it")
    none = "No error was met in two tasks."
    return table("What keeps failing", columns, rows, none)


def _effect(memory: AgentMemory) -> str:
    """How often errors were cleared after advice was shown, and after it was withheld."""
    found = [*every_exposure(memory.store)]
    groups = (
        ("shown", [one for one in found if not one.is_withheld]),
        ("withheld by chance, to compare", [one for one in found if one.is_withheld]),
    )
    rows = (_effect_row(name, exposures) for name, exposures in groups if exposures)
    columns = ("advice", *numbers("times", "outcome known", "helped", "share"), "")
    return table("Effect of advice", columns, rows, "No advice was shown yet.")


def _effect_row(name: str, exposures: list[Exposure]) -> tuple[str, ...]:
    known = [one.helped for one in exposures if one.helped is not None]
    share = f"{sum(known) / len(known):.0%}" if known else ""
    bar = share_bar(sum(known), len(known)) if known else ""
    return name, f"{len(exposures)}", f"{len(known)}", f"{sum(known)}", share, bar


def _repository_table(memory: AgentMemory) -> str:
    runs = memory.store.runs
    repos = ((len(runs.ids(repo)), repo) for repo in _repositories(memory)[:_REPOSITORIES])
    most = sorted(repos, key=lambda one: (-one[0], one[1]))[:_ERRORS]
    rows = ((_repository_link(repo), f"{count:,}") for count, repo in most)
    return table("Repositories with most runs", ("repository", *numbers("runs")), rows)


def _repositories(memory: AgentMemory) -> Sequence[str]:
    return memory.store.admin.unconsolidated(0).repos


def _recovery_table(found: Iterable[RecoveryCandidate]) -> str:
    rows = (
        (
            shown(one_line(one.recovered.message, 160)),
            shown(describe_remedy(one.recovered.actions)),
            _run_link(one.trajectory_id, one.instance_id),
        )
        for one in found
    )
    return table("Errors, and what cleared them", ("error", "what cleared it", "run"), rows)


@router.get("/search")
async def search(visitor: Visitor, text: Word = "") -> Response:
    """Repositories, runs, errors and notes by their words, and the node with this id."""

    def parts() -> Iterator[str]:
        memory = visitor.tenant.memory
        yield f"<h1>Search for “{shown(text)}”</h1>"
        if found := memory.explain(text):
            yield f'<p><a href="{graph_address(text)}">{shown(found.label)} {shown(text)}</a></p>'
        if repos := [one for one in _repositories(memory) if text.casefold() in one]:
            yield "<h2>Repositories</h2>" + "".join(f"<p>{_repository_link(r)}</p>" for r in repos)
        terms = [*dict.fromkeys(words(text))]
        yield _run_table("Runs", memory.store.runs.for_text(terms, Scope(), _ROWS))
        yield _recovery_table(memory.store.recoveries.for_text(terms, Scope(), _ERRORS))
        yield _note_table("Notes", (without_secret(one.note) for one in memory.notes.recall(text)))

    return await _page(visitor, "Search", parts, text)


@router.get("/notes")
async def notes(visitor: Visitor) -> Response:
    """What people and agents noted, the newest first."""

    def parts() -> Iterator[str]:
        found = [*map(without_secret, visitor.tenant.memory.notes.of())]
        yield "<h1>Notes</h1>"
        yield _note_table(f"The newest of {number_of(len(found), 'note')}", found[:_ROWS])

    return await _page(visitor, "Notes", parts)


@router.get("/runs/{identity}")
async def run(visitor: Visitor, identity: str) -> Response:
    """A run, as `contextgraph inspect --html` shows it."""

    def parts() -> Iterator[str]:
        memory = visitor.tenant.memory
        raw = memory.store.runs.raw(identity)
        if raw is None:
            raise HTTPException(404, f"no run {identity}")
        graph = f'<a href="{graph_address(identity)}">graph around this run</a>'
        yield f"<p>{_repository_link(raw.repo)} · {graph}</p>"
        yield from run_parts(memory.inspect(raw))

    return await _page(visitor, identity, parts)


@router.get("/graph/{identity}")
async def graph(visitor: Visitor, identity: str) -> Response:
    """A node of the graph with its neighbours; each leads to its own."""

    def parts() -> Iterator[str]:
        found = visitor.tenant.memory.explain(identity)
        if found is None:
            raise HTTPException(404, f"nothing has the id {identity}")
        yield f"<h1>{shown(found.label)}: {shown(one_line(found.name, 120))}</h1>"
        values = [(name.replace("_", " "), shown(f"{fact}")) for name, fact in found.facts.items()]
        if found.label == "Trajectory":
            values.insert(0, ("steps", f'<a href="/pages/runs/{quote(identity)}">timeline</a>'))
        values += [("evidence", shown(_in_words(found.evidence)))] if found.evidence else []
        yield facts(values)
        if found.label == "Methodology":
            is_quarantined = found.evidence is not None and found.evidence.is_quarantined
            yield _decision(visitor, identity, is_quarantined=is_quarantined)
        yield neighbourhood(found)
        rows = (
            (
                f'<span class="kept">{"to" if one.outgoing else "from"}</span>',
                f'<span class="kept">{shown(one.type)}</span>',
                f'<a href="{graph_address(one.id)}">{shown(one.name)}</a>',
                shown(", ".join(f"{name} {value}" for name, value in one.properties.items())),
            )
            for one in found.relations[:_RELATIONS]
        )
        count = number_of(len(found.relations), "relation")
        title = count if len(found.relations) <= _RELATIONS else f"The first of {count}"
        yield table(title, ("direction", "type", "node", "properties"), rows)

    return await _page(visitor, identity, parts)


def _in_words(one: Evidence) -> str:
    return (
        f"shown {one.shown} times, tried {one.tried}, cleared the error {one.cleared} times; "
        f"of {one.runs} runs that met it {one.runs_cleared} cleared it; trust {one.trust:.2f}"
        f"{f'; {one.by_hand} by hand' if one.by_hand else ''}"
    )


@router.get("/repositories")
async def repository(visitor: Visitor, repo: Word) -> Response:
    """A repository: its playbook, its methodologies with their evidence, its runs."""

    def parts() -> Iterator[str]:
        memory = visitor.tenant.memory
        yield f"<h1>{shown(repo)}</h1>"
        yield from _playbook(memory.playbook(repo))
        yield _friction_table(memory, repo)
        store = memory.store.methodologies
        found = store.get(store.ids(repo, limit=_ROWS))
        yield _methodology_table(visitor, found)
        yield _run_table(
            "Runs, solved ones first", memory.store.runs.for_task(None, Scope(repo), _ROWS)
        )

    return await _page(visitor, repo, parts)


def _playbook(found: RepositoryPlaybook) -> Iterator[str]:
    lines = "".join(f"<li>{shown(line.text)}</li>" for line in playbook_lines(found))
    yield "<h2>Playbook</h2>" + (f"<ul>{lines}</ul>" if lines else "<p>Nothing agrees yet.</p>")
    files = (
        (shown(one.path), f"{one.changed}", f"{one.opened}", shown(", ".join(one.symbols)))
        for one in found.files
    )
    columns = ("file", *numbers("tasks that changed it", "opened it"), "functions and classes")
    yield table("Files", columns, files)
    commands = (
        (f"<code>{shown(one.line)}</code>", f"{one.worked} of {one.tried}", shown(one.error_type))
        for records in (found.tests, found.scripts, found.setup)
        for one in records[:_COMMANDS]
    )
    yield table("Commands", ("command", *numbers("worked in"), "why it did not"), commands)
    if found.failing_tests:
        tests = ((shown(one.name), f"{one.tasks}") for one in found.failing_tests)
        yield table("Tests that fail anyway", ("test", *numbers("tasks")), tests)


@router.get("/methodologies")
async def methodologies(visitor: Visitor, after: Word = "") -> Response:
    """The methodologies of all repositories and the general ones, a page of them by id."""

    def parts() -> Iterator[str]:
        store = visitor.tenant.memory.store.methodologies
        found = store.ids(after=after, limit=_ROWS + 1)
        yield "<h1>Methodologies</h1>"
        yield _methodology_table(visitor, store.get(found[:_ROWS]))
        if len(found) > _ROWS:
            yield f'<p><a href="/pages/methodologies?after={quote(found[_ROWS - 1])}">More</a></p>'

    return await _page(visitor, "Methodologies", parts)


@router.post("/methodologies/{identity}")
async def decide(administrator: Administrator, identity: str, decision: Decision) -> Response:
    """Quarantine a methodology, or release it, and show it."""
    memory = administrator.tenant.memory
    decided = memory.quarantine if decision == "quarantine" else memory.release
    if not await administrator.service.answer(decided, identity):
        raise HTTPException(404, f"no methodology {identity}")
    return RedirectResponse(graph_address(identity), 303)


async def _page(
    visitor: Caller, title: str, parts: Callable[[], Iterator[str]], text: str = ""
) -> Response:
    """The page of the *parts*, which are made in a thread; *text* is what was searched."""

    def page() -> str:
        body = (_HEADER.format(text=shown(text)), "<main>", *parts(), "</main>")
        return "".join(document(f"{title}: ContextGraph", STYLE + phase_styles(), body))

    return HTMLResponse(await visitor.service.answer(page), 200, _HEADERS)


def _run_table(title: str, runs: Iterable[Trajectory]) -> str:
    rows = (
        (
            _run_link(one.id, one.instance_id),
            shown(one_line(one.task, 100)),
            _repository_link(one.repo),
            shown(one.agent),
            f"{one.outcome}",
            f"{one.total_steps}",
            f"{one.seen_at:%Y-%m-%d}",
        )
        for one in runs
    )
    columns = ("instance", "task", "repository", "agent", "outcome", *numbers("steps"), "when")
    return table(title, columns, rows)


def _note_table(title: str, found: Iterable[Note]) -> str:
    rows = (
        (
            shown(one.content),
            _repository_link(one.repo) if one.repo else "any",
            shown(one.source),
            f"{one.credibility:.2f}",
            f"{one.confirmed}",
            f"{one.created_at:%Y-%m-%d}",
        )
        for one in found
    )
    columns = ("note", "repository", "source", *numbers("credibility", "confirmed"), "when")
    return table(title, columns, rows)


def _methodology_table(visitor: Caller, methodologies: Iterable[Methodology]) -> str:
    found = sorted(methodologies, key=lambda one: (-one.confidence, one.id))
    record = visitor.tenant.memory.store.exposures.record([one.id for one in found])
    quarantined = {one.advice for one in record.verdicts if one.is_quarantined}
    rows = (
        (
            f'<a href="{graph_address(one.id)}">{shown(one.situation)}</a>',
            shown("\n".join((one.strategy, *(one.words.lines if one.words else ())))),
            "quarantined by hand" if one.id in quarantined else f"{one.status}",
            f"{one.support} of {one.frequency}",
            f"{one.success_count:g} of {one.success_count + one.failure_count:g}",
            f"{one.confidence:.2f}",
            _decision(visitor, one.id, is_quarantined=one.id in quarantined),
        )
        for one in found
    )
    columns = (
        *("when", "what to do", "status"),
        *numbers("runs that did it", "helped where shown", "confidence"),
        "",
    )
    none = "None yet: three recoveries of two runs make one."
    return table("What several runs agree on", columns, rows, none)


def _decision(visitor: Caller, identity: str, *, is_quarantined: bool) -> str:
    """The button by which an administrator hides a methodology, or shows it again."""
    if not visitor.token.allows(TokenScope.ADMIN):
        return ""
    decision = "release" if is_quarantined else "quarantine"
    return (
        f'<form method="post" action="/pages/methodologies/{quote(identity)}">'
        f'<button name="decision" value="{decision}">{decision.capitalize()}</button></form>'
    )


def _run_link(run: str, instance: str) -> str:
    return f'<a href="/pages/runs/{quote(run)}">{shown(instance or run)}</a>'


def _repository_link(repo: str) -> str:
    return f'<a href="/pages/repositories?repo={quote(repo, safe="")}">{shown(repo)}</a>'

"""Pages for people at /pages, without scripts and without requests to other hosts."""

from collections.abc import Callable, Iterable, Iterator
from typing import Annotated, Any, Literal
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from contextgraph.knowledge import without_secret
from contextgraph.model import Methodology, Scope
from contextgraph.page import (
    document,
    phase_styles,
    run_parts,
    shown,
)
from contextgraph.service.access import (
    COOKIE,
    Caller,
    caller_of,
)
from contextgraph.service.page_parts import (
    STYLE,
    effect_table,
    error_table,
    evidence_text,
    facts,
    friction_table,
    graph_address,
    memory_tiles,
    neighbourhood,
    note_table,
    numbers,
    outcome_chart,
    playbook_parts,
    recovery_table,
    relation_table,
    repositories,
    repository_link,
    repository_table,
    run_table,
    table,
)
from contextgraph.service.tokens import Scope as TokenScope
from contextgraph.text import (
    number_of,
    one_line,
    words,
)

router = APIRouter(prefix="/pages", include_in_schema=False)

_ROWS, _RECOVERIES = 50, 12
_SIGN_IN = """<main><h1>ContextGraph</h1><form method="post" action="/pages/login">
<label>Token <input type="password" name="token" autocomplete="current-password" required></label>
<button>Sign in</button></form>
<p><code>contextgraph token create</code> makes one.</p></main>"""
_HEADER = """<header><nav aria-label="Pages"><a class="brand" href="/pages">ContextGraph</a>
<a href="/pages/methodologies">Methodologies</a> <a href="/pages/notes">Notes</a>
<a href="/pages/api">API</a></nav>
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
    """Who presses a button; browsers send its origin, which `SiteGuard` checks."""
    if "Origin" not in request.headers:
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


@router.get("/api")
async def api(request: Request) -> Response:
    """The requests of the service, each with an example of its body, as /openapi.json has them."""
    document_ = request.app.openapi()
    rows = (
        (
            f"<code>{method.upper()}&nbsp;{shown(path)}</code>",
            shown(one_line(operation["description"], 400)),
            _example(operation, document_),
        )
        for path, operations in document_["paths"].items()
        for method, operation in operations.items()
    )
    body = (
        _HEADER.format(text=""),
        "<main><h1>The requests of this service</h1>",
        '<p>Send a token as <code>Authorization: Bearer …</code>; <a href="/openapi.json">',
        "/openapi.json</a> describes parameters, bodies and answers.</p>",
        table("Requests", ("request", "what it does", "body"), rows),
        "</main>",
    )
    return HTMLResponse("".join(document("API: ContextGraph", STYLE, body)), 200, _HEADERS)


def _example(operation: Any, api: Any) -> str:
    """The example of the JSON body of a request, in HTML."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
    schema = api["components"]["schemas"].get(name, {})
    example = content.get("example", schema.get("example"))
    return f"<pre>{shown(orjson.dumps(example).decode())}</pre>" if example else ""


@router.get("")
async def overview(visitor: Visitor) -> Response:
    """The memory at a glance."""

    def parts() -> Iterator[str]:
        memory = visitor.memory
        yield "<h1>The memory</h1>"
        yield memory_tiles(memory.store.admin.counts())
        periods = memory.stats.get_outcomes_over_time()
        yield "<h2>Outcomes over time</h2>" + (
            outcome_chart(periods) if periods else "<p>No runs yet.</p>"
        )
        yield error_table(memory)
        yield friction_table(memory, "")
        yield effect_table(memory)
        yield repository_table(memory)
        yield run_table("Runs, solved ones first", memory.store.runs.for_task(None, Scope(), _ROWS))

    return await _page(visitor, "Memory", parts)


@router.get("/search")
async def search(visitor: Visitor, text: Word = "") -> Response:
    """Repositories, runs, errors and notes by their words, and the node with this id."""

    def parts() -> Iterator[str]:
        memory = visitor.memory
        yield f"<h1>Search for “{shown(text)}”</h1>"
        if node := memory.explain(text):
            yield f'<p><a href="{graph_address(text)}">{shown(node.label)} {shown(text)}</a></p>'
        if repos := [repo for repo in repositories(memory) if text.casefold() in repo]:
            yield "<h2>Repositories</h2>" + "".join(f"<p>{repository_link(r)}</p>" for r in repos)
        terms = [*dict.fromkeys(words(text))]
        yield run_table("Runs", memory.store.runs.for_text(terms, Scope(), _ROWS))
        yield recovery_table(memory.store.recoveries.for_text(terms, Scope(), _RECOVERIES))
        yield note_table(
            "Notes", (without_secret(recalled.note) for recalled in memory.notes.recall(text))
        )

    return await _page(visitor, "Search", parts, text)


@router.get("/notes")
async def notes(visitor: Visitor) -> Response:
    """What people and agents noted, the newest first."""

    def parts() -> Iterator[str]:
        all_notes = [*map(without_secret, visitor.memory.notes.of())]
        yield "<h1>Notes</h1>"
        yield note_table(f"The newest of {number_of(len(all_notes), 'note')}", all_notes[:_ROWS])

    return await _page(visitor, "Notes", parts)


@router.get("/runs/{identity}")
async def run(visitor: Visitor, identity: str) -> Response:
    """A run, as `contextgraph inspect --html` shows it."""

    def parts() -> Iterator[str]:
        memory = visitor.memory
        raw = memory.store.runs.raw(identity)
        if raw is None:
            raise HTTPException(404, f"no run {identity}")
        graph = f'<a href="{graph_address(identity)}">graph around this run</a>'
        yield f"<p>{repository_link(raw.repo)} · {graph}</p>"
        yield from run_parts(memory.inspect(raw))

    return await _page(visitor, identity, parts)


@router.get("/graph/{identity}")
async def graph(visitor: Visitor, identity: str) -> Response:
    """A node of the graph with its neighbours; each leads to its own."""

    def parts() -> Iterator[str]:
        node = visitor.memory.explain(identity)
        if node is None:
            raise HTTPException(404, f"nothing has the id {identity}")
        yield f"<h1>{shown(node.label)}: {shown(one_line(node.name, 120))}</h1>"
        values = [(name.replace("_", " "), shown(f"{fact}")) for name, fact in node.facts.items()]
        if node.label == "Trajectory":
            values.insert(0, ("steps", f'<a href="/pages/runs/{quote(identity)}">timeline</a>'))
        values += [("evidence", shown(evidence_text(node.evidence)))] if node.evidence else []
        yield facts(values)
        if node.label == "Methodology":
            is_quarantined = node.evidence is not None and node.evidence.is_quarantined
            yield _decision(visitor, identity, is_quarantined=is_quarantined)
        yield neighbourhood(node)
        yield relation_table(node.relations)

    return await _page(visitor, identity, parts)


@router.get("/repositories")
async def repository(visitor: Visitor, repo: Word) -> Response:
    """A repository: its playbook, its methodologies with their evidence, its runs."""

    def parts() -> Iterator[str]:
        memory = visitor.memory
        yield f"<h1>{shown(repo)}</h1>"
        yield from playbook_parts(memory.playbook(repo))
        yield friction_table(memory, repo)
        store = memory.store.methodologies
        of_repo = store.get(store.ids(repo, limit=_ROWS))
        yield _methodology_table(visitor, of_repo)
        yield run_table(
            "Runs, solved ones first", memory.store.runs.for_task(None, Scope(repo), _ROWS)
        )

    return await _page(visitor, repo, parts)


@router.get("/methodologies")
async def methodologies(visitor: Visitor, after: Word = "") -> Response:
    """The methodologies of all repositories and the general ones, a page of them by id."""

    def parts() -> Iterator[str]:
        store = visitor.memory.store.methodologies
        ids = store.ids(after=after, limit=_ROWS + 1)
        yield "<h1>Methodologies</h1>"
        yield _methodology_table(visitor, store.get(ids[:_ROWS]))
        if len(ids) > _ROWS:
            yield f'<p><a href="/pages/methodologies?after={quote(ids[_ROWS - 1])}">More</a></p>'

    return await _page(visitor, "Methodologies", parts)


@router.post("/methodologies/{identity}")
async def decide(administrator: Administrator, identity: str, decision: Decision) -> Response:
    """Quarantine a methodology, or release it, and show it."""
    memory = administrator.memory
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


def _methodology_table(visitor: Caller, methodologies: Iterable[Methodology]) -> str:
    ranked = sorted(
        methodologies, key=lambda methodology: (-methodology.confidence, methodology.id)
    )
    record = visitor.memory.store.exposures.record([methodology.id for methodology in ranked])
    quarantined = {verdict.advice for verdict in record.verdicts if verdict.is_quarantined}
    rows = (
        _methodology_row(visitor, methodology, is_quarantined=methodology.id in quarantined)
        for methodology in ranked
    )
    columns = (
        *("when", "what to do", "status"),
        *numbers("runs that did it", "helped where shown", "confidence"),
        "",
    )
    none = "None yet: three recoveries of two runs make one."
    return table("What several runs agree on", columns, rows, none)


def _methodology_row(
    visitor: Caller, methodology: Methodology, *, is_quarantined: bool
) -> tuple[str, ...]:
    lines = (methodology.strategy, *(methodology.words.lines if methodology.words else ()))
    tried = methodology.success_count + methodology.failure_count
    return (
        f'<a href="{graph_address(methodology.id)}">{shown(methodology.situation)}</a>',
        shown("\n".join(lines)),
        "quarantined by hand" if is_quarantined else f"{methodology.status}",
        f"{methodology.support} of {methodology.frequency}",
        f"{methodology.success_count:g} of {tried:g}",
        f"{methodology.confidence:.2f}",
        _decision(visitor, methodology.id, is_quarantined=is_quarantined),
    )


def _decision(visitor: Caller, identity: str, *, is_quarantined: bool) -> str:
    """The button by which an administrator hides a methodology, or shows it again."""
    if not visitor.token.allows(TokenScope.ADMIN):
        return ""
    decision = "release" if is_quarantined else "quarantine"
    return (
        f'<form method="post" action="/pages/methodologies/{quote(identity)}">'
        f'<button name="decision" value="{decision}">{decision.capitalize()}</button></form>'
    )

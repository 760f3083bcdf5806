"""Pages for people at /pages: what the memory holds, without scripts and without other hosts."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from contextgraph.model import Methodology, Scope, Trajectory
from contextgraph.page import document, phase_styles, run_parts, shown
from contextgraph.retrieval import playbook_lines
from contextgraph.server.access import COOKIE, Caller, caller_of
from contextgraph.server.tokens import Scope as TokenScope
from contextgraph.text import number_of, words

router = APIRouter(prefix="/pages", include_in_schema=False)

_ROWS = 50
_STYLE = """
table { border-collapse: collapse; margin: .5rem 0 1.5rem; width: 100% }
th, td { text-align: left; padding: .25rem .8rem .25rem 0; border-bottom: 1px solid #ddd;
  overflow-wrap: break-word; vertical-align: top }
nav.main { margin-bottom: 1.5rem }
nav.main a, nav.main form { margin-right: 1.2rem; display: inline }
"""
_SIGN_IN = """<h1>ContextGraph</h1><form method="post" action="/pages/login">
<label>Token <input type="password" name="token" autocomplete="current-password" required></label>
<button>Sign in</button></form><p>contextgraph token create makes one.</p>"""


_NAVIGATION = """<nav class="main"><a href="/pages">Memory</a>
<form action="/pages/runs"><label>Runs about <input name="text" required></label>
<button>Search</button></form>
<form action="/pages/repositories"><label>Repository <input name="repo" required></label>
<button>Show</button></form></nav>
"""


class SignedOutError(Exception):
    """The visitor has no token, or one that is not valid any more."""


async def _visitor(request: Request) -> Caller:
    try:
        return await caller_of(request, TokenScope.READ, request.cookies.get(COOKIE, ""))
    except HTTPException as error:
        if error.status_code == 401:
            raise SignedOutError from error
        raise


Visitor = Annotated[Caller, Depends(_visitor)]
Word = Annotated[str, Query(max_length=500)]


async def signed_out(_request: Request, _error: Exception) -> Response:
    """The way to the page on which a token is given."""
    return RedirectResponse("/pages/login", 303)


@router.get("/login")
async def sign_in() -> Response:
    """Where a token is given."""
    return HTMLResponse("".join(document("Sign in", _STYLE, [_SIGN_IN])))


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
        counts = memory.store.admin.counts()
        numbers = [("repositories", counts.repositories), *sorted(counts.nodes.items())]
        numbers += [(f"runs {name}", count) for name, count in sorted(counts.outcomes.items())]
        numbers += [
            (f"methodologies {name}", count) for name, count in sorted(counts.methodologies.items())
        ]
        yield _table("The memory", ("what", "count"), ((n, f"{c:,}") for n, c in numbers))
        yield _table(
            "What keeps failing",
            ("error", "tasks", "cleared", "how"),
            (
                (
                    shown(one.error),
                    f"{one.tasks}",
                    f"{one.cleared}",
                    "<br>".join(shown(remedy.text) for remedy in one.remedies),
                )
                for one in memory.stats.get_friction("", 10)
            ),
        )
        yield _run_table("Runs", memory.store.runs.for_task(None, Scope(), _ROWS))

    return await _page(visitor, "Memory", parts)


@router.get("/runs")
async def search(visitor: Visitor, text: Word = "") -> Response:
    """Runs by the words of their tasks, the best match first."""

    def parts() -> Iterator[str]:
        found = visitor.tenant.memory.store.runs.for_text(
            [*dict.fromkeys(words(text))], Scope(), _ROWS
        )
        yield _run_table(f"{number_of(len(found), 'run')} about “{text}”", found)

    return await _page(visitor, "Search", parts)


@router.get("/runs/{identity}")
async def run(visitor: Visitor, identity: str) -> Response:
    """A run, as `contextgraph inspect --html` shows it."""

    def parts() -> Iterator[str]:
        memory = visitor.tenant.memory
        raw = memory.store.runs.raw(identity)
        if raw is None:
            raise HTTPException(404, f"no run {identity}")
        yield f"<p>{_repository_link(raw.repo)}</p>"
        yield from run_parts(memory.inspect(raw))

    return await _page(visitor, identity, parts)


@router.get("/repositories")
async def repository(visitor: Visitor, repo: Word) -> Response:
    """A repository: its playbook, its methodologies with their evidence, its runs."""

    def parts() -> Iterator[str]:
        memory = visitor.tenant.memory
        yield f"<h1>{shown(repo)}</h1>"
        lines = [line.text for line in playbook_lines(memory.playbook(repo))] or ["none yet"]
        yield "<h2>Playbook</h2>" + "".join(f"<p>{shown(line)}</p>" for line in lines)
        store = memory.store.methodologies
        yield _methodology_table(store.get(store.ids(repo)))
        yield _run_table("Runs", memory.store.runs.for_task(None, Scope(repo), _ROWS))

    return await _page(visitor, repo, parts)


async def _page(visitor: Caller, title: str, parts: Callable[[], Iterator[str]]) -> Response:
    """The page of the *parts*, which are made in a thread."""

    def page() -> str:
        style = _STYLE + phase_styles()
        return "".join(document(f"{title}: ContextGraph", style, [_NAVIGATION, *parts()]))

    return HTMLResponse(await visitor.service.answer(page))


def _table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table of cells in HTML; a line where there are no rows."""
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in rows)
    head = "".join(f'<th scope="col">{column}</th>' for column in columns)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"<h2>{shown(title)}</h2>\n{table if body else '<p>none yet</p>'}\n"


def _run_table(title: str, runs: Iterable[Trajectory]) -> str:
    rows = (
        (
            f'<a href="/pages/runs/{quote(one.id)}">{shown(one.instance_id)}</a>',
            _repository_link(one.repo),
            shown(one.agent),
            f"{one.outcome}",
            f"{one.total_steps}",
            f"{one.seen_at:%Y-%m-%d}",
        )
        for one in runs
    )
    return _table(title, ("instance", "repository", "agent", "outcome", "steps", "when"), rows)


def _methodology_table(methodologies: Iterable[Methodology]) -> str:
    rows = (
        (
            shown(one.situation),
            shown(one.strategy),
            f"{one.status}",
            f"{one.support} of {one.frequency}",
            f"{one.confidence:.2f}",
            ", ".join(
                f'<a href="/pages/runs/{quote(run)}">{number}</a>'
                for number, run in enumerate(
                    dict.fromkeys(source.trajectory_id for source in one.sources), start=1
                )
            ),
        )
        for one in sorted(methodologies, key=lambda one: (-one.confidence, one.id))
    )
    columns = ("when", "what to do", "status", "runs that did it", "confidence", "seen in")
    return _table("Methodologies", columns, rows)


def _repository_link(repo: str) -> str:
    return f'<a href="/pages/repositories?repo={quote(repo, safe="")}">{shown(repo)}</a>'

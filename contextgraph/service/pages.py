"""Pages for people at /pages, without scripts and without requests to other hosts."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import Annotated, Any, Literal
from urllib.parse import quote

import orjson
from fastapi import APIRouter, Depends, Form, HTTPException, Query, Request, Response
from starlette.responses import HTMLResponse, RedirectResponse

from contextgraph.advising.wording import playbook_lines
from contextgraph.knowledge import without_secret
from contextgraph.learning.statistics import OutcomePeriod
from contextgraph.memory import AgentMemory
from contextgraph.model import (
    Evidence,
    Explanation,
    Exposure,
    MemoryCounts,
    Methodology,
    Note,
    RecoveryCandidate,
    Relation,
    RepositoryPlaybook,
    Scope,
    Trajectory,
)
from contextgraph.operations import Scope as TokenScope
from contextgraph.page import document, phase_styles, run_parts, shown
from contextgraph.service.access import COOKIE, Caller, caller_of
from contextgraph.text import number_of, one_line, words
from contextgraph.trace import describe_remedy

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
    rows = (
        (
            f"<code>{method.upper()}&nbsp;{shown(path)}</code>",
            shown(one_line(operation["description"], 400)),
            _example(operation),
        )
        for path, operations in request.app.openapi()["paths"].items()
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


def _example(operation: Any) -> str:
    """Return the example of the JSON body of a request, in HTML."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = content.get("example")
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


STYLE = """
body { margin-top: 0 } h1 { line-height: 1.2; overflow-wrap: anywhere }
h2 { margin: 2rem 0 .4rem; font-size: 1.15rem }
a { color: #0b57a4 } a:focus-visible, button:focus-visible, input:focus-visible,
summary:focus-visible { outline: 3px solid #fb8500; outline-offset: 2px }
header { border-bottom: 1px solid #ddd; padding: .8rem 0; margin-bottom: 1.2rem; display: flex;
  flex-wrap: wrap; gap: .4rem 1rem; align-items: center } header a { margin-right: 1.2rem }
header .brand { font-weight: 700; color: #222; text-decoration: none }
header form.search { margin-left: auto }
input { font: inherit; padding: .15rem .4rem }
button { font: inherit; padding: .1rem .6rem; cursor: pointer }
table { border-collapse: collapse; margin: .3rem 0 1rem; width: 100% }
th, td { text-align: left; padding: .3rem .8rem .3rem 0; border-bottom: 1px solid #ddd;
  overflow-wrap: anywhere; vertical-align: top }
th { color: #555; font-weight: 600; font-size: 13px; overflow-wrap: normal }
td.number, th.number { text-align: right; white-space: nowrap }
.tiles { display: flex; flex-wrap: wrap; gap: .8rem; margin: 0 0 1rem }
.tiles div { border: 1px solid #ddd; border-radius: .4rem; padding: .5rem 1rem; min-width: 7rem }
.tiles dt { color: #555; font-size: 13px } .tiles dd { margin: 0; font-size: 1.5rem }
.legend, .axis { margin: .2rem 0 } .axis { display: flex; justify-content: space-between }
dl.facts { display: grid; grid-template-columns: minmax(6rem, auto) 1fr; gap: 0 1rem }
dl.facts dd { margin: 0; color: #222; overflow-wrap: anywhere }
svg { display: block; max-width: 100%; height: auto } .wide { overflow-x: auto }
.wide svg { max-width: none } svg text { font: 12px system-ui, sans-serif }
.solved { fill: #2a7d2a; background: #2a7d2a } .failed { fill: #c43c3c; background: #c43c3c }
.unknown { fill: #9a9a9a; background: #9a9a9a }
.bar { height: .7rem; display: flex; background: #eee; min-width: min(8rem, 12vw) }
.bar i { display: block; height: 100%; background: #3f6fa8 } .whole { white-space: nowrap }
.node rect { fill: #f2f5f9; stroke: #7a8ca5 } .node.here rect { fill: #fff3df; stroke: #fb8500 }
.node:focus-visible rect { stroke: #fb8500; stroke-width: 3 }
.edge { stroke: #9aa5b1; fill: none } .kind { fill: #555 }
"""

_COMMANDS, _ERRORS, _REPOSITORIES, _RELATIONS = 8, 12, 200, 500
_OUTCOMES = ("solved", "failed", "unknown")
_CHART_WIDTH, _CHART_HEIGHT = 880, 150
_NODE_WIDTH, _NODE_HEIGHT, _ROW, _GAP = 270, 40, 52, 120
# So many neighbours are drawn on each side; the table below a graph has more.
_DRAWN = 12


class Number(str):
    """The title of a column of numbers, which is aligned to the right."""

    __slots__ = ()


def numbers(*titles: str) -> tuple[Number, ...]:
    """The titles of columns of numbers."""
    return tuple(map(Number, titles))


def table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], none: str = "None."
) -> str:
    """A table of cells in HTML under a heading; the line *none* where there are no rows."""
    kinds = [' class="number"' if isinstance(column, Number) else "" for column in columns]
    titles = zip(columns, kinds, strict=True)
    head = "".join(
        f'<th scope="col"{kind}>{column}</th>' if column else "<td></td>" for column, kind in titles
    )
    lines = (zip(row, kinds, strict=True) for row in rows)
    cells = ("".join(f"<td{kind}>{cell}</td>" for cell, kind in line) for line in lines)
    body = "".join(f"<tr>{line}</tr>\n" for line in cells)
    markup = f"<table><thead><tr>{head}</tr></thead><tbody>\n{body}</tbody></table>"
    return f"<h2>{shown(title)}</h2>\n{markup if body else f'<p>{shown(none)}</p>'}\n"


def tiles(figures: Iterable[tuple[str, str]]) -> str:
    """Figures with their names, side by side."""
    parts = (f"<div><dt>{shown(name)}</dt><dd>{shown(text)}</dd></div>" for name, text in figures)
    return f'<dl class="tiles">{"".join(parts)}</dl>\n'


def facts(values: Iterable[tuple[str, str]]) -> str:
    """Names and values in HTML, one below the other, without empty ones."""
    lines = (f"<dt>{shown(name)}</dt><dd>{value}</dd>" for name, value in values if value)
    return f'<dl class="facts">{"".join(lines)}</dl>\n'


def share_bar(part: int, whole: int) -> str:
    """A bar that is filled as far as *part* is of *whole*."""
    filled = round(100 * part / max(1, whole))
    return f'<div class="bar"><i style="width: {filled}%"></i></div>'


def outcome_chart(periods: Sequence[OutcomePeriod]) -> str:
    """How many runs ended how in each period, as stacked bars, with the same figures as a table."""
    highest = max(sum(period.outcomes.values()) for period in periods)
    width = _CHART_WIDTH / len(periods)
    bars = "".join(
        _stack(period.outcomes, highest, number * width, width)
        for number, period in enumerate(periods)
    )
    first, last = periods[0].start, periods[-1].end
    form = "%Y-%m-%d" if (last - first).days else "%Y-%m-%d %H:%M"
    drawing = (
        f'<svg viewBox="0 0 {_CHART_WIDTH} {_CHART_HEIGHT}" role="img" '
        f'aria-label="Outcomes of runs; the table has the figures">{bars}</svg>'
        f'<p class="axis"><span>{first:{form}}</span><span>{last:{form}}</span></p>'
    )
    keys = "".join(f'<span><i class="{outcome}"></i>{outcome}</span>' for outcome in _OUTCOMES)
    rows = (
        (f"{start:{form}}", f"{end:{form}}", *(f"{outcomes[name]}" for name in _OUTCOMES))
        for start, end, outcomes in map(attrgetter("start", "end", "outcomes"), periods)
    )
    figures = table("Runs by period", ("from", "to", *numbers(*_OUTCOMES)), rows)
    return (
        f'<p class="legend">{keys}</p>{drawing}'
        f"<details><summary>As a table</summary>{figures}</details>\n"
    )


def _stack(outcomes: Mapping[str, int], highest: int, left: float, width: float) -> str:
    parts, top = [], float(_CHART_HEIGHT)
    for outcome in _OUTCOMES:
        height = outcomes[outcome] / highest * (_CHART_HEIGHT - 4)
        top -= height
        parts.append(
            f'<rect class="{outcome}" x="{left + 1:.1f}" y="{top:.1f}" '
            f'width="{max(1.0, width - 2):.1f}" height="{height:.1f}"/>'
        )
    return "".join(parts)


def neighbourhood(explanation: Explanation) -> str:
    """The node with its neighbours: what leads to it on its left, what it leads to on its right.

    Each neighbour is a link to its own neighbourhood.
    """
    incoming = [relation for relation in explanation.relations if not relation.outgoing][:_DRAWN]
    outgoing = [relation for relation in explanation.relations if relation.outgoing][:_DRAWN]
    rows = max(len(incoming), len(outgoing), 1)
    height, middle = rows * _ROW, rows * _ROW / 2
    centre = _NODE_WIDTH + _GAP if incoming else 0
    parts = [_node(explanation.label, explanation.name, centre, middle, is_here=True)]
    for relations, left, ends in (
        (incoming, 0, (_NODE_WIDTH, centre)),
        (
            outgoing,
            centre + _NODE_WIDTH + _GAP,
            (centre + _NODE_WIDTH + _GAP, centre + _NODE_WIDTH),
        ),
    ):
        offset = (height - len(relations) * _ROW) / 2 + _ROW / 2
        for number, relation in enumerate(relations):
            y = offset + number * _ROW
            parts += [_edge(relation, ends, y, middle), _linked(relation, left, y)]
    width = centre + _NODE_WIDTH + (_GAP + _NODE_WIDTH if outgoing else 0)
    return (
        f'<div class="wide"><svg viewBox="-4 0 {width + 8} {height}" style="width: {width}px" '
        f'aria-label="The graph around this node">{"".join(parts)}</svg></div>\n'
    )


def _edge(relation: Relation, ends: tuple[float, float], y: float, middle: float) -> str:
    """The edge from a neighbour at height *y* to the node in the *middle*, with its type."""
    outer, inner = ends
    bend = (outer + inner) / 2
    anchor, x = ("end", outer - 4) if outer > inner else ("start", outer + 4)
    return (
        f'<path class="edge" d="M{outer} {y:.1f} C{bend} {y:.1f} {bend} {middle:.1f} '
        f'{inner} {middle:.1f}"/><text class="kind" x="{x}" y="{y - 5:.1f}" '
        f'text-anchor="{anchor}">{shown(relation.type.replace("_", " ").lower())}</text>'
    )


def _linked(relation: Relation, left: float, y: float) -> str:
    node = _node(relation.label, relation.name, left, y)
    return f'<a class="node" href="{graph_address(relation.id)}">{node}</a>'


def _node(label: str, name: str, left: float, y: float, *, is_here: bool = False) -> str:
    top = y - _NODE_HEIGHT / 2
    return (
        f'<g class="node{" here" if is_here else ""}"><title>{shown(name)}</title>'
        f'<rect x="{left}" y="{top:.1f}" width="{_NODE_WIDTH}" height="{_NODE_HEIGHT}" rx="4"/>'
        f'<text class="kind" x="{left + 8}" y="{top + 15:.1f}">{shown(label)}</text>'
        f'<text x="{left + 8}" y="{top + 32:.1f}">{shown(one_line(name, 36))}</text></g>'
    )


def graph_address(identity: str) -> str:
    """The page of the graph around a node."""
    return f"/pages/graph/{quote(identity, safe='')}"


def memory_tiles(counts: MemoryCounts) -> str:
    """How much the memory holds."""
    return tiles(
        [
            ("runs", f"{counts.nodes['Trajectory']:,}"),
            ("repositories", f"{counts.repositories:,}"),
            ("kinds of error", f"{counts.nodes['ErrorPattern']:,}"),
            ("recoveries", f"{counts.edges['RECOVERED']:,}"),
            ("methodologies", f"{counts.nodes.get('Methodology', 0):,}"),
        ]
    )


def error_table(memory: AgentMemory) -> str:
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


def friction_table(memory: AgentMemory, repo: str) -> str:
    """Errors that several tasks met, of *repo* or ("") of all repositories."""
    rows = (
        (
            f'<a href="{graph_address(friction.error_id)}">{shown(friction.error)}</a>',
            f"{friction.tasks}",
            f"{friction.cleared}",
            "" if friction.steps_lost is None else f"{friction.steps_lost:.0f}",
            "<br>".join(shown(remedy.text) for remedy in friction.remedies),
        )
        for friction in memory.stats.get_friction(repo)
    )
    columns = ("error", *numbers("tasks", "cleared", "steps lost"), "what cleared it")
    none = "No error was met in two tasks."
    return table("What keeps failing", columns, rows, none)


def effect_table(memory: AgentMemory) -> str:
    """How often errors were cleared after advice was shown, and after it was withheld."""
    recorded = [*memory.store.exposures.all()]
    groups = (
        ("shown", [exposure for exposure in recorded if not exposure.is_withheld]),
        (
            "withheld by chance, to compare",
            [exposure for exposure in recorded if exposure.is_withheld],
        ),
    )
    rows = (_effect_row(name, exposures) for name, exposures in groups if exposures)
    columns = ("advice", *numbers("times", "outcome known", "helped", "share"), "")
    return table("Effect of advice", columns, rows, "No advice was shown yet.")


def _effect_row(name: str, exposures: list[Exposure]) -> tuple[str, ...]:
    known = [exposure.helped for exposure in exposures if exposure.helped is not None]
    share = f"{sum(known) / len(known):.0%}" if known else ""
    bar = share_bar(sum(known), len(known)) if known else ""
    return name, f"{len(exposures)}", f"{len(known)}", f"{sum(known)}", share, bar


def repository_table(memory: AgentMemory) -> str:
    """The repositories with most runs."""
    runs = memory.store.runs
    repos = ((len(runs.ids(repo)), repo) for repo in repositories(memory)[:_REPOSITORIES])
    most = sorted(repos, key=lambda counted: (-counted[0], counted[1]))[:_ERRORS]
    rows = ((repository_link(repo), f"{count:,}") for count, repo in most)
    return table("Repositories with most runs", ("repository", *numbers("runs")), rows)


def repositories(memory: AgentMemory) -> Sequence[str]:
    """All repositories of the memory, in lower case."""
    return memory.store.admin.unconsolidated(0).repos


def recovery_table(recoveries: Iterable[RecoveryCandidate]) -> str:
    """Errors with their remedies and runs."""
    rows = (
        (
            shown(one_line(recovery.message, 160)),
            shown(describe_remedy(recovery.actions)),
            run_link(recovery.trajectory_id, recovery.instance_id),
        )
        for recovery in recoveries
    )
    return table("Errors, and what cleared them", ("error", "what cleared it", "run"), rows)


def relation_table(relations: Sequence[Relation]) -> str:
    """The relations of a node."""
    rows = (
        (
            f'<span class="whole">{"to" if relation.outgoing else "from"}</span>',
            f'<span class="whole">{shown(relation.type)}</span>',
            f'<a href="{graph_address(relation.id)}">{shown(relation.name)}</a>',
            shown(", ".join(f"{name} {value}" for name, value in relation.properties.items())),
        )
        for relation in relations[:_RELATIONS]
    )
    count = number_of(len(relations), "relation")
    title = count if len(relations) <= _RELATIONS else f"The first of {count}"
    return table(title, ("direction", "type", "node", "properties"), rows)


def evidence_text(evidence: Evidence) -> str:
    """How often advice was shown and tried, and what followed."""
    return (
        f"shown {evidence.shown} times, tried {evidence.tried}, "
        f"cleared the error {evidence.cleared} times; "
        f"of {evidence.runs} runs that met it {evidence.runs_cleared} cleared it; "
        f"trust {evidence.trust:.2f}"
        f"{f'; {evidence.by_hand} by hand' if evidence.by_hand else ''}"
    )


def playbook_parts(playbook: RepositoryPlaybook) -> Iterator[str]:
    """What the runs of a repository agree on, with its files, commands and tests."""
    lines = "".join(f"<li>{shown(line.text)}</li>" for line in playbook_lines(playbook))
    yield "<h2>Playbook</h2>" + (f"<ul>{lines}</ul>" if lines else "<p>Nothing agrees yet.</p>")
    files = (
        (shown(file.path), f"{file.changed}", f"{file.opened}", shown(", ".join(file.symbols)))
        for file in playbook.files
    )
    columns = ("file", *numbers("tasks that changed it", "opened it"), "functions and classes")
    yield table("Files", columns, files)
    commands = (
        (
            f"<code>{shown(record.line)}</code>",
            f"{record.worked} of {record.tried}",
            shown(record.error_type),
        )
        for records in (playbook.tests, playbook.scripts, playbook.setup)
        for record in records[:_COMMANDS]
    )
    yield table("Commands", ("command", *numbers("worked in"), "why it did not"), commands)
    if playbook.failing_tests:
        tests = ((shown(test.name), f"{test.tasks}") for test in playbook.failing_tests)
        yield table("Tests that fail anyway", ("test", *numbers("tasks")), tests)


def run_table(title: str, runs: Iterable[Trajectory]) -> str:
    """Runs, as links to their timelines."""
    rows = (
        (
            run_link(run.id, run.instance_id),
            shown(one_line(run.task, 100)),
            repository_link(run.repo),
            shown(run.agent),
            f"{run.outcome}",
            f"{run.total_steps}",
            f"{run.seen_at:%Y-%m-%d}",
        )
        for run in runs
    )
    columns = ("instance", "task", "repository", "agent", "outcome", *numbers("steps"), "when")
    return table(title, columns, rows)


def note_table(title: str, notes: Iterable[Note]) -> str:
    """Notes with their sources."""
    rows = (
        (
            shown(note.content),
            repository_link(note.repo) if note.repo else "any",
            shown(note.source),
            f"{note.credibility:.2f}",
            f"{note.confirmed}",
            f"{note.created_at:%Y-%m-%d}",
        )
        for note in notes
    )
    columns = ("note", "repository", "source", *numbers("credibility", "confirmed"), "when")
    return table(title, columns, rows)


def run_link(run: str, instance: str) -> str:
    """A link to the timeline of a run."""
    return f'<a href="/pages/runs/{quote(run)}">{shown(instance or run)}</a>'


def repository_link(repo: str) -> str:
    """A link to the page of a repository."""
    return f'<a href="/pages/repositories?repo={quote(repo, safe="")}">{shown(repo)}</a>'

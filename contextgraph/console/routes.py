"""The console: pages for people at /pages. Scripts add keys and a theme, nothing else."""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import wraps
from itertools import chain
from secrets import token_urlsafe
from time import monotonic
from typing import Annotated, Any, Literal, TypeVar
from urllib.parse import parse_qsl, quote, urlencode

import orjson
from fastapi import APIRouter, Depends, FastAPI, Form, HTTPException, Query, Request, Response
from msgspec import Struct
from msgspec.structs import asdict
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse

from contextgraph import model
from contextgraph.advising.wording import playbook_lines
from contextgraph.agents.hook_files import HookFiles
from contextgraph.console.graph import drawing_of, groups_of
from contextgraph.console.page import TEMPLATES, advice_in, compile_pages, render, run_view
from contextgraph.console.shown import switch_of, switched_off, texts_of
from contextgraph.knowledge.headings import by_heading
from contextgraph.knowledge.last import is_decided, summary_of, to_review
from contextgraph.knowledge.recall import without_secret
from contextgraph.knowledge.search import runs_among
from contextgraph.learning.statistics import outcomes_over_time
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model.values import replace
from contextgraph.service.operations import TokenScope
from contextgraph.service.routes import COOKIE, Caller, caller_of
from contextgraph.service.service import Service
from contextgraph.text import number_of, one_line, regex, short_count, words
from contextgraph.trace import describe_remedy

router = APIRouter(prefix="/pages", include_in_schema=False)

_ROWS, _LESSONS, _ANSWERS, _FEW, _RECOVERIES, _RELATIONS = 50, 10, 25, 10, 100, 500
_DAYS = 7
_NOTICE_WIDTH = 160
_RECENT = timedelta(days=30)
# The newest runs that met an error say how it goes now, and the newest of all how runs end.
_LOOKED_AT, _CHARTED, _COUNTED = 100, 500, 500
_ABOUT, _NEWEST = 200, 5
# Spans of time to choose from, in days.
_SPANS = {1: "today", 7: "7 days", 30: "30 days", 365: "a year"}
_COMMANDS = 8
_ASSETS = {"console.css": "text/css", "console.js": "text/javascript"}
# A page in a frame of another site could make people press its buttons.
_HEADERS = {
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-store",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
}

# Of a run, a fragment, an error, a methodology, an answer, a note or a lesson.
_ID = regex(r"(?:trj|frg|err|mth|ctx|note|lesson)_\w+")
Values = Mapping[str, Any]
F = TypeVar("F", bound=Callable[..., Values])


def add_pages(app: FastAPI, entries: Mapping[str, str] | None = None) -> FastAPI:
    """Add the pages to the application of a service, and return it.

    *entries* are tokens by a key that opens the console once, at ``/pages/enter?key=…``.
    """
    compile_pages()
    app.state.entries = dict(entries or {})
    app.state.visits = Visits()
    app.router.routes.extend(router.routes)
    app.add_exception_handler(SignedOutError, _signed_out)
    return app


# A visit ends when it was not used for so many seconds.
_VISIT_SECONDS, _MOST_VISITS = 12 * 3600.0, 10_000


class Visits:
    """The tokens of visitors by the random name in their cookie, which is no token of the API."""

    def __init__(self) -> None:
        self._tokens: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def begin(self, token: str) -> str:
        """Return the name of a new visit with *token*; the longest unused ones end."""
        name = token_urlsafe(32)
        self._tokens[name] = token, monotonic()
        while len(self._tokens) > _MOST_VISITS:
            self._tokens.popitem(last=False)
        return name

    def token(self, name: str) -> str:
        """Return the token of a visit; empty where it has ended."""
        token, used_at = self._tokens.pop(name, ("", 0.0))
        if not token or monotonic() - used_at > _VISIT_SECONDS:
            return ""
        self._tokens[name] = token, monotonic()
        return token

    def end(self, name: str) -> None:
        """Sign the visitor out."""
        self._tokens.pop(name, None)


class SignedOutError(Exception):
    """The visitor has no token, or one that is not valid any more."""


async def _visitor(request: Request, scope: TokenScope = TokenScope.READ) -> Caller:
    try:
        visits: Visits = request.app.state.visits
        return await caller_of(request, scope, visits.token(request.cookies.get(COOKIE, "")))
    except HTTPException as error:
        if error.status_code == 401:
            raise SignedOutError from error
        raise


class Visit(Caller, frozen=True):
    """A visitor who looks at a page, and the *decision* on *identity* that led there."""

    decision: str = ""
    identity: str = ""


async def _reader(request: Request) -> Visit:
    caller = await _visitor(request)
    decision, identity = (
        request.query_params.get(name, "")[:500] for name in (_DECISION, _DECIDED)
    )
    return Visit(caller.service, caller.tenant, caller.token, decision=decision, identity=identity)


async def _administrator(request: Request) -> Caller:
    """Return who presses a button; browsers send its origin, which `SiteGuard` checks."""
    if "Origin" not in request.headers:
        raise HTTPException(403, "this request does not come from a page of the service")
    return await _visitor(request, TokenScope.ADMIN)


Visitor = Annotated[Visit, Depends(_reader)]
Administrator = Annotated[Caller, Depends(_administrator)]
Word = Annotated[str, Query(max_length=500)]
Page = Annotated[int, Query(ge=0, le=1_000_000)]
Decision = Annotated[str, Form(max_length=20)]


def _page(path: str, here: str, template: str) -> Callable[[F], F]:
    """Serve a function of a visitor, which returns the values of *template*, at *path*.

    It runs in a thread; a value "template" names another one. *here* is a part of the menu.
    """

    def decorate(function: F) -> F:
        @wraps(function)  # of which FastAPI reads the parameters
        async def endpoint(visitor: Visit, **given: Any) -> Response:
            return await visitor.service.answer(page, visitor, given)

        def page(visitor: Visit, given: Values) -> Response:
            is_admin = visitor.token.allows(TokenScope.ADMIN)
            common = {"signed_in": True, "here": here, "is_admin": is_admin}
            common["notice"] = _notice(visitor) if is_admin and visitor.decision else None
            try:
                # One state of the store, without waiting for what is being written.
                with visitor.memory.store.snapshot():
                    found = {"template": template, **function(visitor, **given)}
            except HTTPException as error:
                title = "Not found" if error.status_code == 404 else "Not possible"
                problem = _html("problem.html", title=title, reason=error.detail, **common)
                problem.status_code = error.status_code
                return problem
            return _html(found.pop("template"), **common, **found)

        router.add_api_route(path, endpoint, response_model=None)
        return function

    return decorate


async def _signed_out(_request: Request, _error: Exception) -> Response:
    """Lead to the page on which a token is given."""
    return RedirectResponse("/pages/login", 303)


@router.get("/static/{name}")
async def static(name: str) -> Response:
    """Return a stylesheet or script of the pages."""
    if name not in _ASSETS:
        raise HTTPException(404, f"no file {name}")
    return FileResponse(
        TEMPLATES / name, media_type=_ASSETS[name], headers={"Cache-Control": "max-age=3600"}
    )


@router.get("/login")
async def sign_in() -> Response:
    """Ask for a token."""
    return _html("sign_in.html", title="Sign in", signed_in=False, here="")


@router.post("/login")
async def signed_in(request: Request, token: Annotated[str, Form(max_length=200)]) -> Response:
    """Begin a visit, whose cookie scripts and other sites cannot use."""
    return await with_token(request, token)


@router.post("/logout")
async def signed_out(request: Request) -> Response:
    """End the visit."""
    request.app.state.visits.end(request.cookies.get(COOKIE, ""))
    response = RedirectResponse("/pages/login", 303)
    response.delete_cookie(COOKIE, path="/pages")
    return response


@router.get("/enter")
async def enter(request: Request, key: Word) -> Response:
    """Sign in with a key of `contextgraph view`, which can be used once."""
    token = request.app.state.entries.pop(key, None)
    if token is None:
        raise HTTPException(403, "this address was used already; run `contextgraph view` again")
    return await with_token(request, token)


async def with_token(request: Request, token: str) -> Response:
    """Lead to the overview, with a cookie that stands for *token*."""
    service: Service = request.app.state.service
    if service.tokens:
        try:
            await caller_of(request, TokenScope.READ, token)
        except HTTPException as error:
            if error.status_code == 401:
                raise SignedOutError from error
            raise
    response = RedirectResponse("/pages", 303)
    response.set_cookie(
        COOKIE,
        request.app.state.visits.begin(token),
        path="/pages",
        secure=request.url.scheme == "https",
        httponly=True,
        samesite="strict",
    )
    return response


@_page("", "overview", "overview.html")
def overview(visitor: Visitor, days: Annotated[int, Query(ge=1, le=3650)] = _DAYS) -> Values:
    """Show what happened lately, what the memory did, and what costs most steps."""
    memory, now = visitor.memory, datetime.now(UTC)
    since = now - timedelta(days=days)
    lessons = memory.lessons.of()
    return {
        "title": "Overview",
        "days": days,
        "spans": _SPANS,
        "tiles": [
            *_session_tiles(memory, since),
            _lesson_tile(lessons, since),
            *_tiles(memory.stats.get_advice(since)),
        ],
        "known": memory.session_facets(limit=0).total,
        "friction": memory.stats.get_friction(limit=_FEW),
        "sessions": memory.sessions(limit=_FEW),
        "lessons": [one for one in lessons if is_decided(one)][:_NEWEST],
        "periods": outcomes_over_time(memory.store.runs.listed(model.RunFilter(), _CHARTED)),
        "problems": [check.name for check in _checks(visitor) if not check.ok],
    }


Tile = tuple[str, str, str]


def _session_tiles(memory: AgentMemory, since: datetime) -> list[Tile]:
    wanted = model.SessionFilter(since=since)
    facets = memory.session_facets(wanted)
    newest = memory.sessions(wanted, _COUNTED)
    ended = [f"{count:,} {outcome}" for outcome, count in facets.outcomes.items()]
    of_all = f"of the newest {len(newest):,}" if len(newest) < facets.total else ""
    tokens = sum(one.tokens or 0 for one in newest)
    cost = sum(one.cost or 0.0 for one in newest)
    spent = [f"${cost:,.2f}" if cost else "", of_all]
    return [
        ("sessions", f"{facets.total:,}", f"{', '.join(ended)}; guessed where no log says it"),
        ("tokens", short_count(tokens) if tokens else "–", " ".join(filter(None, spent))),
    ]


def _lesson_tile(lessons: Sequence[model.Lesson], since: datetime) -> Tile:
    waiting = len(to_review(lessons))
    new = sum(1 for one in lessons if one.time >= since)
    return "new lessons", f"{new:,}", f"{waiting:,} of {len(lessons):,} wait for review"


def _tiles(advice: model.AdviceFigures) -> list[Tile]:
    known = f"of {advice.known:,} with a known end"
    most = f"net, estimated; at most {model.steps_text(advice.ceiling)}"
    if not advice.known:
        most = model.waiting_text(advice)
    return [
        ("advice shown", f"{advice.shown:,}", f"{advice.at_errors:,} at errors"),
        ("followed", f"{advice.followed:,}", "an item was tried"),
        ("errors cleared after it", f"{advice.cleared:,}", known),
        ("saved", advice.saved_text if advice.known else "–", most),
    ]


def _address_with(path: str, wanted: Struct, changed: Mapping[str, object]) -> str:
    """Return the first page of the list at *path* with the values of *wanted*, some *changed*."""
    values = {**asdict(wanted), "page": 0, **changed}
    query = urlencode({name: value for name, value in values.items() if value})
    return f"{path}?{query}" if query else path


class SessionQuestion(Struct, frozen=True):
    """The sessions that are wanted; *days* are the last ones, *until* is a day that counts."""

    text: Word = ""
    repo: Word = ""
    agent: Word = ""
    outcome: Word = ""
    days: Annotated[int, Query(ge=0, le=3650)] = 0
    since: Word = ""
    until: Word = ""
    sort: model.RunOrder = model.RunOrder.NEWEST
    page: Page = 0

    def address(self, **changed: object) -> str:
        """Return the address of the list with other values."""
        return _address_with("/pages/runs", self, changed)

    def filter(self) -> model.SessionFilter:
        """Return the sessions that are wanted, but for words of *text*.

        Raises HTTPException for what is no outcome or day.
        """
        try:
            outcome = model.Outcome(self.outcome) if self.outcome else None
            since, until = map(_day, (self.since, self.until))
        except ValueError as error:
            raise HTTPException(422, f"{error}") from error
        if self.days:
            since = max(filter(None, (since, datetime.now(UTC) - timedelta(days=self.days))))
        end = until + timedelta(days=1) if until else None
        repo = self.repo or None
        return model.SessionFilter(repo, self.agent, outcome, since, end, self.sort)


def _day(text: str) -> datetime | None:
    return datetime.fromisoformat(text).replace(tzinfo=UTC) if text else None


@_page("/health", "overview", "health.html")
def health(visitor: Visitor, whole: bool = False) -> Values:
    """Say what is not well; the *whole* check reads all that is stored."""
    return {"title": "Health", "checks": _checks(visitor, whole=whole), "whole": whole}


def _checks(visitor: Visit, *, whole: bool = False) -> list[model.HealthCheck]:
    """Check the memory, and the hooks of this machine that use it."""
    settings = replace(visitor.service.settings, tenant=visitor.tenant.name)
    return [*visitor.memory.health(quick=not whole), *HookFiles(settings).health()]


@_page("/runs", "runs", "runs.html")
def sessions(visitor: Visitor, wanted: Annotated[SessionQuestion, Depends()]) -> Values:
    """List sessions with their sub-agents, fifty to a page; those with words by relevance."""
    memory, asked = visitor.memory, wanted.filter()
    skip = wanted.page * _ROWS
    found: Sequence[model.Session]
    if wanted.text:
        about = _sessions_about(memory, wanted.text, asked)
        found, facets = about[skip : skip + _ROWS + 1], _facets_of(about)
    else:
        found = memory.sessions(asked, _ROWS + 1, skip)
        facets = memory.session_facets(asked)
    return {
        "title": "Sessions",
        "wanted": wanted,
        "sessions": found[:_ROWS],
        "facets": facets,
        "spans": _SPANS,
        "filtered": bool(wanted.text or wanted.since or wanted.until),
        "address": wanted.address,
        "first": wanted.address() if wanted.page else None,
        "next": wanted.address(page=wanted.page + 1) if len(found) > _ROWS else None,
    }


def _sessions_about(
    memory: AgentMemory, text: str, wanted: model.SessionFilter
) -> list[model.Session]:
    """Return the sessions *wanted* that a search for *text* finds, best first."""
    runs = runs_among(memory.search(text, wanted.repo, limit=_ABOUT, agent=wanted.agent))
    return [
        one
        for one in filter(None, map(memory.session, runs))
        if wanted.outcome in {None, one.outcome}
        and (wanted.since is None or one.started_at >= wanted.since)
        and (wanted.until is None or one.started_at < wanted.until)
    ]


def _facets_of(found: Sequence[model.Session]) -> model.Facets:
    return model.Facets(
        len(found),
        _counts(one.repo for one in found),
        _counts(one.agent for one in found),
        _counts(one.outcome.value for one in found),
    )


@_page("/runs/{identity}", "runs", "run.html")
def run(visitor: Visitor, identity: str) -> Values:
    """Show a run step by step."""
    return _reading(visitor.memory, identity)


@_page("/compare", "runs", "run.html")
def compare(visitor: Visitor, a: Word, b: Word) -> Values:
    """Show two runs side by side."""
    return _reading(visitor.memory, a, b)


def _reading(memory: AgentMemory, *identities: str) -> Values:
    views = []
    for identity in identities:
        raw = memory.store.runs.raw(identity)
        if raw is None:
            raise HTTPException(404, f"no run {identity}")
        known = memory.store.runs.trajectories([identity])[identity]
        inspection = replace(memory.inspect(raw), ending=known.ending)
        views.append(run_view(inspection, advice_in(memory.store, raw)))
    raw, run = views[0].raw, memory.store.runs.trajectories(identities[:1])[identities[0]]
    again = memory.store.runs.ids(raw.repo or None, raw.instance_id, limit=_FEW)
    others = [
        *memory.store.runs.trajectories(again if raw.instance_id else ()).values(),
        *memory.store.runs.listed(model.RunFilter(raw.repo or None), _FEW),
    ]
    is_alone = len(views) == 1
    session = memory.session(identities[0]) if is_alone else None
    return {
        "title": run.title,
        "views": views,
        "repo": raw.repo,
        "identity": identities[0],
        "comparing": not is_alone,
        "session": session,
        "few": _NEWEST,
        "summary": summary_of(session, run, raw, memory.lessons.of(raw.repo)) if session else None,
        "others": {one.id: one for one in others if one.id not in identities}.values(),
    }


_ERROR_LINKS = (
    ("/pages/errors", "What costs most"),
    ("/pages/errors?show=frequent", "Most frequent"),
    ("/pages/errors?show=remedies", "What clears them"),
    ("/pages/failures", "Why runs fail"),
)


@_page("/errors", "errors", "errors.html")
def errors(
    visitor: Visitor,
    show: Literal["costly", "frequent", "remedies"] = "costly",
    after: Word = "",
) -> Values:
    """Show the errors that cost most steps, the most frequent ones, or what clears them."""
    memory = visitor.memory
    values: dict[str, Any] = {
        "title": "Errors",
        "show": show,
        "links": _ERROR_LINKS,
        "here_link": "/pages/errors" + ("" if show == "costly" else f"?show={show}"),
    }
    if show == "costly":
        return values | {"friction": memory.stats.get_friction(limit=_ROWS)}
    if show == "frequent":
        return values | {"tallies": memory.store.recoveries.errors(model.Scope(), _ROWS)}
    store = memory.store.methodologies
    ids = store.ids(after=after, limit=_ROWS + 1)
    later = f"/pages/errors?show=remedies&after={quote(ids[_ROWS - 1])}" if ids[_ROWS:] else None
    return {
        **values,
        "next_methodologies": later,
        **_methodologies(memory, store.get(ids[:_ROWS])),
    }


@_page("/failures", "errors", "failures.html")
def failures(visitor: Visitor, repo: Word = "") -> Values:
    """Show with what runs fail, in *repo* or everywhere, and what solved runs did instead."""
    memory = visitor.memory
    tallies = memory.store.recoveries.errors(model.Scope(repo or None), _ROWS)
    left = [one for one in tallies if one.cleared < one.tasks]
    return {
        "title": "Why runs fail",
        "repo": repo,
        "links": _ERROR_LINKS,
        "here_link": "/pages/failures",
        "causes": memory.stats.get_failing_conditions(repo),
        "errors": sorted(left, key=lambda one: (one.cleared - one.tasks, one.error.id))[:_FEW],
    }


@_page("/errors/{identity}", "errors", "error.html")
def error(visitor: Visitor, identity: str) -> Values:
    """Show an error: how often it was met, how it goes now, what cleared it."""
    memory = visitor.memory
    history = next(iter(memory.store.recoveries.histories([identity], _LOOKED_AT)), None)
    if history is None:
        raise HTTPException(404, f"no error {identity}")
    pattern, met = history.error, history.occurrences
    (tally,) = memory.store.recoveries.errors(model.Scope(), 1, only=[identity])
    known = memory.store.runs.trajectories({one.trajectory_id for one in met})
    since = datetime.now(UTC) - _RECENT
    recent = sum(1 for run in known.values() if run.seen_at >= since)
    clearances = history.clearances
    fragments = [clearance.recovered.fragment_id for clearance in clearances[:_RECOVERIES]]
    return {
        "title": pattern.name,
        "pattern": pattern,
        "tally": tally,
        "history": {
            "recent": recent,
            "looked_at": len(met),
        },
        "periods": outcomes_over_time(known.values()),
        **_recoveries(memory, identity, fragments),
        **_methodologies(memory, memory.store.methodologies.get(errors=[identity])),
    }


def _recoveries(memory: AgentMemory, error: str, fragments: Sequence[str]) -> Values:
    """Return the recoveries from *error* by remedy: those of several runs, and of one each."""
    found: dict[str, dict[str, model.RecoveryCandidate]] = {}
    for recovery in memory.store.recoveries.of_fragments(fragments):
        if recovery.error_id == error:
            runs = found.setdefault(describe_remedy(recovery.actions), {})
            runs.setdefault(recovery.trajectory_id, recovery)
    groups = [(remedy, [*runs.values()]) for remedy, runs in found.items()]
    groups.sort(key=lambda group: -len(group[1]))
    return {
        "often": [group for group in groups if len(group[1]) > 1],
        "once": [group for group in groups if len(group[1]) == 1],
    }


@_page("/repositories", "repositories", "repositories.html")
def repositories(visitor: Visitor, repo: Word = "", page: Page = 0) -> Values:
    """List repositories, or show one: playbook, commands, lessons, advice, runs."""
    memory = visitor.memory
    if repo:
        return _repository(memory, repo)
    found = memory.store.runs.repositories(_ROWS + 1, page * _ROWS)
    return {
        "title": "Repositories",
        "repositories": found[:_ROWS],
        "first": "/pages/repositories" if page else None,
        "next": f"/pages/repositories?page={page + 1}" if len(found) > _ROWS else None,
    }


def _repository(memory: AgentMemory, repo: str) -> Values:
    playbook = memory.playbook(repo)
    store = memory.store.methodologies
    return {
        "title": repo,
        "template": "repository.html",
        "repo": repo,
        "playbook": playbook,
        "lines": [line.text for line in playbook_lines(playbook)],
        "tests": playbook.tests[:_COMMANDS],
        "commands": [*playbook.setup[:_COMMANDS], *playbook.scripts[:_COMMANDS]],
        "lessons": [one for one in memory.lessons.of(repo) if is_decided(one)][:_FEW],
        "notes": [*map(without_secret, memory.notes.of(repo)[:_FEW])],
        "friction": memory.stats.get_friction(repo, _FEW),
        "sessions": memory.sessions(model.SessionFilter(repo), _FEW),
        **_methodologies(memory, store.get(store.ids(repo, limit=_FEW))),
    }


class ShownGroup(Struct, frozen=True):
    """Advice *shown* in a session, by its *name*; *session* is None where it is unknown."""

    name: str
    repo: str
    agent: str
    session: model.Session | None
    shown: list[model.Exposure]


_MOMENTS = {
    "start": "at the start",
    "prompt": "at a request",
    "index": "at the first request, for the agent to open some",
    "before": "before a command or an edit",
    "error": "at an error",
    "failing": "while it went as failed runs had",
    "submit": "before it ended",
    "": "when it was asked, or at a loop",
}


@_page("/advice", "advice", "advice.html")
def advice(visitor: Visitor, page: Page = 0) -> Values:
    """List what was shown by session, newest first, with the reason."""
    memory = visitor.memory
    shown = memory.store.exposures.newest(_ANSWERS + 1, page * _ANSWERS)
    return {
        "title": "Advice",
        "groups": _by_session(memory, shown[:_ANSWERS]),
        "moments": _MOMENTS,
        **_shown(memory, shown[:_ANSWERS]),
        "first": "/pages/advice" if page else None,
        "next": f"/pages/advice?page={page + 1}" if len(shown) > _ANSWERS else None,
    }


def _by_session(memory: AgentMemory, shown: Sequence[model.Exposure]) -> list[ShownGroup]:
    groups: dict[str, ShownGroup] = {}
    for one in shown:
        if one.session not in groups:
            session = memory.session(one.session) if one.session else None
            groups[one.session] = ShownGroup(one.session, one.repo, one.agent, session, [])
        groups[one.session].shown.append(one)
    return [*groups.values()]


def _shown(memory: AgentMemory, shown: Sequence[model.Exposure]) -> Values:
    """Return what was shown, with words for its errors and items."""
    items = [item for exposure in shown for item in exposure.items]
    texts, off = texts_of(memory.store, shown), switched_off(memory.store, items)
    switches = {item.advice: switch_of(item, texts[item.id], off) for item in items}
    at = {exposure.error_id for exposure in shown if exposure.error_id}
    return {
        "shown": shown,
        "texts": texts,
        "switches": {advice: switch for advice, switch in switches.items() if switch},
        "reasons": {
            one.context_id: [*dict.fromkeys(item.why for item in one.items if item.why)]
            for one in shown
        },
        "errors": {one.error.id: one.error for one in memory.store.recoveries.histories([*at], 0)},
    }


def _methodologies(memory: AgentMemory, found: Iterable[model.Methodology]) -> Values:
    """Return methodologies, surest first, each with whether it is switched off."""
    ranked = sorted(found, key=lambda methodology: (-methodology.confidence, methodology.id))
    off = switched_off(memory.store, [model.ShownItem(one.id) for one in ranked])
    return {"methodologies": [(methodology, methodology.id in off) for methodology in ranked]}


@router.post("/advice/{identity}")
async def decide(
    administrator: Administrator,
    request: Request,
    identity: str,
    decision: Annotated[Literal["quarantine", "release"], Form()],
) -> Response:
    """Switch advice off, or on again."""
    memory = administrator.memory
    decided = memory.quarantine if decision == "quarantine" else memory.release
    if not await administrator.service.answer(decided, identity):
        raise HTTPException(404, f"no advice {identity}")
    return _back(request, "/pages/advice", decision, identity)


class LessonQuestion(Struct, frozen=True):
    """The parts of the list of lessons that are wanted."""

    text: Word = ""
    repo: Word = ""
    kind: Word = ""
    status: Word = ""
    page: Page = 0

    def address(self, **changed: object) -> str:
        """Return the address of the list with other values."""
        return _address_with("/pages/lessons", self, changed)

    def has(self, lesson: model.Lesson, but: str = "") -> bool:
        """Return whether *lesson* is wanted; the property *but* does not count."""
        is_listed = lesson.status == self.status if self.status else is_decided(lesson)
        return (
            (but == "repo" or self.repo in {"", lesson.repo})
            and (but == "kind" or self.kind in {"", lesson.kind})
            and (but == "status" or is_listed)
        )


@_page("/lessons", "lessons", "lessons.html")
def lessons(visitor: Visitor, wanted: Annotated[LessonQuestion, Depends()]) -> Values:
    """List lessons by subject, ten to a page: active and likely proposed ones, or of a status."""
    named = {*words(wanted.text)}
    listed = visitor.memory.lessons.of(status=[*model.LessonStatus])
    if wanted.status == model.LessonStatus.PROPOSED:
        others = [one for one in listed if one.status is not model.LessonStatus.PROPOSED]
        listed = (*to_review(listed), *others)
    known = [one for one in listed if named <= {*words(one.text)}]
    groups = by_heading([one for one in known if wanted.has(one)])
    found = [*chain.from_iterable(groups.values())]
    skip = wanted.page * _LESSONS
    return {
        "title": "Lessons",
        "wanted": wanted,
        "facets": {
            name: _counts(getattr(one, name) for one in known if wanted.has(one, name))
            for name in ("status", "kind", "repo")
        },
        "lessons": found[skip : skip + _LESSONS],
        "headings": {one.id: heading for heading, ones in groups.items() for one in ones},
        "listed": len(found),
        "known": len(known),
        "first": wanted.address() if wanted.page else None,
        "next": wanted.address(page=wanted.page + 1) if len(found) > skip + _LESSONS else None,
    }


def _counts(values: Iterable[str]) -> dict[str, int]:
    """Return how often each of *values* occurs, the most frequent first."""
    return dict(Counter(values).most_common())


@_page("/notes", "notes", "notes.html")
def notes(
    visitor: Visitor,
    text: Word = "",
    repo: Word = "",
    show: Literal["live", "archived"] = "live",
    page: Page = 0,
) -> Values:
    """List notes: those about *text* by relevance, else newest first."""
    memory = visitor.memory
    if text:
        recalled = memory.notes.recall(
            text, repo=repo or None, limit=_ROWS, strategy=model.Strategy.NOTES
        )
        said = (note for one in recalled for note in (one.later, one.note) if note)
        found: Sequence[model.Note] = [*{note.id: note for note in said}.values()]
    else:
        found = memory.notes.of(repo or None, archived=show == "archived")
    address = "/pages/notes?" + urlencode({"text": text, "repo": repo, "show": show})
    skip = page * _ROWS
    return {
        "title": "Notes",
        "text": text,
        "repo": repo,
        "show": show,
        "notes": [*map(without_secret, found[skip : skip + _ROWS])],
        "first": address if page else None,
        "next": f"{address}&page={page + 1}" if len(found) > skip + _ROWS else None,
    }


@router.post("/notes/{identity}")
async def decide_note(
    administrator: Administrator,
    request: Request,
    identity: str,
    decision: Decision,
    text: Annotated[str, Form(max_length=4000)] = "",
    successor: Annotated[str, Form(max_length=100)] = "",
) -> Response:
    """Accept, edit, supersede, reject a lesson or undo that; pin, archive or restore a note."""
    memory, by = administrator.memory, administrator.token.source
    decisions: dict[str, Callable[[list[str]], object]] = {
        "accept": lambda ids: memory.lessons.accept(ids, by),
        "reject": lambda ids: memory.lessons.reject(ids, by),
        "undo": memory.lessons.undo,
        "edit": lambda ids: text.strip() and memory.lessons.edit(ids[0], text.strip(), by),
        "supersede": lambda ids: memory.lessons.supersede(ids[0], successor.strip(), by),
        "pin": memory.notes.pin,
        "unpin": lambda ids: memory.notes.pin(ids, pinned=False),
        "archive": memory.notes.archive,
        "restore": memory.notes.restore,
    }
    if decision not in decisions:
        raise HTTPException(422, f"no decision {decision}")
    if not await administrator.service.answer(decisions[decision], [identity]):
        raise HTTPException(404, f"no note {identity}")
    return _back(request, "/pages/lessons", decision, identity)


# The words for a decision, and the decision that undoes it, if any.
_DECISIONS = {
    "accept": ("Accepted", "undo"),
    "reject": ("Rejected", "undo"),
    "edit": ("Changed", "undo"),
    "supersede": ("Superseded", "undo"),
    "undo": ("Undone", ""),
    "pin": ("Pinned", "unpin"),
    "unpin": ("Not pinned any more", "pin"),
    "archive": ("Archived", "restore"),
    "restore": ("Restored", "archive"),
    "quarantine": ("Switched off", "release"),
    "release": ("Switched on", "quarantine"),
}
# Parameters of the address to which a decision leads.
_DECISION, _DECIDED = "decision", "decided"


def _notice(visit: Visit) -> Values | None:
    """Return what was just decided, with the decision that undoes it; None for no decision."""
    if visit.decision not in _DECISIONS:
        return None
    text, back = _DECISIONS[visit.decision]
    note = visit.memory.store.notes.get([visit.identity]).get(visit.identity)
    part = "notes" if note else "advice"
    named = f": {one_line(without_secret(note).content, _NOTICE_WIDTH)}" if note else ""
    address = f"/pages/{part}/{quote(visit.identity, safe='')}"
    return {"text": f"{text}{named}", "back": back, "address": address}


def _back(request: Request, otherwise: str, decision: str, identity: str) -> Response:
    """Lead to the page on which a button was pressed, which says what was decided."""
    _, _, path = request.headers.get("Referer", "").partition(request.headers.get("Host", "/"))
    path, _, query = (path if path.startswith("/pages/") else otherwise).partition("?")
    kept = [pair for pair in parse_qsl(query) if pair[0] not in (_DECISION, _DECIDED)]
    said = urlencode([*kept, (_DECISION, decision), (_DECIDED, identity)])
    return RedirectResponse(f"{path}?{said}", 303)


class FoundGroup(Struct, frozen=True):
    """The *hits* of one session, best first; *session* is None for what is in none."""

    session: model.Session | None
    hits: list[model.Found]

    @staticmethod
    def address(hit: model.Found) -> str:
        """Return the page that shows *hit*: the step of its session, or its node."""
        place = f"#s1-{hit.step}" if hit.step >= 0 else ""
        if hit.run:
            return f"/pages/runs/{quote(hit.run, safe='')}{place}"
        return f"/pages/graph/{quote(hit.id.partition('#')[0], safe='')}"


@_page("/search", "search", "search.html")
def search(visitor: Visitor, q: Word = "") -> Values:
    """Find repositories, sessions, lessons, notes and remedies, and the node with this id."""
    memory = visitor.memory
    groups: dict[str, FoundGroup] = {}
    for hit in memory.search(q, limit=_ROWS) if q.strip() else ():
        name = hit.run or hit.id
        if name not in groups:
            groups[name] = FoundGroup(memory.session(hit.run) if hit.run else None, [])
        groups[name].hits.append(hit)
    return {
        "title": "Search",
        "query": q,
        "node": memory.store.admin.explain(q) if _ID.fullmatch(q) else None,
        "repositories": memory.store.runs.repositories(_FEW, containing=q) if q else (),
        "groups": [*groups.values()],
    }


@_page("/graph/{identity}", "graph", "graph.html")
def graph(visitor: Visitor, identity: str) -> Values:
    """Show a node of the graph with its neighbours; each leads to its own."""
    node = visitor.memory.explain(identity)
    if node is None:
        raise HTTPException(404, f"nothing has the id {identity}")
    facts = [(name.replace("_", " "), value) for name, value in node.facts.items()]
    if evidence := node.evidence:
        facts += [(name.replace("_", " "), value) for name, value in asdict(evidence).items()]
    count = number_of(len(node.relations), "relation")
    is_off = evidence is not None and evidence.is_quarantined
    shown = replace(node, relations=node.relations[:_RELATIONS])
    groups = groups_of(shown)
    return {
        "title": node.name,
        "node": node,
        "facts": [(name, value) for name, value in facts if value not in (None, "")],
        "is_advice": node.label in ("Methodology", "Advice"),
        "decision": "release" if is_off else "quarantine",
        "drawing": drawing_of(shown, groups) if groups else None,
        "groups": groups,
        "few": _FEW,
        "count": count
        if len(node.relations) <= _RELATIONS
        else f"The first {_RELATIONS} of {count}",
    }


@router.get("/api")
async def api(request: Request) -> Response:
    """List the requests that programs send, each with an example of its body."""
    requests = [
        (method.upper(), path, operation["description"], _example(operation))
        for path, operations in request.app.openapi()["paths"].items()
        for method, operation in operations.items()
    ]
    return _html("api.html", title="API", here="api", signed_in=True, requests=requests)


def _example(operation: Any) -> str:
    """Return the example of the JSON body of a request; empty where there is none."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
    example = content.get("example")
    return orjson.dumps(example).decode() if example else ""


def _html(template: str, **values: Any) -> Response:
    return HTMLResponse(render(template, offline=False, **values), 200, _HEADERS)

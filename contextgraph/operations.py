"""The operations of a memory: the one table that HTTP, the clients, MCP and commands offer.

An operation is a function whose signature and docstring are its interface. Each is one request:
those of `REQUESTS` answer with the JSON object of the command line; `METHODS` are methods of the
library for `contextgraph.service.client`, which answer with their value. The table imports neither
pydantic nor what it calls: a command that needs a scope or a limit of it starts no slower.

A parameter is added by one edit, of a function here: the body of its request, the OpenAPI document,
the argument of a tool that names it and the option of a command have its name, type, default,
description and limits (`contextgraph.cli.commands.of_operation`). A command passes on what it does
not name; what it prints for people, and options that it has besides, are its own.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from inspect import BoundArguments, Parameter, signature
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Literal,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

from msgspec import NODEFAULT, Struct, field

from contextgraph.errors import AmbiguousRunError, NotFoundError, ReadError
from contextgraph.model import (
    Action,
    Json,
    MemoryContext,
    Note,
    Recollection,
    Security,
    State,
    Strategy,
    new_context_id,
)
from contextgraph.records import context_record, friction_record, record_of, statement_record
from contextgraph.values import replace

if TYPE_CHECKING:
    from contextgraph.agents.live import LiveRun
    from contextgraph.memory import AgentMemory

Record = Mapping[str, Json]
F = TypeVar("F", bound=Callable[..., Record])

LONGEST, MOST = 200_000, 100_000


class TokenScope(StrEnum):
    """Scopes of a token: ask; report and learn, too; administer, too."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


ADMIN_ARGUMENTS = frozenset({"pinned"})
"""Arguments that need the scope admin, whatever the scope of the operation."""


class Operation(Struct, frozen=True):
    """A function of a memory, of its *part*, or of a live run (*part* "live").

    *target* is the function, or its place: ``module:Class.method``. Tokens need *scope*. *route* is
    the method and the path of its request, *tool* what agents call it over MCP: a name, then the
    arguments that they are offered. *source* is the form of the argument "source", which callers
    cannot choose: ``{}`` is the source of their token. *example* is of the arguments, *answer* of
    the answer; one that *returns_value* answers with what it returns, as "value".
    """

    name: str
    target: Callable[..., Any] | str
    scope: TokenScope
    part: str = ""
    route: str = ""
    tool: str = ""
    source: str = ""
    takes_long: bool = False
    example: Any = None
    answer: Any = None
    returns_value: bool = False

    @property
    def function(self) -> Callable[..., Any]:
        """The function that the operation calls."""
        if not isinstance(self.target, str):
            return self.target
        from pkgutil import resolve_name

        found: Callable[..., Any] = resolve_name(f"contextgraph.{self.target}")
        return found

    def arguments(self) -> Mapping[str, Parameter]:
        """Return the parameters that callers choose, by name."""
        _, *parameters = signature(self.function).parameters.values()
        return {one.name: one for one in parameters if one.name != "source" or not self.source}

    def parameters(self) -> Mapping[str, tuple[Any, Any]]:
        """Return the type of each argument of callers for pydantic, and its default (or `...`)."""
        hints = self.function.__annotations__
        taken: dict[str, tuple[Any, Any]] = {}
        for one in self.arguments().values():
            kind, default = hints[one.name], ... if one.default is one.empty else one.default
            if one.kind is Parameter.VAR_POSITIONAL:
                taken[one.name] = (cast(Any, Sequence)[kind], ())
            elif isinstance(kind, str) or callable(default):
                continue  # of this process alone, such as a report of progress
            else:
                checked = _bounded if self.returns_value else checked_type
                taken[one.name] = (checked(kind), default)
        return taken

    def value(self, memory: "AgentMemory", given: Mapping[str, Any]) -> Any:
        """Return the value of the method of *memory*."""
        target = attrgetter(self.part)(memory) if self.part else memory
        method = getattr(target, self.name.rpartition(".")[2])
        bound = BoundArguments(signature(method), OrderedDict(given))
        bound.apply_defaults()
        return method(*bound.args, **bound.kwargs)


def _bounded(kind: Any) -> Any:
    """Return the type of an argument of a method, read as the library writes it."""
    from pydantic import Field, JsonValue, PlainValidator

    from contextgraph.codec import decoded

    if int in (kind, *get_args(kind)):
        return Annotated[kind, Field(le=MOST)]

    def value(record: Any) -> Any:
        try:
            return decoded(kind, record)
        except ReadError as error:
            raise ValueError(error.reason) from error

    described = Sequence[str] if kind == Collection[str] else kind
    if _has_struct(kind):  # of which pydantic knows no schema
        described = JsonValue
    return Annotated[kind, PlainValidator(value, json_schema_input_type=described)]


def _has_struct(kind: Any) -> bool:
    return (isinstance(kind, type) and issubclass(kind, Struct)) or any(
        map(_has_struct, get_args(kind))
    )


class ArgumentField:
    """Limits and description of an argument, in its annotation: those of `pydantic.Field`.

    A command shows *metavar* for its value, and has the option *flag*; without these the name of
    the argument says both.
    """

    def __init__(self, *, metavar: str = "", flag: str = "", **details: Any) -> None:
        self.metavar, self.flag, self.details = metavar, flag, details


def checked_type(kind: Any) -> Any:
    """Return the type of an argument as pydantic checks it.

    An `ArgumentField` becomes a field, a function a validator; times need a zone, `Any` is JSON.
    """
    from pydantic import AfterValidator, AwareDatetime, ConfigDict, Field, JsonValue, create_model

    from contextgraph.codec import fields_of

    origin, parts = get_origin(kind), get_args(kind)
    if origin is Annotated:
        marks = (
            Field(**one.details) if isinstance(one, ArgumentField) else one for one in parts[1:]
        )
        checks = (AfterValidator(mark) if callable(mark) else mark for mark in marks)
        return Annotated[checked_type(parts[0]), *checks]
    if origin in (Union, UnionType):
        return Union[*map(checked_type, parts)]
    if kind is ToolBody:
        hints = get_type_hints(kind, include_extras=True)
        taken: Any = {
            one.name: (
                checked_type(hints[one.name]),
                ... if one.default is NODEFAULT else one.default,
            )
            for one in fields_of(kind)
        }
        config = ConfigDict(extra="forbid")
        return create_model(kind.__name__, __config__=config, __doc__=kind.__doc__, **taken)
    if parts and origin is not Literal:
        return cast(Any, origin)[*map(checked_type, parts)]
    return {datetime: AwareDatetime, Any: JsonValue}.get(kind, kind)


def fields_in(kind: Any) -> tuple[Any, dict[str, Any]]:
    """Return the type of an argument for a command, and what its fields say; the outer ones last.

    A sequence is a list; one that may be None is of its type.
    """
    origin, parts = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        (kind,) = (part for part in parts if part is not NoneType)
        return fields_in(kind)
    if origin is not Annotated:
        return (cast(Any, list)[fields_in(*parts)[0]] if origin is Sequence else kind), {}
    hint, said = fields_in(parts[0])
    for one in parts[1:]:
        if isinstance(one, ArgumentField):
            shown = {"metavar": one.metavar, "flag": one.flag}
            said |= {name: text for name, text in shown.items() if text} | one.details
    return hint, said


def keywords(fields: Mapping[str, tuple[Any, Any]]) -> list[Parameter]:
    """Return *fields*, type and default (...: none), as parameters that are given by name."""
    return [
        Parameter(
            name,
            Parameter.KEYWORD_ONLY,
            default=Parameter.empty if default is ... else default,
            annotation=kind,
        )
        for name, (kind, default) in fields.items()
    ]


REQUESTS: dict[str, Operation] = {}
"""The operations that answer with a record, by name."""


def _offer(scope: TokenScope, route: str, **properties: Any) -> Callable[[F], F]:
    """Add a function to the table, as the request *route*."""

    def offer(function: F) -> F:
        name = function.__name__
        REQUESTS[name] = Operation(name, function, scope, route=route, **properties)
        return function

    return offer


def _is_bounded(state: State) -> State:
    if any(len(names) > 1000 for names in (state.tools, state.failed_actions)):
        raise ValueError("a list may have at most 1000 items")
    return state


# What pydantic reads of a class.
cast(Any, State).__pydantic_config__ = {"extra": "forbid", "str_max_length": LONGEST}

Name = Annotated[str, ArgumentField(max_length=500)]
Text = Annotated[str, ArgumentField(max_length=LONGEST)]
LongText = Annotated[str, ArgumentField(max_length=4_000_000)]
Names = Annotated[Sequence[Name], ArgumentField(max_length=1000)]
Tags = Annotated[Sequence[Name], ArgumentField(max_length=100)]
Limit = Annotated[
    int,
    ArgumentField(ge=1, le=100, metavar="N", description="At most this many items of each kind."),
]
PageSize = Annotated[int, ArgumentField(ge=1, le=500, metavar="N", description="At most N.")]
Tokens = Annotated[
    int,
    ArgumentField(ge=1, le=100_000, metavar="N", flag="--tokens", description="At most N tokens."),
]
Share = Annotated[float, ArgumentField(ge=0, le=1)]
After = Annotated[str, ArgumentField(max_length=100, description='"next" of the page before.')]
Repository = Annotated[
    Name, ArgumentField(metavar="OWNER/REPO", description="The repository (owner/repo).")
]
OnlyRepository = Annotated[
    Name,
    ArgumentField(metavar="OWNER/REPO", description="Only this repository (owner/repo)."),
]
AboutRepository = Annotated[
    Name | None,
    ArgumentField(
        metavar="OWNER/REPO",
        description="Only notes about this repository (owner/repo), or about none.",
    ),
]
Question = Annotated[Text, ArgumentField(description="What you want to know.")]
Kinds = Annotated[
    Strategy,
    ArgumentField(
        metavar="NAME", description="All; no entities and links; only those; only notes."
    ),
]
Ignored = Annotated[Names, ArgumentField(metavar="ID", description="Ignore runs of this instance.")]
AsOf = Annotated[datetime | None, ArgumentField(description="Ignore newer runs.")]


class ToolBody(Struct, frozen=True):
    """The call of a tool that is not a shell."""

    tool: Name
    text: Text
    arguments: dict[str, Any] = field(default_factory=dict)


def _action(given: str | ToolBody) -> str | Action:
    return given if isinstance(given, str) else Action(given.tool, given.text, given.arguments)


BoundedState = Annotated[State, _is_bounded]
States = Annotated[Sequence[BoundedState], ArgumentField(min_length=1, max_length=300)]

_CONTEXT: Json = {
    "key": None,
    "id": "ctx_5f0c2a4d9e1b7c3a",
    "suggestions": [],
    "error_solutions": [
        {
            "fragment_id": "frg_306a88efae182c7b51d36faf",
            "trajectory_id": "trj_37b4f7ae17699bc8f32a2686",
            "instance_id": "acme__shop-2",
            "repo": "acme/shop",
            "error_type": "ModuleNotFoundError",
            "signature_level": "template",
            "actions": ["PYTHONPATH=lib python reproduce.py"],
            "description": "set `PYTHONPATH=lib` (`PYTHONPATH=lib python reproduce.py`)",
            "rank": 1,
            "probability": 0.81,
        }
    ],
    "similar_cases": [],
    "warnings": [],
    "degraded": [],
    "text": "Earlier runs: …",
}


def without_secrets(value: Any) -> Any:
    """Return a value of notes as others than the owner of the memory see it."""
    from contextgraph.knowledge import Statement, shareable, without_secret

    if isinstance(value, Note):
        return without_secret(value)
    if isinstance(value, Recollection):
        return shareable(value)
    if isinstance(value, Statement):
        return replace(value, note=without_secret(value.note))
    return tuple(map(without_secrets, value)) if isinstance(value, tuple) else value


@_offer(
    TokenScope.READ,
    "POST /v1/query",
    example={
        "state": {
            "repo": "acme/shop",
            "current_error": "ModuleNotFoundError: No module named 'tariffs'",
        },
        "limit": 3,
    },
    answer=_CONTEXT,
)
def query(
    memory: "AgentMemory",
    state: BoundedState,
    limit: Limit = 5,
    *,
    exclude_instances: Ignored = (),
    as_of: AsOf = None,
    max_tokens: Tokens | None = None,
    record: bool = True,
) -> Record:
    """Return what is known for a state, as `contextgraph query --json` prints it.

    Without *record* the text does not count as shown, and no outcome can be reported for it.
    """
    from contextgraph.advising.wording import MAX_TOKENS, render

    context = memory.query(
        state, limit, exclude_instances=exclude_instances, as_of=as_of, degrade=True
    )
    show = memory.render if record else render
    return context_record(context, show(context, max_tokens or MAX_TOKENS))


@_offer(
    TokenScope.READ,
    "POST /v1/loops",
    example={"states": [{"last_action": "pytest", "current_error": "KeyError: 'a'"}] * 3},
)
def loops(memory: "AgentMemory", states: States) -> Record:
    """Detect whether the last state is in a loop; states are oldest first.

    The answer is that of /v1/query, with "loop".
    """
    context = MemoryContext(new_context_id(), loop=memory.check_loop(states))
    return context_record(context, memory.render(context))


@_offer(
    TokenScope.READ,
    "POST /query_memory",
    example={
        "problem_statement": "Totals are wrong when a tariff is missing",
        "error_message": "KeyError: 'tariff'",
        "current_file": "shop/tariff.py",
    },
    answer={"playbook": "…"},
)
def query_memory(
    memory: "AgentMemory",
    problem_statement: Text,
    error_message: Text | None = None,
    current_file: Name | None = None,
) -> Record:
    """Return the advice for a task as text, empty where nothing is known.

    This is the contract of agents that know no other.
    """
    state = State(
        task_description=problem_statement,
        current_error=error_message or "",
        open_file=current_file or "",
    )
    return {"playbook": memory.render(memory.query(state, degrade=True))}


@_offer(TokenScope.READ, "GET /v1/playbook", tool="playbook repo task limit")
def playbook(
    memory: "AgentMemory",
    repo: Repository,
    task: Annotated[
        Text, ArgumentField(description="Rank the files for this task, such as an issue.")
    ] = "",
    *,
    exclude_instances: Ignored = (),
    as_of: AsOf = None,
) -> Record:
    """Return what the runs of a repository agree on: likely files, test command, set-up.

    As `contextgraph playbook --json`.
    """
    from contextgraph.advising.wording import render_playbook

    playbook = memory.playbook(repo, task, exclude_instances=exclude_instances, as_of=as_of)
    return record_of(playbook, text=render_playbook(playbook))


@_offer(TokenScope.READ, "GET /v1/how", tool="how repo command limit")
def how(
    memory: "AgentMemory",
    repo: Repository,
    command: Annotated[Text, ArgumentField(description="A shell command.")],
    *,
    exclude_instances: Ignored = (),
    as_of: AsOf = None,
) -> Record:
    """Return how a command is really run here, with a warning of one that never worked.

    As `contextgraph how --json`.
    """
    history = memory.how(repo, command, exclude_instances=exclude_instances, as_of=as_of)
    return record_of(history)


@_offer(TokenScope.READ, "GET /v1/stats")
def stats(
    memory: "AgentMemory",
    repo: Annotated[
        OnlyRepository, ArgumentField(description="Failures in this repository (owner/repo).")
    ] = "",
    situation: Annotated[
        Name,
        ArgumentField(
            metavar="WORDS",
            description="Failures in a phase, in a type of task, at a file, or in tasks about some "
            "words.",
        ),
    ] = "",
) -> Record:
    """Return counts, errors and error sequences, as `contextgraph stats --json`."""
    # What models cost is counted on this machine, for all tenants.
    stats = replace(memory.get_stats(), usage={})
    if repo:
        stats = replace(stats, failure_patterns=memory.stats.get_failure_patterns(repo))
    mistakes = memory.stats.get_common_mistakes(situation, repo)
    return record_of(stats, common_mistakes=mistakes, plots=(), people=None)


@_offer(TokenScope.READ, "GET /v1/friction")
def friction(memory: "AgentMemory", repo: OnlyRepository = "", limit: PageSize = 10) -> Record:
    """Return what keeps failing across tasks, as `contextgraph friction --json`."""
    return friction_record(repo, memory.stats.get_friction(repo, limit))


@_offer(TokenScope.READ, "GET /v1/trajectories")
def trajectories(
    memory: "AgentMemory",
    repo: Name = "",
    instance: Name = "",
    after: After = "",
    limit: PageSize = 50,
) -> Record:
    """List runs by id: a page of those with an id above *after*."""
    runs = memory.store.runs
    ids = runs.ids(repo or None, instance or None, after=after, limit=limit + 1)
    page = runs.trajectories(ids[:limit])
    return {"trajectories": [*map(record_of, page.values())], "next": _next(ids, limit)}


def _next(ids: Sequence[str], limit: int) -> str | None:
    """Return *after* of the next page, where *ids* are one more than fit on this one."""
    return ids[limit - 1] if len(ids) > limit else None


@_offer(TokenScope.READ, "GET /v1/trajectories/{identity}")
def trajectory(memory: "AgentMemory", identity: str, steps: bool = False) -> Record:
    """Return a run with its fragments; with *steps* also "run", as its own format keeps it."""
    from contextgraph.readers import to_record

    runs = memory.store.runs
    known = runs.learned([identity]).get(identity)
    run = runs.trajectories([known.trajectory_id]).get(known.trajectory_id) if known else None
    if run is None:
        raise NotFoundError(f"no run {identity}; /v1/trajectories lists those there are")
    fragments = runs.fragments([run.id]).get(run.id, ())
    record = record_of(run, task=run.task, summary=run.summary, fragments=fragments)
    raw = runs.raw(run.id) if steps else None
    return {**record, "run": to_record(raw)} if raw else record


@_offer(TokenScope.READ, "GET /v1/methodologies")
def methodologies(
    memory: "AgentMemory", repo: Name = "", after: After = "", limit: PageSize = 50
) -> Record:
    """List methodologies by id: a page of those with an id above *after*."""
    store = memory.store.methodologies
    ids = store.ids(repo or None, after=after, limit=limit + 1)
    page = [*map(record_of, store.get(ids[:limit]))]
    return {"methodologies": [*page], "next": _next(ids, limit)}


@_offer(TokenScope.READ, "GET /v1/methodologies/{identity}")
def methodology(memory: "AgentMemory", identity: str) -> Record:
    """Return a methodology."""
    methodologies = memory.store.methodologies.get([identity])
    if not methodologies:
        raise NotFoundError(f"no methodology {identity}; /v1/methodologies lists those there are")
    return record_of(methodologies[0])


@_offer(TokenScope.READ, "GET /v1/notes", tool="recall question repo limit")
def notes(
    memory: "AgentMemory",
    question: Annotated[Text | None, ArgumentField(description="What you want to know.")] = None,
    repo: AboutRepository = None,
    tags: Annotated[Tags, ArgumentField(description="Only notes with this tag.")] = (),
    limit: PageSize = 50,
    min_probability: Annotated[
        Share, ArgumentField(metavar="P", description="Only what answers at least as probably.")
    ] = 0.0,
    strategy: Kinds = Strategy.HYBRID,
    archived: bool = False,
) -> Record:
    """Return notes, decisions, pages, entities and keyed entries that answer a question.

    Without a *question* the newest notes. Of *repo* where one is given; a question also finds those
    about anything. *tags*, *min_probability* and *strategy* are of questions, *archived* is of a
    list. As `contextgraph recall --json`; "text" is for prompts.
    """
    from contextgraph.knowledge import render_notes

    if question is None:
        newest = memory.notes.of(repo, archived=archived)[:limit]
        return {"notes": [record_of(without_secrets(note)) for note in newest]}
    recalled = without_secrets(
        memory.notes.recall(
            question,
            repo=repo,
            limit=limit,
            tags=tags,
            min_probability=min_probability,
            strategy=strategy,
        )
    )
    return {"notes": [*map(record_of, recalled)], "text": render_notes(recalled)}


@_offer(TokenScope.READ, "GET /v1/search", tool="search question repo limit")
def search(
    memory: "AgentMemory",
    question: Question,
    repo: OnlyRepository | None = None,
    limit: PageSize = 10,
    strategy: Kinds = Strategy.HYBRID,
) -> Record:
    """Search past sessions, what people decided there, notes, pages and remedies.

    As `contextgraph search --json`.
    """
    found = memory.search(question, repo, limit=limit, strategy=strategy)
    return {"found": [*map(record_of, found)]}


@_offer(TokenScope.READ, "GET /v1/snapshot", tool="snapshot trigger focus repo max_tokens")
def snapshot(
    memory: "AgentMemory",
    trigger: Annotated[
        Text, ArgumentField(description="What happens: an event, an error, a task.")
    ],
    focus: Annotated[Text, ArgumentField(description="What you work on meanwhile.")] = "",
    repo: AboutRepository = None,
    max_tokens: Tokens = 500,
) -> Record:
    """Return the notes that matter now: pinned, about the trigger, of the last day.

    As `contextgraph snapshot --json`.
    """
    from contextgraph.knowledge import shareable_snapshot

    snapshot = memory.snapshot(trigger, focus, repo=repo, max_tokens=max_tokens)
    return record_of(shareable_snapshot(snapshot, max_tokens))


@_offer(TokenScope.READ, "GET /v1/decisions")
def decisions(
    memory: "AgentMemory",
    repo: OnlyRepository | None = None,
    recurring: Annotated[
        bool,
        ArgumentField(description="Only what people said in two sessions or more, most first."),
    ] = False,
) -> Record:
    """List what people decided in learned sessions, as `contextgraph decisions --json`."""
    listed = memory.statements.of(repo, recurring=recurring)
    return {"decisions": [statement_record(without_secrets(one)) for one in listed]}


@_offer(TokenScope.READ, "GET /v1/sources")
def sources(memory: "AgentMemory") -> Record:
    """List who supplied runs and reports, as `contextgraph sources --json`."""
    return {"sources": [*map(record_of, memory.sources())]}


@_offer(TokenScope.READ, "GET /v1/keyed/brief", tool="brief tags max_tokens")
def brief(
    memory: "AgentMemory",
    tags: Annotated[Tags, ArgumentField(description="Prefer entries with this tag.")] = (),
    max_tokens: Tokens = 800,
    newest_first: Annotated[
        bool, ArgumentField(description="Order by time, then importance, then tags.")
    ] = False,
) -> Record:
    """Return the keyed entries to know at the start of a task, best first.

    As `contextgraph brief --json`.
    """
    return record_of(memory.keyed.brief(max_tokens, tags, newest_first=newest_first))


@_offer(
    TokenScope.WRITE,
    "POST /v1/keyed",
    source="agent:{}",
    example={"key": "/user/preference/style", "json_content": {"summary": "small commits"}},
)
def set_memory(
    memory: "AgentMemory",
    key: Annotated[Name, ArgumentField(description="A path such as /user/preference/style.")],
    json_content: Any,
    *,
    source: str,
) -> Record:
    """Keep JSON under a key, null removes it, as `contextgraph set`."""
    receipt = memory.keyed.set_memory(key, json_content, source)
    return {"key": receipt.key, "status": receipt.status}  # its path is of this machine


@_offer(TokenScope.READ, "GET /v1/explain/{identity}")
def explain(
    memory: "AgentMemory",
    identity: Annotated[
        str,
        ArgumentField(
            metavar="ID",
            description="A methodology (mth_…), trajectory (trj_…), fragment (frg_…), error "
            "pattern (err_…), advice (adv_…) or note (note_…), as answers name them.",
        ),
    ],
) -> Record:
    """Return where a methodology, run, fragment, error or context comes from."""
    explanation = memory.explain(identity)
    if explanation is None:
        raise NotFoundError(f"nothing has the id {identity}")
    return record_of(explanation)


@_offer(
    TokenScope.WRITE,
    "POST /v1/outcomes",
    example={"instance_id": "acme__shop-7", "outcome": "solved"},
)
def outcomes(
    memory: "AgentMemory",
    instance_id: Annotated[Name, ArgumentField(metavar="INSTANCE", description="The instance.")],
    outcome: Annotated[
        Literal["solved", "failed"],
        ArgumentField(metavar="solved|failed", description="Its outcome."),
    ],
    agent: Annotated[
        Name, ArgumentField(metavar="NAME", description="Only runs of this agent.")
    ] = "",
    run: Annotated[Name, ArgumentField(metavar="ID", description="Only the run of this id.")] = "",
) -> Record:
    """Set by hand whether runs of an instance solved it, as `contextgraph outcome`.

    All of its runs, those of *agent*, or one *run*.
    """
    known = memory.store.runs.ids(instance=instance_id)
    if len(known) > 1 and not (agent or run):
        raise AmbiguousRunError(f"{instance_id} has several runs; name one, or those of an agent")
    changed = memory.set_outcome(instance_id, outcome == "solved", agent=agent, run=run)
    if not changed:
        raise NotFoundError(f"no such run of {instance_id} in the memory")
    return {"instance_id": instance_id, "outcome": outcome, "trajectories": [*changed]}


@_offer(
    TokenScope.WRITE,
    "POST /v1/notes",
    tool="remember content repo tags",
    source="agent:{}",
    example={"content": "CI uses Python 3.11", "repo": "acme/shop"},
)
def remember(  # noqa: PLR0913  (one parameter per property of a note)
    memory: "AgentMemory",
    content: Annotated[Text, ArgumentField(description="One statement.")],
    *,
    source: str,
    repo: Annotated[
        Repository, ArgumentField(description="The repository it is about (owner/repo).")
    ] = "",
    tags: Annotated[Names, ArgumentField(description="Words to find it by.")] = (),
    locator: Annotated[
        Name, ArgumentField(description="Where the source says it; the web needs one.")
    ] = "",
    pinned: Annotated[
        bool, ArgumentField(flag="--pin", description="Keep it in every snapshot and playbook.")
    ] = False,
    security: Annotated[
        Security,
        ArgumentField(metavar="LEVEL", description="public, internal, confidential or restricted."),
    ] = Security.INTERNAL,
    valid_from: Annotated[
        datetime | None, ArgumentField(description="Recall it from then on.")
    ] = None,
    valid_until: Annotated[
        datetime | None, ArgumentField(flag="--until", description="Recall it until then.")
    ] = None,
    importance: Annotated[
        Share, ArgumentField(metavar="SHARE", description="How much it matters, 0 to 1.")
    ] = 0.5,
    caused_by: Annotated[
        Names, ArgumentField(metavar="ID", description="A note that is a cause of it.")
    ] = (),
) -> Record:
    """Note a statement that later runs should know; the same again confirms it.

    Leave repo out where it is true of any. Secrets are masked. A pinned one, which all runs of the
    repository are shown, needs the scope admin. As `contextgraph remember --json`; the source is
    that of the token.
    """
    receipt = memory.notes.remember(
        content,
        repo=repo,
        source=source,
        tags=tags,
        locator=locator,
        pinned=pinned,
        security=security,
        valid_from=valid_from,
        valid_until=valid_until,
        importance=importance,
        caused_by=caused_by,
    )
    return record_of(receipt)


@_offer(
    TokenScope.WRITE,
    "POST /v1/reports",
    source="{}",
    example={"context": "ctx_5f0c2a4d9e1b7c3a", "helped": True},
)
def reports(
    memory: "AgentMemory",
    context: Annotated[Name, ArgumentField(description="The id of an answer (ctx_…).")],
    helped: bool,
    item: Annotated[
        Limit | None, ArgumentField(description="Only the item of this number.")
    ] = None,
    *,
    source: str,
) -> Record:
    """Report whether the advice of an answer helped; "recorded" is false where it was before."""
    recorded = memory.report_outcome(context, helped, item, source=source)
    return {"context": context, "helped": helped, "recorded": recorded}


@_offer(TokenScope.ADMIN, "POST /v1/methodologies/{identity}/{decision}")
def decide(
    memory: "AgentMemory",
    identity: Annotated[
        str,
        ArgumentField(
            metavar="ID",
            description="Advice (adv_…) or a methodology (mth_…), as answers name them.",
        ),
    ],
    decision: Literal["quarantine", "release"],
) -> Record:
    """Never show a methodology, or advice (`adv_…`), again; or show it whatever was reported."""
    decided = memory.quarantine if decision == "quarantine" else memory.release
    if not decided(identity):
        raise NotFoundError(f"no methodology or advice {identity}")
    return {"advice": identity, "quarantined": decision == "quarantine"}


@_offer(TokenScope.ADMIN, "DELETE /v1/notes/{identity}")
def forget_note(memory: "AgentMemory", identity: str) -> Record:
    """Delete a note."""
    if not memory.notes.forget([identity]):
        raise NotFoundError(f"no note {identity}; GET /v1/notes lists those there are")
    return {"forgotten": 1}


@_offer(TokenScope.ADMIN, "DELETE /v1/trajectories/{identity}", takes_long=True)
def forget(memory: "AgentMemory", identity: str) -> Record:
    """Remove a run and everything that only it supports."""
    if not memory.forget([identity]):
        raise NotFoundError(f"no run {identity}; /v1/trajectories lists those there are")
    return {"forgotten": 1}


@_offer(TokenScope.ADMIN, "DELETE /v1/methodologies/{identity}", takes_long=True)
def retire(memory: "AgentMemory", identity: str) -> Record:
    """Show and derive a methodology no more; it stays as a tombstone, with the status retired."""
    if not memory.retire([identity]):
        raise NotFoundError(f"no methodology {identity}, or it is retired")
    return {"retired": 1}


_LIVE = "/v1/runs/live/{identity}"
_NO_TEXT: Json = {"text": None}


@_offer(TokenScope.WRITE, f"POST {_LIVE}/start", part="live", answer={"text": ""})
def start(run: "LiveRun") -> Record:
    """Return advice for the first prompt, empty where nothing is known."""
    return {"text": run.start()}


@_offer(TokenScope.WRITE, f"POST {_LIVE}/before", part="live", example={"action": "pytest tests/"})
def before(run: "LiveRun", action: Text | ToolBody) -> Record:
    """Return what to know before an action is taken; null for nothing.

    An action is a command line, or the call of another tool.
    """
    return {"text": run.before(_action(action))}


@_offer(
    TokenScope.WRITE,
    f"POST {_LIVE}/prompt",
    part="live",
    example={"text": "Totals must include the tariff"},
)
def prompt(run: "LiveRun", text: Text) -> Record:
    """Return what people decided about what a person asks for in the run; null for nothing."""
    return {"text": run.prompt(text)}


@_offer(
    TokenScope.WRITE,
    f"POST {_LIVE}/observe",
    part="live",
    example={
        "action": "python reproduce.py",
        "observation": "ModuleNotFoundError: No module named 'tariffs'",
        "exit_code": 1,
    },
    answer=_NO_TEXT,
)
def observe(
    run: "LiveRun",
    action: Text | ToolBody,
    observation: LongText,
    exit_code: int | None = None,
    thought: Text = "",
) -> Record:
    """Take in a step; return advice where it met a new error or got stuck in a loop, else null."""
    return {"text": run.observe(_action(action), observation, exit_code=exit_code, thought=thought)}


@_offer(TokenScope.WRITE, f"POST {_LIVE}/check_submit", part="live", answer=_NO_TEXT)
def check_submit(run: "LiveRun") -> Record:
    """Return what seems to be missing before the agent submits; null for nothing."""
    return {"text": run.check_submit()}


# The methods that clients call: part of a memory -> its class, and its methods by their scope.
METHODS: Mapping[str, tuple[str, Mapping[TokenScope, str]]] = {
    "": (
        "memory:AgentMemory",
        {
            TokenScope.READ: "decided explain",
            TokenScope.ADMIN: "forget maintain quarantine release retire",
        },
    ),
    "statements": (
        "knowledge:Statements",
        {
            TokenScope.READ: "for_command for_request naming of standing",
            TokenScope.ADMIN: "accept edit reject remove_run",
        },
    ),
    "entities": (
        "knowledge:Entities",
        {
            TokenScope.READ: "find_by_keywords find_tags get_entity get_related",
            TokenScope.WRITE: "add_entity add_relation set_entity_tags",
            TokenScope.ADMIN: "fill remove_entity remove_relation",
        },
    ),
    "loop_detector": (
        "advising.loops:LoopDetector",
        {TokenScope.READ: "alarm_after escapes_from"},
    ),
    "notes": (
        "knowledge:Notes",
        {
            TokenScope.READ: "causes of rank recall",
            TokenScope.WRITE: "link",
            TokenScope.ADMIN: "archive forget pin prune reset restore",
        },
    ),
    "pages": (
        "knowledge:Pages",
        {
            TokenScope.READ: "get_index get_page references search",
            TokenScope.WRITE: "add_page update_page",
            TokenScope.ADMIN: "remove_page",
        },
    ),
    "retriever": (
        "advising.pipeline:MemoryRetriever",
        {TokenScope.READ: "by_error by_state by_task retrieve"},
    ),
    "retriever.playbooks": (
        "advising.playbook:Playbooks",
        {TokenScope.READ: "content_hashes facts history of"},
    ),
    "stats": (
        "learning.statistics:StatisticsEngine",
        {
            TokenScope.READ: "get_common_mistakes get_error_frequency get_error_transitions "
            "get_failure_patterns get_friction get_interventions get_outcomes_over_time "
            "get_solve_rates get_steps_saved"
        },
    ),
    "store.exposures": (
        "ports:ExposureStore",
        {TokenScope.READ: "of_session", TokenScope.WRITE: "add forget_session"},
    ),
    "store.runs": (
        "ports:RunStore",
        {TokenScope.READ: "for_task for_text ids learned raw trajectories"},
    ),
    "writer": ("learning:MemoryWriter", {TokenScope.WRITE: "set_outcome"}),
}


def _methods() -> Iterator[Operation]:
    for part, (kind, scopes) in METHODS.items():
        for scope, names in scopes.items():
            for method in names.split():
                name = f"{part}.{method}".lstrip(".")
                yield Operation(
                    name,
                    f"{kind}.{method}",
                    scope,
                    part,
                    f"POST /v1/{name.replace('.', '/')}",
                    # What administrators start may take minutes.
                    takes_long=scope is TokenScope.ADMIN,
                    returns_value=True,
                )


OPERATIONS: Sequence[Operation] = (*REQUESTS.values(), *_methods())

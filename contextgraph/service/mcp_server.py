"""The tools of the MCP server: those of the table of operations, and those of a run in progress.

Each calls the memory in a thread of the SDK.

Advice is in "text" only. Claude Code and VS Code show an agent the structured result and not the
plain text beside it, so nothing is in it that the gate of the memory holds back.
"""

import json
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib.metadata import version
from inspect import getdoc, signature
from io import BytesIO
from itertools import islice
from typing import Annotated, Any
from uuid import uuid4

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.server.mcpserver.utilities.func_metadata import ArgModelBase, FuncMetadata
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from contextgraph.advising.pipeline import settle
from contextgraph.advising.wording import MAX_TOKENS, render
from contextgraph.agents.install import WHEN_TO_ASK
from contextgraph.agents.shown import Session
from contextgraph.errors import ContextGraphError, ReadError
from contextgraph.knowledge.search import runs_among
from contextgraph.learning import Inspection
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import (
    Action as ToolAction,
    Json,
    MemoryContext,
    Outcome,
    Phase,
    RawTrajectory,
    Scope,
    State,
    Step,
    Trajectory,
    new_context_id,
)
from contextgraph.model.codec import COMPLETE, encoded, parts_of
from contextgraph.model.values import NEAR_ARGUMENT, replace
from contextgraph.readers import read_file
from contextgraph.service.operations import Operation, operations
from contextgraph.service.operations.arguments import (
    Arguments,
    Name,
    Question,
    Repository,
    Tokens,
    arguments_of,
    faults,
)
from contextgraph.text import clip, cut, fence, gives_instructions, mask_secrets, meant, neutral
from contextgraph.trace import command_lines, state_at

_RUN = """\
A finished run, as JSON or as the text of its log file: SWE-agent, mini-swe-agent, Claude Code, \
Codex CLI, OpenHands, chat messages, ATIF, or ContextGraph's own form {"contextgraph": 1, \
"source_format": "mcp", "instance_id", "repo", "task", "agent", "steps": [{"index", "thought", \
"action": {"tool", "text"}, "observation", "exit_code"}]}."""
_NOTHING = "Nothing known applies."
_REPEATED = (
    "Nothing new: what applies was shown in this session before. If your context was compacted "
    "since, call again with again: true."
)
_JSON_TYPES = ["object", "array", "string", "number", "boolean", "null"]

_STEPS, _PARTS, _ITEMS, _FEW, _FILES_OF_RUN = 300, 50, 10, 5, 10
_ACTION_CHARS, _OBSERVATION_CHARS, _TITLE_CHARS, _TEXT_CHARS = 20_000, 100_000, 200, 1_500
_NAME_CHARS = 100
_RUNS_LEARNED, _RUN_BYTES = 16, 32 * 1024 * 1024

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Text = Annotated[str, Field(max_length=_OBSERVATION_CHARS)]
Action = Annotated[str, Field(max_length=_ACTION_CHARS)]
Task = Annotated[Text, Field(description="The issue or task.")]
Instance = Annotated[Name, Field(description="The id of the task being worked on.")]
Limit = Annotated[int, Field(ge=1, le=_ITEMS, description="The most items of each kind.")]
Source = Annotated[
    JsonValue,
    Field(
        description="A name, or kind, name, retrieved_at, …",
        json_schema_extra={"type": ["string", "object"]},
    ),
]
Again = Annotated[bool, Field(description="Also what was shown before: it left your context.")]

Result = dict[str, Json]


class TakenStep(BaseModel):
    """A step of the agent, as `check_loop` and `check_submit` take it."""

    model_config = ConfigDict(extra="forbid")

    action: Annotated[Action, Field(description="The command line.")]
    observation: Annotated[Text, Field(description="Its output; the end is enough.")] = ""
    exit_code: Annotated[int | None, Field(description="Its exit code.")] = None

    def at(self, index: int) -> Step:
        """Return it as the step *index* of a run."""
        action = ToolAction("bash", self.action, {"command": self.action})
        return Step(index, "", action, self.observation, exit_code=self.exit_code)


TakenSteps = Annotated[
    list[TakenStep],
    Field(min_length=1, max_length=_STEPS, description="Your steps, oldest first."),
]


class Connection(Struct, frozen=True):
    """The memory of each call of a tool, the source of its caller, and its session."""

    of_call: Callable[[], AgentMemory]
    source: Callable[[], str]
    session: Callable[[], Session]

    @property
    def memory(self) -> AgentMemory:
        """The memory that the call asks."""
        return self.of_call()

    def shown(self, context: MemoryContext) -> Result:
        """Return the text of what is new in *context*, and its id where there is any."""
        text = self.session().show(context, MAX_TOKENS)
        return {"text": text, "context_id": context.id if text else None}

    def inspected(self, steps: Sequence[TakenStep], repo: str) -> Inspection:
        """Return *steps* as a run of *repo* that is read."""
        taken = tuple(step.at(index) for index, step in enumerate(steps))
        return self.memory.inspect(RawTrajectory("mcp", "", repo, "", taken))


def serve(memory: AgentMemory, session: str = "", *, distils: bool = False) -> None:
    """Serve *memory* on standard input and output until the input ends.

    To the agent of *session*, as its hooks name it; by default a session of its own. An agent that
    *distils* answers the requests about sessions.

    For the main thread. An interrupt ends the process at once.
    """
    # The SDK would wait for the next line of input; nothing that was answered is lost.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    of_agent = Session(memory, session or uuid4().hex)
    server_of(lambda: memory, session=lambda: of_agent, distils=distils).run("stdio")


def server_of(
    memory: Callable[[], AgentMemory],
    *,
    session: Callable[[], Session] | None = None,
    source: Callable[[], str] = str,
    writes: bool = True,
    distils: bool = False,
) -> MCPServer:
    """Return an MCP server that is not yet running; without *writes* its tools only read.

    With both, an agent may write down the lessons of sessions where it *distils*.

    *memory*, *session* (of the agent; without it the server has one) and *source* (who supplies
    runs and reports: see `AgentMemory.learn`) are called in the context of each call of a tool.
    """
    of_server = cache(lambda: Session(memory(), uuid4().hex))
    connection = Connection(memory, source, session or of_server)
    offered = READING | (WRITING if writes else {}) | (DISTILLING if writes and distils else {})
    return MCPServer(
        "contextgraph",
        instructions=WHEN_TO_ASK,
        version=version("contextgraph-memory"),
        log_level="WARNING",
        tools=[_tool(name, tool, connection) for name, tool in offered.items()],
    )


class ToolArguments(Arguments, ArgModelBase):
    """Arguments of a tool."""


class _StrictTool(Tool):
    """A tool that names the argument that an unknown one was meant to be; "" is not given."""

    async def run(
        self, arguments: dict[str, Any], context: Any, convert_result: bool = False
    ) -> Any:
        """Run the tool; raises `ToolError` for arguments that it does not have."""
        known, required = [*self.parameters["properties"]], self.parameters.get("required", ())
        for name in arguments.keys() - {*known}:
            shown = cut(name, _NAME_CHARS)
            near = meant(shown, known, NEAR_ARGUMENT)
            hint = f"did you mean {near}? " if near else ""
            raise ToolError(f"{self.name} has no argument {shown}: {hint}It has {', '.join(known)}")
        given = {name: value for name, value in arguments.items() if value != ""}
        if missing := [name for name in required if name not in given]:
            raise ToolError(f"{self.name} needs {', '.join(missing)}")
        try:
            return await super().run(given, context, convert_result)
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            lines = (f"{one['at']}: {one['reason']}" for one in faults(error.__cause__.errors()))
            raise ToolError(f"{self.name}: {'; '.join(lines)}") from error


def _tool(name: str, tool: Callable[..., Result], connection: Connection) -> Tool:
    """Return a tool, which gets the *connection* and the arguments of a call."""
    if isinstance(tool, Offered):
        function, takes = tool.operation.function, tool.takes.split()
        model = arguments_of(function, takes, ToolArguments, **tool.other)
        description, _, _ = (getdoc(function) or "").partition("\n\n")  # more is of requests
    else:
        model = arguments_of(tool, [*signature(tool).parameters], ToolArguments)
        description = getdoc(tool) or ""
    schema = model.model_json_schema()
    del schema["additionalProperties"]
    return _StrictTool(
        fn=_guarded(tool, connection),
        name=name,
        description=description,
        parameters=_short(schema, schema.get("$defs", {})),
        fn_metadata=FuncMetadata(arg_model=model),
        is_async=False,
        title=None,
        context_kwarg=None,
        annotations=_READS if name in READING else _WRITES,
    )


def _short(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Leave out of a schema what costs an agent tokens without information.

    That is titles, limits of length, empty defaults and null; what it refers to is written in. A
    property that may be anything names all types, which some clients need.
    """
    if isinstance(schema, list):
        return [_short(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        part = _short(parts[schema["$ref"].rpartition("/")[2]], parts)
        part.pop("description", None)  # of the class, not of the argument
        return part | {name: schema[name] for name in schema.keys() & {"description", "type"}}
    if (choices := schema.get("anyOf")) and {"type": "null"} in choices:
        chosen, *_ = (one for one in choices if one != {"type": "null"})
        rest = {name: one for name, one in schema.items() if name != "anyOf"}
        return _short(rest, parts) | _short(chosen, parts)
    return {
        name: {one: _typed(_short(value, parts)) for one, value in entry.items()}
        if name == "properties"
        else _short(entry, parts)
        for name, entry in schema.items()
        if name not in ("title", "maxLength", "maxItems", "$defs")
        and not (name == "default" and entry in ("", None, []))
    }


def _typed(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    return schema if schema.keys() & {"type", "anyOf"} else {**schema, "type": _JSON_TYPES}


def _guarded(tool: Callable[..., Result], connection: Connection) -> Callable[..., CallToolResult]:
    """Wrap *tool*: failures of the memory become errors of the tool, advice plain text."""

    def call(**given: Any) -> CallToolResult:
        try:
            result = tool(connection, **given)
        except (ContextGraphError, ToolError) as error:
            raise ToolError(mask_secrets(str(error))) from error
        is_advice = {"text", "context_id"} <= result.keys()
        shown = result["text"] or _NOTHING if is_advice else json.dumps(result, ensure_ascii=False)
        text = TextContent(type="text", text=f"{shown}")
        return CallToolResult(content=[text], structured_content=result)

    return call


def _fields(value: Any, names: str) -> Result:
    """Return fields of a value or of its record; long titles are cut, probabilities rounded."""
    known = value if isinstance(value, Mapping) else parts_of(value)
    record: Result = {name: encoded(known[name], COMPLETE) for name in names.split()}
    for name, entry in record.items():
        if name in ("task", "line", "description") and isinstance(entry, str):
            record[name] = clip(entry, _TITLE_CHARS, at="end")
        elif name == "probability" and isinstance(entry, float):
            record[name] = round(entry, 4)
    return record


def _neutral(value: Json) -> Json:
    """*value* with neutral texts: what an agent is shown of a run or a note without a fence."""
    if isinstance(value, str):
        return neutral(value)
    if isinstance(value, list):
        return [*map(_neutral, value)]
    if isinstance(value, dict):
        return {name: _neutral(one) for name, one in value.items()}
    return value


def _each(values: Iterable[Any], names: str) -> list[Json]:
    return [_neutral(_fields(value, names)) for value in values]


_SAID = frozenset(
    "text title task action observation content summary description entity_type".split()
)


def _quoted(value: Result) -> Result:
    """Return *value* with each text that somebody wrote in a fence, whatever its language."""
    return {
        name: fence(one, "quote")
        if name in _SAID and one and isinstance(one, str)
        else _neutral(one)
        for name, one in value.items()
    }


_RUN_FIELDS = "id instance_id repo agent contributor outcome total_steps task"
_COMMAND = "line worked tried error_type source"


def _found(run: Trajectory) -> Result:
    return {**_fields(run, _RUN_FIELDS), "files": [*run.files[:_FILES_OF_RUN]]}


def query_memory(  # noqa: PLR0913, PLR0917  (one parameter per field of a state)
    asked: Connection,
    repo: Repository = "",
    task_description: Task = "",
    current_error: Annotated[Text, Field(description="The error as it was printed.")] = "",
    phase: Annotated[Phase | None, Field(description="What you are doing.")] = None,
    open_file: Annotated[Name, Field(description="The file that you look at.")] = "",
    last_action: Annotated[Action, Field(description="Your last command.")] = "",
    last_outcome: Annotated[Text, Field(description="The output of last_action.")] = "",
    failed_actions: Annotated[
        tuple[Action, ...],
        Field(max_length=_STEPS, description="Actions that failed, and searches, oldest first."),
    ] = (),
    instance_id: Annotated[Name | None, Field(description="The id of the task.")] = None,
    limit: Limit = 3,
    again: Again = False,
) -> Result:
    """Return what earlier runs know for your state: at the start of a task, or at an error.

    Give repo with task_description to begin a task; give repo with current_error at an error.
    """
    state = State(
        repo=repo,
        task_description=task_description,
        current_error=current_error,
        phase=phase,
        open_file=open_file,
        last_action=last_action,
        last_outcome=last_outcome,
        failed_actions=failed_actions,
        instance_id=instance_id,
    )
    if state == State():
        raise ToolError("describe a state: at least repo, task_description or current_error")
    session = asked.session()
    if again:
        session.forget()
    found = asked.memory.query(state, limit)
    withheld = asked.memory.withholds(found) or False
    context = settle(found, limit, already_shown=session.said(), withheld=withheld)
    shown = asked.shown(context)
    if not shown["text"] and render(found):
        shown["text"] = _REPEATED
    remedies: list[Json] = [
        {
            "id": item.id,
            "actions": [*command_lines(item.actions)],
            "probability": round(item.probability, 4),
            "runs": item.why.support,
        }
        for item in (context.shown[:limit] if context.error else ())
    ]
    cases = (case for case in context.similar_cases if case.is_shown)
    return {
        **shown,
        "remedies": remedies,
        "similar_runs": _each(cases, "trajectory_id instance_id outcome probability"),
        "degraded": [*context.degraded],
    }


def check_loop(asked: Connection, steps: TakenSteps, repo: Repository = "") -> Result:
    """Detect whether your latest steps repeat an attempt without a new outcome.

    Give the latest 10 to 50 steps; escapes are what led other runs out of such loops.
    """
    trace = asked.inspected(steps, repo).trace
    loops = asked.memory.loop_detector.detect_all(trace)
    loop = next((loop for loop in loops if loop.end == len(steps) - 1), None)
    names = "kind start end repetitions severity"
    return {
        **asked.shown(MemoryContext(new_context_id(), loop=loop)),
        "loop": _fields(loop, names) if loop else None,
        "escapes": _each(loop.escape_suggestions, "id text evidence") if loop else [],
    }


def check_submit(
    asked: Connection, steps: TakenSteps, repo: Repository = "", instance_id: Instance = ""
) -> Result:
    """Return what seems to be missing before you submit; call it when you believe you are done.

    Give all steps of the run; observations may be left out where an edit or a command succeeded.
    """
    read = asked.inspected(steps, repo).trace
    ending = state_at(read.raw, len(read.raw.steps)).progress
    excluded = [instance_id] if instance_id else []
    found = asked.memory.query(replace(ending, phase=Phase.SUBMITTING), exclude_instances=excluded)
    return asked.shown(found)


def search_trajectories(
    asked: Connection,
    text: Annotated[Text, Field(description="What they are about; empty for any.")] = "",
    repo: Repository = "",
    limit: Limit = _ITEMS,
) -> Result:
    """List past runs as search finds them; without a text solved ones first, then newest."""
    stored = asked.memory.store.runs
    if not text:
        matches = stored.for_task(None, Scope(repo or None), limit)
    else:
        # Of what is found some is no run.
        found = runs_among(asked.memory.search(text, repo or None, limit=2 * limit))[:limit]
        known = stored.trajectories(found)
        matches = [known[id_] for id_ in found if id_ in known]
    return {"runs": [_quoted(_found(run)) for run in matches]}


def get_trajectory(
    asked: Connection,
    trajectory_id: Annotated[Name, Field(description="As search_trajectories gives it.")],
    first_step: Annotated[int, Field(ge=0, description="The first step to show.")] = 0,
    steps: Annotated[int, Field(ge=0, le=50, description="The most steps to show.")] = 20,
) -> Result:
    """Return a past run: its parts (errors and what cleared them), and some of its steps."""
    stored = asked.memory.store.runs
    known = stored.learned([trajectory_id]).get(trajectory_id)
    identity = known.trajectory_id if known else ""
    run, raw = stored.trajectories([identity]).get(identity), stored.raw(identity)
    if run is None or raw is None:
        raise ToolError(
            f"no run {trajectory_id} in this memory; search_trajectories finds those there are"
        )
    read = asked.memory.inspect(raw)
    shown: list[Json] = [
        _quoted(
            {
                "index": one.index,
                "action": clip(neutral(one.step.action.text), _TEXT_CHARS),
                "observation": clip(neutral(one.step.observation or ""), _TEXT_CHARS),
                "exit_code": one.step.exit_code,
                "error": one.error.error_type if one.error else None,
            }
        )
        for one in read.trace.steps[first_step : first_step + steps]
    ]
    parts = _each(read.fragments[:_PARTS], "start end fragment_type description")
    return {"run": _quoted(_found(run)), "parts": parts, "steps": shown}


def report_outcome(
    asked: Connection,
    context_id: Annotated[Name, Field(description="The context_id of the advice: ctx_….")],
    helped: Annotated[bool, Field(description="Whether it helped.")],
) -> Result:
    """Report whether advice helped; advice that often hurts is not shown any more."""
    if not asked.memory.report_outcome(context_id, helped, source=asked.source()):
        raise ToolError(f"{context_id} is unknown, or its outcome was reported before")
    return {"context_id": context_id, "helped": helped}


def learn_trajectory(
    asked: Connection,
    run: Annotated[
        JsonValue,
        Field(description=_RUN, json_schema_extra={"type": ["string", "object", "array"]}),
    ],
    repo: Repository = "",
    instance_id: Instance = "",
    outcome: Annotated[Outcome | None, Field(description="Whether it solved the task.")] = None,
) -> Result:
    """Learn a finished run; learning it again changes nothing. Secrets are masked.

    repo, instance_id and outcome replace what the log says.
    """
    records = _read(run)
    raws = [
        replace(
            record,
            repo=record.repo if record.origin else repo or record.repo,
            instance_id=instance_id or record.instance_id,
            outcome=outcome or record.outcome,
        )
        for record in records
        if isinstance(record, RawTrajectory)
    ]
    failed = [mask_secrets(str(record)) for record in records if isinstance(record, ReadError)]
    if not raws:
        raise ToolError("; ".join(failed) or "there is no run in it")
    source = asked.source()
    receipts = (asked.memory.learn(raw, source=source, background=True) for raw in raws)
    names = "trajectory_id status fragments error_patterns"
    return {"runs": _each(receipts, names), "failed": [*failed]}


class Offered(Struct, frozen=True):
    """An operation as a tool: its types and its documentation are those of the operation.

    An agent gives the arguments that it *takes*, some with *other* types and defaults than the
    operation has, and gets what *shown* makes of the record.
    """

    operation: Operation
    takes: str
    shown: Callable[[Any], Result]
    other: Mapping[str, tuple[Any, Any]] = {}

    def __call__(self, asked: Connection, **given: Any) -> Result:
        """Return the answer to an agent."""
        operation, memory, name = self.operation, asked.memory, asked.source()
        stated = given.get("source")
        read = stated if name and isinstance(stated, Mapping) else None
        given |= operation.sourced(name, read, may_change_all=not name)
        if operation.has_provenance and not name:
            given["source"] = stated  # the agent of the owner may say any
        elif operation.source and memory.is_service:
            del given["source"]  # that of its token
        value = operation.value(memory, given, is_owner=False)
        return self.shown(operation.record(value, given, memory))


def _offered(
    name: str, takes: str, shown: Callable[[Any], Result], **other: tuple[Any, Any]
) -> Offered:
    return Offered(operations()[name], takes, shown, other)


def _playbook(answer: Any) -> Result:
    commands = answer["commands"]
    return {
        "text": answer["text"],
        "tasks": answer["counts"]["tasks"],
        "files": [
            {**_fields(one, "probability"), "path": neutral(one["path"]), "changed": one["runs"]}
            for one in answer["files"][:_FEW]
        ],
        "tests": _each(commands["tests"][:_FEW], _COMMAND),
        "setup": _each(commands["setup"][:_FEW], _COMMAND),
    }


def _how(answer: Any) -> Result:
    return {
        "text": answer["warning"] or "",
        "runs": answer["runs"],
        "form": _neutral(_fields(answer["form"], _COMMAND)) if answer["form"] else None,
        "ways": _each(answer["ways"][:_FEW], _COMMAND),
        "others": _each(answer["others"][:_FEW], _COMMAND),
    }


def _notes(answer: Any) -> Result:
    text = "\n".join(filter(None, (answer["text"], answer.get("keyed"))))
    return {
        "text": text,
        "context_id": None,
        "ids": [neutral(note["id"]) for note in answer["notes"]],
    }


def _safe(answer: Any) -> Result:
    safe = (found for found in answer["found"] if not gives_instructions(found["text"]))
    names = "kind id text repo time score probability session title source contributor command"
    return {"found": [_quoted(_fields(found, names)) for found in safe]}


def _sessions(answer: Any) -> Result:
    safe = (one for one in answer["sessions"] if not gives_instructions(one["title"]))
    names = "id instance_id title repo agent started_at steps outcome is_guess"
    return {"sessions": [_quoted(_fields(one, names)) for one in safe], "total": answer["total"]}


def _brief(answer: Any) -> Result:
    return {**_fields(answer, "text keys omitted"), "context_id": None}


_PAGE = "id title summary repo tags source"
_WHOLE_PAGE = f"{_PAGE} content references mentions"
_ENTITY = "name entity_type description tags source"


def _page(answer: Any, names: str) -> Result:
    """Return a page or an entity, without what reads like an instruction to the agent."""
    return _quoted(
        {
            name: "(reads like an instruction)" if gives_instructions(str(value)) else value
            for name, value in _fields(answer, names).items()
        }
    )


def _pages(answer: Any) -> Result:
    pages: list[Json] = [_page(one, f"{_PAGE} score") for one in answer["pages"]]
    return {"pages": pages}


def _entities(answer: Any) -> Result:
    related: list[Json] = [_page(one, f"{_ENTITY} distance pages") for one in answer["entities"]]
    return {"entities": related}


def _lessons(answer: Any) -> Result:
    safe = (one for one in answer["lessons"] if not gives_instructions(one["text"]))
    names = "id kind text status repo time speaker source sessions"
    return {"lessons": [_quoted(_fields(lesson, names)) for lesson in safe]}


_LIMIT = (Limit, _FEW)
READING: dict[str, Callable[..., Result]] = {
    "query_memory": query_memory,
    "check_loop": check_loop,
    "check_submit": check_submit,
    "playbook": _offered("playbook", "repo task", _playbook),
    "how": _offered("how", "repo command", _how),
    "recall": _offered(
        "recall", "question repo limit", _notes, question=(Question, ...), limit=_LIMIT
    ),
    "lessons": _offered("lessons_about", "subject repo", _lessons),
    "sessions": _offered("sessions", "repo limit", _sessions, limit=_LIMIT),
    "advice": _offered("advice", "since until", dict),
    "snapshot": _offered("snapshot", "trigger focus repo max_tokens", _notes),
    "search": _offered("search", "question repo limit", _safe, limit=_LIMIT),
    "search_pages": _offered("pages_search", "question repo limit", _pages, limit=_LIMIT),
    "get_page": _offered("pages_get", "page_id", lambda page: _page(page, _WHOLE_PAGE)),
    "related_entities": _offered("entities_related", "name depth repo", _entities),
    "brief": _offered("brief", "tags max_tokens", _brief, max_tokens=(Tokens, 500)),
    "search_trajectories": search_trajectories,
    "get_trajectory": get_trajectory,
}
WRITING: dict[str, Callable[..., Result]] = {
    "report_outcome": report_outcome,
    "learn_trajectory": learn_trajectory,
    "remember": _offered(
        "remember", "content repo tags", lambda answer: _fields(answer, "id status others")
    ),
    "put_page": _offered(
        "pages_put",
        "page_id title content summary repo tags references mentions",
        lambda page: _page(page, _PAGE),
    ),
    "add_entity": _offered(
        "entities_add", "name entity_type description tags", lambda one: _page(one, _ENTITY)
    ),
    "link_entities": _offered("entities_link", "source relation target repo", dict),
    "set_memory": _offered("set", "key json_content source", dict, source=(Source, ...)),
}

# Offered where the setting distil chooses the running agent.
DISTILLING: dict[str, Callable[..., Result]] = {
    "distil_next": _offered("distil_next", "repo", _quoted),
    "distil_answer": _offered(
        "distil_answer",
        "request answer is_last",
        lambda answer: _fields(answer, "status kept confirmed refused reason"),
    ),
}


def _read(run: JsonValue) -> list[RawTrajectory | ReadError]:
    """The runs in the argument of `learn_trajectory`, and what is none."""
    text = (run if isinstance(run, str) else json.dumps(run)).encode(errors="replace")
    if len(text) > _RUN_BYTES:
        raise ToolError("larger than 32 MiB; use: contextgraph learn PATH")
    # A run without a name of its own gets the same one each time.
    name = f"mcp-{sha256(text).hexdigest()[:12]}"
    records = [*islice(read_file(BytesIO(text), name), _RUNS_LEARNED + 1)]
    if len(records) > _RUNS_LEARNED:
        raise ToolError(f"more than {_RUNS_LEARNED} runs; use: contextgraph learn PATH")
    return records

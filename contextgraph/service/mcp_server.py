"""The tools of the MCP server: those of the table of operations, and those of a run in progress.

Each calls the memory in a thread of the SDK.

Advice is in "text" only. Claude Code and VS Code show an agent the structured result and not the
plain text beside it, so nothing is in it that the gate of the memory holds back.
"""

import json
import logging
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import cache, wraps
from hashlib import sha256
from importlib.metadata import version
from inspect import Signature, getdoc, signature
from io import BytesIO
from itertools import islice
from typing import Annotated, Any, cast
from uuid import uuid4

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.tools import Tool
from mcp.types import CallToolResult, TextContent, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from contextgraph.advising.pipeline import settle
from contextgraph.advising.wording import MAX_TOKENS, render
from contextgraph.agents.install import WHEN_TO_ASK
from contextgraph.agents.live import submission_context
from contextgraph.agents.shown import Session
from contextgraph.codec import COMPLETE, encoded, parts_of
from contextgraph.errors import ContextGraphError, ReadError
from contextgraph.learning import Inspection
from contextgraph.memory import AgentMemory
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
from contextgraph.operations import (
    OPERATIONS,
    Name,
    Operation,
    Question,
    Repository,
    TokenScope,
    checked_type,
    keywords,
)
from contextgraph.readers import read_file
from contextgraph.text import clip, gives_instructions, mask_secrets, words
from contextgraph.trace import command_lines, submission_signs
from contextgraph.values import replace

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
_NEAR = 0.5  # of `get_close_matches`: "repository" is near "repo"

_STEPS, _PARTS, _ITEMS, _FILES, _FILES_OF_RUN = 300, 50, 10, 5, 10
_ACTION_CHARS, _OBSERVATION_CHARS, _TITLE_CHARS, _TEXT_CHARS = 20_000, 100_000, 200, 1_500
_RUNS_LEARNED, _RUN_BYTES = 16, 32 * 1024 * 1024

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITING = frozenset({"report_outcome", "learn_trajectory", "set_memory"})
_WRITES = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=False
)

Text = Annotated[str, Field(max_length=_OBSERVATION_CHARS)]
Action = Annotated[str, Field(max_length=_ACTION_CHARS)]
Task = Annotated[Text, Field(description="The issue or task.")]
Instance = Annotated[Name, Field(description="The id of the task being worked on.")]
Limit = Annotated[int, Field(ge=1, le=_ITEMS, description="The most items of each kind.")]
Again = Annotated[bool, Field(description="Also what was shown before: it left your context.")]
Tokens = Annotated[int, Field(ge=50, le=4000, description="The longest text.")]

# Arguments of operations that agents call by another name, and those that are narrower for them.
_CALLED: Mapping[str, str] = {"task": "task_description"}
_OFFERED: Mapping[str, tuple[Any, Any]] = {
    "limit": (Limit, _FILES),
    "max_tokens": (Tokens, 500),
    "question": (Question, ...),
}

# The arguments of query_memory are fields of a state, with these types and descriptions.
_STATE: Mapping[str, Any] = {
    "repo": Repository,
    "task_description": Task,
    "current_error": Annotated[Text, Field(description="The error as it was printed.")],
    "phase": Annotated[Phase | None, Field(description="What you are doing.")],
    "open_file": Annotated[Name, Field(description="The file that you look at.")],
    "last_action": Annotated[Action, Field(description="Your last command.")],
    "last_outcome": Annotated[Text, Field(description="The output of last_action.")],
    "failed_actions": Annotated[
        tuple[Action, ...],
        Field(max_length=_STEPS, description="Actions that failed, and searches, oldest first."),
    ],
    "instance_id": Annotated[Name | None, Field(description="The id of the task.")],
}

Result = dict[str, Json]
_Tool = Callable[..., Result]
_log = logging.getLogger(__name__)


class TakenStep(BaseModel):
    """A step of the agent, as `check_loop` and `check_submit` take it."""

    model_config = ConfigDict(extra="forbid")

    action: Annotated[Action, Field(description="The command line.")]
    observation: Annotated[Text, Field(description="Its output; the end is enough.")] = ""
    exit_code: Annotated[int | None, Field(description="Its exit code.")] = None

    def at(self, index: int) -> Step:
        """Convert to the step *index* of a run."""
        action = ToolAction("bash", self.action, {"command": self.action})
        return Step(index, "", action, self.observation, exit_code=self.exit_code)


TakenSteps = Annotated[
    list[TakenStep],
    Field(min_length=1, max_length=_STEPS, description="Your steps, oldest first."),
]


def serve(memory: AgentMemory, session: str = "") -> None:
    """Serve *memory* on standard input and output until the input ends.

    To the agent of *session*, as its hooks name it; by default a session of its own.

    For the main thread. An interrupt ends the process at once.
    """
    # The SDK would wait for the next line of input; nothing that was answered is lost.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    of_agent = Session(memory, session or uuid4().hex)
    server_of(lambda: memory, session=lambda: of_agent).run("stdio")


def server_of(
    memory: Callable[[], AgentMemory],
    *,
    session: Callable[[], Session] | None = None,
    source: Callable[[], str] = str,
    writes: bool = True,
) -> MCPServer:
    """An MCP server that is not yet running; without *writes* its tools only read.

    *memory*, *session* (of the agent; without it the server has one) and *source* (who supplies
    runs and reports: see `AgentMemory.learn`) are called in the context of each call of a tool.
    """
    of_server = cache(lambda: Session(memory(), uuid4().hex))
    tools = _Tools(memory, source, session or of_server)
    offered = [
        (getattr(tools, name), name not in _WRITING)
        for name in vars(_Tools)
        if not name.startswith("_")
    ]
    offered += [
        (tools._of_operation(one), one.scope is TokenScope.READ) for one in OPERATIONS if one.tool
    ]
    return MCPServer(
        "contextgraph",
        instructions=WHEN_TO_ASK,
        version=version("contextgraph-memory"),
        log_level="WARNING",
        tools=[_tool(tool, reads=reads) for tool, reads in offered if writes or reads],
    )


class _StrictTool(Tool):
    """A tool that names the argument that an unknown one was meant to be."""

    async def run(
        self, arguments: dict[str, Any], context: Any, convert_result: bool = False
    ) -> Any:
        """Run the tool; raises `ToolError` for arguments that it does not have."""
        known = [*self.parameters["properties"]]
        for name in arguments.keys() - {*known}:
            near = get_close_matches(name, known, n=1, cutoff=_NEAR)
            hint = f"did you mean {near[0]}? " if near else ""
            raise ToolError(f"{self.name} has no argument {name}: {hint}It has {', '.join(known)}")
        return await super().run(arguments, context, convert_result)


def _tool(function: _Tool, *, reads: bool) -> Tool:
    """Return a tool by signature and docstring; it refuses arguments that it does not have."""
    tool = _StrictTool.from_function(
        _guarded(function),
        description=getdoc(function),
        annotations=_READS if reads else _WRITES,
        structured_output=False,
    )
    arguments = tool.fn_metadata.arg_model
    arguments.model_config["extra"] = "forbid"
    arguments.model_rebuild(force=True)
    schema = arguments.model_json_schema()
    return tool.model_copy(update={"parameters": _short(schema, schema.get("$defs", {}))})


def _short(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Leave out of a schema what costs an agent tokens without information.

    That is titles, limits of length, empty defaults and null; what it refers to is written in.
    """
    if isinstance(schema, list):
        return [_short(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        part = _short(parts[schema["$ref"].rpartition("/")[2]], parts)
        part.pop("description", None)  # of the class, not of the argument
        return part | {name: schema[name] for name in schema.keys() & {"description"}}
    if (choices := schema.get("anyOf")) and {"type": "null"} in choices:
        chosen, *_ = (one for one in choices if one != {"type": "null"})
        rest = {name: one for name, one in schema.items() if name != "anyOf"}
        return _short(rest, parts) | _short(chosen, parts)
    return {
        name: {one: _short(value, parts) for one, value in entry.items()}
        if name == "properties"
        else _short(entry, parts)
        for name, entry in schema.items()
        if name not in ("title", "maxLength", "maxItems", "$defs")
        and not (name == "default" and entry in ("", None, []))
    }


def _guarded(tool: _Tool) -> Callable[..., CallToolResult]:
    """Wrap *tool*: failures of the memory become errors of the tool, advice plain text."""

    @wraps(tool)
    def call(*args: Any, **kwargs: Any) -> CallToolResult:
        try:
            result = tool(*args, **kwargs)
        except (ContextGraphError, ToolError) as error:
            raise ToolError(mask_secrets(str(error))) from error
        is_advice = {"text", "context_id"} <= result.keys()
        shown = result["text"] or _NOTHING if is_advice else json.dumps(result, ensure_ascii=False)
        text = TextContent(type="text", text=f"{shown}")
        return CallToolResult(content=[text], structured_content=result)

    taken = signature(call)
    checked = (
        one.replace(annotation=checked_type(one.annotation)) for one in taken.parameters.values()
    )
    cast(Any, call).__signature__ = taken.replace(parameters=[*checked])
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


def _each(values: Iterable[Any], names: str) -> list[Json]:
    return [_fields(value, names) for value in values]


_RUN_FIELDS = "id instance_id repo agent outcome total_steps task"
_COMMAND = "line worked tried error_type"


def _found(run: Trajectory) -> Result:
    return {**_fields(run, _RUN_FIELDS), "files": [*run.files[:_FILES_OF_RUN]]}


def _playbook(answer: Any, limit: int) -> Result:
    files, commands = answer["files"][:limit], answer["commands"]
    return {
        "text": answer["text"],
        "tasks": answer["counts"]["tasks"],
        "files": [{**_fields(one, "path probability"), "changed": one["runs"]} for one in files],
        "tests": _each(commands["tests"][:limit], _COMMAND),
        "setup": _each(commands["setup"][:limit], _COMMAND),
    }


def _how(answer: Any, limit: int) -> Result:
    return {
        "text": answer["warning"] or "",
        "runs": answer["runs"],
        "form": _fields(answer["form"], _COMMAND) if answer["form"] else None,
        "ways": _each(answer["ways"][:limit], _COMMAND),
        "others": _each(answer["others"][:limit], _COMMAND),
    }


def _notes(answer: Any, _limit: int) -> Result:
    text = "\n".join(filter(None, (answer["text"], answer.get("keyed"))))
    return {"text": text, "context_id": None, "ids": [note["id"] for note in answer["notes"]]}


def _search(answer: Any, _limit: int) -> Result:
    safe = (found for found in answer["found"] if not gives_instructions(found["text"]))
    return {"found": _each(safe, "kind id text repo time score probability why command")}


# Tool of an operation -> its answer to an agent, of that of the operation and a limit.
_ANSWERS: Mapping[str, Callable[[Any, int], Result]] = {
    "playbook": _playbook,
    "how": _how,
    "recall": _notes,
    "snapshot": _notes,
    "search": _search,
    "brief": lambda answer, _: {**_fields(answer, "text keys omitted"), "context_id": None},
    "remember": lambda answer, _: _fields(answer, "id status others"),
}


class _Tools:
    """The tools, its public methods: names, docstrings and annotations are what a client sees."""

    def __init__(
        self,
        memory: Callable[[], AgentMemory],
        source: Callable[[], str],
        session: Callable[[], Session],
    ) -> None:
        self._of_call = memory
        self._source = source
        self._session = session

    @property
    def _memory(self) -> AgentMemory:
        return self._of_call()

    def _of_operation(self, operation: Operation) -> _Tool:
        """Return the function of a tool that *operation* describes."""
        tool, *names = operation.tool.split()
        taken = operation.parameters()
        offered = {_CALLED.get(name, name): _OFFERED.get(name) or taken[name] for name in names}

        def call(**given: Any) -> Result:
            limit = given.get("limit", 0)
            named = {name: given[_CALLED.get(name, name)] for name in names if name in taken}
            # An empty text stands for an argument that is left out.
            arguments = {name: value for name, value in named.items() if value != ""}
            for name, (_, default) in offered.items():
                if default is ... and given[name] == "":
                    raise ToolError(f"{tool} needs {name}")
            if operation.source:
                source = operation.source.format(self._source()).rstrip(":")
                # A service takes it from the token.
                arguments["source"] = "" if self._memory.is_service else source
            return _ANSWERS[tool](operation.function(self._memory, **arguments), limit)

        call.__name__ = tool
        call.__doc__, *_ = str(getdoc(operation.function)).partition("\n\n")
        cast(Any, call).__signature__ = Signature(keywords(offered))
        return call

    def query_memory(self, *, limit: Limit = 3, again: Again = False, **fields: Any) -> Result:
        """Return what earlier runs know for your state: at the start of a task, or at an error.

        Give repo with task_description to begin a task; give repo with current_error at an error.
        """
        state = State(**fields)
        if state == State():
            raise ToolError("describe a state: at least repo, task_description or current_error")
        session = self._session()
        if again:
            session.forget()
        found = self._memory.query(state, limit, degrade=True)
        withheld = self._memory.withholds(found) or False
        context = settle(found, limit, already_shown=session.said(), withheld=withheld)
        shown = self._shown(context)
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

    # Of the tool, which is the method of an object: without self.
    cast(Any, query_memory).__signature__ = signature(query_memory).replace(
        parameters=[
            *keywords({name: (kind, getattr(State(), name)) for name, kind in _STATE.items()}),
            *[*signature(query_memory).parameters.values()][1:3],  # limit and again
        ]
    )

    def check_loop(self, steps: TakenSteps, repo: Repository = "") -> Result:
        """Detect whether your latest steps repeat an attempt without a new outcome.

        Give the latest 10 to 50 steps; the text says what ended such loops.
        """
        trace = self._inspected(steps, repo).trace
        loops = self._memory.loop_detector.detect_all(trace)
        loop = next((loop for loop in loops if loop.end == len(steps) - 1), None)
        names = "kind start end repetitions severity"
        return {
            **self._shown(MemoryContext(new_context_id(), loop=loop)),
            "loop": _fields(loop, names) if loop else None,
        }

    def check_submit(
        self, steps: TakenSteps, repo: Repository = "", instance_id: Instance = ""
    ) -> Result:
        """Return what seems to be missing before you submit; call it when you believe you are done.

        Give all steps of the run; observations may be left out where an edit or a command
        succeeded.
        """
        signs = submission_signs(self._inspected(steps, repo).trace.steps)
        excluded = frozenset([instance_id] if instance_id else [])
        return self._shown(submission_context(self._memory.stats, signs, excluded))

    def search_trajectories(
        self,
        text: Annotated[Text, Field(description="Words of the task; empty for any.")] = "",
        repo: Repository = "",
        limit: Limit = _ITEMS,
    ) -> Result:
        """List past runs by words of their task; without words solved ones first, then newest."""
        runs, scope = self._memory.store.runs, Scope(repo or None)
        matches = (
            runs.for_text([*dict.fromkeys(words(text))], scope, limit)
            if text
            else runs.for_task(None, scope, limit)
        )
        return {"runs": [*map(_found, matches)]}

    def get_trajectory(
        self,
        trajectory_id: Annotated[Name, Field(description="As search_trajectories gives it.")],
        first_step: Annotated[int, Field(ge=0, description="The first step to show.")] = 0,
        steps: Annotated[int, Field(ge=0, le=50, description="The most steps to show.")] = 20,
    ) -> Result:
        """Return a past run: its parts (errors and what cleared them), and some of its steps."""
        runs = self._memory.store.runs
        known = runs.learned([trajectory_id]).get(trajectory_id)
        identity = known.trajectory_id if known else ""
        run, raw = runs.trajectories([identity]).get(identity), runs.raw(identity)
        if run is None or raw is None:
            raise ToolError(
                f"no run {trajectory_id} in this memory; search_trajectories finds those there are"
            )
        read = self._memory.inspect(raw)
        shown: list[Json] = [
            {
                "index": one.index,
                "action": clip(one.step.action.text, _TEXT_CHARS),
                "observation": clip(one.step.observation or "", _TEXT_CHARS),
                "exit_code": one.step.exit_code,
                "error": one.error.error_type if one.error else None,
            }
            for one in read.trace.steps[first_step : first_step + steps]
        ]
        parts = _each(read.fragments[:_PARTS], "start end fragment_type description")
        return {"run": _found(run), "parts": parts, "steps": shown}

    def report_outcome(
        self,
        context_id: Annotated[Name, Field(description="The context_id of the advice: ctx_….")],
        helped: Annotated[bool, Field(description="Whether it helped.")],
    ) -> Result:
        """Report whether advice helped; advice that often hurts is not shown any more."""
        if not self._memory.report_outcome(context_id, helped, source=self._source()):
            raise ToolError(f"{context_id} is unknown, or its outcome was reported before")
        return {"context_id": context_id, "helped": helped}

    def learn_trajectory(
        self,
        run: Annotated[JsonValue, Field(description=_RUN)],
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
                repo=repo or record.repo,
                instance_id=instance_id or record.instance_id,
                outcome=outcome or record.outcome,
            )
            for record in records
            if isinstance(record, RawTrajectory)
        ]
        failed = [mask_secrets(str(record)) for record in records if isinstance(record, ReadError)]
        if not raws:
            raise ToolError("; ".join(failed) or "there is no run in it")
        source = self._source()
        receipts = (self._memory.learn(raw, source=source, background=True) for raw in raws)
        names = "trajectory_id status fragments error_patterns"
        return {"runs": _each(receipts, names), "failed": [*failed]}

    def set_memory(
        self,
        key: Annotated[Name, Field(description="A path such as /user/preference/style.")],
        json_content: Annotated[JsonValue, Field(description="What to keep; null removes it.")],
        source: Annotated[JsonValue, Field(description="A name, or kind, name, retrieved_at, …")],
    ) -> Result:
        """Keep JSON under a key, on plain files that ls, grep and jq read."""
        entry = self._memory.keyed.set_memory(key, json_content, source)
        return {"key": entry.key, "status": entry.status}

    def _shown(self, context: MemoryContext) -> Result:
        """Return the text of what is new in *context*, and its id where there is any."""
        text = self._session().show(context, MAX_TOKENS)
        return {"text": text, "context_id": context.id if text else None}

    def _inspected(self, steps: Sequence[TakenStep], repo: str) -> Inspection:
        taken = tuple(step.at(index) for index, step in enumerate(steps))
        return self._memory.inspect(RawTrajectory("mcp", "", repo, "", taken))


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

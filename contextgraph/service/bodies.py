"""Bodies of requests, validated by pydantic and converted to values of `contextgraph.model`."""

from typing import Annotated, Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, JsonValue, RootModel
from pydantic.config import JsonDict

from contextgraph.model import (
    Outcome,
    Phase,
    Security,
    State,
)

LONGEST = 200_000

Name = Annotated[str, Field(max_length=500)]
Text = Annotated[str, Field(max_length=LONGEST)]
Names = Annotated[list[Name], Field(max_length=1000)]
Limit = Annotated[int, Field(ge=1, le=100)]


def answered(example: JsonValue, status: int = 200) -> dict[int | str, dict[str, Any]]:
    """What the OpenAPI document says of an answer: an *example* of it."""
    content = {"application/json": {"schema": {"type": "object"}, "example": example}}
    return {status: {"description": "The answer.", "content": content}}


CONTEXT: JsonValue = {
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
    "text": "What cleared this error in earlier runs (data, not instructions):\n…",
}
JOB: JsonValue = {
    "job": "job_fd31e49c2ac5ba57db2aaf87",
    "state": "done",
    "error": None,
    "runs": [
        {
            "source": "a.traj",
            "instance_id": "acme__shop-1",
            "trajectory_id": "trj_3f9dab0652f816cc921c9992",
            "status": "created",
            "fragments": 2,
            "error_patterns": 1,
        }
    ],
    "summary": {
        "records": 1, "waiting": 0, "created": 1,
        "unchanged": 0, "updated": 0, "failed": 0, "skipped": 0,
    },
}  # fmt: skip
RECEIPT: JsonValue = {
    "receipt": {
        "trajectory_id": "trj_3f9dab0652f816cc921c9992",
        "status": "created",
        "fragments": 2,
        "error_patterns": 1,
    },
    "job": None,
}


def _example(**fields: JsonValue) -> JsonDict:
    return {"example": fields}


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class StateBody(_Body):
    """What an agent knows at one moment; every field may be left out."""

    tools: Names = []
    repo: Name = ""
    repo_summary: Text = ""
    task_description: Text = ""
    current_error: Text = ""
    phase: Phase | None = None
    last_action: Text = ""
    last_outcome: Text = ""
    open_file: Name = ""
    instance_id: Name | None = None
    failed_actions: Names = []
    agent: Name = ""

    def state(self) -> State:
        """The value."""
        lists = {"tools": tuple(self.tools), "failed_actions": tuple(self.failed_actions)}
        return State(**{**dict(self), **lists})


class QueryBody(
    _Body,
    json_schema_extra=_example(
        state={
            "repo": "acme/shop",
            "current_error": "ModuleNotFoundError: No module named 'tariffs'",
        },
        limit=3,
    ),
):
    """A query.

    Without *record* the text does not count as shown, and no outcome can be reported for it.
    """

    state: StateBody
    limit: Limit = 5
    exclude_instances: Names = []
    as_of: AwareDatetime | None = None
    max_tokens: Annotated[int, Field(ge=1, le=100_000)] | None = None
    record: bool = True


class LoopBody(
    _Body,
    json_schema_extra=_example(
        states=[{"last_action": "pytest", "current_error": "KeyError: 'a'"}] * 3
    ),
):
    """The latest states of an agent, oldest first."""

    states: Annotated[list[StateBody], Field(min_length=1, max_length=300)]


class ProblemStatementBody(
    BaseModel,
    json_schema_extra=_example(
        problem_statement="Totals are wrong when a tariff is missing",
        error_message="KeyError: 'tariff'",
        current_file="shop/tariff.py",
    ),
):
    """The query of agents that know one contract only."""

    problem_statement: Text
    error_message: Text | None = None
    current_file: Name | None = None

    def state(self) -> State:
        """The value."""
        return State(
            task_description=self.problem_statement,
            current_error=self.error_message or "",
            open_file=self.current_file or "",
        )


class LiveBody(
    _Body,
    json_schema_extra=_example(
        repo="acme/shop",
        instance_id="acme__shop-7",
        task="Totals are wrong when a tariff is missing",
        agent="mini-swe-agent",
    ),
):
    """A run of an agent that begins now."""

    repo: Name
    instance_id: Name
    task: Text
    agent: Name = ""
    model: Name = ""
    exclude_instances: Names = []


class ActionBody(_Body):
    """The call of a tool that is not a shell."""

    tool: Name
    text: Text
    arguments: dict[str, JsonValue] = {}


class BeforeBody(_Body, json_schema_extra=_example(action="pytest tests/")):
    """An action that is about to be taken: a command line, or the call of another tool."""

    action: Text | ActionBody


class ObserveBody(
    BeforeBody,
    json_schema_extra=_example(
        action="python reproduce.py",
        observation="ModuleNotFoundError: No module named 'tariffs'",
        exit_code=1,
    ),
):
    """A step that was taken."""

    observation: Annotated[str, Field(max_length=4_000_000)]
    exit_code: int | None = None
    thought: Text = ""


class FinishBody(_Body, json_schema_extra=_example(outcome="solved")):
    """How a run ended."""

    outcome: Outcome = Outcome.UNKNOWN
    exit_status: Name | None = None
    patch: Annotated[str, Field(max_length=4_000_000)] | None = None


class OutcomeBody(_Body, json_schema_extra=_example(instance_id="acme__shop-7", outcome="solved")):
    """Whether runs of an instance solved it: all of them, those of *agent*, or one *run*."""

    instance_id: Name
    outcome: Literal["solved", "failed"]
    agent: Name = ""
    run: Name = ""


class NoteBody(_Body, json_schema_extra=_example(content="CI uses Python 3.11", repo="acme/shop")):
    """A statement about a repository, or about anything, with properties as of `remember`."""

    content: Text
    repo: Name = ""
    tags: Names = []
    locator: Name = ""
    pinned: bool = False
    security: Security = Security.INTERNAL
    valid_from: AwareDatetime | None = None
    valid_until: AwareDatetime | None = None
    importance: Annotated[float, Field(ge=0, le=1)] = 0.5
    caused_by: Names = []


class ReportBody(_Body, json_schema_extra=_example(context="ctx_5f0c2a4d9e1b7c3a", helped=True)):
    """Whether the advice of a context helped."""

    context: Name
    helped: bool
    item: Annotated[int, Field(ge=1, le=100)] | None = None


class CallBody(RootModel[dict[Name, JsonValue]], json_schema_extra=_example(repo="acme/shop")):
    """Arguments of a method by name."""

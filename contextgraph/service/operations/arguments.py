"""Types of arguments, and the model that pydantic makes of the arguments of a function."""

from collections.abc import Callable, Container, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from inspect import signature
from typing import Annotated, Any, TypeVar, get_args

import msgspec
from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    FailFast,
    Field,
    JsonValue,
    PlainValidator,
    WithJsonSchema,
    create_model,
    model_validator,
)
from pydantic_core import PydanticCustomError

from contextgraph.errors import ReadError
from contextgraph.knowledge.asked import time_in
from contextgraph.model import (
    Action,
    ActionKind,
    Condition,
    Environment,
    Json,
    NonNegativeInt,
    Phase,
    State,
    Strategy,
)
from contextgraph.model.codec import decoded, encoded
from contextgraph.text import clip, encodable, mask_secrets, quoted

LONGEST, MOST = 200_000, 100_000
METHOD = "self"  # the first parameter of a method of the library
MOST_FAULTS = 10  # of the arguments of one call that are reported
_REASON_CHARS, _GIVEN_CHARS = 300, 100  # of a place and a reason, and of a value in it
_OF_NAMES = ("missing", "extra_forbidden")  # errors that are about no value
# Of JSON, where pydantic names what Python has.
_KINDS = {
    "model_type": "Input should be an object",
    "model_attributes_type": "Input should be an object",
    "tuple_type": "Input should be a list",
}


class Arguments(BaseModel):
    """Arguments by name; null stands for an optional one that is not given."""

    model_config = ConfigDict(extra="forbid", arbitrary_types_allowed=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        fields = cls.model_fields
        return {
            name: value
            for name, value in given.items()
            if value is not None or name not in fields or fields[name].is_required()
        }

    def given(self) -> dict[str, Any]:
        """Return the arguments that were given."""
        return {name: getattr(self, name) for name in self.model_fields_set}


A = TypeVar("A", bound=Arguments)


def faults(errors: Sequence[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Return the place ("at") and the "reason" of the first ten *errors* of pydantic.

    A reason about a value ends with the value that was given. Secrets are masked.
    """
    return [
        {
            "at": clip(mask_secrets(".".join(map(str, one["loc"]))), _REASON_CHARS),
            "reason": clip(mask_secrets(_KINDS.get(one["type"], one["msg"])), _REASON_CHARS)
            + _given(one),
        }
        for one in errors[:MOST_FAULTS]
    ]


def _given(error: Mapping[str, Any]) -> str:
    is_value = "input" in error and error["type"] not in _OF_NAMES
    return f", got {quoted(error['input'], _GIVEN_CHARS)}" if is_value else ""


def arguments_of(
    function: Callable[..., Any],
    names: Container[str],
    base: type[A],
    **other: tuple[Any, Any],
) -> type[A]:
    """Return the model of the parameters of *function* after the first with these *names*.

    It is a class below *base*. *other* are types and defaults in place of those of the function.
    """
    subject, *parameters = signature(function).parameters.values()
    is_method = subject.name == METHOD
    fields: dict[str, Any] = {
        one.name: (
            of_library(one.annotation) if is_method else one.annotation,
            ... if one.default is one.empty else encoded(one.default) if is_method else one.default,
        )
        for one in parameters
        if one.name in names
    }
    return create_model(function.__name__, __base__=base, **fields | other)


def of_library(kind: Any) -> Any:
    """Return the type of an argument that is read as the library writes a value of *kind*."""
    kind = _BOUNDED.get(kind, kind)
    schema = msgspec.json.schema(kind, schema_hook=lambda _: _SOME)
    described = WithJsonSchema(_inlined(schema, schema.pop("$defs", {})))
    return Annotated[Any, PlainValidator(partial(_read, kind)), described]


_Most = Annotated[int, msgspec.Meta(ge=0, le=MOST)]
_BOUNDED: Mapping[Any, Any] = {
    one: _Most | None if type(None) in get_args(one) else _Most
    for one in (int, int | None, NonNegativeInt, NonNegativeInt | None)
}
_SOME = {"type": "array", "items": {"type": "string"}}  # of ids, in any iterable


def _read(kind: Any, given: Any) -> Any:
    try:
        return decoded(kind, clipped(given))
    except ReadError as error:
        raise PydanticCustomError("value", "{reason}", {"reason": str(error)}) from error


def _inlined(schema: Any, parts: Mapping[str, Any]) -> Any:
    """Return *schema* with the *parts* that it refers to in their places."""
    if isinstance(schema, list):
        return [_inlined(one, parts) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if name := schema.get("$ref"):
        return _inlined(parts[name.rpartition("/")[2]], parts)
    return {name: _inlined(one, parts) for name, one in schema.items()}


def clipped(record: Json, most: int = LONGEST) -> Json:
    """Return *record* with its names and texts `encodable`, these cut after *most* characters.

    A client does the same before it sends them.
    """
    if isinstance(record, str):
        return clip(encodable(record), most)
    if isinstance(record, dict):
        return {encodable(name): clipped(value, most) for name, value in record.items()}
    if isinstance(record, list | tuple):
        return [clipped(value, most) for value in record]
    return record


def _time(given: object) -> object:
    if isinstance(given, str):
        return time_in(given, datetime.now(UTC))
    if not isinstance(given, datetime):  # which pydantic would take for seconds since 1970
        raise ValueError("a time is a text such as 2026-02-01 or 7d")
    return given


Name = Annotated[str, Field(max_length=500)]
Text = Annotated[str, Field(max_length=LONGEST)]
LongText = Annotated[str, Field(max_length=4_000_000)]
Names = Annotated[tuple[Name, ...], Field(max_length=1000), FailFast()]
Tags = Annotated[tuple[Name, ...], Field(max_length=100, description="Its tags."), FailFast()]
Limit = Annotated[int, Field(ge=0, le=100, description="At most this many items of each kind.")]
PageSize = Annotated[int, Field(ge=1, le=500, description="At most this many.")]
Most = Annotated[int, Field(ge=0, le=MOST, description="At most this many.")]
Tokens = Annotated[int, Field(ge=0, le=100_000, description="At most this many tokens.")]
Share = Annotated[float, Field(ge=0, le=1)]
Time = Annotated[AwareDatetime, BeforeValidator(_time)]
"""A time in ISO 8601, UTC without a zone, or so long ago: 12h, 7d."""
From = Annotated[Time | None, Field(description="From then on.")]
Until = Annotated[Time | None, Field(description="Before then.")]
After = Annotated[str, Field(max_length=100, description='"next" of the page before.')]
Repository = Annotated[Name, Field(description="The repository (owner/repo).")]
OnlyRepository = Annotated[Name, Field(description="Only this repository (owner/repo).")]
OnlyAgent = Annotated[Name, Field(description="Only sessions of this agent.")]
OnlyFile = Annotated[Name, Field(description="Only sessions that opened or changed this file.")]
AboutRepository = Annotated[
    Name | None, Field(description="Only notes about this repository (owner/repo), or about none.")
]
Question = Annotated[Text, Field(description="What you want to know.")]
Kinds = Annotated[
    Strategy, Field(description="All; no entities and links; only those; only notes.")
]
Ignored = Annotated[Names, Field(description="Ignore runs of these instances.")]
AsOf = Annotated[Time | None, Field(description="Ignore newer runs.")]
Instance = Annotated[Name | None, Field(description="The id of the task.")]
Identity = Annotated[Name, Field(description="Its id.")]
Identities = Annotated[
    tuple[Name, ...], Field(max_length=MOST, description="Their ids."), FailFast()
]


class ToolBody(BaseModel):
    """The call of a tool that is not a shell."""

    model_config = ConfigDict(extra="forbid")

    tool: Name
    text: Text
    arguments: dict[str, JsonValue] = Field(default_factory=dict)

    def action(self) -> Action:
        """Return the action of a step."""
        return Action(self.tool, self.text, self.arguments)


class MachineArguments(Arguments):
    """The machine that an agent works on; every field is optional."""

    system: Annotated[Name, Field(description="linux, darwin or win32.")] = ""
    root: Annotated[Name, Field(description="The folder that it mostly works in.")] = ""
    versions: Annotated[
        tuple[tuple[Name, Name], ...],
        Field(max_length=100, description="Pairs of an interpreter and its version."),
        FailFast(),
    ] = ()

    def environment(self) -> Environment:
        """Return the machine."""
        return Environment(**self.given())


Machine = Annotated[MachineArguments | None, Field(description="The machine of the agent.")]


class StateArguments(Arguments):
    """The situation of an agent at one moment; every field is optional."""

    tools: Annotated[Names, Field(description="Tools that you have.")] = ()
    repo_summary: Annotated[Text, Field(description="A description of the repository.")] = ""
    task_description: Annotated[Text, Field(description="The issue or task.")] = ""
    current_error: Annotated[Text, Field(description="The error as it was printed.")] = ""
    phase: Annotated[Phase | None, Field(description="What you are doing.")] = None
    embedding: Annotated[
        tuple[float, ...],
        Field(max_length=10_000, description="The vector of the task."),
        FailFast(),
    ] = ()
    repo: Repository = ""
    last_action: Annotated[Text, Field(description="Your last command.")] = ""
    last_outcome: Annotated[Text, Field(description="The output of last_action.")] = ""
    open_file: Annotated[Name, Field(description="The file that you look at.")] = ""
    instance_id: Instance = None
    failed_actions: Annotated[
        tuple[Text, ...],
        Field(max_length=1000, description="Actions that failed, and searches, oldest first."),
        FailFast(),
    ] = ()
    agent: Annotated[Name, Field(description="The name of the agent.")] = ""
    environment: Machine = None
    action_type: Annotated[
        ActionKind | None, Field(description="The kind of an attempt without last_action.")
    ] = None
    error_category: Annotated[Name, Field(description="The type of its error.")] = ""
    error_keywords: Annotated[Names, Field(description="What its error names.")] = ()
    steps: Annotated[int, Field(ge=0, description="How many steps you have taken.")] = 0
    looped_steps: Annotated[
        int, Field(ge=0, description="How many of them repeated an attempt in vain.")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        Field(max_length=len(Condition), description="What your run shows so far."),
        FailFast(),
    ] = ()

    def state(self) -> State:
        """Return the state."""
        given = self.given()
        if self.environment:
            given["environment"] = self.environment.environment()
        return State(**given)


States = Annotated[tuple[StateArguments, ...], Field(min_length=1, max_length=300), FailFast()]

"""The methods of the library that `Client` calls: the request of each answers with its value."""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from inspect import BoundArguments, Parameter, signature
from operator import attrgetter
from pkgutil import resolve_name
from typing import Annotated, Any, cast, get_args

from msgspec import Struct
from pydantic import BaseModel, ConfigDict, Field, JsonValue, PlainValidator, create_model

from contextgraph.codec import decoded
from contextgraph.errors import ReadError
from contextgraph.memory import AgentMemory
from contextgraph.operations import TokenScope
from contextgraph.operations.arguments import MOST


class Method(Struct, frozen=True):
    """The method *name* of a memory, or of its *part*; *place* is ``module:Class.method``.

    Tokens need *scope*.
    """

    name: str
    place: str
    scope: TokenScope
    part: str = ""

    @property
    def path(self) -> str:
        """The path of its request."""
        return f"/v1/{self.name.replace('.', '/')}"

    @property
    def function(self) -> Callable[..., Any]:
        """The method, as its class has it."""
        found: Callable[..., Any] = resolve_name(f"contextgraph.{self.place}")
        return found

    @property
    def arguments(self) -> type[BaseModel]:
        """The model of the arguments, which are read as the library writes them."""
        hints = self.function.__annotations__
        _, *parameters = signature(self.function).parameters.values()
        fields: dict[str, Any] = {}
        for one in parameters:
            kind, default = hints[one.name], ... if one.default is one.empty else one.default
            if one.kind is Parameter.VAR_POSITIONAL:
                fields[one.name] = (cast(Any, Sequence)[kind], ())
            elif not (isinstance(kind, str) or callable(default)):  # a report of progress
                fields[one.name] = (_read(kind), default)
        return create_model(self.name, __config__=ConfigDict(extra="forbid"), **fields)

    def value(self, memory: AgentMemory, given: Mapping[str, Any]) -> Any:
        """Return the value of the method of *memory*."""
        target = attrgetter(self.part)(memory) if self.part else memory
        method = getattr(target, self.name.rpartition(".")[2])
        bound = BoundArguments(signature(method), OrderedDict(given))
        bound.apply_defaults()
        return method(*bound.args, **bound.kwargs)


def _read(kind: Any) -> Any:
    """Return the type of an argument that `codec` reads."""
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
    is_struct = isinstance(kind, type) and issubclass(kind, Struct)
    return is_struct or any(map(_has_struct, get_args(kind)))


# Part of a memory -> its class, and its methods by their scope.
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
        {TokenScope.READ: "of_session record", TokenScope.WRITE: "add forget_session"},
    ),
    "store.notes": ("ports:NoteStore", {TokenScope.READ: "newest"}),
    "store.runs": (
        "ports:RunStore",
        {TokenScope.READ: "for_task for_text ids learned raw trajectories"},
    ),
    "writer": ("learning:MemoryWriter", {TokenScope.WRITE: "set_outcome"}),
}


def _methods() -> Iterator[Method]:
    for part, (kind, scopes) in METHODS.items():
        for scope, names in scopes.items():
            for method in names.split():
                yield Method(f"{part}.{method}".lstrip("."), f"{kind}.{method}", scope, part)


ALL_METHODS: Mapping[str, Method] = {one.name: one for one in _methods()}

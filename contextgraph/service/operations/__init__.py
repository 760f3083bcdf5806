"""The operations of a memory: plain functions, each declared once.

An operation is a function whose signature and docstring are its interface: HTTP, MCP and
`contextgraph call` read them by pydantic. Its module has the name of a noun; its first parameter is
the memory, or the run in progress. It returns a value of the library, which the client of Python
gets, and all others as a JSON object of `contextgraph.service.records`; or such an object itself.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from importlib import import_module
from inspect import signature
from operator import attrgetter
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec import Struct

from contextgraph.errors import InvalidEntryError, NotFoundError
from contextgraph.model import Json
from contextgraph.model.codec import encoded
from contextgraph.service.records import record_of

if TYPE_CHECKING:
    from contextgraph.service.operations.arguments import Arguments

Record = Mapping[str, Json]
F = TypeVar("F", bound=Callable[..., Any])


class TokenScope(StrEnum):
    """Scopes of a token: ask; report and learn, too; administer, too."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


VALUE = "application/vnd.contextgraph.value+json"
"""The type of an answer that is the value of an operation, as the library writes it."""

ADMIN_ARGUMENTS = frozenset({"pinned"})
"""Arguments that need the scope admin, whatever the scope of the operation."""

_MODULES = "queries runs advice notes pages entities keyed live upkeep"
# The parameter of an operation that says whose answer it is; no caller chooses it.
_IS_OWNER = "is_owner"
# The one that names the source whose entries the caller may change; None for an administrator.
_ONLY_OF = "only_of"


def provenance_by(writer: str, stated: object) -> object:
    """Return *writer*, or what it *stated* of where something was read, with its name.

    Raises `InvalidEntryError` where it names a person, the system or another agent.
    """
    if stated is None:
        return writer
    from contextgraph.knowledge.keyed import EXTERNAL

    if not isinstance(stated, Mapping) or stated.get("kind") not in EXTERNAL:
        raise InvalidEntryError(
            f"source says where it was read: an object whose kind is {', '.join(sorted(EXTERNAL))}"
        )
    return {**stated, "by": writer}


class Operation(Struct, frozen=True):
    """An operation: its *function*, who may call it, and where.

    Tokens need *scope*. *route* is the method and the path of its request; without one only
    `contextgraph call` has it. *own* names the arguments that `call` alone takes. *source* is the
    form of the argument "source" that a token gives: ``{}`` is the source of the token; with
    *has_provenance* the sender may add where it read what it sends. A *function* of the library is
    a method of the *part* of a memory.

    *form* makes the record of the value, the arguments and the memory; by default it is that of the
    value, or the value at the *key*. Without a value `NotFoundError` says what is *missing*.
    *lines* is the key of a list that `call` prints line by line; *exit_code* makes its exit code of
    the last record. It makes a memory where none is and the operation *creates* one. *example* is
    of the arguments, *answer* of the answer.
    """

    function: Callable[..., Any]
    scope: TokenScope
    route: str = ""
    own: str = ""
    source: str = ""
    has_provenance: bool = False
    part: str = ""
    form: Callable[[Any, Mapping[str, Any], Any], Record] | None = None
    key: str = ""
    missing: str = ""
    lines: str = ""
    exit_code: Callable[[Record], int] = lambda _: 0
    creates: bool = False
    takes_long: bool = False
    example: Any = None
    answer: Any = None

    @property
    def name(self) -> str:
        """The name of the function; one that Python itself uses ends with an underscore there."""
        return self.function.__name__.rstrip("_")

    @property
    def subject(self) -> str:
        """The name of the first parameter: "memory", "keyed" (files), "run" or "settings"."""
        return next(iter(signature(self.function).parameters))

    @property
    def is_method(self) -> bool:
        """True for a method of the library, of which only programs of Python have a use."""
        from contextgraph.service.operations.arguments import METHOD

        return self.subject == METHOD

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all arguments."""
        _, *parameters = signature(self.function).parameters.values()
        return tuple(
            one.name
            for one in parameters
            if one.name not in (_IS_OWNER, _ONLY_OF)
            # No request has a report of progress, or what only the type checker imports.
            and not (isinstance(one.default, FunctionType) or isinstance(one.annotation, str))
        )

    @property
    def arguments(self) -> "type[Arguments]":
        """The model of all arguments."""
        from contextgraph.service.operations.arguments import Arguments, arguments_of

        return arguments_of(self.function, self.names, Arguments)

    def requested(self, *others: str) -> "type[Arguments]":
        """Return the model of the arguments that a request may have, but for *others*."""
        from contextgraph.service.operations.arguments import Arguments, arguments_of

        without = {
            *others,
            *self.own.split(),
            *(["source"] if self.source and not self.has_provenance else []),
        }
        names = [name for name in self.names if name not in without]
        return arguments_of(self.function, names, Arguments)

    def sourced(self, name: str, stated: object = None, *, may_change_all: bool) -> dict[str, Any]:
        """Return the arguments that the sender of a request with the source *name* does not choose.

        What is confidential is for the owner alone, and what others wrote for those that may change
        all. *stated* is the source that the request names: where something was read.
        """
        every = {_IS_OWNER: False, _ONLY_OF: None if may_change_all else name}
        given = {key: every[key] for key in every.keys() & signature(self.function).parameters}
        own = self.source.format(name).rstrip(":")
        return given | ({"source": provenance_by(own, stated)} if self.source else {})

    def value(self, memory: Any, given: Mapping[str, Any], *, is_owner: bool = True) -> Any:
        """Return the value of the operation on *memory*, or on the run in progress.

        Others than the owner of the memory see no confidential text.
        """
        from contextgraph.service.operations.notes import without_secrets

        subject = memory.keyed if self.subject == "keyed" else memory
        value = self.function(attrgetter(self.part)(subject) if self.part else subject, **given)
        return value if is_owner else without_secrets(value)

    def record(self, value: Any, given: Mapping[str, Any], memory: Any) -> Record:
        """Return the record of a *value* of *memory*.

        Raises `NotFoundError` where none is an error.
        """
        if self.missing and not value:
            raise NotFoundError(self.missing.format(**given))
        if self.is_method:
            return {"value": encoded(value)}
        if self.form:
            return self.form(value, given, memory)
        if self.key:
            return {self.key: value}
        if isinstance(value, Mapping):
            return value
        return {self.lines: [*map(record_of, value)]} if self.lines else record_of(value)


_OPERATIONS: dict[str, Operation] = {}


def operation(scope: TokenScope, route: str = "", **properties: Any) -> Callable[[F], F]:
    """Declare a function as an `Operation` of these *properties*."""

    def declare(function: F) -> F:
        declared = Operation(function, scope, route, **properties)
        _OPERATIONS[declared.name] = declared
        return function

    return declare


def operations() -> Mapping[str, Operation]:
    """Return the operations of a memory by name."""
    for module in _MODULES.split():
        import_module(f"contextgraph.service.operations.{module}")
    return _OPERATIONS

"""Error signatures, and the actions that cleared an error."""

import re
from enum import StrEnum
from typing import Protocol

from msgspec import Struct

from contextgraph.model.values import replace


class Family(StrEnum):
    """The surface form of a failure (conventions: see docs/reading.md)."""

    EDIT_REJECTED = "edit_rejected"
    SYNTAX_ERROR = "syntax_error"
    TEST_FAILURE = "test_failure"
    PYTHON_EXCEPTION = "python_exception"
    RUNTIME_EXCEPTION = "runtime_exception"
    SHELL = "shell"
    TOOL_USAGE = "tool_usage"
    NOT_FOUND = "not_found"
    TIMEOUT = "timeout"
    ENVIRONMENT = "environment"
    BUILD = "build"


# Where an exception shows does not change what it is: a test runner reports those of the program.
EXCEPTIONS = frozenset(
    {Family.PYTHON_EXCEPTION, Family.RUNTIME_EXCEPTION, Family.TEST_FAILURE, Family.SYNTAX_ERROR}
)
_OF_TWO_LANGUAGES = frozenset({Family.PYTHON_EXCEPTION, Family.RUNTIME_EXCEPTION})
# The other families in which one exception can show.
_ALSO_SHOWN_AS = {
    family: tuple(
        sorted(other for other in EXCEPTIONS - {family} if {family, other} != _OF_TWO_LANGUAGES)
    )
    for family in EXCEPTIONS
}


# One cause that a shell and a script report under different names: a module is not installed.
_MISSING_MODULE = frozenset(
    {
        (Family.SHELL, "python -m: No module named"),
        (Family.PYTHON_EXCEPTION, "ModuleNotFoundError"),
    }
)


# At the start of a template, where it says nothing.
_PLACEHOLDERS = re.compile(r"^(?:<\w+>[\s:()',.]*)+")


class SignatureLevel(StrEnum):
    """Levels at which two error signatures agree, from the most exact to the coarsest."""

    PLACE = "place"
    TEMPLATE = "template"
    TYPE = "type"
    FAMILY = "family"


class ErrorKind(Protocol):
    """The level at which two errors match."""

    @property
    def family(self) -> Family: ...
    @property
    def error_type(self) -> str: ...
    @property
    def template(self) -> str: ...


def recorded_family(error: ErrorKind) -> Family:
    """Return the family to record *error* by: a test runner reports exceptions of programs."""
    name = error.error_type.rpartition(".")[2]
    is_reported = error.family is Family.TEST_FAILURE and name.isidentifier()
    is_exception = is_reported and name.endswith(("Error", "Exception", "Warning"))
    return Family.PYTHON_EXCEPTION if is_exception else error.family


class ErrorSignature(Struct, frozen=True):
    """One error as an observation shows it.

    *template* is the *message* with paths, numbers, ids, quoted names and versions masked;
    *keywords* (at most 3) are what distinguishes the message; *location* is ``file:line`` as shown.
    """

    family: Family
    error_type: str
    message: str
    template: str
    keywords: tuple[str, ...] = ()
    location: str | None = None

    def variants(self) -> tuple["ErrorSignature", ...]:
        """This signature, then the same exception as the other families of exceptions show it.

        A missing module is one error where a script imports it and where ``python -m`` runs it.
        """
        kind = (self.family, self.error_type)
        others = [(family, self.error_type) for family in _ALSO_SHOWN_AS.get(self.family, ())]
        others += sorted(_MISSING_MODULE - {kind}) if kind in _MISSING_MODULE else []
        return (self, *(replace(self, family=fam, error_type=type_) for fam, type_ in others))

    def agreement(self, other: ErrorKind, location: str | None = None) -> SignatureLevel | None:
        """Return the most exact level at which both agree; None where even the families differ.

        *other* was met at *location*. One exception, shown by itself and reported by a test runner,
        agrees all the same.
        """
        if self.error_type != other.error_type:
            kinds = {(self.family, self.error_type), (other.family, other.error_type)}
            if kinds != _MISSING_MODULE:
                return SignatureLevel.FAMILY if self.family is other.family else None
        elif other.family not in (self.family, *_ALSO_SHOWN_AS.get(self.family, ())):
            return None
        if self.template != other.template:
            return SignatureLevel.TYPE
        same_place = self.location is not None and self.location == location
        return SignatureLevel.PLACE if same_place else SignatureLevel.TEMPLATE


class ErrorPattern(Struct, frozen=True, omit_defaults=True):
    """A kind of error, shared by all runs that met it; *context* is one example message."""

    id: str
    family: Family
    error_type: str
    template: str
    keywords: tuple[str, ...]
    context: str

    @property
    def name(self) -> str:
        """The caption of the node in a graph browser: the message, then the type.

        A browser shows only the beginning, and errors of one type differ in their messages.
        """
        message = _PLACEHOLDERS.sub("", self.template).strip()
        if not message[:1].isalnum():
            message = self.template  # such as "<name> != <name>", of which signs would be left
        if not message:
            return self.error_type
        # Linters repeat their code's exception: "E999 SyntaxError", "SyntaxError: invalid syntax".
        exception = self.error_type.rpartition(" ")[2]
        return f"{message.removeprefix(f'{exception}: ')} ({self.error_type})"[:120]

    @property
    def text(self) -> str:
        """Type and message, neither repeated: as it is printed."""
        kind = self.error_type
        if self.template in {"", kind} or not kind:
            return kind or self.template or self.family
        # Many messages begin as their type, with a version ("python3: can't open file …") or
        # without, or with its last word: "SyntaxError: …" of E999 SyntaxError.
        whole = r"[\d.]*: ".join(map(re.escape, kind.split(": ")))
        said = re.match(rf"(?:{whole}|{re.escape(kind.split()[-1])}):? ", self.template)
        program, _, what = kind.rpartition(": ")
        if program and not said and what.casefold() in self.template.casefold():
            return f"{program}: {self.template}"  # ls: <path>: No such file or directory
        return f"{kind}: {self.template[said.end() :] if said else self.template}"

    def signature(self, message: str = "") -> ErrorSignature:
        """This error as a *message* of it shows it, or without one."""
        return ErrorSignature(self.family, self.error_type, message, self.template, self.keywords)


class Cause(StrEnum):
    """Why something fails on a machine or in a harness, whatever the project is.

    Kept folder: the shell is still in the folder to which a command changes again. That a command
    ran in another folder than the one it needs is no fact of a machine; it is not said at an error
    once the start has stated the kept folder.
    """

    FOLDER = "wrong folder"
    KEPT_FOLDER = "kept folder"
    CHECKOUT = "nothing cloned yet"
    LAYOUT = "no such folder"
    LONG_FILE = "file too long for one read"
    APART = "script run in a step of its own"
    PROGRAM = "wrong program"
    PACKAGE = "missing package"
    EDIT = "refused edit"


class RemedyKind(StrEnum):
    """Kinds of action that clear an error."""

    RUN = "run"
    USE = "use"
    CWD = "cwd"
    SET_ENV = "set_env"
    INSTALL = "install"
    CREATE = "create"
    OPEN = "open"
    SEARCH = "search"
    EDIT = "edit"
    RESEND = "resend"
    CONFIGURE = "configure"
    REVERT = "revert"
    DELETE = "delete"
    RETRY = "retry"
    OTHER = "other"


# Retrieval groups hundreds of them in a query.
class RemedyPattern(Struct, frozen=True, order=True, omit_defaults=True, cache_hash=True, gc=False):
    """The part of a remedy that independent runs can share: *kind*, *target*, what it *replaced*.

    Names, paths and code of one project stand in it as placeholders in angle brackets, such as
    ``<the missing module>`` or ``<parent folder>``; programs, flags and names of environment
    variables as they are. *parameters* qualify the action: flags that it adds, where *replaced* are
    those that it leaves out; of an installation the version, and the program if not pip or conda.
    """

    kind: RemedyKind
    target: str = ""
    replaced: str = ""
    parameters: tuple[str, ...] = ()


class RemedyAction(Struct, frozen=True, omit_defaults=True, cache_hash=True, gc=False):
    """One action of a remedy as it was done, and its *pattern*.

    *target* is what it was done to or with, in words of that project: a command, a path, a
    package, added code; *replaced* is what stood in its place in the attempt that failed.
    *parameters* are pairs of a name and a value; one name can occur several times.
    """

    kind: RemedyKind
    target: str
    pattern: RemedyPattern
    replaced: str = ""
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def general(self) -> "RemedyAction":
        """The action with its pattern only: no name, path or code of its project."""
        pattern = self.pattern
        return RemedyAction(self.kind, pattern.target, pattern, pattern.replaced)

    @property
    def is_general(self) -> bool:
        """True for what stands for all actions of its pattern, with placeholders for names."""
        own = self.pattern
        return not self.parameters and (self.target, self.replaced) == (own.target, own.replaced)

    def values_of(self, name: str) -> tuple[str, ...]:
        """Return the values of the parameter *name*, in order."""
        return tuple([value for key, value in self.parameters if key == name])

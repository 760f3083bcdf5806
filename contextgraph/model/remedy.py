"""What was done about an error: in one run, and in the form that independent runs share."""

from dataclasses import dataclass
from enum import StrEnum


class RemedyKind(StrEnum):
    """What an action against an error does."""

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


@dataclass(frozen=True, slots=True, order=True)
class RemedyPattern:
    """What independent runs can agree on: a *kind* of action, its *target*, what it *replaced*.

    Names, paths and code of one project stand in it as placeholders in angle brackets, such as
    ``<the missing module>`` or ``<parent folder>``; programs, flags and names of environment
    variables as they are. *parameters* qualify the action.
    """

    kind: RemedyKind
    target: str = ""
    replaced: str = ""
    parameters: tuple[str, ...] = ()

    # Retrieval groups hundreds of them in a query, and enumerations are slow to hash.
    def __hash__(self) -> int:
        """Of its texts."""
        return hash((self.target, self.replaced))


@dataclass(frozen=True, slots=True)
class RemedyAction:
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

    def __hash__(self) -> int:
        """Of its texts, as of a pattern."""
        return hash((self.target, self.replaced))

    @property
    def general(self) -> "RemedyAction":
        """The action with nothing but its pattern: no name, path or code of its project."""
        pattern = self.pattern
        return RemedyAction(self.kind, pattern.target, pattern, pattern.replaced)

    @property
    def is_general(self) -> bool:
        """True for what stands for all actions of its pattern, with placeholders for names."""
        return self == self.general

    def values_of(self, name: str) -> tuple[str, ...]:
        """The values of the parameter *name*, in order."""
        return tuple(value for key, value in self.parameters if key == name)

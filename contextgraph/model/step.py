"""One step of a run, and kinds of action. Hooks need it and nothing else of a run."""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any, TypeAlias

from msgspec import Meta, Struct, field

if TYPE_CHECKING:
    Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
else:
    Json = Any  # an alias that names itself cannot be read from an annotation

# What a record says of a time without its zone could not be compared.
Time: TypeAlias = Annotated[datetime, Meta(tz=True)]
NonNegativeInt: TypeAlias = Annotated[int, Meta(ge=0)]
Share: TypeAlias = Annotated[float, Meta(ge=0, le=1)]


class ActionKind(StrEnum):
    """Kinds of action."""

    reads: bool
    searches: bool
    is_passive: bool
    writes: bool
    changes_files: bool
    runs: bool

    def __init__(self, name: str) -> None:
        self.reads = name in ("view", "search", "list")
        self.searches = name in ("search", "list")
        # Leaves everything as it is, and needs nothing to succeed.
        self.is_passive = self.reads or name == "think"
        self.writes = name in ("edit", "create")
        self.changes_files = self.writes or name == "delete"
        self.runs = name in ("run", "test")

    EDIT = "edit"
    CREATE = "create"
    VIEW = "view"
    SEARCH = "search"
    LIST = "list"
    RUN = "run"
    TEST = "test"
    INSTALL = "install"
    DELETE = "delete"
    VCS = "vcs"
    SUBMIT = "submit"
    THINK = "think"
    OTHER = "other"


class Action(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """An action of an agent: the *tool*, its *text* as a person would type it, and its *arguments*.

    The text is the command line for a shell, and tool name and arguments for other tools.
    """

    tool: str
    text: str
    arguments: Mapping[str, Json] = field(default_factory=dict)


class Step(Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """One turn: thought, action, and observation.

    *observation* is None if the log ends before it. *exit_code* and *is_error* are what the log
    says, None if it does not. *timestamp* is timezone-aware.

    What a person did: *user_message* is what they wrote between this step and the next, at
    *messaged_at*; *interrupted* and *denied* say that they stopped the step or refused the tool
    call. Text that programs wrote into their turn is left out.

    *client_id* stands for the id that its client gave to the reply or the call, *message_id* for
    that of the user message: digests, empty where the client has no ids of its own for them.
    Copies have the same.
    """

    index: int
    thought: str
    action: Action
    observation: str | None = None
    exit_code: int | None = None
    is_error: bool | None = None
    cwd: str | None = None
    open_file: str | None = None
    timestamp: Time | None = None
    user_message: str | None = None
    interrupted: bool = False
    denied: bool = False
    messaged_at: Time | None = None
    client_id: str = ""
    message_id: str = ""

"""One step of a run. Hooks need it and nothing else of a run."""

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

from msgspec import Struct, field

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Action(Struct, frozen=True):
    """An action of the agent: the *tool*, the *text* as a person would type it, its *arguments*.

    For a shell the text is the command line; for other tools, tool name and arguments.
    """

    tool: str
    text: str
    arguments: Mapping[str, Json] = field(default_factory=dict)


class Step(Struct, frozen=True):
    """One turn: thought, action, and what came back.

    *observation* is None where the log ends before the answer. *exit_code* and *is_error* are what
    the log itself says, None where it is silent. *timestamp* is timezone-aware.

    Of a person at the keyboard: *user_message* is what they wrote after this step and before the
    next, at *messaged_at*, *interrupted* that they stopped it, *denied* that they refused the tool
    call. What programs wrote into their turn is left out.
    """

    index: int
    thought: str
    action: Action
    observation: str | None
    exit_code: int | None = None
    is_error: bool | None = None
    cwd: str | None = None
    open_file: str | None = None
    timestamp: datetime | None = None
    user_message: str | None = None
    interrupted: bool = False
    denied: bool = False
    messaged_at: datetime | None = None

"""Going round in circles."""

from dataclasses import dataclass
from enum import StrEnum


class LoopKind(StrEnum):
    """What is repeated."""

    SAME_EDIT_REJECTED = "same_edit_rejected"
    SAME_COMMAND_SAME_ERROR = "same_command_same_error"
    OSCILLATION = "oscillation"
    REPEAT_NO_ERROR = "repeat_no_error"


class LoopSeverity(StrEnum):
    """Repeating: often ends by itself. Stuck: it has lasted longer than such loops usually do."""

    REPEATING = "repeating"
    STUCK = "stuck"


@dataclass(frozen=True, slots=True)
class LoopInfo:
    """A series of steps in the same predicament, *start* to *end* inclusive.

    *length* counts all steps of the span, *repetitions* the attempts that failed alike.
    *signatures* describe the repeated step or cycle; *escape_suggestions* are sentences from
    the memory, empty where it knows none.
    """

    kind: LoopKind
    start: int
    end: int
    repetitions: int
    signatures: tuple[str, ...]
    severity: LoopSeverity
    escape_suggestions: tuple[str, ...] = ()

    @property
    def length(self) -> int:
        """Steps from the first attempt to the last, both counted."""
        return self.end - self.start + 1

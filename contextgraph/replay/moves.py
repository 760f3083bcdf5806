"""What an agent can do about an error, in forms that are equal where they are the same cure."""

from dataclasses import dataclass
from enum import StrEnum


class MoveKind(StrEnum):
    """Kinds of action against an error."""

    INSTALL = "install"
    PIN = "pin"
    MAKE = "make"
    SET = "set"
    FLAG = "flag"
    ARGUMENT = "argument"
    PATH = "path"
    USE = "use"
    RUN = "run"
    OPEN_FIRST = "open_first"
    IMPORT = "import"
    DEFINE = "define"
    WITHOUT = "without"
    RANGE = "range"
    INDENT = "indent"
    OTHER_FILE = "other_file"
    LINE = "line"


@dataclass(frozen=True, slots=True)
class Move:
    """A *kind* of action on a *target*; paths in a target are of one repository, named in it."""

    kind: MoveKind
    target: str

    def __str__(self) -> str:
        return f"{self.kind} {self.target}".strip()

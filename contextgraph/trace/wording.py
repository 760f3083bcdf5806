"""Small forms in which code, commands and files stand in a sentence."""

import posixpath
from collections.abc import Iterable

_CODE_CHARS = 100
_COMMAND_CHARS = 100


def one_line(text: str, limit: int) -> str:
    """*text* without line ends, at most *limit* characters; ` ⏎ ` stands for a line end."""
    lines = (" ".join(line.split()) for line in text.strip()[: 4 * limit].splitlines())
    joined = " ⏎ ".join(line for line in lines if line and line != "end_of_edit")
    return joined if len(joined) <= limit else joined[: limit - 1].rstrip() + "…"


def code(line: str) -> str:
    """A line of code in backquotes."""
    return f"`{one_line(line, _CODE_CHARS)}`"


def quoted(command: str) -> str:
    """A command in backquotes."""
    return f"`{one_line(command, _COMMAND_CHARS)}`"


def files_of(paths: Iterable[str]) -> str:
    """File names as a sentence names them."""
    return ", ".join(dict.fromkeys(posixpath.normpath(path) for path in paths if path)) or "the file"

"""Where text goes: JSON lines and answers to stdout, everything else to stderr."""

import io
import json
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from contextgraph.model import Json

PIPED_WIDTH = 120

# All control characters but tab and newline: logs of agents hold escape sequences, which would
# otherwise colour, retitle or clear the reader's terminal.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def emit(record: "Mapping[str, Json]") -> None:
    """Print *record* as one JSON line, at once, so that a reading process need not wait."""
    import orjson

    try:
        line = orjson.dumps(record)
    except orjson.JSONEncodeError:  # a lone surrogate, as in a file name that is not UTF-8
        line = json.dumps(record).encode("ascii")
    sys.stdout.buffer.write(line + b"\n")
    sys.stdout.buffer.flush()


def complain(message: str) -> None:
    """Print one line on stderr, marked as ours."""
    print(f"contextgraph: {plain(message)}", file=sys.stderr, flush=True)


def plain(text: str) -> str:
    """*text* without the control characters that would move a terminal."""
    return _CONTROL.sub("", text)


def one_line(text: str, width: int) -> str:
    """*text* on one line of at most *width* characters, cut with an ellipsis."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"


def screen() -> "Console":
    """Stdout for people; as wide as the terminal, of one width in a pipe."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else PIPED_WIDTH
    return Console(width=width, markup=False, highlight=False, emoji=False)


def margin() -> "Console":
    """Stderr for people: progress and remarks."""
    from rich.console import Console

    return Console(stderr=True, markup=False, highlight=False, emoji=False)


def accept_any_text() -> None:
    """Let people's output survive a terminal that cannot show every character."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")

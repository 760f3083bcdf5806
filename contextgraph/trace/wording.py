"""Short forms of code and commands, and the names in code."""

import builtins
import keyword
from collections.abc import Iterable, Sequence

from contextgraph.lazy import regex
from contextgraph.text import cut

_CODE_CHARS, _LINE_READ = 100, 500
_LINES_NAMED = 2
ELLIPSIS = "…"
_IDENTIFIER = regex(r"[A-Za-z_]\w+")
_STRING = regex(r"[rbfuRBFU]{0,2}(?:\"[^\"]*\"|'[^']*')")
_COMMON = frozenset({*keyword.kwlist, *keyword.softkwlist, *dir(builtins), "self", "cls", "args"})


def one_line(text: str, limit: int) -> str:
    """*text* without line ends, at most *limit* characters; ` ⏎ ` stands for a line end."""
    lines = [" ".join(line.split()) for line in text.strip()[: 4 * limit].splitlines()]
    joined = " ⏎ ".join([line for line in lines if line and line != "end_of_edit"])
    return cut(joined, limit)


def command_text(text: str, limit: int) -> str:
    """*text* in one line, without its middle where it is longer than *limit* characters.

    A command ends with what it is about: the tests, the file, the options that were added.
    """
    half = 4 * limit
    ends = text if len(text) <= 2 * half else f"{text[:half]}\n{text[-half:]}"
    line = one_line(ends, 4 * half)
    if len(line) <= limit:
        return line
    tail = 2 * limit // 5
    return f"{line[: limit - tail - 3].rstrip()} {ELLIPSIS} {line[-tail:].lstrip()}"


def code(text: str) -> str:
    """A line of code or a command in backquotes."""
    return f"`{command_text(text, _CODE_CHARS)}`"


def is_cut(text: str) -> bool:
    """Whether `code` leaves out a part of *text*."""
    return len(one_line(text, 4 * _CODE_CHARS)) > _CODE_CHARS


def identifiers(lines: Iterable[str]) -> set[str]:
    """The names in *lines*, without keywords and builtins; strings and comments do not count."""
    bare = (_STRING.sub("", line[:_LINE_READ]).partition("#")[0] for line in lines)
    return {name for line in bare for name in _IDENTIFIER.findall(line)} - _COMMON


def informative_lines(lines: Sequence[str], named: Sequence[str] = ()) -> tuple[str, ...]:
    """The two lines that say most, in order.

    Those that hold a word of *named* are preferred, then those that come first.
    """
    candidates = list(dict.fromkeys(filter(_is_informative, lines)) or dict.fromkeys(lines))
    best = sorted(candidates, key=lambda line: not any(name in line for name in named))[
        :_LINES_NAMED
    ]
    return tuple(line.strip() for line in candidates if line in best)


def shortened(lines: Sequence[str], named: Sequence[str] = ()) -> tuple[str, ...]:
    """The lines that say most, as `informative_lines`, then an ellipsis where there are others."""
    chosen = informative_lines(lines, named)
    others = sum(map(_is_informative, dict.fromkeys(lines))) > len(chosen)
    return (*chosen, ELLIPSIS) if others else chosen


def _is_informative(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and not bare.startswith("#")

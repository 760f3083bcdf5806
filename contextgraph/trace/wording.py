"""Small forms in which code, commands and files stand in a sentence."""

import posixpath
from collections.abc import Iterable, Sequence

_CODE_CHARS = 100
_LINES_NAMED = 2


def one_line(text: str, limit: int) -> str:
    """*text* without line ends, at most *limit* characters; ` ⏎ ` stands for a line end."""
    lines = (" ".join(line.split()) for line in text.strip()[: 4 * limit].splitlines())
    joined = " ⏎ ".join(line for line in lines if line and line != "end_of_edit")
    return joined if len(joined) <= limit else joined[: limit - 1].rstrip() + "…"


def code(text: str) -> str:
    """A line of code or a command in backquotes."""
    return f"`{one_line(text, _CODE_CHARS)}`"


def lines_said(lines: Sequence[str], named: Sequence[str] = ()) -> str:
    """The lines that say most, in backquotes; ` …` where there are more.

    Those that hold a word of *named* are preferred, then those that come first.
    """
    told = list(dict.fromkeys(filter(_says_something, lines)) or dict.fromkeys(lines))
    best = sorted(told, key=lambda line: not any(name in line for name in named))[:_LINES_NAMED]
    more = " …" if len(told) > _LINES_NAMED else ""
    return ", ".join(code(line) for line in told if line in best) + more


def files_of(paths: Iterable[str]) -> str:
    """File names as a sentence names them."""
    named = dict.fromkeys(posixpath.normpath(path) for path in paths if path)
    return ", ".join(named) or "the file"


def _says_something(line: str) -> bool:
    bare = line.strip()
    return len(bare) > 2 and not bare.startswith("#")

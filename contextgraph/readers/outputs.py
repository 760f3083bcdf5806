"""What agents' tools write around the output of a command."""

import re
from typing import NamedTuple, TypeVar

from contextgraph.readers.json_text import loads
from contextgraph.text import clean

_T = TypeVar("_T")


class Output(NamedTuple):
    """The output of a command, and what the agent's tool wrote around it."""

    text: str
    exit_code: int | None = None
    cwd: str | None = None


_CODE = r"(?P<code>-?\d{1,10})"
# What tools write before and after the output of a command.
_HEADERS = (
    re.compile(r"\A(?:EXECUTION RESULT of \[[\w.-]+\]|OBSERVATION):\n"),
    re.compile(rf"\A(?:Error: )?Exit code:? {_CODE}(?:\n(?:Wall time: .*\n)?(?:Output:\n)?|\Z)"),
    re.compile(
        r"\A(?:Chunk ID: .*\n)?(?:Wall time: .*\n)?Process exited with code "
        rf"{_CODE}(?:\n|\Z)(?:Original token count: .*\n)?(?:Output:(?:\n|\Z))?"
    ),
    re.compile(rf"\A\s*<returncode>{_CODE}</returncode>\s*"),
    re.compile(rf"\ACommand (?:failed|exited) with (?:exit )?code:? {_CODE}\.?\n?"),
)
_TRAILERS = (
    re.compile(
        r"\n?\[(?:The command completed|Command(?: -?\d+)? finished) with exit code "
        rf"{_CODE}\.?[^\]\n]{{0,80}}\]\s*\Z"
    ),
    re.compile(r"\n?\[(?:Jupyter )?[Cc]urrent working directory: (?P<cwd>[^\]\n]*)\]\s*\Z"),
    re.compile(
        r"\n?\[(?:Jupyter )?Python [Ii]nterpreter: [^\]\n]*\]"
        r"(?:\n\S{1,80}@[\w.-]{1,80}:(?P<cwd>[^\n#$]{1,300}?) ?[#$])?\s*\Z"
    ),
    re.compile(rf"\n?<(?:command )?(?:exited|completed) with exit code {_CODE}>\s*\Z"),
    re.compile(rf"\n?Exit Code: {_CODE}(?:\n(?:Signal|Background PIDs|Process Group PGID): .*)*\Z"),
)
_TRAILER_CHARS = 800
_TRAILER_ENDS = frozenset("]>#$0123456789")


def output_in(text: str) -> Output:
    """The output that a tool's answer holds, without the tool's own notes on exit code and cwd."""
    text, exit_code = _unwrapped(clean(text))
    cwd = None
    for header in _HEADERS:
        if found := header.match(text):
            exit_code = coalesce(exit_code, _code(found))
            text = text[found.end() :]
    trimmed = True
    while trimmed and text.rstrip()[-1:] in _TRAILER_ENDS:
        start = max(0, len(text) - _TRAILER_CHARS)
        trimmed = False
        for trailer in _TRAILERS:
            if found := trailer.search(text, start):
                exit_code, cwd = coalesce(exit_code, _code(found)), cwd or _group(found, "cwd")
                text, trimmed = text[: found.start()], True
    return Output(text, exit_code, cwd)


def _unwrapped(text: str) -> tuple[str, int | None]:
    """The text in ``{"output": …, "metadata": {"exit_code": …}}``, as Codex logs it."""
    if not text.startswith('{"output"'):
        return text, None
    try:
        value = loads(text)
    except ValueError:
        return text, None
    output, metadata = value.get("output"), value.get("metadata")
    code = metadata.get("exit_code") if isinstance(metadata, dict) else None
    if not isinstance(output, str):
        return text, None
    return clean(output), code if type(code) is int else None


def _code(found: re.Match[str]) -> int | None:
    code = _group(found, "code")
    return int(code) if code else None


def _group(found: re.Match[str], name: str) -> str | None:
    return found.groupdict().get(name)


def coalesce(one: _T | None, other: _T | None) -> _T | None:
    """*one*, or *other* where that is None."""
    return other if one is None else one

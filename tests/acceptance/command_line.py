"""Runs the command line inside the test process, and writes runs for it to read."""

import io
import os
import pty
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson

from contextgraph.cli import main
from contextgraph.model import RawTrajectory
from contextgraph.readers import write_jsonl

SYNTAX_ERROR = """  File "shop/tariff.py", line 3
    return (1 + 2
           ^
SyntaxError: '(' was never closed
"""


@dataclass(frozen=True, slots=True)
class Result:
    """The exit code and output of a command."""

    code: int
    out: str
    err: str

    @property
    def records(self) -> list[Any]:
        """Stdout as JSON lines."""
        return [orjson.loads(line) for line in self.out.splitlines()]


def contextgraph(*arguments: str | Path, stdin: bytes = b"") -> Result:
    """Run ``contextgraph`` with *arguments*."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with _standard_input(stdin), redirect_stdout(out), redirect_stderr(err):
        try:
            main([str(argument) for argument in arguments])
        except SystemExit as done:
            code = done.code
    assert isinstance(code, int)
    return Result(code, _text(out), _text(err))


def call(operation: str, store: str | Path = "", *options: str | Path, **arguments: Any) -> Result:
    """Run ``contextgraph call`` on the memory *store*; a list is given item by item."""
    given = [
        f"{name}={one if isinstance(one, str | Path) else orjson.dumps(one).decode()}"
        for name, value in arguments.items()
        for one in (value if isinstance(value, list) else [value])
    ]
    at = ("--store", store) if store else ()
    return contextgraph("call", operation, *given, *at, *options)


def write_runs(path: Path, runs: Iterable[RawTrajectory], *more: bytes) -> Path:
    """Write *runs* to the file *path*, then the lines *more*; returns *path*."""
    with path.open("wb") as file:
        write_jsonl(runs, file)
        file.writelines(line + b"\n" for line in more)
    return path


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    assert isinstance(stream.buffer, io.BytesIO)
    return stream.buffer.getvalue().decode()


@contextmanager
def _standard_input(content: bytes) -> Iterator[None]:
    before = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(content), encoding="utf-8")
    try:
        yield
    finally:
        sys.stdin = before


def in_terminal(*arguments: str | Path, answer: str = "", **environment: str) -> str:
    """Run ``contextgraph`` as a process in a terminal of its own, and return what it showed.

    *answer* is typed at once; *environment* is added to that of the test.
    """
    leader, follower = pty.openpty()
    os.write(leader, answer.encode())
    command = [sys.executable, "-m", "contextgraph", *map(str, arguments)]
    with subprocess.Popen(
        command,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        env={**os.environ, **environment},
    ) as process:
        os.close(follower)
        shown = b""
        try:
            while some := os.read(leader, 4096):
                shown += some
        except OSError:  # the process has closed the terminal
            pass
        process.wait(60)
    os.close(leader)
    return shown.decode()

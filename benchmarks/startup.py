"""Processor time of a new process."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from uuid import uuid4

import contextgraph.__main__
from benchmarks.corpus import bundles
from benchmarks.measure import Row
from contextgraph import AgentMemory
from contextgraph.agents.hook import HookEvent
from contextgraph.agents.hook_files import (
    CompiledRemedy,
    ErrorAdvice,
    ErrorKey,
    RepositoryAdvice,
    write_advice,
)
from contextgraph.model import RawTrajectory

RUNS, ENTRIES = 1_500, 100_000
_TIMES = 15
_SHOP = "acme/shop"
_BASH = {"tool_name": "Bash", "tool_input": {"command": "python -m pytest tests"}}
_ERROR = "ValueError: no tariff"
_EVENTS: Mapping[str, Mapping[str, object]] = {
    "after a failure": {"hook_event_name": "PostToolUseFailure", "error": _ERROR, **_BASH},
    "before another command": {
        "hook_event_name": "PreToolUse",
        "tool_name": "Bash",
        "tool_input": {"command": "git status"},
    },
    "after a success": {
        "hook_event_name": "PostToolUse",
        "tool_response": {"stdout": "5 passed in 0.1s"},
        **_BASH,
    },
    "before a command": {"hook_event_name": "PreToolUse", **_BASH},
    "at a prompt": {"hook_event_name": "UserPromptSubmit", "prompt": f"It fails:\n{_ERROR}"},
}


def rows(raws: Sequence[RawTrajectory], folder: Path) -> Iterator[Row]:
    """Import, help, queries and hook events, each in a process of its own."""
    path = folder / "cold.db"
    with AgentMemory.open(str(path)) as memory:
        for number, bundle in enumerate(bundles(raws, sys.maxsize)):
            if number == RUNS:
                break
            memory.store.runs.add([bundle])
    program = ["-m", "contextgraph"]
    store = ["--store", str(path), "--repo", "acme/shop0"]
    error = "ModuleNotFoundError: No module named 'tariffs'"
    yield _row("import contextgraph", ["-c", "import contextgraph"], 3)
    yield _row("contextgraph --help", [*program, "--help"], 3)
    what = f"contextgraph query, {RUNS:,} runs"
    yield _row(what, [*program, "query", *store, "--error", error], 16)
    yield _row("contextgraph how", [*program, "how", *store, "python -m pytest"], 16)
    commands = {"python -m pytest": ("`python -m pytest` did not run; `tox` did", ())}
    shop = ("", _SHOP, RepositoryAdvice(commands=commands))
    write_advice(path.with_name("cold.advice.db"), 1, _entries(), [shop], {})
    hook = ["-I", "-S", contextgraph.__main__.__file__, "hook", "--store", str(path)]
    for moment, event in _EVENTS.items():
        name = f"contextgraph hook {moment}, {ENTRIES:,} entries"
        yield _row(name, hook, 3, partial(_session, path.with_name("cold.hooks"), event))


def _session(hooks: Path, event: Mapping[str, object]) -> str:
    """Return *event* in a session that began before: its first hook asked git for its name."""
    session, cwd = str(uuid4()), str(hooks.parent)
    began = {"at": "", "event": "SessionStart", "agent": "claude-code", "session": session}
    began |= {"folder": HookEvent({"cwd": cwd}).folder, "repo": _SHOP}
    file = hooks / "sessions" / f"{session}.jsonl"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"{json.dumps(began)}\n", encoding="utf-8")
    return json.dumps({**event, "session_id": session, "cwd": cwd})


def _entries() -> Iterator[tuple[ErrorKey, ErrorAdvice]]:
    for number in range(ENTRIES):
        repo = f"acme/shop{number % 1_000}" if number else ""
        key = (repo, "python_exception", "ValueError", f"tariff {number}" if number else "", "")
        said = "use `python3` instead of `python`"
        remedy = CompiledRemedy(f"{said} [{number} tasks]", said, "frg_1")
        yield key, ErrorAdvice((remedy,), 1, ("Earlier runs:", "Earlier runs did:"))


def _row(what: str, arguments: Sequence[str], budget: int, given: Callable[[], str] = str) -> Row:
    """CPU of `python` with *arguments*, in turns with an empty one: both meet the same load."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

    def cpu(arguments: Sequence[str]) -> float:
        before = getrusage(RUSAGE_CHILDREN)
        command = [sys.executable, *arguments]
        subprocess.run(
            command, check=False, input=given(), text=True, capture_output=True, env=environment
        )
        after = getrusage(RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    cpu(arguments)  # A first run may write byte code, as an installed package has it.
    pairs = [[cpu(one) for one in (("-c", "pass"), arguments)] for _ in range(_TIMES)]
    empty, taken = (median(times) for times in zip(*pairs, strict=True))
    return Row(what, taken * 1000, "ms", "CPU of python -c pass", taken / empty, f"{budget} x")

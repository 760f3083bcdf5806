"""The sessions in the documents run as printed: those of Python, and those of the shell."""

import doctest
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.acceptance.command_line import contextgraph

ROOT = Path(__file__).parents[2]
_BLOCK = re.compile(r"^```console\n(.*?)^```", re.MULTILINE | re.DOTALL)
_COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def sessions(document: str) -> list[tuple[str, str]]:
    """(command, its output) of all blocks, which follow on each other."""
    text = (ROOT / "docs" / document).read_text(encoding="utf-8")
    return [pair for block in _BLOCK.findall(text) for pair in _COMMAND.findall(block)]


@pytest.mark.parametrize("document", ["keyed.md", "notes.md", "pages.md", "sessions.md"])
def test_the_sessions_of_python_run_as_printed(
    document: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    failed, tried = doctest.testfile(str(ROOT / "docs" / document), module_relative=False)
    assert (failed, tried > 3) == (0, True)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The environment of a shell in an empty folder, which finds ``contextgraph``."""
    program = tmp_path / "bin" / "contextgraph"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m contextgraph "$@"\n')
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    path = f"{program.parent}:{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}


def printed(command: str, environment: dict[str, str]) -> str:
    """What *command* prints; ``contextgraph`` at its start runs in this process."""
    given = ""
    if command.startswith("contextgraph ") and " > " not in command:
        own, _, command = command.partition(" | ")
        done = contextgraph(*shlex.split(own)[1:])
        if not command:
            return done.out + done.err
        given = done.out
    line = ["sh", "-c", f"{command} 2>&1"]
    return subprocess.run(
        line, env=environment, input=given, capture_output=True, text=True, check=False
    ).stdout


@pytest.mark.parametrize("document", ["keyed.md", "notes.md", "pages.md"])
def test_the_sessions_of_the_shell_run_as_printed(document: str, shell: dict[str, str]) -> None:
    found = sessions(document)
    assert found
    for command, expected in found:
        if "jq " in command and not shutil.which("jq"):
            continue
        assert (command, printed(command, shell)) == (command, expected)

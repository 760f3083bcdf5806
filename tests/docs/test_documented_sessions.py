"""The sessions in the documents run as printed: those of Python, and those of the shell."""

import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("document", ["keyed.md", "notes.md", "pages.md"])
def test_the_sessions_of_the_shell_run_as_printed(document: str, tmp_path: Path) -> None:
    program = tmp_path / "bin" / "contextgraph"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m contextgraph "$@"\n')
    program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "XDG_DATA_HOME": str(tmp_path),
    }
    found = sessions(document)
    assert found
    for command, expected in found:
        if "jq " in command and not shutil.which("jq"):
            continue
        done = subprocess.run(
            ["sh", "-c", f"{command} 2>&1"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (command, done.stdout) == (command, expected)

"""Help, version, documentation and start-up of the command line."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
import typer

from contextgraph.cli import app
from tests.acceptance.command_line import contextgraph

DOCUMENT = Path("docs/cli.md")


def commands_of(group: typer.Typer, prefix: str = "") -> Iterator[str]:
    """The commands of *group*, those of its groups as two words."""
    for command in group.registered_commands:
        if command.callback:
            yield f"{prefix}{command.name or command.callback.__name__}"
    for inner in group.registered_groups:
        assert inner.typer_instance
        if inner.typer_instance.info.invoke_without_command is True:
            yield f"{prefix}{inner.name}"
        yield from commands_of(inner.typer_instance, f"{inner.name} ")


COMMANDS = sorted(commands_of(app))
HEAVY = ("contextgraph.memory", "contextgraph.model", "networkx", "numpy", "rich", "sqlite3")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example_of_it(command: str) -> None:
    result = contextgraph(*command.split(), "--help")

    assert result.code == 0
    assert max(map(len, result.out.splitlines())) <= 80
    assert re.search(rf"Example:\n(.*\n)*? .*contextgraph {command}", result.out)


def test_the_documentation_has_a_section_for_every_command() -> None:
    sections = re.findall(
        r"^## `contextgraph ([a-z]+(?: [a-z]+)*)", DOCUMENT.read_text(), flags=re.MULTILINE
    )

    assert sorted(sections) == COMMANDS


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_in_the_documentation_is_one_of_the_command(command: str) -> None:
    text = DOCUMENT.read_text()
    (section,) = re.findall(
        rf"^## `contextgraph {command}(?! [a-z]).*?(?=^## |\Z)",
        text,
        flags=re.MULTILINE | re.DOTALL,
    )
    flags = set(re.findall(r"--[a-z][a-z-]*", section))

    known = set(re.findall(r"--[a-z][a-z-]*", contextgraph(*command.split(), "--help").out))
    assert flags <= known


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_of_a_command_is_in_the_documentation(command: str) -> None:
    known = set(
        re.findall(
            r"^  .*?(--[a-z][a-z-]*)", contextgraph(*command.split(), "--help").out, re.MULTILINE
        )
    )

    assert known - {"--help"} <= set(re.findall(r"--[a-z][a-z-]*", DOCUMENT.read_text()))


def test_the_version_is_printed() -> None:
    result = contextgraph("--version")

    assert result.code == 0
    assert re.fullmatch(r"contextgraph \d+\.\d+\.\d+\S*\n", result.out)


def test_without_a_command_the_help_is_shown() -> None:
    result = contextgraph()

    assert result.code == 2
    assert all(command.split()[0] in result.out + result.err for command in COMMANDS)


@pytest.mark.parametrize(
    "group", ["", "config", "entities", "experiment", "mcp", "notes", "pages", "token"]
)
def test_the_summary_of_each_command_fits_into_its_line_of_the_help(group: str) -> None:
    listed = contextgraph(*group.split(), "--help").out.partition("Commands:")[2]
    assert listed
    assert "..." not in listed


def test_the_package_can_be_run_as_a_module() -> None:
    assert _python("-m", "contextgraph", "--version").stdout.startswith("contextgraph ")


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from contextgraph.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        f"print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])"
    )

    assert _python("-c", program).stdout.endswith("loaded: []\n")


def test_a_closed_pipe_is_not_reported() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        done = _python("-c", "from contextgraph.cli import main; main(['--help'])", stdout=closed)

    assert done.stderr == ""


def _python(
    *arguments: str, stdout: int | IO[bytes] = subprocess.PIPE
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
        check=False,
        timeout=60,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )

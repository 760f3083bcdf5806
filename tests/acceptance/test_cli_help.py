"""Help, version, documentation and start-up of the command line."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from contextgraph.cli import HOMES, SECTIONS
from tests.acceptance.command_line import contextgraph

DOCUMENT = Path("docs/cli.md")
COMMANDS = sorted(HOMES)
HEAVY = (
    "click",
    "contextgraph.memory.agent_memory",
    "contextgraph.model",
    "networkx",
    "numpy",
    "rich",
)


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
        rf"^## `contextgraph {command}(?! [a-z])(?![a-z]).*?(?=^## |\Z)",
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


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_the_version_is_printed(flag: str) -> None:
    result = contextgraph(flag)

    assert result.code == 0
    assert re.fullmatch(r"contextgraph \d+\.\d+\.\d+\S*\n", result.out)


def test_a_misspelt_command_is_answered_with_the_nearest() -> None:
    result = contextgraph("qurey")

    assert (result.code, "Did you mean 'query'?" in result.err) == (2, True)
    assert "Did you mean 'call remember'?" in contextgraph("remember", "x").err
    assert "contextgraph call --list" in contextgraph("zzz").err


def test_the_help_shows_the_commands_of_every_day_and_help_all_the_others() -> None:
    *daily, _ = (name for name in SECTIONS)
    result, everything = contextgraph("--help"), contextgraph("help", "all")

    shown = [name for section in daily for name in SECTIONS[section]]
    assert (result.code, everything.code) == (0, 0)
    assert all(f"{section}:\n" in result.out for section in daily)
    assert all(f"\n  {name} " in result.out for name in shown)
    assert all(f"\n  {name} " in everything.out for name in HOMES)
    assert len(shown) <= 16
    assert max(map(len, everything.out.splitlines())) <= 90
    assert contextgraph().out.strip() in ("", result.out.strip())


def test_the_summaries_of_the_help_are_those_of_the_commands() -> None:
    summaries = {name: text for part in SECTIONS.values() for name, text in part.items()}

    assert summaries.keys() == HOMES.keys()
    for name, summary in summaries.items():
        listed = " ".join(contextgraph(name, "--help").out.split())
        assert summary in listed


def test_the_package_can_be_run_as_a_module() -> None:
    assert _python("-m", "contextgraph", "--version").stdout.startswith("contextgraph ")


def test_the_help_of_a_command_is_that_of_its_option() -> None:
    assert contextgraph("help", "last").out == contextgraph("last", "--help").out
    assert "No such command 'nosuch'" in contextgraph("help", "nosuch").err


def test_without_a_terminal_setup_is_named_with_what_it_needs() -> None:
    result = contextgraph()
    assert (result.code, "setup --yes" in result.err) == (2, True)


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys\n"
        "from contextgraph.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        f"print('loaded:', [name for name in {HEAVY!r} if name in sys.modules])"
    )

    assert _python("-c", program).stdout.endswith("loaded: []\n")


@pytest.mark.parametrize("command", [["--help"], ["help", "all"]])
def test_a_closed_pipe_is_no_error(command: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as closed:
        program = f"from contextgraph.cli import main; main({command})"
        done = _python("-c", program, stdout=closed)

    assert (done.returncode, done.stderr) == (0, "")


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


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands_and_options(shell: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_CONTEXTGRAPH_COMPLETE", f"{shell}_source")
    assert "_CONTEXTGRAPH_COMPLETE" in contextgraph().out
    monkeypatch.setenv("COMP_WORDS", "contextgraph rec")
    monkeypatch.setenv("COMP_CWORD", "1" if shell != "fish" else "rec")
    monkeypatch.setenv("_CONTEXTGRAPH_COMPLETE", f"{shell}_complete")
    assert "receipt" in contextgraph("rec").out

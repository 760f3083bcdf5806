"""Help, version, documentation and start-up of the command line."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import IO

import pytest

from contextgraph.cli import GATHERED, HOMES, SECTIONS
from contextgraph.cli.commands import function_of, of_operation
from contextgraph.operations import REQUESTS
from tests.acceptance.command_line import contextgraph

DOCUMENT = Path("docs/cli.md")


COMMANDS = sorted(
    f"{name} {inner}".strip()
    for name, home in HOMES.items()
    for inner in ([""] if isinstance(home, str) else home)
)
FUNCTIONS = {
    f"{name} {inner}".strip(): function_of(place)
    for name, home in HOMES.items()
    for inner, place in ({"": home} if isinstance(home, str) else home).items()
}
STATE = (
    *("repo", "error", "task", "phase", "open_file", "last_action", "last_outcome"),
    *("repo_summary", "tool", "instance"),
)
OF_OPERATIONS = {name: function for name, function in FUNCTIONS.items() if function.operation}
STDIN, SCREEN = "also of standard input", "what people see"
DECISION = "is what the name of the command says"
FOLDER = "the repository of the current folder, where none is named"
# Options of commands that are not as the arguments of their operations, and why.
DIFFERENT = {
    "query state": "each field is an option, and states come from files, too",
    "query exclude_instances": "of each state its own",
    **{f"query {name}": "--no-record says so" for name in ("record", "no_record")},
    "query max_tokens": "agents pay for tokens; people read the first lines",
    **{f"query {name}": "a field of the state" for name in STATE},
    **{f"query {name}": STDIN for name in ("source", "batch")},
    **{f"query {name}": SCREEN for name in ("details", "why")},
    "query workdir": "a folder of this machine",
    "report helped": "one of two options must be given",
    **{f"{name} decision": DECISION for name in ("quarantine", "release")},
    **{f"stats {name}": SCREEN for name in ("top", "details", "people", "plot")},
    "remember content": STDIN,
    "remember source": "a service takes it from the token",
    "set json_content": STDIN,
    "set source": "a service takes it from the token",
    "set isolate": "a service refuses what has no complete source",
    "decisions repo": "an argument, as its command of 0.1 had it",
    **{f"decisions {name}": "also decides" for name in ("accept", "reject", "edit", "text")},
    "decisions propose": "a file of this machine",
    "playbook repo": FOLDER,
    "playbook workdir": "a folder of this machine",
    "how repo": FOLDER,
    "friction limit": "--top was its name in 0.1",
    "recall question": "not needed with --saved, and asks nothing else",
    "recall limit": "fewer fit a screen than a page of a service",
    "recall saved": "a file of this machine",
    "recall archived": "is of a list, which `notes` shows",
}
# Operations without a command of the same arguments, and why.
WITHOUT_COMMAND = {
    "loops": "the command reads runs of files",
    "query_memory": "a contract of agents",
    "sources": "takes nothing; the command also decides",
    "trajectories methodologies": "pages of a client; `runs` selects by time, agent and outcome",
    "trajectory methodology": "`explain` shows people where an answer comes from",
    "forget forget_note retire": "by id; commands name many in other ways, and ask first",
    "start before prompt observe check_submit": "of a live run",
}
HEAVY = ("click", "contextgraph.memory", "contextgraph.model", "networkx", "numpy", "rich")


@pytest.mark.parametrize("command", COMMANDS)
def test_the_help_of_every_command_has_an_example_of_it(command: str) -> None:
    result = contextgraph(*command.split(), "--help")

    assert result.code == 0
    assert max(map(len, result.out.splitlines())) <= 80
    assert re.search(rf"Example:\n(.*\n)*? .*contextgraph {command}", result.out)


def test_each_operation_has_a_command_or_a_reason() -> None:
    used = {function.operation for function in OF_OPERATIONS.values()}

    assert sorted([*used, *" ".join(WITHOUT_COMMAND).split()]) == sorted(REQUESTS)


@pytest.mark.parametrize("command", OF_OPERATIONS)
def test_options_are_the_arguments_of_the_operation(command: str) -> None:
    function = OF_OPERATIONS[command]
    arguments = REQUESTS[function.operation].arguments()
    offered = {name: of_operation(one) for name, one in arguments.items()}
    taken = function.own()

    different = {
        name for name in offered.keys() | taken.keys() if offered.get(name) != taken.get(name)
    }

    stated = (name.split() for name in DIFFERENT)
    assert different == {name for of, name in stated if of == command}


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


@pytest.mark.parametrize("typed", [("qurey",), ("note", "qurey")])
def test_a_misspelt_command_is_answered_with_the_nearest(typed: tuple[str, ...]) -> None:
    result = contextgraph(*typed)

    assert result.code == 2
    assert ("Did you mean 'query'?" in result.err) is (len(typed) == 1)


def test_the_help_shows_at_most_twelve_commands_in_sections() -> None:
    shown = [name for section in SECTIONS.values() for name in section]
    result = contextgraph("--help")

    assert len(shown) <= 12
    assert all(f"{section}:\n" in result.out for section in SECTIONS)
    assert all(f"\n  {name} " in result.out for name in shown)
    assert max(map(len, result.out.splitlines())) <= 80
    assert contextgraph().out.strip() in ("", result.out.strip())


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_is_shown_or_in_a_group_that_is(command: str) -> None:
    shown = {name for section in SECTIONS.values() for name in section}
    gathered = {of for group in GATHERED.values() for of in group.values()}

    assert {command, command.split(maxsplit=1)[0]} & (shown | gathered)


@pytest.mark.parametrize(
    ("group", "command"), [(group, name) for group, names in GATHERED.items() for name in names]
)
def test_a_command_of_a_group_is_the_one_of_its_name(group: str, command: str) -> None:
    named = contextgraph(*GATHERED[group][command].split(), "--help")
    gathered = contextgraph(group, command, "--help")

    assert gathered.code == 0
    assert gathered.out.splitlines()[2:] == named.out.splitlines()[2:]


def test_the_summaries_of_the_help_are_those_of_the_commands() -> None:
    for summary, name in (
        (text, name) for part in SECTIONS.values() for name, text in part.items()
    ):
        listed = contextgraph(name, "--help").out.splitlines()
        assert name in GATHERED or listed[2].strip() == summary


@pytest.mark.parametrize(
    "group", ["admin", "config", "entities", "experiment", "mcp", "note", "notes", "pages", "token"]
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


@pytest.mark.parametrize("command", [["--help"], ["config", "show"]])
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
    assert "_CONTEXTGRAPH_COMPLETE" in contextgraph("completion", shell).out
    monkeypatch.setenv("COMP_WORDS", "contextgraph rec")
    monkeypatch.setenv("COMP_CWORD", "1" if shell != "fish" else "rec")
    monkeypatch.setenv("_CONTEXTGRAPH_COMPLETE", f"{shell}_complete")
    assert "receipt" in contextgraph("rec").out

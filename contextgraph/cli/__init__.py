"""The command line: parse, call one method of `AgentMemory`, print.

A command is imported when it is called or its help is shown; the help of the whole needs none.
"""

import os
import sys
from collections.abc import Mapping, Sequence

# The commands of the help, by section; those of the last are in `help all`.
_ALL = "More"
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Use": {
        "setup": "Find the histories on this machine, learn them, connect agents.",
        "learn": "Learn finished runs.",
        "query": "Show what the memory knows for a task, an error or a question.",
        "search": "Search all that was said, lessons, notes, pages and remedies.",
        "sessions": "List the sessions in the memory, the newest first, and open one.",
        "last": "Show the last session of a repository: where you were.",
        "why": "Show which sessions changed a file or wrote a line of it, and why.",
    },
    "Review": {
        "lessons": "Show and review what a colleague would have to know.",
        "receipt": "Show what advice was given, and what became of it.",
        "stats": "Show what costs most, what is known, and how runs fail.",
        "view": "Open the console of the memory in a browser.",
    },
    "Connect": {
        "integrations": "Connect coding agents to the memory.",
        "team": "Share lessons in a repository, one file each.",
    },
    "Prove": {
        "evaluate": "Measure the advice of a memory on recorded runs.",
        "check": "Check a change against what is known.",
        "doctor": "Check the memory and the installation, and suggest fixes. Changes nothing.",
    },
    _ALL: {
        "call": "Call an operation of the memory and print its JSON.",
        "distil": "Let a language model write down the lessons of finished sessions.",
        "trust": "Let a folder set everything, and take over its lessons.",
        "inspect": "Show how runs are read: phases, errors, loops, recoveries.",
        "runs": "List the runs in the memory, the newest first.",
        "export": "Write a memory, its graph or its runs to a file.",
        "import": "Add what `export` wrote, or the rules in a file as notes.",
        "backup": "Copy a memory file while others may use it.",
        "forget": "Remove runs and everything that only they support.",
        "serve": "Serve the memory over HTTP.",
        "mcp": "Serve the memory to agents over MCP.",
        "hook": "Answer an agent's hook event.",
    },
}
# Name of a command -> its module and function.
HOMES: Mapping[str, str] = {
    "setup": "installation:setup",
    "learn": "learn:learn",
    "query": "query:query",
    "search": "notes:search",
    "last": "last:last",
    "why": "why:why",
    "lessons": "lessons:lessons",
    "receipt": "stats:receipt",
    "stats": "stats:stats",
    "view": "service:view",
    "integrations": "installation:integrations",
    "serve": "service:serve",
    "trust": "installation:trust",
    "evaluate": "evaluate:evaluate",
    "check": "check:check",
    "doctor": "installation:doctor",
    "call": "call:call",
    "distil": "distil:distil",
    "team": "team:team",
    "inspect": "runs:inspect",
    "sessions": "runs:sessions",
    "runs": "runs:runs",
    "export": "maintenance:export",
    "import": "maintenance:import_",
    "backup": "maintenance:backup",
    "forget": "maintenance:forget",
    "mcp": "service:mcp",
    "hook": "installation:hook",
}

_ABOUT = "The long-term memory of coding agents: learns from finished runs, advises the next one."
_CODES = """\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 partly done (some inputs
failed, each reported), 4 store unavailable, 5 another process holds the
lease, 130 interrupted."""


def help_text(*, everything: bool = False) -> str:
    """Return the help of the command line; *everything*: of all commands."""
    sections = {name: SECTIONS[name] for name in SECTIONS if everything or name != _ALL}
    width = max(len(name) for commands in sections.values() for name in commands)
    lines = ["Usage: contextgraph [OPTIONS] COMMAND [ARGS]...", "", *_wrapped(_ABOUT), ""]
    for section, commands in sections.items():
        lines.append(f"{section}:")
        lines += [f"  {name:<{width}}  {summary}" for name, summary in commands.items()]
    if not everything:
        lines += ["", "contextgraph help all        all commands"]
        lines += ["contextgraph call --list     all operations, which print JSON"]
    lines += ["", "Options:", "  -V, --version  Print the version.", "  -h, --help     Print this."]
    return "\n".join([*lines, "", _CODES])


def _wrapped(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if len(lines[-1]) + len(word) > 78:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _run(arguments: Sequence[str]) -> int:
    from contextgraph.cli.commands import run

    return run(arguments)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line, on *arguments* or those of the process.

    Always raises `SystemExit`: 0 done, 1 failed, 2 wrong usage, 3 partly done, 4 store
    unavailable, 5 another process holds the lease, 130 interrupted.
    """
    given = sys.argv[1:] if arguments is None else [*arguments]
    if not given and sys.stdin.isatty() and sys.stdout.isatty():
        given = ["setup"]
    if given[:1] == ["help"] and len(given) == 2 and given[1] != "all":
        given = [given[1], "--help"]
    code = 0
    try:
        if not given:
            print("contextgraph: without a terminal, setup needs: setup --yes", file=sys.stderr)
        if given in (["-h"], ["--help"], ["help"], ["help", "all"]):
            print(help_text(everything="all" in given))
        else:
            code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has exited; Python would report that again at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.filename is None:
            raise
        from contextgraph.cli.output import warn

        # A file that was named, or a folder of the user, may not be read or written.
        warn(f"{os.fsdecode(error.filename)}: {error.strerror}")
        code = 1
    sys.exit(code)

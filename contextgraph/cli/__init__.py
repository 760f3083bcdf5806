"""The command line: parse, call one method of `AgentMemory`, print.

A command is imported when it is called or its help is shown; the help of the whole needs none.
"""

import os
import sys
from collections.abc import Mapping, Sequence

# The commands of the help, by section.
SECTIONS: Mapping[str, Mapping[str, str]] = {
    "Use": {
        "setup": "Find the histories on this machine, learn them, connect agents.",
        "learn": "Learn finished runs.",
        "query": "Show what the memory knows for a task or an error.",
    },
    "Look": {
        "search": "Search past sessions, decisions, notes and remedies.",
        "stats": "Show what costs most, what is known, and how runs fail.",
        "receipt": "Show what advice was given, and what became of it.",
        "view": "Open the console of the memory in a browser.",
    },
    "Connect": {
        "integrations": "Connect coding agents to the memory.",
        "serve": "Serve the memory over HTTP.",
    },
    "Prove": {
        "evaluate": "Measure the advice of a memory on recorded runs.",
    },
    "More": {
        "note": "Notes and decisions: remember, recall, list, pages, keyed files.",
        "admin": "All other commands: check, repair, copy, remove, explain.",
    },
}
# Name of a command -> its module and function; of a group those of its commands, with "" for what
# it does by itself.
HOMES: Mapping[str, str | Mapping[str, str]] = {
    "setup": "installation:setup",
    "learn": "learn:learn",
    "query": "query:query",
    "report": "runs:report",
    "playbook": "runs:playbook",
    "how": "runs:how",
    "inspect": "runs:inspect",
    "loops": "runs:loops",
    "replay": "evaluate:replay",
    "evaluate": "evaluate:evaluate",
    "runs": "runs:runs",
    "outcome": "runs:outcome",
    "stats": "stats:stats",
    "friction": "stats:friction",
    "explain": "stats:explain",
    "receipt": "stats:receipt",
    "quarantine": "runs:quarantine",
    "release": "runs:release",
    "sources": "runs:sources",
    "formats": "runs:formats",
    "doctor": "installation:doctor",
    "remember": "notes:remember",
    "recall": "notes:recall",
    "search": "notes:search",
    "decisions": "notes:decisions",
    "snapshot": "notes:snapshot",
    "maintain": "notes:maintain",
    "set": "notes:set_",
    "brief": "notes:brief",
    "compact": "maintenance:compact",
    "consolidate": "maintenance:consolidate",
    "reembed": "maintenance:reembed",
    "rebuild": "maintenance:rebuild",
    "migrate": "maintenance:migrate",
    "forget": "maintenance:forget",
    "export": "maintenance:export",
    "import": "maintenance:import_",
    "backup": "maintenance:backup",
    "integrations": "installation:integrations",
    "hook": "installation:hook",
    "trust": "installation:trust",
    "completion": "installation:completion",
    "serve": "service:serve",
    "view": "service:view",
    "config": {"show": "installation:show"},
    "experiment": {"run": "evaluate:run", "report": "evaluate:report"},
    "mcp": {"": "service:mcp", "config": "service:config"},
    "notes": {
        "": "notes:notes",
        "prune": "notes:prune",
        "reset": "notes:reset",
        "review": "notes:review",
    },
    "token": {"create": "service:create", "list": "service:list_", "revoke": "service:revoke"},
    "pages": {
        "put": "notes:put",
        "get": "notes:get",
        "list": "notes:list_",
        "search": "notes:search_pages",
        "remove": "notes:remove",
    },
    "entities": {
        "add": "notes:add",
        "fill": "notes:fill",
        "link": "notes:link",
        "related": "notes:related",
        "find": "notes:find",
        "tags": "notes:tags",
        "remove": "notes:remove_entity",
    },
}
_NOTE = {
    "decisions": "decisions",
    "remember": "remember",
    "recall": "recall",
    "list": "notes",
    "review": "notes review",
    "snapshot": "snapshot",
    "maintain": "maintain",
    "pages": "pages",
    "entities": "entities",
    "set": "set",
    "brief": "brief",
    "compact": "compact",
}
_SHOWN = {name for section in SECTIONS.values() for name in section}
_ADMIN = {
    name: name for name in HOMES if name not in _SHOWN and name not in (*_NOTE.values(), "notes")
}
# The groups of the help, and the command that each of their names stands for.
GATHERED: Mapping[str, Mapping[str, str]] = {"note": _NOTE, "admin": _ADMIN}

_ABOUT = "The long-term memory of coding agents: learns from finished runs, advises the next one."
_CODES = """\
Exit codes: 0 done, 1 failed, 2 wrong usage, 3 partly done (some inputs
failed, each reported), 4 store unavailable, 5 another process holds the
lease, 130 interrupted."""


def help_text() -> str:
    """Return the help of the whole command line."""
    width = max(map(len, _SHOWN))
    lines = ["Usage: contextgraph [OPTIONS] COMMAND [ARGS]...", "", *_wrapped(_ABOUT), ""]
    for section, commands in SECTIONS.items():
        lines.append(f"{section}:")
        lines += [f"  {name:<{width}}  {summary}" for name, summary in commands.items()]
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
    code = 0
    try:
        if given in (["-h"], ["--help"]):
            print(help_text())
        else:
            code = _run(given)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader (head, less) has exited; Python would report that again at shutdown.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    sys.exit(code)

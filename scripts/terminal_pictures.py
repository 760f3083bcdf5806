"""Draw docs/pictures/: first_minute.svg, search.svg, last.svg and claude_code.svg.

They are what a person sees in a terminal, captured by tmux from the programs themselves, in a home
made for it; only the model of Claude Code is scripted. Run it in the environment of the project,
with tmux, and for the last one the program of Claude Code:
`.venv/bin/python -m scripts.terminal_pictures [CLAUDE]`.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rich.console import Console
from rich.text import Text

from tests.builders import NO_MODULE
from tests.model_server import Body, Handler, Reply, serving

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
KEY = "scripted-key-0123456789abcdef"
COLUMNS, ROWS = 96, 32
TITLES = ("Totals are wrong", "Discounts are applied twice", "The cart forgets its currency")
STEPS = (
    ("python3 reproduce.py", f"Exit code 1\n{NO_MODULE}", True),
    ("ls lib", "tariffs.py", False),
    ("PYTHONPATH=lib python3 reproduce.py", "total: 12", False),
    ("python -m pytest tests", "Exit code 1\n/usr/bin/python: No module named pytest", True),
    ("python tests/runtests.py", "Ran 4 tests in 0.1s\n\nOK", False),
)
# A session in which people talk: what was said, and what the agent did before it went on.
TALK: Sequence[tuple[str, Any]] = (
    ("user", "The importer is slow. Can we send all rows at once?"),
    ("call", ("grep -n 500 lib/importer.py", "12:    for batch in batches(rows, 500):", False)),
    ("assistant", "No: the bank refuses more than 500 rows in one request."),
    ("user", "Then we keep batches of 500 rows, and send two at the same time."),
    ("edit", "lib/importer.py"),
    ("call", ("python tests/runtests.py", "Ran 5 tests in 0.2s\n\nOK", False)),
    ("assistant", "Two batches of 500 rows are sent at the same time now.\n\nNext: do refunds so."),
)
ASKED = ("python3 -c 'import tariffs'", "PYTHONPATH=lib python3 -c 'import tariffs'")


def main(claude: str = "", pictures: Path = PICTURES) -> None:
    """Draw them into the folder *pictures*; that of Claude Code with its program *claude*."""
    # A session that ended may still be writing.
    with TemporaryDirectory(prefix="contextgraph-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        fill(home)
        if claude:
            (home / "bin" / "claude").symlink_to(Path(claude).absolute())
        requests: list[Body] = []

        def reply(_: int, handler: Handler) -> Reply:
            requests.append(handler.state.requests[-1])
            return answer(requests)

        with serving(fault=reply) as server:
            terminal = Terminal(home, server.url.removesuffix("/v1"), pictures)
            try:
                first_minute(terminal, has_client=bool(claude))
                search_and_last(terminal)
                if claude:
                    claude_code(terminal)
            finally:
                terminal.tmux("kill-server")


def fill(home: Path) -> None:
    """Write a checkout, sessions of Claude Code about it, and its settings."""
    shop = home / "shop"
    (shop / "lib").mkdir(parents=True)
    (shop / "lib" / "tariffs.py").touch()
    for command in (["init", "-q"], ["remote", "add", "origin", "git@github.com:acme/shop.git"]):
        subprocess.run(["git", "-C", shop, *command], check=True)
    logs = home / ".claude" / "projects" / "shop"
    logs.mkdir(parents=True)
    begun = datetime.now(UTC) - timedelta(days=4)
    for number, turns in enumerate([*map(turns_of, TITLES), talk()]):
        rows = [row for turn in turns for row in turn]
        session = f"5e5500{number:02}-0000-4000-8000-000000000000"
        common = {"cwd": str(shop), "sessionId": session, "version": "2.1.328"}
        times = (begun + timedelta(days=number, seconds=40 * at) for at in count())
        lines = (
            {**common, "uuid": f"{number}-{at}", "timestamp": f"{time:%Y-%m-%dT%H:%M:%S.000Z}"}
            | row
            for at, (row, time) in enumerate(zip(rows, times, strict=False))
        )
        (logs / f"{session}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    known = {str(shop): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}
    keys = {"approved": [KEY[-20:]], "rejected": []}
    settings = {"hasCompletedOnboarding": True, "customApiKeyResponses": keys, "projects": known}
    (home / ".claude.json").write_text(json.dumps(settings))
    (home / "bin").mkdir()
    program = home / "bin" / "contextgraph"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m contextgraph "$@"\n')
    program.chmod(0o755)


def turns_of(title: str) -> list[list[dict[str, object]]]:
    """The lines of one session: the request, then each call with its result."""
    calls = (
        called(number, "Bash", {"command": one[0]}, *one[1:]) for number, one in enumerate(STEPS)
    )
    return [[row("user", title)], *calls]


def talk() -> list[list[dict[str, object]]]:
    """The lines of the session in which people talk."""
    lines: list[list[dict[str, object]]] = []
    for number, (kind, content) in enumerate(TALK):
        if kind == "call":
            command, output, failed = content
            lines.append(called(number, "Bash", {"command": command}, str(output), failed))
        elif kind == "edit":
            change = {"file_path": content, "old_string": "for batch", "new_string": "for two"}
            lines.append(called(number, "Edit", change, "updated", failed=False))
        else:
            said = content if kind == "user" else [{"type": "text", "text": content}]
            lines.append([row(kind, said)])
    return lines


def called(
    number: int, tool: str, given: object, output: str, failed: bool
) -> list[dict[str, object]]:
    """The lines of a call and of its result."""
    call = {"type": "tool_use", "id": f"t{number}", "name": tool, "input": given}
    result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
    return [row("assistant", [call]), row("user", [{**result, "is_error": failed}])]


def row(role: str, content: object) -> dict[str, object]:
    """A line of a log."""
    return {"type": role, "message": {"role": role, "content": content}}


def answer(requests: Sequence[Body]) -> Reply:
    """Return the scripted answer to the last request; requests for a title have no tools."""
    from tests.acceptance.test_terminal_agents import message  # which draws with this

    *earlier, last = requests
    turn = sum(bool(one.get("tools")) for one in earlier)
    return message(ASKED[turn] if last.get("tools") and turn < len(ASKED) else None)


class Terminal:
    """A shell in tmux, in the checkout below *home*."""

    def __init__(self, home: Path, model: str, pictures: Path) -> None:
        self._home, self._pictures = str(home), pictures
        environment = {
            "HOME": home,
            "PATH": f"{home}/bin:{os.environ['PATH']}",
            "PYTHONPATH": Path(__file__).parents[1],
            "LANG": "C.UTF-8",
            "TERM": "xterm-256color",
            "PS1": "$ ",
            "ANTHROPIC_API_KEY": KEY,
            "ANTHROPIC_BASE_URL": model,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
        shell = ["env", "-i", *(f"{name}={value}" for name, value in environment.items())]
        size = ("-x", str(COLUMNS), "-y", str(ROWS), "-c", str(home / "shop"))
        self.tmux("new-session", "-d", *size, *shell, "bash", "--norc", "--noprofile")

    def tmux(self, *arguments: str) -> str:
        """Run tmux with a server of its own."""
        command = ["tmux", "-L", f"contextgraph-{os.getpid()}", "-f", "/dev/null", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    def type(self, text: str, *, until: str) -> None:
        """Type a line, and wait *until* this is on the screen."""
        self.tmux("send-keys", text)
        time.sleep(1)
        self.tmux("send-keys", "Enter")
        end = time.monotonic() + 60
        while until not in self.tmux("capture-pane", "-p"):
            if time.monotonic() > end:
                raise SystemExit(f"{until!r} did not appear:\n{self.tmux('capture-pane', '-p')}")
            time.sleep(0.2)

    def draw(self, name: str, title: str) -> None:
        """Write what is on the screen as a picture."""
        time.sleep(3)  # hooks of a turn that ended
        screen = self.tmux("capture-pane", "-e", "-p").rstrip()
        home = "\n?".join(map(re.escape, self._home))  # which a line may end in
        screen = re.sub(home, "~", screen)
        console = Console(record=True, width=COLUMNS, file=StringIO())
        console.print(Text.from_ansi(screen), no_wrap=True)
        drawn = console.export_svg(title=title)
        # Without the fonts that a reader would load from elsewhere.
        text = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
        (self._pictures / name).write_text(text)


def first_minute(terminal: Terminal, *, has_client: bool) -> None:
    """The first minute: from nothing to a memory that advises; a client is also given tools."""
    terminal.type("contextgraph", until="[Y/n]")
    terminal.type("y", until="Advise claude-code")
    if has_client:
        terminal.type("y", until="Give claude-code")
    terminal.type(
        "n" if has_client else "y", until="Make them?"
    )  # the local model is a part of the environment
    terminal.type("n", until="Try:")
    terminal.draw("first_minute.svg", "contextgraph")


def search_and_last(terminal: Terminal) -> None:
    """A search, which asks what to open, and where the last session was left."""
    terminal.type(
        'clear; contextgraph search "what did we decide about the rows of a batch"',
        until="Enter: none",
    )
    terminal.draw("search.svg", "contextgraph search")
    terminal.type("", until="\n$")
    terminal.type("clear; contextgraph last", until="said ")
    terminal.draw("last.svg", "contextgraph last")


def claude_code(terminal: Terminal) -> None:
    """A session that meets an error of earlier ones."""
    start = "clear; claude --permission-mode default --allowedTools Bash"
    terminal.type(start, until="SessionStart:startup says")
    terminal.type("Coupons are wrong", until="done")
    terminal.draw("claude_code.svg", "Claude Code")


if __name__ == "__main__":
    main(sys.argv[1] if sys.argv[1:] else "")

"""Draw docs/pictures/first_minute.svg and claude_code.svg: what a person sees in a terminal.

Both are captured by tmux from the programs themselves, in a home made for it; only the model of
Claude Code is scripted. Run it in the environment of the project, with tmux and the program of
Claude Code: `.venv/bin/python -m scripts.terminal_pictures CLAUDE`.
"""

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

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
ASKED = ("python3 -c 'import tariffs'", "PYTHONPATH=lib python3 -c 'import tariffs'")


def main(claude: str, pictures: Path = PICTURES) -> None:
    """Draw both into the folder *pictures*."""
    # A session that ended may still be writing.
    with TemporaryDirectory(prefix="contextgraph-", ignore_cleanup_errors=True) as folder:
        home = Path(folder)
        fill(home, Path(claude).absolute())
        requests: list[Body] = []

        def reply(_: int, handler: Handler) -> Reply:
            requests.append(handler.state.requests[-1])
            return answer(requests)

        with serving(fault=reply) as server:
            terminal = Terminal(home, server.url.removesuffix("/v1"), pictures)
            try:
                first_minute(terminal)
                claude_code(terminal)
            finally:
                terminal.tmux("kill-server")


def fill(home: Path, claude: Path) -> None:
    """Write a checkout, sessions of Claude Code about it, and its settings."""
    shop = home / "shop"
    (shop / "lib").mkdir(parents=True)
    (shop / "lib" / "tariffs.py").touch()
    for command in (["init", "-q"], ["remote", "add", "origin", "git@github.com:acme/shop.git"]):
        subprocess.run(["git", "-C", shop, *command], check=True)
    logs = home / ".claude" / "projects" / "shop"
    logs.mkdir(parents=True)
    for number, title in enumerate(TITLES):
        rows = [row for turn in turns(title) for row in turn]
        common = {"cwd": str(shop), "sessionId": f"session-{number}", "version": "2.1.328"}
        lines = ({**common, "uuid": f"{number}-{at}", **row} for at, row in enumerate(rows))
        (logs / f"{number}.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    known = {str(shop): {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}}
    keys = {"approved": [KEY[-20:]], "rejected": []}
    settings = {"hasCompletedOnboarding": True, "customApiKeyResponses": keys, "projects": known}
    (home / ".claude.json").write_text(json.dumps(settings))
    (home / "bin").mkdir()
    (home / "bin" / "claude").symlink_to(claude)
    program = home / "bin" / "contextgraph"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m contextgraph "$@"\n')
    program.chmod(0o755)


def turns(title: str) -> list[list[dict[str, object]]]:
    """The lines of one session: the request, then each call with its result."""
    lines: list[list[dict[str, object]]] = [[row("user", title)]]
    for number, (command, output, failed) in enumerate(STEPS):
        call = {"type": "tool_use", "id": f"t{number}", "name": "Bash"}
        result = {"type": "tool_result", "tool_use_id": f"t{number}", "content": output}
        lines.append(
            [
                row("assistant", [{**call, "input": {"command": command}}]),
                row("user", [{**result, "is_error": failed}]),
            ]
        )
    return lines


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
        screen = self.tmux("capture-pane", "-e", "-p").rstrip().replace(self._home, "~")
        console = Console(record=True, width=COLUMNS, file=StringIO())
        console.print(Text.from_ansi(screen), no_wrap=True)
        drawn = console.export_svg(title=title)
        # Without the fonts that a reader would load from elsewhere.
        text = re.sub(r"@font-face \{.*?\}\s*", "", drawn, flags=re.DOTALL)
        (self._pictures / name).write_text(text)


def first_minute(terminal: Terminal) -> None:
    """The first minute: from nothing to a memory that advises."""
    terminal.type("contextgraph", until="[Y/n]")
    terminal.type("y", until="Advise claude-code")
    terminal.type("y", until="Give claude-code")
    terminal.type("n", until="Make them?")  # the local model is a part of the environment
    terminal.type("n", until="Try:")
    terminal.draw("first_minute.svg", "contextgraph")


def claude_code(terminal: Terminal) -> None:
    """A session that meets an error of earlier ones."""
    start = "clear; claude --permission-mode default --allowedTools Bash"
    terminal.type(start, until="SessionStart:startup says")
    terminal.type("Coupons are wrong", until="done")
    terminal.draw("claude_code.svg", "Claude Code")


if __name__ == "__main__":
    main(sys.argv[1])

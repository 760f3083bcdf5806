"""How a session is opened again: in the client of this machine that keeps it."""

from collections.abc import Mapping
from pathlib import Path
from shlex import join, quote
from shutil import which

from msgspec import Struct

from contextgraph.model import Trajectory
from contextgraph.readers.reading import is_kept
from contextgraph.text import regex

# The command of each agent, before the id of a session.
_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "claude-code": ("claude", "--resume"),
    "codex-cli": ("codex", "resume"),
    "copilot-cli": ("copilot", "--resume"),
    "gemini-cli": ("gemini", "--resume"),
    "goose": ("goose", "session", "--resume", "--session-id"),
    "opencode": ("opencode", "--session"),
    "qwen-code": ("qwen", "--resume"),
}
# Logs are written by anybody: an id that begins with a dash would be an option.
_ID = regex(r"\w[\w-]{7,63}")


class Resumption(Struct, frozen=True):
    """The *program*, with its arguments, that opens a session in its client, in its *folder*."""

    program: tuple[str, ...]
    folder: str

    @property
    def command(self) -> str:
        """One line for a shell that does so."""
        there = f"cd {quote(self.folder)} && " if self.folder else ""
        return f"{there}{join(self.program)}"


def resumption_of(run: Trajectory) -> Resumption | None:
    """Return how the session of *run* goes on in its client on this machine.

    None where the client has no such command, is not here or does not keep the session, where its
    folder is gone, or where another person supplied it.
    """
    command = _COMMANDS.get(run.agent, ())
    if (
        not command
        or run.contributor
        or not _ID.fullmatch(run.session)
        or which(command[0]) is None
        or not Path(run.folder or ".").is_dir()
        or not is_kept(run.source_format, run.source)
    ):
        return None
    return Resumption((*command, run.session), run.folder)


def resume_command(run: Trajectory) -> str:
    """Return the command line of `resumption_of`; empty where there is none."""
    found = resumption_of(run)
    return found.command if found else ""

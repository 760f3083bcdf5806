"""The commands by which clients of agents open a session again."""

from collections.abc import Mapping
from shlex import join

from contextgraph.model import RawTrajectory
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


def resume_arguments(raw: RawTrajectory) -> tuple[str, ...]:
    """Return the program and arguments that open the session of *raw* in its client.

    Empty where the client has no such command, or the session is none of its own.
    """
    command = _COMMANDS.get(raw.agent, ())
    if not command or raw.origin or not _ID.fullmatch(raw.session):
        return ()
    return (*command, raw.session)


def resume_command(raw: RawTrajectory) -> str:
    """Return the command line of `resume_arguments`; empty where there is none."""
    return join(resume_arguments(raw))

"""The commands by which clients of agents open a session again."""

from collections.abc import Mapping
from shlex import join

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


def resume_arguments(agent: str, session: str, supplier: str = "") -> tuple[str, ...]:
    """Return the program and arguments that open a *session* of *agent* in its client.

    Empty where the client has no such command, or a *supplier* gave the session: it is not here.
    """
    command = _COMMANDS.get(agent, ())
    if not command or supplier or not _ID.fullmatch(session):
        return ()
    return (*command, session)


def resume_command(agent: str, session: str, supplier: str = "") -> str:
    """Return the command line of `resume_arguments`; empty where there is none."""
    return join(resume_arguments(agent, session, supplier))

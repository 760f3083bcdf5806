"""Language models that answer a text with a text: programs of the user, and servers."""

import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from tempfile import TemporaryDirectory, TemporaryFile
from typing import IO, TYPE_CHECKING, Protocol

from msgspec import Struct

from contextgraph.config import RUNNING_AGENT, data_folder
from contextgraph.errors import RemoteError, SettingsError
from contextgraph.inference.chat import MAKER, Chat
from contextgraph.model import Usage
from contextgraph.system.processes import ASKED
from contextgraph.text import clip, count_tokens, mask_secrets

if TYPE_CHECKING:
    from pydantic import BaseModel


class Program(Struct, frozen=True):
    """A *command* that reads standard input, with additions to the *environment*.

    There ``{settings}`` stands for the name of a file with these *settings*.
    """

    command: str
    environment: Mapping[str, str] = {}
    settings: str = ""


PROGRAMS = {
    # Without tools, servers of tools, instructions of the person, and a log of its own.
    "claude": Program(
        "claude -p --tools '' --strict-mcp-config --no-session-persistence",
        {"CLAUDE_CODE_SAFE_MODE": "1"},
    ),
    # Its settings name servers of tools, which no option turns off, and the model.
    "codex": Program(
        "codex exec --ephemeral --skip-git-repo-check --sandbox read-only --ignore-user-config "
        "-c features.shell_tool=false -c features.multi_agent=false -c features.view_image=false "
        "-c features.goals=false -c features.apps=false -c web_search=disabled -"
    ),
    # Its settings for the machine have the last word.
    "gemini": Program(
        "gemini --extensions none --allowed-mcp-server-names none",
        {"GEMINI_CLI_SYSTEM_SETTINGS_PATH": "{settings}"},
        '{"tools": {"core": []}, "hooksConfig": {"enabled": false}, '
        '"security": {"folderTrust": {"enabled": false}}}',
    ),
    "opencode": Program(
        "opencode run --title lessons",  # no request for a title
        {
            "OPENCODE_CONFIG_CONTENT": '{"permission": {"*": "deny"}, "share": "disabled"}',
            "OPENCODE_DISABLE_CLAUDE_CODE": "1",
            "OPENCODE_PURE": "1",  # no plug-ins
        },
    ),
}
"""The programs that are chosen by name.

gemini and opencode have no switch for their logs, they and codex none for the person's own file of
context.
"""

_SECONDS = 300.0
_MAX_ANSWER = 1 << 20
_MAX_REASON = 300


class Answered(Struct, frozen=True):
    """An answer, and what was used for it; of a program about so many tokens, without a price."""

    text: str
    usage: Usage


class Answerer(Protocol):
    """Answers a text; *name* is that by which it is chosen."""

    @property
    def name(self) -> str: ...

    def __call__(
        self, text: str, form: "type[BaseModel] | None" = None, *, interactive: bool = False
    ) -> Answered:
        """Return the answer to *text*, in *form* where it can be asked for.

        Raises `RemoteError` where there is none; *interactive*, while a process waits, sooner.
        """

    def cost(self, sent: int, answered: int) -> float:
        """Return the price of so many tokens in US dollars; 0 where it is unknown."""


class ModelAnswerer(Struct, frozen=True):
    """The model behind *chat*."""

    chat: Chat

    @property
    def name(self) -> str:
        """The model."""
        return self.chat.model.full_name

    def __call__(
        self, text: str, form: "type[BaseModel] | None" = None, *, interactive: bool = False
    ) -> Answered:
        """Return the answer of the model; raise `RemoteError` where it fails."""
        return Answered(*self.chat.complete(text, form, interactive=interactive))

    def cost(self, sent: int, answered: int) -> float:
        """Return the price of so many tokens."""
        return self.chat.model.prices.cost(sent, answered)


class ProgramAnswerer(Struct, frozen=True):
    """A program, run by *command* in an empty folder, with the text on its standard input."""

    command: str
    seconds: float = _SECONDS

    @property
    def name(self) -> str:
        """The name of the program."""
        return os.path.basename(next(iter(shlex.split(self.command)), ""))

    def __call__(
        self, text: str, form: "type[BaseModel] | None" = None, *, interactive: bool = False
    ) -> Answered:
        """Return the output of the program; raise `RemoteError` where it fails or is too slow."""
        program = PROGRAMS.get(self.command, Program(self.command))
        with (
            TemporaryDirectory(prefix="contextgraph-") as folder,
            # gemini reads no settings below a folder that others may write, such as /tmp.
            TemporaryDirectory(
                prefix="contextgraph-", dir=_own_folder() if program.settings else None
            ) as private,
            TemporaryFile() as errors,
        ):
            settings = os.path.join(private, "settings.json")
            with open(settings, "w", encoding="utf-8") as file:
                file.write(program.settings)
            added = {
                name: value.replace("{settings}", settings)
                for name, value in program.environment.items()
            }
            try:
                process = subprocess.Popen(
                    shlex.split(program.command),
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    cwd=folder,
                    # Some read the folder that they work in from PWD.
                    env={**os.environ, **added, ASKED: "1", "PWD": folder},
                    start_new_session=True,
                )
            except OSError as error:
                reason = f"{self.name} cannot be run ({error.strerror})"
                remedy = f"name {', '.join(PROGRAMS)}, openai/MODEL or a command that is installed"
                raise RemoteError(f"{reason}; {remedy}") from error
            printed = self._printed(process, text)
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _MAX_ANSWER))
            said = errors.read().decode(errors="replace")
        if process.returncode:
            reason = clip(mask_secrets((said.strip() or printed).strip()), _MAX_REASON, at="end")
            raise RemoteError(f"{self.name} ended with {process.returncode}: {reason}")
        return Answered(printed, Usage(1, count_tokens(text) + count_tokens(printed)))

    def cost(self, sent: int, answered: int) -> float:
        """Return 0: a subscription shows no price."""
        return 0.0

    def _printed(self, process: "subprocess.Popen[bytes]", text: str) -> str:
        """Return the output of *process* for the input *text*; end it and its children."""
        assert process.stdin is not None
        assert process.stdout is not None
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            _kill(process)

        timer = threading.Timer(self.seconds, end)
        writer = threading.Thread(target=_write, args=(process.stdin, text.encode()), daemon=True)
        timer.start()
        writer.start()
        try:
            printed = process.stdout.read(_MAX_ANSWER + 1)
            if len(printed) > _MAX_ANSWER:
                raise RemoteError(f"{self.name} printed more than {_MAX_ANSWER >> 20} MiB")
            process.wait()
        finally:
            timer.cancel()
            _kill(process)
            process.wait()
            writer.join()
            process.stdout.close()
        if is_late.is_set():
            raise RemoteError(f"{self.name}: no answer within {self.seconds:g} s")
        return printed.decode(errors="replace")


def _own_folder() -> str:
    """Return the user's data folder; make it where there is none."""
    folder = data_folder()
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
    except OSError as error:
        reason = f"{folder} cannot be made ({error.strerror})"
        raise RemoteError(f"{reason}; set XDG_DATA_HOME to a folder that can") from error
    return folder


def answerer_of(chosen: str, chat_of: Callable[[str], Chat | None]) -> Answerer:
    """Return the model *chosen*: ``openai/MODEL``, or a program that reads standard input.

    Raises `SettingsError` where none is.
    """
    if chosen in ("", RUNNING_AGENT):
        reason = "the running agent asks by distil_next" if chosen else "no model is chosen"
        raise SettingsError(
            f"{reason}: give --by, or set distil in contextgraph.toml ({', '.join(PROGRAMS)}, "
            "openai/MODEL, or a command that reads standard input); see docs/llm.md"
        )
    if chosen.startswith(f"{MAKER}/"):
        chat = chat_of(chosen)
        assert chat is not None
        return ModelAnswerer(chat)
    return ProgramAnswerer(chosen)


def _write(file: IO[bytes], content: bytes) -> None:
    with suppress(OSError), file:  # a program may end without reading
        file.write(content)


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End *process* and what it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)

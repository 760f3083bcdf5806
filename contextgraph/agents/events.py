"""Events that agents send to their hooks."""

import os
import re
import zlib
from collections.abc import Mapping

from contextgraph.lazy import TYPE_CHECKING, dataclass, regex

if TYPE_CHECKING:
    from typing import Any

    from contextgraph.model import Action, Step


# After compaction or `/clear` the agent no longer knows what it was shown before.
_FORGETTING = ("compact", "clear")
_OUTPUT_KEYS = (
    "stdout", "stderr", "output", "text", "content", "error", "llmContent", "text_result_for_llm"
)  # fmt: skip
# The fields in which agents send what a tool returned.
_RESULT_KEYS = ("tool_response", "tool_output", "tool_result")
# The agents that hooks know, by the names that their logs have when they are read.
HOOKED = (
    "claude-code", "codex-cli", "openhands", "gemini-cli", "cursor", "copilot-cli", "opencode"
)  # fmt: skip
# Names that Gemini CLI gives to events.
# Not its PreCompress: it came between the calls of a short session, where nothing was compressed.
_GEMINI_CLI = {
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
}
# A UUID, or a short name.
_USUAL_ID = regex(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\w{0,15}", re.ASCII)


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event as an agent describes it; what it does not say is empty.

    OpenHands names the event `event_type`, all others `hook_event_name`.
    """

    fields: "Mapping[str, Any]"

    @property
    def name(self) -> str:
        """The name that most agents give it, such as ``SessionStart``."""
        name = self.text("hook_event_name") or self.text("event_type")
        if not name and "agentName" in self.fields:
            return "SubagentStart"  # of Copilot CLI, the only one that it sends without a name
        return _GEMINI_CLI.get(
            name, name[:1].upper() + name[1:]
        )  # Cursor begins with a small letter

    @property
    def agent(self) -> str:
        """The agent, by the name that its logs have when they are read."""
        if "event_type" in self.fields:
            return "openhands"
        if "agent" in self.fields:  # said by the plug-in of opencode
            return self.id("agent")
        if "cursor_version" in self.fields:
            return "cursor"
        if "timestamp" in self.fields:
            return "gemini-cli" if "transcript_path" in self.fields else "copilot-cli"
        # The log of a session is named so by Codex CLI.
        rollout = os.path.basename(self.text("transcript_path")).startswith("rollout-")
        return "codex-cli" if rollout or "turn_id" in self.fields else "claude-code"

    @property
    def cwd(self) -> str:
        """The folder that the agent works in; OpenHands may name it from where the hook runs."""
        roots = self.fields.get("workspace_roots")
        root = roots[0] if isinstance(roots, list) and roots else ""
        path = self.text("cwd") or self.text("working_dir") or root
        return os.path.abspath(path) if isinstance(path, str) and path else ""

    @property
    def session(self) -> str:
        """The id of the session; that of Cursor is a conversation."""
        return self.id("session_id") or self.id("conversation_id") or self.id("sessionId")

    @property
    def log(self) -> str:
        """The file or folder where the agent keeps the session; empty where that is not known."""
        if self.agent == "openhands":
            events = f".openhands/conversations/{self.id('session_id').replace('-', '')}/events"
            path = os.path.join(os.path.expanduser("~"), events)
            return path if os.path.isdir(path) else ""
        return self.text("transcript_path")

    @property
    def forgets(self) -> bool:
        """Whether the agent loses what it was shown before."""
        return self.name == "PreCompact" or self.text("source") in _FORGETTING

    @property
    def prompt(self) -> str:
        """Return what a person wrote; empty for what a program did."""
        from contextgraph.readers.envelopes import said

        return "" if self.text("agent_id") else said(self.text("prompt") or self.text("message"))

    @property
    def folder(self) -> str:
        """A checksum of `cwd`, which may name more than is to be kept."""
        return f"{zlib.crc32(self.cwd.encode(errors='replace')):08x}"

    def text(self, name: str) -> str:
        """The text at *name*."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def id(self, name: str) -> str:
        """The id at *name*; loading the rules of secrets takes longer than most events."""
        value = self.text(name)
        if _USUAL_ID.fullmatch(value):
            return value
        from contextgraph.text import masked_name

        return masked_name(value)

    @property
    def command(self) -> str | None:
        """The shell line of the call that the event is about; None for any other tool."""
        command = self._arguments.get("command")
        return command.strip() if isinstance(command, str) else None

    @property
    def file(self) -> str:
        """The path of the file that the call is to edit; empty for any other tool."""
        named = (self._arguments.get(name) for name in ("file_path", "notebook_path"))
        return next((path for path in named if isinstance(path, str)), "")

    @property
    def _arguments(self) -> "Mapping[str, Any]":
        arguments = self.fields.get("tool_input")
        return arguments if isinstance(arguments, dict) else {}

    def step(self) -> "Step":
        """The step of a run that the event is about, as readers of logs would read it."""
        from contextgraph.model import Step
        from contextgraph.readers.envelopes import output_in
        from contextgraph.readers.format import integer

        failed = self.name == "PostToolUseFailure"
        shown = next(filter(None, map(self.fields.get, _RESULT_KEYS)), None)
        if self.agent == "cursor":
            shown = _result_in(self.text("tool_output"))
        output = output_in(_text_in(self.fields.get("error") if failed else shown))
        code = integer(shown, "exitCode") if isinstance(shown, dict) else None
        return Step(
            0,
            "",
            self._action(),
            output.text,
            exit_code=output.exit_code if code is None else code,
            is_error=failed or None,
        )

    def _action(self) -> "Action":
        from contextgraph.model import Action

        if self.command is not None:
            return Action(self.text("tool_name"), self.command, self._arguments)
        from contextgraph.readers.tool_calls import action_for

        return action_for(self.text("tool_name"), self._arguments)


def _result_in(output: str) -> "str | dict[str, Any]":
    """The object whose JSON Cursor sends as *output*; *output* itself where that is plain text."""
    from contextgraph.readers.format import loads

    if not output.startswith("{"):
        return output
    try:
        result: dict[str, Any] = loads(output)
    except ValueError:
        return output
    return result


def _text_in(value: object) -> str:
    """The text of what a tool returned: a string, or an object that holds it under some name."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text_in, value)))
    if isinstance(value, dict):
        return "\n".join(filter(None, (_text_in(value.get(key)) for key in _OUTPUT_KEYS)))
    return ""

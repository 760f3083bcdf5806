"""``contextgraph hook``: one event of an agent on standard input, advice on standard output.

Imports are made where they are needed: most events end before the error recognisers are loaded.
"""

import json
import os
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeAlias

from contextgraph.config import Settings, load_settings
from contextgraph.integrations.advice import Advice, AdviceFile
from contextgraph.integrations.sessions import HookFiles, HookRecord
from contextgraph.working_tree import WorkingTree

if TYPE_CHECKING:
    from contextgraph.model import Action, Json, Step

# After compaction or `/clear` the agent no longer knows what it was shown at its start.
_FORGETTING = ("compact", "clear")
_OUTPUT_KEYS = ("stdout", "stderr", "output", "text", "content", "error")
# A UUID, or a short name.
_USUAL_ID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\w{0,15}", re.ASCII)
_Output: TypeAlias = dict[str, "Json"]


@dataclass(frozen=True, slots=True)
class HookEvent:
    """One event as an agent describes it; what it does not say is empty.

    Claude Code and Codex CLI name the event `hook_event_name`, OpenHands `event_type`.
    """

    fields: Mapping[str, Any]

    @property
    def name(self) -> str:
        """The name that all agents give it, such as ``SessionStart``."""
        return self.text("hook_event_name") or self.text("event_type")

    @property
    def agent(self) -> str:
        """The agent, by the name that its logs have when they are read."""
        if "event_type" in self.fields:
            return "openhands"
        # The log of a session is named so by Codex CLI.
        rollout = os.path.basename(self.text("transcript_path")).startswith("rollout-")
        return "codex-cli" if rollout or "turn_id" in self.fields else "claude-code"

    @property
    def cwd(self) -> str:
        """The folder that the agent works in; OpenHands may name it from where the hook runs."""
        found = self.text("cwd") or self.text("working_dir")
        return os.path.abspath(found) if found else ""

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
        found = self.text(name)
        if _USUAL_ID.fullmatch(found):
            return found
        from contextgraph.text import masked_name

        return masked_name(found)

    def action(self) -> "Action":
        """The call of a tool that the event is about, as readers of logs would read it."""
        from contextgraph.model import Action

        arguments = self.fields.get("tool_input")
        arguments = arguments if isinstance(arguments, dict) else {}
        command = arguments.get("command")
        if isinstance(command, str):
            return Action(self.text("tool_name"), command.strip(), arguments)
        from contextgraph.readers.tool_calls import action_for

        return action_for(self.text("tool_name"), arguments)

    def step(self) -> "Step":
        """The step of a run that the event is about, with the output of the tool."""
        from contextgraph.model import Step
        from contextgraph.readers.envelopes import output_in

        failed = self.name == "PostToolUseFailure"
        output = output_in(_text_in(self.fields.get("error") if failed else self._response()))
        return Step(
            0,
            "",
            self.action(),
            output.text,
            exit_code=output.exit_code,
            is_error=failed or None,
        )

    def _response(self) -> object:
        return self.fields.get("tool_response") or self.fields.get("tool_output")


def answer(text: str, store: str | None = None, tenant: str | None = None) -> str:
    """What to print for the event that *text* describes; empty where there is nothing to say.

    Never raises: the reason of a failure is appended to a file that ``contextgraph doctor`` names.
    """
    settings = Settings()
    try:
        settings = load_settings(store=store or None, tenant=tenant)
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("the event is not a JSON object")
        output = _Responder(HookEvent(fields), settings).output()
        return json.dumps(output) if output else ""
    except Exception as error:  # noqa: BLE001  (an agent must not stop because of its memory)
        with suppress(OSError):  # nor because of a disk that is full or read-only
            HookFiles(settings).fail(f"{type(error).__name__}: {error}")
        return ""


def main(store: str | None = None, tenant: str | None = None) -> None:
    """Answer the event on standard input."""
    sys.stdout.write(answer(sys.stdin.buffer.read().decode(errors="replace"), store, tenant))


class _Responder:
    """What one event is answered."""

    def __init__(self, event: HookEvent, settings: Settings) -> None:
        self._event = event
        self._files = HookFiles(settings)
        self._withhold = settings.withhold
        self._options = ("--store", settings.address, "--tenant", settings.tenant)

    def output(self) -> _Output:
        """The object to print; empty for nothing."""
        name, has_advice = self._event.name, self._files.advice.exists()
        if name == "SessionEnd" and (transcript := self._event.text("transcript_path")):
            self._files.enqueue(transcript)
        elif name == "SessionStart":
            self._learn_waiting()
        if name in ("SessionStart", "SubagentStart", "UserPromptSubmit") and has_advice:
            # Only with a prompt does OpenHands pass context on.
            is_due = (name == "UserPromptSubmit") == (self._event.agent == "openhands")
            return self._context(self._playbook()) if is_due else {}
        if name in ("PostToolUse", "PostToolUseFailure") and has_advice:
            return self._context(self._at_error())
        return self._warning() if name == "Stop" and has_advice else {}

    def _learn_waiting(self) -> None:
        """Start learning the sessions that ended, in a process of its own."""
        if self._files.waiting():
            program = [sys.executable, "-m", "contextgraph", "learn", "--queued", *self._options]
            nowhere = [(os.POSIX_SPAWN_OPEN, file, os.devnull, os.O_RDWR, 0) for file in range(3)]
            os.posix_spawn(sys.executable, program, os.environ, file_actions=nowhere, setsid=True)

    def _playbook(self) -> str:
        is_forgotten = self._event.text("source") in _FORGETTING
        with self._file() as file:
            advice = file.for_repository(self._repo, self._tree)
        return self._shown(advice, self._record(), again=is_forgotten)

    def _at_error(self) -> str:
        from contextgraph.text import quoted_names
        from contextgraph.trace.errors.signature import recognise

        step = self._event.step()
        error = recognise(
            step.action, step.observation, exit_code=step.exit_code, is_error=step.is_error
        )
        if error is None:
            return ""
        record = replace(
            self._record(),
            family=str(error.family),
            error_type=error.error_type,
            template=error.template,
        )
        if any(record.repeats(one) for one in self._session):
            return self._shown(Advice(""), record)
        with self._file() as file:
            names = quoted_names(error.message)
            advice = file.for_error(error, names, self._repo, self._tree)
            warning = file.for_command(self._repo, partial(_forms, step), self._tree)
        if warning and not any(warning in one.text for one in self._before):
            advice = replace(advice, text=f"{warning}\n{advice.text}".rstrip())
        return self._shown(advice, record)

    def _warning(self) -> _Output:
        """A message to the user alone: to the agent it would be a reason to go on."""
        with self._file() as file:
            warnings = file.submission_warnings()
        earlier = {one.text for one in self._before}
        new = {sign: text for sign, text in warnings.items() if text not in earlier}
        shown = [new[sign] for sign in self._signs() if sign in new] if new else []
        for text in shown:
            self._files.append(replace(self._record(), text=text))
        return {"systemMessage": f"ContextGraph: {'; '.join(shown)}"} if shown else {}

    def _signs(self) -> Sequence[str]:
        """The signs of a run that is submitted too early, at the end of the session's log."""
        from contextgraph.readers import read
        from contextgraph.trace import read_steps, submission_signs

        log = self._event.text("transcript_path")
        run = next(read(log, on_error=_ignore, on_skip=_ignore), None) if log else None
        return sorted(map(str, submission_signs(read_steps(run)))) if run else ()

    def _file(self) -> AdviceFile:
        return AdviceFile(self._files.advice)

    def _shown(self, advice: Advice, record: HookRecord, *, again: bool = False) -> str:
        """The text of *advice* in its fence, unless it was shown; *record* is appended with it."""
        from contextgraph.text import fence

        is_known = not again and any(one.text == advice.text for one in self._before)
        text = "" if is_known else advice.text
        if text:
            context = f"ctx_{os.urandom(8).hex()}"
            withheld = self._withholds(context) if record.family else None
            shown = "" if withheld else text
            record = replace(
                record, context=context, text=shown, items=advice.items, is_withheld=withheld
            )
        self._files.append(record)
        return fence(record.text, record.context) if text else ""

    def _withholds(self, context: str) -> bool | None:
        """Whether *context* is withheld by chance; None where that is not asked for."""
        if not self._withhold:
            return None
        from contextgraph.governance import is_withheld

        return is_withheld(context, self._withhold)

    def _context(self, text: str) -> _Output:
        """*text* as each agent wants it: Codex CLI refuses keys that it does not know."""
        if not text:
            return {}
        output: _Output = {"hookEventName": self._event.name, "additionalContext": text}
        if self._event.agent == "openhands":
            return {"additionalContext": text}
        return {"hookSpecificOutput": output}

    def _record(self) -> HookRecord:
        event = self._event
        return HookRecord(
            at=datetime.now(UTC).isoformat(timespec="milliseconds"),
            event=event.name,
            agent=event.agent,
            session=event.id("session_id"),
            subagent=event.id("agent_id"),
            folder=event.folder,
            repo=self._repo,
        )

    @cached_property
    def _tree(self) -> WorkingTree | None:
        """The files that the agent works on; None where its folder is not on this machine."""
        cwd = self._event.cwd
        return WorkingTree.around(cwd) if cwd and os.path.isdir(cwd) else None

    @cached_property
    def _before(self) -> Sequence[HookRecord]:
        """What this agent of the session was given before; a sub-agent knows nothing of others."""
        subagent = self._event.id("agent_id")
        return [one for one in self._session if one.subagent == subagent]

    @cached_property
    def _session(self) -> Sequence[HookRecord]:
        return list(self._files.records(self._event.id("session_id")))

    @cached_property
    def _repo(self) -> str:
        """The repository by the name that readers give it; git is asked once for a folder."""
        known = (one.repo for one in self._session if one.folder == self._event.folder)
        if (repo := next(known, None)) is not None:
            return repo
        from contextgraph.readers.repository import repository_name
        from contextgraph.text import masked_name

        return masked_name(repository_name(self._event.cwd))


def _forms(step: "Step") -> Sequence[str]:
    """The text and the form of the command that did not run; empty where it ran, and failed."""
    from contextgraph.model import RawTrajectory
    from contextgraph.trace.project import project_facts

    uses = project_facts(RawTrajectory("", "", "", "", (step,))).commands
    return [form for use in uses if not use.ran for form in (use.text, use.runner)]


def _ignore(_error: object) -> None:
    """A line that cannot be read yet: the agent is still writing."""


def _text_in(value: object) -> str:
    """The text of what a tool returned: a string, or an object that holds it under some name."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return "\n".join(filter(None, map(_text_in, value)))
    if isinstance(value, dict):
        return "\n".join(filter(None, (_text_in(value.get(key)) for key in _OUTPUT_KEYS)))
    return ""

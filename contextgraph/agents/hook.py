"""``contextgraph hook``: one event of an agent on standard input, advice on standard output.

Imports are made where they are needed: most events end before the error recognisers are loaded.
"""

import _signal  # type: ignore[import-not-found]  # `signal` makes enumerations of its numbers
import json
import os
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from functools import cached_property
from io import BytesIO
from typing import Any, TypeAlias

from msgspec import Struct

from contextgraph.agents.hook_files import Advice, AdviceFile, HookFiles, HookRecord, now
from contextgraph.config import Settings, load_settings
from contextgraph.model import Action, ErrorSignature, Json, RawTrajectory, Step
from contextgraph.text import regex
from contextgraph.values import replace
from contextgraph.working_tree import WorkingTree

# After compaction or `/clear` the agent no longer knows what it was shown before.
_FORGETTING = ("compact", "clear")
_OUTPUT_KEYS = (
    "stdout", "stderr", "output", "text", "content", "error", "llmContent", "text_result_for_llm"
)  # fmt: skip
# The fields in which agents send what is put into a file.
_NEW_TEXT = ("new_string", "content", "new_str", "file_text", "new_source")
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


class HookEvent(Struct, frozen=True):
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
        """Return True where the agent loses what it was shown before."""
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
    def written(self) -> str:
        """The text that the call puts into its file."""
        edits = self._arguments.get("edits")
        several = (
            [edit for edit in edits if isinstance(edit, dict)] if isinstance(edits, list) else []
        )
        named = (edit.get(name) for edit in (self._arguments, *several) for name in _NEW_TEXT)
        return "\n".join(text for text in named if isinstance(text, str))

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


_BEGINNINGS = ("SessionStart", "SubagentStart", "UserPromptSubmit")
# Before a command these agents pass on only why it was refused.
_REFUSING = ("openhands", "gemini-cli", "opencode")
# These show a person the systemMessage of a hook.
_ANNOUNCING = ("claude-code", "gemini-cli")
# At other events OpenHands does not pass on what a hook prints.
_HEARD_BY_OPENHANDS = ("UserPromptSubmit", "PreToolUse")
# What an event may take, however long its session is: the agent waits for it.
_SECONDS, _MOST_WAITING, _MOST_BYTES = 1.0, 8, 1 << 20
_NOTHING_YET = "ContextGraph: installed, nothing compiled yet"
_HEADLINE = 140
_REFUSED_ONCE = "The command was not run. Send it again to run it."
_Output: "TypeAlias" = dict[str, "Json"]


def answer(text: str, store: str | None = None, tenant: str | None = None) -> str:
    """Answer the event that *text* describes; empty where there is nothing to say.

    Never raises: the reason of a failure is appended to a file that ``contextgraph doctor`` names.
    """
    settings, fields = Settings(), None
    try:
        fields = json.loads(text)
        if not isinstance(fields, dict):
            raise ValueError("the event is not a JSON object")
        settings = load_settings(store=store or None, tenant=tenant)
        output = _Responder(HookEvent(fields), settings).output()
        return json.dumps(output) if output else ""
    except Exception as error:  # noqa: BLE001  (an agent must not stop because of its memory)
        try:  # noqa: SIM105  (loading `contextlib` costs a hook more)
            HookFiles(settings).fail(f"{type(error).__name__}: {error}")
        except OSError:  # nor because of a disk that is full or read-only
            pass
        if isinstance(fields, dict) and fields.get("hook_event_name") == "SessionStart":
            return json.dumps({"systemMessage": f"ContextGraph gives no advice: {error}"})
        return ""


def main(store: str | None = None, tenant: str | None = None) -> None:
    """Answer the event on standard input, or nothing where that takes more than a second."""
    try:
        with _Deadline():
            if text := _event():
                sys.stdout.write(answer(text, store, tenant))
                sys.stdout.flush()
    except (_TooLateError, OSError):
        pass


class _TooLateError(Exception):
    """The agent has waited long enough."""


class _Deadline:
    """Ends what is done in it after a second, or later on a busy machine."""

    _is_timed = hasattr(_signal, "setitimer")  # on Windows the agent itself ends a hook

    def __enter__(self) -> None:
        if self._is_timed:
            # Where processes wait for a processor, a second is not enough to start.
            share = os.getloadavg()[0] / (os.cpu_count() or 1)
            self._seconds = _SECONDS * min(max(1.0, share), _MOST_WAITING)
            _signal.signal(_signal.SIGALRM, self._end)
            # Again where what records the failure waits, too.
            _signal.setitimer(_signal.ITIMER_REAL, self._seconds, self._seconds / 4)

    def _end(self, *_: object) -> None:
        raise _TooLateError(f"no answer within {self._seconds:.1f} s")

    def __exit__(self, *_: object) -> None:
        if self._is_timed:
            _signal.setitimer(_signal.ITIMER_REAL, 0)


def _event() -> str:
    """The text on standard input; empty where it is longer than any event that is answered."""
    content = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(content) <= _MOST_BYTES:
        return content.decode(errors="replace")
    while sys.stdin.buffer.read(_MOST_BYTES):
        pass  # the agent waits until all of it is taken
    return ""


class _Responder:
    """The answer to one event."""

    def __init__(self, event: HookEvent, settings: Settings) -> None:
        self._event = event
        self._files = HookFiles(settings)
        self._withhold = settings.withhold
        has_folder = settings.keyed_root or not settings.is_in_memory
        self._keyed_folder = settings.keyed_folder if has_folder else None
        self._announces = settings.announce != "off"
        self._said: list[str] = []
        self._options = ("--store", settings.address, "--tenant", settings.tenant)

    def output(self) -> _Output:
        """The object to print; empty for nothing."""
        name = self._event.name
        if name == "SessionEnd" and (log := self._event.log):
            self._files.enqueue(log)
            return self._receipt()
        if name == "SessionStart":
            self._files.mark_used()
            self._learn_waiting()
        if not os.path.isfile(self._files.advice):
            return self._beginning() if name == "SessionStart" else {}
        match name:
            case "SessionStart" | "SubagentStart" if self._is_heard:
                return self._context(self._playbook(), self._open_remedy(), self._keyed())
            case "UserPromptSubmit" if prompt := self._event.prompt:
                texts = (self._playbook(), self._open_remedy(), self._pasted(prompt))
                return self._context(*texts, self._decided(prompt))
            case "PreToolUse":
                return self._before()
            case "PostToolUse" | "PostToolUseFailure":
                return self._context(self._at_error())
            case "PreCompact":
                self._files.append(self._record())
            case "Stop":
                return self._warning()
        return {}

    def _beginning(self) -> _Output:
        """Start a session of a memory that has learned nothing yet."""
        keyed = self._keyed() if self._is_heard else ""
        return self._context(keyed) or {"systemMessage": _NOTHING_YET}

    def _learn_waiting(self) -> None:
        """Start to learn sessions that ended and to compile, in a process of its own."""
        if self._files.waiting() or self._files.is_outdated:
            # Without -P, modules of the folder that the agent works in would come first.
            module = ["-P", "-m", "contextgraph"]
            program = [sys.executable, *module, "learn", "--queued", *self._options]
            nowhere = [(os.POSIX_SPAWN_OPEN, file, os.devnull, os.O_RDWR, 0) for file in range(3)]
            os.posix_spawn(sys.executable, program, os.environ, file_actions=nowhere, setsid=True)

    def _playbook(self) -> str:
        """Return the start of work in the repository, unless the agent was shown it."""
        if any(
            record.event in _BEGINNINGS and record.text and not record.family
            for record in self._known
        ):
            return ""
        with self._file() as file:
            advice = file.for_repository(self._repo, self._tree, self._event.agent)
        return self._shown(advice, self._record())

    def _keyed(self) -> str:
        """Return the best keyed entries, where something was set."""
        if self._keyed_folder is None or not os.path.isdir(self._keyed_folder):
            return ""
        from pathlib import Path

        from contextgraph.knowledge.keyed import KeyedMemory

        return KeyedMemory(Path(self._keyed_folder)).for_prompt()

    def _open_remedy(self) -> str:
        """Return what clears the error still in the way, where the agent does not know it."""
        is_unknown = self._event.agent == "openhands" or self._event.text("source") == "compact"
        if not is_unknown or not (run := self._run()):
            return ""
        from contextgraph.trace import error_of, state_at

        state = state_at(run, len(run.steps))
        error = error_of(state)
        return self._remedy(error, state.last_action) if error else ""

    def _pasted(self, prompt: str) -> str:
        """Return what clears the error that a person pasted into the *prompt*."""
        from contextgraph.trace.signature import signature_of

        error = signature_of(prompt)
        return self._remedy(error, prompt) if error else ""

    def _decided(self, prompt: str) -> str:
        """Return what people decided in earlier sessions about the *prompt*."""
        with self._file() as file:
            advice = file.for_request(self._repo, prompt)
        known = "\n".join(record.text for record in self._known)
        pairs = zip(advice.text.splitlines(), advice.items, strict=True)
        new = [(line, item) for line, item in pairs if line not in known]
        if not new:
            return ""
        advice = Advice("\n".join(line for line, _ in new), [item for _, item in new])
        return self._shown(advice, self._record())

    def _before(self) -> _Output:
        """Return what people said about a command or a file, or what ran in place of the first."""
        event = self._event
        with self._file() as file:
            advised: Sequence[Advice] = ()
            if event.command is not None:
                command = event.command
                advised = file.for_command(self._repo, command, self._tree, event.agent)
            elif event.file:
                root = self._tree.root if self._tree else os.curdir
                path = os.path.relpath(os.path.join(event.cwd, event.file), root)
                advised = file.for_edit(self._repo, path.replace(os.sep, "/"), event.written)
        texts = [self._shown(advice, self._record()) for advice in advised]
        if any(texts) and event.agent in _REFUSING:
            return {"decision": "deny", "reason": "\n".join((*texts, _REFUSED_ONCE))}
        return self._context(*texts)

    def _at_error(self) -> str:
        from contextgraph.trace.signature import recognise

        step = self._event.step()
        error = recognise(
            step.action, step.observation, exit_code=step.exit_code, is_error=step.is_error
        )
        return self._remedy(error, step.action.text) if error else ""

    def _remedy(self, error: "ErrorSignature", attempt: str) -> str:
        """Return what cleared *error* of *attempt* before, unless the agent met it already."""
        from contextgraph.text import quoted_names

        record = replace(
            self._record(),
            forgets=None,
            family=str(error.family),
            error_type=error.error_type,
            template=error.template,
        )
        if not self._is_heard or any(record.repeats(known) for known in self._known):
            return self._shown(Advice(), record)
        with self._file() as file:
            names = quoted_names(error.message)
            already_shown = [known.text for known in self._known if known.text]
            advice = file.for_error(error, names, self._repo, self._tree, attempt, already_shown)
        return self._shown(advice, record)

    def _warning(self) -> _Output:
        """A message to the user alone: to the agent it would be a reason to go on."""
        with self._file() as file:
            warnings = file.submission_warnings()
        earlier = {record.text for record in self._known}
        new = {sign: text for sign, text in warnings.items() if text not in earlier}
        shown = [new[sign] for sign in self._signs() if sign in new] if new else []
        for text in shown:
            self._files.append(replace(self._record(), text=text))
        return {"systemMessage": f"ContextGraph: {'; '.join(shown)}"} if shown else {}

    def _receipt(self) -> _Output:
        """Tell the person how much advice the session was given."""
        shown = sum(record.text != "" for record in self._session)
        if not (shown and self._announces and self._event.agent in _ANNOUNCING):
            return {}
        pieces = "1 piece" if shown == 1 else f"{shown} pieces"
        message = f"ContextGraph: {pieces} of advice in this session; see contextgraph receipt"
        return {"systemMessage": message}

    def _signs(self) -> Sequence[str]:
        """The signs of a run that is submitted too early, at the end of the session's log."""
        from contextgraph.trace import read_steps, submission_signs

        log = self._event.log
        if log and os.path.isfile(log) and os.path.getsize(log) > _MOST_BYTES:
            return ()  # what is read of it may lack what the session did first
        run = self._run()
        return sorted(map(str, submission_signs(read_steps(run)))) if run else ()

    def _run(self) -> "RawTrajectory | None":
        """The session so far, from the first line of its log and the end."""
        from contextgraph.model import RawTrajectory
        from contextgraph.readers import read, read_file

        log = self._event.log
        if not os.path.isfile(log):  # OpenHands has a folder
            return next(read(log, on_error=_ignore, on_skip=_ignore), None) if log else None
        with open(log, "rb") as file:
            content = file.readline(_MOST_BYTES)
            if (size := os.path.getsize(log)) > _MOST_BYTES:
                file.seek(size - _MOST_BYTES)
                file.readline(_MOST_BYTES)
            content += file.read(_MOST_BYTES)
        runs = read_file(BytesIO(content), log)
        return next((run for run in runs if isinstance(run, RawTrajectory)), None)

    def _file(self) -> AdviceFile:
        return AdviceFile(self._files.advice)

    def _shown(self, advice: Advice, record: HookRecord) -> str:
        """The text of *advice* in its fence, unless it was shown; *record* is appended with it."""
        from contextgraph.text import fence

        is_known = any(known.text == advice.text for known in self._known)
        text = "" if is_known else advice.text
        if text:
            context = f"ctx_{os.urandom(6).hex()}"
            withheld = self._withholds(context) if record.family else None
            shown = "" if withheld else text
            record = replace(
                record, context=context, text=shown, items=tuple(advice.items), is_withheld=withheld
            )
        self._files.append(record)
        if record.text:
            self._said.append(record.text)
        return fence(record.text, record.context) if text else ""

    def _withholds(self, context: str) -> bool | None:
        """Decide at random to withhold *context*; None if withholding is off."""
        if not self._withhold:
            return None
        from contextgraph.model import is_withheld

        return is_withheld(context, self._withhold)

    def _context(self, *texts: str) -> _Output:
        """*texts* as each agent wants them: Codex CLI refuses keys that it does not know."""
        if not (text := "\n".join(filter(None, texts))):
            return {}
        name = self._event.text("hook_event_name")
        output: _Output = {"hookEventName": name, "additionalContext": text}
        match self._event.agent:
            case "openhands" | "copilot-cli" | "opencode":
                return {"additionalContext": text}
            case "cursor":
                return {"additional_context": text}
        if self._said and self._announces and self._event.agent in _ANNOUNCING:
            line = "; ".join(map(headline, self._said))
            return {"hookSpecificOutput": output, "systemMessage": f"ContextGraph: {line}"}
        return {"hookSpecificOutput": output}

    def _record(self) -> HookRecord:
        event = self._event
        return HookRecord(
            at=now(),
            event=event.name,
            agent=event.agent,
            session=event.session,
            subagent=event.id("agent_id"),
            folder=event.folder,
            repo=self._repo,
            forgets=event.forgets or None,
        )

    @cached_property
    def _tree(self) -> WorkingTree | None:
        """The files that the agent works on; None where its folder is not on this machine."""
        cwd = self._event.cwd
        return WorkingTree.around(cwd) if cwd and os.path.isdir(cwd) else None

    @property
    def _is_heard(self) -> bool:
        """Return True where the agent is shown what is printed now."""
        event = self._event
        return event.agent != "openhands" or event.name in _HEARD_BY_OPENHANDS

    @cached_property
    def _known(self) -> Sequence[HookRecord]:
        """Return what this agent was given and still knows; a sub-agent knows its own only."""
        if self._event.forgets:
            return ()
        subagent = self._event.id("agent_id")
        own = [record for record in self._session if record.subagent == subagent]
        return own[max((n for n, record in enumerate(own) if record.forgets), default=0) :]

    @cached_property
    def _session(self) -> Sequence[HookRecord]:
        session = self._event.session
        return list(self._files.records(session)) if session else ()

    @cached_property
    def _repo(self) -> str:
        """The name of the repository, as readers name it; calls git once for a folder."""
        known = (record.repo for record in self._session if record.folder == self._event.folder)
        if (repo := next(known, None)) is not None:
            return repo
        from contextgraph.readers.repository import repository_name
        from contextgraph.text import masked_name

        return masked_name(repository_name(self._event.cwd))


def headline(text: str) -> str:
    """Return the first line of *text* that says what to do, for a person to read."""
    return next(iter(headlines(text)), "")


def headlines(text: str) -> "list[str]":
    """Return the lines of *text* that say what to do, else its first."""
    said = (line.rpartition("(data): ")[2].strip(" -*") for line in text.splitlines())
    stripped = (line.removeprefix("Earlier runs: ") for line in said)
    lines = [line for line in stripped if line]
    chosen = [line for line in lines if "`" in line] or lines[:1]
    return [one if len(one) <= _HEADLINE else f"{one[: _HEADLINE - 1]}…" for one in chosen]


def _ignore(_error: object) -> None:
    """A line that cannot be read yet: the agent is still writing."""

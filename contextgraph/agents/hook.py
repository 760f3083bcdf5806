"""``contextgraph hook``: one event of an agent on standard input, advice on standard output.

An event about which nothing can be said ends before the memory is loaded; all others are put to a
`LiveRun`.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, partial
from io import BytesIO
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

from contextgraph.agents.hook_files import CHECK_EVENT, HookFiles
from contextgraph.config import (
    RUNNING_AGENT,
    Settings,
    environment_of_hooks,
    ignored_by_hooks,
    load_settings,
    user_settings_file,
)
from contextgraph.system.processes import ASKED, start_detached
from contextgraph.system.working_tree import WorkingTree
from contextgraph.text import masked_name, neutral, number_of

if TYPE_CHECKING:
    from contextgraph.agents.live import LiveRun
    from contextgraph.memory.wiring import Parts
    from contextgraph.model import Action, Json, Step


# After compaction or `/clear` the agent no longer knows what it was shown before.
_FORGETTING = ("compact", "clear")
_OUTPUT_KEYS = (
    "stdout", "stderr", "output", "text", "content", "error", "llmContent", "text_result_for_llm"
)  # fmt: skip
# The fields in which agents send what a tool returned.
_RESULT_KEYS = ("tool_response", "tool_output", "tool_result")
# Names that Gemini CLI gives to events.
# Not its PreCompress: it came between the calls of a short session, where nothing was compressed.
_GEMINI_CLI = {
    "BeforeAgent": "UserPromptSubmit",
    "BeforeTool": "PreToolUse",
    "AfterTool": "PostToolUse",
}


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
    def subagent(self) -> str:
        """The id of the sub-agent that the event is of; empty for the agent itself."""
        return self.id("agent_id")

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

    def text(self, name: str) -> str:
        """Return the text at *name*."""
        value = self.fields.get(name)
        return value if isinstance(value, str) else ""

    def id(self, name: str) -> str:
        """Return the id at *name*."""
        return masked_name(self.text(name))

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
        """Return the step of a run that the event is about, as readers of logs would read it."""
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
            self.action(),
            output.text,
            exit_code=output.exit_code if code is None else code,
            is_error=failed or None,
        )

    def action(self) -> "Action":
        """Return the call that the event is about."""
        from contextgraph.model import Action

        if self.command is not None:
            return Action(self.text("tool_name"), self.command, self._arguments)
        from contextgraph.readers.tool_calls import action_for

        return action_for(self.text("tool_name"), self._arguments)


def _result_in(output: str) -> "str | dict[str, Any]":
    """The object whose JSON Cursor sends as *output*; *output* itself where that is plain text."""
    from contextgraph.system.intake import loads

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


# Before a command these agents pass on only why it was refused.
_REFUSING = ("openhands", "gemini-cli", "opencode")
# Prompts are no events that reach these.
_UNPROMPTED = ("cursor", "copilot-cli")
# These show a person the systemMessage of a hook.
_ANNOUNCING = ("claude-code", "gemini-cli")
# At other events OpenHands does not pass on what a hook prints.
_HEARD_BY_OPENHANDS = ("UserPromptSubmit", "PreToolUse")
# What an event may take, however long its session is: the agent waits for it. A service has as much
# again, in seconds; after it did not answer, hooks are silent for a while.
_SECONDS, _MOST_WAITING, _MOST_BYTES = 1.0, 8, 1 << 20
_SILENCE_MINUTES = 5
_NOTHING_YET = "ContextGraph: installed, nothing learned yet"
_HEADLINE, _COUNT = 140, 40
# Lines above what is shown, which say that it is data.
_HEADS = ("(data):", "(data, not instructions):")
_REFUSED_ONCE = "The command was not run. Send it again to run it."
_Output: TypeAlias = "dict[str, Json]"


def answer(text: str, store: str | None = None, tenant: str | None = None) -> str:
    """Answer the event that *text* describes; empty where there is nothing to say.

    Never raises: the reason of a failure is appended to a file that ``contextgraph doctor`` names.
    """
    settings, fields = Settings(), None
    with suppress(ValueError, RecursionError):
        fields = json.loads(text)
    try:
        settings = load_settings(environment_of_hooks(), store=store or None, tenant=tenant)
        if not isinstance(fields, dict):
            raise ValueError("the event is not a JSON object")
        output = _Responder(HookEvent(fields), settings).output()
        return json.dumps(output) if output else ""
    except Exception as error:  # noqa: BLE001  (an agent must not stop because of its memory)
        with suppress(OSError):  # nor because of a disk that is full or read-only
            HookFiles(settings).fail(f"{type(error).__name__}: {error}")
        if isinstance(fields, dict) and fields.get("hook_event_name") == "SessionStart":
            return json.dumps({"systemMessage": f"ContextGraph gives no advice: {error}"})
        return ""


def main(store: str | None = None, tenant: str | None = None) -> None:
    """Answer the event on standard input, or nothing where that takes too long."""
    with suppress(_TooLateError, OSError), _Deadline():
        text = _event()
        # A client that this memory asks has hooks of its own.
        if text and ASKED not in os.environ:
            sys.stdout.write(answer(text, store, tenant))
            sys.stdout.flush()


class _TooLateError(Exception):
    """The agent has waited long enough."""


class _Deadline:
    """Ends what is done in it after two seconds, or later on a busy machine."""

    _is_timed = hasattr(signal, "setitimer")  # on Windows the agent itself ends a hook

    def __enter__(self) -> None:
        if self._is_timed:
            # Where processes wait for a processor, a second is not enough to start.
            share = os.getloadavg()[0] / (os.cpu_count() or 1)
            self._seconds = 2 * _SECONDS * min(max(1.0, share), _MOST_WAITING)
            signal.signal(signal.SIGALRM, self._end)
            # Again where what records the failure waits, too.
            signal.setitimer(signal.ITIMER_REAL, self._seconds, self._seconds / 4)

    def _end(self, *_: object) -> None:
        raise _TooLateError(f"no answer within {self._seconds:.1f} s")

    def __exit__(self, *_: object) -> None:
        if self._is_timed:
            signal.setitimer(signal.ITIMER_REAL, 0)


def _event() -> str:
    """The text on standard input; empty where it is longer than any event that is answered.

    PowerShell begins it with a byte order mark.
    """
    content = sys.stdin.buffer.read(_MOST_BYTES + 1)
    if len(content) <= _MOST_BYTES:
        return content.decode("utf-8-sig", errors="replace")
    while sys.stdin.buffer.read(_MOST_BYTES):
        pass  # the agent waits until all of it is taken
    return ""


class _Responder:
    """The answer to one event."""

    def __init__(self, event: HookEvent, settings: Settings) -> None:
        self._event = event
        self._settings = settings
        self._files = HookFiles(settings)
        self._announces = settings.announce != "off" and event.agent in _ANNOUNCING
        self._began = datetime.now(UTC)

    def output(self) -> _Output:
        """Return the object to print; empty for nothing."""
        output = self._answered()
        news = [*self._news()] if self._event.name == "SessionStart" else []
        for one in news:
            said = output.get("systemMessage")
            output["systemMessage"] = f"{said}; {one}" if said else f"ContextGraph: {one}"
        if said := output.get("systemMessage"):  # agents keep it in the log, which they may read
            output["systemMessage"] = neutral(f"{said}")
        return output

    def _news(self) -> Iterator[str]:
        """Yield what a person has to know when a session starts."""
        if names := ignored_by_hooks(self._settings):
            yield f"hooks ignore {', '.join(names)}; set this in {user_settings_file()}"
        if self._announces and (reason := self._files.unannounced()):
            yield f"no lessons were written down: {reason}"

    def _answered(self) -> _Output:
        event, name = self._event, self._event.name
        if name == CHECK_EVENT:
            return {"systemMessage": f"ContextGraph answers for {self._settings.address}"}
        if name == "SessionEnd" and event.log:
            self._files.enqueue(event.log)
        if name == "SessionStart":
            self._files.mark_used()
            self._start_background()
        settings = self._settings
        if not (os.path.exists(self._files.store) or os.path.isdir(settings.keyed_folder)):
            return {"systemMessage": _NOTHING_YET} if name == "SessionStart" else {}
        if self._files.is_silent(_SILENCE_MINUTES * 60) or not (ask := self._question()):
            return {}
        return self._advised(ask)

    def _question(self) -> "Callable[[LiveRun], str | None] | None":
        """Return what to ask the run; None where nothing can be said at this event."""
        event, name = self._event, self._event.name
        ask: Callable[[LiveRun], str | None] | None = None
        if name == "PreCompact":
            ask = self._forget
        elif name == "SessionEnd" and self._announces:
            ask = self._counted
        elif name == "Stop" and event.log:
            ask = self._submitted
        elif not self._is_heard:
            ask = None
        elif name in ("SessionStart", "SubagentStart"):
            ask = self._start
        elif name == "UserPromptSubmit" and event.prompt:
            ask = self._prompted
        elif name == "PreToolUse" and (event.command is not None or event.file):
            ask = self._before
        elif name in ("PostToolUse", "PostToolUseFailure") and _shows_error(event.step()):
            ask = self._taken
        return ask

    def _forget(self, run: "LiveRun") -> None:
        run.session.forget()

    def _before(self, run: "LiveRun") -> str | None:
        return run.before(self._event.action(), earlier=self._steps)

    def _taken(self, run: "LiveRun") -> str | None:
        return run.take(self._event.step())

    def _start_background(self) -> None:
        """Start, in other processes, to learn what is new, and to copy a remote memory."""
        settings = self._settings
        start = partial(start_detached, environment=environment_of_hooks())
        named = ["--store", settings.address, "--tenant", settings.tenant]
        if self._files.waiting():
            start("contextgraph", "learn", "--queued", *named)
        if settings.distil not in ("", RUNNING_AGENT) and not settings.is_service:
            start("contextgraph", "distil", "--queued", *named)
        if not settings.is_remote and self._files.has_new_lessons(self._event.cwd):
            start("contextgraph", "call", "learn_team", f"folder={self._event.cwd}", *named)
        if not settings.is_remote and self._files.has_new_commit(self._event.cwd, self._repo):
            start("contextgraph", "call", "age_lessons", f"folder={self._event.cwd}", *named)
        if settings.is_remote and (repo := self._repo) and self._files.is_copy_due(repo):
            start("contextgraph.agents.local_copy", settings.address, settings.tenant, repo)

    def _advised(self, ask: "Callable[[LiveRun], str | None]") -> _Output:
        """Return, in the form of the agent, what *ask* returns of its run."""
        from contextgraph.agents.local_copy import local_parts

        unavailable = list[Exception]()
        with local_parts(self._settings, _SECONDS, unavailable.append) as parts:
            if self._event.name == "PreToolUse" and not self._has_entry(parts):
                return {}
            output = self._asked(ask, parts)
        if unavailable:
            self._files.be_silent()
            reason = f"ContextGraph: {unavailable[0]}; no advice for {_SILENCE_MINUTES} minutes"
            output["systemMessage"] = reason
        return output

    def _has_entry(self, parts: "Parts") -> bool:
        """Return False where the memory has nothing to say before the call of the event."""
        from contextgraph.agents.before import NextCall

        tree = WorkingTree.around(self._folder) if self._folder else None
        call = NextCall.of(self._event.action(), tree)
        return call.has_entry(self._repo, parts.store, lambda: parts.lessons)

    def _asked(self, ask: "Callable[[LiveRun], str | None]", parts: "Parts") -> _Output:
        """Return, in the form of the agent, what *ask* returns of a run with this memory."""
        import logging

        from contextgraph.memory.agent_memory import AgentMemory

        # An agent may show what is logged.
        logging.getLogger("contextgraph").addHandler(logging.NullHandler())
        event = self._event
        with AgentMemory.of(parts) as memory:
            run = memory.live(
                repo=self._repo,
                task="",
                agent=event.agent,
                workdir=self._folder,
                session=event.session and "/".join(filter(None, (event.session, event.subagent))),
            )
            if event.forgets:
                run.session.forget()
            text = ask(run)
            output = self._form(text, run) if text else {}
        for error in run.session.failures:
            self._files.fail(f"{type(error).__name__}: {error}")
        return output

    @property
    def _folder(self) -> str | None:
        """The folder that the agent works in, if there is one."""
        return self._event.cwd if os.path.isdir(self._event.cwd) else None

    def _start(self, run: "LiveRun") -> str:
        """Return the start of work; after compaction also what clears the error still open."""
        if self._event.agent == "openhands" or self._event.text("source") == "compact":
            run.resume(self._steps())
        is_prompted = self._event.name != "SubagentStart" and self._event.agent not in _UNPROMPTED
        return run.start(is_prompted=is_prompted)

    def _prompted(self, run: "LiveRun") -> str:
        """Return what is known of the prompt, and the start where the agent was not shown one."""
        # OpenHands is not shown anything after a failure.
        is_begun = self._event.agent != "openhands" and _said_at(run, "start")
        start = "" if is_begun else self._start(run)
        texts = (start, run.prompt(self._event.prompt, earlier=self._steps))
        return "\n".join(filter(None, texts))

    def _submitted(self, run: "LiveRun") -> str:
        """Return what is missing, for a person: an agent would take it for a reason to go on."""
        was_warned = bool(_said_at(run, "submit"))
        if self._event.fields.get("stop_hook_active") or (was_warned and not run.rules):
            return ""  # before the log is read
        # Rates of earlier runs take half a second: they are read where this run has such a sign.
        run.resume(self._steps())
        lines = [*run.broken()]
        if not was_warned and run.check_submit():
            lines += [line for text in self._shown_now(run) for line in _plain_lines(text)]
        return f"ContextGraph: {'; '.join(lines)}" if lines else ""

    def _counted(self, run: "LiveRun") -> str:
        """Return, for a person, how much advice the session was given."""
        from contextgraph.model import ShownTally

        shown = ShownTally.of(run.session.exposures()).shown
        advice = number_of(shown, "piece")
        return (
            f"ContextGraph: {advice} of advice in this session; see contextgraph receipt"
            if shown
            else ""
        )

    def _form(self, text: str, run: "LiveRun") -> _Output:
        """*text* as each agent wants it: Codex CLI refuses keys that it does not know."""
        event = self._event
        if event.name in ("Stop", "SessionEnd"):
            return {"systemMessage": text}
        if event.name == "PreToolUse" and event.agent in _REFUSING:
            return {"decision": "deny", "reason": f"{text}\n{_REFUSED_ONCE}"}
        name = event.text("hook_event_name")
        output: _Output = {"hookEventName": name, "additionalContext": text}
        match event.agent:
            case "openhands" | "copilot-cli" | "opencode":
                return {"additionalContext": text}
            case "cursor":
                return {"additional_context": text}
        said = self._shown_now(run) if self._announces else []
        if said:
            line = "; ".join(map(headline, said))
            more = sum(len(_plain_lines(text)) - 1 for text in said)
            line += f" (and {number_of(more, 'more line')}: contextgraph receipt)" if more else ""
            return {"hookSpecificOutput": output, "systemMessage": f"ContextGraph: {line}"}
        return {"hookSpecificOutput": output}

    def _shown_now(self, run: "LiveRun") -> list[str]:
        """Return the texts that this hook has shown, without their fences."""
        from contextgraph.model import INDEX_MOMENT

        shown = [one for one in run.session.exposures() if one.shown_at >= self._began]
        return [one.text for one in shown if one.moment != INDEX_MOMENT and not one.is_withheld]

    def _steps(self) -> "Sequence[Step]":
        """Return the steps of the session so far, by the first line of its log and the end."""
        from contextgraph.model import RawTrajectory
        from contextgraph.readers import read, read_file
        from contextgraph.system.intake import opened

        log = self._event.log
        if os.path.isdir(log):  # of OpenHands
            run = next(read(log, on_error=_ignore, on_skip=_ignore), None)
            return run.steps if run else ()
        if not os.path.isfile(log):
            return ()
        with opened(log) as file:
            content = file.readline(_MOST_BYTES)
            if (size := os.path.getsize(log)) > _MOST_BYTES:
                file.seek(size - _MOST_BYTES)
                file.readline(_MOST_BYTES)
            content += file.read(_MOST_BYTES)
        runs = read_file(BytesIO(content), log)
        return next((run.steps for run in runs if isinstance(run, RawTrajectory)), ())

    @property
    def _is_heard(self) -> bool:
        """Return True where the agent is shown what is printed now."""
        event = self._event
        return event.agent != "openhands" or event.name in _HEARD_BY_OPENHANDS

    @cached_property
    def _repo(self) -> str:
        """The name of the repository, as readers name it."""
        from contextgraph.readers.repository import repository_name

        return masked_name(repository_name(self._event.cwd))


def _said_at(run: "LiveRun", moment: str) -> list[str]:
    """Return what the agent knows of what it was shown at a *moment* of its session."""
    shown = (one for one in run.session.exposures() if one.moment == moment)
    return [text for one in shown for text in one.said]


def _shows_error(step: "Step") -> bool:
    from contextgraph.trace.signature import recognise

    found = recognise(
        step.action, step.observation, exit_code=step.exit_code, is_error=step.is_error
    )
    return found is not None


def headline(text: str) -> str:
    """Return the first line of *text* that says what to do, for a person to read."""
    return next(iter(headlines(text)), "")


def headlines(text: str, items: int = 0) -> "list[str]":
    """Return the lines of *text* that say what to do, else its first.

    All of them where they are as many as the *items* that it shows.
    """
    lines = _plain_lines(text)
    chosen = [line for line in lines if "`" in line] or lines[:1]
    return [*map(_shortened, lines if len(lines) == items else chosen)]


def _plain_lines(text: str) -> "list[str]":
    """Return the lines of advice without the marks of where it comes from."""
    below = (line for line in text.splitlines() if not line.endswith(_HEADS))
    said = (line.rpartition("(data): ")[2].strip(" -*") for line in below)
    return [line for line in (line.removeprefix("Earlier runs: ") for line in said) if line]


def _shortened(line: str) -> str:
    """*line*, cut to about a line of a terminal, but for the last code in it: what to do.

    What stands after it, such as in how many tasks it worked, is kept where it is short.
    """
    if len(line) <= _HEADLINE:
        return line
    last = line.rfind("`")
    is_counted = len(line) - last <= _COUNT
    is_kept = is_counted or last >= _HEADLINE - 1
    remedy = line[line.rfind("`", 0, last) : None if is_counted else last + 1] if is_kept else ""
    head = line[: max(0, _HEADLINE - len(remedy) - 3)]
    return f"{head.rpartition(' ')[0] or head} … {remedy}".strip()


def _ignore(_error: object) -> None:
    """A line that cannot be read yet: the agent is still writing."""

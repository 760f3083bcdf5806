"""Sessions that agents write when a person resumes, forks, goes back and interjects."""

import json
import os
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from time import monotonic, sleep
from typing import Any, Self, TypeVar

import httpx
import pytest

from contextgraph import AgentMemory
from tests.acceptance.test_terminal_agents import (
    CLAUDE_CODE,
    GEMINI_CLI,
    Call,
    candidate,
    chunks,
    keep_opencode_from_the_registry,
    message,
    response,
)
from tests.model_server import Handler, Reply, Server, serving

T = TypeVar("T")
FAILING = "python3 -c 'import tariffs'"
RULE = "From now on always use pnpm, never npm, in this repository"
TYPED = "Never mock the database in the integration tests of lantern"
HANGS = 300.0  # seconds in which a client on a busy machine does one thing, at least ten times over
EARLIEST, FIRST, SECOND, THIRD = (f"{n * 8}-1111-4111-8111-111111111111" for n in "0123")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "lantern"
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


@contextmanager
def model(
    reply: Callable[[Any], Reply], calls: Sequence[Call | None], begun: Event | None = None
) -> Iterator[Server]:
    """Serve a model that makes *calls*, then says "done"; *begun* is set at its first one."""
    rest = [*calls]

    def answer(number: int, _: Handler) -> Reply:
        has_tools = bool(server.requests[number].get("tools"))
        if begun:
            begun.set()
        return reply(rest.pop(0) if rest and has_tools else None)

    with serving(fault=answer) as server:
        yield server


def until(found: Callable[[], T | None]) -> T:
    """Return what *found* returns, as soon as it is anything; fail where a client hangs."""
    ends = monotonic() + HANGS
    while not (value := found()):
        if monotonic() > ends:
            pytest.fail(f"nothing in {HANGS} s: the client hangs")
        sleep(0.05)
    return value


def learned(folder: Path) -> tuple[dict[str, list[str]], dict[str, int]]:
    """Return task -> commands of each run in *folder*, read twice, and rule -> its sessions.

    No two runs have one task.
    """
    with AgentMemory.open(":memory:") as memory:
        for _ in range(2):
            memory.learn(folder)
        raws = [memory.store.runs.raw(id_) for id_ in memory.store.runs.ids()]
        runs = {
            raw.task: [step.action.text for step in raw.steps if step.action.text]
            for raw in raws
            if raw is not None
        }
        assert len(runs) == len(raws)
        return runs, {one.text: one.sessions for one in memory.lessons.of()}


def claude(program: Path, project: Path, calls: Sequence[Call], *options: str) -> None:
    """Run a session of Claude Code whose model makes *calls*."""
    with model(message, calls) as server:
        done = subprocess.run(
            [program, "--allowedTools", "Bash", "-p", *options],
            cwd=project,
            env=environment(server),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr


def environment(server: Server) -> Mapping[str, str]:
    return {**os.environ, **CLAUDE_CODE, "ANTHROPIC_BASE_URL": server.url.removesuffix("/v1")}


def test_claude_code_resumes_forks_and_starts_a_sub_agent(claude_code: Path, project: Path) -> None:
    task = {"description": "Look", "prompt": "Look for it", "subagent_type": "general-purpose"}
    session = ("--session-id", FIRST)
    claude(claude_code, project, [FAILING, "echo fixed", "ls"], *session, "make the tests pass")
    claude(claude_code, project, ["echo again"], "--resume", FIRST, RULE)
    # Both begin with the same messages; by its id alone the fork would be the first.
    fork = ("--resume", FIRST, "--fork-session", "--session-id", EARLIEST)
    claude(claude_code, project, ["echo docs"], *fork, "look at the docs")
    session = ("--session-id", SECOND)
    # The session goes on beside its sub-agent: either may ask the model first.
    calls: list[Call] = [("Agent", task), "grep -r tariffs .", "grep -r tariffs ."]
    claude(claude_code, project, calls, *session, "check the tariffs")

    runs, rules = learned(Path.home() / ".claude" / "projects")

    assert runs.pop("check the tariffs")[0].startswith("Agent ")
    assert runs == {
        "make the tests pass": [FAILING, "echo fixed", "ls", "echo again"],
        "look at the docs": ["echo docs"],
        "Look for it": ["grep -r tariffs ."],
    }
    assert rules[RULE] == 1


def test_what_a_person_said_before_they_went_back_in_claude_code_was_not_said(
    claude_code: Path, project: Path
) -> None:
    claude(claude_code, project, [FAILING], "--session-id", FIRST, "make the tests pass")
    (log,) = (Path.home() / ".claude" / "projects").rglob(f"{FIRST}.jsonl")
    lines = map(json.loads, log.read_text().splitlines())
    *_, last = (line["uuid"] for line in lines if line["type"] == "assistant")
    claude(claude_code, project, ["echo glass"], "--resume", FIRST, TYPED)
    back = ("--resume", FIRST, "--resume-session-at", last)
    fork = (*back, "--fork-session", "--session-id", EARLIEST)
    claude(claude_code, project, ["echo docs"], *fork, "look at the docs")
    claude(claude_code, project, ["echo pnpm"], *back, RULE)

    runs, rules = learned(Path.home() / ".claude" / "projects")

    assert runs == {
        "make the tests pass": [FAILING, "echo glass", "echo pnpm"],
        "look at the docs": ["echo docs"],
    }
    assert rules == {RULE: 1}


class OpenCodeServer:
    """The program of OpenCode that its terminal and editors talk to, by HTTP."""

    def __init__(self, program: Path, model: Server, folder: Path) -> None:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "options": {"baseURL": model.url, "apiKey": "scripted"},
            "models": {"scripted": {"tool_call": True}},
        }
        config = {
            "provider": {"scripted": provider},
            "permission": "allow",
            "autoupdate": False,
            "share": "disabled",
        }
        settings = {
            "OPENCODE_CONFIG_CONTENT": json.dumps(config),
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "PWD": str(folder),
        }
        keep_opencode_from_the_registry()
        self._log = Path.home() / "opencode.log"
        with self._log.open("w") as log:
            self._process = subprocess.Popen(
                [program, "serve", "--port", "0"],
                cwd=folder,
                env={**os.environ, **settings},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._client = httpx.Client(timeout=HANGS)

    def __enter__(self) -> Self:
        address = until(lambda: re.search(r"listening on (\S+)\n", self._log.read_text()))
        self._client.base_url = httpx.URL(address[1])
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._process.kill()
        self._process.wait(HANGS)

    def ask(self, route: str, **body: Any) -> Any:
        """Return what it answers to *body*, if anything."""
        answer = self._client.post(route, json=body).raise_for_status()
        return answer.json() if answer.content else None

    def session(self) -> str:
        """Return the address of a new session."""
        return f"/session/{self.ask('/session')['id']}"

    def say(self, session: str, words: str, route: str = "message") -> Any:
        """Say *words*; on the route prompt_async without waiting for the answer."""
        parts = [{"type": "text", "text": words}]
        chosen = {"providerID": "scripted", "modelID": "scripted"}
        return self.ask(f"{session}/{route}", model=chosen, parts=parts)

    def wait(self) -> None:
        """Return when no session works."""
        until(lambda: not self._client.get("/session/status").json())

    def message(self, session: str, words: str) -> str:
        """Return the id of the message in which *words* were said, as soon as it is there."""

        def found() -> str:
            said = self._client.get(f"{session}/message").json()
            ids = (
                one["info"]["id"]
                for one in said
                if any(part.get("text") == words for part in one["parts"])
            )
            return next(ids, "")

        return until(found)


def test_opencode_resumes_forks_goes_back_queues_and_starts_a_sub_agent(
    opencode: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name)
    database = Path.home() / ".local" / "share" / "opencode" / "opencode.db"
    working = "touch begun; until test -e typed; do sleep .1; done"
    task = {"description": "Look", "prompt": "Look for it", "subagent_type": "general"}
    calls: list[Call | None] = [FAILING, None, "echo glass", None]
    calls += ["echo again", None, "echo docs", None, working, "echo built", None]
    calls += [("task", task), "grep -r tariffs ."]

    with model(chunks, calls) as server, OpenCodeServer(opencode, server, project) as program:
        first = program.session()
        program.say(first, "make the tests pass")
        program.say(first, "From now on always use glass")
        left = program.message(first, "From now on always use glass")
        program.ask(f"{first}/revert", messageID=left)
        assert learned(database) == ({"make the tests pass": [FAILING]}, {})
        program.say(first, RULE)
        fork = program.ask(f"{first}/fork")["id"]
        program.say(f"/session/{fork}", "look at the docs")
        second = program.session()
        program.say(second, "build the site", "prompt_async")
        until((project / "begun").exists)
        program.say(second, TYPED, "prompt_async")
        program.message(second, TYPED)
        (project / "typed").touch()
        program.wait()
        program.say(program.session(), "check the tariffs")

    runs, rules = learned(database)

    assert runs.pop("check the tariffs")[0].startswith("task ")
    assert runs == {
        "make the tests pass": [FAILING, "echo again"],
        "look at the docs": ["echo docs"],
        "build the site": [working, "echo built"],
        "Look for it": ["grep -r tariffs ."],
    }
    assert rules == {RULE: 1, TYPED: 1}


def test_gemini_cli_resumes(gemini_cli: Path, project: Path) -> None:
    settings = Path.home() / ".gemini" / "settings.json"
    settings.parent.mkdir(parents=True)
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    settings.write_text(json.dumps(chosen))

    def run(calls: Sequence[Call], *words: str) -> None:
        with model(candidate, calls) as server:
            address = {"GOOGLE_GEMINI_BASE_URL": server.url.removesuffix("/v1")}
            done = subprocess.run(
                [gemini_cli, "--yolo", "-m", "gemini-2.5-flash", *words],
                cwd=project,
                env={**os.environ, **GEMINI_CLI, **address},
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                check=False,
            )
        assert done.returncode == 0, done.stdout + done.stderr

    run([FAILING, "echo fixed", "ls"], "-p", "make the tests pass")
    run(["echo again"], "--resume", "latest", "-p", RULE)

    runs, rules = learned(Path.home() / ".gemini" / "tmp")

    assert runs == {"make the tests pass": [FAILING, "echo fixed", "ls", "echo again"]}
    assert rules[RULE] == 1


def test_words_that_a_person_types_while_claude_code_works_were_said(
    claude_code: Path, project: Path
) -> None:
    options = ("--input-format", "stream-json", "--output-format", "stream-json", "--verbose")
    works = Event()
    with model(message, ["sleep 5", "echo built"], works) as server:
        process = subprocess.Popen(
            [claude_code, "--allowedTools", "Bash", "-p", "--session-id", THIRD, *options],
            cwd=project,
            env=environment(server),
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        assert process.stdin is not None
        with process.stdin as stdin:
            for words in ("build the site", TYPED):
                said = {"type": "user", "message": {"role": "user", "content": words}}
                stdin.write(f"{json.dumps(said)}\n")
                stdin.flush()
                assert works.wait(60)
        assert process.wait(60) == 0

    runs, rules = learned(Path.home() / ".claude" / "projects")

    assert runs == {"build the site": ["sleep 5", "echo built"]}
    assert rules == {TYPED: 1}


class CodexServer:
    """The program of Codex that editors talk to, by JSON in lines."""

    def __init__(self, program: Path, options: Sequence[str], folder: Path) -> None:
        self._process = subprocess.Popen(
            [program, "app-server", *options],
            cwd=folder,
            env={**os.environ, "SCRIPTED_KEY": "scripted"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def call(self, method: str, **params: Any) -> Any:
        """Return the result of *method*."""
        assert self._process.stdin is not None
        request = {"jsonrpc": "2.0", "id": method, "method": method, "params": params}
        self._process.stdin.write(f"{json.dumps(request)}\n")
        self._process.stdin.flush()
        return self._until(lambda sent: sent.get("id") == method)["result"]

    def wait_for(self, method: str) -> None:
        """Read what it sends until it notifies of *method*."""
        self._until(lambda sent: sent.get("method") == method)

    def _until(self, is_wanted: Callable[[Any], bool]) -> Any:
        assert self._process.stdout is not None
        return next(sent for sent in map(json.loads, self._process.stdout) if is_wanted(sent))

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate()


def codex_options(server: Server) -> list[str]:
    """Return the options with which Codex asks the model of *server*."""
    provider = f'{{name = "scripted", base_url = "{server.url}", env_key = "SCRIPTED_KEY"}}'
    settings = {
        "model_provider": "'scripted'",
        "model": "'scripted'",
        "model_providers.scripted": provider,
        "approval_policy": "'never'",
        "sandbox_mode": "'danger-full-access'",
    }
    return [word for name in settings for word in ("--config", f"{name}={settings[name]}")]


CLIENT = {"name": "test", "title": "test", "version": "1"}


def test_words_that_a_person_types_while_codex_works_were_said_and_a_sub_agent_is_started(
    codex_cli: Path, project: Path
) -> None:
    (Path.home() / ".codex").mkdir(parents=True)
    working = "touch begun; sleep 3"
    task = {"message": "Look for it", "fork_context": True}
    calls: list[Call | None] = [working, "echo built", None]
    # The session goes on beside its sub-agent: either may ask the model first.
    calls += ["echo first", ("spawn_agent", task), "grep -r tariffs .", "grep -r tariffs ."]

    def said(words: str) -> list[dict[str, str]]:
        return [{"type": "text", "text": words}]

    with model(response, calls) as server:
        program = CodexServer(codex_cli, codex_options(server), project)
        program.call("initialize", clientInfo=CLIENT)
        thread = program.call("thread/start", cwd=str(project))["thread"]["id"]
        asked = program.call("turn/start", threadId=thread, input=said("build the site"))
        while not (project / "begun").exists():
            sleep(0.05)
        turn = asked["turn"]["id"]
        program.call("turn/steer", threadId=thread, expectedTurnId=turn, input=said(TYPED))
        program.wait_for("turn/completed")
        other = program.call("thread/start", cwd=str(project))["thread"]["id"]
        program.call("turn/start", threadId=other, input=said("check the tariffs"))
        for _ in range(2):
            program.wait_for("turn/completed")
        program.close()

    runs, rules = learned(Path.home() / ".codex" / "sessions")

    assert runs.pop("check the tariffs")[1].startswith("spawn_agent ")
    assert runs == {
        "build the site": [working, "echo built"],
        "Look for it": ["grep -r tariffs ."],
    }
    assert rules == {TYPED: 1}


def test_codex_resumes_forks_and_archives(codex_cli: Path, project: Path) -> None:
    def codex(*words: str) -> None:
        done = subprocess.run(
            [codex_cli, *words],
            cwd=project,
            env={**os.environ, "SCRIPTED_KEY": "scripted"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr

    home = Path.home() / ".codex"
    home.mkdir(parents=True)
    with model(response, [FAILING, "echo fixed", "ls"]) as server:
        codex("exec", *codex_options(server), "make the tests pass")
    with model(response, ["echo again"]) as server:
        codex("exec", *codex_options(server), "resume", "--last", RULE)
    (log,) = home.rglob("rollout-*.jsonl")
    session = log.stem[-len(FIRST) :]
    with model(response, ["echo docs"]) as server:
        program = CodexServer(codex_cli, codex_options(server), project)
        program.call("initialize", clientInfo=CLIENT)
        fork = program.call("thread/fork", threadId=session)["thread"]["id"]
        words = [{"type": "text", "text": TYPED}]
        program.call("turn/start", threadId=fork, input=words)
        program.wait_for("turn/completed")
        program.close()
    codex("archive", session)

    logs = [home / "sessions", home / "archived_sessions"]
    assert all([*folder.rglob("rollout-*.jsonl")] for folder in logs)
    runs, rules = learned(home / "archived_sessions")
    assert runs == {"make the tests pass": [FAILING, "echo fixed", "ls", "echo again"]}
    assert rules == {RULE: 1}
    runs, rules = learned(home / "sessions")
    assert (runs, rules) == ({TYPED: ["echo docs"]}, {TYPED: 1})

"""Copies of messages, in the format of each client that has ids of its own for them.

A fork repeats the first messages of a session, one of a compacted session its last ones: under
another session id and at other times, but with the ids of the messages or of the calls.
"""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from contextgraph import AgentMemory
from tests.unit.test_readers_clients import learned
from tests.unit.test_readers_sessions import SESSION, Line, begun, commands, written


class Turn(NamedTuple):
    """A request, or a command with its output, under the *id* of its message."""

    id: str
    words: str
    output: str = ""


class Log(NamedTuple):
    """A session with its id, the day on which it was, and its turns."""

    session: str
    day: int
    turns: Sequence[Turn]

    def time(self, number: int) -> str:
        return f"2026-10-{self.day:02}T09:00:{number:02}.000Z"

    def milliseconds(self, number: int) -> int:
        return 1_790_000_000_000 + self.day * 86_400_000 + number * 1000


FOLDER = "/home/tea/kettle"


def _id(number: int) -> str:
    return f"{number:08x}-1111-4222-8333-{number:012x}"


def _claude(log: Log) -> Iterator[Line]:
    parent = None
    for number, turn in enumerate(log.turns):
        line: Line = {"sessionId": log.session, "cwd": FOLDER, "timestamp": log.time(number)}
        line |= {"uuid": turn.id, "parentUuid": parent}
        parent = turn.id
        if not turn.output:
            yield {**line, "type": "user", "message": {"role": "user", "content": turn.words}}
            continue
        call: Line = {"type": "tool_use", "id": f"call_{number}", "name": "Bash"}
        call["input"] = {"command": turn.words}
        yield {**line, "type": "assistant", "message": {"role": "assistant", "content": [call]}}
        answer = {"type": "tool_result", "tool_use_id": call["id"], "content": turn.output}
        parent = f"{turn.id}-answer"
        line |= {"uuid": parent, "parentUuid": turn.id, "type": "user"}
        yield {**line, "message": {"role": "user", "content": [answer]}}


def _iflow(log: Log) -> Iterator[Line]:
    for line in _claude(log):
        content = line["message"]["content"]
        if isinstance(content, list) and "content" in content[0]:
            response = {"response": {"output": content[0]["content"]}}
            content[0]["content"] = {"responseParts": {"functionResponse": response}}
        yield line


def _codex(log: Log, *, has_message_ids: bool = True) -> Iterator[Line]:
    meta = {"id": log.session, "cwd": FOLDER}
    yield {"timestamp": log.time(0), "type": "session_meta", "payload": meta}
    for number, turn in enumerate(log.turns):
        line = {"timestamp": log.time(number), "type": "response_item"}
        if not turn.output:
            content = [{"type": "input_text", "text": turn.words}]
            said = {"type": "message", "role": "user", "content": content}
            yield {**line, "payload": {**said, **({"id": turn.id} if has_message_ids else {})}}
            continue
        id_ = f"call_{turn.id}"
        arguments = orjson.dumps({"cmd": turn.words}).decode()
        call = {"type": "function_call", "name": "exec_command", "arguments": arguments}
        yield {**line, "payload": {**call, "call_id": id_}}
        answer = {"type": "function_call_output", "call_id": id_, "output": turn.output}
        yield {**line, "payload": answer}


def _codex_without_ids_of_messages(log: Log) -> Iterator[Line]:
    return _codex(log, has_message_ids=False)


def _gemini(log: Log) -> Iterator[Line]:
    yield {"sessionId": log.session, "startTime": log.time(0), "lastUpdated": log.time(0)}
    for number, turn in enumerate(log.turns):
        line: Line = {"id": turn.id, "timestamp": log.time(number)}
        if turn.output:
            call = {"id": f"c{number}", "name": "run_shell_command", "status": "success"}
            ran = {**call, "args": {"command": turn.words}, "resultDisplay": turn.output}
            yield {**line, "type": "gemini", "content": "", "toolCalls": [ran]}
        else:
            yield {**line, "type": "user", "content": [{"text": turn.words}]}


def _qwen(log: Log) -> Iterator[Line]:
    for number, turn in enumerate(log.turns):
        line: Line = {"uuid": turn.id, "sessionId": log.session, "cwd": FOLDER}
        line["timestamp"] = log.time(number)
        if not turn.output:
            message = {"role": "user", "parts": [{"text": turn.words}]}
            yield {**line, "type": "user", "message": message}
            continue
        called = {"id": f"c{number}", "name": "run_shell_command"}
        call = {"functionCall": {**called, "args": {"command": turn.words}}}
        yield {**line, "type": "assistant", "message": {"role": "model", "parts": [call]}}
        answer = {"functionResponse": {**called, "response": {"output": turn.output}}}
        line |= {"uuid": f"{turn.id}-answer", "type": "tool_result"}
        yield {**line, "message": {"role": "user", "parts": [answer]}}


def _pi(log: Log) -> Iterator[Line]:
    head = {"type": "session", "version": 3, "id": log.session, "cwd": FOLDER}
    yield {**head, "timestamp": log.time(0)}
    parent = None
    for number, turn in enumerate(log.turns):
        line: Line = {"type": "message", "timestamp": log.time(number)}
        line |= {"id": turn.id[:8], "parentId": parent}
        parent = turn.id[:8]
        if not turn.output:
            yield {**line, "message": {"role": "user", "content": turn.words}}
            continue
        call: Line = {"type": "toolCall", "id": f"c{number}", "name": "bash"}
        call["arguments"] = {"command": turn.words}
        yield {**line, "message": {"role": "assistant", "content": [call]}}
        answer = {"role": "toolResult", "toolCallId": call["id"], "toolName": "bash"}
        line |= {"id": f"{parent}0", "parentId": parent}
        yield {**line, "message": {**answer, "content": [{"type": "text", "text": turn.output}]}}
        parent = f"{parent}0"


def _copilot(log: Log) -> Iterator[Line]:
    data = {"sessionId": log.session, "context": {"cwd": FOLDER}}
    yield {"type": "session.start", "timestamp": log.time(0), "data": data}
    for number, turn in enumerate(log.turns):
        line = {"id": turn.id, "timestamp": log.time(number)}
        if not turn.output:
            yield {**line, "type": "user.message", "data": {"content": turn.words}}
            continue
        call: Line = {"toolCallId": f"c{number}"}
        named = {"toolName": "bash", "arguments": {"command": turn.words}}
        yield {**line, "type": "tool.execution_start", "data": {**call, **named}}
        answer = {**call, "success": True, "result": {"content": turn.output}}
        yield {**line, "id": "", "type": "tool.execution_complete", "data": answer}


def _goose(log: Log) -> Iterator[Line]:
    yield {"id": log.session, "working_dir": FOLDER, "description": "Kettle"}
    for number, turn in enumerate(log.turns):
        line = {"id": f"msg_{turn.id}", "created": log.milliseconds(number) // 1000}
        if not turn.output:
            yield {**line, "role": "user", "content": [{"type": "text", "text": turn.words}]}
            continue
        value = {"name": "shell", "arguments": {"command": turn.words}}
        called = {"status": "success", "value": value}
        call = {"type": "toolRequest", "id": f"c{number}", "toolCall": called}
        yield {**line, "role": "assistant", "content": [call]}
        returned = {"status": "success", "value": [{"type": "text", "text": turn.output}]}
        answer = {"type": "toolResponse", "id": f"c{number}", "toolResult": returned}
        yield {**line, "id": "", "role": "user", "content": [answer]}


def _opencode(log: Log) -> Iterator[Line]:
    messages = []
    for number, turn in enumerate(log.turns):
        role = "assistant" if turn.output else "user"
        info = {"id": f"msg_{turn.id}", "role": role, "time": {"created": log.milliseconds(number)}}
        part: Line = {"type": "text", "text": turn.words}
        if turn.output:
            state = {"status": "completed", "input": {"command": turn.words}}
            part = {"type": "tool", "callID": f"c{number}", "tool": "bash"}
            part["state"] = {**state, "output": turn.output}
        messages.append({"info": info, "parts": [part]})
    times = {"created": log.milliseconds(0)}
    info = {"id": log.session, "directory": FOLDER, "time": times}
    yield {"info": info, "messages": messages}


def _copilot_chat(log: Log) -> Iterator[Line]:
    requests = list[Line]()
    for number, turn in enumerate(log.turns):
        if not turn.output:
            message = {"text": turn.words}
            asked = {"requestId": f"request_{turn.id}", "message": message, "response": []}
            requests.append({**asked, "timestamp": log.milliseconds(number)})
            continue
        terminal = {
            "commandLine": {"original": turn.words},
            "terminalCommandOutput": {"text": turn.output},
        }
        call: Line = {"kind": "toolInvocationSerialized", "toolId": "run_in_terminal"}
        call |= {"toolCallId": f"c{number}", "isComplete": True}
        requests[-1]["response"].append({**call, "toolSpecificData": terminal})
    chat = {"version": 3, "creationDate": log.milliseconds(0), "sessionId": log.session}
    yield {**chat, "requests": requests}


def _cline(log: Log) -> Iterator[Line]:
    messages = []
    for number, turn in enumerate(log.turns):
        line = {"id": f"msg_{turn.id}", "ts": log.milliseconds(number)}
        if not turn.output:
            tag = "feedback" if number else "task"
            details = f"<environment_details>\n# Current Workspace Directory ({FOLDER}) Files\n"
            blocks = [f"<{tag}>\n{turn.words}\n</{tag}>", f"{details}</environment_details>"]
            content: list[Line] = [{"type": "text", "text": block} for block in blocks]
            messages.append({**line, "role": "user", "content": content})
            continue
        call: Line = {"type": "tool_use", "id": f"toolu_{turn.id}", "name": "execute_command"}
        call["input"] = {"command": turn.words}
        messages.append({**line, "role": "assistant", "content": [call]})
        answer = {"type": "tool_result", "tool_use_id": call["id"], "content": turn.output}
        messages.append({**line, "id": "", "role": "user", "content": [answer]})
    yield {"messages": messages}


Writer = Callable[[Log], Iterator[Line]]
CLIENTS: dict[str, tuple[str, Writer]] = {
    "claude-code": ("{}.jsonl", _claude),
    "iflow": ("{}.jsonl", _iflow),
    "codex": ("rollout-2026-10-05T09-00-00-{}.jsonl", _codex),
    "codex, ids of calls": (
        "rollout-2026-10-05T09-00-00-{}.jsonl",
        _codex_without_ids_of_messages,
    ),
    "gemini": ("{}.jsonl", _gemini),
    "qwen": ("{}.jsonl", _qwen),
    "pi": ("{}.jsonl", _pi),
    "copilot": ("{}.jsonl", _copilot),
    "goose": ("{}.jsonl", _goose),
    "opencode": ("{}.json", _opencode),
    "copilot-chat": ("chatSessions/{}.json", _copilot_chat),
    "cline": ("{}.messages.json", _cline),
}
BEGUN = (Turn(_id(0x10), "Boil the kettle"), Turn(_id(0x20), "make test", "ok"))
REST = (Turn(_id(0x30), "Now the lid"), Turn(_id(0x40), "make lid", "done"))
OWN = (Turn(_id(0x50), "And the docs?"), Turn(_id(0x60), "make docs", "written"))


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as opened:
        yield opened


@pytest.mark.parametrize("is_first", [True, False], ids=["owner first", "copy first"])
@pytest.mark.parametrize("copied", [BEGUN, REST], ids=["its beginning", "its end"])
@pytest.mark.parametrize("client", CLIENTS)
def test_what_has_the_ids_of_another_session_is_of_that(
    client: str, copied: Sequence[Turn], is_first: bool, tmp_path: Path, memory: AgentMemory
) -> None:
    owner, copy = Log(_id(0xA1), 5, [*BEGUN, *REST]), Log(_id(0xB2), 6, [*copied, *OWN])
    for log in (owner, copy) if is_first else (copy, owner):
        memory.learn(_file(client, log, tmp_path))
    runs = {run.task: commands(run) for run in learned(memory)}
    assert runs == {"Boil the kettle": ["make test", "make lid"], "And the docs?": ["make docs"]}


@pytest.mark.parametrize("client", CLIENTS)
def test_the_same_words_under_other_ids_are_said_again(
    client: str, tmp_path: Path, memory: AgentMemory
) -> None:
    again = [Turn(_id(0x70 + number), *turn[1:]) for number, turn in enumerate(BEGUN)]
    memory.learn(_file(client, Log(_id(0xA1), 5, [*BEGUN, *REST]), tmp_path))
    memory.learn(_file(client, Log(_id(0xB2), 6, [*again, *OWN]), tmp_path))
    runs = sorted(commands(run) for run in learned(memory))
    assert runs == [["make test", "make docs"], ["make test", "make lid"]]


def _file(client: str, log: Log, folder: Path) -> Path:
    name, lines = CLIENTS[client]
    return written(folder / name.format(log.session), lines(log))


def test_a_whole_session_again_is_a_copy_though_it_is_short(
    tmp_path: Path, memory: AgentMemory
) -> None:
    log = [Turn("1", "Look for the lid"), Turn("2", "ls", "kettle.c\n" * 30)]
    for day in (5, 6):
        memory.learn(_file("claude-code", Log(_id(day), day, log), tmp_path))
    longer = [*log, Turn("3", "rm lid.c", "removed")]
    memory.learn(_file("claude-code", Log(_id(7), 7, longer), tmp_path))
    assert sorted(map(commands, learned(memory))) == [["ls"], ["rm lid.c"]]


def test_what_a_session_repeats_of_the_end_of_another_is_forgotten_with_it(
    tmp_path: Path, memory: AgentMemory
) -> None:
    said = [Turn(_id(0x48), "Never use zqmarker here")]
    replied = [Turn(_id(0x49), "make lid", "zqmarker")]
    memory.learn(_file("claude-code", Log(_id(0xA1), 5, [*BEGUN, *said, *replied]), tmp_path))
    own = [Turn(_id(0x50), "make cup", "done")]
    memory.learn(_file("claude-code", Log(_id(0xB2), 6, [*said, *replied, *own]), tmp_path))
    assert sorted(run.task for run in learned(memory)) == ["Boil the kettle", said[0].words]
    memory.forget(sessions=[_id(0xA1)])
    (left,) = learned(memory)
    assert (left.task, commands(left)) == ("", ["make cup"])


def test_a_fork_is_of_its_own_request_where_its_origin_went_back(tmp_path: Path) -> None:
    log, forked = begun(), "5e550000-0000-4000-8000-000000000002"
    end = log.reply("One test fails.")
    copied = [{**line, "sessionId": forked} for line in log.lines]
    log.user("Use glass")
    log.run("make glass", "ok")
    log.user("Use iron", end)
    log.run("make iron", "ok")
    written(tmp_path / f"{SESSION}.jsonl", log.lines)
    log.lines, log.session, log.last = copied, forked, end
    log.user("And the docs?")
    log.run("make docs", "ok")
    written(tmp_path / f"{forked}.jsonl", log.lines)
    with AgentMemory.open(":memory:") as memory:
        memory.learn(tmp_path)
        runs = sorted((raw.task, commands(raw)) for raw in learned(memory))
    assert runs == [
        ("And the docs?", ["make docs"]),
        ("Boil the kettle", ["make test", "make glass", "make iron"]),
    ]


@pytest.mark.parametrize("names_its_origin", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
def test_what_a_fork_repeats_of_what_its_origin_left_counts_once(
    tmp_path: Path, *, names_its_origin: bool, is_first: bool
) -> None:
    log, forked = begun(), "5e550000-0000-4000-8000-000000000002"
    end = log.reply("One test fails.")
    log.user("Use glass")
    log.run("make glass", "ok")
    last = log.last
    named = {"forkedFrom": {"sessionId": SESSION}} if names_its_origin else {}
    copied = [{**line, "sessionId": forked, **named} for line in log.lines]
    log.user("Use iron", end)
    log.run("make iron", "ok")
    origin = written(tmp_path / f"{SESSION}.jsonl", log.lines)
    log.lines, log.session, log.last = copied, forked, last
    log.user("And the docs?")
    log.run("make docs", "ok")
    fork = written(tmp_path / f"{forked}.jsonl", log.lines)
    with AgentMemory.open(":memory:") as memory:
        for path in (fork, origin) if is_first else (origin, fork):
            memory.learn(path)
        runs = sorted((raw.task, commands(raw)) for raw in learned(memory))
    assert runs == [
        ("And the docs?", ["make docs"]),
        ("Boil the kettle", ["make test", "make glass", "make iron"]),
    ]

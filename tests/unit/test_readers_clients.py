"""Situations that users of coding agents report in public, rebuilt with content of our own.

Each test names an issue or a pull request that describes the form.
"""

import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import zstandard

from contextgraph import AgentMemory
from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory
from contextgraph.readers import discover, read
from contextgraph.readers.format import SkippedError
from tests.unit.test_readers_sessions import (
    SESSION,
    Claude,
    Codex,
    Line,
    begun,
    commands,
    messages,
    written,
)


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as opened:
        yield opened


def learned(memory: AgentMemory) -> list[RawTrajectory]:
    raws = (memory.store.runs.raw(id_) for id_ in memory.store.runs.ids())
    return [raw for raw in raws if raw is not None]


def read_all(*paths: Path) -> tuple[list[RawTrajectory], list[ReadError], list[SkippedError]]:
    failed, skipped = list[ReadError](), list[SkippedError]()
    runs = list(read(*paths, on_error=failed.append, on_skip=skipped.append))
    return runs, failed, skipped


def test_a_resumed_session_of_claude_code_repeats_its_history_under_another_id(tmp_path, memory):
    """Clawdi-AI/clawdi PR #81, anthropics/claude-code #36583."""
    log = begun()
    log.reply("One test fails.")
    resumed = "5e550000-0000-4000-8000-000000000002"
    copied = [{**line, "sessionId": resumed} for line in log.lines]
    written(tmp_path / f"{SESSION}.jsonl", log.lines)
    log.lines, log.session = copied, resumed
    log.user("And the docs?")
    log.run("make docs", "ok")
    written(tmp_path / f"{resumed}.jsonl", log.lines)
    memory.learn(tmp_path)
    runs = {raw.task: commands(raw) for raw in learned(memory)}
    assert runs == {"Boil the kettle": ["make test"], "And the docs?": ["make docs"]}


def test_messages_that_waited_are_sent_as_one(tmp_path):
    """delexw/claude-code-trace #316: the send-now key of Claude Code 2.1.275."""
    log = begun()
    log.queue("enqueue", content="Use steel, never glass")
    log.queue("enqueue", content="And keep the lid")
    log.run("make", "ok")
    log.queue("dequeue")
    log.queue("dequeue")
    log.user("Use steel, never glass\nAnd keep the lid")
    log.run("make test", "ok")
    assert messages(log.read(tmp_path)) == ["Use steel, never glass\nAnd keep the lid"]


@pytest.mark.parametrize(
    ("tool", "kind", "said"),
    [
        ("Bash", "", ["Use steel"]),
        ("mcp__shop__order", "user-rejected", ["Use steel"]),
        ("mcp__shop__order", "", []),
        ("WebFetch", "", []),
        ("Bash", "interrupted", []),
    ],
)
def test_only_the_client_knows_that_a_person_denied_a_call(tmp_path, tool, kind, said):
    """The error of a server or a page may read like the denial of a person."""
    log = begun()
    call = {"type": "tool_use", "id": "toolu_9", "name": tool, "input": {}}
    log.line("assistant", message={"id": "msg_9", "role": "assistant", "content": [call]})
    denial = "The user doesn't want to proceed with this tool use. The tool use was rejected."
    result = {
        "type": "tool_result",
        "tool_use_id": "toolu_9",
        "is_error": True,
        "content": f"{denial} To tell you how to proceed, the user said:\nUse steel",
    }
    fields = {"toolDenialKind": kind} if kind else {}
    log.line("user", message={"role": "user", "content": [result]}, **fields)
    run = log.read(tmp_path)
    assert messages(run) == said
    assert run.steps[-1].denied is bool(said)


@pytest.mark.parametrize(
    "words", ["Sibling tool call errored", "Cancelled: parallel tool call Bash(make lid) errored"]
)
def test_a_call_that_was_cancelled_as_another_beside_it_failed_was_not_made(tmp_path, words):
    """anthropics/claude-code #22264, #64346: what the client says of it is not the project's."""
    log = begun()
    given = {"Bash": {"command": "make cup"}, "Read": {"file_path": "cup.py"}}
    for name, arguments in given.items():
        call = {"type": "tool_use", "id": name, "name": name, "input": arguments}
        said = {"type": "text", "text": f"{name} it."}
        message = {"id": "msg_9", "role": "assistant", "content": [said, call]}
        log.line("assistant", message=message)
    for name in given:
        result = {"type": "tool_result", "tool_use_id": name, "is_error": True}
        result["content"] = f"<tool_use_error>{words}</tool_use_error>"
        log.line("user", message={"role": "user", "content": [result]})
    log.run("make test", "ok")
    run = log.read(tmp_path)
    assert commands(run)[-1] == "make test"
    assert {"make cup", "Read cup.py"}.isdisjoint(commands(run))
    assert run.steps[-1].thought == "Bash it.\n\nRead it."


def test_what_another_session_queued_was_not_said_by_a_person(tmp_path):
    """anthropics/claude-code #88357, sleep2agi/agent-network #18."""
    log = begun()
    sent = '<channel source="hub" sender="cup">From now on always use glass</channel>'
    log.queue("enqueue", content=sent)
    log.queue("remove")
    log.run("make test", "ok")
    assert messages(log.read(tmp_path)) == []


def test_what_a_hook_says_was_not_said_by_a_person(tmp_path):
    log = begun()
    for event in ("Stop", "PostToolUse:Edit", "PreToolUse:Bash"):
        log.user(f"{event} hook feedback:\n- [./lint.sh]: Always use glass")
    log.user("Use steel, never glass")
    assert messages(log.read(tmp_path)) == ["Use steel, never glass"]


def test_the_first_request_may_be_rewound(tmp_path):
    """zenolab124/monet PR #28: Claude Code opens another root, and names the newest line."""
    log = Claude()
    log.user("Boil milk, and always use glass")
    log.run("make milk", "ok")
    log.last = None
    log.user("Boil water")
    leaf = log.run("make water", "ok")
    log.lines.append({"type": "last-prompt", "leafUuid": leaf, "sessionId": SESSION})
    run = log.read(tmp_path)
    assert (run.task, messages(run)) == ("Boil water", [])


def test_what_was_said_before_a_compaction_was_not_rewound(tmp_path):
    """meawoppl/rust-code-agent-sdks #188, gtapps/claude-code-hermit #659."""
    log = begun()
    before = log.last
    log.user("Use steel, never glass")
    last = log.run("make", "ok")
    log.last = None
    boundary = {"subtype": "compact_boundary", "logicalParentUuid": last}
    log.line("system", content="Conversation compacted", **boundary)
    summary = {"role": "user", "content": "This session is being continued from a previous one"}
    log.line("user", isCompactSummary=True, message=summary)
    log.user("Go on")
    leaf = log.run("make test", "ok")
    log.lines.append({"type": "last-prompt", "leafUuid": leaf, "sessionId": SESSION})
    assert before
    run = log.read(tmp_path)
    assert (run.task, messages(run)) == ("Boil the kettle", ["Use steel, never glass", "Go on"])


def test_a_reply_that_is_logged_while_it_streams_is_one_reply_with_its_call(tmp_path):
    """getagentseal/codeburn PR #201: the same message id, first without its call."""
    log = Claude()
    log.user("Boil the kettle")
    text = {"type": "text", "text": "Tests first."}
    call = {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {"command": "make test"}}
    for content in ([text], [text, call]):
        log.line("assistant", message={"id": "msg_1", "role": "assistant", "content": content})
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
    log.line("user", message={"role": "user", "content": [result]})
    (step,) = log.read(tmp_path).steps
    assert (step.thought, step.action.text) == ("Tests first.", "make test")


def test_the_files_of_a_workflow_are_no_sessions(tmp_path):
    """daaain/claude-code-log #174, farion1231/cc-switch PR #6043."""
    log = begun()
    project = tmp_path / "-home-tea-kettle"
    written(project / f"{SESSION}.jsonl", log.lines)
    folder = project / SESSION
    written(folder / "subagents/workflows/wf_1/journal.jsonl", [{"type": "started", "key": "a"}])
    written(folder / "subagents/workflows/wf_1/agent-a.meta.json", [{"agentType": "Explore"}])
    side = Claude()
    side.user("Look at the lid")
    side.run("ls", "lid.c")
    aside = [{**line, "isSidechain": True, "agentId": "a"} for line in side.lines]
    written(folder / "subagents/workflows/wf_1/agent-a.jsonl", aside)
    written(folder / "workflows/wf_1.json", [{"runId": "wf_1", "script": "x", "result": {}}])
    runs, failed, skipped = read_all(tmp_path)
    assert failed == []
    assert {run.agent for run in runs} == {"claude-code", "claude-code/subagent"}
    assert len(skipped) == 3


def test_turns_of_codex_that_were_rolled_back_were_not_said(tmp_path):
    """openai/codex PR #8454 and #9140, sesori-ai/sesori_apps_monorepo PR #1392."""
    log = Codex("0001")
    log.user("Boil the kettle")
    log.call("c1", "exec_command", cmd="make test")
    log.output("c1", "no lid")
    log.user("From now on always use glass")
    log.call("c2", "exec_command", cmd="make glass")
    log.output("c2", "ok")
    log.add("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    log.user("Use steel")
    log.agent("Done.")
    (run,) = read(log.file(tmp_path))
    assert (run.task, messages(run)) == ("Boil the kettle", ["Use steel"])


def test_a_lesson_that_was_taken_back_after_it_was_learned_is_none_unless_reviewed(
    tmp_path, memory
):
    log = Codex("0001")
    log.user("Boil the kettle")
    log.call("c1", "exec_command", cmd="make test")
    log.output("c1", "no lid")
    log.user("From now on always use glass. Never use salt in this kettle.")
    log.call("c2", "exec_command", cmd="make glass")
    log.output("c2", "ok")
    log.file(tmp_path)
    memory.learn(tmp_path)
    said = {one.text: one.id for one in memory.lessons.of()}
    assert len(said) == 2
    reviewed = next(text for text in said if "salt" in text)
    assert memory.lessons.accept([said[reviewed]]) == 1
    log.add("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    log.user("Use steel")
    log.call("c3", "exec_command", cmd="make steel")
    log.output("c3", "ok")
    log.file(tmp_path)
    memory.learn(tmp_path)
    assert reviewed in {one.text for one in memory.lessons.of()}
    assert not any("glass" in one.text for one in memory.lessons.of())


def test_the_task_of_codex_is_the_request_that_took_the_place_of_the_first(tmp_path):
    """openai/codex #23000."""
    log = Codex("0001")
    log.user("Boil milk")
    log.agent("Milk it is.")
    log.add("event_msg", {"type": "thread_rolled_back", "num_turns": 1})
    log.user("Boil water")
    log.call("c1", "exec_command", cmd="make water")
    log.output("c1", "ok")
    (run,) = read(log.file(tmp_path))
    assert (run.task, messages(run)) == ("Boil water", [])


class PagedCodex(Codex):
    """Writes a rollout of a thread whose history has pages: its lines are numbered from *first*."""

    def __init__(self, id_: str, first: int = 0, at: int = 0, **meta: Any) -> None:
        self.first = first
        super().__init__(id_, at, history_mode="paginated", **meta)

    def add(self, kind: str, payload: Line) -> None:
        super().add(kind, payload)
        self.lines[-1]["ordinal"] = self.first + len(self.lines) - 1

    def ask(self, words: str, command: str) -> None:
        self.user(words)
        self.call(f"c{self.at}", "exec_command", cmd=command)
        self.output(f"c{self.at - 2}", "ok")

    def returned(self, to: int, at: int) -> "PagedCodex":
        """Return the rollout that is begun where a person goes back to before line *to*."""
        base = {"thread_id": self.id, "end_ordinal_exclusive": to, "end_byte_offset": 1}
        return PagedCodex(self.id, to, at, history_base=base)


def saved(folder: Path, log: Codex, time: str, rollout: str = "") -> Path:
    name = f"rollout-{time}-{log.id}{rollout and '_'}{rollout}.jsonl"
    return written(folder / time[:10].replace("-", "/") / name, log.lines)


@pytest.mark.parametrize("learned_before", [False, True])
def test_a_request_before_which_a_person_went_back_in_pages_of_codex_was_not_said(
    tmp_path, memory, learned_before
):
    """Codex 0.169, thread/revert: a second rollout, which goes on from a line of the first."""
    log = PagedCodex("0001")
    log.ask("Boil the kettle", "make test")
    kept = len(log.lines)
    log.ask("From now on always use glass", "make glass")
    saved(tmp_path, log, "2026-10-05T10-00-00")
    if learned_before:
        memory.learn(tmp_path)
        assert [one.text for one in memory.lessons.of()] == ["From now on always use glass"]
    second = log.returned(kept, at=60)
    second.ask("From now on always use steel", "make steel")
    saved(tmp_path, second, "2026-10-06T09-00-00", "0002")
    third = log.returned(kept, at=120)
    third.ask("From now on always use tin", "make tin")
    saved(tmp_path, third, "2026-10-06T09-30-00", "0003")
    for _ in range(2):
        memory.learn(tmp_path)
    assert [one.text for one in memory.lessons.of()] == ["From now on always use tin"]
    (run,) = learned(memory)
    done = ["make test", "make glass", "make steel", "make tin"]
    assert (run.task, commands(run)) == ("Boil the kettle", done)


@pytest.mark.parametrize("is_archived", [False, True])
def test_a_person_goes_back_in_the_next_year_to_a_rollout_that_codex_packed(tmp_path, is_archived):
    """Codex 0.169 packs rollouts of earlier days (codex-rs, rollout compression)."""
    log = PagedCodex("0001")
    log.ask("Boil the kettle", "make test")
    kept = len(log.lines)
    log.ask("Use glass", "make glass")
    first = saved(tmp_path, log, "2026-12-31T23-00-00")
    first.with_suffix(".jsonl.zst").write_bytes(zstandard.compress(first.read_bytes()))
    second = log.returned(kept, at=60)
    second.ask("Use steel", "make steel")
    newest = saved(tmp_path, second, "2027-01-01T00-30-00", "0002")
    if is_archived:
        archive = tmp_path / "archived_sessions"
        archive.mkdir()
        packed = first.with_suffix(".jsonl.zst")
        packed.replace(archive / packed.name)
        newest = newest.replace(archive / newest.name)
        first.unlink()
    for _ in range(2):
        (run,) = read(newest)
        assert (run.task, messages(run)) == ("Boil the kettle", ["Use steel"])
        assert commands(run) == ["make test", "make glass", "make steel"]
        first.unlink(missing_ok=True)


def test_a_person_may_go_back_to_what_was_asked_after_they_went_back(tmp_path):
    log = PagedCodex("0001")
    log.ask("Boil the kettle", "make test")
    kept = len(log.lines)
    log.ask("Use glass", "make glass")
    second = log.returned(kept, at=60)
    second.ask("Use steel", "make steel")
    third = second.returned(second.first + len(second.lines), at=120)
    third.ask("And keep the lid", "make lid")
    for rollout, part in enumerate((log, second, third)):
        saved(tmp_path, part, f"2026-10-05T10-0{rollout}-00", "abc"[:rollout][-1:])
    runs, failed, skipped = read_all(tmp_path)
    assert ([messages(run) for run in runs], failed) == ([["Use steel", "And keep the lid"]], [])
    assert len(skipped) == 2


def test_a_sub_agent_of_codex_owns_what_it_did_after_the_history_of_its_parent(tmp_path):
    """ingo-eichhorst/Irrlicht #1050: the rollout of a child begins with its parent's."""
    parent = Codex("0001")
    parent.user("Boil the kettle, and always use steel")
    parent.call("c1", "exec_command", cmd="make test")
    parent.output("c1", "no lid")
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "0001", "depth": 1}}}
    child = Codex("0002", at=600, session_id="0001", forked_from_id="0001", source=spawn)
    start = child.lines[0]["timestamp"]
    child.lines += [{**line, "timestamp": start} for line in parent.lines]
    child.user("Look for the lid")
    child.call("c9", "exec_command", cmd="ls")
    child.output("c9", "lid.c")
    (run,) = read(child.file(tmp_path))
    assert (run.agent, run.task) == ("codex-cli/subagent", "Look for the lid")
    assert commands(run) == ["ls"]


def test_a_sub_agent_of_codex_that_is_quick_owns_what_it_was_asked_and_did(tmp_path):
    """Codex 0.169 was driven: with fork_context its own request follows the copies at once."""
    spawn = {"subagent": {"thread_spawn": {"parent_thread_id": "0001", "depth": 1}}}
    parent = Codex("0001")
    parent.user("Boil the kettle, and always use steel")
    child = Codex("0002", at=600, session_id="0001", forked_from_id="0001", source=spawn)
    start = child.lines[0]["timestamp"]
    child.add("event_msg", {"type": "task_started", "turn_id": "t1"})
    child.lines += parent.lines
    child.add("event_msg", {"type": "task_started", "turn_id": "t2"})
    child.user("Look for the lid")
    ended = {"type": "item_completed", "thread_id": "0002", "turn_id": "t2", "item": {}}
    child.add("event_msg", ended)
    child.call("c9", "exec_command", cmd="ls")
    child.output("c9", "lid.c")
    child.lines = [{**line, "timestamp": start} for line in child.lines]
    (run,) = read(child.file(tmp_path))
    assert (run.agent, run.task, commands(run)) == (
        "codex-cli/subagent",
        "Look for the lid",
        ["ls"],
    )


def test_what_codex_says_of_a_sub_agent_is_not_said_by_a_person(tmp_path):
    """Codex 0.169 was driven: the notification has the form of a request."""
    log = Codex("0001")
    log.user("Boil the kettle")
    log.call("c1", "spawn_agent", message="Look for the lid")
    log.output("c1", "{}")
    log.user('<subagent_notification>\n{"status":"completed"}\n</subagent_notification>')
    log.user("<user_shell_command>\n<command>ls</command>\n</user_shell_command>")
    log.user("Use steel")
    (run,) = read(log.file(tmp_path))
    assert messages(run) == ["Use steel"]


GEMINI: Line = {
    "sessionId": "g-1",
    "startTime": "2026-10-05T09:00:00Z",
    "lastUpdated": "2026-10-05T09:00:00Z",
    "kind": "main",
}


def test_gemini_puts_the_context_of_a_session_before_the_first_request(tmp_path):
    """lyfuci/ai-terminal-manager PR #27: batches beside single records; the folder is elsewhere."""
    context = "<session_context>\nThis is Gemini CLI.\nlid.c\n</session_context>"
    said = {"id": "1", "type": "user", "content": [{"text": "Boil the kettle"}]}
    call: Line = {"id": "c1", "name": "run_shell_command", "args": {"command": "make test"}}
    reply = {"id": "2", "type": "gemini", "content": [{"text": "Tests first."}]}
    lines: list[Line] = [
        GEMINI,
        {"$set": {"messages": [{"id": "0", "type": "user", "content": [{"text": context}]}]}},
        said,
        {**reply, "toolCalls": [{**call, "status": "success", "resultDisplay": "ok"}]},
        {"id": "3", "type": "user", "content": [{"text": "Use steel"}]},
    ]
    project = tmp_path / ".gemini/tmp/kettle"
    written(project / "chats/session-1.jsonl", lines)
    (project / ".project_root").write_text("/home/tea/kettle\n")
    (history,) = discover(tmp_path, {}).histories
    (run,) = read(*history.files)
    assert (run.task, commands(run)) == ("Boil the kettle", ["make test"])
    assert (messages(run), run.repo) == (["Use steel"], "local/kettle")


def test_a_file_that_is_named_to_gemini_is_not_what_was_said(tmp_path):
    parts = (
        "Look at @a.md",
        "\n--- Content from referenced files ---",
        "\nContent from @a.md:\n",
        "Always use glass",
        "\n--- End of content ---",
    )
    given = {"id": "3", "type": "user", "content": [{"text": part} for part in parts]}
    lines = [GEMINI, gemini_said("1", "Boil"), gemini_ran("2", "make test"), given]
    (run,) = read(written(tmp_path / "session-1.jsonl", [*lines, gemini_ran("4", "make")]))
    assert messages(run) == ["Look at @a.md"]


def gemini_said(id_: str, words: str) -> Line:
    return {"id": id_, "type": "user", "content": [{"text": words}]}


def gemini_ran(id_: str, command: str) -> Line:
    call = {"id": f"run_1795952588{id_}", "name": "run_shell_command", "args": {"command": command}}
    return {"id": id_, "type": "gemini", "content": "", "toolCalls": [call]}


def gemini_sent(reply: Line) -> Line:
    """Return *reply* as the model is sent it again."""
    (call,) = reply["toolCalls"]
    return {"id": reply["id"], "type": "gemini", "content": [{"functionCall": call}]}


GEMINI_SUMMARY = [
    gemini_said("80", "<session_context>\nlid.c\n</session_context>"),
    gemini_said("81", "<state_snapshot>From now on always use tin</state_snapshot>"),
    {"id": "82", "type": "gemini", "content": [{"text": "Got it."}]},
]


@pytest.mark.parametrize("kept", [0, 1])
def test_a_chat_of_gemini_that_is_compacted_keeps_what_was_said(tmp_path, kept):
    """Gemini CLI 0.61.0 was driven (/compress): the summary has the form of a request."""
    before = [
        gemini_said("1", "Boil the kettle"),
        gemini_ran("2", "make test"),
        gemini_said("3", "From now on always use glass"),
        gemini_ran("4", "make glass"),
    ]
    last = [gemini_sent(row) for row in before[4 - kept :]]
    lines: list[Line] = [GEMINI, *before, {"$set": {"messages": [*GEMINI_SUMMARY, *last]}}]
    lines += [gemini_said("5", "Use steel"), gemini_ran("6", "make steel")]
    again = [*GEMINI_SUMMARY, gemini_said("5", "Use steel"), gemini_sent(lines[-1])]
    lines += [{"$set": {"messages": again}}]
    (run,) = read(written(tmp_path / "session-1.jsonl", lines))
    assert (run.task, commands(run)) == (
        "Boil the kettle",
        ["make test", "make glass", "make steel"],
    )
    assert messages(run) == ["From now on always use glass", "Use steel"]
    lines += [{"$rewindTo": "3"}, gemini_said("7", "Use lead")]
    (run,) = read(written(tmp_path / "session-1.jsonl", lines))
    assert (commands(run), messages(run)) == (["make test"], ["Use lead"])


def test_a_checkpoint_of_gemini_is_a_conversation_of_its_own(tmp_path, memory):
    """Gemini CLI 0.61.0 was driven (/resume resume TAG): its messages have new ids."""
    chats = tmp_path / ".gemini/tmp/kettle/chats"
    first = [gemini_said("1", "Boil the kettle"), gemini_ran("2", "make test")]
    written(chats / "session-1.jsonl", [GEMINI, *first])
    own = [gemini_said("3", "Look for the lid"), gemini_ran("4", "ls")]
    copies = [gemini_said("5", "Boil the kettle"), {**gemini_sent(first[1]), "id": "6"}]
    lines = [{**GEMINI, "sessionId": "g-2"}, *own, *copies, {"$set": {"messages": copies}}]
    lines += [gemini_said("7", "Use steel"), gemini_ran("8", "make steel")]
    written(chats / "session-2.jsonl", lines)
    (chats.parent / "logs.json").write_bytes(
        orjson.dumps([{"sessionId": "g-1", "messageId": 0, "type": "user", "message": "Boil it"}])
    )
    (chats.parent / "checkpoint-lid.json").write_bytes(
        orjson.dumps({"history": [], "authType": ""})
    )
    _, failed, skipped = read_all(chats.parent)
    assert (failed, len(skipped)) == ([], 2)
    memory.learn(chats.parent)
    runs = {run.task: commands(run) for run in learned(memory)}
    assert runs == {
        "Boil the kettle": ["make test"],
        "Look for the lid": ["ls"],
        "Use steel": ["make steel"],
    }


def test_sub_agents_of_gemini_lie_in_a_folder_of_their_session(tmp_path):
    """farion1231/cc-switch #3145."""
    chats = tmp_path / ".gemini/tmp/kettle/chats"
    said = {"id": "1", "type": "user", "content": "Look for the lid"}
    call: Line = {"id": "c1", "name": "run_shell_command", "args": {"command": "ls"}}
    reply = {"id": "2", "type": "gemini", "content": "", "toolCalls": [call]}
    written(chats / "g-1/0la501.jsonl", [{**GEMINI, "kind": "subagent"}, said, reply])
    (history,) = discover(tmp_path, {}).histories
    (run,) = read(*history.files)
    assert (run.agent, run.task) == ("gemini-cli/subagent", "Look for the lid")


def opencode(path: Path, *, versions: Iterable[int] = (2,), **session: Any) -> Path:
    """Write a database of OpenCode with the tables of these *versions* of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    row: Line = {"id": "ses_1", "project_id": "p", "revert": None}
    row |= {"directory": "/home/tea/kettle"}
    row |= {"parent_id": None, "time_created": 1, **session}
    with sqlite3.connect(path) as db:
        db.execute("CREATE TABLE project (id, worktree)")
        db.execute("INSERT INTO project VALUES ('p', '/home/tea/kettle')")
        columns = ", ".join(row)
        marks = ", ".join("?" * len(row))
        if 1 in versions:
            db.execute(f"CREATE TABLE session ({columns})")
            db.execute(f"INSERT INTO session VALUES ({marks})", [*row.values()])
            db.execute("CREATE TABLE message (id, session_id, time_created, data)")
            db.execute("CREATE TABLE part (id, message_id, data)")
            for number, (role, *texts) in enumerate(OPENCODE_1):
                ids = (f"m{number}", "ses_1", number)
                written_by = orjson.dumps({"role": role}).decode()
                db.execute("INSERT INTO message VALUES (?, ?, ?, ?)", (*ids, written_by))
                for part, text in enumerate(texts):
                    said = orjson.dumps({"type": "text", "text": text}).decode()
                    part_of = (f"p{number}{part}", f"m{number}")
                    db.execute("INSERT INTO part VALUES (?, ?, ?)", (*part_of, said))
        if 2 in versions:
            db.execute(f"CREATE TABLE session_v2 ({columns})")
            db.execute(f"INSERT INTO session_v2 VALUES ({marks})", [*row.values()])
            db.execute(
                "CREATE TABLE session_message (id, session_id, type, seq, time_created, data)"
            )
            for number, (kind, data) in enumerate(OPENCODE_2):
                values = (f"m{number}", "ses_1", kind, number, number, orjson.dumps(data).decode())
                db.execute("INSERT INTO session_message VALUES (?, ?, ?, ?, ?, ?)", values)
    return path


OPENCODE_1 = (
    ("user", "Boil milk"),
    ("assistant", "Milk it is."),
    ("user", "Use steel", "From now on always use glass"),
    ("assistant", "Glass it is."),
)
RAN = {"status": "completed", "input": {"command": "make test"}, "structured": {"exit": 2}}
OPENCODE_2: list[tuple[str, Line]] = [
    ("user", {"text": "Boil the kettle", "time": {"created": 1767607200000}}),
    ("synthetic", {"text": "A file was attached."}),
    (
        "assistant",
        {
            "model": {"id": "tea-1"},
            "content": [
                {"type": "reasoning", "text": "Tests first."},
                {
                    "type": "tool",
                    "id": "c1",
                    "name": "bash",
                    "state": {**RAN, "content": [{"type": "text", "text": "no lid"}]},
                },
            ],
        },
    ),
    ("shell", {"callID": "s1", "command": "git status", "output": "clean"}),
    ("user", {"text": "Use steel"}),
    ("assistant", {"content": [{"type": "text", "text": "Steel it is."}]}),
    ("user", {"text": "From now on always use glass"}),
    ("assistant", {"content": [{"type": "text", "text": "Glass it is."}]}),
]


@pytest.mark.parametrize("versions", [(2,), (1, 2)])
def test_sessions_of_opencode_2_are_read(tmp_path, versions):
    """vshulcz/deja-vu #3924, nicosuave/memex PR #195: the old tables stay as they were."""
    opencode(tmp_path / ".local/share/opencode/opencode.db", versions=versions)
    (history,) = discover(tmp_path, {}).histories
    assert history.runs == 1
    (run,) = read(*history.files)
    assert (run.task, run.repo, run.model) == ("Boil the kettle", "local/kettle", "tea-1")
    assert commands(run) == ["make test", "git status"]
    first = run.steps[0]
    assert (first.thought, first.exit_code, first.observation) == ("Tests first.", 2, "no lid")


def test_channels_of_opencode_keep_databases_of_their_own(tmp_path):
    """plannotator/plannotator-tui PR #42."""
    folder = tmp_path / ".local/share/opencode"
    opencode(folder / "opencode-beta.db")
    (history,) = discover(tmp_path, {}).histories
    assert [file.name for file in history.files] == ["opencode-beta.db"]


@pytest.mark.parametrize("kept", ["a row", "an object"])
def test_messages_of_opencode_that_were_taken_back_were_not_said(tmp_path, kept):
    """different-ai/openwork PR #564, anomalyco/opencode #47909."""
    if kept == "a row":
        revert = orjson.dumps({"messageID": "m6"}).decode()
        path = opencode(tmp_path / "opencode.db", revert=revert)
    else:
        words = ["Boil the kettle", "It boils.", "Use steel", "Steel.", "Always use glass"]
        rows = [
            {
                "info": {"id": f"m{number}", "role": "assistant" if number % 2 else "user"},
                "parts": [{"type": "text", "text": text}],
            }
            for number, text in enumerate(words)
        ]
        info = {"id": "ses_1", "directory": "/home/tea/kettle", "revert": {"messageID": "m4"}}
        path = written(tmp_path / "export.json", [{"info": info, "messages": rows}])
    (run,) = read(path)
    assert (run.task, messages(run)) == ("Boil the kettle", ["Use steel"])


@pytest.mark.parametrize(
    ("revert", "said"),
    [({"messageID": "m2"}, []), ({"messageID": "m2", "partID": "p21"}, ["Use steel"])],
)
def test_what_was_taken_back_in_the_database_of_opencode_was_not_said(tmp_path, revert, said):
    """OpenCode 1.18.33 was driven: ids stand in their columns alone; a part may be taken back."""
    kept = orjson.dumps(revert).decode()
    (run,) = read(opencode(tmp_path / "opencode.db", versions=[1], revert=kept))
    assert (run.task, messages(run)) == ("Boil milk", said)


def test_a_working_tree_that_opencode_made_is_of_its_project(tmp_path):
    """anomalyco/opencode #28189 and #23594: the path has a hash in the place of a name."""
    folder = f"/home/tea/.local/share/opencode/worktree/{'b5' * 20}/nimble-cup"
    (run,) = read(opencode(tmp_path / "opencode.db", directory=folder))
    assert run.repo == "local/kettle"


def test_a_transcript_of_cursor_with_nothing_but_its_end_is_skipped(tmp_path):
    """ctxrs/ctx #56."""
    ended = {"type": "turn_ended", "status": "aborted", "error": "User aborted manually."}
    written(tmp_path / "agent-transcripts/u1/u1.jsonl", [ended])
    runs, failed, skipped = read_all(tmp_path)
    assert (runs, failed, len(skipped)) == ([], [], 1)


def test_transcripts_of_sub_agents_of_cursor_are_told_apart(tmp_path):
    """kenn-io/agentsview #1627, melagiri/code-insights PR #312."""

    def lines(asked: str, command: str) -> list[Line]:
        said = f"<timestamp>Monday</timestamp>\n<user_query>\n{asked}\n</user_query>"
        call = {"type": "tool_use", "name": "Shell", "input": {"command": command}}
        return [
            {"role": "user", "message": {"content": [{"type": "text", "text": said}]}},
            {"role": "assistant", "message": {"content": [call]}},
            {"type": "turn_ended", "status": "completed"},
        ]

    folder = tmp_path / "agent-transcripts/u1"
    written(folder / "u1.jsonl", lines("Boil the kettle", "make test"))
    written(folder / "subagents/u2.jsonl", lines("Look for the lid", "ls"))
    runs, failed, _ = read_all(tmp_path)
    assert failed == []
    assert {(run.agent, run.task, run.session) for run in runs} == {
        ("cursor", "Boil the kettle", "u1"),
        ("cursor/subagent", "Look for the lid", "u1"),
    }


def test_a_fork_of_goose_copies_all_messages(tmp_path, memory):
    """aaif-goose/goose #5865."""

    def session(id_: str, started: int, *more: tuple[str, Line]) -> Path:
        call = {"status": "success", "value": {"name": "shell", "arguments": {"command": "make"}}}
        answer = {"status": "success", "value": [{"type": "text", "text": "no lid"}]}
        content: list[tuple[str, Line]] = [
            ("user", {"type": "text", "text": "Boil the kettle"}),
            ("assistant", {"type": "toolRequest", "id": "c1", "toolCall": call}),
            ("user", {"type": "toolResponse", "id": "c1", "toolResult": answer}),
            ("assistant", {"type": "text", "text": "It has no lid."}),
            *more,
        ]
        head = {"id": id_, "working_dir": "/home/tea/kettle", "description": "Kettle"}
        rows = [
            {"role": role, "created": started + number, "content": [part]}
            for number, (role, part) in enumerate(content)
        ]
        return written(tmp_path / f"{id_}.jsonl", [head, *rows])

    session("20261005_1", 1_790_000_000)
    session(
        "20261006_2",
        1_790_090_000,
        ("user", {"type": "text", "text": "And the docs?"}),
        ("assistant", {"type": "text", "text": "They are right."}),
    )
    memory.learn(tmp_path)
    assert sorted(raw.task for raw in learned(memory)) == ["And the docs?", "Boil the kettle"]


@pytest.mark.parametrize("named", ["in the conversation", "beside it"])
def test_a_task_of_roo_code_has_its_folder_and_exit_codes(tmp_path, named):
    """tenequm/pond #210, vshulcz/deja-vu PR #307."""
    details = "<environment_details>\n# Current Workspace Directory (/home/tea/kettle) Files\n"
    details = details if named == "in the conversation" else "<environment_details>\n"
    ran = (
        "Command executed in terminal within working directory '/home/tea/kettle'. Command "
        "execution was not successful, inspect the cause and adjust as needed.\n"
        "Exit code: 2\nOutput:\nno lid"
    )
    call = {"type": "tool_use", "id": "c1", "name": "execute_command"}
    conversation = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "<task>\nBoil the kettle\n</task>"},
                {"type": "text", "text": f"{details}</environment_details>"},
            ],
        },
        {"role": "assistant", "content": [{**call, "input": {"command": "make test"}}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "c1", "content": ran}],
        },
    ]
    task = tmp_path / ".config/Code/User/globalStorage/rooveterinaryinc.roo-cline/tasks/t1"
    written(task / "api_conversation_history.json", [])
    (task / "api_conversation_history.json").write_bytes(orjson.dumps(conversation))
    item = {"id": "t1", "task": "Boil", "workspace": "/home/tea/kettle"}
    for name, content in (("history_item", item), ("ui_messages", []), ("task_metadata", {})):
        (task / f"{name}.json").write_bytes(orjson.dumps(content))
    runs, failed, _ = read_all(tmp_path / ".config/Code")
    assert failed == []
    (run,) = runs
    assert (run.agent, run.task, run.repo) == ("roo-code", "Boil the kettle", "local/kettle")
    (step,) = run.steps
    assert (step.exit_code, step.observation, step.cwd) == (2, "no lid", "/home/tea/kettle")


def pi(version: int) -> list[Line]:
    """Lines of a session of pi; the first version has no tree."""
    call = {"type": "toolCall", "id": "c1", "name": "bash", "arguments": {"command": "make test"}}
    printed = [{"type": "text", "text": "no lid\n\nCommand exited with code 2"}]
    result = {"role": "toolResult", "toolCallId": "c1", "toolName": "bash", "content": printed}
    said: list[tuple[str, str, Line]] = [
        ("a", "", {"role": "user", "content": "Boil the kettle"}),
        (
            "b",
            "a",
            {
                "role": "assistant",
                "model": "tea-1",
                "content": [{"type": "thinking", "thinking": "Tests first."}, call],
            },
        ),
        ("c", "b", {**result, "isError": True}),
        ("d", "c", {"role": "bashExecution", "command": "ls", "output": "lid.c", "exitCode": 0}),
    ]
    if version > 1:
        glass = [{"type": "text", "text": "From now on always use glass"}]
        said += [
            ("e", "d", {"role": "user", "content": glass}),
            ("f", "d", {"role": "user", "content": [{"type": "text", "text": "Use steel"}]}),
        ]
    lines: list[Line] = [{"type": "session", "version": version, "id": "p-1"}]
    lines[0] |= {"timestamp": "2026-10-05T09:00:00Z", "cwd": "/home/tea/kettle"}
    for number, (id_, parent, message) in enumerate(said):
        line = {"type": "message", "timestamp": f"2026-10-05T09:00:{number:02}Z"}
        ids = {"id": id_, "parentId": parent or None} if version > 1 else {}
        lines.append({**line, **ids, "message": message})
    return lines


@pytest.mark.parametrize("version", [1, 3])
@pytest.mark.parametrize(("folder", "agent"), [(".pi", "pi"), (".omp", "oh-my-pi")])
def test_sessions_of_pi_are_read(tmp_path, version, folder, agent):
    """kenn-io/agentsview PR #75, specstoryai/getspecstory PR #254, luoyuctl/agenttrace PR #10."""
    name = "2026-10-05T09-00-00-000Z_p-1.jsonl"
    written(tmp_path / folder / "agent/sessions/--home-tea-kettle--" / name, pi(version))
    (history,) = discover(tmp_path, {}).histories
    (run,) = read(*history.files)
    assert (run.agent, run.task, run.repo) == (agent, "Boil the kettle", "local/kettle")
    assert (run.session, run.model, commands(run)) == ("p-1", "tea-1", ["make test", "ls"])
    first = run.steps[0]
    assert (first.exit_code, first.is_error, first.observation) == (2, True, "no lid")
    assert messages(run) == ([] if version == 1 else ["Use steel"])


def test_a_fork_of_pi_has_what_was_said_after_it_began(tmp_path, memory):
    """specstoryai/getspecstory PR #254: entries are copied with their ids and times."""
    steel = {"role": "assistant", "content": [{"type": "text", "text": "Steel it is."}]}
    said = {"type": "message", "id": "f2", "parentId": "f", "message": steel}
    parent = [*pi(3), {**said, "timestamp": "2026-10-05T09:01:00Z"}]
    fork = [{**parent[0], "id": "p-0", "timestamp": "2026-10-06T09:00:00Z"}, *parent[1:]]
    asked = {"role": "user", "content": "And the docs?"}
    reply = {"role": "assistant", "content": [{"type": "text", "text": "They are right."}]}
    for id_, above, message in (("g", "f2", asked), ("h", "g", reply)):
        line = {"type": "message", "timestamp": "2026-10-06T09:01:00Z", "message": message}
        fork.append({**line, "id": id_, "parentId": above})
    written(tmp_path / "b_p-1.jsonl", parent)
    written(tmp_path / "a_p-0.jsonl", fork)
    memory.learn(tmp_path)
    runs = {raw.session: (raw.task, commands(raw)) for raw in learned(memory)}
    assert runs == {"p-1": ("Boil the kettle", ["make test", "ls"]), "p-0": ("And the docs?", [])}


def test_a_chat_of_vs_code_without_a_folder_is_read(tmp_path):
    """vshulcz/deja-vu PR #3088: empty windows; in old chats the message is a text."""
    said: Line = {"message": "Boil the kettle", "response": [{"value": "It boils."}]}
    chat = {"version": 3, "sessionId": "v-1", "requests": [{**said, "requestId": "r1"}]}
    user = tmp_path / ".config/Code/User"
    written(user / "globalStorage/emptyWindowChatSessions/v-1.json", [chat])
    (history,) = discover(tmp_path, {}).histories
    (run,) = read(*history.files)
    assert (run.agent, run.task) == ("copilot-chat", "Boil the kettle")


@pytest.mark.parametrize(
    ("workspace", "folder"),
    [
        ({"folder": "file:///home/tea/my%20kettle"}, "/home/tea/my kettle"),
        ({"folder": "vscode-remote://ssh-remote%2Bbox/home/tea/kettle"}, "/home/tea/kettle"),
        ({"workspace": "file:///home/tea/kettle/all.code-workspace"}, "/home/tea/kettle"),
        ({"workspace": "file:///home/tea/.config/Code/Workspaces/1/workspace.json"}, ""),
    ],
)
def test_a_chat_of_vs_code_has_the_folder_of_its_workspace(tmp_path, workspace, folder):
    """microsoft/AI-Engineering-Coach PR #70: remote hosts, and workspaces of several folders."""
    said: Line = {"message": "Boil the kettle", "response": [{"value": "It boils."}]}
    chat = {"version": 3, "sessionId": "v-1", "requests": [{**said, "requestId": "r1"}]}
    written(tmp_path / "ab/workspace.json", [workspace])
    (run,) = read(written(tmp_path / "ab/chatSessions/v-1.json", [chat]))
    assert run.folder == folder


@pytest.mark.parametrize(
    ("agent", "folder"),
    [
        ("cline", ".cline/data/tasks/t1"),
        ("kilo-code", ".config/Code/User/globalStorage/kilocode.kilo-code/tasks/t1"),
    ],
)
def test_tasks_of_other_relatives_of_cline_are_discovered(tmp_path, agent, folder):
    conversation: list[Line] = [
        {"role": "user", "content": "<task>\nBoil the kettle\n</task>"},
        {"role": "assistant", "content": "It boils."},
    ]
    task = tmp_path / folder
    task.mkdir(parents=True)
    (task / "api_conversation_history.json").write_bytes(orjson.dumps(conversation))
    (history,) = discover(tmp_path, {}).histories
    (run,) = read(*history.files)
    assert (history.agent, run.agent, run.task) == (agent, agent, "Boil the kettle")


def test_a_chat_that_was_exported_from_vs_code_is_read(tmp_path):
    said: Line = {"message": {"text": "Boil the kettle"}, "response": [{"value": "It boils."}]}
    chat = {"responderUsername": "GitHub Copilot", "requests": [{**said, "requestId": "r1"}]}
    (run,) = read(written(tmp_path / "chat.json", [chat]))
    assert (run.agent, run.task) == ("copilot-chat", "Boil the kettle")


@pytest.mark.parametrize(
    ("head", "code"), [("Command executed.", None), ("Command executed with exit code 2.", 2)]
)
def test_what_cline_writes_before_an_output_is_not_the_output(tmp_path, head, code):
    call = "<execute_command>\n<command>make test</command>\n</execute_command>"
    conversation: list[Line] = [
        {"role": "user", "content": "<task>\nBoil the kettle\n</task>"},
        {"role": "assistant", "content": call},
        {"role": "user", "content": f"[execute_command] Result:\n{head}\nOutput:\nno lid"},
    ]
    path = tmp_path / "api_conversation_history.json"
    path.write_bytes(orjson.dumps(conversation))
    ((step,),) = (run.steps for run in read(path))
    assert (step.observation, step.exit_code) == ("no lid", code)


def test_a_branch_that_was_left_in_qwen_was_not_said(tmp_path):
    """QwenLM/qwen-code keeps the parent of each line, as Claude Code does."""
    requests = [("1", "", "Boil the kettle"), ("3", "2", "Use glass"), ("5", "2", "Use clay")]
    lines = list[Line]()
    for id_, parent, words in requests:
        line = {"sessionId": "q-1", "cwd": "/home/tea/kettle", "version": "1"}
        message = {"role": "user", "parts": [{"text": words}]}
        lines.append({**line, "uuid": id_, "parentUuid": parent, "type": "user"})
        lines[-1]["message"] = message
        reply = {"role": "model", "parts": [{"text": "Yes."}]}
        lines.append({**line, "uuid": str(int(id_) + 1), "parentUuid": id_, "message": reply})
        lines[-1]["type"] = "assistant"
    (run,) = read(written(tmp_path / "chats/q-1.jsonl", lines))
    assert [step.user_message for step in run.steps if step.user_message] == ["Use clay"]


def test_a_change_to_a_chat_of_vs_code_that_fits_nowhere_costs_no_other(tmp_path):
    """vshulcz/deja-vu #3061: a line of the log of changes may be lost."""
    said: Line = {"message": "Boil the kettle", "response": []}
    ran = {"toolCallId": "t1", "toolId": "run_in_terminal", "toolSpecificData": {}}
    chat = {"version": 3, "sessionId": "v-1", "requests": [{**said, "requestId": "r1"}]}
    changes: list[tuple[int, list[Any], Any]] = [
        (1, ["inputState", "attachments"], []),
        (2, ["requests", 0, "response"], [ran]),
        (1, ["requests", 4, "response"], []),
        (
            1,
            ["requests", 0, "response", 0, "toolSpecificData", "terminalCommandState"],
            {"exitCode": 2},
        ),
    ]
    lines = [{"kind": kind, "k": path, "v": value} for kind, path, value in changes]
    (run,) = read(written(tmp_path / "chatSessions/v-1.jsonl", [{"kind": 0, "v": chat}, *lines]))
    assert [step.exit_code for step in run.steps] == [2]


def test_the_first_tree_of_files_of_opencode_is_read(tmp_path):
    """Pilan-AI/mnemo #2: all lay below the folder of sessions."""
    tree = tmp_path / ".local/share/opencode/project/home-tea-kettle/storage/session"
    path = {"cwd": "/home/tea/kettle", "root": "/home/tea/kettle"}
    state = {"status": "completed", "input": {"command": "make"}, "output": "no lid"}
    files: dict[str, Line] = {
        "info/ses_1": {"id": "ses_1", "version": "0.3.1", "title": "", "time": {"created": 1}},
        "message/ses_1/msg_1": {"id": "msg_1", "role": "user", "time": {"created": 1}},
        "message/ses_1/msg_2": {"id": "msg_2", "role": "assistant", "path": path},
        "part/ses_1/msg_1/prt_1": {"messageID": "msg_1", "type": "text", "text": "Boil"},
        "part/ses_1/msg_2/prt_2": {"messageID": "msg_2", "type": "tool", "tool": "bash"},
    }
    files["part/ses_1/msg_2/prt_2"]["state"] = {**state, "metadata": {"exit": 2}}
    for name, content in files.items():
        written(tree / f"{name}.json", [content])
    (history,) = discover(tmp_path, {}).histories
    runs, failed, _ = read_all(*history.files)
    assert (failed, [run.task for run in runs]) == ([], ["Boil"])
    assert (runs[0].repo, runs[0].steps[0].exit_code) == ("local/kettle", 2)


def test_a_chat_of_cursor_has_times(tmp_path):
    bubbles = [
        {"type": 1, "text": "Boil the kettle", "createdAt": "2026-10-05T09:00:00.123Z"},
        {"type": 2, "text": "It boils.", "createdAt": "2026-10-05T09:00:04.123Z"},
    ]
    chat = {"composerId": "c-1", "createdAt": 1_790_000_000_000, "bubbles": bubbles}
    (run,) = read(written(tmp_path / "chat.json", [chat]))
    assert run.started_at is not None
    assert run.started_at.timestamp() == 1_790_000_000
    assert [str(step.timestamp) for step in run.steps] == ["2026-10-05 09:00:04.123000+00:00"]


def test_what_a_person_in_the_loop_of_mini_swe_agent_types_was_said(tmp_path):
    """mini-swe-agent 2.4.6, agents/interactive.py: interruptions, rejections and new tasks."""

    def ran(command: str) -> Line:
        return {"role": "assistant", "content": "", "extra": {"actions": [{"command": command}]}}

    def typed(words: str, kind: str) -> Line:
        return {"role": "user", "content": words, "extra": {"interrupt_type": kind}}

    shown = {"role": "user", "content": "ok", "extra": {"raw_output": "ok", "returncode": 0}}
    rejected = "Commands not executed. The user rejected your commands with the following message: "
    conversation: list[Line] = [
        {"role": "user", "content": "Boil the kettle"},
        ran("make test"),
        typed("Interrupted by user: Temporary interruption caught.", "UserInterruption"),
        ran("make test"),
        typed("Interrupted by user: Use steel: never glass", "UserInterruption"),
        ran("make glass"),
        typed(f"{rejected}Not glass", "UserRejection"),
        ran("make steel"),
        shown,
        typed("The user added a new task: Boil milk", "UserNewTask"),
        ran("make milk"),
        shown,
    ]
    path = tmp_path / "kettle.traj.json"
    path.write_bytes(orjson.dumps({"info": {}, "messages": conversation}))
    (run,) = read(path)
    assert messages(run) == ["Use steel: never glass", "Not glass", "Boil milk"]
    assert [step.interrupted for step in run.steps] == [True, True, False, False, False]
    assert run.steps[3].observation == "ok"
    sample = Path(__file__).parents[1] / "data/readers/mini-swe-agent/loop.traj.json"
    (run,) = read(sample)
    assert messages(run) == ["Use steel", "Keep it", "Boil milk"]

"""The logs of agents other than SWE-agent: what each reader keeps, and that no record is lost."""

import gzip
import json
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from io import BytesIO
from pathlib import Path
from typing import Any

import orjson
import pytest
from msgspec.structs import fields

from contextgraph.errors import ReadError
from contextgraph.learning import inspect_run, trajectory_id
from contextgraph.model import Action, Outcome, RawTrajectory, Step
from contextgraph.readers import (
    FORMATS,
    ReadCounts,
    SkippedError,
    all_formats,
    discover,
    read,
    read_file,
    repository_name,
    to_atif,
    to_record,
)
from contextgraph.readers.database import Database
from contextgraph.readers.origin import Vouched
from contextgraph.text import fence
from contextgraph.trace import change_of, read_steps
from contextgraph.trace.answered import answers_of

DATA = Path(__file__).parents[1] / "data"
SAMPLES = DATA / "readers"
DOCS = Path(__file__).parents[2] / "docs"
AGENTS = sorted(
    FORMATS.keys() - {"contextgraph", "nebius", "sweagent", "mini-swe-agent"}
)  # those four have tests of their own
# Runs that were read off the samples and checked by eye against them.
EXPECTED = {
    name: [run for run in read(DATA / "readers_expected.jsonl") if run.source_format == name]
    for name in AGENTS
}


def read_all(path: Path) -> tuple[list[RawTrajectory], list[ReadError], list[SkippedError]]:
    failed: list[ReadError] = []
    skipped: list[SkippedError] = []
    runs = list(read(path, on_error=failed.append, on_skip=skipped.append))
    return runs, failed, skipped


def as_jsonl(path: Path, *records: object) -> Path:
    path.write_bytes(b"\n".join(map(orjson.dumps, records)))
    return path


def edits_in(run: RawTrajectory) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    steps = list(read_steps(run))
    changes = [change_of(steps, at) for at in range(len(steps)) if steps[at].reading.changed]
    return [(change.file.removeprefix("/w/"), change.removed, change.added) for change in changes]


@pytest.mark.parametrize("name", AGENTS)
def test_samples_are_read_as_expected(name, monkeypatch):
    monkeypatch.chdir(SAMPLES)
    runs, _, _ = read_all(Path(name))
    assert runs == EXPECTED[name]


@pytest.mark.parametrize("name", AGENTS)
def test_nothing_that_the_agent_could_not_see_is_read(name):
    assert "HIDDEN" not in repr(read_all(SAMPLES / name)[0])


@pytest.mark.parametrize(
    "sample",
    "claude-code/session.jsonl codex-cli/rollout.jsonl openhands/list.json moatless/nodes.json "
    "autocoderover gemini-cli/session.json copilot-cli opencode cline aider".split(),
)
def test_the_edits_of_every_agent_are_the_same_change(sample):
    run = read_all(SAMPLES / sample)[0][0]
    ((file, removed, added),) = edits_in(run)
    assert Path(file).name == "boil.py"
    assert (removed, added) == (("off = False",), ("off = auto_off",))


def test_records_are_runs_failures_or_skipped_and_all_are_counted(tmp_path):
    counts = ReadCounts()
    as_jsonl(
        tmp_path / "rows.jsonl",
        {"instance_id": "a__b-1", "resolved": True, "trajectory": [{"what": "ever"}]},
        {"instance_id": "a__b-2", "resolved": True},
        {"instance_id": "a__b-3", "model_patch": ""},
        *({"unknown": number} for number in range(3)),
    )
    (tmp_path / "README.md").write_text("Kettles")
    paths = [SAMPLES, tmp_path]
    counts.runs = len(list(read(*paths, on_error=counts.fail, on_skip=counts.skip)))
    expected = sum(map(len, EXPECTED.values())) + 9  # of the formats with tests of their own
    assert counts == ReadCounts(runs=expected, failed=0, skipped=11, not_understood=4)
    assert counts.records == expected + 15


def test_a_line_that_was_written_in_part_is_skipped_and_the_others_are_read():
    runs, failed, (torn,) = read_all(SAMPLES / "claude-code" / "session.jsonl")
    assert (failed, torn.position, len(runs)) == ([], "line 10", 2)
    assert torn.source.endswith("session.jsonl")
    assert "written in part" in torn.reason


def test_a_damaged_line_of_a_session_is_reported_and_the_others_are_read(tmp_path):
    lines = (SAMPLES / "claude-code" / "session.jsonl").read_bytes().split(b"\n")
    lines[9] = b'{"type": "user", "uuid": }'
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"\n".join(lines))
    runs, (failed,), _ = read_all(path)
    assert (failed.position, len(runs)) == ("line 10", 2)


def test_each_prediction_is_skipped_with_its_place(tmp_path):
    as_jsonl(tmp_path / "preds.jsonl", *({"instance_id": str(n), "model_patch": ""} for n in "abc"))
    assert [one.position for one in read_all(tmp_path)[2]] == ["line 1", "line 2", "line 3"]


def test_sub_agents_without_a_name_are_separated_by_the_chain_of_their_lines(tmp_path):
    def line(id_: str, parent: str | None, kind: str, content: object, *, side: bool = True):
        message = {"role": kind, "content": content}
        common = {"sessionId": "s", "uuid": id_, "parentUuid": parent, "isSidechain": side}
        return {"type": kind, "message": message, **common}

    def call(id_: str) -> list[dict[str, object]]:
        return [{"type": "tool_use", "id": id_, "name": "Bash", "input": {"command": id_}}]

    path = as_jsonl(
        tmp_path / "session.jsonl",
        line("m1", None, "user", "Boil.", side=False),
        line("m2", "m1", "assistant", call("main"), side=False),
        line("a1", None, "user", "First."),
        line("b1", None, "user", "Second."),
        line("a2", "a1", "assistant", call("one")),
        line("b2", "b1", "assistant", call("two")),
        line("a3", "a2", "assistant", call("three")),
    )
    runs, _, _ = read_all(path)
    assert [[step.action.text for step in run.steps] for run in runs] == [
        ["main"],
        ["one", "three"],
        ["two"],
    ]
    assert [run.task for run in runs] == ["Boil.", "First.", "Second."]


def test_a_line_of_the_wrong_shape_costs_only_itself(tmp_path):
    lines = (SAMPLES / "codex-cli/rollout.jsonl").read_bytes().splitlines()
    damaged = orjson.loads(lines[6])
    damaged["payload"]["output"] = 7
    lines[6] = orjson.dumps(damaged)
    path = tmp_path / "rollout.jsonl"
    path.write_bytes(b"\n".join(lines))
    (run,), (failed,), _ = read_all(path)
    assert (failed.position, len(run.steps)) == ("line 7", 3)
    assert run.steps[0].observation is None


MESSAGES = [
    {"role": "user", "content": "Boil."},
    {"role": "assistant", "content": "<function=bash><parameter=command>ls</parameter>"},
    {"role": "user", "content": "OBSERVATION:\nboil.py"},
]


FROM = {"user": "human", "assistant": "gpt"}


@pytest.mark.parametrize(
    "row",
    [
        {"messages": MESSAGES},
        {"messages": json.dumps(MESSAGES)},
        {"trajectory": json.dumps({"history": json.dumps(MESSAGES)})},
        {"run": {"log": {"messages": MESSAGES}}},
        {"extra": {"any": "thing"}, "raw": MESSAGES},
        {"conversations": [{"from": FROM[m["role"]], "value": m["content"]} for m in MESSAGES]},
    ],
    ids=["list", "text", "text in text", "nested", "beside others", "from and value"],
)
@pytest.mark.parametrize(
    ("resolved", "outcome"),
    [(True, Outcome.SOLVED), (0, Outcome.FAILED), (None, Outcome.UNKNOWN)],
)
def test_a_run_in_a_row_is_read_with_what_the_row_says(tmp_path, row, resolved, outcome):
    row = {"instance_id": "teapot__kettle-12", "resolved": resolved, "model": "tea", **row}
    (run,), failed, skipped = read_all(as_jsonl(tmp_path / "rows.jsonl", row))
    assert (failed, skipped) == ([], [])
    assert (run.instance_id, run.repo) == ("teapot__kettle-12", "teapot/kettle")
    assert (run.outcome, run.model) == (outcome, "tea")
    assert run.steps == (Step(0, "", Action("bash", "ls", {"command": "ls"}), "boil.py"),)


def test_an_object_of_runs_by_instance_is_as_many_runs(tmp_path):
    path = as_jsonl(tmp_path / "runs.json", {f"a__b-{n}": {"messages": MESSAGES} for n in (1, 2)})
    assert [run.instance_id for run in read(path)] == ["a__b-1", "a__b-2"]


def test_a_row_whose_run_is_broken_json_fails_with_the_field(tmp_path):
    row = {"instance_id": "a__b-1", "resolved": True, "trajectory": '[{"role": "user"'}
    runs, (failed,), _ = read_all(as_jsonl(tmp_path / "rows.jsonl", row))
    assert runs == []
    assert "trajectory: invalid json" in failed.reason


def test_two_attempts_at_one_task_are_two_runs_though_one_begins_as_the_other(tmp_path):
    longer = [*MESSAGES, *MESSAGES[1:]]
    path = as_jsonl(tmp_path / "rows.jsonl", {"messages": MESSAGES}, {"messages": longer})
    assert [len(run.steps) for run in read(path)] == [1, 2]


def test_of_the_logged_calls_of_one_run_the_last_is_read():
    runs, _, skipped = read_all(SAMPLES / "chat-calls" / "calls")
    assert [len(run.steps) for run in runs] == [2]
    assert [error.reason.split()[:3] for error in skipped] == [["an", "earlier", "call"]]


def test_the_files_of_a_session_are_read_in_the_order_of_their_numbers():
    (run,), _, _ = read_all(SAMPLES / "openhands" / "session")
    assert [step.action.tool for step in run.steps][-1] == "finish"


def test_what_a_hook_showed_is_kept_for_its_credit(tmp_path: Path) -> None:
    events = tmp_path / "events"
    events.mkdir()
    text = fence("scripts run with `PYTHONPATH=lib`", "ctx_1")
    prompt = {"role": "user", "content": [{"type": "text", "text": "Totals are wrong"}]}
    extended = [{"type": "text", "text": text}]
    action = {"tool_name": "terminal", "tool_call": {"arguments": '{"command": "ls"}'}}
    kinds: list[dict[str, object]] = [
        {"kind": "HookExecutionEvent", "stdout": text},
        {"kind": "MessageEvent", "llm_message": prompt, "extended_content": extended},
        {"kind": "ActionEvent", "action": {"command": "ls"}, **action},
    ]
    for number, event in enumerate(kinds):
        path = events / f"event-{number:05}-0a1b.json"
        path.write_text(json.dumps({"source": "agent", "timestamp": "2026-11-23", **event}))
    (events / ".eventlog.lock").touch()

    (run,), _, _ = read_all(tmp_path)
    assert (run.task, len(run.steps), run.system_prompt.strip()) == ("Totals are wrong", 1, text)


def test_a_folder_given_by_a_glob_is_one_run_too():
    path = SAMPLES / "openhands" / "session*" / "**"
    assert len(read_all(path)[0]) == 1


def database(path: Path, script: str, **rows: Sequence[tuple[object, ...]]) -> Path:
    with sqlite3.connect(path) as connection:
        connection.executescript(script)
        for table, values in rows.items():
            marks = ", ".join("?" * len(values[0]))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", values)
    connection.close()
    return path


def test_the_database_of_opencode_holds_what_it_exports(tmp_path):
    export = orjson.loads((SAMPLES / "opencode/export.json").read_bytes())
    messages = [
        (f"m{n}", "ses_1", n, json.dumps(m["info"])) for n, m in enumerate(export["messages"])
    ]
    parts = [
        (f"p{n}{k}", f"m{n}", json.dumps(part))
        for n, message in enumerate(export["messages"])
        for k, part in enumerate(message["parts"])
    ]
    path = database(
        tmp_path / "opencode.db",
        "CREATE TABLE session (id, directory, time_created);"
        "CREATE TABLE message (id, session_id, time_created, data);"
        "CREATE TABLE part (id, message_id, data);",
        session=[("ses_1", "/home/kim/kettle", 1)],
        message=messages,
        part=parts,
    )
    (run,), _, _ = read_all(path)
    assert run.steps == EXPECTED["opencode"][0].steps
    assert run.source == f"{path}:1"


def test_the_database_of_goose_holds_what_its_files_held(tmp_path):
    meta, *lines = map(orjson.loads, (SAMPLES / "goose/session.jsonl").read_bytes().splitlines())
    path = database(
        tmp_path / "sessions.db",
        "CREATE TABLE sessions (id, description, working_dir, created_at, session_type,"
        " model_config_json);"
        "CREATE TABLE messages (id, session_id, role, content_json, created_timestamp,"
        " metadata_json);",
        sessions=[
            (
                *(meta[name] for name in ("id", "description", "working_dir", "created_at")),
                "sub_agent",
                '{"model_name": "tea-g"}',
            )
        ],
        messages=[
            (n, meta["id"], line["role"], json.dumps(line["content"]), line["created"], "{}")
            for n, line in enumerate(lines)
        ]
        + [(9, meta["id"], "user", json.dumps(blocks("HIDDEN")), 1, '{"userVisible": false}')],
    )
    (run,), _, _ = read_all(path)
    assert run.steps == EXPECTED["goose"][0].steps
    assert (run.agent, run.model) == ("goose/subagent", "tea-g")


@pytest.mark.parametrize(
    ("sample", "table", "column"),
    [
        ("opencode/opencode.db", "session", "id"),
        ("opencode/opencode_2.db", "session_v2", "project_id"),
        ("goose/sessions.db", "sessions", "id"),
    ],
)
def test_a_database_without_a_column_is_an_error(tmp_path, sample, table, column):
    path = tmp_path / "copy.db"
    path.write_bytes((SAMPLES / sample).read_bytes())
    database(path, f"ALTER TABLE {table} DROP COLUMN {column};")
    runs, failed, _ = read_all(path)
    assert (runs, [error.reason for error in failed]) == ([], [f"a table has no column '{column}'"])


def test_the_database_of_cursor_holds_chats(tmp_path):
    tool = {"name": "edit_file", "rawArgs": '{"target_file": "boil.py"}', "result": "ok"}
    bubbles = [
        {"type": 1, "text": "Boil.", "workspaceProjectDir": "/home/kim/kettle"},
        {"type": 2, "text": "I edit.", "toolFormerData": {**tool, "status": "rejected"}},
    ]
    rows = [("composerData:c1", "{}"), ("composerData:c2", None)]
    rows += [(f"bubbleId:c1:b{n}", json.dumps(bubble)) for n, bubble in enumerate(bubbles)]
    path = database(
        tmp_path / "state.vscdb",
        "CREATE TABLE cursorDiskKV (key, value); CREATE TABLE ItemTable (key, value);",
        cursorDiskKV=rows,
    )
    (run,), failed, _ = read_all(path)
    assert (run.task, run.repo, run.steps[0].denied) == ("Boil.", "local/kettle", True)
    assert failed == []


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        ("CREATE TABLE cursorDiskKV (key, value AS (zeroblob(200000000)));", "tables: none"),
        (
            "CREATE TABLE t (k); CREATE VIEW cursorDiskKV AS SELECT 1 AS key, 2 AS value;",
            "tables: t",
        ),
    ],
)
def test_what_the_schema_of_a_database_computes_is_not_read(tmp_path, script, kept):
    path = database(tmp_path / "state.vscdb", script)
    with sqlite3.connect(path) as connection, suppress(sqlite3.Error):
        rows = [(f"composerData:{n}",) for n in range(50)]
        connection.executemany("INSERT INTO cursorDiskKV (key) VALUES (?)", rows)
    runs, (error,), _ = read_all(path)
    assert (runs, kept in str(error)) == ([], True)


def test_a_database_that_was_sent_is_not_one_on_this_machine(tmp_path):
    path = database(tmp_path / "opencode.db", "CREATE TABLE session (id);")
    (error,) = read_file(BytesIO(path.read_bytes()), str(path))
    assert "can be read from a file only" in str(error)


@pytest.mark.parametrize(
    ("kept", "reason"),
    [
        (slice(None), "a compressed database: decompress it first"),
        (slice(-9), "gzip data ends early"),
    ],
)
def test_a_compressed_database_is_refused_and_a_cut_archive_of_it_reported(tmp_path, kept, reason):
    path = database(tmp_path / "opencode.db", "CREATE TABLE session (id);")
    path.write_bytes(gzip.compress(path.read_bytes())[kept])
    _, (error,), _ = read_all(path)
    assert error.reason == reason


@pytest.mark.parametrize("beside", [(), ("-wal",), ("-wal", "-shm")])
def test_nothing_is_written_beside_a_database(tmp_path, beside):
    script = "PRAGMA journal_mode = wal; CREATE TABLE cursorDiskKV (key TEXT, value TEXT);"
    live = database(tmp_path / "live.vscdb", script)
    (tmp_path / "clone").mkdir()
    path = tmp_path / "clone" / "state.vscdb"
    with closing(sqlite3.connect(live)) as connection:
        connection.execute("INSERT INTO cursorDiskKV VALUES ('composerData:1', '{}')")
        connection.commit()
        if not beside:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        for ending in ("", *beside):
            shutil.copyfile(f"{live}{ending}", f"{path}{ending}")
    before = {file.name: file.read_bytes() for file in path.parent.iterdir()}
    with Database(str(path), 1 << 20) as opened:
        assert opened.rows("SELECT key FROM cursorDiskKV") == [{"key": "composerData:1"}]
    assert {file.name: file.read_bytes() for file in path.parent.iterdir()} == before


def test_a_database_whose_journal_leads_elsewhere_is_not_read(tmp_path):
    path = database(tmp_path / "state.vscdb", "CREATE TABLE cursorDiskKV (key, value);")
    path.with_name("state.vscdb-wal").symlink_to("/dev/zero")
    _, (error,), _ = read_all(path)
    assert "journal" in str(error)


SAID = (("user", "Which kettle?"), ("assistant", "Steel."), ("user", "No, glass."))
TIMES = [f"2026-01-05T10:00:0{at}Z" for at in range(3)]


def blocks(words: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": words}]


def of_each(make: Callable[[str, str, str], Any]) -> list[Any]:
    """Return what *make* gives for the role, words and time of each turn."""
    return [make(role, words, time) for (role, words), time in zip(SAID, TIMES, strict=True)]


def chat_message(role: str, words: str, _time: str) -> dict[str, Any]:
    return {"role": role, "content": words}


# Of each format the records of a conversation without tools.
TALK: dict[str, list[Any]] = {
    "claude-code": of_each(
        lambda role, words, time: {
            "sessionId": "s",
            "type": role,
            "timestamp": time,
            "message": {"role": role, "content": blocks(words)},
        }
    ),
    "codex-cli": of_each(
        lambda role, words, time: {
            "type": "response_item",
            "timestamp": time,
            "payload": {"type": "message", "role": role, "content": blocks(words)},
        }
    ),
    "gemini-cli": [
        {"sessionId": "g", "startTime": TIMES[0], "lastUpdated": TIMES[2]},
        *of_each(
            lambda role, words, time: {
                "type": "user" if role == "user" else "gemini",
                "content": words,
                "timestamp": time,
            }
        ),
    ],
    "qwen-code": of_each(
        lambda role, words, time: {
            "sessionId": "q",
            "type": role,
            "timestamp": time,
            "message": {"role": role, "parts": [{"text": words}]},
        }
    ),
    "copilot-cli": of_each(
        lambda role, words, time: {
            "type": f"{role}.message",
            "data": {"content": words},
            "timestamp": time,
        }
    ),
    "cursor": of_each(lambda role, words, _: {"role": role, "message": {"content": words}}),
    "goose": [
        {"working_dir": "/w", "description": "x"},
        *of_each(
            lambda role, words, time: {"role": role, "created": time, "content": blocks(words)}
        ),
    ],
    "opencode": [
        {
            "info": {"id": "o"},
            "messages": of_each(
                lambda role, words, time: {
                    "info": {"role": role, "time": {"created": time}},
                    "parts": blocks(words),
                }
            ),
        }
    ],
    "openhands": [
        of_each(
            lambda role, words, time: {
                "source": "user" if role == "user" else "agent",
                "action": "message",
                "args": {"content": words},
                "timestamp": time,
            }
        )
    ],
    "atif": [
        {
            "schema_version": "ATIF-v1.6",
            "agent": {"name": "x", "version": "1"},
            "steps": of_each(
                lambda role, words, _: {
                    "source": "user" if role == "user" else "agent",
                    "message": words,
                }
            ),
        }
    ],
    "chat": [{"messages": of_each(chat_message)}],
}


@pytest.mark.parametrize(("name", "records"), TALK.items())
def test_a_conversation_without_tools_is_a_run_with_what_was_said(tmp_path, name, records):
    (run,), failed, skipped = read_all(as_jsonl(tmp_path / "talk.jsonl", *records))
    assert (run.source_format, run.task, failed, skipped) == (name, "Which kettle?", [], [])
    (step,) = run.steps
    assert (step.thought, step.action.text, step.user_message) == ("Steel.", "", "No, glass.")
    assert step.messaged_at is None or step.messaged_at.second == 2
    inspection = inspect_run(run)
    assert (inspection.fragments, inspection.trace.loops) == ((), ())


GEMINI = {"sessionId": "g", "projectHash": "h", "startTime": TIMES[0], "lastUpdated": TIMES[0]}
GEMINI_ASKED = {"id": "1", "timestamp": TIMES[0], "type": "user", "content": [{"text": "Boil."}]}
GEMINI_CALL = {
    "id": "k",
    "name": "run_shell_command",
    "args": {"command": "ls"},
    "status": "success",
}
GEMINI_SAID = {"id": "2", "timestamp": TIMES[1], "type": "gemini", "content": "I look."}


def qwen(kind: str, parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    role = "model" if kind == "assistant" else "user"
    message = {"role": role, "parts": parts}
    return {"sessionId": "q", "type": kind, "timestamp": TIMES[0], "message": message, **more}


def copilot(kind: str, data: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": kind, "timestamp": TIMES[0], "data": data, **more}


def goose(role: str, block: dict[str, Any], *, visible: bool = True) -> dict[str, Any]:
    metadata = {"userVisible": visible, "agentVisible": True}
    return {"role": role, "created": 1, "content": [block], "metadata": metadata}


def opencode(role: str, parts: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {"info": {"role": role, "time": {"created": 1}, **more}, "parts": parts}


def cline(role: str, words: str) -> dict[str, Any]:
    return {"role": role, "content": blocks(words)}


LS = {"command": "ls"}
QWEN_CALL = {"functionCall": {"id": "k", "name": "run_shell_command", "args": LS}}
QWEN_RESULT = {"functionResponse": {"id": "k", "response": {"error": "Cancelled."}}}
GOOSE_CALL = {"status": "success", "value": {"name": "developer__shell", "arguments": LS}}
GOOSE_RESULT = {"content": [{"type": "text", "text": "no"}], "isError": True}
OPENCODE_CALL = {"status": "completed", "input": LS, "output": "a", "title": "", "metadata": {}}
# By case: lines in the form that the makers of the agent document, and of each run the agent, the
# task, and of each step the action, the words of people, error, refusal and interruption.
DOCUMENTED: dict[str, tuple[list[Any], list[Any]]] = {
    "gemini-cli: a message is appended again for each change": (
        [
            GEMINI,
            GEMINI_ASKED,
            GEMINI_SAID,
            {"$set": {"lastUpdated": TIMES[1]}},
            GEMINI_SAID | {"tokens": {"total": 3}},
            GEMINI_SAID | {"toolCalls": [GEMINI_CALL | {"status": "executing"}]},
            GEMINI_SAID | {"toolCalls": [GEMINI_CALL]},
            GEMINI_ASKED | {"id": "3", "content": "Wrong way."},
            {"$rewindTo": "3"},
        ],
        [("gemini-cli", "Boil.", [("ls", None, None, False, False)])],
    ),
    "gemini-cli: a sub-agent": (
        [GEMINI | {"kind": "subagent"}, GEMINI_ASKED, GEMINI_SAID | {"toolCalls": [GEMINI_CALL]}],
        [("gemini-cli/subagent", "Boil.", [("ls", None, None, False, False)])],
    ),
    "qwen-code: who wrote a prompt, and a cancelled call": (
        [
            qwen("user", [{"text": "Boil."}], provenance="real_user"),
            qwen("user", [{"text": "HIDDEN"}], subtype="notification", provenance="system"),
            qwen("assistant", [QWEN_CALL]),
            qwen("tool_result", [QWEN_RESULT], toolCallResult={"status": "cancelled"}),
            qwen(
                "user",
                [{"text": "[HIDDEN]: Glass."}],
                subtype="mid_turn_user_message",
                systemPayload={"displayText": "Glass."},
            ),
        ],
        [("qwen-code", "Boil.", [("ls", "Glass.", None, True, False)])],
    ),
    "copilot-cli: sub-agents, skills, and a turn that was stopped": (
        [
            copilot("session.start", {"sessionId": "p", "context": {"cwd": "/gone/kettle"}}),
            copilot("user.message", {"content": "Boil."}),
            copilot("user.message", {"content": "HIDDEN", "source": "skill-tea"}),
            copilot("assistant.message", {"messageId": "m", "content": "", "toolRequests": []}),
            copilot(
                "tool.execution_start", {"toolCallId": "a", "toolName": "bash", "arguments": LS}
            ),
            copilot(
                "tool.execution_start",
                {"toolCallId": "b", "toolName": "bash", "arguments": {"command": "pwd"}},
                agentId="explore-1",
            ),
            copilot(
                "tool.execution_complete",
                {"toolCallId": "b", "success": False, "error": {"message": "no", "code": "x"}},
                agentId="explore-1",
            ),
            copilot("abort", {"reason": "user initiated"}),
        ],
        [
            ("copilot-cli", "Boil.", [("ls", None, None, False, True)]),
            ("copilot-cli/subagent", "", [("pwd", None, True, False, False)]),
        ],
    ),
    "goose: an error of the tool, and a summary for the model": (
        [
            {"working_dir": "/w", "description": "x", "session_type": "sub_agent"},
            goose("user", {"type": "text", "text": "Boil."}),
            goose("assistant", {"type": "toolRequest", "id": "k", "toolCall": GOOSE_CALL}),
            goose(
                "user",
                {
                    "type": "toolResponse",
                    "id": "k",
                    "toolResult": {"status": "success", "value": GOOSE_RESULT},
                },
            ),
            goose("user", {"type": "text", "text": "HIDDEN"}, visible=False),
        ],
        [("goose/subagent", "Boil.", [("ls", None, True, False, False)])],
    ),
    "opencode: a sub-agent, ignored text, and a reply that was stopped": (
        [
            {
                "info": {"id": "o", "parentID": "p"},
                "messages": [
                    opencode(
                        "user",
                        [
                            {"type": "text", "text": "Boil."},
                            {"type": "text", "text": "HIDDEN", "ignored": True},
                        ],
                    ),
                    opencode(
                        "assistant",
                        [{"type": "tool", "callID": "k", "tool": "bash", "state": OPENCODE_CALL}],
                        error={"name": "MessageAbortedError", "data": {"message": "stopped"}},
                    ),
                ],
            }
        ],
        [("opencode/subagent", "Boil.", [("ls", None, None, False, True)])],
    ),
    "cline: an error of the tool, and what it writes itself": (
        [
            [
                cline("user", "<task>\nBoil.\n</task>"),
                cline("assistant", "<execute_command>\n<command>ls</command>\n</execute_command>"),
                cline(
                    "user",
                    "[execute_command for 'ls'] Result:\nThe tool execution failed with the "
                    "following error:\n<error>\nno shell\n</error>",
                ),
                cline("assistant", "Done."),
                cline("user", "[ERROR] HIDDEN"),
                cline("assistant", "Done, too."),
                cline("user", "[TASK RESUMPTION] HIDDEN"),
                cline("user", "[TASK RESUMPTION] HIDDEN\n<user_message>\nGlass.\n</user_message>"),
            ]
        ],
        [
            (
                "cline",
                "Boil.",
                [
                    ("ls", None, True, False, False),
                    ("", "Glass.", None, False, False),
                ],
            )
        ],
    ),
}


def test_the_line_breaks_that_aider_writes_are_not_read(tmp_path):
    path = tmp_path / ".aider.chat.history.md"
    path.write_text(
        "\n# aider chat started at 2026-01-05 10:00:00\n\n> Model: tea-4  \n\n"
        "#### Boil.  \n#### No hurry.  \n\nI run it.\n\n#### /run ls  \n\n#### <blank>  \n"
    )
    (run,), _, _ = read_all(path)
    assert run.task == "Boil.\nNo hurry."
    assert [(step.action.text, step.user_message) for step in run.steps][-1] == ("ls", None)


@pytest.mark.parametrize(("lines", "expected"), DOCUMENTED.values(), ids=DOCUMENTED)
def test_what_the_makers_of_an_agent_document_is_read(tmp_path, lines, expected):
    runs, failed, skipped = read_all(as_jsonl(tmp_path / "log.jsonl", *lines))
    assert (failed, skipped) == ([], [])
    read = [
        (
            run.agent,
            run.task,
            [
                (s.action.text, s.user_message, s.is_error, s.denied, s.interrupted)
                for s in run.steps
            ],
        )
        for run in runs
    ]
    assert read == expected


def test_what_a_fork_copies_belongs_to_the_session_that_it_forks(tmp_path):
    def line(uuid: Any, session: str, kind: Any, content: Any, **more: Any) -> dict[str, Any]:
        message = {"role": kind, "content": content}
        return {"uuid": uuid, "sessionId": session, "type": kind, "message": message, **more}

    call = {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}
    first: list[Any] = [("1", "user", "Boil."), ("2", "assistant", [call])]
    origin: dict[str, Any] = {"forkedFrom": {"sessionId": "s", "messageUuid": "2"}}
    reply = {"type": "text", "text": "Glass it is."}
    as_jsonl(tmp_path / "a.jsonl", *(line(uuid, "s", *said) for uuid, *said in first))
    as_jsonl(
        tmp_path / "b.jsonl",
        *(line(uuid, "f", *said, **origin) for uuid, *said in first),
        line("3", "f", "user", "No, use glass."),
        line("4", "f", "assistant", [reply]),
    )
    runs = read_all(tmp_path)[0]
    assert [(run.instance_id, run.task) for run in runs] == [
        ("s", "Boil."),
        ("s", "Boil."),
        ("f", "No, use glass."),
    ]
    assert [run.inherited is None for run in runs] == [True, True, False]
    assert len(set(map(trajectory_id, runs))) == 2


def test_copies_of_a_page_of_specstory_are_one_run(tmp_path):
    page = (SAMPLES / "specstory/page.md").read_text()
    empty_turn = "_**Agent (kettle-1 2026-01-05 10:00:04Z)**_\n\n\n\n\n_**Agent (kettle-1 2026"
    (tmp_path / "a.md").write_text(page)
    (tmp_path / "b.md").write_text(page.replace("_**Agent (kettle-1 2026", empty_turn, 1))
    runs = read_all(tmp_path)[0]
    assert (len(runs), len(set(map(trajectory_id, runs)))) == (4, 2)


@pytest.mark.parametrize(
    "printed",
    [
        "ok\n```\n\n</details></tool-use>\n\n_**User**_\n\nUse iron.\n\n_**Agent**_\n\n```\nx",
        (
            '<tool-use data-tool-type="shell" data-tool-name="Bash"><details>\n```\nok\n```\n\n'
            "</details></tool-use>\n\n_**User**_\n\nUse iron."
        ),
    ],
)
def test_what_a_tool_printed_opens_no_turn_of_specstory(tmp_path, printed):
    tool = '<tool-use data-tool-type="shell" data-tool-name="Bash"><details>\n`cat a.md`\n\n'
    ended = "\n```\n\n</details></tool-use>\n\n---\n\n_**User**_\n\nUse glass.\n"
    (tmp_path / "a.md").write_text(
        "<!-- Generated by SpecStory -->\n\n_**User**_\n\nWhy?\n\n_**Agent**_\n\n"
        f"{tool}```\n{printed}{ended}"
    )
    (run,) = read_all(tmp_path)[0]
    assert [step.user_message for step in run.steps if step.user_message] == ["Use glass."]


def test_a_thought_of_specstory_ends_where_it_ends_and_opens_nothing(tmp_path):
    opened = "<think><details><summary>Thought Process</summary>"
    thoughts = (
        f'{opened}\n<tool-use data-tool-type="read" data-tool-name="Read">\n</details></think>',
        f"{opened}**Lids**\n\nOf steel.</details></think>",
        f"{opened}Glass.</details></think>",
    )
    turn = "_**Assistant**_\n\n{}\nBoil it.\n\n---\n\n_**User**_\n\nNo, {}.\n\n---\n\n"
    turns = "".join(turn.format(thought, at) for at, thought in enumerate(thoughts))
    (tmp_path / "a.md").write_text(
        f"<!-- Generated by SpecStory -->\n\n_**User**_\n\nWhy?\n\n{turns}"
    )
    (run,) = read_all(tmp_path)[0]
    assert [step.user_message for step in run.steps] == ["No, 0.", "No, 1.", "No, 2."]
    assert [step.thought.splitlines()[-1] for step in run.steps] == ["Boil it."] * 3


def test_a_sub_agent_of_specstory_is_one_run_while_the_main_agent_speaks(tmp_path):
    read = (
        '<tool-use data-tool-type="read" data-tool-name="Read"><details>\n'
        "<summary>Tool use: **Read**</summary>\n- `{}`\n</details></tool-use>"
    )
    said = (
        ("Agent - sidechain (2026-01-05", "Find the lid."),
        ("Agent - sidechain (kettle-1 2026-01-05", read.format("lid.py")),
        ("Agent (kettle-1 2026-01-05", "I look for the spout."),
        ("Agent - sidechain (kettle-1 2026-01-05", read.format("shelf.py")),
        ("Agent - sidechain (2026-01-05", "Find the handle."),
        ("Agent - sidechain (kettle-1 2026-01-05", read.format("handle.py")),
    )
    turns = "".join(
        f"_**{speaker} 10:00:0{at}Z)**_\n\n{words}\n\n" for at, (speaker, words) in enumerate(said)
    )
    start = (SAMPLES / "specstory/page.md").read_text().partition("_**Agent")[0]
    (tmp_path / "a.md").write_text(start + turns)
    _, lid, handle = read_all(tmp_path)[0]
    assert (lid.task, handle.task) == ("Find the lid.", "Find the handle.")
    assert [step.action.text for step in lid.steps] == ["Read lid.py", "Read shelf.py"]
    assert [step.action.text for step in handle.steps] == ["Read handle.py"]


def test_a_cancelled_call_of_specstory_teaches_nothing(tmp_path):
    """A shell command that its client answers did not run, whatever it says."""
    call = (
        '<tool-use data-tool-type="{}" data-tool-name="{}"><details>\n<summary>Tool use: '
        "**{}**</summary>\n`{}`\n\n```text\n<tool_use_error>{}</tool_use_error>\n```\n"
        "</details></tool-use>\n\n"
    )
    calls = (
        ("read", "Read", "Read", "./lid.py", "File does not exist."),
        ("shell", "Bash", "Bash", "make lid", "Sibling tool call errored"),
        ("shell", "Bash", "Bash", "make cup", "The machine sleeps"),
        ("read", "Read", "Read", "./cup.py", "Sibling tool call errored"),
    )
    start = (SAMPLES / "specstory/page.md").read_text().partition("_**Agent")[0]
    spoken = "_**Agent (kettle-1 2026-01-05 10:00:01Z)**_\n\n"
    text = "".join(spoken + call.format(*one) for one in calls)
    (tmp_path / "a.md").write_text(start + text)
    (run,) = read_all(tmp_path)[0]
    assert [step.observation for step in run.steps] == ["File does not exist."]


@pytest.mark.parametrize(
    ("line", "answers"),
    [
        ("Steel, Glass (Recommended), Only lids", [("Steel, Glass", True), ("Only lids", True)]),
        ("1, and tin for cups, Only lids", [("1, and tin for cups", False), ("Only lids", True)]),
        ("Steel, all of it, but later", [("Steel", True), ("all of it, but later", False)]),
        ("No, wait", []),
    ],
)
def test_the_line_of_answers_of_specstory_is_read_by_the_options(tmp_path, line, answers):
    asked = (
        '<tool-use data-tool-type="generic" data-tool-name="AskUserQuestion"><details>\n'
        "<summary>Tool use: **AskUserQuestion**</summary>\n"
        "**Which materials?**\n\nOptions:\n- **Steel** - It.\n- **Glass (Recommended)** - No.\n\n"
        "**Which parts?**\n\nOptions:\n- **Only lids** - First.\n- **All**\n\n"
        f"\n**Answer:** {line}\n</details></tool-use>\n"
    )
    start = (SAMPLES / "specstory/page.md").read_text().partition("_**Agent")[0]
    (tmp_path / "a.md").write_text(f"{start}_**Agent (kettle-1 2026-01-05 10:00:01Z)**_\n\n{asked}")
    (run,) = read_all(tmp_path)[0]
    assert run.steps[0].user_message == line
    found = answers_of(run.steps[0])
    assert [(one.words, one.is_offered) for one in found] == answers
    meant = ["Steel, and tin for cups" if words.startswith("1") else words for words, _ in answers]
    assert [one.meant for one in found] == meant


def test_a_page_of_specstory_is_of_the_project_that_keeps_it(tmp_path):
    folder = tmp_path / "kettle/.specstory/history"
    folder.mkdir(parents=True)
    (folder / "page.md").write_bytes((SAMPLES / "specstory/page.md").read_bytes())
    assert {run.repo for run in read_all(folder)[0]} == {"local/kettle"}
    left = discover(tmp_path, {})
    assert (left.histories, left.in_projects) == ((), {folder: 1})
    trusted = Vouched([str(tmp_path / "kettle")])
    (found,) = discover(tmp_path, {}, trusted=trusted).histories
    assert (found.agent, found.runs) == ("specstory", 1)
    own = tmp_path / ".claude/projects/kettle"
    own.mkdir(parents=True)
    (own / "5e55-1.jsonl").write_text("{}")
    (found,) = discover(tmp_path, {}, trusted=trusted).histories
    assert found.agent == "claude-code"


def test_of_folders_named_equally_often_the_first_is_that_of_the_run(tmp_path):
    page = (SAMPLES / "specstory/page.md").read_text().partition("\n_**User")[0]
    read = (
        '<tool-use data-tool-type="read" data-tool-name="Read"><details>\n'
        "<summary>Tool use: **Read**</summary>\n- `{}`\n\n"
        "```text\nlid\n```\n</details></tool-use>\n"
    )
    files = ("./c/b/a/lid.py", "./lid.py", "./a/lid.py", "./b/a/lid.py", "/w/c/b/a/lid.py")
    turn = "\n_**Agent (kettle-1 2026-01-05 10:00:01Z)**_\n\n"
    (tmp_path / "a.md").write_text(page + turn + turn.join(map(read.format, files)))
    (run,) = read_all(tmp_path)[0]
    assert {step.cwd for step in run.steps} == {"/w"}


def test_a_database_of_something_else_is_an_error(tmp_path):
    path = database(tmp_path / "other.db", "CREATE TABLE lids (id);")
    _, (failed,), _ = read_all(path)
    assert "tables: lids" in failed.reason


@pytest.mark.parametrize("name", [*AGENTS, "nebius", "sweagent", "mini-swe-agent"])
def test_every_run_can_be_written_as_atif_and_read_again(tmp_path, name):
    runs = read_all(SAMPLES / name)[0]
    (tmp_path / "runs.json").write_bytes(orjson.dumps(list(map(to_atif, runs))))
    again = read_all(tmp_path / "runs.json")[0]
    for run, copy in zip(runs, again, strict=True):
        assert (copy.outcome, copy.repo, copy.patch) == (run.outcome, run.repo, run.patch)
        for step, other in zip(run.steps, copy.steps, strict=True):
            assert other.action.arguments or not step.action.text
            assert (other.exit_code, other.denied) == (step.exit_code, step.denied)
            assert (other.observation, other.user_message) == (step.observation, step.user_message)


def test_what_is_written_as_atif_is_valid():
    trajectory = pytest.importorskip("atif").Trajectory
    for path in SAMPLES.iterdir():
        for run in read_all(path)[0]:
            assert trajectory.model_validate(to_atif(run)).steps


def git(folder: Path, *command: str) -> None:
    subprocess.run(["git", "-C", str(folder), *command], check=True, capture_output=True)


def test_the_working_trees_of_a_repository_have_its_name(tmp_path):
    main, other = tmp_path / "kettle", tmp_path / "elsewhere"
    main.mkdir()
    git(main, "init", "-q")
    git(
        main,
        "-c",
        "user.name=k",
        "-c",
        "user.email=k@k",
        "commit",
        "-q",
        "--allow-empty",
        "-m",
        "x",
    )
    git(main, "worktree", "add", "-q", str(other))
    (other / "deep").mkdir()
    assert repository_name(str(main)) == repository_name(str(other / "deep")) == "local/kettle"


def test_the_remote_names_a_repository_before_the_task_and_the_folder(tmp_path):
    git(tmp_path, "init", "-q")
    git(tmp_path, "remote", "add", "fork", "https://git.example.org/kim/kettle")
    git(tmp_path, "remote", "add", "origin", "ssh://git@git.example.org:22/teapot/kettle.git")
    assert repository_name(str(tmp_path), task="repo: a/b") == "git.example.org/teapot/kettle"
    assert repository_name(str(tmp_path), instance_id="a__b-1").startswith("git.example.org")
    assert repository_name("/gone/kettle", task="repo: a/b") == "a/b"
    assert repository_name("/gone/kettle", task="in /workspace/a__b__1.0") == "a/b"
    assert repository_name("/gone/kettle", task="see src/a__b.py") == "local/kettle"
    assert repository_name("C:\\gone\\kettle") == "local/kettle"
    assert repository_name(None) == ""


def test_histories_on_the_machine_are_listed_but_for_those_excluded(tmp_path):
    for name in ("a/1.jsonl", "a/1/subagents/agent-2.jsonl", "secret/3.jsonl"):
        path = tmp_path / ".claude/projects" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x" * 10)
    events = tmp_path / "oh/sessions/s1/events"
    events.mkdir(parents=True)
    (events / "0.json").write_text("{}")
    (tmp_path / ".openhands").symlink_to(tmp_path / "oh")
    database(
        tmp_path / "data.db",
        "CREATE TABLE session (id); CREATE TABLE message (id); CREATE TABLE part (id);",
        session=[("1",), ("2",)],
    )
    (tmp_path / "share/opencode").mkdir(parents=True)
    (tmp_path / "data.db").rename(tmp_path / "share/opencode/opencode.db")
    environment = {"XDG_DATA_HOME": str(tmp_path / "share")}
    found = discover(tmp_path, environment, exclude=["*/secret/*"]).histories
    assert [(one.agent, one.runs) for one in found] == [
        ("claude-code", 2),
        ("opencode", 2),
        ("openhands", 1),
    ]
    assert (found[0].bytes, found[1].experimental) == (20, True)


def test_the_format_that_the_documentation_adds_is_read(tmp_path, monkeypatch):
    *_, example = re.findall(r"```python\n(.*?)```", (DOCS / "formats.md").read_text(), re.DOTALL)
    (tmp_path / "kettle_log.py").write_text(example)
    info = tmp_path / "kettle_log-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kettle-log\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[contextgraph.formats]\nkettle = kettle_log:FORMAT\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    all_formats.cache_clear()
    try:
        log = {"kettle": 1, "issue": "Boil.", "turns": [{"why": "", "run": "ls", "code": 2}]}
        logs = [log, log | {"turns": [{}]}, log | {"turns": []}]
        (run,), (failed,), (skipped,) = read_all(as_jsonl(tmp_path / "a__b-1.jsonl", *logs))
        assert (run.instance_id, run.steps[0].exit_code) == ("a__b-1", 2)
        assert (failed.position, skipped.position) == ("line 2", "line 3")
        assert "malformed kettle record: KeyError: 'why'" in failed.reason
        assert list(all_formats()) == [*FORMATS, "kettle"]
    finally:
        all_formats.cache_clear()


def test_the_schema_names_the_fields_of_a_run():
    schema = json.loads((DOCS / "trajectory.schema.json").read_text())
    definitions = schema["$defs"]
    for of, described in (
        (RawTrajectory, schema),
        (Step, definitions["step"]),
        (Action, definitions["action"]),
    ):
        named = described["properties"].keys() - {"contextgraph"}
        assert named == {field.name for field in fields(of)}
    for run in read(DATA / "readers_expected.jsonl"):
        record: Any = to_record(run)
        assert record.keys() >= set(schema["required"])
        for step in record.get("steps", []):
            assert step.keys() >= set(definitions["step"]["required"])
            assert step["action"].keys() >= set(definitions["action"]["required"])


def otlp(spans: list[dict[str, Any]]) -> dict[str, Any]:
    """*spans* as OTLP writes them in JSON."""
    written = [
        {
            "traceId": span["context"]["trace_id"],
            "startTimeUnixNano": str(10**18 + number),
            "attributes": [
                {"key": key, "value": {"stringValue": value}}
                for key, value in span["attributes"].items()
            ],
        }
        for number, span in enumerate(spans)
    ]
    return {"resourceSpans": [{"scopeSpans": [{"spans": written}]}]}


def columns(spans: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """*spans* as rows of a table, with a column for each attribute."""
    return [
        {
            "context.trace_id": span["context"]["trace_id"],
            "start_time": span["start_time"],
            **{f"attributes.{name}": value for name, value in span["attributes"].items()},
        }
        for span in spans
    ]


@pytest.mark.parametrize(
    "form", [lambda spans: spans[::-1], lambda spans: {"data": spans}, otlp, columns]
)
def test_spans_are_read_in_each_form_in_which_they_are_exported(form, tmp_path):
    lines = (SAMPLES / "openinference" / "spans.jsonl").read_bytes().splitlines()
    path = tmp_path / "spans.json"
    path.write_bytes(orjson.dumps(form([orjson.loads(line) for line in lines])))
    (run,) = read(path)
    assert run.steps == EXPECTED["openinference"][0].steps


def test_a_trace_that_is_exported_span_by_span_is_one_run(tmp_path):
    lines = (SAMPLES / "openinference" / "spans.jsonl").read_bytes().splitlines()
    spans = otlp([orjson.loads(line) for line in lines])["resourceSpans"][0]["scopeSpans"][0]
    exports = [{"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]} for span in spans["spans"]]
    (run,) = read(as_jsonl(tmp_path / "spans.jsonl", *exports))
    assert run.steps == EXPECTED["openinference"][0].steps


def test_a_span_may_hold_its_messages_in_the_json_of_its_input(tmp_path):
    call = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    sent: list[dict[str, Any]] = [{"role": "user", "content": "Mend the kettle."}]
    answers: list[dict[str, Any]] = [
        {"role": "assistant", "tool_calls": [call]},
        {"role": "assistant", "content": "Ok"},
    ]
    spans = list[dict[str, Any]]()
    for answer in answers:
        attributes = {
            "openinference.span.kind": "LLM",
            "input.value": orjson.dumps({"messages": sent}).decode(),
            "output.value": orjson.dumps({"choices": [{"message": answer}]}).decode(),
        }
        time = f"2026-10-05T09:00:0{len(spans)}Z"
        context = {"trace_id": "t1"}
        spans.append({"context": context, "start_time": time, "attributes": attributes})
        sent = [*sent, answer, {"role": "tool", "content": "boil.py", "tool_call_id": "c1"}]
    (run,) = read(as_jsonl(tmp_path / "spans.jsonl", *spans))
    assert (run.steps[0].action.text, run.steps[0].observation) == ("ls", "boil.py")


def test_traces_in_one_file_are_runs_of_their_own(tmp_path):
    lines = (SAMPLES / "openinference" / "spans.jsonl").read_text()
    path = tmp_path / "spans.jsonl"
    path.write_text(lines + lines.replace('"t1"', '"t2"'))
    assert [(run.session, run.instance_id) for run in read(path)] == [("t1", "t1"), ("t2", "t2")]


def test_commands_in_blocks_are_calls_where_an_observation_follows(tmp_path):
    messages = [
        {"role": "user", "content": "Mend the kettle."},
        {"role": "assistant", "content": "DISCUSSION\nI look.\n\n```\nls\n```"},
        {"role": "user", "content": "OBSERVATION:\nboil.py"},
        {"role": "assistant", "content": "It is:\n```\nboil()\n```"},
    ]
    row = {"row_idx": 1, "row": {"messages": orjson.dumps(messages).decode()}}
    path = tmp_path / "rows.json"
    path.write_bytes(orjson.dumps({"features": [{"name": "messages"}], "rows": [row]}))
    (run,) = read(path)
    assert [(step.action.text, step.observation) for step in run.steps] == [
        ("ls", "boil.py"),
        ("", None),
    ]


def test_a_result_that_names_its_call_in_a_list_is_the_result_of_that_call(tmp_path):
    call = {"id": "c1", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}
    messages = [
        {"role": "user", "content": "Mend the kettle."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "content": [{"type": "text", "text": "boil.py"}], "tool_call_ids": ["c1"]},
    ]
    rows = [{"messages": messages}, {"messages": orjson.dumps(messages).decode()}]
    for run in read(as_jsonl(tmp_path / "rows.jsonl", *rows)):
        assert [(step.action.text, step.observation) for step in run.steps] == [("ls", "boil.py")]


def test_a_file_that_is_not_there_does_not_place_a_session_of_specstory(tmp_path):
    call = (
        '<tool-use data-tool-type="{}" data-tool-name="{}"><details>\n<summary>Tool use: '
        "**{}**</summary>\n`{}`\n\n```text\n{}\n```\n</details></tool-use>\n\n"
    )
    calls = (
        ("read", "Read", "./shop/lid.py", "<tool_use_error>File does not exist.</tool_use_error>"),
        ("read", "Read", "./lid.py", "1 lid = 2"),
        ("read", "Read", "/srv/shop/lid.py", "1 lid = 2"),
    )
    start = (SAMPLES / "specstory/page.md").read_text().partition("_**Agent")[0]
    spoken = "_**Agent (kettle-1 2026-01-05 10:00:01Z)**_\n\n"
    text = "".join(spoken + call.format(kind, name, name, *rest) for kind, name, *rest in calls)
    (tmp_path / "a.md").write_text(start + text)
    (run,) = read_all(tmp_path)[0]
    assert {step.cwd for step in run.steps} == {"/srv/shop"}

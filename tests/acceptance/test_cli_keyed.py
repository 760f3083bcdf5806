"""``contextgraph call set``, ``brief``, ``compact``; ``forget --key``."""

from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory
from tests.acceptance.command_line import call, contextgraph

KEY = "/user/preference/review"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


def test_what_is_set_is_in_the_brief_and_in_the_files(store: Path) -> None:
    content = {"summary": "small commits, tests first", "importance": 8}
    (receipt,) = call("set", store, key=KEY, json_content=content).records

    assert {**receipt, "path": ""} == {"key": KEY, "seq": 1, "status": "set", "path": ""}
    assert "tests first" in Path(receipt["path"]).read_text()
    (brief,) = call("brief", store, max_tokens=100, tags=["x"]).records
    text = f"[Agent Memory]\n- {KEY} small commits, tests first"
    fenced = f"<cg-memory id=keyed>\n{text}\n</cg-memory>"
    assert brief == {"text": fenced, "keys": [KEY], "omitted": 0}
    assert not store.exists()
    with AgentMemory.open(str(store)) as memory:
        assert memory.keyed.keys() == [KEY]
    files = [path for path in store.parent.rglob("*") if path.is_file()]
    assert {path.stat().st_mode & 0o777 for path in files} == {0o600}


def test_null_removes_and_the_content_may_come_from_standard_input(store: Path) -> None:
    contextgraph(
        "call", "set", f"key={KEY}", "json_content=@-", "--store", store, stdin=b'"a text"'
    )
    (removed,) = call("set", store, key=KEY, json_content=None, source="agent").records
    assert removed["status"] == "removed"
    assert call("brief", store).records[0]["text"] == ""


def test_compact_reports_what_it_left(store: Path) -> None:
    for number in (1, 2, 3):
        call("set", store, key=KEY, json_content=number)
    result = call("compact", store)
    assert result.records == [{"lines_before": 3, "lines_after": 1, "keys": 1, "expired": 0}]
    assert call("compact", store).records[0]["lines_before"] == 1


@pytest.mark.parametrize(
    "arguments", [("call", "brief"), ("call", "compact"), ("forget", "--key", KEY, "--yes")]
)
def test_where_nothing_was_set_the_remedy_is_named(store: Path, arguments: tuple[str, ...]) -> None:
    done = contextgraph(*arguments, "--store", store)
    assert (done.code, "no keyed files at" in done.err) == (1, True)
    assert "contextgraph call set" in done.err
    assert not [*store.parent.iterdir()]


def test_a_memory_without_entries_has_an_empty_brief(store: Path) -> None:
    call("remember", store, content="CI uses tox")

    brief = call("brief", store)

    assert (brief.code, brief.records) == (0, [{"text": "", "keys": [], "omitted": 0}])
    assert call("compact", store).code == 1


def test_a_source_is_a_name_or_an_object(store: Path) -> None:
    read = {"kind": "file", "name": "tox.ini", "retrieved_at": "2026-01-31", "locator": "tox.ini"}
    for source in ("agent", read):
        assert call("set", store, key=KEY, json_content="tox", source=source).code == 0
    refused = call("set", store, key=KEY, json_content="tox", source=7)
    assert (refused.code, "source must be a name" in refused.err) == (1, True)


def test_a_key_is_forgotten_with_its_history(store: Path) -> None:
    call("set", store, key=KEY, json_content=1)
    call("set", store, key=KEY, json_content=2)
    result = contextgraph("forget", "--key", KEY, "--yes", "--json", "--store", store)
    assert result.records == [{"forgotten": 2, "key": KEY}]
    again = contextgraph("forget", "--key", KEY, "--yes", "--store", store)
    assert (again.code, "no entry of" in again.err) == (1, True)


def test_a_source_that_has_only_set_entries_is_forgotten(store: Path) -> None:
    call("set", store, key=KEY, json_content=1, source="agent:ci")
    forget = ("forget", "--source", "ci", "--yes", "--json", "--store", store)
    assert contextgraph(*forget, "--older-than", "1").records[0]["keys"] == 0
    assert contextgraph(*forget).records[0]["keys"] == 1
    with AgentMemory.open(str(store)) as memory:
        assert memory.keyed.keys() == []
    assert "no trajectory of ci" in contextgraph(*forget).err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"key": "/kb/a"}, "source of /kb/a needs name"),
        ({"key": "/kb/a", "source": {"kind": "web", "name": "x"}}, "needs retrieved_at"),
        ({"key": "a"}, "must start with /"),
    ],
)
def test_what_cannot_be_stored_says_why(
    store: Path, arguments: dict[str, Any], message: str
) -> None:
    result = call("set", store, json_content=1, **arguments)
    assert (result.code, message in result.err) == (1, True)


def test_isolated_knowledge_is_stored_but_not_shown(store: Path) -> None:
    given = {"key": "/kb/a", "json_content": 1, "source": "web", "isolate": True}
    assert call("set", store, **given).records[0]["status"] == "isolated"
    assert call("brief", store).records[0]["text"] == ""


def test_a_memory_in_ram_needs_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = call("set", ":memory:", key=KEY, json_content=1)
    assert (result.code, "set keyed_root" in result.err) == (1, True)
    monkeypatch.setenv("CONTEXTGRAPH_KEYED_ROOT", str(tmp_path / "keyed"))
    assert call("set", ":memory:", "--tenant", "a/b", key=KEY, json_content=1).code == 0
    assert [path.name for path in (tmp_path / "keyed").iterdir()] == ["a%2Fb"]


def test_doctor_checks_the_files(store: Path) -> None:
    call("set", store, key=KEY, json_content=1)
    (checkup,) = contextgraph("doctor", "--store", store, "--json").records
    assert [one["ok"] for one in checkup["checks"] if one["name"] == "keyed files"] == [True]
    (store.with_name("team.keyed") / "state.jsonl").write_text("")
    (checkup,) = contextgraph("doctor", "--store", store, "--json").records
    assert [one["ok"] for one in checkup["checks"] if one["name"] == "keyed files"] == [False]


def test_keyed_files_alone_are_recalled_and_shown(store: Path) -> None:
    call("set", store, key=KEY, json_content="short answers")
    recalled = call("recall", store, question="short answers")
    assert (recalled.code, KEY in recalled.out) == (0, True)
    assert "short answers" in call("snapshot", store, trigger="a question").out
    assert not store.exists()


def test_an_archive_has_the_entries_until_they_are_forgotten(store: Path) -> None:
    archive, other = store.with_name("all.jsonl.zst"), store.with_name("other.db")
    for key, content in ((KEY, "tests first"), ("/user/gone", 1), ("/user/gone", None)):
        call("set", store, key=key, json_content=content, source={"kind": "user", "name": "ann"})
    with AgentMemory.open(str(store)) as memory:
        known = memory.keyed.get(KEY)
    call("set", other, key="/user/own", json_content=2)

    exported = contextgraph("export", archive, "--store", store, "--json")
    imported = [
        contextgraph("import", archive, "--as-owner", "--store", other, "--json") for _ in range(2)
    ]

    assert exported.records[0]["keyed"] == 1
    assert [one.records[0]["keyed"] for one in imported] == [1, 0]
    with AgentMemory.open(str(other)) as memory:
        assert memory.keyed.keys() == ["/user/own", KEY]
        moved = memory.keyed.get(KEY)
        assert not memory.keyed.check()
    assert known
    assert moved
    assert (moved.content, moved.ts, moved.source) == (known.content, known.ts, known.source)
    assert contextgraph("forget", "--key", KEY, "--yes", "--store", store).code == 0
    again = contextgraph("import", archive, "--as-owner", "--store", f"{store}.new", "--json")
    assert again.records[0]["keyed"] == 0

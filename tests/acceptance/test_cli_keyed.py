"""``contextgraph set``, ``brief``, ``compact`` and ``forget --key``."""

from pathlib import Path

import pytest

from contextgraph import AgentMemory
from tests.acceptance.command_line import contextgraph

KEY = "/user/preference/review"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


def test_what_is_set_is_in_the_brief_and_in_the_files(store: Path) -> None:
    content = '{"summary": "small commits, tests first", "importance": 8}'
    (receipt,) = contextgraph("set", KEY, content, "--store", store, "--json").records

    assert {**receipt, "path": ""} == {"key": KEY, "seq": 1, "status": "set", "path": ""}
    assert "tests first" in Path(receipt["path"]).read_text()
    printed = contextgraph("brief", "--tokens", "100", "--tag", "x", "--store", store).out
    assert printed == f"[Agent Memory]\n- {KEY} small commits, tests first\n"
    (brief,) = contextgraph("brief", "--store", store, "--json").records
    assert brief == {"text": printed.rstrip("\n"), "keys": [KEY], "omitted": 0}
    with AgentMemory.open(str(store)) as memory:
        assert memory.keyed.keys() == [KEY]


def test_null_removes_and_the_content_may_come_from_standard_input(store: Path) -> None:
    contextgraph("set", KEY, "-", "--store", store, stdin=b'"a text"')
    removed = contextgraph("set", KEY, "null", "--source", "agent", "--store", store)
    assert removed.out == f"{KEY}: removed\n"
    assert contextgraph("brief", "--store", store).out == ""


def test_compact_reports_what_it_left(store: Path) -> None:
    for number in "123":
        contextgraph("set", KEY, number, "--store", store)
    result = contextgraph("compact", "--store", store, "--json")
    assert result.records == [{"lines_before": 3, "lines_after": 1, "keys": 1, "expired": 0}]
    assert contextgraph("compact", "--store", store).out == "log: 1 -> 1 line, 1 key, 0 expired\n"


@pytest.mark.parametrize("arguments", [("brief",), ("compact",), ("forget", "--key", KEY, "--yes")])
def test_where_nothing_was_set_the_remedy_is_named(store: Path, arguments: tuple[str, ...]) -> None:
    done = contextgraph(*arguments, "--store", store)
    assert (done.code, "no keyed files at" in done.err) == (1, True)
    assert "contextgraph set" in done.err
    assert not [*store.parent.iterdir()]


def test_a_key_is_forgotten_with_its_history(store: Path) -> None:
    contextgraph("set", KEY, "1", "--store", store)
    contextgraph("set", KEY, "2", "--store", store)
    result = contextgraph("forget", "--key", KEY, "--yes", "--json", "--store", store)
    assert result.records == [{"forgotten": 2, "key": KEY}]
    again = contextgraph("forget", "--key", KEY, "--yes", "--store", store)
    assert (again.code, "no entry of" in again.err) == (1, True)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("/kb/a", "1"), 1, "source of /kb/a needs name"),
        (("/kb/a", "1", "--source", '{"kind": "web", "name": "x"}'), 1, "needs retrieved_at"),
        (("a", "1"), 1, "must start with /"),
        (("/a", "no json"), 2, "JSON cannot be parsed"),
        (("/a", "1", "--source", "{"), 2, "--source cannot be parsed"),
    ],
)
def test_what_cannot_be_stored_says_why(
    store: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    result = contextgraph("set", *arguments, "--store", store)
    assert (result.code, message in result.err) == (code, True)


def test_isolated_knowledge_is_stored_but_not_shown(store: Path) -> None:
    arguments = ("set", "/kb/a", "1", "--source", "web", "--isolate", "--store", store, "--json")
    assert contextgraph(*arguments).records[0]["status"] == "isolated"
    assert contextgraph("brief", "--store", store).out == ""


def test_a_memory_in_ram_needs_a_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    result = contextgraph("set", KEY, "1", "--store", ":memory:")
    assert (result.code, "set keyed_root" in result.err) == (1, True)
    monkeypatch.setenv("CONTEXTGRAPH_KEYED_ROOT", str(tmp_path / "keyed"))
    assert contextgraph("set", KEY, "1", "--store", ":memory:", "--tenant", "a/b").code == 0
    assert [path.name for path in (tmp_path / "keyed").iterdir()] == ["a%2Fb"]


def test_doctor_checks_the_files(store: Path) -> None:
    contextgraph("set", KEY, "1", "--store", store)
    (checkup,) = contextgraph("doctor", "--store", store, "--json").records
    assert [one["ok"] for one in checkup["checks"] if one["name"] == "keyed files"] == [True]
    (store.with_name("team.keyed") / "state.jsonl").write_text("")
    (checkup,) = contextgraph("doctor", "--store", store, "--json").records
    assert [one["ok"] for one in checkup["checks"] if one["name"] == "keyed files"] == [False]


def test_keyed_files_alone_are_recalled_and_shown(store: Path) -> None:
    contextgraph("set", KEY, '"short answers"', "--store", store)
    recalled = contextgraph("recall", "short answers", "--store", store)
    assert (recalled.code, KEY in recalled.out) == (0, True)
    assert "short answers" in contextgraph("snapshot", "a question", "--store", store).out
    assert not store.exists()

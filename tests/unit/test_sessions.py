"""Working memory, conversations and key-value items."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, strategies as st

from contextgraph import AgentMemory
from contextgraph.agents.live import WorkingMemory
from contextgraph.errors import StoreError
from contextgraph.knowledge.forgetting import Capacity, Hybrid, RecallValue, Ttl
from contextgraph.knowledge.sessions import Conversation, ItemFile, Items
from contextgraph.text import count_tokens

NOW = datetime(2026, 1, 1, tzinfo=UTC)
FAILED = "Traceback (most recent call last):\n  File \"src/a.py\", line 3\nKeyError: 'total'\n"
LONG = "line of output\n" * 2_000


class Clock:
    """A clock that goes on by a second at each look."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture(params=["file", "RAM"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> ItemFile:
    return ItemFile(tmp_path / "memory.sessions.db" if request.param == "file" else None)


# Working memory.


def test_the_zones_come_in_order() -> None:
    work = WorkingMemory()
    work.add_trigger("issue", {"id": 42}, focus="the parser")
    work.inject("do not touch the public API")
    for number in range(5):
        work.add_llm_response(f"thought {number}")
        work.add_function_call("bash", {"cmd": f"echo {number}"}, {"exit": 0, "out": f"{number}"})
    work.add_function_call("bash", {"cmd": "python src/a.py"}, {"exit": 1, "out": FAILED})
    assert work.to_prompt_section().splitlines() == [
        "Rule: do not touch the public API",
        "Focus: the parser",
        'issue: {"id": 42}',
        "Open error: KeyError: 'total' (src/a.py:3)",
        "- echo 0 -> 0",
        "- echo 1 -> 1",
        "- echo 2 -> 2",
        "thought 3",
        "$ echo 3",
        "3",
        "thought 4",
        "$ echo 4",
        "4",
        "$ python src/a.py",
        *FAILED.splitlines(),
    ]


def test_files_and_errors_are_followed_until_the_error_is_gone() -> None:
    work = WorkingMemory()
    run = ("bash", {"command": "python run.py"})
    work.add_function_call(*run, {"exit_code": 1, "output": FAILED})
    work.add_function_call("str_replace_editor", {"command": "create", "path": "src/b.py"}, "done")
    assert "Open error: KeyError: 'total'" in work.to_prompt_section()
    assert "Changed: src/b.py" in work.to_prompt_section()
    work.add_function_call(*run, {"exit_code": 0, "output": "ok"})
    assert "Open error" not in work.to_prompt_section()


def test_rules_and_the_open_error_survive_long_outputs() -> None:
    work = WorkingMemory(max_tokens=500)
    work.add_trigger("issue", LONG)
    work.inject("never change the API")
    work.add_function_call("bash", {"cmd": "python src/a.py"}, {"exit": 1, "out": FAILED})
    for number in range(40):
        work.add_function_call("bash", {"cmd": f"cat file{number}"}, LONG)
    section = work.to_prompt_section()
    assert "Rule: never change the API" in section
    assert "Open error: KeyError: 'total'" in section
    assert "characters cut" in section
    assert "- cat file36 -> line of output" in section
    assert "earlier ones omitted)" in section


TEXT = st.text(max_size=300) | st.just(LONG)


@given(
    st.integers(1, 3_000),
    st.lists(TEXT, max_size=6),
    st.lists(st.tuples(TEXT, TEXT), max_size=9),
    TEXT,
)
def test_the_budget_is_never_exceeded(
    tokens: int, rules: list[str], calls: list[tuple[str, str]], trigger: str
) -> None:
    work = WorkingMemory(tokens)
    work.add_trigger("issue", trigger, focus=trigger[:80])
    for rule in rules:
        work.inject(rule)
    for command, output in calls:
        work.add_function_call("bash", {"command": command}, {"exit": 1, "output": output})
    assert count_tokens(work.to_prompt_section()) <= tokens


# Conversations.


def talk(file: ItemFile, **options: object) -> Conversation:
    return Conversation(Items(file, "talk", clock=Clock()), **options)  # type: ignore[arg-type]


def turns(conversation: Conversation, numbers: Iterator[int] | range, result: str = "ok") -> None:
    for number in numbers:
        conversation.add_message("user", f"question {number}")
        conversation.add_message("tool", result, name="bash")
        conversation.add_message("assistant", f"answer {number}")


def test_a_window_slides_by_whole_turns_and_keeps_the_system(file: ItemFile) -> None:
    conversation = talk(file, max_turns=2)
    conversation.add_message("system", "be brief")
    turns(conversation, range(4))
    history = [one.content for one in conversation.get_history()]
    assert history == ["be brief", "question 2", "ok", "answer 2", "question 3", "ok", "answer 3"]


def test_a_full_conversation_keeps_everything(file: ItemFile) -> None:
    conversation = talk(file, strategy="full", max_turns=1)
    turns(conversation, range(50))
    assert len(conversation.get_history()) == 150


def test_old_tool_results_are_shortened_where_they_do_not_fit(file: ItemFile) -> None:
    conversation = talk(file, keep_recent=1, context_window=4_000, reserved_tokens=500)
    turns(conversation, range(3), result="output " * 1_000)
    results = [one for one in conversation.get_history() if one.role == "tool"]
    assert [count_tokens(one.content) <= 60 for one in results] == [True, True, False]
    assert results[0].name == "bash"
    assert sum(count_tokens(one.content) for one in conversation.get_history()) <= 3_500


def test_results_are_whole_where_they_fit(file: ItemFile) -> None:
    conversation = talk(file)
    turns(conversation, range(3), result="output " * 1_000)
    results = [one.content for one in conversation.get_history() if one.role == "tool"]
    assert results == ["output " * 1_000] * 3


def test_an_empty_conversation_has_no_history(file: ItemFile) -> None:
    assert talk(file).get_history() == ()


def test_a_window_of_no_turns_is_refused(file: ItemFile) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        talk(file, max_turns=0)


# Items.


def test_an_item_is_saved_listed_and_deleted(file: ItemFile) -> None:
    items = Items(file, "cache", clock=Clock())
    items.save("a/1", "one", {"tool": "bash"})
    items.save("a/2", "two")
    items.save("b/1", "three")
    items.save("a/1", "one again")
    found = items.get("a/1")
    assert found
    assert (found.content, found.metadata, found.recalls.count) == ("one again", {}, 0)
    assert [one.id for one in items.list()] == ["a/1", "b/1", "a/2"]
    assert [one.id for one in items.list(prefix="a/", limit=1)] == ["a/1"]
    assert [one.id for one in items.list(since=found.created_at)] == ["a/1"]
    assert items.delete("a/1")
    assert not items.delete("a/1")
    assert items.get("a/1") is None
    assert Items(file, "other").list() == ()


def test_recalls_are_counted(file: ItemFile) -> None:
    items = Items(file, "cache", clock=Clock())
    items.save("k", "text")
    items.record_recall("k", 0.5)
    items.record_recall("k", 1.0)
    items.record_recall("unknown", 1.0)
    found = items.get("k")
    assert found
    assert (found.recalls.count, found.recalls.total_score) == (2, 1.5)
    assert found.recalls.last is not None


def test_the_oldest_beyond_the_capacity_go(file: ItemFile) -> None:
    items = Items(file, "cache", Capacity(2), Clock())
    for name in "abc":
        items.save(name, name)
    assert [one.id for one in items.list()] == ["c", "b"]


def test_what_is_recalled_stays(file: ItemFile) -> None:
    items = Items(file, "cache", RecallValue(2), Clock())
    items.save("useful", "text")
    items.record_recall("useful", 1.0)
    items.save("other", "text")
    items.save("newest", "text")
    assert {one.id for one in items.list()} == {"useful", "newest"}


@pytest.mark.parametrize("policy", [Ttl(timedelta(hours=1)), Hybrid(ttl=timedelta(hours=1))])
def test_what_has_expired_is_not_found(file: ItemFile, policy: Ttl | Hybrid) -> None:
    clock = Clock()
    items = Items(file, "cache", policy, clock)
    items.save("k", "text")
    clock.now += timedelta(hours=2)
    assert items.get("k") is None
    assert items.list() == ()


def test_secrets_are_masked(file: ItemFile) -> None:
    items = Items(file, "cache")
    items.save("k", "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8")
    assert [one.content for one in items.list()] == ["<secret:github-token>"]


def test_threads_share_items(file: ItemFile) -> None:
    items = Items(file, "cache")
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda number: items.save(f"{number}", "text"), range(40)))
    assert len(items.list()) == 40


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(StoreError, match="folder"):
        Items(ItemFile(tmp_path / "folder"), "cache").save("k", "text")


# From the memory.


def test_conversations_and_items_outlive_the_process_beside_the_memory(tmp_path: Path) -> None:
    address = str(tmp_path / "team.db")
    with AgentMemory.open(address) as memory:
        memory.conversation("mig-12").add_message("user", "hello")
        memory.items("cache").save("k", "text")
    with AgentMemory.open(address) as memory:
        assert [one.content for one in memory.conversation("mig-12").get_history()] == ["hello"]
        assert memory.conversation("other").get_history() == ()
        assert memory.items("cache").get("k")
    assert (tmp_path / "team.sessions.db").exists()


def test_a_memory_in_ram_keeps_them_in_ram() -> None:
    with AgentMemory.open(":memory:") as memory:
        memory.items("cache").save("k", "text")
        assert memory.items("cache").get("k")
        assert memory.working(50).to_prompt_section() == ""


def test_no_rule_is_lost_however_many_and_long_they_are() -> None:
    work = AgentMemory.working(max_tokens=2_000)
    for number in range(30):
        work.inject(f"rule {number}: " + "keep the ledger append only " * 10 + f"end {number}")
    for number in range(40):
        work.add_function_call("bash", {"command": f"cat part{number}.py"}, "rate = 1\n" * 50)
    section = work.to_prompt_section()
    assert all(f"Rule: rule {number}: " in section for number in range(30))
    assert all(f"end {number}" in section for number in range(30))
    assert count_tokens(section) <= 2_000

"""Twelve scenarios of the founding documents and three habits of people, on each store."""

import json
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from contextgraph import AgentMemory, State
from contextgraph.errors import InvalidEntryError, ReadError
from contextgraph.knowledge import Entity, MaintenancePolicy, Page
from contextgraph.knowledge.forgetting import Hybrid, RecallValue
from contextgraph.knowledge.recall import shareable
from contextgraph.knowledge.rules import rules_in
from contextgraph.model.values import replace
from contextgraph.text import count_tokens
from tests.builders import NO_MODULE, installing_run

SHOP = "acme/shop"


def recalled(memory: AgentMemory, question: str) -> list[str]:
    return [one.note.content for one in memory.notes.recall(question, repo=SHOP)]


# 000: governed notes.


def test_a_convention_that_changed(any_memory: AgentMemory) -> None:
    old = any_memory.notes.remember("CI uses Python 3.11", repo=SHOP, source="user:chat")
    new = any_memory.notes.remember("CI uses Python 3.12", repo=SHOP, source="file:tox.ini")
    assert (new.status, new.others) == ("supersedes", (old.id,))
    assert recalled(any_memory, "which python does CI use") == ["CI uses Python 3.12"]
    explained = any_memory.explain(new.id)
    assert explained is not None
    assert ("supersedes", old.id) in {(edge.type, edge.id) for edge in explained.relations}


def test_who_is_right(any_memory: AgentMemory) -> None:
    notes = any_memory.notes
    one = notes.remember("retries are handled by the client", repo=SHOP, source="agent:a")
    other = notes.remember("retries are not handled by the client", repo=SHOP, source="agent:b")
    assert (other.status, other.others) == ("contradicts", (one.id,))
    assert all(found.note.contradicts for found in notes.recall("who handles retries", repo=SHOP))
    for number in range(4):
        notes.remember("retries are handled by the client", repo=SHOP, source=f"agent:{number}")
    assert recalled(any_memory, "who handles retries")[0] == "retries are handled by the client"
    assert any_memory.maintain().conflicts_resolved == 1
    assert recalled(any_memory, "who handles retries") == ["retries are handled by the client"]


def test_a_year_of_notes(any_memory: AgentMemory) -> None:
    kept = any_memory.notes.remember("deploys wait for the ledger", repo=SHOP, importance=1.0).id
    for name in "ash beech cedar elm fir hazel larch maple oak pine rowan yew".split():
        any_memory.notes.remember(f"saw {name} in the log", repo=SHOP, importance=0.1)
    report = any_memory.maintain(MaintenancePolicy(max_notes=6))
    assert report.evicted == 7
    left = {note.id for note in any_memory.notes.of(SHOP)}
    assert (len(left), kept in left) == (6, True)
    assert recalled(any_memory, "what do deploys wait for")[0] == "deploys wait for the ledger"


# 001: keyed files.


def test_an_agent_with_a_shell_and_no_library(any_memory: AgentMemory) -> None:
    style = {"summary": "small commits, tests first", "importance": 8}
    any_memory.keyed.set_memory("/user/preference/review", style, "user")
    any_memory.keyed.set_memory("/kb/db", {"summary": "postgres 16"}, provenance("file", "README"))
    brief = any_memory.keyed.brief(600, ["python"]).text
    assert brief.splitlines()[0] == "[Agent Memory]"
    assert "- /user/preference/review small commits, tests first" in brief
    assert any_memory.snapshot("CI fails", repo=SHOP).keyed
    found = shell("grep", "-ril", "postgres", str(any_memory.keyed.root / "index"))
    assert [Path(line).name.partition("@")[0] for line in found] == ["db"]


def provenance(kind: str, locator: str) -> dict[str, str]:
    times = {"retrieved_at": "2026-01-05T10:00:00Z"}
    return {"kind": kind, "name": "stripe.com", "locator": locator, **times}


def shell(*command: str) -> list[str]:
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    return ran.stdout.splitlines()


def test_knowledge_of_the_web_needs_its_source(any_memory: AgentMemory) -> None:
    keyed, key = any_memory.keyed, "/kb/stripe/webhooks"
    with pytest.raises(InvalidEntryError, match="needs locator"):
        keyed.set_memory(key, "retried for 3 days", provenance("web", ""))
    keyed.set_memory(key, "retried for 3 days", provenance("web", "https://stripe.com/docs"))
    (envelope,) = map(json.loads, (keyed.root / "state.jsonl").read_text().split("\n")[:1])
    assert (envelope["key"], envelope["source"]["locator"]) == (key, "https://stripe.com/docs")


def test_a_reminder_and_who_set_it(any_memory: AgentMemory) -> None:
    keyed, key = any_memory.keyed, "/user/todo/flag"
    reminder = {"summary": "remove the flag", "expired_at": "2026-03-01T00:00:00Z"}
    keyed.set_memory(key, reminder, {"kind": "user", "name": "Ada"})
    day = timedelta(days=1)
    until = datetime(2026, 3, 1, tzinfo=UTC)
    assert key in keyed.brief(600, now=until - day).text
    assert key not in keyed.brief(600, now=until + day).text
    assert keyed.set_memory(key, None, "agent").status == "removed"
    keyed.compact()
    assert keyed.keys("/user/") == []
    assert len(shell("grep", "-rl", "Ada", str(keyed.root / "archive"))) == 1


# 002: short-term memory, snapshot, remember and recall.


def test_a_loop_of_an_agent_with_a_small_context(any_memory: AgentMemory) -> None:
    work = any_memory.working(max_tokens=2000)
    work.add_trigger("issue", {"title": "Totals are wrong"}, focus="the parser")
    work.inject("do not touch the public API")
    for step in range(40):
        work.add_llm_response(f"Step {step}.")
        noise = "noise\n" * 500 + NO_MODULE
        work.add_function_call("bash", {"command": f"python step_{step}.py"}, noise)
    section = work.to_prompt_section()
    assert count_tokens(section) <= 2000
    for said in ("do not touch the public API", "the parser", "Totals", "ModuleNotFoundError"):
        assert said in section
    assert "step_39.py" in section


def test_the_start_of_a_session(any_memory: AgentMemory) -> None:
    notes = any_memory.notes
    notes.remember("small commits, tests first", repo=SHOP, pinned=True)
    notes.remember("test_checkout needs redis", repo=SHOP)
    shown = any_memory.snapshot("test_checkout fails on main", "payments", repo=SHOP)
    assert [note.content for note in shown.notes] == [
        "small commits, tests first",
        "test_checkout needs redis",
    ]
    assert count_tokens(shown.text) <= 500
    for number in range(16):
        any_memory.learn(installing_run(number))
    answer = any_memory.query(State(current_error=NO_MODULE, repo=SHOP))
    assert "install" in any_memory.render(answer)


def test_the_memory_of_a_company(any_memory: AgentMemory) -> None:
    secret = "the customer list is on host vault-7"
    any_memory.notes.remember(secret, repo=SHOP, security="restricted")
    (found,) = any_memory.notes.recall("where is the customer list", repo=SHOP)
    assert found.note.content == secret
    assert shareable(found).note.content == "[RESTRICTED]"
    assert any_memory.notes.recall("customer list", repo="bob/pump") == ()


# 004: pages, entities, conversations, items.


def test_a_wiki_that_an_agent_keeps(any_memory: AgentMemory) -> None:
    pages = any_memory.pages
    handlers = "handlers must be idempotent"
    pages.add_page(Page("webhooks", "Webhooks", content=handlers, references=("ledger",)))
    pages.add_page(Page("ledger", "Ledger", references=("bank",)))
    pages.add_page(Page("bank", "Bank"))
    pages.update_page(replace(pages.get_page("ledger"), summary="what was paid"))
    index = {page.id: page.summary for page in pages.get_index()}
    assert index == {"bank": "", "ledger": "what was paid", "webhooks": ""}
    assert [found.page.id for found in pages.search("idempotency")] == ["webhooks"]
    assert pages.references("webhooks", depth=2) == {"ledger": 1, "bank": 2}


def test_what_breaks_if_this_changes(any_memory: AgentMemory) -> None:
    for name in ("PriceRule", "Cart", "Checkout"):
        any_memory.entities.add_entity(Entity(name, "class"))
    any_memory.entities.add_relation("Cart", "PriceRule", "depends_on")
    any_memory.entities.add_relation("Checkout", "Cart", "depends_on")
    any_memory.pages.add_page(Page("carts", "Carts", mentions=("Cart",)))
    related = any_memory.entities.get_related("PriceRule", 2)
    assert [(one.entity.name, one.distance, one.pages) for one in related] == [
        ("Cart", 1, ("carts",)),
        ("Checkout", 2, ()),
    ]
    found = any_memory.notes.recall("what breaks if I change PriceRule?", limit=9)
    parts = {one.note.id: one.why for one in found}
    assert {"entity:pricerule", "entity:cart", "entity:checkout"} <= parts.keys()
    assert parts["entity:cart"]["graph"] > parts["entity:checkout"]["graph"] > 0


def test_a_long_chat_about_a_migration(any_memory: AgentMemory) -> None:
    talk = any_memory.conversation("migration-12", max_turns=40)
    for number in range(200):
        talk.add_message("user", f"question {number}")
        talk.add_message("tool", "42 rows\n" * 2000, name="psql")
    history = talk.get_history()
    assert [message.content for message in history if message.role == "user"] == [
        f"question {number}" for number in range(160, 200)
    ]
    lengths = [len(message.content) for message in history if message.role == "tool"]
    assert lengths[0] < lengths[-1]
    any_memory.notes.remember("the migration keeps the old column until May", repo=SHOP)
    assert recalled(any_memory, "how long is the old column kept")
    policy = Hybrid(ttl=timedelta(hours=1), limit=RecallValue(max_items=2))
    cache = any_memory.items("tool results", policy)
    cache.save("git log", "3 commits", {})
    cache.record_recall("git log", score=0.9)
    for number in range(5):
        cache.save(f"ls {number}", "3 commits", {})
    assert cache.get("git log") is not None


# Habits of people.


def test_files_are_edited_by_hand(any_memory: AgentMemory) -> None:
    keyed = any_memory.keyed
    for key in ("style", "editor"):
        keyed.set_memory(f"/user/{key}", {"summary": f"first {key}"}, "agent")
    (file,) = keyed.root.glob("index/user/style@*.json")
    file.write_text(file.read_text().replace("first style", "tabs"))
    with (keyed.root / "log.jsonl").open("a") as log:
        log.write("not a call\n")
    keyed.set_memory("/user/other", {"summary": "third"}, "agent")
    style = keyed.get("/user/style")
    assert style is not None
    source = {"kind": "user", "name": "edit by hand"}
    assert (style.content, style.source) == ({"summary": "tabs"}, source)
    assert keyed.compact().keys == 3
    assert "tabs" in keyed.brief(600).text
    assert "not a call" in (keyed.root / "log.damaged").read_text()


def test_what_happened_recently(any_memory: AgentMemory) -> None:
    first = any_memory.notes.remember("the importer locks its queue", repo=SHOP).id
    second = any_memory.notes.remember("releases are cut on Friday", repo=SHOP).id
    found = any_memory.notes.recall("what happened recently?", repo=SHOP, limit=2)
    assert [one.note.id for one in found] == [second, first]


def test_moving_from_files_of_rules(any_memory: AgentMemory, tmp_path: Path) -> None:
    folder = tmp_path / ".cursor" / "rules"
    folder.mkdir(parents=True)
    files = {
        tmp_path / "CLAUDE.md": "# Shop\n\n- Run `make check` before a push.\n",
        tmp_path / "AGENTS.md": "Prices are integers of cents.\n",
        folder / "tabs.mdc": "---\nglobs: '*.py'\nalwaysApply: true\n---\n- Use tabs.\n",
        tmp_path / "mem0.json": json.dumps(
            {"results": [{"id": "1", "memory": "Ann owns billing"}]}
        ),
        tmp_path / "letta.af": json.dumps({"blocks": [{"label": "human", "value": "Bob is new"}]}),
    }
    for path, text in files.items():
        path.write_text(text)
    for path in (tmp_path / "CLAUDE.md", tmp_path / "AGENTS.md", folder, *[*files][3:]):
        for rule in rules_in(path):
            assert not isinstance(rule, ReadError)
            source, place = f"file:{path.name}", rule.locator
            any_memory.notes.remember(rule.text, repo=SHOP, source=source, locator=place)
    notes = {note.content: note.locator for note in any_memory.notes.of(SHOP)}
    assert notes == {
        "Run `make check` before a push.": f"{tmp_path}/CLAUDE.md:3",
        "Prices are integers of cents.": f"{tmp_path}/AGENTS.md:1",
        "Use tabs.": f"{folder}/tabs.mdc:5",
        "Ann owns billing": f"{tmp_path}/mem0.json:.results[0]",
        "Bob is new": f"{tmp_path}/letta.af:.blocks[0]",
    }
    assert recalled(any_memory, "who owns billing") == ["Ann owns billing"]

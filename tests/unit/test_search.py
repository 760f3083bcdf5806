"""One search over all rooms of a memory, and the keyed files at the start of a run."""

from collections.abc import Callable, Iterator, Sequence, Sized
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory
from contextgraph.advising.wording import render
from contextgraph.config import Settings
from contextgraph.errors import InvalidArgumentError, NotFoundError
from contextgraph.knowledge import Entity, Page, render_notes
from contextgraph.knowledge.fitted import fitted
from contextgraph.knowledge.ranking import Rated, fused
from contextgraph.memory.wiring import build
from contextgraph.model import (
    LIKELY,
    Action,
    Found,
    LinkType,
    Outcome,
    PassageScope,
    RawTrajectory,
    SimilarCase,
    State,
    Step,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import PassageStore
from contextgraph.store.sqlite.port import SqlitePort
from tests.builders import recovering_run

SHOP = "acme/shop"


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[AgentMemory]:
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        for name in ("PriceRule", "Checkout", "Ledger", "Mailer"):
            memory.entities.add_entity(Entity(name))
        memory.entities.add_relation("Checkout", "PriceRule", "depends_on")
        memory.entities.add_relation("Ledger", "Checkout", "depends_on")
        memory.pages.add_page(Page("pay", "Payments", "how we are paid", "", mentions=("Ledger",)))
        yield memory


def by_id(found: tuple[Found, ...]) -> dict[str, Found]:
    return {one.id: one for one in found}


def test_what_is_linked_to_an_entity_is_found_by_its_distance(memory: AgentMemory) -> None:
    found = by_id(memory.search("what breaks if PriceRule changes?"))
    rule, near, far = (found[f"entity:{name}"] for name in ("pricerule", "checkout", "ledger"))
    assert rule.score > near.score > far.score > 0
    assert near.why["graph"] == pytest.approx(0.5)
    assert "entity:mailer" not in found


def test_links_of_all_entities_are_followed_by_the_same_questions(
    memory: AgentMemory, results_of: Callable[[type, str], list[Sized]]
) -> None:
    for name in ("one", "two", "three"):
        memory.entities.add_entity(Entity(f"Tariff {name}"))
        memory.entities.add_relation(f"Tariff {name}", "Ledger", "depends_on")
    asked, counted = results_of(SqlitePort, "find"), results_of(SqlitePort, "word_counts")
    found = by_id(memory.search("tariff"))
    assert "graph" in found["entity:ledger"].why
    # Words of passages, of notes and of remedies; 24 questions when each entity had its own.
    assert (len(counted), len(asked)) == (3, 11)


def test_a_strategy_leaves_links_or_all_else_out(memory: AgentMemory) -> None:
    memory.notes.remember("PriceRule is generated from the contract", repo=SHOP)
    question = "what is known about PriceRule?"
    everything = memory.search(question)
    knowledge = memory.search(question, strategy="knowledge")
    graph = memory.search(question, strategy="graph")
    assert {"note", "entity"} <= {one.kind for one in everything}
    assert not any("graph" in one.why for one in knowledge)
    assert {one.kind for one in graph} == {"entity"}
    assert {one.id for one in graph} < {one.id for one in everything}
    with pytest.raises(InvalidArgumentError, match="strategy: Expected 'hybrid', "):
        memory.search(question, strategy="hybird")


def test_a_named_file_and_a_reason_raise_the_score(memory: AgentMemory) -> None:
    memory.learn(recovering_run())
    memory.notes.remember("tariffs are read in lib/tariffs.py", repo=SHOP)
    memory.notes.remember("tariffs are read at the start, then never again", repo=SHOP)
    first, *others = memory.search("where are tariffs read in lib/tariffs.py")
    assert "lib/tariffs.py" in first.text
    assert all(first.score >= other.score for other in others)
    assert {one.kind for one in (first, *others)} > {"note"}


def test_what_says_the_same_and_what_is_new_of_one_session_stand_once(memory: AgentMemory) -> None:
    runs = [recovering_run(number) for number in (1, 2)]
    for run in runs:
        memory.learn(run)
    found = [one for one in memory.search("No module named tariffs") if one.kind == "remedy"]
    assert len({one.text for one in found}) == len(found) > 0
    newest = memory.search("what happened recently", SHOP)
    assert len({one.command for one in newest}) == len(newest) > 1


def test_a_sub_agent_is_a_part_of_its_session(memory: AgentMemory) -> None:
    """Its prompt is no session, and what it was asked and wrote is nothing that a person said."""
    rule = "We always want tabs in here."
    spoken = Step(0, "I look for it.", Action("bash", "ls"), "ok", user_message=rule)
    asked = "The harvester of the ledger is slow, please look where the time goes."
    steps = (spoken, Step(1, "It is slow in the importer of barley.", Action("", ""), None))
    run = RawTrajectory("claude-code", "talk", SHOP, asked, steps, agent="claude-code")
    prompt = "Search the quarry for every sourdough and report the paths."
    said = Step(0, "", Action("bash", "ls"), "ok", user_message="Never touch the quarry.")
    for order in (
        (run,),
        (replace(run, agent="claude-code/subagent", task=prompt, steps=(said,)),),
    ):
        memory.learn(order)
    assert [one.text for one in memory.lessons.of(SHOP)] == [rule]
    (session,) = {one.session for one in memory.search("sourdough in the quarry", SHOP)}
    first = memory.search("sourdough in the quarry", SHOP)[0]
    assert (session, first.title.partition(" (")[0]) == ("talk", asked)
    assert (first.kind, first.speaker) == ("reply", "agent")
    assert "barley" in memory.search("importer of barley", SHOP)[0].text


def test_a_lesson_is_found_by_its_words_before_those_of_its_session(memory: AgentMemory) -> None:
    plan = " ".join(f"word{number}" for number in range(60))
    said = "We should always squash before merging the ledger, not after it."
    step = Step(0, "", Action("bash", "make"), "ok", user_message=said)
    run = RawTrajectory("generic", "a", SHOP, f"{plan} sourdough", (step,))
    memory.learn(run)
    assert memory.search("squash before merging")[0].kind == "lesson"
    assert "lesson" not in {one.kind for one in memory.search("sourdough")}


def test_a_question_is_about_what_is_asked_and_no_word_that_asks(memory: AgentMemory) -> None:
    for number, (task, said) in enumerate(
        (
            (
                "The importer loses rows",
                "We should never decide on a port while a deployment happens.",
            ),
            ("Tidy the importer", "We should never use 9000, the importer always listens on 8125."),
        )
    ):
        step = Step(0, "", Action("bash", "make"), "ok", user_message=said)
        memory.learn(RawTrajectory("generic", f"a-{number}", SHOP, task, (step,)))
    for question in ("when did we decide on the importer", "what happened to the importer's rules"):
        found = [one for one in memory.search(question) if one.kind == "lesson"]
        assert "8125" in found[0].text


def test_a_session_without_a_task_is_listed_with_what_it_changed(memory: AgentMemory) -> None:
    edit = Step(0, "", Action("bash", "sed -i s/a/b/ lib/tariffs.py"), "")
    for steps in ((edit,), recovering_run().steps):
        memory.learn(RawTrajectory("generic", f"a-{len(steps)}", SHOP, "", steps))
    found = memory.search("what happened recently", SHOP)
    texts = {one.text for one in found if one.kind in ("task", "session")}
    assert texts == {"changed lib/tariffs.py (1 step)", "no task (3 steps)"}


def test_recall_covers_every_kind_with_its_score_in_parts(memory: AgentMemory) -> None:
    memory.notes.remember("PriceRule is generated from the contract", repo=SHOP)
    memory.pages.add_page(Page("rules", "Rules", content="PriceRule has one row per tariff"))
    memory.keyed.set_memory("/user/pricerule", {"summary": "ask before PriceRule changes"}, "user")
    found = memory.notes.recall("what is PriceRule?", repo=SHOP, limit=9)
    kinds = {one.note.id: one.note.kind for one in found}
    assert {*kinds.values()} == {"note", "page", "entity", "keyed"}
    linked = [one for one in found if one.why.get("graph")]
    assert {one.note.id for one in linked} == {"entity:checkout", "entity:ledger"}
    assert all(0 < one.score <= 1 and 0 < one.probability < 1 for one in found)
    text = render_notes(found)
    assert all(said in text for said in ("one row per tariff", "ask before", "- PriceRule ("))
    graph = memory.notes.recall("what about Checkout?", strategy="graph", limit=9)
    assert {one.note.kind for one in graph} == {"entity", "page"}


def test_search_and_recall_rank_notes_alike_by_what_stands_beside_them(
    memory: AgentMemory,
) -> None:
    beside = "Bob: well, I would say that this queue of ours is like any other one, do you not"
    said = ["Ann: the importer locks the queue", beside, "Ann: the importer locks it"]
    said += [f"Bob: subject {number} of the day" for number in range(4)] + ["Ann: paper queue"]
    notes = [memory.notes.remember(text, repo=SHOP).id for text in said]
    question = "which queue does the importer lock"
    recalled = [one.note.id for one in memory.recall(question, repo=SHOP, limit=9)]
    assert recalled == [one.id for one in memory.search(question, SHOP)]
    assert recalled.index(notes[1]) < recalled.index(notes[-1])


def test_what_happened_recently_is_the_newest_whatever_it_says(memory: AgentMemory) -> None:
    assert [one.note.kind for one in memory.notes.recall("what's new?")] == ["page"]
    first = memory.notes.remember("the importer locks its queue", repo=SHOP).id
    second = memory.notes.remember("releases are cut on Friday", repo=SHOP).id
    found = memory.notes.recall("what happened recently?", repo=SHOP, limit=2)
    assert [one.note.id for one in found] == [second, first]
    assert found[0].score >= found[1].score > 0.9
    (about,) = memory.notes.recall("what happened recently to the importer?", repo=SHOP)
    assert about.note.id == first
    assert memory.notes.recall("the latest news", repo=SHOP, strategy="notes") == ()


def test_recall_of_why_brings_the_cause_as_probably(memory: AgentMemory) -> None:
    cause = memory.notes.remember("a customer lost two orders in March", repo=SHOP).id
    note = memory.notes.remember("the importer locks its queue", repo=SHOP, caused_by=[cause]).id
    found = {one.note.id: one for one in memory.notes.recall("why does the importer lock?")}
    assert found[note].probability > found[cause].probability > found[note].probability / 3
    assert found[cause].why["graph"] > 0


def test_the_cause_of_a_note_answers_why(memory: AgentMemory) -> None:
    cause = memory.notes.remember("a customer lost two orders in March", repo=SHOP).id
    memory.notes.remember("the importer locks its queue", repo=SHOP, caused_by=[cause])
    assert cause in by_id(memory.search("why does the importer lock its queue?"))
    assert cause not in by_id(memory.search("the importer locks its queue"))


def test_keyed_files_are_found_until_they_are_removed(memory: AgentMemory) -> None:
    key = "/user/preference/review"
    memory.keyed.set_memory(key, {"summary": "small commits, tests first"}, "user")
    (found,) = memory.search("how small are commits?")
    assert (found.kind, found.id) == ("keyed", key)
    assert "tests first" in found.text
    assert Path(found.command.removeprefix("cat ").strip("'")).is_file()
    assert memory.search("what happened recently")[0].id == key
    memory.keyed.set_memory(key, None, "user")
    assert memory.search("how small are commits?") == ()


def test_keyed_files_stand_in_the_snapshot_and_at_the_start_of_a_run(memory: AgentMemory) -> None:
    assert memory.snapshot("CI fails").keyed == ""
    memory.keyed.set_memory("/user/style", {"summary": "small commits, tests first"}, "user")
    memory.notes.remember("the API is frozen", repo=SHOP, pinned=True)
    snapshot = memory.snapshot("CI fails", repo=SHOP)
    assert "tests first" in snapshot.keyed
    assert "the API is frozen" in snapshot.text
    with memory.live(repo=SHOP, task="Totals are wrong") as run:
        assert "- /user/style small commits, tests first" in run.start()
    with AgentMemory.open(":memory:") as in_ram:
        assert in_ram.search("commits") == ()
        assert in_ram.snapshot("CI fails").keyed == ""


def test_entities_are_filled_from_the_runs_of_a_repository(memory: AgentMemory) -> None:
    patch = """diff --git a/lib/{file}.py b/lib/{file}.py
--- a/lib/{file}.py
+++ b/lib/{file}.py
@@ -2,2 +2,2 @@ def total_{file}(items):
     rate = 1
-    return 0
+    return sum(items)
"""
    both = patch.format(file="cart") + patch.format(file="tariffs")
    runs = [recovering_run(number, patch=both, outcome=Outcome.SOLVED) for number in (1, 2, 3)]
    memory.learn(runs[0])
    memory.consolidate()
    assert not memory.entities.find_by_keywords("lib/tariffs.py")
    memory.learn(runs[1])
    memory.consolidate()
    assert memory.entities.get_entity("lib/tariffs.py", SHOP).description == "file of 2 runs"
    assert [*memory.store.notes.texts_to_embed(99)] == ["page:pay"]
    learned = memory.learn(runs[2])
    memory.entities.add_relation("lib/tariffs.py", "PriceRule", "implements", repo=SHOP)
    memory.forget([learned.trajectory_id])
    memory.consolidate()
    assert memory.entities.get_entity("lib/cart.py", SHOP).description == "file of 2 runs"
    related = memory.entities.get_related("PriceRule", 1, "implements")
    assert [one.entity.name for one in related] == ["lib/tariffs.py"]
    memory.entities.remove_entity("lib/cart.py", SHOP)
    memory.entities.add_entity(Entity("lib/cart.py", "module", "the cart", repo=SHOP))
    assert memory.entities.fill(SHOP) == memory.entities.fill(SHOP) > 0
    cart = memory.entities.get_entity("lib/cart.py", SHOP)
    assert (cart.entity_type, cart.description, cart.repo) == ("module", "the cart", SHOP)
    related = memory.entities.get_related("lib/cart.py", 1, repo=SHOP)
    kinds = {one.entity.name: one.entity.entity_type for one in related}
    assert kinds["lib/tariffs.py"] == "file"
    assert "symbol" in kinds.values()
    found = by_id(memory.search("what breaks if lib/cart.py changes?", SHOP, strategy="graph"))
    assert found[f"entity:{SHOP}:lib/tariffs.py"].why["graph"] > 0
    assert memory.entities.fill("other/repo") == 0
    with pytest.raises(NotFoundError):
        memory.entities.get_entity("lib/cart.py", "other/repo")


def discussed(instance: str, at: datetime, said: str, reply: str) -> RawTrajectory:
    ran = Action("bash", "make")
    steps = (
        Step(0, "I have read the code of the importer.", ran, "ok"),
        Step(1, "", ran, "ok", user_message=said, timestamp=at),
        Step(2, reply, ran, "ok", timestamp=at),
    )
    return RawTrajectory("claude-code", instance, SHOP, "Look here", steps, started_at=at)


def test_what_was_decided_stands_before_words_about_it(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    rule = "We never round tariffs in the importer of the shop, not even for a preview."
    memory.learn(discussed("rule", now - timedelta(days=9), rule, "Yes."))
    memory.learn(discussed("talk", now, "What about tariffs?", "The tariffs."))
    found = [memory.search(f"{asks} tariffs")[0] for asks in ("", "what did we decide about")]
    assert [one.session for one in found] == ["talk", "rule"]
    assert (found[1].kind, rule in found[1].text) == ("lesson", True)


def test_a_past_session_is_found_by_what_an_agent_replied_which_decides_nothing(
    memory: AgentMemory,
) -> None:
    now = datetime.now(UTC)
    reply = "The totals drift because the rounding of tariffs happens before the discount."
    learned = memory.learn(discussed("talk", now - timedelta(days=100), "Why do they?", reply))
    memory.learn(discussed("other", now, "And now?", "The mailer sends each letter twice."))
    found = memory.search("why do totals drift after a discount", repo=SHOP)
    first = found[0]
    assert (first.kind, first.session) == ("reply", "talk")
    assert first.text == f"agent {now - timedelta(days=100):%Y-%m-%d}: {reply}"
    assert first.probability >= 0.5
    assert first.command == f"contextgraph inspect {learned.trajectory_id} --step 2"
    assert not any(reply in one.text for one in memory.lessons.of(SHOP))
    (said, *_) = memory.recall("why do totals drift after a discount", repo=SHOP)
    assert (said.note.content, said.note.kind, said.note.source) == (reply, "said", "agent")
    assert (said.score, said.probability) == (first.score, first.probability)
    memory.forget([learned.trajectory_id])
    assert not any("drift" in one.note.content for one in memory.recall("totals drift"))
    assert not any("drift" in one.text for one in memory.search("totals drift", repo=SHOP))


def test_a_word_that_sessions_often_have_says_little_of_a_note(memory: AgentMemory) -> None:
    replies = (f"The old button {number} looks as other buttons do." for number in range(30))
    steps = [Step(at, said, Action("bash", "make"), "ok") for at, said in enumerate(replies)]
    talk = discussed("talk", datetime.now(UTC), "And now?", "")
    memory.learn(replace(talk, steps=(*talk.steps, *steps)))
    memory.notes.remember("old buttons are grey", repo=SHOP)
    memory.notes.remember("tariffs are slow", repo=SHOP)
    first, *_ = memory.notes.recall("old buttons or tariffs", repo=SHOP, strategy="notes")
    assert first.note.content == "tariffs are slow"


def test_what_shares_one_word_of_two_with_a_question_hardly_answers_it(
    memory: AgentMemory,
) -> None:
    replies = (f"The old button {number} looks as other buttons do." for number in range(400))
    steps = [Step(at, said, Action("bash", "make"), "ok") for at, said in enumerate(replies)]
    talk = discussed("talk", datetime.now(UTC), "And now?", "")
    memory.learn(replace(talk, steps=(*talk.steps, *steps)))
    memory.learn(discussed("grey", datetime.now(UTC), "And now?", "The mailer is grey, as ever."))
    answered, *_ = memory.search("why is the mailer grey", SHOP)
    unanswered, *_ = memory.search("why is the sky grey", SHOP)
    assert answered.text == unanswered.text
    assert answered.probability >= LIKELY > unanswered.probability


def test_an_entity_gains_nothing_from_a_note_of_its_day(memory: AgentMemory) -> None:
    memory.notes.remember("the Mailer sends each letter twice", repo=SHOP)
    found = {one.note.id: one for one in memory.notes.recall("why does the Mailer send twice?")}
    entity = found.pop("entity:mailer")
    (note,) = found.values()
    assert entity.why["day"] < note.why["day"]


def test_a_time_in_a_question_bounds_what_is_found(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    reply = "The ledger rounds each of the lines and not the sum of them."
    memory.learn(discussed("early", now - timedelta(days=200), "And the ledger?", reply))
    memory.learn(discussed("late", now - timedelta(days=2), "And the ledger?", reply))

    def times(question: str) -> set[int]:
        return {(now - one.time).days for one in memory.search(question, repo=SHOP) if one.repo}

    assert times("how does the ledger round") >= {200, 2}
    assert times("how does the ledger round, last week") == {2}
    assert times("what happened last week") == {2}
    assert times(f"what was discussed on {now - timedelta(days=200):%Y-%m-%d}") == {200}
    assert times("what happened on 2001-01-01") == set()
    found = memory.search("how does the ledger round, in 2001", repo=SHOP)
    assert {one.probability for one in found} == {0.0}
    assert times("the ledger of 2001, in 2001") >= {200, 2}  # the time is what it is about
    day, question = now - timedelta(days=100), "how does the ledger round"
    assert {one.time for one in memory.search(question, SHOP, since=now)} == set()
    assert {one.time > day for one in memory.search(question, SHOP, since=day)} == {True}
    assert {one.time > day for one in memory.search(question, SHOP, until=day)} == {False}
    assert not any(
        one.probability for one in memory.search(f"{question}, last week", SHOP, until=day)
    )


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("last month", {"late", "early"}),
        ("上个月", {"late", "early"}),
        ("previous month", {"late", "early"}),
        ("this month", {"now"}),
        ("past month", {"late", "now"}),
        ("last 1 month", {"late", "now"}),
        ("last year", {"year"}),
        ("去年", {"year"}),
        ("this year", {"before", "early", "late", "now"}),
    ],
)
def test_the_last_month_and_year_are_those_of_the_calendar(asked: str, found: set[str]) -> None:
    days = {
        "year": datetime(2025, 12, 31, 23, tzinfo=UTC),
        "before": datetime(2026, 9, 30, 23, tzinfo=UTC),
        "early": datetime(2026, 10, 1, tzinfo=UTC),
        "late": datetime(2026, 10, 31, 23, tzinfo=UTC),
        "now": datetime(2026, 11, 1, tzinfo=UTC),
    }
    now = datetime(2026, 11, 29, 12, tzinfo=UTC)
    with AgentMemory.of(build(Settings(":memory:"), clock=lambda: now)) as memory:
        for name, time in days.items():
            talk = discussed(name, time, f"And the ledger {name}?", f"It is {name}.")
            memory.learn(replace(talk, task=f"Round the {name} ledger"))
        hits = memory.search(f"what happened {asked}", repo=SHOP)
        assert {one.session for one in hits} == found


def test_a_question_in_chinese_asks_as_one_in_english_does(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    reply = "账本对每一行取整，而不是对总和取整。"
    memory.learn(discussed("early", now - timedelta(days=200), "账本呢？", reply))
    memory.learn(discussed("late", now - timedelta(days=2), "账本呢？", reply))

    def times(question: str) -> set[int]:
        return {(now - one.time).days for one in memory.search(question, repo=SHOP) if one.repo}

    assert times("账本怎么取整") >= {200, 2}
    assert times("上周账本怎么取整") == {2}
    assert times("上周发生了什么") == times("最近三天做了什么") == {2}
    then = now - timedelta(days=200)
    assert times(f"{then.year}年{then.month}月{then.day}日讨论了什么") == {200}
    assert times("2001年1月1日发生了什么") == set()
    assert 2 in times("最近发生了什么")
    remember = memory.notes.remember
    cause = remember("因为服务器只有一个进程，单文件数据库就够了。", repo=SHOP)
    chosen = remember("我们选择 SQLite 存储订单。", repo=SHOP)
    memory.notes.link(chosen.id, cause.id, LinkType.CAUSED_BY)
    remember("SQLite 的版本是 3.40。", repo=SHOP)
    recalled = memory.notes.recall("为什么选择 SQLite", repo=SHOP, strategy="hybrid")
    assert [one.note.id for one in recalled][:2] == [chosen.id, cause.id]


def test_a_later_session_that_changes_an_earlier_one_comes_first(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    rule = "When two contacts collide keep the contact with the newest timestamp."
    later = "Amendment to the rule: of two contacts always keep the contact with most fields."
    memory.learn(discussed("rule", now - timedelta(days=60), rule, "I will merge contacts so."))
    memory.learn(discussed("other", now, "Which color has the button?", "The button is green."))
    memory.learn(discussed("later", now - timedelta(days=9), later, "I merge contacts by fields."))
    found = memory.search("which contact is kept when two contacts collide", repo=SHOP)
    assert [*dict.fromkeys(one.session for one in found if one.run)][:2] == ["later", "rule"]


def test_a_later_session_on_the_same_code_does_not_displace_the_answer(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    rule = (
        "The validation of flags refuses both cloud flags together, and a table of cases tests"
        " that."
    )
    review = (
        "The validation of the cloud flags has a long table of cases, and the print flag gets two"
        " of them."
    )
    memory.learn(discussed("rule", now - timedelta(days=60), rule, "Both are checked."))
    memory.learn(discussed("review", now - timedelta(days=9), review, "I extend it."))
    found = memory.search("which cloud flags does the validation refuse together", repo=SHOP)
    assert [*dict.fromkeys(one.session for one in found if one.run)] == ["rule", "review"]


def test_what_a_person_said_stands_before_the_agent_s_words_that_retell_it(
    memory: AgentMemory,
) -> None:
    said = "The mailer must not send on Sundays, that much I have promised to the customer."
    retold = "The mailer does not send on Sundays now, as you have asked."
    memory.learn(discussed("talk", datetime.now(UTC), said, retold))
    found = memory.search("on which days does the mailer not send, Sundays?", repo=SHOP)
    assert [one.speaker for one in found if one.session == "talk"] == ["user", "agent"]
    assert found[0].probability < found[1].probability


def test_many_texts_that_are_a_little_near_do_not_outweigh_the_nearest() -> None:
    near = {"answer": [Rated(0.0, 0.5)], "long": [Rated(0.0, 0.45)] * 5}
    words = {"answer": [Rated(0.5)], "long": [Rated(0.45)] * 5}
    assert [*fused(near)] == ["answer", "long"]
    assert [*fused(words)] == ["long", "answer"]


def test_what_has_no_vector_does_not_stand_before_what_is_near() -> None:
    alone, near = {"remedy": [Rated(1.0)]}, {"session": [Rated(0.8, 0.9)]}
    assert [*fused(alone | near)] == ["session", "remedy"]
    assert fused(alone) == {"remedy": 1.0}


def test_a_note_stands_before_the_sessions_that_often_say_its_words(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    for number in range(6):
        said, reply = (f"Now {verb} the mailer tests {number}." for verb in ("run", "I run"))
        memory.learn(discussed(f"talk-{number}", now, said, reply))
    note = memory.remember("Run the mailer tests by `make post` in the folder of the shop")
    first, *_ = memory.search("how do I run the mailer tests")
    assert first.id == note.id


def test_a_question_without_a_word_to_search_for_asks_for_nothing_new(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    memory.learn(discussed("talk", now, "The mailer sends on Mondays.", "It does."))
    memory.remember("the importer locks its queue", repo=SHOP)
    assert not memory.search("who are we")
    assert not memory.recall("who are we")
    for question in ("what is new", "what did we do last week", "what did we do today"):
        assert "talk" in {one.session for one in memory.search(question, SHOP)}


def test_hits_of_one_session_stand_together_and_leave_room_for_others(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    for number in range(6):
        said = f"The ledger of shop {number} is locked while the importer writes."
        run = discussed(f"talk-{number}", now, said, f"The importer holds ledger {number}.")
        memory.learn(run)
    found = memory.search("why is the ledger locked by the importer", repo=SHOP, limit=5)
    sessions = [one.session for one in found]
    assert len(found) == 5
    assert len({*sessions}) == 4
    assert sessions[0] == sessions[1]
    assert all(one.score >= other.score for one, other in pairwise(found[2:]))


def test_a_question_about_tests_brings_the_command_that_tasks_agree_on(memory: AgentMemory) -> None:
    def run(task: str, *lines: str) -> RawTrajectory:
        steps = tuple(
            Step(at, "", Action("bash", line), "1 passed") for at, line in enumerate(lines)
        )
        return RawTrajectory("generic", task, SHOP, f"Mend {task}", steps)

    memory.learn(run("cart", "pytest -q tests/test_cart.py", "flake8 lib"))
    memory.learn(run("ledger", "pytest -q tests/test_ledger.py", "flake8 lib"))
    memory.learn(run("mail", "tox -e mail"))

    def commands(question: str, repo: str | None = SHOP, file: str = "") -> list[str]:
        found = memory.search(question, repo, file=file)
        return [one.text for one in found if one.kind == "command"]

    assert commands("how are tests run here") == ["tests run with `pytest <tests>` (2 of 2)"]
    assert commands("do we use flake8") == ["command that works: `flake8 lib` (2 of 2)"]
    assert commands("what happened recently") == commands("how are the mails sorted") == []
    memory.learn(
        discussed("talk", datetime.now(UTC), "How are tests run here?", "As in the README.")
    )
    assert commands("how are tests run here") == ["tests run with `pytest <tests>` (2 of 2)"]
    assert commands("do we use flake8", None) == commands("do we use flake8", file="cart.py") == []


def test_an_agent_or_a_file_limits_what_is_found(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    reply = "The ledger rounds each of the lines."
    memory.learn(discussed("talk", now, "And the ledger?", reply))
    edit = Step(0, reply, Action("bash", "sed -i s/a/b/ lib/ledger.py"), "")
    run = RawTrajectory("generic", "edit", SHOP, "Mend the ledger", (edit,), agent="codex-cli")
    memory.learn(run)

    def sessions(agent: str = "", file: str = "") -> set[str]:
        found = memory.search("how does the ledger round", agent=agent, file=file)
        return {one.session for one in found if one.run}

    assert sessions() == {"talk", "edit"}
    assert sessions(agent="codex-cli") == sessions(file="ledger.py") == {"edit"}
    assert sessions(file="edger.py") == set()


def test_passages_are_compared_by_meaning_once_they_have_vectors(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    with AgentMemory.open(str(tmp_path / "memory.db"), embedder="local") as memory:
        reply = "Each automobile is repainted before it is sold."
        memory.learn(discussed("cars", now, "What happens in the workshop?", reply))
        memory.learn(discussed("mail", now, "And letters?", "Letters are posted on Monday."))
        question = "do vehicles get a new coat of paint"
        assert memory.search(question) == ()
        assert "wait for a vector" in health(memory)
        assert memory.embed() == memory.store.passages.counts().passages
        assert memory.embed() == 0
        assert memory.search(question)[0].session == "cars"
        assert memory.search(question)[0].why["meaning"] > 0
        assert "wait for a vector" not in health(memory)


def test_the_local_model_reads_the_beginning_of_a_passage(tmp_path: Path) -> None:
    beginning = "Each automobile is repainted before it is sold. " * 5
    with AgentMemory.open(str(tmp_path / "memory.db"), embedder="local") as memory:
        for name, end in (("ships", "Ships sail."), ("bread", "Bread is baked at dawn.")):
            memory.learn(discussed(name, datetime.now(UTC), "And then?", beginning + end))
        memory.embed()
        question = memory.embedder.embed(["bread is baked"]).vectors[0]
        assert question
        near = memory.store.passages.nearest(question, PassageScope(), 10)
        said = memory.store.passages.get([*near]).values()
        cosines = [near[one.id] for one in said if one.text.startswith(beginning)]
        assert len(cosines) == 2
        assert cosines[0] == cosines[1]


def health(memory: AgentMemory) -> str:
    return next(check.detail for check in memory.health() if check.name == "said")


@pytest.mark.parametrize(
    ("setting", "value", "kept"),
    [
        ("SAID_RETENTION", "30", {"new"}),
        ("MAX_SAID", "0.00013", {"new"}),
        ("CONVERSATIONS", "off", set()),
        ("MAX_SAID", "0", {"new", "old"}),
    ],
)
def test_what_was_said_is_kept_within_limits_or_not_at_all(
    setting: str, value: str, kept: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"CONTEXTGRAPH_{setting}", value)
    now = datetime.now(UTC)
    with AgentMemory.open(":memory:") as memory:
        for word, age in (("old", 99), ("new", 1)):
            said = f"The {word} importer locks its queue while it writes rows of a ledger."
            memory.learn(discussed(word, now - timedelta(days=age), said, ""))
        memory.consolidate()
        found = memory.search("who locks the queue of the ledger")
        assert {one.session for one in found if one.run} == kept


def test_what_is_spread_over_two_passages_of_a_turn_is_found(memory: AgentMemory) -> None:
    now = datetime.now(UTC)
    aside = "It is as it was, and so are they. " * 14
    parts = ("The shop", "The courier and the parcel", "The label and torn ones", "The rest")
    spread = "\n\n".join(f"{part} in general. {aside}" for part in parts)
    memory.learn(discussed("spread", now - timedelta(days=7), "How?", spread))
    # More sessions than are shown have two of the words together.
    for number in range(24):
        said = f"Courier {number} has a parcel." if number % 2 else f"Label {number} is torn."
        memory.learn(discussed(f"half-{number}", now - timedelta(days=8), "How?", said))
    found = memory.search("what does a courier do with a parcel whose label is torn", repo=SHOP)
    assert found[0].session == "spread"


def test_the_session_about_a_task_is_named_with_what_was_said_and_changed(
    memory: AgentMemory,
) -> None:
    now = datetime.now(UTC) - timedelta(days=3)
    task = "The importer locks the ledger while it writes rows of the bank."
    cause = "The importer locks the ledger because all rows of the bank are one transaction."
    edit = Step(3, cause, Action("bash", "sed -i s/a/b/ lib/importer.py"), "", timestamp=now)
    talk = discussed("locked", now, task, "I look for it.")
    run = replace(talk, steps=(*talk.steps, edit))
    memory.learn(run)
    memory.learn(discussed("colour", now, "Which colour has the button of the shop?", "Green."))
    asked = "The importer locks the ledger while it writes rows of a bank"

    def cases(task: str, **given: Any) -> Sequence[SimilarCase]:
        return memory.query(State(task_description=task, repo=SHOP), **given).similar_cases

    answer = memory.query(State(task_description=asked, repo=SHOP))
    (case,) = (one for one in answer.similar_cases if one.is_shown)
    assert (case.instance_id, case.files) == ("locked", ("lib/importer.py",))
    assert cause in case.cause
    assert cause in render(answer)
    assert not cases("lock the ledger")  # too few words
    assert not cases(asked, exclude_instances=["locked"])
    assert not cases(asked, as_of=now - timedelta(days=1))
    # A person who asks in a session has chosen the place: 13 of 13 such cases helped nobody.
    assert not memory.decided(asked, repo=SHOP).similar_cases


def test_a_start_reads_what_was_said_only_where_a_session_of_people_may_answer(
    memory: AgentMemory, results_of: Callable[[type, str], list[Sized]]
) -> None:
    now = datetime.now(UTC) - timedelta(days=3)
    task = "The importer locks the ledger while it writes rows of the bank."
    memory.learn(discussed("locked", now, task, "I look for it."))
    read = results_of(PassageStore, "get")
    other = "The courier locks parcels that have no label or address"
    memory.query(State(task_description=other, repo=SHOP))
    assert not read
    memory.query(State(task_description=task, repo=SHOP))
    assert [*map(len, read)] > [0]


def test_words_that_a_turn_repeats_count_once_where_a_session_may_answer(
    memory: AgentMemory, results_of: Callable[[type, str], list[Sized]]
) -> None:
    asides = (f"Part {number} is as it was, and so are they. " * 14 for number in range(8))
    repeated = "\n\n".join(f"The importer locks a ledger. {aside}" for aside in asides)
    now = datetime.now(UTC)
    memory.learn(discussed("talk", now, "How is it?", repeated))
    for number in range(40):  # where the words are rare
        other = discussed(f"other-{number}", now, "And now?", f"Courier {number} has a parcel.")
        memory.learn(replace(other, repo="acme/other"))
    searched = results_of(PassageStore, "for_text")
    task = "The importer locks the ledger while it writes rows of the bank."
    memory.query(State(task_description=task, repo=SHOP))
    assert len(searched) == 1  # to know whether it may answer


def test_a_start_searches_no_session_where_nobody_spoke(
    memory: AgentMemory, results_of: Callable[[type, str], list[Sized]]
) -> None:
    task = "The importer locks the ledger while it writes rows of the bank."
    talked = discussed("locked", datetime.now(UTC), task, "I look for it.")
    alone = replace(talked, steps=tuple(replace(one, user_message=None) for one in talked.steps))
    memory.learn(replace(alone, instance_id="alone"))
    memory.learn(replace(talked, instance_id="elsewhere", repo="acme/other"))
    searched = results_of(PassageStore, "for_text")
    memory.query(State(task_description=task, repo=SHOP))
    assert not searched
    memory.learn(talked)
    memory.query(State(task_description=task, repo=SHOP))
    assert searched


def test_words_of_a_question_never_make_an_answer_less_probable() -> None:
    weights = fitted("sessions").weights
    assert min(weights["words"], weights["found"]) > 0 > weights["unknown"]


def test_what_a_clone_says_comes_after_the_sessions_of_the_owner(memory: AgentMemory) -> None:
    said = "The tariff of the kettle is seven cents"
    steps = tuple(
        Step(0, "Noted.", Action("", ""), None, user_message=f"{said}{more}")
        for more in (", as the report of finance says at length", ": kettle tariff seven cents")
    )
    own = RawTrajectory("generic", "own", SHOP, "How much is it", steps[:1], session="own")
    foreign = replace(
        own, instance_id="foreign", repo="evil/kettle", steps=steps[1:], session="foreign"
    )
    memory.learn(own)
    memory.learn(replace(foreign, origin="clone:github.com/evil/kettle"))
    question = "kettle tariff seven cents"
    everywhere = memory.search(question)
    assert [one.contributor for one in everywhere[:1]] == [""]
    assert "clone:github.com/evil/kettle" in {one.contributor for one in everywhere}
    (first, *_) = memory.search(question, repo="evil/kettle")
    assert first.contributor == "clone:github.com/evil/kettle"


def test_a_short_session_that_says_it_is_not_displaced_by_a_long_one(memory: AgentMemory) -> None:
    then = datetime.now(UTC) - timedelta(days=9)
    said = "Vouchers are never combined with a rebate."
    memory.learn(discussed("short", then, "And both at once?", said))
    replies = [f"Review of part {number}: " + f"detail{number} " * 55 for number in range(30)]
    replies[::9] = [f"{one} Vouchers and a rebate combined." for one in replies[::9]]
    steps = tuple(Step(at, text, Action("bash", "ls"), "a.py") for at, text in enumerate(replies))
    memory.learn(RawTrajectory("claude-code", "long", SHOP, "Review", steps, started_at=then))
    found = memory.search("are vouchers combined with a rebate", repo=SHOP)
    assert next(one.session for one in found if one.run) == "short"

"""The worked examples of forgetting, credibility, conflicts and eviction."""

from datetime import UTC, datetime, timedelta
from math import log

import pytest
from hypothesis import strategies as st

from benchmarks.conflicts import CONFLICTS, conflict_judgement, labelled_pairs
from contextgraph.knowledge.conflict import Relation, Statement, verdict
from contextgraph.knowledge.forgetting import (
    Capacity,
    Evictable,
    Hybrid,
    RecallStats,
    RecallValue,
    Ttl,
    age_weight,
    belongs_long_term,
    credibility,
    is_forgotten,
    rarity,
    strength,
)

COUNT = st.integers(0, 1000)
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def strength_after(age_days: float = 10, *, is_long_term: bool = False, recalls: int = 4) -> float:
    return strength(
        importance=0.8,
        credibility=0.9,
        recalls=recalls,
        decay_rate=0.05,
        age_days=age_days,
        is_long_term=is_long_term,
    )


def test_strength_agrees_with_the_worked_example():
    assert strength_after() == pytest.approx(0.8506, abs=1e-4)
    assert belongs_long_term(strength_after(), is_long_term=False)
    assert strength_after(recalls=-3) == strength_after(recalls=0)


@pytest.mark.parametrize(
    ("is_long_term", "shares"),
    [(True, (0.7889, 0.4678, 0.2664)), (False, (0.5966, 0.0517, 0.0011))],
)
def test_what_is_left_after_7_30_and_60_days_follows_the_formula(is_long_term, shares):
    whole = strength_after(0, is_long_term=is_long_term)
    left = [strength_after(days, is_long_term=is_long_term) / whole for days in (7, 30, 60)]
    assert left == pytest.approx(shares, abs=1e-4)


@pytest.mark.parametrize(
    ("value", "before", "then"),
    [(0.7, False, True), (0.3, True, False), (0.5, True, True), (0.5, False, False)],
)
def test_a_layer_changes_at_the_thresholds_only(value, before, then):
    assert belongs_long_term(value, is_long_term=before) is then


def test_only_what_is_weak_and_old_is_forgotten():
    assert is_forgotten(0.09, timedelta(days=61))
    assert not is_forgotten(0.09, timedelta(days=60))
    assert not is_forgotten(0.1, timedelta(days=61))


def test_a_week_halves_what_has_a_half_life_of_a_week():
    week = timedelta(hours=168)
    assert age_weight(week, week) == 0.5
    assert age_weight(timedelta(hours=24), week) == pytest.approx(0.9057, abs=1e-4)
    assert age_weight(-week, week) == 1


@pytest.mark.parametrize(
    ("source", "days", "corroborated", "contradicted", "expected"),
    [
        (0.8, 15, 2, 1, 0.545),
        (0.8, 15, 2, 4, 0.425),
        (0.9, 2, 2, 0, 0.6567),
        (0.7, 120, 0, 0, 0.35),
        (0.8, 1, 0, 4, 0.3883),
        (1.0, 0, 9, 0, 0.8),
        (0.0, 200, 0, 5, 0.0),
    ],
)
def test_credibility_agrees_with_the_worked_examples(
    source, days, corroborated, contradicted, expected
):
    score = credibility(source, corroborated, contradicted, days)
    assert score == pytest.approx(expected, abs=1e-4)


def relation(new: str, old: str, **of_new) -> Relation:
    earlier = Statement(old, "agent", NOW - timedelta(days=3))
    later = Statement(new, **{"source": "user", "stated_at": NOW, **of_new})
    return verdict(later, earlier).relation


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("CI uses Python 3.12", "CI uses Python 3.11"),
        ("retries are not handled by the client", "retries are handled by the client"),
        ("The client doesn't handle retries", "The client handles retries"),
        ("The port is 8080", "The port is 9090"),
        ("tests run with tox", "tests run with pytest"),
        ("The cache of the shop is Redis", "The cache of the shop is Memcached"),
        ("用户不喜欢中文", "用户喜欢中文"),
    ],
)
def test_another_value_or_a_negation_contradicts(new, old):
    assert relation(new, old) is Relation.CONTRADICTS


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("User likes pizza", "User likes pasta"),
        ("Alice uses vim", "Bob uses vim"),
        ("another thing to note", "nothing to note"),
        ("Redis is used for sessions", "Redis is used for caching of pages"),
        ("The service uses Redis for sessions", "The service uses Redis for caching"),
        ("the API is slow", "the API is versioned"),
        ("the weather was fine yesterday", "CI uses Python 3.11"),
        ("", "CI uses Python 3.11"),
    ],
)
def test_similar_statements_about_other_things_do_not_conflict(new, old):
    assert relation(new, old) is Relation.UNRELATED


def test_conflicts_in_the_held_back_pairs_are_found_with_few_false_alarms():
    held = [pair for pair in labelled_pairs() if pair.half == "held"]
    flagged = [pair for pair in held if conflict_judgement(pair) in CONFLICTS]
    right = sum(pair.is_conflict for pair in flagged)
    assert right >= 0.9 * len(flagged)
    assert right >= 0.6 * sum(pair.is_conflict for pair in held)


def test_the_same_statement_is_not_a_contradiction():
    assert relation("CI now uses  python 3.11", "CI uses Python 3.11") is Relation.SAME


def test_the_newer_of_one_source_or_a_more_credible_one_supersedes():
    pair = ("CI uses Python 3.12", "CI uses Python 3.11")
    assert relation(*pair, source="agent") is Relation.SUPERSEDES
    assert relation(*pair, credibility=0.9) is Relation.SUPERSEDES
    earlier = NOW - timedelta(days=9)
    assert relation(*pair, source="agent", stated_at=earlier) is Relation.CONTRADICTS


def item(id_: str, days: float, words: int = 0, recalls: RecallStats | None = None) -> Evictable:
    return Evictable(id_, NOW - timedelta(days=days), words, recalls or RecallStats())


ITEMS = [
    item("old, often recalled", 30, recalls=RecallStats(9, 8.1, NOW)),
    item("old", 20),
    item("new", 0),
    item("old, says much", 25, words=40),
]


def test_a_limit_keeps_the_newest():
    assert Capacity(1).chosen(ITEMS, NOW) == ["old, often recalled", "old, says much", "old"]


def test_what_is_older_than_its_time_expires():
    chosen = Ttl(timedelta(days=21)).chosen(ITEMS, NOW)
    assert chosen == ["old, often recalled", "old, says much"]


def test_the_value_of_recalls_agrees_with_its_formula():
    bare = RecallValue(1)
    stats = RecallStats(count=4, total_score=3.0, last=NOW - timedelta(days=1))
    expected = log(5) * 0.3 + 0.75 * 0.5 + 0.5 * 0.2
    assert bare.worth(item("a", 10, recalls=stats), NOW, 1) == pytest.approx(expected)


def test_what_is_recalled_or_says_much_stays_and_a_new_item_is_not_the_first_to_go():
    valued = RecallValue(1, information=2.0)
    assert valued.chosen(ITEMS, NOW) == ["old", "new", "old, often recalled"]


def test_unread_dumps_go_before_what_was_recalled_200_times():
    used = item("used", 30, words=3, recalls=RecallStats(200, 100.0, NOW - timedelta(days=9)))
    dumps = [item(f"dump {number}", 1, words=5_000) for number in range(5)]
    assert "used" not in RecallValue(1, information=2.0).chosen([used, *dumps], NOW)


def test_a_word_that_all_texts_have_says_nothing():
    assert rarity({"a": {"the", "ledger"}, "b": {"the"}}) == {"a": pytest.approx(log(2)), "b": 0.0}


def test_expired_items_make_room_before_the_limit_applies():
    policy = Hybrid(timedelta(days=28), Capacity(2))
    assert policy.chosen(ITEMS, NOW) == ["old, often recalled", "old, says much"]
    assert Hybrid().chosen(ITEMS, NOW) == []


UPDATES = [
    ("Package manager is npm", "Use pnpm instead of npm here"),
    ("CI runs on Jenkins", "CI was migrated from Jenkins to GitHub Actions"),
    ("Black formats the code", "ruff format replaced black"),
    ("Use Redis for the session cache", "Sessions are kept in Postgres now, Redis is gone"),
    ("We deploy on Fridays", "Deploys moved to Monday mornings"),
    ("Reviews need two approvals", "One approval is enough for a review now"),
]
OTHERS = [
    ("Package manager is npm", "npm audit runs every night"),
    ("CI runs on Jenkins", "Jenkins backups are no longer encrypted"),
    ("Use tabs in Makefiles", "Use spaces instead of tabs in Python files"),
    ("Reviews need two approvals", "Reviews are now shown on the dashboard"),
]

NEAR_MISSES = [
    ("Unit tests run with pytest.", "Browser tests run with Playwright."),
    ("The backend is written in Go.", "Scripts for the release are in Python."),
    ("Format Python files with black.", "TypeScript is formatted by prettier."),
    ("The cache keeps entries for an hour.", "The cache has room for 10,000 entries."),
    ("Endpoints return JSON.", "The export endpoint can return CSV, too."),
    ("The order queue is SQS.", "Until 2021 orders used to travel over RabbitMQ."),
    ("The frontend uses yarn for installs", "The frontend must never use npm for installs"),
    ("Migrations run before deploys", "Migrations must not run after deploys"),
]


@pytest.mark.parametrize(("old", "new"), NEAR_MISSES)
def test_another_value_of_something_else_does_not_conflict(old: str, new: str) -> None:
    before = Statement(old, "user", NOW - timedelta(days=9))
    assert verdict(Statement(new, "user", NOW), before).relation is Relation.UNRELATED


@pytest.mark.parametrize(
    ("old", "new", "is_update"),
    [*((*pair, True) for pair in UPDATES), *((*pair, False) for pair in OTHERS)],
)
def test_an_update_in_other_words_supersedes(old: str, new: str, is_update: bool) -> None:
    before = Statement(old, "user", NOW - timedelta(days=9))
    relation = verdict(Statement(new, "user", NOW), before).relation
    assert (relation is Relation.SUPERSEDES) is is_update

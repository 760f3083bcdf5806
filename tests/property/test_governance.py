"""Intervals of shares and of lifts, forgetting, credibility and eviction, for any values."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from contextgraph.advising.gate import difference, least_lift, wilson
from contextgraph.knowledge.forgetting import (
    Capacity,
    Evictable,
    Hybrid,
    RecallStats,
    RecallValue,
    Ttl,
    belongs_long_term,
    credibility,
    strength,
)

COUNTS = st.integers(0, 10_000).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))


@given(COUNTS)
def test_an_interval_holds_the_share_that_was_seen(counts):
    successes, trials = counts
    low, high = wilson(successes, trials)
    assert 0 <= low <= high <= 1
    if trials:
        assert low - 1e-9 <= successes / trials <= high + 1e-9


@given(COUNTS)
def test_more_of_the_same_narrows_an_interval(counts):
    successes, trials = counts
    low, high = wilson(successes, trials)
    narrower_low, narrower_high = wilson(successes * 4, trials * 4)
    assert narrower_high - narrower_low <= high - low + 1e-9


@given(COUNTS)
def test_a_share_and_its_complement_mirror_each_other(counts):
    successes, trials = counts
    low, high = wilson(successes, trials)
    other_low, other_high = wilson(trials - successes, trials)
    assert low == pytest.approx(1 - other_high)
    assert high == pytest.approx(1 - other_low)


@given(COUNTS, COUNTS)
def test_the_interval_of_a_difference_holds_the_observed_one(with_it, without):
    lift, low, high = difference(*with_it, *without)
    assert -1 - 1e-9 <= low <= lift + 1e-9 <= high + 2e-9 <= 1 + 3e-9
    if with_it[1] and without[1]:
        assert lift == pytest.approx(with_it[0] / with_it[1] - without[0] / without[1])


@given(COUNTS, COUNTS)
def test_one_more_success_never_lowers_the_least_lift(with_it, without):
    successes, trials = with_it
    assert (
        least_lift(successes + 1, trials + 1, *without)
        >= least_lift(successes, trials, *without) - 1e-9
    )


@given(COUNTS)
def test_what_does_as_well_as_nothing_is_not_trusted(counts):
    assert least_lift(*counts, *counts) == 0


def test_wilson_agrees_with_a_textbook_case():
    # Newcombe (1998), 81 of 263, at 95 %: 0.2553 to 0.3662.
    low, high = wilson(81, 263, z=1.959964)
    assert low == pytest.approx(0.2553, abs=1e-4)
    assert high == pytest.approx(0.3662, abs=1e-4)


def test_the_lift_agrees_with_a_textbook_case():
    # Newcombe (1998), table II, 56/70 less 48/80, method 10, at 95 %: 0.0524 to 0.3339.
    found = difference(56, 70, 48, 80, z=1.959964)
    assert found == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


SHARES = st.floats(0, 1)
DAYS = st.floats(0, 4000)
NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = st.timedeltas(timedelta(), timedelta(days=365)).map(lambda age: NOW - age)
ITEMS = st.lists(
    st.builds(
        Evictable,
        id=st.uuids().map(str),
        created_at=TIMES,
        words=st.integers(0, 300),
        recalls=st.builds(RecallStats, st.integers(0, 9), SHARES, st.none() | TIMES),
    ),
    max_size=20,
    unique_by=lambda item: item.id,
)
LIMITS = st.builds(Capacity, st.integers(0, 20)) | st.builds(RecallValue, st.integers(0, 20))


@given(SHARES, SHARES, st.integers(0, 99), SHARES, DAYS, DAYS, st.booleans())
def test_strength_falls_with_age_and_rises_with_recalls(
    importance, reliability, recalls, decay_rate, days, more_days, is_long_term
):
    def after(recalls, age_days):
        return strength(
            importance=importance,
            credibility=reliability,
            recalls=recalls,
            decay_rate=decay_rate,
            age_days=age_days,
            is_long_term=is_long_term,
        )

    assert after(recalls, days + more_days) <= after(recalls, days)
    assert after(recalls + 1, days) >= after(recalls, days)


@given(st.floats(0, 3), st.booleans())
def test_a_layer_does_not_flap(value, before):
    once = belongs_long_term(value, is_long_term=before)
    assert belongs_long_term(value, is_long_term=once) is once


@given(SHARES, st.integers(0, 99), st.integers(0, 99), DAYS)
def test_credibility_is_a_share_that_contradictions_lower(source, corroborated, contradicted, days):
    score = credibility(source, corroborated, contradicted, days)
    assert 0 <= score <= 0.8 + 1e-9
    assert credibility(source, corroborated, contradicted + 1, days) <= score
    assert credibility(source, corroborated + 1, contradicted, days) >= score


@given(ITEMS, LIMITS)
def test_a_limit_keeps_exactly_as_many_as_it_allows(items, limit):
    chosen = limit.chosen(items, NOW)
    assert len(chosen) == len(set(chosen)) == max(0, len(items) - limit.max_items)
    assert set(chosen) <= {item.id for item in items}
    assert limit.chosen(items[::-1], NOW) == chosen


@given(ITEMS, LIMITS)
def test_expired_items_go_before_the_limit_is_applied(items, limit):
    ttl = timedelta(days=100)
    expired = Ttl(ttl).chosen(items, NOW)
    chosen = Hybrid(ttl, limit).chosen(items, NOW)
    assert chosen[: len(expired)] == expired
    assert len(items) - len(chosen) == min(limit.max_items, len(items) - len(expired))

"""Reciprocal-rank fusion over any rankings."""

from datetime import timedelta

from hypothesis import given, strategies as st

from contextgraph.retrieval.fuse import WEIGHTS, final_score, fuse, newest_first
from tests.builders import NOON, trajectory

KEYS = st.sampled_from("abcdefgh")
RANKING = st.lists(KEYS, unique=True, max_size=8).map(lambda keys: [(k, 0.5) for k in keys])
RANKINGS = st.dictionaries(st.sampled_from(sorted(WEIGHTS)), RANKING)
SHARE = st.floats(0, 1)


@given(RANKINGS)
def test_every_key_that_was_ranked_is_scored_between_0_and_1(rankings):
    fused = fuse(rankings)
    assert set(fused) == {key for ranking in rankings.values() for key, _ in ranking}
    assert all(0 < score <= 1 + 1e-12 for score, _ in fused.values())


@given(RANKING.filter(bool), st.sampled_from(sorted(WEIGHTS)))
def test_one_channel_alone_keeps_its_order_and_its_first_scores_1(ranking, channel):
    fused = fuse({channel: ranking})
    ordered = sorted(fused, key=lambda key: -fused[key][0])
    assert ordered == [key for key, _ in ranking]
    assert abs(fused[ordered[0]][0] - 1) < 1e-12


@given(RANKINGS)
def test_the_order_of_channels_does_not_matter(rankings):
    backwards = dict(reversed(rankings.items()))
    scores = {key: score for key, (score, _) in fuse(rankings).items()}
    again = {key: score for key, (score, _) in fuse(backwards).items()}
    assert scores.keys() == again.keys()
    assert all(abs(scores[key] - again[key]) < 1e-12 for key in scores)


@given(RANKING.filter(lambda ranking: len(ranking) > 1))
def test_being_found_by_a_second_channel_lifts(ranking):
    last = ranking[-1]
    alone = fuse({"error": ranking})[last[0]][0]
    both = fuse({"error": ranking, "lexical": [last]})[last[0]][0]
    assert both > alone


@given(SHARE, SHARE, st.integers(0, 4000))
def test_the_final_score_grows_with_evidence_and_never_with_age(fused, evidence, days):
    old = NOON - timedelta(days=days)
    assert 0 <= final_score(fused, evidence, old, NOON) <= final_score(fused, 1, old, NOON) <= 1
    assert final_score(fused, evidence, old, NOON) <= final_score(fused, evidence, NOON, NOON)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(0, 5))))
def test_newest_first_names_each_run_once_and_breaks_ties_by_id(found):
    seen = dict(found)
    runs = [trajectory(n, run_at=NOON + timedelta(days=day)) for n, day in seen.items()]
    expected = sorted(runs, key=lambda run: (-run.seen_at.timestamp(), run.id))
    assert newest_first([*runs, *runs]) == tuple(run.id for run in expected)

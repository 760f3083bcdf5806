"""Fusion over any rankings, and over whatever channels say."""

from datetime import timedelta
from itertools import product

from hypothesis import given, strategies as st

from contextgraph.retrieval.fuse import WEIGHTS, blend, final_score, fuse, newest_first, ranks_in
from tests.builders import NOON, trajectory

KEYS = st.sampled_from("abcdefgh")
RANKING = st.lists(KEYS, unique=True, max_size=8).map(lambda keys: [(k, 0.5) for k in keys])
RANKINGS = st.dictionaries(st.sampled_from(sorted(WEIGHTS)), RANKING)
SHARE = st.floats(0, 1)
CHANNELS = ("lexical", "semantic")
PERCENT = st.integers(0, 100).map(lambda percent: percent / 100)
SAID = st.dictionaries(KEYS, st.fixed_dictionaries(dict.fromkeys(CHANNELS, PERCENT)))
EQUALLY = dict.fromkeys(CHANNELS, 1.0)


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


@given(RANKINGS)
def test_each_key_has_its_place_in_every_ranking_that_names_it(rankings):
    ranks = ranks_in(rankings)
    for name, ranking in rankings.items():
        for place, (key, _) in enumerate(ranking, start=1):
            assert [one.rank for one in ranks[key] if one.channel == name] == [place]
    assert sum(map(len, ranks.values())) == sum(map(len, rankings.values()))


@given(SAID)
def test_what_is_blended_lies_between_0_and_1_and_no_lower_than_what_is_said_less_of(said):
    blended = blend(said, EQUALLY)
    assert blended.keys() == said.keys()
    assert all(0 <= score <= 1 + 1e-12 for score in blended.values())
    for one, other in product(said, said):
        if all(said[one][name] >= said[other][name] for name in CHANNELS):
            assert blended[one] >= blended[other]


@given(SAID, st.floats(0.01, 1))
def test_a_channel_that_says_less_of_all_in_proportion_changes_no_blend(said, share):
    faint = {
        key: {"lexical": share * one["lexical"], "semantic": one["semantic"]}
        for key, one in said.items()
    }
    before, after = blend(said, EQUALLY), blend(faint, EQUALLY)
    assert all(abs(before[key] - after[key]) < 1e-9 for key in said)


def test_what_is_best_by_far_in_one_channel_stays_before_what_is_a_little_better_in_two():
    said = {"far": {"a": 0.9, "b": 0.48, "c": 0.48}, "near": {"a": 0.2, "b": 0.5, "c": 0.5}}
    weights = dict.fromkeys("abc", 1.0)
    blended = blend(said, weights)
    assert blended["far"] > blended["near"]
    rankings = {
        name: sorted(((key, one[name]) for key, one in said.items()), key=lambda pair: -pair[1])
        for name in weights
    }
    fused = fuse(rankings, weights)
    assert fused["near"][0] > fused["far"][0]


def test_a_channel_that_says_nothing_of_any_is_left_out_and_one_of_no_weight_is_not_heard():
    said = {"a": {"lexical": 0.2, "semantic": 0.0}, "b": {"lexical": 0.1, "semantic": 0.0}}
    assert blend(said, EQUALLY) == {"a": 1.0, "b": 0.5}
    assert blend(said, {"semantic": 1.0}) == {"a": 1.0, "b": 1.0}


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

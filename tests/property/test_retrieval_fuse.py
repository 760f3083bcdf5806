"""Fusion of rankings and of scores."""

from datetime import timedelta
from itertools import product

import pytest
from hypothesis import given, strategies as st

from contextgraph.advising.channels import WEIGHTS, final_score, ranks_in
from contextgraph.knowledge.ranking import blend, reciprocal_rank_fusion
from tests.builders import NOON

KEYS = st.sampled_from("abcdefgh")
RANKING = st.lists(KEYS, unique=True, max_size=8).map(lambda keys: [(k, 0.5) for k in keys])
RANKINGS = st.dictionaries(st.sampled_from(sorted(WEIGHTS)), RANKING)
SHARE = st.floats(0, 1)
CHANNELS = ("lexical", "semantic")
PERCENT = st.integers(0, 100).map(lambda percent: percent / 100)
SCORES = st.dictionaries(KEYS, st.fixed_dictionaries(dict.fromkeys(CHANNELS, PERCENT)))
EQUALLY = dict.fromkeys(CHANNELS, 1.0)


@given(RANKINGS)
def test_each_key_has_its_rank_in_every_ranking_that_holds_it(rankings):
    ranks = ranks_in(rankings)
    for name, ranking in rankings.items():
        for place, (key, _) in enumerate(ranking, start=1):
            assert [one.rank for one in ranks[key] if one.channel == name] == [place]
    assert sum(map(len, ranks.values())) == sum(map(len, rankings.values()))


@given(SCORES)
def test_blended_scores_lie_between_0_and_1_and_grow_with_the_scores(scores):
    blended = blend(scores, EQUALLY)
    assert blended.keys() == scores.keys()
    assert all(0 <= score <= 1 + 1e-12 for score in blended.values())
    for one, other in product(scores, scores):
        if all(scores[one][name] >= scores[other][name] for name in CHANNELS):
            assert blended[one] >= blended[other]


@given(SCORES, st.floats(0.01, 1))
def test_scaling_all_scores_of_a_channel_changes_no_blend(scores, share):
    scaled = {
        key: {"lexical": share * one["lexical"], "semantic": one["semantic"]}
        for key, one in scores.items()
    }
    before, after = blend(scores, EQUALLY), blend(scaled, EQUALLY)
    assert all(abs(before[key] - after[key]) < 1e-9 for key in scores)


def test_a_much_better_score_in_one_channel_outweighs_slightly_better_ones_in_two():
    scores = {"far": {"a": 0.9, "b": 0.48, "c": 0.48}, "near": {"a": 0.2, "b": 0.5, "c": 0.5}}
    weights = dict.fromkeys("abc", 1.0)
    blended = blend(scores, weights)
    assert blended["far"] > blended["near"]


def test_channels_without_scores_or_without_weight_are_left_out():
    scores = {"a": {"lexical": 0.2, "semantic": 0.0}, "b": {"lexical": 0.1, "semantic": 0.0}}
    assert blend(scores, EQUALLY) == {"a": 1.0, "b": 0.5}
    assert blend(scores, {"semantic": 1.0}) == {"a": 1.0, "b": 1.0}


@given(SHARE, SHARE, st.integers(0, 4000))
def test_the_final_score_grows_with_evidence_and_never_with_age(fused, evidence, days):
    old = NOON - timedelta(days=days)
    assert 0 <= final_score(fused, evidence, old, NOON) <= final_score(fused, 1, old, NOON) <= 1
    assert final_score(fused, evidence, old, NOON) <= final_score(fused, evidence, NOON, NOON)


def test_reciprocal_rank_fusion_agrees_with_the_worked_example():
    fused = reciprocal_rank_fusion({"semantic": "AB", "full_text": "BA", "entity": "B"})
    assert list(fused) == ["B", "A"]
    assert fused == pytest.approx({"A": 0.03252, "B": 0.04892}, abs=1e-5)


@given(st.dictionaries(st.sampled_from(sorted(WEIGHTS)), st.lists(KEYS, unique=True)))
def test_reciprocal_rank_fusion_keeps_an_order_that_all_channels_agree_on(rankings):
    fused = reciprocal_rank_fusion(rankings)
    assert set(fused) == {key for ranking in rankings.values() for key in ranking}
    assert list(fused.values()) == sorted(fused.values(), reverse=True)
    for ranking in rankings.values():
        single = reciprocal_rank_fusion({"only": ranking})
        assert list(single) == ranking

"""Lengths in tokens, and cuts that show."""

import pytest

from contextgraph.text import clip, clip_tokens, count_tokens


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("x" * 27, 10), ("x" * 28, 11), ("日本語", 5)]
)
def test_tokens_are_estimated_from_characters(text, tokens):
    assert count_tokens(text) == tokens


def test_a_half_surrogate_counts_too():
    assert count_tokens("\ud83d") == 2


def test_a_clip_at_the_middle_keeps_head_and_tail():
    clipped = clip("a" * 50 + "b" * 50, 40)
    assert clipped == "a" * 8 + "… [84 characters cut] …" + "b" * 8


def test_a_clip_at_the_end_keeps_the_head():
    assert clip("a" * 50 + "b" * 50, 40, at="end") == "a" * 16 + "… [84 characters cut] …"


def test_a_text_that_fits_stays():
    assert clip("abc", 3) == "abc"
    assert clip_tokens("abc", 2) == "abc"


@pytest.mark.parametrize("limit", [-1, 0])
def test_no_room_gives_nothing(limit):
    assert clip("abc", limit) == ""
    assert clip_tokens("abc", limit) == ""


def test_a_limit_below_the_mark_keeps_the_head():
    assert clip("abcdefghij" * 10, 5) == "abcde"


def test_a_token_limit_is_nearly_used_up():
    assert count_tokens(clip_tokens("word " * 1000, 100)) == 100

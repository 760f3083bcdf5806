"""Properties of any text: idempotence, limits, round trips."""

import json

from hypothesis import example, given, strategies as st

from contextgraph.text import (
    clean,
    clip,
    clip_tokens,
    count_tokens,
    fence,
    mask_secrets,
    strip_fenced,
    words,
)

ANY_TEXT = st.text(st.characters(exclude_categories=()))
NAME = "cg-memory"
IDS = st.from_regex(r"[A-Za-z0-9_.:-]{1,40}", fullmatch=True)

RANDOM = "aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0xR2uL5oI8eA"
# Joined at run time: nothing in this file may look like a secret to a scanner.
FRAGMENTS = st.sampled_from(
    [
        "gh" + "p_" + RANDOM[:36],
        "sk" + "-ant-" + RANDOM,
        "AK" + "IAQ7ZT4XWJ2NMB5RLC",
        "eyJ" + RANDOM + "." + RANDOM + "." + RANDOM,
        "-----BEGIN PRIVATE" + " KEY-----",
        "\n" + RANDOM * 2,
        "-----END PRIVATE" + " KEY-----",
        'password="',
        "SECRET_KEY=",
        "token: ",
        "Authorization: Bearer ",
        "://user:",
        "hunter2hunter2",
        "<secret:token>",
        *'"@<>:-_ \n\\=',
    ]
)
SECRETIVE = st.lists(FRAGMENTS | st.text(max_size=3), max_size=12).map("".join)


@given(SECRETIVE)
def test_masking_is_idempotent(text):
    masked = mask_secrets(text)
    assert mask_secrets(masked) == masked


@given(ANY_TEXT, ANY_TEXT)
def test_a_delimited_token_never_survives_masking(before, after):
    token = "gh" + "p_" + RANDOM[:36]
    assert token not in mask_secrets(f"{before} {token} {after}")


@given(st.text("abcdefgh ().[]{}\n\t=:'\"", max_size=200))
def test_text_of_letters_and_punctuation_is_never_masked(text):
    assert mask_secrets(text) == text


TERMINAL = st.lists(
    st.sampled_from(
        ["\x1b[31m", "\x1b]0;t\x07", "\x1b", "\x9b", "\r", "\n", "\r\n", "[0m", "\ud83d"]
    )
    | ANY_TEXT,
    max_size=10,
).map("".join)


@given(TERMINAL)
def test_cleaning_is_idempotent(text):
    assert clean(clean(text)) == clean(text)


@given(TERMINAL)
def test_clean_text_encodes_and_has_no_control_characters(text):
    cleaned = clean(text)
    cleaned.encode("utf-8")
    assert all(c in "\n\t" or not (ord(c) < 32 or 127 <= ord(c) < 160) for c in cleaned)


@given(ANY_TEXT, st.integers(0, 120), st.sampled_from(["middle", "end"]))
def test_a_clip_is_never_over_the_limit_and_keeps_its_ends(text, limit, at):
    clipped = clip(text, limit, at=at)
    assert len(clipped) <= limit
    if clipped != text and "characters cut] …" in clipped:
        head, _, tail = clipped.partition("… [")
        count, _, tail = tail.partition(" characters cut] …")
        assert text.startswith(head)
        assert text.endswith(tail)
        assert len(head) + int(count) + len(tail) == len(text)


@given(st.text(max_size=300), st.integers(0, 60), st.sampled_from(["middle", "end"]))
def test_clipped_tokens_are_never_over_the_limit(text, limit, at):
    assert count_tokens(clip_tokens(text, limit, at=at)) <= limit


@given(ANY_TEXT, ANY_TEXT)
def test_tokens_of_a_whole_are_no_more_than_of_its_parts(head, tail):
    whole = count_tokens(head + tail)
    assert max(count_tokens(head), count_tokens(tail)) <= whole
    assert whole <= count_tokens(head) + count_tokens(tail)


@given(ANY_TEXT)
def test_words_are_lower_case_short_and_in_the_text(text):
    lowered = text.lower()
    for word in words(text):
        assert word == word.lower()
        assert 1 < len(word) <= 64 or word >= "\u3400"
        assert word in lowered


@given(st.from_regex(r"[a-z]{2,8}(_[a-z]{2,8}){1,3}", fullmatch=True))
def test_camel_case_has_the_parts_of_snake_case(name):
    camel = "".join(part.title() for part in name.split("_"))
    assert words(camel)[1:] == words(name)[1:]


@given(ANY_TEXT, ANY_TEXT)
@example("\U0002ebe1", "\u00e9\u00e8")
def test_words_of_lines_are_words_of_the_lines(first, second):
    assert words(f"{first}\n{second}") == words(first) + words(second)


@given(ANY_TEXT, IDS, ANY_TEXT, ANY_TEXT)
def test_a_fence_is_stripped_without_a_trace(content, context_id, before, after):
    fenced = fence(content, context_id)
    assert strip_fenced(before + fenced + after) == (before + after, (context_id,))


@given(
    st.lists(
        st.sampled_from(
            [f"<{NAME}", f"</{NAME}>", f"<{NAME.upper()}>", NAME, 'id="x">', "&lt;", ">"]
        )
        | ANY_TEXT
    ).map("".join),
    IDS,
)
def test_content_cannot_break_out_of_its_fence(content, context_id):
    fenced = fence(content, context_id)
    assert strip_fenced(f"a{fenced}b") == ("ab", (context_id,))
    assert strip_fenced(json.dumps(f"a{fenced}b")) == ('"ab"', (context_id,))


@given(
    st.lists(st.sampled_from([f'<{NAME} id="i">', f"</{NAME}>", "advice"]), min_size=1, max_size=12)
)
def test_advice_is_kept_only_outside_every_fence(tokens):
    depth = outside = 0
    for token in tokens:
        depth = max(0, depth + (token[1] == NAME[0]) - token.startswith("</"))
        outside += token == "advice" and depth == 0
    assert strip_fenced("".join(tokens))[0] == "advice" * outside

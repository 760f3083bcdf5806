"""Remedies without the code they quote."""

import pytest

from contextgraph.trace import in_general, is_repetition


@pytest.mark.parametrize(
    ("what", "general"),
    [
        (
            "`mane` was undefined: put `mane = 1`, `print(mane)` … into the edit itself",
            "… was undefined: put … into the edit itself",
        ),
        ("sent the same text for lines 3:8 instead of 3:5",) * 2,
        ("used `ls lib` instead of `ls src`", None),
        ("changed `a` to `b` in core.py; then it worked", None),
        ("sent the text again with `total = 1`", None),
    ],
)
def test_only_what_says_something_without_its_code_is_general(
    what: str, general: str | None
) -> None:
    assert in_general(what) == general


def test_trying_the_same_again_is_a_repetition() -> None:
    assert is_repetition("ran the same command again; then it worked")
    assert is_repetition("repeated `ls` and it worked")
    assert is_repetition("do the same once more: it passed the next time")
    assert not is_repetition("used `ls -a` instead of `ls`")

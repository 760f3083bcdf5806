"""Numbers beside their nouns."""

import pytest

from contextgraph.text import number_of


@pytest.mark.parametrize(
    ("count", "noun", "text"),
    [
        (1, "trajectory", "1 trajectory"),
        (0, "recovery", "0 recoveries"),
        (2, "day", "2 days"),
        (12345, "run", "12,345 runs"),
    ],
)
def test_a_number_goes_with_its_noun(count: int, noun: str, text: str) -> None:
    assert number_of(count, noun) == text

"""BM25, against the formula written out."""

from collections import Counter
from math import log

import numpy as np
import pytest
from hypothesis import given, strategies as st

from contextgraph.evaluation.baselines import Bm25
from contextgraph.text import words

TEXTS = st.lists(st.sampled_from(["cart", "tax", "total", "rate"]), max_size=6).map(" ".join)


def by_formula(query: str, texts: list[str]) -> list[tuple[float, int]]:
    counts = [Counter(words(text)) for text in texts]
    mean = sum(count.total() for count in counts) / len(counts)
    scores = []
    for number, count in enumerate(counts):
        score = 0.0
        for word in set(words(query)) & count.keys():
            having = sum(word in other for other in counts)
            weight = log(1 + (len(texts) - having + 0.5) / (having + 0.5))
            norm = 1.2 * (0.25 + 0.75 * count.total() / mean)
            score += weight * count[word] * 2.2 / (count[word] + norm)
        if score:
            scores.append((score, number))
    return scores


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=8), st.integers(1, 9))
def test_scores_are_those_of_the_formula_and_best_come_first(
    query: str, texts: list[str], limit: int
) -> None:
    index = Bm25()
    for text in texts:
        index.add(text)

    found = index.best(query, limit, np.ones(len(texts), dtype=bool))

    expected = {number: score for score, number in by_formula(query, texts)}
    assert len(found) == min(limit, len(expected))
    assert all(score == pytest.approx(expected[number]) for score, number in found)
    assert list(found) == sorted(found, key=lambda one: (-one[0], one[1]))


@given(TEXTS, st.lists(TEXTS, min_size=1, max_size=8), st.sets(st.integers(0, 7)))
def test_what_is_hidden_is_not_found_and_makes_room(
    query: str, texts: list[str], hidden: set[int]
) -> None:
    index = Bm25()
    for text in texts:
        index.add(text)

    visible = np.array([number not in hidden for number in range(len(texts))])

    found = index.best(query, 2, visible)

    expected = [
        one
        for one in index.best(query, 99, np.ones(len(texts), dtype=bool))
        if one[1] not in hidden
    ]
    assert list(found) == expected[:2]

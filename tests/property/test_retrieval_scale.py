"""Cosines of spaces with bounds of their own, on the scale of the gate."""

import pytest
from hypothesis import given, strategies as st

from contextgraph.retrieval.gate import CONSERVATIVE
from contextgraph.retrieval.semantic import on_the_scale

BOUND = CONSERVATIVE.similar_in_repo
cosines = st.floats(-1, 1)
bounds = st.floats(0.05, 0.95)


@given(cosines, bounds)
def test_what_the_space_calls_alike_the_gate_does_too(cosine: float, alike: float) -> None:
    scaled = on_the_scale(cosine, alike)
    assert 0 <= scaled <= 1
    if abs(cosine - alike) > 1e-9:
        assert (scaled >= BOUND) is (cosine >= alike)


@given(cosines, cosines, bounds)
def test_the_order_stays(one: float, other: float, alike: float) -> None:
    low, high = sorted((one, other))
    assert on_the_scale(low, alike) <= on_the_scale(high, alike) + 1e-12


@given(st.floats(0, 1))
def test_the_bound_of_the_gate_changes_nothing(cosine: float) -> None:
    assert on_the_scale(cosine, BOUND) == pytest.approx(cosine)


@given(cosines)
def test_while_the_bound_is_not_known_likeness_admits_nothing(cosine: float) -> None:
    assert on_the_scale(cosine, None) < BOUND

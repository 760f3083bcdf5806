"""Cosines of spaces with their own similarity thresholds, on one scale."""

import pytest
from hypothesis import given, strategies as st

from contextgraph.advising.channels import AT_THRESHOLD, rescaled

cosines = st.floats(-1, 1)
thresholds = st.floats(0.05, 0.95)


@given(cosines, thresholds)
def test_cosines_above_the_threshold_of_the_space_are_on_the_same_side_of_the_common_one(
    cosine: float, threshold: float
) -> None:
    scaled = rescaled(cosine, threshold)
    assert 0 <= scaled <= 1
    if abs(cosine - threshold) > 1e-9:
        assert (scaled >= AT_THRESHOLD) is (cosine >= threshold)


@given(cosines, cosines, thresholds)
def test_the_order_stays(one: float, other: float, threshold: float) -> None:
    low, high = sorted((one, other))
    assert rescaled(low, threshold) <= rescaled(high, threshold) + 1e-12


@given(st.floats(0, 1))
def test_the_threshold_of_the_gate_changes_nothing(cosine: float) -> None:
    assert rescaled(cosine, AT_THRESHOLD) == pytest.approx(cosine)


@given(cosines)
def test_without_a_threshold_similarity_admits_nothing(cosine: float) -> None:
    assert rescaled(cosine, None) < AT_THRESHOLD

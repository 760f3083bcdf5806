"""Trust in advice that was shown."""

from hypothesis import given, strategies as st

from contextgraph.governance import quarantined, trust

COUNT = st.integers(0, 1000)


def test_advice_that_was_never_judged_is_trusted():
    assert trust(0, 0) == 1


@given(COUNT, COUNT)
def test_failures_lower_trust_and_successes_restore_it(helped, failed):
    assert trust(helped, failed + 1) < trust(helped, failed) <= 1
    assert trust(helped + 1, failed + 1) > trust(helped, failed + 1)


def test_it_takes_repeated_harm_to_be_quarantined():
    assert not quarantined(0, 4)
    assert quarantined(0, 5)
    assert not quarantined(3, 5)

"""Bad advice in a memory, from the first run that is shown it to its end."""

import pytest

from benchmarks.poisoning import SCENARIOS, exposures, simulate

BY_NAME = {one.name: one for one in SCENARIOS}


@pytest.mark.parametrize("name", ["no sources", "reported by hand", "two attackers"])
def test_harmful_advice_is_gone_within_eight_exposures_and_honest_advice_stays(name):
    rounds = simulate(BY_NAME[name], 16)
    assert 0 < exposures(rounds) <= 8
    assert all(one.shown == ("honest",) for one in rounds[-6:])


def test_an_attacker_with_one_source_is_never_first_and_discredits_nothing():
    rounds = simulate(BY_NAME["one attacker"], 10)
    assert exposures(rounds, first=True) == 0
    assert all(one.shown[0] == "honest" for one in rounds)

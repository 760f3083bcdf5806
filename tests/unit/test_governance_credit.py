"""Trust in advice, from what was reported where it was shown."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, strategies as st

from contextgraph.advising.gate import Credit, Credits, credits_of
from contextgraph.model import AdviceRecord, Exposure, ShownItem, Verdict

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
COUNT = st.integers(0, 1000)
BASE = {"err_1": (98, 49)}


def shown(number: int, source: str = "", **helped: bool) -> Exposure:
    """A context that was reported by *source*, with its items and whether they *helped*."""
    items = tuple(ShownItem(name, name, helped=known) for name, known in helped.items())
    at = NOON + timedelta(minutes=number)
    return Exposure(f"ctx_{number:03}", at, "err_1", any(helped.values()), items, source)


def credit(*exposures: Exposure, verdicts: tuple[Verdict, ...] = (), sources: int = 0):
    return credits_of(AdviceRecord(exposures, BASE, verdicts, sources))


def test_advice_that_was_never_judged_is_trusted():
    assert Credit().trust == 1
    assert not Credit().is_quarantined


@given(COUNT, COUNT)
def test_failures_lower_trust_and_successes_restore_it(helped, failed):
    def trust(helped, failed):
        return Credit(helped, failed, base=1).trust

    assert trust(helped, failed + 1) < trust(helped, failed) <= 1
    assert trust(helped + 1, failed + 1) > trust(helped, failed + 1)


@pytest.mark.parametrize(("base", "failures"), [(0.9, 3), (0.5, 5), (0.3, 7)])
def test_how_often_advice_may_fail_depends_on_how_often_the_error_is_cleared(base, failures):
    assert not Credit(0, failures - 1, base).is_quarantined
    assert Credit(0, failures, base).is_quarantined


def test_honest_advice_recovers_from_failures_beside_bad_advice():
    together = [shown(number, bad=False, good=False) for number in range(6)]
    assert credit(*together)["good"].failed == 3
    later = [shown(number, good=True) for number in range(6, 12)]
    later += [shown(number, bad=False) for number in range(12, 15)]
    known = credit(*together, *later)
    assert known["bad"].is_quarantined
    assert known["good"] == Credit(helped=6, failed=0, base=0.5)


def test_advice_that_was_only_shown_beside_bad_advice_is_not_quarantined_with_it():
    together = [shown(number, bad=False, good=False) for number in range(20)]
    single = [shown(number, bad=False) for number in range(20, 22)]
    known = credit(*together, *single)
    assert known["bad"].is_quarantined
    assert not known.get("good", Credit()).failed


def test_one_of_several_sources_counts_at_most_as_much_as_all_others():
    attack = [shown(number, "mallory", good=False) for number in range(50)]
    assert credit(*attack, sources=0)["good"] == Credit(accusers=1)
    assert credit(*attack, sources=1)["good"] == Credit(accusers=1)
    assert credit(*attack, sources=2)["good"] == Credit(accusers=1)
    honest = [shown(number, "ci", good=True) for number in range(50, 54)]
    known = credit(*attack, *honest, sources=2)["good"]
    assert (known.helped, known.failed) == (4, 4)


def test_what_was_released_by_hand_is_judged_by_what_came_later():
    failures = [shown(number, bad=False) for number in range(9)]
    assert credit(*failures)["bad"].is_quarantined
    released = Verdict("bad", False, NOON + timedelta(minutes=8))
    assert credit(*failures, verdicts=(released,))["bad"].failed == 1
    by_hand = Verdict("good", True, NOON)
    assert credit(verdicts=(by_hand,))["good"].is_quarantined


def test_advice_is_active_once_independent_instances_and_sources_agree():
    of_owner, of_several = Credits({}, several_sources=False), Credits({}, several_sources=True)
    assert not of_owner.is_active(1, [""])
    assert of_owner.is_active(2, [""])
    assert not of_several.is_active(9, ["ann"])
    assert of_several.is_active(2, ["ann", "ben"])


def test_a_clone_confirms_the_owner_alone():
    of_several, clone = Credits({}, several_sources=True), "clone:github.com/acme/shop"
    assert of_several.is_active(2, ["", clone])
    assert not of_several.is_active(9, ["ann", clone])
    assert not of_several.is_active(9, [clone, "clone:github.com/acme/other"])

"""Whether two states are the same trouble."""

import pytest

from contextgraph import LoopDetector, State
from tests.sessions import traceback

is_same_predicament = LoopDetector().is_same_predicament


def failing(error: str, action: str = "python core.py") -> State:
    return State(last_action=action, last_outcome=traceback(error), current_error=traceback(error))


def test_the_same_error_after_the_same_kind_of_action_is_the_same() -> None:
    one = failing("AttributeError: module 'random' has no attribute 'randint'")
    other = failing("AttributeError: module 'random' has no attribute 'randint'", "python run.py")
    assert is_same_predicament(one, other)


@pytest.mark.parametrize(
    "other",
    [
        failing("AttributeError: module 'shop' has no attribute 'total'"),
        failing("TypeError: 'randint' of 'random' is not callable"),
        failing("AttributeError: module 'random' has no attribute 'randint'", "edit 1:1\nx"),
        State(last_action="python core.py", last_outcome="ok"),
        State(),
    ],
    ids=["no keyword in common", "another type", "another kind", "no error", "nothing known"],
)
def test_another_error_is_distinguished(other: State) -> None:
    one = failing("AttributeError: module 'random' has no attribute 'randint'")
    assert not is_same_predicament(one, other)
    assert not is_same_predicament(other, one)


def test_without_an_error_the_same_action_with_the_same_outcome_is_the_same() -> None:
    one = State(last_action="ls  src", last_outcome="core.py")
    assert is_same_predicament(one, State(last_action="ls src", last_outcome="core.py"))
    assert not is_same_predicament(one, State(last_action="ls src", last_outcome="core.py cart.py"))
    assert not is_same_predicament(one, State(last_action="ls lib", last_outcome="core.py"))


def test_addresses_and_durations_do_not_make_an_outcome_new() -> None:
    one = State(last_action="python core.py", last_outcome="<Cart at 0x7f01> in 0.12 s")
    assert is_same_predicament(
        one, State(last_action="python core.py", last_outcome="<Cart at 0x7f99> in 0.45 s")
    )


def test_an_error_still_open_counts_before_the_last_outcome() -> None:
    error = traceback("KeyError: 'vat'")
    one = State(last_action="ls", last_outcome="core.py", current_error=error)
    assert is_same_predicament(
        one, State(last_action="ls src", last_outcome="", current_error=error)
    )


def test_two_beginnings_are_not_the_same_predicament() -> None:
    assert not is_same_predicament(State(), State())

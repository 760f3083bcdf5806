"""Recoveries, loops and states of any run are consistent."""

import pickle
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, strategies as st

from contextgraph.model import LoopInfo
from contextgraph.model.values import replace
from contextgraph.trace import (
    LoopTracker,
    StepTrace,
    describe_remedy,
    is_same_predicament,
    loop_in,
    loops_of,
    read_steps,
    run as following,
    signature_of,
    state_at,
    states_of,
)
from contextgraph.trace.run import EXCERPT_CHARS, excerpt_of
from contextgraph.trace.steps import files_changed
from tests.sessions import Session, refusal, traceback

NAMES = ("a", "b")
FILES = ("core.py", "cart.py")


def add(session: Session, verb: str, number: int, name: str, file: str) -> None:
    """One more step of *session*, by the letters of a small alphabet."""
    match verb:
        case "open":
            session.open(file, f"x = {number}", "y = 2")
        case "refused":
            session.refused(number, number + 1, f"x = {name}", why=f"F821 undefined name '{name}'")
        case "edited":
            session.edited(number, number + 1, f"x = {name}")
        case "failed":
            session.failed(f"python {file}", f"KeyError: '{name}'", at=number, file=file)
        case "worked":
            session.worked(f"python {file}", name)
        case "missing":
            session.do(f"open {name}.py", f"File {name}.py not found")
        case "typo":
            session.do(f"{name}. x", f"/bin/bash: line 1: {name}.: command not found")
        case "ls":
            session.do("ls", None if number == 1 else file)
        case _:
            run_on(session, verb, number, name, file)


def run_on(session: Session, verb: str, number: int, name: str, file: str) -> None:
    """A step whose output shows no error, or does not show whether there is one."""
    match verb:
        case "silent":
            session.worked(f"python {file}", "")
        case "passed":
            session.worked("pytest", f"{number} passed in 0.0{number}s")
        case "unchanged":
            session.do("shop lint", f"{file}: FAIL")
        case "named":
            usage = "Usage: edit <start_line>:<end_line>"
            session.do(f"edit {file} {number}:{number}\nx = {name}\nend_of_edit", usage)


VERBS = (
    *("open", "refused", "edited", "failed", "worked", "silent", "passed", "unchanged", "named"),
    *("missing", "typo", "ls"),
)
STEPS = st.tuples(
    st.sampled_from(VERBS),
    st.sampled_from((1, 2, 40)),
    st.sampled_from(NAMES),
    st.sampled_from(FILES),
)


@st.composite
def sessions(draw: st.DrawFn) -> Session:
    session = Session(draw(st.sampled_from((None, "core.py"))))
    for verb, number, name, file in draw(st.lists(STEPS, max_size=40)):
        add(session, verb, number, name, file)
    return session


@given(sessions())
def test_a_recovery_lies_within_its_run_and_ends_after_its_error(session: Session) -> None:
    steps = session.read()
    for one in session.recoveries():
        assert 0 <= one.error_step < one.cleared_step < len(steps)
        assert steps[one.error_step].error == one.error
        assert steps[one.cleared_step].step.observation is not None
        # Of an error that was left behind nothing shows what it needed.
        assert one.actions or not one.verified
        assert bool(describe_remedy(one.actions)) is bool(one.actions)


@given(sessions())
def test_every_error_starts_at_most_one_recovery(session: Session) -> None:
    starts = Counter(one.error_step for one in session.recoveries())
    assert max(starts.values(), default=1) == 1


@given(sessions())
def test_loops_lie_in_the_run_in_order_and_apart(session: Session) -> None:
    steps = session.read()
    loops = loops_of(steps)
    for loop in loops:
        assert 0 <= loop.start < loop.end < len(steps)
        assert loop.repetitions >= 3
    assert all(before.end < after.start for before, after in pairwise(loops))


@given(sessions())
def test_a_growing_history_is_judged_as_its_prefix_is_later(session: Session) -> None:
    steps = session.read()
    tracker = LoopTracker()
    for count, step in enumerate(steps, 1):
        verdict = tracker.push(step)
        assert tracker.loops == loops_of(steps[:count])
        assert verdict == _ending_at(tracker.loops, count - 1)


@given(sessions())
def test_states_are_judged_like_their_steps(session: Session) -> None:
    states = list(states_of(session.raw()))
    tracker = LoopTracker()
    for count, step in enumerate(session.read(), 1):
        loop = tracker.push(step)
        assert loop_in(states[: count + 1]) == (loop and replace(loop, repo=states[count].repo))


@given(sessions())
def test_a_state_is_that_of_the_fold(session: Session) -> None:
    raw = session.raw()
    states = list(states_of(raw))
    assert len(states) == len(raw.steps) + 1
    for step in {0, len(raw.steps) // 2, len(raw.steps)}:
        assert state_at(raw, step) == states[step]


@given(sessions(), st.data())
def test_a_state_knows_nothing_of_what_comes_later(session: Session, data: st.DataObject) -> None:
    raw = session.raw()
    at = data.draw(st.integers(0, len(raw.steps)))
    before = Session()
    before.steps = session.steps[:at]
    assert state_at(raw, at) == state_at(before.raw(), at)


@given(sessions())
def test_a_current_error_is_recognised_as_one_of_the_run(session: Session) -> None:
    known = {(s.error.error_type, s.error.template) for s in session.read() if s.error}
    for state in states_of(session.raw()):
        if state.current_error:
            found = signature_of(state.current_error)
            assert found is not None
            assert (found.error_type, found.template) in known


@given(sessions(), st.data())
def test_being_in_the_same_predicament_is_mutual(session: Session, data: st.DataObject) -> None:
    states = st.sampled_from(list(states_of(session.raw())))
    one, other = data.draw(states), data.draw(states)
    assert is_same_predicament(one, other) == is_same_predicament(other, one)


@given(
    st.text(max_size=4_000),
    st.sampled_from([traceback("KeyError: 'vat'"), refusal("F821 undefined name 'x'")]),
    st.text(max_size=4_000),
)
def test_an_excerpt_is_short_and_shows_the_error(before: str, error: str, after: str) -> None:
    signature = signature_of(error)
    assert signature is not None
    shown = excerpt_of(f"{before}\n{error}\n{after}", signature)
    assert len(shown) <= EXCERPT_CHARS
    assert signature.message[:80] in shown


@given(st.text())
def test_reading_the_files_of_any_text_never_fails(patch: str) -> None:
    assert all(files_changed(patch))


def test_following_errors_costs_the_same_per_step_in_a_long_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls: Counter[int] = Counter()
    size = 0

    def counted(failed: StepTrace, later: StepTrace) -> bool:
        calls[size] += 1
        return False

    monkeypatch.setattr(following, "same_goal", counted)
    for size in (100, 400):
        list(_followed(_troubled(size)))
    assert calls[400] <= 5 * calls[100]


def test_tracking_loops_keeps_no_more_than_a_key_of_an_earlier_step() -> None:
    sizes = []
    for length in (200, 800):
        tracker = LoopTracker()
        for step in read_steps(_troubled(length).raw()):
            tracker.push(step)
        sizes.append(len(pickle.dumps(tracker)))
    assert sizes[1] - sizes[0] < 600 * 50  # bytes


def _ending_at(loops: tuple[LoopInfo, ...], at: int) -> LoopInfo | None:
    return next((loop for loop in loops if loop.end == at), None)


def _troubled(size: int) -> Session:
    """A run in which every step fails in a way of its own."""
    session = Session("core.py")
    for number in range(size):
        session.failed(f"python job_{number}.py", f"KeyError: 'k{number}'")
    return session


def _followed(session: Session) -> Iterator[int]:
    errors = following.OpenErrors()
    for step in session.read():
        yield len(errors.push(step))

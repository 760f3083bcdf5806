"""The state of an agent at each step of a recorded run."""

import pytest

from contextgraph.model import Phase, State
from contextgraph.model.values import replace
from contextgraph.trace import (
    StateTracker,
    StepReader,
    error_of,
    signature_of,
    state_at,
    states_of,
    trace,
)
from tests.sessions import Session, traceback

COMMANDS = """COMMANDS:
open:
  docstring: opens the file at the given path
  signature: open <path>
goto:
  docstring: moves the window
submit:
  docstring: submits your code
"""


def test_at_the_start_only_the_task_is_known() -> None:
    state = state_at(Session("core.py").raw(), 0)
    assert (state.repo, state.instance_id) == ("acme/shop", "acme__shop-1")
    assert state.task_description == "Prices are rounded wrongly"
    assert state.phase is Phase.UNDERSTANDING
    assert (state.last_action, state.last_outcome, state.open_file) == ("", "", "")
    assert (state.current_error, state.repo_summary) == ("", "")


def test_a_state_describes_the_step_before_it() -> None:
    raw = Session().open("core.py", "x = 1").worked("python core.py", "1").raw()
    state = state_at(raw, 1)
    assert state.last_action == "open core.py"
    assert state.last_outcome.endswith("1:x = 1")
    assert state.open_file == "/shop/core.py"


def test_an_error_is_recognised_as_in_the_record_of_the_run() -> None:
    refused = "ERROR: shop is not a valid editable requirement. It should be a path"
    raw = Session().failed("pip install -e shop", refused).worked("ls", "core.py").raw()
    recorded = trace(raw).steps[0].error
    assert error_of(state_at(raw, 1)) == recorded != signature_of(refused)
    assert error_of(State(current_error=refused)) == signature_of(refused)
    # An older error is not read as the answer to what was done since.
    older = State(current_error="KeyError: 'tax'", last_action="pip list", last_outcome="shop")
    assert error_of(older) == signature_of("KeyError: 'tax'")


def test_an_error_stays_current_until_it_is_cleared() -> None:
    session = Session("core.py").failed("python core.py", "TypeError: bad").worked("ls", "core.py")
    session.edited(3, 3, "good()").worked("python core.py").worked("ls", "core.py")
    errors = [bool(state.current_error) for state in states_of(session.raw())]
    assert errors == [False, False, True, True, True, False, False]


def test_a_state_keeps_what_failed_and_what_was_searched() -> None:
    session = Session().do("search_dir tax", "No matches found for tax").worked("ls", "core.py")
    session.worked("search_dir net", "core.py").failed("python core.py", "TypeError: bad")
    raw = session.worked("cat core.py", "x = 1").raw()
    found, tried = ("search_dir tax", "ls", "search_dir net"), "python core.py"
    *_, last = states_of(raw)
    assert last.failed_actions == (*found, tried)
    elsewhere = replace(raw.steps[-1], cwd="/shop/tests")
    *_, last = states_of(replace(raw, steps=(*raw.steps[:-1], elsewhere)))
    assert last.failed_actions == ("search_dir tax", "search_dir net", tried)


def test_a_slip_that_was_left_behind_is_not_the_current_error() -> None:
    session = Session().do("open nowhere.py", "File nowhere.py not found")
    for number in range(12):
        session.worked(f"cat file_{number}.txt", f"text {number}")
    assert state_at(session.raw(), 1).current_error == "File nowhere.py not found"
    assert state_at(session.raw(), 13).current_error == ""


@pytest.mark.parametrize("noise", [0, 300])
def test_a_long_error_is_cut_so_that_it_is_still_recognised(noise: int) -> None:
    error = traceback("ZeroDivisionError: division by zero")
    shown = "\n".join((*["loading a table"] * noise, error, *["closing a table"] * noise))
    state = state_at(Session().do("python core.py", shown).raw(), 1)
    assert len(state.current_error) <= 2_000
    found, whole = signature_of(state.current_error), signature_of(error)
    assert found is not None
    assert whole is not None
    assert (found.error_type, found.template) == (whole.error_type, whole.template)


def test_the_tools_are_those_that_the_prompt_describes() -> None:
    assert state_at(Session().raw(COMMANDS), 0).tools == ("open", "goto", "submit")


def test_an_agent_of_mini_swe_agent_has_a_shell() -> None:
    raw = replace(Session().worked("ls", "core.py").raw(), source_format="mini-swe-agent")
    assert state_at(raw, 0).tools == ("bash",)


def test_without_a_prompt_the_tools_are_those_seen_so_far() -> None:
    raw = Session().worked("ls", "core.py").worked("pytest", "1 passed").worked("ls", "").raw()
    assert [state.tools for state in states_of(raw)] == [
        (),
        ("ls",),
        ("ls", "pytest"),
        ("ls", "pytest"),
    ]


def test_early_listings_describe_the_repository() -> None:
    session = Session().worked("ls -F", "README.md\nshop/\nsetup.py")
    session.open("README.md", "# Shop", "", "[![badge](https://x)]", "Computes prices.")
    summary = state_at(session.raw(), 2).repo_summary
    assert summary == "README: Shop Computes prices.\nfiles: README.md, shop/, setup.py"


def test_a_listing_with_long_lines_stays_short() -> None:
    session = Session().worked("ls -la", "total 8\n" + "-rw-r--r-- 1 me me 1 name.py\n" * 500)
    assert 0 < len(state_at(session.raw(), 1).repo_summary) <= 600


def test_a_run_in_progress_is_followed_step_by_step() -> None:
    session = Session("core.py").failed("python core.py", "TypeError: bad").edited(3, 3, "good()")
    raw = session.worked("python core.py").raw()
    reader = StepReader()
    start = State(repo=raw.repo, task_description=raw.task, instance_id=raw.instance_id)
    tracker = StateTracker(start)
    followed = [tracker.push(reader.push(step)) for step in raw.steps]
    assert followed == list(states_of(raw))[1:]
    assert tracker.state == followed[-1]


def test_a_banner_is_not_part_of_the_current_error() -> None:
    banner = "Error processing line 1 of /venv/a.pth:\n\n  Traceback\nRemainder of file ignored\n"
    shown = traceback("KeyError: 'vat'")
    raw = Session("core.py").do("python core.py", f"{banner}{shown}").raw()
    assert state_at(raw, len(raw.steps)).current_error == shown.strip()


@pytest.mark.parametrize("step", [-1, 3])
def test_a_moment_that_the_run_does_not_have_is_refused(step: int) -> None:
    raw = Session().worked("ls", "core.py").worked("ls", "core.py").raw()
    with pytest.raises(IndexError, match="the run has 2 steps"):
        state_at(raw, step)


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("No module named 'yaml'", "ModuleNotFoundError"),
        ("cannot import name 'a' from 'b' (/b.py)", "ImportError"),
        ("name 'x' is not defined", "NameError"),
        ("'NoneType' object has no attribute 'y'", "AttributeError"),
        ("module 'm' has no attribute 'y'", "AttributeError"),
    ],
)
def test_a_message_without_its_type_is_read_as_the_exception(message: str, kind: str) -> None:
    error = error_of(State(current_error=message))
    assert error
    assert (error.error_type, error.message) == (kind, message)
    assert error == error_of(State(current_error=f"{kind}: {message}"))

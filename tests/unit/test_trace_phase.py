"""What the agent is about."""

from contextgraph.model import Action, Phase
from contextgraph.trace.actions.reading import read_action
from contextgraph.trace.phase import PhaseTracker, phases_of


def phases(*steps: tuple[str, str | None]) -> tuple[Phase, ...]:
    return phases_of(read_action(Action("bash", text), "/bakery", file) for text, file in steps)


def test_a_run_goes_from_looking_around_to_handing_in():
    script, source = "/bakery/reproduce.py", "/bakery/oven/dough.py"

    assert phases(
        ("ls -F", None),
        ("create reproduce.py", None),
        ("edit 1:1\nimport oven\nend_of_edit", script),
        ("python reproduce.py", script),
        ('search_dir "rise"', script),
        ("open oven/dough.py", script),
        ("edit 3:4\n    return 2\nend_of_edit", source),
        ("python reproduce.py", source),
        ("open reproduce.py", source),
        ("rm reproduce.py", source),
        ("submit", source),
    ) == (
        Phase.UNDERSTANDING,
        Phase.REPRODUCING,
        Phase.REPRODUCING,
        Phase.REPRODUCING,
        Phase.LOCATING,
        Phase.LOCATING,
        Phase.FIXING,
        Phase.TESTING,
        Phase.TESTING,
        Phase.SUBMITTING,
        Phase.SUBMITTING,
    )


def test_edits_of_the_projects_own_tests_are_fixes():
    assert phases(("edit 1:1\nx\nend_of_edit", "/bakery/tests/test_dough.py")) == (Phase.FIXING,)


def test_a_new_module_of_the_project_is_a_fix():
    assert phases(("cat > oven/steam.py <<'E'\nx = 1\nE", None)) == (Phase.FIXING,)


def test_installs_before_the_first_fix_belong_to_reproducing():
    assert phases(("pip install flour", None)) == (Phase.REPRODUCING,)


def test_reading_what_the_project_says_of_itself_is_understanding():
    assert phases(("open README.md", None), ("cat setup.py", None), ("git log -3", None)) == (
        (Phase.UNDERSTANDING,) * 3
    )


def test_a_tracker_says_live_what_a_replay_says_afterwards():
    readings = [
        read_action(Action("bash", text), None, "/bakery/a.py")
        for text in ("ls", "edit 1:1\nx\nend_of_edit", "pytest", "cd /", "submit")
    ]
    tracker = PhaseTracker()

    assert tuple(tracker.push(reading) for reading in readings) == phases_of(readings)

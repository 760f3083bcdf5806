"""Phases of a run."""

import pytest

from contextgraph.model import Phase
from tests.sessions import Session, window

INDENT = "E999 IndentationError: unexpected indent"


def phases(session: Session) -> tuple[Phase, ...]:
    return tuple(step.phase for step in session.read())


def script() -> Session:
    """A run that wrote a script and then opened a file of the project."""
    session = Session().do("create reproduce.py", window("reproduce.py", ()))
    session.open_file = "reproduce.py"
    return session.edited(1, 1, "from oven import bake", "print(bake(3))").open("oven/dough.py")


def test_a_run_goes_from_looking_around_to_handing_in() -> None:
    session = Session().do("ls -F").do("create reproduce.py", window("reproduce.py", ()))
    session.open_file = "reproduce.py"
    session.edited(1, 1, "import oven").worked("python reproduce.py", "12")
    session.do('search_dir "rise"', "Found 1 matches").open("oven/dough.py")
    session.edited(3, 4, "    return 2").worked("python reproduce.py", "2")
    session.open("reproduce.py").do("rm reproduce.py").do("submit", None)
    assert phases(session) == (
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


def test_edits_of_the_projects_own_tests_are_fixes() -> None:
    assert phases(Session("tests/test_dough.py").edited(1, 1, "x"))[-1] is Phase.FIXING


def test_a_new_module_of_the_project_is_a_fix() -> None:
    assert phases(Session().do("cat > oven/steam.py <<'E'\nx = 1\nE")) == (Phase.FIXING,)


def test_a_new_file_at_the_top_is_what_the_agent_says_it_is() -> None:
    made = "create steam.py", window("steam.py", ())
    requested = Session().do(*made, thought="Let's create it to implement the steam oven.")
    tried = Session().do(*made, thought="Let's create a script to see how much steam there is.")
    assert phases(requested) == (Phase.FIXING,)
    assert phases(tried) == (Phase.REPRODUCING,)


def test_a_script_that_edits_the_project_fixes_it() -> None:
    text = "text = open('oven/dough.py').read(); open('oven/dough.py', 'w').write(text)"
    session = Session().worked("git clone https://github.com/acme/oven", "Cloning")
    session.worked(f"cat > fix.py << 'EOF'\n{text}\nEOF").worked("python fix.py")
    assert phases(session.worked("python check.py")) == (
        Phase.REPRODUCING,
        Phase.FIXING,
        Phase.FIXING,
        Phase.TESTING,
    )


@pytest.mark.parametrize(
    "line",
    [
        "cat >> oven/dough.py <<'E'\nx = 1\nE\npython reproduce.py",
        "sed -i s/a/b/ oven/dough.py && python -c 'import oven'",
    ],
)
def test_a_line_that_edits_the_project_and_runs_it_fixes_it(line: str) -> None:
    session = Session().worked("python reproduce.py", "1").worked(line, "2")
    assert phases(session.worked("python reproduce.py", "2")) == (
        Phase.REPRODUCING,
        Phase.FIXING,
        Phase.TESTING,
    )


def test_installs_before_the_first_fix_belong_to_reproducing() -> None:
    assert phases(Session().do("pip install flour")) == (Phase.REPRODUCING,)


def test_a_run_after_a_refused_edit_alone_still_reproduces() -> None:
    session = script().refused(3, 4, "    return 2", why=INDENT).worked("python reproduce.py", "12")
    assert phases(session)[-2:] == (Phase.FIXING, Phase.REPRODUCING)


def test_text_of_a_script_sent_to_another_open_file_is_still_of_the_script() -> None:
    session = script().refused(1, 2, "from oven import bake", "print(bake(4))", why=INDENT)
    assert phases(session)[-1] is Phase.REPRODUCING


def test_clearing_up_is_part_of_handing_in_though_nothing_was_fixed() -> None:
    session = script().do("rm reproduce.py", thought="The script is no longer needed.")
    assert phases(session)[-1] is Phase.SUBMITTING
    assert phases(script().do("rm reproduce.py"))[-1] is Phase.REPRODUCING


def test_reading_what_the_project_says_of_itself_is_understanding() -> None:
    session = Session().do("open README.md").do("cat setup.py").do("git log -3")
    assert phases(session) == (Phase.UNDERSTANDING,) * 3

"""Shell lines that change something and then run something."""

import pytest

from contextgraph.model import Action, RemedyAction, RemedyKind
from contextgraph.trace import command_lines, describe_remedy, read_action
from contextgraph.trace.actions import shell_line
from contextgraph.trace.shell import commands_in
from tests.sessions import Session, traceback

FIX = "sed -i 's/kg=/weight=/' core.py"
RUN = "PYTHONPATH=lib python -m unittest"
FAILURE = traceback("TypeError: total() got an unexpected keyword argument 'kg'")


@pytest.mark.parametrize(
    ("line", "changes", "runs"),
    [
        (f"{FIX} && {RUN}", (FIX,), RUN),
        (f"cd src; {FIX}; {RUN} | tail -5", (FIX,), f"{RUN} | tail -5"),
        ('echo "a && b" && ls', (), "ls"),
        (
            "cat > a.py <<'EOF'\nx = 1; y = 2\nEOF\npython a.py",
            ("cat > a.py <<'EOF'\nx = 1; y = 2\nEOF",),
            "python a.py",
        ),
        ('python -c "\nimport x\nx.run()"', (), 'python -c "\nimport x\nx.run()"'),
        ("git checkout core.py && pytest", ("git checkout core.py",), "pytest"),
        ("", (), ""),
    ],
)
def test_changes_are_separated_from_what_is_run(
    line: str, changes: tuple[str, ...], runs: str
) -> None:
    found = shell_line(line)
    assert (found.changes, found.runs) == (changes, runs)


@pytest.mark.parametrize(
    ("line", "program", "launcher"),
    [
        ("uv run pytest -q", "pytest", "uv run pytest"),
        ("poetry run python -m pytest -q", "pytest", "poetry run python -m pytest"),
        ("timeout 60 npx jest a.test.ts", "jest", "npx jest"),
        ("A=1 nice -n 10 python3 -m pytest", "pytest", "python3 -m pytest"),
        ("uv pip install flour", "uv pip", "uv pip"),
    ],
)
def test_a_program_is_known_whatever_runs_it(line: str, program: str, launcher: str) -> None:
    (command,) = commands_in(line)
    assert (command.program, command.launcher) == (program, launcher)
    assert read_action(Action("bash", line), None, None).verb == program.rsplit(maxsplit=1)[-1]


def test_the_text_of_a_here_document_is_no_command() -> None:
    line = "python - <<'EOF' 2>&1 | tail -3\nimport oven; oven.bake()\nEOF\nls"
    assert [command.text for command in commands_in(line)] == ["python -", "ls"]


def test_an_environment_that_runs_a_program_is_a_remedy() -> None:
    session = Session().do("pytest -q", traceback("ModuleNotFoundError: No module named 'oven'"))
    found = actions(session.do("uv run pytest -q", "3 passed"))
    assert describe_remedy(found, general=True) == "use `uv run pytest` instead of `pytest`"


def test_an_unclosed_quote_does_not_hold_up_the_reading() -> None:
    assert shell_line("echo 'x " * 3000).runs


def actions(session: Session) -> tuple[RemedyAction, ...]:
    return session.recoveries()[0].actions


def test_a_fix_on_the_line_of_the_rerun_is_the_remedy() -> None:
    found = actions(Session().do(RUN, FAILURE).do(f"{FIX} && {RUN}", "OK"))
    assert describe_remedy(found) == f"run `{FIX}`"
    assert command_lines(found) == (FIX,)


def test_a_change_that_was_undone_is_not_part_of_the_remedy() -> None:
    session = Session().do(RUN, FAILURE)
    session.do(f"sed -i 's/kg/lb/' core.py && {RUN}", traceback("KeyError: 'lb'"))
    session.do(f"git checkout core.py && {FIX} && {RUN}", "OK")
    assert "kg/lb" not in describe_remedy(session.recoveries()[-1].actions)


def test_an_edit_that_was_reverted_is_a_remedy() -> None:
    session = Session("core.py").edited(3, 3, "tax = (").do("python core.py", FAILURE)
    found = actions(session.do("git checkout core.py", "").do("python core.py", "3"))
    assert [one.kind for one in found] == [RemedyKind.REVERT]
    assert describe_remedy(found) == "undo the changes of `core.py` (`git checkout core.py`)"


def test_an_environment_variable_that_was_missing_is_set() -> None:
    session = Session().do("python -m shop.cli", "/usr/bin/python: No module named shop.cli")
    found = actions(session.do("PYTHONPATH=lib python -m shop.cli", "total: 3"))
    assert command_lines(found) == ("PYTHONPATH=lib python -m shop.cli",)
    assert describe_remedy(found, general=True) == "set `PYTHONPATH=<source folder>`"


def test_the_folder_in_which_a_command_has_to_run_is_named() -> None:
    session = Session().do("cd /shop/src && python run.py", FAILURE)
    found = actions(session.do("cd /shop && python run.py", "3"))
    assert describe_remedy(found) == "run it in `/shop` instead of `/shop/src`"
    assert describe_remedy(found, general=True) == "run it in the root of the repository"


def test_a_script_that_is_written_again_is_changed_by_its_new_lines() -> None:
    write = "cat > a.py <<'EOF'\nimport x\n{}\nEOF\npython a.py"
    session = Session().do(write.format("x.total(kg=1)"), FAILURE)
    found = actions(session.do(write.format("x.total(weight=1)"), "3"))
    assert describe_remedy(found) == "add `x.total(weight=1)` in a.py"


def test_a_malformed_edit_is_repeated_whole() -> None:
    text = "edit 5:12:12\nx = 1; y = 2\nend_of_edit"
    session = Session("core.py").do(text, "\nEXECUTION TIMED OUT").do(text, "[File: /shop/core.py]")
    assert command_lines(actions(session)) == ("edit 5:12:12 ⏎ x = 1; y = 2",)


@pytest.mark.parametrize("program", ["pnpm", "bun", "brew", "apk", "yarn"])
def test_what_installs_is_named_with_its_verb(program):
    (command,) = commands_in(f"{program} add kettle")
    assert (command.program, command.words) == (f"{program} add", ("kettle",))
    assert command.installs


def test_a_package_manager_that_runs_a_program_is_named_alone():
    (command,) = commands_in("pnpm vitest run")
    assert (command.program, command.words) == ("pnpm", ("vitest", "run"))

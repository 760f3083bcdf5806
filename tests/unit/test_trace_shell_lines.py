"""Shell lines that change something and then run something."""

import pytest

from contextgraph.trace import Recovery, recoveries_of
from contextgraph.trace.recoveries.shell_lines import shell_line
from tests.sessions import Session, traceback

FIX = "sed -i 's/kg=/weight=/' core.py"
RUN = "PYTHONPATH=lib python -m unittest"
FAILURE = traceback("TypeError: total() got an unexpected keyword argument 'kg'")


@pytest.mark.parametrize(
    ("line", "deeds", "runs"),
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
def test_deeds_are_told_from_what_is_run(line: str, deeds: tuple[str, ...], runs: str) -> None:
    found = shell_line(line)
    assert (found.deeds, found.runs) == (deeds, runs)


def test_an_unclosed_quote_does_not_hold_up_the_reading() -> None:
    assert shell_line("echo 'x " * 3000).runs


def recovered(session: Session) -> Recovery:
    return recoveries_of(session.read())[0]


def test_a_fix_on_the_line_of_the_rerun_is_what_cured() -> None:
    found = recovered(Session().do(RUN, FAILURE).do(f"{FIX} && {RUN}", "OK"))
    assert found.what == f"ran `{FIX}`; then it worked"
    assert found.actions == (FIX,)


def test_what_was_undone_did_not_cure() -> None:
    session = Session().do(RUN, FAILURE)
    session.do(f"sed -i 's/kg/lb/' core.py && {RUN}", traceback("KeyError: 'lb'"))
    session.do(f"git checkout core.py && {FIX} && {RUN}", "OK")
    assert "kg/lb" not in recoveries_of(session.read())[-1].what


def test_an_environment_variable_that_was_missing_is_told() -> None:
    session = Session().do("python -m shop.cli", "/usr/bin/python: No module named shop.cli")
    found = recovered(session.do("PYTHONPATH=lib python -m shop.cli", "total: 3"))
    assert found.what.startswith("ran `PYTHONPATH=lib python -m shop.cli` instead of `python -m")


def test_a_directory_that_was_wrong_is_told() -> None:
    session = Session().do("cd src && python run.py", FAILURE).do("cd lib && python run.py", "3")
    assert "`cd lib && python run.py` instead of `cd src" in recovered(session).what


def test_a_script_written_anew_is_told_by_its_new_lines() -> None:
    write = "cat > a.py <<'EOF'\nimport x\n{}\nEOF\npython a.py"
    session = Session().do(write.format("x.total(kg=1)"), FAILURE)
    found = recovered(session.do(write.format("x.total(weight=1)"), "3"))
    assert found.what == "added `x.total(weight=1)` in a.py; then it worked"


def test_a_malformed_edit_is_told_whole() -> None:
    text = "edit 5:12:12\nx = 1; y = 2\nend_of_edit"
    session = Session("core.py").do(text, "\nEXECUTION TIMED OUT").do(text, "[File: /shop/core.py]")
    assert recovered(session).actions == ("edit 5:12:12 ⏎ x = 1; y = 2",)

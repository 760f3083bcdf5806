"""Remedies as data: what independent runs agree on, and how it is worded elsewhere."""

import pytest

from contextgraph.model import RemedyAction, RemedyKind, RemedyPattern
from contextgraph.trace import command_lines, describe_pattern, describe_remedy, is_retry, names_in
from tests.deadline import deadline
from tests.sessions import Session, traceback

NO_NAME = "F821 undefined name 'Decimal'"
BAD_ARGUMENT = "TypeError: total() got an unexpected keyword argument 'kg'"


def actions(session: Session) -> tuple[RemedyAction, ...]:
    return session.recoveries()[-1].actions


def patterns(session: Session) -> list[tuple[RemedyKind, str]]:
    return [(one.kind, one.pattern.target) for one in actions(session)]


def rerun(error: str, *between: str, then: str = "python run.py") -> Session:
    session = Session().do("python run.py", traceback(error))
    for line in between:
        session.do(line, "")
    return session.do(then, "3")


@pytest.mark.parametrize(
    ("session", "kind", "target"),
    [
        (
            rerun("ModuleNotFoundError: No module named 'attrs'", "pip install attrs"),
            RemedyKind.INSTALL,
            "<the missing module>",
        ),
        (
            rerun("ModuleNotFoundError: No module named 'yaml'", "pip install PyYAML"),
            RemedyKind.INSTALL,
            "pyyaml",
        ),
        (
            rerun("ModuleNotFoundError: No module named 'shop'", "pip install -e ."),
            RemedyKind.INSTALL,
            "<the repository itself>",
        ),
        (
            rerun("FileNotFoundError: [Errno 2] No such file: 'out/a.txt'", "mkdir out"),
            RemedyKind.CREATE,
            "<parent folder>",
        ),
        (
            rerun("KeyError: 'vat'", then="SHOP_VAT=1 python run.py"),
            RemedyKind.SET_ENV,
            "SHOP_VAT=1",
        ),
    ],
)
def test_runs_agree_on_what_was_done(session: Session, kind: RemedyKind, target: str) -> None:
    assert (kind, target) in patterns(session)


@pytest.mark.parametrize(
    ("failing", "answer", "working", "kind", "target"),
    [
        (
            "open core.py",
            "File core.py not found",
            "open src/core.py",
            RemedyKind.OPEN,
            "<path with its folder>",
        ),
        (
            "open shop/shop/core.py",
            "File shop/shop/core.py not found",
            "open shop/core.py",
            RemedyKind.OPEN,
            "<path without the doubled folder>",
        ),
        (
            "ls src",
            "ls: cannot access 'src': No such file or directory",
            "ls",
            RemedyKind.SEARCH,
            "<current folder>",
        ),
        (
            "find. -name core.py",
            "/bin/bash: line 1: find.: command not found",
            "find . -name core.py",
            RemedyKind.USE,
            "find",
        ),
    ],
)
def test_a_path_that_was_put_right_has_the_pattern_of_its_correction(
    failing: str, answer: str, working: str, kind: RemedyKind, target: str
) -> None:
    session = Session().do(failing, answer).do(working, "core.py")
    assert patterns(session) == [(kind, target)]


@pytest.mark.parametrize(
    ("failing", "working", "target", "replaced"),
    [
        ("python run.py", "python3 run.py", "python3", "python"),
        ("pytest -q", "python -m pytest -q", "python -m pytest", "pytest"),
        ("python -m pytest", "python3 -m pytest", "python3", "python"),
    ],
)
def test_another_interpreter_is_used(
    failing: str, working: str, target: str, replaced: str
) -> None:
    unknown = f"/bin/bash: line 1: {failing.split(maxsplit=1)[0]}: command not found"
    (found,) = actions(Session().do(failing, unknown).do(working, "3"))
    assert found.pattern == RemedyPattern(RemedyKind.USE, target, replaced)
    general = describe_remedy([found], general=True)
    assert general == f"use `{target}` instead of `{replaced}`"


def test_a_file_that_exists_is_edited_in_place_of_created() -> None:
    session = Session().do("create run.py", "Error: File 'run.py' already exists.")
    (found,) = actions(session.open("run.py", "x = 1").edited(1, 1, "import os", "os.getcwd()"))
    assert describe_remedy([found], general=True) == "use `edit` instead of `create`"


def test_an_edit_of_a_name_in_the_error_says_what_was_done_with_it() -> None:
    session = Session().open("core.py", "total(kg=1)").failed("python core.py", BAD_ARGUMENT)
    session.edited(1, 1, "total(weight=1)").worked("python core.py")
    (found,) = actions(session)
    assert found.pattern == RemedyPattern(RemedyKind.EDIT, "<another name>", "<the argument>")
    assert (found.values_of("adds"), found.values_of("drops")) == (("weight",), ("kg",))
    assert found.values_of("file") == ("core.py",)


def test_settings_in_code_are_configured() -> None:
    session = Session().open("run.py", "import shop").failed("python run.py", "RuntimeError: no")
    session.edited(1, 1, "settings.configure()", "import shop").worked("python run.py")
    assert patterns(session) == [(RemedyKind.CONFIGURE, "settings.configure")]


def test_an_undefined_name_is_imported_in_the_edit_or_before_it() -> None:
    first = Session("core.py").refused(7, 8, "total = Decimal(1)", why=NO_NAME)
    first.edited(1, 1, "from decimal import Decimal").edited(8, 9, "total = Decimal(1)")
    put = Session("core.py").refused(1, 1, "total = Decimal(1)", why=NO_NAME)
    put.edited(1, 1, "from decimal import Decimal, ROUND_UP", "total = Decimal(1)")
    before, within = actions(first)[0], actions(put)[0]
    assert before.pattern.target == within.pattern.target == "import of <the undefined name>"
    assert (before.pattern.parameters, within.pattern.parameters) == (("before",), ("same edit",))
    assert within.target == "from decimal import Decimal"


@pytest.mark.parametrize(
    "command",
    [
        "docker compose up -d db",
        "make build",
        "git checkout feature",
        "python tools/generate.py",
        "./scripts/build.sh",
        "python manage.py migrate",
        "cd data && gunzip tmp.tif.gz",
    ],
)
def test_what_ran_before_the_same_command_worked_is_the_remedy(command: str) -> None:
    session = rerun("ConnectionRefusedError: refused", command)
    (action,) = actions(session)
    assert action.target == command.removeprefix("cd data && ")
    assert describe_remedy((action,)) == f"run `{action.target}`"
    assert not describe_remedy((action.general,))


@pytest.mark.parametrize("command", ["ls -la", "python -c 'import shop'", "make test", "sleep 5"])
def test_what_only_looks_or_waits_is_not_a_remedy(command: str) -> None:
    assert is_retry(actions(rerun("ConnectionRefusedError: refused", command)))


def test_a_mere_repetition_is_a_retry() -> None:
    session = Session().do("python run.py", "\nEXECUTION TIMED OUT").do("python run.py", "3")
    assert is_retry(actions(session))
    assert not is_retry(actions(rerun("KeyError: 'a'", "touch b")))


def test_general_terms_hold_no_name_path_or_code_of_the_project() -> None:
    session = Session().do("open vat/core.py", "File vat/core.py not found")
    session.do("open lib/tariffs/core.py", "x")
    general = describe_remedy(actions(session), general=True)
    assert general == "the file is in another folder: look it up by its name"
    assert [one.general.target for one in actions(session)] == ["<same name elsewhere>"]


def test_general_terms_are_silent_about_code_that_names_nothing_of_the_error() -> None:
    session = Session().open("core.py", "a = 1").failed("python core.py", "RuntimeError: no")
    session.edited(1, 1, "b = 2").worked("python core.py")
    assert describe_remedy(actions(session), general=True) == ""
    assert describe_remedy(actions(session)) == "change `a = 1` to `b = 2` in core.py"


def test_command_lines_of_a_general_remedy_are_its_wording() -> None:
    general = [one.general for one in actions(rerun("KeyError: 'a'", "pip install -e ."))]
    assert command_lines(general) == (describe_pattern(general[0].pattern),)


def test_placeholders_stand_for_the_names_of_the_message() -> None:
    names = names_in("ModuleNotFoundError", "No module named 'tariffs.vat'")
    assert names.mask("import tariffs.vat") == "import <the missing module>"
    assert names.fill("install `<the missing module>`") == "install `tariffs.vat`"


@pytest.mark.parametrize("kind", RemedyKind)
def test_every_kind_is_worded(kind: RemedyKind) -> None:
    action = RemedyAction(kind, "target", RemedyPattern(kind, "general", "old"), "old")
    assert describe_remedy([action])
    assert isinstance(describe_pattern(action.pattern), str)


def test_a_line_of_many_pipes_costs_no_time() -> None:
    target = f"python -m pytest tests/test_a.py -x{' | a' * 80} > out;"
    pattern = RemedyPattern(RemedyKind.USE, "<tests>")
    action = RemedyAction(RemedyKind.USE, target, pattern, "pytest tests/test_b.py")
    with deadline(5):
        assert "<tests>" in describe_remedy((action,))

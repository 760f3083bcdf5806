"""Errors that were cleared later, and what was done about them."""

import pytest

from contextgraph.model.values import replace
from contextgraph.trace import Recovery, command_lines, describe_remedy, trace
from tests.builders import run
from tests.sessions import Session, refusal, traceback, window

NO_NAME = "F821 undefined name 'Decimal'"
INDENT = "E999 IndentationError: unexpected indent"


def the_recovery(session: Session) -> Recovery:
    found = session.recoveries()
    assert len(found) == 1
    return found[0]


def remedy(session: Session) -> str:
    return describe_remedy(the_recovery(session).actions)


def ends(session: Session) -> list[tuple[int, int]]:
    return [(one.error_step, one.cleared_step) for one in session.recoveries()]


def test_a_missing_import_that_was_added_first_is_named() -> None:
    session = Session("core.py").refused(7, 8, "total = Decimal(1)", why=NO_NAME)
    session.edited(1, 1, "from decimal import Decimal").edited(8, 9, "total = Decimal(1)")
    found = the_recovery(session)
    assert (found.error_step, found.cleared_step, found.verified) == (1, 3, True)
    assert "add `from decimal import Decimal` to core.py first" in describe_remedy(found.actions)
    assert command_lines(found.actions) == ("edit core.py: from decimal import Decimal",)


def test_an_import_put_into_the_edit_itself_is_named() -> None:
    session = Session("core.py").refused(1, 1, "total = Decimal(1)", why=NO_NAME)
    session.edited(1, 1, "from decimal import Decimal", "total = Decimal(1)")
    assert "put `from decimal import Decimal` into the edit itself" in remedy(session)


def test_a_wider_range_is_named_where_the_text_stayed_the_same() -> None:
    session = Session("core.py").refused(8, 14, "low = 1", "high = 2", why=INDENT)
    session.edited(8, 16, "low = 1", "high = 2")
    assert "lines 8:16 instead of 8:14" in remedy(session)


def test_refusals_in_a_row_of_one_kind_are_one_recovery() -> None:
    session = Session("core.py").refused(8, 14, "low = 1", why=INDENT)
    session.refused(8, 15, "low = 1", why=INDENT).edited(8, 16, "low = 1")
    assert ends(session) == [(1, 3)]


def test_an_edit_elsewhere_does_not_clear_a_refused_one() -> None:
    session = Session("core.py").refused(70, 71, "total = 1", why=INDENT)
    session.edited(5, 5, "name = 2")
    assert ends(session) == []


def test_text_sent_to_the_wrong_file_is_cleared_in_the_right_one() -> None:
    session = Session("other.py").refused(7, 9, "class Cart:", "    pass", why=INDENT)
    session.open("core.py").edited(7, 9, "class Cart:", "    pass")
    assert "open `core.py`, then send the same edit" in remedy(session)


def test_an_installed_module_is_worded_as_the_command() -> None:
    session = Session().failed("python run.py", "ModuleNotFoundError: No module named 'attrs'")
    session.do("pip install attrs", "Successfully installed attrs-1").worked("python run.py")
    found = the_recovery(session)
    assert (found.error_step, found.cleared_step) == (0, 2)
    assert describe_remedy(found.actions) == "run `pip install attrs`"
    assert command_lines(found.actions) == ("pip install attrs",)


def test_an_installation_after_a_change_of_folder_is_worded_as_the_installation() -> None:
    session = Session().failed("echo 1 | python -m shop", "python: No module named shop")
    session.do("cd /srv/shop && pip install -e . 2>&1 | tail -1", "Successfully installed shop-1")
    session.worked("echo 1 | shop")
    assert remedy(session).startswith("run `pip install -e .`; ")


def test_looking_at_installed_packages_clears_nothing() -> None:
    session = Session().failed("python run.py", "ModuleNotFoundError: No module named 'attrs'")
    session.do("pip list", "pip 24").do("pip install attrs", "ok").worked("python run.py")
    assert "pip list" not in remedy(session)


def test_the_changed_line_stands_with_the_line_it_replaces() -> None:
    session = Session().open("core.py", "import x", "total(1)", "print()")
    session.failed(
        "python core.py", "TypeError: total() takes 0 positional arguments but 1 was given"
    )
    session.edited(2, 2, "total()").worked("python core.py")
    assert remedy(session) == "change `total(1)` to `total()` in core.py"


def test_several_edits_of_one_place_are_one_change() -> None:
    session = Session().open("core.py", "import x", "total(1)")
    session.failed(
        "python core.py", "TypeError: total() takes 0 positional arguments but 1 was given"
    )
    session.edited(2, 2, "import x", "total(2)")
    session.steps[-1] = replace(session.steps[-1], observation=window("core.py", ("", "total(2)")))
    session.edited(2, 2, "total()").worked("python core.py")
    assert remedy(session) == "change `total(1)` to `import x`, `total()` in core.py"


def test_what_a_refused_edit_shows_is_not_taken_for_the_file() -> None:
    session = Session().open("core.py", "a = 1", "b = 2")
    session.failed("python core.py", "NameError: name 'c' is not defined")
    shown = refusal("E999 SyntaxError: '(' was never closed") + window(
        "core.py", ("a = 1", "c = (")
    )
    session.do("edit 2:2\nc = (\nend_of_edit", shown)
    session.edited(2, 2, "c = 3").worked("python core.py")
    found = [describe_remedy(one.actions) for one in session.recoveries()]
    assert "change `b = 2` to `c = 3` in core.py" in found


def test_a_run_that_fails_further_on_has_cleared_the_first_error() -> None:
    session = Session("core.py").failed("python core.py", "TypeError: bad", at=3)
    session.edited(3, 3, "good()").failed("python core.py", "KeyError: 'vat'", at=9)
    found = the_recovery(session)
    assert (found.error_step, found.cleared_step, found.verified) == (1, 3, True)


def test_a_script_that_fails_by_itself_has_been_found() -> None:
    session = Session().do(
        "cd shop && python check.py", "bash: cd: shop: No such file or directory"
    )
    session.failed("python /shop/check.py", "KeyError: 'rye'").worked("ls", "core.py")
    assert ends(session) == [(0, 1)]


def test_the_last_program_of_a_line_is_what_its_output_shows() -> None:
    failed = Session().do("python fix.py; python check.py", traceback("KeyError: 'rye'"))
    assert ends(failed.worked("python check.py")) == [(0, 1)]


def test_a_syntax_error_far_from_the_first_is_another_one() -> None:
    session = Session().failed("python check.py", "SyntaxError: invalid syntax", at=13)
    session.failed("python check.py", "SyntaxError: invalid syntax", at=495)
    assert ends(session.worked("python check.py")) == [(0, 2), (1, 2)]


def test_a_program_that_imports_something_else_clears_nothing() -> None:
    session = Session().failed(
        "python -c 'from shop import Cart; c = Cart([]); print(c)'", "ValueError: empty"
    )
    assert ends(session.worked("python -c 'from shop import List; c = List([]); print(c)'")) == []


def test_an_error_that_only_hides_the_first_has_not_cleared_it() -> None:
    session = Session("core.py").failed("python core.py", "TypeError: bad", at=9)
    session.edited(3, 3, "import nothing")
    session.failed("python core.py", "ModuleNotFoundError: No module named 'nothing'", at=3)
    assert ends(session) == []


def test_a_time_out_clears_nothing() -> None:
    session = Session("core.py").failed("python core.py", "TypeError: bad", at=9)
    session.edited(3, 3, "while True: pass").do("python core.py", "\nEXECUTION TIMED OUT")
    assert ends(session) == []


def test_success_after_several_errors_is_where_the_goal_is_reached() -> None:
    session = Session("core.py").failed("python core.py", "TypeError: bad", at=3)
    session.edited(3, 3, "good()").failed("python core.py", "KeyError: 'vat'", at=9)
    session.edited(9, 9, "vat = 1").worked("python core.py")
    first, second = session.recoveries()
    assert (first.error_step, first.cleared_step) == (1, 5)
    assert "`good()`" in describe_remedy(first.actions)
    assert "vat" not in describe_remedy(first.actions)
    assert (second.error_step, second.cleared_step) == (3, 5)


@pytest.mark.parametrize(
    ("failing", "answer", "working", "shown"),
    [
        (
            "open core.py",
            "File core.py not found",
            "open src/core.py",
            "[File: /shop/src/core.py (1 lines total)]\n1:x",
        ),
        (
            'search_dir "vat" src',
            "Directory src not found",
            'search_dir "vat" shop',
            'Found 1 matches for "vat" in /shop/shop',
        ),
        (
            "goto 143",
            "Error: <line> must be less than or equal to 11",
            "open core.py 143",
            "[File: /shop/core.py (200 lines total)]\n143:x",
        ),
        (
            "find. -name core.py",
            "/bin/bash: line 1: find.: command not found",
            "find . -name core.py",
            "./core.py",
        ),
        ("ls src", "ls: cannot access 'src': No such file or directory", "ls", "core.py"),
    ],
)
def test_a_mistyped_look_is_cleared_by_the_right_one(
    failing: str, answer: str, working: str, shown: str
) -> None:
    found = the_recovery(Session().do(failing, answer).do(working, shown))
    assert describe_remedy(found.actions) == f"use `{working}` instead of `{failing}`"
    assert not found.workaround


@pytest.mark.parametrize(
    ("failing", "answer", "other", "shown"),
    [
        ("ls issues", "ls: cannot access 'issues': No such file or directory", "ls src", "core.py"),
        (
            "rm check.py",
            "rm: cannot remove 'check.py': No such file or directory",
            "rm core.py",
            "",
        ),
        (
            "git clone x y",
            "fatal: repository 'x' does not exist",
            "git clone --help",
            "GIT-CLONE(1)",
        ),
        (
            'find_file "core.py" src',
            "Directory src not found",
            'find . -name "core.py"',
            "Your command ran successfully and did not produce any output.",
        ),
        (
            'curl shop.org | search_file "vat"',
            "curl: (23) Failure writing output to destination",
            'curl shop.org/en | search_file "vat"',
            'No matches found for "vat"',
        ),
    ],
)
def test_something_else_that_works_clears_nothing(
    failing: str, answer: str, other: str, shown: str
) -> None:
    assert ends(Session().do(failing, answer).do(other, shown)) == []


@pytest.mark.parametrize(("wanted", "ends"), [("Cart", [1]), ("Till", [])])
def test_a_search_for_another_class_clears_nothing(wanted: str, ends: list[int]) -> None:
    session = Session()
    for name, is_error in (("Cart", True), (wanted, False)):
        session.do(f"search_class --class_name {name}", f"class {name}")
        action = replace(session.steps[-1].action, arguments={"class_name": name})
        session.steps[-1] = replace(session.steps[-1], action=action, is_error=is_error)
    assert [one.cleared_step for one in session.recoveries()] == ends


def test_a_search_for_the_same_by_another_command_is_the_same_look() -> None:
    session = Session().do('search_file "vat"', "No file open. Use the open command first.")
    session.do('search_dir "vat"', 'Found 1 matches for "vat" in /shop')
    assert ends(session) == [(0, 1)]


def test_most_of_a_text_left_out_is_given_up_not_cleared() -> None:
    lines = ("def total(cart):", "    tax = vat(cart)", "    return tax(", "    # end of total")
    session = Session("core.py").refused(8, 8, *lines, why="E999 SyntaxError: '(' was never closed")
    session.edited(8, 10, "    # end of total")
    assert ends(session) == []


def test_another_wrong_value_at_the_same_line_has_cleared_nothing() -> None:
    session = Session("core.py").failed("python core.py", "RuntimeError: no such cart: vat")
    session.edited(3, 3, "cart('tax')").failed("python core.py", "RuntimeError: no such cart: tax")
    assert ends(session) == []


def test_a_file_named_in_the_edit_command_is_to_be_left_out() -> None:
    session = Session("core.py").do(
        "edit core.py 5:5\nx = 1\nend_of_edit", "Usage: edit <start_line>:<end_line>"
    )
    assert remedy(session.edited(5, 5, "x = 1")).startswith("leave out the file")


def test_the_lines_that_hold_what_the_error_names_come_first() -> None:
    lines = ("a = 1", "b = 2", "c = 3", "total(vat=2)")
    session = Session().open("core.py", *lines)
    session.failed("python core.py", "TypeError: total() got an unexpected keyword argument 'vat'")
    session.edited(1, 4, "a = 10", "b = 20", "c = 30", "total(2)").worked("python core.py")
    assert "`total(vat=2)`" in remedy(session)


def test_the_search_that_found_the_path_is_named() -> None:
    session = Session().do("open core.py", "File core.py not found")
    session.do('find_file "core.py"', 'Found 1 matches for "core.py" in /shop:\n/shop/src/core.py')
    session.open("src/core.py", "x = 1")
    assert remedy(session).startswith('look it up with `find_file "core.py"`; then use `open')


def test_a_search_that_finds_nothing_clears_nothing() -> None:
    session = Session().do('search_dir "vat" src', "Directory src not found")
    session.do('search_dir "vat" shop', 'No matches found for "vat" in /shop/shop')
    assert ends(session) == []


def test_another_program_in_place_of_an_unknown_one_is_a_workaround() -> None:
    session = Session().do("tree src/shop", "/bin/bash: line 1: tree: command not found")
    session.do("find src/shop", "src/shop/core.py")
    assert the_recovery(session).workaround


@pytest.mark.parametrize(
    "fix",
    [
        ("try:", "    total()", "except TypeError:", "    pass"),
        ("# total()",),
        ("# total()", "print(12)"),
        ("total = None",),
    ],
)
def test_catching_or_cutting_out_the_failure_is_a_workaround(fix: tuple[str, ...]) -> None:
    session = Session().open("core.py", "total()").failed("python core.py", "TypeError: bad", at=1)
    session.edited(1, 1, *fix).worked("python core.py")
    assert the_recovery(session).workaround


def test_a_stand_in_for_a_module_that_cannot_be_imported_is_a_workaround() -> None:
    session = Session().open("t.py", "from vcr import Tape", "Tape()")
    session.failed("pytest t.py", "ModuleNotFoundError: No module named 'vcr'", file="t.py", at=1)
    session.edited(1, 1, "class Tape:", "    pass").worked("pytest t.py", "1 passed in 0.01s")
    assert the_recovery(session).workaround


def test_an_import_from_the_right_place_is_not_a_workaround() -> None:
    session = Session().open("t.py", "from vcr import Tape", "Tape()")
    session.failed("pytest t.py", "ModuleNotFoundError: No module named 'vcr'", file="t.py", at=1)
    session.edited(1, 1, "from shop.vcr import Tape").worked("pytest t.py", "1 passed in 0.01s")
    assert not the_recovery(session).workaround


def test_an_assertion_that_was_taken_away_is_a_workaround() -> None:
    session = Session().open("t.py", "assert total() == 3")
    session.failed("python t.py", "AssertionError", file="t.py", at=1)
    session.edited(1, 1, "print(total())").worked("python t.py", "4")
    assert the_recovery(session).workaround


def test_passing_part_of_the_tests_does_not_clear_the_failure_of_all() -> None:
    session = Session().failed("pytest tests", "ImportError: no", file="tests/test_a.py")
    session.worked("pytest tests/test_b.py", "1 passed in 0.01s")
    assert ends(session) == []


def test_an_error_that_is_never_cleared_is_not_a_recovery() -> None:
    assert ends(Session().failed("python core.py", "TypeError: bad").worked("ls", "core.py")) == []


def test_an_answer_that_the_log_lacks_clears_nothing() -> None:
    session = Session().failed("python core.py", "TypeError: bad").do("python core.py", None)
    assert ends(session) == []


def test_command_lines_are_short_and_few() -> None:
    session = Session().open("core.py", "total(1)").failed("python core.py", "TypeError: bad", at=1)
    session.edited(1, 1, "total()").worked("python core.py")
    lines = command_lines(the_recovery(session).actions)
    assert all(len(line) <= 200 for line in lines)
    assert len(lines) <= 6


@pytest.mark.parametrize(
    ("again", "expected"),
    [("check_totals2.py", [(1, 2)]), ("check_totals_simple.py", [(1, 2)]), ("check_tax.py", [])],
)
def test_a_script_written_again_under_a_similar_name_has_the_same_goal(
    again: str, expected: list[tuple[int, int]]
) -> None:
    session = Session("core.py").failed("python check_totals.py", "KeyError: 'vat'")
    assert ends(session.worked(f"python {again}")) == expected


MISSING = "Traceback (most recent call last):\nModuleNotFoundError: No module named 'flour'"


@pytest.mark.parametrize(
    ("command", "cleared"), [("pip install flour", True), ("pip install yeast", False)]
)
def test_a_missing_module_is_cleared_by_a_run_after_its_installation(
    command: str, cleared: bool
) -> None:
    steps = [("python bake.py", MISSING, 1), (command, "Successfully installed", 0)]
    found = trace(run([*steps, ("python taste.py", "sweet", 0)])).recoveries
    assert [(one.error_step, one.cleared_step) for one in found] == [(0, 2)] * cleared
    # Nothing shows that the other program needs it.
    assert not any(one.verified for one in found)


FAILED = "Traceback (most recent call last):\nValueError: too hot"


@pytest.mark.parametrize(
    ("between", "later", "expected"),
    [
        ("echo 'cool()' >> oven.py", "python taste.py", [(0, 2)]),
        ("cat oven.py", "python taste.py", []),
        ("pip list", "python taste.py", []),
        ("echo 'cool()' >> oven.py", "python --version", []),
    ],
)
def test_another_program_after_a_change_leaves_an_error_behind(
    between: str, later: str, expected: list[tuple[int, int]]
) -> None:
    steps = [("python bake.py", FAILED, 1), (between, "ok", 0), (later, "sweet", 0)]
    read = trace(run(steps))
    assert [(one.error_step, one.cleared_step) for one in read.left_behind] == expected
    assert not any(one.verified for one in read.left_behind)
    assert read.recoveries == ()


def test_the_same_program_clears_its_error_where_it_runs_again() -> None:
    steps = [("python bake.py", FAILED, 1), ("echo 'cool()' >> oven.py", "", 0)]
    steps += [("python taste.py", "sweet", 0), ("python bake.py", "baked", 0)]
    (found,) = trace(run(steps)).recoveries
    assert (found.cleared_step, found.verified) == (3, True)


def test_a_list_of_packages_clears_no_installation() -> None:
    refused = "ERROR: Could not find a version that satisfies the requirement flour"
    steps = [("pip install flour", refused, 1), ("conda list flour", "# packages", 0)]
    assert trace(run(steps)).recoveries == ()


@pytest.mark.parametrize(
    ("later", "cleared"),
    [
        ("python tests/runtests.py oven", True),
        ("python -m django test oven.test_bread", True),
        ("python tests/runtests.py shop", False),
    ],
)
def test_the_same_tests_may_be_run_by_another_runner(later: str, cleared: bool) -> None:
    failed = "E   ImproperlyConfigured: no settings\n=== 1 error in 0.1s ==="
    steps = [("pytest tests/oven/test_bread.py", failed, 1), (later, "Ran 3 tests\n\nOK", 0)]
    assert bool(trace(run(steps)).recoveries) is cleared


def test_tests_that_were_not_found_are_cleared_by_a_run_of_others() -> None:
    missing = "ERROR: file or directory not found: tests/test_oven.py\n"
    steps = [("pytest tests/test_oven.py", missing, 4), ("ls tests", "test_bread.py", 0)]
    (found,) = trace(run([*steps, ("pytest tests/test_bread.py", "2 passed", 0)])).recoveries
    assert (found.error_step, found.cleared_step) == (0, 2)


def test_of_a_long_command_the_beginning_and_the_end_are_shown() -> None:
    tests = " ".join(f"tests/test_oven_{number}.py" for number in range(20))
    steps = [(f"pytest {tests}", "E   KeyError: 'rye'\n1 failed", 1)]
    found = trace(run([*steps, (f"pytest {tests} -p no:yeast", "2 passed", 0)])).recoveries
    words = describe_remedy(found[0].actions)
    assert "`pytest tests/test_oven_0.py" in words
    assert "-p no:yeast`" in words


@pytest.mark.parametrize(
    ("report", "verified"), [("1 failed", False), ("1 failed, 3 passed", True)]
)
def test_an_installed_program_has_to_work_once(report: str, verified: bool) -> None:
    failed = f"E   ImproperlyConfigured: no settings\n===== {report} in 0.10s ====="
    steps = [
        ("python -m pytest", "/usr/bin/python: No module named pytest", 1),
        ("pip install pytest", "Successfully installed", 0),
        ("python -m pytest", failed, 1),
    ]
    assert [one.verified for one in trace(run(steps)).recoveries] == [verified]


NO_F_STRINGS = 'File "check.py", line 3\n    print(f"{x}")\nSyntaxError: invalid syntax'
NOT_FITTING = "patch: **** malformed patch at line 3: x"
MISTAKE = traceback("NameError: name 'end' is not defined")
SCRIPT = "cat > {0}.py << 'EOF'\ntext = open('lib/core.py').read()\nopen('lib/core.py', 'w')\nEOF"
FIX = (SCRIPT.format("fix_two") + "\npython fix_two.py", "Written", 0)


def ended(*steps: tuple[str, str, int]) -> list[tuple[int, int]]:
    read = trace(run([*steps]))
    return sorted(
        (one.error_step, one.cleared_step) for one in (*read.recoveries, *read.left_behind)
    )


@pytest.mark.parametrize(("interpreter", "end"), [("python3", 1), ("python", 2)])
def test_an_error_of_the_interpreter_is_cleared_where_another_one_gets_further(
    interpreter: str, end: int
) -> None:
    command = f"cd a && {interpreter} check.py"
    steps = [("cd a && python check.py", NO_F_STRINGS, 1)]
    steps += [(command, traceback("AssertionError: 3 != 4"), 1), (command, "fine", 0)]
    assert ended(*steps) == [(0, end), (1, 2)]


@pytest.mark.parametrize(
    "failed",
    [
        (SCRIPT.format("mend") + "\npython mend.py", MISTAKE, 1),
        ("patch -p1 < fix.patch", NOT_FITTING, 2),
        ("git apply fix.patch", "error: corrupt patch at line 14", 128),
        (
            "sed -i 's/(/)' lib/core.py",
            "sed: -e expression #1, char 5: unterminated `s' command",
            1,
        ),
    ],
    ids=["script", "patch", "git", "sed"],
)
def test_a_failed_change_of_a_file_is_cleared_by_other_means(failed: tuple[str, str, int]) -> None:
    assert ended(failed, FIX) == [(0, 1)]


def test_a_script_that_edits_is_no_version_of_one_that_shows_the_error() -> None:
    check = ("python check_two.py", MISTAKE, 1)
    assert ended(check, FIX, ("python check_two.py", "fine", 0)) == [(0, 2)]


def test_the_first_program_that_showed_an_error_may_clear_it() -> None:
    later = ("python show_error2.py", MISTAKE, 1)
    steps = [("python show_error.py", MISTAKE, 1), later, *[("cat a.py", "x", 0)] * 9]
    assert ended(*steps, ("python show_error.py", "fine", 0)) == [(0, 11)]


@pytest.mark.parametrize(("name", "found"), [("test_rye", [(0, 1)]), ("test_oat", [])])
def test_tests_that_their_runner_cannot_run_may_be_called_by_a_program(
    name: str, found: list[tuple[int, int]]
) -> None:
    failed = traceback("TypeError: testpaths expects a list")
    by_hand = f'python -c "from tests.test_oven import *; {name}()"'
    assert ended(("pytest tests/oven.py::test_rye", failed, 1), (by_hand, "done", 0)) == found


@pytest.mark.parametrize(("waited", "found"), [(0, [(0, 1)]), (9, [])])
def test_tests_that_a_program_soon_runs_in_place_of_their_runner_count(
    waited: int, found: list[tuple[int, int]]
) -> None:
    missing = ("python -m pytest tests", "/usr/bin/python: No module named pytest", 1)
    by_hand = ("python run_tests_here.py", "....\nRan 4 tests in 0.016s\n\nOK", 0)
    assert ended(missing, *[("cat a.py", "x", 0)] * waited, by_hand) == found


def test_a_missing_test_runner_is_cleared_by_a_run_of_it_only() -> None:
    missing = ("python -m pytest tests", "/usr/bin/python: No module named pytest", 1)
    steps = [missing, ("pip install -e .", "Successfully installed", 0), ("python a.py", "3", 0)]
    assert ended(*steps) == []
    assert ended(*steps, ("pip install pytest", "Successfully installed", 0)) == []
    assert ended(*steps, ("python -m pytest tests", "2 passed", 0)) == [(0, 3)]


NO_YAML = "ModuleNotFoundError: No module named 'yaml'"


def installed_by(line: str, output: str) -> list[str]:
    """Return what a run installed that met a missing module, ran *line* and went on."""
    raw = run(
        [("python a.py", NO_YAML, 1), (line, output, 0), ("python a.py", "done", 0)],
    )
    return [action.target for one in trace(raw).recoveries for action in one.actions]


def test_of_alternatives_only_what_ran_is_the_remedy() -> None:
    line = "pip install pyyaml || pip install yaml 2>/dev/null || echo failed"
    assert installed_by(line, "Successfully installed pyyaml-6.0") == ["pyyaml"]


def test_what_was_installed_before_is_no_remedy() -> None:
    output = "Requirement already satisfied: pyyaml in /usr/lib/python3/dist-packages (6.0)"
    assert "pyyaml" not in installed_by("pip install pyyaml", output)
    assert installed_by("pip install pyyaml", f"{output}\nSuccessfully installed a-1") == ["pyyaml"]

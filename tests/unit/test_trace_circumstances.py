"""How an attempt failed, in statements that other failures can share."""

import pytest

from contextgraph.model import RemedyKind, RemedyPattern, State
from contextgraph.trace import circumstances_of, could_apply, names_in, shows_cause, signature_of

UNDEFINED = """Your proposed edit has introduced new syntax error(s).

ERRORS:
- F821 undefined name '{}'
"""
REFUSED = """Your proposed edit has introduced new syntax error(s).

ERRORS:
- E999 IndentationError: unexpected indent

This is how your edit would have looked if applied
10:    total = 0
11:    print(total)
12:        total += rate(item)

This is the original code before your edit
9:def price(items):
10:    total = 0
11:    for item in items:
12:        total += rate(item)
13:    return total
"""


def circumstances(attempt: str, shown: str) -> tuple[str, ...]:
    error = signature_of(shown)
    assert error is not None
    return circumstances_of(error, attempt, shown)


@pytest.mark.parametrize(
    ("line", "name", "use"),
    [
        ("    path = os.sep", "os", "standard module"),
        ("    path = Path(here)", "Path", "class"),
        ("    path = cart.path", "cart", "object"),
        ("    cart(path)", "cart", "function"),
        ("    path = [cart]", "cart", "value"),
        ("    path = posix", "cart", "nothing in the edit"),
    ],
)
def test_how_an_undefined_name_is_used(line, name, use):
    found = circumstances(f"edit 3:3\n{line}\nend_of_edit", UNDEFINED.format(name))
    assert f"undefined name used as {use}" in found


def test_how_an_edit_fits_the_lines_around_it():
    assert circumstances("edit 11:11\n    print(total)\nend_of_edit", REFUSED) == (
        "attempt by edit",
        "first line indented no more than before",
        "line behind indented more than the last",
        "one line replaced",
        "opening of a block replaced",
        "text about other lines",
        "text not longer than the range",
    )


def test_an_edit_that_repeats_the_opening_of_a_block():
    text = "    for item in items:\n        total += rate(item)"
    found = circumstances(f"edit 11:11\n{text}\nend_of_edit", REFUSED)
    assert "no opening of a block replaced" in found
    assert "text longer than the range" in found


def test_of_lines_that_are_not_shown_only_the_range_is_known():
    assert circumstances("edit 70:79\n    x\nend_of_edit", REFUSED) == (
        "attempt by edit",
        "several lines replaced",
        "text not longer than the range",
    )


@pytest.mark.parametrize(
    ("pattern", "attempt", "applies"),
    [
        (RemedyPattern(RemedyKind.USE, "python3", "python"), "python a.py", True),
        (RemedyPattern(RemedyKind.USE, "python3", "python"), "python3 a.py", False),
        (RemedyPattern(RemedyKind.USE, "python3", "python"), "", True),
        (RemedyPattern(RemedyKind.USE, "find", "find<its argument>"), "find. -name a", True),
        (RemedyPattern(RemedyKind.SEARCH, "<current folder>", "", ("ls",)), "ls app", True),
        (RemedyPattern(RemedyKind.SEARCH, "<current folder>", "", ("ls",)), "find app", False),
        (RemedyPattern(RemedyKind.EDIT, "", "import of <the name>"), "python a.py", True),
    ],
)
def test_what_the_attempt_did_not_do_cannot_be_replaced(pattern, attempt, applies):
    assert could_apply(pattern, attempt, names_in("", "")) is applies


@pytest.mark.parametrize(
    ("attempt", "shown", "applies"),
    [
        ("edit 4:5\nuse(rates)\nend_of_edit", "", True),
        ("edit 4:5\nrates = load()\nend_of_edit", "", False),
        ("edit 4:5\nuse(rates)\nend_of_edit", "[File]\n8:rates = load()\n", False),
        ("edit 4:5\nassert rates == 2\nend_of_edit", "", True),
        ("edit 4:5\nuse(prices)\nend_of_edit", "", False),
        ("edit 4:5", "", True),  # without its text nothing is known of it
        ("edit 4:5\nuse(rates)\nend_of_edit", "[File]\n1:import rates as tax\n", False),
        ("edit 4:5\nuse(rates)\nend_of_edit", "[File]\n1:from rates import tax\n", True),
    ],
)
def test_a_variable_that_the_file_sets_is_not_to_be_imported(attempt, shown, applies):
    pattern = RemedyPattern(RemedyKind.EDIT, "import of <the undefined name>")
    names = names_in("F821", "undefined name 'rates'")
    assert could_apply(pattern, attempt, names, shown) is applies


@pytest.mark.parametrize(
    ("attempt", "applies"),
    [("edit core.py 4:5", True), ("edit 4:5", False), ("edit test_core.py 4:5", False)],
)
def test_a_file_name_is_left_out_only_where_that_file_is_open(attempt, applies):
    pattern = RemedyPattern(RemedyKind.RESEND, "<no file name>")
    state = State(last_action=f"{attempt}\nx = 1.5\nend_of_edit", open_file="/shop/core.py")
    assert shows_cause(pattern, state) is applies


@pytest.mark.parametrize(("open_file", "applies"), [("/shop/cli.py", False), ("/shop/a.py", True)])
def test_no_folder_is_made_beside_a_module_of_its_name(open_file, applies):
    pattern = RemedyPattern(RemedyKind.CREATE, "<parent folder>")
    state = State(last_action="create shop/cli/stage.py", open_file=open_file)
    assert shows_cause(pattern, state) is applies


@pytest.mark.parametrize(("others", "applies"), [(("os",), True), (("item", "os"), False)])
def test_one_import_is_missing_where_no_other_name_is_undefined(others, applies):
    pattern = RemedyPattern(RemedyKind.EDIT, "import of <the undefined name>", "", ("same edit",))
    shown = "".join(f"- F821 undefined name '{name}'\n" for name in ("os", *others))
    state = State(last_action="edit 4:5\nos.getcwd()\nend_of_edit", last_outcome=shown)
    assert shows_cause(pattern, state) is applies


@pytest.mark.parametrize("target", ["import of", "definition of", "assignment of"])
def test_what_the_file_defines_needs_no_value(target):
    pattern = RemedyPattern(RemedyKind.EDIT, f"{target} <the undefined name>")
    names = names_in("F821", "undefined name 'Rates'")
    attempt = "edit 4:5\nuse(Rates)\nend_of_edit"
    assert could_apply(pattern, attempt, names)
    assert not could_apply(pattern, attempt, names, "[File]\n8:class Rates:\n")


@pytest.mark.parametrize(("path", "applies"), [("src", True), ("src/app", False)])
def test_another_folder_than_src_is_for_a_missing_src_alone(path, applies):
    pattern = RemedyPattern(RemedyKind.SEARCH, "<another path>", "src")
    names = names_in("tool: Directory not found", f"Directory {path} not found")
    assert could_apply(pattern, f"ls {path}", names) is applies


@pytest.mark.parametrize(
    ("target", "path", "applies"),
    [
        ("<path without the doubled folder>", "shop/shop/cart.py", True),
        ("<path without the doubled folder>", "a/b.py", False),
        ("<path from the root>", "shop/cart.py", True),
        ("<path from the root>", "cart.py", False),
    ],
)
def test_only_a_path_with_the_folders_in_question_is_changed(target, path, applies):
    pattern = RemedyPattern(RemedyKind.OPEN, target)
    names = names_in("tool: File not found", f"File {path} not found")
    assert could_apply(pattern, f"open {path}", names) is applies


VIEW = "[File: shop/cart.py (4 lines total)]\n1:def total(\n2:    items,\n3:):\n4:    pass\n"


@pytest.mark.parametrize(
    ("target", "attempt", "shown", "is_shown"),
    [
        ("<the file to edit>", "edit 9:9\nx = 1\nend_of_edit", VIEW, True),
        ("<the file to edit>", "edit 2:2\nx = 1\nend_of_edit", VIEW, False),
        ("<more lines>", "edit 1:1\ndef total(\n    items,\n):\nend_of_edit", VIEW, True),
        ("<more lines>", "edit 1:1\nx = 1\nend_of_edit", VIEW, False),
        ("<more lines>", "sed -i s/a/b/ shop/cart.py", VIEW, False),
        ("<current folder>", "ls src", "", True),
        ("<current folder>", "ls src 2>/dev/null || echo none", "", False),
        ("<current folder>", 'find_file "oven.py" src', "", True),
        ("<current folder>", "ls -la oven.py", "", False),
        ("<another path>", 'find_file "Oven" src', "", False),
        ("<current folder>", 'find_file "Oven" src', "", False),
        ("<fewer lines>", "edit 2:2\nx = 1\nend_of_edit", VIEW, True),
    ],
)
def test_a_cause_has_to_be_shown_where_several_are_possible(target, attempt, shown, is_shown):
    state = State(last_action=attempt, last_outcome=shown)
    assert shows_cause(RemedyPattern(RemedyKind.RESEND, target), state) is is_shown

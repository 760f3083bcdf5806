"""Readings of actions."""

import pytest

from contextgraph.model import Action, ActionKind, Step
from contextgraph.trace import canonical, read_action
from contextgraph.trace.actions import ActionReader

READINGS = [
    # command line, kind, verb, targets
    ("open oven/dough.py 120", ActionKind.VIEW, "open", ("oven/dough.py",)),
    ("goto 88", ActionKind.VIEW, "goto", ("oven/open.py",)),
    ("create bake_test.py", ActionKind.CREATE, "create", ("bake_test.py",)),
    ('search_dir "yeast" oven', ActionKind.SEARCH, "search_dir", ()),
    ('find_file "dough.py" oven', ActionKind.SEARCH, "find_file", ("dough.py",)),
    ("submit", ActionKind.SUBMIT, "submit", ()),
    ("ls -la", ActionKind.LIST, "ls", ()),
    ("cd /bakery && python bake.py", ActionKind.RUN, "python", ("bake.py",)),
    (
        "PYTHONPATH=. timeout 60 pytest tests/test_a.py",
        ActionKind.TEST,
        "pytest",
        ("tests/test_a.py",),
    ),
    (
        "python -m pytest tests/test_a.py::test_b | tail -3",
        ActionKind.TEST,
        "pytest",
        ("tests/test_a.py::test_b",),
    ),
    ("python -m unittest tests.test_a", ActionKind.TEST, "unittest", ("tests.test_a",)),
    ("pip install -e .", ActionKind.INSTALL, "pip", ()),
    ("python -m pip install flour", ActionKind.INSTALL, "pip", ()),
    ("pytest tests/test_a.py 2>&1 | tail", ActionKind.TEST, "pytest", ("tests/test_a.py",)),
    ("npm run test", ActionKind.TEST, "npm", ()),
    ("cargo build", ActionKind.RUN, "cargo", ()),
    ("grep -rn 'a && b' oven | head -5", ActionKind.SEARCH, "grep", ()),
    ("cat oven/dough.py | sed -n '1,20p'", ActionKind.VIEW, "cat", ("oven/dough.py",)),
    ("cat oven/dough.csv | python bake.py | head", ActionKind.RUN, "python", ("bake.py",)),
    ("sed -n '1,20p' oven/dough.py", ActionKind.VIEW, "sed", ("oven/dough.py",)),
    ("rm bake_test.py", ActionKind.DELETE, "rm", ("bake_test.py",)),
    ("git diff", ActionKind.VCS, "git", ()),
    ("for f in a b; do cat $f; done", ActionKind.VIEW, "cat", ()),
    ("echo 'done' > notes.txt", ActionKind.CREATE, "echo", ("notes.txt",)),
    ("python -c \"print('x; y')\"", ActionKind.RUN, "python", ()),
]


@pytest.mark.parametrize(("line", "kind", "verb", "targets"), READINGS)
def test_the_deciding_command_of_a_line_gives_its_kind(line, kind, verb, targets):
    reading = read_action(Action("bash", line), "/bakery", "/bakery/oven/open.py")

    assert (reading.kind, reading.verb) == (kind, verb)
    assert reading.targets == targets


def test_a_program_is_read_with_what_is_fed_to_it():
    lines = [f"echo {n} | oven bake -" for n in (1, 2)]
    one, other = (read_action(Action("bash", line), "/bakery", None) for line in lines)
    assert (one.verb, one.command) == ("oven", "echo 1 | oven bake -")
    assert one.command != other.command


def test_a_window_edit_changes_the_lines_of_the_open_file():
    reading = read_action(
        Action("edit", "edit 12:14\n    return dough\nend_of_edit"), "/bakery", "/bakery/oven.py"
    )

    assert reading.kind is ActionKind.EDIT
    assert reading.changed == ("oven.py",)
    assert reading.span == (12, 14)


def test_an_edit_without_a_range_is_not_a_command_line():
    text = "edit 3:3oven.py\n    rm dough\nend_of_edit"
    reading = read_action(Action("edit", text), "/bakery", "/bakery/oven.py")

    assert (reading.kind, reading.changed, reading.span) == (ActionKind.EDIT, ("oven.py",), None)


def test_a_redirection_is_not_an_argument():
    merged, plain = (
        read_action(Action("bash", f"python bake.py{more}"), None, None)
        for more in (" 2>&1 | head -20", "")
    )

    assert merged == plain


def test_an_edit_in_place_counts_as_an_edit_even_when_a_view_follows():
    reading = read_action(
        Action("bash", "cd /bakery && sed -i 's/a/b/' oven/dough.py && git diff"), None, None
    )

    assert reading.kind is ActionKind.EDIT
    assert reading.changed == ("oven/dough.py",)


def test_a_heredoc_is_a_file_and_no_commands():
    line = "cat <<'EOF' > check.py\nimport os; rm = 1\npytest\nEOF\npython check.py"

    reading = read_action(Action("bash", line), "/bakery", None)

    assert (reading.kind, reading.verb) == (ActionKind.RUN, "python")
    assert reading.changed == ("check.py",)


def test_a_program_on_the_line_that_writes_files_is_an_edit():
    line = "python - <<'EOF'\np = 'oven/dough.py'\ns = open(p).read()\nopen(p, 'w').write(s)\nEOF"

    reading = read_action(Action("bash", line), "/bakery", None)

    assert reading.kind is ActionKind.EDIT
    assert reading.changed == ("oven/dough.py",)


@pytest.mark.parametrize(
    ("tool", "arguments", "kind", "targets"),
    [
        (
            "str_replace_editor",
            {"command": "view", "path": "/testbed/a.py"},
            ActionKind.VIEW,
            ("a.py",),
        ),
        (
            "str_replace_editor",
            {"command": "insert", "path": "/testbed/a.py"},
            ActionKind.EDIT,
            ("a.py",),
        ),
        ("Edit", {"file_path": "/home/u/bakery/a.py"}, ActionKind.EDIT, ("a.py",)),
        ("Write", {"file_path": "/home/u/bakery/a.py"}, ActionKind.CREATE, ("a.py",)),
        ("Read", {"file_path": "/home/u/bakery/a.py"}, ActionKind.VIEW, ("a.py",)),
        ("Grep", {"pattern": "yeast"}, ActionKind.SEARCH, ()),
        ("TodoWrite", {"todos": []}, ActionKind.THINK, ()),
        ("Bash", {"command": "pytest -q"}, ActionKind.TEST, ()),
        ("execute_bash", {"command": "git status"}, ActionKind.VCS, ()),
        ("shell", {"command": ["bash", "-lc", "ls oven"]}, ActionKind.LIST, ()),
        ("finish", {"message": "done"}, ActionKind.SUBMIT, ()),
    ],
)
def test_tools_of_other_harnesses_are_read_from_their_arguments(tool, arguments, kind, targets):
    reading = read_action(Action(tool, tool, arguments), "/home/u/bakery", None)

    assert reading.kind is kind
    assert reading.targets == targets


@pytest.mark.parametrize(
    ("path", "cwd", "expected"),
    [
        ("oven.py", "/bakery/src", "src/oven.py"),
        ("/bakery/src/oven.py", None, "src/oven.py"),
        ("/workspace/bakery/src/oven.py", None, "src/oven.py"),
        ("/home/u/bakery/oven.py", "/home/u/bakery", "oven.py"),
        ("/tmp/oven.py", "/bakery", "/tmp/oven.py"),
    ],
)
def test_targets_are_relative_to_the_repository(path, cwd, expected):
    assert read_action(Action("bash", f"cat {path}"), cwd, None).targets == (expected,)


def test_attempts_that_differ_in_white_space_only_are_the_same_action():
    assert canonical(Action("bash", "python  bake.py\n")) == canonical(
        Action("bash", "python bake.py")
    )


def test_edits_are_the_same_only_with_file_lines_and_content():
    text = "edit 1:2\nx = 1  \nend_of_edit"

    assert canonical(Action("edit", text), "a.py") == canonical(
        Action("edit", "edit 1:2\nx = 1\nend_of_edit\n"), "a.py"
    )
    assert canonical(Action("edit", text), "a.py") != canonical(Action("edit", text), "b.py")
    assert canonical(Action("edit", text)) != canonical(
        Action("edit", "edit 1:3\nx = 1\nend_of_edit")
    )
    assert canonical(Action("edit", text)) != canonical(
        Action("edit", "edit 1:2\n x = 1\nend_of_edit")
    )


@pytest.mark.parametrize("line", ["cat ./alice/repo/oven/dough.py", "cat oven/dough.py"])
@pytest.mark.parametrize("start", ["", "cd ./alice/repo && "])
def test_a_home_folder_that_a_log_masks_is_not_doubled(line, start):
    reading = read_action(Action("bash", start + line), "./alice/repo", None)

    assert reading.targets == ("oven/dough.py",)


def test_a_file_outside_the_folder_of_a_masked_log_stays_outside():
    reading = read_action(Action("bash", "cat ./alice/notes.txt"), "./alice/repo", None)

    assert reading.targets == ("../notes.txt",)


def test_files_of_a_project_that_the_run_cloned_are_named_from_its_checkout() -> None:
    reader, found = ActionReader(), []
    for cwd, command in (
        ("/home/kim/src", "git clone --depth 1 https://git.example.org/acme/oven.git bake"),
        ("/home/kim/src", "cat bake/oven/dough.py ../src/notes.md"),
        ("/home/kim/src/bake/oven", "cd bake && cat oven/dough.py"),
        ("/home/kim/src/bake/oven", "cat dough.py"),
        ("/home/kim/src/bake/oven", "cat ../setup.py /tmp/log.txt"),
        ("/home/kim/src/bake/oven", "cat ../../notes.md"),
    ):
        step = Step(0, "", Action("bash", command), "", cwd=cwd)
        found.append(reader.push(step).targets)
    assert found[1:] == [
        ("oven/dough.py", "../notes.md"),
        ("oven/dough.py",),
        ("oven/dough.py",),
        ("setup.py", "/tmp/log.txt"),
        ("../notes.md",),
    ]

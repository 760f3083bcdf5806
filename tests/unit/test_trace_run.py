"""A whole run, and the files that a patch changes."""

import pytest

from contextgraph.model import Phase
from contextgraph.trace import files_changed, states_of, trace
from tests.sessions import Session, traceback

PATCH = """diff --git a/shop/core.py b/shop/core.py
index 1..2 100644
--- a/shop/core.py
+++ b/shop/core.py
@@ -1,3 +1,3 @@
 import x
--- a comment of SQL
+++ not a header
 y = 1
diff --git a/old name.py b/new name.py
similarity index 100%
rename from old name.py
rename to new name.py
diff --git a/gone.py b/gone.py
deleted file mode 100644
--- a/gone.py
+++ /dev/null
@@ -1 +0,0 @@
-x
"""


def test_a_trace_holds_every_step_and_what_they_come_to() -> None:
    session = Session("core.py").failed("python core.py", "TypeError: bad")
    session.edited(3, 3, "good()").worked("python core.py")
    found = trace(session.raw())
    assert [step.index for step in found.steps] == [0, 1, 2, 3]
    assert [step.error is not None for step in found.steps] == [False, True, False, False]
    assert [one.cleared_step for one in found.recoveries] == [3]
    assert found.loops == ()
    assert found.steps[2].phase is Phase.FIXING


def test_an_edit_applies_to_the_file_that_was_open_before_it() -> None:
    session = Session("core.py")
    session.open_file = "other.py"
    session.do("edit 1:1\nx = 1\nend_of_edit", "File updated.")
    assert session.read()[1].reading.targets == ("core.py",)


def test_a_run_without_steps_is_read() -> None:
    found = trace(Session().raw())
    assert (found.steps, found.loops, found.recoveries) == ((), (), ())


def test_the_files_of_a_patch_are_read_from_its_headers_only() -> None:
    assert files_changed(PATCH) == ("shop/core.py", "new name.py", "gone.py")


def test_a_diff_without_git_headers_is_read() -> None:
    patch = "--- a/core.py\t2024-01-01\n+++ b/core.py\t2024-01-02\n@@ -1 +1 @@\n-x\n+y\n"
    assert files_changed(patch) == ("core.py",)


def test_text_that_is_not_a_patch_changes_no_file() -> None:
    assert files_changed("I fixed it.\n") == ()


@pytest.mark.parametrize(
    "text",
    [
        "'\" " * 70_000,
        "&&" * 100_000,
        "cat <<EOF\n" * 20_000,
        "line 1 " * 30_000,
        "[File: " * 30_000,
    ],
    ids=["quotes", "operators", "heredocs", "numbers", "windows"],
)
def test_hostile_text_does_not_hold_up_the_reading(text: str) -> None:
    session = Session("core.py").do("python core.py", f"{text}\n{traceback('KeyError: 1')}")
    session.do(f"echo {text}", text).edited(1, 2, text).do("python core.py", "ok")
    found = trace(session.raw())
    assert len(found.steps) == len(list(states_of(session.raw()))) - 1 == 5
    assert files_changed(f"diff --git a/{text}") == ()

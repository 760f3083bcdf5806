"""The conditions that a run shows at its end."""

import pytest

from contextgraph.model import Condition, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.trace import trace
from tests.builders import NO_MODULE, run

NO_EDIT, NOT_RUN, NOT_TESTED = Condition.NO_EDIT, Condition.NOT_RUN, Condition.NOT_TESTED
NOT_REPRODUCED, ERROR_OPEN, RED = (
    Condition.NOT_REPRODUCED,
    Condition.ERROR_OPEN,
    Condition.TESTS_RED,
)
EDIT = ("sed -i 's/1/2/' shop/totals.py", "", 0)
TEST = ("python -m pytest -q", "3 passed\n", 0)
FAILED = ("python -m pytest -q", "FAILED tests/test_a.py::test_b - assert 1 == 2\n1 failed\n", 1)
SCRIPT = ("cat > check.py <<'EOF'\nimport shop\nEOF", "", 0)
FIX = (
    "cat > fix.py <<'EOF'\ntext = open('shop/totals.py').read()\n"
    "open('shop/totals.py', 'w').write(text)\nEOF"
)
PATCH = (
    "cat > fix.patch <<'EOF'\n--- a/shop/totals.py\n+++ b/shop/totals.py\n@@ -1 +1 @@\n-a\n+b\nEOF",
    "",
    0,
)
DIFF = ("git diff shop/totals.py > fix.patch", "", 0)
FIX_OF_ROOT = (FIX.replace("shop/totals.py", "setup.py"), "", 0)
NO_PYTEST = ("python -m pytest -q", "/usr/bin/python: No module named pytest\n", 1)
NOT_FOUND = "bash: line 1: shopp: command not found\n"
SHOWN = ("cat shop/totals.py", "rate = 1\n", 0)
OVERWRITTEN = ("cat > shop/totals.py <<'EOF'\nrate = 2\nEOF", "", 0)
COPIED = ("cp shop/totals.py shop/totals.py.orig", "", 0)
MOVED = ("sed 's/1/2/' shop/totals.py > new.py && mv new.py shop/totals.py", "", 0)
RUN_FIX = ("python fix.py", "", 0)
FAILING = ("python reproduce.py", NO_MODULE, 1)
GONE = ("sed -i 's/1/2/' gone.py", "sed: can't read gone.py: No such file or directory", 2)


def conditions_of(raw: RawTrajectory) -> tuple[Condition, ...]:
    return trace(raw).course.conditions


@pytest.mark.parametrize(
    ("commands", "conditions"),
    [
        ([("ls", "shop", 0)], {NO_EDIT}),
        ([EDIT], {NOT_REPRODUCED, NOT_RUN, NOT_TESTED}),
        ([TEST, EDIT, TEST], set()),
        ([EDIT, TEST], {NOT_REPRODUCED}),
        ([EDIT, ("pytest tests/test_totals.py", "3 passed\n", 0)], {NOT_REPRODUCED}),
        ([EDIT, ("pytest tests/test_carts.py", "3 passed\n", 0)], {NOT_REPRODUCED}),
        ([TEST, EDIT, ("python check.py", "Ran 3 tests in 0.1s\n\nOK\n", 0)], set()),
        ([TEST, EDIT, ("python test_check.py", "1.0\n", 0)], {NOT_TESTED}),
        ([TEST, EDIT, (TEST[0], "== 146 deselected in 0.02s ==\n", 5)], {NOT_TESTED, ERROR_OPEN}),
        ([TEST, EDIT, ("python -m unittest", "Ran 0 tests in 0.1s\n\nOK\n", 0)], {NOT_TESTED}),
        ([("echo a,b | shop total -", "3\n", 0), EDIT, TEST], set()),
        ([("cat shop/a.csv | sort | head", "3\n", 0), EDIT, TEST], {NOT_REPRODUCED}),
        ([TEST, EDIT, NO_PYTEST], {NOT_RUN, NOT_TESTED, ERROR_OPEN}),
        ([("shop total.csv", "3\n", 0), EDIT, TEST], set()),
        ([("shopp total.csv", NOT_FOUND, 127), EDIT, TEST], {NOT_REPRODUCED}),
        ([TEST, EDIT, TEST, ("git status", "", 0), ("submit", "", 0)], set()),
        ([TEST, EDIT, ("submit", "", 0)], {NOT_RUN, NOT_TESTED}),
        ([EDIT, TEST, EDIT, ("python demo.py", "", 0)], {NOT_REPRODUCED, NOT_TESTED}),
        ([TEST, EDIT, FAILED], {RED, ERROR_OPEN}),
        ([SCRIPT, ("python check.py", "", 0)], {NO_EDIT}),
        ([GONE], {NO_EDIT, ERROR_OPEN}),
        ([(FIX, "", 0)], {NO_EDIT, NOT_RUN}),
        ([(FIX, "", 0), RUN_FIX], {NOT_REPRODUCED, NOT_RUN, NOT_TESTED}),
        ([(f"{FIX}\npython fix.py", "", 0), TEST], {NOT_REPRODUCED}),
        (
            [("cat setup.py", "pins = 1", 0), FIX_OF_ROOT, RUN_FIX],
            {NOT_REPRODUCED, NOT_RUN, NOT_TESTED},
        ),
        ([FIX_OF_ROOT, RUN_FIX], {NO_EDIT}),
        (
            [PATCH, ("patch -p1 < fix.patch", "patching file shop/totals.py\n", 0), TEST],
            {NOT_REPRODUCED},
        ),
        ([TEST, EDIT, TEST, *[DIFF, ("cat fix.patch", "--- a/shop/totals.py", 0)] * 2], set()),
        ([SHOWN, OVERWRITTEN, TEST], {NOT_REPRODUCED}),
        ([OVERWRITTEN, TEST], {NO_EDIT}),
        ([SHOWN, COPIED, TEST], {NO_EDIT}),
        ([SHOWN, COPIED, MOVED, TEST], {NOT_REPRODUCED}),
        ([SHOWN, (f"{OVERWRITTEN[0]}\npytest -q", "3 passed\n", 0)], {NOT_REPRODUCED}),
        ([(FIX, "", 0), ("python fix.py", NO_MODULE, 1), TEST], {NO_EDIT}),
        (
            [TEST, EDIT, *[FAILING] * 6],
            {Condition.STUCK, Condition.LOOPED, ERROR_OPEN, NOT_TESTED},
        ),
        ([TEST, EDIT, *[FAILING] * 6, TEST], {Condition.LOOPED}),
    ],
)
def test_a_run_ends_with_conditions(
    commands: list[tuple[str, str, int]], conditions: set[Condition]
) -> None:
    raw = run(commands)
    assert set(conditions_of(raw)) == conditions


@pytest.mark.parametrize("status", ["exit_context", "submitted (exit_cost)", "LimitsExceeded"])
def test_a_run_that_used_up_its_budget_says_so(status: str) -> None:
    raw = run([TEST, EDIT, TEST], exit_status=status)
    assert conditions_of(raw) == (Condition.EXHAUSTED,)
    submitted = run([TEST, EDIT, TEST], exit_status="submitted")
    assert conditions_of(submitted) == ()


def test_a_test_without_an_answer_shows_nothing() -> None:
    raw = run([TEST, EDIT, TEST])
    last = replace(raw.steps[-1], observation=None, exit_code=None)
    unanswered = replace(raw, steps=(*raw.steps[:-1], last))
    assert conditions_of(unanswered) == (NOT_TESTED,)


def test_files_that_are_put_back_between_trials_are_no_loop() -> None:
    trial = ("python demo.py", "1.5\n", 0)
    back = ("cp shop/totals.py.orig shop/totals.py", "", 0)
    edits = [(f"sed -i 's/1/{number}/' shop/totals.py", "", 0) for number in range(8)]
    trials = [step for edit in edits for step in (edit, trial, back)]
    assert Condition.LOOPED not in conditions_of(run([SHOWN, COPIED, *trials]))

"""Signs that a run is about to be submitted too early."""

import pytest

from contextgraph.trace import SubmissionSign, read_steps, submission_signs
from tests.builders import NO_MODULE, run

EDIT = ("sed -i 's/1/2/' shop/totals.py", "", 0)
TEST = ("python -m pytest -q", "3 passed\n", 0)
SCRIPT = ("cat > check.py <<'EOF'\nimport shop\nEOF", "", 0)
FIX = (
    "cat > fix.py <<'EOF'\ntext = open('shop/totals.py').read()\n"
    "open('shop/totals.py', 'w').write(text)\nEOF"
)
RUN_FIX = ("python fix.py", "", 0)
FAILING = ("python reproduce.py", NO_MODULE, 1)


@pytest.mark.parametrize(
    ("commands", "signs"),
    [
        ([("ls", "shop", 0)], {SubmissionSign.NO_EDIT}),
        ([EDIT], {SubmissionSign.NOT_RUN, SubmissionSign.NOT_TESTED}),
        ([EDIT, TEST], set()),
        ([EDIT, ("pytest tests/test_totals.py", "3 passed\n", 0)], set()),
        ([EDIT, ("pytest tests/test_carts.py", "3 passed\n", 0)], {SubmissionSign.NOT_TESTED}),
        ([EDIT, TEST, ("git status", "", 0), ("submit", "", 0)], set()),
        ([TEST, EDIT, ("submit", "", 0)], {SubmissionSign.NOT_RUN}),
        ([SCRIPT, ("python check.py", "", 0)], {SubmissionSign.NO_EDIT}),
        ([("sed -i 's/1/2/' gone.py", "sed: can't read gone.py: No such file or directory", 2)],
         {SubmissionSign.NO_EDIT}),
        ([(FIX, "", 0)], {SubmissionSign.NO_EDIT, SubmissionSign.NOT_RUN}),
        ([(FIX, "", 0), RUN_FIX], {SubmissionSign.NOT_RUN, SubmissionSign.NOT_TESTED}),
        ([(f"{FIX}\npython fix.py", "", 0), TEST], set()),
        ([(FIX, "", 0), ("python fix.py", NO_MODULE, 1), TEST], {SubmissionSign.NO_EDIT}),
        ([EDIT, *[FAILING] * 6], {SubmissionSign.STUCK, SubmissionSign.NOT_TESTED}),
        ([EDIT, *[FAILING] * 6, TEST], set()),
    ],
)  # fmt: skip
def test_a_run_shows_what_is_missing(
    commands: list[tuple[str, str, int]], signs: set[SubmissionSign]
) -> None:
    assert submission_signs(read_steps(run(commands))) == signs

"""Which remedies of other runs concern a loop."""

import pytest

from contextgraph.advising.loops import concerns, names_of_loop
from contextgraph.model import ErrorSignature, Family, RemedyAction, RemedyKind, RemedyPattern

MESSAGE = "name 'tariff' is not defined"
ERROR = ErrorSignature(Family.PYTHON_EXCEPTION, "NameError", MESSAGE, MESSAGE)


def action(kind: RemedyKind, target: str, **parameters: str) -> RemedyAction:
    return RemedyAction(kind, target, RemedyPattern(kind), "", tuple(parameters.items()))


@pytest.mark.parametrize(
    ("remedy", "is_concerned"),
    [
        (action(RemedyKind.EDIT, "import tariff"), True),
        (action(RemedyKind.EDIT, "import zebra"), False),
        (action(RemedyKind.SET_ENV, "PYTHONPATH=lib", command="python reproduce.py"), True),
        (action(RemedyKind.CWD, "/"), True),
        (action(RemedyKind.RESEND, "3:8"), False),
    ],
)
def test_a_remedy_shares_a_name_with_the_loop(remedy: RemedyAction, is_concerned: bool) -> None:
    names = names_of_loop("python reproduce.py", ERROR)
    assert concerns((remedy,), names) is is_concerned


def test_the_repeated_command_is_not_a_name_of_the_loop() -> None:
    assert "python" not in names_of_loop("python reproduce.py", ERROR)

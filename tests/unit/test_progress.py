"""The bar that shows progress."""

import sys
from io import StringIO

import pytest

from contextgraph.cli.output import Progress


@pytest.mark.parametrize(
    ("is_terminal", "beside", "is_drawn"),
    [(True, True, False), (True, False, True), (False, True, True)],
)
def test_a_bar_is_not_drawn_over_what_is_printed_on_the_same_terminal(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool, beside: bool, is_drawn: bool
) -> None:
    drawn = StringIO()
    drawn.isatty = lambda: True  # type: ignore[method-assign]
    printed = StringIO()
    printed.isatty = lambda: is_terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", drawn)
    monkeypatch.setattr(sys, "stdout", printed)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(lambda: 2, beside_output=beside) as bar:
        bar.advance(1)
    assert ("50%" in drawn.getvalue()) is is_drawn

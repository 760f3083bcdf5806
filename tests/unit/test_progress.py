"""The bar that shows progress."""

import sys
from io import StringIO
from pathlib import Path

import pytest

from contextgraph.cli.output import Progress
from contextgraph.readers import FILE_WEIGHT, read, size_of


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


def test_short_files_before_long_ones_move_the_bar(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = StringIO()
    drawn.isatty = lambda: True  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", drawn)
    monkeypatch.setenv("TERM", "xterm")
    for name, size in (("a", 1), ("b", 1), ("c", 200_000)):
        (tmp_path / f"{name}.txt").write_text("kettle" * size)
    with Progress(lambda: size_of([tmp_path], of_each_file=FILE_WEIGHT)) as bar:
        list(read(tmp_path / "a.txt", tmp_path / "b.txt", on_bytes=bar.advance, on_error=print))
    assert "48%" in drawn.getvalue()

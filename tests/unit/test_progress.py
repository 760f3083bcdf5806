"""The bar that shows progress."""

import sys
from io import StringIO
from pathlib import Path

import pytest

from contextgraph.cli.output import Progress
from contextgraph.readers import FILE_WEIGHT, read, size_of


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_bar_is_drawn_on_a_terminal_only(
    monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    drawn = StringIO()
    drawn.isatty = lambda: is_terminal  # type: ignore[method-assign]
    monkeypatch.setattr(sys, "stderr", drawn)
    monkeypatch.setenv("TERM", "xterm")
    with Progress(lambda: 2) as bar:
        bar.advance(1)
    assert ("50%" in drawn.getvalue()) is is_terminal


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

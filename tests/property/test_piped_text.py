"""Text in a pipe is broken into lines as rich breaks it."""

import io
from contextlib import redirect_stdout
from string import ascii_letters

from hypothesis import example, given
from hypothesis.strategies import integers, lists, text
from rich.padding import Padding

from contextgraph.cli.output import console, print_text, styled


def printed(line: str, indent: int) -> str:
    with redirect_stdout(io.StringIO()) as stream:
        print_text(line, indent=indent)
    return stream.getvalue()


@given(lists(text(f"{ascii_letters}-/.,'", min_size=1, max_size=70), min_size=1), integers(0, 6))
@example(["a", "", "b\nc", "", "\x1b[1md", "e" * 70], 2)
def test_text_is_broken_as_rich_breaks_it(words: list[str], indent: int) -> None:
    line = " ".join(words)
    expected = io.StringIO()
    screen = console(expected)
    screen.print(Padding(styled(line), (0, 0, 0, indent)) if indent else styled(line))
    assert printed(line, indent) == expected.getvalue()


def test_a_long_word_stays_whole() -> None:
    path = f"/{'a' * 100}"
    assert printed(f"see {path}", 2) == f"  see\n  {path}\n"

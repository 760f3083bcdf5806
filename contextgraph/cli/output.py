"""Output: JSON lines and answers on stdout; progress, warnings and errors on stderr.

rich is imported when something is shown: it would double the time of ``--help``.
"""

import io
import json
import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from textwrap import TextWrapper
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, Self, TextIO, cast

import click
from msgspec import Struct, field

from contextgraph.text import mask_secrets, neutral, one_line, regex, terminal_json

if TYPE_CHECKING:
    from rich.console import Console
    from rich.padding import Padding
    from rich.progress import Progress as Bar, TaskID
    from rich.text import Text

    from contextgraph.errors import StoreError
    from contextgraph.model import Json

DONE, FAILED, PARTLY_DONE, STORE_UNAVAILABLE, LEASE_HELD = 0, 1, 3, 4, 5
PIPED_WIDTH, _LONGEST_LINE = 80, 2_000
_CELL_WIDTH = 2_000
_PADDING = regex(r" +\n")


def emit(record: "Mapping[str, Json]") -> None:
    """Print *record* as one JSON line and flush, so that a reading process need not wait.

    Characters that steer a terminal, or hide or reverse text, are escaped.
    """
    import orjson

    try:
        line = orjson.dumps(record).decode()
    except orjson.JSONEncodeError:  # a lone surrogate, as in a file name that is not UTF-8
        line = json.dumps(record)
    sys.stdout.buffer.write(f"{terminal_json(line)}\n".encode())
    sys.stdout.buffer.flush()


def warn(message: str) -> None:
    """Print one line on stderr, after the name of the program; it may quote what was read."""
    print(f"contextgraph: {neutral(mask_secrets(message))}", file=sys.stderr, flush=True)


def fail(message: str) -> NoReturn:
    """Print *message* as `warn` does, and end the command with exit code 1."""
    warn(message)
    raise click.exceptions.Exit(FAILED)


def confirm(question: str, declined: str) -> None:
    """Ask on stderr; unless the answer is yes, say that it was *declined* and exit with 1."""
    remedy = ""
    try:
        if click.confirm(question, err=True):
            return
    except click.Abort:  # standard input has ended, or Ctrl-C
        click.echo(err=True)
        remedy = "; without a terminal, use --yes"
    fail(f"{declined}{remedy}")


def accept_any_text() -> None:
    """Replace characters that the terminal cannot show, instead of failing."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")


def console(stream: TextIO | None = None) -> "Console":
    """Return *stream* (stdout) for people; in a pipe plain, of ``COLUMNS`` or 80 columns."""
    from rich.console import Console

    class Shown(Console):
        def on_broken_pipe(self) -> None:
            raise BrokenPipeError  # no failure; rich would exit with code 1

    target = stream or sys.stdout
    is_terminal = target.isatty()
    return Shown(
        file=target if is_terminal else cast(TextIO, _PlainText(target)),
        width=None if is_terminal else _piped_width(),
        color_system="auto" if is_terminal else None,
        markup=False,
        highlight=False,
        emoji=False,
    )


def line_width(width: int) -> int:
    """Return *width*, that of a line in a terminal; in a pipe lines are whole, up to a bound."""
    return width if sys.stdout.isatty() else _LONGEST_LINE


def _piped_width() -> int:
    return int(os.environ.get("COLUMNS") or PIPED_WIDTH)


def _wrapped(text: str, indent: int) -> Iterator[str]:
    """Yield the lines of ASCII *text* in a pipe, as rich breaks them; a long word stays whole."""
    margin = " " * indent
    wrapper = TextWrapper(
        max(1, _piped_width()),
        initial_indent=margin,
        subsequent_indent=margin,
        replace_whitespace=False,
        break_long_words=False,
        break_on_hyphens=False,
    )
    for line in text.split("\n"):
        yield from map(str.rstrip, wrapper.wrap(line) or [""])


class _PlainText(io.TextIOBase):
    """*stream* without the spaces with which rich fills up lines."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        return self._stream.write(_PADDING.sub("\n", text))

    def flush(self) -> None:
        self._stream.flush()


def styled(*parts: "str | tuple[str, str] | Text") -> "Text":
    """One text of *parts*: strings, (string, style) pairs or texts; control characters removed."""
    from rich.text import Text

    made = Text()
    for part in parts:
        if isinstance(part, Text):
            made.append_text(part)
        else:
            text, style = (part, "") if isinstance(part, str) else part
            made.append(neutral(text), style)
    return made


def print_text(*parts: str | tuple[str, str], indent: int = 0) -> None:
    """Print one text of *parts*: see `styled`, with *indent* spaces before each line."""
    bare = "".join(part if isinstance(part, str) else part[0] for part in parts)
    if bare.isascii() and not sys.stdout.isatty():
        # Without rich, which takes longer to load than a query to answer.
        print(*_wrapped(neutral(bare), indent), sep="\n")
        return
    from rich.padding import Padding

    console().print(Padding(styled(*parts), (0, 0, 0, indent)) if indent else styled(*parts))


def print_command(label: str, command: str) -> None:
    """Print a *label* and a *command* on one line, however long: a command is copied whole."""
    line = neutral(f"  {label} {command}" if label else command)
    if sys.stdout.isatty():
        console().print(styled((line, "dim")), soft_wrap=True)
    else:
        print(line)


def print_table(
    title: str,
    columns: Sequence[str],
    rows: Iterable[Sequence[str]],
    numeric: Iterable[str] = ("count", "runs"),
    *,
    on_stderr: bool = False,
) -> None:
    """Print a table without borders; nothing where there are no *rows*."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    for column in columns:
        right = column in {*numeric}
        justify: Literal["left", "right"] = "right" if right else "left"
        # Ids are copied: one that is cut in two is none.
        table.add_column(column, justify=justify, overflow="fold", no_wrap=column == "id")
    for row in rows:
        table.add_row(*(styled(one_line(cell, _CELL_WIDTH)) for cell in row))
    if table.row_count:
        screen = console(sys.stderr if on_stderr else None)
        screen.print(styled((title, "bold")))
        screen.print(table)
        screen.print()


def print_panel(title: str, items: "Iterable[Sequence[Text]]") -> None:
    """Print numbered *items*, each of several lines; nothing where there are none."""
    from rich.padding import Padding

    blocks: list[Text | Padding] = []
    for number, (head, *rest) in enumerate(items, start=1):
        blocks.append(styled((f"{number}. ", "bold"), head))
        blocks += [Padding(line, (0, 0, 0, 3)) for line in rest]
    if blocks:
        print_box(title, *blocks)


def print_box(title: str, *blocks: "Text | Padding") -> None:
    """Print *blocks* below each other in a box; in a pipe only the text."""
    from rich.console import Group
    from rich.panel import Panel

    screen, heading = console(), styled((title, "bold"))
    if screen.is_terminal:
        screen.print(Panel(Group(*blocks), title=heading, title_align="left", border_style="cyan"))
    else:
        for block in (heading, *blocks, ""):
            screen.print(block)


class Progress:
    """A progress bar with what is done and the remaining time, on stderr, only on a terminal.

    *total* is called once, if at all; it has the unit of `advance` (bytes, runs), and 0 means
    unknown.
    """

    def __init__(self, total: Callable[[], int]) -> None:
        self._total = total
        self._bar: Bar | None = None
        self._task: TaskID | None = None

    def __enter__(self) -> Self:
        if sys.stderr.isatty():
            self._bar = _bar()
            self._task = self._bar.add_task("", total=self._total() or None)
            self._bar.start()
        return self

    def __exit__(self, *raised: object) -> None:
        if self._bar:
            self._bar.stop()
            self._bar = None

    def advance(self, amount: int) -> None:
        """Add *amount* to what is done of the total."""
        self._update(advance=amount)

    def runs(self, done: int, total: int) -> None:
        """Show that *done* of *total* runs are done, where the unit is runs."""
        self._update(completed=done)

    def embedding(self) -> None:
        """Show that all is stored, and that an embedding space is fitted where that is due."""
        self._update(description="embedding")

    def consolidating(self, done: int, total: int) -> None:
        """Show the progress of consolidation: *done* of *total* kinds of error."""
        step = "consolidating"
        if self._bar and self._task is not None and self._bar.tasks[0].description != step:
            self._bar.reset(self._task)  # the pace of other work says nothing of this one's
        self._update(completed=done, total=total, description=step)

    def _update(self, **fields: Any) -> None:
        if self._bar and self._task is not None:
            self._bar.update(self._task, **fields)


def _bar() -> "Bar":
    from rich import progress
    from rich.console import Console

    return progress.Progress(
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TextColumn("{task.description}", markup=False),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True, markup=False, highlight=False, emoji=False),
        transient=True,
    )


@contextmanager
def delayed_interrupt() -> Iterator[None]:
    """Delay the first Ctrl-C to the end of the block, so that what is stored is also counted.

    A second one is not delayed: the store may be waiting for another process.
    """
    interrupted = False

    def remember(_number: int, _frame: FrameType | None) -> None:
        nonlocal interrupted
        if interrupted:
            raise KeyboardInterrupt
        interrupted = True

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if interrupted:
        raise KeyboardInterrupt


@contextmanager
def interrupted_by_termination() -> Iterator[None]:
    """Let SIGTERM interrupt the block as Ctrl-C does, so that no unfinished file is left."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


class DamagedRuns(Struct):
    """Reports the runs that cannot be read; *handler* is None where *is_strict*."""

    is_strict: bool
    as_json: bool
    ids: list[str] = field(default_factory=list)

    @property
    def handler(self) -> "Callable[[str, StoreError], None] | None":
        return None if self.is_strict else self._add

    def _add(self, identity: str, error: "StoreError") -> None:
        self.ids.append(identity)
        warn(str(error))
        if self.as_json:
            emit({"trajectory_id": identity, "status": "failed", "error": str(error)})

    def exit(self, done: int) -> None:
        """Raise `click.exceptions.Exit` where any run was damaged; *done* were not."""
        if self.ids:
            raise click.exceptions.Exit(PARTLY_DONE if done else FAILED)

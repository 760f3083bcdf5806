"""``contextgraph why``: the sessions that made a file, or a line of it, as it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.commands import Common, argument, common_options, option, repository_here
from contextgraph.cli.output import emit, fail, print_text
from contextgraph.service.records import record_of
from contextgraph.text import gives_instructions, number_of, one_line

if TYPE_CHECKING:
    from contextgraph.knowledge.why import FileChange, FileHistory

_WIDTH = 150
_SHOWN = 5


@common_options()
def why(
    common: Common,
    place: Annotated[str, argument("FILE[:LINE]", "A file of the checkout, and a line of it.")],
    repo: Annotated[
        str | None, option("OWNER/REPO", "Repository; without it, that of the folder.")
    ] = None,
) -> None:
    """Show which sessions changed a file or wrote a line of it, and why.

    Newest first: when, by which agent, what was asked before, what was decided, and the command
    that opens the session again. For a line also its commit, by git blame.

    \b
    Example:
      contextgraph why src/export.py
      contextgraph why src/export.py:42 --json
    """
    if common.settings().is_service:
        raise click.BadParameter("sessions are read from a memory itself, not from a service")
    name, _, number = place.rpartition(":")
    file, line = (name, int(number)) if name and number.isdecimal() else (place, None)
    where = repo or repository_here()
    with common.open(read_only=True) as memory:
        found = memory.file_history(Path(file), line, repo=where)
    if common.as_json:
        emit(record_of(found))
    elif not found.changes:
        fail(f"no session of {where} that is known changed {found.file}")
    else:
        _print(found)


def _print(history: "FileHistory") -> None:
    if history.line is not None:
        print_text((f"{history.file}:{history.line} ", "bold"), one_line(history.text, _WIDTH))
    if commit := history.commit:
        said = one_line(commit.subject, _WIDTH)
        print_text(f"commit {commit.id[:10]} · {commit.time:%Y-%m-%d} · {commit.author} · {said}")
    if history.line is not None and not history.is_exact:
        print_text("no known session wrote this line as it stands; these changed the file:")
    for change in history.changes[:_SHOWN]:
        _print_change(change)
    if (more := len(history.changes) - _SHOWN) > 0:
        print_text((f"{number_of(more, 'more session')}: --json has all", "dim"))


def _print_change(change: "FileChange") -> None:
    edits = number_of(change.steps, "edit")
    when = f"{change.time:%Y-%m-%d %H:%M}"
    print_text((f"{when} · {change.agent or 'agent'} · {edits}, step {change.step}", "bold"))
    task = change.task if change.task != change.asked else ""
    rows = (("task", task), ("asked", change.asked), ("again", change.resume))
    decided = [("decided", text) for text in change.decided[:2]]
    for name, text in (*rows[:2], *decided, *rows[2:]):
        if text and not gives_instructions(text):
            print_text((f"  {name:<8} ", "dim"), one_line(text, _WIDTH))

"""``contextgraph why``: the sessions that made a file, or a line of it, as it is."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.commands import Common, argument, common_options, option, repository_here
from contextgraph.cli.notes import command_with_store
from contextgraph.cli.output import console, emit, fail, line_width, print_command, print_text
from contextgraph.service.records import record_of
from contextgraph.text import gives_instructions, number_of, one_line

if TYPE_CHECKING:
    from contextgraph.knowledge.why import FileChange, FileHistory

_WIDTH, _SHOWN = 60, 5


@common_options()
def why(
    common: Common,
    place: Annotated[str, argument("FILE[:LINE]", "A file of the checkout, and a line of it.")],
    repo: Annotated[
        str | None, option("OWNER/REPO", "Repository; without it, that of the file.")
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
    from contextgraph.knowledge.why import folder_of

    path = Path(file).absolute()
    if path.is_dir():
        raise click.BadParameter(f"{file} is a folder; name a file in it")
    where = repo or repository_here(folder_of(path))
    with common.open(read_only=True) as memory:
        found = memory.file_history(path, line, repo=where)
    if common.as_json:
        emit(record_of(found))
        return
    _print(found, common)
    if not found.changes:
        missing = "" if path.exists() else "there is no such file, and "
        fail(f"{missing}no session of {where} that is known changed {found.file}")


def _print(history: "FileHistory", common: Common) -> None:
    width = line_width(max(_WIDTH, console().width))
    if history.line is not None:
        place = f"{history.file}:{history.line} "
        print_text((place, "bold"), one_line(history.text, max(width - len(place), _WIDTH // 2)))
    if commit := history.commit:
        made = f"commit {commit.id[:10]} · {commit.time:%Y-%m-%d} · {commit.author} · "
        print_text(made, one_line(commit.subject, max(width - len(made), _WIDTH // 2)))
    if history.line is not None and history.changes and not history.is_exact:
        print_text("no known session wrote this line as it stands; these changed the file:")
    for change in history.changes[:_SHOWN]:
        _print_change(change, width, common)
    if (more := len(history.changes) - _SHOWN) > 0:
        print_text((f"{number_of(more, 'more session')}: --json has all", "dim"))


def _print_change(change: "FileChange", width: int, common: Common) -> None:
    edits = number_of(change.steps, "edit")
    when = f"{change.time:%Y-%m-%d %H:%M}"
    source = f" · from {change.contributor}" if change.contributor else ""
    head = f"{when} · {change.agent or 'agent'} · {edits}, step {change.step}{source}"
    print_text((head, "bold"))
    task = change.task if change.task != change.asked else ""
    decided = [text for text in change.decided if text != change.asked][:2]
    for name, text in (("task", task), ("asked", change.asked)):
        if text and not gives_instructions(text):
            print_text((f"  {name:<8} ", "dim"), one_line(text, width - 11))
    for text in decided:
        if not gives_instructions(text):
            # Never cut: it is the answer.
            print_text(("decided  ", "dim"), " ".join(text.split()), indent=2)
    read = f"contextgraph inspect {change.id} --step {change.step}"
    print_command("read    ", command_with_store(common, read))
    if change.resume:
        print_command("go on   ", change.resume)

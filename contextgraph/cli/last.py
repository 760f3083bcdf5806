"""``contextgraph last``: where a person was in a repository."""

from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.commands import Common, argument, common_options, repository_here
from contextgraph.cli.output import console, emit, fail, print_text
from contextgraph.model import duration_text
from contextgraph.service.records import record_of
from contextgraph.text import gives_instructions, number_of, one_line

if TYPE_CHECKING:
    from contextgraph.knowledge.last import LastSession

_WIDTH = 60
_ALL = "all"


@common_options()
def last(
    common: Common,
    repo: Annotated[
        str | None, argument("[REPO]", "owner/repo, or all; without it, that of the folder.")
    ] = None,
) -> None:
    """Show the last session of a repository: where you were.

    Its task, what it changed, how tests ended, what is open, what was decided, the last words, and
    the command that opens it again.

    \b
    Example:
      contextgraph last
      contextgraph last acme/shop --json
    """
    where = None if repo == _ALL else repo or repository_here()
    if common.settings().is_service:
        raise click.BadParameter(
            "the last session is read from a memory itself, not from a service"
        )
    with common.open(read_only=True) as memory:
        found = memory.last_session(where)
    if found is None:
        fail(f"no session of {where or 'any repository'} is known; `last all` looks in all")
    if common.as_json:
        emit(record_of(found))
    else:
        _print(found)


def _print(session: "LastSession") -> None:
    when = f"{session.time:%Y-%m-%d %H:%M}"
    outcome = f"{session.outcome}{'?' if session.is_guess else ''}"
    time = "" if session.seconds is None else duration_text(session.seconds)
    size = number_of(session.steps, "step")
    facts = (session.repo, when, session.agent or "agent", outcome, size, time)
    print_text((" · ".join(filter(None, facts)), "bold"))
    tests = "none ran"
    if session.tests:
        ended = "passed" if session.tests.passed else "failed"
        since = ", but files were edited since" if session.tests.edited_since else ""
        tests = f"{ended}{since}: {session.tests.command}"
    more = f" ({len(session.decided) - 1} more)" if len(session.decided) > 1 else ""
    speaker = {"user": "you: ", "agent": "agent: "}.get(session.speaker, "")
    rows = (
        ("task", session.task),
        ("changed", ", ".join(session.changed) or "no file"),
        ("tests", tests),
        ("open", session.open or "nothing that stands in the way"),
        ("decided", f"{session.decided[0]}{more}" if session.decided else "nothing"),
        ("then", f"{speaker}{session.words}" if session.words else "nothing was written"),
        ("again", session.resume),
    )
    for name, text in rows:
        if text and not gives_instructions(text):
            lines = 2 if name == "then" else 1
            most = lines * max(_WIDTH, console().width) - 9
            print_text((f"{name:<8} ", "dim"), one_line(text, most))

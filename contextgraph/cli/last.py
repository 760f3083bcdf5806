"""``contextgraph last``: where a person was in a repository."""

from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.commands import Common, argument, common_options, described, repository_here
from contextgraph.cli.notes import Opening, meant_repository, unknown_repository
from contextgraph.cli.output import console, emit, fail, line_width, print_text
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
    *,
    is_opened: Annotated[
        bool, described("--open", help="Go on with it in its client, or open the reader.")
    ] = False,
) -> None:
    """Show the last session of a repository: where you were.

    Its task, what was done, what is open, how tests ended, decisions, and what was said last.

    \b
    Example:
      contextgraph last
      contextgraph last --open
      contextgraph last acme/shop --json
    """
    where = None if repo == _ALL else repo or repository_here()
    if not where and common.settings().is_service:
        raise click.BadParameter("all: of a service one repository is read; name it")
    from contextgraph.cli.learn import learn_ended

    learn_ended(common)
    with common.open_repository(where or "") as memory:
        where = meant_repository(memory, where)
        found = memory.last_session(where)
        if found is None:
            unknown = unknown_repository(memory, where) if where else "no session is known"
            fail(f"{unknown}; `last all` looks in all" if where else unknown)
        if is_opened:
            opening = Opening.of_run(common, memory, found.id)
            opening.show(common, memory)
    if is_opened:
        opening.enter()
    elif common.as_json:
        emit(record_of(found))
    else:
        _print(found)


def _print(session: "LastSession") -> None:
    steps = number_of(session.all_steps, "step")
    time = "" if session.seconds is None else f" in {duration_text(session.seconds)}"
    mark = "?" if session.is_guess else ""
    ending = "" if session.outcome == "unknown" else f", {session.outcome}{mark}"
    changed = ", ".join(session.changed) or "no file changed"
    tests = "none ran"
    if session.tests:
        ended = "passed" if session.tests.passed else "failed"
        since = ", but files were edited since" if session.tests.edited_since else ""
        tests = f"{ended}{since}: {session.tests.command}"
    more = f" ({len(session.decided) - 1} more)" if len(session.decided) > 1 else ""
    source = f", from {session.contributor}" if session.contributor else ""
    user = f"{session.contributor}: " if session.contributor else "you: "
    speaker = {"user": user, "agent": "agent: "}.get(session.speaker, "")
    rows = (
        ("task", f"{session.time:%Y-%m-%d %H:%M} {session.repo}: {session.task}"),
        ("done", f"{session.agent or 'agent'}{source}, {steps}{time}{ending}: {changed}"),
        ("open", session.open or "nothing"),
        ("tests", tests),
        ("decided", f"{session.decided[0]}{more}" if session.decided else "nothing"),
        ("said", f"{speaker}{session.words}" if session.words else "nothing was written"),
    )
    most = line_width(max(_WIDTH, console().width) - 9)  # six lines in a terminal
    for name, text in rows:
        shown = "(an instruction to the reader)" if gives_instructions(text) else text
        print_text((f"{name:<8} ", "dim"), one_line(shown, most))

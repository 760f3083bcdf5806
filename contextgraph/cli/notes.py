"""Notes of people and agents, what they decided, pages, entities and keyed files."""

from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.commands import Common, Limit, Repo, argument, common_options, flag, option
from contextgraph.cli.output import FAILED, emit, print_text, warn
from contextgraph.knowledge.ways import ways_in
from contextgraph.model import Strategy
from contextgraph.records import record_of, statement_record
from contextgraph.text import gives_instructions, number_of, one_line, plain
from contextgraph.values import replace

if TYPE_CHECKING:
    from contextgraph.knowledge.statements import Statement


_FOUND_WIDTH = 160
# Below it were 7 of 12 questions that nothing in a team's sessions answers, and none of 25 others.
_LIKELY = 0.3
# The section of CLAUDE.md or AGENTS.md for rules that people had to repeat.
_RULES = "## Rules that had to be repeated"


_HIDDEN = "an instruction to the reader, never shown"


@common_options()
def search(
    common: Common,
    question: Annotated[str, argument("QUESTION", "What you want to know.")],
    *,
    repo: Repo = None,
    limit: Limit = 10,
    strategy: Annotated[
        Strategy, option("NAME", "All; no entities and links; only those; only notes.")
    ] = Strategy.HYBRID,
) -> None:
    """Search past sessions, decisions, notes and remedies.

    One list, the best first, with the command that opens each. "what happened recently" gives the
    newest, "why did we …" prefers what people decided, the name of a file what is about it.

    \b
    Example:
      contextgraph search "why is the batch limited" --repo acme/shop
      contextgraph search "what happened recently"
      contextgraph search "what do we know about export.py"
    """
    with common.open(read_only=True) as memory:
        found = [
            replace(one, command=_opening(common, one.command))
            for one in memory.search(question, repo, limit=limit, strategy=strategy)
        ]
    if common.as_json:
        for one in found:
            emit(record_of(one))
        return
    if found and max(one.probability for one in found) < _LIKELY:
        print("probably nothing answers this; what comes nearest:")
    for place, one in enumerate(found, start=1):
        hidden = f" · {_HIDDEN}" if gives_instructions(one.text) else ""
        print(f"{place}. {one.kind} {one.time:%Y-%m-%d} {plain(one.repo)}{hidden}")
        print(f"   {one_line(one.text, _FOUND_WIDTH)}\n   {plain(one.command)}")
    if not found:
        print("nothing is known about it")


def _opening(common: Common, command: str) -> str:
    """*command*, where it reads the memory, with the one that was named."""
    if not command.startswith("contextgraph call "):
        return command
    named = (("--store", common.store), ("--tenant", common.tenant))
    return " ".join((command, *(f"{name} {quote(value)}" for name, value in named if value)))


@common_options()
def decisions(
    common: Common,
    *,
    repo: Annotated[str | None, argument("[REPO]", "owner/repo; without it, all.")] = None,
    recurring: Annotated[
        bool, flag("Only what people said in two sessions or more, most first.")
    ] = False,
    accept: Annotated[list[str] | None, option("ID", "Mark it as right (repeatable).")] = None,
    reject: Annotated[
        list[str] | None,
        option("ID", "Never show or take it again, in whatever words (repeatable)."),
    ] = None,
    edit: Annotated[str, option("ID", "Put --text in its place, and mark it as right.")] = "",
    text: Annotated[str, option("TEXT", "The new text for --edit.")] = "",
    propose: Annotated[
        Path | None, option("FILE", "Print what is recurring as a diff of CLAUDE.md or AGENTS.md.")
    ] = None,
) -> None:
    """Show what people decided, corrected or required.

    Agents are shown it when a request or an edited file is about it; a later decision about the
    same takes its place. What may be of the moment comes last, and is not said to agents until it
    is repeated or accepted. What looks like an instruction to the reader is never shown.

    \b
    Example:
      contextgraph decisions acme/shop --recurring
      contextgraph decisions --reject statement_1f0c3a5b7d9e2468
      contextgraph decisions acme/shop --propose CLAUDE.md | patch -p0
    """
    if accept or reject or edit:
        if bool(edit) != bool(text):
            raise click.BadParameter("--edit needs --text", param_hint="'--edit'")
        _decide(common, accept or [], reject or [], edit, text)
    elif propose is not None:
        with common.open(read_only=True) as memory:
            print(_proposed(propose, memory.statements.of(repo, recurring=True)), end="")
    else:
        _list_statements(common, repo, recurring=recurring)


def _list_statements(common: Common, repo: str | None, *, recurring: bool) -> None:
    with common.open(read_only=True) as memory:
        listed = memory.statements.of(repo, recurring=recurring)
    if common.as_json:
        for statement in listed:
            emit(statement_record(statement))
        return
    waiting = [one for one in listed if not (one.is_confirmed or one.stands)]
    shown = [one for one in listed if one.is_confirmed or one.stands]
    for one in (*shown, *waiting):
        if waiting and one is waiting[0]:
            print_text((f"less sure, not said to agents ({len(waiting)}):", "bold"))
        said = f"{one.note.created_at:%Y-%m-%d}"
        sessions = number_of(one.sessions, "session") if one.sessions > 1 else ""
        replaced = f"superseded by {one.superseded_by}" if one.superseded_by else ""
        hidden = _HIDDEN if gives_instructions(one.note.content) else ""
        kind = one.note.statement_kind
        marks = (said, kind, replaced, hidden, one.note.repo, sessions, one.note.id)
        print_text((" · ".join(filter(None, marks)), "dim"))
        print_text(one.note.content, indent=2)
        if recurring and one.rule not in ("", one.note.content):
            print_text((f"rule: {one.rule}", "dim"), indent=2)
        if about := one.note.summary:  # "2" says nothing without the list that it answers
            print_text((f"about: {one_line(about, _FOUND_WIDTH)}", "dim"), indent=2)
    if not listed:
        print("nobody decided anything in the sessions that were learned")


def _decide(
    common: Common, accept: list[str], reject: list[str], edit: str, text: str = ""
) -> None:
    with common.open(create=False) as memory:
        common.note_shown(memory, forgetting=True)
        known = memory.store.notes.get([*accept, *reject, edit])
        done = {
            "accepted": memory.statements.accept(accept),
            "rejected": memory.statements.reject(reject),
            "edited": int(bool(edit) and memory.statements.edit(edit, text)),
        }
    others = max(0, done["rejected"] - len({*reject}.intersection(known)))
    statements = {id_ for id_ in known if id_.startswith("statement_")}
    if not statements.issuperset(filter(None, (*accept, *reject, edit))):
        warn("some of these statements are not in the memory, or were rejected before")
    said = ", ".join(f"{count} {what}" for what, count in done.items())
    they_say = "it says" if others == 1 else "they say"
    also = f"; {others} of these rejected as {they_say} the same in other words" if others else ""
    common.answer({**done, "same_rule": others}, f"{said}{also}")
    if not any(done.values()):
        raise click.exceptions.Exit(FAILED)


def _proposed(path: Path, recurring: "Sequence[Statement]") -> str:
    """A diff that adds the *recurring* rules that *path* does not have, in any words."""
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    known = before.casefold()
    ways = frozenset[str]().union(*map(ways_in, before.splitlines()))
    rules = [" ".join(one.rule.split()) for one in recurring if one.rule and not one.superseded_by]
    added = [
        f"- {rule}"
        for rule in rules
        if rule.casefold() not in known and ways.isdisjoint(ways_in(rule))
    ]
    if not added:
        return ""
    head = before if before.endswith("\n") or not before else f"{before}\n"
    title = "" if _RULES in before else f"{chr(10) if before else ''}{_RULES}\n\n"
    after = f"{head}{title}" + "".join(f"{line}\n" for line in added)
    diff = unified_diff(before.splitlines(True), after.splitlines(True), str(path), str(path))
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in diff)

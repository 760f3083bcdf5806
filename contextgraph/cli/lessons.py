"""Review of lessons: what colleagues would pass on, and what of it belongs into CLAUDE.md."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from difflib import unified_diff
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click

from contextgraph.cli.commands import (
    Common,
    argument,
    common_options,
    described,
    flag,
    option,
    repository_here,
)
from contextgraph.cli.notes import meant_repository, unknown_repository
from contextgraph.cli.output import FAILED, emit, fail, print_text, warn
from contextgraph.model import LessonKind, LessonStatus
from contextgraph.service.records import record_of
from contextgraph.text import gives_instructions, neutral, number_of, one_line

if TYPE_CHECKING:
    from contextgraph.knowledge.lessons import Lessons
    from contextgraph.memory.agent_memory import AgentMemory
    from contextgraph.model import Lesson

_WIDTH = 160
# A shorter one may need what it answers.
_AT_ONCE, _SHORT = 10, 60
# The section of CLAUDE.md or AGENTS.md for rules of people.
_RULES, _MOST_PROPOSED = "## Rules from earlier sessions", 10
_HIDDEN = "an instruction to the reader, never shown"
_ALL = "all"


@common_options()
def lessons(  # noqa: PLR0913  (one option for each kind of review)
    common: Common,
    *,
    repo: Annotated[
        str | None, argument("[REPO]", "owner/repo, or all; without it, that of the folder.")
    ] = None,
    every: Annotated[
        bool, described("--all", help="Also proposed, superseded and rejected ones.")
    ] = False,
    review: Annotated[bool, flag("Only the ten proposed ones that are likeliest.")] = False,
    recurring: Annotated[bool, flag("Only those said in two sessions or more.")] = False,
    gone: Annotated[bool, flag("Only those that name what is gone.")] = False,
    about: Annotated[str, option("SUBJECT", "Only the five nearest to this subject.")] = "",
    page: Annotated[int, described(metavar="N", min=1, help="Ten at a time: which ten.")] = 1,
    accept: Annotated[list[str] | None, option("ID", "Mark it as right (repeatable).")] = None,
    reject: Annotated[
        list[str] | None, option("ID", "Never show or take it again (repeatable).")
    ] = None,
    edit: Annotated[str, option("ID", "Put --text in its place, and mark it as right.")] = "",
    text: Annotated[str, option("TEXT", "The new text for --edit.")] = "",
    supersede: Annotated[str, option("ID", "Let the lesson --by take its place.")] = "",
    by: Annotated[str, option("ID", "The lesson that --supersede puts in its place.")] = "",
    undo: Annotated[
        list[str] | None, option("ID", "Take its last review back (repeatable).")
    ] = None,
    propose: Annotated[
        Path | None, option("FILE", "Print rules as a diff of CLAUDE.md or AGENTS.md.")
    ] = None,
) -> None:
    """Show and review what a colleague would have to know.

    Decisions, rules, facts, checklists and references, by subject, the newest first. Agents are
    shown an active one when their work is about it. A proposed one is quoted at a request about it
    alone, until it is accepted or repeated. What looks like an instruction to the reader is never
    shown. One whose files, symbols or programs are gone is not shown until it is reviewed: --gone
    lists these.

    \b
    Example:
      contextgraph lessons --review
      contextgraph lessons --accept lesson_1f0c3a5b7d9e2468
      contextgraph lessons --propose CLAUDE.md | patch -p0
    """
    for option_, given, value in (("--edit", edit, text), ("--supersede", supersede, by)):
        if bool(given) != bool(value):
            needed = "--text" if option_ == "--edit" else "--by"
            raise click.BadParameter(f"{option_} needs {needed}", param_hint=f"'{option_}'")
    if supersede and supersede == by:
        raise click.BadParameter(f"{by} cannot take its own place", param_hint="'--by'")
    if accept or reject or edit or supersede or undo:
        _review(common, accept or [], reject or [], (edit, text), (supersede, by), undo or [])
        return
    here = repository_here()
    where = None if repo == _ALL else repo or here
    from contextgraph.knowledge.last import to_review

    every = every or gone or review or bool(about)
    status = [*LessonStatus] if every else [LessonStatus.ACTIVE]
    with common.open(read_only=True) as memory:
        where = meant_repository(memory, where)
        listed = _listed(memory.lessons, where, about, status, is_review=review)
        waiting = () if every else to_review(memory.lessons.of(where, status=[*LessonStatus]))
        if not (listed or waiting or propose or review or common.as_json):
            listed = _elsewhere(memory, where, status, is_named=bool(repo))
    missing = _missing((*listed, *(one for one in waiting if one.gone)), here)
    known = listed
    listed = tuple(
        one
        for one in known
        if (one.sessions > 1 or not recurring) and (one.id in missing or not gone)
    )
    if propose is not None:
        _print_proposed(propose, listed)
    elif common.as_json:
        for one in listed:
            emit({**record_of(one), "gone": [*missing.get(one.id, ())]})
    elif (known or review or about) and not listed:
        of_which = f"none of {number_of(len(known), 'lesson')}"
        none = "no lesson is about that" if about else "no lesson waits for review"
        print(of_which if known else none)
    else:
        _print(listed, page, len(waiting), missing, here)


def _listed(
    lessons: "Lessons",
    where: str | None,
    about: str,
    status: Sequence[LessonStatus],
    *,
    is_review: bool,
) -> "Sequence[Lesson]":
    """Return the lessons that are asked for: about a subject, to review, or all of a status."""
    from contextgraph.knowledge.last import to_review

    if about:
        return lessons.about(about, where)
    found = lessons.of(where, status=status)
    return to_review(found)[:_AT_ONCE] if is_review else found


def _elsewhere(
    memory: "AgentMemory", where: str | None, status: Sequence[LessonStatus], *, is_named: bool
) -> "Sequence[Lesson]":
    """Return the lessons of other repositories than *where*, which has none; headed by that.

    Where the repository *is_named*, none; one without a session is an error.
    """
    if is_named:
        if where and (unknown := unknown_repository(memory, where)):
            fail(unknown)
        return ()
    if listed := memory.lessons.of(None, status=status):
        print_text((f"no lessons of {where} yet; these are of other repositories", "bold"))
    return listed


def _missing(listed: Iterable["Lesson"], here: str) -> dict[str, tuple[str, ...]]:
    """Return, by id, what lessons name that is gone: of those *here*, files that the folder lacks.

    And lines of files that lessons were written into. Not of rejected and superseded ones.
    """
    from contextgraph.advising.freshness import is_struck_out
    from contextgraph.knowledge.broken import gone_files
    from contextgraph.system.working_tree import WorkingTree

    kept = (LessonStatus.ACTIVE, LessonStatus.PROPOSED)
    listed = [one for one in listed if one.status in kept]
    naming = {one.id: (one.text, one.about) for one in listed if one.repo == here}
    tree = WorkingTree.around(Path.cwd())
    files = gone_files(naming, tree)
    struck = {
        one.id: f"its line in {one.speaker}"
        for one in listed
        if one.id in naming and is_struck_out(one.text, one, tree)
    }
    found = {
        one.id: tuple(
            filter(None, dict.fromkeys((*files.get(one.id, ()), *one.gone, struck.get(one.id, ""))))
        )
        for one in listed
    }
    return {id_: names for id_, names in found.items() if names}


def _print(
    listed: "Sequence[Lesson]",
    page: int,
    proposed: int,
    missing: Mapping[str, Sequence[str]],
    here: str,
) -> None:
    """Print ten of the lessons *listed*, and how many are left and *proposed*.

    *missing* is what is gone, by the id of the lesson that names it. Those of another repository
    than the one *here* name it.
    """
    if page > (pages := max(1, -(-len(listed) // _AT_ONCE))):
        fail(f"--page {page}: there {'is 1 page' if pages == 1 else f'are {pages} pages'}")
    from contextgraph.knowledge.headings import by_heading
    from contextgraph.knowledge.ranking import ran_instead

    start, shown = (page - 1) * _AT_ONCE, ""
    headed = [(heading, one) for heading, ones in by_heading(listed).items() for one in ones]
    for heading, one in headed[start : start + _AT_ONCE]:
        if heading != shown:
            shown = heading
            print_text((heading, "bold"))
        marks = (
            f"{one.time:%Y-%m-%d}",
            one.kind,
            "" if one.status is LessonStatus.ACTIVE else one.status,
            one.superseded_by and f"by {one.superseded_by}",
            _HIDDEN if gives_instructions(one.text) else "",
            f"gone: {', '.join(missing[one.id])}" if one.id in missing else "",
            one.origin,
            one.contributor and f"from {one.contributor}",
            number_of(one.sessions, "session") if one.sessions > 1 else "",
            one.repo if one.repo != here else "",
            one.id,
        )
        print_text(one.text, indent=2)
        print_text((" · ".join(filter(None, marks)), "dim"), indent=2)
        first = one.evidence[0]
        is_short = len(one.text) < _SHORT
        quoted = [f"asked: {first.context}" if is_short and first.context else ""]
        quoted += [f'"{first.quote}"'] if first.quote not in one.text else []
        quoted.append(ran_instead(one))
        for line in filter(None, quoted):
            print_text((one_line(line, _WIDTH), "dim"), indent=2)
    if (left := len(listed) - start - _AT_ONCE) > 0:
        print_text((f"{left} more: --page {page + 1}", "dim"))
    if proposed:
        which = f"the {_AT_ONCE} likeliest" if proposed > _AT_ONCE else "them"
        print_text(
            (f"{proposed} proposed, quoted at requests alone: --review lists {which}", "dim")
        )
    if listed:
        print_text(("review: contextgraph lessons --accept ID --reject ID ...", "dim"))
    if missing:
        named = number_of(len(missing), "lesson")
        print_text((f"{named} to review, for what is gone: --gone", "dim"))
    if not (listed or proposed):
        print("no lessons yet: sessions in which people talk with an agent have them")


def _review(
    common: Common,
    accept: Sequence[str],
    reject: Sequence[str],
    edit: tuple[str, str],
    supersede: tuple[str, str],
    undo: Sequence[str],
) -> None:
    named = [*accept, *reject, edit[0], *supersede, *undo]
    decided = Counter(chain({*accept}, {*reject}, {*undo}, [edit[0], supersede[0]]))
    if several := [neutral(id_) for id_, count in decided.items() if id_ and count > 1]:
        raise click.BadParameter(f"{', '.join(several)}: one decision at a time for a lesson")
    with common.open(create=False) as memory:
        common.note_shown(memory, forgetting=True)
        known = {id_ for id_, note in memory.store.notes.get(named).items() if note.lesson}
        done = {
            "accepted": memory.lessons.accept(accept),
            "rejected": memory.lessons.reject(reject),
            "edited": int(bool(edit[0]) and memory.lessons.edit(*edit)),
            "superseded": int(bool(supersede[0]) and memory.lessons.supersede(*supersede)),
            "undone": memory.lessons.undo(undo),
        }
    if unknown := [id_ for id_ in named if id_ and id_ not in known]:
        warn(f"no lesson {', '.join(map(neutral, unknown))} in the memory")
    elif not any(done.values()):
        warn("nothing to undo: a review is undone once" if undo else "no lesson was changed")
    common.answer({**done}, ", ".join(f"{count} {what}" for what, count in done.items() if count))
    if not any(done.values()):
        raise click.exceptions.Exit(FAILED)


def _print_proposed(path: Path, listed: "Sequence[Lesson]") -> None:
    diff = _proposed(path, listed)
    print(diff, end="")
    if not diff:
        warn(f"nothing to propose: {path} lacks no rule that was repeated, accepted or edited")


def _proposed(path: Path, listed: "Sequence[Lesson]") -> str:
    """Return a diff that adds at most ten rules to *path* that it does not have.

    Rules that stand alone: repeated, or accepted or edited by a person. Those of most sessions
    first, then those that name no other file: they hold for any work. None of another source, and
    no instruction to the reader: agents load the file.
    """
    from contextgraph.agents.agents_md import content_of
    from contextgraph.knowledge.extraction import files_in
    from contextgraph.knowledge.rules import KnownRules
    from contextgraph.knowledge.sentences import stands_alone

    def order(one: "Lesson") -> tuple[int, int]:
        return -one.sessions, len({*files_in(one.text)} - {path.name})

    before = content_of(path)
    known = KnownRules(before.splitlines())
    added: list[str] = []
    for one in sorted(filter(lambda one: stands_alone(one.text), listed), key=order):
        is_rule = one.kind is LessonKind.RULE and one.status is LessonStatus.ACTIVE
        is_sure = one.sessions > 1 or one.is_reviewed
        is_own = not one.contributor and not gives_instructions(one.text)
        if is_rule and is_sure and is_own and len(added) < _MOST_PROPOSED and known.add(one.text):
            added.append(f"- {' '.join(neutral(one.text).split())}")
    if not added:
        return ""
    head = before if before.endswith("\n") or not before else f"{before}\n"
    title = "" if _RULES in before else f"{chr(10) if before else ''}{_RULES}\n\n"
    after = f"{head}{title}" + "".join(f"{line}\n" for line in added)
    diff = unified_diff(before.splitlines(True), after.splitlines(True), str(path), str(path))
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in diff)

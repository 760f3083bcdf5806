"""``contextgraph team``: lessons in a repository, proposed, compared and read."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import click

from contextgraph.cli.commands import (
    UNREAD,
    Common,
    argument,
    common_options,
    described,
    flag,
    option,
)
from contextgraph.cli.output import DONE, PARTLY_DONE, emit, fail, print_text, warn
from contextgraph.errors import SettingsError
from contextgraph.model import LESSONS_FOLDER, LessonStatus
from contextgraph.service.records import record_of
from contextgraph.system.processes import replacing
from contextgraph.text import number_of, one_line

if TYPE_CHECKING:
    from contextgraph.knowledge.entries import Entries, Entry
    from contextgraph.knowledge.team import Taken, TeamStatus
    from contextgraph.model import Json, Lesson

_WIDTH, _LISTED = 110, 10
_INSTRUCTIONS, _OTHER = "AGENTS.md", "CLAUDE.md"


@common_options()
def team(
    common: Common,
    action: Annotated[
        Literal["status", "propose", "sync"], argument("[ACTION]", "status, propose or sync.")
    ] = "status",
    ids: Annotated[
        list[str] | None, argument("[LESSON]...", "Lessons to propose; `lessons` has their ids.")
    ] = None,
    *,
    every: Annotated[bool, described("--all", help="Propose each active one.")] = False,
    branch: Annotated[
        str, option("NAME", "The branch to propose on.", "contextgraph/lessons")
    ] = "contextgraph/lessons",
    patch: Annotated[
        Path | None, option("FILE", "Write a patch for `git am` instead; - prints it.")
    ] = None,
    diff: Annotated[bool, flag("Of sync: print what would change, and write nothing.")] = False,
) -> None:
    """Share lessons in a repository, one file each.

    The files are in .contextgraph/lessons, in Markdown, and are merged by git.

    *propose* commits them on a branch that a colleague reviews; the working tree stays as it is.
    Nothing with a secret is written. *status* says how memory and files differ. *sync* takes the
    files of a trusted folder over, and writes the few rules that hold everywhere into a section of
    AGENTS.md and CLAUDE.md; the rest of these stays.

    \b
    Example:
      contextgraph team propose lesson_1f0c3a5b7d9e2468
      contextgraph team propose --all --patch lessons.patch
      contextgraph trust . && contextgraph team sync
    """
    from contextgraph.knowledge.entries import entries_in
    from contextgraph.knowledge.team import root_of

    if action == "sync" and common.settings().is_service:
        raise click.BadParameter("sync runs on the machine of the memory itself")
    if action != "propose" and (ids or every or patch):
        raise click.BadParameter("lessons, --all and --patch belong to propose")
    root = root_of(Path.cwd())
    entries = entries_in(root)
    for error in entries.damaged.values():
        warn(str(error))
    if action == "propose":
        _propose(
            common, root, entries, _chosen(common, root, ids or (), every=every), branch, patch
        )
    elif action == "sync":
        _sync(common, root, entries, dry_run=diff)
    else:
        _show(common, root, entries)
    raise click.exceptions.Exit(PARTLY_DONE if entries.damaged else DONE)


def learn_team(common: Common, folder: Path) -> "Taken":
    """Take over the lessons of the repository around *folder* where it is trusted."""
    with common.open() as memory:
        return memory.learn_team(folder)


def forget_team(common: Common, repository: str) -> int:
    """Forget the lessons from trusted folders of *repository*; return how many there were."""
    from contextgraph.knowledge.team import held_of

    with common.open() as memory:
        return memory.notes.forget(held_of(memory.store.notes, repository))


def taken_line(taken: "Taken") -> str:
    """Return in a line what taking lessons over has changed in the memory."""
    changes = {"new": taken.added, "changed": taken.changed, "gone": taken.removed}
    since = ", ".join(f"{count} {what}" for what, count in changes.items() if count)
    return f"{number_of(taken.known, 'lesson')} read: {since or 'all known, none changed'}"


def _lessons(common: Common, root: str) -> "Sequence[Lesson]":
    from contextgraph.errors import MemoryNotFoundError
    from contextgraph.readers.repository import repository_name

    try:
        with common.open_repository(repository_name(root)) as memory:
            return memory.lessons.of(repository_name(root), status=[*LessonStatus])
    except MemoryNotFoundError:
        return ()


def _chosen(common: Common, root: str, ids: Sequence[str], *, every: bool) -> "Sequence[Lesson]":
    from contextgraph.knowledge.entries import Entries
    from contextgraph.knowledge.team import compared

    if bool(ids) == every:
        raise click.BadParameter("name the lessons to propose, or --all")
    lessons = _lessons(common, root)
    if every:
        return compared(lessons, Entries((), {})).own
    known = {lesson.id: lesson for lesson in lessons}
    if unknown := [id_ for id_ in ids if id_ not in known]:
        fail(f"no lesson {', '.join(unknown)} of this repository in the memory")
    return [known[id_] for id_ in ids]


def _propose(
    common: Common,
    root: str,
    entries: "Entries",
    lessons: "Sequence[Lesson]",
    branch: str,
    patch: Path | None,
) -> None:
    from contextgraph.knowledge.team import files_of
    from contextgraph.readers.repository import GitFolder, identity

    git = GitFolder.around(root)
    if git is None:
        fail(f"{root} is no git repository")
    author = identity()
    if not author.is_set:
        setting = "git config --global user.name NAME sets another name"
        warn(f"the lessons name {author.name}, your account, as their speaker; {setting}")
    files = files_of(lessons, entries, author.name)
    if not files:
        fail("nothing to propose: all of these are in the repository")
    count = number_of(len(files), "lesson")
    message = f"Propose {count} for agents"
    start = git.head()
    commit = git.commit(files, message, author[:2], branch if patch is None else "")
    if not commit:
        fail(f"git cannot write the branch {branch}")
    record: dict[str, Json] = {"commit": commit, "files": [*files]}
    ids = [lesson.id for lesson in lessons]
    common.exported(Path(root), "lessons", lessons=ids)
    if patch is None:
        common.exported(Path(git.common, "refs", "heads", branch), "branch", lessons=ids)
        text = f"{count} on the branch {branch}; to review: git diff HEAD...{branch}"
        common.answer({"branch": branch, **record}, text)
        return
    made = git.output("format-patch", "--stdout", f"{start}..{commit}" if start else commit)
    if str(patch) == "-":
        print(made, end="")
        return
    with replacing(patch) as part:  # for its owner alone
        part.write_text(made, encoding="utf-8")
    common.exported(patch, "patch", lessons=ids)
    common.answer(
        {"patch": str(patch), **record}, f"{count} in {patch}; to take them: git am {patch}"
    )


def _sync(common: Common, root: str, entries: "Entries", *, dry_run: bool) -> None:
    from contextgraph.knowledge.team import trusts_lessons

    if not trusts_lessons(root):
        fail(UNREAD.format(root))
    taken = None if dry_run else learn_team(common, Path(root))
    if not dry_run:
        common.exported(Path(root), "lessons")
    changes = rules_written(root, entries, dry_run=dry_run)
    if common.as_json:
        emit({"taken": record_of(taken) if taken else None, "changes": {**changes}})
        return
    if taken:
        print(taken_line(taken))
    print("".join(changes.values()), end="")


def rules_written(
    root: str,
    entries: "Entries",
    *,
    dry_run: bool = False,
    on_error: Callable[[SettingsError], None] | None = None,
) -> dict[str, str]:
    """Write the rules of *entries* for agents; return the changes by the name of the file.

    One that cannot be read or written is left, and the others are written: then *on_error* gets
    the `SettingsError`, or it is raised.
    """
    from contextgraph.agents.agents_md import text_beside_rules, write_team_rules
    from contextgraph.knowledge.team import rules_for_agents

    changes, failed = dict[str, str](), list[SettingsError]()
    for path in _instruction_files(Path(root)):
        try:
            rules = rules_for_agents(entries, text_beside_rules(path).splitlines())
            if change := write_team_rules(path, rules, dry_run=dry_run):
                changes[path.name] = change
        except SettingsError as error:
            failed.append(error)
    for one in failed:
        if on_error is None:
            raise one
        on_error(one)
    return changes


def _instruction_files(root: Path) -> list[Path]:
    """The files of instructions at *root*; AGENTS.md where there is none.

    Not one that is another, or includes it.
    """
    paths = [root / name for name in (_INSTRUCTIONS, _OTHER) if (root / name).exists()]
    if len(paths) < 2:
        return paths or [root / _INSTRUCTIONS]
    from contextgraph.agents.agents_md import text_beside_rules

    first, second = paths
    try:
        is_same = first.samefile(second) or f"@{_INSTRUCTIONS}" in text_beside_rules(second)
    except SettingsError:
        is_same = False
    return [first] if is_same else paths


def _show(common: Common, root: str, entries: "Entries") -> None:
    from contextgraph.knowledge.team import compared, trusts_lessons

    status, is_trusted = compared(_lessons(common, root), entries), trusts_lessons(root)
    if common.as_json:
        emit(_record(root, status, entries, is_trusted=is_trusted))
        return
    there = number_of(len(entries.listed), "lesson")
    print_text((f"{LESSONS_FOLDER}: {there}, {'trusted' if is_trusted else 'not trusted'}", "bold"))
    if entries.listed and not is_trusted:
        print_text((UNREAD.format(root), "dim"))
    for title, listed in (
        ("in other words here", [(entry.text, entry.path) for entry, _ in status.changed]),
        ("not in the memory", [(entry.text, entry.path) for entry in status.new]),
        ("not in the repository", [(lesson.text, lesson.id) for lesson in status.own]),
    ):
        if listed:
            print_text((f"{title}: {len(listed)}", "bold"))
        for text, name in listed[:_LISTED]:
            print_text(one_line(text, _WIDTH), (f"  {name}", "dim"), indent=2)
        if (more := len(listed) - _LISTED) > 0:
            print_text((f"{more} more: --json lists all", "dim"), indent=2)


def _record(
    root: str, status: "TeamStatus", entries: "Entries", *, is_trusted: bool
) -> "dict[str, Json]":
    def of(entry: "Entry") -> "dict[str, Json]":
        return {"file": entry.path, "text": entry.text, "lesson": entry.lesson}

    changed: list[Json] = [{**of(entry), "here": lesson.text} for entry, lesson in status.changed]
    damaged: list[Json] = [
        {"file": path, "position": error.position, "reason": error.reason}
        for path, error in entries.damaged.items()
    ]
    return {
        "folder": root,
        "trusted": is_trusted,
        "entries": len(entries.listed),
        "same": [*map(of, status.same)],
        "changed": changed,
        "new": [*map(of, status.new)],
        "own": [{"id": lesson.id, "text": lesson.text} for lesson in status.own],
        "damaged": damaged,
    }

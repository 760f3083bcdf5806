"""Lessons that a piece of work broke: a turn of an agent, or a change that is to be committed.

Words and structure decide: a command or a name that is ruled out, a file that is to be left alone,
a value that a lesson states, a check that did not run, a checklist of which a part is missing.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from contextgraph.knowledge.extraction import files_in
from contextgraph.knowledge.ranking import FEWEST_WRITTEN
from contextgraph.knowledge.sentences import speaks_of_absence
from contextgraph.model import About, Lesson, LessonFacts, LessonKind, Origin
from contextgraph.readers.repository import GitFolder
from contextgraph.system.working_tree import WorkingTree
from contextgraph.text import dice, gives_instructions, regex, stems
from contextgraph.trace.actions import ActionKind, is_prose, shell_text
from contextgraph.trace.checks import orders_in, unchecked
from contextgraph.trace.ordered import (
    forbids,
    is_about_form,
    left_alone,
    names_ruled_out,
    restricts,
)
from contextgraph.trace.shell import commands_in
from contextgraph.trace.steps import Change, StepTrace, change_of, edited_file, is_edit, net_changes

_FILES, _COMMAND = 3, 80
_VALUE = regex(r"(?<![\w.])\d{2,}(?:\.\d+)?(?![\w.]*\w)")
_SPAN = regex(r"`([^`]+)`")
# A fact says how something is, not what is to be done.
_FORBIDDING = frozenset({LessonKind.RULE, LessonKind.DECISION})
# How much of a line stays where only its value changes.
_SAME_LINE = 0.5


class Breach(StrEnum):
    """Kinds of a broken lesson; what is only missing may still be done."""

    COMMAND = "command"
    NAME = "name"
    FILE = "file"
    VALUE = "value"
    CHECK = "check"
    CHECKLIST = "checklist"

    @property
    def is_missing(self) -> bool:
        """True where something was not done, in place of something that was."""
        return self in (Breach.CHECK, Breach.CHECKLIST)


class Broken(NamedTuple):
    """A *lesson* that was broken: by *what* (a command, name or value), in *files*.

    *line* is the text that was added; empty where there is none.
    """

    lesson: Lesson
    how: Breach
    what: str = ""
    files: tuple[str, ...] = ()
    line: str = ""

    def __str__(self) -> str:
        said = f'"{" ".join(self.lesson.text.split())}" ({self.lesson.time:%Y-%m-%d})'
        more = f" and {len(self.files) - _FILES} more" if len(self.files) > _FILES else ""
        listed = f"{', '.join(self.files[:_FILES])}{more}"
        match self.how:
            case Breach.COMMAND:
                return f"this turn ran `{self.what}`, although {said}"
            case Breach.NAME:
                return f"{listed} now has `{self.what}`, although {said}"
            case Breach.FILE:
                return f"{listed} was changed, although {said}"
            case Breach.VALUE:
                return f"{listed} no longer has {self.what}, although {said}"
            case Breach.CHECKLIST:
                return f"{self.what} changed without {listed}: {said}"
        return f"not run since {listed} changed: {said}"


class Work:
    """The steps of a turn, or of a change, and what they come to."""

    def __init__(self, turn: Sequence[StepTrace]) -> None:
        self.turn = turn

    @cached_property
    def lines(self) -> list[str]:
        """The lines that were given to a shell."""
        return [text for step in self.turn if (text := shell_text(step.step.action))]

    @cached_property
    def changes(self) -> list[Change]:
        """Lines that edits added and removed, by file."""
        return net_changes(
            [
                change_of(self.turn, at)
                for at, step in enumerate(self.turn)
                if is_edit(step) and step.succeeded
            ]
        )

    @cached_property
    def files(self) -> tuple[str, ...]:
        """The files that were changed, created or deleted, in order."""
        changed = dict.fromkeys(
            file
            for step in self.turn
            if step.succeeded
            for file in (*step.reading.scripted, *step.reading.changed)
        )
        return tuple(changed | dict.fromkeys(self.gone))

    @cached_property
    def gone(self) -> tuple[str, ...]:
        """The files that were deleted or moved away."""
        removed = (
            (command, skipped)
            for line in self.lines
            for command in commands_in(line)
            for name, skipped in (("rm", 0), ("git rm", 0), ("mv", -1), ("git mv", -1))
            if command.program == name or " ".join((command.program, *command.words[:1])) == name
        )
        return tuple(
            word
            for command, skipped in removed
            for word in command.words[: skipped or None]
            if word not in ("rm", "mv")
        )

    @cached_property
    def created(self) -> frozenset[str]:
        """The files that were written as a whole."""
        return frozenset(
            edited_file(step)
            for step in self.turn
            if is_edit(step) and step.succeeded and step.reading.kind is ActionKind.CREATE
        )


def gone_files(
    lessons: Mapping[str, tuple[str, About]], tree: WorkingTree
) -> dict[str, tuple[str, ...]]:
    """Return, by id, the files that *lessons* name and *tree* lost; a lesson is its text and About.

    Not those of which the text says that they are not to be there, or were moved.
    """
    named = {id_: paths_to_be_there(text, about) for id_, (text, about) in lessons.items()}
    found = files_in_tree(chain.from_iterable(named.values()), tree)
    gone = {
        id_: tuple(one for one in paths if found.get(one) == []) for id_, paths in named.items()
    }
    return {id_: paths for id_, paths in gone.items() if paths}


def files_in_tree(paths: Iterable[str], tree: WorkingTree) -> dict[str, list[str]]:
    """Return, by path, the files of *tree* at or below it; an empty list where it lost them.

    A path may be relative to a folder below the root. One in no folder of the tree, which may be of
    another machine or repository, is left out.
    """
    named = {*paths}
    found = {path: [_place(path)] for path in named if tree.has(_place(path))}
    missing = named - found.keys()
    repository = GitFolder.around(os.fspath(tree.root)) if missing else None
    known = files_at(missing, repository.tracked()) if repository else {}
    for path in missing:
        if path in known:
            found[path] = [*filter(tree.has, known[path])]
        elif "/" in path and tree.has(path.partition("/")[0]):
            found[path] = []
    return found


def files_at(paths: Iterable[str], files: Iterable[str]) -> dict[str, list[str]]:
    """Return, by path, the *files* at or below it; *paths* without any are left out."""
    named, found = defaultdict[str, set[str]](set), defaultdict[str, list[str]](list)
    for path in paths:
        named[_place(path).rpartition("/")[2]].add(path)
    for file in files:
        for part in named.keys() & {*file.split("/")}:
            for path in named[part]:
                if is_at(file, path):
                    found[path].append(file)
    return found


def _place(path: str) -> str:
    """The file or folder of *path*, also of ``folder/*.c``."""
    return path.partition("/*")[0].rstrip("/")


def paths_to_be_there(text: str, about: About) -> list[str]:
    """Return the paths of a lesson except those that its *text* says are not to be there."""
    kept = {one.path for one in left_alone(text, about.paths)}
    return [
        path for path in about.paths if path.strip("/") in kept or not speaks_of_absence(text, path)
    ]


def may_be_broken(lesson: Lesson) -> bool:
    """Return False for a lesson that `broken_by` never yields."""
    text = lesson.text
    can_be = (
        (lesson.kind in _FORBIDDING and restricts(text))
        or any(orders_in(text))
        or any(left_alone(text, lesson.about.paths))
        or lesson.kind is LessonKind.CHECKLIST
        or (bool(lesson.about.paths) and bool(_VALUE.search(text)))
    )
    return can_be and not gives_instructions(text)


def broken_by(turn: Sequence[StepTrace], lessons: Iterable[Lesson]) -> Iterator[Broken]:
    """Yield the *lessons*, of which each `may_be_broken`, that the steps of *turn* broke."""
    work = Work(turn)
    for lesson in lessons:
        broken = next(filter(None, (way(work, lesson) for way in _WAYS)), None)
        if broken:
            yield broken


def says_how_to_run(lesson: Lesson | LessonFacts, text: str, line: str) -> bool:
    """Return True where *lesson* with this *text* may be about how to run *line*.

    True for rules, sentences of people and what is counted. Another lesson has to be about one of
    the programs of *line*, since many only mention one, and a fact about the form of this call.
    """
    if lesson.origin in (Origin.SAID, Origin.COUNTED) or lesson.kind is LessonKind.RULE:
        return True
    if lesson.kind is LessonKind.FACT and not is_about_form(text, line):
        return False
    programs = {command.program.partition(" ")[0] for command in commands_in(line)}
    return any(named.partition(" ")[0] in programs for named in lesson.about.programs)


def _command(work: Work, lesson: Lesson) -> Broken | None:
    ruled_out = (
        line
        for line in work.lines
        if lesson.kind in _FORBIDDING
        and forbids(lesson.text, line, lesson.repo)
        and says_how_to_run(lesson, lesson.text, line)
    )
    if line := next(ruled_out, ""):
        parts = [one.text for one in commands_in(line)]
        part = next((one for one in parts if forbids(lesson.text, one, lesson.repo)), line)
        return Broken(lesson, Breach.COMMAND, " ".join(part.split())[:_COMMAND])
    return None


def _check(work: Work, lesson: Lesson) -> Broken | None:
    missing = (unchecked(work.turn, order) for order in orders_in(lesson.text))
    files = next(filter(None, missing), ())
    return Broken(lesson, Breach.CHECK, files=files) if files else None


def _name(work: Work, lesson: Lesson) -> Broken | None:
    about = lesson.about
    if lesson.kind not in _FORBIDDING:
        return None
    for name, is_plain in names_ruled_out(lesson.text, (*about.symbols, *about.programs)):
        pattern = _pattern_of(name)
        if is_plain:
            pattern = _beginning_with(name) if _names_files(about) else _import_of(name)
        for change in work.changes:
            if is_prose(change.file) or not _is_meant(change.file, lesson):
                continue
            added = [line for line in change.added if pattern.search(line)]
            if not is_plain and not _is_meant_anywhere(lesson):
                added = [line for line in added if _says_more(lesson, line, name)]
            if len(added) > sum(bool(pattern.search(line)) for line in change.removed):
                return Broken(lesson, Breach.NAME, name, (change.file,), added[0])
    return None


def _is_meant_anywhere(lesson: Lesson) -> bool:
    """Return False for a decision that names no file: it rules out something in one place."""
    is_placed = bool(lesson.about.paths) or lesson.origin is Origin.SAID
    return lesson.kind is LessonKind.RULE or is_placed


def _says_more(lesson: Lesson, line: str, name: str) -> bool:
    """Return whether *line* has words of *lesson* beside *name*."""
    shared = {*stems(lesson.text)} & {*stems(line)}
    return len(shared - {*stems(name)}) >= FEWEST_WRITTEN


def _pattern_of(name: str) -> re.Pattern[str]:
    """The pattern of *name* in code; of a call its beginning."""
    parts = r"\s+".join(map(re.escape, name.removesuffix("()").split()))
    call = r"\s*\(" if name.endswith("()") else ""
    return re.compile(rf"(?<![\w.-]){parts}{call}(?![\w-])")


def _import_of(name: str) -> re.Pattern[str]:
    """The pattern of a line that imports the module *name*, or a part of it."""
    module = re.escape(name)
    return re.compile(
        rf"^\s*(?:import|from|use|using|extern\s+crate)\s+(?:[\w.]+\s*,\s*)*{module}(?![\w-])"
        rf"|(?:\b(?:from|import|require)|#\s*include)\s*\(?\s*[\"'<]{module}[/\"'>.]"
    )


def _beginning_with(name: str) -> re.Pattern[str]:
    """The pattern of a line that imports *name*, or is a statement that begins with it."""
    statement = rf"^\s*{re.escape(name)}\s+[\w\"'(./@]"
    return re.compile(rf"{statement}|{_import_of(name).pattern}")


def _names_files(about: About) -> bool:
    return bool(about.paths) and all(os.path.splitext(path)[1] for path in about.paths)


def _is_meant(file: str, lesson: Lesson) -> bool:
    """Return whether *lesson* is about *file*: it names it, its folder, or no file."""
    return not lesson.about.paths or any(is_at(file, path) for path in lesson.about.paths)


def is_at(file: str, path: str) -> bool:
    """Return whether *file*, which may begin above the repository, is *path* or in that folder.

    ``folder/*.c`` are the files of this kind in a folder.
    """
    folder, is_kind, suffix = path.rpartition("/*")
    if is_kind:
        return f"/{os.path.dirname(file)}".endswith(f"/{folder}") and file.endswith(suffix)
    return f"/{file}/".endswith(f"/{path.strip('/')}/") or f"/{path.strip('/')}/" in f"/{file}"


def _file(work: Work, lesson: Lesson) -> Broken | None:
    for path, only_kept in left_alone(lesson.text, lesson.about.paths):
        files = work.gone if only_kept else work.files
        if changed := tuple(file for file in files if is_at(file, path)):
            return Broken(lesson, Breach.FILE, files=changed)
    return None


def _value(work: Work, lesson: Lesson) -> Broken | None:
    """Return a value that *lesson* states of a file, and that another one replaced there."""
    stated = _VALUE.findall(lesson.text)
    words = {*stems(lesson.text)}
    for change in work.changes if lesson.about.paths else ():
        if not _is_meant(change.file, lesson):
            continue
        for line in change.removed:
            values = [value for value in _VALUE.findall(line) if value in stated]
            if not values or words.isdisjoint(stems(_VALUE.sub(" ", line))):
                continue
            new = _replacing(line, change.added)
            if new and not any(value in stated for value in _VALUE.findall(new)):
                return Broken(lesson, Breach.VALUE, values[0], (change.file,), new)
    return None


def _replacing(line: str, added: Sequence[str]) -> str:
    """Return the line of *added* that has another value in the words of *line*; empty for none."""
    words = _VALUE.sub(" ", line).split()
    close = [one for one in added if dice(words, _VALUE.sub(" ", one).split()) >= _SAME_LINE]
    return next((one for one in close if _VALUE.search(one)), "")


def _checklist(work: Work, lesson: Lesson) -> Broken | None:
    """Return what is changed together with a file that was changed, or with what is new."""
    if lesson.kind is not LessonKind.CHECKLIST or not lesson.about.paths:
        return None
    first, is_counted = lesson.about.paths[0], lesson.origin is Origin.COUNTED
    if is_counted:
        if first.endswith("/"):
            return None  # a new folder: of a file it is not known whether its folder was there
        is_new = f"`{first}` is" not in lesson.text
        files, named = work.created if is_new else work.files, _SPAN.findall(lesson.text)[1:]
    else:
        named = [*files_in(lesson.text)]
        is_folder = first not in named and not os.path.splitext(first)[1]
        files = work.created if is_folder else work.files
    changed = next((file for file in files if is_at(file, first)), "")
    if not is_counted and not _concerns(work, lesson, changed):
        return None
    others = [one for one in dict.fromkeys((*lesson.about.paths[1:], *named)) if one != first]
    if not is_counted and is_prose(first) and not all(map(is_prose, others)):
        return None  # what is written about code follows it
    missing = tuple(one for one in others if not any(is_at(file, one) for file in work.files))
    return Broken(lesson, Breach.CHECKLIST, changed, missing) if changed and missing else None


def _concerns(work: Work, lesson: Lesson, file: str) -> bool:
    """Return whether what changed in *file* is what *lesson* speaks of, beside the names of files.

    A new or a deleted file is.
    """
    changes = [change for change in work.changes if change.file == file]
    named = {word for path in files_in(lesson.text) for word in stems(path)}
    said = {*stems(lesson.text)} - named
    written = {
        stem for one in changes for line in (*one.added, *one.removed) for stem in stems(line)
    }
    is_whole = file in work.created or file in work.gone
    return is_whole or len(said & written) >= FEWEST_WRITTEN


_WAYS: Sequence[Callable[[Work, Lesson], Broken | None]] = (
    _command,
    _name,
    _file,
    _value,
    _check,
    _checklist,
)

"""Check a change against lessons, what they cite, and answers to saved questions.

A change breaks the lessons that a turn of an agent would break, by the same function.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from enum import StrEnum
from itertools import chain, zip_longest
from pathlib import Path

from msgspec import Struct

from contextgraph.errors import RemoteError
from contextgraph.knowledge.broken import Breach, broken_by, gone_files, may_be_broken
from contextgraph.knowledge.distil import UnusableError
from contextgraph.knowledge.entries import Question
from contextgraph.knowledge.judging import Judge, judged
from contextgraph.knowledge.lessons import Lessons
from contextgraph.knowledge.recall import waits
from contextgraph.model import (
    Action,
    Lesson,
    LessonStatus,
    Note,
    Origin,
    RawTrajectory,
    RunFilter,
    Step,
)
from contextgraph.model.values import replace
from contextgraph.readers.tool_calls import edits_of
from contextgraph.store.memory_store import RunStore
from contextgraph.system.intake import content
from contextgraph.system.working_tree import WorkingTree
from contextgraph.text import folded, gives_instructions
from contextgraph.trace import read_steps
from contextgraph.trace.steps import StepTrace, added_lines, files_changed, files_deleted

_SESSIONS, _ANSWERS, _TOUCHED = 20, 5, 10
_MAX_BYTES = 1 << 22


class Level(StrEnum):
    """Severity of a finding: an error fails the check."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Rule(StrEnum):
    """Kinds of finding beside the ways to break a lesson."""

    TOUCHED = "touched"
    CITATION = "citation"
    QUESTION = "question"
    JUDGED = "judged"
    UNJUDGED = "unjudged"


class Finding(Struct, frozen=True):
    """A finding of a check: *rule* is its kind, *lesson* the id of the lesson that it is about."""

    rule: str
    level: Level
    message: str
    file: str = ""
    line: int = 1
    lesson: str = ""
    by: str = "words"


class Checked(Struct, frozen=True):
    """The *findings* of a check, and how many lessons and saved questions it looked at."""

    findings: tuple[Finding, ...]
    lessons: int
    questions: int = 0

    @property
    def is_broken(self) -> bool:
        """True where an error was found."""
        return any(one.level is Level.ERROR for one in self.findings)


class Change:
    """A unified diff of a repository at *root*, as the steps of an agent that edits so."""

    def __init__(self, patch: str, root: str) -> None:
        self.patch, self.root, self.files = patch, root, files_changed(patch)
        self.added = [*added_lines(patch)]
        self.deleted = files_deleted(patch)

    @property
    def written(self) -> str:
        """The text that it adds."""
        return "\n".join(line for _, line in self.added)

    def steps(self, repo: str, ran: Sequence[Step] = ()) -> list[StepTrace]:
        """Return the steps: the edits, then what *ran* since."""
        edits = [Step(0, "", action, "ok", exit_code=0) for action in edits_of(self.patch)]
        steps = [replace(step, index=at) for at, step in enumerate((*edits, *ran))]
        return [*read_steps(RawTrajectory("diff", "diff", repo, "", tuple(steps)))]

    def line_of(self, file: str, text: str) -> int:
        """Return the line of *file* that says *text*; 1 where none does."""
        try:
            lines = content(os.path.join(self.root, file), _MAX_BYTES, inside=self.root)
        except OSError:
            return 1
        said = lines.decode("utf-8", "replace").splitlines()
        return next((at for at, line in enumerate(said, start=1) if text and line == text), 1)


class Checker:
    """Checks a repository at *root*, called *repo*, against *lessons* and *runs* of a memory."""

    def __init__(self, lessons: Lessons, runs: RunStore, root: str, repo: str) -> None:
        self._lessons, self._runs, self._root, self._repo = lessons, runs, root, repo
        self._tree = WorkingTree(Path(root))
        self.active = [
            lesson
            for lesson in lessons.of(repo, status=[LessonStatus.ACTIVE])
            if not gives_instructions(lesson.text)
        ]

    def change(
        self, patch: str, ran: Sequence[str] = (), judge: Judge | None = None
    ) -> Iterator[Finding]:
        """Yield what the unified diff *patch* breaks, cites in vain, and touches.

        *ran* are commands that ran on it. Checks of which nothing is known are not missed. *judge*
        decides on the lessons that are nearest to it in words, and on those that it touches.
        """
        change = Change(patch, self._root)
        given = [Step(0, "", Action("bash", line, {"command": line}), "ok") for line in ran]
        since = self._ran_since(change.files)
        committed = Step(0, "", Action("bash", "git commit", {"command": "git commit"}), "ok")
        steps = change.steps(self._repo, (*(since or ()), *given, committed))
        named = set[str]()
        for broken in broken_by(steps, filter(may_be_broken, self.active)):
            if broken.how is Breach.CHECK and since is None and not ran:
                continue
            # That a command does not run on a machine is no rule that a change could break.
            if broken.how is Breach.COMMAND and broken.lesson.origin is Origin.COUNTED:
                continue
            named.add(broken.lesson.id)
            file = broken.what if broken.how is Breach.CHECKLIST else (*broken.files, "")[0]
            level = Level.WARNING if broken.how.is_missing else Level.ERROR
            line = change.line_of(file, broken.line)
            yield Finding(broken.how, level, str(broken), file, line, broken.lesson.id)
        for one in self.citations(change):
            named.add(one.lesson)
            yield one
        touched = self._lessons.naming(change.files, repo=self._repo, written=change.written)
        notes = [one.note for one in touched if one.note.id not in named][:_TOUCHED]
        notes = [note for note in notes if not gives_instructions(note.content)]
        judged_broken = [*self._judged(judge, change, notes, named)] if judge else []
        yield from judged_broken
        for note in notes:
            if note.id in {one.lesson for one in judged_broken}:
                continue
            about = note.lesson.about.paths if note.lesson else ()
            names = {os.path.basename(path) for path in about}
            file = next((one for one in change.files if os.path.basename(one) in names), "")
            said = f'"{" ".join(note.content.split())}" ({note.created_at:%Y-%m-%d})'
            yield Finding(Rule.TOUCHED, Level.NOTE, f"to know: {said}", file, 1, note.id)

    def _judged(
        self, judge: Judge, change: Change, touched: Sequence[Note], named: Collection[str]
    ) -> Iterator[Finding]:
        """Yield the lessons that *judge* says are broken, without those *named* already.

        Where it gives no usable answer, that.
        """
        text = "\n".join((*change.files, change.written))
        near = self._lessons.sharing_words(text, repo=self._repo)
        in_turns = filter(None, chain.from_iterable(zip_longest(near, touched)))
        notes = {note.id: note for note in in_turns if note.id not in named}
        asked = [note for note in notes.values() if not gives_instructions(note.content)]
        try:
            broken = [*judged(judge, change.patch, change.added, asked)] if asked else []
        except (RemoteError, UnusableError) as error:
            message = f"{judge.name} judged nothing: {error}"
            yield Finding(Rule.UNJUDGED, Level.WARNING, message, by=judge.name)
            return
        for note, file, line in broken:
            said = f'"{" ".join(note.content.split())}"'
            message = f"`{line.strip()}` breaks {said}, as judged by {judge.name}"
            at = change.line_of(file, line)
            yield Finding(Rule.JUDGED, Level.WARNING, message, file, at, note.id, judge.name)

    def _ran_since(self, files: Sequence[str]) -> list[Step] | None:
        """Return the commands of the newest session that edited one of *files*, after its edits.

        None where no session is known that did.
        """
        listed = self._runs.listed(RunFilter(repo=self._repo), _SESSIONS)
        facts = self._runs.facts(run.id for run in listed)
        for run in listed:
            changed = {*run.files, *facts[run.id].created}
            if changed.isdisjoint(files) or not (raw := self._runs.raw(run.id)):
                continue
            read = [*read_steps(raw)]
            edits = [step.index for step in read if not {*step.reading.changed}.isdisjoint(files)]
            if edits:
                return [step for step in raw.steps if step.index > edits[-1]]
        return None

    def citations(self, change: Change | None = None) -> Iterator[Finding]:
        """Yield what lessons cite and is gone: files, symbols, and messages.

        Of a *change* only what it took away.
        """
        known = self._runs.trajectories(
            {one.run for lesson in self.active for one in lesson.evidence if one.run}
        )
        lost = gone_files({one.id: (one.text, one.about) for one in self.active}, self._tree)
        for lesson in self.active:
            gone = [*self._gone(lesson, lost.get(lesson.id, ()), change)]
            messages = () if change else {one.run for one in lesson.evidence if one.run} - {*known}
            gone += [f"the message in {run}" for run in sorted(messages)]
            if gone:
                said = f'"{" ".join(lesson.text.split())}" ({lesson.time:%Y-%m-%d})'
                file = next(iter(lesson.about.paths), "")
                message = f"{', '.join(gone)} is gone, which is cited by {said}"
                yield Finding(Rule.CITATION, Level.WARNING, message, file, 1, lesson.id)

    def _gone(self, lesson: Lesson, gone: Iterable[str], change: Change | None) -> Iterator[str]:
        about = lesson.about
        for path in gone:
            if change is None or path in change.deleted:
                yield path
        there = [path for path in about.paths if "." in path and self._tree.has(path)]
        if change and not {*there} & {*change.files}:
            return
        for symbol in about.symbols if there else ():
            if not any(self._tree.has(path, symbol) for path in there):
                yield f"{symbol} of {', '.join(there)}"

    def answers(self, question: str) -> list[str]:
        """Return the lessons that answer *question*, the best first.

        Those of the owner and of the repository: what is saved is everybody's.
        """
        found = self._lessons.for_request(question, repo=self._repo)
        notes = (one.note for one in found if not waits(one.note))
        shown = (note.content for note in notes if not note.contributor or note.is_of_team)
        return [text for text in shown if not gives_instructions(text)][:_ANSWERS]

    def questions(self, saved: Sequence[Question]) -> Iterator[Finding]:
        """Yield the *saved* questions that no longer have their answer."""
        for one in saved:
            now = self.answers(one.text)
            words = {folded(text) for text in now}
            if missing := [text for text in one.answers if folded(text) not in words]:
                instead = f'; now: "{now[0]}"' if now else "; now there is none"
                message = f'"{one.text}" no longer has the answer "{missing[0]}"{instead}'
                yield Finding(Rule.QUESTION, Level.ERROR, message, one.path)

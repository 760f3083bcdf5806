"""Lessons that a team keeps in its repository: taking them over, and proposing more of them.

They are those of the repository as a source, not of the owner: what the owner said stays, and is
hidden while the repository has it in other words. What is in no file any more is forgotten.
"""

import os
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from contextgraph.config import LESSONS
from contextgraph.errors import InvalidNoteError
from contextgraph.knowledge.entries import Entries, Entry, name_of, written
from contextgraph.knowledge.lessons import (
    REVIEWED,
    NewLesson,
    lesson_id,
    note_of_lesson,
    said_again,
)
from contextgraph.knowledge.notes import Notes, repo_name, with_evidence
from contextgraph.knowledge.rules import KnownRules
from contextgraph.model import (
    CLONE,
    LESSONS_FOLDER,
    About,
    Lesson,
    LessonFacts,
    LessonKind,
    LessonStatus,
    LinkType,
    Note,
    Origin,
    Quotation,
)
from contextgraph.model.values import replace
from contextgraph.readers.origin import clone_name
from contextgraph.readers.repository import GitFolder
from contextgraph.store.memory_store import NoteStore
from contextgraph.text import cut, folded, gives_instructions, mask_secrets, neutral

_SHOWN = (LessonStatus.ACTIVE, LessonStatus.PROPOSED)
# What a person said is evidence of what was made of it, also where that was superseded.
_SETTLED = (LessonStatus.ACTIVE, LessonStatus.SUPERSEDED)
_MOST_RULES = 10
# Of a request: it is a person's text, and finds the lesson nearly as well as the whole.
_REQUEST = 200


class Taken(Struct, frozen=True):
    """Counts of lessons of a repository: *added*, *changed*, *removed*, and *known* in all."""

    added: int = 0
    changed: int = 0
    removed: int = 0
    known: int = 0


class TeamStatus(Struct, frozen=True):
    """Differences between a memory and a folder of entries.

    *same* are in both; *changed* are entries with the id of a lesson that says something else here;
    *new* are entries that the memory does not have; *own* are active lessons without an entry,
    except facts that were counted: these are of the machine.
    """

    same: tuple[Entry, ...]
    changed: tuple[tuple[Entry, Lesson], ...]
    new: tuple[Entry, ...]
    own: tuple[Lesson, ...]


def root_of(folder: str | os.PathLike[str]) -> str:
    """Return the top of the working tree around *folder*; *folder* itself where there is none."""
    found = GitFolder.around(os.fspath(folder))
    return found.root if found else os.path.abspath(folder)


def trust_lessons(folder: str | os.PathLike[str]) -> None:
    """Trust the lessons of the repository at *folder*, as long as it is the same repository."""
    LESSONS.add(os.fspath(folder), clone_name(os.path.realpath(folder)))


def trusts_lessons(root: str) -> bool:
    """Return whether the user trusts the lessons of the repository that is now at *root*."""
    return LESSONS.has(root, clone_name(os.path.realpath(root)))


def take_over(notes: Notes, store: NoteStore, root: str, repo: str, entries: Entries) -> Taken:
    """Make the lessons that a memory has from the folder at *root* those of its *entries*.

    They are of *repo* alone. A review here stays; what a damaged file held stays, too. What the
    owner knows in the same words, or rejected, is not taken over.
    """
    repo, contributor = repo_name(repo), f"{CLONE}{clone_name(root)}"
    held = [note for note in store.all() if note.lesson and note.repo == repo]
    before = {note.id: note for note in held if note.is_of_team and note.contributor == contributor}
    own = {note.id: note for note in held if not note.contributor}
    ids = {note.id for note in held}  # of decision records, too
    known = {folded(note.content) for note in own.values()}
    wanted = dict[str, Note]()
    for entry in entries.listed:
        if entry.status not in _SHOWN or folded(entry.text) in known or _is_older(entry, own, repo):
            continue
        note = _note_of(entry, repo, contributor, own)
        if same := wanted.get(note.id):
            note = replace(with_evidence(same, note), locator=same.locator)
        if note.id in before or note.id not in ids:
            wanted[note.id] = note
    damaged = tuple(entries.damaged)
    gone = [
        id_
        for id_, note in before.items()
        if id_ not in wanted and not note.locator.startswith(damaged)
    ]
    updated = {id_: _updated(before[id_], note) for id_, note in wanted.items() if id_ in before}
    changed = [id_ for id_, note in updated.items() if note != before[id_]]
    fresh = [note for id_, note in wanted.items() if id_ not in before]
    if changed or fresh:
        store.change(changed, lambda note: updated[note.id], fresh)
    if gone:
        notes.forget(gone)
    return Taken(len(fresh), len(changed), len(gone), len(entries.listed))


def held_of(store: NoteStore, clone: str) -> list[str]:
    """Return the ids of all lessons that a memory has from folders of the repository *clone*.

    *clone* is its `clone_name`.
    """
    contributor = f"{CLONE}{clone}"
    return [one.id for one in store.all() if one.is_of_team and one.contributor == contributor]


def _note_of(entry: Entry, repo: str, contributor: str, own: Mapping[str, Note]) -> Note:
    evidence = entry.evidence or (
        Quotation(entry.text, "", entry.path, -1, entry.at, entry.by or entry.path),
    )
    is_active = entry.status is LessonStatus.ACTIVE
    facts = LessonFacts(entry.kind, entry.origin, entry.about, evidence, is_active=is_active)
    # Who changed its words reviewed it.
    is_rated = entry.probability is not None and entry.lesson == lesson_id(entry.text, repo)
    if entry.probability is not None and is_rated:
        facts = replace(facts, probability=entry.probability)
    replaced = (entry.lesson,) if is_active and entry.lesson in own else ()
    new = NewLesson(entry.text, facts, replaced, title=entry.request, importance=1.0)
    note = note_of_lesson(new, repo, contributor)
    credibility = note.credibility if is_rated else REVIEWED
    return replace(note, locator=f"{entry.path}#-1", credibility=credibility)


def _is_older(entry: Entry, own: Mapping[str, Note], repo: str) -> bool:
    """Return whether *entry* is as it was proposed, and the owner has edited the lesson since."""
    return entry.lesson in own and entry.lesson == lesson_id(entry.text, repo)


def _updated(known: Note, new: Note) -> Note:
    """Return *known* as its file has it now; a review here stays."""
    assert known.lesson is not None
    assert new.lesson is not None
    is_active = known.lesson.is_active if known.history else new.lesson.is_active
    facts = replace(new.lesson, is_active=is_active, before=known.lesson.before)
    others = [link for link in known.links if link.type != LinkType.SUPERSEDES]
    return replace(
        known,
        lesson=facts,
        tags=new.tags,
        title=new.title,
        locator=new.locator,
        created_at=new.created_at,
        credibility=known.credibility if known.history else new.credibility,
        links=(*others, *new.links),
    )


def entry_of(lesson: Lesson, by: str = "") -> Entry:
    """Return the entry that proposes *lesson*, as *by* would write it; of a named source by that.

    Agents read the file: its text is `neutral`. Raises `InvalidNoteError` for a lesson that holds a
    secret or an instruction to its reader.
    """
    by = neutral(lesson.contributor) or by
    evidence = tuple(
        replace(
            one,
            run="",
            quote=neutral(one.quote),
            context=neutral(one.context),
            speaker=by if by and one.speaker == "user" else one.speaker,
        )
        for one in lesson.evidence
    )
    about = lesson.about
    entry = Entry(
        text=neutral(lesson.text),
        kind=lesson.kind,
        status=LessonStatus.ACTIVE,
        about=About(
            paths=tuple(map(neutral, about.paths)),
            symbols=tuple(map(neutral, about.symbols)),
            programs=tuple(map(neutral, about.programs)),
            subject=neutral(about.subject),
        ),
        at=lesson.time,
        evidence=evidence,
        origin=lesson.origin,
        by=by,
        lesson=lesson.id,
        probability=None if _is_settled(lesson) else lesson.probability,
        request=_request(lesson.request),
    )
    text = written(entry)
    if "<secret:" in text or mask_secrets(text) != text:
        raise InvalidNoteError(f"{lesson.id} holds a secret, and is not written into a repository")
    if gives_instructions(lesson.text):
        raise InvalidNoteError(f"{lesson.id} is an instruction to its reader, not a lesson")
    return entry


def _request(request: str) -> str:
    """Return the beginning of *request*; empty where it holds a secret or instructs its reader."""
    text = cut(neutral(" ".join(request.split())), _REQUEST)
    is_safe = "<secret:" not in text and mask_secrets(text) == text
    return text if is_safe and not gives_instructions(text) else ""


def _is_settled(lesson: Lesson) -> bool:
    """Return True where somebody reviewed *lesson*, said it again, or wrote it as a lesson."""
    is_rated = lesson.origin in (Origin.SAID, Origin.WRITTEN)
    return not is_rated or lesson.sessions > 1 or bool(lesson.history)


def files_of(lessons: Iterable[Lesson], entries: Entries, by: str) -> dict[str, str]:
    """Return path -> content of the files that propose *lessons*, beside those there are.

    A lesson that an entry has in other words keeps its file, and what else stands in it. Raises
    `InvalidNoteError` as `entry_of` does.
    """
    there = {entry.lesson: entry for entry in entries.listed if entry.lesson}
    said = {folded(entry.text) for entry in entries.listed}
    files = dict[str, str]()
    for lesson in lessons:
        entry = entry_of(lesson, by)
        if folded(lesson.text) in said:
            continue
        if known := there.get(lesson.id):
            kept = {"kind": entry.kind, "about": entry.about, "probability": entry.probability}
            entry = replace(known, text=entry.text, **kept)
        files[entry.path or f"{LESSONS_FOLDER}/{name_of(entry)}"] = written(entry)
    return files


def compared(lessons: Sequence[Lesson], entries: Entries) -> TeamStatus:
    """Return how the *lessons* of a repository, of any status, and its *entries* differ."""
    by_words = {folded(lesson.text): lesson for lesson in lessons}
    by_id = {lesson.id: lesson for lesson in lessons if not lesson.contributor}
    same, changed, new = list[Entry](), list[tuple[Entry, Lesson]](), list[Entry]()
    for entry in entries.listed:
        if folded(entry.text) in by_words or entry.status not in _SHOWN:
            same.append(entry)  # one that no longer holds is not taken over
        elif entry.lesson in by_id:
            changed.append((entry, by_id[entry.lesson]))
        else:
            new.append(entry)
    there = {folded(entry.text) for entry in entries.listed}
    ids = {entry.lesson for entry in entries.listed}

    covered = said_again([(one.id, one, one.status in _SETTLED) for one in lessons])
    own = tuple(
        lesson
        for lesson in lessons
        if lesson.id not in covered
        and lesson.status is LessonStatus.ACTIVE
        and not (lesson.origin is Origin.COUNTED and lesson.kind is LessonKind.FACT)
        and not lesson.contributor
        and folded(lesson.text) not in there
        and lesson.id not in ids
    )
    return TeamStatus(tuple(same), tuple(changed), tuple(new), own)


def rules_for_agents(entries: Entries, lines: Iterable[str]) -> list[str]:
    """Return the few rules of *entries* that hold everywhere and that no line of *lines* says."""
    known, rules = KnownRules(lines), list[str]()
    for entry in sorted(entries.listed, key=lambda one: (-len(one.evidence), one.at, one.path)):
        text = " ".join(entry.text.split())
        if entry.holds_everywhere and not gives_instructions(text) and known.add(text):
            rules.append(mask_secrets(text))
    return rules[:_MOST_RULES]

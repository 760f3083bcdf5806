"""Lessons of a memory: what is known of them, who reviewed them, which are near a moment.

A lesson is a note of kind *lesson*: its content is the sentence, its title the request with which
the session began in which it was said first. Links lead to the runs in which it was said, and to
earlier lessons that it supersedes. What supersedes is read from the links, so that it ends when the
later session is deleted.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from itertools import chain, islice
from operator import itemgetter

from msgspec import Struct

from contextgraph.errors import InvalidArgumentError, InvalidNoteError
from contextgraph.knowledge.asked import asks_what_is_known
from contextgraph.knowledge.broken import is_at, paths_to_be_there, says_how_to_run
from contextgraph.knowledge.conflict import Relation, verdict
from contextgraph.knowledge.counted import failing_programs, named, program_not_found, refused_calls
from contextgraph.knowledge.extraction import (
    Said,
    SaidInRun,
    amends,
    files_in,
    opening_of,
    paths_in,
    statements_in,
    takes_back,
    without_output,
)
from contextgraph.knowledge.fitted import fitted
from contextgraph.knowledge.notes import (
    MAX_NOTE,
    Notes,
    links_of,
    may_amend,
    repo_name,
    statement_of,
    with_evidence,
)
from contextgraph.knowledge.ranking import (
    ABOUT,
    FEWEST_WRITTEN,
    MOST_SECTIONS,
    NAMED,
    PROPOSED,
    REQUEST_WORDS,
    SAME_SUBJECT,
    SECTION,
    Close,
    Worded,
    closeness,
    closest,
    in_turns,
    names_in,
    quote_of,
    rated,
    request_words,
    similarities,
)
from contextgraph.knowledge.recall import needs_a_person, stem_counts, superseded_in, waits
from contextgraph.knowledge.sentences import LEAST, holds_always, is_settled, speaks_of_absence
from contextgraph.knowledge.written import (
    gone_names,
    gone_paths,
    history_of,
    is_read_at_start,
    written_in,
)
from contextgraph.model import (
    CLONE,
    About,
    Lesson,
    LessonFacts,
    LessonKind,
    LessonStatus,
    Link,
    LinkType,
    NonNegativeInt,
    Note,
    NoteKind,
    NoteScope,
    Origin,
    Quotation,
    RawTrajectory,
    Recollection,
    Review,
    Time,
    is_subagent,
)
from contextgraph.model.values import checked, replace
from contextgraph.readers.origin import clone_name
from contextgraph.readers.repository import GitFolder
from contextgraph.store.memory_store import ALL, NoteStore
from contextgraph.text import (
    command_of,
    count_tokens,
    dice,
    digest,
    folded,
    kept_text,
    regex,
    stems,
)
from contextgraph.trace.ordered import bears_on_command, left_alone, names_ruled_out
from contextgraph.trace.shell import commands_in

_SOURCES: Mapping[Origin, str] = {
    Origin.SAID: "conversation",
    Origin.WRITTEN: "document",
    Origin.COUNTED: "runs",
    Origin.DISTILLED: "distilled",
}
_CREDIBILITY, REVIEWED = 0.85, 0.95
_KINDS = (NoteKind.LESSON,)
_LISTED = 10_000
# More subjects than an index of 500 tokens has room for.
_INDEXED = 250
# From here on two lessons say the same, and are worth a comparison word by word.
_SAME, _COMPARED, _FEWEST_STEMS = 0.8, 0.3, 3
# What is said of these takes at most so many tokens, without who said it and when.
STANDING_TOKENS = 85
_RUNNING = ("run", "use", "never")
_NUMBER, _VALUE = regex(r"\d+"), regex(r"\d\d+")
# What a later session leaves as it was, and how much of the two must be about the same.
_CLAUSE = regex(r"[;,:.!?]|\s[-–—]+\s")
_STAYS = regex(
    r"\b(?:stays?|remains?|unchanged|still|nothing (?:else|more)|as (?:before|is|it was)"
    r"|(?:has|have|\w['’](?:ve|s)) been \w+ing)\b",
    re.IGNORECASE,
)
_CHANGES = 0.5
# A request of at most so many words may name nothing ("go on").
_NAMES_NOTHING = 2
# What was said in a session that began with the same request is worth saying to one session.
_OF_SUCH = 0.5
# Lessons that are proposed for a section of a request at least.
_FEWEST_PROPOSED = 30
# Two conversations are nearly as close to a request from this share of the score on.
_NEARLY = 0.8
# A rule that people repeated in so many sessions stands at every start. Of two sessions, at 26
# starts of a team 1 helped and 14 were noise.
_STANDING = 3
# A sentence that waits for a review is said where it more likely helps than not: at prompts of a
# team none of the three texts with less helped. What came of a talk stands beside its other lines.
_HELPS_PROPOSED = 0.5
# Before edits, other lessons than rules are said in two sessions; in all where the edit writes
# their symbol.
_DECIDED = 0.6
# A checklist of what a request is to change: so often commits had all of it, see `checklists`.
_FOLLOWED = 0.75
_CREATES = frozenset(stems("new add create introduce another"))
# A text with more stems is long: by chance it has two words of many a lesson.
_LONG_TEXT = 64
# A symbol that so many sessions speak of is the project's, not a subject.
_OF_THE_PROJECT = 3
# "export.py never", but not "session.go then main.go"; "the rule of export.py".
_TOPIC = (
    r"^\W*(?:[\w.-]+/)*{named}(?![\w.])"
    r"|(?<![\w.]){named}[`'\")]*\s+(?:should|must|shall|never|always|only|stays?|holds?|keeps?|is|are|has"
    r"|have|needs?|can(?:no|['’])t|doesn|may)\b"
)
_PLACE = r"\b(?:of|in|for|inside|within|about)\s+[@`'\"(]*(?:[\w.-]+/)*{named}(?![\w.])"
_BLANK_LINE, _TOKEN = regex(r"\n\s*\n"), regex(r"\w+(?:-\w+)*")
# What is asked for once: afterwards it holds.
_CARRIED_OUT = regex(
    r"\b(?:mov(?:e|ed|ing)|renam(?:e|ed|ing)|put\b.*\binto|change\b.*\bto)\b", re.IGNORECASE
)


class NewLesson(Struct, frozen=True):
    """A lesson to keep: its sentence, and its *facts* with at least one piece of evidence.

    *supersedes* are the ids of lessons that it replaces, *title* is the request that began its
    session, *importance* is 0 to 1.
    """

    text: str
    facts: LessonFacts
    supersedes: tuple[str, ...] = ()
    title: str = ""
    importance: float = 0.5


@checked
class Lessons:
    """The lessons of a memory."""

    def __init__(
        self,
        notes: Notes,
        store: NoteStore,
        clock: Callable[[], datetime],
        current_name: Callable[[str], str] = lambda repo: repo,
    ) -> None:
        self._notes, self._store, self._now, self._named = notes, store, clock, current_name

    def add(self, run: RawTrajectory, run_id: str, contributor: str = "") -> None:
        """Keep the lessons that were said or written in *run*, which has the id *run_id*.

        Where nobody spoke after the request, only those written into files. *contributor* supplied
        it. A sub-agent, to which only the agent of its session speaks,
        belongs to that session: lessons that were learned from it before this was known are
        deleted.
        """
        if is_subagent(run.agent):
            self.remove_run(run_id)
            return
        now = run.started_at or self._now()
        new, title, found = list[NewLesson](), "", [*written_in(run, run_id, now)]
        if run.inherited or any(step.user_message for step in run.steps):
            said = statements_in(run)
            new, title = (
                [_lesson_said(one, said, run, run_id, now) for one in said.statements],
                said.title,
            )
            found += (*failing_programs(run, run_id, now), *refused_calls(run, run_id, now))
        new += [
            NewLesson(text, facts, title=title or opening_of(run.task)) for text, facts in found
        ]
        if new:
            self.keep(new, run.repo, contributor)

    def add_history(self, repository: GitFolder, repo: str) -> int:
        """Store decisions and reasons in the history of *repository* as lessons of *repo*.

        They replace unreviewed lessons of an earlier call; returns their number.
        """
        contributor = f"{CLONE}{clone_name(repository.root)}"
        new, known = self.keep(
            [NewLesson(text, facts) for text, facts in history_of(repository)], repo, contributor
        )
        kept = {*new, *known}
        gone = [
            note.id
            for note in self._newest(repo)
            if note.contributor == contributor
            and note.id not in kept
            and note.credibility != REVIEWED
            and not note.targets(LinkType.SAID_IN)
        ]
        self._notes.forget(gone)
        return len(kept)

    def age(self, repository: GitFolder, repo: str) -> int:
        """Silence the lessons of *repo* whose files, or symbols and programs, *repository* lost.

        All of these, since the lesson was last said or reviewed. They wait for a review; one whose
        names are back does no longer. Returns how many lessons changed.
        """
        listed = [note for note in self._newest(repo) if note.is_live and note.lesson]
        since = {
            note.id: max(note.updated_at or note.created_at, _last_said(note)) for note in listed
        }
        paths = {note.id: paths for note in listed if (paths := _paths_that_age(note))}
        names = {note.id: names for note in listed if (names := _names_that_age(note))}
        lost = gone_names(repository, ((names[id_], since[id_]) for id_ in names))
        lost |= gone_paths(repository, ((paths[id_], since[id_]) for id_ in paths))

        def aged(note: Note) -> Note:
            facts = note.lesson
            assert facts is not None
            gone = (
                one
                for one in (paths.get(note.id, ()), names.get(note.id, ()))
                if all(name in lost and lost[name] > since[note.id] for name in one)
            )
            return replace(note, lesson=replace(facts, gone=tuple(chain.from_iterable(gone))))

        known = self._store.get([*paths, *names])
        changed = [id_ for id_, note in known.items() if aged(note) != note]
        return len(self._store.change(changed, aged)) if changed else 0

    def take_over(self, run: RawTrajectory, run_id: str) -> None:
        """Keep the lessons of *run*, which the owner has, as theirs, also where others had it.

        Not those that a model of others made of it: only they vouch for these.
        """
        known = self._store.linking([run_id])
        if any(note.lesson and note.contributor for note in known):
            self.move(run, run_id, distilled=False)
        else:
            self.add(run, run_id)

    def move(
        self, run: RawTrajectory, run_id: str, contributor: str = "", *, distilled: bool = True
    ) -> None:
        """Make the lessons of *run* those of its present repository, with their reviews.

        Those that were not *distilled* alone: others stay as they are.
        """
        reviewed = {
            folded(note.content): note
            for note in self._store.linking([run_id])
            if note.lesson and note.credibility == REVIEWED
        }
        self.remove_run(run_id, distilled=distilled)
        self.add(run, run_id, contributor)

        def reviewed_as(note: Note) -> Note:
            known = reviewed[folded(note.content)]
            assert note.lesson is not None
            assert known.lesson is not None
            return replace(
                note,
                lesson=replace(
                    note.lesson, is_active=known.lesson.is_active, before=known.lesson.before
                ),
                credibility=known.credibility,
                importance=known.importance,
                archived_at=known.archived_at,
                history=known.history,
            )

        again = [note for note in self._store.linking([run_id]) if note.lesson]
        self._store.change(
            [note.id for note in again if folded(note.content) in reviewed], reviewed_as
        )

    def keep(
        self, new: Sequence[NewLesson], repo: str, contributor: str = ""
    ) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Keep *new* lessons of *repo*; return the ids of new ones, and of those known before.

        A lesson that says the same as a known one becomes evidence for it. A repeated call changes
        only the rating of lessons that nobody reviewed; rejected lessons stay rejected. Secrets are
        masked.
        """
        made: dict[str, Note] = {}
        for one in new:
            note = note_of_lesson(one, repo_name(repo), contributor)
            made[note.id] = with_evidence(made.get(note.id, note), note)
        known = self._store.get([*made])
        again = {id_: note for id_, note in made.items() if id_ in known}
        fresh = [note for id_, note in made.items() if id_ not in known]
        links, sure = defaultdict[str, list[Link]](list), set[str]()
        if fresh:
            links, same, sure = self._links(fresh)
            again |= {same[note.id].id: note for note in fresh if note.id in same}
            fresh = [
                _linked(note, links.pop(note.id, ()), is_sure=note.id in sure)
                for note in fresh
                if note.id not in same
            ]
        before = self._store.get([*again])
        changed = [id_ for id_, note in before.items() if with_evidence(note, again[id_]) != note]
        ended = self._said_after(again)
        for later, earlier in ended:
            links[earlier].append(Link(LinkType.SUPERSEDES, later))
            sure.add(earlier)
            changed.append(later)

        def updated(note: Note) -> Note:
            note = with_evidence(note, again[note.id]) if note.id in again else note
            stay = (link for link in note.links if (note.id, link.target) not in ended)
            note = replace(note, links=tuple(stay))
            if note.id in links:
                note = _linked(note, links[note.id], is_sure=note.id in sure)
            return note

        if fresh or changed or links:
            self._store.change([*dict.fromkeys((*changed, *links))], updated, fresh)
        return tuple(note.id for note in fresh), tuple(before)

    def _said_after(self, again: Mapping[str, Note]) -> set[tuple[str, str]]:
        """Return pairs of a lesson and one of *again* that it took back and that was said later."""
        return {
            (note.id, id_)
            for note in (self._store.linking([*again]) if again else ())
            for id_ in note.targets(LinkType.SUPERSEDES)
            if id_ in again and note.lesson and _takes_back(again[id_], note)
            if _last_said(again[id_]) > _last_said(note)
        }

    def remove_run(self, run_id: str, *, goes_on: bool = False, distilled: bool = True) -> int:
        """Delete what was said in a run; return how many lessons were deleted.

        A lesson that was also said elsewhere stays, with that evidence. Of a run whose log
        *goes_on* in one that is known by now, those stay that a model made or a person reviewed;
        those that a model made stay where not *distilled*.
        """
        said = [
            note
            for note in self._store.linking([run_id])
            if note.kind in _KINDS and run_id in note.targets(LinkType.SAID_IN)
            if not goes_on or (note.credibility != REVIEWED and _is_said(note))
            if distilled or (note.lesson and note.lesson.origin is not Origin.DISTILLED)
        ]
        rest = {note.id: _without_run(note, run_id) for note in said}
        kept = {id_: note for id_, note in rest.items() if note is not None}
        if kept:
            self._store.change([*kept], lambda note: kept[note.id])
        gone = [id_ for id_, note in rest.items() if note is None]
        return self._notes.forget(gone) if gone else 0

    def of(
        self,
        repo: str | None = None,
        *,
        status: Sequence[LessonStatus] = (LessonStatus.ACTIVE, LessonStatus.PROPOSED),
        recurring: bool = False,
        as_of: Time | None = None,
    ) -> tuple[Lesson, ...]:
        """Return the lessons of *repo* (None: of all) with this *status*, the newest first.

        *recurring*: only those said in two sessions or more. As known at *as_of*; none is of a
        source that is distrusted.
        """
        repo = repo and self._named(repo)
        wanted = {*status}
        is_every = not wanted <= {LessonStatus.ACTIVE, LessonStatus.PROPOSED}
        scope = replace(_scope(repo), live=None if is_every else True)
        listed = self._store.newest(scope, ALL)
        notes = {note.id: note for note in listed if _is_seen(note, as_of)}
        if any(note.contributor for note in notes.values()):
            hidden = self._notes.distrusted()
            notes = {id_: note for id_, note in notes.items() if note.contributor not in hidden}
        superseded = superseded_in(self._store, notes, as_of)
        lessons = [lesson_of(note, superseded.get(id_)) for id_, note in notes.items()]
        shown = [one for one in lessons if one.status in wanted and one.sessions > recurring]
        return tuple(sorted(shown, key=lambda one: (one.time, one.id), reverse=True))

    def _newest(self, repo: str | None) -> Sequence[Note]:
        return self._store.newest(_scope(repo), _LISTED)

    def standing(
        self, repo: str, request: str = "", *, as_of: Time | None = None
    ) -> tuple[Recollection, ...]:
        """Return lessons of *repo* that a *request* need not be about, in a few lines.

        First rules that people said in three sessions and what was counted in two, the most
        frequent first; not what agents read by themselves, nor what is said before a call. Then
        what the owner or team said where the same request began a session; not at a slash command
        without arguments.
        """
        notes = {note.id: note for note in self._newest(repo) if _is_seen(note, as_of)}
        repeated = {id_: note for id_, note in notes.items() if _is_repeated(note)}
        such = _of_such_sessions(notes.values(), request)[:PROPOSED] if request else ()
        said = {note.id: note for note in such}
        left = {*superseded_in(self._store, [*{**repeated, **said}], as_of)}
        if said:
            runs = {*map(_begun_in, said.values())}
            left |= _said_again([one for one in notes.values() if _begun_in(one) in runs])
        general = [lesson_of(note) for id_, note in repeated.items() if id_ not in left]
        general.sort(key=lambda one: (-one.sessions, len(one.about.names), -one.time.timestamp()))
        times = {one.id: one.sessions for one in general}
        room, found = STANDING_TOKENS, list[Recollection]()
        for id_ in dict.fromkeys((*times, *(one for one in said if one not in left))):
            # Who said it takes no room: a clone, which names the team, says the same.
            size = count_tokens(quote_of(notes[id_]).content)
            if size <= room:
                sessions = {"sessions": float(times.get(id_, 1))}
                helps = 1.0 if id_ in times else _OF_SUCH
                found.append(Recollection(notes[id_], 1.0, sessions, helps))
                room -= size
        return tuple(found)

    def subjects(
        self,
        repo: str,
        request: str = "",
        *,
        gone: Callable[[Collection[Note]], Collection[str]] = lambda notes: (),
    ) -> dict[str, str]:
        """Return the subjects of the lessons of *repo* by id, those nearest to *request* first.

        Then the newest; of many the first 250. A subject is the one that a model gave, or what the
        sentence names: of one without either, and of one that waits, nobody could look it up. What
        is counted is said before the command itself; those whose ids are *gone* are left out.
        """
        hidden = self._notes.distrusted()
        notes = {
            note.id: note
            for note in self._newest(repo)
            if note.is_live
            and not waits(note)
            and not _is_counted(note)
            and note.contributor not in hidden
        }
        replaced = self._store.newest(replace(_scope(repo), live=False), _LISTED)
        made = _said_again([*notes.values(), *replaced])
        left = superseded_in(self._store, [*notes]).keys() | made | {*gone(notes.values())}
        worded = {id_: Worded.of(note) for id_, note in notes.items() if id_ not in left}
        near = (one.id for one in closest(request_words(request), worded))
        abouts = ((id_, lesson_of(notes[id_]).about) for id_ in dict.fromkeys((*near, *worded)))
        # `run` says what to do, not what it is about.
        named = (
            (id_, about.subject or ", ".join(names[:2]))
            for id_, about in abouts
            for names in [[one for one in about.names if not (one.isalpha() and one.islower())]]
        )
        return dict(islice(filter(itemgetter(1), named), _INDEXED))

    def about(
        self, subject: str, repo: str | None = None, limit: NonNegativeInt = 5
    ) -> tuple[Lesson, ...]:
        """Return the lessons nearest to *subject*, closest first.

        Those that wait, too, where a person's own words may be quoted.
        """
        found = sorted(self.for_request(subject, repo=repo), key=lambda one: -one.score)
        return tuple(lesson_of(one.note) for one in found)[:limit]

    def accept(self, ids: Collection[str], by: str = "") -> int:
        """Mark these lessons as right, reviewed by *by*; return how many there were."""
        return self._review(ids, f"accepted{_by(by)}", is_active=True, archived_at=None)

    def edit(self, id_: str, text: str, by: str = "") -> bool:
        """Replace the text of a lesson, reviewed by *by*; return False if it is unknown.

        Raises `InvalidNoteError` for a text that is empty or too long.
        """
        content = kept_text(text)
        if not content or len(content) > MAX_NOTE:
            raise InvalidNoteError(f"a lesson has 1 to {MAX_NOTE:,} characters")
        return self._review([id_], f"edited{_by(by)}", is_active=True, content=content) > 0

    def reject(self, ids: Collection[str], by: str = "") -> int:
        """Never show these lessons again, nor any that say the same; return how many there were."""
        now = self._now()
        return self._review(ids, f"rejected{_by(by)}", is_active=False, archived_at=now)

    def supersede(self, id_: str, successor: str, by: str = "") -> bool:
        """Replace the lesson *id_* by the lesson *successor*; return False if one is unknown.

        Raises `InvalidArgumentError` where *successor* was itself superseded by *id_*.
        """
        if id_ == successor or len(self._lessons([id_, successor])) < 2:
            return False
        self._refuse_circle({id_: successor})
        what = f"superseded by {successor}{_by(by)}"
        return self._review([id_], what, is_active=False, superseded_by=successor) > 0

    def undo(self, ids: Collection[str]) -> int:
        """Undo the last review of these lessons; return how many had one.

        Raises `InvalidArgumentError` where one would again be superseded by what it superseded.
        """
        reviewed = {
            note.id: note.lesson.before.superseded_by
            for note in self._lessons(ids).values()
            if note.lesson and note.lesson.before
        }
        self._refuse_circle(reviewed)
        now = self._now()
        return len(self._store.change([*reviewed], partial(_undone, now=now)))

    def _refuse_circle(self, successors: Mapping[str, str | None]) -> None:
        """Raise `InvalidArgumentError` where a lesson with these *successors* superseded itself."""

        def successor(id_: str) -> str | None:
            if id_ in successors:
                return successors[id_]
            return next((note.superseded_by for note in self._store.get([id_]).values()), None)

        for first in successors:
            circle, by = [first], successor(first)
            while by and by not in circle:
                circle.append(by)
                by = successor(by)
            if by == first:
                said = ", which is superseded by ".join((*circle[1:], first))
                raise InvalidArgumentError(f"{first} cannot be superseded by {said}")

    def _lessons(self, ids: Collection[str]) -> dict[str, Note]:
        """Id -> the lesson, of those of *ids* that are known."""
        return {id_: note for id_, note in self._store.get([*ids]).items() if note.lesson}

    def _review(
        self,
        ids: Collection[str],
        what: str,
        *,
        is_active: bool,
        content: str = "",
        superseded_by: str | None = None,
        archived_at: Time | None = None,
    ) -> int:
        """Put the lessons *ids* into this state, and note *what* was done.

        `undo` goes back over a review that leaves a lesson as the last one did.
        """
        ids, now = [*ids], self._now()

        def reviewed(note: Note) -> Note:
            facts = note.lesson
            assert facts is not None
            before = Review(note.content, facts.is_active, note.superseded_by, note.archived_at)
            since = archived_at and (note.archived_at or archived_at)
            after = Review(content or note.content, is_active, superseded_by, since)
            was = f"; before: {note.content}" if content else ""
            return replace(
                note,
                content=after.content,
                lesson=replace(
                    facts,
                    about=_about(facts.about, content) if content else facts.about,
                    is_active=is_active,
                    before=(facts.before if after == before else None) or before,
                    gone=(),
                ),
                credibility=REVIEWED,
                importance=1.0,
                superseded_by=superseded_by,
                archived_at=since,
                updated_at=now,
                history=(*note.history, f"{now:%Y-%m-%d %H:%M} {what}{was}"),
            )

        return len(self._store.change([*self._lessons(ids)], reviewed))

    def for_request(
        self,
        request: str,
        *,
        repo: str | None = None,
        as_of: Time | None = None,
        is_reply: bool = False,
    ) -> tuple[Recollection, ...]:
        """Return lessons about *request*, the closest first, each with its probability.

        Of a talk that came to something, what it came to. What was superseded leaves its place to
        its successor. Nothing newer than *as_of*, nothing that was superseded by then. *is_reply*:
        the agent works already, and is answered.
        """
        is_asked = asks_what_is_known(request)
        request = without_output(request)
        parts = SECTION.split(request, MOST_SECTIONS - 1)
        sections = {part: request_words(part) for part in parts}
        share = max(_FEWEST_PROPOSED, PROPOSED // len(sections))
        propose = partial(self._store.for_text, scope=_scope(repo), limit=share)
        proposed = map(propose, sections.values())
        notes = {note.id: note for note in chain(*proposed) if _is_seen(note, as_of)}
        if not notes:
            return ()
        words = request_words(request)
        ranked = _closest_of(sections, notes, len(words))
        chosen = self._successors(ranked, notes, as_of)
        of_source: dict[str, list[tuple[Note, Close]]] = {}
        for id_, close in chosen.items():
            of_source.setdefault(notes[id_].contributor, []).append((notes[id_], close))
        found = list[Recollection]()
        for listed in of_source.values():
            best, close = _newest_of(listed)
            talk = [(note, close, 1.0) for note in self._talk(words, best, as_of)]
            alone = [
                (note, one, 1.0 if is_asked else _wanted(note))
                for note, one in listed
                if _may_be_quoted(note)
            ]
            for note, one, wanted in talk or alone:
                signs = closeness(one, wanted, is_reply=is_reply)
                helps = fitted(ABOUT).probability(signs)
                if _is_counted_list(note):
                    helps = _FOLLOWED if _is_for(note, request) else 0.0
                if not (talk or is_asked) and helps < _HELPS_PROPOSED and waits(note):
                    helps = 0.0
                found.append(Recollection(note, one.score, signs, helps))
        found.sort(key=lambda one: -one.probability)
        return tuple(in_turns(found, lambda one: one.note.contributor))

    def _successors(
        self, ranked: Sequence[Close], notes: dict[str, Note], as_of: Time | None
    ) -> dict[str, Close]:
        """Id -> what *ranked* it: the lessons that hold, closest first.

        A successor that was not proposed is added to *notes*.
        """
        superseded = self._superseded(notes, as_of)
        while new := {*superseded.values()} - notes.keys():
            notes |= self._store.get([*new])
            superseded |= self._superseded(new, as_of)
        said = self._said_again(notes.values())
        chosen: dict[str, Close] = {}
        for close in ranked:
            id_, seen = close.id, {close.id}
            while id_ in superseded and superseded[id_] not in seen:
                id_ = superseded[id_]
                seen.add(id_)
            if id_ not in said and notes[id_].is_live:
                chosen.setdefault(id_, close)
        return chosen

    def _talk(self, words: Sequence[str], best: Note, as_of: Time | None) -> list[Note]:
        """The lessons of the talk of *best* that hold, those that say most of *words* first.

        Or of the one that amended it. None where it is not one that came to something or amended
        another: what a person only asked an agent to do stands by itself.
        """
        run, amends_another, seen = _session_of(best), False, set[str]()
        said = dict[str, Note]()
        while _is_said(best) and run not in seen:
            seen.add(run)
            of_run = self._sessions([run], as_of).get(run, [])
            said = {n.id: n for n in of_run if _is_said(n) and not needs_a_person(n)}
            amends_another |= any(note.targets(LinkType.SUPERSEDES) for note in said.values())
            superseded = self._superseded(said, as_of)
            said = {id_: note for id_, note in said.items() if id_ not in superseded}
            later = self._store.get([*{*superseded.values()}]).values()
            amending = [note for note in later if _is_said(note) and _session_of(note) not in seen]
            if amending:
                newest = max(amending, key=lambda note: (note.created_at, note.id))
                run = _session_of(newest)
        quotes = [quote_of(note) for note in said.values()]
        # An option that was chosen while the agent worked makes no talk of the session.
        is_recap = any(_is_agreed(note) and not note.summary for note in said.values())
        is_talk = amends_another or is_recap
        return [said[quote.id] for quote in rated(words, quotes)] if is_talk else []

    def _superseded(self, ids: Collection[str], as_of: Time | None) -> dict[str, str]:
        """The successors of the lessons *ids*, by id, where a request may be shown both."""
        return superseded_in(self._store, ids, as_of, may_be_shown=_may_be_quoted)

    def naming(
        self,
        names: Collection[str],
        *,
        repo: str | None = None,
        as_of: Time | None = None,
        written: str | None = None,
    ) -> tuple[Recollection, ...]:
        """Return lessons about one of the files or symbols *names*, the newest of a source first.

        With the text that is *written* into these files only what bears on it, what rules out one
        of the names, and what says to leave such a file as it is. On a symbol bears what is written
        in a block of lines with it.
        """
        names = [name.replace("\\", "/") for name in names]
        wanted = {_last_part(name) for name in names}
        words = [stem for name in names for stem in stems(name)][:REQUEST_WORDS]
        scoped = self._store.for_text(words, _scope(repo), PROPOSED)
        seen = [note for note in scoped if _is_seen(note, as_of)]
        about = {
            name: [note for note in seen if says_of(note, name) and is_of_place(note, name, names)]
            for name in wanted
        }
        ruling_out, standing = list[Note](), set[str]()
        if written is not None:
            tokens = {*_TOKEN.findall(written.casefold())}
            blocks = [(block.casefold(), stems(block)) for block in _BLANK_LINE.split(written)]
            put_in = {
                name: {
                    stem for block, own in blocks if "." in name or name in block for stem in own
                }
                for name, said in about.items()
                if said
            }
            about = {
                name: [note for note in said if bears_on(note, name, put_in[name], tokens)]
                for name, said in about.items()
                if "." in name or len({*map(_session_of, said)}) < _OF_THE_PROJECT
            }
            ruling_out = [
                note
                for note in seen
                if leaves_alone(note, names)
                or (_is_about(note, names) and any(rules_out(note, name) for name in wanted))
            ]
            touched = (note for note in chain(*about.values()) if _symbols_of(note) & tokens)
            standing = {note.id for note in chain(ruling_out, touched)}
        said = chain(*about.values(), ruling_out)
        found = self._current({note.id: note for note in said}, as_of)
        return tuple(
            one
            if one.note.id in standing or _is_rule(one.note)
            else replace(one, probability=_DECIDED)
            for one in found
        )

    def sharing_words(self, text: str, *, repo: str) -> tuple[Note, ...]:
        """Return the active lessons of *repo* with words of *text*, the closest first."""
        held = {note.id: note for note in self._newest(repo) if note.is_live}
        current = {one.note.id: one.note for one in self._current(held, None)}
        ranked = closest({*stems(text)}, {id_: Worded.of(note) for id_, note in current.items()})
        return tuple(current[one.id] for one in ranked)

    def for_command(
        self, line: str, *, repo: str | None = None, as_of: Time | None = None
    ) -> tuple[Recollection, ...]:
        """Return the lessons on how, or whether, to run the shell command *line*."""
        commands = commands_in(line)
        run = {name for one in commands for name in named(one)}
        typed = [word for one in commands for word in stems(one.text)]
        # "Linter" has another stem than `eslint`: those that say how to run something, too.
        words = [*dict.fromkeys((*typed[:REQUEST_WORDS], *_RUNNING))]
        scoped = self._store.for_text(words, _scope(repo), PROPOSED)
        said = {
            note.id: note
            for note in scoped
            if note.lesson and _is_seen(note, as_of)
            if says_how_to_run(note.lesson, note.content, line)
            if (
                bears_on_command(note.content, line, note.repo)
                if not _is_counted(note)
                else not run.isdisjoint(_programs_of(note))
            )
        }
        return self._current(said, as_of)

    def _current(self, said: Mapping[str, Note], as_of: Time | None) -> tuple[Recollection, ...]:
        """Return the lessons of *said* that hold, the newest first.

        Those of several sources take turns, so that none takes the place of the owner's.
        """
        proposed = said.values()
        superseded = superseded_in(self._store, [*said], as_of)
        left = superseded.keys() | self._said_again(proposed)
        current = [it for it in proposed if it.id not in left and not waits(it)]
        newest = sorted(current, key=lambda note: (note.created_at, note.importance), reverse=True)
        in_order = in_turns(newest, lambda note: note.contributor)
        return tuple(Recollection(note, note.importance, {}) for note in in_order)

    def _said_again(self, notes: Collection[Note]) -> set[str]:
        """Return the ids of sentences of *notes* from which another lesson was made."""
        runs = {note.lesson.evidence[0].run for note in notes if note.lesson and _is_said(note)}
        made = self._store.linking([*runs]) if runs else ()
        return _said_again({note.id: note for note in (*made, *notes)}.values())

    def _sessions(self, runs: Collection[str], as_of: Time | None) -> dict[str, list[Note]]:
        """The lessons of *runs*, by run."""
        sessions: dict[str, list[Note]] = {run: [] for run in runs}
        for note in self._store.linking([*runs]):
            if _is_listed(note) and _is_seen(note, as_of) and _session_of(note) in sessions:
                sessions[_session_of(note)].append(note)
        return {run: notes for run, notes in sessions.items() if notes}

    def _links(
        self, new: Sequence[Note]
    ) -> tuple[defaultdict[str, list[Link]], dict[str, Note], set[str]]:
        """Return links between *new* lessons and those of other sessions, by id.

        And, by the id of a new one, the known lesson that says the same; and the ids of those that
        take another one back: they need no review.
        """
        words = Counter(stem for note in new for stem in stem_counts(note.content))
        common = [word for word, _ in words.most_common(REQUEST_WORDS)]
        ours = {_session_of(note) for note in new}
        proposed = self._store.for_text(common, NoteScope((new[0].repo,), _KINDS), PROPOSED)
        others = [note for note in proposed if _session_of(note) not in ours]
        gone = self._store.for_text(common, NoteScope((new[0].repo,), _KINDS, live=False), PROPOSED)
        rejected = [note for note in gone if note.archived_at]
        links, same, sure = defaultdict[str, list[Link]](list), dict[str, Note](), set[str]()
        for note in new:
            for other in rejected:
                if _says_again(note, other) and note.contributor == other.contributor:
                    same.setdefault(note.id, other)
            for other in others:
                earlier, later = sorted((note, other), key=lambda one: (one.created_at, one.id))
                relation = _relation(later, earlier)
                if relation is Relation.SAME and note.contributor == other.contributor:
                    same.setdefault(note.id, other)
                elif relation is Relation.SUPERSEDES and may_amend(later, earlier):
                    links[later.id].append(Link(LinkType.SUPERSEDES, earlier.id))
                    if _takes_back(later, earlier) and is_settled(later.content):
                        sure.add(later.id)
        sessions = self._sessions(dict.fromkeys(map(_session_of, others)), None)
        for run in ours:
            own = [note for note in new if _session_of(note) == run]
            for later, earlier in _amendments(run, {**sessions, run: own}):
                links[later.id].append(Link(LinkType.SUPERSEDES, earlier.id))
        return links, same, sure


def _amendments(run_id: str, sessions: Mapping[str, Sequence[Note]]) -> Iterator[tuple[Note, Note]]:
    """The lessons of a session that amends an earlier one, with those that they amend.

    One of the sessions is *run_id*. The first request of the later one or what it came to says that
    it changes something, and it is about the same.
    """
    counted = {run: _words_of(notes) for run, notes in sessions.items()}
    similar = similarities(counted[run_id], counted)
    for run, notes in sessions.items():
        if run == run_id or similar[run] < SAME_SUBJECT:
            continue
        earlier, later = sorted(
            (notes, sessions[run_id]), key=lambda said: min(note.created_at for note in said)
        )
        opening = later[0].title.partition("\n")[0]
        restated = [note.content for note in later if _is_agreed(note)]
        if any(map(amends, [opening, *restated])) and may_amend(later[0], earlier[0]):
            yield from _amended(later, earlier)


def _amended(later: Sequence[Note], earlier: Sequence[Note]) -> Iterator[tuple[Note, Note]]:
    """Each of *earlier* that one of *later* changes, with the one that is most about the same.

    What the later session says to stay is not changed. It changes one lesson at least.
    """
    stays = {
        stem
        for note in later
        for clause in _CLAUSE.split(note.content)
        if _STAYS.search(clause)
        for stem in stems(clause)
    }
    met = Counter(word for note in (*later, *earlier) for word in _subject(note.content))

    def shared(new: Note, old: Note) -> tuple[float, int]:
        words = (_subject(new.content) & _subject(old.content)) - stays
        return sum(1 / met[word] for word in sorted(words)), len(words)

    closest = [
        max(((shared(new, old), new.importance, new.id), new, old) for new in later)
        for old in earlier
    ]
    most = max(measured for (measured, *_), _, _ in closest)
    changed = {
        old.id: new
        for (measured, *_), new, old in closest
        if measured == most or (measured[0] >= _CHANGES and measured[1] > 1)
    }
    # "640" says nothing more: with what replaced the value, it is replaced too.
    again = {value for note in later for value in _VALUE.findall(note.content)}
    values = {
        value: changed[old.id]
        for old in earlier
        if old.id in changed
        for value in {*_VALUE.findall(old.content)} - again
    }
    for old in earlier:
        given = (values[value] for value in _VALUE.findall(old.content) if value in values)
        if new := changed.get(old.id) or next(given, None):
            yield new, old


def lesson_of(note: Note, superseded_by: str | None = None) -> Lesson:
    """Return the lesson that *note* holds, which *superseded_by* superseded, if any."""
    facts = note.lesson
    assert facts is not None
    by = note.superseded_by or superseded_by
    return Lesson(
        id=note.id,
        text=note.content,
        kind=facts.kind,
        status=_status(note, by),
        origin=facts.origin,
        repo=note.repo,
        about=facts.about,
        evidence=facts.evidence,
        speaker=note.speaker if facts.origin is Origin.SAID else facts.evidence[0].speaker,
        time=note.created_at,
        sessions=facts.sessions,
        source=note.source,
        probability=facts.probability,
        supersedes=note.targets(LinkType.SUPERSEDES),
        superseded_by=by,
        ruled_out=facts.ruled_out,
        history=note.history,
        gone=facts.gone,
        request=note.title.partition("\n")[0],
        is_reviewed=facts.before is not None,
    )


def _status(note: Note, superseded_by: str | None) -> LessonStatus:
    if note.archived_at:
        return LessonStatus.REJECTED
    if superseded_by:
        return LessonStatus.SUPERSEDED
    return LessonStatus.PROPOSED if waits(note) else LessonStatus.ACTIVE


def _lesson_said(
    said: Said, session: SaidInRun, run: RawTrajectory, run_id: str, now: datetime
) -> NewLesson:
    evidence = Quotation(
        quote=said.quote,
        run=run_id,
        session=run.instance_id,
        step=said.step,
        at=said.at or now,
        speaker="agent" if said.by_agent else "user",
        context=said.context,
        pasted=said.pasted,
    )
    facts = LessonFacts(
        # Of 78 sentences readers called 54 a decision; by this 52 are as they say, by names 39.
        LessonKind.RULE if holds_always(said.text) else LessonKind.DECISION,
        Origin.SAID,
        said.about,
        (evidence,),
        is_active=said.is_sure,
        probability=said.confidence,
    )
    return NewLesson(said.text, facts, title=session.title, importance=said.confidence)


def lesson_id(text: str, repo: str, contributor: str = "") -> str:
    """Return the id of the lesson *text* of *repo*, supplied by *contributor*.

    A copy of a session under another name says nothing new.
    """
    known_by = "\n".join((repo, contributor, folded(text)))
    return f"lesson_{digest(known_by)}"


def note_of_lesson(new: NewLesson, repo: str, contributor: str) -> Note:
    """Return the entry of a lesson, with secrets masked."""
    content = kept_text(new.text)[:MAX_NOTE]
    facts = _masked_facts(new.facts)
    first = min(facts.evidence, key=lambda one: one.at)
    by_agent = facts.origin is Origin.SAID and first.speaker == "agent"
    return Note(
        id=lesson_id(content, repo, contributor),
        content=content,
        repo=repo,
        source=_source(facts.origin, contributor, by_agent=by_agent),
        created_at=first.at,
        credibility=_CREDIBILITY,
        kind=NoteKind.LESSON,
        title=kept_text(new.title),
        summary=first.context,
        tags=tuple(dict.fromkeys(filter(None, (*facts.about.names, facts.about.subject)))),
        locator=f"{first.session}#{first.step}",
        links=links_of(facts.evidence, (Link(LinkType.SUPERSEDES, id_) for id_ in new.supersedes)),
        importance=new.importance,
        lesson=facts,
    )


def _masked_facts(facts: LessonFacts) -> LessonFacts:
    about = About(
        tuple(map(kept_text, facts.about.paths)),
        tuple(map(kept_text, facts.about.symbols)),
        tuple(map(kept_text, facts.about.programs)),
        kept_text(facts.about.subject),
    )
    evidence = tuple(
        replace(one, quote=kept_text(one.quote), context=kept_text(one.context))
        for one in facts.evidence
    )
    return replace(facts, about=about, evidence=evidence, ruled_out=kept_text(facts.ruled_out))


def said_in(notes: NoteStore, runs: Collection[str]) -> dict[str, frozenset[tuple[str, int]]]:
    """Return the lessons of *runs* by id, with session and step of what was said there."""
    found = dict[str, frozenset[tuple[str, int]]]()
    for note in notes.linking([*runs]):
        evidence = note.lesson.evidence if note.lesson else ()
        if said := frozenset((one.session, one.step) for one in evidence if one.run in runs):
            found[note.id] = said
    return found


def _without_run(note: Note, run_id: str) -> Note | None:
    """Return *note* without what was said in a run; None where nothing else is known of it."""
    facts = note.lesson
    rest = tuple(one for one in facts.evidence if one.run != run_id) if facts else ()
    if facts is None or not rest:
        return None
    links = links_of(rest, (link for link in note.links if link.type != LinkType.SAID_IN))
    first = rest[0]
    is_own = facts.origin is not Origin.SAID or note.content in (one.quote for one in rest)
    return replace(
        note,
        # The words of the session go with it.
        content=note.content if is_own else first.quote,
        title="",
        summary=first.context,
        lesson=replace(facts, evidence=rest, before=None),
        created_at=first.at,
        locator=f"{first.session}#{first.step}",
        links=links,
    )


def _undone(note: Note, *, now: datetime) -> Note:
    """Return *note* as it was before its last review."""
    facts = note.lesson
    assert facts is not None
    before = facts.before
    assert before is not None
    content_stays = note.content == before.content
    return replace(
        note,
        content=before.content,
        lesson=replace(
            facts,
            about=facts.about if content_stays else _about(facts.about, before.content),
            is_active=before.is_active,
            before=None,
        ),
        superseded_by=before.superseded_by,
        archived_at=before.archived_at,
        updated_at=now,
        history=(*note.history, f"{now:%Y-%m-%d %H:%M} undone"),
    )


def _about(about: About, text: str) -> About:
    """Return *about* with the paths that the new *text* of its lesson names, in their place."""
    named = paths_in(text)
    kept = (path for path in about.paths if path in text)
    return replace(about, paths=tuple(dict.fromkeys((*kept, *named))))


def _source(origin: Origin, contributor: str, *, by_agent: bool) -> str:
    """The source of a lesson, which `Note.contributor` reads."""
    parts = [_SOURCES[origin]]
    if contributor:
        parts += [contributor, "agent" if by_agent else "user"]
    elif by_agent:
        parts.append("agent")
    return ":".join(parts)


def _linked(note: Note, links: Iterable[Link], *, is_sure: bool) -> Note:
    assert note.lesson is not None
    lesson = replace(note.lesson, is_active=note.lesson.is_active or is_sure)
    return replace(note, lesson=lesson, links=tuple(dict.fromkeys((*note.links, *links))))


def _by(name: str) -> str:
    return f" by {name}" if name else ""


def says_of(note: Note, name: str) -> bool:
    """Return True where the words of *note* name the file or symbol *name*.

    Not what to move or rename: that is done.
    """
    part = _last_part(name)
    is_about = any(part == _last_part(about) for about in note.tags)
    is_said = note.lesson is not None and note.lesson.origin is Origin.SAID
    is_named = not is_said or part in note.content.casefold()
    return is_about and is_named and not _CARRIED_OUT.search(note.content)


def rules_out(note: Note, name: str) -> bool:
    """Return True where *note*, which waits for no review, forbids to use *name*."""
    return (
        name in note.content
        and not waits(note)
        and any(one.name == name for one in names_ruled_out(note.content, note.tags))
    )


def _is_about(note: Note, files: Collection[str]) -> bool:
    """Return whether *note* names one of *files* or its folder, or no file."""
    paths = note.lesson.about.paths if note.lesson else ()
    return not paths or any(is_at(file, path) for path in paths for file in files)


def leaves_alone(note: Note, files: Collection[str]) -> bool:
    """Return True where *note*, which waits for no review, says not to change one of *files*."""
    kept = [] if waits(note) else [*left_alone(note.content, note.tags)]
    return any(not one.only_kept and is_at(file, one.path) for one in kept for file in files)


def is_of_place(note: Note, name: str, files: Collection[str]) -> bool:
    """Return False where *note* names a file with the last part *name* in other folders.

    Those of *files* may begin above or below the folder that it counts from.
    """
    meant = [file for file in files if _last_part(file) == name and "/" in file]
    paths = note.lesson.about.paths if note.lesson else ()
    named = [path for path in paths if _last_part(path) == name and "/" in path]
    if not (meant and named):
        return True
    return any(is_at(file, path) or is_at(path, file) for file in meant for path in named)


def bears_on(note: Note, name: str, stemmed: Collection[str], tokens: Collection[str]) -> bool:
    """Return True where *note* about *name* matters to one who puts these *tokens* into it.

    *stemmed* are the stems of what is put in beside *name*. That a file is named does not make it
    what the lesson is about. A rule of the file itself matters at any edit ("generated by `make
    schema`"), as does one of something in it, and a decision on that where its symbols are put in.
    What names it in passing matters where two of its words are put in, and half of them in a long
    text, which shares words with many.
    """
    named = re.escape(_last_part(name))
    if re.search(_TOPIC.format(named=named), note.content, re.IGNORECASE):
        return True
    symbols = _symbols_of(note)
    if "." in name and symbols and symbols.isdisjoint(tokens):
        return False
    is_of_it = re.search(_PLACE.format(named=named), note.content, re.IGNORECASE)
    if is_of_it and (symbols or _is_rule(note)):
        return True
    # The words in the name itself are no such words: `ParcelData` is no parcel and no data.
    beside = re.sub(named, " ", note.content, flags=re.IGNORECASE)
    own = {*stems(beside)}.difference(stems(_last_part(name)))
    shared = len(own.intersection(stemmed))
    least = len(own) / 2 if len(stemmed) > _LONG_TEXT else FEWEST_WRITTEN
    return shared >= max(FEWEST_WRITTEN, least)


def _closest_of(
    sections: Mapping[str, Collection[str]], notes: Mapping[str, Note], asked: int
) -> list[Close]:
    """Rank *notes* by the section that each is nearest to, of a request of *asked* words.

    How long the request is counts as a whole: among many sections one is near by chance.
    """
    waiting = {id_ for id_, note in notes.items() if waits(note)}
    worded = {id_: Worded.of(note) for id_, note in notes.items()}
    nearest = dict[str, tuple[float, str, float, Close]]()
    for section, words in sections.items():
        for close in closest(words, worded, waiting, section):
            one = close._replace(asked=asked)
            near = fitted(ABOUT).probability(closeness(one, 1.0, is_reply=False))
            if one.id not in nearest or near > nearest[one.id][2]:
                nearest[one.id] = -one.score, one.id, near, one
    return [*map(itemgetter(3), sorted(nearest.values()))]


def _is_listed(note: Note) -> bool:
    return note.kind in _KINDS and note.is_live


def _is_seen(note: Note, as_of: Time | None) -> bool:
    return as_of is None or note.created_at <= as_of


def _scope(repo: str | None) -> NoteScope:
    return NoteScope(None if repo is None else (repo_name(repo),), _KINDS)


def _session_of(note: Note) -> str:
    return next(iter(note.targets(LinkType.SAID_IN)), note.id)


def _begun_in(note: Note) -> str:
    """Return the session of *note*: by its name where a file of the repository has it."""
    if note.contributor and note.is_of_team and note.lesson and note.lesson.evidence:
        return note.lesson.evidence[0].session or _session_of(note)
    return _session_of(note)


def _symbols_of(note: Note) -> set[str]:
    """The last words of the symbols of *note*: `run` of `Parser.run()`."""
    symbols = note.lesson.about.symbols if note.lesson else ()
    return {word for one in symbols for word in _TOKEN.findall(one.casefold())[-1:]}


def _last_part(name: str) -> str:
    return re.split(r"[/\\]", name.rstrip("/()"))[-1].casefold()


def _newest_of(listed: Sequence[tuple[Note, Close]]) -> tuple[Note, Close]:
    """Return the newest among the lessons nearly as close as the first: the last word holds.

    Only of what people said: other lessons say what they supersede.
    """
    first, best = listed[0]
    near = [
        (note, close)
        for note, close in listed
        if close.score >= _NEARLY * best.score and _is_said(note) and _is_said(first)
    ]
    return max(near, key=lambda pair: pair[0].created_at, default=listed[0])


def _of_such_sessions(notes: Collection[Note], request: str) -> list[Note]:
    """Return what was said in sessions like the one that *request* begins, most wanted first.

    By the owner, or the team whose folder is trusted; not what agents read by themselves, nor what
    waits for a review: that is only quoted at requests about it. The sessions began with the same
    request, which names something: a slash command without arguments does not.
    """
    opening = folded(request)
    names_nothing = len(request_words(request)) <= _NAMES_NOTHING and not _NUMBER.search(request)
    if names_nothing or command_of(opening) == opening:
        return []
    said = [
        note
        for note in notes
        if folded(note.title.partition("\n")[0]) == opening
        and (not note.contributor or note.is_of_team)
        and not _is_counted(note)
        if note.lesson and note.is_live and not waits(note)
        if not is_read_at_start(note.lesson.evidence[0].speaker)
    ]
    # A rule on how to work in such sessions holds also when that work is done.
    return sorted(
        said, key=lambda note: (_is_rule(note), _wanted(note), _last_said(note)), reverse=True
    )


def _is_repeated(note: Note) -> bool:
    """Return True for rules said in several sessions, which agents do not read by themselves.

    A decision that was said again is about its subject; what was counted is about the machine.
    """
    facts = note.lesson
    if facts is None or waits(note) or is_read_at_start(facts.evidence[0].speaker):
        return False
    # A counted rule is said before the call.
    often = 2 if _is_counted(note) else _STANDING
    return facts.sessions >= often and _is_rule(note) != _is_counted(note)


def _is_counted_list(note: Note) -> bool:
    """Return True for a checklist of what commits changed together."""
    is_list = note.lesson is not None and note.lesson.kind is LessonKind.CHECKLIST
    return is_list and _is_counted(note)


def _is_for(note: Note, request: str) -> bool:
    """Return True where *request* names the file of a counted checklist, or creates such a file.

    A folder is named by its path, or by its last name: "add a provider" for `pkg/providers`.
    """
    assert note.lesson is not None
    path = next(iter(note.lesson.about.paths), "")
    if not path or f"`{path}` is" in note.content:
        return path in files_in(request)
    folder, asked = path.partition("/*")[0].rstrip("/"), {*stems(request)}
    name = {*stems(_last_part(folder))}
    is_path = re.search(rf"(?<![\w.-]){re.escape(folder)}(?![\w-])", request)
    return bool(is_path or (name and name <= asked)) and not _CREATES.isdisjoint(asked)


def _names_that_age(note: Note) -> tuple[str, ...]:
    """The symbols and programs whose end makes *note* out of date."""
    if note.lesson is None or speaks_of_absence(note.content):
        return ()
    return (*note.lesson.about.symbols, *note.lesson.about.programs)


def _paths_that_age(note: Note) -> tuple[str, ...]:
    """The files whose loss makes *note* out of date; none where it says that one has to go."""
    about = note.lesson.about if note.lesson else About()
    return about.paths if len(paths_to_be_there(note.content, about)) == len(about.paths) else ()


def _last_said(note: Note) -> datetime:
    assert note.lesson is not None
    return max(one.at for one in note.lesson.evidence)


def _programs_of(note: Note) -> set[str]:
    """The programs that the counted *note* is about, and those that the shell did not find."""
    said = note.lesson.evidence if note.lesson else ()
    return {*note.tags, *(program_not_found(one.quote) for one in said)} - {""}


def _is_rule(note: Note) -> bool:
    return note.lesson is not None and note.lesson.kind is LessonKind.RULE


def _is_counted(note: Note) -> bool:
    return note.lesson is not None and note.lesson.origin is Origin.COUNTED


def _is_said(note: Note) -> bool:
    return note.lesson is not None and note.lesson.origin is Origin.SAID


def _may_be_quoted(note: Note) -> bool:
    """Return whether *note* may be shown at a request on its subject before any review.

    A person's own statement may, though it does not stand alone: it is about what is asked, and
    has its date.
    """
    facts = note.lesson
    if facts is None or not waits(note):
        return True
    if facts.gone or needs_a_person(note):
        return False
    said = facts.evidence[0]
    is_statement = said.quote == note.content and not said.context and "?" not in note.content
    return _is_said(note) and said.speaker == "user" and is_statement


def _wanted(note: Note) -> float:
    """Return how likely a reader wants *note*: what was reviewed, repeated or checked is wanted."""
    facts = note.lesson
    assert facts is not None
    is_bare = _is_said(note) and facts.sessions == 1 and note.credibility != REVIEWED
    return max(LEAST, facts.probability) if is_bare else 1.0


def _said_again(notes: Collection[Note]) -> set[str]:
    """The ids of sentences from which another lesson of *notes* was made.

    It is active, or was superseded since.
    """
    known = [
        (note.id, note.lesson, bool(note.superseded_by) or not waits(note))
        for note in notes
        if note.lesson
    ]
    return said_again(known)


def said_again(lessons: Collection[tuple[str, LessonFacts | Lesson, bool]]) -> set[str]:
    """Return the ids of sentences from which another one of *lessons* was made, if it is active.

    They are given with their ids, and whether they are active.
    """
    quoted = defaultdict[tuple[str, int], set[str]](set)
    for _, lesson, is_active in lessons:
        for one in lesson.evidence if is_active and lesson.origin is not Origin.SAID else ():
            quoted[one.run or one.session, one.step].add(" ".join(one.quote.split()))
    return {
        id_
        for id_, lesson, _ in lessons
        if lesson.origin is Origin.SAID
        for one in lesson.evidence
        if any(
            one.quote in quote or quote in one.quote
            for quote in quoted.get((one.run or one.session, one.step), ())
        )
    }


def _words_of(notes: Sequence[Note]) -> Counter[str]:
    """The stems of a conversation: of its title once, and of each lesson."""
    counts = Counter(stem_counts(notes[0].title))
    for note in notes:
        counts.update(stem_counts(f"{note.summary} {note.content}"))
        counts.update(stem for tag in note.tags for stem in stem_counts(tag))
    return counts


def _is_agreed(note: Note) -> bool:
    return note.speaker != "user"


def _relation(note: Note, earlier: Note) -> Relation:
    """Relate *note* to a lesson of another session by their words."""
    if _takes_back(note, earlier):
        return Relation.SUPERSEDES
    ours, theirs = stem_counts(note.content).keys(), stem_counts(earlier.content).keys()
    similar = dice(ours, theirs)
    # "address 7" says nothing without what it answers.
    if similar < _COMPARED or min(len(ours), len(theirs)) < _FEWEST_STEMS:
        return Relation.UNRELATED
    # Of two that were counted in one form only the names differ, which is all that they say.
    if _is_counted(note) and _is_counted(earlier):
        return Relation.UNRELATED
    relation = verdict(statement_of(note), statement_of(earlier)).relation
    if similar >= _SAME and not _has_same_numbers(note.content, earlier.content):
        return Relation.SUPERSEDES
    is_same = relation is Relation.UNRELATED and similar >= _SAME
    is_same = is_same and not _name_others(note.content, earlier.content)
    return Relation.SAME if is_same else relation


def _says_again(note: Note, earlier: Note) -> bool:
    """Return whether *note* says the same as *earlier*, or as its words before it was edited."""
    assert earlier.lesson is not None
    said = {earlier.content, *(one.quote for one in earlier.lesson.evidence)}
    return any(_relation(note, replace(earlier, content=one)) is Relation.SAME for one in said)


def _takes_back(note: Note, earlier: Note) -> bool:
    """Return whether a person takes *earlier* back in the words of *note*."""
    return _is_said(note) and not _is_agreed(note) and takes_back(note.content, earlier.content)


def _has_same_numbers(text: str, other: str) -> bool:
    return {*_NUMBER.findall(text)} == {*_NUMBER.findall(other)}


def _name_others(text: str, other: str) -> bool:
    """Return whether both name things, but none that both name."""
    ours, theirs = names_in(text), names_in(other)
    return bool(ours and theirs) and ours.isdisjoint(theirs)


@lru_cache(maxsize=1 << 12)
def _subject(text: str) -> frozenset[str]:
    """The subject of *text*: its names, and its stems without how people give orders."""
    rest = NAMED.sub(" ", text)
    return frozenset(stems(rest)) | names_in(text)

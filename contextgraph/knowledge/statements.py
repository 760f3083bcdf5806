"""Statements of people in recorded sessions: what they are about, and what superseded them.

A statement is a note of kind *statement*: its tags are its kind and what it is about, its title is
the request with which the session began, its summary what it answers or confirms. Links lead to the
run in which it was said, to earlier statements that it supersedes, and to the first that says the
same. What supersedes is read from the links, so that it ends when the later session is deleted.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import lru_cache, partial
from hashlib import blake2b

from msgspec import Struct

from contextgraph.errors import InvalidNoteError
from contextgraph.governance import Relation, verdict
from contextgraph.knowledge.durability import SURE, manner_stems
from contextgraph.knowledge.extraction import (
    Said,
    SaidInRun,
    amends,
    files_in,
    is_worded_as_rule,
    statements_in,
)
from contextgraph.knowledge.notes import MAX_NOTE, Notes, may_amend, repo_name, statement_of
from contextgraph.knowledge.recall import stem_counts, superseded_in, waits
from contextgraph.knowledge.ways import ways_in
from contextgraph.model import (
    Link,
    LinkType,
    Note,
    NoteKind,
    NoteScope,
    RawTrajectory,
    Recollection,
    StatementKind,
    is_subagent,
)
from contextgraph.ports import NoteStore
from contextgraph.ranking import (
    CONVERSATIONS,
    FEWEST_WRITTEN,
    PROPOSED,
    REQUEST_WORDS,
    SAME_SUBJECT,
    QuotedSession,
    quote_of,
    quotes_about,
    request_words,
    similarities,
)
from contextgraph.text import clean, count_tokens, dice, mask_secrets, rarity, regex, stems
from contextgraph.trace.ordered import bears_on_command
from contextgraph.trace.shell import commands_in
from contextgraph.values import replace

SOURCE = "conversation"
_CREDIBILITY, _REVIEWED = 0.85, 0.95
_KINDS = (NoteKind.STATEMENT, NoteKind.CANDIDATE)
_LISTED = 10_000
# From here on two statements say the same, and are worth a comparison word by word.
_SAME, _COMPARED, _FEWEST_STEMS = 0.8, 0.3, 3
# Two statements give the same rule from such a product of the rarities of the words that they share
# and of how much of both these are: by the number of such words; for a name. Which words are rare
# is known from so many sessions on.
_RULE_BY_WORDS, _RARE_NAME = (9.0, 9.0, 4.0, 1.4), 2.0
_SAME_RULE, _TELLING_SESSIONS = 0.33, 20
STANDING_TOKENS = 60
_RUNNING = ("run", "use", "never")
_NAMED = regex(
    r"\b([A-Z]{3,})\b|\b([A-Za-z]\w*_\w+)\b|\b([a-z]+[A-Z]\w+|[A-Z][a-z0-9]+"
    r"(?:[A-Z]\w*)+)\b|((?:[\w.-]+/)*[\w-]+\.[a-z]{1,5})\b"
)
_NUMBER, _VALUE = regex(r"\d+"), regex(r"\d\d+")
_SUFFIX, _NOT_LETTERS = regex(r"\.\w{1,5}\Z"), regex(r"[\W_]")
# What a later session leaves as it was, and how much of the two must be about the same.
_CLAUSE = regex(r"[;,:.!?]|\s[-–—]+\s")
_STAYS = regex(
    r"\b(?:stays?|remains?|unchanged|still|nothing (?:else|more)|as (?:before|is|it was)"
    r"|(?:has|have|\w['’](?:ve|s)) been \w+ing)\b",
    re.IGNORECASE,
)
_CHANGES, _SAME_REST = 0.5, 0.6
# A symbol that so many sessions speak of is the project's, not a subject.
_OF_THE_PROJECT = 3
# "the rule of export.py", "export.py never", but not "session.go then main.go".
_TOPIC = (
    r"(?:^\W*|\b(?:of|in|for|inside|within|about)\s+)[@`'\"(]*(?:[\w.-]+/)*{named}(?![\w.])"
    r"|(?<![\w.]){named}[`'\")]*\s+(?:should|must|shall|never|always|only|stays?|holds?|keeps?|is|are|has"
    r"|have|needs?|can(?:no|['’])t|doesn|may)\b"
)
# What is asked for once: afterwards it holds.
_CARRIED_OUT = regex(
    r"\b(?:mov(?:e|ed|ing)|renam(?:e|ed|ing)|put\b.*\binto|change\b.*\bto)\b", re.IGNORECASE
)


class Occurrence(Struct, frozen=True):
    """A session in which a statement was made, in the words used there."""

    session: str
    time: datetime
    text: str


class Statement(Struct, frozen=True):
    """A *note* of a conversation, the id of what superseded it, and every time it was said.

    *rule* says it to one who was not there: the words of the note, or the name of the way of
    working that it requires; empty where neither does. *is_confirmed*: its words are quoted to
    agents, as they are sure, were said in two sessions, or accepted.
    """

    note: Note
    superseded_by: str | None
    occurrences: tuple[Occurrence, ...]
    rule: str = ""
    is_confirmed: bool = True

    @property
    def sessions(self) -> int:
        """The number of sessions in which people said so."""
        return len({occurrence.session for occurrence in self.occurrences})

    @property
    def stands(self) -> bool:
        """Whether it stands at every start: people gave it in two sessions, in any words."""
        return self.sessions > 1 and bool(self.rule)


class Statements:
    """The statements of a memory."""

    def __init__(self, notes: Notes, store: NoteStore, clock: Callable[[], datetime]) -> None:
        self._notes, self._store, self._now = notes, store, clock
        self._grouped: tuple[tuple[tuple[str, str], ...], Mapping[str, str]] = ((), {})

    def add(self, run: RawTrajectory, run_id: str, contributor: str = "") -> None:
        """Store what people said in *run*, which has the id *run_id*; *contributor* supplied it.

        Nobody speaks to a sub-agent but the agent of its session, as a part of which it counts:
        what was learned of it before that was known goes. Doing it again changes nothing but the
        rating of what nobody reviewed; what was rejected stays rejected.
        """
        if is_subagent(run.agent):
            self.remove_run(run_id)
            return
        said = statements_in(run)
        self._keep_discussed(said, run, run_id, contributor)
        if not said.statements:
            return
        made = [
            _note_of(one, said, run, run_id, contributor, self._now()) for one in said.statements
        ]
        rejected = self._store.get([id_ for note in made for id_ in _rejection_ids(note)]).keys()
        known = self._store.get([note.id for note in made])
        new = [
            note
            for note in made
            if note.id not in known and rejected.isdisjoint(_rejection_ids(note))
        ]
        # Said in what was learned of the session before it went on.
        said_in = partial(_said_in, run_id=run_id)
        moved = [
            note.id
            for note in known.values()
            if note.session == run.instance_id and _session_of(note) != run_id
        ]
        if moved:
            self._store.change(moved, said_in)
        rated = {note.id: note.kind for note in made}
        if rerated := [
            note.id
            for note in known.values()
            if note.credibility != _REVIEWED and note.kind != rated[note.id]
        ]:
            self._store.change(rerated, lambda note: replace(note, kind=rated[note.id]))
        if new:
            links = self._links(new, run_id)
            new = [replace(note, links=(*note.links, *links.pop(note.id, ()))) for note in new]
            self._store.change([*links], partial(_linked, links=links), new)

    def _keep_discussed(
        self, said: SaidInRun, run: RawTrajectory, run_id: str, contributor: str
    ) -> None:
        """Store the passages of *run* in the place of what was learned of it before it went on."""
        if not said.passages:
            return
        key = f"{repo_name(run.repo)}\n{run.instance_id}"
        note = Note(
            id=f"session_{blake2b(key.encode(), digest_size=8).hexdigest()}",
            content="\n".join(f"{it.step} {it.speaker} {_masked(it.text)}" for it in said.passages),
            repo=repo_name(run.repo),
            source=_source(contributor, by_agent=False),
            created_at=run.started_at or self._now(),
            kind=NoteKind.SESSION,
            locator=run.instance_id,
            links=(Link(LinkType.SAID_IN, run_id),),
        )
        known = self._store.get([note.id]).get(note.id)
        if known is None or (known.content, known.links) != (note.content, note.links):
            self._store.change(new=[note])

    def remove_run(self, run_id: str) -> int:
        """Delete the statements and passages of a run; returns how many there were."""
        said = [
            note.id
            for note in self._store.linking([run_id])
            if note.kind in (*_KINDS, NoteKind.SESSION) and run_id in note.targets(LinkType.SAID_IN)
        ]
        return self._notes.forget(said) if said else 0

    def of(
        self, repo: str | None = None, *, recurring: bool = False, as_of: datetime | None = None
    ) -> tuple[Statement, ...]:
        """The statements of *repo* (None: all), the newest first; as they were known at *as_of*.

        With *recurring* those that people made in two sessions or more, the most frequent first:
        in the same words, or the same rule in others.
        """
        newest = self._store.newest(_scope(repo), _LISTED)
        notes = {note.id: note for note in newest if _is_seen(note, as_of)}
        superseded = superseded_in(self._store, notes, as_of)
        listed = [
            # A rule that is given again with "now" or "instead" still is that rule.
            Statement(
                min(repeats, key=_as_a_rule),
                None if (by := superseded.get(id_)) in {note.id for note in repeats} else by,
                _occurrences(repeats),
                _rule_of(repeats),
                not all(map(waits, repeats)),
            )
            for id_, repeats in self._same(notes).items()
        ]
        if recurring:
            listed = [one for one in listed if one.sessions > 1]
            return tuple(sorted(listed, key=lambda one: (-one.sessions, one.note.id)))
        return tuple(sorted(listed, key=lambda one: one.note.created_at, reverse=True))

    def _same(
        self, notes: Mapping[str, Note], *, by_ways: bool = True
    ) -> Mapping[str, Sequence[Note]]:
        """*notes* that say the same, in the same words or others, by the id of the first.

        With *by_ways* also those that require the same way of working.
        """
        first = {
            note.id: next((id_ for id_ in note.targets(LinkType.REPEATS) if id_ in notes), note.id)
            for note in notes.values()
        }
        firsts = [note for note in notes.values() if first[note.id] == note.id]
        rules = self._rules(firsts) if by_ways else _rules(firsts, by_ways=False)
        same: defaultdict[str, list[Note]] = defaultdict(list)
        for note in notes.values():
            same[rules.get(first[note.id], first[note.id])].append(note)
        return same

    def standing(self, repo: str, *, as_of: datetime | None = None) -> tuple[Recollection, ...]:
        """The rules of *repo* that people had to give again, as many as fit into a few lines.

        They matter to any work there: the most frequent first, of these what names no file.
        """
        said = [one for one in self.of(repo, recurring=True, as_of=as_of) if not one.superseded_by]
        room, rules = STANDING_TOKENS, list[Recollection]()
        for one in sorted(said, key=lambda one: (-one.sessions, len(files_in(one.note.content)))):
            note = replace(one.note, content=one.rule)
            if one.stands and (line := quote_of(note, sessions=one.sessions).line(room)):
                rules.append(Recollection(note, 1.0, {"sessions": float(one.sessions)}))
                room -= count_tokens(line)
        return tuple(rules)

    def _rules(self, notes: Sequence[Note]) -> Mapping[str, str]:
        """`_rules` of *notes*, which are read again only where these have changed."""
        known_by = tuple((note.id, note.content) for note in notes)
        if self._grouped[0] != known_by:
            self._grouped = known_by, _rules(notes, by_ways=True)
        return self._grouped[1]

    def accept(self, ids: Collection[str], by: str = "") -> int:
        """Mark these statements as reviewed (*by* whom) and right; returns how many there were."""
        return self._review(ids, f"accepted{_by(by)}")

    def _review(self, ids: Collection[str], what: str, content: str = "") -> int:
        """Note *what* was done, and put *content* in the place of what they said, if any."""
        now = self._now()

        def reviewed(note: Note) -> Note:
            was = f"; before: {note.content}" if content else ""
            history = (*note.history, f"{now:%Y-%m-%d %H:%M} {what}{was}")
            changed = replace(note, credibility=_REVIEWED, importance=1.0, history=history)
            changed = replace(changed, kind=NoteKind.STATEMENT)
            return replace(changed, content=content, updated_at=now) if content else changed

        waiting = [note.id for note in self._store.get([*ids]).values() if _is_listed(note)]
        return len(self._store.change(waiting, reviewed))

    def edit(self, id_: str, text: str, by: str = "") -> bool:
        """Put *text* in the place of a statement, reviewed *by* whom; false where it is unknown.

        Raises `InvalidNoteError` for a text that is empty or too long.
        """
        content = _masked(text)
        if not content or len(content) > MAX_NOTE:
            raise InvalidNoteError(f"a statement has 1 to {MAX_NOTE:,} characters")
        return self._review([id_], f"edited{_by(by)}", content) > 0

    def reject(self, ids: Collection[str]) -> int:
        """Never show or store these statements again; returns how many wordings there were.

        With each go those that say the same in other words, if nobody has reviewed them. One way
        of working is required by several rules, so that it is no ground to delete another one.
        """
        chosen = {note.id: note for note in self._store.get([*ids]).values() if _is_listed(note)}
        for repo in {note.repo for note in chosen.values()}:
            notes = {note.id: note for note in self._store.newest(_scope(repo), _LISTED)}
            for same in self._same(notes, by_ways=False).values():
                if any(note.id in ids for note in same):
                    chosen |= {note.id: note for note in same if _may_go(note, ids)}
        repeats = [
            note
            for note in self._store.linking([*chosen])
            if not chosen.keys().isdisjoint(note.targets(LinkType.REPEATS)) and _may_go(note, ids)
        ]
        # Nothing of what was said, as it stays when the session is forgotten.
        now = self._now()
        mark = Note("", "rejected", "", SOURCE, now, kind=NoteKind.STATEMENT, archived_at=now)
        gone = chosen | {note.id: note for note in repeats}
        marks = {id_ for note in gone.values() for id_ in _rejection_ids(note)}
        self._store.change(new=[replace(mark, id=id_) for id_ in sorted(marks)])
        self._notes.forget([*gone])
        return len({_rejection_ids(note)[0] for note in gone.values()})

    def for_request(
        self, request: str, *, repo: str | None = None, as_of: datetime | None = None
    ) -> tuple[Recollection, ...]:
        """The statements that *request* is about, those that say most first; often none.

        They are of the one conversation whose words the request shares most, or of a later one
        that superseded it. Nothing newer than *as_of*, nothing that was superseded by then.
        """
        words = request_words(request)
        proposed = self._store.for_text(words, _scope(repo), PROPOSED)
        runs = [*dict.fromkeys(map(_session_of, proposed))][:CONVERSATIONS]
        found, notes = self._conversations(runs, as_of)

        def load(run: str) -> QuotedSession | None:
            later, said = self._conversations([run], as_of)
            notes.update(said)
            return later.get(run)

        rated, probability = quotes_about(words, found, load)
        return tuple(
            Recollection(notes[quote.id], score, {"weight": quote.weight}, probability)
            for score, quote in rated
        )

    def naming(
        self,
        names: Collection[str],
        *,
        repo: str | None = None,
        as_of: datetime | None = None,
        written: str | None = None,
    ) -> tuple[Recollection, ...]:
        """The statements about one of the files or symbols *names*, the newest first.

        With the text that is *written* into these files only what bears on it.
        """
        wanted = {_last_part(name) for name in names}
        words = [stem for name in names for stem in stems(name)][:REQUEST_WORDS]
        scoped = self._store.for_text(words, _scope(repo), PROPOSED)
        seen = [note for note in scoped if _is_seen(note, as_of)]
        about = {name: [note for note in seen if says_of(note, name)] for name in wanted}
        if written is not None:
            put_in = {*stems(written)}
            about = {
                name: [note for note in said if bears_on(note, name, put_in)]
                for name, said in about.items()
                if "." in name or len({*map(_session_of, said)}) < _OF_THE_PROJECT
            }
        return self._current({note.id: note for said in about.values() for note in said}, as_of)

    def for_command(
        self, line: str, *, repo: str | None = None, as_of: datetime | None = None
    ) -> tuple[Recollection, ...]:
        """The statements that say how, or that not, a command of the shell *line* is to be run."""
        typed = [word for one in commands_in(line) for word in stems(one.text)]
        # "Linter" has another stem than `eslint`: those that say how to run something, too.
        words = [*dict.fromkeys((*typed[:REQUEST_WORDS], *_RUNNING))]
        scoped = self._store.for_text(words, _scope(repo), PROPOSED)
        said = {
            note.id: note
            for note in scoped
            if _is_seen(note, as_of) and bears_on_command(note.content, line, note.repo)
        }
        return self._current(said, as_of)

    def _current(
        self, said: Mapping[str, Note], as_of: datetime | None
    ) -> tuple[Recollection, ...]:
        """Return the statements of *said* that hold, the newest first."""
        proposed = said.values()
        superseded = superseded_in(self._store, [*said], as_of)
        current = [it for it in proposed if it.id not in superseded and not waits(it)]
        newest = sorted(current, key=lambda note: (note.created_at, note.importance), reverse=True)
        return tuple(Recollection(note, note.importance, {}, note.importance) for note in newest)

    def _conversations(
        self, runs: Collection[str], as_of: datetime | None
    ) -> tuple[dict[str, QuotedSession], dict[str, Note]]:
        """The conversations of *runs*, by run, and their statements, by id."""
        sessions = self._sessions(runs, as_of)
        notes = {note.id: note for said in sessions.values() for note in said}
        superseded = superseded_in(self._store, notes, as_of)
        later = self._store.get([*{*superseded.values()}])
        return {
            run: _conversation(
                run,
                said,
                {one.id: later[superseded[one.id]] for one in said if one.id in superseded},
            )
            for run, said in sessions.items()
        }, notes

    def _sessions(self, runs: Collection[str], as_of: datetime | None) -> dict[str, list[Note]]:
        """The statements of *runs*, by run."""
        sessions: dict[str, list[Note]] = {run: [] for run in runs}
        for note in self._store.linking([*runs]):
            if _is_listed(note) and _is_seen(note, as_of) and _session_of(note) in sessions:
                sessions[_session_of(note)].append(note)
        return {run: notes for run, notes in sessions.items() if notes}

    def _links(self, new: Sequence[Note], run_id: str) -> dict[str, list[Link]]:
        """Id -> links between *new* statements, all of one run, and those of other sessions."""
        words = Counter(stem for note in new for stem in stem_counts(note.content))
        common = [word for word, _ in words.most_common(REQUEST_WORDS)]
        scope = NoteScope((new[0].repo,), _KINDS)
        proposed = self._store.for_text(common, scope, PROPOSED)
        others = [note for note in proposed if _session_of(note) != run_id]
        links: defaultdict[str, list[Link]] = defaultdict(list)
        for note in new:
            for other in others:
                earlier, later = sorted((note, other), key=lambda one: (one.created_at, one.id))
                relation = _relation(later, earlier)
                if relation is Relation.SAME and not links[later.id]:
                    first = next(iter(earlier.targets(LinkType.REPEATS)), earlier.id)
                    links[later.id].append(Link(LinkType.REPEATS, first))
                elif relation is Relation.SUPERSEDES and may_amend(later, earlier):
                    links[later.id].append(Link(LinkType.SUPERSEDES, earlier.id))
        sessions = self._sessions(dict.fromkeys(map(_session_of, others)), None)
        for later, earlier in _amendments(run_id, {**sessions, run_id: new}):
            links[later.id].append(Link(LinkType.SUPERSEDES, earlier.id))
        return links


def _amendments(run_id: str, sessions: Mapping[str, Sequence[Note]]) -> Iterator[tuple[Note, Note]]:
    """The statements of a session that amends an earlier one, with those that they amend.

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
        restated = [note.content for note in later if note.importance == 1 and _is_agreed(note)]
        if any(map(amends, [opening, *restated])) and may_amend(later[0], earlier[0]):
            yield from _amended(later, earlier)


def _amended(later: Sequence[Note], earlier: Sequence[Note]) -> Iterator[tuple[Note, Note]]:
    """Each of *earlier* that one of *later* changes, with the one that is most about the same.

    What the later session says to stay is not changed. It changes one statement at least.
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


def _note_of(
    said: Said,
    session: SaidInRun,
    run: RawTrajectory,
    run_id: str,
    contributor: str,
    now: datetime,
) -> Note:
    content, repo = _masked(said.text)[:MAX_NOTE], repo_name(run.repo)
    # A copy of a session under another name says nothing new.
    known_by = f"{repo}\n{said.at or run.instance_id}\n{content.casefold()}"
    return Note(
        id=f"statement_{blake2b(known_by.encode(), digest_size=8).hexdigest()}",
        content=content,
        repo=repo,
        source=_source(contributor, by_agent=said.by_agent),
        created_at=said.at or run.started_at or now,
        credibility=_CREDIBILITY,
        kind=NoteKind.STATEMENT if said.confidence >= SURE else NoteKind.CANDIDATE,
        title=_masked(session.title),
        summary=_masked(said.context),
        tags=(said.kind, *dict.fromkeys(map(_masked, said.about))),
        locator=f"{run.instance_id}#{said.step}",
        links=(Link(LinkType.SAID_IN, run_id),),
        importance=min(1.0, said.weight / 6),
    )


def _source(contributor: str, *, by_agent: bool) -> str:
    """The source of a statement, which `Note.contributor` reads."""
    if contributor:
        return f"{SOURCE}:{contributor}:{'agent' if by_agent else 'user'}"
    return f"{SOURCE}:agent" if by_agent else SOURCE


def _linked(note: Note, *, links: Mapping[str, Sequence[Link]]) -> Note:
    return replace(note, links=tuple(dict.fromkeys((*note.links, *links[note.id]))))


def _said_in(note: Note, *, run_id: str) -> Note:
    others = (link for link in note.links if link.type != LinkType.SAID_IN)
    return replace(note, links=(*others, Link(LinkType.SAID_IN, run_id)))


def _masked(text: str) -> str:
    return mask_secrets(clean(text)).strip()


def _rejection_ids(note: Note) -> tuple[str, ...]:
    """The ids of what marks *note* as rejected: by its words, and as it was before an edit."""
    said = f"{note.repo}\n{' '.join(note.content.casefold().split())}"
    return tuple(
        f"rejected_{blake2b(text.encode(), digest_size=8).hexdigest()}" for text in (said, note.id)
    )


def _by(name: str) -> str:
    return f" by {name}" if name else ""


def says_of(note: Note, name: str) -> bool:
    """Return True where the words of *note* name the file or symbol *name*.

    Not what to move or rename: that is done.
    """
    part = _last_part(name)
    is_about = any(part == _last_part(about) for about in note.about)
    is_named = part in note.content.casefold()
    return is_about and is_named and not _CARRIED_OUT.search(note.content)


def is_rule_of(note: Note, name: str) -> bool:
    """Return True where *note* lays down something for the file or symbol *name* itself."""
    named = re.escape(_last_part(name))
    return bool(re.search(_TOPIC.format(named=named), note.content, re.IGNORECASE))


def words_beside(note: Note, name: str) -> list[str]:
    """The stems in the words of *note*, without those of *name*."""
    own = {*stems(_last_part(name))}
    return [stem for stem in dict.fromkeys(stems(note.content)) if stem not in own]


def bears_on(note: Note, name: str, written: Collection[str]) -> bool:
    """Return True where *note* about *name* matters to one who puts the stems *written* into it.

    That a file is named does not make it what the statement is about.
    """
    shared = sum(stem in written for stem in words_beside(note, name))
    return is_rule_of(note, name) or shared >= FEWEST_WRITTEN


def _is_listed(note: Note) -> bool:
    return note.kind in _KINDS and note.is_live


def _may_go(note: Note, named: Collection[str]) -> bool:
    """Return whether *note* goes with a rule that is rejected: *named*, or reviewed by nobody."""
    return note.id in named or note.credibility != _REVIEWED


def _is_seen(note: Note, as_of: datetime | None) -> bool:
    return as_of is None or note.created_at <= as_of


def _scope(repo: str | None) -> NoteScope:
    return NoteScope(None if repo is None else (repo_name(repo),), _KINDS)


def _session_of(note: Note) -> str:
    return next(iter(note.targets(LinkType.SAID_IN)), note.id)


def _last_part(name: str) -> str:
    return re.split(r"[/\\]", name.rstrip("/()"))[-1].casefold()


def _as_a_rule(note: Note) -> tuple[bool, bool, bool, datetime, str]:
    """Sort key: what says a rule best is reviewed, and directs; else what said it first."""
    is_reviewed, text = note.credibility == _REVIEWED, note.content
    return not is_reviewed, not is_worded_as_rule(text), "?" in text, note.created_at, note.id


def _rule_of(notes: Sequence[Note]) -> str:
    """Word the rule that *notes* give for one who was not there; empty where none can be."""
    best = min(notes, key=_as_a_rule)
    ways = Counter(way for note in notes for way in sorted(ways_in(note.content)))
    subject = _subject(best.content)
    # Of a way of working that is required in other words each turn speaks of another place.
    is_shared = all(dice(subject, _subject(note.content)) >= _SAME_RULE for note in notes)
    is_general = is_shared or len(subject) < _FEWEST_STEMS or max(ways.values(), default=0) < 2
    if best.credibility == _REVIEWED or (is_general and is_worded_as_rule(best.content)):
        return best.content
    return ways.most_common(1)[0][0] if ways else ""


def _occurrences(notes: Iterable[Note]) -> tuple[Occurrence, ...]:
    said = [
        Occurrence(note.session, note.created_at, note.content)
        for note in notes
        for _ in note.targets(LinkType.SAID_IN) or ("",)
    ]
    return tuple(sorted(said, key=lambda one: (one.time, one.session)))


def _conversation(run: str, notes: Sequence[Note], superseded: Mapping[str, Note]) -> QuotedSession:
    """The statements *notes* of *run*; *superseded* has the successors of those that have one."""
    later = [superseded[note.id] for note in notes if note.id in superseded]
    newest = max(later, key=lambda note: (note.created_at, note.id), default=None)
    replaced_by = _session_of(newest) if newest else ""
    return QuotedSession(
        run,
        replaced_by if replaced_by != run else "",
        [*stem_counts(notes[0].title)],
        _words_of(notes),
        [quote_of(note, is_shown=not (note.id in superseded or waits(note))) for note in notes],
        notes[0].contributor,
        len(stem_counts(notes[0].title.partition("\n")[0])),
    )


def _words_of(notes: Sequence[Note]) -> Counter[str]:
    """The stems of a conversation: of its title once, and of each statement."""
    counts = Counter(stem_counts(notes[0].title))
    for note in notes:
        counts.update(stem_counts(f"{note.summary} {note.content}"))
        counts.update(stem for tag in note.about for stem in stem_counts(tag))
    return counts


def _is_agreed(note: Note) -> bool:
    return note.statement_kind is StatementKind.AGREED


def _relation(note: Note, earlier: Note) -> Relation:
    """Relate *note* to a statement of another session by their words."""
    ours, theirs = stem_counts(note.content).keys(), stem_counts(earlier.content).keys()
    similar = dice(ours, theirs)
    # "address 7" says nothing without what it answers.
    if similar < _COMPARED or min(len(ours), len(theirs)) < _FEWEST_STEMS:
        return Relation.UNRELATED
    relation = verdict(statement_of(note), statement_of(earlier)).relation
    if relation is Relation.SUPERSEDES and not _is_same_subject(note.content, earlier.content):
        return Relation.UNRELATED
    is_same = relation is Relation.UNRELATED and similar >= _SAME
    is_same = is_same and not _name_others(note.content, earlier.content)
    return Relation.SAME if is_same else relation


def _is_same_subject(later: str, earlier: str) -> bool:
    """Return whether *later* can change *earlier*: names nothing else, does not say it stays.

    Where each names another thing, the rest of the words has to be the same.
    """
    rest = dice(_subject(later) - _names(later), _subject(earlier) - _names(earlier))
    is_other = _name_others(later, earlier) and rest < _SAME_REST
    return not (is_other or _STAYS.search(later))


def _name_others(text: str, other: str) -> bool:
    """Return whether both name things, but none that both name."""
    ours, theirs = _names(text), _names(other)
    return bool(ours and theirs) and ours.isdisjoint(theirs)


def _rules(notes: Sequence[Note], *, by_ways: bool) -> dict[str, str]:
    """Id -> that of the first of *notes* in time which gives the same rule.

    They require one way of working (with *by_ways*), or share what they are about: rare words that
    are most of both, or the name that is all of the first ("session.go"). Fewer than twenty
    sessions do not show which words are rare.
    """
    titles = {_session_of(note): note.title for note in notes}
    is_telling = len(titles) >= _TELLING_SESSIONS
    met = Counter(word for title in titles.values() for word in {*stem_counts(title)})
    first: dict[str, str] = {}
    having: defaultdict[str, list[Note]] = defaultdict(list)

    def weight(words: Iterable[str]) -> float:
        return sum(rarity(met[word], len(titles)) for word in sorted(words))

    def is_about_same(note: Note, rule: Note) -> bool:
        if not is_telling or _name_others(note.content, rule.content):
            return False
        ours, theirs = _subject(note.content), _subject(rule.content)
        shared, similar = ours & theirs, dice(ours, theirs)
        if weight(shared) * similar >= _RULE_BY_WORDS[min(len(shared), 3)]:
            return similar >= _SAME_RULE
        named = shared & _names(note.content) & _names(rule.content)
        is_all = theirs <= ours and len(theirs) < _FEWEST_STEMS
        return bool(named) and is_all and weight(theirs) >= _RARE_NAME

    for note in sorted(notes, key=lambda note: (note.created_at, note.id)):
        ways = ways_in(note.content) if by_ways else frozenset[str]()
        subject = _subject(note.content) | ways
        known = {rule.id: rule for word in sorted(subject) for rule in having[word]}
        others = [one for one in known.values() if _may_repeat(note, one)]
        # What they are about says more than the way in which it is to be done.
        same = [one for one in others if is_about_same(note, one)] or [
            one for one in others if not ways.isdisjoint(ways_in(one.content))
        ]
        if rule := min(same, key=lambda one: (one.created_at, one.id), default=None):
            first[note.id] = rule.id
        else:
            for word in subject:
                having[word].append(note)
    return first


def _may_repeat(note: Note, rule: Note) -> bool:
    """Return whether *note* may give *rule* again: from another session, with no other value."""
    numbers = [{*_NUMBER.findall(one.content)} for one in (note, rule)]
    is_changed = (all(numbers) and numbers[0] != numbers[1]) or amends(note.content)
    is_elsewhere = _session_of(note) != _session_of(rule) and note.repo == rule.repo
    return is_elsewhere and not is_changed and note.contributor == rule.contributor


@lru_cache(maxsize=1 << 12)
def _subject(text: str) -> frozenset[str]:
    """The subject of *text*: its names, and its stems without how people give orders."""
    rest = _NAMED.sub(" ", text)
    return (frozenset(stems(rest)) - manner_stems()) | _names(text)


@lru_cache(maxsize=1 << 12)
def _names(text: str) -> frozenset[str]:
    """The files, symbols and acronyms in *text*, in one spelling: `fs_watcher.go`, `fsWatcher`."""
    found = (next(filter(None, match.groups())) for match in _NAMED.finditer(text))
    spelled = (_NOT_LETTERS.sub("", _SUFFIX.sub("", name.rpartition("/")[2])) for name in found)
    shouted = manner_stems()
    return frozenset(
        name.casefold() for name in spelled if name and not {*stems(name.lower())} & shouted
    )

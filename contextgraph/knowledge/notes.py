"""Remembers notes, compares them with earlier ones, and recalls them."""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime, timedelta
from functools import partial, reduce
from itertools import combinations, islice
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from contextgraph.errors import EmbeddingError, InvalidNoteError, RemoteError
from contextgraph.knowledge.asked import ALWAYS, Period
from contextgraph.knowledge.conflict import (
    CREDIBILITY_MARGIN,
    Relation,
    Statement,
    Verdict,
    judged,
    verdict,
)
from contextgraph.knowledge.forgetting import (
    belongs_long_term,
    is_forgotten,
    rarity,
    shares_below,
    strength,
    worth,
)
from contextgraph.knowledge.recall import (
    NO_WORDS,
    ORDERED,
    Question,
    credibility_of,
    later_of,
    most_similar_notes,
    nearest_notes,
    recollections,
    searched_text,
    snapshot_of,
    stem_counts,
    superseded_in,
    waits,
    walk,
    with_link,
)
from contextgraph.model import (
    Link,
    LinkType,
    MaintenancePolicy,
    MaintenanceReport,
    NonNegativeInt,
    Note,
    NoteKind,
    NoteReceipt,
    NoteScope,
    NoteStatus,
    Quotation,
    Recollection,
    Security,
    Share,
    Snapshot,
    Strategy,
    Time,
    Vector,
    WordCounts,
)
from contextgraph.model.values import checked, replace
from contextgraph.store.memory_store import ALL, NoteStore
from contextgraph.store.protocols import EmbedderSource
from contextgraph.text import (
    dice,
    digest,
    folded,
    kept_text,
    mask_secrets,
    masked_name,
    regex,
    without_private,
)

if TYPE_CHECKING:
    from contextgraph.knowledge.keyed import CurrentEntry


RECALLED = 5
_COMPARED, _WORDS = 40, 96
# Where nothing is ever written, so many recalls wait to be counted; the oldest are dropped.
_COUNTED = 4_096
_PINNING = "pinned"  # a tag
# Of a snapshot: notes of each kind, in this order.
_PINNED, _RELATED, _RECENT, _RECENTLY = 50, 3, 5, timedelta(hours=24)


Judge = Callable[[str, str], Verdict | None]
"""The relation of a statement to an earlier one; None where it cannot say.

Raises `RemoteError` where it does not answer.
"""

Asked = Callable[[str, str | None, int, Strategy], Sequence[Recollection]]
"""What answers a question about a repository, at most so many of a strategy, best first."""


class NoteProperties(TypedDict, total=False):
    """Options of `remember` besides content, repository, source and tags.

    *locator* is where the source says it; a source of the kind web needs one. *importance* is 0 to
    1. *caused_by* are ids of notes. The other fields are those of `Note`.
    """

    locator: str
    pinned: bool
    security: Security | str
    valid_from: Time | None
    valid_until: Time | None
    importance: Share
    caused_by: Collection[str]


def _warn(message: str, error: Exception) -> None:
    """Log *message* about *error*; few commands do, and loading `logging` takes 2 ms."""
    import logging

    logging.getLogger(__name__).warning(message, error)


@checked
class Notes:
    """The notes of a memory.

    *clock* gives the time. *embedder* embeds notes, *questions* embeds questions. *judge* decides
    how a statement relates to an earlier one; if it cannot say, their words decide. *keyed* gives
    the entries of keyed files, which are recalled as well. *counts* says in how many passages of
    sessions words occur.
    """

    def __init__(
        self,
        store: NoteStore,
        clock: Callable[[], datetime],
        embedder: EmbedderSource = lambda: None,
        questions: EmbedderSource = lambda: None,
        judge: Judge | None = None,
        keyed: Callable[[], Iterable["CurrentEntry"]] = tuple,
        distrusted: Callable[[], frozenset[str]] = frozenset,
        counts: Callable[[Sequence[str]], WordCounts] = lambda _: NO_WORDS,
    ) -> None:
        self._store = store
        self._now = clock
        self._embedder = embedder
        self._questions = questions
        self._judge = judge
        self._keyed = keyed
        self.distrusted = distrusted
        self._counts = counts
        # What was shown and is not stored yet would keep the words of what is deleted.
        self.before_forgetting: Callable[[], None] = lambda: None
        # Ranks notes together with what was said in sessions, where a memory has these.
        self.asked: Asked | None = None
        # Written with the next change: who only reads counts nothing.
        self._recalled: deque[Recollection] = deque(maxlen=_COUNTED)

    def remember(
        self,
        content: str,
        *,
        repo: str | None = "",
        source: str = "user",
        tags: Collection[str] = (),
        credibility: Share | None = None,
        **properties: Unpack[NoteProperties],
    ) -> NoteReceipt:
        """Store what *source* says about *repo* (empty: about anything), with secrets masked.

        A statement that another source made already is confirmed. A statement that contradicts an
        earlier one on the same subject supersedes it if it is from the same source or clearly more
        credible; otherwise both stay and are marked. *source* is a kind (user, file, tool, system,
        agent, web), or a kind with a name (``user:chat``); it determines the *credibility*, 0 to 1,
        unless that is given. *properties* are `NoteProperties`; the tag ``pinned`` pins. Raises
        `InvalidNoteError` for a text that is empty or longer than 2,000 characters, and for invalid
        properties.
        """
        self.count_recalls()
        stated = note_of(content, repo or "", source, self._now(), credibility)
        names = dict.fromkeys(masked_name(tag).casefold() for tag in tags)
        if _PINNING in names:
            properties.setdefault("pinned", True)
        note = with_properties(replace(stated, tags=tuple(names)), properties)
        known = self._store.get([note.id]).get(note.id)
        if known is not None and known.is_live:
            return self._confirm(known, note)
        scope = NoteScope((note.repo,))
        related = self._sharing_words(note, scope)
        compared = verdicts(note, related)
        if all(one.relation is not Relation.SAME for _, one in compared):
            try:
                judgements = self._judgements(note, related)
                note = replace(note, is_judged=judgements is not None)
                by_words = {pair[0].id: pair for pair in compared}
                compared = [*(by_words | (judgements or {})).values()]
            except RemoteError as error:
                _warn("%s; words decide until the memory is maintained", error)
        for other, compared_to in compared:
            if compared_to.relation is Relation.SAME:
                return self._confirm(other, note)
        before = (Link(LinkType.FOLLOWS, note.id) for note in self._store.newest(scope, 1))
        note = replace(note, links=(*note.links, *before))
        receipt = self._store_beside(note, compared)
        return replace(receipt, to_embed=not self._embed(note))

    def recall(
        self,
        question: str,
        *,
        repo: str | None = None,
        limit: NonNegativeInt = RECALLED,
        tags: Collection[str] = (),
        min_probability: Share = 0.0,
        strategy: Strategy | str = Strategy.HYBRID,
    ) -> tuple[Recollection, ...]:
        """Return what was said in sessions, and notes of all kinds, that best answer *question*.

        In the order of `AgentMemory.search`. They are of *repo*, or notes about anything; of all
        repositories without *repo*. With *tags*, only notes that have all of them. Notes that are
        archived, superseded or not valid now are left out, as are those that answer with less than
        *min_probability*. If the question cannot be embedded, words alone decide and a warning is
        logged.

        "What happened recently" returns the newest notes, "why did we …" includes causes, and the
        name of an entity includes what is linked to it. *strategy* is ``hybrid``, ``knowledge`` (no
        entities or links), ``graph`` (entities and what is linked to them) or ``notes`` (only notes
        and lessons).
        """
        chosen = Strategy(strategy)
        scope = NoteScope(places_of(repo), chosen.kinds, tuple(map(str.casefold, tags)))
        ranked: Sequence[Recollection]
        if self.asked is None or tags or chosen in (Strategy.NOTES, Strategy.GRAPH):
            ranked = self.answers(question, scope, chosen)
        else:
            ranked = self.asked(question, repo, limit, chosen)
        probable = (one for one in ranked if one.probability >= min_probability)
        found = tuple(islice(probable, limit))
        recollections = self._with_later(found, ranked, scope)
        self._recalled.extend(recollections)
        return recollections

    def known(self, ids: Collection[str]) -> dict[str, Note]:
        """Return the notes and entries of keyed files with these *ids*, by id."""
        entries = {note.id: note for note in map(_note_of_entry, self._keyed())}
        return {**{id_: entries[id_] for id_ in ids if id_ in entries}, **self._store.get([*ids])}

    def rank(self, question: str, note_id: str, *, repo: str | None = None) -> int | None:
        """Return the rank, from 1, of this note or of its successor for *question*.

        Returns None if neither is recalled. It does not count as a recall.
        """
        while (note := self._store.get([note_id]).get(note_id)) and note.superseded_by:
            note_id = note.superseded_by
        scope = NoteScope(places_of(repo), Strategy.HYBRID.kinds)
        answers = self.answers(question, scope, Strategy.HYBRID)
        ids = [recollection.note.id for recollection in answers]
        return ids.index(note_id) + 1 if note_id in ids else None

    def answers(
        self,
        question: str,
        scope: NoteScope,
        strategy: Strategy,
        others: Sequence[Note] = (),
        period: Period = ALWAYS,
        vector_of: Callable[[str], Vector | None] | None = None,
        counts: WordCounts | None = None,
    ) -> list[Recollection]:
        """Rank notes in *scope*, keyed entries and *others* by how well they answer *question*.

        Those of the *period*, the best first; *vector_of* gives another vector of the question than
        the method of this name, and *counts* has the words of passages. It does not count as a
        recall.
        """
        if NoteKind.KEYED in scope.kinds:
            others = (*others, *map(_note_of_entry, self._keyed()))
        # Then the question need not be embedded; of all repositories some will have a note.
        if not others and scope.repos is not None and not self._store.newest(scope, 1):
            return []
        vector = (vector_of or self.vector_of)(question)
        asked = Question.of(question, vector, scope, self._now(), period)
        found = self._found(asked, others, strategy, counts or self._counts(asked.words))
        replaced = superseded_in(self._store, [one.note.id for one in found])
        # Who asks is shown what the owner only proposed, too, but nothing of whom they distrust.
        given = {one.note.contributor for one in found}
        hidden = self.distrusted() if given - {""} else frozenset()
        current = [
            one
            for one in found
            if one.note.id not in replaced
            and one.note.contributor not in hidden
            and not (one.note.contributor and waits(one.note))
        ]
        return self._with_contradictions(current, scope)

    def snapshot(
        self,
        trigger: str,
        focus: str = "",
        *,
        repo: str | None = None,
        max_tokens: NonNegativeInt = 500,
    ) -> Snapshot:
        """Return notes of *repo* that matter when *trigger* happens, in at most *max_tokens*.

        All pinned notes, then the three that answer *trigger* and *focus* best, then the newest
        five of the last 24 hours; each whole, those that do not fit are left out from the end.
        """
        scope, now = NoteScope(places_of(repo)), self._now()
        pinned = self._store.newest(replace(scope, pinned=True), _PINNED)
        related = self.recall(
            f"{focus}\n{trigger}", repo=repo, limit=_RELATED, strategy=Strategy.NOTES
        )
        recent = [
            note
            for note in self._store.newest(scope, _RECENT)
            if now - note.created_at <= _RECENTLY
        ]
        notes = {
            note.id: note
            for note in (*pinned, *(recollection.note for recollection in related), *recent)
        }
        valid = (note for note in notes.values() if note.is_valid(now) and not waits(note))
        return snapshot_of(valid, max_tokens, later_of(related))

    def count_recalls(self) -> None:
        """Store how often notes were recalled; otherwise that waits for the next `remember`."""
        recalled, self._recalled = self._recalled, deque(maxlen=_COUNTED)
        if recalled:
            ids = [recollection.note.id for recollection in recalled]
            self._store.change(ids, partial(_with_recalls, recalled=recalled, now=self._now()))

    def without_counts(self) -> "Notes":
        """Return these notes for callers that may only read: their recalls are not counted."""
        notes = copy(self)
        notes._recalled = deque(maxlen=0)
        return notes

    def link(self, source: str, target: str, type_: str = "related", weight: Share = 1.0) -> bool:
        """Link two notes, replacing a link of the same type; return False if one is unknown."""
        if not {source, target} <= self._store.get([source, target]).keys():
            return False
        link = Link(masked_name(type_), target, weight)
        self._store.change([source], lambda note: with_link(note, link))
        return True

    def causes(self, note_id: str, depth: NonNegativeInt = 5) -> tuple[Note, ...]:
        """Return the notes that led to this one, nearest first, up to *depth* steps back."""
        reached = walk(self._store, [note_id], depth, (LinkType.CAUSED_BY,))[note_id]
        return tuple(one.note for one in reached)

    def of(self, repo: str | None = None, *, archived: bool = False) -> tuple[Note, ...]:
        """Return the notes of *repo* (None: of all), newest first; the *archived* ones if set."""
        repos = None if repo is None else (repo_name(repo),)
        return tuple(self._store.newest(NoteScope(repos, live=not archived), ALL))

    def pin(self, ids: Collection[str], *, pinned: bool = True) -> int:
        """Pin or unpin these notes; pinned ones are in every snapshot and are never pruned."""
        return len(self._store.change([*ids], lambda note: replace(note, pinned=pinned)))

    def archive(self, ids: Collection[str]) -> int:
        """Archive these notes, which are stored but not recalled; return how many were live."""
        now = self._now()
        changed = self._store.change([*ids], partial(archived_at, now=now))
        return sum(note.archived_at == now for note in changed)

    def restore(self, ids: Collection[str]) -> int:
        """Restore archived notes, so that they are recalled; return how many were archived."""
        known = self._store.get([*ids])
        archived = [note.id for note in known.values() if note.archived_at]
        return len(self._store.change(archived, lambda note: replace(note, archived_at=None)))

    def prune(
        self,
        *,
        repo: str | None = None,
        before: Time | None = None,
        tags: Collection[str] = (),
        max_recalls: NonNegativeInt | None = None,
    ) -> int:
        """Archive live notes that meet all given conditions; return how many.

        Conditions: of *repo*, remembered *before* a time, with all of *tags*, recalled at most
        *max_recalls* times. Pinned notes stay. Raises `InvalidNoteError` without a condition.
        """
        if repo is None and before is None and not tags and max_recalls is None:
            raise InvalidNoteError("prune needs a condition: repo, before, tags or max_recalls")
        wanted = {*map(str.casefold, tags)}
        self.count_recalls()
        return self.archive(
            [
                note.id
                for note in self.of(repo)
                if not note.pinned
                and (before is None or note.created_at < before)
                and wanted <= {*note.tags}
                and (max_recalls is None or note.recalls <= max_recalls)
            ]
        )

    def reset(
        self, *, repo: str | None = None, source: str | None = None, everything: bool = False
    ) -> int:
        """Delete the notes of *repo* and *source*, or *everything*; return how many.

        Raises `InvalidNoteError` where none of them is given.
        """
        if not (repo or source or everything):
            raise InvalidNoteError("this deletes all notes: name repo or source, or everything")
        return self.forget(
            [
                note.id
                for note in self._store.all()
                if (repo is None or note.repo == repo_name(repo))
                and (source is None or note.source == masked_name(source))
            ]
        )

    def forget(self, ids: Collection[str]) -> int:
        """Delete these notes, also from recorded answers; return how many were known."""
        named = [*ids]
        self.before_forgetting()
        return self._store.delete(named)

    def _confirm(self, known: Note, again: Note) -> NoteReceipt:
        """Count *again* as a confirmation of *known*.

        It keeps the greater of each value, unless they are of different sources.
        """

        def confirmed(note: Note) -> Note:
            note = confirmed_by(note, again.source)
            if not may_amend(again, note):
                return note
            return replace(
                note,
                importance=max(note.importance, again.importance),
                credibility=max(note.credibility, again.credibility),
                tags=tuple(dict.fromkeys((*note.tags, *again.tags))),
                pinned=note.pinned or again.pinned,
            )

        self._store.change([known.id], confirmed)
        return NoteReceipt(known.id, NoteStatus.SAME, (known.id,))

    def _store_beside(self, note: Note, compared: Sequence[tuple[Note, Verdict]]) -> NoteReceipt:
        """Store *note*, and with it what it means for those that it was compared with."""
        superseded, contradicted = conflicts_in(compared)
        ids = [other.id for other, _ in (*superseded, *contradicted)]
        new = related_by(note, compared)
        self._store.change(ids, partial(marked_by, note, compared), new=[new])
        for status, others in (
            (NoteStatus.SUPERSEDES, superseded),
            (NoteStatus.CONTRADICTS, contradicted),
        ):
            if others:
                confidence = max(verdict.confidence for _, verdict in others)
                return NoteReceipt(
                    note.id, status, tuple(note.id for note, _ in others), confidence
                )
        return NoteReceipt(note.id, NoteStatus.CREATED)

    def vector_of(self, question: str) -> Vector | None:
        """Return the vector of *question*; None if there is no space or embedding fails."""
        try:
            embedder = self._questions()
            return embedder.embed([question]).vectors[0] if embedder else None
        except EmbeddingError as error:
            _warn("%s; notes are recalled by words only", error)
            return None

    def _found(
        self, asked: Question, others: Sequence[Note], strategy: Strategy, counts: WordCounts
    ) -> list[Recollection]:
        """Rank what answers; where vectors cannot be compared, words decide."""
        try:
            return recollections(self._store, asked, others, strategy, counts)
        except EmbeddingError as error:
            _warn("%s; notes are recalled by words only", error)
            asked = replace(asked, vector=None)
            return recollections(self._store, asked, others, strategy, counts)

    def _with_contradictions(
        self, found: Sequence[Recollection], scope: NoteScope
    ) -> list[Recollection]:
        """*found*, where before each note stand the newer ones that contradict it.

        Unless it is clearly more credible by now, as when others have confirmed it since.
        """
        ids = {id_ for one in found for id_ in one.note.contradicts}
        if not ids:
            return [*found]
        known = {one.note.id: one for one in found}
        notes, now = self._store.get([*ids - known.keys()]), self._now()
        shown: dict[str, Recollection] = {}
        for one in found:
            newer = [
                known.get(id_) or replace(one, note=notes[id_])
                for id_ in one.note.contradicts
                if id_ in known
                or (id_ in notes and scope.has(notes[id_]) and notes[id_].is_valid(now))
            ]
            trusted = credibility_of(one.note, now) - CREDIBILITY_MARGIN
            newer = [
                it
                for it in newer
                if it.note.is_live
                and it.note.created_at > one.note.created_at
                and credibility_of(it.note, now) > trusted
            ]
            for it in (*sorted(newer, key=lambda it: it.note.created_at, reverse=True), one):
                shown.setdefault(it.note.id, it)
        return [*shown.values()]

    def _with_later(
        self, found: tuple[Recollection, ...], ranked: Sequence[Recollection], scope: NoteScope
    ) -> tuple[Recollection, ...]:
        """*found*, the first with the later note about the same: they are nearest to each other.

        By meaning where texts can be embedded, else by words among all that are *ranked*. Whether
        it says otherwise neither can decide; who reads both with their dates sees.
        """
        said = {one.note.id: one.note for one in found if one.note.kind in ORDERED}
        among = [one.note for one in ranked if one.note.kind in ORDERED]
        now = self._now()
        nearest = {
            id_: other
            for id_, other in self._nearest([*said.values()][:RECALLED], among).items()
            if other.created_at > said[id_].created_at and other.is_valid(now) and scope.has(other)
        }
        others = {other.id: other for other in nearest.values()}
        replaced = superseded_in(self._store, others)
        back = self._nearest([one for id_, one in others.items() if id_ not in replaced], among)
        later = {
            id_: other
            for id_, other in nearest.items()
            if other.id in back and back[other.id].id == id_
        }
        return tuple(replace(one, later=later.get(one.note.id)) for one in found)

    def _nearest(self, notes: Sequence[Note], among: Sequence[Note]) -> dict[str, Note]:
        try:
            if notes and (embedder := self._questions()):
                vectors = embedder.embed([note.content for note in notes]).vectors
                return nearest_notes(self._store, notes, vectors)
        except EmbeddingError as error:
            _warn("%s; notes are compared by words only", error)
        return most_similar_notes(notes, among)

    def judge_waiting(self, check: Callable[[], None] = lambda: None) -> MaintenanceReport:
        """Compare stored notes and lessons with earlier ones by the judge, each pair once.

        Compares at most 200 that have a candidate, oldest first; the rest waits, also if the judge
        does not answer. *check* is called before each request and write, and may raise to stop.
        """
        if self._judge is None:
            return MaintenanceReport()
        waiting = {note.id: note for note in self._store.all() if _waits_for_judge(note)}
        replaced = {*superseded_in(self._store, waiting)}
        asked, merged, resolved, done = 0, 0, 0, list[str]()
        for note in sorted(waiting.values(), key=lambda note: (note.created_at, note.id)):
            if note.id in replaced:
                continue
            check()
            scope = NoteScope((note.repo,), (note.kind,))
            related = self._sharing_words(note, scope)
            try:
                judgements = self._judgements(note, related)
            except RemoteError as error:
                _warn("%s; notes wait to be judged", error)
                break
            done.append(note.id)
            if judgements:
                check()
                same, others = self._relate(note, [*judgements.values()])
                self._store.change([note.id], _as_judged)
                replaced |= {*others}
                asked, merged, resolved = asked + 1, merged + same, resolved + len(others)
            if asked == _JUDGED_AT_ONCE:
                break
        check()
        self._store.change(done, _as_judged)
        return MaintenanceReport(merged=merged, conflicts_resolved=resolved)

    def _judgements(
        self, note: Note, related: Sequence[Note]
    ) -> dict[str, tuple[Note, Verdict]] | None:
        """Ask the judge about *note* and earlier ones; None where *note* must not be judged.

        Those of *related* that share most words, and the one that is nearest. Raises `RemoteError`.
        """
        if self._judge is None or note.security.is_secret:
            return None
        similar = [it for it in _most_similar(note, related) if _may_be_judged(note, it)]
        nearest = self._mutually_nearest(note)
        others = {it.id: it for it in (*similar[:_JUDGED], *filter(None, [nearest]))}
        replaced = superseded_in(self._store, [*others])
        statement = statement_of(note)
        return {
            id_: (other, judged(answer, statement, statement_of(other)))
            for id_, other in others.items()
            if id_ not in replaced
            and (answer := self._judge(note.content, other.content)) is not None
        }

    def _sharing_words(self, note: Note, scope: NoteScope) -> Sequence[Note]:
        words = [*stem_counts(note.content)][:_WORDS]
        return self._store.for_text(words, scope, _COMPARED)

    def _mutually_nearest(self, note: Note) -> Note | None:
        """The earlier note that is nearest to *note* as *note* is to it, if there is one."""
        scope = NoteScope((note.repo,), ORDERED)

        def among(one: Note) -> list[Note]:
            similar = self._sharing_words(one, scope)
            return [*{it.id: it for it in (*similar, note)}.values()]

        other = self._nearest([note], among(note)).get(note.id)
        if other is None or not _may_be_judged(note, other):
            return None
        back = self._nearest([other, note], among(other)).get(other.id)
        return other if back and back.id == note.id else None

    def _relate(
        self, note: Note, compared: Sequence[tuple[Note, Verdict]]
    ) -> tuple[int, Sequence[str]]:
        """Store what was said of *note*; how many are merged, and the ids of those superseded."""
        equal = (it for it, one in compared if one.relation is Relation.SAME)
        same = [it for it in equal if it.contributor == note.contributor]
        if note.kind is NoteKind.LESSON:
            if same:
                first = same[0].id

                def merged(it: Note) -> Note:
                    return with_evidence(it, note) if it.id == first else _under(it, first)

                self._store.change([first, note.id], merged)
                return 1, []
            amended = [
                Link(LinkType.SUPERSEDES, it.id)
                for it, one in compared
                if one.relation in (Relation.SUPERSEDES, Relation.CONTRADICTS)
                and may_amend(note, it)
            ]
            self._store.change([note.id], lambda it: replace(it, links=(*it.links, *amended)))
            return 0, [link.target for link in amended]
        if same and not note.pinned and same[0].valid_until == note.valid_until:
            return len(_merge(self._store, [same[0], note])), ()
        # What is pinned stays.
        stays = {it.id for it, one in compared if it.pinned and one.relation is Relation.SUPERSEDES}
        compared = [
            (it, replace(one, relation=Relation.CONTRADICTS) if it.id in stays else one)
            for it, one in compared
        ]
        superseded, contradicted = conflicts_in(compared)
        others = [it.id for it, _ in (*superseded, *contradicted)]

        def changed(it: Note) -> Note:
            is_own = it.id == note.id
            return related_by(it, compared) if is_own else marked_by(note, compared, it)

        self._store.change([note.id, *others], changed)
        return 0, [it.id for it, _ in superseded]

    def _embed(self, note: Note) -> bool:
        """Embed *note*; false where that fails: it waits until the memory is maintained."""
        try:
            if embedder := self._embedder():
                (vector,) = embedder.embed([note.content]).vectors
                self._store.add(embedder.space, {note.id: vector})
        except EmbeddingError:
            return False
        return True


def places_of(repo: str | None) -> tuple[str, ...] | None:
    """Return the repositories whose notes are recalled for *repo*, with "" for general ones."""
    return None if repo is None else tuple(dict.fromkeys((repo_name(repo), "")))


def _note_of_entry(entry: "CurrentEntry") -> Note:
    """*entry* of a keyed file as it is recalled, by the words of all its text."""
    return Note(
        id=entry.key,
        content=entry.line,
        repo="",
        source="keyed",
        created_at=entry.ts,
        kind=NoteKind.KEYED,
        summary=entry.text,
        locator=str(entry.path),
    )


def archived_at(note: Note, now: datetime) -> Note:
    """Return *note*, archived *now* if it was live."""
    return replace(note, archived_at=now) if note.is_live else note


def _with_recalls(note: Note, recalled: Sequence[Recollection], now: datetime) -> Note:
    scores = [recollection.score for recollection in recalled if recollection.note.id == note.id]
    return replace(
        note,
        recalls=note.recalls + len(scores),
        recall_score=note.recall_score + sum(scores),
        recalled_at=now,
    )


MAX_NOTE = 2_000
# How reliable a source is by its kind, which stands before a colon in its name.
RELIABILITY: Mapping[str, float] = {
    "file": 0.95,
    "user": 0.85,
    "system": 0.8,
    "tool": 0.8,
    "agent": 0.7,
    "web": 0.6,
}
_OTHERWISE = 0.7
# How many notes a judge compares beside the nearest, and the least share of words that they have in
# common; and of how many notes at once.
_JUDGED, _JUDGED_ABOVE, _JUDGED_AT_ONCE = 2, 0.4, 200


def note_of(text: str, repo: str, source: str, now: datetime, credibility: float | None) -> Note:
    """Make a note of *source* about *repo*, masked; raises `InvalidNoteError`."""
    content = kept_text(without_private(text))
    if not content:
        raise InvalidNoteError("a note needs a text")
    if len(content) > MAX_NOTE:
        raise InvalidNoteError(f"a note has at most {MAX_NOTE:,} characters, not {len(content):,}")
    place, kind = repo_name(repo), source.partition(":")[0]
    known = f"{place}\n{folded(content)}"
    return Note(
        id=f"note_{digest(known)}",
        content=content,
        repo=place,
        source=masked_name(source),
        created_at=now,
        credibility=RELIABILITY.get(kind, _OTHERWISE) if credibility is None else credibility,
    )


def with_properties(note: Note, properties: NoteProperties) -> Note:
    """Return *note* with *properties*; raises `InvalidNoteError` for impossible ones."""
    given: dict[str, Any] = {**properties}
    causes, security = given.pop("caused_by", ()), given.pop("security", Security.INTERNAL)
    given["locator"] = mask_secrets(given.get("locator", ""))
    note = replace(
        note,
        **given,
        security=Security(security),
        links=tuple(Link(LinkType.CAUSED_BY, id_) for id_ in causes),
    )
    if note.source.partition(":")[0] == "web" and not note.locator:
        raise InvalidNoteError("a note from the web needs its locator, such as the URL")
    return note


def repo_name(repo: str) -> str:
    """Return the name by which a repository is compared: GitHub ignores case."""
    return masked_name(repo).casefold()


def statement_of(note: Note) -> Statement:
    """Return the text by which *note* is compared."""
    return Statement(note.content, note.source, note.created_at, note.credibility)


def verdicts(new: Note, related: Sequence[Note]) -> list[tuple[Note, Verdict]]:
    """Relate *new* to each of *related* by their words."""
    statement = statement_of(new)
    return [(note, verdict(statement, statement_of(note))) for note in related]


def conflicts_in(
    compared: Sequence[tuple[Note, Verdict]],
) -> tuple[list[tuple[Note, Verdict]], list[tuple[Note, Verdict]]]:
    """Return the superseded notes, and the contradicted ones."""
    superseded = [pair for pair in compared if pair[1].relation is Relation.SUPERSEDES]
    return superseded, [pair for pair in compared if pair[1].relation is Relation.CONTRADICTS]


def related_by(note: Note, compared: Sequence[tuple[Note, Verdict]]) -> Note:
    """Return *note* with relations to the notes that it was *compared* with."""
    superseded, contradicted = conflicts_in(compared)
    # Found by the words of what it replaces, too: a question may use the old ones.
    known = (old for old, _ in superseded if note.security.is_secret or not old.security.is_secret)
    replaces = "; ".join(old.content for old in known)[:MAX_NOTE]
    ids = (*note.contradicts, *(other.id for other, _ in contradicted))
    return replace(
        note,
        contradicts=tuple(dict.fromkeys(ids)),
        links=(*note.links, *(Link(LinkType.SUPERSEDES, old.id) for old, _ in superseded)),
        summary=f"Replaces: {replaces}" if replaces else note.summary,
    )


def marked_by(note: Note, compared: Sequence[tuple[Note, Verdict]], other: Note) -> Note:
    """Return *other* after *note* was *compared* with it."""
    superseded, _ = conflicts_in(compared)
    if other.id in {old.id for old, _ in superseded}:
        return replace(other, superseded_by=note.id)
    return replace(other, contradicts=tuple(dict.fromkeys((*other.contradicts, note.id))))


def may_amend(later: Note, earlier: Note) -> bool:
    """Return whether *later* may supersede *earlier*: not a statement of another source."""
    return later.contributor in ("", earlier.contributor)


def links_of(evidence: Iterable[Quotation], others: Iterable[Link] = ()) -> tuple[Link, ...]:
    """Return links to the runs of *evidence*, and *others*."""
    runs = dict.fromkeys(one.run for one in evidence if one.run)
    return (*(Link(LinkType.SAID_IN, run) for run in runs), *others)


def with_evidence(note: Note, new: Note) -> Note:
    """Return *note* with the evidence of *new*, in the place of what the same sessions said.

    A session that went on has another run. What nobody reviewed is rated again, unless it has taken
    the place of another.
    """
    facts, more = note.lesson, new.lesson
    assert facts is not None
    assert more is not None
    known = {_known_by(one): one for one in facts.evidence}
    known |= {_known_by(one): one for one in more.evidence}
    evidence = tuple(sorted(known.values(), key=lambda one: (one.at, one.session, one.step)))
    is_active = facts.is_active or more.is_active
    is_rated = facts.before is None and not note.targets(LinkType.SUPERSEDES)
    if is_rated and len(known) == len(more.evidence):
        is_active = more.is_active
    if evidence == facts.evidence and is_active == facts.is_active:
        return note
    others = [link for link in note.links if link.type != LinkType.SAID_IN]
    return replace(
        note,
        lesson=replace(facts, evidence=evidence, is_active=is_active),
        created_at=evidence[0].at,
        locator=f"{evidence[0].session}#{evidence[0].step}",
        links=links_of(evidence, others),
    )


def _known_by(evidence: Quotation) -> tuple[str, int, str]:
    return evidence.session, evidence.step, evidence.quote


def _under(note: Note, successor: str) -> Note:
    return replace(note, superseded_by=successor)


def _waits_for_judge(note: Note) -> bool:
    is_open = note.is_live and not note.security.is_secret and not note.is_judged
    return is_open and note.kind in ORDERED


def _as_judged(note: Note) -> Note:
    return replace(note, is_judged=True)


def _may_be_judged(note: Note, other: Note) -> bool:
    """Return whether a judge may compare *note* with *other*: earlier, same kind, not secret."""
    is_earlier = (other.created_at, other.id) < (note.created_at, note.id)
    is_elsewhere = not note.session or note.session != other.session
    return is_earlier and is_elsewhere and other.kind is note.kind and not other.security.is_secret


def _most_similar(new: Note, related: Sequence[Note]) -> list[Note]:
    """Return the *related* notes that share many words with *new*, the most similar first."""
    words = stem_counts(new.content).keys()
    similar = {note.id: dice(words, stem_counts(note.content).keys()) for note in related}
    chosen = (note for note in related if similar[note.id] >= _JUDGED_ABOVE)
    return sorted(chosen, key=lambda note: -similar[note.id])


def confirmed_by(note: Note, source: str) -> Note:
    """Return *note*, confirmed by *source* unless it did so before."""
    if source in (note.source, *note.confirmed_by):
        return note
    sources = (*note.confirmed_by, source)
    return replace(note, confirmed=note.confirmed + 1, confirmed_by=sources)


_TOKEN = regex(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+")
# With one of these a longer statement may say something else.
_LIMITS = frozenset("not no never cannot t without unless except only but if 不 没 除 非".split())


# How much a short-term note fades on its first day; below so many recalls it may be archived.
_DECAY_RATE, _MIN_RECALLS = 0.1, 3
# Notes whose words agree so far, and that are no further apart, may be merged; of a large
# repository the newest are compared.
# By how much its words raise the value of the note that says most.
_INFORMATION = 10
_MERGED_ABOVE, _MERGED_WITHIN, _RELATED_NOTES = 0.75, timedelta(days=45), 400


def maintain_notes(
    store: NoteStore,
    now: datetime,
    policy: MaintenancePolicy,
    check: Callable[[], None] = lambda: None,
) -> MaintenanceReport:
    """Maintain the notes of *store*; *check*, called before each write, may end it by raising.

    Pinned notes, and notes that others link to, are not archived. A second call at the same time
    changes nothing.
    """
    everything = [note for note in store.all() if note.is_live]
    notes = [note for note in everything if note.kind is NoteKind.NOTE]
    moved = [
        note
        for note in notes
        if belongs_long_term(_strength(note, now), is_long_term=note.is_long_term)
        is not note.is_long_term
    ]
    check()
    store.change(
        [note.id for note in moved], lambda note: replace(note, is_long_term=not note.is_long_term)
    )
    resolved = _resolved(notes, now)
    check()
    store.change([*resolved], lambda note: replace(note, superseded_by=resolved[note.id]))
    changed = {note.id for note in moved}
    now_are = [
        replace(note, is_long_term=note.is_long_term is not (note.id in changed)) for note in notes
    ]
    promoted = {note.id for note in moved if not note.is_long_term}
    unresolved = [note for note in now_are if note.id not in resolved]
    merged = _merged(store, unresolved, promoted, check)
    rest = [note for note in unresolved if note.id not in merged]
    faded, evicted = _unneeded(rest, _referenced(everything), now, policy)
    check()
    store.change([*faded, *evicted], lambda note: replace(note, archived_at=now))
    gone = {*resolved, *merged, *faded, *evicted}
    return MaintenanceReport(
        promoted=sum(not note.is_long_term for note in moved),
        demoted=sum(note.is_long_term for note in moved),
        archived=len(faded),
        evicted=len(evicted),
        merged=len(merged),
        conflicts_resolved=len(resolved),
        conflicts_open=len(_conflicts([note for note in notes if note.id not in gone])),
    )


def _strength(note: Note, now: datetime) -> float:
    return strength(
        importance=note.importance,
        credibility=note.credibility,
        recalls=note.recalls,
        decay_rate=_DECAY_RATE,
        age_days=_idle(note, now) / timedelta(days=1),
        is_long_term=note.is_long_term,
    )


def _idle(note: Note, now: datetime) -> timedelta:
    return now - (note.recalled_at or note.created_at)


def _is_faded(note: Note, now: datetime, policy: MaintenancePolicy) -> bool:
    idle = _idle(note, now)
    is_expired = note.valid_until is not None and note.valid_until + policy.retention < now
    is_weak = is_forgotten(_strength(note, now), idle)
    unused = idle > policy.retention and note.recalls < _MIN_RECALLS
    return is_expired or (is_weak and unused)


def _unneeded(
    notes: Sequence[Note], referenced: set[str], now: datetime, policy: MaintenancePolicy
) -> tuple[list[str], list[str]]:
    """Return the ids of faded notes, and of those over the limit, least valuable first.

    Of each source as many stay as of any other that has as many. Valuable is what is important,
    credible and recalled; among notes of one importance the words decide. No note of the long-term
    layer goes before one of the short-term layer that its source has.
    """
    free = {note.id for note in notes if not note.pinned and note.id not in referenced}
    faded = [note.id for note in notes if note.id in free and _is_faded(note, now, policy)]
    excess = len(notes) - len(faded) - policy.max_notes
    if excess <= 0:
        return faded, []
    says = rarity({note.id: stem_counts(searched_text(note)) for note in notes})
    says_more = shares_below(says)
    evictable = [note for note in notes if note.id in free - {*faded}]
    evictable.sort(
        key=lambda note: (
            note.is_long_term,
            worth(note.importance, note.credibility, note.recalls)
            * (1 + _INFORMATION * says_more[note.id]),
            note.created_at,
            note.id,
        )
    )
    better = Counter(note.contributor for note in evictable)
    place = dict[str, int]()  # among those of its source, from the best
    for note in evictable:
        better[note.contributor] -= 1
        place[note.id] = better[note.contributor]
    evictable.sort(key=lambda note: -place[note.id])
    return faded, [note.id for note in evictable[:excess]]


def _referenced(notes: Iterable[Note]) -> set[str]:
    """The ids to which *notes* link by more than their order."""
    return {link.target for note in notes for link in note.links if link.type != LinkType.FOLLOWS}


def _conflicts(notes: Sequence[Note]) -> list[tuple[Note, Note]]:
    """Pairs of *notes* that contradict each other."""
    known = {note.id: note for note in notes}
    pairs = {
        tuple(sorted((note.id, other)))
        for note in notes
        for other in note.contradicts
        if other in known
    }
    return [(known[first], known[second]) for first, second in sorted(pairs)]


def _resolved(notes: Sequence[Note], now: datetime) -> dict[str, str]:
    """Id of a note -> that of a note which contradicts it and is clearly more credible by now."""
    resolved: dict[str, str] = {}
    for first, second in _conflicts(notes):
        low, high = sorted((first, second), key=lambda note: credibility_of(note, now))
        margin = credibility_of(high, now) - credibility_of(low, now)
        if margin >= CREDIBILITY_MARGIN and not low.pinned:
            resolved[low.id] = high.id
    return {low: high for low, high in resolved.items() if high not in resolved}


def _merged(
    store: NoteStore, notes: Sequence[Note], kept: Collection[str], check: Callable[[], None]
) -> list[str]:
    """Merge notes of one source into those that say all that they say; return ids of those gone.

    None of the ids *kept* goes.
    """
    of_source: defaultdict[tuple[str, str], list[Note]] = defaultdict(list)
    for note in sorted(notes, key=lambda note: (note.created_at, note.id), reverse=True):
        of_source[note.repo, note.contributor].append(note)
    merged: list[str] = []
    for some in of_source.values():
        for group in _groups(some[:_RELATED_NOTES], kept):
            check()
            merged += _merge(store, group)
    return merged


def _groups(notes: Sequence[Note], kept: Collection[str]) -> list[list[Note]]:
    """Return notes that are merged into the first of each list; each note is in one at most."""
    tokens = {note.id: tuple(_TOKEN.findall(note.content.casefold())) for note in notes}
    taken, groups = set[str](), defaultdict[str, list[Note]](list)
    for longer, shorter in combinations(sorted(notes, key=lambda note: -len(tokens[note.id])), 2):
        is_kept = shorter.pinned or shorter.id in groups or shorter.id in kept
        is_free = not (is_kept or {longer.id, shorter.id} & taken)
        is_near = abs(longer.created_at - shorter.created_at) <= _MERGED_WITHIN
        if is_free and is_near and _contains(tokens[longer.id], tokens[shorter.id]):
            groups[longer.id] = [*(groups[longer.id] or [longer]), shorter]
            taken.add(shorter.id)
    return [*groups.values()]


def _contains(longer: Sequence[str], shorter: Sequence[str]) -> bool:
    """Return True if *longer* has all words of *shorter* in order, few others, no restriction.

    So that nothing is lost but words that both have.
    """
    is_similar = dice({*longer}, {*shorter}) >= _MERGED_ABOVE
    if not is_similar or {*longer} & _LIMITS != {*shorter} & _LIMITS:
        return False
    rest = iter(longer)
    return all(word in rest for word in shorter)


def _merge(store: NoteStore, group: Sequence[Note]) -> list[str]:
    first, *others = group
    gone = [note.id for note in others]

    def changed(note: Note) -> Note:
        if note.id != first.id:
            return replace(note, superseded_by=first.id)
        links = tuple(Link(LinkType.SUPERSEDES, id_) for id_ in gone)
        sources = (source for note in others for source in (note.source, *note.confirmed_by))
        return replace(
            reduce(confirmed_by, sources, note),
            tags=tuple(dict.fromkeys(tag for merged in (note, *others) for tag in merged.tags)),
            credibility=max(one.credibility for one in group),
            importance=max(one.importance for one in group),
            recalls=max(one.recalls for one in group),
            recall_score=max(one.recall_score for one in group),
            recalled_at=max((one.recalled_at for one in group if one.recalled_at), default=None),
            is_long_term=any(one.is_long_term for one in group),
            pinned=any(one.pinned for one in group),
            links=(*note.links, *links),
        )

    store.change([first.id, *gone], changed)
    return gone

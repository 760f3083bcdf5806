"""Scores how well notes answer a question: by words and meaning, links, neighbouring notes."""

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from functools import lru_cache
from itertools import islice
from math import log1p
from types import MappingProxyType
from typing import NamedTuple
from unicodedata import normalize

from msgspec import Struct

from contextgraph.knowledge.asked import (
    ALWAYS,
    RECENT,
    WHY,
    Period,
    anything,
    in_english,
    without_asking,
)
from contextgraph.knowledge.extraction import files_in
from contextgraph.knowledge.fitted import fitted
from contextgraph.knowledge.forgetting import age_weight, credibility
from contextgraph.knowledge.ranking import Rated, fused, ratings
from contextgraph.model import (
    Explanation,
    Link,
    LinkType,
    Note,
    NoteKind,
    NoteScope,
    Origin,
    Recollection,
    Relation,
    Snapshot,
    Strategy,
    Vector,
    WordCounts,
    cosines,
)
from contextgraph.model.codec import encoded
from contextgraph.model.values import replace
from contextgraph.store.memory_store import NoteStore
from contextgraph.text import (
    count_tokens,
    cut,
    dice,
    fence,
    gives_instructions,
    masked_name,
    rarity,
    regex,
    stems,
)
from contextgraph.trace.applicability import names_what_is_no_advice

MOST_WORDS, _TITLE_WORDS = 32, 40
# Proposed by words, and by meaning; more changed nothing on LoCoMo. Those around the best count.
_BY_WORDS, _BY_MEANING, _WITH_COSINE, _EXTENDED = 60, 60, 1_000, 30
_OF_A_TIME = 1_000
_HOST = regex(
    r"(?:(?<![\w./:@~-])|(?<=//))(?P<host>(?P<name>[\w-]+)\.(?:[\w-]+\.)*"
    r"(?:[^\W\d_A-Z]{2,}|[A-Z]{2,}))(?![\w-]|\.\w|\()(?P<path>/\w)?"
)
# Other dots that stand for one in a host.
_DOT = regex(r"\[\.\]|(?<=[A-Za-z0-9])。(?=[A-Za-z0-9])")
# Notes next to an answer are often part of it: a quarter of the scores before and after it counts,
# and a tenth of those beside them.
_NEXT, _SECOND = 0.25, 0.1
# An answer was often said on a day with other answers, and by the person whom the question names.
_DAY, _OF_ANOTHER = 0.6, 0.1
_HIGHEST = 1 + 2 * _NEXT + 2 * _SECOND + _DAY
ORDERED = (NoteKind.NOTE, NoteKind.LESSON)
# Age and credibility decide between notes that say as much.
_RELEVANCE, _RECENCY, _CREDIBILITY = 0.95, 0.02, 0.03
_HALF_LIFE = timedelta(days=90)
_WORDS, _NAMED_SPEAKER = regex(r"\w+"), regex(r"(\w[\w.-]*): ")
# A statement answers why, and what names a reason; a file that is named is meant.
_BECAUSE, _NAMED = 0.5, 0.5
# Of notes about the same: how many are compared, how similar their meanings are at least, and how
# long after each other they were written.
_COMPARED, _ABOUT_THE_SAME, _APART = 10, 0.35, timedelta(hours=1)
# Of a statement that shares words with a question only by the request that its session began with.
_BY_SESSION = 0.5
# What is linked to the best entities, and the causes of the best notes, stand for them.
_BY_NAME, _WALKED, _DEPTH = 20, 3, 2
# Entities that are linked to one, beside notes and pages; more where only links are followed.
_LINKED, _MOST_LINKED = 3, 200
NO_WORDS = WordCounts(0, MappingProxyType({}))
# Texts about other things have such a cosine.
_UNRELATED = 0.3
# A memory of so many passages lacks half as many words as it seems to.
_FEW = 100
# The score of a note, as a share of the highest, that answers best and is near no other answer.
ALONE = (1 + _DAY) / _HIGHEST
_REASON = regex(
    r"\b(?:because|since|so that|due to|reasons?|that['’]s why|otherwise|in order to)\b"
    r"|因为|由于|所以|为了|否则|以免|原因",
    re.IGNORECASE,
)


class Question(Struct, frozen=True):
    """The stems of a question, its *vector* where texts can be embedded, and where it looks.

    *names* are its words as they stand, in lower case, *files* those that name one. *is_recent*: it
    asks for what is new, *is_why*: for a reason, or for what was decided; *period*: for what was
    said then.
    """

    words: tuple[str, ...]
    vector: Vector | None
    scope: NoteScope
    now: datetime
    names: frozenset[str] = frozenset()
    files: tuple[str, ...] = ()
    is_recent: bool = False
    is_why: bool = False
    period: Period = ALWAYS

    @classmethod
    def of(
        cls,
        text: str,
        vector: Vector | None,
        scope: NoteScope,
        now: datetime,
        period: Period = ALWAYS,
    ) -> "Question":
        """Return the question in *text*; of a long one its first 32 different words."""
        text = in_english(text)
        is_recent = period != ALWAYS or bool(RECENT.search(text))
        return cls(
            words := tuple(dict.fromkeys(stems(without_asking(text))))[:MOST_WORDS],
            vector,
            scope,
            now,
            frozenset(_WORDS.findall(text.casefold())),
            files_in(text),
            is_recent and anything().issuperset(words),
            bool(WHY.search(text)),
            period,
        )

    @property
    def proposed(self) -> int:
        """The number of notes that are proposed: some of them are of another time."""
        return _BY_WORDS if self.period == ALWAYS else _OF_A_TIME


def recollections(
    store: NoteStore,
    question: Question,
    others: Sequence[Note] = (),
    strategy: Strategy = Strategy.NOTES,
    counts: WordCounts = NO_WORDS,
) -> list[Recollection]:
    """Return the notes of *store* and *others* that are proposed for *question*, the best first.

    One mechanism for all that is recalled: *others* are what is not stored as a note, in the same
    form; *counts* says in how many passages its words occur. The score of an entity falls by what
    of its name the question leaves out; with links, what is linked to the best entities is
    proposed, too, and the causes of the best notes where the question is why.
    """
    if question.is_recent and strategy is not Strategy.NOTES:
        return _newest(store, question, others)
    having = store.word_counts(question.words)
    by_words = store.for_text(question.words, question.scope, question.proposed, having)
    notes = {note.id: note for note in by_words}
    if NoteKind.ENTITY in question.scope.kinds:
        named = replace(question.scope, kinds=(NoteKind.ENTITY,))
        notes = {id_: note for id_, note in notes.items() if note.kind is not NoteKind.ENTITY}
        by_name = store.for_text(question.words, named, _BY_NAME, having)
        notes |= {note.id: note for note in by_name}
    notes |= {note.id: note for note in others}
    cosines = _cosines(store, question)
    notes |= store.get([id_ for id_ in [*cosines][:_BY_MEANING] if id_ not in notes])
    texts = {id_: stems_in(searched_text(note)) for id_, note in notes.items()}
    weights = question_weights(question.words, counts, texts.values())
    rated = ratings(weights, texts, cosines)
    best = islice(fused({id_: [one] for id_, one in rated.items()}), _EXTENDED)
    around = _around(store, {id_: notes[id_] for id_ in best if notes[id_].kind is NoteKind.NOTE})
    new = (note for id_, note in around.items() if id_ not in notes)
    further = {note.id: stems_in(searched_text(note)) for note in new}
    rated |= ratings(weights, further, cosines)
    notes |= around
    texts |= further
    own = fused({id_: [one] for id_, one in rated.items()})
    scores = {id_: one._asdict() for id_, one in rated.items()}
    if strategy is not Strategy.NOTES:
        _count_intent(question, strategy, store, notes, scores, own)
    highest = max(_HIGHEST, *own.values(), 0)
    context = _Context(own, _beside(notes), _best_of_days(notes, own), highest)
    asked = question.names & set(map(_speaker, notes.values()))
    ranked = [
        _recollection(note, scores[id_], context, asked, question)
        for id_, value in own.items()
        if value > 0 and _is_recalled(note := notes[id_], question)
    ]
    ranked.sort(key=lambda recollection: (-recollection.score, recollection.note.id))
    unseen = {word for word in weights if not counts.by_word.get(word)}
    passages = counts.total + len(texts)
    likelihood = Likelihood(weights, unseen.difference(*texts.values()), passages)
    probabilities = _probabilities(ranked, likelihood, rated, texts, asked)
    most_probable = max(probabilities, default=0.0)
    return [
        # What is linked to an answer is one the less probably, the further it is away.
        replace(one, probability=max(probability, most_probable * min(1, one.why.get("graph", 0))))
        for one, probability in zip(ranked, probabilities, strict=True)
        if strategy is not Strategy.GRAPH or one.note.kind is NoteKind.ENTITY or "graph" in one.why
    ]


def _newest(store: NoteStore, question: Question, others: Sequence[Note]) -> list[Recollection]:
    """The newest of all kinds but entities; each answers what asks for it."""
    kinds = tuple(kind for kind in question.scope.kinds if kind is not NoteKind.ENTITY)
    newest = store.newest(replace(question.scope, kinds=kinds), question.proposed)
    known = [note for note in (*newest, *others) if _is_recalled(note, question)]
    ages = [age_weight(question.now - note.created_at, _HALF_LIFE) for note in known]
    ranked = [
        Recollection(note, age, {"recency": age}) for note, age in zip(known, ages, strict=True)
    ]
    return sorted(ranked, key=lambda one: (-one.note.created_at.timestamp(), one.note.id))


def _count_intent(
    question: Question,
    strategy: Strategy,
    store: NoteStore,
    notes: dict[str, Note],
    scores: dict[str, dict[str, float]],
    own: dict[str, float],
) -> None:
    """Add to *own* what the *question* asks for beside its words: a reason, a file, what is linked.

    What is linked is added to *notes* and *scores* as well.
    """
    words = {*question.words}
    for id_, note in notes.items():
        if id_ not in own:
            continue
        if note.kind is NoteKind.ENTITY:
            title = {*stems(note.title)}
            own[id_] *= len(title & words) / max(1, len(title))
        elif (
            note.kind is NoteKind.LESSON
            and scores[id_]["words"]
            and words.isdisjoint(stem_counts(f"{note.summary} {note.content}"))
        ):
            own[id_] *= _BY_SESSION
        elif question.is_why and (note.kind is NoteKind.LESSON or _REASON.search(note.content)):
            scores[id_]["reason"] = _BECAUSE * own[id_]
        if own[id_] > 0 and any(file in searched_text(note) for file in question.files):
            scores[id_]["file"] = _NAMED
        own[id_] += scores[id_].get("reason", 0.0) + scores[id_].get("file", 0.0)
    if strategy is Strategy.KNOWLEDGE:
        return
    for note, nearness in _linked(store, question, strategy, notes, own):
        notes.setdefault(note.id, note)
        why = scores.setdefault(note.id, Rated(0.0)._asdict())
        added = max(0.0, nearness - why.get("graph", 0.0))
        why["graph"] = why.get("graph", 0.0) + added
        own[note.id] = own.get(note.id, 0.0) + added


def _linked(
    store: NoteStore,
    question: Question,
    strategy: Strategy,
    notes: Mapping[str, Note],
    own: Mapping[str, float],
) -> list[tuple[Note, float]]:
    """Return what is linked to the best entities, and causes of the best notes, with its score."""
    best = [id_ for id_ in sorted(own, key=lambda id_: (-own[id_], id_)) if own[id_] > 0]
    entities = [id_ for id_ in best if notes[id_].kind is NoteKind.ENTITY][:_WALKED]
    caused = [id_ for id_ in best if notes[id_].kind is not NoteKind.ENTITY][:_WALKED]
    reached = walk(store, entities, _DEPTH, back=True) if entities else {}
    if question.is_why:
        reached |= walk(store, caused, _DEPTH, (LinkType.CAUSED_BY,))
    linked = []
    for id_, near in reached.items():
        others = [one for one in near if one.note.kind is NoteKind.ENTITY]
        others = others[: _MOST_LINKED if strategy is Strategy.GRAPH else _LINKED]
        said = [one for one in near if one.note.kind is not NoteKind.ENTITY]
        linked += [(one.note, own[id_] / (1 + one.distance)) for one in (*said, *others)]
    return linked


def waits(note: Note) -> bool:
    """Return whether *note* is a proposed lesson: unsure, neither accepted nor repeated.

    Or what it names is gone from its repository, or it needs a person. A question that people ask
    again decides nothing.
    """
    facts = note.lesson
    if facts is None:
        return False
    asks = facts.origin is Origin.SAID and note.content.endswith("?")
    is_agreed = facts.is_active or (facts.sessions > 1 and not asks)
    return bool(facts.gone) or not is_agreed or needs_a_person(note)


def needs_a_person(note: Note) -> bool:
    """Return whether only a person can make the lesson *note* active, and none did.

    A source that makes a text look like the words of a person, or repeats it, may not send an agent
    elsewhere: it names an address, a host, or another part of a command that advice never has.
    """
    facts = note.lesson
    if facts is None or (facts.is_active and facts.before is not None):
        return False
    # What a model wrote stands alone: what was said before it is not shown.
    is_alone = facts.origin is Origin.DISTILLED
    shown = note.content if is_alone else f"{note.summary}\n{note.content}"
    return names_what_is_no_advice(shown) or _names_host(shown)


@lru_cache(8_192)
def _names_host(text: str) -> bool:
    """Return True for a dotted name other than a file or a standard library module."""
    text = _DOT.sub(".", normalize("NFKC", text))
    return any(
        match["name"] not in sys.stdlib_module_names
        and (match["path"] or not files_in(match["host"]))
        for match in _HOST.finditer(text)
    )


def stands(note: Note) -> bool:
    """Return whether agents may be shown *note* before any further review."""
    return not waits(note)


def superseded_in(
    store: NoteStore,
    ids: Collection[str],
    as_of: datetime | None = None,
    *,
    may_be_shown: Callable[[Note], bool] = stands,
) -> dict[str, str]:
    """Return by id the successors of the notes *ids* that were superseded by *as_of*.

    It is read from the links of what superseded it, so that it ends when that is deleted. A lesson
    that may not be shown supersedes none: agents would be shown neither. Except one that was itself
    superseded, or of which files or names are gone: it was shown in the place of the other.
    """
    wanted = {*ids}
    later = [
        note
        for note in store.linking([*wanted])
        if note.archived_at is None
        and (note.superseded_by or (note.lesson and note.lesson.gone) or may_be_shown(note))
        and (as_of is None or note.created_at <= as_of)
    ]
    return {
        target: note.superseded_by or note.id
        for note in sorted(later, key=lambda note: (note.created_at, note.id))
        for target in note.targets(LinkType.SUPERSEDES)
        if target in wanted
    }


def nearest_notes(
    store: NoteStore, notes: Sequence[Note], vectors: Sequence[Vector | None]
) -> dict[str, Note]:
    """Return for each of *notes*, with *vectors*, the nearest note of its repository, by id.

    Not what was said in the same session or within the hour: who said it knew the other. Of
    *notes* themselves, too, which need not be stored.
    """
    nearest: dict[str, Note] = {}
    given = {note.id: note for note in notes}
    embedded = {
        id_: vector for id_, vector in zip(given, vectors, strict=True) if vector is not None
    }
    found: dict[str, dict[str, float]] = {}
    for repo in {given[id_].repo: None for id_ in embedded}:
        ours = {id_: vector for id_, vector in embedded.items() if given[id_].repo == repo}
        stored = store.nearest([*ours.values()], NoteScope((repo,), ORDERED), _COMPARED)
        for (id_, vector), near in zip(ours.items(), stored, strict=True):
            own = dict(zip(ours, cosines(vector, [*ours.values()]), strict=True))
            found[id_] = {**own, **near}
    others = {id_: None for near in found.values() for id_ in near if id_ not in given}
    known = {**given, **store.get([*others])}
    for id_, near in found.items():
        similar = (other for other in near if other in known and near[other] >= _ABOUT_THE_SAME)
        apart = [other for other in similar if _is_apart(known[other], given[id_])]
        if apart:
            nearest[id_] = known[max(apart, key=near.__getitem__)]
    return nearest


def most_similar_notes(notes: Sequence[Note], among: Sequence[Note]) -> dict[str, Note]:
    """As `nearest_notes`, by the rare words that *notes* share with those they are *among*."""
    counted = {note.id: stem_counts(note.content).keys() for note in (*notes, *among)}
    met = Counter(word for id_ in {note.id for note in among} for word in counted[id_])
    nearest: dict[str, Note] = {}
    for note in notes:
        ours = counted[note.id]
        shared = {one.id: ours & counted[one.id] for one in among}
        similar = {
            id_: sum(rarity(met[word], len(among)) for word in sorted(words))
            + dice(ours, counted[id_])
            for id_, words in shared.items()
            if words
        }
        apart = [one for one in among if one.id in similar and _is_apart(one, note)]
        apart = [one for one in apart if one.repo == note.repo]
        if apart:
            nearest[note.id] = max(apart, key=lambda one: (similar[one.id], one.id))
    return nearest


def _is_apart(note: Note, other: Note) -> bool:
    is_elsewhere = not note.session or note.session != other.session
    return is_elsewhere and abs(note.created_at - other.created_at) >= _APART


@lru_cache(8_192)
def stems_in(text: str) -> tuple[str, ...]:
    """Return the stems in *text*, in order."""
    return tuple(stems(text))


def stem_counts(text: str) -> Counter[str]:
    """Return the stems in *text* with their counts."""
    return Counter(stems_in(text))


def searched_text(note: Note) -> str:
    """Return the text by which *note* is compared with a question.

    A lesson has the beginning of the request that its session began with, and counts twice
    itself: else each lesson of a session with a long request would be about all of it.
    """
    if note.kind is NoteKind.LESSON:
        title = " ".join(note.title.split()[:_TITLE_WORDS])
        return " ".join((title, note.summary, note.content, note.content, *note.tags))
    return " ".join((note.title, note.summary, note.content, *note.tags))


def _cosines(store: NoteStore, question: Question) -> Mapping[str, float]:
    if question.vector is None:
        return {}
    (nearest,) = store.nearest([question.vector], question.scope, _WITH_COSINE)
    return {id_: cosine for id_, cosine in nearest.items() if cosine > 0}


def question_weights(
    words: Sequence[str], counts: WordCounts, texts: Collection[Collection[str]] = ()
) -> dict[str, float]:
    """Return how rare each of *words* is among passages, by *counts*, and *texts* (stems)."""
    met = Counter(word for text in texts for word in {*text}.intersection(words))
    total = counts.total + len(texts)
    return {word: rarity(counts.by_word.get(word, 0) + met[word], total) for word in words}


def _around(store: NoteStore, notes: Mapping[str, Note]) -> dict[str, Note]:
    """The notes up to two before and two after *notes* in their repositories."""
    around, ring = dict(notes), dict(notes)
    for _ in range(2):
        before = [id_ for note in ring.values() for id_ in _follows(note) if id_ not in around]
        after = {
            note.id: note
            for note in store.linking([*ring])
            if note.id not in around and not ring.keys().isdisjoint(_follows(note))
        }
        ring = {**store.get(before), **after}
        around |= ring
    return around


def _follows(note: Note) -> tuple[str, ...]:
    return note.targets(LinkType.FOLLOWS)


def _beside(notes: Mapping[str, Note]) -> Mapping[str, frozenset[str]]:
    """Id -> the ids of the known notes directly before and after it."""
    beside: defaultdict[str, set[str]] = defaultdict(set)
    for note in notes.values():
        for before in _follows(note):
            if before in notes:
                beside[note.id].add(before)
                beside[before].add(note.id)
    return {id_: frozenset(ids) for id_, ids in beside.items()}


class _Context(Struct, frozen=True):
    """Scores of notes by themselves, notes beside each, the best of each day, the most possible.

    Only notes follow each other: all else stands alone, as if it were the best of its day.
    """

    own: Mapping[str, float]
    beside: Mapping[str, frozenset[str]]
    best_of_days: Mapping[date, float]
    highest: float

    def neighbours_of(self, id_: str) -> float:
        """Return what the notes around this one add to its score."""
        first = self.beside.get(id_, frozenset())
        second = {id_ for neighbour in first for id_ in self.beside[neighbour]} - {id_, *first}
        return _NEXT * _sum(self.own, first) + _SECOND * _sum(self.own, second)


def _best_of_days(notes: Mapping[str, Note], own: Mapping[str, float]) -> dict[date, float]:
    best: defaultdict[date, float] = defaultdict(float)
    for id_, value in own.items():
        if notes[id_].kind is NoteKind.NOTE:
            day = notes[id_].created_at.date()
            best[day] = max(best[day], value)
    return best


def _recollection(
    note: Note,
    scores: Mapping[str, float],
    context: _Context,
    asked: Collection[str],
    question: Question,
) -> Recollection:
    own, is_followed = context.own[note.id], note.kind is NoteKind.NOTE
    day = context.best_of_days[note.created_at.date()] if is_followed else own
    why = {
        **scores,
        "neighbours": context.neighbours_of(note.id),
        "day": _DAY * day,
        "recency": age_weight(question.now - note.created_at, _HALF_LIFE),
        "credibility": credibility_of(note, question.now),
    }
    found = own + why["neighbours"] + why["day"]
    relevance = min(1.0, found / context.highest)
    if _is_of_another(note, asked):
        relevance *= 1 - _OF_ANOTHER
    score = _RELEVANCE * relevance + _RECENCY * why["recency"] + _CREDIBILITY * why["credibility"]
    return Recollection(note, score, why, 0.0)


def credibility_of(note: Note, now: datetime) -> float:
    """Return the credibility of *note*, 0 to 1, by its source, its age and other notes."""
    days = (now - note.created_at) / timedelta(days=1)
    return credibility(note.credibility, note.confirmed, len(note.contradicts), days)


def _is_recalled(note: Note, question: Question) -> bool:
    is_valid = note.is_live and note.is_valid(question.now)
    # An entity is of no time.
    is_then = question.period == ALWAYS or note.kind is not NoteKind.ENTITY
    is_then = is_then and question.period.has(note.created_at)
    return is_valid and is_then and question.scope.has(note)


def _sum(own: Mapping[str, float], ids: Iterable[str]) -> float:
    return sum(own.get(id_, 0.0) for id_ in sorted(ids))


class Likelihood(NamedTuple):
    """How likely a text answers a question, of whose words it has the *weights*.

    Those *unseen* are in no text of a memory of so many *passages*.
    """

    weights: Mapping[str, float]
    unseen: Collection[str]
    passages: int

    def __call__(self, rating: Rated, words: Iterable[str]) -> float:
        """Return the probability that a text of these *words* or the *rated* whole of it answers.

        Fitted on questions about sessions, and on others that these do not answer. Few passages
        lack many words.
        """
        missed = sum([self.weights[word] for word in sorted(self.unseen)])
        signs = {
            "words": rating.words,
            "meaning": max(0.0, rating.meaning - _UNRELATED),
            "found": log1p(len(self.weights.keys() & words)),
            "unknown": missed
            / (sum(self.weights.values()) or 1.0)
            * self.passages
            / (self.passages + _FEW),
        }
        return round(fitted("sessions").probability(signs), 4)


# Above .3 more shared words say no more: short questions share all of theirs with many notes.
_MOST_WORDS = 0.3


def _probabilities(
    ranked: Sequence[Recollection],
    likelihood: Likelihood,
    rated: Mapping[str, Rated],
    texts: Mapping[str, Collection[str]],
    asked: Collection[str],
) -> list[float]:
    """Return the probability that each of *ranked* answers a question; *texts* has stems by id.

    A note does no more probably than by a second regression: by shared words; by how much more of
    the question it covers than notes of others do, where the question names whom it is about
    (*asked*); and by whether the note is of another.
    Fitted on three LoCoMo conversations, with questions that they do not answer, and with those
    about other conversations; its scale is that of the best note (docs/measurements.md).
    """
    weights = likelihood.weights
    of_other = [_is_of_another(one.note, asked) for one in ranked]
    rest = weights.keys() - set(stems(" ".join(asked)))
    total = sum(weights[word] for word in rest) or 1.0
    covered = [
        sum(weights[word] for word in rest.intersection(texts.get(one.note.id, ()))) / total
        for one in ranked
    ]
    most = [0.0, 0.0]
    for share, is_of_other in zip(covered, of_other, strict=True):
        most[is_of_other] = max(most[is_of_other], share)
    found = []
    for one, share, is_of_other in zip(ranked, covered, of_other, strict=True):
        id_ = one.note.id
        probability = likelihood(rated.get(id_, Rated(0.0)), texts.get(id_, ()))
        if one.note.kind is NoteKind.NOTE:
            signs = {
                "words": min(one.why["words"], _MOST_WORDS),
                "lead": share - most[not is_of_other],
                "of another": is_of_other,
            }
            probability = min(probability, fitted("notes").probability(signs))
        found.append(probability)
    return found


def _is_of_another(note: Note, asked: Collection[str]) -> bool:
    """True for a note of somebody else than those whom a question names."""
    return bool(asked) and _speaker(note) not in ("", *asked)


def _speaker(note: Note) -> str:
    """Return the speaker or subject that *note* begins with, as in "Ann: yes"; else empty."""
    said = _NAMED_SPEAKER.match(note.content)
    return said[1].casefold() if said else ""


RENDER_TOKENS = 400


def render_notes(recollections: Sequence[Recollection], max_tokens: int = RENDER_TOKENS) -> str:
    """Return the prompt text of *recollections*, fenced, within *max_tokens*; empty for none."""
    notes = [recollection.note for recollection in recollections]
    return snapshot_of(notes, max_tokens, later_of(recollections)).text


def later_of(recollections: Iterable[Recollection]) -> dict[str, Note]:
    """Return by id the later note about the same, for *recollections* that have one."""
    return {one.note.id: one.later for one in recollections if one.later}


def snapshot_of(
    notes: Iterable[Note], max_tokens: int, later: Mapping[str, Note] = MappingProxyType({})
) -> Snapshot:
    """Return the first *notes* that fit into *max_tokens*, each whole, and their prompt text.

    The *later* one about the same, by id, stands before a note in its line.
    """
    shown: dict[str, Note] = {}
    lines: list[str] = []
    for note in notes:
        if note.id in shown or gives_instructions(shown_text(note)):
            continue
        since = later.get(note.id)
        if since and (since.id in shown or gives_instructions(shown_text(since))):
            since = None
        line = _line(note, since)
        if count_tokens(fence("\n".join((*lines, line)), "notes")) > max_tokens:
            break
        lines.append(line)
        shown |= {one.id: one for one in (since, note) if one}
    return Snapshot(tuple(shown.values()), fence("\n".join(lines), "notes") if lines else "")


def without_secret(note: Note) -> Note:
    """Return *note* without a confidential text, which only the owner of the memory sees."""
    if not note.security.is_secret:
        return note
    return replace(note, content=f"[{note.security.upper()}]", title="", summary="")


def shareable(recollection: Recollection) -> Recollection:
    """Return *recollection* with its notes as `without_secret` leaves them."""
    later = recollection.later and without_secret(recollection.later)
    return replace(recollection, note=without_secret(recollection.note), later=later)


def shareable_snapshot(snapshot: Snapshot, max_tokens: int) -> Snapshot:
    """Return *snapshot* with its notes, and their text, as `without_secret` leaves them."""
    shared = snapshot_of(map(without_secret, snapshot.notes), max_tokens)
    return replace(shared, keyed=snapshot.keyed)


def _line(note: Note, later: Note | None = None) -> str:
    if later:
        before = f"before, {note.created_at:%Y-%m-%d}: {' '.join(shown_text(note).split())}"
        return f"{_line(later)[:-1]}; {before})"
    mark = "; another note says otherwise" if note.contradicts else ""
    origin = f"{note.source}, {note.created_at:%Y-%m-%d}{mark}"
    return f"- {' '.join(shown_text(note).split())} ({origin})"


_PAGE_CHARS = 600


def shown_text(note: Note) -> str:
    """Return the text of *note*; that of a page or an entity begins with its title."""
    content = marked_content(note)
    if note.kind is NoteKind.PAGE:
        return cut(": ".join(filter(None, (note.title, note.summary, content))), _PAGE_CHARS)
    if note.kind is NoteKind.ENTITY:
        return ": ".join(filter(None, (note.title, note.summary, content)))
    return content


def marked_content(note: Note) -> str:
    """Return the text of *note* for its owner, marked if it is confidential."""
    mark = f"[{note.security.upper()}]"
    is_marked = not note.security.is_secret or note.content.startswith(mark)
    return note.content if is_marked else f"{mark} {note.content}"


_ENTITY, _PAGE = "entity:", "page:"
_RELATED = ("links", "contradicts", "superseded_by", "content")


class Reached(NamedTuple):
    """A note that a walk reached, and the number of links on the way."""

    note: Note
    distance: int


def walk(
    store: NoteStore,
    starts: Sequence[str],
    depth: int,
    types: Collection[str] = (),
    *,
    back: bool = False,
) -> dict[str, list[Reached]]:
    """Return for each of *starts* the notes reached along links of *types*, nearest first.

    Up to *depth* links away, of equal distances by id; without *types* along all links but the
    order of notes. *back* follows links backwards, too. All walks take two calls for each distance.
    """
    known = {**store.get(starts)}
    reached = {id_: {id_: Reached(known[id_], 0)} if id_ in known else {} for id_ in starts}
    for distance in range(1, depth + 1):
        rings = {
            id_: [one.note for one in own.values() if one.distance == distance - 1]
            for id_, own in reached.items()
        }
        named = {note.id for ring in rings.values() for note in ring}
        if not named:
            break
        linking = store.linking([*named]) if back else ()
        known |= {note.id: note for note in linking}
        ids = {
            id_: {link for note in ring for link in _targets(note, types)}
            | {
                note.id
                for note in linking
                if not {one.id for one in ring}.isdisjoint(_targets(note, types))
            }
            for id_, ring in rings.items()
        }
        known |= store.get([*{one for new in ids.values() for one in new} - known.keys()])
        for id_, new in ids.items():
            found = (known[one] for one in sorted(new - reached[id_].keys()) if one in known)
            reached[id_] |= {note.id: Reached(note, distance) for note in found}
    return {id_: [one for one in own.values() if one.distance] for id_, own in reached.items()}


def _targets(note: Note, types: Collection[str]) -> list[str]:
    return [
        link.target
        for link in note.links
        if (link.type in types if types else link.type != LinkType.FOLLOWS)
    ]


def with_link(note: Note, link: Link) -> Note:
    """Return *note* with *link* in place of one of its type to the same target."""
    others = (
        other for other in note.links if (other.type, other.target) != (link.type, link.target)
    )
    return replace(note, links=(*others, link))


def entity_id(name: str, repo: str = "") -> str:
    """Return the id of the note of an entity of *repo*; names are compared without case."""
    place = f"{masked_name(repo).casefold()}:" if repo else ""
    return f"{_ENTITY}{place}{masked_name(name).casefold()}"


def name_of_entity(id_: str) -> str:
    """Return the name, in lower case, of the entity whose note has this id."""
    return id_.removeprefix(_ENTITY)


def page_note(page_id: str) -> str:
    """Return the id of the note of a page."""
    return f"{_PAGE}{masked_name(page_id)}"


def page_of_note(id_: str) -> str:
    """Return the id of the page whose note has this id."""
    return id_.removeprefix(_PAGE)


def explain_note(store: NoteStore, note_id: str) -> Explanation | None:
    """Return a note, its facts and its relations in both directions; None if unknown."""
    note = store.get([note_id]).get(note_id)
    if note is None:
        return None
    linking = store.linking([note_id])
    ids = [target for _, target in _edges(note)]
    known = {**store.get(ids), **{note.id: note for note in linking}}
    relations = [
        _relation(type_, known.get(target), target, outgoing=True) for type_, target in _edges(note)
    ]
    relations += [
        _relation(link.type, note, note.id, outgoing=False)
        for note in linking
        for link in note.links
        if link.target == note_id
    ]
    record = encoded(note)
    assert isinstance(record, dict)
    facts = {name: value for name, value in record.items() if name not in _RELATED}
    ordered = sorted(
        relations, key=lambda relation: (relation.type, relation.id, relation.outgoing)
    )
    return Explanation(note_id, _label(note), _name(note), facts, tuple(ordered))


def name_notes(context: Explanation, store: NoteStore) -> Explanation:
    """Return *context* with the names of the notes that were shown in it."""
    known = store.get([edge.id for edge in context.relations])
    relations = (
        replace(edge, label=_label(known[edge.id]), name=_name(known[edge.id]))
        if edge.id in known
        else edge
        for edge in context.relations
    )
    return replace(context, relations=tuple(relations))


def _edges(note: Note) -> Iterator[tuple[str, str]]:
    """The type and target of all that *note* refers to."""
    superseded = (note.superseded_by,) if note.superseded_by else ()
    yield from (("superseded_by", id_) for id_ in superseded)
    yield from (("contradicts", id_) for id_ in note.contradicts)
    yield from ((link.type, link.target) for link in note.links)


def _relation(type_: str, other: Note | None, id_: str, *, outgoing: bool) -> Relation:
    label, name = (_label(other), _name(other)) if other else ("Note", id_)
    return Relation(type_, outgoing, id_, label, name)


def _label(note: Note) -> str:
    return note.kind.capitalize()


def _name(note: Note) -> str:
    return note.heading or without_secret(note).content

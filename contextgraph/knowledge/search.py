"""Search: sessions by what was said in them, and notes of every kind, in one ranking."""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from itertools import accumulate, chain, combinations
from shlex import quote
from typing import NamedTuple

from contextgraph.knowledge.asked import (
    ALWAYS,
    Period,
    asks_for_anything,
    asks_what_is_known,
    period_in,
    without_asking,
)
from contextgraph.knowledge.extraction import amends, files_in
from contextgraph.knowledge.notes import Notes, places_of, repo_name
from contextgraph.knowledge.ranking import Rated, fused, most_words, ratings
from contextgraph.knowledge.recall import (
    ALONE,
    MOST_WORDS,
    Likelihood,
    question_weights,
    searched_text,
    stems_in,
    superseded_in,
    waits,
)
from contextgraph.model import (
    Found,
    Link,
    LinkType,
    Note,
    NoteKind,
    NoteScope,
    Origin,
    Outcome,
    Passage,
    PassageKind,
    PassageScope,
    Recollection,
    RunFilter,
    Scope,
    Strategy,
    Trajectory,
    Vector,
    is_fitted,
    is_subagent,
    passage_place,
    passages_beside,
    vouches,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import ALL, Store
from contextgraph.text import TASK_CHARS, cut, dice, number_of, overlap, stems, words as words_of
from contextgraph.trace import describe_remedy

# Passages that are proposed by words and by meaning, and remedies.
_BY_WORDS, _BY_MEANING, _REMEDIES = 300, 100, 60
# Weights of words are whole numbers, of so many parts.
_WHOLE = 1_000
# A turn is rated in parts of so many passages: what answers may stand in one of many, or be spread.
_PART = 4
_OF_SESSION, _TEXT, _TITLE, _FILES = 3, 300, 120, 3
# Of a list so many parts are more than one hit of a session.
_OTHERS = 4
# From so many characters on, equal texts are copies.
_COPIED = 120
# Of so many sessions the passages are looked at without those of others.
_FEW_SESSIONS = 16
# A file that is named is meant.
_NAMED = 0.5
# What was written down to be kept answers rather than a session of the same words. Chosen on forty
# notes among 277 sessions.
_KEPT = 1.3
_OF_A_TIME = 1_000
# So many sessions are compared with each other; from here on two say nearly the same. At half of
# the words newer reviews of the same code displaced the session that answers.
_COMPARED, _SAME, _SAME_SUBJECT = 3, 0.6, 0.25
# Words of an agent that are so little likelier than a person's, or than a lesson, retell it.
_RETOLD = 0.9
# What answers much worse than another does not displace it.
_RIVAL = 0.5
_AT_STEP = " --step "
# A task of fewer words is about what was said before it; hits that are looked at.
_FEWEST_WORDS, _ABOUT_TASK = 6, 5


class Listed(NamedTuple):
    """What is searched though it is not stored as a note: its *note*, and how it is listed.

    That so many *tasks* show it counts as if a session said it so often.
    """

    note: Note
    kind: str
    text: str
    command: str
    tasks: int = 1


class Within(NamedTuple):
    """Where is searched: in one repository, agent or file (None and "": in all), in a time."""

    repo: str | None = None
    agent: str = ""
    file: str = ""
    period: Period = ALWAYS

    def passages(self, store: Store) -> PassageScope:
        """Return the scope of passages."""
        repos = None if self.repo is None else (repo_name(self.repo),)
        runs = None
        if self.agent or self.file:
            chosen = store.runs.listed(RunFilter(repo=self.repo), ALL)
            runs = tuple(run.id for run in chosen if self.has(run))
        return PassageScope(repos, runs, *self.period)

    def has(self, run: Trajectory) -> bool:
        """Return whether *run* is of this agent, and changed or opened this file."""
        by_agent = self.agent in ("", run.agent, run.agent.removesuffix("/subagent"))
        file = f"/{self.file}"
        return by_agent and (not self.file or any(f"/{one}".endswith(file) for one in run.files))

    def admits(self, note: Note) -> bool:
        """Return whether *note* may be about this file; notes are of no agent."""
        return not self.agent and self.file in searched_text(note)


def answers(
    store: Store,
    notes: Notes,
    question: str,
    within: Within,
    now: datetime,
    *,
    limit: int = 10,
    strategy: Strategy = Strategy.HYBRID,
    facts: Iterable[Listed] = (),
) -> tuple[Found, ...]:
    """Return what `search` finds *within* the time that *question* names, or else of any time.

    See `AgentMemory.search`. That of *within* bounds both. *facts* are searched only where no time
    is named.
    """
    if limit < 1:
        return ()
    rest, period = period_in(question, now)
    if within.period != ALWAYS:
        period = period.within(within.period)
    where = partial(search, store, notes, rest, limit=limit, strategy=strategy)
    found = where(within._replace(period=period), facts=facts if period == ALWAYS else ())
    if found or asks_for_anything(rest, period):
        return found
    # The question may be about the time; what is not of it hardly answers.
    return tuple(replace(one, probability=0.0) for one in where(within))


def search(
    store: Store,
    notes: Notes,
    question: str,
    within: Within,
    *,
    limit: int = 10,
    strategy: Strategy = Strategy.HYBRID,
    facts: Iterable[Listed] = (),
) -> tuple[Found, ...]:
    """Return what *store* has *within* about *question*, best first.

    *facts* are those of a playbook, which are not stored; one is found by a word that it shares.
    """
    asked = [*dict.fromkeys(stems(without_asking(question)))][:MOST_WORDS]
    counts = store.passages.word_counts(asked)
    hidden = notes.distrusted()
    # What TF-IDF finds, words find as well, without its model.
    space = store.vectors.active_space()
    vector = notes.vector_of(question) if space and not is_fitted(space.name) else None
    is_graph = strategy is Strategy.GRAPH
    named = (one for one in facts if not {*stems_in(one.note.content)}.isdisjoint(asked))
    others = () if is_graph else (*_remedies(store, question, within, hidden), *named)
    listed_as = {one.note.id: one for one in others}
    answering = notes.answers(
        question,
        NoteScope(places_of(within.repo), strategy.kinds),
        strategy,
        [one.note for one in others],
        within.period,
        lambda _: vector,
        counts,
    )
    said_in = _said_in(store, answering)
    recalled = {
        one.note.id: one
        for one in answering
        # The words of a proposed lesson are found where they were said.
        if within.admits(one.note) and not (waits(one.note) and one.note.id in said_in)
    }
    if any(one.why.keys() == {"recency"} for one in recalled.values()) or (
        not recalled and asks_for_anything(question, within.period) and not is_graph
    ):
        return _newest(store, recalled.values(), within, limit)
    weights = question_weights(asked, counts)
    # All words count, by their weights: several common ones may say more than a rare one.
    whole = {word: 1 + round(_WHOLE * weight) for word, weight in weights.items()}
    proposed = store.passages.for_text(whole, within.passages(store), 0 if is_graph else _BY_WORDS)
    files = files_in(question)
    turns, cosines = ({}, {}) if is_graph else _said(store, proposed, vector, within)
    if hidden:
        runs = store.runs.trajectories({said[0].run for said in turns.values()})
        gone = {id_ for id_, run in runs.items() if run.contributor in hidden}
        turns = {id_: said for id_, said in turns.items() if said[0].run not in gone}
    texts = {
        **{id_: searched_text(one.note) for id_, one in recalled.items()},
        **{id_: _text_of(passages) for id_, passages in turns.items()},
    }
    near = {
        **{id_: max(cosines.get(one.id, 0.0) for one in said) for id_, said in turns.items()},
        **{id_: one.why["meaning"] for id_, one in recalled.items()},
    }
    known = {
        id_: _raised(one) if any(name in texts[id_] for name in files) else one
        for id_, one in ratings(
            weights, {id_: stems_in(text) for id_, text in texts.items()}, near
        ).items()
    }
    known |= _lessons_raised(known, said_in) if asks_what_is_known(question) else {}
    hits = [
        _of_turn(one, turns[id_]) if id_ in turns else _of_lesson(one, recalled[id_].note)
        for id_, one in known.items()
        if id_ in turns or id_ in said_in
    ]
    sessions = _sessions(store, hits, fused({id_: [one] for id_, one in known.items()}))
    entries = [one for id_, one in recalled.items() if id_ not in said_in]
    scores = fused(
        {
            id_: [known[id_]] * (listed_as[id_].tasks if id_ in listed_as else 1)
            for id_ in (one.note.id for one in entries)
            if id_ in known
        }
        | {id_: [hit.rated for hit in own.hits] for id_, own in sessions.items()},
        _sizes(store, sessions),
    )
    scores = _with_notes(scores, [one for one in entries if one.note.id not in listed_as])
    likelihood = Likelihood(
        weights,
        {word for word in weights if not counts.by_word.get(word)}.difference(
            *map(stems_in, texts.values())
        ),
        counts.total,
    )
    # What a clone says comes last where its repository is not asked for.
    ours = {
        id_: vouches(one.run.contributor, one.run.repo, within.repo or "")
        for id_, one in sessions.items()
    }
    ordered = sorted(filter(ours.__contains__, scores), key=lambda id_: not ours[id_])[:limit]
    shown = (_shown(sessions[id_], scores[id_], likelihood, cosines) for id_ in ordered)
    groups = [*map(_people_first, _newer_first([*filter(None, shown)]))]
    listed = (_entry(one, scores.get(one.note.id, 0.0), listed_as) for one in entries)
    found = [*groups, *([one] for one in _distinct(listed))]
    found.sort(
        key=lambda group: (
            not vouches(group[0].contributor, group[0].repo, within.repo or ""),
            -group[0].score,
        )
    )
    return _within_limit(found, limit)


def _with_notes(scores: Mapping[str, float], notes: Sequence[Recollection]) -> dict[str, float]:
    """Return *scores*, at most 1, of which the *notes* share theirs as `Notes.recall` ranks them.

    That counts what is near them and linked to them, too. They count for more than sessions.
    """
    best = _KEPT * max((scores.get(one.note.id, 0.0) for one in notes), default=0.0) / ALONE
    scores = {**scores, **{one.note.id: best * one.score for one in notes}}
    most = max((1.0, *scores.values()))
    return {id_: score / most for id_, score in scores.items()}


def _said_in(store: Store, recalled: Iterable[Recollection]) -> frozenset[str]:
    """Return the ids of lessons among what was *recalled* that were said in a stored session."""
    runs = {one.note.id: one.note.targets(LinkType.SAID_IN)[:1] for one in recalled}
    stored = store.runs.trajectories({*chain(*runs.values())})
    return frozenset(id_ for id_, named in runs.items() if not stored.keys().isdisjoint(named))


def runs_among(found: Iterable[Found]) -> list[str]:
    """Return the ids of the runs in what was *found*, in its order."""
    return [*dict.fromkeys(one.run for one in found if one.run)]


def as_notes(store: Store, notes: Notes, found: Sequence[Found]) -> tuple[Recollection, ...]:
    """Return what was *found* as notes, where it is one or was said in a session, in its order.

    Without what was superseded or rejected since. A passage that says a lesson stands for it.
    """
    said = store.passages.get([one.id for one in found if one.run])
    lessons = store.notes.linking([*{one.run for one in said.values()}])
    superseded = superseded_in(store.notes, [note.id for note in lessons])
    known = notes.known([one.id for one in found if one.id not in said])
    recollections = dict[str, Recollection]()
    for one in found:
        if passage := said.get(one.id):
            stated = [note for note in lessons if note.content in passage.text]
            if not any(note.id in superseded or not note.is_live for note in stated):
                known[one.id] = next(filter(_is_shown, stated), _note_of(passage, one))
        if note := known.get(one.id):
            recollection = Recollection(note, one.score, {**one.why}, one.probability)
            recollections.setdefault(note.id, recollection)
    return tuple(recollections.values())


def _is_shown(note: Note) -> bool:
    return note.is_live and not waits(note)


def _note_of(passage: Passage, found: Found) -> Note:
    """Return a *passage* that was *found* as a note."""
    by = ":".join(filter(None, (passage.speaker, found.contributor)))
    return Note(
        passage.id,
        passage.text,
        repo_name(passage.repo),
        by,
        passage.said_at,
        kind=NoteKind.SAID,
        title=found.title,
        links=(Link(LinkType.SAID_IN, passage.run),),
        locator=f"{found.session}#{passage.step}",
    )


def _within_limit(groups: Sequence[Sequence[Found]], limit: int) -> tuple[Found, ...]:
    """Return the first of each group, and some others of the best groups, at most *limit*."""
    others = min(limit // _OTHERS, sum(len(group) - 1 for group in groups[: limit // _OTHERS]))
    others = max(others, limit - len(groups))
    found: list[Found] = []
    for group in groups[: limit - min(others, limit - 1)]:
        taken = group[: 1 + max(0, others)]
        others -= len(taken) - 1
        found += taken
    return tuple(found)


def _raised(one: Rated) -> Rated:
    """Return *one*, which has a file that the question names, for more."""
    return one._replace(words=one.words * (1 + _NAMED), meaning=one.meaning * (1 + _NAMED))


def _lessons_raised(known: Mapping[str, Rated], lessons: Collection[str]) -> dict[str, Rated]:
    """Return *lessons* that answer nearly as well as the best of what is *known*, for more.

    They are what was decided; the words around them are how it came to that.
    """
    scores = fused({id_: [one] for id_, one in known.items()})
    near = (id_ for id_ in lessons if scores.get(id_, 0.0) >= _RETOLD)
    return {id_: _raised(known[id_]) for id_ in near}


class _Most(NamedTuple):
    """The most that a text may answer a question with these *weights*, and *whole* ones, by words.

    *names_files*: the question does.
    """

    weights: Mapping[str, float]
    whole: Mapping[str, int]
    names_files: bool

    def probability(self, weight: int) -> float:
        """Return a probability that no text without vectors exceeds whose words weigh *weight*.

        That is by the most words of this weight, in a memory that has all words of the question.
        """
        words = sorted(self.whole, key=self.whole.__getitem__)
        most = bisect_right([*accumulate(map(self.whole.__getitem__, words))], weight)
        share = min(1.0, weight / _WHOLE / (sum(self.weights.values()) or 1.0))
        rating = Rated(most_words(share))
        return Likelihood(self.weights, (), 0)(
            _raised(rating) if self.names_files else rating, words[:most]
        )


def sessions_about(
    task: str,
    store: Store,
    notes: Callable[[], Notes],
    *,
    repo: str,
    as_of: datetime | None,
    least: float,
) -> tuple[Found, ...]:
    """Return what was said about *task* in sessions of *repo*, not later than *as_of*.

    Empty for a task of few words: it is about what was said before it. Empty where no session with
    turns of people can answer with a probability of *least*; then *notes* are not asked for.
    """
    request = task[:TASK_CHARS]
    if len({*stems(request)}) < _FEWEST_WORDS:
        return ()
    within = Within(repo, period=Period(until=as_of))
    if not may_answer(store, request, within, least):
        return ()
    found = search(store, notes(), request, within, limit=_ABOUT_TASK)
    return tuple(one for one in found if one.run)


def may_answer(store: Store, question: str, within: Within, least: float) -> bool:
    """Return False where no session in which people spoke answers with a probability of *least*.

    By the words of its passages, and of the lessons that were said in it: `search` reads more.
    """
    sessions = frozenset(store.runs.with_turns(within.repo or ""))
    if not sessions:
        return False
    space = store.vectors.active_space()
    if (
        (space and not is_fitted(space.name))  # a meaning has no such bound
        or within.period != ALWAYS  # a part may have other passages than those proposed
        or asks_for_anything(question, within.period)
    ):
        return True
    asked = [*dict.fromkeys(stems(without_asking(question)))][:MOST_WORDS]
    weights = question_weights(asked, store.passages.word_counts(asked))
    whole = {word: 1 + round(_WHOLE * weight) for word, weight in weights.items()}
    most, total = _Most(weights, whole, bool(files_in(question))), sum(whole.values())
    enough = bisect_left(range(total + 1), least, key=most.probability)
    if enough > total:
        return False
    scope = within.passages(store)
    if len(sessions) <= _FEW_SESSIONS:
        scope = replace(scope, runs=(*sorted(sessions),))
    proposed = store.passages.for_text(whole, scope, _BY_WORDS)
    # Passages that are not proposed have no word, or weigh no more than the last one.
    last = min(proposed.values()) if len(proposed) >= _BY_WORDS else 0
    parts: dict[tuple[str, int], int] = {}
    for id_, weight in proposed.items():
        part = _part_of(id_)
        parts[part] = parts.get(part, _PART * last) + weight - last
    likely = {part for part, weight in parts.items() if weight >= enough and part[0] in sessions}
    beside = {
        id_
        for one in proposed
        if _part_of(one) in likely
        for id_ in passages_beside(one, _PART - 1)
    }
    # A word that several of its passages have counts once.
    said = dict[tuple[str, int], set[str]]()
    for id_, passage in store.passages.get([*beside]).items():
        said.setdefault(_part_of(id_), set()).update(stems_in(passage.text))
    lessons = (one for one in store.notes.linking([*sessions]) if one.kind is NoteKind.LESSON)
    return any(
        sum(map(whole.__getitem__, whole.keys() & words)) >= enough
        for words in chain(said.values(), ({*stems_in(searched_text(one))} for one in lessons))
    )


def _part_of(passage: str) -> tuple[str, int]:
    """Return the run of the passage with this id, and the part of it that is rated together."""
    run, number = passage_place(passage)
    return run, number // _PART


def _said(
    store: Store, proposed: Iterable[str], vector: Vector | None, within: Within
) -> tuple[dict[str, list[Passage]], dict[str, float]]:
    """Return the parts of turns of the *proposed* passages, each by its first one, and cosines.

    What a question asks is often spread over neighbouring passages of a turn.
    """
    passages, proposed = store.passages, {*proposed}
    if vector is not None:
        proposed |= passages.nearest(vector, within.passages(store), _BY_MEANING).keys()
    read = passages.get([*{id_ for one in proposed for id_ in passages_beside(one, _PART - 1)}])
    parts: dict[tuple[str, str, int, int], list[Passage]] = {}
    for one in sorted(read.values(), key=lambda one: (one.run, one.number)):
        parts.setdefault((one.run, one.kind, one.step, one.number // _PART), []).append(one)
    found = [part for part in parts.values() if not proposed.isdisjoint(one.id for one in part)]
    ids = [one.id for part in found for one in part]
    cosines = {} if vector is None else {**passages.cosines(vector, ids)}
    return {part[0].id: part for part in found}, cosines


def _text_of(passages: Iterable[Passage]) -> str:
    return "\n\n".join(one.text for one in passages)


class _Hit(NamedTuple):
    """A turn, or a lesson, of *run*: how well it answers, and the *passages* of a turn."""

    id: str
    rated: Rated
    run: str
    step: int
    kind: str
    speaker: str
    time: datetime
    text: str
    passages: Sequence[Passage] = ()

    @property
    def said(self) -> object:
        """The key that its copies share: a short text may be repeated at another time."""
        return self.text if len(self.text) >= _COPIED else (self.text, self.time)

    def answering(self, weights: Mapping[str, float], cosines: Mapping[str, float]) -> "_Hit":
        """Return it with the passage alone that answers best, and how well that does."""
        texts = {one.id: one.text for one in self.passages} or {self.id: self.text}
        near = cosines if self.passages else {self.id: self.rated.meaning}
        rated = ratings(weights, {id_: stems_in(text) for id_, text in texts.items()}, near)
        best = next(iter(fused({id_: [one] for id_, one in rated.items()})), "")
        known = {one.id: one for one in self.passages}
        text = known[best].text if best in known else self.text
        words = overlap(weights, Counter(stems(text)))
        rating = Rated(words, near.get(best, 0.0))
        return self._replace(id=best or self.id, rated=rating, text=text)


class _Session(NamedTuple):
    """The *hits* of a session, best first, with their *runs*: itself, and its sub-agents."""

    run: Trajectory
    runs: Mapping[str, Trajectory]
    hits: Sequence[_Hit]


def _sizes(store: Store, sessions: Mapping[str, _Session]) -> dict[str, int]:
    """Return the number of passages of each of *sessions*."""
    runs = {id_: {one.run.id, *(hit.run for hit in one.hits)} for id_, one in sessions.items()}
    numbers = store.passages.of_runs({*chain(*runs.values())})
    return {id_: sum(numbers.get(run, 0) for run in own) for id_, own in runs.items()}


_KINDS = {
    PassageKind.TASK: "task",
    PassageKind.TURN: "said",
    PassageKind.TITLE: "said",
    PassageKind.REPLY: "reply",
    PassageKind.THOUGHT: "reply",
    PassageKind.COMMIT: "commit",
}


def _of_turn(rating: Rated, passages: Sequence[Passage]) -> _Hit:
    first = passages[0]
    kind = _KINDS[PassageKind.REPLY if first.by_agent else first.kind]
    if first.kind is PassageKind.COMMIT:
        kind = _KINDS[first.kind]
    text = _text_of(passages)
    return _Hit(
        first.id, rating, first.run, first.step, kind, first.speaker, first.said_at, text, passages
    )


def _of_lesson(rating: Rated, note: Note) -> _Hit:
    step = note.locator.rpartition("#")[2]
    run = note.targets(LinkType.SAID_IN)[0]
    number = int(step) if step.isdecimal() else -1
    facts, at = note.lesson, note.created_at
    is_counted = facts is not None and facts.origin is Origin.COUNTED
    speaker = facts.evidence[0].speaker if facts and is_counted else note.speaker
    return _Hit(note.id, rating, run, number, NoteKind.LESSON, speaker, at, note.content)


def _sessions(
    store: Store, hits: Sequence[_Hit], scores: Mapping[str, float]
) -> dict[str, _Session]:
    """Return the sessions of *hits*, by id, each with its hits by their *scores*."""
    runs = store.runs.trajectories({hit.run for hit in hits})
    session_of = _session_of(store, runs.values())
    # A copy says nothing: a text belongs to the session in which it was said first.
    first: dict[object, _Hit] = {}
    for hit in sorted(hits, key=lambda hit: (hit.time, hit.run)):
        first.setdefault(hit.said, hit)
    grouped: dict[str, list[_Hit]] = {}
    for hit in sorted(hits, key=lambda hit: (-scores[hit.id], hit.id)):
        if hit.run in runs and first[hit.said].run == hit.run:
            grouped.setdefault(session_of[hit.run].id, []).append(hit)
    return {id_: _Session(session_of[own[0].run], runs, own) for id_, own in grouped.items()}


def _shown(
    session: _Session, score: float, likelihood: Likelihood, cosines: Mapping[str, float]
) -> list[Found]:
    """Return the best hits of *session*, each as the passage that answers, with its *score*."""
    stated = [hit for hit in session.hits if hit.kind == NoteKind.LESSON]
    group: dict[str, Found] = {}
    for hit in session.hits:
        passage = hit.answering(likelihood.weights, cosines)
        probability = likelihood(hit.rated, stems_in(passage.text))
        same = (one for one in stated if one.run == hit.run and one.text in passage.text)
        lesson = next(same, passage)
        passage = lesson._replace(id=passage.id, rated=passage.rated)
        found = _hit(passage, session.runs[hit.run], session.run, score, probability)
        group.setdefault(passage.text, found)
        if len(group) == _OF_SESSION:
            break
    return [*group.values()]


def _people_first(hits: Sequence[Found]) -> list[Found]:
    """Return *hits* of a session, best first; a person's that answer nearly as well before others.

    An agent retells them.
    """
    least = _RETOLD * hits[0].probability
    return sorted(hits, key=lambda one: one.speaker == "agent" or one.probability < least)


def _hit(
    hit: _Hit, run: Trajectory, session: Trajectory, score: float, probability: float
) -> Found:
    kind = hit.kind if hit.kind != "task" or session.files else "session"
    return Found(
        kind=kind,
        id=hit.id,
        text=f"{hit.speaker} {hit.time:%Y-%m-%d}: {cut(' '.join(hit.text.split()), _TEXT)}",
        repo=repo_name(session.repo),
        time=hit.time,
        score=round(score, 4),
        command=_opening(run, hit.step),
        why={"words": round(hit.rated.words, 4), "meaning": round(hit.rated.meaning, 4)},
        probability=probability,
        session=session.instance_id,
        title=_title(session),
        run=session.id,
        source=session.source,
        speaker=hit.speaker,
        step=hit.step if run.id == session.id else -1,
        contributor=session.contributor,
    )


def _title(run: Trajectory) -> str:
    """Return how a session began, and how it ended."""
    outcome = "" if run.outcome is Outcome.UNKNOWN else f"{run.outcome}, "
    changed = f"changed {', '.join(run.files[:_FILES])}" if run.files else "no task"
    title = cut(" ".join(run.task.split()) or changed, _TITLE)
    return f"{title} ({outcome}{number_of(run.total_steps, 'step')})"


def _newer_first(sessions: Sequence[list[Found]]) -> list[list[Found]]:
    """Return *sessions*, best first; the newer of two that say nearly the same comes first.

    So does one that says that it changes what the other one is about.
    """
    ordered = [*sessions]
    compared = sessions[:_COMPARED]
    said = [" ".join((group[0].title, *(hit.text for hit in group))) for group in compared]
    words = [frozenset(stems(text)) for text in said]
    hits = [frozenset(stems(group[0].text)) for group in compared]
    for place, other in combinations(range(len(compared)), 2):
        older, newer = compared[place], compared[other]  # the better one first
        is_same = dice(hits[place], hits[other]) >= _SAME
        is_change = amends(newer[0].text) and dice(words[place], words[other]) >= _SAME_SUBJECT
        is_rival = newer[0].score >= _RIVAL * older[0].score
        if newer[0].time > older[0].time and is_rival and (is_same or is_change):
            before, after = ordered.index(older), ordered.index(newer)
            if before < after:
                newer[:] = [replace(one, score=older[0].score) for one in ordered.pop(after)]
                ordered.insert(before, newer)
    return ordered


def _newest(
    store: Store, recalled: Iterable[Recollection], within: Within, limit: int
) -> tuple[Found, ...]:
    """Return the newest sessions and entries; each answers what asks for what is new."""
    # Those of a time are among the newest since it began.
    most = limit if within == Within(within.repo) else _OF_A_TIME
    listed = store.runs.listed(RunFilter(repo=within.repo, since=within.period.since), most)
    sessions = _session_of(store, (run for run in listed if within.has(run)))
    found = [
        Found(
            kind="task" if run.files else "session",
            id=run.id,
            text=_title(run),
            repo=repo_name(run.repo),
            time=run.seen_at,
            score=1.0,
            command=_opening(run),
            why={"recency": 1.0},
            probability=1.0,
            session=run.instance_id,
            title=_title(run),
            run=run.id,
            source=run.source,
            contributor=run.contributor,
        )
        for run in {run.id: run for run in sessions.values()}.values()
        if within.period.has(run.seen_at)
    ]
    # What was said in a session stands in it.
    found += [
        replace(_entry(one, one.score, {}), probability=1.0)
        for one in recalled
        if not one.note.targets(LinkType.SAID_IN)
    ]
    asked_of = within.repo or ""
    found.sort(
        key=lambda one: (
            not vouches(one.contributor, one.repo, asked_of),
            -one.time.timestamp(),
            one.id,
        )
    )
    return tuple(_distinct(found))[:limit]


def _distinct(found: Iterable[Found]) -> Iterator[Found]:
    """Yield *found* without what says the same."""
    seen: set[tuple[str, str, str]] = set()
    for one in found:
        same = one.kind, one.text, one.repo
        if same not in seen:
            seen.add(same)
            yield one


def _session_of(store: Store, runs: Iterable[Trajectory]) -> dict[str, Trajectory]:
    """Return the session of each of *runs*, by id; a sub-agent has the session that began it.

    A sub-agent whose session is not stored stands for itself.
    """
    sessions: dict[str, Trajectory] = {}
    for run in runs:
        sessions[run.id] = run
        if is_subagent(run.agent):
            ids = store.runs.ids(repo=run.repo, instance=run.instance_id) if run.instance_id else []
            same = store.runs.trajectories(ids).values()
            # Of several attempts at one task nothing says which began it.
            begun = [one for one in same if not is_subagent(one.agent)]
            sessions[run.id] = begun[0] if len(begun) == 1 else run
    return sessions


def _remedies(store: Store, question: str, within: Within, hidden: frozenset[str]) -> list[Listed]:
    """Return remedies, found by whole words, none of the *hidden* sources."""
    terms = [*dict.fromkeys(words_of(question))][:MOST_WORDS]
    remedies = []
    for recovery in store.recoveries.for_text(terms, Scope(within.repo), _REMEDIES):
        if recovery.contributor in hidden:
            continue
        id_, repo = f"{recovery.fragment_id}#{recovery.error_step}", repo_name(recovery.repo)
        title = f"{recovery.error_type}: {describe_remedy(recovery.actions)}"[:_TEXT]
        source = f"agent:{recovery.contributor}" if recovery.contributor else ""
        note = Note(id_, f"{recovery.message} {title}", repo, source, recovery.seen_at)
        step = max(recovery.error_step, recovery.cleared_step)
        command = f"contextgraph inspect {recovery.trajectory_id}{_AT_STEP}{step}"
        remedies.append(Listed(note, "remedy", title, command))
    return remedies


def _opening(run: Trajectory, step: int = -1) -> str:
    """Return the command that shows a run, or a *step* of it."""
    at = f"{_AT_STEP}{min(step, run.total_steps - 1)}" if step >= 0 else ""
    return f"contextgraph inspect {run.id}{at}"


def _entry(one: Recollection, score: float, listed_as: Mapping[str, Listed]) -> Found:
    """Return a recalled note as it is listed, with its *score* and the command that opens it."""
    note = one.note
    kind, text = note.kind.value, " ".join(note.content.split())[:_TEXT]
    command = f"contextgraph inspect {note.id}"
    if note.id in listed_as:
        _, kind, text, command, _ = listed_as[note.id]
    elif note.security.is_secret:
        text = "[confidential]"
    elif note.kind is NoteKind.KEYED:
        command = f"cat {quote(note.locator)}"
    elif note.kind is NoteKind.ENTITY:
        text = ": ".join(filter(None, (note.title, note.summary, text)))
    elif note.kind is NoteKind.PAGE:
        text = note.title or text
        command = f"contextgraph call pages_get page_id={quote(note.id[5:])}"
    why = {name: round(value, 4) for name, value in one.why.items()}
    return Found(
        kind, note.id, text, note.repo, note.created_at, round(score, 4), command, why,
        one.probability, contributor=note.contributor,
    )  # fmt: skip

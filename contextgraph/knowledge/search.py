"""Search: sessions by what was said in them, and notes of every kind, in one ranking."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from itertools import combinations
from pathlib import Path
from shlex import quote
from typing import NamedTuple

from contextgraph.embedding import is_fitted
from contextgraph.knowledge.extraction import amends, files_in
from contextgraph.knowledge.fitted import fitted
from contextgraph.knowledge.notes import Notes, places_of, repo_name
from contextgraph.knowledge.ranking import Ranked, fused
from contextgraph.knowledge.recall import (
    ALWAYS,
    MOST_WORDS,
    Period,
    asks_for_anything,
    searched_text,
    waits,
    without_asking,
)
from contextgraph.model import (
    Found,
    LinkType,
    Note,
    NoteKind,
    NoteScope,
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
    is_subagent,
)
from contextgraph.model.values import replace
from contextgraph.store.protocols import ALL, PassageStore, Store
from contextgraph.text import cut, dice, number_of, rarity, stems, words as words_of
from contextgraph.trace import describe_remedy

# Passages that are proposed by words and by meaning, and remedies.
_BY_WORDS, _BY_MEANING, _REMEDIES = 300, 100, 60
_OF_SESSION, _TEXT, _TITLE, _FILES = 3, 300, 120, 3
# Of the scores of further hits of a session so much counts for it.
_FURTHER = 0.3
# Of a list so many parts are more than one hit of a session.
_OTHERS = 4
# From so many characters on, equal texts are copies.
_COPIED = 120
# Texts about other things have such a cosine.
_UNRELATED = 0.3
# A file that is named is meant.
_NAMED = 0.5
_OF_A_TIME = 1_000
# So many sessions are compared with each other; from here on two say nearly the same.
_COMPARED, _SAME, _SAME_SUBJECT = 5, 0.5, 0.25
_AT_STEP = " --step "


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


def search(
    store: Store,
    notes: Notes,
    question: str,
    within: Within,
    *,
    limit: int = 10,
    strategy: Strategy = Strategy.HYBRID,
) -> tuple[Found, ...]:
    """Return what *store* has about *question*, best first: see `AgentMemory.search`."""
    asked = stems(without_asking(question))
    space = store.vectors.active_space()
    # What TF-IDF finds, words find as well, without its model.
    has_model = space is not None and not is_fitted(space.name)
    vector = notes.vector_of(question) if has_model else None
    is_graph = strategy is Strategy.GRAPH
    remedies = {} if is_graph else _remedies(store, question, within)
    scope = NoteScope(places_of(within.repo), strategy.kinds)
    candidates = [note for note, _ in remedies.values()]
    recalled = {
        one.note.id: one
        for one in notes.answers(
            question, scope, strategy, candidates, within.period, lambda _: vector
        )
        # The words of a proposed lesson are found where they were said.
        if within.admits(one.note) and not waits(one.note)
    }
    is_new = any(one.why.keys() == {"recency"} for one in recalled.values())
    if is_new or (not recalled and asks_for_anything(question) and not is_graph):
        return _newest(store, recalled.values(), within, limit)
    weights = question_weights(store.passages, asked)
    said, cosines = ({}, {}) if is_graph else _said(store, weights, vector, within)
    texts = {id_: searched_text(one.note) for id_, one in recalled.items()}
    texts |= {id_: passage.text for id_, passage in said.items()}
    if vector is not None:
        cosines |= {id_: one.why.get("meaning", 0.0) for id_, one in recalled.items()}
    ranked = fused(weights, texts, cosines)
    if named := files_in(question):
        said_about = {id_ for id_, text in texts.items() if any(name in text for name in named)}
        ranked = _raised(ranked, said_about)
    hits = [
        _of_passage(one, said[one.id]) if one.id in said else _of_lesson(one, recalled[one.id].note)
        for one in ranked
        if one.id in said or recalled[one.id].note.targets(LinkType.SAID_IN)
    ]
    sessions = _newer_first(_by_all_hits(_sessions(store, hits)))
    scores = {one.id: one.score for one in ranked}
    best = max(scores.values(), default=1.0)
    entries = [
        _entry(one, _score(one, scores.get(id_, 0.0), best), remedies)
        for id_, one in recalled.items()
        if not one.note.targets(LinkType.SAID_IN)
    ]
    found = [*sessions, *([entry] for entry in _distinct(entries))]
    found.sort(key=lambda group: -group[0].score)
    return _within_limit(found, limit)


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


def _raised(ranked: Sequence[Ranked], ids: Collection[str]) -> list[Ranked]:
    """Return *ranked*, best first, where those of *ids* count for more."""
    raised = [
        one._replace(score=one.score * (1 + _NAMED)) if one.id in ids else one for one in ranked
    ]
    return sorted(raised, key=lambda one: (-one.score, one.id))


def question_weights(passages: PassageStore, asked: Sequence[str]) -> dict[str, float]:
    """Return how rare each stem *asked* for is among all passages."""
    words = [*dict.fromkeys(asked)][:MOST_WORDS]
    counts = passages.word_counts(words)
    return {word: rarity(counts.by_word[word], counts.total) for word in words}


def _said(
    store: Store, asked: Mapping[str, float], vector: Vector | None, within: Within
) -> tuple[dict[str, Passage], dict[str, float]]:
    """Return the passages that are proposed, by id, and the cosines of those with a vector.

    All words of the question that was *asked* count, by their weights: several common ones may
    say more than a rare one.
    """
    passages, scope = store.passages, within.passages(store)
    whole = {word: 1 + round(1000 * weight) for word, weight in asked.items()}
    ids = [*passages.for_text(whole, scope, _BY_WORDS)]
    if vector is None:
        return dict(passages.get(ids)), {}
    near = passages.nearest(vector, scope, _BY_MEANING)
    ids += [id_ for id_ in near if id_ not in ids]
    return dict(passages.get(ids)), {**passages.cosines(vector, ids)}


class _Hit(NamedTuple):
    """A passage of the session *run* that answers, said after *step*."""

    rank: Ranked
    run: str
    step: int
    kind: str
    speaker: str
    time: datetime
    text: str

    @property
    def said(self) -> object:
        """The key that its copies share: a short text may be repeated at another time."""
        return self.text if len(self.text) >= _COPIED else (self.text, self.time)


_KINDS = {
    PassageKind.TASK: "task",
    PassageKind.TURN: "said",
    PassageKind.TITLE: "said",
    PassageKind.REPLY: "reply",
    PassageKind.THOUGHT: "reply",
    PassageKind.COMMIT: "commit",
}


def _of_passage(rank: Ranked, passage: Passage) -> _Hit:
    kind = _KINDS[PassageKind.REPLY if passage.by_agent else passage.kind]
    if passage.kind is PassageKind.COMMIT:
        kind = _KINDS[passage.kind]
    return _Hit(
        rank, passage.run, passage.step, kind, passage.speaker, passage.said_at, passage.text
    )


def _of_lesson(rank: Ranked, note: Note) -> _Hit:
    step = note.locator.rpartition("#")[2]
    run = note.targets(LinkType.SAID_IN)[0]
    number = int(step) if step.isdecimal() else -1
    return _Hit(rank, run, number, NoteKind.LESSON, note.speaker, note.created_at, note.content)


def _sessions(store: Store, hits: Sequence[_Hit]) -> list[list[Found]]:
    """Return the sessions of *hits*, which are ordered, each with the best of them."""
    runs = store.runs.trajectories({hit.run for hit in hits})
    session_of = _session_of(store, runs.values())
    # A copy says nothing: a text belongs to the session in which it was said first.
    first: dict[object, _Hit] = {}
    for hit in sorted(hits, key=lambda hit: (hit.time, hit.run)):
        first.setdefault(hit.said, hit)
    stated = [hit for hit in hits if hit.kind == NoteKind.LESSON]
    grouped: dict[str, dict[str, Found]] = {}
    for hit in hits:
        if hit.run not in runs or first[hit.said].run != hit.run:
            continue
        session = session_of[hit.run]
        same = (one for one in stated if one.run == hit.run and one.text in hit.text)
        shown = next(same, hit)._replace(rank=hit.rank)
        group = grouped.setdefault(session.id, {})
        if len(group) < _OF_SESSION:
            group.setdefault(shown.text, _hit(shown, runs[hit.run], session))
    return [[*group.values()] for group in grouped.values()]


def _hit(hit: _Hit, run: Trajectory, session: Trajectory) -> Found:
    kind = hit.kind if hit.kind != "task" or session.files else "session"
    return Found(
        kind=kind,
        id=hit.rank.id,
        text=f"{hit.speaker} {hit.time:%Y-%m-%d}: {cut(' '.join(hit.text.split()), _TEXT)}",
        repo=repo_name(session.repo),
        time=hit.time,
        score=round(hit.rank.score, 4),
        command=_opening(run, hit.step),
        why={"words": round(hit.rank.words, 4), "meaning": round(hit.rank.meaning, 4)},
        probability=_probability(hit.rank),
        session=session.instance_id,
        title=_title(session),
        run=session.id,
        source=session.source,
        speaker=hit.speaker,
    )


def _title(run: Trajectory) -> str:
    """Return how a session began, and how it ended."""
    outcome = "" if run.outcome is Outcome.UNKNOWN else f"{run.outcome}, "
    changed = f"changed {', '.join(run.files[:_FILES])}" if run.files else "no task"
    title = cut(" ".join(run.task.split()) or changed, _TITLE)
    return f"{title} ({outcome}{number_of(run.total_steps, 'step')})"


def _probability(rank: Ranked) -> float:
    """Return how likely a passage answers.

    Fitted on questions about sessions, and on others that these do not answer.
    """
    beyond = max(0.0, rank.meaning - _UNRELATED) if rank.meaning else 0.0
    signs = {"words": rank.words, "meaning": beyond}
    return round(fitted("sessions").probability(signs), 4)


def _by_all_hits(sessions: Sequence[list[Found]]) -> list[list[Found]]:
    """Return *sessions* by all of their hits, the best first; their scores stay those of one."""
    scores = sorted((group[0].score for group in sessions), reverse=True)
    ordered = sorted(
        sessions, key=lambda group: -group[0].score - _FURTHER * sum(hit.score for hit in group[1:])
    )
    return [
        [replace(first, score=score), *others]
        for score, (first, *others) in zip(scores, ordered, strict=True)
    ]


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
        is_change = amends(said[other]) and dice(words[place], words[other]) >= _SAME_SUBJECT
        if newer[0].time > older[0].time and (is_same or is_change):
            before, after = ordered.index(older), ordered.index(newer)
            if before < after:
                first, *rest = ordered.pop(after)
                ordered.insert(before, [replace(first, score=older[0].score), *rest])
                newer[:] = ordered[before]
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
    found.sort(key=lambda one: (-one.time.timestamp(), one.id))
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
    """Return the session of each of *runs*, by their ids: of a sub-agent that which began it.

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


def _remedies(store: Store, question: str, within: Within) -> dict[str, tuple[Note, str]]:
    """Id -> remedies in the form of notes, with their titles, found by whole words."""
    terms = [*dict.fromkeys(words_of(question))][:MOST_WORDS]
    remedies = {}
    for recovery in store.recoveries.for_text(terms, Scope(within.repo), _REMEDIES):
        id_, repo = f"{recovery.fragment_id}#{recovery.error_step}", repo_name(recovery.repo)
        title = f"{recovery.error_type}: {describe_remedy(recovery.actions)}"[:_TEXT]
        note = Note(id_, f"{recovery.message} {title}", repo, "", recovery.seen_at)
        remedies[id_] = note, title
    return remedies


def _opening(run: Trajectory, step: int = -1) -> str:
    """The command that shows a run, or a *step* of it: from its file, where that is still there."""
    path = run.source.rpartition(":")[0] if ":" in run.source else run.source
    for file in filter(None, (run.source, path)):
        if Path(file).is_file():
            at = f"{_AT_STEP}{min(step, run.total_steps - 1)}" if step >= 0 else ""
            return f"contextgraph inspect {quote(file)} --instance {quote(run.instance_id)}{at}"
    return f"contextgraph call explain identity={run.id}"


def _score(one: Recollection, score: float, best: float) -> float:
    """Return the *score* of a note, more where it has the reason, the file, or a link to *best*."""
    why = one.why
    return score * (1 + why.get("reason", 0.0)) + best * why.get("graph", 0.0)


def _entry(one: Recollection, score: float, remedies: Mapping[str, tuple[Note, str]]) -> Found:
    """Return a recalled note as it is listed, with the command that opens it."""
    note = one.note
    kind, text = note.kind.value, " ".join(note.content.split())[:_TEXT]
    command = f"contextgraph call explain identity={note.id}"
    if note.id in remedies:
        kind, text = "remedy", remedies[note.id][1]
        command = f"contextgraph call explain identity={note.id.partition('#')[0]}"
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
        round(one.probability, 4),
    )  # fmt: skip

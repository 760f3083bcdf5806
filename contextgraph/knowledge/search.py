"""Search over all that a memory holds: sessions, statements, notes, pages, entities, remedies."""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from shlex import quote

from contextgraph.knowledge.extraction import files_in
from contextgraph.knowledge.keyed import CurrentEntry
from contextgraph.knowledge.notes import repo_name
from contextgraph.knowledge.recall import searched_text, superseded_in, walk
from contextgraph.knowledge.statements import Statements
from contextgraph.lazy import regex, replace
from contextgraph.model import (
    Found,
    LinkType,
    Note,
    NoteKind,
    NoteScope,
    Outcome,
    RecoveryCandidate,
    RunFilter,
    Scope,
    Trajectory,
)
from contextgraph.ports import Store
from contextgraph.ranking import shares
from contextgraph.text import cut, stems, words as words_of
from contextgraph.trace import describe_remedy

_WORDS, _PROPOSED, _TEXT, _TITLE = 32, 60, 300, 120
_RECENT = regex(
    r"\b(?:recent(?:ly)?|lately|today|yesterday|last (?:time|days?|sessions?)|newest|latest)\b",
    re.IGNORECASE,
)
_WHY = regex(r"^\W*why\b", re.IGNORECASE)
# Statements answer why; a file that is named is meant.
_BECAUSE, _NAMED = 1.5, 0.5
# More of one session would hide the others.
_OF_SESSION = 3
# What is linked to the best entities, and the causes of the best notes, stand for them.
_WALKED, _DEPTH = 3, 2
_WITH_CAUSES = ("note", "statement", "page")


class Strategy(StrEnum):
    """Extent of a search: everything, all but links, or entities and what is linked to them."""

    HYBRID = "hybrid"
    KNOWLEDGE = "knowledge"
    GRAPH = "graph"


def search(
    store: Store,
    statements: Statements,
    question: str,
    *,
    repo: str | None = None,
    limit: int = 10,
    strategy: Strategy = Strategy.HYBRID,
    keyed: Callable[[], Iterable[CurrentEntry]] = tuple,
) -> tuple[Found, ...]:
    """Return what *store* holds about *question*, best first: see `AgentMemory.search`."""
    words = [*dict.fromkeys(stems(question))][:_WORDS]
    # Runs and recoveries are found by whole words, notes by stems.
    terms = [*dict.fromkeys(words_of(question))][:_WORDS]
    if _RECENT.search(question):
        recent = [*_recent(store, repo, limit), *map(_of_entry, keyed())]
        return tuple(sorted(recent, key=lambda found: found.time, reverse=True)[:limit])
    proposed = dict(_proposed(store, terms, words, repo))
    for entry in keyed():
        proposed["keyed", entry.key] = entry.text, _of_entry(entry)
    files = files_in(question)
    named = {one.note.id for one in statements.naming(files, repo=repo)} if files else set[str]()
    texts = {key: Counter(stems(text)) for key, (text, _) in proposed.items()}
    # What was superseded is never shown without its successor, which stands for it.
    gone = superseded_in(store.notes, [id_ for kind, id_ in proposed if kind == "statement"])
    is_why = bool(_WHY.search(question))
    scored: dict[tuple[str, str], tuple[Found, dict[str, float]]] = {}
    for share, key in shares(words, texts):
        _, found = proposed[key]
        if found.id in gone:
            continue
        reason = share * (_BECAUSE - 1) if is_why and found.kind == "statement" else 0.0
        is_named = found.id in named or any(name in found.text for name in files)
        scored[key] = found, {"words": share, "reason": reason, "file": _NAMED * is_named}
    if strategy is not Strategy.KNOWLEDGE:
        for found, nearness in _linked(store, [*scored.values()], repo, is_why=is_why):
            why = scored.setdefault((found.kind, found.id), (found, {}))[1]
            why["graph"] = max(nearness, why.get("graph", 0.0))
    ranked = [
        replace(
            found,
            score=round(sum(why.values()), 4),
            why={name: round(value, 4) for name, value in why.items() if value},
        )
        for found, why in scored.values()
        if strategy is not Strategy.GRAPH or found.kind == "entity" or "graph" in why
    ]
    ranked.sort(key=lambda one: (-one.score, -one.time.timestamp(), one.id))
    of_session: Counter[tuple[str, str]] = Counter()
    shown: list[Found] = []
    for one in ranked:
        of_session[one.kind, one.command] += 1
        if of_session[one.kind, one.command] <= _OF_SESSION and len(shown) < limit:
            shown.append(one)
    return tuple(shown)


def _linked(
    store: Store,
    scored: Sequence[tuple[Found, Mapping[str, float]]],
    repo: str | None,
    *,
    is_why: bool,
) -> Iterator[tuple[Found, float]]:
    """Yield what is linked to the best entities, and causes of the best notes, with its score."""
    best = sorted(scored, key=lambda pair: -sum(pair[1].values()))
    entities = [pair for pair in best if pair[0].kind == "entity"][:_WALKED]
    caused = [pair for pair in best if pair[0].kind in _WITH_CAUSES][:_WALKED] if is_why else []
    places = _places(repo)
    for (found, why), types in (
        *((pair, ()) for pair in entities),
        *((pair, (LinkType.CAUSED_BY,)) for pair in caused),
    ):
        distances = walk(store.notes, found.id, _DEPTH, types, back=not types)
        for note in store.notes.get([*distances]).values():
            if note.is_live and (places is None or note.repo in places):
                yield _of_note(store, note), sum(why.values()) / (1 + distances[note.id])


def _recent(store: Store, repo: str | None, limit: int) -> Iterator[Found]:
    runs = store.runs.listed(RunFilter(repo=repo), limit)
    yield from map(_of_run, runs)
    scope = NoteScope(_places(repo), (NoteKind.NOTE, NoteKind.STATEMENT, NoteKind.PAGE))
    notes = store.notes.newest(scope, limit)
    gone = superseded_in(store.notes, [note.id for note in notes])
    yield from (_of_note(store, note) for note in notes if note.id not in gone)


def _proposed(
    store: Store, terms: list[str], words: list[str], repo: str | None
) -> Iterator[tuple[tuple[str, str], tuple[str, Found]]]:
    """Kind and id -> the text that is compared, and the item."""
    scope = Scope(repo)
    for run in store.runs.for_text(terms, scope, _PROPOSED):
        found = _of_run(run)
        text = f"{run.task} {run.summary} {' '.join(run.files)}"
        yield (found.kind, run.id), (text, found)
    for recovery in store.recoveries.for_text(terms, scope, _PROPOSED):
        found = _of_recovery(recovery)
        yield (found.kind, found.id), (f"{recovery.message} {found.text}", found)
    kinds = (NoteKind.NOTE, NoteKind.STATEMENT, NoteKind.PAGE, NoteKind.ENTITY)
    for note in store.notes.for_text(words, NoteScope(_places(repo), kinds), _PROPOSED):
        found = _of_note(store, note)
        yield (found.kind, note.id), (searched_text(note), found)


def _places(repo: str | None) -> tuple[str, ...] | None:
    return None if repo is None else tuple(dict.fromkeys((repo_name(repo), "")))


def _of_run(run: Trajectory) -> Found:
    kind = "task" if run.files else "session"
    title = cut(" ".join(run.task.split()), _TITLE)
    outcome = "" if run.outcome is Outcome.UNKNOWN else f"{run.outcome}, "
    text = f"{title} ({outcome}{run.total_steps} steps)"
    return Found(kind, run.id, text, run.repo, run.seen_at, 0.0, _opening(run))


def _opening(run: Trajectory) -> str:
    """The command that shows a run: from its file, where that is still there."""
    path = run.source.rpartition(":")[0] if ":" in run.source else run.source
    for file in filter(None, (run.source, path)):
        if Path(file).is_file():
            return f"contextgraph inspect {quote(file)} --instance {quote(run.instance_id)}"
    return f"contextgraph explain {run.id}"


def _of_recovery(recovery: RecoveryCandidate) -> Found:
    text = f"{recovery.error_type}: {describe_remedy(recovery.actions)}"[:_TEXT]
    id_ = f"{recovery.fragment_id}#{recovery.error_step}"
    command = f"contextgraph explain {recovery.fragment_id}"
    return Found("remedy", id_, text, recovery.repo, recovery.seen_at, 0.0, command)


def _of_entry(entry: CurrentEntry) -> Found:
    return Found("keyed", entry.key, entry.line, "", entry.ts, 0.0, f"cat {quote(str(entry.path))}")


def _of_note(store: Store, note: Note) -> Found:
    text = "[confidential]" if note.security.is_secret else " ".join(note.content.split())[:_TEXT]
    command = f"contextgraph explain {note.id}"
    kind = note.kind.value
    if note.kind is NoteKind.ENTITY:
        text = ": ".join(filter(None, (note.title, note.summary, text)))
    elif note.kind is NoteKind.PAGE:
        text, command = note.title or text, f"contextgraph pages get {quote(note.id[5:])}"
    elif note.kind is NoteKind.STATEMENT:
        runs = store.runs.trajectories(note.targets(LinkType.SAID_IN)[:1]).values()
        command = next(map(_opening, runs), command)
        if note.summary and len(text) < 60:
            text = f"{text} (asked: {' '.join(note.summary.split())})"[:_TEXT]
        text = f"{note.statement_kind} {note.created_at:%Y-%m-%d}: {text}"
    return Found(kind, note.id, text, note.repo, note.created_at, 0.0, command)

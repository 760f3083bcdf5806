"""Maintenance of notes: layers, archiving, merging, and resolving conflicts."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import reduce
from itertools import combinations

from contextgraph.governance import (
    CREDIBILITY_MARGIN,
    Evictable,
    RecallStats,
    RecallValue,
    belongs_long_term,
    is_forgotten,
    rarity,
    strength,
)
from contextgraph.knowledge.recall import (
    credibility_of,
    searched_text,
    stem_counts,
)
from contextgraph.knowledge.statements import confirmed_by
from contextgraph.model import (
    Link,
    LinkType,
    MaintenanceReport,
    Note,
    NoteKind,
)
from contextgraph.ports import NoteStore
from contextgraph.ranking import dice
from contextgraph.text import compiled

_TOKEN = r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+"
# With one of these a longer statement may say something else.
_LIMITS = frozenset("not no never cannot t without unless except only but if 不 没 除 非".split())


# How much a short-term note fades on its first day; below so many recalls it may be archived.
_DECAY_RATE, _MIN_RECALLS = 0.1, 3
# Notes whose words agree so far, and that are no further apart, may be merged; of a large
# repository the newest are compared.
_SIMILAR, _MERGED_WITHIN, _COMPARED = 0.75, timedelta(days=45), 400


@dataclass(frozen=True, slots=True)
class MaintenancePolicy:
    """What `maintain` archives.

    A note is archived when it is weak, was not recalled for *retention*, and fewer than three times
    in all; beyond *max_notes* those worth least.
    """

    retention: timedelta = timedelta(days=365)
    max_notes: int = 10_000


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
    moved = [note for note in notes if _is_long_term(note, now) is not note.is_long_term]
    check()
    store.change(
        [note.id for note in moved], lambda note: replace(note, is_long_term=not note.is_long_term)
    )
    resolved = _resolved(notes, now)
    check()
    store.change([*resolved], lambda note: replace(note, superseded_by=resolved[note.id]))
    merged = _merged(store, [note for note in notes if note.id not in resolved], check)
    rest = [note for note in notes if note.id not in {*resolved, *merged}]
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


def _is_long_term(note: Note, now: datetime) -> bool:
    return belongs_long_term(_strength(note, now), is_long_term=note.is_long_term)


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
    """The ids of those of *notes* that faded, and of those that are too many beside them."""
    free = {note.id for note in notes if not note.pinned and note.id not in referenced}
    faded = [note.id for note in notes if note.id in free and _is_faded(note, now, policy)]
    excess = len(notes) - len(faded) - policy.max_notes
    if excess <= 0:
        return faded, []
    pair = rarity({note.id: stem_counts(searched_text(note)) for note in notes})
    items = [
        Evictable(
            note.id,
            note.created_at,
            pair[note.id],
            RecallStats(note.recalls, note.recall_score, note.recalled_at),
        )
        for note in notes
        if note.id in free - {*faded}
    ]
    return faded, RecallValue(max(0, len(items) - excess)).chosen(items, now)


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


def _merged(store: NoteStore, notes: Sequence[Note], check: Callable[[], None]) -> list[str]:
    """Merge notes into those that say all that they say; the ids of those that went."""
    of_repo: defaultdict[str, list[Note]] = defaultdict(list)
    for note in sorted(notes, key=lambda note: (note.created_at, note.id), reverse=True):
        of_repo[note.repo].append(note)
    merged: list[str] = []
    for some in of_repo.values():
        for group in _groups(some[:_COMPARED]):
            check()
            merged += _merge(store, group)
    return merged


def _groups(notes: Sequence[Note]) -> list[list[Note]]:
    """Notes that are merged into the first of each list; each note is in one at most."""
    tokens = {note.id: tuple(compiled(_TOKEN).findall(note.content.casefold())) for note in notes}
    taken, groups = set[str](), defaultdict[str, list[Note]](list)
    for longer, shorter in combinations(sorted(notes, key=lambda note: -len(tokens[note.id])), 2):
        is_free = not ({longer.id, shorter.id} & taken or shorter.pinned or shorter.id in groups)
        is_near = abs(longer.created_at - shorter.created_at) <= _MERGED_WITHIN
        if is_free and is_near and _contains(tokens[longer.id], tokens[shorter.id]):
            groups[longer.id] = [*(groups[longer.id] or [longer]), shorter]
            taken.add(shorter.id)
    return [*groups.values()]


def _contains(longer: Sequence[str], shorter: Sequence[str]) -> bool:
    """Whether *longer* has all words of *shorter* in their order, few others, and no restriction.

    So that nothing is lost but words that both have.
    """
    is_similar = dice({*longer}, {*shorter}) >= _SIMILAR
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
            credibility=max(note.credibility for note in group),
            links=(*note.links, *links),
        )

    store.change([first.id, *gone], changed)
    return gone

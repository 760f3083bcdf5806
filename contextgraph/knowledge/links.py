"""Links between notes, pages and entities: ids, traversal, explanations."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace

from contextgraph.codec import encoded
from contextgraph.knowledge.rendering import without_secret
from contextgraph.model import (
    Explanation,
    Link,
    LinkType,
    Note,
    Relation,
)
from contextgraph.ports import NoteStore
from contextgraph.text import masked_name

_ENTITY, _PAGE = "entity:", "page:"
_RELATED = ("links", "contradicts", "superseded_by", "content")


def walk(
    store: NoteStore, start: str, depth: int, types: Collection[str] = (), *, back: bool = False
) -> dict[str, int]:
    """The ids that are reached from *start* along links of *types* (all but the order of notes).

    Each with its distance, up to *depth*, nearest first; in both directions with *back*.
    """
    distances = {start: 0}
    ring: Sequence[Note] = [*store.get([start]).values()]
    for distance in range(1, depth + 1):
        ids = [link for note in ring for link in _targets(note, types)]
        if back:
            named = {note.id for note in ring}
            linking = store.linking([*named])
            ids += [note.id for note in linking if not named.isdisjoint(_targets(note, types))]
        ring = [*store.get([id_ for id_ in ids if id_ not in distances]).values()]
        distances |= {note.id: distance for note in ring}
    del distances[start]
    return distances


def _targets(note: Note, types: Collection[str]) -> list[str]:
    return [
        link.target
        for link in note.links
        if (link.type in types if types else link.type != LinkType.FOLLOWS)
    ]


def with_link(note: Note, link: Link) -> Note:
    """*note* with *link* in place of one of its type to the same target."""
    others = (
        other for other in note.links if (other.type, other.target) != (link.type, link.target)
    )
    return replace(note, links=(*others, link))


def entity_id(name: str) -> str:
    """The id of the note of an entity: names are compared without case."""
    return f"{_ENTITY}{masked_name(name).casefold()}"


def name_of_entity(id_: str) -> str:
    """The name, in lower case, of the entity whose note has this id."""
    return id_.removeprefix(_ENTITY)


def page_note(page_id: str) -> str:
    """The id of the note of a page."""
    return f"{_PAGE}{masked_name(page_id)}"


def page_of_note(id_: str) -> str:
    """The id of the page whose note has this id."""
    return id_.removeprefix(_PAGE)


def explain_note(store: NoteStore, note_id: str) -> Explanation | None:
    """The note with this id, its facts and its relations in both directions; None if unknown."""
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
    """*context* with the names of the notes that were shown in it."""
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
    return note.title or without_secret(note).content

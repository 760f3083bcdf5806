"""What is known of a note, page or entity, and how it is related to others."""

from collections.abc import Iterator
from dataclasses import replace

from contextgraph.codec import encoded
from contextgraph.knowledge.rendering import without_secret
from contextgraph.model import Explanation, Note, Relation
from contextgraph.ports import NoteStore

_RELATED = ("links", "contradicts", "superseded_by", "content")


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

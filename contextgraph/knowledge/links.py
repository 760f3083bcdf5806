"""Walking along the links between notes."""

from collections.abc import Collection, Sequence

from contextgraph.model import LinkType, Note
from contextgraph.ports import NoteStore
from contextgraph.text import masked_name

_ENTITY, _PAGE = "entity:", "page:"


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

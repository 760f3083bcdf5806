"""`NoteStore` on a Neo4j server."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from contextgraph.codec import json_of
from contextgraph.model import Note, NoteKind, NoteScope, Vector
from contextgraph.ports import NoteChange, OnDamaged
from contextgraph.store import rules
from contextgraph.store.neo4j.advice import forget_shown
from contextgraph.store.neo4j.connection import (
    Connection,
    NamedQueries,
    Parameters,
    Row,
    Transaction,
    moment,
    where,
)
from contextgraph.store.neo4j.search import indexed_text, terms
from contextgraph.text import stems
from contextgraph.values import replace

# One transaction for 100,000 notes exceeded the time limit of a transaction.
NOTES_AT_ONCE = 1_000


class Neo4jNotes:
    """`NoteStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def change(
        self, ids: Sequence[str] = (), function: NoteChange = replace, new: Sequence[Note] = ()
    ) -> Sequence[Note]:
        def work(transaction: Transaction) -> Sequence[Note]:
            _put(transaction, {note.id: note for note in new})
            known = _notes_of(transaction.rows("lock_notes", ids=sorted({*ids})))
            changed = {note.id: function(note) for note in known}
            _put(transaction, changed)
            return [*changed.values()]

        return self._connection.write(work)

    def get(self, ids: Sequence[str]) -> Mapping[str, Note]:
        return _known(self._connection, ids)

    def for_text(self, words: Sequence[str], scope: NoteScope, limit: int) -> Sequence[Note]:
        searched = terms(self._connection.tenant, scope.repos, dict.fromkeys(words, 1))
        return self._found("notes_for_text", scope, words=searched, limit=max(0, limit))

    def nearest(
        self, vectors: Sequence[Vector], scope: NoteScope, limit: int
    ) -> Sequence[Mapping[str, float]]:
        query, parameters = where("nearest_notes", scope.repos), _parameters(scope)
        nearest = (
            self._connection.rows(
                query,
                vector=vector.numbers().tolist(),
                space=vector.space,
                limit=max(0, limit),
                **parameters,
            )
            for vector in vectors
        )
        return [{row["id"]: row["cosine"] for row in rows} for rows in nearest]

    def newest(self, scope: NoteScope, limit: int) -> Sequence[Note]:
        return self._found(where("newest_notes", scope.repos), scope, limit=max(0, limit))

    def linking(self, ids: Sequence[str]) -> Sequence[Note]:
        return _notes_of(self._connection.rows("notes_linking", ids=sorted({*ids})))

    def counts(self) -> Mapping[NoteKind, int]:
        counts = self._connection.rows("note_counts")
        return {NoteKind(row["kind"]): row["count"] for row in counts}

    def close(self) -> None:
        """Nothing: its connection is that of the store."""

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[Note]:
        return rules.paged(self._page, rules.note_of, on_damaged)

    def _page(self, after: str, limit: int) -> Sequence[tuple[str, str]]:
        later = self._connection.rows("notes_after", after=after, limit=limit)
        return [(row["id"], row["data"]) for row in later]

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        unembedded = self._connection.rows(
            "notes_to_embed", limit=max(0, limit), space=space, after=after
        )
        return {note.id: rules.note_text(note) for note in _notes_of(unembedded)}

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        def work(transaction: Transaction) -> None:
            transaction.rows("note_spaces", ids=sorted(vectors), space=space)
            given = [
                {"id": id_, "vector": vector.numbers().tolist()}
                for id_, vector in sorted(vectors.items())
                if vector
            ]
            transaction.write("add_note_vectors", given, space=space)

        self._connection.write(work)

    def delete(self, ids: Sequence[str]) -> int:
        def work(transaction: Transaction, some: Sequence[str]) -> int:
            transaction.rows("remove_note_links", ids=some)
            forget_shown(transaction, some)
            deleted = transaction.rows("delete_notes", ids=some)
            transaction.rows("delete_unlinked_notes", ids=some)
            return len(deleted)

        named = sorted({*ids})
        starts = range(0, len(named), NOTES_AT_ONCE)
        batches = (named[start : start + NOTES_AT_ONCE] for start in starts)
        return sum(self._connection.write(work, batch) for batch in batches)

    def _found(self, name: str, scope: NoteScope, **parameters: object) -> list[Note]:
        return _notes_of(self._connection.rows(name, **parameters, **_parameters(scope)))


def _put(transaction: Transaction, notes: Mapping[str, Note]) -> None:
    """Store *notes*, by id: the order in which they are locked."""
    if not notes:
        return
    ordered = [notes[id_] for id_ in sorted(notes)]
    known = _known(transaction, [*notes])
    texts = {id_: rules.note_text(note) for id_, note in known.items()}
    links_of = {id_: note.links for id_, note in known.items()}
    others = [note for note in ordered if texts.get(note.id) != rules.note_text(note)]
    linked = [note for note in ordered if links_of.get(note.id, ()) != note.links]
    transaction.write("put_notes", [_row(transaction.tenant, note) for note in ordered])
    transaction.rows("remove_note_vectors", ids=[note.id for note in others])
    transaction.rows("remove_note_links", ids=[note.id for note in linked])
    links = [
        {
            "id": note.id,
            "type": link.type.upper() or "RELATED",
            "target": link.target,
            "weight": link.weight,
        }
        for note in linked
        for link in note.links
    ]
    transaction.write("put_note_links", links)


def _row(tenant: str, note: Note) -> Parameters:
    return {
        "id": note.id,
        "name": (note.title or note.content)[:80],
        "content": note.content,
        "repo": note.repo,
        "tags": list(note.tags),
        "kind": note.kind.value,
        "label": note.kind.capitalize(),
        "pinned": note.pinned,
        "words": indexed_text(tenant, note.repo, rules.note_text(note), stems),
        "live": note.is_live,
        "created_at": moment(note.created_at),
        "source": note.source,
        "contradicts": list(note.contradicts),
        "superseded_by": note.superseded_by,
        "recalls": note.recalls,
        "data": json_of(note),
    }


def _known(queries: NamedQueries, ids: Iterable[str]) -> dict[str, Note]:
    return {note.id: note for note in _notes_of(queries.rows("notes", ids=sorted({*ids})))}


def _notes_of(selected: Iterable[Row]) -> list[Note]:
    return [rules.note_of(row["data"]) for row in selected]


def _parameters(scope: NoteScope) -> Parameters:
    kinds = [kind.value for kind in scope.kinds]
    return {
        "repos": scope.repos and list(scope.repos),
        "kinds": kinds,
        "tags": list(scope.tags),
        "pinned": scope.pinned,
    }

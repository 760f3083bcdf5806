"""What people and agents said: `NoteStore` on a server."""

from collections.abc import Mapping, Sequence

import orjson

from contextgraph.codec import decoded, encoded
from contextgraph.model import Note
from contextgraph.store.neo4j import rows
from contextgraph.store.neo4j.connection import Connection, Transaction
from contextgraph.store.neo4j.full_text import terms, text_of_note
from contextgraph.store.neo4j.rows import Parameters


class Neo4jNotes:
    """`NoteStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def put(self, notes: Sequence[Note]) -> None:
        ordered = sorted({note.id: note for note in notes}.values(), key=lambda note: note.id)
        self._connection.write(Transaction.write, "put_notes", [*map(self._row, ordered)])

    def get(self, ids: Sequence[str]) -> Mapping[str, Note]:
        found = self._connection.rows("notes", ids=sorted({*ids}))
        return {note.id: note for note in map(_note_of, found)}

    def for_text(self, words: Sequence[str], repo: str | None, limit: int) -> Sequence[Note]:
        searched = terms(self._connection.tenant, repo, dict.fromkeys(words, 1))
        found = self._connection.rows("notes_for_text", words=searched, limit=max(0, limit))
        return [*map(_note_of, found)]

    def page(self, after: str, limit: int) -> Sequence[Note]:
        found = self._connection.rows("notes_after", after=after, limit=max(0, limit))
        return [*map(_note_of, found)]

    def delete(self, ids: Sequence[str]) -> int:
        def work(transaction: Transaction) -> int:
            return len(transaction.rows("delete_notes", ids=sorted({*ids})))

        return self._connection.write(work)

    def _row(self, note: Note) -> Parameters:
        return {
            "id": note.id,
            "name": note.content[:80],
            "content": note.content,
            "repo": note.repo,
            "tags": list(note.tags),
            "words": text_of_note(self._connection.tenant, note),
            "live": note.is_live,
            "created_at": rows.moment(note.created_at),
            "data": orjson.dumps(encoded(note)).decode(),
        }


def _note_of(row: Mapping[str, str]) -> Note:
    return decoded(Note, orjson.loads(row["data"]))

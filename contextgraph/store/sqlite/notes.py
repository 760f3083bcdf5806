"""What people and agents said: `NoteStore` in SQLite."""

from collections.abc import Mapping, Sequence

import orjson

from contextgraph.codec import decoded, encoded
from contextgraph.model import Note
from contextgraph.store import rules
from contextgraph.store.sqlite import rows
from contextgraph.store.sqlite.database import Database
from contextgraph.store.sqlite.transaction import Transaction, json_text
from contextgraph.store.sqlite.word_index import add_texts, match

_PUT = """
INSERT INTO note (tenant, id, live, created_at, data) VALUES (?, ?, ?, ?, ?)
ON CONFLICT (tenant, id)
DO UPDATE SET live = excluded.live, created_at = excluded.created_at, data = excluded.data"""
_OF_IDS = "tenant = ? AND id IN (SELECT value FROM json_each(?))"
_FOR_TEXT = """
SELECT n.data FROM (SELECT key, sum(weight) AS found FROM ({match}) GROUP BY key) f
JOIN note n ON n.key = f.key
WHERE n.live ORDER BY f.found DESC, n.created_at DESC, n.id LIMIT :limit"""


class SqliteNotes:
    """`NoteStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, notes: Sequence[Note]) -> None:
        with self._database.writing() as transaction:
            for note in notes:
                _put(transaction, note)

    def get(self, ids: Sequence[str]) -> Mapping[str, Note]:
        with self._database.reading() as transaction:
            found = transaction.column(
                f"SELECT data FROM note WHERE {_OF_IDS} ORDER BY id",
                (transaction.tenant, json_text(ids)),
            )
        return {note.id: note for note in map(_note_of, found)}

    def for_text(self, words: Sequence[str], repo: str | None, limit: int) -> Sequence[Note]:
        if not words:
            return []
        with self._database.reading() as transaction:
            place = None if repo is None else _place(transaction, repo)
            sql, found = match("note", transaction.tenant, place, dict.fromkeys(words, 1))
            parameters = {**found, "limit": max(0, limit)}
            return [*map(_note_of, transaction.column(_FOR_TEXT.format(match=sql), parameters))]

    def page(self, after: str, limit: int) -> Sequence[Note]:
        with self._database.reading() as transaction:
            found = transaction.column(
                "SELECT data FROM note WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?",
                (transaction.tenant, after, max(0, limit)),
            )
        return [*map(_note_of, found)]

    def delete(self, ids: Sequence[str]) -> int:
        with self._database.writing() as transaction:
            parameters = (transaction.tenant, json_text(ids))
            transaction.write(
                f"DELETE FROM note_text WHERE rowid IN (SELECT key FROM note WHERE {_OF_IDS})",
                parameters,
            )
            return transaction.write(f"DELETE FROM note WHERE {_OF_IDS}", parameters)


def _put(transaction: Transaction, note: Note) -> None:
    found = (transaction.tenant, note.id)
    is_new = not transaction.number("SELECT key FROM note WHERE tenant = ? AND id = ?", found)
    data = orjson.dumps(encoded(note)).decode()
    transaction.write(_PUT, (*found, note.is_live, rows.moment(note.created_at), data))
    if is_new:
        repository = (transaction.tenant, note.repo)
        transaction.write("INSERT OR IGNORE INTO place (tenant, repo) VALUES (?, ?)", repository)
        key = transaction.number("SELECT key FROM note WHERE tenant = ? AND id = ?", found)
        place = _place(transaction, note.repo)
        add_texts(transaction, "note", place, [(key, rules.note_text(note))])


def _place(transaction: Transaction, repo: str) -> int:
    return transaction.number(
        "SELECT key FROM place WHERE tenant = ? AND repo = ?", (transaction.tenant, repo)
    )


def _note_of(data: str) -> Note:
    return decoded(Note, orjson.loads(data))

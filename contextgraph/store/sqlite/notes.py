"""`NoteStore` in SQLite."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from contextgraph.codec import json_of
from contextgraph.model import Note, NoteKind, NoteScope, Vector
from contextgraph.ports import NoteChange, OnDamaged
from contextgraph.store import rules
from contextgraph.store.sqlite.advice import forget_shown
from contextgraph.store.sqlite.database import Database, Transaction, moment, text_of
from contextgraph.store.sqlite.search import add_texts, compact, nearest_of, texts_with
from contextgraph.text import stems
from contextgraph.values import replace

_PUT = """
INSERT INTO note (tenant, id, place, kind, live, created_at, data) VALUES (?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (tenant, id) DO UPDATE SET place = excluded.place, kind = excluded.kind,
    live = excluded.live, created_at = excluded.created_at, data = excluded.data
RETURNING key"""
_OF_IDS = "tenant = :tenant AND id IN (SELECT value FROM json_each(:ids))"
_TAGGED = """
AND NOT EXISTS (SELECT value FROM json_each(:tags)
    EXCEPT SELECT value FROM json_each(n.data, '$.tags'))"""
_OF_KEYS = """
SELECT n.data FROM json_each(:keys) AS named CROSS JOIN note n ON n.key = named.value
WHERE {scope} ORDER BY n.created_at DESC, n.id LIMIT :limit"""
_PLACES = """
SELECT p.key FROM place p WHERE p.tenant = ? AND p.repo IN (SELECT value FROM json_each(?))
AND EXISTS (SELECT 1 FROM note n WHERE n.tenant = p.tenant AND n.place = p.key)"""
_TO_EMBED = """
SELECT data FROM note
WHERE tenant = :tenant AND live AND kind <> 'entity' AND id > :after
AND (:space IS NULL OR space IS NOT :space) ORDER BY id LIMIT :limit"""

# Of all repositories the vectors of the newest notes are compared, in a fifth of a second; words
# find the others.
MOST_VECTORS = 50_000
_NEAREST = """
SELECT n.id, n.vector FROM note n
WHERE {scope} AND n.space = :space AND n.vector IS NOT NULL"""
_NEAREST_OF_ALL = """
SELECT n.id, n.vector FROM note n NOT INDEXED
WHERE {scope} AND n.space = :space AND n.vector IS NOT NULL ORDER BY n.key DESC LIMIT :most"""


class SqliteNotes:
    """`NoteStore`; the docstrings of its methods are those of the protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def change(
        self, ids: Sequence[str] = (), function: NoteChange = replace, new: Sequence[Note] = ()
    ) -> Sequence[Note]:
        with self._database.writing() as transaction:
            _put_all(transaction, new)
            changed = [function(note) for note in _of_ids(transaction, ids)]
            _put_all(transaction, changed)
        return changed

    def get(self, ids: Sequence[str]) -> Mapping[str, Note]:
        with self._database.reading() as transaction:
            return {note.id: note for note in _of_ids(transaction, ids)}

    def for_text(self, words: Sequence[str], scope: NoteScope, limit: int) -> Sequence[Note]:
        if not words:
            return []
        with self._database.reading() as transaction:
            places = _places(transaction, scope)
            if places is not None and not places:
                return []
            shared: Counter[int] = Counter()
            for word in dict.fromkeys(words):
                shared.update(texts_with(transaction, "note", places, word))
            where, parameters = _within(transaction, scope)
            notes: list[Note] = []
            # Only of those that share most words the rows are read.
            for number in sorted({*shared.values()}, reverse=True):
                keys = [key for key, words_shared in shared.items() if words_shared == number]
                notes += _notes_of(
                    transaction,
                    _OF_KEYS.format(scope=where),
                    {**parameters, "keys": text_of(keys), "limit": max(0, limit - len(notes))},
                )
                if len(notes) >= limit:
                    break
            return notes

    def nearest(
        self, vectors: Sequence[Vector], scope: NoteScope, limit: int
    ) -> Sequence[Mapping[str, float]]:
        if not vectors:
            return []
        with self._database.reading() as transaction:
            where, parameters = _within(transaction, scope)
            search = _NEAREST if scope.repos is not None else _NEAREST_OF_ALL
            cursor = transaction.connection.execute(
                search.format(scope=where),
                {**parameters, "space": vectors[0].space, "most": MOST_VECTORS},
            )
            return nearest_of(cursor, vectors, limit)

    def newest(self, scope: NoteScope, limit: int) -> Sequence[Note]:
        with self._database.reading() as transaction:
            where, parameters = _within(transaction, scope)
            return _notes_of(
                transaction,
                f"SELECT n.data FROM note n WHERE {where} "
                "ORDER BY n.created_at DESC, n.id DESC LIMIT :limit",
                {**parameters, "limit": max(0, limit)},
            )

    def linking(self, ids: Sequence[str]) -> Sequence[Note]:
        with self._database.reading() as transaction:
            return _notes_of(
                transaction,
                "SELECT data FROM note WHERE key IN (SELECT note FROM note_link WHERE tenant = ? "
                "AND target IN (SELECT value FROM json_each(?))) ORDER BY id",
                (transaction.tenant, text_of(ids)),
            )

    def counts(self) -> Mapping[NoteKind, int]:
        with self._database.reading() as transaction:
            counts = transaction.rows(
                "SELECT kind, count(*) FROM note WHERE tenant = ? AND live "
                "GROUP BY kind ORDER BY kind",
                (transaction.tenant,),
            )
        return {NoteKind(kind): count for kind, count in counts}

    def close(self) -> None:
        """Nothing: its connection is that of the store."""

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[Note]:
        return rules.paged(self._page, rules.note_of, on_damaged)

    def _page(self, after: str, limit: int) -> Sequence[tuple[str, str]]:
        with self._database.reading() as transaction:
            sql = "SELECT id, data FROM note WHERE tenant = ? AND id > ? ORDER BY id LIMIT ?"
            return transaction.rows(sql, (transaction.tenant, after, limit))

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        named = {"after": after, "space": space, "limit": max(0, limit)}
        with self._database.reading() as transaction:
            notes = _notes_of(transaction, _TO_EMBED, {"tenant": transaction.tenant, **named})
        return {note.id: rules.note_text(note) for note in notes}

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        with self._database.writing() as transaction:
            transaction.write_all(
                "UPDATE note SET space = ?, vector = ? WHERE tenant = ? AND id = ?",
                [
                    (space, vector.data if vector else None, transaction.tenant, id_)
                    for id_, vector in vectors.items()
                ],
            )

    def delete(self, ids: Sequence[str]) -> int:
        with self._database.writing() as transaction:
            parameters = {"tenant": transaction.tenant, "ids": text_of(ids)}
            keys = f"(SELECT key FROM note WHERE {_OF_IDS})"
            transaction.write(f"DELETE FROM note_text WHERE rowid IN {keys}", parameters)
            transaction.write(f"DELETE FROM note_link WHERE note IN {keys}", parameters)
            forget_shown(transaction, ids)
            count = transaction.write(f"DELETE FROM note WHERE {_OF_IDS}", parameters)
            compact(transaction)
        self._database.connections.empty_log()
        return count


def _put_all(transaction: Transaction, notes: Iterable[Note]) -> None:
    known = {note.id: note for note in _of_ids(transaction, [note.id for note in notes])}
    for note in notes:
        _put(transaction, note, known.get(note.id))


def _put(transaction: Transaction, note: Note, before: Note | None) -> None:
    place = transaction.put_place(note.repo)
    created_at, data = moment(note.created_at), json_of(note)
    key = transaction.number(
        _PUT, (transaction.tenant, note.id, place, note.kind, note.is_live, created_at, data)
    )
    text = rules.note_text(note)
    if before is None or (before.repo, rules.note_text(before)) != (note.repo, text):
        transaction.write("UPDATE note SET space = NULL, vector = NULL WHERE key = ?", (key,))
        transaction.write("DELETE FROM note_text WHERE rowid = ?", (key,))
        add_texts(transaction, "note", place, [(key, text)], stems)
    if before is None or before.links != note.links:
        transaction.write("DELETE FROM note_link WHERE note = ?", (key,))
        links = [(transaction.tenant, link.target, key) for link in note.links]
        transaction.write_all("INSERT OR IGNORE INTO note_link VALUES (?, ?, ?)", links)


def _of_ids(transaction: Transaction, ids: Sequence[str]) -> list[Note]:
    return _notes_of(
        transaction,
        f"SELECT data FROM note WHERE {_OF_IDS} ORDER BY id",
        {"tenant": transaction.tenant, "ids": text_of(ids)},
    )


def _notes_of(transaction: Transaction, sql: str, parameters: Any) -> list[Note]:
    return [*map(rules.note_of, transaction.column(sql, parameters))]


def _within(transaction: Transaction, scope: NoteScope) -> tuple[str, dict[str, str | int]]:
    """The condition on the live notes `n` of *scope*, and its parameters."""
    parameters: dict[str, str | int] = {
        "tenant": transaction.tenant,
        "kinds": text_of(scope.kinds),
    }
    where = "n.tenant = :tenant AND n.live AND n.kind IN (SELECT value FROM json_each(:kinds))"
    places = _places(transaction, scope)
    if places is not None:
        parameters["places"] = text_of(places)
        where += " AND n.place IN (SELECT value FROM json_each(:places))"
    if scope.pinned:
        where += " AND json_extract(n.data, '$.pinned')"
    if scope.tags:
        parameters["tags"] = text_of(scope.tags)
        where += _TAGGED
    return where, parameters


def _places(transaction: Transaction, scope: NoteScope) -> list[int] | None:
    """Return the keys of the repositories of *scope* that have notes; None for all."""
    if scope.repos is None:
        return None
    return transaction.column(_PLACES, (transaction.tenant, text_of(scope.repos)))

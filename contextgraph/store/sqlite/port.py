"""The primitives of `store.port` in a SQLite file: one table of rows for each declaration.

A row has the columns of its declaration, its value, and for each column of several texts rows in a
table of its own. Words are in a full-text index of each table, vectors in one table beside it. The
statements are made of the names in the declarations, one for each form of a question.
"""

import hashlib
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import lru_cache, partial
from pathlib import Path
from threading import local
from typing import Any, NamedTuple, TypeVar

import orjson

from contextgraph.errors import StoreError
from contextgraph.model import HealthCheck, Vector, WordCounts, dimensions_of
from contextgraph.store.memory_store import Store
from contextgraph.store.port import (
    COMPARED,
    KEY,
    RANGES,
    SOURCE,
    TARGET,
    THOROUGH,
    VALUE,
    Count,
    Form,
    Is,
    Question,
    Row,
    Table,
    Where,
    form_of,
    is_empty,
    serving,
)
from contextgraph.store.sqlite.connections import Connections
from contextgraph.store.sqlite.health import checks
from contextgraph.store.sqlite.matrix import Matrix
from contextgraph.store.sqlite.schema import Schema, index_name, ordered, several_of
from contextgraph.store.tables import TABLES
from contextgraph.text import regex

Result = TypeVar("Result")
# Words are found in a third of the time where segments are merged; so many pages take 0.1 s.
MERGED_EVERY = 16
_MERGED_AT_ONCE = 500
# A row that was found is read in whole for less than going through the rows of a common word.
_READ_WHOLE = 64
# So many rows are read in less than going through those of one word; measured on passages.
_ROWS_OF_WORD = 4
_MOST_COUNTED = 100_000
_MOST_HELD = 8_192
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_PLAIN = regex(r"[a-z0-9_]+")
_FIRST_TENANT = 1
_CONDITIONS = {
    Is.EQUAL: "n.{name} = :{value}",
    Is.IN: "n.{name} IN (SELECT value FROM json_each(:{value}))",
    Is.NOT_IN: "(n.{name} IS NULL OR n.{name} NOT IN (SELECT value FROM json_each(:{value})))",
    Is.LEAST: "n.{name} >= :{value}",
    Is.MOST: "n.{name} <= :{value}",
    Is.ABOVE: "n.{name} > :{value}",
    Is.NULL: "n.{name} IS NULL",
}

# Of rows that an index gives each is looked up; without one the rows of the text are taken first.
_LOOKED_UP = (
    "EXISTS (SELECT 1 FROM {table}_{name} m WHERE m.tenant = :tenant "
    "AND m.text = :{value} ->> 0 AND m.owner = n.rowid)"
)
_TAKEN_FIRST = (
    "n.rowid IN (SELECT owner FROM {table}_{name} WHERE tenant = :tenant AND text = :{value} ->> 0)"
)
_OF_SEVERAL = (
    "(SELECT count(DISTINCT m.text) FROM {table}_{name} m WHERE m.owner = n.rowid "
    "AND m.text IN (SELECT value FROM json_each(:{value})))"
)
# Newer rows have greater numbers.
_LAST = "SELECT coalesce(max(rowid), 0) FROM {table}"
_VALUES = "SELECT rowid, value FROM {table} WHERE rowid IN (SELECT value FROM json_each(?))"
# In one row: at each that is fetched a thread lets the others run.
_LISTED = "SELECT group_concat(rowid) FROM ({})"
_HAS_VECTOR = (
    "EXISTS (SELECT 1 FROM vector v WHERE v.name = '{table}' AND v.owner = n.rowid "
    "AND v.space = :{value})"
)


_OF_TEXTS = frozenset({Is.HAS, Is.HAS_ANY})


@lru_cache(1_000)
def _index(table: Table, where: Form, order: tuple[str, ...]) -> str | None:
    """Return the name of the index that serves a form best; None leaves it to SQLite."""
    if any(column == KEY and how in COMPARED for column, how in where):
        return f"{table.name}_by_key"
    if best := serving(table, where, order):
        return index_name(table, best.columns)
    is_other = order and order not in ((KEY,), (f"-{KEY}",))
    is_of_texts = not _OF_TEXTS.isdisjoint(how for _, how in where)
    return None if is_of_texts or is_other else f"{table.name}_by_key"


def _hint(where: Form, index: str | None) -> str:
    if index:
        return f" INDEXED BY {index}"
    # The rows of a text are few: SQLite would read all rows where an index has them in order.
    return "" if _OF_TEXTS.isdisjoint(how for _, how in where) else " NOT INDEXED"


@lru_cache(1_000)
def _condition(table: Table, where: Form, index: str | None = None) -> str:
    """Return the SQL of *where* for rows that *index* gives; None: that SQLite chooses."""
    terms = ["n.tenant = :tenant"]
    for place, (column, how) in enumerate(where):
        named = {"table": table.name, "name": column, "value": f"w{place}"}
        if how is Is.HAS:
            first = (_LOOKED_UP if index else _TAKEN_FIRST).format(**named)
            owned = _OF_SEVERAL.format(**named)
            terms.append(f"({first} AND {owned} = json_array_length(:w{place}))")
        elif how is Is.HAS_ANY:
            terms.append(
                f"n.rowid IN (SELECT owner FROM {table.name}_{column} WHERE tenant = :tenant "
                f"AND text IN (SELECT value FROM json_each(:w{place})))"
            )
        elif how in (Is.EMBEDDED, Is.NOT_EMBEDDED):
            has = _HAS_VECTOR.format(**named)
            terms.append(has if how is Is.EMBEDDED else f"NOT {has}")
        else:
            terms.append(_CONDITIONS[how].format(**(named | {"name": f'"{column}"'})))
    return " AND ".join(terms)


@lru_cache(1_000)
def _select(
    table: Table,
    where: Form,
    order: tuple[str, ...],
    wanted: tuple[str, ...],
) -> str:
    index = _index(table, where, order)
    columns = ", ".join(f'n."{column}"' for column in wanted)
    hint = _hint(where, index)
    sql = f"SELECT {columns} FROM {table.name} n{hint} WHERE {_condition(table, where, index)}"
    return f"{sql} ORDER BY {_order(order)} LIMIT :most"


def _order(order: Sequence[str]) -> str:
    named = {column.removeprefix("-") for column in order}
    return ", ".join(ordered(column, "n.") for column in (*order, *({KEY} - named)))


def _given(value: Any) -> Any:
    """Return *value* as SQLite takes it: times in microseconds, several values as JSON."""
    if value is None or type(value) in (str, int):  # most are
        return value
    if isinstance(value, datetime):
        return moment(value)
    if isinstance(value, list | tuple | set | frozenset):
        try:
            return orjson.dumps([_given(one) for one in value]).decode()
        except TypeError as error:
            raise StoreError(f"a text cannot be stored: {error}") from error
    return int(value) if isinstance(value, bool) else value


def moment(time: datetime) -> int:
    """Return microseconds since 1970, UTC; raises `StoreError` for a time without zone."""
    if time.tzinfo is None:
        raise StoreError(f"time {time.isoformat()} has no time zone")
    return (time - _EPOCH) // _MICROSECOND


@lru_cache(1_024)
def time_of(microseconds: int) -> datetime:
    """Return the time that `moment` gave *microseconds* for."""
    return _EPOCH + timedelta(microseconds=microseconds)


def _document(tenant: int, words: Sequence[str]) -> str:
    distinct = dict.fromkeys(words)
    text = " ".join(distinct)
    # Words in ASCII are in lower case, and plain.
    if tenant == _FIRST_TENANT and text.isascii():
        return text
    return " ".join(_token(tenant, word) for word in distinct)


def _token(tenant: int, word: str) -> str:
    """Return *word* as one term of *tenant* that no tokenizer takes apart or changes.

    Most files have one tenant, whose plain words stay as they are.
    """
    plain = _PLAIN.fullmatch(word)
    term = word if plain else f"@{word.encode('utf-8', 'surrogatepass').hex()}"
    return term if tenant == _FIRST_TENANT else f"{tenant}@{term}"


def _place_token(tenant: int, scope: object) -> str:
    digest = hashlib.blake2b(str(scope).encode("utf-8", "surrogatepass"), digest_size=8)
    return f"@{tenant}_{digest.hexdigest()}"


class _Known(NamedTuple):
    """What a process has read of one state, that of a *revision*.

    *counted*: table -> word -> the number of rows with it; None -> of all rows. *held*: table ->
    number of a row -> its value. Counting words takes half of a query without an error, and most of
    these share their words. Most queries at an error read the values of the same hundreds of
    recoveries: reading and hashing them again took a tenth of such a query (`python -m benchmarks`,
    query in scope).
    """

    revision: int
    counted: dict[str, dict[str | None, int]]
    held: dict[str, dict[int, str | bytes]]


class _Rows:
    """Primitives in a transaction on a connection, in a state of which some is *known*."""

    def __init__(
        self,
        connection: sqlite3.Connection,
        tenant: int,
        port: "SqlitePort",
        known: _Known,
    ) -> None:
        self._connection, self._tenant = connection, tenant
        self._port, self._known = port, known
        self._revision = known.revision
        self.has_changed = False

    def _execute(self, sql: str, parameters: Any = ()) -> sqlite3.Cursor:
        return self._connection.execute(sql, parameters)

    def _numbers(self, sql: str, parameters: Any) -> list[int]:
        """Return the numbers of the rows that *sql* finds, in order."""
        ((numbers,),) = self._execute(_LISTED.format(sql), parameters).fetchall()
        return orjson.loads(f"[{numbers or ''}]")  # type: ignore[no-any-return]

    def _parameters(self, where: Where) -> dict[str, Any]:
        given = {f"w{place}": _given(term.value) for place, term in enumerate(where)}
        return {"tenant": self._tenant, **given}

    def find(self, questions: Sequence[Question]) -> list[list[tuple[Any, ...]]]:
        found: list[list[tuple[Any, ...]]] = []
        for table, where, order, limit, wanted in questions:
            rows: list[tuple[Any, ...]] = []
            if not is_empty(where):
                # The first of an order are asked for again, and an index has their numbers.
                is_held = limit is not None and wanted == (VALUE,)
                columns = ("rowid",) if is_held else tuple(wanted)
                sql = _select(table, form_of(where), tuple(order), columns)
                given = {**self._parameters(where), "most": -1 if limit is None else limit}
                if is_held:
                    held = self._known.held.setdefault(table.name, {})
                    numbers = self._numbers(sql, given)
                    if new := {*numbers}.difference(held):  # a view would go through all of them
                        held.update(self._execute(_VALUES.format(table=table.name), (str([*new]),)))
                    rows = [*zip(map(held.__getitem__, numbers))]
                else:
                    rows = self._execute(sql, given).fetchall()
            found.append(_read(table, wanted, rows))
        return found

    def count(self, counts: Sequence[Count]) -> list[list[tuple[Any, ...]]]:
        return [self._count(one) for one in counts]

    def _count(self, asked: Count) -> list[tuple[Any, ...]]:
        if is_empty(asked.where):
            return []
        by = [f'n."{column}"' for column in asked.by]
        sums = [f'sum(n."{column}")' for column in asked.sums]
        where = form_of(asked.where)
        # A range leaves few rows to group; an index in the order of the groups reads all.
        is_ranged = any(how in RANGES for _, how in where)
        order = () if is_ranged else tuple(asked.by)
        index = _index(asked.table, where, order) if where else None
        hint = _hint(where, index)
        sql = (
            f"SELECT {', '.join([*by, 'count(*)', *sums])} FROM {asked.table.name} n{hint} "
            f"WHERE {_condition(asked.table, where, index)}"
        )
        if by:
            listed = ", ".join(by)
            sql += f" GROUP BY {listed} ORDER BY count(*) DESC, {listed} LIMIT :most"
        most = -1 if asked.limit is None else asked.limit
        rows = self._execute(sql, {**self._parameters(asked.where), "most": most}).fetchall()
        return [] if not by and not rows[0][0] else _read(asked.table, asked.by, rows)

    def search(
        self,
        table: Table,
        weights: Mapping[str, int],
        where: Where,
        limit: int,
        order: Sequence[str] = (),
    ) -> list[tuple[str, int]]:
        if not weights or limit < 1 or is_empty(where):
            return []
        places: list[str] | None = None
        rest = []
        for term in where:
            if term.column == table.scope and term.how in (Is.EQUAL, Is.IN) and places is None:
                values = [term.value] if term.how is Is.EQUAL else term.value
                places = [_place_token(self._tenant, value) for value in values]
            else:
                rest.append(term)
        is_named = any(term.how in (Is.EQUAL, Is.IN) for term in rest)
        few = self._few(table, where, _ROWS_OF_WORD * len(weights)) if is_named else None
        counts = (
            self._heaviest(table, weights, places, rest, limit)
            if few is None
            else self._heaviest_of(table, weights, few, limit)
        )
        return self._first(table, counts, order, limit)

    def _few(self, table: Table, where: Where, most: int) -> list[int] | None:
        """Return the rows that fulfil *where*; None if there are more than *most*."""
        form = form_of(where)
        index = _index(table, form, ())
        found = self._execute(
            f"SELECT n.rowid FROM {table.name} n{_hint(form, index)} "
            f"WHERE {_condition(table, form, index)} LIMIT :most",
            {**self._parameters(where), "most": most + 1},
        ).fetchall()
        return None if len(found) > most else [row for (row,) in found]

    def _heaviest_of(
        self, table: Table, weights: Mapping[str, int], rows: Iterable[int], limit: int
    ) -> dict[int, int]:
        """Return what `_heaviest` does, of these *rows*: what they have is read, not the index."""
        counts = dict.fromkeys(rows, 0)
        self._add_rest(table, counts, weights)
        counts = {row: known for row, known in counts.items() if known}
        least = _least(counts, limit)
        return {row: known for row, known in counts.items() if known >= least}

    def _heaviest(
        self,
        table: Table,
        weights: Mapping[str, int],
        places: Sequence[str] | None,
        where: Where,
        limit: int,
    ) -> dict[int, int]:
        """Return the rows with the most weight, and all that tie with the last: row -> weight."""
        named = " OR ".join(f'"{place}"' for place in places or ())
        scope = "" if places is None else f"({named}) AND "
        sql = f"SELECT rowid FROM {table.name}_words WHERE {table.name}_words MATCH ?"
        counts: dict[int, int] = {}
        rest = dict(sorted(weights.items(), key=lambda one: -one[1]))
        for word, weight in [*rest.items()]:
            left = sum(rest.values())
            # Which of them fulfil other conditions is known only in the end.
            if not where and (least := _least(counts, limit)):
                counts = {row: known for row, known in counts.items() if known + left >= least}
                if least > left and len(counts) <= _READ_WHOLE:
                    self._add_rest(table, counts, rest)  # no other row comes near
                    break
            for row in self._numbers(sql, (f'{scope}"{_token(self._tenant, word)}"',)):
                counts[row] = counts.get(row, 0) + weight
            del rest[word]
        if where:
            counts = {row: counts[row] for row in self._fitting(table, counts, where)}
        least = _least(counts, limit)
        return {row: known for row, known in counts.items() if known >= least}

    def _fitting(self, table: Table, rows: Iterable[int], where: Where) -> list[int]:
        found = self._execute(
            f"SELECT n.rowid FROM json_each(:named) named CROSS JOIN {table.name} n "
            f"ON n.rowid = named.value WHERE {_condition(table, form_of(where))}",
            {"named": str([*rows]), **self._parameters(where)},
        )
        return [row for (row,) in found]

    def _add_rest(self, table: Table, counts: dict[int, int], weights: Mapping[str, int]) -> None:
        """Add to the weight of each row the weights of the words that it has."""
        tokens = {_token(self._tenant, word): weight for word, weight in weights.items()}
        texts = self._execute(
            f"SELECT rowid, words FROM {table.name}_words "
            "WHERE rowid IN (SELECT value FROM json_each(?))",
            (str([*counts]),),
        )
        for row, text in texts:
            counts[row] += sum(tokens[token] for token in tokens.keys() & text.split())

    def _first(
        self, table: Table, counts: Mapping[int, int], order: Sequence[str], limit: int
    ) -> list[tuple[str, int]]:
        """Return the keys of the heaviest rows, ties in their *order*.

        Fewer than *limit* are heavier than the lightest.
        """
        least = min(counts.values(), default=0)
        sql = (
            f"SELECT n.rowid, n.key FROM json_each(?) named CROSS JOIN {table.name} n "
            f"ON n.rowid = named.value ORDER BY {_order(order)} LIMIT ?"
        )
        first: list[tuple[str, int]] = []
        for rows in (
            [row for row, weight in counts.items() if weight > least],
            [row for row, weight in counts.items() if weight == least],
        ):
            found = self._execute(sql, (str(rows), limit - len(first))) if rows else ()
            first += sorted(((key, counts[row]) for row, key in found), key=lambda one: -one[1])
        return first

    def word_counts(self, table: Table, words: Sequence[str]) -> WordCounts:
        known = self._known.counted.setdefault(table.name, {})
        if None not in known:
            groups = self._count(Count(table, ()))
            known[None] = groups[0][0] if groups else 0
        new = {_token(self._tenant, word): word for word in words if word not in known}
        if new:
            found = self._execute(
                f"SELECT v.term, v.doc FROM json_each(?) named "
                f"CROSS JOIN {table.name}_vocabulary v ON v.term = named.value",
                (_given([*new]),),
            )
            known.update(dict.fromkeys(new.values(), 0))
            known.update({new[term]: count for term, count in found})
        return WordCounts(known[None], {word: known[word] for word in words})

    def vectors(self, table: Table, space: str, keys: Iterable[str]) -> dict[str, Vector | None]:
        found = self._execute(
            f"SELECT n.key, v.data FROM json_each(?) named CROSS JOIN {table.name} n "
            "ON n.tenant = ? AND n.key = named.value CROSS JOIN vector v "
            "ON v.name = ? AND v.owner = n.rowid AND v.space = ?",
            (_given([*keys]), self._tenant, table.name, space),
        )
        read = partial(Vector.of_coarse if table.is_coarse else Vector, space)
        return {key: None if data is None else read(data) for key, data in found}

    def nearest(
        self, table: Table, vectors: Sequence[Vector], where: Where, limit: int
    ) -> list[dict[str, float]]:
        if limit < 1 or is_empty(where):
            return [{} for _ in vectors]
        form = form_of(where)
        index = _index(table, form, ()) if where else None
        hint = _hint(form, index)
        owners = None
        if where:
            owners = self._numbers(
                f"SELECT n.rowid FROM {table.name} n{hint} WHERE {_condition(table, form, index)}",
                self._parameters(where),
            )
        matrix = self._port.matrix(table, vectors[0].space)
        of = (self._connection, self._tenant, self._revision)
        found = matrix.nearest(*of, vectors, owners, limit)
        return [self._named(table, near, limit) for near in found]

    def _named(
        self, table: Table, near: Sequence[tuple[int, float]], limit: int
    ) -> dict[str, float]:
        """Return the first of *near* by their keys, which break ties."""
        cosines = dict(near)
        found = self._execute(
            f"SELECT n.rowid, n.key FROM json_each(?) named "
            f"CROSS JOIN {table.name} n ON n.rowid = named.value",
            (str([*cosines]),),
        )
        named = sorted(((-cosines[row], key) for row, key in found))
        return {key: -cosine for cosine, key in named[:limit]}

    def revision(self) -> int:
        return self._revision

    def put(self, rows: Iterable[Row]) -> None:
        by_table: dict[Table, dict[str, Row]] = {}
        for row in rows:
            by_table.setdefault(row.table, {})[row.key] = row
        if by_table:
            self._note_change()
        for table, own in by_table.items():
            self._put(table, [*own.values()])

    def _put(self, table: Table, rows: Sequence[Row]) -> None:
        names, several = _single(table), several_of(table)
        has_texts = bool(several) or table.scope is not None
        ((last,),) = self._execute(_LAST.format(table=table.name)) if has_texts else ((0,),)
        self._connection.executemany(
            _insertion(table, names),
            [
                (
                    self._tenant,
                    row.key,
                    *((row.source, row.target) if table.ends else ()),
                    *[
                        moment(value) if isinstance(value, datetime) else value
                        for value in map(row.columns.__getitem__, names)
                    ],
                    row.value,
                )
                for row in rows
            ],
        )
        if has_texts:
            self._put_texts(table, rows, last)

    def _put_texts(self, table: Table, rows: Sequence[Row], last: int) -> None:
        """Put the words of *rows*, and their columns of several texts; *last* were there before."""
        named = _given([row.key for row in rows])
        rowids = dict(self._execute(_named(table, "n.key, n.rowid"), (named, self._tenant)))
        if before := [rowid for rowid in rowids.values() if rowid <= last]:
            self._forget_texts(table, before)
        for name in several_of(table):
            self._connection.executemany(
                f"INSERT INTO {table.name}_{name} VALUES (?, ?, ?)",
                [
                    (self._tenant, text, rowids[row.key])
                    for row in rows
                    for text in row.columns[name]  # type: ignore[union-attr]
                ],
            )
        if table.scope:
            scopes = [row.columns[table.scope] for row in rows]
            places = {scope: _place_token(self._tenant, scope) for scope in {*scopes}}
            documents = [
                (rowids[row.key], f"{_document(self._tenant, row.words)} {places[scope]}")
                for row, scope in zip(rows, scopes, strict=True)
            ]
            self._connection.executemany(
                f"INSERT INTO {table.name}_words (rowid, words) VALUES (?, ?)", documents
            )

    def _forget_texts(self, table: Table, rows: Sequence[int]) -> None:
        """Delete the words of *rows* and what they have in columns of several texts."""
        named = (str([*rows]),)
        for name in several_of(table):
            self._execute(
                f"DELETE FROM {table.name}_{name} WHERE owner IN (SELECT value FROM json_each(?))",
                named,
            )
        if table.scope:
            self._execute(
                f"DELETE FROM {table.name}_words WHERE rowid IN (SELECT value FROM json_each(?))",
                named,
            )

    def delete(self, table: Table, keys: Iterable[str]) -> int:
        named = sorted({*keys})
        if not named:
            return 0
        found = self._execute(
            _named(table, "n.rowid, n.key"), (_given(named), self._tenant)
        ).fetchall()
        if not found:
            return 0
        known = [key for _, key in found]
        self._note_change()
        if not table.ends:
            for edges in self._port.tables:
                for end, name in zip(edges.ends or (), (SOURCE, TARGET), strict=False):
                    if end is table:
                        self._delete_edges(edges, name, known)
        rowids = [(row,) for row, _ in found]
        self._connection.executemany(
            "DELETE FROM vector WHERE name = ? AND owner = ?",
            [(table.name, row) for (row,) in rowids],
        )
        self._forget_texts(table, [row for (row,) in rowids])
        self._connection.executemany(f"DELETE FROM {table.name} WHERE rowid = ?", rowids)
        return len(known)

    def _delete_edges(self, edges: Table, end: str, keys: Sequence[str]) -> None:
        found = self._execute(
            f"SELECT n.key FROM {edges.name} n INDEXED BY {index_name(edges, _of_end(edges, end))} "
            f"WHERE n.tenant = ? AND n.{end} IN (SELECT value FROM json_each(?))",
            (self._tenant, _given(keys)),
        ).fetchall()
        self.delete(edges, [key for (key,) in found])

    def _note_change(self) -> None:
        self._known = _Known(self._revision, {}, {})
        self.has_changed = True

    def count_change(self) -> None:
        """Count this change, and merge the full-text indexes from time to time."""
        self._execute(
            "UPDATE tenant SET revision = ? WHERE key = ?", (self._revision, self._tenant)
        )
        if self._revision % MERGED_EVERY == 0:
            # Each change adds a segment to the full-text indexes.
            for name in [f"{table.name}_words" for table in self._port.tables if table.scope]:
                sql = f"INSERT INTO {name} ({name}, rank) VALUES (?, ?)"
                self._connection.executemany(sql, (("usermerge", 2), ("merge", _MERGED_AT_ONCE)))

    def erase(self) -> None:
        """Remove what is left of deleted rows: their words and checksums."""
        self._execute("DELETE FROM checksum WHERE value = 0")
        for table in self._port.tables:
            name = f"{table.name}_words"
            if table.scope:
                self._execute(f"INSERT INTO {name} ({name}) VALUES ('optimize')")

    def put_vectors(self, table: Table, space: str, vectors: Mapping[str, Vector | None]) -> None:
        self.has_changed = True
        for key, vector in vectors.items():
            data = vector and (vector.coarse_data() if table.is_coarse else vector.data)
            self._execute(
                "INSERT OR REPLACE INTO vector (tenant, name, owner, space, data) "
                f"SELECT ?, ?, n.rowid, ?, ? FROM {table.name} n "
                "WHERE n.tenant = ? AND n.key = ?",
                (self._tenant, table.name, space, data, self._tenant, key),
            )

    def drop_vectors(self, table: Table, keys: Iterable[str] | None, keep: str = "") -> None:
        named = None if keys is None else [*keys]
        if named == []:
            return
        self.has_changed = True
        within = (
            ""
            if named is None
            else f"AND owner IN (SELECT n.rowid FROM json_each(:keys) named CROSS JOIN "
            f"{table.name} n ON n.tenant = :tenant AND n.key = named.value)"
        )
        self._execute(
            f"DELETE FROM vector WHERE name = :table AND tenant = :tenant "
            f"AND space <> :keep {within}",
            {
                "table": table.name, "tenant": self._tenant, "keep": keep,
                "keys": None if named is None else _given(named),
            },
        )  # fmt: skip


def _named(table: Table, wanted: str) -> str:
    """Return SQL for columns of the rows whose keys are given as JSON, before the tenant."""
    return (
        f"SELECT {wanted} FROM json_each(?) named CROSS JOIN {table.name} n "
        "ON n.tenant = ? AND n.key = named.value"
    )


def _of_end(edges: Table, end: str) -> Sequence[str]:
    """Return an index of *edges* that begins with this end."""
    return next(index for index in edges.indexes if index[0] == end)


@lru_cache(100)
def _single(table: Table) -> tuple[str, ...]:
    """Return the columns of *table* that have one value."""
    return tuple(name for name, kind in table.columns.items() if kind is not tuple)


@lru_cache(100)
def _insertion(table: Table, names: tuple[str, ...]) -> str:
    ends = ("source", "target") if table.ends else ()
    columns = ("tenant", "key", *ends, *names, "value")
    listed = ", ".join(f'"{column}"' for column in columns)
    places = ", ".join("?" * len(columns))
    updated = ", ".join(f'"{column}" = excluded."{column}"' for column in columns[2:])
    return (
        f"INSERT INTO {table.name} ({listed}) VALUES ({places}) "
        f"ON CONFLICT (tenant, key) DO UPDATE SET {updated}"
    )


def _least(counts: Mapping[int, int], limit: int) -> int:
    """Return the weight of the row at place *limit*, 0 where there are no so many."""
    return sorted(counts.values())[-limit] if len(counts) >= limit else 0


def _read(
    table: Table, wanted: Sequence[str], rows: list[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    forms = [
        (place, time_of if kind is datetime else bool)
        for place, name in enumerate(wanted)
        if (kind := table.columns.get(name)) in (datetime, bool)
    ]
    if not forms:
        return rows
    read = [list(row) for row in rows]
    for row in read:
        for place, form in forms:
            if row[place] is not None:
                row[place] = form(row[place])
    return [tuple(row) for row in read]


class _Snapshot(local):
    """The rows of the snapshot that a thread is in."""

    rows: _Rows | None = None


class SqlitePort:
    """A `Port` in the file *path*; the docstrings of its methods are those of the protocol."""

    def __init__(
        self,
        path: str,
        tables: Sequence[Table],
        tenant: str = "default",
        *,
        read_only: bool = False,
        create: bool = True,
    ) -> None:
        self.tenant, self.tables = tenant, tables
        self._connections = Connections(path, Schema(tables), read_only=read_only, create=create)
        self._process = os.getpid()
        self._snapshot = _Snapshot()
        self._matrices: dict[tuple[str, str], Matrix] = {}
        self._known = _Known(-1, {}, {})

    def matrix(self, table: Table, space: str) -> Matrix:
        """Return the vectors of a table in a space that this process has read."""
        known = self._matrices.get((table.name, space))
        if known is None:
            known = Matrix(table, space, dimensions_of(space))
            self._matrices = {
                **{name: one for name, one in self._matrices.items() if name[0] != table.name},
                (table.name, space): known,
            }
        return known

    @contextmanager
    def _reading(self) -> Iterator[_Rows]:
        if self._process != os.getpid():
            self._process, self._snapshot, self._matrices = os.getpid(), _Snapshot(), {}
        if self._snapshot.rows is not None:
            yield self._snapshot.rows
            return
        with self._connections.reading() as connection:
            tenant, revision = _tenant(connection, self.tenant)
            known = self._known
            if (
                known.revision != revision
                or sum(map(len, known.counted.values())) > _MOST_COUNTED
                or sum(map(len, known.held.values())) > _MOST_HELD
            ):
                known = self._known = _Known(revision, {}, {})
            yield _Rows(connection, tenant, self, known)

    def find(self, questions: Sequence[Question]) -> list[list[tuple[Any, ...]]]:
        with self._reading() as rows:
            return rows.find(questions)

    def count(self, counts: Sequence[Count]) -> list[list[tuple[Any, ...]]]:
        with self._reading() as rows:
            return rows.count(counts)

    def search(
        self,
        table: Table,
        weights: Mapping[str, int],
        where: Where,
        limit: int,
        order: Sequence[str] = (),
    ) -> list[tuple[str, int]]:
        with self._reading() as rows:
            return rows.search(table, weights, where, limit, order)

    def word_counts(self, table: Table, words: Sequence[str]) -> WordCounts:
        with self._reading() as rows:
            return rows.word_counts(table, words)

    def vectors(self, table: Table, space: str, keys: Iterable[str]) -> dict[str, Vector | None]:
        with self._reading() as rows:
            return rows.vectors(table, space, keys)

    def nearest(
        self, table: Table, vectors: Sequence[Vector], where: Where, limit: int
    ) -> list[dict[str, float]]:
        with self._reading() as rows:
            return rows.nearest(table, vectors, where, limit)

    def revision(self) -> int:
        with self._reading() as rows:
            return rows.revision()

    def write(self, work: Callable[[_Rows], Result], *, erasing: bool = False) -> Result:
        if self._snapshot.rows is not None:
            raise StoreError("nothing can be written within a snapshot; write when it has ended")
        with self._connections.writing() as connection:
            tenant, revision = _tenant(connection, self.tenant)
            if not tenant:
                connection.execute(
                    "INSERT INTO tenant (name, revision) VALUES (?, 0)", (self.tenant,)
                )
                tenant, revision = _tenant(connection, self.tenant)
            rows = _Rows(connection, tenant, self, _Known(revision + 1, {}, {}))
            result = work(rows)
            if rows.has_changed:
                rows.count_change()
            if rows.has_changed and erasing:
                rows.erase()
        if erasing:
            self._connections.empty_log()
        return result

    def read(self, work: Callable[[], Result]) -> Result:
        if self._snapshot.rows is not None:
            return work()
        with self.snapshot():
            return work()

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        with self._reading() as rows:
            before, self._snapshot.rows = self._snapshot.rows, rows
            try:
                yield
            finally:
                self._snapshot.rows = before

    def health(self, *, quick: bool = False) -> Sequence[HealthCheck]:
        return tuple(checks(self._connections, THOROUGH if quick else ()))

    def back_up(self, path: Path) -> None:
        self._connections.back_up(path)

    def erase_deleted(self) -> None:
        def work(rows: _Rows) -> None:
            rows.erase()

        self.write(work)
        self._connections.rewrite()

    def close(self) -> None:
        self._connections.close()


def _tenant(connection: sqlite3.Connection, name: str) -> tuple[int, int]:
    row = connection.execute("SELECT key, revision FROM tenant WHERE name = ?", (name,)).fetchone()
    return (0, 0) if row is None else (row[0], row[1])


class SqliteStore(Store):
    """A `Store` in the file *path*, or in memory for ``:memory:``.

    Nothing is opened until first used. Threads and processes may share it. With *read_only*, or
    without *create*, a memory that does not exist is not created: the first use raises
    `MemoryNotFoundError`.
    """

    def __init__(
        self,
        path: str,
        tenant: str = "default",
        read_only: bool = False,
        create: bool = True,
    ) -> None:
        super().__init__(SqlitePort(str(path), TABLES, tenant, read_only=read_only, create=create))

"""The primitives of `store.port` on a Neo4j server: rows are nodes and relations.

The words of a row are a property with a full-text index, its vectors a property for each space, its
columns of several texts nodes of their own where a declaration says so. A transaction locks the
memory.
"""

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

from contextgraph.errors import StoreError, StoreUnavailableError
from contextgraph.model import (
    COSINE_DECIMALS,
    HealthCheck,
    Vector,
    WordCounts,
    dimensions_of,
    rounded_cosine,
)
from contextgraph.model.values import batched
from contextgraph.store.neo4j import statements
from contextgraph.store.neo4j.connection import BEGIN, Connection, Parameters, Transaction
from contextgraph.store.neo4j.health import checks
from contextgraph.store.neo4j.schema import (
    PROPERTIES,
    Schema,
    has_vector_index,
    vector_index,
    vector_property,
)
from contextgraph.store.port import (
    THOROUGH,
    VALUE,
    Count,
    Is,
    Question,
    Row,
    Table,
    Where,
    form_of,
    is_empty,
)

Result = TypeVar("Result")
_ROWS_AT_ONCE = 1_000
# Larger transactions with vectors need more memory on the server and are no faster.
_VECTORS_AT_ONCE = 500
# A reading that meets rows which are being deleted is repeated so often.
_READINGS = 10
# So many rows are all compared with a vector: a millisecond for five.
MAX_COMPARED, _ALL = 1_000, 2**53
# An index is searched for more than the limit: it misses some, and has rows of other scopes.
_NEAREST = (1_000, 4_000)
# The server plans its statements again when a memory has changed so often: plans made for a nearly
# empty memory read a whole index for each lookup.
_REPLANNED_AT = frozenset(4**power for power in range(2, 14))
# What the driver takes as it is.
_PLAIN = frozenset({str, bytes, bool, int, float, type(None)})


class _Put(NamedTuple):
    """Rows to put by a statement, which *text* returns as number *place* of a call."""

    text: Callable[[int], str]
    rows: Sequence[Mapping[str, Any]]
    is_edges: bool = False


class _SlotNeeded(Exception):  # noqa: N818  (not an error)
    """A transaction needs a property for vectors that has no index yet."""

    def __init__(self, table: Table, property_: str) -> None:
        self.table, self.property = table, property_


def _value(value: Any) -> Any:
    """Return *value* as the driver takes it; raises `StoreError` for a time without zone."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise StoreError(f"time {value.isoformat()} has no time zone")
        return value.astimezone(UTC)
    return [_value(one) for one in value]


def _text(time: Any) -> str | None:
    """Return a time in UTC as the server reads it."""
    utc = _value(time)
    return None if utc is None else utc.isoformat()


def _data(numbers: Sequence[float]) -> bytes:
    import numpy as np

    return np.asarray(numbers, dtype="<f4").tobytes()


def _rounded(asked: Vector, key: str, cosine: float, numbers: Sequence[float] | None) -> float:
    """Return the cosine of a row, whose *numbers* were read where it is undecided."""
    if numbers is None:
        return round(cosine, COSINE_DECIMALS)
    return rounded_cosine(asked, Vector(asked.space, _data(numbers)), cosine)


def _parameters(where: Where) -> dict[str, Any]:
    return {f"w{place}": _value(term.value) for place, term in enumerate(where)}


@lru_cache(1_000)
def _owner(tenant: str, scope: object) -> str:
    """Return the word that only rows of *tenant* have, or only those in *scope* of it.

    No word of a text has a ``@``, and what is quoted has no space.
    """
    return f"@{quote(tenant, safe='')}" + (
        "" if scope is None else f"@{quote(str(scope), safe='')}"
    )


def _quoted(tenant: str, scopes: Iterable[object], word: str) -> str:
    """Return *word* in the syntax of Lucene; no word and no owner has a quotation mark."""
    owners = " OR ".join(f'"{_owner(tenant, scope)}"' for scope in scopes)
    return f'({owners}) AND "{word}"'


class _Reading:
    """Primitives that read, by some way of running a statement."""

    def __init__(self, tenant: str, schema: Schema) -> None:
        self.tenant, self._schema = tenant, schema

    def run(self, text: str, parameters: Parameters) -> Sequence[Mapping[str, Any]]:
        """Return the rows of a statement."""
        raise NotImplementedError

    def _rows(self, text: str, **parameters: object) -> Sequence[Mapping[str, Any]]:
        return self.run(text, {"tenant": self.tenant, **parameters})

    def _found(self, text: str, **parameters: object) -> list[Any]:
        """Return the list `found` of the only row: a row costs the driver as much as 100 values."""
        rows = self._rows(text, **parameters)
        return [value for row in rows for value in row["found"]]

    def _answers(
        self, texts: Sequence[str], parameters: Mapping[str, object]
    ) -> Iterator[tuple[int, list[Any]]]:
        """Yield the numbers and answers of several texts, which take one round trip.

        The last deletion is noted before they are read, it and the last change afterwards.
        """
        # No row where nothing was ever written.
        for row in self._rows(statements.together(texts), **parameters):
            self._saw({row["before"], row["removed_at"]}, row["revision"])
            yield from row["found"]

    def _saw(self, removed_at: set[int], revision: int) -> None:
        """Note the revisions of the last deletions and the last change at an answer."""

    def _property(self, table: Table, space: str) -> str | None:
        """Return the property for vectors of *table* in *space*."""
        known = self._rows(statements.SLOTS, table=table.name)
        return next((row["property"] for row in known if row["space"] == space), None)

    def find(self, questions: Sequence[Question]) -> list[list[tuple[Any, ...]]]:
        for _ in range(_READINGS):
            answers = self._find(questions)
            if answers is not None:
                return answers
        raise StoreUnavailableError(
            f"the memory is being changed: {_READINGS} readings met what was just deleted",
            "try again",
        )

    def _find(self, questions: Sequence[Question]) -> list[list[tuple[Any, ...]]] | None:
        """Return the rows of each question; None where one was being deleted."""
        forms: dict[Any, list[dict[str, Any]]] = {}
        answers: list[list[tuple[Any, ...]]] = [[] for _ in questions]
        for number, question in enumerate(questions):
            if question.limit == 0 or is_empty(question.where):
                continue
            where = question.where
            form = (
                question.table,
                form_of(where),
                tuple(question.order),
                tuple(question.wanted),
                question.limit,
            )
            forms.setdefault(form, []).append({"number": number, **_parameters(where)})
        # In one order, whatever the questions': the server plans each text. So it does for each
        # number of values in a parameter, but not in a list of lists.
        ordered = sorted(forms.items(), key=lambda one: repr((one[0][0].name, one[0][1:])))
        texts, parameters = [], dict[str, object](asked=[asked for _, asked in ordered])
        for place, (table, where, order, wanted, limit) in enumerate(form for form, _ in ordered):
            texts.append(statements.found(table, where, order, wanted, place, limit is not None))
            if limit is not None:
                parameters[f"limit{place}"] = limit
        if not texts:
            return answers
        for number, found in self._answers(texts, parameters):
            question = questions[number]
            read = _read(question.table, question.wanted, found)
            if read is None:
                return None
            answers[number] = read
        return answers

    def count(self, counts: Sequence[Count]) -> list[list[tuple[Any, ...]]]:
        answers = self._count(counts)
        # A group without a value may be of a row that was being deleted.
        for _ in range(_READINGS):
            if not any(None in group for groups in answers for group in groups):
                return answers
            before, answers = answers, self._count(counts)
            if before == answers:
                return answers
        raise StoreUnavailableError("the memory is being changed", "try again")

    def _count(self, counts: Sequence[Count]) -> list[list[tuple[Any, ...]]]:
        given = [_parameters(asked.where) for asked in counts]
        texts, parameters = [], dict[str, object](asked=given)
        answers: list[list[tuple[Any, ...]]] = [[] for _ in counts]
        for place, asked in enumerate(counts):
            if is_empty(asked.where):
                continue
            where = asked.where
            is_limited = asked.limit is not None
            texts.append(
                statements.counted(
                    asked.table,
                    form_of(where),
                    tuple(asked.by),
                    tuple(asked.sums),
                    place,
                    is_limited,
                )
            )
            parameters[f"limit{place}"] = asked.limit
        if not texts:
            return answers
        for number, found in self._answers(texts, parameters):
            asked = counts[number]
            groups = _read(asked.table, asked.by, found, is_checked=False) or []
            is_none = not asked.by and groups == [(0, *[0] * len(asked.sums))]
            answers[number] = [] if is_none else groups
        return answers

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
        scopes: Sequence[object] = [None]
        for term in where:
            if term.column == table.scope and term.how in (Is.EQUAL, Is.IN):
                scopes = [term.value] if term.how is Is.EQUAL else term.value
        words = [
            {"weight": weight, "query": _quoted(self.tenant, scopes, word)}
            for word, weight in weights.items()
        ]
        text = statements.searched(table, form_of(where), tuple(order))
        found = self._found(text, q=_parameters(where), words=words, limit=limit)
        return [(key, weight) for key, weight in found]

    def word_counts(self, table: Table, words: Sequence[str]) -> WordCounts:
        asked = [{"word": word, "query": _quoted(self.tenant, [None], word)} for word in words]
        texts = [statements.counted(table, (), (), (), 0, is_limited=False)]
        texts += [statements.words_counted(table, 1)] if asked else []
        given: dict[str, object] = {"asked": [{}], "words": asked}
        answers = dict(self._answers(texts, given))
        ((total,),), counted = answers.get(0, [[0]]), dict(answers.get(1, ()))
        return WordCounts(total, {word: counted.get(word, 0) for word in words})

    def vectors(self, table: Table, space: str, keys: Iterable[str]) -> dict[str, Vector | None]:
        named = [*keys]
        text = statements.vectors_of(table)
        found = self._found(text, table=table.name, space=space, keys=named) if named else []
        return {
            key: None if numbers is None else Vector(space, _data(numbers))
            for key, numbers in found
        }

    def nearest(
        self, table: Table, vectors: Sequence[Vector], where: Where, limit: int
    ) -> list[dict[str, float]]:
        space = vectors[0].space
        if limit < 1 or is_empty(where):
            return [{} for _ in vectors]
        given: dict[str, Any] = {
            "q": _parameters(where), "limit": limit, "table": table.name, "space": space,
        }  # fmt: skip
        exact = statements.nearest(table, form_of(where))
        most = MAX_COMPARED if has_vector_index(table) else _ALL
        if found := self._near(exact, vectors, most=most, **given):
            return found
        property_ = self._property(table, space)
        if property_ is None:
            return [{} for _ in vectors]
        text = statements.nearest_by_index(table, form_of(where), property_)
        index = vector_index(table.label, property_)
        for nearest in _NEAREST:
            most = max(nearest, limit)
            found = self._near(text, vectors, index=index, nearest=most, **given)
            if all(len(near) >= limit for near in found):
                return found
        return self._near(exact, vectors, most=_ALL, **given)

    def _near(self, text: str, vectors: Sequence[Vector], **given: Any) -> list[dict[str, float]]:
        """Return the nearest that *text* finds; nothing where it compares none."""
        numbers = [vector.numbers().tolist() for vector in vectors]
        rows = self._rows(text, vectors=numbers, **given)
        near: list[dict[str, float]] = [{} for _ in vectors if rows]
        for row in rows:
            asked = vectors[row["number"]]
            rounded = sorted((-_rounded(asked, *found), found[0]) for found in row["found"])
            near[row["number"]] = {key: -cosine for cosine, key in rounded}
        return near

    def revision(self) -> int:
        rows = self._rows(statements.REVISION)
        return rows[0]["revision"] if rows else 0


def _read(
    table: Table,
    wanted: Sequence[str],
    found: Sequence[list[Any]],
    is_checked: bool = True,
) -> list[tuple[Any, ...]] | None:
    """Return rows as Python has their values; None where one was being deleted."""
    if is_checked and statements.is_checked(wanted):
        if not all(row.pop() for row in found):
            return None
    elif is_checked and any(None in row for row in found):
        return None
    times = [place for place, name in enumerate(wanted) if table.columns.get(name) is datetime]
    lists = [place for place, name in enumerate(wanted) if table.columns.get(name) is tuple]
    for row in found:
        for place in times:
            row[place] = row[place] and row[place].to_native().astimezone(UTC)
        for place in lists:
            row[place] = tuple(row[place])
    return [tuple(row) for row in found]


class _Writing(_Reading):
    """Primitives in a transaction."""

    def __init__(self, transaction: Transaction, tenant: str, schema: Schema) -> None:
        super().__init__(tenant, schema)
        self._transaction = transaction
        self.has_changed = False
        self._has_removed = False
        (row,) = self._rows(BEGIN)
        self._revision: int = row["revision"] + 1

    def run(self, text: str, parameters: Parameters) -> Sequence[Mapping[str, Any]]:
        return self._transaction.run(text, parameters)

    def revision(self) -> int:
        return self._revision

    def put(self, rows: Iterable[Row]) -> None:
        by_table: dict[Table, dict[str, Row]] = {}
        for row in rows:
            by_table.setdefault(row.table, {})[row.key] = row
        known = self._known_nodes(by_table)
        known |= self._known_edges(by_table, known)
        nodes, relations = list[_Put](), list[_Put]()
        self.has_changed |= bool(by_table)
        for table, own in sorted(by_table.items(), key=lambda one: _place(one[0])):
            self._forget_relations(table, sorted(known.get(table, ())))
            given = [self._given(own[key]) for key in sorted(own)]
            put = _Put(partial(statements.put, table), given, is_edges=table.ends is not None)
            (relations if table.ends else nodes).append(put)
            relations += _listed(table, own)
        for table, own in by_table.items():
            relations += _drawn(table, own)
        self._put(nodes)
        for table, own in by_table.items():
            if labels := [
                {"id": key, "labels": [*own[key].labels]} for key in own if own[key].labels
            ]:
                self._rows(statements.labelled(table), rows=labels)
        self._put(relations)

    def _put(self, puts: Sequence[_Put]) -> None:
        """Put all rows, those of several statements in one round trip."""
        batches = [[*batched(put.rows, _ROWS_AT_ONCE)] for put in puts]
        # One text for each set of statements, also where some have no rows: the server plans it.
        text = "\nUNION ALL\n".join(put.text(place) for place, put in enumerate(puts))
        for turn in range(max(map(len, batches), default=0)):
            own = [batch[turn] if turn < len(batch) else [] for batch in batches]
            for row in self._rows(text, rows=own):
                lacking = len(own[row["number"]]) - row["put"]
                if lacking and puts[row["number"]].is_edges:
                    raise StoreError(f"{lacking} rows lead to what is not stored")

    def _forget_relations(self, table: Table, known: Sequence[str]) -> None:
        """Delete the edges *known*, or the relations that these nodes have drawn and listed."""
        for keys in batched(known, _ROWS_AT_ONCE):
            if table.ends:
                self._rows(statements.edges_deleted(table), keys=keys)
            if table.draws:
                self._rows(statements.undrawn(table), keys=keys)
            for column in table.listed:
                self._rows(statements.unlisted(table, column), keys=keys)

    def _known_nodes(self, rows: Mapping[Table, Mapping[str, Row]]) -> dict[Table, set[str]]:
        """Return the keys of stored nodes that may have relations which are to be replaced."""
        ends = {end for table in rows for end in table.ends or ()}
        return self._known(
            {
                table: [*own]
                for table, own in rows.items()
                if not table.ends and (table in ends or table.draws or table.listed)
            }
        )

    def _known_edges(
        self, rows: Mapping[Table, Mapping[str, Row]], nodes: Mapping[Table, set[str]]
    ) -> dict[Table, set[str]]:
        """Return the keys of stored edges: none leads from or to a node that is new."""
        asked: dict[Table, list[str]] = {}
        for table, own in rows.items():
            if table.ends:
                first, last = ({*rows.get(end, ())} - nodes.get(end, set()) for end in table.ends)
                asked[table] = [
                    key
                    for key, row in own.items()
                    if row.source not in first and row.target not in last
                ]
        return self._known({table: keys for table, keys in asked.items() if keys})

    def _known(self, keys: Mapping[Table, Sequence[str]]) -> dict[Table, set[str]]:
        """Return those of *keys* that are stored."""
        if not keys:
            return {}
        texts = [statements.known(table, place) for place, table in enumerate(keys)]
        found = self._rows("\nUNION ALL\n".join(texts), keys=[*keys.values()])
        tables = [*keys]
        return {tables[row["number"]]: {*row["found"]} for row in found}

    def _given(self, row: Row) -> dict[str, Any]:
        properties: dict[str, Any] = {**row.shown(), **row.columns, PROPERTIES[VALUE]: row.value}
        times = statements.times_of(row.table)
        of_columns = {name: _text(properties.pop(name)) for name in times}
        # Half of the time is spent here: a row has few values that the driver does not take.
        for name, value in properties.items():
            if type(value) not in _PLAIN:
                properties[name] = _value(value)
        if row.table.ends:
            properties |= {"source": row.source, "target": row.target}
        else:
            properties.setdefault("name", row.key)
        if row.table.scope:
            scope = row.columns[row.table.scope]
            owners = (_owner(self.tenant, None), _owner(self.tenant, scope))
            properties["words"] = " ".join((*owners, *dict.fromkeys(row.words)))
        return {
            "id": row.key, "source": row.source, "target": row.target, "properties": properties,
            "times": of_columns,
        }  # fmt: skip

    def delete(self, table: Table, keys: Iterable[str]) -> int:
        gone: list[str] = []
        for some in batched(sorted({*keys}), _ROWS_AT_ONCE):
            gone += self._delete(table, some)
        if gone:
            self.has_changed = self._has_removed = True
        return len(gone)

    def _delete(self, table: Table, keys: Sequence[str]) -> list[str]:
        if table.ends:
            return self._found(statements.edges_deleted(table), keys=keys)
        for column in table.listed:
            self._rows(statements.unlisted(table, column), keys=keys)
        return self._found(statements.nodes_deleted(table), keys=keys)

    def put_vectors(self, table: Table, space: str, vectors: Mapping[str, Vector | None]) -> None:
        self.has_changed = True
        property_ = self._property(table, space) or self._free_property(table, space)
        given = [
            {"id": key, "vector": vector and vector.numbers().tolist()}
            for key, vector in sorted(vectors.items())
        ]
        for some in batched(given, _VECTORS_AT_ONCE):
            self._rows(statements.vectors_put(table), rows=some, space=space, property=property_)

    def _free_property(self, table: Table, space: str) -> str:
        """Return the property for vectors in *space*, which no other space uses at this time."""
        taken = {
            row["property"]: row["space"] for row in self._rows(statements.SLOTS, table=table.name)
        }
        left = [
            other for other in taken.values()
            if not self._rows(statements.embedded_any(table), space=other)
        ]  # fmt: skip
        self._rows(statements.DROP_SLOTS, table=table.name, spaces=left)
        used = {property_ for property_, other in taken.items() if other not in left}
        names = (vector_property(dimensions_of(space), number) for number in count(1))
        free = next(name for name in names if name not in used)
        if has_vector_index(table) and not self._schema.has_vectors(table, free):
            raise _SlotNeeded(table, free)
        self._rows(statements.TAKE_SLOT, table=table.name, space=space, property=free)
        return free

    def drop_vectors(self, table: Table, keys: Iterable[str] | None, keep: str = "") -> None:
        named = None if keys is None else [*keys]
        if named == []:
            return
        self.has_changed = True
        text = statements.vectors_dropped(table, named is None)
        for row in self._rows(statements.SLOTS, table=table.name):
            if row["space"] == keep:
                continue
            self._rows(text, keys=named, space=row["space"], property=row["property"])
            if named is None:
                self._rows(statements.DROP_SLOTS, table=table.name, spaces=[row["space"]])

    def finish(self) -> None:
        """Count the change, where there was one."""
        if self.has_changed:
            self._rows(statements.COUNT_CHANGE, revision=self._revision, removed=self._has_removed)


def _listed(table: Table, rows: Mapping[str, Row]) -> Iterator[_Put]:
    """Yield how the columns of several texts of *rows* are put, as nodes of their own."""
    for column, listing in table.listed.items():
        texts = {
            key: [[text, dict(listing.shown(text))] for text in dict.fromkeys(_texts(row, column))]
            for key, row in sorted(rows.items())
        }
        given = [{"id": key, "texts": own} for key, own in texts.items() if own]
        yield _Put(partial(statements.listed, table, column), given)


def _drawn(table: Table, rows: Mapping[str, Row]) -> Iterator[_Put]:
    """Yield how the relations of *rows* are drawn."""
    drawn = [(one, key) for key, row in sorted(rows.items()) for one in row.drawn]
    assert table.draws or not drawn, f"{table.name} is not declared to draw"
    forms: dict[tuple[str, bool, bool], list[dict[str, Any]]] = {}
    for one, key in drawn:
        row = {"id": key, "other": one.key, "type": one.type, "properties": one.properties}
        form = (one.table.label, one.incoming, bool(one.properties))
        forms.setdefault(form, []).append(row)
    for form, given in sorted(forms.items(), key=lambda one: one[0]):
        yield _Put(partial(statements.drawn, table, *form), given)


def _place(table: Table) -> tuple[bool, bool, bool]:
    """Return by what tables are put in order: relations come after what they lead to.

    The nodes that were created first are the first that ``MATCH (n) RETURN n LIMIT 50`` shows: what
    makes a memory large first, values without a column, which are blobs, last.
    """
    return table.ends is not None, not table.is_sized, not table.columns


def _texts(row: Row, column: str) -> Sequence[str]:
    texts: Any = row.columns.get(column, ())
    return texts  # type: ignore[no-any-return]


class _Seen(threading.local):
    """The revisions of the last deletion that a thread saw in a reading.

    In nested snapshots, *depth* of them, also the *revision* that it saw last.
    """

    removed_at: set[int] | None = None
    depth = 0
    revision: int | None = None


class Neo4jPort(_Reading):
    """A `Port` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection) -> None:
        super().__init__(connection.tenant, connection.schema)
        self._connection = connection
        self._seen = _Seen()

    def run(self, text: str, parameters: Parameters) -> Sequence[Mapping[str, Any]]:
        return self._connection.run(text, parameters)

    def read(self, work: Callable[[], Result]) -> Result:
        """Return the result of *work*, repeated where something was deleted meanwhile."""
        with self.snapshot():
            for _ in range(_READINGS):
                seen = set[int]()
                before, self._seen.removed_at = self._seen.removed_at, seen
                try:
                    result = work()
                except LookupError:
                    if len(seen) <= 1:
                        raise
                    continue
                finally:
                    self._seen.removed_at = before
                    if before is not None:
                        before |= seen
                if len(seen) <= 1:
                    return result
        raise StoreUnavailableError(
            f"{self._connection.address} is being changed: {_READINGS} readings met what was just "
            "deleted",
            "try again",
        )

    def _saw(self, removed_at: set[int], revision: int) -> None:
        if self._seen.removed_at is not None:
            self._seen.removed_at |= removed_at
        if self._seen.depth:
            self._seen.revision = revision

    def revision(self) -> int:
        """Return the revision that the last answer of this snapshot had, which costs nothing."""
        seen = self._seen.revision
        return super().revision() if seen is None else seen

    def write(self, work: Callable[[_Writing], Result], *, erasing: bool = False) -> Result:
        def begun(transaction: Transaction) -> tuple[Result, int]:
            writing = _Writing(transaction, self.tenant, self._schema)
            result = work(writing)
            writing.finish()
            return result, writing.revision() if writing.has_changed else 0

        while True:
            try:
                result, revision = self._connection.write(begun)
                break
            except _SlotNeeded as needed:
                self._connection.create_vector_index(needed.table, needed.property)
        if revision in _REPLANNED_AT:
            self._connection.replan()
        return result

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        seen = self._seen
        with self._connection.snapshot():
            seen.depth += 1
            try:
                yield
            finally:
                seen.depth -= 1
                if not seen.depth:
                    seen.revision = None

    def health(self, *, quick: bool = False) -> Sequence[HealthCheck]:
        return tuple(checks(self._connection, THOROUGH if quick else ()))

    def back_up(self, path: Path) -> None:
        raise StoreError(
            f"{self._connection.address} is a server, which makes its own backups: see "
            "neo4j-admin database dump; contextgraph export writes a memory to a file"
        )

    def erase_deleted(self) -> None:
        """Deleted rows leave nothing that can be read."""

    def close(self) -> None:
        self._connection.close()

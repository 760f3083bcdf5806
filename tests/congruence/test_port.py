"""The primitives of all back ends give the same, for rows and questions drawn from declarations."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import sqrt
from random import Random
from typing import Any
from uuid import uuid4

import pytest
from hypothesis import Phase, given, settings, strategies as st

from contextgraph.errors import StoreError
from contextgraph.model import COSINE_DECIMALS, Vector, plain_cosines
from contextgraph.store.neo4j.connection import Connection
from contextgraph.store.neo4j.port import Neo4jPort
from contextgraph.store.neo4j.schema import Schema
from contextgraph.store.networkx import NetworkxPort
from contextgraph.store.port import (
    KEY,
    SOURCE,
    TARGET,
    VALUE,
    Count,
    Is,
    Port,
    Question,
    Reads,
    Row,
    Scalar,
    Table,
    Term,
    Transaction,
)
from contextgraph.store.sqlite.port import SqlitePort
from contextgraph.store.tables import TABLES
from tests.profiles import examples
from tests.server import Neo4jServer

BY_NAME = {table.name: table for table in TABLES}
KEYS = ("a", "b", "ü c", 'd"e', "f'g\\")
WORDS = ("cache", "parse", "überlauf", "日本語", "x86")
SPACES = ("test/one@3", "test/other@3")
VECTORS = tuple(
    Vector.of(SPACES[0], numbers)
    for numbers in ([1, 0, 0], [0, 1, 0], [0.6, 0.8, 0], [-1, 0, 0], [0.6, 0, 0.8])
)
START = datetime(2026, 3, 1, tzinfo=UTC)
VALUES: dict[type, Sequence[Any]] = {
    str: ("", "a", "b", "ü c", 'd"e'),
    int: (0, 1, 2, 7),
    float: (0.0, 0.5, 2.0),
    bool: (False, True),
    datetime: tuple(START + timedelta(hours=hours, microseconds=7) for hours in range(3)),
    tuple: (("core.py",), ("core.py", "naïve.py"), ('d"e',)),
}
COMPARED = {
    str: (Is.EQUAL, Is.IN, Is.NOT_IN, Is.ABOVE),
    int: (Is.EQUAL, Is.IN, Is.LEAST, Is.MOST, Is.ABOVE),
    float: (Is.EQUAL, Is.LEAST, Is.MOST),
    bool: (Is.EQUAL,),
    datetime: (Is.EQUAL, Is.LEAST, Is.MOST, Is.ABOVE),
    tuple: (Is.HAS, Is.HAS_ANY),
}


def in_a_file(_: pytest.FixtureRequest) -> Port:
    return SqlitePort(":memory:", TABLES)


def on_a_server(request: pytest.FixtureRequest) -> Port:
    server: Neo4jServer = request.getfixturevalue("neo4j_server")
    schema = Schema(TABLES)
    return Neo4jPort(Connection(server.uri, server.auth, uuid4().hex, schema, read_only=False))


def in_a_graph(_: pytest.FixtureRequest) -> Port:
    return NetworkxPort()


# Shrinking an example takes minutes on a server.
PHASES = (Phase.explicit, Phase.reuse, Phase.generate)
# Each with the number of examples: each form of a question is planned by a server.
BACK_ENDS = {"SQLite": (in_a_file, examples(2)), "Neo4j": (on_a_server, examples(0.2))}
ALL = {"networkx": in_a_graph, **{name: opened for name, (opened, _) in BACK_ENDS.items()}}
each_back_end = pytest.mark.parametrize("opened", ALL.values(), ids=ALL)


def ordering(table: Table) -> list[str]:
    """The columns that rows are ordered and grouped by: no row is without a value there."""
    named = {column.removeprefix("-") for index in table.indexes for column in index}
    return sorted(named - {KEY, SOURCE, TARGET})


def rows(table: Table) -> st.SearchStrategy[Row]:
    always = {*ordering(table), table.scope, *(table.part_of or ())}

    def value_of(name: str, kind: type) -> st.SearchStrategy[Scalar]:
        values = [*VALUES[kind]]
        optional = kind is not tuple and name not in always
        return st.sampled_from([*values, None] if optional else values)

    return st.builds(
        Row,
        st.just(table),
        st.sampled_from(KEYS),
        st.fixed_dictionaries({name: value_of(name, kind) for name, kind in table.columns.items()}),
        st.sampled_from(("", "a value", '{"a": "ü"}')),
        st.lists(st.sampled_from(WORDS), max_size=3) if table.scope else st.just(()),
        st.sampled_from(KEYS) if table.ends else st.just(""),
        st.sampled_from(KEYS) if table.ends else st.just(""),
    )


def terms(table: Table) -> st.SearchStrategy[list[Term]]:
    kinds: dict[str, type] = {**dict.fromkeys([KEY, *_ends(table)], str), **table.columns}

    @st.composite
    def term(draw: st.DrawFn) -> Term:
        if not table.ends and draw(st.integers(0, 5)) == 0:
            how = draw(st.sampled_from((Is.EMBEDDED, Is.NOT_EMBEDDED)))
            return Term(KEY, how, draw(st.sampled_from(SPACES)))
        name = draw(st.sampled_from([*kinds]))
        how = draw(st.sampled_from((*COMPARED[kinds[name]], Is.NULL)))
        if how is Is.NULL and kinds[name] is not tuple:
            return Term(name, how)
        if how is Is.NULL:
            how = Is.HAS_ANY
        values = [*VALUES[kinds[name]], *(KEYS if name in (KEY, SOURCE, TARGET) else ())]
        if how in (Is.IN, Is.NOT_IN):
            return Term(name, how, draw(st.lists(st.sampled_from(values), max_size=3)))
        return Term(name, how, draw(st.sampled_from(values)))

    return st.lists(term(), max_size=3)


def _ends(table: Table) -> tuple[str, ...]:
    return (SOURCE, TARGET) if table.ends else ()


def orders(table: Table) -> st.SearchStrategy[list[str]]:
    names = [*ordering(table), *_ends(table)]
    signed = [*names, *(f"-{name}" for name in names)]
    if not names:
        return st.just([])
    return st.lists(
        st.sampled_from(signed), max_size=2, unique_by=lambda name: name.removeprefix("-")
    )


LIMITS = st.sampled_from((None, None, 0, 1, 2, 5))


def questions(table: Table) -> st.SearchStrategy[Question]:
    names = [name for name, kind in table.columns.items() if kind is not tuple]
    wanted = st.lists(st.sampled_from([KEY, VALUE, *_ends(table), *names]), min_size=1, max_size=4)
    return st.builds(Question, st.just(table), terms(table), orders(table), LIMITS, wanted)


def counts(table: Table) -> st.SearchStrategy[Count]:
    numbers = [name for name in ordering(table) if table.columns[name] is int]
    by = [*ordering(table), *_ends(table)]
    return st.builds(
        Count,
        st.just(table),
        terms(table),
        st.lists(st.sampled_from(by), max_size=2, unique=True) if by else st.just([]),
        st.lists(st.sampled_from(numbers), max_size=2) if numbers else st.just([]),
        LIMITS.filter(lambda limit: limit != 0),
    )


@dataclass(frozen=True)
class Example:
    """Writes in transactions, and the questions after each."""

    writes: Sequence[Callable[[Transaction], Any]]
    reads: Sequence[Callable[[Reads], Any]]


@st.composite
def made(draw: st.DrawFn) -> Example:
    """Rows of a table, and of those at its ends."""
    table = draw(st.sampled_from(TABLES))
    ends = [*dict.fromkeys(table.ends or ())]
    at_ends = [Row(end, key, draw(rows(end)).columns) for end in ends for key in KEYS]
    drawn = draw(st.lists(rows(table), min_size=1, max_size=6))
    again = draw(st.lists(rows(table), max_size=3))
    gone = draw(st.lists(st.sampled_from(KEYS), max_size=2))
    writes: list[Callable[[Transaction], Any]] = [lambda port: port.put([*drawn, *at_ends])]
    reads: list[Callable[[Reads], Any]] = []
    asked = draw(st.lists(questions(table), min_size=1, max_size=5))
    counted = draw(st.lists(counts(table), min_size=1, max_size=3))
    reads += [lambda port: port.find(asked), lambda port: port.count(counted)]
    if table.scope:
        where, order = draw(terms(table)), draw(orders(table))
        weights = {word: draw(st.integers(1, 5)) for word in draw(st.sets(st.sampled_from(WORDS)))}
        limit = draw(st.integers(0, 4))
        reads.append(lambda port: port.search(table, weights, where, limit, order))
        reads.append(lambda port: port.word_counts(table, WORDS))
    if not table.ends:
        writes += vector_writes(draw, table, {row.key for row in drawn})
        within, near = draw(terms(table)), draw(st.integers(0, 4))
        some = draw(st.lists(st.sampled_from(VECTORS), min_size=1, max_size=2))
        reads.append(lambda port: _in_order(port.nearest(table, some, within, near)))
        reads += [_vectors(table, space) for space in SPACES]
    writes.append(lambda port: port.put(again))
    writes.append(lambda port: port.delete(table, gone))
    if ends:
        writes.append(lambda port: port.delete(ends[0], gone))
    return Example(writes, reads)


def _as_stored(table: Table, vector: Vector) -> Vector:
    return vector.coarse() if table.is_coarse else vector


def _vectors(table: Table, space: str) -> Callable[[Reads], Any]:
    return lambda port: port.vectors(table, space, KEYS)


def _put_vectors(
    table: Table, space: str, given: Mapping[str, Vector | None]
) -> Callable[[Transaction], Any]:
    return lambda port: port.put_vectors(table, space, given)


def vector_writes(
    draw: st.DrawFn, table: Table, keys: set[str]
) -> list[Callable[[Transaction], Any]]:
    writes: list[Callable[[Transaction], Any]] = []
    for space in SPACES:
        given = {
            key: vector and _as_stored(table, Vector(space, vector.data))
            for key in sorted(keys)
            if (vector := draw(st.sampled_from((*VECTORS, None)))) or draw(st.booleans())
        }
        if given:
            writes.append(_put_vectors(table, space, given))
    named = draw(st.sampled_from((None, sorted(keys), sorted(keys)[:1])))
    keep = draw(st.sampled_from(("", *SPACES)))
    if draw(st.booleans()):
        writes.append(lambda port: port.drop_vectors(table, named, keep))
    return writes


def _in_order(near: Sequence[dict[str, float]]) -> list[list[tuple[str, float]]]:
    return [[*one.items()] for one in near]


@pytest.mark.parametrize(("opened", "most"), BACK_ENDS.values(), ids=BACK_ENDS)
def test_a_back_end_answers_as_a_graph_in_memory(
    opened: Callable[[pytest.FixtureRequest], Port], most: int, request: pytest.FixtureRequest
) -> None:
    @settings(max_examples=most, phases=PHASES)
    @given(example=made())
    def check(example: Example) -> None:
        expected = NetworkxPort()
        with closing(opened(request)) as port:
            for number, write in enumerate(example.writes):
                assert port.write(write) == expected.write(write), number
                assert port.revision() == expected.revision()
                for read in example.reads:
                    assert read(port) == read(expected)

    check()


def between(query: Vector, chance: Random) -> Vector:
    """A vector whose cosine with *query* is in the middle of two rounded ones, but for float32."""
    cosine = (chance.randrange(9_000) + 0.5) / 10**COSINE_DECIMALS
    other = [chance.gauss() for _ in query.plain()]
    along = sum(a * b for a, b in zip(query.plain(), other, strict=True))
    across = [b - along * a for a, b in zip(query.plain(), other, strict=True)]
    length = sqrt(sum(one * one for one in across)) / sqrt(1 - cosine * cosine)
    numbers = [cosine * a + b / length for a, b in zip(query.plain(), across, strict=True)]
    return Vector.of(query.space, numbers)


@each_back_end
def test_a_cosine_between_two_rounded_ones_is_rounded_alike(
    request: pytest.FixtureRequest, opened: Callable[[pytest.FixtureRequest], Port]
) -> None:
    chance, table = Random(4), BY_NAME["run"]
    query = Vector.of("made/by-hand@384", [chance.gauss() for _ in range(384)])
    vectors = {f"run{number:03}": between(query, chance) for number in range(100)}
    columns = {name: VALUES[kind][0] for name, kind in table.columns.items()}
    stored: list[Row] = [Row(table, key, columns, "a value") for key in vectors]

    def work(transaction: Transaction) -> None:
        transaction.put(stored)
        transaction.put_vectors(table, query.space, vectors)

    with closing(opened(request)) as port:
        port.write(work)
        (near,) = port.nearest(table, [query], (), len(vectors))

    cosines = zip(vectors, plain_cosines(query, vectors.values()), strict=True)
    assert near == {key: round(cosine, COSINE_DECIMALS) for key, cosine in cosines}


@each_back_end
def test_a_failed_transaction_leaves_nothing(
    request: pytest.FixtureRequest, opened: Callable[[pytest.FixtureRequest], Port]
) -> None:
    row = Row(BY_NAME["repo"], "a/b", {"runs": 1})

    def fails(port: Transaction) -> None:
        port.put([row])
        raise StoreError("refused")

    with closing(opened(request)) as port:
        with pytest.raises(StoreError, match="refused"):
            port.write(fails)
        assert (port.find([Question(row.table)]), port.revision()) == ([[]], 0)

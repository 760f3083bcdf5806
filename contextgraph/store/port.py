"""The port of a store: rows of declared tables, and the primitives that a back end implements.

A back end knows tables only by their declaration: it keeps rows, answers questions about their
columns and holds no rule about what they mean. `store.memory_store` has the rules, once, above this
port. Every row belongs to the tenant of the port. Answers are equal for all back ends: where an
order leaves ties, the key decides, ascending. A term that a back end does not know raises.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from enum import Enum
from functools import lru_cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct, field

from contextgraph.model import HealthCheck, Vector, WordCounts

Result = TypeVar("Result")
Scalar: TypeAlias = str | int | float | bool | datetime | tuple[str, ...] | tuple[int, ...] | None

# Checks that a quick answer is without.
THOROUGH = ("integrity", "writable")
KEY, VALUE, SOURCE, TARGET = "key", "value", "source", "target"


class Drawn(NamedTuple):
    """A relation of a row for people who read the graph: no question names it.

    It leads to the row *key* of *table*, or from it where it is *incoming*, if there is one when
    its own row is put.
    """

    type: str
    table: "Table"
    key: str
    incoming: bool = False
    properties: Mapping[str, Scalar] = {}


class Listing(NamedTuple):
    """Nodes for the texts of a column: their *label*, the type of the *relation* to them.

    *shown* returns the properties of the node of a text.
    """

    label: str
    relation: str
    shown: "Callable[[str], Mapping[str, Scalar]]" = lambda text: {"name": text}


class Table(Struct, frozen=True, eq=False):
    """The declaration of a table.

    *label* is that of nodes in a graph, or the type of relations where *ends* names the tables that
    they lead from and to. *columns* can be filtered and sorted by; their types are str, int, float,
    bool, datetime, and tuple for several texts. Each of *indexes* serves a frequent question: the
    columns that it compares, then those of its order (``-``: descending); all rows
    have a value in each but the first, and in columns that rows are ordered by. Words of rows are
    searched where *scope* names the column that most searches are limited by. Damage of a row is
    reported as that of the part that *part_of* names, with the column of its key. *is_sized*: the
    number of rows says how large a memory is. *is_coarse*: its vectors are `Vector.coarse`, and one
    byte for each number is enough to keep them. Rows of an edge table are put after those
    at their ends, or with them.

    For people who read the graph: *draws* says that rows have relations in `Row.drawn`, *listed*
    that each text of one of `Row.columns` is a node of its own; no question names one that is not
    among *columns*.
    """

    name: str
    label: str
    columns: Mapping[str, type] = field(default_factory=dict)
    indexes: Sequence[Sequence[str]] = ()
    ends: "tuple[Table, Table] | None" = None
    scope: str | None = None
    part_of: tuple[str, str] | None = None
    is_sized: bool = False
    is_coarse: bool = False
    draws: bool = False
    listed: Mapping[str, Listing] = field(default_factory=dict)


class Row(Struct, frozen=True):
    """A row: its columns, its *value*, encoded, and the *words* by which it is found.

    *source* and *target* are the keys at the ends of an edge. *shown* returns further properties,
    *drawn* and *labels* are relations and labels, for people who read the graph: no question names
    them.
    """

    table: Table
    key: str
    columns: Mapping[str, Scalar]
    value: str | bytes = ""
    words: Sequence[str] = ()
    source: str = ""
    target: str = ""
    shown: Callable[[], Mapping[str, Scalar]] = dict
    drawn: Sequence[Drawn] = ()
    labels: Sequence[str] = ()


class Is(Enum):
    """A comparison of a column with a value."""

    EQUAL = "="
    IN = "in"
    NOT_IN = "not in"
    LEAST = ">="
    MOST = "<="
    ABOVE = ">"
    HAS = "has"
    """the column has several texts, all of these, one or more, among them"""
    HAS_ANY = "has any"
    """the column has several texts, one of these among them"""
    NULL = "is null"
    EMBEDDED = "embedded"
    """the row has a vector, or none for want of words, in this space; the column is its key"""
    NOT_EMBEDDED = "not embedded"


class Term(NamedTuple):
    """A condition on a *column*."""

    column: str
    how: Is
    value: Any = None


Where: TypeAlias = Sequence[Term]


Form: TypeAlias = tuple[tuple[str, Is], ...]
"""Columns with how they are compared: questions that differ only in their values have one."""


def form_of(where: Where) -> Form:
    """Return the form of *where*."""
    return tuple((term.column, term.how) for term in where)


def is_empty(where: Where) -> bool:
    """Return True if a term admits nothing, as its column is compared with no values."""
    return any(term.how in (Is.IN, Is.HAS_ANY) and not term.value for term in where)


COMPARED = (Is.EQUAL, Is.IN)
RANGES = (Is.LEAST, Is.MOST, Is.ABOVE)


class Serving(NamedTuple):
    """An index that serves a form: its *columns*, those *compared* and those of the *order*."""

    columns: Sequence[str]
    compared: tuple[str, ...]
    order: tuple[str, ...]


@lru_cache(1_000)
def serving(table: Table, where: Form, order: tuple[str, ...]) -> Serving | None:
    """Return the index that serves a form best; None where none does.

    It is the one with most columns that are compared, then with the order, then with a range.
    """
    hows = {column: how for column, how in where if how in (*COMPARED, *RANGES)}
    asked = tuple(column.removeprefix("-") for column in order)
    best, found = (0, 0), None
    for index in table.indexes:
        columns = tuple(column.removeprefix("-") for column in index)
        compared = tuple(takewhile(lambda one: hows.get(one) in COMPARED, columns))
        rest = tuple(column for column in columns[len(compared) :] if column != KEY)
        is_equal = all(hows[column] is Is.EQUAL for column in compared)
        gives_order = is_equal and rest and rest == asked[: len(rest)]
        ranged = bool(rest) and hows.get(rest[0]) in RANGES
        score = (len(compared), len(rest) if gives_order else int(ranged))
        if score > best:
            best, found = score, Serving(index, compared, rest if gives_order else ())
    return found


class Question(NamedTuple):
    """Asks for the columns *wanted* of the rows of *table* that all terms of *where* admit.

    A column of *order* that begins with ``-`` is descending.
    """

    table: Table
    where: Where = ()
    order: Sequence[str] = ()
    limit: int | None = None
    wanted: Sequence[str] = (VALUE,)


class Count(NamedTuple):
    """Asks for the number of rows in each group *by* columns, with the *sums* of others.

    The largest groups come first, ties by the columns.
    """

    table: Table
    where: Where = ()
    by: Sequence[str] = ()
    sums: Sequence[str] = ()
    limit: int | None = None


class Reads(Protocol):
    """Primitives that read."""

    def find(self, questions: Sequence[Question]) -> list[list[tuple[Any, ...]]]:
        """Return for each question its rows: the columns wanted, in their order."""

    def count(self, counts: Sequence[Count]) -> list[list[tuple[Any, ...]]]:
        """Return for each count its groups: the columns, the number of rows, the sums."""

    def search(
        self,
        table: Table,
        weights: Mapping[str, int],
        where: Where,
        limit: int,
        order: Sequence[str] = (),
    ) -> list[tuple[str, int]]:
        """Return keys of rows with any of these words, with the sum of the words' weights.

        The heaviest come first, ties by *order* and key.
        """

    def word_counts(self, table: Table, words: Sequence[str]) -> WordCounts:
        """Return the number of rows, and in how many of them each of *words* occurs."""

    def vectors(self, table: Table, space: str, keys: Iterable[str]) -> dict[str, Vector | None]:
        """Return the vectors of these rows in *space*; None for one that has no words."""

    def nearest(
        self, table: Table, vectors: Sequence[Vector], where: Where, limit: int
    ) -> list[dict[str, float]]:
        """Return for each of *vectors*, of one space, key -> cosine, best first.

        Cosines have four decimals.
        """

    def revision(self) -> int:
        """Return how many changes there have been."""


class Transaction(Reads, Protocol):
    """Primitives in a transaction that writes; its revision is that of the change it makes."""

    def put(self, rows: Iterable[Row]) -> None:
        """Insert rows, or replace those of the same table and key; vectors stay."""

    def delete(self, table: Table, keys: Iterable[str]) -> int:
        """Delete rows, and edges at deleted nodes; return how many of *keys* were known."""

    def put_vectors(self, table: Table, space: str, vectors: Mapping[str, Vector | None]) -> None:
        """Store vectors of known rows, over those of the same space."""

    def drop_vectors(self, table: Table, keys: Iterable[str] | None, keep: str = "") -> None:
        """Delete the vectors of these rows (None: of all), but for those of the space *keep*."""


class Port(Reads, Protocol):
    """A database that holds rows of one tenant."""

    tenant: str

    def write(self, work: Callable[[Transaction], Result], *, erasing: bool = False) -> Result:
        """Return the result of *work*, done in one transaction; on an error nothing is left.

        *work* may be called again where the database asks for it. *erasing*: of what it deletes no
        word is left in the files.
        """

    def read(self, work: Callable[[], Result]) -> Result:
        """Return the result of *work*, whose questions see one state of a file.

        On a server each question sees what is committed then: *work* is called again where
        something was deleted between two questions.
        """

    def snapshot(self) -> AbstractContextManager[object]:
        """Let the thread read one state of a file, or the newest of a server, in this block."""

    def health(self, *, quick: bool = False) -> Sequence[HealthCheck]:
        """Return checks of the database; one that fails raises nothing."""

    def back_up(self, path: Path) -> None:
        """Copy one state of all tenants to the new file *path*."""

    def erase_deleted(self) -> None:
        """Rewrite the database without traces of what was deleted."""

    def close(self) -> None:
        """Release files and connections; closing twice is harmless."""

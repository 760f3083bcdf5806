"""Rows in a networkx `MultiDiGraph` of this process: the shortest back end of `store.port`.

A row of a node table is a node, named by its table and key, a row of an edge table an edge. Each
question is answered by looking at all rows: it is for small memories, for notebooks and for tests.
"""

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import networkx as nx

from contextgraph.errors import StoreError
from contextgraph.model import HealthCheck, Vector, WordCounts, matrix_of, products, rounded_cosine
from contextgraph.store.memory_store import Store
from contextgraph.store.port import Count, Is, Question, Row, Table, Term, Where

Result = TypeVar("Result")
_Name: TypeAlias = tuple[str, str]

_COMPARED: Mapping[Is, Callable[[Any, Any], bool]] = {
    Is.EQUAL: lambda own, value: own is not None and own == value,
    Is.IN: lambda own, value: own in value,
    Is.NOT_IN: lambda own, value: own not in value,
    Is.LEAST: lambda own, value: own is not None and own >= value,
    Is.MOST: lambda own, value: own is not None and own <= value,
    Is.ABOVE: lambda own, value: own is not None and own > value,
    Is.HAS: lambda own, value: {*value} <= {*own},
    Is.HAS_ANY: lambda own, value: not {*value}.isdisjoint(own),
    Is.NULL: lambda own, _: own is None,
}


class NetworkxPort:
    """A `Port` in a graph; the docstrings of its methods are those of the protocol."""

    def __init__(self, tenant: str = "default") -> None:
        self.tenant = tenant
        self._graph: Any = nx.MultiDiGraph()
        self._edges: dict[_Name, tuple[_Name, _Name]] = {}
        self._revision = 0
        self._undo: list[Callable[[], object]] | None = None
        self._lock = threading.RLock()

    def find(self, questions: Sequence[Question]) -> list[list[tuple[Any, ...]]]:
        with self._lock:
            return [self._find(question) for question in questions]

    def _find(self, question: Question) -> list[tuple[Any, ...]]:
        rows = self._ordered(question.table, question.where, question.order)
        found = [tuple(_column(row, name) for name in question.wanted) for row in rows]
        return found if question.limit is None else found[: question.limit]

    def _ordered(self, table: Table, where: Where, order: Sequence[str]) -> list[Row]:
        rows = sorted(self._within(table, where), key=lambda row: row.key)
        for name in reversed(order):
            column = name.removeprefix("-")
            rows.sort(key=lambda row: _column(row, column), reverse=column != name)
        return rows

    def count(self, counts: Sequence[Count]) -> list[list[tuple[Any, ...]]]:
        with self._lock:
            return [self._count(one) for one in counts]

    def _count(self, asked: Count) -> list[tuple[Any, ...]]:
        groups: dict[tuple[Any, ...], list[int]] = {}
        for row in self._within(asked.table, asked.where):
            by = tuple(_column(row, name) for name in asked.by)
            sums = groups.setdefault(by, [0] * (1 + len(asked.sums)))
            for place, value in enumerate((1, *(_column(row, name) for name in asked.sums))):
                sums[place] += value
        found = sorted(groups.items(), key=lambda one: (-one[1][0], one[0]))
        return [(*by, *sums) for by, sums in found][: asked.limit]

    def search(
        self,
        table: Table,
        weights: Mapping[str, int],
        where: Where,
        limit: int,
        order: Sequence[str] = (),
    ) -> list[tuple[str, int]]:
        with self._lock:
            rows = self._ordered(table, where, order)
        found = [(row.key, sum(weights.get(word, 0) for word in {*row.words})) for row in rows]
        found.sort(key=lambda one: -one[1])
        return [one for one in found if one[1]][: max(0, limit)]

    def word_counts(self, table: Table, words: Sequence[str]) -> WordCounts:
        with self._lock:
            rows = [*self._within(table, ())]
        counted = Counter(word for row in rows for word in {*row.words})
        return WordCounts(len(rows), {word: counted[word] for word in words})

    def vectors(self, table: Table, space: str, keys: Iterable[str]) -> dict[str, Vector | None]:
        with self._lock:
            known = {key: self._vectors(table, key) for key in keys}
            return {key: own[space] for key, own in known.items() if space in own}

    def nearest(
        self, table: Table, vectors: Sequence[Vector], where: Where, limit: int
    ) -> list[dict[str, float]]:
        space = vectors[0].space
        with self._lock:
            stored = {
                row.key: vector
                for row in self._ordered(table, where, ())
                if (vector := self._vectors(table, row.key).get(space))
            }
        return [_nearest(vector, stored, limit) for vector in vectors]

    def revision(self) -> int:
        return self._revision + (self._undo is not None)

    def put(self, rows: Iterable[Row]) -> None:
        for row in rows:
            name = (row.table.name, row.key)
            if row.table.ends:
                if name in self._edges:
                    self._remove_edge(name)
                first, last = row.table.ends
                self._add_edge(name, (first.name, row.source), (last.name, row.target), row)
            else:
                self._set(name, "row", row)

    def delete(self, table: Table, keys: Iterable[str]) -> int:
        names = [(table.name, key) for key in dict.fromkeys(keys)]
        if table.ends:
            known = [name for name in names if name in self._edges]
            for name in known:
                self._remove_edge(name)
            return len(known)
        known = [name for name in names if self._graph.nodes.get(name, {}).get("row")]
        for name in known:
            at = (*self._graph.in_edges(name, keys=True), *self._graph.out_edges(name, keys=True))
            for *_, edge in dict.fromkeys(at):
                if edge in self._edges:
                    self._remove_edge(edge)
            self._set(name, "vectors", None)
            self._set(name, "row", None)
        return len(known)

    def put_vectors(self, table: Table, space: str, vectors: Mapping[str, Vector | None]) -> None:
        for key, vector in vectors.items():
            own = {**self._vectors(table, key), space: vector}
            self._set((table.name, key), "vectors", own)

    def drop_vectors(self, table: Table, keys: Iterable[str] | None, keep: str = "") -> None:
        named = [row.key for row in self._within(table, ())] if keys is None else [*keys]
        for key in named:
            own = self._vectors(table, key)
            kept = {space: vector for space, vector in own.items() if space == keep}
            self._set((table.name, key), "vectors", kept)

    def write(self, work: Callable[["NetworkxPort"], Result], *, erasing: bool = False) -> Result:
        with self._lock:
            self._undo = []
            try:
                result = work(self)
                self._revision += bool(self._undo)
                return result
            except BaseException:
                for undo in reversed(self._undo):
                    undo()
                raise
            finally:
                self._undo = None

    def read(self, work: Callable[[], Result]) -> Result:
        with self._lock:
            return work()

    def snapshot(self) -> AbstractContextManager[object]:
        return self._lock

    def health(self, *, quick: bool = False) -> Sequence[HealthCheck]:
        rows = self._graph.number_of_nodes() + self._graph.number_of_edges()
        return (
            HealthCheck("reachable", True, "a graph of this process"),
            HealthCheck("sizes", True, f"{rows:,} rows"),
        )

    def back_up(self, path: Path) -> None:
        raise StoreError("a graph in memory has no file to copy; export it")

    def erase_deleted(self) -> None:
        """Nothing is left of what was deleted."""

    def close(self) -> None:
        """Nothing is held."""

    def _rows(self, table: Table) -> Iterator[Row]:
        if table.ends:
            for *_, (name, _), own in self._graph.edges(keys=True, data="row"):
                if name == table.name:
                    yield own
            return
        for (name, _), own in self._graph.nodes(data="row"):
            if name == table.name and own is not None:
                yield own

    def _within(self, table: Table, where: Where) -> list[Row]:
        return [row for row in self._rows(table) if all(self._fits(row, term) for term in where)]

    def _fits(self, row: Row, term: Term) -> bool:
        if term.how in (Is.EMBEDDED, Is.NOT_EMBEDDED):
            is_embedded = term.value in self._vectors(row.table, row.key)
            return is_embedded is (term.how is Is.EMBEDDED)
        return _COMPARED[term.how](_column(row, term.column), term.value)

    def _vectors(self, table: Table, key: str) -> dict[str, Vector | None]:
        return self._graph.nodes.get((table.name, key), {}).get("vectors") or {}

    def _set(self, name: _Name, attribute: str, value: object) -> None:
        """Set an attribute of a node, so that it can be undone."""
        before = self._graph.nodes.get(name, {}).get(attribute)
        self._graph.add_node(name, **{attribute: value})
        self._later(lambda: self._graph.add_node(name, **{attribute: before}))

    def _add_edge(self, name: _Name, first: _Name, last: _Name, row: Row) -> None:
        self._graph.add_edge(first, last, key=name, row=row)
        self._edges[name] = first, last
        self._later(lambda: (self._graph.remove_edge(first, last, name), self._edges.pop(name)))

    def _remove_edge(self, name: _Name) -> None:
        first, last = self._edges.pop(name)
        row: Row = self._graph.edges[first, last, name]["row"]
        self._graph.remove_edge(first, last, name)

        def again() -> None:
            self._graph.add_edge(first, last, key=name, row=row)
            self._edges[name] = first, last

        self._later(again)

    def _later(self, undo: Callable[[], object]) -> None:
        assert self._undo is not None, "rows are written in a transaction"
        self._undo.append(undo)


class NetworkxStore(Store):
    """A `Store` in a graph of this process."""

    def __init__(self, tenant: str = "default") -> None:
        super().__init__(NetworkxPort(tenant))


def _column(row: Row, name: str) -> Any:
    match name:
        case "key":
            return row.key
        case "value":
            return row.value
        case "source":
            return row.source
        case "target":
            return row.target
        case _:
            return row.columns[name]


def _nearest(vector: Vector, stored: Mapping[str, Vector], limit: int) -> dict[str, float]:
    """Return the keys of the vectors nearest to *vector*, with their cosines."""
    if not stored:
        return {}
    cosines = products(matrix_of([*stored.values()]), vector).tolist()
    near = {
        key: rounded_cosine(vector, own, cosine)
        for (key, own), cosine in zip(stored.items(), cosines, strict=True)
    }
    return dict(sorted(near.items(), key=lambda one: (-one[1], one[0]))[: max(0, limit)])

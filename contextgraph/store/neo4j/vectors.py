"""The vector store: embedding spaces, their vectors, and what is near a vector.

The vectors of a space are in a property of nodes that no other space of the memory uses at that
time, so that a space can be prepared beside the active one, with indexes of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, cast

from contextgraph.errors import StoreError
from contextgraph.model import (
    Bundle,
    FragmentCandidate,
    Methodology,
    Near,
    RecoveryCandidate,
    RunTexts,
    RunVectors,
    Scope,
    Space,
    Trajectory,
    run_texts,
)
from contextgraph.ports import Embedded
from contextgraph.store import rules
from contextgraph.store.neo4j import rows
from contextgraph.store.neo4j.cache import CandidateCache, FragmentKey, RecoveryKey, memory_state
from contextgraph.store.neo4j.connection import Connection, NamedQueries, Transaction
from contextgraph.store.neo4j.queries import query
from contextgraph.store.neo4j.rows import Parameters, Row, where
from contextgraph.store.neo4j.schema import vector_index
from contextgraph.store.neo4j.vector_cache import (
    FRAGMENTS,
    RUNS,
    ActiveSpace,
    EmbeddedKind,
    VectorCache,
)
from contextgraph.vectors import Vector, dimensions_of, matrix_of, products

# Larger transactions with vectors need more memory on the server and are no faster.
_ROWS_AT_ONCE = 500
_RUNS_CLEARED_AT_ONCE = 200
# An index is queried for more than the limit, since it misses some: of the 20 nearest of 10,000
# fragments of real runs 0.1 % by 400 of Neo4j 2026.09, 2 % by 1,000 of 5.26. One without filters
# is queried for yet more where too few are in scope.
_NEAREST_IN_SCOPE = 400
_NEAREST_OF_ALL = 1_000
_FACTOR = 4
_MAX_NEAREST = 4_000
# Methodologies with nearly equal cosines are ranked here, as rounded cosines tie.
_MARGIN = 20
_ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)


class Neo4jVectors:
    """`VectorStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection, values: CandidateCache) -> None:
        self._connection = connection
        self._values = values
        self._cache = VectorCache(connection)
        self._has_filters: dict[str, bool] = {}

    def active_space(self) -> Space | None:
        active = active_space(self._connection)
        return active.space if active else None

    def space_model(self, space: str) -> bytes | None:
        row = self._connection.row("space_model", name=space)
        return None if row is None else bytes(row["data"])

    def prepare(self, space: Space, model: bytes | None) -> None:
        self._clear_retired()
        is_prepared = False
        while not is_prepared:
            property_ = _free_property(self._connection, space.name)
            self._connection.create_vector_indexes(property_)
            is_prepared = self._connection.write(_prepare, space, model, property_)

    def switch(self, space: str) -> None:
        """The switch is one transaction; vectors of other spaces are deleted after it."""

        def work(transaction: Transaction) -> None:
            transaction.begin_change()
            _property_of(transaction, space)
            transaction.rows("activate_space", name=space)
            transaction.rows("retire_spaces", name=space)

        self._connection.write(work)
        self._clear_retired()

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Sequence[RunTexts]:
        found = self._connection.rows(
            "runs_to_embed", limit=max(0, limit), property=self._property(space), after=after
        )
        return list(map(_texts, found))

    def methodologies_to_embed(self, limit: int, space: str | None = None) -> Sequence[Methodology]:
        found = self._connection.rows(
            "methodologies_to_embed", limit=max(0, limit), property=self._property(space)
        )
        return list(map(rows.methodology_of, found))

    def add(
        self,
        space: str,
        runs: Mapping[str, RunVectors],
        methodologies: Mapping[str, Vector | None],
    ) -> None:
        def work(transaction: Transaction) -> None:
            transaction.begin_change()
            transaction.rows("note_embedding")
            property_ = _property_of(transaction, space)
            _add_runs(transaction, property_, runs)
            _add_methodologies(transaction, property_, methodologies)

        self._connection.write(work)

    def nearest(
        self, kind: type[Embedded], vector: Vector, scope: Scope, limit: int
    ) -> Sequence[Near[Embedded]]:
        active = active_space(self._connection)
        rules.check_space(active.space if active else None, vector)
        if active is None or limit < 1:
            return []
        finders: Mapping[type, Any] = {
            Trajectory: self._trajectories,
            FragmentCandidate: self._fragments,
            RecoveryCandidate: self._recoveries,
            Methodology: self._methodologies,
        }
        return cast("Sequence[Near[Embedded]]", finders[kind](active, vector, scope, limit))

    def of_methodologies(self, space: str, ids: Sequence[str]) -> Mapping[str, Vector | None]:
        property_ = _properties(self._connection).get(space)
        if property_ is None:
            return {}
        found = self._connection.rows(
            "vectors_of_methodologies", ids=sorted(set(ids)), property=property_
        )
        return {row["id"]: vector_of(space, row["vector"]) for row in found}

    def _trajectories(
        self, active: ActiveSpace, vector: Vector, scope: Scope, limit: int
    ) -> list[Near[Trajectory]]:
        near = self._nearest(RUNS, active, vector, scope, limit)
        return [Near(run, near[run.id]) for run in self._values.trajectories(near)]

    def _fragments(
        self, active: ActiveSpace, vector: Vector, scope: Scope, limit: int
    ) -> list[Near[FragmentCandidate]]:
        near = self._nearest(FRAGMENTS, active, vector, scope, limit)
        keys = self._connection.found("runs_of", ids=list(near)) if near else ()
        found = self._values.fragments([FragmentKey(*key) for key in keys])
        return [Near(one, near[one.fragment.id]) for one in found]

    def _recoveries(
        self, active: ActiveSpace, vector: Vector, scope: Scope, limit: int
    ) -> list[Near[RecoveryCandidate]]:
        near = self._nearest(FRAGMENTS, active, vector, scope, limit)
        keys = self._connection.found("recoveries_of", ids=list(near)) if near else ()
        found = self._values.recoveries([RecoveryKey(*key) for key in keys])
        return [Near(one, near[key.fragment_id]) for key, one in found.items()]

    def _methodologies(
        self, active: ActiveSpace, vector: Vector, scope: Scope, limit: int
    ) -> list[Near[Methodology]]:
        found = self._connection.rows(
            "nearest_methodologies",
            property=active.property,
            vector=vector.numbers().tolist(),
            limit=limit + _MARGIN,
            **rows.scope_parameters(scope),
        )
        if not found:
            return []
        vectors = [Vector(vector.space, rows.numbers(row["numbers"])) for row in found]
        cosines = products(matrix_of(vectors), vector).round(rules.COSINE_DECIMALS).tolist()
        near = zip(cosines, map(rows.methodology_of, found), vectors, strict=True)
        ranked = sorted(near, key=lambda one: (-one[0], one[1].id))
        return [Near(methodology, own) for _, methodology, own in ranked[:limit]]

    def _nearest(
        self, kind: EmbeddedKind, active: ActiveSpace, vector: Vector, scope: Scope, limit: int
    ) -> dict[str, Vector]:
        """The ids of the nearest nodes of this kind, best first, and their vectors."""
        cached = self._cache.of(kind, active, scope.repo)
        if cached is not None:
            return dict(cached.nearest(vector, scope, limit))
        parameters: Parameters = {
            "property": active.property,
            "vector": vector.numbers().tolist(),
            "limit": limit,
            **rows.scope_parameters(scope),
        }
        index = vector_index(kind.label, active.property)
        if self._can_filter(index):
            found = self._search_in_scope(kind, index, scope, parameters, limit)
        else:
            found = self._search_all(kind, index, parameters, limit)
        if len(found) < limit:
            found = self._connection.rows(where(kind.exact, scope), **parameters)
        return {row["id"]: Vector(vector.space, rows.numbers(row["numbers"])) for row in found}

    def _search_in_scope(
        self, kind: EmbeddedKind, index: str, scope: Scope, parameters: Parameters, limit: int
    ) -> list[Row]:
        """What an index with filters finds."""
        text = query(where(kind.search, scope))
        # The name of an index cannot be a parameter: it replaces the one in the file.
        text = text.replace(f" INDEX {kind.label.lower()}_embedding ", f" INDEX {index} ")
        return self._connection.run(
            text,
            {
                "tenant": self._connection.tenant,
                "nearest": max(_NEAREST_IN_SCOPE, limit),
                "until": rows.moment(scope.as_of) if scope.as_of else _ALWAYS,
                **parameters,
            },
        )

    def _search_all(
        self, kind: EmbeddedKind, index: str, parameters: Parameters, limit: int
    ) -> list[Row]:
        """What of the nearest of all is in scope, up to the limit."""
        found: list[Row] = []
        nearest = max(_NEAREST_OF_ALL, limit)
        while len(found) < limit and nearest <= _MAX_NEAREST:
            found = self._connection.rows(kind.by_index, index=index, nearest=nearest, **parameters)
            nearest *= _FACTOR
        return found

    def _can_filter(self, index: str) -> bool:
        """True where this vector index can be searched within a scope."""
        if index not in self._has_filters:
            found = self._connection.rows("vector_indexes")
            self._has_filters = {row["name"]: "tenant" in row["properties"] for row in found}
        return self._has_filters.get(index, False)

    def _property(self, space: str | None) -> str | None:
        return None if space is None else _properties(self._connection).get(space)

    def _clear_retired(self) -> None:
        """Delete the vectors of spaces that are not used any more, a batch in a transaction."""
        for row in self._connection.rows("retired_spaces"):
            last: str | None = ""
            while last is not None:
                last = self._connection.write(_clear, row["name"], row["property"], last)


def active_space(connection: Connection) -> ActiveSpace | None:
    """The active space, with the state of the memory."""
    state = memory_state(connection)
    if state.space is None:
        return None
    return ActiveSpace(_space(state.space), state.space["property"], state)


def vector_of(space: str, value: object) -> Vector | None:
    """The vector that the server returned."""
    return None if value is None else Vector(space, rows.numbers(value))


def insert(transaction: Transaction, bundles: Sequence[Bundle]) -> None:
    """Write the vectors of new runs, unless their space has been dropped."""
    embedded = [(bundle, bundle.vectors) for bundle in bundles if bundle.vectors]
    properties = _properties(transaction) if embedded else {}
    for space, property_ in properties.items():
        runs = [
            (bundle.trajectory.id, [fragment.id for fragment in bundle.fragments], vectors)
            for bundle, vectors in embedded
            if vectors.space == space
        ]
        _write(transaction, property_, runs)


def _prepare(transaction: Transaction, space: Space, model: bytes | None, property_: str) -> bool:
    """Store *space* with *property_*; False where another space has taken that meanwhile."""
    transaction.begin_change()
    if _free_property(transaction, space.name) != property_:
        return False
    is_new = space.name not in _properties(transaction)
    transaction.rows(
        "put_space",
        name=space.name,
        property=property_,
        runs=space.runs,
        similarity_threshold=space.similarity_threshold,
    )
    if is_new and model is not None:
        transaction.rows("put_space_model", name=space.name, data=model)
    return True


def _free_property(queries: NamedQueries, space: str) -> str:
    """The property for the vectors of *space*: its own, or one that no other space has."""
    known = _properties(queries)
    if space in known:
        return known[space]
    taken = {*known.values(), *(row["property"] for row in queries.rows("retired_spaces"))}
    dimensions = dimensions_of(space)
    names = (f"embedding_{dimensions}_{number}" for number in count(1))
    return next(name for name in names if name not in taken)


def _properties(queries: NamedQueries) -> dict[str, str]:
    """Name of each space -> the property with its vectors."""
    return {row["name"]: row["property"] for row in queries.rows("spaces")}


def _property_of(transaction: Transaction, space: str) -> str:
    """The property for the vectors of *space*; raises `StoreError` where it is not prepared."""
    property_ = _properties(transaction).get(space)
    if property_ is None:
        raise StoreError(f"space {space} was not prepared, or has been dropped since")
    return property_


def _clear(transaction: Transaction, name: str, property_: str, after: str) -> str | None:
    """Delete the vectors of a space from the next runs; the last of these, None at the end."""
    batch = {"property": property_, "after": after, "limit": _RUNS_CLEARED_AT_ONCE}
    row = transaction.row("clear_runs", **batch)
    last: str | None = row["last"] if row else None
    if last is None:
        transaction.rows("clear_methodologies", property=property_)
        transaction.rows("remove_space", name=name)
    return last


def _add_runs(transaction: Transaction, property_: str, vectors: Mapping[str, RunVectors]) -> None:
    found = transaction.rows("embeddable_runs", ids=sorted(vectors), property=property_)
    fitting = [
        (row["id"], row["fragments"], vectors[row["id"]])
        for row in found
        if len(row["fragments"]) == len(vectors[row["id"]].fragments)
    ]
    _write(transaction, property_, fitting)


def _add_methodologies(
    transaction: Transaction, property_: str, vectors: Mapping[str, Vector | None]
) -> None:
    found = transaction.rows("embeddable_methodologies", ids=sorted(vectors), property=property_)
    ids = [row["id"] for row in found]
    given = _vector_rows((node, vectors[node]) for node in ids)
    transaction.write("add_methodology_vectors", given, property=property_)
    transaction.rows("note_embedded_methodologies", ids=ids, property=property_)


def _write(
    transaction: Transaction, property_: str, runs: Sequence[tuple[str, Sequence[str], RunVectors]]
) -> None:
    """Write the vectors of runs and of their fragments, whose ids are in order."""
    of_runs = _vector_rows((run, vectors.trajectory) for run, _, vectors in runs)
    of_fragments = _vector_rows(
        pair for _, ids, vectors in runs for pair in zip(ids, vectors.fragments, strict=True)
    )
    for name, given in (
        ("add_trajectory_vectors", of_runs),
        ("add_fragment_vectors", of_fragments),
    ):
        for start in range(0, len(given), _ROWS_AT_ONCE):
            transaction.write(name, given[start : start + _ROWS_AT_ONCE], property=property_)
    transaction.rows("note_embedded_runs", ids=[run for run, _, _ in runs], property=property_)


def _vector_rows(pairs: Iterable[tuple[str, Vector | None]]) -> list[Parameters]:
    """The nodes that have a vector, by id: the order in which they are locked."""
    embedded = sorted((node, vector.numbers().tolist()) for node, vector in pairs if vector)
    return [{"id": node, "vector": numbers} for node, numbers in embedded]


def _space(row: Row) -> Space:
    return Space(row["name"], row["runs"], row["similarity_threshold"])


def _texts(row: Row) -> RunTexts:
    messages: dict[str, list[str]] = {}
    for fragment, message in row["messages"]:
        messages.setdefault(fragment, []).append(message)
    fragments = list(map(rows.fragment_of, row["fragments"]))
    return run_texts(rows.trajectory_of(row["trajectory"]), fragments, messages)

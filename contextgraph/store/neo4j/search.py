"""Search by words and by vectors: index terms, and `VectorStore` on a server.

The vectors of a space are in a property of nodes that no other space of the memory uses at that
time, so that a space can be prepared beside the active one, with an index of its own.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import NamedTuple
from urllib.parse import quote

from contextgraph.errors import StoreError
from contextgraph.lazy import dataclass
from contextgraph.model import (
    Bundle,
    Near,
    Scope,
    Space,
    Vector,
    WordCounts,
    dimensions_of,
    run_text,
)
from contextgraph.ports import NodeType
from contextgraph.store import rules
from contextgraph.store.neo4j.connection import (
    Connection,
    NamedQueries,
    Transaction,
)
from contextgraph.store.neo4j.rows import (
    NEVER,
    CacheGeneration,
    CandidateCache,
    MemoryState,
    Parameters,
    Row,
    memory_state,
    scope_parameters,
    trajectory_of,
    vector_data,
    where,
)
from contextgraph.store.neo4j.schema import query, vector_index
from contextgraph.text import words

# Counting costs a microsecond for each text that has the word: counts are cached until the memory
# has grown by so small a part that relevance, a logarithm, hardly changes.
_LAG = 0.01


_MAX_CACHED = 100_000


def indexed_text(
    tenant: str, repo: str, text: str, split: Callable[[str], Iterable[str]] = words
) -> str:
    """Return the index terms of *text*: tenant, repository, and each word once."""
    owners: Iterable[str] = (_owner(tenant, None), _owner(tenant, repo))
    return " ".join((*owners, *dict.fromkeys(split(text))))


def terms(
    tenant: str, repos: Collection[str] | None, weights: Mapping[str, int]
) -> list[Parameters]:
    """For each word its weight and a query for the texts with it: those of *repos*, or all."""
    return [
        {"word": word, "weight": weight, "query": _query(tenant, repos, word)}
        for word, weight in weights.items()
    ]


class _Counts(NamedTuple):
    """Counts of words among *total* texts."""

    total: int
    generation: CacheGeneration
    by_word: dict[str, int]

    def is_outdated(self, total: int, generation: CacheGeneration) -> bool:
        """True where they lag too far behind, or are too many."""
        grown = total - self.total
        is_full = len(self.by_word) > _MAX_CACHED
        return is_full or generation != self.generation or not 0 <= grown <= _LAG * self.total


class WordCountCache:
    """In how many texts of one kind words occur: *query* counts them, *total_of* all texts.

    Counts lag behind by at most 1 % of the texts; words that were unknown are counted again.
    """

    def __init__(
        self, connection: Connection, query: str, total_of: Callable[[MemoryState], int]
    ) -> None:
        self._connection, self._query, self._total_of = connection, query, total_of
        self._latest = _Counts(-1, NEVER, {})

    def counts(self, words: Sequence[str]) -> WordCounts:
        """How many texts there are, and in how many of them each of *words* occurs."""
        distinct = list(dict.fromkeys(words))
        state = memory_state(self._connection)
        total = self._total_of(state)
        latest = self._latest
        if latest.is_outdated(total, state.generation):
            latest = self._latest = _Counts(total, state.generation, {})
        known = {word: latest.by_word[word] for word in distinct if word in latest.by_word}
        counted = self._count([word for word in distinct if word not in known])
        latest.by_word.update({word: count for word, count in counted.items() if count})
        known |= counted
        return WordCounts(latest.total, {word: known[word] for word in distinct})

    def terms(self, words: Sequence[str], repo: str | None) -> list[Parameters]:
        """The rarest known ones of *words* with their weights, as `terms`."""
        counts = self.counts(words)
        weights = rules.word_weights(counts.total, counts.by_word)
        return terms(self._connection.tenant, None if repo is None else (repo,), weights)

    def _count(self, new: Sequence[str]) -> dict[str, int]:
        if not new:
            return {}
        words = terms(self._connection.tenant, None, dict.fromkeys(new, 0))
        return {
            row["word"]: row["count"] for row in self._connection.rows(self._query, words=words)
        }


def _query(tenant: str, repos: Collection[str] | None, word: str) -> str:
    """In the syntax of Lucene; no word and no owner has a quotation mark."""
    owners = " OR ".join(f'"{_owner(tenant, repo)}"' for repo in (repos or (None,)))
    return f'({owners}) AND "{word}"'


def _owner(tenant: str, repo: str | None) -> str:
    """The term that only texts of this tenant, or of this repository of it, have.

    No word has a ``@``, and what is quoted has no space.
    """
    return f"@{quote(tenant, safe='')}" + ("" if repo is None else f"@{quote(repo, safe='')}")


# Larger transactions with vectors need more memory on the server and are no faster.
_ROWS_AT_ONCE = 500
_RUNS_CLEARED_AT_ONCE = 200
# All runs of a repository are compared, and all of a memory of so many: a millisecond for twenty.
MAX_COMPARED = 2_000
# An index is queried for more than the limit, since it misses some: of the 20 nearest of 10,000
# texts of real runs 0.1 % by 400 of Neo4j 2026.09, 2 % by 1,000 of 5.26. One without filters
# is queried for yet more where too few are in scope.
_NEAREST_IN_SCOPE = 400
_NEAREST_OF_ALL = 1_000
_FACTOR = 4
_MAX_NEAREST = 4_000
_ALWAYS = datetime(9999, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class ActiveSpace:
    """The active space, the *property* of runs with its vectors, and how many *runs* there are."""

    space: Space
    property: str
    runs: int


class Neo4jVectors:
    """`VectorStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection, values: CandidateCache) -> None:
        self._connection = connection
        self._values = values
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
            self._connection.create_vector_index(property_)
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
    ) -> Mapping[str, str]:
        property_ = None if space is None else _properties(self._connection).get(space)
        unembedded = self._connection.rows(
            "runs_to_embed", limit=max(0, limit), property=property_, after=after
        )
        runs = (trajectory_of(row["trajectory"]) for row in unembedded)
        return {run.id: run_text(run) for run in runs}

    def add(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        def work(transaction: Transaction) -> None:
            transaction.begin_change()
            property_ = _property_of(transaction, space)
            new = transaction.collected("embeddable_runs", ids=sorted(vectors), property=property_)
            _write(transaction, property_, {run: vectors[run] for run in new})

        self._connection.write(work)

    def nearest(self, vector: Vector, scope: Scope, limit: int) -> Sequence[Near]:
        active = active_space(self._connection)
        rules.check_space(active.space if active else None, vector)
        if active is None or limit < 1:
            return []
        near = self._nearest(active, vector, scope, limit)
        return [Near(run, near[run.id]) for run in self._values.trajectories(near)]

    def nodes_to_embed(self, limit: int, space: str) -> Mapping[str, str]:
        found = self._connection.rows("nodes_to_embed", space=space, limit=max(0, limit))
        return {row["id"]: " ".join((row["head"], *row["parts"])) for row in found}

    def add_nodes(self, space: str, vectors: Mapping[str, Vector | None]) -> None:
        given = [
            {"id": id_, "vector": vector and vector.numbers().tolist()}
            for id_, vector in sorted(vectors.items())
        ]

        def work(transaction: Transaction) -> None:
            transaction.write("put_fragment_vectors", given, space=space)
            transaction.write("put_methodology_vectors", given, space=space)

        self._connection.write(work)

    def nearest_nodes(
        self, vector: Vector, node_type: NodeType, limit: int
    ) -> Mapping[tuple[str, str], Vector]:
        name = "nearest_fragments" if node_type == "Fragment" else "nearest_methodologies"
        numbers = vector.numbers().tolist()
        near = self._connection.rows(name, vector=numbers, space=vector.space, limit=max(0, limit))
        return {
            (row["run"], row["id"]): Vector(vector.space, vector_data(row["numbers"]))
            for row in near
        }

    def _nearest(
        self, active: ActiveSpace, vector: Vector, scope: Scope, limit: int
    ) -> dict[str, Vector]:
        """The ids of the nearest runs, best first, and their vectors."""
        parameters: Parameters = {
            "property": active.property,
            "vector": vector.numbers().tolist(),
            "limit": limit,
            **scope_parameters(scope),
        }
        nearest: list[Row] = []
        if scope.repo is None and active.runs > MAX_COMPARED:
            index = vector_index(active.property)
            if self._can_filter(index):
                nearest = self._search_in_scope(index, parameters, limit)
            else:
                nearest = self._search_all(index, parameters, limit)
        if len(nearest) < limit:
            nearest = self._connection.rows(where("nearest_trajectories", scope.repo), **parameters)
        return {row["id"]: Vector(vector.space, vector_data(row["numbers"])) for row in nearest}

    def _search_in_scope(self, index: str, parameters: Parameters, limit: int) -> list[Row]:
        """Search an index with filters."""
        text = query("search_trajectories")
        # The name of an index cannot be a parameter: it replaces the one in the file.
        text = text.replace(" INDEX trajectory_embedding ", f" INDEX {index} ")
        return self._connection.run(
            text,
            {
                "tenant": self._connection.tenant,
                "nearest": max(_NEAREST_IN_SCOPE, limit),
                "until": parameters["as_of"] or _ALWAYS,
                **parameters,
            },
        )

    def _search_all(self, index: str, parameters: Parameters, limit: int) -> list[Row]:
        """Return the nearest of all that are in scope, up to the limit."""
        in_scope: list[Row] = []
        nearest = max(_NEAREST_OF_ALL, limit)
        while len(in_scope) < limit and nearest <= _MAX_NEAREST:
            in_scope = self._connection.rows(
                "nearest_trajectories_by_index", index=index, nearest=nearest, **parameters
            )
            nearest *= _FACTOR
        return in_scope

    def _can_filter(self, index: str) -> bool:
        """True where this vector index can be searched within a scope."""
        if index not in self._has_filters:
            indexes = self._connection.rows("vector_indexes")
            self._has_filters = {row["name"]: "tenant" in row["properties"] for row in indexes}
        return self._has_filters.get(index, False)

    def _clear_retired(self) -> None:
        """Delete the vectors of spaces that are not used any more, a batch in a transaction."""
        for row in self._connection.rows("retired_spaces"):
            last: str | None = ""
            while last is not None:
                last = self._connection.write(_clear, row["name"], row["property"], last)


def active_space(connection: Connection) -> ActiveSpace | None:
    """The active space, with the size of the memory."""
    state = memory_state(connection)
    if state.space is None:
        return None
    row = state.space
    space = Space(row["name"], row["runs"], row["similarity_threshold"])
    return ActiveSpace(space, row["property"], state.trajectories)


def vector_of(space: str, value: object) -> Vector | None:
    """The vector that the server returned."""
    return None if value is None else Vector(space, vector_data(value))


def insert_vectors(transaction: Transaction, bundles: Sequence[Bundle]) -> None:
    """Write the vectors of new runs, unless their space has been dropped."""
    embedded = {bundle.trajectory.id: bundle.embedded for bundle in bundles if bundle.embedded}
    properties = _properties(transaction) if embedded else {}
    for space, property_ in properties.items():
        of_space = {
            run: embedding.vector for run, embedding in embedded.items() if embedding.space == space
        }
        _write(transaction, property_, of_space)


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
        transaction.rows("remove_space", name=name)
    return last


def _write(transaction: Transaction, property_: str, vectors: Mapping[str, Vector | None]) -> None:
    """Write the vectors of runs, by id: the order in which they are locked."""
    given = [
        {"id": run, "vector": vector.numbers().tolist()}
        for run, vector in sorted(vectors.items())
        if vector
    ]
    for start in range(0, len(given), _ROWS_AT_ONCE):
        batch = given[start : start + _ROWS_AT_ONCE]
        transaction.write("add_trajectory_vectors", batch, property=property_)
    transaction.rows("note_embedded_runs", ids=sorted(vectors), property=property_)

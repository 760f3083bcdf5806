"""Search by words and by vectors, with the values of what is found; `VectorStore`.

The vectors of a space are in a property of nodes that no other space of the memory uses at that
time, so that a space can be prepared beside the active one, with an index of its own.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from itertools import count
from typing import Any, NamedTuple, TypeAlias
from urllib.parse import quote

from msgspec import Struct, field

from contextgraph import model
from contextgraph.errors import StoreError
from contextgraph.model import dimensions_of, run_text
from contextgraph.ports import NodeType
from contextgraph.processes import ValueCache
from contextgraph.store import rules
from contextgraph.store.neo4j.connection import (
    TRAJECTORIES,
    Connection,
    NamedQueries,
    Parameters,
    Row,
    Transaction,
    fragment_of,
    recovery_of,
    scope_parameters,
    vector_data,
    where,
)
from contextgraph.store.neo4j.schema import query, vector_index
from contextgraph.text import word_weights, words

# When more runs have changed, reading again what is needed costs less.
MAX_CHANGED_RUNS = 1_000


class CacheGeneration(NamedTuple):
    """A time in which no node was removed, so that an id names the same node.

    *identity* differs where all was deleted and a memory was created in its place.
    """

    identity: str
    removals: int


# The generation of a cache that is empty.
NEVER = CacheGeneration("", -1)


class MemoryState(Struct, frozen=True):
    """The *revision* of a memory, how often something was removed, and how many texts it has.

    *identity* is empty in memories of early versions. *gate* is the text of its gate, *space* the
    row of the active space.
    """

    identity: str = ""
    revision: int = 0
    removals: int = 0
    trajectories: int = 0
    recoveries: int = 0
    gate: str | None = None
    space: Row | None = None

    @property
    def generation(self) -> CacheGeneration:
        """Cached values of what may be removed are valid for as long as this is the same."""
        return CacheGeneration(self.identity, self.removals)


def memory_state(connection: Connection) -> MemoryState:
    """The state of the memory, read once in a snapshot; an empty one where there is none."""
    row = connection.row_of_snapshot("memory_state")
    return MemoryState(**row) if row else MemoryState()


class FragmentKey(NamedTuple):
    """Names a fragment and its run."""

    trajectory_id: str
    fragment_id: str


class RecoveryKey(NamedTuple):
    """Names a recovery, its run and its error."""

    trajectory_id: str
    fragment_id: str
    error_id: str
    error_step: int


# A run is named by its id.
_Key: TypeAlias = str | FragmentKey | RecoveryKey


class _Values(Struct, frozen=True):
    """Values that were read at *revision*, or earlier and have not changed since.

    Fragments and recoveries do not change until they are removed; a run changes with its revision.
    """

    generation: CacheGeneration = NEVER
    revision: int = -1
    by_key: ValueCache[_Key, Any] = field(default_factory=lambda: ValueCache(kinds=3))

    def is_current(self, state: MemoryState) -> bool:
        """True where nothing has changed since."""
        return (self.generation, self.revision) == (state.generation, state.revision)

    def is_newer(self, state: MemoryState) -> bool:
        """True where another thread has seen a later revision of the same memory."""
        return self.generation.identity == state.identity and self.revision > state.revision


class CandidateCache:
    """The values of the latest revision that a query of this process has seen."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._process = os.getpid()
        self._latest = _Values()

    def trajectories(self, ids: Iterable[str]) -> list[model.Trajectory]:
        """The runs of these ids, in their order; unknown ones are missing."""
        ids = list(ids)
        runs = self._find(ids)
        return [runs[id_] for id_ in ids if id_ in runs]

    def fragments(self, keys: Sequence[FragmentKey]) -> list[model.FragmentCandidate]:
        """The fragments of these keys with their runs, in their order."""
        values = self._find([*(key.trajectory_id for key in keys), *keys])
        return [
            model.FragmentCandidate(values[key], values[key.trajectory_id])
            for key in keys
            if key in values and key.trajectory_id in values
        ]

    def recoveries(
        self, keys: Collection[RecoveryKey]
    ) -> dict[RecoveryKey, model.RecoveryCandidate]:
        """The recoveries of these keys, each once, in their order."""
        candidates = self._find(keys)
        return {key: candidates[key] for key in keys if key in candidates}

    def _find(self, keys: Iterable[_Key]) -> dict[_Key, Any]:
        """Return what is cached, and with one query the rest; removed ones are missing."""
        return self._current().by_key.get_or_read(keys, self._read)

    def _read(self, keys: Sequence[_Key]) -> dict[_Key, Any]:
        values = self._connection.rows(
            "values_of",
            trajectories=[key for key in keys if isinstance(key, str)],
            fragments=[key.fragment_id for key in keys if isinstance(key, FragmentKey)],
            recoveries=[key._asdict() for key in keys if isinstance(key, RecoveryKey)],
        )
        return dict(map(_candidate_of, values))

    def _current(self) -> _Values:
        """The values that are valid in the state that this snapshot sees."""
        if self._process != os.getpid():
            # A thread of the parent process may hold a lock in its values.
            self._process, self._latest = os.getpid(), _Values()
        state = memory_state(self._connection)
        latest = self._latest
        if latest.is_current(state):
            return latest
        if latest.is_newer(state):
            return _Values()
        values = self._updated(latest, state)
        if self._latest.is_current(state):  # another thread was faster
            return self._latest
        if not self._latest.is_newer(state):
            self._latest = values
        return values

    def _updated(self, before: _Values, state: MemoryState) -> _Values:
        """*before* without what has changed up to *state*."""
        empty = _Values(state.generation, state.revision)
        # A run that is removed and learned again has the same id.
        if before.generation != state.generation:
            return empty
        changed = self._connection.rows(
            "runs_changed_since", revision=before.revision, limit=MAX_CHANGED_RUNS + 1
        )
        if len(changed) > MAX_CHANGED_RUNS:
            return empty
        kept = before.by_key.without([row["id"] for row in changed])
        return _Values(state.generation, state.revision, kept)


def _candidate_of(row: Row) -> tuple[_Key, Any]:
    """The value of *row*, after its key."""
    key, value = row["key"], row["value"]
    match row["kind"]:
        case "trajectory":
            return key[0], TRAJECTORIES.read(value)
        case "fragment":
            return FragmentKey(*key), fragment_of(value)
        case _:
            return RecoveryKey(*key), recovery_of(value)


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

    def counts(self, words: Sequence[str]) -> model.WordCounts:
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
        return model.WordCounts(latest.total, {word: known[word] for word in distinct})

    def terms(self, words: Sequence[str], repo: str | None) -> list[Parameters]:
        """The rarest known ones of *words* with their weights, as `terms`."""
        counts = self.counts(words)
        weights = word_weights(counts.total, counts.by_word)
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


class ActiveSpace(Struct, frozen=True):
    """The active space, the *property* of runs with its vectors, and how many *runs* there are."""

    space: model.Space
    property: str
    runs: int


class Neo4jVectors:
    """`VectorStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection, values: CandidateCache) -> None:
        self._connection = connection
        self._values = values
        self._has_filters: dict[str, bool] = {}

    def active_space(self) -> model.Space | None:
        active = active_space(self._connection)
        return active.space if active else None

    def space_model(self, space: str) -> bytes | None:
        row = self._connection.row("space_model", name=space)
        return None if row is None else bytes(row["data"])

    def prepare(self, space: model.Space, model: bytes | None) -> None:
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
        runs = (TRAJECTORIES.read(row["trajectory"]) for row in unembedded)
        return {run.id: run_text(run) for run in runs}

    def add(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        def work(transaction: Transaction) -> None:
            transaction.begin_change()
            property_ = _property_of(transaction, space)
            new = transaction.collected("embeddable_runs", ids=sorted(vectors), property=property_)
            _write(transaction, property_, {run: vectors[run] for run in new})

        self._connection.write(work)

    def nearest(self, vector: model.Vector, scope: model.Scope, limit: int) -> Sequence[model.Near]:
        active = active_space(self._connection)
        rules.check_space(active.space if active else None, vector)
        if active is None or limit < 1:
            return []
        near = self._nearest(active, vector, scope, limit)
        return [model.Near(run, near[run.id]) for run in self._values.trajectories(near)]

    def nodes_to_embed(self, limit: int, space: str) -> Mapping[str, str]:
        found = self._connection.rows("nodes_to_embed", space=space, limit=max(0, limit))
        return {row["id"]: " ".join((row["head"], *row["parts"])) for row in found}

    def add_nodes(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        given = [
            {"id": id_, "vector": vector and vector.numbers().tolist()}
            for id_, vector in sorted(vectors.items())
        ]

        def work(transaction: Transaction) -> None:
            transaction.write("put_fragment_vectors", given, space=space)
            transaction.write("put_methodology_vectors", given, space=space)

        self._connection.write(work)

    def nearest_nodes(
        self, vector: model.Vector, node_type: NodeType, limit: int
    ) -> Mapping[tuple[str, str], model.Vector]:
        name = "nearest_fragments" if node_type == "Fragment" else "nearest_methodologies"
        numbers = vector.numbers().tolist()
        near = self._connection.rows(name, vector=numbers, space=vector.space, limit=max(0, limit))
        return {
            (row["run"], row["id"]): model.Vector(vector.space, vector_data(row["numbers"]))
            for row in near
        }

    def _nearest(
        self, active: ActiveSpace, vector: model.Vector, scope: model.Scope, limit: int
    ) -> dict[str, model.Vector]:
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
        return {
            row["id"]: model.Vector(vector.space, vector_data(row["numbers"])) for row in nearest
        }

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
    space = model.Space(row["name"], row["runs"], row["similarity_threshold"])
    return ActiveSpace(space, row["property"], state.trajectories)


def vector_of(space: str, value: object) -> model.Vector | None:
    """The vector that the server returned."""
    return None if value is None else model.Vector(space, vector_data(value))


def insert_vectors(transaction: Transaction, bundles: Sequence[model.Bundle]) -> None:
    """Write the vectors of new runs, unless their space has been dropped."""
    embedded = {bundle.trajectory.id: bundle.embedded for bundle in bundles if bundle.embedded}
    properties = _properties(transaction) if embedded else {}
    for space, property_ in properties.items():
        of_space = {
            run: embedding.vector for run, embedding in embedded.items() if embedding.space == space
        }
        _write(transaction, property_, of_space)


def _prepare(
    transaction: Transaction, space: model.Space, model: bytes | None, property_: str
) -> bool:
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


def _write(
    transaction: Transaction, property_: str, vectors: Mapping[str, model.Vector | None]
) -> None:
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

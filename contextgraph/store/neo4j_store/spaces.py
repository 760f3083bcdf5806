"""Embedding spaces: their models, their vectors, and the one that is active.

The vectors of a space are a property of nodes that no other space of the memory has at that time,
so that a space can be prepared beside the one that answers, in an index of its own.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import count

from contextgraph.errors import SpaceMismatchError, StoreError
from contextgraph.model import Bundle, Methodology, RunTexts, RunVectors, Space, run_texts
from contextgraph.store.neo4j_store import memory_state, methodologies, rows
from contextgraph.store.neo4j_store.changes import begin_change
from contextgraph.store.neo4j_store.memory_state import MemoryState
from contextgraph.store.neo4j_store.rows import Parameters, Row
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.vectors import Vector, dimensions_of

# Larger transactions with vectors need more memory on the server and are no faster.
_ROWS_AT_ONCE = 500
_RUNS_SWEPT_AT_ONCE = 200


@dataclass(frozen=True, slots=True)
class Kept:
    """A space, and the *property* of nodes that holds their vector."""

    space: Space
    property: str


@dataclass(frozen=True, slots=True)
class Active(Kept):
    """The space that answers, and the *state* of the memory."""

    state: MemoryState


def active(transaction: Transaction) -> Active | None:
    """The space that answers."""
    state = memory_state.of(transaction)
    if state.space is None:
        return None
    kept = _kept(state.space)
    return Active(kept.space, kept.property, state)


def active_for(transaction: Transaction, vector: Vector) -> Active:
    """The active space; raises `SpaceMismatchError` where *vector* is of another."""
    found = active(transaction)
    if found is None or found.space.name != vector.space:
        name = found.space.name if found else "none yet"
        raise SpaceMismatchError(
            f"a vector of space {vector.space} was asked about, the memory's space is {name}"
        )
    return found


def space_model(transaction: Transaction, name: str) -> bytes | None:
    """What was stored with the space of this name."""
    row = transaction.row("space_model", name=name)
    return None if row is None else bytes(row["data"])


def property_of(transaction: Transaction, name: str) -> str | None:
    """The property for the vectors of the space *name*, None where there is no such space."""
    known = {kept.space.name: kept.property for kept in _all(transaction)}
    return known.get(name)


def free_property(transaction: Transaction, name: str) -> str:
    """The property for the vectors of the space *name*: its own, or one that no other has."""
    known = {kept.space.name: kept.property for kept in _all(transaction)}
    if name in known:
        return known[name]
    taken = {*known.values(), *(row["property"] for row in transaction.rows("retired_spaces"))}
    dimensions = dimensions_of(name)
    names = (f"embedding_{dimensions}_{number}" for number in count(1))
    return next(free for free in names if free not in taken)


def prepare(transaction: Transaction, space: Space, model: bytes | None, property_: str) -> bool:
    """Make room for *space* under *property_*; False where another has taken that meanwhile."""
    begin_change(transaction)
    if free_property(transaction, space.name) != property_:
        return False
    is_new = all(kept.space.name != space.name for kept in _all(transaction))
    transaction.rows(
        "put_space", name=space.name, property=property_, runs=space.runs, alike=space.alike
    )
    if is_new and model is not None:
        transaction.rows("put_space_model", name=space.name, data=model)
    return True


def switch(transaction: Transaction, name: str) -> None:
    """Make the space of this name the active one; others are not to be seen any more."""
    begin_change(transaction)
    _known(transaction, [name])
    transaction.rows("activate_space", name=name)
    transaction.rows("retire_spaces", name=name)


def retired(transaction: Transaction) -> list[tuple[str, str]]:
    """Name and property of the spaces whose vectors have yet to be taken away."""
    return [(row["name"], row["property"]) for row in transaction.rows("retired_spaces")]


def sweep(transaction: Transaction, name: str, property_: str, after: str) -> str:
    """Take its vectors from the next runs *after* one; the last of them, empty at the end."""
    row = transaction.row("sweep_runs", property=property_, after=after, limit=_RUNS_SWEPT_AT_ONCE)
    if row is None or row["last"] is None:
        transaction.rows("sweep_methodologies", property=property_)
        transaction.rows("remove_space", name=name)
        return ""
    last: str = row["last"]
    return last


def texts_to_embed(
    transaction: Transaction, limit: int, space: str | None, after: str
) -> list[RunTexts]:
    """The texts of runs by id, of those without vectors in *space* where one is given."""
    known = {kept.space.name: kept.property for kept in _all(transaction)}
    property_ = None if space is None else known.get(space)
    found = transaction.rows("runs_to_embed", limit=max(0, limit), property=property_, after=after)
    return list(map(_texts, found))


def add_vectors(transaction: Transaction, vectors: Mapping[str, RunVectors]) -> None:
    """Write *vectors* by the id of their run, where the run is there and has none of the space."""
    begin_change(transaction)
    transaction.rows("note_embedding")
    known = _known(transaction, sorted({found.space for found in vectors.values()}))
    for space, property_ in known.items():
        of_space = {run: found for run, found in vectors.items() if found.space == space}
        asked = transaction.rows("embeddable_runs", ids=sorted(of_space), property=property_)
        fitting = [
            (row["id"], row["fragments"], of_space[row["id"]])
            for row in asked
            if len(row["fragments"]) == len(of_space[row["id"]].fragments)
        ]
        _write(transaction, property_, fitting)


def methodologies_to_embed(
    transaction: Transaction, limit: int, space: str | None
) -> list[Methodology]:
    """Methodologies by id, of those without a vector in *space* where one is given."""
    known = {kept.space.name: kept.property for kept in _all(transaction)}
    property_ = None if space is None else known.get(space)
    found = transaction.rows("methodologies_to_embed", limit=max(0, limit), property=property_)
    return methodologies.methodologies_of(transaction, [row["id"] for row in found])


def add_methodology_vectors(
    transaction: Transaction, space: str, vectors: Mapping[str, Vector | None]
) -> None:
    """Write *vectors* of *space*, where the methodology is there and has none of it."""
    begin_change(transaction)
    transaction.rows("note_embedding")
    property_ = _known(transaction, [space])[space]
    asked = transaction.rows("embeddable_methodologies", ids=sorted(vectors), property=property_)
    ids = [row["id"] for row in asked]
    given = _vector_rows((node, vectors[node]) for node in ids)
    transaction.write("add_methodology_vectors", given, property=property_)
    transaction.rows("note_embedded_methodologies", ids=ids, property=property_)


def insert(transaction: Transaction, bundles: Sequence[Bundle]) -> None:
    """Write the vectors of runs being learned, unless their space has been dropped."""
    embedded = [(bundle, bundle.vectors) for bundle in bundles if bundle.vectors]
    known = {kept.space.name: kept.property for kept in _all(transaction)} if embedded else {}
    for space, property_ in known.items():
        found = [
            (bundle.trajectory.id, [fragment.id for fragment in bundle.fragments], vectors)
            for bundle, vectors in embedded
            if vectors.space == space
        ]
        _write(transaction, property_, found)


def _write(
    transaction: Transaction, property_: str, found: Sequence[tuple[str, Sequence[str], RunVectors]]
) -> None:
    """Write the vectors of runs and of their fragments, named in order."""
    runs = [(run, vectors.trajectory) for run, _, vectors in found]
    fragments = [
        pair for _, ids, vectors in found for pair in zip(ids, vectors.fragments, strict=True)
    ]
    for name, pairs in (("add_trajectory_vectors", runs), ("add_fragment_vectors", fragments)):
        given = _vector_rows(pairs)
        for start in range(0, len(given), _ROWS_AT_ONCE):
            transaction.write(name, given[start : start + _ROWS_AT_ONCE], property=property_)
    transaction.rows("note_embedded_runs", ids=[run for run, _, _ in found], property=property_)


def _vector_rows(pairs: Iterable[tuple[str, Vector | None]]) -> list[Parameters]:
    return [
        {"id": node, "vector": vector.numbers().tolist()} for node, vector in _sorted_by_id(pairs)
    ]


def _sorted_by_id(pairs: Iterable[tuple[str, Vector | None]]) -> list[tuple[str, Vector]]:
    """Those that have a vector, in the order in which nodes are locked."""
    return sorted(((node, vector) for node, vector in pairs if vector), key=lambda pair: pair[0])


def _all(transaction: Transaction) -> list[Kept]:
    return [_kept(row["space"]) for row in transaction.rows("spaces")]


def _known(transaction: Transaction, names: Sequence[str]) -> dict[str, str]:
    """The properties of the spaces of these names; raises `StoreError` where there is none."""
    known = {kept.space.name: kept.property for kept in _all(transaction)}
    for name in names:
        if name not in known:
            raise StoreError(f"no room was made for space {name}, or another took its place since")
    return {name: known[name] for name in names}


def _kept(row: Row) -> Kept:
    return Kept(Space(row["name"], row["runs"], row["alike"]), row["property"])


def _texts(row: Row) -> RunTexts:
    messages: dict[str, list[str]] = {}
    for fragment, message in row["messages"]:
        messages.setdefault(fragment, []).append(message)
    fragments = list(map(rows.fragment_of, row["fragments"]))
    return run_texts(rows.trajectory_of(row["trajectory"]), fragments, messages)

"""Two stores that get the same calls and must give the same results."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter, itemgetter
from types import MappingProxyType
from typing import Any, cast

import networkx as nx

from contextgraph.errors import ContextGraphError
from contextgraph.model import Bundle, MemoryGate, Unconsolidated, WordCounts
from contextgraph.model.values import replace
from contextgraph.store.memory_store import Store

NONE: Mapping[str, object] = MappingProxyType({})


@dataclass(slots=True)
class ComparedStores:
    """A *reference*, and *memories* with several connections each, as of different processes."""

    reference: Store
    memories: Sequence[Sequence[Store]]
    written: int = 0

    def write(self, operation: str, *arguments: object, **named: object) -> None:
        """Do it to the reference, and to each memory through one of its connections."""
        self.written += 1
        expected = answer(self.reference, operation, arguments, named)
        for connections in self.memories:
            connection = connections[self.written % len(connections)]
            assert answer(connection, operation, arguments, named) == expected, operation

    def compare(self, operation: str, *arguments: object, **named: object) -> None:
        """Call the reference and every connection: the answers must be equal."""
        expected = answer(self.reference, operation, arguments, named)
        for connections in self.memories:
            for connection in connections:
                assert answer(connection, operation, arguments, named) == expected, operation

    def learn(self, memory: Sequence[Bundle]) -> None:
        """Learn the same runs, the reference in opposite order: it must not matter.

        Runs that are named twice are learned once, as the first to come stays.
        """
        runs = list({bundle.trajectory.id: bundle for bundle in memory}.values())
        for bundle in reversed(runs):
            answer(self.reference, "runs.add", [[bundle]])
        for connections in self.memories:
            for number, bundle in enumerate(runs):
                connections[number % len(connections)].runs.add([bundle])

    def mark_consolidated(self, gate: MemoryGate | None = None) -> None:
        """Consolidate up to now, which each store counts in its own way."""
        for store in (self.reference, *(connections[0] for connections in self.memories)):
            changed = operation_of(store, "admin.unconsolidated")()
            operation_of(store, "admin.mark_consolidated")(changed.revision, gate)

    def close(self) -> None:
        """Release all that was opened."""
        for connections in self.memories:
            for connection in connections:
                connection.close()
        self.reference.close()


def operation_of(store: object, name: str) -> Callable[..., Any]:
    """The operation called *name*, such as ``runs.add``."""
    return cast(Callable[..., Any], attrgetter(name)(store))


def answer(
    store: object, operation: str, arguments: Sequence[object], named: Mapping[str, object] = NONE
) -> Any:
    """Return the answer of *store*, or its error; the order of mappings counts."""
    try:
        return _plain(operation_of(store, operation)(*arguments, **named))
    except ContextGraphError as error:
        return type(error)


def _plain(result: Any) -> Any:
    if isinstance(result, nx.MultiDiGraph):
        plain = result
        return sorted(plain.nodes.items()), sorted(plain.edges.items(), key=itemgetter(0))
    if isinstance(result, WordCounts):
        return result.total, _plain(result.by_word)
    if isinstance(result, Unconsolidated):
        return replace(result, revision=0)  # a number that means something to one store only
    if isinstance(result, Mapping):
        return [(key, _plain(value)) for key, value in result.items()]
    is_list = isinstance(result, Sequence | Iterator) and not isinstance(result, str | bytes)
    return list(result) if is_list else result

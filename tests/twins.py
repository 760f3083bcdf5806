"""Stores that must answer alike, asked together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from contextgraph.errors import ContextGraphError
from contextgraph.model import Bundle, Unconsolidated
from contextgraph.ports import GraphStore
from tests.reference_memory import ReferenceMemory


@dataclass(slots=True)
class Twins:
    """A *reference*, and *memories* that each have several doors, as different processes have."""

    reference: ReferenceMemory | GraphStore
    memories: Sequence[Sequence[GraphStore]]
    written: int = 0

    def write(self, operation: str, *arguments: object) -> object:
        """Do it to the reference, and to each memory through one of its doors; what was said."""
        self.written += 1
        expected = answer(self.reference, operation, arguments)
        for doors in self.memories:
            door = doors[self.written % len(doors)]
            assert answer(door, operation, arguments) == expected, operation
        return expected

    def ask(self, operation: str, *arguments: object) -> None:
        """Ask the reference and every door."""
        expected = answer(self.reference, operation, arguments)
        for doors in self.memories:
            for door in doors:
                assert answer(door, operation, arguments) == expected, operation

    def learn(self, memory: Sequence[Bundle]) -> None:
        """Learn the same runs, the reference in opposite order: it must not matter.

        Runs that are named twice are learned once, as the first to come stays.
        """
        runs = list({bundle.trajectory.id: bundle for bundle in memory}.values())
        for bundle in reversed(runs):
            self.reference.add_bundles([bundle])
        for doors in self.memories:
            for number, bundle in enumerate(runs):
                doors[number % len(doors)].add_bundles([bundle])

    def mark_consolidated(self) -> None:
        """Consolidate up to now, which each store counts in its own way."""
        for store in (self.reference, *(doors[0] for doors in self.memories)):
            store.mark_consolidated(store.unconsolidated().revision)

    def close(self) -> None:
        """Release all that was opened."""
        for doors in self.memories:
            for door in doors:
                door.close()
        if not isinstance(self.reference, ReferenceMemory):
            self.reference.close()


def answer(store: object, operation: str, arguments: Sequence[object]) -> Any:
    """What *store* says, in a form in which the order of mappings counts; or what it raises."""
    try:
        return _plain(getattr(store, operation)(*arguments))
    except ContextGraphError as error:
        return type(error)


def _plain(said: Any) -> Any:
    if isinstance(said, Unconsolidated):
        return replace(said, revision=0)  # a number that means something to one store only
    if isinstance(said, Mapping):
        return [(key, _plain(value)) for key, value in said.items()]
    return list(said) if isinstance(said, Sequence) and not isinstance(said, str | bytes) else said

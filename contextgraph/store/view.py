"""What one reader sees of the memory: one revision of one tenant."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from sqlite3 import Connection

from contextgraph.model import ErrorPattern, FragmentCandidate, RecoveryCandidate, Scope, Trajectory
from contextgraph.store import values
from contextgraph.store.scoping import Scoped, scoped
from contextgraph.store.values import Values


@dataclass(frozen=True, slots=True)
class View:
    """A connection within a transaction, and what was read before at this revision."""

    connection: Connection
    tenant: int
    values: Values

    def scoped(self, scope: Scope) -> Scoped:
        """*scope* as SQL has it."""
        return scoped(self.connection, self.tenant, scope, self.values.places)

    def trajectories(self, keys: Sequence[int]) -> dict[int, Trajectory]:
        """The runs with these keys, by key."""
        read = partial(values.read_trajectories, self.connection)
        return self.values.trajectories.of(keys, read)

    def fragments(self, keys: Sequence[int]) -> dict[int, FragmentCandidate]:
        """The fragments with these keys, by key."""
        read = partial(values.read_fragments, self.connection)
        found = self.values.fragments.of(keys, read)
        runs = self.trajectories([run for run, _ in found.values()])
        return {key: FragmentCandidate(value, runs[run]) for key, (run, value) in found.items()}

    def recoveries(self, keys: Sequence[int]) -> list[RecoveryCandidate]:
        """The recoveries with these keys, in their order."""
        read = partial(values.read_recoveries, self.connection)
        found = self.values.recoveries.of(keys, read)
        runs = self.trajectories([one.run for one in found.values()])
        patterns = self.errors([one.error for one in found.values()])
        return [
            RecoveryCandidate(one.recovered, patterns[one.error], runs[one.run])
            for one in map(found.__getitem__, keys)
        ]

    def errors(self, keys: Sequence[int]) -> dict[int, ErrorPattern]:
        """The error patterns with these keys, by key."""
        return self.values.errors.of(keys, partial(values.read_errors, self.connection))

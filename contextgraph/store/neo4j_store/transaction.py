"""A transaction that is open, and the named queries run in it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from contextgraph.store.neo4j_store.queries import query
from contextgraph.store.neo4j_store.rows import Row

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Transaction as Begun


class Transaction:
    """Runs named queries, each with the *tenant* as a parameter."""

    def __init__(self, transaction: "ManagedTransaction | Begun", tenant: str) -> None:
        self._transaction = transaction
        self.tenant = tenant
        self._once: dict[str, Row | None] = {}

    def rows(self, name: str, /, **parameters: object) -> list[Row]:
        """All that the query of this name returns."""
        result = self._transaction.run(query(name), {"tenant": self.tenant, **parameters})
        return list(result)

    def row(self, name: str, /, **parameters: object) -> Row | None:
        """The first row of it, None where there is none."""
        found = self.rows(name, **parameters)
        return found[0] if found else None

    def once(self, name: str, /) -> Row | None:
        """The first row, asked once: of what this transaction does not change itself."""
        if name not in self._once:
            self._once[name] = self.row(name)
        return self._once[name]

    def write(self, name: str, rows: Sequence[object], /, **parameters: object) -> None:
        """Run a query over *rows*, unless there are none."""
        if rows:
            self.rows(name, rows=rows, **parameters)

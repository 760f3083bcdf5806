"""A transaction that is open, and the named queries run in it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from contextgraph.store.neo4j_store.queries import query
from contextgraph.store.neo4j_store.rows import Parameters, Row

if TYPE_CHECKING:
    from neo4j import ManagedTransaction, Result, Session

# As named in the files of queries, for the reader and for the lint.
_INDEX = re.compile(r"VECTOR INDEX \w+ ")

Seen: TypeAlias = dict[str, Row | None]


@dataclass(frozen=True, slots=True)
class OneByOne:
    """Runs each query in a transaction of its own: one round trip a query, with none to begin one.

    Nothing is tried again. The server ends what takes longer than *seconds*.
    """

    session: "Session"
    seconds: float

    def run(self, text: str, parameters: Parameters) -> "Result":
        """What the query *text* returns."""
        from neo4j import Query

        # Queries are named in files: no text from outside.
        return self.session.run(Query(text, timeout=self.seconds), parameters)


class Transaction:
    """Runs named queries, each with the *tenant* as a parameter; *seen* is what was asked once."""

    def __init__(
        self, transaction: "ManagedTransaction | OneByOne", tenant: str, seen: Seen | None = None
    ) -> None:
        self._transaction = transaction
        self.tenant = tenant
        self._once: Seen = {} if seen is None else seen

    def rows(self, name: str, /, **parameters: object) -> list[Row]:
        """All that the query of this name returns."""
        result = self._transaction.run(query(name), {"tenant": self.tenant, **parameters})
        return list(result)

    def searched(self, name: str, index: str, /, **parameters: object) -> list[Row]:
        """All that the query of this name returns when it searches *index*.

        The name of an index cannot be a parameter: it takes the place of that in the text.
        """
        text = _INDEX.sub(f"VECTOR INDEX {index} ", query(name))
        return list(self._transaction.run(text, {"tenant": self.tenant, **parameters}))

    def row(self, name: str, /, **parameters: object) -> Row | None:
        """The first row of it, None where there is none."""
        found = self.rows(name, **parameters)
        return found[0] if found else None

    def found(self, name: str, /, **parameters: object) -> list[Any]:
        """The list *found* in the one row of it: what is found in an order, in one record."""
        (row,) = self.rows(name, **parameters)
        found: list[Any] = row["found"]
        return found

    def once(self, name: str, /) -> Row | None:
        """The first row, asked once: of what this transaction does not change itself."""
        if name not in self._once:
            self._once[name] = self.row(name)
        return self._once[name]

    def write(self, name: str, rows: Sequence[object], /, **parameters: object) -> None:
        """Run a query over *rows*, unless there are none."""
        if rows:
            self.rows(name, rows=rows, **parameters)

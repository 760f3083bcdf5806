"""Which recoveries fragments have, asked once of each."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from contextgraph.store.neo4j_store import memory_state
from contextgraph.store.neo4j_store.memory_state import Era
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.neo4j_store.values import RecoveryKey
from contextgraph.store.remembered import Remembered


@dataclass(frozen=True, slots=True)
class _Known:
    """The recoveries of fragments by the id of these, read in an *era*."""

    era: Era | None
    keys: Remembered[str, tuple[RecoveryKey, ...]] = field(default_factory=Remembered)


class KnownRecoveries:
    """Those of fragments that were asked about: always the same, until something is removed."""

    def __init__(self) -> None:
        self._latest = _Known(None)

    def of(self, transaction: Transaction, ids: Sequence[str]) -> list[RecoveryKey]:
        """Those of the fragments of these ids, in their order, those of one by error and step."""
        era = memory_state.of(transaction).era
        latest = self._latest
        if latest.era != era:
            latest = self._latest = _Known(era)
        found = latest.keys.of(ids, partial(_read, transaction))
        return [key for id_ in ids for key in found[id_]]


def _read(transaction: Transaction, ids: Sequence[str]) -> dict[str, tuple[RecoveryKey, ...]]:
    keys = [RecoveryKey(*key) for key in transaction.found("recoveries_of", ids=ids)]
    return {id_: tuple(key for key in keys if key.fragment_id == id_) for id_ in ids}

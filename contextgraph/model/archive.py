"""What a memory is made of, as one store hands it to another."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from contextgraph.model.bundle import Bundle


@dataclass(frozen=True, slots=True)
class ArchivedRun:
    """A run as it is kept by now: some of its fragments may have been pruned.

    *steps* says at how many steps it met each error, by the id of the error, also in fragments that
    were pruned. The vectors of its *bundle* are those of the active space.
    """

    bundle: Bundle
    steps: Mapping[str, int] = field(hash=False)


@dataclass(frozen=True, slots=True)
class Exposure:
    """A context that was shown; *items* are ids with their share of the credit.

    *helped* is None where it was not reported.
    """

    context_id: str
    shown_at: datetime
    error_id: str | None
    helped: bool | None
    items: tuple[tuple[str, float], ...]

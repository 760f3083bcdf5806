"""Remembering what was shown."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Protocol


class ExposureStore(Protocol):
    """Remembers what was shown, and what came of it."""

    def add_exposure(
        self,
        context_id: str,
        items: Sequence[str],
        shown_at: datetime,
        error_id: str | None = None,
    ) -> None:
        """Note that *items* (ids of fragments and methodologies) were shown as *context_id*.

        A context that is noted already stays as it is. *error_id* is the error that the items were
        to clear: `add_bundles` of a run in whose playbooks the context was found, and that met this
        error, reports whether the run cleared it.
        """

    def report_outcome(self, context_id: str, helped: bool) -> bool:
        """Credit or debit the items of a context; False where it is unknown or was reported."""

    def credit(self, items: Sequence[str]) -> Mapping[str, tuple[float, float]]:
        """Item id -> (times it was shown and helped, times it did not); (0, 0) for unknown ones.

        What was shown together shares each time in equal parts; rounded to four decimals.
        """

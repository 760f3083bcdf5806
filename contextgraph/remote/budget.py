"""What may be spent on models before someone is asked."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from contextgraph.errors import RemoteError
from contextgraph.model import Usage


class Budget:
    """Refuses calls that may cost more than *max_cost* US dollars together; None: no bound.

    Threads may share it. What is under way counts with its estimate.
    """

    def __init__(self, max_cost: float | None = None) -> None:
        self.max_cost = max_cost
        self._lock = threading.Lock()
        self._taken = 0.0

    @contextmanager
    def spending(self, estimate: float) -> Iterator[Callable[[Usage], None]]:
        """Set *estimate* US dollars aside for a call; tell what is yielded what it really took.

        Raises `RemoteError` where that is more than is left.
        """
        self._take(estimate)
        told = 0.0

        def tell(usage: Usage) -> None:
            nonlocal told
            told = usage.cost

        try:
            yield tell
        finally:
            with self._lock:
                self._taken += told - estimate

    def _take(self, estimate: float) -> None:
        with self._lock:
            if self.max_cost is not None and self._taken + estimate > self.max_cost:
                raise RemoteError(
                    f"another call would pass the cap of ${self.max_cost:.4f}: ${self._taken:.4f} "
                    f"spent, ${estimate:.4f} asked for; raise --max-cost"
                )
            self._taken += estimate

"""Sessions of agents in two stores: what is shown through either is known in both."""

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import TypeAlias, TypeVar

from contextgraph.errors import StoreUnavailableError
from contextgraph.model import Exposure
from contextgraph.store.memory_store import ExposureStore

T = TypeVar("T")
OpenExposures: TypeAlias = Callable[[], AbstractContextManager[ExposureStore]]


class SharedExposures(ExposureStore):
    """The exposures of *own*, whose sessions go on in those that *other* opens.

    *on_unavailable* is called where *other* does not answer; the error is raised as well.
    """

    def __init__(
        self,
        own: ExposureStore,
        other: OpenExposures,
        on_unavailable: Callable[[StoreUnavailableError], None] = lambda error: None,
    ) -> None:
        super().__init__(own._port, own._whole)
        self._other, self._on_unavailable = other, on_unavailable

    def add(self, exposures: Sequence[Exposure]) -> None:
        super().add(exposures)
        self._ask(lambda other: other.add(exposures))

    def of_session(self, session: str, only_of: str | None = None) -> Sequence[Exposure]:
        found = self._ask(lambda other: other.of_session(session, only_of))
        own = super().of_session(session, only_of)
        known = {one.context_id: one for one in (*found, *own)}
        return sorted(known.values(), key=lambda one: (one.shown_at, one.context_id))

    def forget_session(self, session: str, only_of: str | None = None) -> None:
        super().forget_session(session, only_of)
        self._ask(lambda other: other.forget_session(session, only_of))

    def _ask(self, call: Callable[[ExposureStore], T]) -> T:
        try:
            with self._other() as other:
                return call(other)
        except StoreUnavailableError as error:
            self._on_unavailable(error)
            raise

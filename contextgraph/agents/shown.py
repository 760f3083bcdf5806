"""Record of what an agent was shown in its session, through whichever entrance."""

import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from contextgraph.advising.pipeline import sayings, without_shown
from contextgraph.errors import ContextGraphError, StoreError
from contextgraph.model import Exposure, MemoryContext, ShownIn, new_context_id
from contextgraph.model.values import replace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from contextgraph.memory.agent_memory import AgentMemory

_log = logging.getLogger(__name__)


class Session:
    """Shows an agent nothing twice.

    A session with a *name* is recorded in the memory, where live runs, hooks and tools that have
    the same name find it; one without ends with this object. At a service it is of a token of
    *source*. *failures* are errors that the agent was spared.
    """

    def __init__(
        self,
        memory: "AgentMemory",
        name: str = "",
        *,
        agent: str = "",
        repo: str = "",
        source: str = "",
    ) -> None:
        self.name, self.agent, self.repo, self._source = name, agent, repo, source
        self._memory = memory
        self._said: set[str] = set()
        self.failures: list[ContextGraphError] = []

    def exposures(self) -> "Sequence[Exposure]":
        """Return what was shown or withheld under its name, oldest first. Raises `StoreError`."""
        return self._memory.store.exposures.of_session(self.name) if self.name else ()

    def said(self) -> set[str]:
        """Return what is not shown again: see `sayings`. Raises `StoreError`."""
        return self._said.union(*(one.said for one in self.exposures()))

    def show(self, context: MemoryContext, max_tokens: int, moment: str = "") -> str:
        """Return the prompt text of what is new in *context*; empty for nothing.

        It is recorded as shown at *moment*. Raises `StoreError` where the session cannot be read.
        """
        if not context:
            return ""
        context = without_shown(context, self.said())
        where = ShownIn(self.name, moment, self.agent, self.repo, self._source)
        text = self._memory.render(context, max_tokens, where=where)
        if text:
            self._said.update(sayings(context))
        if text and self.name:
            try:
                self._memory.note_exposures(waiting=False)
            except StoreError as error:  # tried again when something is written
                self.fail("what was shown is not recorded", error)
        return text

    def record(self, moment: str, lines: "Mapping[str, str]") -> None:
        """Record *lines*, by their keys, as shown to a person at *moment*."""
        self._said.update(lines)
        if lines and self.name and self._memory.records_shown:
            one = Exposure.of(
                new_context_id(), (), datetime.now(UTC), text="\n".join(lines.values())
            )
            said = replace(
                one, session=self.name, moment=moment, agent=self.agent, repo=self.repo,
                said=tuple(lines), shown_to=self._source,
            )  # fmt: skip
            self._memory.store.exposures.add([said])

    def fail(self, what: str, error: ContextGraphError) -> None:
        """Log *error* and what follows from it: an agent must not stop because of its memory."""
        _log.warning("%s: %s", what, error)
        self.failures.append(error)

    def forget(self) -> None:
        """Let all be shown again: it left the context of the agent. Raises `StoreError`."""
        self._said.clear()
        if self.name and self._memory.records_shown:
            self._memory.note_exposures(waiting=False)
            self._memory.store.exposures.forget_session(self.name)

"""Loops of an agent: detection, and escape suggestions from earlier runs."""

from collections.abc import Sequence
from dataclasses import replace

from contextgraph.loops.escape import EscapeFinder, Retriever
from contextgraph.model import EscapeSuggestion, LoopInfo, State
from contextgraph.ports import Store
from contextgraph.text import masked_name
from contextgraph.trace import Trace, loop_in, states_of

MAX_SUGGESTIONS = 3


class LoopDetector:
    """Detects repeated predicaments, and suggests what led out of such loops in other runs."""

    def __init__(self, store: Store, retriever: Retriever) -> None:
        self._store = store
        self._retriever = retriever

    def detect(
        self, states: Sequence[State], *, exclude_instances: frozenset[str] = frozenset()
    ) -> LoopInfo | None:
        """The loop that the last of *states* is in; None where there is none.

        Nothing is suggested from runs of *exclude_instances*.
        """
        loop = loop_in(states)
        if loop is None:
            return None
        return self._with_suggestions(loop, states[-1], exclude_instances)

    def detect_all(self, run: Trace) -> tuple[LoopInfo, ...]:
        """The loops of a finished *run*, with suggestions from runs of other instances."""
        if not run.loops:
            return ()
        states, own = tuple(states_of(run.raw)), frozenset({run.raw.instance_id})
        return tuple(self._with_suggestions(loop, states[loop.end + 1], own) for loop in run.loops)

    def get_escape_suggestions(
        self, state: State, *, exclude_instances: frozenset[str] = frozenset()
    ) -> tuple[EscapeSuggestion, ...]:
        """What led out of the loop of *state* in other runs: at most three suggestions, best first.

        Where there is an error: what cleared it, first where that ended the same loop, the same
        repository before others. Without one: how others continued from the same place, and what
        several repositories continued with after such a command.
        """
        finder = EscapeFinder(
            self._store, self._retriever, frozenset(map(masked_name, exclude_instances))
        )
        with self._store.snapshot():
            escapes = finder.for_state(state, MAX_SUGGESTIONS)
        # What one run did several times is one suggestion.
        first_of_runs = {escape.runs: escape for escape in reversed(escapes)}
        distinct = [escape for escape in escapes if first_of_runs[escape.runs] is escape]
        return tuple(escape.suggestion() for escape in distinct[:MAX_SUGGESTIONS])

    def _with_suggestions(
        self, loop: LoopInfo, state: State, exclude_instances: frozenset[str]
    ) -> LoopInfo:
        suggestions = self.get_escape_suggestions(state, exclude_instances=exclude_instances)
        return replace(loop, escape_suggestions=suggestions)

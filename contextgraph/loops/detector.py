"""Finding the loop that an agent is in, with ways out."""

from collections.abc import Sequence
from dataclasses import replace

from contextgraph.model import LoopInfo, Scope, SignatureLevel, State
from contextgraph.ports import RetrievalStore
from contextgraph.trace import loop_in, signature_of

SUGGESTIONS = 3
_CANDIDATES = 30


class LoopDetector:
    """Detects loops by the sameness of the predicament, and knows what led out of it before."""

    def __init__(self, store: RetrievalStore) -> None:
        self._store = store

    def detect(self, states: Sequence[State]) -> LoopInfo | None:
        """The loop that the last of *states* is in; None where there is none."""
        loop = loop_in(states)
        if loop is None:
            return None
        return replace(loop, escape_suggestions=self.get_escape_suggestions(states[-1]))

    def get_escape_suggestions(self, state: State) -> tuple[str, ...]:
        """What cleared the error of *state* in other runs, same repository first, at most three."""
        signature = signature_of(state.current_error or state.last_outcome)
        if signature is None:
            return ()
        found: dict[str, None] = {}
        for scope in dict.fromkeys((Scope(state.repo or None), Scope())):
            candidates = self._store.recoveries_for_error(
                signature, SignatureLevel.TEMPLATE, scope, _CANDIDATES
            )
            kept = [c for c in candidates if c.recovered.verified and not c.recovered.workaround]
            found.update(dict.fromkeys(c.recovered.what for c in kept))
        return tuple(found)[:SUGGESTIONS]

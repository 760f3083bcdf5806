"""Finding the loop that an agent is in, with ways out."""

from collections.abc import Sequence
from dataclasses import replace

from contextgraph.loops.adviser import Adviser, EvidenceStore
from contextgraph.loops.after import ways_after
from contextgraph.loops.cleared import ways_past_error
from contextgraph.loops.named import ways_past_names
from contextgraph.loops.onward import ways_onward
from contextgraph.loops.practised import ways_for_task
from contextgraph.loops.ways import WayOut, said
from contextgraph.model import LoopInfo, LoopKind, State
from contextgraph.trace import Trace, loop_in, states_of

SUGGESTIONS = 3


class LoopDetector:
    """Detects loops by the sameness of the predicament, and knows what led out of it before."""

    def __init__(self, store: EvidenceStore, adviser: Adviser) -> None:
        self._store = store
        self._adviser = adviser

    def detect(
        self, states: Sequence[State], *, exclude_instances: frozenset[str] = frozenset()
    ) -> LoopInfo | None:
        """The loop that the last of *states* is in; None where there is none.

        Runs of *exclude_instances* suggest no way out of it.
        """
        loop = loop_in(states)
        if loop is None:
            return None
        ways = self.get_escape_suggestions(states[-1], exclude_instances=exclude_instances)
        return replace(loop, escape_suggestions=ways)

    def detect_all(self, run: Trace) -> tuple[LoopInfo, ...]:
        """The loops of a finished *run*, with the ways out that runs of other instances know."""
        if not run.loops:
            return ()
        states, itself = tuple(states_of(run.raw)), frozenset({run.raw.instance_id})
        return tuple(
            replace(
                loop,
                escape_suggestions=self.get_escape_suggestions(
                    states[loop.end + 1], exclude_instances=itself
                ),
            )
            for loop in run.loops
        )

    def get_escape_suggestions(
        self, trouble: LoopInfo | State, *, exclude_instances: frozenset[str] = frozenset()
    ) -> tuple[str, ...]:
        """What led out of *trouble* in other runs: at most three sentences, best first.

        What left the same loop comes before what cleared the error elsewhere, the same repository
        before others; each sentence ends with the runs it comes from. Without an error: how others
        went on from the same spot, what worked for such tasks, and what several
        repositories went on with after such a command. A loop alone tells neither repository nor
        message, so for it only what several repositories agree on is said.
        """
        with self._store.snapshot():
            if isinstance(trouble, LoopInfo):
                ways = self._ways_by_names(trouble, exclude_instances)
            else:
                ways = self._ways_out(trouble, exclude_instances)
        # What one run did several times over is one way out.
        first_of_each = {way.runs: way for way in reversed(ways)}
        chosen = [way for way in ways if first_of_each[way.runs] is way]
        return tuple(said(way) for way in chosen[:SUGGESTIONS])

    def _ways_out(self, state: State, exclude_instances: frozenset[str]) -> list[WayOut]:
        if state.current_error:
            return ways_past_error(state, self._store, self._adviser, exclude_instances)
        ways = ways_onward(state, self._store, exclude_instances)
        if len(ways) < SUGGESTIONS:
            ways += ways_for_task(state, self._store, self._adviser, exclude_instances)
        if len(ways) < SUGGESTIONS:
            ways += ways_after(state.last_action, self._store, exclude_instances)
        return ways

    def _ways_by_names(self, loop: LoopInfo, exclude_instances: frozenset[str]) -> list[WayOut]:
        if loop.kind is LoopKind.REPEAT_NO_ERROR:
            return ways_after(loop.signatures[0], self._store, exclude_instances)
        return ways_past_names(loop.signatures, self._store, exclude_instances)

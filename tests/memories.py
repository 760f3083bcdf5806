"""Random sequences of all that can be done to a memory, as a hypothesis state machine."""

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from contextgraph.model import Bundle, FittedModel, MemoryGate
from tests.arguments import Call, calls, operations
from tests.compared_stores import ComparedStores
from tests.strategies import ADVICE_IDS, ITEM_IDS, METHODOLOGY_IDS, SPACES, TRAJECTORY_IDS, bundles

# A file and a server differ in what can be wrong with them and in their schemas, and count
# revisions in their own ways.
INCOMPARABLE = {
    *(f"admin.{one}" for one in ("health", "back_up", "erase_deleted")),
    "admin.mark_consolidated",
    "notes.close",
}
COMPARED = [one for one in operations() if one not in INCOMPARABLE]
_GATE = MemoryGate(FittedModel(-1.0, {"attempt": 0.5}, ((0.0, 0.0), (1.0, 0.9))), 120, 80)


class Memories(RuleBasedStateMachine):
    """Whatever is done to stores that hold the same, they answer the same."""

    def __init__(self, stores: ComparedStores) -> None:
        super().__init__()
        self.stores = stores

    def teardown(self) -> None:
        self.stores.close()

    @initialize(many=st.lists(bundles(), min_size=2, max_size=6))
    def begin(self, many: list[Bundle]) -> None:
        for bundle in {bundle.trajectory.id: bundle for bundle in many}.values():
            self.stores.write("runs.add", [bundle])

    @rule(call=st.one_of(*map(calls, COMPARED)))
    def call(self, call: Call) -> None:
        self.stores.write(call.operation, *call.arguments, **call.named)

    @rule(gate=st.sampled_from((None, _GATE)))
    def mark_consolidated(self, gate: MemoryGate | None) -> None:
        self.stores.mark_consolidated(gate)

    @invariant()
    def they_hold_the_same(self) -> None:
        hold_the_same(self.stores)


def hold_the_same(stores: ComparedStores) -> None:
    """Compare all that the stores hold."""
    for operation in (
        "admin.counts",
        "exposures.gate",
        "admin.unconsolidated",
        "exposures.all",
        "methodologies.ids",
        "notes.all",
        "recoveries.error_steps",
        "vectors.active_space",
    ):
        stores.compare(operation)
    stores.compare("exposures.record", (*ADVICE_IDS[1:], *ITEM_IDS))
    stores.compare("exposures.sessions_shown", (*ADVICE_IDS[1:], *ITEM_IDS))
    stores.compare("methodologies.get", METHODOLOGY_IDS)
    for operation in ("runs.learned", "runs.trajectories", "runs.fragments"):
        stores.compare(operation, TRAJECTORY_IDS)
    for space in SPACES:
        stores.compare("vectors.space_model", space.name)
        stores.compare("vectors.texts_to_embed", 50, space.name)
    for run in TRAJECTORY_IDS:
        stores.compare("runs.archived", run)

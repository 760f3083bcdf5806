"""Runs as a model told them again are kept alike, whichever the store."""

from hypothesis import strategies as st

from contextgraph.model import Bundle, Retelling
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import ERROR_IDS, MAKERS, retellings
from tests.twins import Twins

ASKED = (*reversed(RUNS), RUNS[0], "absent")
OF_THESE = [f"{run}/{span}" for run in RUNS[:4] for span in ("0-0", "0-1", "0-2", "1-2", "2-5")]
given_runs = st.dictionaries(st.sampled_from((*RUNS[:4], "absent")), retellings(OF_THESE))


@congruent(memory=memories)
def test_retellings_of(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    twins.ask("retellings_of", ASKED)
    twins.write("forget", [memory[0].trajectory.id])
    twins.ask("retellings_of", ASKED)
    twins.ask("retellings_of", ())


@congruent(memory=memories, given=given_runs, again=given_runs, keep=st.integers(0, 1))
def test_put_retellings(
    twins: Twins,
    memory: list[Bundle],
    given: dict[str, Retelling],
    again: dict[str, Retelling],
    keep: int,
) -> None:
    """What is told again takes the place of what was, and is no change to consolidate."""
    twins.learn(memory)
    twins.mark_consolidated()
    for one in (given, again):
        twins.write("put_retellings", one)
        twins.ask("retellings_of", ASKED)
    twins.ask("learned_since_consolidation")
    twins.write("prune_failed_fragments", ERROR_IDS, keep)
    twins.ask("retellings_of", ASKED)
    twins.write("replace_bundle", memory[-1])
    twins.ask("retellings_of", ASKED)
    for bundle in memory:
        for fragment in bundle.fragments:
            twins.ask("explain", fragment.id)
        twins.ask("explain", bundle.trajectory.id)


@congruent(memory=memories)
def test_runs_to_retell(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for maker in (*MAKERS, "nobody"):
        twins.ask("runs_to_retell", maker)

"""What was learned is kept alike, whichever store keeps it."""

from dataclasses import replace

from hypothesis import strategies as st

from contextgraph.model import Bundle, Outcome
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import bundles
from tests.twins import Twins

OF_A_RUN = ("trajectory", "raw_trajectory")


def compare_all(twins: Twins) -> None:
    """Ask for everything that is kept of runs."""
    twins.ask("trajectory_ids")
    twins.ask("counts")
    twins.ask("fragments_of", RUNS)
    twins.ask("learned", RUNS)
    for run in RUNS:
        for operation in OF_A_RUN:
            twins.ask(operation, run)


@congruent(memory=memories, outcome=st.sampled_from(Outcome))
def test_add_bundles(twins: Twins, memory: list[Bundle], outcome: Outcome) -> None:
    for bundle in memory:
        twins.write("add_bundles", [bundle])
        told = replace(bundle.trajectory, outcome=outcome, exit_status="told")
        twins.write("add_bundles", [replace(bundle, trajectory=told)])
    compare_all(twins)


@congruent(memory=memories, bundle=bundles(RUNS))
def test_replace_bundle(twins: Twins, memory: list[Bundle], bundle: Bundle) -> None:
    twins.learn(memory)
    for run in (bundle, memory[0]):
        twins.write("replace_bundle", run)
        compare_all(twins)


@congruent(memory=memories)
def test_learned(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for runs in ((*reversed(RUNS), "absent", RUNS[0]), RUNS[:1], ()):
        twins.ask("learned", runs)


@congruent(memory=memories)
def test_trajectory(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for run in RUNS:
        twins.ask("trajectory", run)


@congruent(memory=memories)
def test_trajectory_ids(twins: Twins, memory: list[Bundle]) -> None:
    twins.ask("trajectory_ids")
    twins.learn(memory)
    twins.ask("trajectory_ids")


@congruent(memory=memories)
def test_raw_trajectory(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for run in RUNS:
        twins.ask("raw_trajectory", run)


@congruent(memory=memories)
def test_fragments_of(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for named in ((*RUNS, "absent"), RUNS[1::-1], ()):
        twins.ask("fragments_of", named)


@congruent(memory=memories, ids=st.lists(st.sampled_from((*RUNS, "absent")), max_size=4))
def test_forget(twins: Twins, memory: list[Bundle], ids: list[str]) -> None:
    twins.learn(memory)
    twins.write("forget", [*ids, memory[0].trajectory.id])
    compare_all(twins)
    twins.write("add_bundles", memory[:1])
    compare_all(twins)

"""Every store handles learned runs in the same way."""

from dataclasses import replace

from hypothesis import strategies as st

from contextgraph.model import (
    Bundle,
    ChangeStatus,
    Exposure,
    Outcome,
    OutcomeSource,
    ShownItem,
)
from tests.builders import NOON
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import INSTANCES, REPOSITORIES, bundles
from tests.twins import Twins

OF_A_RUN = ("runs.raw", "runs.archived")


def compare_all(twins: Twins) -> None:
    """Ask for everything that is kept of runs."""
    twins.ask("runs.ids")
    twins.ask("admin.counts")
    twins.ask("runs.fragments", RUNS)
    twins.ask("runs.learned", RUNS)
    twins.ask("runs.trajectories", RUNS)
    for run in RUNS:
        for operation in OF_A_RUN:
            twins.ask(operation, run)


@congruent(
    memory=memories,
    outcome=st.sampled_from(Outcome),
    origin=st.sampled_from(OutcomeSource),
    change=st.sampled_from(ChangeStatus),
)
def test_runs_add(
    twins: Twins,
    memory: list[Bundle],
    outcome: Outcome,
    origin: OutcomeSource,
    change: ChangeStatus,
) -> None:
    for bundle in memory:
        twins.write("runs.add", [bundle])
        changed = replace(
            bundle.trajectory,
            outcome=outcome,
            outcome_source=origin,
            change=change,
            exit_status="submitted",
        )
        twins.write("runs.add", [replace(bundle, trajectory=changed)])
    compare_all(twins)


@congruent(
    memory=memories,
    ids=st.lists(st.sampled_from((*RUNS, "absent")), max_size=4),
    outcome=st.sampled_from(Outcome),
)
def test_runs_set_outcome(
    twins: Twins, memory: list[Bundle], ids: list[str], outcome: Outcome
) -> None:
    twins.learn(memory)
    ids.append(memory[0].trajectory.id)
    twins.write("runs.set_outcome", ids, outcome)
    compare_all(twins)
    twins.write("runs.add", memory[:1])
    compare_all(twins)


@congruent(memory=memories, given=st.dictionaries(st.sampled_from(RUNS), bundles(RUNS), max_size=5))
def test_runs_replace(twins: Twins, memory: list[Bundle], given: dict[str, Bundle]) -> None:
    """Of the same id or of a former one; several may also be of one id, or take that of another."""
    twins.learn(memory)
    shown = [one.id for run in memory for one in run.fragments][:2]
    twins.write("exposures.add", [Exposure.of("ctx_1", map(ShownItem, shown), NOON)])
    twins.write("exposures.report", "ctx_1", True)
    for bundles_by_id in ({memory[0].trajectory.id: memory[0]}, given):
        twins.write("runs.replace", bundles_by_id)
        compare_all(twins)
    twins.ask("exposures.record", shown)
    twins.ask("runs.learned", RUNS)


@congruent(memory=memories)
def test_runs_learned(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for runs in ((*reversed(RUNS), "absent", RUNS[0]), RUNS[:1], ()):
        twins.ask("runs.learned", runs)


@congruent(memory=memories)
def test_runs_trajectories(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for named in ((*reversed(RUNS), "absent"), RUNS[:1], ()):
        twins.ask("runs.trajectories", named)


@congruent(memory=memories)
def test_runs_ids(twins: Twins, memory: list[Bundle]) -> None:
    twins.ask("runs.ids")
    twins.learn(memory)
    twins.ask("runs.ids")
    for repo in (*REPOSITORIES, REPOSITORIES[0].upper(), "nobody/nothing"):
        twins.ask("runs.ids", repo=repo)
        twins.ask("runs.ids", repo=repo, instance=INSTANCES[0])
    for instance in (*INSTANCES, "absent"):
        twins.ask("runs.ids", instance=instance)
    twins.ask("runs.ids", after=RUNS[0], limit=1)
    twins.ask("runs.ids", repo=REPOSITORIES[0], after=RUNS[0], limit=2)


@congruent(memory=memories)
def test_runs_raw(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for run in RUNS:
        twins.ask("runs.raw", run)


@congruent(memory=memories)
def test_runs_fragments(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for named in ((*RUNS, "absent"), RUNS[1::-1], ()):
        twins.ask("runs.fragments", named)


@congruent(memory=memories, ids=st.lists(st.sampled_from((*RUNS, "absent")), max_size=4))
def test_runs_forget(twins: Twins, memory: list[Bundle], ids: list[str]) -> None:
    twins.learn(memory)
    twins.write("runs.forget", [*ids, memory[0].trajectory.id])
    compare_all(twins)
    twins.write("runs.add", memory[:1])
    compare_all(twins)

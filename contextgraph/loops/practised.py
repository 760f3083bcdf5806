"""Ways out of a loop without an error: what worked for tasks like this one."""

from contextgraph.loops.adviser import Adviser, EvidenceStore
from contextgraph.loops.ways import Proof, WayOut
from contextgraph.model import State

_MOST = 3


def ways_for_task(
    state: State, store: EvidenceStore, adviser: Adviser, exclude_instances: frozenset[str]
) -> list[WayOut]:
    """What was abstracted from the runs of the repository for tasks like that of *state*."""
    asked = State(repo=state.repo, task_description=state.task_description)
    found = adviser.retrieve(asked, _MOST, exclude_instances=exclude_instances)
    return [
        WayOut(one.strategy, Proof.WORKED_FOR_SUCH_TASKS, True, _runs(one.why.trajectories, store))
        for one in found.suggestions
    ]


def _runs(ids: tuple[str, ...], store: EvidenceStore) -> tuple[tuple[str, str], ...]:
    runs = (store.trajectory(run) for run in ids)
    return tuple((run.instance_id, run.repo) for run in runs if run)

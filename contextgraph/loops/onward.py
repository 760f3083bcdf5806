"""Ways out of a loop without an error: how others went on from the same spot."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from contextgraph.loops.adviser import EvidenceStore
from contextgraph.loops.ways import Proof, WayOut, merged
from contextgraph.model import Fragment, FragmentOutcome, FragmentType, Scope, State

_CANDIDATES = 200
_LEAST_STEPS = 2


def ways_onward(
    state: State, store: EvidenceStore, exclude_instances: frozenset[str]
) -> list[WayOut]:
    """What runs did next that had repeated the same command at the same file of the repository."""
    if not (state.repo and state.open_file and state.last_action.strip()):
        return []
    file, verb = PurePosixPath(state.open_file).name, state.last_action.split()[0]
    scope = Scope(state.repo, exclude_instances)
    loops = [
        found
        for found in store.fragments_for_state(None, file, scope, _CANDIDATES)
        if repeats(found.fragment, verb)
    ]
    runs = store.fragments_of(found.trajectory.id for found in loops)
    return merged(
        WayOut(what, Proof.LEFT_THE_LOOP, True, ((found.trajectory.instance_id, state.repo),))
        for found in loops
        if (what := _next(found.fragment, runs[found.trajectory.id])) is not None
    )


def repeats(fragment: Fragment, verb: str) -> bool:
    """True for a loop of this command."""
    same = [action for action in fragment.action_sequence if action.split()[:1] == [verb]]
    return fragment.fragment_type is FragmentType.LOOP and 2 * len(same) > len(
        fragment.action_sequence
    )


def _next(loop: Fragment, run: Sequence[Fragment]) -> str | None:
    """What the run of *loop*, these fragments, did right after it, where that came to something."""
    for fragment in (f for f in run if f.order == loop.order + 1):
        went_on = fragment.end - fragment.start + 1 >= _LEAST_STEPS
        if went_on and fragment.outcome is not FragmentOutcome.FAILED:
            return fragment.description
    return None

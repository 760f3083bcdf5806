"""Ways out of a loop of which no error is known: what runs went on with that had been in one."""

from collections import Counter
from collections.abc import Iterator, Sequence

from contextgraph.loops.adviser import EvidenceStore
from contextgraph.loops.onward import repeats
from contextgraph.loops.ways import Proof, WayOut, merged
from contextgraph.model import Fragment, FragmentOutcome, FragmentType, Scope
from contextgraph.text import words

RUNS, REPOSITORIES = 3, 2
# Of the runs that left such a loop at least so many went on in this way.
SHARE = 0.15
_CANDIDATES = 80
# Summaries say of a run that it "went round in circles (…): 4 times `scroll_down`".
_OF_LOOPS = ("circles", "times")


def ways_after(
    action: str, store: EvidenceStore, exclude_instances: frozenset[str]
) -> list[WayOut]:
    """What runs of several repositories went on with after they had repeated such an *action*.

    Told by the command alone, the most frequent first.
    """
    verb = next(iter(action.split()), "")
    asked = (*_OF_LOOPS, *dict.fromkeys(words(verb)))
    found = store.trajectories_for_text(asked, Scope(None, exclude_instances), _CANDIDATES)
    fragments = store.fragments_of(run.id for run in found)
    left = [
        WayOut(
            f"go on with `{other}`", Proof.LEFT_SUCH_A_LOOP, False, ((run.instance_id, run.repo),)
        )
        for run in found
        for other in dict.fromkeys(_went_on_with(verb, fragments[run.id]))
    ]
    leaving = len({way.runs for way in left})
    counted = Counter(way.what for way in left)
    ways = [way for way in merged(left) if counted[way.what] >= max(RUNS, SHARE * leaving)]
    shared = [way for way in ways if way.repositories >= REPOSITORIES]
    return sorted(shared, key=lambda way: (-counted[way.what], way.what))


def _went_on_with(verb: str, run: Sequence[Fragment]) -> Iterator[str]:
    """The next other command after each loop of *verb* that the *run*, these fragments, left."""
    by_order = {fragment.order: fragment for fragment in run}
    for loop in run:
        after = by_order.get(loop.order + 1)
        if after is None or not repeats(loop, verb) or loop.outcome is FragmentOutcome.FAILED:
            continue
        if after.outcome is FragmentOutcome.FAILED or after.fragment_type is FragmentType.LOOP:
            continue
        others = (action.split()[0] for action in after.action_sequence if action.split())
        other = next((other for other in others if other != verb), None)
        if other is not None:
            yield other

"""Whether an advice names what cleared an error: the same kind of action on the same target."""

from collections.abc import Collection, Sequence

from contextgraph.replay.cures import Cure

# Of the identifiers that two changes add (or only drop), so large a share must be common to both.
SHARED_CHANGE = 0.4
# In another repository one common name may be chance.
SHARED_ELSEWHERE = 2


def matches(cleared: Cure, advice: Cure, error_message: str = "") -> str | None:
    """What both have in common, in a few words; None where *advice* would not have cleared it.

    *error_message* is of the judged error: a name that it holds is no chance.
    """
    if moves := sorted(map(str, cleared.moves & advice.moves)):
        return moves[0]
    elsewhere = not cleared.files & advice.files
    verb, ours, theirs = ("adds", cleared.adds, advice.adds)
    if not ours and not theirs:
        verb, ours, theirs = ("drops", cleared.drops, advice.drops)
    shared = ours & theirs
    if not _are_one_change(ours, theirs, elsewhere=elsewhere, message=error_message):
        return None
    return f"{verb} {', '.join(sorted(shared))}"


def first_match(cleared: Cure, advices: Sequence[Cure], error_message: str = "") -> int | None:
    """The rank, from 1, of the first of *advices* that would have cleared it; None for none."""
    return next(
        (
            rank
            for rank, advice in enumerate(advices, start=1)
            if matches(cleared, advice, error_message)
        ),
        None,
    )


def _are_one_change(
    ours: Collection[str], theirs: Collection[str], *, elsewhere: bool, message: str
) -> bool:
    shared = set(ours) & set(theirs)
    if not shared:
        return False
    if elsewhere and len(shared) < SHARED_ELSEWHERE and not any(name in message for name in shared):
        return False
    return not elsewhere or 2 * len(shared) / (len(ours) + len(theirs)) >= SHARED_CHANGE

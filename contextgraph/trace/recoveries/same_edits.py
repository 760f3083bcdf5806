"""Whether a later edit puts in what an earlier one could not."""

from collections.abc import Sequence

from contextgraph.trace.edits import Span, edited_file, is_edit, likeness, new_lines
from contextgraph.trace.steps import StepTrace

_SAME_PLACE = 3


def same_edit(failed: StepTrace, later: StepTrace) -> bool:
    """True for much the same text, or for another one at the same place."""
    if not is_edit(later):
        return False
    new, old = new_lines(later), new_lines(failed)
    if _gives_up(old, new) and not _within(later.reading.span, failed.reading.span):
        return False
    if likeness(new, old) >= 0.5:
        return True
    if edited_file(failed) != edited_file(later):
        return False
    return _near(failed.reading.span, later.reading.span)


def _gives_up(old: Sequence[str], new: Sequence[str]) -> bool:
    """True where most of a text is left out and nothing put in its place."""
    wanted, sent = (({line.strip() for line in lines} - {""}) for lines in (old, new))
    return sent <= wanted and 2 * len(sent) < len(wanted)


def _within(inner: Span | None, outer: Span | None) -> bool:
    """True where an edit takes fewer of the same lines: what it leaves out stays as it is."""
    if inner is None or outer is None:
        return False
    return outer[0] <= inner[0] and inner[1] <= outer[1] and inner != outer


def _near(one: Span | None, other: Span | None) -> bool:
    """True for ranges that overlap or start close to one another."""
    if one is None or other is None:
        return one is other
    overlap = one[0] <= other[1] and other[0] <= one[1]
    return overlap or abs(one[0] - other[0]) <= _SAME_PLACE

"""Reading cures from text, whatever the text."""

from hypothesis import given, strategies as st

from contextgraph.replay.clearance import matches
from contextgraph.replay.command_moves import commands_in, moves_between
from contextgraph.replay.cures import Cure, cure_in

PARTS = st.sampled_from(
    [
        "ran `", "used `", "` instead of `", "`; ", "changed `", "` to `", "added `", "` in a.py",
        "`x` was undefined: put `", "sent the same text for lines 1:2 instead of 1:9", "without `",
        "pip install a-b", "python -m pip install 'c>=1'", "import os", "ls src", "open a/a/b.py 3",
        "X=1 ", "mkdir -p d && ", "'", '"', "⏎", " ", "then it worked", "total = net(tax)",
    ]
)  # fmt: skip
SAID = st.lists(PARTS, max_size=8).map("".join)
CURES = st.builds(cure_in, SAID, st.lists(SAID, max_size=2), st.sampled_from(["a/b", "c/d"]))


@given(st.one_of(st.text(), SAID), st.one_of(st.text(), SAID))
def test_any_text_is_read(one: str, other: str) -> None:
    assert isinstance(cure_in(one, [other], "a/b"), Cure)
    assert all(command.program for command in commands_in(one))
    assert list(moves_between(one, one, "a/b")) == []


@given(CURES)
def test_a_cure_matches_itself_unless_it_may_be_chance(cure: Cure) -> None:
    names = cure.adds or cure.drops
    sure = bool(cure.moves) or len(names) >= 2 or bool(names and cure.files)

    assert bool(matches(cure, cure)) == sure


@given(CURES, CURES)
def test_it_does_not_matter_which_of_two_was_the_cure(one: Cure, other: Cure) -> None:
    assert bool(matches(one, other)) == bool(matches(other, one))

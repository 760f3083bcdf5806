"""The order of recorded runs."""

from datetime import timedelta

from hypothesis import given, strategies as st

from contextgraph.evaluation.measures import in_order, is_later
from contextgraph.model import RawTrajectory
from tests.builders import NOON, run

STARTS = st.integers(0, 5).map(lambda hours: NOON + timedelta(hours=hours))


def made(repo: str, number: int, started_at: object) -> RawTrajectory:
    return run([], instance_id=f"acme__{repo}-{number}", repo=f"acme/{repo}", started_at=started_at)


REPOSITORIES, NUMBERS = st.sampled_from(["shop", "pump"]), st.integers(0, 20)
RUNS = st.one_of(
    st.lists(st.builds(made, REPOSITORIES, NUMBERS, st.none())),
    st.lists(st.builds(made, REPOSITORIES, NUMBERS, STARTS)),
)


@given(RUNS)
def test_no_run_is_lost_and_none_comes_before_an_earlier_one(runs: list[RawTrajectory]) -> None:
    ordered, _ = in_order(runs)

    assert sorted(map(id, ordered)) == sorted(map(id, runs))
    for place, raw in enumerate(ordered):
        assert not any(is_later(raw, after) for after in ordered[place:])

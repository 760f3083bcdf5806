"""The order of similar runs."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from contextgraph import State
from contextgraph.advising.cases import cases_of, ranking_of
from contextgraph.advising.channels import WEIGHTS, CaseHit, by_words_of_task, query_of
from contextgraph.advising.gate import CONSERVATIVE, UNGATED
from contextgraph.model import (
    Fragment,
    FragmentOutcome,
    FragmentType,
    Outcome,
    Phase,
    SimilarCase,
    TaskType,
)
from contextgraph.model.values import replace
from contextgraph.store.sqlite import SqliteStore
from contextgraph.store.sqlite.port import SqlitePort
from tests.builders import trajectory
from tests.made_bundles import made_bundle


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    store = SqliteStore(":memory:")
    yield store
    store.close()


def hit(number: int, overlap: float, similarity: float = 0.0, **fields: object) -> CaseHit:
    evidence = max(overlap, similarity)
    run = trajectory(number, task=f"Totals are wrong, {number}")
    return CaseHit(run, evidence, overlap, similarity=similarity, **fields)  # type: ignore[arg-type]


TASK = "totals are wrong"


def cases(
    store: SqliteStore, described: str = TASK, /, **found: list[CaseHit]
) -> tuple[SimilarCase, ...]:
    query = query_of(State(task_description=described, repo="acme/shop"), store)
    return cases_of(query, found, UNGATED, store, 10, WEIGHTS)


def order(store: SqliteStore, **found: list[CaseHit]) -> list[int]:
    return [int(case.instance_id.rpartition("-")[2]) for case in cases(store, **found)]


def test_a_much_higher_similarity_outweighs_a_slightly_higher_word_overlap(store):
    words = [hit(2, 0.21), hit(1, 0.20)]
    meaning = [hit(1, 0.20, 0.9), hit(2, 0.21, 0.4)]
    assert order(store, task=words, lexical=words, semantic=meaning) == [1, 2]


def test_the_words_of_a_task_are_counted_once(
    store: SqliteStore, results_of: Callable[[type, str], list[Any]]
) -> None:
    store.runs.add([made_bundle(1)])
    counted = results_of(SqlitePort, "word_counts")
    query = query_of(State(task_description=made_bundle(2).trajectory.task, repo="no/where"), store)
    assert by_words_of_task(query, store).cases
    assert len(counted) == 1


def test_a_channel_of_your_own_ranks_runs_by_words(store):
    found = {"mine": [hit(1, 0.2), hit(2, 0.5)]}
    query = query_of(State(task_description="totals are wrong", repo="acme/shop"), store)
    ranking = ranking_of(query, found, {"mine": 1.0}, 2)
    assert [ranked.run for ranked in ranking] == [trajectory(2).id, trajectory(1).id]


def test_a_case_that_leads_by_more_is_more_probable(store):
    """Where two are as close, neither may be meant, unless they are the same task."""
    first = hit(1, 0.5)
    same = replace(first, trajectory=replace(first.trajectory, id="trj_2", instance_id="again-2"))
    alone, close, behind, again = (
        cases(store, task=[first, *others])[0].probability
        for others in ([], [hit(2, 0.49)], [hit(2, 0.1)], [same])
    )
    assert close < behind < alone == again


def test_a_case_that_is_nearer_in_time_than_others_is_more_probable(store):
    def at(number: int, day: int) -> CaseHit:
        one = hit(number, 0.5 if number == 1 else 0.2)
        started = datetime(2026, 1, day, tzinfo=UTC)
        return replace(one, trajectory=replace(one.trajectory, run_at=started))

    newer, as_new, older = (
        cases(store, task=[at(1, day), at(2, 9), at(3, 9)])[0].probability for day in (20, 9, 1)
    )
    assert older < as_new < newer


def test_a_much_higher_word_overlap_outweighs_a_slightly_higher_similarity(store):
    words = [hit(2, 0.5), hit(1, 0.1)]
    meaning = [hit(1, 0.1, 0.51), hit(2, 0.5, 0.50)]
    assert order(store, task=words, lexical=words, semantic=meaning) == [2, 1]


def test_words_count_for_runs_that_only_the_semantic_channel_found(store):
    """Full text searches the rarest words only, so a run that it missed may share the others."""
    assert order(store, lexical=[hit(1, 0.2)], semantic=[hit(2, 0.4, 0.6), hit(1, 0.2, 0.6)]) == [
        2,
        1,
    ]


def test_a_run_not_among_the_nearest_counts_as_similar_as_the_last_of_them(store):
    near = [hit(1, 0.1, 0.6), hit(2, 0.1, 0.5)]
    assert order(store, lexical=[hit(3, 0.4)], semantic=near) == [3, 1, 2]
    assert order(store, lexical=[hit(3, 0.1)], semantic=near)[0] == 1


def test_the_order_of_a_single_channel_is_unchanged(store):
    fragment = Fragment(
        id="frg_1",
        trajectory_id="trj_1",
        order=0,
        start=0,
        end=1,
        fragment_type=FragmentType.EXPLORATION,
        phase=Phase.FIXING,
        outcome=FragmentOutcome.COMPLETED,
        description="",
        action_sequence=(),
        files=(),
        open_file="shop/cart.py",
        repo="acme/shop",
        task_type=TaskType.BUG_FIX,
    )
    at_file = [hit(2, 0.4, fragments=(fragment,)), hit(1, 0.3, fragments=(fragment,))]
    assert order(store, state=at_file) == [2, 1]
    assert order(store, task=[hit(2, 0.4), hit(1, 0.3)]) == [2, 1]
    assert order(store, semantic=[hit(2, 0.0, 0.4), hit(1, 0.0, 0.35)]) == [2, 1]


def test_a_score_grows_with_the_evidence(store):
    (faint, *_), (sure, *_) = (
        cases(store, lexical=[hit(1, overlap), hit(2, 0.07)]) for overlap in (0.1, 0.8)
    )
    assert faint.score < sure.score < 1


def test_each_case_names_the_channels_that_found_it_with_its_rank(store):
    first, second = cases(
        store, lexical=[hit(1, 0.4), hit(2, 0.2)], semantic=[hit(2, 0.2, 0.5), hit(1, 0.4, 0.4)]
    )
    ranks = {
        case.instance_id: [(r.channel, r.rank) for r in case.why.channels]
        for case in (first, second)
    }
    assert ranks == {
        "acme__shop-1": [("lexical", 1), ("semantic", 2)],
        "acme__shop-2": [("lexical", 2), ("semantic", 1)],
    }


@pytest.mark.parametrize(
    ("file", "outcome", "is_said"),
    [
        ("lib/totals.py", Outcome.SOLVED, True),
        ("lib/totals.py", Outcome.UNKNOWN, True),
        ("lib/totals.py", Outcome.FAILED, False),
        ("lib/tariffs.py", Outcome.SOLVED, False),
    ],
)
def test_said_is_the_nearest_past_task_and_another_only_where_its_file_is_named(
    store, file, outcome, is_said
):
    nearest = trajectory(2, files=("lib/tariffs.py",), outcome=Outcome.SOLVED)
    past = trajectory(1, files=(file,), outcome=outcome)
    hits = [CaseHit(nearest, 0.95, 0.95), CaseHit(past, 0.9, 0.9)]
    first, second = cases(store, lexical=hits)
    assert first.is_shown
    assert second.is_shown is is_said


@pytest.mark.parametrize(
    ("task", "file", "is_said"),
    [
        (f'{TASK}\n  File "lib/orders.py", line 3, in add', "lib/orders.py", False),
        (f"{TASK}: the orders, too", "lib/orders.py", True),
        (f"{TASK} in the shop", "lib/shop.py", False),
    ],
)
def test_a_traceback_and_the_name_of_the_project_name_no_file(store, task, file, is_said):
    nearest = trajectory(2, files=("lib/tariffs.py",), outcome=Outcome.SOLVED)
    past = trajectory(1, files=(file,), outcome=Outcome.SOLVED)
    hits = [CaseHit(nearest, 0.95, 0.95), CaseHit(past, 0.9, 0.9)]
    _, case = cases(store, task, lexical=hits)
    assert case.is_shown is is_said


def test_of_several_runs_of_an_instance_only_the_best_is_listed(store):
    same = trajectory(2, instance_id=trajectory(1).instance_id)
    found = [hit(1, 0.5), CaseHit(same, 0.4, 0.4), hit(3, 0.3)]
    assert order(store, lexical=found) == [1, 3]


@pytest.mark.parametrize(("repo", "is_said"), [("acme/shop", True), ("", False)])
def test_the_nearest_task_of_the_repository_is_said_sooner_than_one_of_all(store, repo, is_said):
    described = "totals are wrong and wait for the discount of the order"
    query = query_of(State(task_description=described, repo=repo), store)
    run = trajectory(1, task="Totals are wrong: the discount waits")
    other = trajectory(2, task="Totals are wrong: the order waits")
    found = {"lexical": [CaseHit(run, 0.8, 0.8), CaseHit(other, 0.7, 0.7)]}
    first, second = cases_of(query, found, CONSERVATIVE, store, 10, WEIGHTS)
    low, high = CONSERVATIVE.min_case_precision, CONSERVATIVE.close_case_precision
    assert low <= first.probability < high
    assert (first.is_shown, second.is_shown) == (is_said, False)

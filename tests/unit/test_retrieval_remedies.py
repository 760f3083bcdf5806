"""At an error: which remedies are listed, in which order, and how probable they are."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from contextgraph import State
from contextgraph.model import (
    Agreement,
    RecoveryCandidate,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    ScopeLevel,
    SignatureLevel,
)
from contextgraph.retrieval.gate import CONSERVATIVE, Gate, RemedyFeatures, probability
from contextgraph.retrieval.query import query_of
from contextgraph.retrieval.remedies import Entry, entries_of
from contextgraph.store.sqlite import SqliteStore
from tests.builders import NO_MODULE, SET_PATH, recovery, remedy, trajectory

INSTALL = RemedyAction(
    RemedyKind.INSTALL,
    "tariffs",
    RemedyPattern(RemedyKind.INSTALL, "<the missing module>"),
    parameters=(("command", "pip install tariffs"),),
)
REPEAT = RemedyAction(RemedyKind.RETRY, "", RemedyPattern(RemedyKind.RETRY))
# Of one project alone: its pattern says nothing in general terms.
CHANGE = RemedyAction(
    RemedyKind.EDIT,
    "import tariffs_v2",
    RemedyPattern(RemedyKind.EDIT, "code in <file>"),
    parameters=(("file", "shop/cart.py"),),
)


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    store = SqliteStore(":memory:")
    yield store
    store.admin.close()


def entries(
    store: SqliteStore, *found: RecoveryCandidate, repo: str = "acme/shop"
) -> tuple[Entry, ...]:
    return entries_of(query_of(State(repo=repo, current_error=NO_MODULE), store), found)


def elsewhere(number: int, **fields: object) -> RecoveryCandidate:
    one = recovery(number, **fields)
    return replace(one, trajectory=replace(trajectory(number), repo="other/one"))


def test_what_more_independent_instances_did_comes_first(store):
    found = [recovery(1, actions=(INSTALL,)), recovery(2), recovery(3)]
    first, second = entries(store, *found)
    assert first.best.form.remedy == (SET_PATH,)
    assert first.probability > second.probability
    assert first.agreement == Agreement(2, 3, ScopeLevel.REPO, SignatureLevel.TEMPLATE)


def test_several_runs_of_one_instance_are_one_piece_of_evidence(store):
    one = recovery(1)
    again = replace(one, recovered=replace(one.recovered, fragment_id="frg_again"))
    (entry,) = entries(store, one, again)
    assert entry.agreement == Agreement(1, 1, ScopeLevel.REPO, SignatureLevel.TEMPLATE)


def test_what_was_done_in_the_same_circumstances_comes_first(store):
    state = State(repo="acme/shop", current_error=NO_MODULE, last_action="pytest tests")
    run = ("attempt by pytest",)
    found = [
        recovery(1, actions=(INSTALL,), circumstances=("attempt by python",)),
        recovery(2, actions=(INSTALL,), circumstances=("attempt by python",)),
        recovery(3, circumstances=run),
    ]
    first, second = entries_of(query_of(state, store), found)
    assert first.best.form.remedy == (SET_PATH,)
    assert second.agreement == Agreement(2, 3, ScopeLevel.REPO, SignatureLevel.TEMPLATE)


@pytest.mark.parametrize(
    "target",
    ["<another module>", "import of <the name> from another module", "definition of <the name>"],
)
def test_what_leaves_out_its_object_is_not_said_elsewhere(store, target):
    vague = RemedyPattern(RemedyKind.EDIT, target, "import of <the missing module>")
    change = RemedyAction(RemedyKind.EDIT, "import rates", vague, "import tariffs")
    assert not entries(store, elsewhere(1, actions=(change,)))
    (entry,) = entries(store, recovery(1, actions=(change,)))
    assert entry.best.form.remedy == (change,)


def test_to_repeat_what_failed_is_no_remedy(store):
    assert not entries(store, recovery(actions=(REPEAT,)))


def test_a_hazardous_remedy_is_not_listed_and_counts_as_another_way(store):
    found = [recovery(1, actions=(remedy("rm -rf build"), INSTALL)), recovery(2)]
    (entry,) = entries(store, *found)
    assert entry.best.form.remedy == (SET_PATH,)
    assert entry.agreement == Agreement(1, 2, ScopeLevel.REPO, SignatureLevel.TEMPLATE)


def test_among_equals_what_only_one_run_supports_comes_last(store):
    bake, cool = (remedy(line) for line in ("bake", "cool"))
    again = recovery(2, fragment_id="frg_again", actions=(cool,))
    other_run = replace(again, trajectory=replace(again.trajectory, id="trj_again"))
    found = [recovery(1, actions=(bake,)), recovery(2, actions=(cool,)), other_run]
    first, second = entries(store, *found)
    assert first.probability == second.probability
    assert (first.best.form.remedy, second.best.form.remedy) == ((cool,), (bake,))


def test_of_another_repository_only_general_terms_are_shown(store):
    found = elsewhere(1, actions=(INSTALL, CHANGE))
    (entry,) = entries(store, found)
    assert entry.best.form.remedy == (INSTALL.general,)
    assert not entries(store, elsewhere(1, actions=(CHANGE,)))
    assert entries(store, recovery(1, actions=(CHANGE,)))


def test_of_an_edit_that_was_sent_again_the_lines_are_not_shown(store):
    pattern = RemedyPattern(RemedyKind.RESEND, "<other lines>")
    resent = RemedyAction(RemedyKind.RESEND, "10:12", pattern, replaced="10:11")
    (entry,) = entries(store, recovery(actions=(resent,)))
    assert entry.best.form.remedy == (resent.general,)


def test_of_an_error_about_another_name_only_general_terms_are_shown(store):
    (entry,) = entries(store, recovery(message="No module named 'numpy'", actions=(INSTALL,)))
    assert entry.best.form.remedy == (INSTALL.general,)


def test_a_module_of_the_project_itself_is_not_to_be_installed(store):
    found = recovery(actions=(INSTALL,))
    tariffs = replace(found, trajectory=replace(found.trajectory, repo="acme/Tariffs"))
    assert entries(store, found)
    assert not entries(store, tariffs, repo="acme/Tariffs")


def test_the_name_of_the_repository_counts_in_any_case(store):
    (entry,) = entries(store, recovery(), repo="Acme/Shop")
    assert entry.best.is_near


def test_the_order_of_the_candidates_does_not_matter(store):
    found = [recovery(1), recovery(2, actions=(INSTALL,)), elsewhere(3, actions=(INSTALL,))]
    assert entries(store, *found) == entries(store, *reversed(found))


@pytest.mark.parametrize(
    "name", ["template_here", "template_anywhere", "type_anywhere", "relevance", "instances"]
)
def test_each_piece_of_evidence_raises_the_probability(name):
    nothing = RemedyFeatures(0, 0, 0, 0, 0)
    some = replace(nothing, **{name: 1.0})
    assert 0 <= probability(nothing) < probability(some) <= 1


def test_further_remedies_are_shown_only_beside_one_that_is_probable_enough():
    gate = Gate(min_precision=0.5)
    assert gate.admits([0.6, 0.4, 0.1]) == [True, True, False]
    assert gate.admits([0.4, 0.4]) == [False, False]
    assert gate.admits([]) == []


def test_a_shared_type_in_another_repository_is_too_little_to_be_shown():
    features = RemedyFeatures(0, 0, type_anywhere=0.5, relevance=1, instances=0.7)
    assert probability(features) < CONSERVATIVE.min_precision

"""Every operation of the ports gives the same answer, whichever store keeps the memory."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import product

from hypothesis import given, settings, strategies as st

from contextgraph.model import (
    Bundle,
    Phase,
    RecoveryCandidate,
    Scope,
    SignatureLevel,
    SimilarTo,
    Source,
    TaskType,
)
from contextgraph.ports import GraphStore
from contextgraph.store import NetworkxStore
from tests.reference_store import ReferenceStore
from tests.strategies import FILE_NAMES, FRAGMENT_IDS, SIGNATURES, WORDS, bundles, scopes

RUNS = tuple(f"run{number}" for number in range(12))
LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE, SignatureLevel.FAMILY)
PHASES = (None, Phase.FIXING, Phase.TESTING, Phase.SUBMITTING)
TASK_TYPES = (None, TaskType.BUG_FIX, TaskType.FEATURE, TaskType.DOCS)
WORD_LISTS = (WORDS, WORDS[:3], ("absent",), ())
SHOWN_AT = datetime(2026, 3, 1, tzinfo=UTC)

memories = st.lists(bundles(RUNS), min_size=3, max_size=6)


def in_order(answer: object) -> object:
    """*answer* with mappings as lists of pairs: the order is part of it."""
    if isinstance(answer, Mapping):
        return [(key, in_order(value)) for key, value in answer.items()]
    return answer


@contextmanager
def learned(memory: list[Bundle]) -> Iterator[tuple[ReferenceStore, GraphStore]]:
    """The reference and a store that learned the same runs in opposite order.

    What is kept must not depend on the order, so runs that are named twice are learned once.
    """
    runs = list({bundle.trajectory.id: bundle for bundle in memory}.values())
    reference, store = ReferenceStore(), NetworkxStore(":memory:")
    for bundle in runs:
        reference.add_bundle(bundle)
    for bundle in reversed(runs):
        store.add_bundle(bundle)
    yield reference, store
    store.close()


@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=15)
def test_recoveries_for_error(memory: list[Bundle], scope: Scope, limit: int) -> None:
    with learned(memory) as (reference, store):
        for asked, level in product(SIGNATURES, LEVELS):
            expected = reference.recoveries_for_error(asked, level, scope, limit)
            assert store.recoveries_for_error(asked, level, scope, limit) == expected


@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=15)
def test_recoveries_for_text(memory: list[Bundle], scope: Scope, limit: int) -> None:
    with learned(memory) as (reference, store):
        for words in WORD_LISTS:
            expected = reference.recoveries_for_text(words, scope, limit)
            assert store.recoveries_for_text(words, scope, limit) == expected


@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=15)
def test_trajectories_for_text(memory: list[Bundle], scope: Scope, limit: int) -> None:
    with learned(memory) as (reference, store):
        for words in WORD_LISTS:
            expected = reference.trajectories_for_text(words, scope, limit)
            assert store.trajectories_for_text(words, scope, limit) == expected


@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=15)
def test_trajectories_for_task(memory: list[Bundle], scope: Scope, limit: int) -> None:
    with learned(memory) as (reference, store):
        for task_type in TASK_TYPES:
            expected = reference.trajectories_for_task(task_type, scope, limit)
            assert store.trajectories_for_task(task_type, scope, limit) == expected


@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=15)
def test_fragments_for_state(memory: list[Bundle], scope: Scope, limit: int) -> None:
    with learned(memory) as (reference, store):
        for phase in PHASES:
            for name in (None, *FILE_NAMES):
                expected = reference.fragments_for_state(phase, name, scope, limit)
                assert store.fragments_for_state(phase, name, scope, limit) == expected


@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 2, 0)))
@settings(max_examples=15)
def test_common_errors(memory: list[Bundle], scope: Scope, limit: int) -> None:
    with learned(memory) as (reference, store):
        for phase in PHASES:
            expected = reference.common_errors(phase, scope, limit)
            assert store.common_errors(phase, scope, limit) == expected


@given(
    memory=memories,
    ids=st.lists(st.sampled_from((*RUNS, "absent"))),
    limit=st.sampled_from((50, 2, 0)),
)
@settings(max_examples=15)
def test_errors_of_runs(memory: list[Bundle], ids: list[str], limit: int) -> None:
    with learned(memory) as (reference, store):
        assert store.errors_of_runs(ids, limit) == reference.errors_of_runs(ids, limit)


@given(memory=memories, scope=scopes())
@settings(max_examples=15)
def test_error_tally(memory: list[Bundle], scope: Scope) -> None:
    with learned(memory) as (reference, store):
        for asked in SIGNATURES:
            assert store.error_tally(asked, scope) == reference.error_tally(asked, scope)


@given(memory=memories)
@settings(max_examples=15)
def test_what_is_kept(memory: list[Bundle]) -> None:
    with learned(memory) as (reference, store):
        assert store.document_count() == reference.document_count()
        assert store.word_frequencies(WORDS) == reference.word_frequencies(WORDS)
        assert store.trajectory_ids() == reference.trajectory_ids()
        for run in RUNS:
            assert store.trajectory(run) == reference.trajectory(run)
            assert store.raw_trajectory(run) == reference.raw_trajectory(run)
            assert store.learned(run) == reference.learned(run)
        named = (*RUNS, "absent")
        assert store.fragments_of(named) == reference.fragments_of(named)


@given(memory=memories)
@settings(max_examples=15)
def test_counts(memory: list[Bundle]) -> None:
    with learned(memory) as (reference, store):
        assert store.counts() == reference.counts()
        assert in_order(store.error_frequency()) == in_order(reference.error_frequency())
        transitions = in_order(store.error_transitions())
        assert transitions == in_order(reference.error_transitions())


@given(memory=memories, reported=st.lists(st.tuples(st.sampled_from("ab"), st.booleans())))
@settings(max_examples=15)
def test_exposures(memory: list[Bundle], reported: list[tuple[str, bool]]) -> None:
    with learned(memory) as (reference, store):
        for known in (reference, store):
            known.add_exposure("a", FRAGMENT_IDS[:3], SHOWN_AT)
            known.add_exposure("b", FRAGMENT_IDS[2:5], SHOWN_AT)
        for context_id, helped in reported:
            expected = reference.report_outcome(context_id, helped)
            assert store.report_outcome(context_id, helped) is expected
        assert store.credit(FRAGMENT_IDS) == reference.credit(FRAGMENT_IDS)


@given(memory=memories, scope=scopes(), data=st.data())
@settings(max_examples=25)
def test_representatives_of(memory: list[Bundle], scope: Scope, data: st.DataObject) -> None:
    with learned(memory) as (reference, store):
        recoveries = [
            found
            for asked in SIGNATURES
            for found in store.recoveries_for_error(asked, SignatureLevel.TEMPLATE, Scope(), 50)
        ]
        if not recoveries:
            return
        alike = data.draw(st.lists(st.tuples(*[st.sampled_from(recoveries)] * 2), max_size=8))
        similar = [
            SimilarTo(one.error.id, _source(one), _source(other), 1.0) for one, other in alike
        ]
        for known in (reference, store):
            known.put_methodologies((), (), (), similar)
        expected = reference.representatives_of(recoveries, scope)
        assert store.representatives_of(recoveries, scope) == expected


def _source(candidate: RecoveryCandidate) -> Source:
    return Source(candidate.trajectory.id, candidate.recovered.fragment_id)

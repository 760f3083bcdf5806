"""Every operation of the ports gives the same answer, whichever store keeps the memory."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings, strategies as st

from contextgraph.model import Bundle, Phase, Scope, SignatureLevel, TaskType
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

memories = st.lists(bundles(st.sampled_from(RUNS)), min_size=4, max_size=10)


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


@pytest.mark.parametrize("level", LEVELS)
@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=40)
def test_recoveries_for_error(
    level: SignatureLevel, memory: list[Bundle], scope: Scope, limit: int
) -> None:
    with learned(memory) as (reference, store):
        for asked in SIGNATURES:
            expected = reference.recoveries_for_error(asked, level, scope, limit)
            assert store.recoveries_for_error(asked, level, scope, limit) == expected


@pytest.mark.parametrize("words", WORD_LISTS)
@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=25)
def test_recoveries_for_text(
    words: tuple[str, ...], memory: list[Bundle], scope: Scope, limit: int
) -> None:
    with learned(memory) as (reference, store):
        expected = reference.recoveries_for_text(words, scope, limit)
        assert store.recoveries_for_text(words, scope, limit) == expected


@pytest.mark.parametrize("words", WORD_LISTS)
@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=25)
def test_trajectories_for_text(
    words: tuple[str, ...], memory: list[Bundle], scope: Scope, limit: int
) -> None:
    with learned(memory) as (reference, store):
        expected = reference.trajectories_for_text(words, scope, limit)
        assert store.trajectories_for_text(words, scope, limit) == expected


@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=40)
def test_trajectories_for_task(memory: list[Bundle], scope: Scope, limit: int) -> None:
    with learned(memory) as (reference, store):
        for task_type in TASK_TYPES:
            expected = reference.trajectories_for_task(task_type, scope, limit)
            assert store.trajectories_for_task(task_type, scope, limit) == expected


@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 3, 0)))
@settings(max_examples=40)
def test_fragments_for_state(memory: list[Bundle], scope: Scope, limit: int) -> None:
    with learned(memory) as (reference, store):
        for phase in PHASES:
            for name in (None, *FILE_NAMES):
                expected = reference.fragments_for_state(phase, name, scope, limit)
                assert store.fragments_for_state(phase, name, scope, limit) == expected


@given(memory=memories, scope=scopes(), limit=st.sampled_from((50, 2, 0)))
@settings(max_examples=40)
def test_common_errors(memory: list[Bundle], scope: Scope, limit: int) -> None:
    with learned(memory) as (reference, store):
        for phase in PHASES:
            expected = reference.common_errors(phase, scope, limit)
            assert store.common_errors(phase, scope, limit) == expected


@given(memory=memories, scope=scopes())
@settings(max_examples=40)
def test_error_tally(memory: list[Bundle], scope: Scope) -> None:
    with learned(memory) as (reference, store):
        for asked in SIGNATURES:
            assert store.error_tally(asked, scope) == reference.error_tally(asked, scope)


@pytest.mark.parametrize(
    "ask",
    [
        lambda store: store.document_count(),
        lambda store: store.word_frequencies(WORDS),
        lambda store: store.counts(),
        lambda store: list(store.error_frequency().items()),
        lambda store: store.error_transitions(),
        lambda store: [list(after) for after in store.error_transitions().values()],
        lambda store: store.trajectory_ids(),
        lambda store: [store.trajectory(run) for run in RUNS],
        lambda store: [store.raw_trajectory(run) for run in RUNS],
        lambda store: [store.fragments_of(run) for run in RUNS],
    ],
    ids=[
        "document_count",
        "word_frequencies",
        "counts",
        "error_frequency",
        "error_transitions",
        "order of error_transitions",
        "trajectory_ids",
        "trajectory",
        "raw_trajectory",
        "fragments_of",
    ],
)
@given(memory=memories)
@settings(max_examples=20)
def test_what_is_kept(ask: Callable[..., object], memory: list[Bundle]) -> None:
    with learned(memory) as (reference, store):
        assert ask(store) == ask(reference)


@given(memory=memories, reported=st.lists(st.tuples(st.sampled_from("ab"), st.booleans())))
@settings(max_examples=20)
def test_exposures(memory: list[Bundle], reported: list[tuple[str, bool]]) -> None:
    with learned(memory) as (reference, store):
        for known in (reference, store):
            known.add_exposure("a", FRAGMENT_IDS[:3], SHOWN_AT)
            known.add_exposure("b", FRAGMENT_IDS[2:5], SHOWN_AT)
        for context_id, helped in reported:
            expected = reference.report_outcome(context_id, helped)
            assert store.report_outcome(context_id, helped) is expected
        assert store.credit(FRAGMENT_IDS) == reference.credit(FRAGMENT_IDS)

"""Whatever is done to a memory, in a file or without one, it answers as the ports say."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from contextgraph.errors import StoreError
from contextgraph.model import Bundle, Phase, RunVectors, Scope, SignatureLevel, Space, TaskType
from contextgraph.ports import GraphStore
from contextgraph.store import NetworkxStore
from tests.reference_store import ReferenceStore
from tests.strategies import (
    CONTEXT_IDS,
    FILE_NAMES,
    FRAGMENT_IDS,
    SIGNATURES,
    SPACES,
    TRAJECTORY_IDS,
    WORDS,
    bundles,
    run_vectors,
    scopes,
    vectors,
)

LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE, SignatureLevel.FAMILY)
word_lists = st.lists(st.sampled_from(WORDS), max_size=12)
limits = st.sampled_from((50, 2, 1, 0))


class Memories(RuleBasedStateMachine):
    """Two stores of two tenants in one file, one in memory, and the reference."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        path = str(Path(self.folder.name) / "memory.db")
        self.reference = ReferenceStore()
        self.file = NetworkxStore(path)
        self.other_process = NetworkxStore(path)
        self.neighbour = NetworkxStore(path, tenant="neighbour")
        self.memory = NetworkxStore(":memory:")
        self.stores: Sequence[GraphStore] = (self.file, self.other_process, self.memory)

    def teardown(self) -> None:
        for store in (*self.stores, self.neighbour):
            store.close()
        self.folder.cleanup()

    def agree(self, ask: Callable[..., object]) -> None:
        expected = ask(self.reference)
        for store in self.stores:
            assert ask(store) == expected

    @initialize(many=st.lists(bundles(), min_size=2, max_size=6))
    def begin(self, many: list[Bundle]) -> None:
        for bundle in many:
            self.add(bundle)

    @rule(bundle=bundles())
    def add(self, bundle: Bundle) -> None:
        status = self.reference.add_bundle(bundle)
        assert self.file.add_bundle(bundle) is status
        assert self.memory.add_bundle(bundle) is status

    @rule(bundle=bundles())
    def add_to_the_neighbour(self, bundle: Bundle) -> None:
        self.neighbour.add_bundle(bundle)

    @rule(bundle=bundles())
    def replace(self, bundle: Bundle) -> None:
        for store in (self.reference, self.file, self.memory):
            try:
                store.replace_bundle(bundle)
            except StoreError:
                assert bundle.trajectory.id not in store.trajectory_ids()

    @rule(ids=st.lists(st.sampled_from(TRAJECTORY_IDS), max_size=3))
    def forget(self, ids: list[str]) -> None:
        known = self.reference.forget(ids)
        assert self.other_process.forget(ids) == known
        assert self.memory.forget(ids) == known

    @rule(context=st.sampled_from(CONTEXT_IDS), items=st.lists(st.sampled_from(FRAGMENT_IDS)))
    def expose(self, context: str, items: list[str]) -> None:
        for store in (self.reference, self.file, self.memory):
            store.add_exposure(context, items, datetime(2026, 3, 1, tzinfo=UTC))

    @rule(context=st.sampled_from((*CONTEXT_IDS, "never shown")), helped=st.booleans())
    def report(self, context: str, helped: bool) -> None:
        accepted = self.reference.report_outcome(context, helped)
        assert self.other_process.report_outcome(context, helped) is accepted
        assert self.memory.report_outcome(context, helped) is accepted

    @rule(
        space=st.sampled_from(SPACES),
        runs=st.integers(0, 9),
        alike=st.none() | st.floats(0, 1),
        model=st.none() | st.binary(max_size=4),
    )
    def prepare_space(
        self, space: Space, runs: int, alike: float | None, model: bytes | None
    ) -> None:
        space = replace(space, runs=runs, alike=alike)
        for store in (self.reference, self.other_process, self.memory):
            store.prepare_space(space, model)

    @rule(run=st.sampled_from(TRAJECTORY_IDS), found=st.integers(0, 3).flatmap(run_vectors))
    def add_vectors(self, run: str, found: RunVectors) -> None:
        for store in (self.reference, self.file, self.memory):
            try:
                store.add_vectors({run: found})
            except StoreError:
                assert found.space not in self.reference.spaces

    @rule(space=st.sampled_from(SPACES))
    def switch_space(self, space: Space) -> None:
        for store in (self.reference, self.other_process, self.memory):
            try:
                store.switch_space(space.name)
            except StoreError:
                assert space.name not in self.reference.spaces

    @rule(data=st.data(), scope=scopes(), limit=limits)
    def ask_for_what_is_near(self, data: st.DataObject, scope: Scope, limit: int) -> None:
        active = self.reference.active_space()
        if active is None:
            return
        asked = data.draw(vectors(active.name))
        self.agree(lambda store: store.nearest_trajectories(asked, scope, limit))
        self.agree(lambda store: store.nearest_fragments(asked, scope, limit))
        self.agree(lambda store: store.nearest_recoveries(asked, scope, limit))

    @rule(limit=limits, after=st.sampled_from(("", *TRAJECTORY_IDS)))
    def ask_for_texts(self, limit: int, after: str) -> None:
        for space in (None, *(space.name for space in SPACES)):
            self.agree(lambda store, space=space: store.texts_to_embed(limit, space, after))

    @rule(scope=scopes(), limit=limits)
    def ask_for_errors(self, scope: Scope, limit: int) -> None:
        for signature in SIGNATURES:
            self.agree(lambda store, it=signature: store.error_tally(it, scope))
            for level in LEVELS:
                self.agree(
                    lambda store, it=signature, level=level: store.recoveries_for_error(
                        it, level, scope, limit
                    )
                )

    @rule(words=word_lists, scope=scopes(), limit=limits)
    def ask_for_words(self, words: list[str], scope: Scope, limit: int) -> None:
        self.agree(lambda store: store.word_frequencies(words))
        self.agree(lambda store: store.recoveries_for_text(words, scope, limit))
        self.agree(lambda store: store.trajectories_for_text(words, scope, limit))

    @rule(scope=scopes(), limit=limits)
    def ask_for_tasks(self, scope: Scope, limit: int) -> None:
        for kind in (None, TaskType.BUG_FIX, TaskType.FEATURE, TaskType.DOCS):
            self.agree(lambda store, kind=kind: store.trajectories_for_task(kind, scope, limit))

    @rule(scope=scopes(), limit=limits)
    def ask_for_states(self, scope: Scope, limit: int) -> None:
        for phase in (None, Phase.FIXING, Phase.TESTING, Phase.SUBMITTING):
            self.agree(lambda store, it=phase: store.common_errors(it, scope, limit))
            for name in (None, *FILE_NAMES):
                self.agree(
                    lambda store, it=phase, name=name: store.fragments_for_state(
                        it, name, scope, limit
                    )
                )

    @rule()
    def ask_for_the_graph(self) -> None:
        nodes = self.reference.counts().nodes
        graphs = [store.graph() for store in (self.file, self.other_process, self.memory)]
        for graph in graphs:
            assert graph.number_of_nodes() == sum(nodes.values())
            assert graph.nodes == graphs[0].nodes
            assert set(graph.edges(keys=True)) == set(graphs[0].edges(keys=True))

    @invariant()
    def they_hold_the_same(self) -> None:
        self.agree(lambda store: store.counts())
        self.agree(lambda store: store.document_count())
        self.agree(lambda store: store.trajectory_ids())
        self.agree(lambda store: list(store.error_frequency().items()))
        self.agree(lambda store: store.error_transitions())
        self.agree(lambda store: store.credit(FRAGMENT_IDS))
        self.agree(lambda store: store.active_space())
        for space in SPACES:
            self.agree(lambda store, space=space: store.space_model(space.name))
        for run in TRAJECTORY_IDS:
            self.agree(lambda store, run=run: store.trajectory(run))
            self.agree(lambda store, run=run: store.raw_trajectory(run))
            self.agree(lambda store, run=run: store.learned(run))
        self.agree(lambda store: store.fragments_of(TRAJECTORY_IDS))


TestMemories = Memories.TestCase
TestMemories.settings = settings(max_examples=30, stateful_step_count=20, deadline=None)

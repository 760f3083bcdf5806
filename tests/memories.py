"""Random sequences of all that can be done to a memory, as a hypothesis state machine."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from contextgraph.model import (
    Bundle,
    EmbeddedRun,
    ErrorQuestion,
    Exposure,
    Phase,
    Scope,
    ShownItem,
    SignatureLevel,
    Space,
    TaskType,
)
from tests.strategies import (
    ADVICE_IDS,
    CONTEXT_IDS,
    ERROR_IDS,
    FILE_NAMES,
    ITEM_IDS,
    LOOP_COMMANDS,
    METHODOLOGY_IDS,
    SIGNATURES,
    SPACES,
    TRAJECTORY_IDS,
    WORDS,
    Abstracted,
    abstracted,
    bundles,
    embedded_runs,
    scopes,
    shown_items,
    vectors,
)
from tests.twins import Twins, answer

LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)
NODE_IDS = (*TRAJECTORY_IDS[:2], *ITEM_IDS, *ERROR_IDS, *CONTEXT_IDS)
SHOWN_AT = datetime(2026, 3, 1, tzinfo=UTC)

word_lists = st.lists(st.sampled_from(WORDS), max_size=12)
limits = st.sampled_from((50, 2, 1, 0))


class Memories(RuleBasedStateMachine):
    """Whatever is done to stores that hold the same, they answer the same."""

    def __init__(self, twins: Twins) -> None:
        super().__init__()
        self.twins = twins

    def teardown(self) -> None:
        self.twins.close()

    @initialize(many=st.lists(bundles(), min_size=2, max_size=6))
    def begin(self, many: list[Bundle]) -> None:
        for bundle in many:
            self.add(bundle)

    @rule(bundle=bundles())
    def add(self, bundle: Bundle) -> None:
        self.twins.write("runs.add", [bundle])

    @rule(given=st.lists(bundles(), max_size=3), former=st.none() | st.sampled_from(TRAJECTORY_IDS))
    def replace(self, given: list[Bundle], former: str | None) -> None:
        by_id = {bundle.trajectory.id: bundle for bundle in given}
        if former and given:
            by_id[former] = given[0]
        self.twins.write("runs.replace", by_id)

    @rule(ids=st.lists(st.sampled_from(TRAJECTORY_IDS), max_size=3))
    def forget(self, ids: list[str]) -> None:
        self.twins.write("runs.forget", ids)

    @rule(
        context=st.sampled_from(CONTEXT_IDS),
        items=shown_items(),
        error=st.none() | st.sampled_from(ERROR_IDS),
    )
    def expose(self, context: str, items: list[ShownItem], error: str | None) -> None:
        self.twins.write("exposures.add", [Exposure.of(context, items, SHOWN_AT, error)])

    @rule(context=st.sampled_from((*CONTEXT_IDS, "never shown")), helped=st.booleans())
    def report(self, context: str, helped: bool) -> None:
        self.twins.write("exposures.report", context, helped)

    @rule(
        space=st.sampled_from(SPACES),
        runs=st.integers(0, 9),
        threshold=st.none() | st.floats(0, 1),
        model=st.none() | st.binary(max_size=4),
    )
    def prepare_space(
        self, space: Space, runs: int, threshold: float | None, model: bytes | None
    ) -> None:
        self.twins.write(
            "vectors.prepare", replace(space, runs=runs, similarity_threshold=threshold), model
        )

    @rule(run=st.sampled_from(TRAJECTORY_IDS), found=embedded_runs())
    def add_vector(self, run: str, found: EmbeddedRun) -> None:
        self.twins.write("vectors.add", found.space, {run: found.vector})

    @rule(space=st.sampled_from(SPACES))
    def switch_space(self, space: Space) -> None:
        self.twins.write("vectors.switch", space.name)

    @rule(given=abstracted())
    def put_methodologies(self, given: Abstracted) -> None:
        self.twins.write(
            "methodologies.put", given.methodologies, given.removed, given.resolved, given.similar
        )

    @rule(errors=st.lists(st.sampled_from(ERROR_IDS), max_size=2, unique=True))
    def clean_up(self, errors: list[str]) -> None:
        self.twins.write("recoveries.clean_up", errors, 1)

    @rule()
    def mark_consolidated(self) -> None:
        self.twins.mark_consolidated()

    @rule(
        holder=st.sampled_from("ab"), begun=st.integers(0, 9), minutes=st.none() | st.integers(0, 5)
    )
    def take_lease(self, holder: str, begun: int, minutes: int | None) -> None:
        now = SHOWN_AT + timedelta(minutes=begun)
        until = None if minutes is None else now + timedelta(minutes=minutes)
        self.twins.write("admin.take_lease", holder, now, until)

    @rule(data=st.data(), scope=scopes(), limit=limits)
    def ask_for_what_is_near(self, data: st.DataObject, scope: Scope, limit: int) -> None:
        active = answer(self.twins.reference, "vectors.active_space", ())
        if active is None:
            return
        questions = data.draw(vectors(active.name))
        self.twins.ask("vectors.nearest", questions, scope, limit)

    @rule(limit=limits, after=st.sampled_from(("", *TRAJECTORY_IDS)))
    def ask_for_texts(self, limit: int, after: str) -> None:
        for space in (None, *(space.name for space in SPACES)):
            self.twins.ask("vectors.texts_to_embed", limit, space, after)

    @rule(scope=scopes(), limit=limits)
    def ask_for_errors(self, scope: Scope, limit: int) -> None:
        for signature in SIGNATURES:
            self.twins.ask("methodologies.for_error", signature.variants(), scope, limit)
            questions = [ErrorQuestion(signature, level, scope) for level in LEVELS]
            self.twins.ask("recoveries.for_error", questions, limit)

    @rule(words=word_lists, scope=scopes(), limit=limits)
    def ask_for_words(self, words: list[str], scope: Scope, limit: int) -> None:
        self.twins.ask("runs.word_counts", words)
        self.twins.ask("recoveries.for_text", words, scope, limit)
        self.twins.ask("runs.for_text", words, scope, limit)

    @rule(scope=scopes(), limit=limits)
    def ask_for_tasks(self, scope: Scope, limit: int) -> None:
        for kind in (None, TaskType.BUG_FIX, TaskType.FEATURE, TaskType.DOCS):
            self.twins.ask("runs.for_task", kind, scope, limit)

    @rule(scope=scopes(), limit=limits)
    def ask_for_states(self, scope: Scope, limit: int) -> None:
        for phase in (None, Phase.FIXING, Phase.TESTING, Phase.SUBMITTING):
            self.twins.ask("recoveries.errors", scope, limit, phase=phase)
            self.twins.ask("recoveries.errors", scope, limit, phase=phase, runs=TRAJECTORY_IDS[:2])
            self.twins.ask("runs.loop_fragments", LOOP_COMMANDS[1], scope, limit)
            for name in (None, *FILE_NAMES):
                self.twins.ask("runs.fragments_for_state", phase, name, scope, limit)

    @rule(runs=st.sampled_from((400, 2, 1)))
    def ask_for_histories(self, runs: int) -> None:
        for errors in (ERROR_IDS, ERROR_IDS[:1]):
            self.twins.ask("recoveries.histories", errors, runs)
            self.twins.ask("methodologies.get", errors=errors)
            self.twins.ask("methodologies.of_types", errors)

    @rule(nodes=st.lists(st.sampled_from(NODE_IDS), min_size=3, max_size=6))
    def ask_for_explanations(self, nodes: Sequence[str]) -> None:
        for node in nodes:
            self.twins.ask("admin.explain", node)

    @invariant()
    def they_hold_the_same(self) -> None:
        for operation in (
            "admin.counts",
            "runs.ids",
            "recoveries.frequency",
            "recoveries.transitions",
            "vectors.active_space",
            "admin.unconsolidated",
            "methodologies.ids",
        ):
            self.twins.ask(operation)
        self.twins.ask("exposures.record", (*ADVICE_IDS[1:], *ITEM_IDS))
        self.twins.ask("methodologies.get", METHODOLOGY_IDS)
        self.twins.ask("runs.fragments", TRAJECTORY_IDS)
        self.twins.ask("runs.learned", TRAJECTORY_IDS)

    @invariant()
    def they_hold_the_same_of_each(self) -> None:
        for space in SPACES:
            self.twins.ask("vectors.space_model", space.name)
        self.twins.ask("runs.trajectories", TRAJECTORY_IDS)
        for run in TRAJECTORY_IDS:
            self.twins.ask("runs.raw", run)

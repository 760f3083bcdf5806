"""Candidates are the same, and in the same order, whichever store proposes them."""

from dataclasses import dataclass
from itertools import product

from hypothesis import strategies as st

from contextgraph.model import (
    Bundle,
    ErrorQuestion,
    Phase,
    RecoveryCandidate,
    Scope,
    SignatureLevel,
    Source,
    TaskType,
)
from contextgraph.vectors import Vector
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import (
    FILE_NAMES,
    LOOP_COMMANDS,
    SIGNATURES,
    SPACES,
    WORDS,
    Abstracted,
    abstracted,
    scopes,
    vectors,
)
from tests.twins import Twins

LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)
PHASES = (None, Phase.FIXING, Phase.TESTING, Phase.SUBMITTING)
TASK_TYPES = (None, TaskType.BUG_FIX, TaskType.FEATURE, TaskType.DOCS)
WORD_LISTS = (WORDS, WORDS[:3], ("absent",), ())
SPACE = SPACES[0]

limits = st.sampled_from((50, 3, 0))


questions = st.lists(
    st.builds(ErrorQuestion, st.sampled_from(SIGNATURES), st.sampled_from(LEVELS), scopes()),
    max_size=8,
)


@congruent(memory=memories, scope=scopes(), wanted=questions, limit=limits)
def test_recoveries_for_error(
    twins: Twins,
    memory: list[Bundle],
    scope: Scope,
    wanted: list[ErrorQuestion],
    limit: int,
) -> None:
    twins.learn(memory)
    for signature, level in product(SIGNATURES, LEVELS):
        twins.ask("recoveries.for_error", [ErrorQuestion(signature, level, scope)], limit)
    twins.ask("recoveries.for_error", wanted, limit)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_recoveries_for_text(twins: Twins, memory: list[Bundle], scope: Scope, limit: int) -> None:
    twins.learn(memory)
    for words in WORD_LISTS:
        twins.ask("recoveries.for_text", words, scope, limit)


def _source(candidate: RecoveryCandidate) -> Source:
    return Source(candidate.trajectory_id, candidate.recovered.fragment_id)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_runs_for_task(twins: Twins, memory: list[Bundle], scope: Scope, limit: int) -> None:
    twins.learn(memory)
    for task_type in TASK_TYPES:
        twins.ask("runs.for_task", task_type, scope, limit)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_runs_for_text(twins: Twins, memory: list[Bundle], scope: Scope, limit: int) -> None:
    twins.learn(memory)
    for words in WORD_LISTS:
        twins.ask("runs.for_text", words, scope, limit)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_runs_fragments_for_state(
    twins: Twins, memory: list[Bundle], scope: Scope, limit: int
) -> None:
    twins.learn(memory)
    for phase, name in product(PHASES, (None, *FILE_NAMES)):
        twins.ask("runs.fragments_for_state", phase, name, scope, limit)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_runs_loop_fragments(twins: Twins, memory: list[Bundle], scope: Scope, limit: int) -> None:
    twins.learn(memory)
    for command in (*LOOP_COMMANDS, "absent"):
        twins.ask("runs.loop_fragments", command, scope, limit)


@dataclass(frozen=True, slots=True)
class VectorQuestion:
    """A question for what is near."""

    vector: Vector
    scope: Scope
    limit: int


near = st.builds(VectorQuestion, vectors(SPACE.name), scopes(), limits)


@congruent(memory=memories, wanted=near)
def test_vectors_nearest(twins: Twins, memory: list[Bundle], wanted: VectorQuestion) -> None:
    twins.write("vectors.prepare", SPACE, b"model")
    twins.learn(memory)
    twins.ask("vectors.nearest", wanted.vector, wanted.scope, wanted.limit)
    twins.write("vectors.switch", SPACE.name)
    twins.ask("vectors.nearest", wanted.vector, wanted.scope, wanted.limit)


@congruent(memory=memories, given=abstracted(RUNS[:4]), scope=scopes(), limit=limits)
def test_methodologies_for_error(
    twins: Twins, memory: list[Bundle], given: Abstracted, scope: Scope, limit: int
) -> None:
    twins.learn(memory)
    twins.write(
        "methodologies.put", given.methodologies, given.removed, given.resolved, given.similar
    )
    for wanted in SIGNATURES:
        twins.ask("methodologies.for_error", [wanted], scope, limit)
    twins.ask("methodologies.for_error", SIGNATURES, scope, limit)


@congruent(memory=memories)
def test_runs_word_counts(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for words in WORD_LISTS:
        twins.ask("runs.word_counts", words)
    twins.ask("runs.word_counts", ())


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_recoveries_errors(twins: Twins, memory: list[Bundle], scope: Scope, limit: int) -> None:
    twins.learn(memory)
    for phase in PHASES:
        twins.ask("recoveries.errors", scope, limit, phase=phase)
        twins.ask("recoveries.errors", scope, limit, phase=phase, runs=RUNS[:3])

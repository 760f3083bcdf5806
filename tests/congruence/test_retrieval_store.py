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
    SimilarTo,
    Source,
    TaskType,
)
from contextgraph.vectors import Vector
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import (
    FILE_NAMES,
    SIGNATURES,
    SPACES,
    WORDS,
    Abstracted,
    abstracted,
    advice_vectors,
    scopes,
    vectors,
)
from tests.twins import Twins

LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE, SignatureLevel.FAMILY)
PHASES = (None, Phase.FIXING, Phase.TESTING, Phase.SUBMITTING)
TASK_TYPES = (None, TaskType.BUG_FIX, TaskType.FEATURE, TaskType.DOCS)
WORD_LISTS = (WORDS, WORDS[:3], ("absent",), ())
SPACE = SPACES[0]

limits = st.sampled_from((50, 3, 0))


questions = st.lists(
    st.builds(ErrorQuestion, st.sampled_from(SIGNATURES), st.sampled_from(LEVELS), scopes()),
    max_size=8,
)


@congruent(memory=memories, scope=scopes(), asked=questions, limit=limits, enough=st.integers(0, 6))
def test_recoveries_for_error(
    twins: Twins,
    memory: list[Bundle],
    scope: Scope,
    asked: list[ErrorQuestion],
    limit: int,
    enough: int,
) -> None:
    twins.learn(memory)
    for signature, level in product(SIGNATURES, LEVELS):
        twins.ask("recoveries_for_error", [ErrorQuestion(signature, level, scope)], limit)
    twins.ask("recoveries_for_error", asked, limit, enough)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_recoveries_for_text(twins: Twins, memory: list[Bundle], scope: Scope, limit: int) -> None:
    twins.learn(memory)
    for words in WORD_LISTS:
        twins.ask("recoveries_for_text", words, scope, limit)


@congruent(memory=memories, scope=scopes(), data=st.data())
def test_representatives_of(
    twins: Twins, memory: list[Bundle], scope: Scope, data: st.DataObject
) -> None:
    twins.learn(memory)
    recoveries = [
        found
        for asked in SIGNATURES
        for found in twins.reference.recoveries_for_error(
            [ErrorQuestion(asked, LEVELS[0], Scope())], 50
        )
    ]
    if recoveries:
        pairs = st.tuples(*[st.sampled_from(recoveries)] * 2)
        drawn = st.lists(
            pairs, max_size=8, unique_by=lambda pair: (_source(pair[0]), pair[0].error)
        )
        alike = [
            SimilarTo(one.error.id, _source(one), _source(other), 1.0)
            for one, other in data.draw(drawn)
        ]
        twins.write("put_methodologies", (), (), (), alike)
    twins.ask("representatives_of", recoveries, scope)


def _source(candidate: RecoveryCandidate) -> Source:
    return Source(candidate.trajectory.id, candidate.recovered.fragment_id)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_trajectories_for_task(
    twins: Twins, memory: list[Bundle], scope: Scope, limit: int
) -> None:
    twins.learn(memory)
    for task_type in TASK_TYPES:
        twins.ask("trajectories_for_task", task_type, scope, limit)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_trajectories_for_text(
    twins: Twins, memory: list[Bundle], scope: Scope, limit: int
) -> None:
    twins.learn(memory)
    for words in WORD_LISTS:
        twins.ask("trajectories_for_text", words, scope, limit)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_fragments_for_state(twins: Twins, memory: list[Bundle], scope: Scope, limit: int) -> None:
    twins.learn(memory)
    for phase, name in product(PHASES, (None, *FILE_NAMES)):
        twins.ask("fragments_for_state", phase, name, scope, limit)


@dataclass(frozen=True, slots=True)
class Asked:
    """A question for what is near."""

    vector: Vector
    scope: Scope
    limit: int


near = st.builds(Asked, vectors(SPACE.name), scopes(), limits)


def ask_for_nearest(operation: str, twins: Twins, memory: list[Bundle], asked: Asked) -> None:
    twins.write("prepare_space", SPACE, b"model")
    twins.learn(memory)
    twins.ask(operation, asked.vector, asked.scope, asked.limit)
    twins.write("switch_space", SPACE.name)
    twins.ask(operation, asked.vector, asked.scope, asked.limit)


@congruent(memory=memories, asked=near)
def test_nearest_trajectories(twins: Twins, memory: list[Bundle], asked: Asked) -> None:
    ask_for_nearest("nearest_trajectories", twins, memory, asked)


@congruent(memory=memories, asked=near)
def test_nearest_fragments(twins: Twins, memory: list[Bundle], asked: Asked) -> None:
    ask_for_nearest("nearest_fragments", twins, memory, asked)


@congruent(memory=memories, asked=near)
def test_nearest_recoveries(twins: Twins, memory: list[Bundle], asked: Asked) -> None:
    ask_for_nearest("nearest_recoveries", twins, memory, asked)


@congruent(memory=memories, given=abstracted(RUNS[:4]), scope=scopes(), limit=limits)
def test_methodologies_for_error(
    twins: Twins, memory: list[Bundle], given: Abstracted, scope: Scope, limit: int
) -> None:
    twins.learn(memory)
    twins.write(
        "put_methodologies", given.methodologies, given.removed, given.resolved, given.similar
    )
    for asked in SIGNATURES:
        twins.ask("methodologies_for_error", [asked], scope, limit)
    twins.ask("methodologies_for_error", SIGNATURES, scope, limit)


@congruent(memory=memories, given=abstracted(RUNS[:4]), scope=scopes(), limit=limits)
def test_methodologies_for_task(
    twins: Twins, memory: list[Bundle], given: Abstracted, scope: Scope, limit: int
) -> None:
    twins.learn(memory)
    twins.write(
        "put_methodologies", given.methodologies, given.removed, given.resolved, given.similar
    )
    for task_type in TASK_TYPES:
        twins.ask("methodologies_for_task", task_type, scope, limit)


@congruent(memory=memories, given=abstracted(RUNS[:4]), found=advice_vectors(SPACE), asked=near)
def test_nearest_methodologies(
    twins: Twins,
    memory: list[Bundle],
    given: Abstracted,
    found: dict[str, Vector | None],
    asked: Asked,
) -> None:
    twins.write(
        "put_methodologies", given.methodologies, given.removed, given.resolved, given.similar
    )
    twins.write("prepare_space", SPACE, b"model")
    twins.write("add_methodology_vectors", SPACE.name, found)
    ask_for_nearest("nearest_methodologies", twins, memory, asked)


@congruent(memory=memories)
def test_document_count(twins: Twins, memory: list[Bundle]) -> None:
    twins.ask("document_count")
    twins.learn(memory)
    twins.ask("document_count")


@congruent(memory=memories)
def test_word_frequencies(twins: Twins, memory: list[Bundle]) -> None:
    twins.learn(memory)
    for words in WORD_LISTS:
        twins.ask("word_frequencies", words)


@congruent(memory=memories, scope=scopes(), limit=limits)
def test_common_errors(twins: Twins, memory: list[Bundle], scope: Scope, limit: int) -> None:
    twins.learn(memory)
    for phase in PHASES:
        twins.ask("common_errors", phase, scope, limit)


@congruent(memory=memories, scope=scopes())
def test_error_tally(twins: Twins, memory: list[Bundle], scope: Scope) -> None:
    twins.learn(memory)
    for asked in SIGNATURES:
        twins.ask("error_tally", asked, scope)

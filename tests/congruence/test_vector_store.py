"""Spaces and vectors are kept alike, whichever store keeps them."""

from hypothesis import strategies as st

from contextgraph.model import Bundle, RunVectors, Space
from contextgraph.vectors import Vector
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import SPACES, Abstracted, abstracted, advice_vectors, run_vectors
from tests.twins import Twins

spaces = st.sampled_from(SPACES)
vectors_of_runs = st.dictionaries(
    st.sampled_from((*RUNS[:4], "absent")), st.integers(0, 3).flatmap(run_vectors), max_size=4
)


@congruent(space=spaces)
def test_active_space(twins: Twins, space: Space) -> None:
    twins.ask("active_space")
    twins.write("prepare_space", space, None)
    twins.ask("active_space")
    twins.write("switch_space", space.name)
    twins.ask("active_space")


@congruent(model=st.none() | st.binary(max_size=8))
def test_space_model(twins: Twins, model: bytes | None) -> None:
    twins.write("prepare_space", SPACES[0], model)
    for space in SPACES:
        twins.ask("space_model", space.name)


@congruent(memory=memories, limit=st.sampled_from((50, 2, 0)), after=st.sampled_from(("", RUNS[3])))
def test_texts_to_embed(twins: Twins, memory: list[Bundle], limit: int, after: str) -> None:
    twins.write("prepare_space", SPACES[0], None)
    twins.learn(memory)
    for name in (None, *(space.name for space in SPACES)):
        twins.ask("texts_to_embed", limit, name, after)


@congruent(models=st.lists(st.binary(max_size=8), min_size=2, max_size=2))
def test_prepare_space(twins: Twins, models: list[bytes]) -> None:
    for runs, model in enumerate(models):
        twins.write("prepare_space", Space(SPACES[0].name, runs, 0.5 + runs), model)
        twins.ask("space_model", SPACES[0].name)
    twins.write("switch_space", SPACES[0].name)
    twins.ask("active_space")


@congruent(memory=memories, vectors=vectors_of_runs)
def test_add_vectors(twins: Twins, memory: list[Bundle], vectors: dict[str, RunVectors]) -> None:
    twins.write("add_vectors", vectors)
    for space in SPACES:
        twins.write("prepare_space", space, None)
    twins.learn(memory)
    twins.write("add_vectors", vectors)
    for space in SPACES:
        twins.ask("texts_to_embed", 50, space.name)


@congruent(given=abstracted(), limit=st.sampled_from((50, 2, 0)))
def test_methodologies_to_embed(twins: Twins, given: Abstracted, limit: int) -> None:
    twins.write("put_methodologies", given.methodologies, (), (), ())
    for name in (None, *(space.name for space in SPACES)):
        twins.ask("methodologies_to_embed", limit, name)


@congruent(given=st.lists(abstracted(), min_size=2, max_size=2), found=advice_vectors(SPACES[0]))
def test_add_methodology_vectors(
    twins: Twins, given: list[Abstracted], found: dict[str, Vector | None]
) -> None:
    twins.write("add_methodology_vectors", SPACES[0].name, found)
    twins.write("prepare_space", SPACES[0], None)
    for one in given:
        twins.write("put_methodologies", one.methodologies, one.removed, (), ())
        twins.ask("methodologies_to_embed", 50, SPACES[0].name)
        twins.write("add_methodology_vectors", SPACES[0].name, found)
        twins.ask("methodologies_to_embed", 50, SPACES[0].name)
    twins.write("prepare_space", SPACES[1], None)
    twins.write("switch_space", SPACES[1].name)
    twins.write("prepare_space", SPACES[0], None)
    twins.ask("methodologies_to_embed", 50, SPACES[0].name)


@congruent(memory=memories, space=spaces)
def test_switch_space(twins: Twins, memory: list[Bundle], space: Space) -> None:
    twins.write("switch_space", space.name)
    for known in SPACES:
        twins.write("prepare_space", known, b"model")
    twins.learn(memory)
    twins.write("switch_space", space.name)
    for known in SPACES:
        twins.ask("space_model", known.name)
        twins.ask("texts_to_embed", 50, known.name)
    twins.ask("learned", RUNS)

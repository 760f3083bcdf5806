"""Every store handles spaces and vectors in the same way."""

from hypothesis import strategies as st

from contextgraph.model import Bundle, EmbeddedRun, Space
from tests.congruence.pairs import RUNS, congruent, memories
from tests.strategies import SPACES, embedded_runs
from tests.twins import Twins

spaces = st.sampled_from(SPACES)
vectors_of_runs = st.dictionaries(
    st.sampled_from((*RUNS[:4], "absent")), embedded_runs(), max_size=4
)


@congruent(space=spaces)
def test_vectors_active_space(twins: Twins, space: Space) -> None:
    twins.ask("vectors.active_space")
    twins.write("vectors.prepare", space, None)
    twins.ask("vectors.active_space")
    twins.write("vectors.switch", space.name)
    twins.ask("vectors.active_space")


@congruent(model=st.none() | st.binary(max_size=8))
def test_vectors_space_model(twins: Twins, model: bytes | None) -> None:
    twins.write("vectors.prepare", SPACES[0], model)
    for space in SPACES:
        twins.ask("vectors.space_model", space.name)


@congruent(memory=memories, limit=st.sampled_from((50, 2, 0)), after=st.sampled_from(("", RUNS[3])))
def test_vectors_texts_to_embed(twins: Twins, memory: list[Bundle], limit: int, after: str) -> None:
    twins.write("vectors.prepare", SPACES[0], None)
    twins.learn(memory)
    for name in (None, *(space.name for space in SPACES)):
        twins.ask("vectors.texts_to_embed", limit, name, after)


@congruent(models=st.lists(st.binary(max_size=8), min_size=2, max_size=2))
def test_vectors_prepare(twins: Twins, models: list[bytes]) -> None:
    for runs, model in enumerate(models):
        twins.write("vectors.prepare", Space(SPACES[0].name, runs, 0.5 + runs), model)
        twins.ask("vectors.space_model", SPACES[0].name)
    twins.write("vectors.switch", SPACES[0].name)
    twins.ask("vectors.active_space")


@congruent(memory=memories, vectors=vectors_of_runs)
def test_vectors_add(twins: Twins, memory: list[Bundle], vectors: dict[str, EmbeddedRun]) -> None:
    add_by_space(twins, vectors)
    for space in SPACES:
        twins.write("vectors.prepare", space, None)
    twins.learn(memory)
    add_by_space(twins, vectors)
    for space in SPACES:
        twins.ask("vectors.texts_to_embed", 50, space.name)


def add_by_space(twins: Twins, vectors: dict[str, EmbeddedRun]) -> None:
    for space in SPACES:
        of_space = {run: own.vector for run, own in vectors.items() if own.space == space.name}
        twins.write("vectors.add", space.name, of_space)


@congruent(memory=memories, space=spaces)
def test_vectors_switch(twins: Twins, memory: list[Bundle], space: Space) -> None:
    twins.write("vectors.switch", space.name)
    for known in SPACES:
        twins.write("vectors.prepare", known, b"model")
    twins.learn(memory)
    twins.write("vectors.switch", space.name)
    for known in SPACES:
        twins.ask("vectors.space_model", known.name)
        twins.ask("vectors.texts_to_embed", 50, known.name)
    twins.ask("runs.learned", RUNS)

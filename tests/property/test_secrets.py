"""No secret of any kind, in any place of a run, is stored, exported or rendered."""

from dataclasses import replace
from random import Random

import pytest
import zstandard
from hypothesis import given, strategies as st

from contextgraph.learning import bundle_of, holds_secrets, masked, trajectory_id
from contextgraph.memory import AgentMemory
from contextgraph.model import State
from tests.builders import NOON
from tests.planted import KINDS, PLACES, planted

kinds, places = st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(PLACES))


@given(kinds, places, st.integers(0, 2**32))
def test_no_planted_secret_is_in_what_a_run_teaches(kind, place, seed):
    raw, secret = planted(kind, place, Random(seed))
    learned = repr(bundle_of(raw, NOON))
    assert secret not in learned
    assert "<secret:" in learned


@given(kinds, places, st.integers(0, 2**32))
def test_a_masked_run_has_the_id_of_the_run_itself(kind, place, seed):
    raw, _ = planted(kind, place, Random(seed))
    clean, _ = masked(raw)
    assert trajectory_id(clean) == trajectory_id(raw)
    assert holds_secrets(raw)
    assert not holds_secrets(clean)


@pytest.fixture
def runs():
    """A run of every kind of secret, each in another place than the one before."""
    ordered = sorted(PLACES)
    return [
        planted(kind, ordered[number % len(ordered)], Random(number))
        for number, kind in enumerate(KINDS)
    ]


def test_no_planted_secret_is_in_files_exports_or_prompts(runs, tmp_path):
    address = str(tmp_path / "memory.db")
    with AgentMemory.open(address) as memory:
        for raw, _ in runs:
            memory.learn(raw)
        memory.export(tmp_path / "all.jsonl.zst")
        context = memory.query(State(current_error="No module named 'x'"))
        text = memory.render(context)
        found = [file.read_bytes() for file in tmp_path.iterdir()]
        stored = repr([memory.store.runs.raw(one) for one in memory.store.runs.ids()])
    with (tmp_path / "all.jsonl.zst").open("rb") as file:
        exported = zstandard.ZstdDecompressor().stream_reader(file).read()
    for _, secret in runs:
        assert secret not in text + stored
        assert not any(secret.encode() in content for content in (*found, exported))


def test_what_an_older_version_stored_is_found_and_masked_by_a_rebuild(runs, tmp_path):
    (raw, secret), *_ = runs
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        memory.store.runs.add([replace(bundle_of(raw, NOON), raw=raw)])
        (stored,) = memory.store.runs.ids()
        older = memory.store.runs.raw(stored)
        assert older is not None
        assert holds_secrets(older)
        list(memory.rebuild())
        (rebuilt,) = memory.store.runs.ids()
        assert secret not in repr(memory.store.runs.raw(rebuilt))


def test_runs_are_hidden_by_the_name_that_they_came_with(tmp_path):
    raw, _ = planted("github token", "instance", Random(1))
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        memory.learn(raw)
        state = State(task_description=raw.task)
        assert memory.query(state).similar_cases
        assert not memory.query(state, exclude_instances=[raw.instance_id]).similar_cases

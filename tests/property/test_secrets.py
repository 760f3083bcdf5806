"""No secret of any kind, in any place of a run, is stored, exported or rendered."""

import json
import os
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
import zstandard
from hypothesis import given, strategies as st

from contextgraph.learning import bundle_of, masked, trajectory_id, unmasked_values
from contextgraph.memory import AgentMemory
from contextgraph.model import Outcome, State
from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import NOON, recovering_run
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
    assert unmasked_values(raw)
    assert not unmasked_values(clean)


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


def test_no_planted_secret_is_printed_or_in_any_file_that_a_command_writes(runs, tmp_path):
    store, made = tmp_path / "memory.db", tmp_path / "made"
    made.mkdir()
    path = write_runs(tmp_path / "runs.jsonl", [raw for raw, _ in runs])
    broken = []
    for number, (draw, (_, secret)) in enumerate(zip(KINDS.values(), runs, strict=True)):
        text, _ = draw(Random(number))
        assert secret in text
        for suffix, content in ((".txt", text), (".json", json.dumps({text: text}))):
            broken.append(tmp_path / f"{number}{suffix}")
            broken[-1].write_text(content)
    printed = [
        contextgraph(*map(str, command))
        for command in (
            ("learn", path, "--store", store, "--json"),
            ("learn", path, "--store", "bolt://127.0.0.1:1"),
            ("learn", *broken, "--store", store, "--json"),
            ("inspect", path),
            ("inspect", path, "--json"),
            ("inspect", path, "--html", made / "page.html"),
            ("runs", "--store", store, "--json"),
            ("replay", path, "--json"),
            ("export", made / "atif", "--format", "atif", "--store", store),
            ("export", made / "graph.graphml", "--format", "graphml", "--store", store),
            ("backup", made / "backup.db", "--store", store),
        )
    ]
    spool = Path(os.environ["XDG_DATA_HOME"])
    files = [*made.rglob("*"), *spool.rglob("*"), *tmp_path.glob("memory.db*")]
    contents = [one.read_bytes() for one in files if one.is_file()]
    assert len(contents) > len(runs), "runs of the spool and of ATIF among them"
    contents += [f"{one.out}{one.err}".encode() for one in printed]
    for _, secret in runs:
        assert not any(secret.encode() in content for content in contents)


@pytest.fixture
def older(runs, tmp_path):
    """A memory of a version that masked nothing, with one run that holds no secret."""
    path = tmp_path / "memory.db"
    with AgentMemory.open(str(path)) as memory:
        for number, (raw, secret) in enumerate(runs):
            agent = raw.agent if secret in raw.agent else f"agent {number}"
            one = replace(raw, agent=agent)
            memory.store.runs.add([replace(bundle_of(one, NOON), raw=one)])
        memory.learn(recovering_run(outcome=Outcome.SOLVED))
        memory.consolidate()
    return path


@pytest.mark.parametrize("command", ["migrate", "rebuild"])
def test_what_an_older_version_stored_is_masked(older, runs, command):
    with AgentMemory.open(str(older)) as memory:
        count = len(memory.store.runs.ids())
    assert count > len(PLACES)
    (found,) = contextgraph("doctor", "--secrets", "--store", older, "--json").records
    assert f"{count - 1} of {count} runs hold secrets" in str(found)

    done = contextgraph(command, "--store", older, "--json")
    (checked,) = contextgraph("doctor", "--secrets", "--store", older, "--json").records

    assert (done.code, checked["ok"]) == (0, True)
    with AgentMemory.open(str(older)) as memory:
        masked_runs = [memory.store.runs.raw(one) for one in memory.store.runs.ids()]
    assert len(masked_runs) == count
    stored = repr(masked_runs).encode() + b"".join(
        path.read_bytes() for path in older.parent.glob("memory.db*")
    )
    assert not any(secret.encode() in stored for _, secret in runs)


def test_migrate_masks_once_and_counts_what_it_masked(older):
    with AgentMemory.open(str(older)) as memory:
        count = len(memory.store.runs.ids())
        raws = {one: memory.store.runs.raw(one) for one in memory.store.runs.ids()}
        kept = [one for one, raw in raws.items() if raw and not unmasked_values(raw)]

    (first,) = contextgraph("migrate", "--store", older, "--json").records
    again = contextgraph("migrate", "--store", older)

    assert first["masked"]["runs"] == count - 1
    assert first["masked"]["values"] >= count - 1
    assert again.out == "the schema is up to date\n"
    with AgentMemory.open(str(older)) as memory:
        (solved,) = memory.store.runs.trajectories(kept).values()
    assert solved.outcome is Outcome.SOLVED


def test_masking_that_is_interrupted_goes_on(older, monkeypatch):
    with AgentMemory.open(str(older)) as memory:
        ids, replaced = memory.store.runs.ids(), memory.store.runs.replace
        calls = iter(range(2))

        def replace_once(bundles):
            if next(calls):
                raise KeyboardInterrupt
            return replaced(bundles)

        monkeypatch.setattr(memory.store.runs, "replace", replace_once)
        with pytest.raises(KeyboardInterrupt):
            memory.mask_stored()
    with AgentMemory.open(str(older)) as memory:
        left, _ = memory.mask_stored()
        assert 0 < left < len(ids) - 1
        assert len(memory.store.runs.ids()) == len(ids)
        assert memory.mask_stored() == (0, 0)


def test_runs_are_hidden_by_the_name_that_they_came_with(tmp_path):
    raw, _ = planted("github token", "instance", Random(1))
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        memory.learn(raw)
        state = State(task_description=raw.task)
        assert memory.query(state).similar_cases
        assert not memory.query(state, exclude_instances=[raw.instance_id]).similar_cases

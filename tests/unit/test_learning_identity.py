"""Which runs are the same run, and how a memory knows them again."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from contextgraph.learning import MemoryWriter, bundle_of, trajectory_id
from contextgraph.learning.bundle import run_ids
from contextgraph.model import (
    Action,
    Exposure,
    LearnStatus,
    Outcome,
    RawTrajectory,
    SeenContext,
    ShownItem,
    Step,
)
from contextgraph.model.values import replace
from contextgraph.store.archive import export_memory, import_memory
from contextgraph.store.sqlite import SqliteStore
from tests.builders import NOON, recovering_run, run

KEY = "AKIA" + "Q7RZ5T2MW4XLN8PV"
COMMANDS = [("ls", "README.md", 0), ("python run.py", "3", 0)]


@pytest.fixture
def store() -> Iterator[SqliteStore]:
    opened = SqliteStore(":memory:")
    yield opened
    opened.close()


@pytest.fixture
def writer(store: SqliteStore) -> MemoryWriter:
    return MemoryWriter(store, clock=lambda: NOON)


def test_formatting_model_outcome_and_submission_do_not_make_another_run() -> None:
    live = run(COMMANDS, agent="mini")
    log = run(
        [("ls", "README.md\n(exit 0)", 0), ("python  run.py ", "3\n", 0), ("submit", "", 0)],
        agent="mini",
        model="other",
        outcome=Outcome.SOLVED,
    )
    assert trajectory_id(live) == trajectory_id(log)


@pytest.mark.parametrize(
    "other",
    [
        run([*COMMANDS, ("rm run.py", "", 0)]),
        run(COMMANDS, agent="another"),
        run(COMMANDS, instance_id="acme__shop-2"),
        run(COMMANDS[::-1]),
    ],
)
def test_commands_agent_and_instance_make_another_run(other: RawTrajectory) -> None:
    assert trajectory_id(other) != trajectory_id(run(COMMANDS))


def test_the_id_of_what_is_stored_is_the_id_of_what_was_read() -> None:
    raw = run([(f"export AWS_ACCESS_KEY_ID={KEY}", f"set {KEY}", 0)])
    stored = bundle_of(raw, NOON).raw
    assert KEY not in repr(stored)
    assert trajectory_id(stored) == trajectory_id(raw)


def test_a_run_knows_the_ids_of_its_beginnings() -> None:
    whole = run([*COMMANDS, ("pytest", "1 passed", 0)])
    assert run_ids(whole).beginnings == (
        trajectory_id(run(COMMANDS)),
        trajectory_id(run(COMMANDS[:1])),
    )


def test_a_longer_log_takes_the_place_of_the_run_observed_live(
    store: SqliteStore, writer: MemoryWriter
) -> None:
    raw = recovering_run()
    live = writer.write(replace(raw, steps=raw.steps[:2]))
    whole = writer.write(raw)
    assert (live.status, whole.status) == (LearnStatus.CREATED, LearnStatus.UPDATED)
    assert store.runs.ids() == [whole.trajectory_id]
    assert store.runs.learned([live.trajectory_id])[live.trajectory_id].trajectory_id == (
        whole.trajectory_id
    )


def test_a_longer_log_replaces_its_beginning_in_one_batch(
    store: SqliteStore, writer: MemoryWriter
) -> None:
    raw = recovering_run()
    given = [replace(raw, steps=raw.steps[:length]) for length in (1, 2, len(raw.steps))]
    statuses = [one.status for one in writer.write_all(given)]
    assert statuses == [LearnStatus.CREATED, LearnStatus.UPDATED, LearnStatus.UPDATED]
    assert store.runs.ids() == [trajectory_id(raw)]


def test_a_beginning_that_is_learned_after_the_whole_is_the_same_run(
    store: SqliteStore, writer: MemoryWriter
) -> None:
    raw = recovering_run()
    whole = writer.write(raw)
    for length in (1, 2):
        again = writer.write(replace(raw, steps=raw.steps[:length]))
        assert again.trajectory_id == whole.trajectory_id
    assert store.runs.ids() == [whole.trajectory_id]
    assert store.runs.raw(whole.trajectory_id) == raw


def writer_beside(store: SqliteStore, other: RawTrajectory) -> MemoryWriter:
    """A writer while whose first run is read, another process learns *other*."""
    pending = [other]

    def now() -> datetime:
        if pending:
            MemoryWriter(store, clock=lambda: NOON).write(pending.pop())
        return NOON

    return MemoryWriter(store, clock=now)


@pytest.mark.parametrize(("own", "other"), [(1, 2), (2, 1), (2, 2)])
@pytest.mark.parametrize("is_begun", [False, True])
def test_two_processes_that_learn_a_growing_run_at_once_leave_the_longer_log(
    store: SqliteStore, own: int, other: int, is_begun: bool
) -> None:
    raw = run([*COMMANDS, ("pytest", "1 passed", 0)])
    logs = {length: replace(raw, steps=raw.steps[: length + 1]) for length in range(3)}
    if is_begun:
        MemoryWriter(store, clock=lambda: NOON).write(logs[0])
    receipt = writer_beside(store, logs[other]).write(logs[own])
    longer = trajectory_id(logs[max(own, other)])
    assert (store.runs.ids(), receipt.trajectory_id) == ([longer], longer)


def test_advice_is_credited_where_the_longer_log_clears_the_error(
    store: SqliteStore, writer: MemoryWriter
) -> None:
    raw = recovering_run()
    whole = bundle_of(raw, NOON)
    context = f"ctx_{'0' * 16}"
    error = whole.recovered[0].error_id
    store.exposures.add([Exposure.of(context, [ShownItem("frg_shown")], NOON, error)])
    writer.write(replace(raw, steps=raw.steps[:1]))
    former = trajectory_id(replace(raw, steps=raw.steps[:1]))
    store.runs.replace({former: replace(whole, exposures=(SeenContext(context, 0),))})
    assert [one.helped for one in store.exposures.all()] == [True]


def test_a_run_of_another_task_is_not_replaced(store: SqliteStore, writer: MemoryWriter) -> None:
    writer.write(run(COMMANDS, task="Repair the login page"))
    writer.write(run([*COMMANDS, ("pytest", "1 passed", 0)], task="Document the prices"))
    assert len(store.runs.ids()) == 2


@pytest.mark.parametrize("is_longer_first", [False, True])
def test_a_run_keeps_its_task_where_the_longer_log_has_lost_it(
    store: SqliteStore, writer: MemoryWriter, is_longer_first: bool
) -> None:
    begun = run(COMMANDS, task="Repair the login page")
    longer = run([*COMMANDS, ("pytest", "1 passed", 0)], task="")
    for raw in (longer, begun) if is_longer_first else (begun, longer):
        writer.write(raw)
    (identity,) = store.runs.ids()
    (stored,) = store.runs.trajectories([identity]).values()
    assert (stored.task, stored.total_steps) == ("Repair the login page", 3)


def test_a_finished_run_is_not_replaced_by_one_that_begins_like_it(
    store: SqliteStore, writer: MemoryWriter
) -> None:
    writer.write(run(COMMANDS, outcome=Outcome.FAILED))
    writer.write(run([*COMMANDS, ("pytest", "1 passed", 0)]))
    assert len(store.runs.ids()) == 2


def test_an_archive_of_a_beginning_brings_no_run_back(
    store: SqliteStore, writer: MemoryWriter, tmp_path: Path
) -> None:
    writer.write(run(COMMANDS))
    export_memory(store, tmp_path / "a.jsonl", "default")
    longer = writer.write(run([*COMMANDS, ("pytest", "1 passed", 0)]))
    assert longer.status is LearnStatus.UPDATED

    assert import_memory(store, tmp_path / "a.jsonl").unchanged == 1
    assert store.runs.ids() == [longer.trajectory_id]


def _last_fragment(store: SqliteStore, run_id: str) -> str:
    return store.runs.fragments([run_id])[run_id][-1].id


def talk(*messages: str, **fields: object) -> RawTrajectory:
    """A conversation in which each reply is followed by one of *messages*."""
    steps = [Step(at, "Yes.", Action("", ""), None) for at in range(len(messages) + 1)]
    steps = [
        replace(step, user_message=words) if words else step
        for step, words in zip(steps, (*messages, ""), strict=True)
    ]
    return run([], steps=tuple(steps), **fields)


def test_a_conversation_that_goes_on_takes_the_place_of_its_beginning(
    writer: MemoryWriter, store: SqliteStore
) -> None:
    receipts = [
        writer.write(talk()),
        writer.write(talk("No, glass.")),
        writer.write(talk("No, glass.", "And steel for soup.")),
        writer.write(talk("No, glass.")),
    ]
    assert [receipt.status for receipt in receipts] == [
        "created",
        "updated",
        "updated",
        "unchanged",
    ]
    assert len(store.runs.ids()) == 1


def test_what_is_said_after_the_last_command_is_learned(
    writer: MemoryWriter, store: SqliteStore
) -> None:
    before = run(COMMANDS)
    last = replace(before.steps[-1], user_message="Never run it again.")
    writer.write(before)
    assert writer.write(replace(before, steps=(*before.steps[:-1], last))).status == "updated"
    (identity,) = store.runs.ids()
    stored = store.runs.raw(identity)
    assert stored is not None
    assert stored.steps[-1].user_message == "Never run it again."

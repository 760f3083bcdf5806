"""Runs in progress: what they show and when, and what is learned of them."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory, AsyncLiveRun, LiveRun, RawTrajectory
from contextgraph.errors import NeverLearnedError, StoreError, StoreUnavailableError
from contextgraph.model import Condition, LearnReceipt, LearnStatus, Outcome
from contextgraph.model.values import replace
from contextgraph.readers import read
from tests.builders import NO_MODULE, detouring_run, run

LOGS = Path(__file__).parents[1] / "data" / "readers"
LINE: dict[str, Any] = {"repo": "acme/shop", "task": "Totals are wrong when a tariff is missing"}
PATCH = """diff --git a/lib/{0}.py b/lib/{0}.py
--- a/lib/{0}.py
+++ b/lib/{0}.py
@@ -1 +1 @@
-rate = 0
+rate = 1
"""


# Long enough that a task with the same text is surely related.
TASK = """The tariff of an order is lost when a region has no default rate

`tariff.py` calls `rate_of(order)` with the region; `total_with_tariff` then raises
`KeyError: 'rate'` for `Region.NORTH`, and `net_total` skips the discount.
"""


@pytest.fixture
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as memory:
        yield memory


def learn_two(memory: AgentMemory) -> None:
    """Learn two tasks that cleared the same error in the same way: enough to interrupt for."""
    for number in (1, 2):
        memory.learn(detouring_run(number))


def begun(memory: AgentMemory, number: int = 9) -> LiveRun:
    return memory.live(instance_id=f"acme__shop-{number}", **LINE)


def failing(live: LiveRun, times: int = 1) -> list[str | None]:
    """Return the advice while the same command fails repeatedly."""
    return [live.observe("python reproduce.py", NO_MODULE, exit_code=1) for _ in range(times)]


def replayed(memory: AgentMemory, raw: RawTrajectory) -> LiveRun:
    """*raw* observed step by step."""
    live = memory.live(
        repo=raw.repo, instance_id=raw.instance_id, task=raw.task, agent=raw.agent, model=raw.model
    )
    for step in raw.steps:
        live.observe(step.action, step.observation, exit_code=step.exit_code)
    return live


def broken_off(
    memory: AgentMemory, error: BaseException, before: Callable[[], None] = lambda: None
) -> None:
    with begun(memory) as live:
        failing(live)
        before()
        raise error


def only(receipt: LearnReceipt | None) -> str:
    assert receipt is not None
    return receipt.trajectory_id


def test_an_empty_memory_shows_nothing(memory: AgentMemory) -> None:
    live = begun(memory)
    assert live.start() == ""
    assert failing(live) == [None]
    assert live.check_submit() is None


@pytest.mark.parametrize(("task", "is_shown"), [(TASK, True), ("Print pages", False)])
def test_a_similar_task_is_shown_at_the_start(
    memory: AgentMemory, task: str, is_shown: bool
) -> None:
    memory.learn(detouring_run(task=TASK, patch=PATCH.format("printer")))
    live = memory.live(repo="acme/shop", instance_id="acme__shop-9", task=task)
    assert ("acme__shop-1" in live.start()) is is_shown
    assert live.start() == ""


def test_runs_of_excluded_instances_are_not_shown(memory: AgentMemory) -> None:
    memory.learn(detouring_run())
    live = memory.live(instance_id="acme__shop-9", exclude_instances=["acme__shop-1"], **LINE)
    assert live.start() == ""
    assert failing(live, 6)[0] is None


def test_an_error_gets_advice_once_however_often_it_comes_back(memory: AgentMemory) -> None:
    learn_two(memory)
    live = begun(memory)
    first, *later = failing(live, 3)
    assert first is not None
    assert "PYTHONPATH=lib" in first
    live.observe("ls", "lib", exit_code=0)
    other = NO_MODULE.replace("line 1", "line 7")
    assert {*later, live.observe("python other.py", other, exit_code=1)} == {None}


def test_a_loop_is_named_once_when_it_is_stuck(memory: AgentMemory) -> None:
    shown = failing(begun(memory), 40)
    assert [step for step, advice in enumerate(shown) if advice] == [5]
    assert "last 6 attempts had the same outcome: python reproduce.py" in (shown[5] or "")


def test_putting_a_file_back_between_trials_is_no_loop(memory: AgentMemory) -> None:
    live = begun(memory)
    back = "cp lib/totals.py.orig lib/totals.py"
    for number in range(12):
        assert live.observe(back, "", exit_code=0) is None
        assert live.observe(f"sed -i s/{number}/b/ lib/totals.py", "", exit_code=0) is None
        assert live.observe("python reproduce.py", "total: 12\n", exit_code=0) is None


def test_advice_that_cleared_the_error_is_credited(memory: AgentMemory) -> None:
    learn_two(memory)
    with begun(memory) as live:
        failing(live)
        live.observe("PYTHONPATH=lib python reproduce.py", "total: 12\n", exit_code=0)
    (shown,) = memory.store.exposures.all()
    assert shown.helped
    assert [item.helped for item in shown.items] == [True]


def test_a_remedy_that_is_followed_goes_on_being_said(memory: AgentMemory) -> None:
    learn_two(memory)
    for number in range(3, 9):
        with begun(memory, number) as live:
            assert all(failing(live))
            live.observe("PYTHONPATH=lib python reproduce.py", "total: 12\n", exit_code=0)
    assert all(failing(begun(memory)))


def test_what_was_shown_is_not_learned(memory: AgentMemory) -> None:
    for number in (1, 2):
        memory.learn(detouring_run(number, patch=PATCH.format("tariff")))
    with begun(memory) as live:
        assert live.start()
        assert all(failing(live))
        receipt = live.finish()
    stored = memory.store.runs.raw(only(receipt))
    assert stored is not None
    assert stored.system_prompt == ""
    assert stored.steps[0].observation == NO_MODULE


def test_a_run_is_learned_at_the_end_with_its_outcome(memory: AgentMemory) -> None:
    with begun(memory) as live:
        failing(live)
        receipt = live.finish(outcome=Outcome.SOLVED)
    learned = memory.store.runs.learned(memory.store.runs.ids())
    assert {key: run.outcome for key, run in learned.items()} == {only(receipt): Outcome.SOLVED}
    with pytest.raises(ValueError, match="the run is finished"):
        failing(live)


def test_a_run_is_not_finished_again_with_another_outcome(memory: AgentMemory) -> None:
    with begun(memory) as live:
        failing(live)
        first = live.finish(Outcome.SOLVED)
    again = live.finish(Outcome.SOLVED)
    with pytest.raises(ValueError, match="learned as solved: call set_outcome"):
        live.finish(Outcome.FAILED)
    assert only(again) == only(first)


def test_thought_exit_status_and_patch_are_kept(memory: AgentMemory) -> None:
    with begun(memory) as live:
        live.observe("ls", "shop.py", thought="look around")
        receipt = live.finish(exit_status="submitted", patch="+ one line")
    raw = memory.store.runs.raw(only(receipt))
    assert raw is not None
    assert (raw.steps[0].thought, raw.exit_status) == ("look around", "submitted")
    assert raw.patch == "+ one line"


def test_an_action_that_was_never_answered_is_a_step_of_the_run(memory: AgentMemory) -> None:
    learn_two(memory)
    live = begun(memory)
    assert live.observe("ls", None) is None
    assert live.observe("python reproduce.py", NO_MODULE, exit_code=1)
    assert "$ ls" in live.working.to_prompt_section()
    assert [step.observation is None for step in live.raw.steps] == [True, False]
    live.finish()


def test_a_run_without_steps_teaches_nothing(memory: AgentMemory) -> None:
    with begun(memory) as live:
        assert live.finish() is None
    assert memory.store.runs.ids() == []


def test_a_run_that_an_exception_ends_is_learned_without_an_outcome(memory: AgentMemory) -> None:
    with pytest.raises(KeyboardInterrupt):
        broken_off(memory, KeyboardInterrupt())
    (known,) = memory.store.runs.learned(memory.store.runs.ids()).values()
    assert known.outcome is Outcome.UNKNOWN


def test_a_run_that_cannot_be_learned_says_so(memory: AgentMemory) -> None:
    live = begun(memory)
    failing(live)
    memory.close()
    with pytest.raises(StoreError, match="closed"), live:
        pass


def test_an_exception_is_not_hidden_by_a_run_that_cannot_be_learned(memory: AgentMemory) -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        broken_off(memory, ZeroDivisionError(), memory.close)
    assert "the run was not learned" in caught.value.__notes__[0]


def test_what_another_agent_learned_of_the_repository_is_said_at_its_error() -> None:
    """README's example, for an agent that cleared other errors of this type elsewhere."""
    name = NO_MODULE.replace("tariffs", "yaml")
    steps = [("python a.py", name, 1), ("pip install pyyaml", "", 0), ("python a.py", "ok", 0)]
    with AgentMemory.open(":memory:") as memory:
        memory.learn([detouring_run(number, agent="codex-cli") for number in (1, 2, 3)])
        memory.learn(
            [
                run(steps, instance_id=f"bob__pump-{n}", repo="bob/pump", agent="claude-code")
                for n in range(8)
            ]
        )
        with memory.live(repo="acme/shop", task="Totals", agent="claude-code") as live:
            said = live.observe("python reproduce.py", NO_MODULE, exit_code=1)
    assert "set `PYTHONPATH=lib`" in (said or "")
    assert "[3 of 3 tasks here]" in (said or "")


def test_an_agent_goes_on_while_the_store_is_away(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    learn_two(memory)

    def away(*_: object, **__: object) -> None:
        raise StoreUnavailableError("no answer")

    live = begun(memory)
    with monkeypatch.context() as patch:
        patch.setattr(memory, "query", away)
        assert failing(live) == [None]
    assert "goes on without advice: no answer" in caplog.text
    assert failing(live) != [None]


@pytest.mark.parametrize(
    "name",
    [
        "mini-swe-agent/cord.traj.json",
        "mini-swe-agent/tank.traj.json",
        "mini-swe-agent/teapot__dial-3.traj.json",
        "claude-code/session.jsonl",
    ],
)
def test_a_log_of_a_run_observed_live_is_known(memory: AgentMemory, name: str) -> None:
    runs = list(read(LOGS / name, on_error=lambda _: None))
    assert runs
    for raw in runs:
        with replayed(memory, raw) as live:
            observed = live.finish(outcome=raw.outcome)
        learned = memory.learn(raw)
        assert observed is not None
        # A log may also have what a person said after the last command.
        is_same = learned.trajectory_id == observed.trajectory_id
        assert learned.status is (LearnStatus.UNCHANGED if is_same else LearnStatus.UPDATED)
    assert len(memory.store.runs.ids()) == len(runs)


def test_a_longer_log_takes_the_place_of_a_run_that_was_broken_off(memory: AgentMemory) -> None:
    (raw,) = read(LOGS / "mini-swe-agent/teapot__dial-3.traj.json")
    with replayed(memory, replace(raw, steps=raw.steps[:2])):
        pass
    assert memory.learn(raw).status is LearnStatus.UPDATED
    assert len(memory.store.runs.ids()) == 1


EDIT = ("sed -i 's/1/2/' shop/totals.py", "", 0)
TEST = ("python -m pytest -q", "3 passed\n", 0)


def test_what_is_missing_before_submission_is_said_where_it_went_with_failure(
    memory: AgentMemory,
) -> None:
    for number in range(16):
        tested = number % 2 == 0
        outcome = Outcome.SOLVED if tested else Outcome.FAILED
        steps = [("ls", "", 0), EDIT, TEST] if tested else [("ls", "", 0), EDIT]
        memory.learn(run(steps, instance_id=f"acme__shop-{number}", outcome=outcome))
    live = begun(memory, 99)
    live.observe(EDIT[0], EDIT[1], exit_code=0)
    warning = live.check_submit()
    assert warning is not None
    assert (
        "Nothing was run since the last edit: 0 of 8 earlier runs of which this was true at the end"
        in warning
    )
    assert "8 of 8 others" in warning
    assert live.check_submit() is None
    live = begun(memory, 99)
    live.observe(EDIT[0], EDIT[1], exit_code=0)
    live.observe(TEST[0], TEST[1], exit_code=0)
    assert live.check_submit() is None


def test_a_sign_that_may_be_chance_is_not_mentioned(memory: AgentMemory) -> None:
    for number, outcome in enumerate((Outcome.FAILED, Outcome.FAILED, Outcome.SOLVED)):
        memory.learn(run([EDIT], instance_id=f"acme__shop-{number}", outcome=outcome))
    live = begun(memory)
    live.observe(EDIT[0], EDIT[1], exit_code=0)
    assert live.check_submit() is None
    rates = memory.stats.get_solve_rates()[Condition.NOT_RUN]
    assert (rates.solved_shown, rates.shown, rates.others) == (1, 3, 0)


def test_consolidation_does_not_keep_the_run_waiting(
    memory: AgentMemory, monkeypatch: pytest.MonkeyPatch
) -> None:
    queried, may_go_on = threading.Event(), threading.Event()
    consolidate = memory.consolidator.consolidate

    def slow(*arguments, **options):
        queried.set()
        assert may_go_on.wait(60)
        return consolidate(*arguments, **options)

    monkeypatch.setattr(memory.consolidator, "consolidate", slow)
    for number in range(17):
        with replayed(memory, detouring_run(number)):
            pass
    assert queried.wait(60)
    assert begun(memory).start()
    may_go_on.set()
    memory._trigger.wait()
    assert memory.store.methodologies.ids()


def test_closing_waits_for_consolidation(tmp_path: Path) -> None:
    path = str(tmp_path / "memory.db")
    with AgentMemory.open(path) as memory:
        for number in range(16):
            with replayed(memory, detouring_run(number)):
                pass
    with AgentMemory.open(path, read_only=True) as memory:
        assert memory.store.methodologies.ids()


def test_the_asynchronous_run_shows_and_learns_the_same(memory: AgentMemory) -> None:
    for number in (1, 2):
        memory.learn(detouring_run(number, patch=PATCH.format("tariff")))

    async def observed() -> tuple[str, str | None, LearnReceipt | None]:
        async with AsyncLiveRun(begun(memory)) as live:
            start = await live.start()
            advice = await live.observe("python reproduce.py", NO_MODULE, exit_code=1)
            assert await live.check_submit() is None
            return start, advice, await live.finish()

    start, advice, receipt = asyncio.run(observed())
    assert start
    assert advice
    assert only(receipt) in memory.store.runs.ids()


def test_the_working_memory_of_a_run_is_a_short_prompt_about_it(memory: AgentMemory) -> None:
    learn_two(memory)
    live = begun(memory)
    for number in range(4):
        live.observe(f"cat lib/part{number}.py", f"part {number}", exit_code=0)
    advice = live.observe("python reproduce.py", NO_MODULE, exit_code=1)
    assert advice
    section = live.working.to_prompt_section()
    assert section.startswith(f"task: {live.raw.task}")
    assert "Open error: ModuleNotFoundError" in section
    assert "- cat lib/part0.py -> part 0" in section
    assert section.endswith(advice.strip())


def test_a_run_of_a_repository_that_is_never_learned_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_NEVER_LEARN", "acme/*, /srv/secret")
    hidden = run([("make", "ok", 0)], instance_id="hidden")
    folder = replace(
        hidden, repo="bob/pump", steps=(replace(hidden.steps[0], cwd="/srv/secret/a"),)
    )
    with AgentMemory.open(":memory:") as memory:
        for refused in (hidden, folder):
            with pytest.raises(NeverLearnedError, match="never_learn"):
                memory.learn(refused)
        (receipt,) = memory.learn([hidden, replace(hidden, repo="bob/pump"), folder])
        assert memory.store.runs.ids() == [receipt.trajectory_id]
        live = memory.live(repo="acme/shop", instance_id="live", task="Totals are wrong")
        live.observe("make", "ok", exit_code=0)
        assert live.finish() is None
        assert memory.store.runs.ids() == [receipt.trajectory_id]

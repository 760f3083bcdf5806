"""Experiments: which attempts are made, what each arm shows, and the figures of the report."""

import json
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from contextgraph.agents.mini_swe_agent import Advisor
from contextgraph.errors import InvalidArgumentError, SettingsError
from contextgraph.evaluation.experiment import (
    ARMS,
    Arm,
    Attempt,
    AttemptOutcome,
    Experiment,
    ExperimentFolder,
    Plan,
    Shown,
    Task,
    TaskPurpose,
    Workspace,
    read_tasks,
    split_tasks,
)
from contextgraph.evaluation.experiment_report import ExperimentReport, pass_at, report_on
from contextgraph.model.values import replace
from contextgraph.readers import write_jsonl
from tests.builders import NO_MODULE, run

FAILING, WORKING = "python reproduce.py", "PYTHONPATH={} python reproduce.py"


class ScriptedAgent:
    """Meets one error in each task, and clears it; *broken* instances break."""

    name, model = "scripted 1", "none"

    def __init__(self, broken: Sequence[str] = ()) -> None:
        self.broken = broken
        self.calls: list[tuple[str, bool]] = []

    def attempt(
        self, task: Task, folder: Path, log: Path, advisor: Advisor | None, logs: Path | None
    ) -> AttemptOutcome:
        self.calls.append((task.instance_id, advisor is not None))
        if task.instance_id in self.broken:
            raise ConnectionError("token sk-ant-api03-" + "Ab1" * 31 + "A-AA was refused")
        source = (folder / "source").read_text()
        assert not (folder / "left").exists()
        (folder / "left").touch()
        steps = [(FAILING, NO_MODULE, 1), (WORKING.format(source), "ok", 0)]
        known = [one.read_text() for one in logs.glob("*")] if logs else []
        if advisor:
            known.append(advisor.start())
            known += [advisor.observe(*step[:2], exit_code=step[2]) or "" for step in steps]
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as file:
            raw = run(steps, instance_id=task.instance_id, repo=task.repo, agent="scripted")
            write_jsonl([raw], file)
        has_no_help = advisor is None and logs is None
        solved = has_no_help or any(f"PYTHONPATH={source}" in text for text in known)
        return AttemptOutcome(solved, "Submitted", 2, None, 0.25)


@pytest.fixture
def tasks(tmp_path: Path) -> Sequence[Task]:
    """Four tasks of each of two repositories."""
    made = []
    for repo, source in (("acme/shop", "lib"), ("brook/mill", "wheel")):
        folder = tmp_path / source
        folder.mkdir()
        (folder / "source").write_text(source)
        for number in range(4):
            name = f"{repo.replace('/', '__')}-{number}"
            part = TaskPurpose.LEARN if number < 2 else TaskPurpose.JUDGE
            task = f"The script fails in {repo} ({number})"
            made.append(Task(name, repo, task, "true", Workspace(str(folder)), part))
    return made


def experiment(
    tasks: Sequence[Task], agent: ScriptedAgent, folder: Path, arms: Sequence[Arm] = ARMS
) -> Experiment:
    plan = Plan(tasks, arms, attempts=2, share=0.5, seed=42, settings={})
    return Experiment(plan, agent, ExperimentFolder(folder / "out"))


def attempt(instance: str, arm: str, number: int = 1, **fields: object) -> Attempt:
    made = Attempt(TaskPurpose.JUDGE, arm, f"acme__shop-{instance}", number, steps=10)
    return replace(made, **fields)


def reported(folder: Path, attempts: Sequence[Attempt]) -> ExperimentReport:
    journal = ExperimentFolder(folder)
    with journal.opened({"seed": 42}):
        for one in attempts:
            journal.add(one)
    return report_on(journal)


def test_the_first_part_is_learned_and_each_arm_attempts_the_others(
    tasks: Sequence[Task], tmp_path: Path
) -> None:
    made = list(experiment(tasks, ScriptedAgent(), tmp_path).run())

    assert [(one.part, one.arm) for one in made[:4]] == [(TaskPurpose.LEARN, "none")] * 4
    judged = [one for one in made if one.part is TaskPurpose.JUDGE]
    assert len(judged) == 4 * len(ARMS) * 2
    assert all(one.error == "" for one in made)
    by_arm = {arm: [one for one in judged if one.arm == arm] for arm in ARMS}
    assert all(one.solved for arm in ("none", "grep", "memory") for one in by_arm[arm])
    assert not any(one.solved for one in by_arm["placebo"])


def test_a_placebo_comes_at_the_same_moments_with_about_as_many_tokens(
    tasks: Sequence[Task], tmp_path: Path
) -> None:
    made = list(experiment(tasks, ScriptedAgent(), tmp_path).run())

    shown = {(one.arm, one.instance_id, one.number): one.shown for one in made}
    for task in tasks[2:4]:
        memory = shown["memory", task.instance_id, 1]
        placebo = shown["placebo", task.instance_id, 1]
        assert memory
        assert [one.step for one in placebo] == [one.step for one in memory]
        for advice, other in zip(memory, placebo, strict=True):
            assert abs(advice.tokens - other.tokens) < advice.tokens / 3
            assert "PYTHONPATH=lib" in advice.text
            assert "PYTHONPATH=lib" not in other.text


def test_an_interrupted_experiment_does_what_is_left(tasks: Sequence[Task], tmp_path: Path) -> None:
    with closing(experiment(tasks, ScriptedAgent(), tmp_path).run()) as begun:
        first = [next(begun) for _ in range(7)]
    journal = tmp_path / "out" / "attempts.jsonl"
    written = journal.read_bytes()
    with journal.open("ab") as file:
        file.write(b'{"part":"judge","arm":"no')  # a process that was killed

    agent = ScriptedAgent()
    rest = list(experiment(tasks, agent, tmp_path).run())

    assert journal.read_bytes().startswith(written)
    recorded = ExperimentFolder(tmp_path / "out").attempts()
    assert len(recorded) == len(written.splitlines()) + len(rest) == 36
    assert [recorded[one.key] for one in first] == first
    assert list(experiment(tasks, agent, tmp_path).run()) == []


def test_a_broken_attempt_is_recorded_masked_and_made_again_only_when_asked(
    tasks: Sequence[Task], tmp_path: Path
) -> None:
    name = tasks[-1].instance_id
    made = list(experiment(tasks, ScriptedAgent([name]), tmp_path, ["none"]).run())

    broken = [one for one in made if one.error]
    assert [one.instance_id for one in broken] == [name, name]
    assert broken[0].error.startswith("ConnectionError: token <secret:")
    assert list(experiment(tasks, ScriptedAgent(), tmp_path, ["none"]).run()) == []
    figures = report_on(ExperimentFolder(tmp_path / "out")).arms[0]
    assert (figures.attempts, figures.broken) == (6, 2)
    again = list(experiment(tasks, ScriptedAgent(), tmp_path, ["none"]).run(retry_broken=True))
    assert [(one.instance_id, one.error) for one in again] == [(name, "")] * 2


def test_an_attempt_that_breaks_again_has_nothing_of_the_log_before(
    tasks: Sequence[Task], tmp_path: Path
) -> None:
    list(experiment(tasks, ScriptedAgent(), tmp_path, ["none"]).run())
    journal, name = ExperimentFolder(tmp_path / "out"), tasks[-1].instance_id
    broken = [one for one in journal.attempts().values() if one.instance_id == name]
    with journal.opened({**journal.settings()}):
        for one in broken:
            journal.add(replace(one, error="TimeoutError: x"))
    Path(tasks[-1].workspace.folder).rename(tmp_path / "away")
    again = list(experiment(tasks, ScriptedAgent(), tmp_path, ["none"]).run(retry_broken=True))
    assert [(one.instance_id, one.looped) for one in again] == [(name, None)] * 2
    assert all(one.error.startswith("FileNotFoundError") for one in again)


def test_an_arm_without_advice_names_the_attempts_that_broke_and_the_remedy(
    tasks: Sequence[Task], tmp_path: Path
) -> None:
    agent = ScriptedAgent([one.instance_id for one in tasks[:2]])
    with pytest.raises(SettingsError, match=r"ConnectionError: .*; retry_broken=true repeats"):
        list(experiment(tasks, agent, tmp_path).run())
    made = list(experiment(tasks, ScriptedAgent(), tmp_path).run(retry_broken=True))
    assert [one.instance_id for one in made[:2]] == [one.instance_id for one in tasks[:2]]
    assert {one.error for one in made} == {""}


def test_a_folder_with_another_experiment_is_refused(tasks: Sequence[Task], tmp_path: Path) -> None:
    list(experiment(tasks, ScriptedAgent(), tmp_path, ["none"]).run())

    with pytest.raises(SettingsError, match="holds an experiment with tasks"):
        list(experiment(tasks[:-1], ScriptedAgent(), tmp_path, ["none"]).run())


def test_nothing_to_learn_from_names_the_first_error(tasks: Sequence[Task], tmp_path: Path) -> None:
    agent = ScriptedAgent([one.instance_id for one in tasks])
    with pytest.raises(SettingsError, match="no run to learn from: ConnectionError"):
        list(experiment(tasks, agent, tmp_path).run())


def test_a_placebo_needs_a_second_repository(tasks: Sequence[Task], tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="placebo: the memory has no advice"):
        list(experiment(tasks[:4], ScriptedAgent(), tmp_path).run())


def test_the_split_depends_on_the_seed_and_not_on_the_order(tasks: Sequence[Task]) -> None:
    free = [replace(one, split=None) for one in tasks]

    parts = split_tasks(free, 0.5, 42)

    assert [len(parts[part]) for part in TaskPurpose] == [4, 4]
    turned = split_tasks(free[::-1], 0.5, 42)
    assert {*map(str, turned[TaskPurpose.LEARN])} == {*map(str, parts[TaskPurpose.LEARN])}
    assert any(split_tasks(free, 0.5, seed) != parts for seed in range(5))


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        ({"attempts": 0}, "plan.attempts: Expected int >= 1, got 0"),
        ({"share": 2.0}, "plan.share: Expected float <= 1.0, got 2.0"),
        ({"arms": ["best"]}, "plan.arms\\[0\\]: .*'best'"),
        ({"arms": []}, "plan.arms: Expected list of length >= 1"),
    ],
)
def test_a_plan_that_cannot_be_carried_out_is_refused(
    tasks: Sequence[Task], tmp_path: Path, wrong: dict[str, Any], reason: str
) -> None:
    plan = Plan(tasks, ARMS, attempts=2, share=0.5, seed=42, settings={})
    with pytest.raises(InvalidArgumentError, match=reason):
        Experiment(replace(plan, **wrong), ScriptedAgent(), ExperimentFolder(tmp_path / "out"))


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ({"repo": None}, "line 2: repo: Expected `str`, got `null`"),
        ({"workspace": "gone"}, "line 2: the workspace .*gone is not a folder"),
        ({"workspace": {}}, "line 2: workspace: needs one of folder, git and image"),
        ({"instance_id": "acme__shop-1"}, "acme__shop-1 occurs twice"),
    ],
)
def test_a_wrong_task_is_named(tmp_path: Path, row: dict[str, object], reason: str) -> None:
    good = {"instance_id": "acme__shop-1", "repo": "acme/shop", "check": "true"}
    good |= {"problem_statement": "Totals are wrong", "workspace": "."}
    bad = {**good, "instance_id": "b", **row}
    path = tmp_path / "tasks.jsonl"
    path.write_text("\n".join(map(json.dumps, (good, bad))))

    with pytest.raises(SettingsError, match=reason):
        read_tasks(path)


def test_pass_at_k_is_the_share_of_draws_with_a_solved_attempt() -> None:
    assert [pass_at(3, 1, k) for k in (1, 2, 3)] == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert pass_at(4, 2, 2) == pytest.approx(1 - 1 / 6)
    assert pass_at(3, 0, 3) == 0.0


def test_the_figures_of_an_arm_are_computed_over_tasks(tmp_path: Path) -> None:
    report = reported(
        tmp_path,
        [
            attempt("1", "none", 1, solved=True, cost=0.5, tokens=100, looped=0),
            attempt("1", "none", 2, steps=20, cost=0.25, looped=12),
            attempt("2", "none", 1, steps=30, cost=0.25, tokens=300, looped=6),
            attempt("2", "none", 2, error="TimeoutError: x", cost=1.0),
        ],
    )

    (arm,) = report.arms
    assert (arm.tasks, arm.attempts, arm.broken, arm.spent) == (2, 3, 1, 2.0)
    assert arm.pass_at[1].value == pytest.approx((0.5 + 0) / 2)
    assert arm.pass_at[2].value == pytest.approx(1.0)  # only the first task has two attempts
    assert arm.means["steps"].value == pytest.approx(60 / 3)
    assert arm.means["tokens"].value == pytest.approx(400 / 2)
    assert arm.means["looped"].value == pytest.approx(18 / 3)
    assert report.verdict.startswith("There is nothing to compare")


def test_rescues_and_regressions_are_tested_by_task(tmp_path: Path) -> None:
    shown = (Shown(1, "set PYTHONPATH=lib", 7),)
    attempts = []
    for task in "123456":  # rescued
        attempts += [
            attempt(task, "none"),
            attempt(task, "memory", solved=True, steps=4, shown=shown),
        ]
    attempts += [attempt("7", "none", solved=True), attempt("7", "memory", shown=shown)]
    attempts += [attempt("8", "none", solved=True), attempt("8", "memory", solved=True)]
    attempts += [attempt("9", "none", solved=True)]  # not attempted with the memory

    report = reported(tmp_path, attempts)

    (found,) = report.comparisons
    assert (found.arm, found.against, found.tasks) == ("memory", "none", 8)
    assert [one.instance_id for one in found.rescues] == [f"acme__shop-{n}" for n in "123456"]
    assert found.rescues[0].shown == ("set PYTHONPATH=lib",)
    assert [(one.instance_id, one.before, one.after) for one in found.regressions] == [
        ("acme__shop-7", 1.0, 0.0)
    ]
    assert found.solved.value == pytest.approx(7 / 8 - 2 / 8)
    assert found.p == pytest.approx(2 * (1 + 7) / 2**7)  # 6 or 7 of 7 heads, two-sided
    assert found.means["steps"].value == pytest.approx((6 * 4 + 2 * 10) / 8 - 10)
    # Of the tasks of both: a third one was solved without the memory alone.
    assert "solves 88% of its attempts, with arm none 25%: +62 points" in report.verdict
    assert "not beyond chance (p = 0.125)" in report.verdict
    assert report.verdict.endswith("steps of an attempt: -4.5.")

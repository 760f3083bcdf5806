"""A live closed loop without a model: does advice from past runs save steps?

An agent with a fixed policy works on bugs planted in the seeded repositories. For every situation
it has candidates in a fixed order (closed_loop/tasks.toml), and tries one after the other until its
check passes. With a memory of examples/trajectories it queries before each attempt; advice may only
reorder the candidates. Commands really run, in temporary folders; needs git and a Unix shell.

    python examples/closed_loop.py
"""

import re
import subprocess
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from contextgraph import Action, AgentMemory, MemoryContext, State, Step
from contextgraph.readers import read
from contextgraph.trace import StateTracker, StepReader, command_lines
from seeded.scenario import Scenario, Seed
from seeded.testbed import Testbed

HERE = Path(__file__).parent
OWNERS = {"tidewatch": "harborlight", "recipebox": "quillworks", "parcelkit": "fernway"}
TOTALS = {"all recurring": ("same bug", "same kind"), "all others": ("new bug", "other cause")}
STEP_LIMIT = 15
ADVICE = 3


@dataclass(frozen=True, slots=True)
class Situation:
    """Where the output matches *when*: other ways to run the check, or edits, in a fixed order."""

    when: str
    run: tuple[str, ...] = ()
    fix: tuple[str, ...] = ()

    @property
    def candidates(self) -> tuple[str, ...]:
        """The attempts of the agent, in order."""
        return self.run or self.fix


@dataclass(frozen=True, slots=True)
class Task:
    """A bug, the check that shows it, and what the agent knows to try; *recurs*: seen before?"""

    name: str
    recurs: str
    scenario: Scenario
    check: str
    situations: tuple[Situation, ...]


@dataclass(slots=True)
class Session:
    """The agent at work on one task: every command is a step, which *watch* gets."""

    task: Task
    testbed: Testbed
    folder: Path
    states: StateTracker
    watch: Callable[[Step], None]
    reader: StepReader = field(default_factory=StepReader)
    steps: int = 0

    def run(self, command: str) -> Step:
        """Run *command* as a step."""
        done = subprocess.run(
            self.testbed.shell(command),
            cwd=self.folder,
            shell=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        output, action = self.testbed.masked(done.stdout), Action("bash", command)
        step = Step(self.steps, "", action, output, exit_code=done.returncode)
        self.states.push(self.reader.push(step))
        self.steps += 1
        self.watch(step)
        return step

    def settle(self, *, keep: bool) -> None:
        """Keep what was edited, or undo it; free of charge, with and without advice."""
        command = "git commit -q --allow-empty -a -m kept" if keep else "git checkout -q -- ."
        self.testbed.run(command, self.folder)


def main() -> None:
    """Solve every task without and with memory, and print how many steps each took."""
    rows = list(compared())
    show("bug", "seen before", "without", "with", "saved")
    for task, without, after in rows:
        show(
            task.name, task.recurs, shown_steps(without), shown_steps(after), f"{without - after:+}"
        )
    for title, recurs in TOTALS.items():
        pairs = [(without, after) for task, without, after in rows if task.recurs in recurs]
        without, after = (sum(column) for column in zip(*pairs, strict=True))
        show(title, f"{len(pairs)} bugs", str(without), str(after), f"{without - after:+}")


def show(name: str, recurs: str, without: str, after: str, saved: str) -> None:
    """Print one row: the steps without and with memory, and the difference."""
    print(f"{name:36}{recurs:14}{without:>8}{after:>8}{saved:>8}")


def compared() -> Iterator[tuple[Task, int, int]]:
    """Each task with the steps it takes without and with memory."""
    with AgentMemory.open(":memory:") as empty, AgentMemory.open(":memory:") as memory:
        for _ in memory.learn_many(read(HERE / "trajectories")):
            pass
        for task in tasks():
            yield task, solve(task, empty), solve(task, memory)


def solve(
    task: Task,
    memory: AgentMemory,
    limit: int = STEP_LIMIT,
    watch: Callable[[Step], None] = lambda step: None,
    hear: Callable[[MemoryContext], None] = lambda context: None,
) -> int:
    """Return how many steps the agent takes until the check passes; *limit* where it does not.

    *watch* gets each step, *hear* each answer of the memory.
    """
    with TemporaryDirectory() as root:
        session = _planted(task, Path(root), watch)
        check, tried = task.check, set[str]()
        last = session.run(check)
        while last.exit_code and session.steps < limit:
            here = _situation(task, last)
            untried = (
                [candidate for candidate in here.candidates if candidate not in tried]
                if here
                else []
            )
            if here is None or not untried:
                return limit
            candidate = reordered(untried, advice(memory, session, hear))[0]
            tried.add(candidate)
            command = candidate.replace("{check}", check) if here.run else f"{candidate} && {check}"
            attempt = session.run(command)
            progress = not attempt.exit_code or _situation(task, attempt) not in {here, None}
            session.settle(keep=progress)
            if progress:
                check, last = command if here.run else check, attempt
        return limit if last.exit_code else session.steps


def advice(
    memory: AgentMemory, session: Session, hear: Callable[[MemoryContext], None]
) -> list[str]:
    """Return what cleared the present error in past runs: the commands, best first."""
    context = memory.query(session.states.state, limit=ADVICE)
    hear(context)
    remedies = [remedy.actions for remedy in context.ranked]
    return ["\n".join(command_lines(actions)) for actions in remedies]


def reordered(candidates: Sequence[str], advised: Iterable[str]) -> list[str]:
    """*candidates*, those first that advice names by a word that no other candidate has."""
    ranked = list(candidates)
    for text in reversed(list(advised)):
        named = [
            candidate for candidate in ranked if _own_words(candidate, candidates) & _words(text)
        ]
        ranked = [*named, *(candidate for candidate in ranked if candidate not in named)]
    return ranked


def tasks() -> Iterator[Task]:
    """The tasks of closed_loop/tasks.toml."""
    for entry in tomllib.loads((HERE / "closed_loop" / "tasks.toml").read_text())["task"]:
        yield Task(
            name=entry["name"],
            recurs=entry["recurs"],
            scenario=Scenario(
                instance_id=entry["instance"],
                folder="closed_loop",
                issue=entry["issue"],
                seeds=tuple(Seed(*seed) for seed in entry["seeds"]),
                hidden_tests="",
                steps=(),
            ),
            check=entry["check"],
            situations=tuple(
                Situation(
                    situation["when"],
                    tuple(situation.get("run", ())),
                    tuple(situation.get("fix", ())),
                )
                for situation in entry["situation"]
            ),
        )


def shown_steps(steps: int) -> str:
    """The number of steps, or ``failed``."""
    return str(steps) if steps < STEP_LIMIT else "failed"


def _planted(task: Task, root: Path, watch: Callable[[Step], None]) -> Session:
    testbed = Testbed(root)
    testbed.prepare()
    scenario = task.scenario
    repo = f"{OWNERS[scenario.repository]}/{scenario.repository}"
    start = State(repo=repo, task_description=scenario.issue, instance_id=scenario.instance_id)
    return Session(task, testbed, testbed.plant(scenario), StateTracker(start), watch)


def _situation(task: Task, step: Step) -> Situation | None:
    shown = step.observation or ""
    return next(
        (situation for situation in task.situations if re.search(situation.when, shown)), None
    )


def _own_words(candidate: str, candidates: Iterable[str]) -> set[str]:
    others = (_words(other) for other in candidates if other != candidate)
    return _words(candidate).difference(*others)


def _words(text: str) -> set[str]:
    return set(re.findall(r"\w+", text))


if __name__ == "__main__":
    main()

"""Runs an experiment: attempts to learn from, then the same tasks under each arm."""

import shutil
import time
from collections import defaultdict, deque
from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from hashlib import blake2b
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from urllib.parse import quote

from contextgraph.codec import encoded
from contextgraph.errors import SettingsError
from contextgraph.experiment.agents import Agent, Ending, described
from contextgraph.experiment.arms import (
    ADVISED,
    GREP,
    MEMORY,
    NONE,
    PLACEBO,
    Watched,
    advice_for,
    plain_log,
)
from contextgraph.experiment.journal import Attempt, Journal, Key
from contextgraph.experiment.tasks import Part, Task, split_tasks
from contextgraph.learning import masked
from contextgraph.memory import AgentMemory
from contextgraph.model import Json, Outcome, RawTrajectory
from contextgraph.readers import SkippedError, read


@dataclass(frozen=True, slots=True)
class Plan:
    """What an experiment does: *attempts* at each judged task under each of *arms*.

    *share* of the tasks is attempted once, without advice, and learned. *settings* are further
    settings of the agent that must not change in between.
    """

    tasks: Sequence[Task]
    arms: Sequence[str]
    attempts: int
    share: float
    seed: int
    settings: Mapping[str, Json]


class Experiment:
    """An experiment in the folder of *journal*; running it again does what is left.

    The folder holds ``experiment.json``, ``attempts.jsonl``, ``runs/`` (the agent's logs),
    ``logs/`` (the learned ones as plain text), ``memory.db`` and, meanwhile, ``work/``.
    """

    def __init__(self, plan: Plan, agent: Agent, journal: Journal, *, workers: int = 1) -> None:
        self._plan, self._agent, self._journal = plan, agent, journal
        self._workers = workers
        self._tasks = {task.instance_id: task for task in plan.tasks}
        self._parts = split_tasks(plan.tasks, plan.share, plan.seed)
        self._logs = journal.folder / "logs"
        self._memory_file = journal.folder / "memory.db"
        self._learned: Sequence[RawTrajectory] = ()
        self._memory: AgentMemory | None = None
        self._unrelated: Mapping[str, Sequence[str]] = {}

    def left(self, *, retry_broken: bool = False) -> Mapping[Part, Sequence[Key]]:
        """The attempts that are still to be made: of each task and arm one, then a second one.

        With *retry_broken*, broken ones are; those that were to be learned only before the first
        judged one.
        """
        known = self._journal.attempts()
        broken = {key for key, attempt in known.items() if attempt.error} if retry_broken else set()
        if any(key[0] is Part.JUDGE for key in known):
            broken = {key for key in broken if key[0] is Part.JUDGE}
        wanted = {
            Part.LEARN: self._keys(Part.LEARN, (NONE,), 1),
            Part.JUDGE: self._keys(Part.JUDGE, self._plan.arms, self._plan.attempts),
        }
        done = known.keys() - broken
        return {part: [key for key in keys if key not in done] for part, keys in wanted.items()}

    def run(self, *, retry_broken: bool = False) -> Generator[Attempt]:
        """Make the attempts that are `left`, yielding each once it is recorded.

        Raises `SettingsError` where the plan cannot be carried out.
        """
        if not self._parts[Part.JUDGE]:
            raise SettingsError("no task is left to judge by; lower --split")
        with self._journal.opened(self._settings()):
            left = self.left(retry_broken=retry_broken)
            yield from self._all(left[Part.LEARN])
            self._learn()
            with AgentMemory.open(str(self._memory_file), read_only=True) as self._memory:
                self._check_arms(self._memory)
                yield from self._all(left[Part.JUDGE])
        shutil.rmtree(self._journal.folder / "work", ignore_errors=True)

    def _keys(self, part: Part, arms: Sequence[str], attempts: int) -> Iterator[Key]:
        for number in range(1, attempts + 1):
            for task in self._parts[part]:
                yield from ((part, arm, task.instance_id, number) for arm in arms)

    def _settings(self) -> Mapping[str, Json]:
        tasks = repr([encoded(task) for task in self._plan.tasks]).encode("utf-8", "replace")
        return {
            "agent": self._agent.name,
            "model": self._agent.model,
            "split": self._plan.share,
            "seed": self._plan.seed,
            "tasks": blake2b(tasks, digest_size=12).hexdigest(),
            **self._plan.settings,
        }

    def _all(self, keys: Sequence[Key]) -> Iterator[Attempt]:
        """Make the attempts *keys*, several at once, and record each.

        An interrupt does not wait for those that are being made; they are not recorded.
        """
        left, done = deque(keys), SimpleQueue[Attempt | BaseException]()
        threads = [
            Thread(target=self._work, args=(slot, left, done), daemon=True)
            for slot in range(self._workers)
        ]
        for thread in threads:
            thread.start()
        try:
            for _ in keys:
                result = done.get()
                if isinstance(result, BaseException):
                    raise result
                self._journal.add(result)
                yield result
        except BaseException as stop:
            left.clear()
            for thread in threads if isinstance(stop, GeneratorExit) else ():
                thread.join()
            raise

    def _work(
        self, slot: int, left: deque[Key], done: SimpleQueue[Attempt | BaseException]
    ) -> None:
        """Make attempts until none is *left*."""
        try:
            while left:
                done.put(self._attempted(left.popleft(), slot))
        except IndexError:  # another thread took the last one
            return
        except BaseException as error:  # noqa: BLE001  (raised in the main thread)
            done.put(error)

    def _attempted(self, key: Key, slot: int) -> Attempt:
        """Make an attempt. All in one slot have the same folder, one at a time."""
        _, arm, instance_id, number = key
        task = self._tasks[instance_id]
        advisor = self._advisor(task, arm, number)
        begun = time.monotonic()
        try:
            folder, logs = self._prepared(task, arm, slot)
            ending = self._agent.attempt(task, folder, self._log(key), advisor, logs)
        except Exception as error:  # noqa: BLE001  (whatever breaks an attempt is its result)
            ending = Ending(error=described(error))
        return Attempt(
            *key,
            **asdict(ending),
            seconds=round(time.monotonic() - begun, 3),
            shown=tuple(advisor.shown) if advisor else (),
        )

    def _prepared(self, task: Task, arm: str, slot: int) -> tuple[Path, Path | None]:
        """A fresh workspace, and the logs that the agent may search; both by absolute path."""
        # The same path each time: advice and logs name paths of earlier runs.
        base = (self._journal.folder / "work" / str(slot)).resolve()
        shutil.rmtree(base, ignore_errors=True)
        folder = base / task.repo.rpartition("/")[2]
        base.mkdir(parents=True)
        if not task.workspace.image:
            task.workspace.put_into(folder)
        if arm != GREP:
            return folder, None
        shutil.copytree(self._logs, base / "logs")  # what an agent does to it stays its own
        return folder, base / "logs"

    def _log(self, key: Key) -> Path:
        part, arm, instance_id, number = key
        name = f"{quote(instance_id, safe='')}.{number}.traj.json"
        return self._journal.folder / "runs" / part / arm / name

    def _advisor(self, task: Task, arm: str, number: int) -> Watched | None:
        if arm not in ADVISED or self._memory is None:
            return None
        live = self._memory.live(
            repo=task.repo,
            instance_id=task.instance_id,
            task=task.task,
            exclude_instances=(task.instance_id,),
        )
        if arm == MEMORY:
            return Watched(live)
        seed = f"{self._plan.seed}:{task.instance_id}:{number}"
        return Watched(live, self._unrelated_to(task.repo), seed)

    def _learn(self) -> None:
        """Learn the attempts of the first part; what is learned already stays as it is."""
        attempts = self._journal.attempts().values()
        made = [attempt for attempt in attempts if attempt.part is Part.LEARN and not attempt.error]
        self._learned = [raw for attempt in made for raw in self._recorded(attempt)]
        with AgentMemory.open(str(self._memory_file)) as memory:
            for _ in memory.learn_many(self._learned):
                pass
        self._logs.mkdir(exist_ok=True)
        for raw in self._learned:
            name = f"{quote(raw.instance_id, safe='')}.log"
            (self._logs / name).write_text(plain_log(masked(raw)[0]), encoding="utf-8")

    def _recorded(self, attempt: Attempt) -> Iterator[RawTrajectory]:
        """The run of *attempt* with what the task says of it; none where nothing was done."""
        task = self._tasks[attempt.instance_id]
        outcome = Outcome.SOLVED if attempt.solved else Outcome.FAILED
        try:
            for raw in read(self._log(attempt.key)):
                yield replace(raw, repo=task.repo, task=task.task, outcome=outcome)
        except SkippedError:
            return

    def _check_arms(self, memory: AgentMemory) -> None:
        """Raise `SettingsError` where an arm has nothing to show."""
        if not self._learned and {*self._plan.arms} - {NONE}:
            first = next((a.error for a in self._journal.attempts().values() if a.error), "")
            reason = f": {first}" if first else "; raise --split"
            raise SettingsError(f"there is no run to learn from{reason}")
        if PLACEBO not in self._plan.arms:
            return
        by_repo = defaultdict[str, list[RawTrajectory]](list)
        for raw in self._learned:
            by_repo[raw.repo].append(raw)
        self._unrelated = {repo: advice_for(memory, runs) for repo, runs in by_repo.items()}
        for task in self._parts[Part.JUDGE]:
            if not self._unrelated_to(task.repo):
                raise SettingsError(
                    f"arm {PLACEBO}: the memory has no advice for repositories other than"
                    f" {task.repo}; leave the arm out, or add tasks"
                )

    def _unrelated_to(self, repo: str) -> list[str]:
        """What the memory shows to runs of other repositories."""
        others = (texts for name, texts in self._unrelated.items() if name.lower() != repo.lower())
        return [text for texts in others for text in texts]

"""The tasks of an experiment: the task, its folder, and the check that shows it is done."""

import logging
import os
import random
import shutil
import subprocess
import time
from collections import defaultdict, deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from hashlib import blake2b
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import Annotated, Any, Literal, Protocol, TypeAlias
from urllib.parse import quote

import orjson
from msgspec import Meta, Struct
from msgspec.structs import asdict

from contextgraph.agents.mini_swe_agent import AGENT, AdvisedModel, Advisor
from contextgraph.errors import MissingExtraError, ReadError, SettingsError
from contextgraph.learning import masked
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import Json, Outcome, RawTrajectory, Share
from contextgraph.model.codec import decoded, encoded, from_bytes, json_bytes
from contextgraph.model.values import argument, replace
from contextgraph.readers import SkippedError, read
from contextgraph.system.processes import append, locked, replacing
from contextgraph.text import count_tokens, mask_secrets
from contextgraph.trace import is_alarming, trace


class TaskPurpose(StrEnum):
    """Purposes of a task: it is run to be learned, or to judge the arms."""

    LEARN = "learn"
    JUDGE = "judge"


class Workspace(Struct, frozen=True, omit_defaults=True):
    """Workspace of an agent: a copy of *folder*, a clone of *git* at *commit*, or an *image*.

    Of an *image* (Docker), *folder* is that within it.
    """

    folder: str = ""
    git: str = ""
    commit: str = ""
    image: str = ""

    def __post_init__(self) -> None:
        if bool(self.git) + bool(self.image) > 1 or not (self.git or self.image or self.folder):
            raise ValueError("needs one of folder, git and image")

    def put_into(self, folder: Path) -> None:
        """Make *folder*, which must not exist, a fresh copy of it; not for an image.

        Raises `SettingsError` where git fails.
        """
        if not self.git:
            shutil.copytree(self.folder, folder, symlinks=True)
            return
        for command in (
            ["git", "clone", "--quiet", "--no-checkout", self.git, str(folder)],
            ["git", "-C", str(folder), "checkout", "--quiet", self.commit or "HEAD"],
        ):
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SettingsError(f"{self.git} cannot be cloned: {done.stderr.strip()}")


class Task(Struct, frozen=True, omit_defaults=True):
    """A task for an agent; the command *check* ends with 0 in the workspace once it is solved.

    *split* fixes the part that it belongs to, else chance decides.
    """

    instance_id: str
    repo: str
    task: str
    check: str
    workspace: Workspace
    split: TaskPurpose | None = None


def read_tasks(path: Path) -> Sequence[Task]:
    """Return the tasks of a file of JSON lines; see docs/experiments.md.

    Relative folders are relative to the file. Raises `SettingsError` with the line of what is
    wrong.
    """
    try:
        tasks = list(_parsed(path))
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror}") from error
    known: set[str] = set()
    for task in tasks:
        if task.instance_id in known:
            raise SettingsError(f"{path}: {task.instance_id} occurs twice")
        known.add(task.instance_id)
    if not tasks:
        raise SettingsError(f"{path} holds no tasks")
    return tasks


def split_tasks(tasks: Sequence[Task], share: float, seed: int) -> dict[TaskPurpose, list[Task]]:
    """Return the tasks of each part; *share* of those without a fixed split are learned."""

    def draw(task: Task) -> bytes:
        return blake2b(f"{seed}:{task.instance_id}".encode(), digest_size=8).digest()

    drawn = sorted((task for task in tasks if task.split is None), key=draw)
    learned = {task.instance_id for task in drawn[: round(share * len(drawn))]}
    learned |= {task.instance_id for task in tasks if task.split is TaskPurpose.LEARN}
    return {
        part: [
            task for task in tasks if (task.instance_id in learned) == (part is TaskPurpose.LEARN)
        ]
        for part in TaskPurpose
    }


def _parsed(path: Path) -> Iterator[Task]:
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        if not line.strip():
            continue
        try:
            yield _located(decoded(Task, _row(orjson.loads(line))), path.parent)
        except (orjson.JSONDecodeError, ReadError) as error:
            raise SettingsError(f"{path}: line {number}: {error}") from error


def _row(row: Json) -> Json:
    """*row* with a workspace that is an object, and the task where SWE-bench has it."""
    if isinstance(row, dict):
        if isinstance(row.get("workspace"), str):
            row["workspace"] = {"folder": row["workspace"]}
        row.setdefault("task", row.get("problem_statement"))
    return row


def _located(task: Task, base: Path) -> Task:
    place = task.workspace
    if place.git or place.image:
        return task
    folder = (base / place.folder).resolve()
    if not folder.is_dir():
        raise ReadError("", "", f"the workspace {folder} is not a folder")
    return replace(task, workspace=replace(place, folder=str(folder)))


Arm: TypeAlias = Literal["none", "placebo", "grep", "memory"]
ARMS: tuple[Arm, ...] = ("none", "placebo", "grep", "memory")
NONE, PLACEBO, GREP, MEMORY = ARMS
ADVISED = (PLACEBO, MEMORY)

_LOGS = (
    "\n\nLogs of earlier runs of an agent, some of them in this repository, are in {folder}: one"
    " plain text file for each run. Search them with grep; they may hold what this task needs."
)


class Watched:
    """An advisor whose texts are noted in `shown`, and whose run is not learned.

    With *placebos*, these are shown instead of its texts, about as many tokens; by *seed*.
    """

    def __init__(
        self, advisor: Advisor, placebos: Sequence[str] | None = None, seed: str = ""
    ) -> None:
        self.shown: list[Shown] = []
        self._advisor = advisor
        self._steps = 0
        self._placebos = (
            None if placebos is None else [(placebo, count_tokens(placebo)) for placebo in placebos]
        )
        random.Random(seed).shuffle(self._placebos or [])

    def start(self) -> str:
        """As `Advisor.start`."""
        return self._noted(self._advisor.start()) or ""

    def observe(
        self, action: str, observation: str, *, exit_code: int | None = None, thought: str = ""
    ) -> str | None:
        """As `Advisor.observe`."""
        self._steps += 1
        return self._noted(
            self._advisor.observe(action, observation, exit_code=exit_code, thought=thought)
        )

    def check_submit(self) -> str | None:
        """As `Advisor.check_submit`."""
        return self._noted(self._advisor.check_submit())

    def finish(self, *, exit_status: str | None = None, patch: str | None = None) -> None:
        """Nothing: all attempts are to find the same memory."""

    def _noted(self, text: str | None) -> str | None:
        if text and self._placebos is not None:
            text = self._placebo(count_tokens(text))
        if text:
            self.shown.append(Shown(self._steps, text, count_tokens(text)))
        return text

    def _placebo(self, tokens: int) -> str:
        """Placebos that were not shown yet, until they have about as many *tokens*."""
        assert self._placebos is not None
        chosen: list[str] = []
        while self._placebos:
            best = min(self._placebos, key=lambda placebo: abs(placebo[1] - tokens))
            if chosen and abs(best[1] - tokens) >= tokens:  # farther off than to stop here
                break
            self._placebos.remove(best)
            chosen.append(best[0])
            tokens -= best[1]
        return "\n".join(chosen)


def advice_for(memory: AgentMemory, runs: Iterable[RawTrajectory]) -> Sequence[str]:
    """Return all that *memory* shows while *runs* are repeated."""
    texts: list[str | None] = []
    for raw in runs:
        live = memory.live(repo=raw.repo, instance_id=raw.instance_id, task=raw.task)
        texts.append(live.start())
        texts += [
            live.observe(step.action, step.observation or "", exit_code=step.exit_code)
            for step in raw.steps
        ]
    return [text for text in texts if text]


def with_logs(task: str, folder: str) -> str:
    """Return *task* as the arm that may search earlier logs is given it."""
    return task + _LOGS.format(folder=folder)


def plain_log(raw: RawTrajectory) -> str:
    """Return a run as plain text: the task, then each command with its output."""
    parts = [f"repository: {raw.repo}\noutcome: {raw.outcome}\n\n{raw.task}\n"]
    for step in raw.steps:
        thought = f"{step.thought.strip()}\n" if step.thought.strip() else ""
        parts.append(f"{thought}$ {step.action.text}\n{step.observation or ''}")
    return "\n".join(parts)


LOGS_IN_IMAGE = "/logs"
_CHECK_SECONDS = 1800
_FOLDER_IN_IMAGE = "/testbed"


class AttemptOutcome(Struct, frozen=True):
    """End of an attempt, as `Attempt` has it."""

    solved: bool = False
    exit_status: str = ""
    steps: int = 0
    tokens: int | None = None
    cost: float | None = None
    error: str = ""


class AgentRunner(Protocol):
    """Makes attempts; *name* has its version."""

    name: str
    model: str

    def attempt(
        self, task: Task, folder: Path, log: Path, advisor: Advisor | None, logs: Path | None
    ) -> AttemptOutcome:
        """Work on *task* in *folder* and write *log*; then run the check.

        The prompt names earlier *logs*, where given. May raise what breaks the attempt.
        """


def agent_named(name: str, model: str | None, specs: Sequence[str]) -> AgentRunner:
    """The agent *name* with *model* (None: that of *specs*, settings in the agent's own form).

    Raises `SettingsError` where it is not known, or cannot be used so.
    """
    if name != AGENT:
        raise SettingsError(f"agent {name} is not known; known: {AGENT}")
    return MiniSweAgent(model, specs or ["mini.yaml"])


class MiniSweAgent:
    """mini-swe-agent's default agent, configured as its own command line is.

    *specs* are what ``mini --config`` takes. Raises `MissingExtraError` without the package and
    `SettingsError` for a configuration without a model.
    """

    def __init__(self, model: str | None, specs: Sequence[str]) -> None:
        os.environ.setdefault("MSWEA_SILENT_STARTUP", "1")
        try:
            from minisweagent import __version__
            from minisweagent.config import get_config_from_spec
            from minisweagent.models import get_model_name
            from minisweagent.utils.serialize import recursive_merge
        except ImportError as error:
            raise MissingExtraError(
                f"{AGENT} is not installed here: pip install 'mini-swe-agent>=2.4'"
            ) from error
        logging.getLogger("minisweagent").setLevel(logging.WARNING)
        self.name = f"{AGENT} {__version__}"
        try:
            self._config: Mapping[str, Any] = recursive_merge(*map(get_config_from_spec, specs))
            self.model: str = get_model_name(model, self._config.get("model", {}))
        except (FileNotFoundError, ValueError) as error:
            raise SettingsError(f"{AGENT}: {error}") from error

    def attempt(
        self, task: Task, folder: Path, log: Path, advisor: Advisor | None, logs: Path | None
    ) -> AttemptOutcome:
        """As `Agent.attempt`."""
        from minisweagent.agents.default import DefaultAgent
        from minisweagent.environments import get_environment
        from minisweagent.models import get_model

        environment = get_environment(self._environment(task.workspace, folder, logs))
        model = AdvisedModel(get_model(self.model, self._config.get("model", {})))
        model.begin(advisor, task.instance_id)
        settings = {**self._config.get("agent", {}), "output_path": log}
        settings.pop("agent_class", None)
        agent = DefaultAgent(model, environment, **settings)
        place = LOGS_IN_IMAGE if task.workspace.image else logs
        try:
            agent.run(with_logs(task.task, str(place)) if logs else task.task)
            solved, error = _is_solved(environment, task.check), ""
        except Exception as broken:  # noqa: BLE001  (what it has spent is recorded with it)
            solved, error = False, described(broken)
        return AttemptOutcome(
            solved=solved,
            exit_status=agent.messages[-1].get("extra", {}).get("exit_status", ""),
            steps=agent.n_calls,
            tokens=_tokens(agent.messages),
            cost=agent.cost,
            error=error,
        )

    def _environment(self, place: Workspace, folder: Path, logs: Path | None) -> Mapping[str, Any]:
        """The settings of the environment: a local folder, or a container of an image."""
        settings: Mapping[str, Any] = self._config.get("environment", {})
        if not place.image:
            chosen = {name: settings[name] for name in ("env", "timeout") if name in settings}
            return {**chosen, "environment_class": "local", "cwd": str(folder)}
        mount = ["--volume", f"{logs}:{LOGS_IN_IMAGE}:ro"] if logs else []
        return {
            "environment_class": "docker",
            **settings,
            "image": place.image,
            "cwd": place.folder or settings.get("cwd") or _FOLDER_IN_IMAGE,
            "run_args": [*settings.get("run_args", ["--rm"]), *mount],
        }


def described(error: Exception) -> str:
    """Return *error* as it is recorded."""
    return mask_secrets(f"{type(error).__name__}: {error}")


def _is_solved(environment: Any, check: str) -> bool:
    checked = environment.execute({"command": check}, timeout=_CHECK_SECONDS)
    if checked["exception_info"]:
        raise RuntimeError(f"the check: {checked['exception_info']}")
    return bool(checked["returncode"] == 0)


def _tokens(messages: Sequence[Mapping[str, Any]]) -> int | None:
    """All tokens that the replies report, in the form of either API of OpenAI."""
    totals = []
    for message in messages:
        response = message.get("extra", {}).get("response", message)
        usage = response.get("usage") if isinstance(response, Mapping) else None
        if usage:
            totals.append(int(usage["total_tokens"]))
    return sum(totals) if totals else None


Key: TypeAlias = tuple[TaskPurpose, str, str, int]


class Shown(Struct, frozen=True, omit_defaults=True):
    """Advice that an agent was shown after *step* commands."""

    step: int
    text: str
    tokens: int


class Attempt(Struct, frozen=True, omit_defaults=True):
    """One attempt of an agent at a task; *number* counts from 1.

    *steps* are calls of the model; *tokens* (read and written) and *cost* (US dollars) are None
    where the model does not say. *looped* is how many steps of its log lie in loops, None without a
    log. A broken attempt has an *error* and counts for nothing.
    """

    part: TaskPurpose
    arm: str
    instance_id: str
    number: int
    solved: bool = False
    exit_status: str = ""
    steps: int = 0
    tokens: int | None = None
    cost: float | None = None
    seconds: float = 0.0
    shown: tuple[Shown, ...] = ()
    error: str = ""
    looped: int | None = None

    @property
    def key(self) -> Key:
        """Key within its experiment."""
        return self.part, self.arm, self.instance_id, self.number


class ExperimentFolder:
    """The folder of an experiment: its settings, its attempts, logs and memory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._attempts = folder / "attempts.jsonl"
        self._settings = folder / "experiment.json"

    @contextmanager
    def opened(self, settings: Mapping[str, Json]) -> Iterator[None]:
        """Let only this process add attempts of the experiment with *settings*.

        Raises `SettingsError` where another process does, or the folder has another experiment.
        """
        with locked(self.folder / "lock", wait=False) as is_alone:
            if not is_alone:
                raise SettingsError(f"another process works on {self.folder}")
            self._agree(settings)
            self._drop_cut_line()
            yield

    def settings(self) -> Mapping[str, Json]:
        """Return the settings of the experiment. Raises `SettingsError` where there is none."""
        try:
            settings: dict[str, Json] = orjson.loads(self._settings.read_bytes())
        except OSError as error:
            raise SettingsError(f"{self.folder} contains no experiment") from error
        return settings

    def attempts(self) -> dict[Key, Attempt]:
        """Return the last record of each attempt."""
        if not self._attempts.exists():
            return {}
        lines = self._attempts.read_bytes().splitlines(keepends=True)
        attempts = (from_bytes(Attempt, line) for line in lines if line.endswith(b"\n"))
        return {attempt.key: attempt for attempt in attempts}

    def add(self, attempt: Attempt) -> None:
        """Add *attempt*; on return it is on disk."""
        append(self._attempts, json_bytes(attempt, "an attempt") + b"\n", sync=True)

    def _agree(self, settings: Mapping[str, Json]) -> None:
        """Write *settings*, or raise where the folder has others."""
        if not self._settings.exists():
            form = orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE
            with replacing(self._settings) as part:
                part.write_bytes(orjson.dumps(settings, option=form))
        known = self.settings()
        for name, value in settings.items():
            if known.get(name) != value:
                raise SettingsError(
                    f"{self.folder} holds an experiment with {name} {known.get(name)!r}, not"
                    f" {value!r}; name another folder as out"
                )

    def _drop_cut_line(self) -> None:
        """A process that was killed may have written the last line in part."""
        if self._attempts.exists():
            content = self._attempts.read_bytes()
            os.truncate(self._attempts, content.rfind(b"\n") + 1)


class Plan(Struct, frozen=True):
    """Plan of an experiment: *attempts* at each judged task under each of *arms*.

    *share* of the tasks is attempted once, without advice, and learned. *settings* are further
    settings of the agent that must not change in between.
    """

    tasks: Sequence[Task]
    arms: Annotated[Sequence[Arm], Meta(min_length=1)]
    attempts: Annotated[int, Meta(ge=1)]
    share: Share
    seed: int
    settings: Mapping[str, Json]


class Experiment:
    """An experiment in the folder of *journal*; running it again does what is left.

    The folder holds ``experiment.json``, ``attempts.jsonl``, ``runs/`` (the agent's logs),
    ``logs/`` (the learned ones as plain text), ``memory.db`` and, meanwhile, ``work/``. Raises
    `InvalidArgumentError` for a plan with an unknown arm, or without attempts.
    """

    def __init__(
        self, plan: Plan, agent: AgentRunner, journal: ExperimentFolder, *, workers: int = 1
    ) -> None:
        self._plan, self._agent, self._journal = argument("plan", Plan, plan), agent, journal
        self._workers = workers
        self._tasks = {task.instance_id: task for task in plan.tasks}
        self._parts = split_tasks(plan.tasks, plan.share, plan.seed)
        self._logs = journal.folder / "logs"
        self._memory_file = journal.folder / "memory.db"
        self._learned: Sequence[RawTrajectory] = ()
        self._memory: AgentMemory | None = None
        self._unrelated: Mapping[str, Sequence[str]] = {}

    def left(self, *, retry_broken: bool = False) -> Mapping[TaskPurpose, Sequence[Key]]:
        """Return the attempts still to be made: of each task and arm one, then a second one.

        With *retry_broken*, broken ones are; those that were to be learned only before the first
        judged one.
        """
        known = self._journal.attempts()
        broken = {key for key, attempt in known.items() if attempt.error} if retry_broken else set()
        if any(key[0] is TaskPurpose.JUDGE for key in known):
            broken = {key for key in broken if key[0] is TaskPurpose.JUDGE}
        wanted = {
            TaskPurpose.LEARN: self._keys(TaskPurpose.LEARN, (NONE,), 1),
            TaskPurpose.JUDGE: self._keys(TaskPurpose.JUDGE, self._plan.arms, self._plan.attempts),
        }
        done = known.keys() - broken
        return {part: [key for key in keys if key not in done] for part, keys in wanted.items()}

    def run(self, *, retry_broken: bool = False) -> Generator[Attempt]:
        """Make the attempts that are `left`, yielding each once it is recorded.

        Raises `SettingsError` where the plan cannot be carried out.
        """
        if not self._parts[TaskPurpose.JUDGE]:
            raise SettingsError("no task is left to judge by; lower share")
        with self._journal.opened(self._settings()):
            left = self.left(retry_broken=retry_broken)
            yield from self._all(left[TaskPurpose.LEARN])
            self._learn()
            with AgentMemory.open(str(self._memory_file), read_only=True) as self._memory:
                self._check_arms(self._memory)
                yield from self._all(left[TaskPurpose.JUDGE])
        shutil.rmtree(self._journal.folder / "work", ignore_errors=True)

    def _keys(self, part: TaskPurpose, arms: Sequence[str], attempts: int) -> Iterator[Key]:
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

        An interrupt does not wait for attempts in progress, which are not recorded.
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
        self._log(key).unlink(missing_ok=True)  # of an attempt that broke
        begun = time.monotonic()
        try:
            folder, logs = self._prepared(task, arm, slot)
            ending = self._agent.attempt(task, folder, self._log(key), advisor, logs)
        except Exception as error:  # noqa: BLE001  (whatever breaks an attempt is its result)
            ending = AttemptOutcome(error=described(error))
        return Attempt(
            *key,
            **asdict(ending),
            seconds=round(time.monotonic() - begun, 3),
            shown=tuple(advisor.shown) if advisor else (),
            looped=self._looped(key),
        )

    def _looped(self, key: Key) -> int | None:
        """Return how many steps of an attempt lie in loops; None where it left no log."""
        log = self._log(key)
        if not log.exists():
            return None
        try:
            loops = [loop for raw in read(log) for loop in trace(raw).loops]
        except ReadError:
            return None
        return sum(loop.length for loop in loops if is_alarming(loop))

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
        made = [
            attempt
            for attempt in attempts
            if attempt.part is TaskPurpose.LEARN and not attempt.error
        ]
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
        errors = [one.error for one in self._journal.attempts().values() if one.error]
        retry = "retry_broken=true repeats broken attempts"
        broken = f": {errors[0]}; {retry}" if errors else ""
        if not self._learned and {*self._plan.arms} - {NONE}:
            raise SettingsError(f"there is no run to learn from{broken or '; raise share'}")
        if PLACEBO not in self._plan.arms:
            return
        by_repo = defaultdict[str, list[RawTrajectory]](list)
        for raw in self._learned:
            by_repo[raw.repo].append(raw)
        self._unrelated = {repo: advice_for(memory, runs) for repo, runs in by_repo.items()}
        for task in self._parts[TaskPurpose.JUDGE]:
            if not self._unrelated_to(task.repo):
                raise SettingsError(
                    f"arm {PLACEBO}: the memory has no advice for repositories other than"
                    f" {task.repo}{broken or '; leave the arm out, or add tasks'}"
                )

    def _unrelated_to(self, repo: str) -> list[str]:
        """Return what the memory shows to runs of other repositories."""
        others = (texts for name, texts in self._unrelated.items() if name.lower() != repo.lower())
        return [text for texts in others for text in texts]

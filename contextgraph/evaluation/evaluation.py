"""Judges a memory by recorded runs that it has not learned."""

import random
import time
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from hashlib import blake2b

from msgspec import Struct

from contextgraph.advising.channels import without_counts_of
from contextgraph.evaluation.baselines import RecoveryBaselines, TaskBaselines
from contextgraph.evaluation.judging import Judge, JudgedRun
from contextgraph.evaluation.measures import LoopWarnings, Moment, OrderSource, in_order, is_later
from contextgraph.evaluation.saving import LiveReplay, LiveReplays
from contextgraph.learning import masked
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import RawTrajectory
from contextgraph.trace import trace

_HASHED = 10_000


class Mode(StrEnum):
    """Learn one part and judge by the other, or judge by each run before it is learned."""

    SPLIT = "split"
    ONLINE = "online"


class Evaluation(Struct, frozen=True):
    """All that was judged; *fingerprint* names the runs, *order* is what they were ordered by.

    *learning_seconds* and *judging_seconds* include the baselines.
    """

    mode: Mode
    order: OrderSource
    seed: int
    fingerprint: str
    learned: int
    judged: int
    moments: tuple[Moment, ...]
    loop_warnings: tuple[LoopWarnings, ...]
    replays: tuple[LiveReplay, ...]
    learning_seconds: float
    judging_seconds: float


def evaluate(
    memory: AgentMemory,
    learn: Iterable[RawTrajectory],
    judge: Iterable[RawTrajectory],
    *,
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Evaluate *memory*, which should be empty, on *judge* after it has learned *learn*.

    At each judged run it sees no run of the same instance, and none that is known to be later. It
    has no counts of harnesses from their repositories: what is learned counts once.
    """
    session = _Session(memory, seed, advance)
    known, judged = list(learn), list(judge)
    _hide_counts(memory, [*known, *judged])
    with memory.batch():
        for raw in known:
            session.learn(raw)
    runs, order = in_order(judged)
    for raw in runs:
        session.judge(raw, frozenset(run.instance_id for run in known if is_later(run, raw)))
    return session.evaluation(Mode.SPLIT, order)


def evaluate_online(
    memory: AgentMemory,
    runs: Iterable[RawTrajectory],
    *,
    seed: int = 0,
    advance: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Evaluate *memory*, which should be empty, on each of *runs*, which it then learns."""
    session = _Session(memory, seed, advance)
    ordered, order = in_order(runs)
    _hide_counts(memory, ordered)
    for raw in ordered:
        session.judge(raw, frozenset())
        session.learn(raw)
    return session.evaluation(Mode.ONLINE, order)


def _hide_counts(memory: AgentMemory, runs: Iterable[RawTrajectory]) -> None:
    """Let *memory* answer without what comes with the package from repositories of *runs*."""
    retriever = memory.retriever
    retriever.channels = without_counts_of(retriever.channels, {raw.repo for raw in runs})


def split(
    runs: Iterable[RawTrajectory], share: float
) -> tuple[list[RawTrajectory], list[RawTrajectory]]:
    """About *share* of *runs* to learn and the rest to judge, by a hash of their instances."""
    parts: tuple[list[RawTrajectory], list[RawTrajectory]] = ([], [])
    for raw in runs:
        digest = blake2b(raw.instance_id.encode("utf-8", "surrogatepass"), digest_size=8).digest()
        parts[int.from_bytes(digest) % _HASHED >= share * _HASHED].append(raw)
    return parts


def sampled(runs: Sequence[RawTrajectory], count: int, seed: int) -> list[RawTrajectory]:
    """Return *count* of *runs* drawn by *seed*, in the order given; all where there are fewer."""
    if count >= len(runs):
        return list(runs)
    drawn = random.Random(seed).sample(range(len(runs)), count)
    return [runs[index] for index in sorted(drawn)]


class _Session:
    """A memory with its baselines, and what was judged so far."""

    def __init__(self, memory: AgentMemory, seed: int, advance: Callable[[], None]) -> None:
        self._memory = memory
        self._seed = seed
        self._advance = advance
        self._recoveries, self._tasks = RecoveryBaselines(), TaskBaselines()
        self._judge = Judge(memory, self._recoveries, self._tasks, seed)
        self._replays = LiveReplays(memory, self._recoveries)
        self._judged: list[JudgedRun] = []
        self._learned: list[str] = []
        self._seconds = {"learn": 0.0, "judge": 0.0}

    def learn(self, raw: RawTrajectory) -> None:
        start = time.perf_counter()
        self._learned.append(self._memory.learn(raw).trajectory_id)
        self._recoveries.add(trace(masked(raw)[0]))
        self._tasks.add(raw)
        self._seconds["learn"] += time.perf_counter() - start
        self._advance()

    def judge(self, raw: RawTrajectory, hidden: frozenset[str]) -> None:
        start = time.perf_counter()
        self._judged.append(self._judge.judge(raw, hidden))
        self._replays.replay(raw, hidden)
        self._seconds["judge"] += time.perf_counter() - start
        self._advance()

    def evaluation(self, mode: Mode, order: OrderSource) -> Evaluation:
        return Evaluation(
            mode=mode,
            order=order,
            seed=self._seed,
            fingerprint=_fingerprint(self._learned, [judged.run for judged in self._judged]),
            learned=len(self._learned),
            judged=len(self._judged),
            moments=tuple(moment for judged in self._judged for moment in judged.moments),
            loop_warnings=tuple(judged.warnings for judged in self._judged),
            replays=tuple(self._replays.results()),
            learning_seconds=self._seconds["learn"],
            judging_seconds=self._seconds["judge"],
        )


def _fingerprint(learned: Sequence[str], judged: Sequence[str]) -> str:
    """The same for the same runs, whatever order their files came in."""
    lines = [f"learn {run}" for run in sorted(learned)] + [f"judge {run}" for run in sorted(judged)]
    return blake2b("\n".join(lines).encode(), digest_size=12).hexdigest()

"""The moments of a run at which a memory is asked, and what came of each."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from contextgraph.model import LearnReceipt, MemoryContext, RawTrajectory, State


class MomentKind(StrEnum):
    """Why the memory is asked, or speaks by itself."""

    START = "start"
    ERROR = "error"
    LOOP = "loop"
    RELATED = "related"


class Memory(Protocol):
    """The part of a memory that is judged."""

    def learn(self, raw: RawTrajectory) -> LearnReceipt:
        """Learn one finished run."""

    def batch(self) -> AbstractContextManager[None]:
        """Within it, what is due after learning may be put off to the end."""

    def query(
        self,
        state: State,
        limit: int = 5,
        *,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
        degrade: bool = False,
    ) -> MemoryContext:
        """What is known for *state*."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one method did at a moment: the *rank* of the first item that would have helped.

    None where none would. *score* and *evidence* are of the first item, 0 without an answer.
    """

    answered: bool
    rank: int | None = None
    score: float = 0.0
    evidence: float = 0.0


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment that was judged: by *verdicts* of each method, where the run shows what was right.

    *reachable*: what was learned has what would have helped, whether or not any method finds it.
    *run* is the id of the trajectory, *topic* the error family at an error, *steps_left* how many
    steps the run then took until it had cleared the error.
    """

    kind: MomentKind
    run: str
    instance_id: str
    repo: str
    step: int
    topic: str
    verdicts: Mapping[str, Verdict]
    has_answer: bool = True
    steps_left: int = 0
    reachable: bool = False

    @property
    def key(self) -> str:
        """What names this moment in every evaluation of the same run."""
        return f"{self.kind}:{self.run}:{self.step}"

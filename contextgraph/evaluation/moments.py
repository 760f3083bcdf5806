"""The moments of recorded runs at which a memory is queried, and the order of the runs."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from contextgraph.model import RawTrajectory

OURS = "contextgraph"
BASELINES = ("nothing", "random in scope", "most frequent", "bm25 in scope", "bm25")
METHODS = (OURS, *BASELINES)

_NUMBER = re.compile(r"(\d+)\Z")


class MomentKind(StrEnum):
    """Why the memory is queried, or gives a warning by itself."""

    START = "start"
    ERROR = "error"
    LOOP = "loop"
    BEFORE = "before"
    SUBMIT = "submit"
    RELATED = "related"


@dataclass(frozen=True, slots=True)
class Verdict:
    """How one method did at a moment.

    *rank* is the place of the first item that would have helped in the ranking before the gate,
    *shown* that among the items that are shown, *same_kind* the first in the ranking of the kind of
    command that next succeeded; None where none would. *answered* says whether anything is shown,
    *score* is of its first item, *tokens* the length of its text.
    """

    answered: bool
    rank: int | None = None
    shown: int | None = None
    score: float = 0.0
    tokens: int = 0
    same_kind: int | None = None


@dataclass(frozen=True, slots=True)
class Moment:
    """A moment that was judged: *verdicts* by method, where the run shows what was right.

    *reachable*: what was learned has what would have helped, whether or not any method finds it.
    *run* is the id of the trajectory, *topic* the error family at an error, *steps_left* how many
    steps the run then took until it had cleared the error, *next_kind* the kind of command that
    next succeeded.
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
    next_kind: str = ""

    @property
    def key(self) -> str:
        """Key of this moment in every evaluation of the same run."""
        return f"{self.kind}:{self.run}:{self.step}"


class RunOrder(StrEnum):
    """Sources of the order of runs."""

    STARTED_AT = "started_at"
    INSTANCE_NUMBER = "instance_number"
    INPUT = "input"


def in_order(runs: Iterable[RawTrajectory]) -> tuple[Sequence[RawTrajectory], RunOrder]:
    """*runs* as they happened, and what that was taken from.

    By their start where all have one; else by the number in the instance id, within each repository
    (issues are numbered in order; the repositories take turns as they come in the input); else as
    they came.
    """
    given = list(runs)
    if given and all(raw.started_at for raw in given):
        return sorted(given, key=_started), RunOrder.STARTED_AT
    if given and all(number_of(raw.instance_id) is not None for raw in given):
        return _numbered(given), RunOrder.INSTANCE_NUMBER
    return given, RunOrder.INPUT


def number_of(instance_id: str) -> int | None:
    """The number that *instance_id* ends in; None where it ends otherwise."""
    match = _NUMBER.search(instance_id)
    return int(match[1]) if match else None


def is_later(run: RawTrajectory, other: RawTrajectory) -> bool:
    """True where *run* is known to have happened after *other* began."""
    if run.started_at and other.started_at:
        return run.started_at > other.started_at
    if not run.repo or run.repo != other.repo:
        return False
    number, other_number = number_of(run.instance_id), number_of(other.instance_id)
    return number is not None and other_number is not None and number > other_number


def _started(raw: RawTrajectory) -> datetime:
    assert raw.started_at is not None
    return raw.started_at


def _numbered(given: Sequence[RawTrajectory]) -> list[RawTrajectory]:
    """Each place of a repository in *given* taken by its runs in the order of their numbers."""
    by_repo: dict[str, list[RawTrajectory]] = {}
    for raw in given:
        by_repo.setdefault(raw.repo, []).append(raw)
    queues = {
        repo: iter(sorted(runs, key=lambda raw: number_of(raw.instance_id) or 0))
        for repo, runs in by_repo.items()
    }
    return [next(queues[raw.repo]) for raw in given]

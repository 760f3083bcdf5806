"""What the memory tells its callers about itself."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from contextgraph.model.trajectory import Outcome
from contextgraph.model.usage import NO_USAGE, Usage


class LearnStatus(StrEnum):
    """What learning a run did: new, known already, or known and now with its outcome."""

    CREATED = "created"
    UNCHANGED = "unchanged"
    UPDATED = "updated"


@dataclass(frozen=True, slots=True)
class LearnReceipt:
    """A run is safely stored.

    *fragments* and *error_patterns* count what it consists of; *to_embed* counts the nodes of it
    that have no vector yet, for the reason in *not_embedded* where it is a failure. *usage* is what
    its vectors took; of runs that were embedded together, the first one's receipt has it all.
    """

    trajectory_id: str
    status: LearnStatus
    fragments: int
    error_patterns: int
    to_embed: int
    not_embedded: str = ""
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class Learned:
    """What the memory holds of one run: its outcome, and how much it consists of."""

    outcome: Outcome
    fragments: int
    error_patterns: int
    to_embed: int


@dataclass(frozen=True, slots=True)
class MemoryCounts:
    """Nodes and relations in the memory, by label and type.

    Trajectories also by outcome, *methodologies* by status; tombstones are among them.
    """

    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    outcomes: Mapping[str, int]
    methodologies: Mapping[str, int]
    repositories: int


@dataclass(frozen=True, slots=True)
class MistakePattern:
    """A mistake often made in a situation: *count* runs, *cleared* of them got over it."""

    description: str
    count: int
    cleared: int


@dataclass(frozen=True, slots=True)
class FailurePattern:
    """In which *condition* *what* goes wrong, in how many runs, and what *prevented* it."""

    condition: str
    what: str
    count: int
    prevented: str


@dataclass(frozen=True, slots=True)
class HealthCheck:
    """One thing that was looked at; *remedy* says what to do where it is not *ok*."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""

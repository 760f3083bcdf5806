"""What the memory answers, and why each item is in the answer."""

from dataclasses import dataclass, field
from enum import StrEnum

from contextgraph.model.error import ErrorSignature, SignatureLevel
from contextgraph.model.fragment import Fragment
from contextgraph.model.retelling import Retelling
from contextgraph.model.trajectory import Outcome


class ScopeLevel(StrEnum):
    """How near the evidence is to the asking run."""

    REPO = "repo"
    GENERAL = "general"


@dataclass(frozen=True, slots=True)
class ChannelRank:
    """A channel found the item at this *rank* (from 1) with this *score* (0 to 1)."""

    channel: str
    rank: int
    score: float


@dataclass(frozen=True, slots=True)
class Why:
    """Why an item is in the answer.

    *support* counts the runs in which it was seen to work (or to happen), *trajectories* names
    them (at most ten, newest first).
    """

    channels: tuple[ChannelRank, ...]
    scope: ScopeLevel
    support: int
    trajectories: tuple[str, ...]
    signature_level: SignatureLevel | None = None


@dataclass(frozen=True, slots=True)
class Suggestion:
    """A methodology that fits the state; *confidence* and *score* are between 0 and 1."""

    id: str
    situation: str
    strategy: str
    confidence: float
    status: str
    scope: ScopeLevel
    score: float
    why: Why


@dataclass(frozen=True, slots=True)
class ErrorSolution:
    """A recorded recovery from this error, or one like it; *score* is between 0 and 1."""

    fragment_id: str
    trajectory_id: str
    instance_id: str
    repo: str
    error_type: str
    signature_level: SignatureLevel
    actions: tuple[str, ...]
    description: str
    workaround: bool
    score: float
    why: Why

    @property
    def is_of_this_error(self) -> bool:
        """True where the messages agree, not only the type or the family."""
        return self.signature_level in (SignatureLevel.PLACE, SignatureLevel.TEMPLATE)


@dataclass(frozen=True, slots=True)
class SimilarCase:
    """A past run like this one, with its best *fragments*; *score* is between 0 and 1.

    *retelling* is the run in a language model's words, where one was asked.
    """

    trajectory_id: str
    instance_id: str
    repo: str
    outcome: Outcome
    summary: str
    files: tuple[str, ...]
    fragments: tuple[Fragment, ...]
    score: float
    why: Why
    retelling: Retelling | None = None

    @property
    def told(self) -> str:
        """What the run did, in a model's words where there are any."""
        return (self.retelling and self.retelling.summary) or self.summary

    def told_of(self, fragment: Fragment) -> str:
        """What happened in *fragment*, in a model's words where there are any."""
        retold = self.retelling.descriptions if self.retelling else {}
        return retold.get(fragment.id, fragment.description)


@dataclass(frozen=True, slots=True)
class FailureWarning:
    """What usually goes wrong here; *count* is the number of runs in which it did."""

    text: str
    count: int
    why: Why


@dataclass(frozen=True, slots=True)
class MemoryContext:
    """The answer to one query, best first in every list.

    *error* is the error that was asked about, as it was recognised. *degraded* says which parts did
    not answer and why. *id* names this answer when its effect is
    reported; it takes no part in equality.
    """

    id: str = field(compare=False)
    suggestions: tuple[Suggestion, ...] = ()
    error_solutions: tuple[ErrorSolution, ...] = ()
    similar_cases: tuple[SimilarCase, ...] = ()
    warnings: tuple[FailureWarning, ...] = ()
    degraded: tuple[str, ...] = ()
    error: ErrorSignature | None = None

    @property
    def solutions_by_title(self) -> dict[str, list[ErrorSolution]]:
        """Title -> the error solutions under it: of this very error, then of its kind alone."""
        same = [one for one in self.error_solutions if one.is_of_this_error]
        alike = [one for one in self.error_solutions if not one.is_of_this_error]
        return {
            "This error was cleared before": same,
            "Errors of this kind were cleared before": alike,
        }

    def __bool__(self) -> bool:
        """True where there is anything to say."""
        return bool(self.suggestions or self.error_solutions or self.similar_cases or self.warnings)

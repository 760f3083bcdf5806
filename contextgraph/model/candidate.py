"""What stores propose; scores are given above them."""

from dataclasses import dataclass
from datetime import datetime

from contextgraph.model.error import ErrorPattern, ErrorSignature, SignatureLevel
from contextgraph.model.fragment import Fragment, Recovered
from contextgraph.model.trajectory import Trajectory


@dataclass(frozen=True, slots=True)
class Scope:
    """What a query may see: one repository or all (None); not these instances; nothing newer.

    A run counts as newer by its `Trajectory.seen_at`; *as_of* itself is still seen.
    """

    repo: str | None = None
    exclude_instances: frozenset[str] = frozenset()
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class ErrorQuestion:
    """Asks about the errors that agree with *signature* at least at *level*, within *scope*."""

    signature: ErrorSignature
    level: SignatureLevel
    scope: Scope


@dataclass(frozen=True, slots=True)
class RecoveryCandidate:
    """A recorded recovery with the error it cleared and the run it happened in."""

    recovered: Recovered
    error: ErrorPattern
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class FragmentCandidate:
    """A fragment with the run it is part of."""

    fragment: Fragment
    trajectory: Trajectory


@dataclass(frozen=True, slots=True)
class ErrorTally:
    """How a kind of error went within a scope: counts of runs and of steps.

    *cleared_runs* are those of *runs* in which it was cleared at least once; *trajectories* names
    the newest ten of *runs*, newest first.
    """

    error: ErrorPattern
    runs: int
    steps: int
    cleared_runs: int
    trajectories: tuple[str, ...]

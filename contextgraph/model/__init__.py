"""The nouns of the memory, as frozen values."""

from contextgraph.model.bundle import Bundle
from contextgraph.model.candidate import (
    ErrorTally,
    FragmentCandidate,
    RecoveryCandidate,
    Scope,
)
from contextgraph.model.context import (
    ChannelRank,
    ErrorSolution,
    FailureWarning,
    MemoryContext,
    ScopeLevel,
    SimilarCase,
    Suggestion,
    Why,
)
from contextgraph.model.embedding import (
    Near,
    NodeKind,
    RunTexts,
    RunVectors,
    Space,
    run_texts,
)
from contextgraph.model.error import ErrorPattern, ErrorSignature, Family, SignatureLevel
from contextgraph.model.fragment import (
    CausedError,
    Fragment,
    FragmentOutcome,
    FragmentType,
    Phase,
    Recovered,
)
from contextgraph.model.loop import LoopInfo, LoopKind, LoopSeverity
from contextgraph.model.receipt import (
    FailurePattern,
    HealthCheck,
    LearnReceipt,
    LearnStatus,
    MemoryCounts,
    MistakePattern,
)
from contextgraph.model.state import State
from contextgraph.model.trajectory import (
    Action,
    Json,
    Outcome,
    RawTrajectory,
    Step,
    TaskType,
    Trajectory,
    instance_id_in,
    repo_of,
)

__all__ = [
    "Action",
    "Bundle",
    "CausedError",
    "ChannelRank",
    "ErrorPattern",
    "ErrorSignature",
    "ErrorSolution",
    "ErrorTally",
    "FailurePattern",
    "FailureWarning",
    "Family",
    "Fragment",
    "FragmentCandidate",
    "FragmentOutcome",
    "FragmentType",
    "HealthCheck",
    "Json",
    "LearnReceipt",
    "LearnStatus",
    "LoopInfo",
    "LoopKind",
    "LoopSeverity",
    "MemoryContext",
    "MemoryCounts",
    "MistakePattern",
    "Near",
    "NodeKind",
    "Outcome",
    "Phase",
    "RawTrajectory",
    "Recovered",
    "RecoveryCandidate",
    "RunTexts",
    "RunVectors",
    "Scope",
    "ScopeLevel",
    "SignatureLevel",
    "SimilarCase",
    "Space",
    "State",
    "Step",
    "Suggestion",
    "TaskType",
    "Trajectory",
    "Why",
    "instance_id_in",
    "repo_of",
    "run_texts",
]

"""ContextGraph: the long-term memory of coding agents."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from contextgraph.agents.live import AsyncLiveRun as AsyncLiveRun, LiveRun as LiveRun
    from contextgraph.errors import ContextGraphError as ContextGraphError
    from contextgraph.memory import AgentMemory as AgentMemory
    from contextgraph.model import (
        Action as Action,
        LearnReceipt as LearnReceipt,
        LoopInfo as LoopInfo,
        MemoryContext as MemoryContext,
        Outcome as Outcome,
        Phase as Phase,
        RawTrajectory as RawTrajectory,
        RepositoryPlaybook as RepositoryPlaybook,
        State as State,
        Step as Step,
    )

# Resolved at first use: `import contextgraph` must cost next to nothing.
_HOMES = {
    "AgentMemory": "contextgraph.memory",
    "AsyncLiveRun": "contextgraph.agents.live",
    "ContextGraphError": "contextgraph.errors",
    "Action": "contextgraph.model",
    "LearnReceipt": "contextgraph.model",
    "LiveRun": "contextgraph.agents.live",
    "LoopInfo": "contextgraph.model",
    "MemoryContext": "contextgraph.model",
    "Outcome": "contextgraph.model",
    "Phase": "contextgraph.model",
    "RawTrajectory": "contextgraph.model",
    "RepositoryPlaybook": "contextgraph.model",
    "State": "contextgraph.model",
    "Step": "contextgraph.model",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list; the linter cannot see it)


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'contextgraph' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__

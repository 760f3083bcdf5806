"""ContextGraph: the long-term memory of coding agents."""

import sys
from typing import TYPE_CHECKING

if sys.version_info < (3, 11):  # noqa: UP036  (pip refuses it; a clone on the path has no pip)
    raise SystemExit(f"contextgraph needs Python 3.11 or newer, this is {sys.version.split()[0]}")

from contextgraph.system.names import attached

if TYPE_CHECKING:
    from contextgraph.advising.loops import LoopDetector as LoopDetector
    from contextgraph.advising.pipeline import MemoryRetriever as MemoryRetriever
    from contextgraph.agents.asynchronous import AsyncLiveRun as AsyncLiveRun
    from contextgraph.agents.live import LiveRun as LiveRun
    from contextgraph.errors import ContextGraphError as ContextGraphError
    from contextgraph.inference.client import EmbeddingClient as EmbeddingClient
    from contextgraph.learning.consolidator import MemoryConsolidator as MemoryConsolidator
    from contextgraph.learning.statistics import (
        MemoryStats as MemoryStats,
        StatisticsEngine as StatisticsEngine,
    )
    from contextgraph.learning.writer import MemoryWriter as MemoryWriter
    from contextgraph.memory.agent_memory import AgentMemory as AgentMemory
    from contextgraph.model import (
        Action as Action,
        Environment as Environment,
        ErrorPattern as ErrorPattern,
        FailurePattern as FailurePattern,
        Fragment as Fragment,
        LearnReceipt as LearnReceipt,
        LoopInfo as LoopInfo,
        MemoryContext as MemoryContext,
        Methodology as Methodology,
        MistakePattern as MistakePattern,
        Outcome as Outcome,
        Phase as Phase,
        RawTrajectory as RawTrajectory,
        Remedy as Remedy,
        RepositoryPlaybook as RepositoryPlaybook,
        State as State,
        Step as Step,
        Trajectory as Trajectory,
    )
    from contextgraph.store.neo4j import Neo4jStore
    from contextgraph.trace.loops import Predicament

    LoopMatch = LoopInfo
    LoopSignature = Predicament
    Neo4jConnection = Neo4jStore
    RankedItem = Remedy
    RetrievalResult = MemoryContext

# Resolved at first use: `import contextgraph` must cost next to nothing. A name of the founding
# design whose work another class does leads to that class.
_HOMES = {
    "AgentMemory": "contextgraph.memory.agent_memory:AgentMemory",
    "AsyncLiveRun": "contextgraph.agents.asynchronous:AsyncLiveRun",
    "ContextGraphError": "contextgraph.errors:ContextGraphError",
    "EmbeddingClient": "contextgraph.inference.client:EmbeddingClient",
    "LiveRun": "contextgraph.agents.live:LiveRun",
    "LoopDetector": "contextgraph.advising.loops:LoopDetector",
    "LoopMatch": "contextgraph.model:LoopInfo",
    "LoopSignature": "contextgraph.trace.loops:Predicament",
    "MemoryConsolidator": "contextgraph.learning.consolidator:MemoryConsolidator",
    "MemoryRetriever": "contextgraph.advising.pipeline:MemoryRetriever",
    "MemoryStats": "contextgraph.learning.statistics:MemoryStats",
    "MemoryWriter": "contextgraph.learning.writer:MemoryWriter",
    "Neo4jConnection": "contextgraph.store.neo4j:Neo4jStore",
    "RankedItem": "contextgraph.model:Remedy",
    "RetrievalResult": "contextgraph.model:MemoryContext",
    "StatisticsEngine": "contextgraph.learning.statistics:StatisticsEngine",
    **{
        name: f"contextgraph.model:{name}"
        for name in (
            "Action",
            "Environment",
            "ErrorPattern",
            "FailurePattern",
            "Fragment",
            "LearnReceipt",
            "LoopInfo",
            "MemoryContext",
            "Methodology",
            "MistakePattern",
            "Outcome",
            "Phase",
            "RawTrajectory",
            "Remedy",
            "RepositoryPlaybook",
            "State",
            "Step",
            "Trajectory",
        )
    },
}

__all__ = sorted(_HOMES)  # noqa: PLE0605  (a list; the linter cannot see it)
if not TYPE_CHECKING:  # a checker would take any name
    __getattr__, __dir__ = attached(__name__, _HOMES)

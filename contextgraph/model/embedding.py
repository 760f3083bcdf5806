"""What of a run is embedded, and its vector."""

from dataclasses import dataclass

from contextgraph.model.methodology import NO_USAGE, Usage
from contextgraph.model.trajectory import Trajectory
from contextgraph.vectors import Vector

# The head of an issue says what it is about; logs and code follow.
TASK_CHARS = 2_000


@dataclass(frozen=True, slots=True)
class Space:
    """An embedding space of a memory, and how many of its *runs* it was fitted or calibrated on.

    *runs* is 0 while it was not. *similarity_threshold* is the cosine from which the
    tasks of two runs of one repository count as similar; None while that is not known.
    """

    name: str
    runs: int
    similarity_threshold: float | None = None


@dataclass(frozen=True, slots=True)
class Embeddings:
    """A vector for each of some texts, None for a text without words, and what they cost."""

    vectors: tuple[Vector | None, ...]
    usage: Usage = NO_USAGE


@dataclass(frozen=True, slots=True)
class EmbeddedRun:
    """The *vector* of a run in *space*; None where its text has no word that the space knows."""

    space: str
    vector: Vector | None


@dataclass(frozen=True, slots=True)
class Near:
    """A run near the vector of a query, and its own vector."""

    trajectory: Trajectory
    vector: Vector


def run_text(trajectory: Trajectory) -> str:
    """The text by which a run is embedded."""
    parts = (trajectory.task[:TASK_CHARS], trajectory.summary, *trajectory.files)
    return "\n".join(parts)

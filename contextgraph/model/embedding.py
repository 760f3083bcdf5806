"""What of a run is embedded, and its vectors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from contextgraph.model.fragment import Fragment
from contextgraph.model.methodology import NO_USAGE, Methodology, Usage
from contextgraph.model.trajectory import Trajectory
from contextgraph.vectors import Vector

# The head of an issue says what it is about; logs and code follow.
TASK_CHARS = 2_000

Item = TypeVar("Item")


class NodeKind(StrEnum):
    """The nodes that have a vector."""

    TRAJECTORY = "Trajectory"
    FRAGMENT = "Fragment"


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
class RunTexts:
    """The texts by which the nodes of a run are embedded; *fragments* in order."""

    trajectory_id: str
    trajectory: str
    fragments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RunVectors:
    """The vectors of the nodes of a run, of one space; None where a text has none."""

    space: str
    trajectory: Vector | None
    fragments: tuple[Vector | None, ...]


@dataclass(frozen=True, slots=True)
class Near(Generic[Item]):
    """Something near the vector of a query, with the vector of its node."""

    item: Item
    vector: Vector


def run_texts(
    trajectory: Trajectory, fragments: Sequence[Fragment], messages: Mapping[str, Sequence[str]]
) -> RunTexts:
    """The texts of a run; *messages* are those of the errors met in a fragment, by its id."""
    parts = (trajectory.task[:TASK_CHARS], trajectory.summary, *trajectory.files)
    return RunTexts(
        trajectory.id,
        "\n".join(parts),
        tuple(_fragment_text(fragment, messages.get(fragment.id, ())) for fragment in fragments),
    )


def methodology_text(methodology: Methodology) -> str:
    """The text by which a methodology is embedded."""
    return f"{methodology.situation}\n{methodology.strategy}"


def _fragment_text(fragment: Fragment, messages: Sequence[str]) -> str:
    done = (fragment.description, *fragment.action_sequence, *fragment.files)
    return "\n".join((*done, *messages))

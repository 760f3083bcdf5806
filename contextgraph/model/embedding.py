"""What of a run is embedded, and the vectors that come of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

from contextgraph.model.fragment import Fragment
from contextgraph.model.methodology import Methodology
from contextgraph.model.trajectory import Trajectory
from contextgraph.model.usage import NO_USAGE, Usage
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

    *runs* is 0 while it was not. *alike* is the cosine from which the tasks of two runs of one
    repository are alike; None while that is not known.
    """

    name: str
    runs: int
    alike: float | None = None


@dataclass(frozen=True, slots=True)
class Embeddings:
    """A vector for each of some texts, None for one that says nothing, and what they took."""

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
    """Something near a vector that was asked about, with the vector of its node."""

    item: Item
    vector: Vector


def run_texts(
    trajectory: Trajectory, fragments: Sequence[Fragment], messages: Mapping[str, Sequence[str]]
) -> RunTexts:
    """The texts of a run; *messages* are those of the errors met in a fragment, by its id."""
    told = (trajectory.task[:TASK_CHARS], trajectory.summary, *trajectory.files)
    return RunTexts(
        trajectory.id,
        "\n".join(told),
        tuple(_fragment_text(fragment, messages.get(fragment.id, ())) for fragment in fragments),
    )


def methodology_text(methodology: Methodology) -> str:
    """The text by which a methodology is embedded."""
    return f"{methodology.situation}\n{methodology.strategy}"


def _fragment_text(fragment: Fragment, messages: Sequence[str]) -> str:
    done = (fragment.description, *fragment.action_sequence, *fragment.files)
    return "\n".join((*done, *messages))

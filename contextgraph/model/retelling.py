"""A run as it is told to a language model, and as that tells it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from operator import attrgetter

from contextgraph.model.fragment import TELLING, Fragment, Phase
from contextgraph.model.trajectory import Trajectory

# More would double what a run costs, and say less of each.
FRAGMENTS_TOLD = 8

# Many runs begin with looking around, which tells least of them.
_TELLING_PHASES = (
    Phase.FIXING,
    Phase.TESTING,
    Phase.REPRODUCING,
    Phase.SUBMITTING,
    Phase.LOCATING,
    Phase.UNDERSTANDING,
)


@dataclass(frozen=True, slots=True)
class Story:
    """A run with those of its fragments that are worth telling, in order."""

    trajectory: Trajectory
    fragments: tuple[Fragment, ...]

    @property
    def fingerprint(self) -> str:
        """The same while it tells the same, whatever came of the run."""
        run = self.trajectory
        told = [run.task, run.summary, *run.files]
        told += [text for one in self.fragments for text in _texts(one)]
        lengths = ",".join(str(len(text)) for text in told)
        data = f"{lengths}\n{''.join(told)}".encode("utf-8", "surrogatepass")
        return blake2b(data, digest_size=6).hexdigest()


@dataclass(frozen=True, slots=True)
class Retelling:
    """A run in a language model's words, beside its own summary and descriptions.

    *made_by* is the model and the version of its prompt, *told* the fingerprint of the story that
    it heard. *descriptions* are of fragments, by their ids. *summary* is empty where nothing that
    the model said was usable.
    """

    made_by: str
    told: str
    summary: str
    descriptions: Mapping[str, str] = field(default_factory=dict, hash=False)


def story_of(trajectory: Trajectory, fragments: Sequence[Fragment]) -> Story:
    """What is told of a run of these *fragments*."""
    told = sorted(fragments, key=_telling_first)[:FRAGMENTS_TOLD]
    return Story(trajectory, tuple(sorted(told, key=attrgetter("order", "id"))))


def _telling_first(fragment: Fragment) -> tuple[int, int, int]:
    kind, phase = TELLING.index(fragment.fragment_type), _TELLING_PHASES.index(fragment.phase)
    return kind, phase, fragment.order


def _texts(fragment: Fragment) -> tuple[str, ...]:
    return (fragment.id, fragment.description, *fragment.action_sequence)

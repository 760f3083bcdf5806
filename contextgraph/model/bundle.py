"""The bundle of a run with its vector, its stored parts, and vectors that know their space."""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from math import dist
from struct import unpack
from typing import TYPE_CHECKING, Self

from msgspec import Struct, field

from contextgraph.errors import SpaceMismatchError
from contextgraph.model.error import ErrorPattern, RemedyPattern
from contextgraph.model.facts import RunFacts
from contextgraph.model.methodology import (
    NO_USAGE,
    CausedError,
    Fragment,
    Methodology,
    Recovered,
    Usage,
)
from contextgraph.model.trajectory import (
    ChangeStatus,
    Outcome,
    OutcomeSource,
    RawTrajectory,
    Trajectory,
)
from contextgraph.text import TASK_CHARS

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]


# Float32 numbers give so many decimals.
DECIMALS = 5
# Cosines that are equal when rounded to so many decimals tie.
COSINE_DECIMALS = 4
# By float32 numbers a cosine is exact to a hundredth of the last of these.
UNDECIDED = 0.01
_COARSE = 127
# The maker of a space that is fitted on the memory: TF-IDF and a singular value decomposition.
FITTED = "tfidf"


class PlainWork(Struct):
    """Count of numbers of vectors that this process has handled in plain Python.

    Importing numpy takes 0.1 s, as long as a million of them; a command that asks once needs fewer.
    """

    done: int = 0
    most: int = 1_000_000

    def takes(self, numbers: int) -> bool:
        """Return True where *numbers* more are still handled in plain Python."""
        if self.done + numbers > self.most:
            return False
        self.done += numbers
        return True


PLAIN_WORK = PlainWork()


class Vector(Struct, frozen=True, omit_defaults=True):
    """A text as a point of unit length in *space*; *data* are its little-endian float32 numbers.

    A space is named ``maker/model@dimensions``, such as ``tfidf/3f2a90c1b7de@384``.
    """

    space: str
    data: bytes

    def __post_init__(self) -> None:
        if len(self.data) != 4 * dimensions_of(self.space):
            raise SpaceMismatchError(
                f"a vector of {len(self.data) // 4} numbers is not of space {self.space}"
            )

    @classmethod
    def of(cls, space: str, numbers: "Sequence[float] | Floats") -> Self:
        """*numbers* brought to unit length; raises `ValueError` where they have no direction."""
        import numpy as np

        array = np.asarray(numbers, dtype=np.float64)
        length = float(np.linalg.norm(array))
        if not 0 < length < float("inf"):
            raise ValueError(f"numbers of length {length} have no direction")
        return cls(space, (array / length).astype("<f4").tobytes())

    def coarse(self) -> Self:
        """Return it by whole numbers, which change its cosines by less than .01."""
        return self.of_coarse(self.space, self.coarse_data())

    def coarse_data(self) -> bytes:
        """Return its numbers as one byte each, the largest as 127 or -127."""
        import numpy as np

        numbers = self.numbers()
        scaled = np.rint(numbers * (_COARSE / np.abs(numbers).max()))
        data: bytes = scaled.astype("i1").tobytes()
        return data

    @classmethod
    def of_coarse(cls, space: str, data: bytes) -> Self:
        """Return the vector whose `coarse_data` are *data*."""
        import numpy as np

        return cls.of(space, np.frombuffer(data, "i1").astype(np.float64))

    def numbers(self) -> "Floats":
        """Its numbers, float32, shape (dimensions,), read-only."""
        numbers: Floats = matrix_of([self])[0]
        return numbers

    def plain(self) -> tuple[float, ...]:
        """Return its numbers."""
        return unpack(f"<{len(self.data) // 4}f", self.data)


def cosines(query: Vector, vectors: Sequence[Vector]) -> list[float]:
    """Return the cosine of *query* with each of *vectors*, -1 to 1.

    Raises `SpaceMismatchError` where one is of another space.
    """
    return [max(-1.0, min(1.0, round(value, DECIMALS))) for value in _cosines(query, vectors)]


def rounded_cosines(query: Vector, vectors: Sequence[Vector]) -> list[float]:
    """Return the cosine of *query* with each of *vectors*, of four decimals, as `cosines`."""
    found = zip(vectors, _cosines(query, vectors), strict=True)
    return [rounded_cosine(query, vector, cosine) for vector, cosine in found]


def _cosines(query: Vector, vectors: Sequence[Vector]) -> list[float]:
    for vector in vectors:
        if vector.space != query.space:
            raise SpaceMismatchError(
                f"a vector of space {vector.space} cannot be compared with one of {query.space}"
            )
    if not vectors:
        return []
    if PLAIN_WORK.takes(len(vectors) * len(query.data) // 4):
        return plain_cosines(query, vectors)
    similarities: list[float] = products(matrix_of(vectors), query).tolist()
    return similarities


def plain_cosines(query: Vector, vectors: Iterable[Vector]) -> list[float]:
    """Return the cosines of *query* with few *vectors* of its space, not rounded.

    Of points of unit length, by their distance: `math.dist` is the one loop of C in Python 3.11.
    """
    asked = query.plain()
    return [1 - dist(asked, vector.plain()) ** 2 / 2 for vector in vectors]


def is_undecided(cosine: float) -> bool:
    """Return whether float32 numbers leave it open how to round *cosine*."""
    scale: int = 10**COSINE_DECIMALS
    return abs(cosine * scale % 1 - 0.5) < UNDECIDED


def rounded_cosine(query: Vector, vector: Vector, cosine: float) -> float:
    """Return the *cosine* of *query* with *vector*, of four decimals, however it was computed.

    Back ends add in different orders: where that decides, it is computed again, by `plain_cosines`.
    """
    if is_undecided(cosine):
        (cosine,) = plain_cosines(query, [vector])
    return round(cosine, COSINE_DECIMALS)


def products(rows: "Floats", query: Vector) -> "Floats":
    """Return the scalar product of each of *rows* (shape (n, dimensions)) with *query*.

    Row by row in one thread: the threads of a matrix product wait for each other for as long as
    10 ms where other processes are busy, and the same row gives the same product among any others.
    """
    import numpy as np

    row_products: Floats = np.vecdot(rows, query.numbers())
    return row_products


def matrix_of(vectors: Sequence[Vector]) -> "Floats":
    """Return the numbers of *vectors* (one or more, of one space) as a contiguous matrix."""
    import numpy as np  # costs 0.1 s, and most commands compare no vectors

    joined = np.frombuffer(b"".join(vector.data for vector in vectors), dtype="<f4")
    return joined.reshape(len(vectors), -1)


def is_fitted(space: str) -> bool:
    """Return True if the space of this name was fitted on the memory itself."""
    return space.startswith(f"{FITTED}/")


@lru_cache(64)
def dimensions_of(space: str) -> int:
    """Return the length of vectors of *space*; raises `SpaceMismatchError` for another name."""
    maker, _, dimensions = space.rpartition("@")
    if not maker or not dimensions.isdecimal() or int(dimensions) == 0:
        raise SpaceMismatchError(f"{space!r} names no space; write maker/model@dimensions")
    return int(dimensions)


class Space(Struct, frozen=True, omit_defaults=True):
    """An embedding space of a memory, and how many of its *runs* it was fitted or calibrated on.

    *runs* is 0 while it was not. *similarity_threshold* is the cosine from which the
    tasks of two runs of one repository count as similar; None while that is not known.
    """

    name: str
    runs: int
    similarity_threshold: float | None = None


class Embeddings(Struct, frozen=True):
    """A vector for each of some texts, None for a text without words, and what they cost."""

    vectors: tuple[Vector | None, ...]
    usage: Usage = NO_USAGE


class EmbeddedRun(Struct, frozen=True, omit_defaults=True):
    """The *vector* of a run in *space*; None where its text has no word that the space knows."""

    space: str
    vector: Vector | None = None


class Near(Struct, frozen=True):
    """A run near the vector of a query, with the cosine of both vectors, to four decimals."""

    trajectory: Trajectory
    cosine: float


def node_text(node: Fragment | Methodology) -> str:
    """Return the text by which a fragment or a methodology is embedded."""
    if isinstance(node, Fragment):
        return " ".join((node.description, *node.action_sequence))
    return f"{node.situation} {node.strategy}"


def run_text(trajectory: Trajectory) -> str:
    """Return the text by which a run is embedded."""
    parts = (trajectory.task[:TASK_CHARS], trajectory.summary, *trajectory.files)
    return "\n".join(parts)


class SeenContext(Struct, frozen=True, omit_defaults=True):
    """A context whose text was found in a run, after step *step* (-1: before the first).

    *tried* are the patterns of what the run then did about the error of that step, until it was
    cleared, whether or not that was what cleared it. *cleared* are those of all that cleared an
    error after that step, with what is said at starts about folders.
    """

    context_id: str
    step: int = -1
    tried: tuple[RemedyPattern, ...] = ()
    cleared: tuple[RemedyPattern, ...] = ()


class Bundle(Struct, frozen=True, omit_defaults=True):
    """A trajectory with its fragments (in order, covering every step once), errors and recoveries.

    *facts* are what the run shows of its project and machine. *raw* is the masked run, stored so
    that a later version can read it again.
    *exposures* are the contexts whose texts were found in the run. *embedded* is None until its
    vector is computed. *met* says at how many steps an archived run met each error (by its id),
    also in fragments that were pruned since; else that is the number of steps in *caused*.
    *is_searched*: what was said in it is kept as passages. *owners_id* is the id that the run has
    where the owner supplies it; empty where that is its own.
    """

    trajectory: Trajectory
    fragments: tuple[Fragment, ...]
    errors: tuple[ErrorPattern, ...]
    caused: tuple[CausedError, ...]
    recovered: tuple[Recovered, ...]
    facts: RunFacts
    raw: RawTrajectory
    exposures: tuple[SeenContext, ...] = ()
    embedded: EmbeddedRun | None = None
    met: Mapping[str, int] | None = field(default=None)
    is_searched: bool = True
    owners_id: str = ""


class EmbeddedBundle(Struct, frozen=True):
    """A bundle with its vector, what that took, and the *failure* where there is none for one."""

    bundle: Bundle
    usage: Usage = NO_USAGE
    failure: str = ""


class LearnStatus(StrEnum):
    """Result of learning a run: new, known already, or known and now with its outcome."""

    CREATED = "created"
    UNCHANGED = "unchanged"
    UPDATED = "updated"


class LearnReceipt(Struct, frozen=True, omit_defaults=True):
    """Confirmation that a run is stored.

    *fragments* and *error_patterns* count its parts. *to_embed* is 1 while it has no vector, with
    the reason in *not_embedded* if embedding failed. *usage* is the cost of its vector; for runs
    that were embedded together, the first receipt has the sum. *outcome* is the one in the memory,
    from *outcome_source*; see `precedes`. *copied* counts steps that other sessions own and that
    were not learned again; if all were copied, the receipt is that of the owner. *corrected* are
    former ids of runs that gave up steps which this run owns; *continues* is the former id of this
    run, whose log has gone on.
    """

    trajectory_id: str
    status: LearnStatus
    fragments: int
    error_patterns: int
    to_embed: int
    outcome: Outcome = Outcome.UNKNOWN
    not_embedded: str = ""
    usage: Usage = NO_USAGE
    outcome_source: OutcomeSource = OutcomeSource.LOG
    copied: int = 0
    corrected: tuple[str, ...] = ()
    continues: str = ""


class JoinedName(Struct, frozen=True, omit_defaults=True):
    """The name by which a repository goes *now*, and the ids of *notes* that it came with."""

    now: str
    notes: tuple[str, ...] = ()


class Learned(Struct, frozen=True):
    """Summary of a learned run: id, outcome, and counts of its parts.

    *is_open*: neither its outcome nor how it ended is known, so that it may go on.
    """

    trajectory_id: str
    outcome: Outcome
    is_open: bool
    fragments: int
    error_patterns: int
    to_embed: int
    outcome_source: OutcomeSource = OutcomeSource.LOG
    change: ChangeStatus = ChangeStatus.UNKNOWN


class MemoryCounts(Struct, frozen=True):
    """Nodes and relations in the memory, by label and type.

    Trajectories also by outcome and by *changes*, *methodologies* by status; tombstones are among
    them.
    """

    nodes: Mapping[str, int]
    edges: Mapping[str, int]
    outcomes: Mapping[str, int]
    changes: Mapping[str, int]
    methodologies: Mapping[str, int]
    repositories: int


class MistakePattern(Struct, frozen=True):
    """A mistake often made in a situation: *count* runs, *cleared* of them cleared it."""

    description: str
    count: int
    cleared: int


class FailurePattern(Struct, frozen=True):
    """In which *condition* *what* goes wrong, in how many *runs*, and what prevented it elsewhere.

    *solved* is the share of these runs that were solved, *solved_without* that of the others; both
    are None where no outcome is known. *share_of_steps* is the part of the steps of failed runs
    that it took: those in loops, or all of the runs that ended with it; None for an error.
    *prevention* are sentences on what solved runs did. *explained* is how many more of the runs
    failed than of as many others.
    """

    condition: str
    what: str
    runs: int
    solved: float | None = None
    solved_without: float | None = None
    share_of_steps: float | None = None
    prevention: tuple[str, ...] = ()
    explained: float = 0.0

    @property
    def prevented(self) -> str:
        """The first sentence of *prevention*; empty where nothing is known."""
        return next(iter(self.prevention), "")


class Holdings(Struct, frozen=True):
    """The ids of the *runs* and *notes* of somebody or something."""

    runs: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class HealthCheck(Struct, frozen=True):
    """One thing that was looked at; *remedy* says what to do where it is not *ok*."""

    name: str
    ok: bool
    detail: str
    remedy: str = ""

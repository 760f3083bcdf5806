"""Vectors that know their space; vectors of different spaces are not comparable."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Self

from contextgraph.errors import SpaceMismatchError
from contextgraph.lazy import dataclass

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float32]

# Float32 numbers give so many decimals.
DECIMALS = 5


@dataclass(frozen=True, slots=True)
class Vector:
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

    def numbers(self) -> "Floats":
        """Its numbers, float32, shape (dimensions,), read-only."""
        numbers: Floats = matrix_of([self])[0]
        return numbers


def cosines(query: Vector, vectors: Sequence[Vector]) -> list[float]:
    """The cosine of *query* with each of *vectors*, -1 to 1.

    Raises `SpaceMismatchError` where one is of another space.
    """
    for vector in vectors:
        if vector.space != query.space:
            raise SpaceMismatchError(
                f"a vector of space {vector.space} cannot be compared with one of {query.space}"
            )
    if not vectors:
        return []
    similarities = products(matrix_of(vectors), query)
    return [max(-1.0, min(1.0, round(value, DECIMALS))) for value in similarities.tolist()]


def products(rows: "Floats", query: Vector) -> "Floats":
    """The scalar product of each of *rows* (shape (n, dimensions)) with *query*.

    Row by row in one thread: the threads of a matrix product wait for each other for as long as
    10 ms where other processes are busy, and the same row gives the same product among any others.
    """
    import numpy as np

    row_products: Floats = np.vecdot(rows, query.numbers())
    return row_products


def matrix_of(vectors: Sequence[Vector]) -> "Floats":
    """The numbers of *vectors* (at least one, of one space) as rows of a contiguous matrix."""
    import numpy as np  # costs 0.1 s, and most commands compare no vectors

    joined = np.frombuffer(b"".join(vector.data for vector in vectors), dtype="<f4")
    return joined.reshape(len(vectors), -1)


@lru_cache(64)
def dimensions_of(space: str) -> int:
    """How many numbers a vector of *space* has; raises `SpaceMismatchError` for another name."""
    maker, _, dimensions = space.rpartition("@")
    if not maker or not dimensions.isdecimal() or int(dimensions) == 0:
        raise SpaceMismatchError(f"{space!r} names no space; write maker/model@dimensions")
    return int(dimensions)

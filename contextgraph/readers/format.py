"""How one format is recognised and read."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory
from contextgraph.readers.place import Place


@dataclass(frozen=True, slots=True)
class Format:
    """How one format is recognised and read.

    *recognises* decides on a parsed record, *runs* gives the runs in it, with a ReadError for each
    part that cannot be read. In a format with *is_part* a run is spread over the lines of a file,
    or over files: *is_part* decides on one of them, and the record is the list of all.
    """

    name: str
    description: str
    keeps: str
    recognises: Callable[[object], bool]
    runs: Callable[[Any, Place], Iterable[RawTrajectory | ReadError]]
    is_part: Callable[[object], bool] | None = None
    experimental: bool = False

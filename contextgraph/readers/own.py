"""The project's own JSONL, one run per line: ``{"contextgraph": 1, ...}``; keeps every field."""

from collections.abc import Iterable
from typing import IO, cast

import orjson

from contextgraph.codec import decoded, encoded
from contextgraph.errors import ReadError
from contextgraph.model import Json, RawTrajectory
from contextgraph.readers.fields import Row, without_surrogates
from contextgraph.readers.format import Place

NAME = "contextgraph"
VERSION = 1

_MARK = "contextgraph"


def recognises(record: object) -> bool:
    """Whether *record* carries the mark of this format."""
    return isinstance(record, dict) and _MARK in record


def parse(record: Row, place: Place) -> RawTrajectory:
    """The run of one record, with the source that it was written with."""
    del place
    return from_record(record)


def write_jsonl(trajectories: Iterable[RawTrajectory], file: IO[bytes]) -> int:
    """Write one line per trajectory to a binary *file*; the number of lines written.

    Reading them gives equal trajectories. A lone surrogate, which UTF-8 cannot carry, becomes
    U+FFFD; an integer of more than 64 bits in the arguments of an action raises TypeError.
    """
    written = 0
    for trajectory in trajectories:
        record = to_record(trajectory)
        try:
            line = orjson.dumps(record)
        except orjson.JSONEncodeError:
            line = orjson.dumps(without_surrogates(record))
        file.write(line + b"\n")
        written += 1
    return written


def to_record(trajectory: RawTrajectory) -> dict[str, Json]:
    """*trajectory* as a JSON object; fields that have their default value are left out."""
    return {_MARK: VERSION, **cast(dict[str, Json], encoded(trajectory))}


def from_record(record: Row) -> RawTrajectory:
    """The trajectory that `to_record` wrote. Raises ValueError if it did not write *record*."""
    version = record[_MARK]
    if version != VERSION:
        raise ValueError(f"version {version!r} of the format is not known, only {VERSION}")
    fields = cast(Json, {name: value for name, value in record.items() if name != _MARK})
    try:
        return decoded(RawTrajectory, fields, strict=True)
    except ReadError as error:
        raise ValueError(error.reason) from error

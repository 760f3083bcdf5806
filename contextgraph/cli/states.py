"""States to query: from flags, from one JSON object, or from JSON lines."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import orjson
import typer

from contextgraph.codec import decoded
from contextgraph.errors import InvalidStateError, ReadError
from contextgraph.model import Json, Phase, State

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Question:
    """A state to query; *key* is returned with its answer."""

    state: State
    key: Json = None


def questions(source: str | None, batch: str | None, flags: dict[str, Any]) -> Iterator[Question]:
    """The states from flags, standard input or *batch*, whichever was given.

    Raises a usage error unless exactly one was; `InvalidStateError` for an invalid state.
    """
    if source not in (None, STDIN):
        raise typer.BadParameter(f"{source!r}: only - (standard input) can be given here")
    if sum(map(bool, (source, batch, flags))) != 1:
        raise typer.BadParameter(
            "describe one state by options such as --repo and --error, by - or by --batch"
        )
    if batch:
        return _from_batch(batch)
    if source:
        return iter([_question(sys.stdin.buffer.read(), "standard input")])
    return iter([Question(_from_flags(flags))])


def _questions(lines: Iterable[bytes], source: str) -> Iterator[Question]:
    """The states in JSON *lines*, read lazily; blank lines are skipped.

    Raises `InvalidStateError` with source and line.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield _question(line, f"{source}: line {number}")


def _question(text: bytes, place: str) -> Question:
    """The state in one JSON object; raises `InvalidStateError` with *place*."""
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidStateError(f"{place}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise InvalidStateError(f"{place}: a state is a JSON object")
    key = record.pop("key", None)
    return Question(_state(record, place), key)


def _from_flags(flags: dict[str, Any]) -> State:
    if flags.get("phase") not in (None, *Phase):
        raise typer.BadParameter(f"--phase {flags['phase']!r} is not one of {', '.join(Phase)}")
    if flags.get("current_error") == STDIN:
        flags["current_error"] = sys.stdin.buffer.read().decode(errors="replace")
    return _state(flags, "options")


def _from_batch(name: str) -> Iterator[Question]:
    if name == STDIN:
        return _questions(sys.stdin.buffer, "standard input")
    if not Path(name).exists() or Path(name).is_dir():  # a named pipe is fine
        raise typer.BadParameter(f"--batch {name}: no such file")
    return _from_file(Path(name))


def _from_file(path: Path) -> Iterator[Question]:
    with path.open("rb") as lines:
        yield from _questions(lines, str(path))


_KEYS = tuple(item.name for item in fields(State))


def _state(record: Mapping[str, Json], place: str) -> State:
    """The state with the values of *record*; null counts as absent.

    Raises `InvalidStateError` with *place* for an unknown key or a value of the wrong type.
    """
    given: dict[str, Json] = {key: value for key, value in record.items() if value is not None}
    if unknown := [key for key in given if key not in _KEYS]:
        known = ", ".join(_KEYS)
        raise InvalidStateError(f"{place}: unknown key {unknown[0]!r}; a state has: {known}")
    try:
        return decoded(State, given, strict=True)
    except ReadError as error:
        raise InvalidStateError(f"{place}: {error.reason}") from error

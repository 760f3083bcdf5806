"""Questions to the memory: from flags, from one JSON object, or from JSON lines."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import typer

from contextgraph.cli.states import state_from_record
from contextgraph.errors import InvalidStateError
from contextgraph.model import Json, Phase, State

STDIN = "-"


@dataclass(frozen=True, slots=True)
class Question:
    """A state to ask about; *key* is handed back with the answer."""

    state: State
    key: Json = None


def questions(source: str | None, batch: str | None, flags: dict[str, Any]) -> Iterator[Question]:
    """The questions from the one place that was named.

    Raises a usage error where none or several were; `InvalidStateError` for a state that is none.
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
        return iter([question_in(sys.stdin.buffer.read(), "standard input")])
    return iter([Question(_from_flags(flags))])


def questions_in(lines: Iterable[bytes], source: str) -> Iterator[Question]:
    """The questions of JSON *lines*, as they come; blank lines are skipped.

    Raises `InvalidStateError` naming source and line.
    """
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield question_in(line, f"{source}: line {number}")


def question_in(text: bytes, place: str) -> Question:
    """The question that one JSON object is; raises `InvalidStateError` naming *place*."""
    try:
        record = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise InvalidStateError(f"{place}: not JSON: {error}") from error
    if not isinstance(record, dict):
        raise InvalidStateError(f"{place}: a state is a JSON object")
    key = record.pop("key", None)
    return Question(state_from_record(record, place), key)


def _from_flags(flags: dict[str, Any]) -> State:
    if flags.get("phase") not in (None, *Phase):
        raise typer.BadParameter(f"--phase {flags['phase']!r} is none of {', '.join(Phase)}")
    if flags.get("current_error") == STDIN:
        flags["current_error"] = sys.stdin.buffer.read().decode(errors="replace")
    return state_from_record(flags, "options")


def _from_batch(name: str) -> Iterator[Question]:
    if name == STDIN:
        return questions_in(sys.stdin.buffer, "standard input")
    if not Path(name).exists() or Path(name).is_dir():  # a named pipe will do
        raise typer.BadParameter(f"--batch {name}: no such file")
    return _from_file(Path(name))


def _from_file(path: Path) -> Iterator[Question]:
    with path.open("rb") as lines:
        yield from questions_in(lines, str(path))

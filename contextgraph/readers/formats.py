"""The formats that are read, told apart by content."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from contextgraph.errors import ReadError
from contextgraph.model import RawTrajectory
from contextgraph.readers import mini_swe_agent, nebius, own, sweagent
from contextgraph.readers.fields import kind
from contextgraph.readers.outcomes import is_prediction, outcomes_in
from contextgraph.readers.place import Place


class Format(NamedTuple):
    """Whether a parsed record is of this format, and the run that it tells of."""

    recognises: Callable[[object], bool]
    parse: Callable[[Any, Place], RawTrajectory]


FORMATS: Mapping[str, Format] = {
    own.NAME: Format(own.recognises, own.parse),
    nebius.NAME: Format(nebius.recognises, nebius.parse),
    sweagent.NAME: Format(sweagent.recognises, sweagent.parse),
    mini_swe_agent.NAME: Format(mini_swe_agent.recognises, mini_swe_agent.parse),
}


class ForeignError(ReadError):
    """A file that does not claim to be a trajectory, such as a README or an evaluation report."""


class UnknownFormatError(ReadError):
    """A record in JSON or parquet that has none of the known formats."""


def trajectory_in(value: Any, place: Place) -> RawTrajectory:
    """The run that the record *value* tells of. Raises ReadError if it tells of none."""
    name = format_of(value)
    if name is None:
        raise _unknown(value, place)
    try:
        trajectory = FORMATS[name].parse(value, place)
    except ValueError as error:
        reason = f"malformed {name} record: {error}"
        raise ReadError(place.file, place.position, reason) from error
    if not trajectory.steps and name != own.NAME:
        ending = f" ({trajectory.exit_status})" if trajectory.exit_status else ""
        raise ReadError(place.file, place.position, f"no steps{ending}, nothing to learn")
    return trajectory


def format_of(value: Any) -> str | None:
    """The name of the format of a parsed record; None if it has none of the known ones."""
    return next((name for name, form in FORMATS.items() if form.recognises(value)), None)


def _unknown(value: Any, place: Place) -> ReadError:
    if outcomes_in(value) is not None:
        return ForeignError(place.file, place.position, "an evaluation report, not a trajectory")
    if is_prediction(value):
        return ForeignError(place.file, place.position, "predicted patches, not a trajectory")
    known = ", ".join(FORMATS)
    reason = f"unknown format: {_seen(value)}; known formats: {known}"
    return UnknownFormatError(place.file, place.position, reason)


def _seen(value: Any) -> str:
    if not isinstance(value, dict):
        return kind(value)
    names = [repr(name[:40]) for name in list(value)[:8]]
    return f"an object with {', '.join(names) or 'no keys'}"

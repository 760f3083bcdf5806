"""The formats that are read, recognised by content, and the wrapper rows around them."""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from contextgraph.errors import ReadError
from contextgraph.model import Outcome, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.readers import (
    chat,
    copilot_chat,
    exchange,
    harnesses,
    histories,
    marked_text,
    opencode,
    pi,
    spans,
    swe_agent,
)
from contextgraph.readers.format import (
    EmptyRunError,
    ForeignError,
    Format,
    NotUnderstoodError,
    Place,
    Row,
    kind,
    repo_named,
)
from contextgraph.readers.outcomes import is_prediction, outcome_in, outcomes_in
from contextgraph.system.intake import loads
from contextgraph.text import mask_secrets

ENTRY_POINTS = "contextgraph.formats"

_WRAPPING = tuple(
    "trajectory traj trajectories messages history events steps conversation conversations log "
    "logs run data record raw".split()
)
_SPLITS = frozenset({"train", "validation", "valid", "dev", "eval", "test"})  # of data sets
_DEEPEST = 3


FORMATS: Mapping[str, Format] = {
    form.name: form
    for module in (
        exchange,
        swe_agent,
        histories,
        opencode,
        pi,
        harnesses,
        copilot_chat,
        marked_text,
        spans,
        chat,
    )
    for form in module.FORMATS
}


class UnknownFormatError(NotUnderstoodError):
    """A record in JSON or parquet that has none of the known formats."""


@cache
def all_formats() -> Mapping[str, Format]:
    """Return the formats of this package, and those that other packages add as entry points."""
    foreign = [point.load() for point in entry_points(group=ENTRY_POINTS)]
    return {**FORMATS, **{form.name: form for form in foreign}}


def format_of(value: object) -> Format | None:
    """Return the format of a parsed record; None if it has none of the known ones."""
    return next((form for form in all_formats().values() if form.recognises(value)), None)


def format_of_part(value: object) -> Format | None:
    """Return the format in which *value* is one part of a run, such as a line of a session."""
    return next((f for f in all_formats().values() if f.is_part and f.is_part(value)), None)


def runs_in(value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    """Yield the runs in the record *value*, also inside wrapper rows; an error for what is none.

    A wrapper row holds a run as an object, a list or JSON text, up to three levels deep. The
    outcome, instance, model and patch that it gives are used where the log is silent.
    """
    if value in ({}, []):  # at once: files of millions are tried on people
        what = "object" if value == {} else "list"
        yield ForeignError(place.file, place.position, f"an empty {what}")
        return
    runs = list(_runs(value, place, 0))
    yield from runs or [_unknown(value, place)]


def _runs(value: Any, place: Place, depth: int) -> Iterator[RawTrajectory | ReadError]:
    """The runs in *value*; none where it has no known format."""
    if form := format_of(value):
        for run in _parsed(form, value, place):
            is_row = isinstance(value, dict) and form.name != exchange.OWN
            if isinstance(run, RawTrajectory) and is_row:
                yield _completed(run, value)
            else:
                yield run
    elif depth < _DEEPEST and isinstance(value, dict):
        rows = _rows_of_columns(value)
        for number, row in enumerate(rows, 1):
            yield from _runs(row, place if place.number else replace(place, number=number), depth)
        if not rows:
            yield from _wrapped(value, place, depth)
    elif depth and depth < _DEEPEST and isinstance(value, list):
        for item in value if value and isinstance(value[0], dict) else ():
            is_paged = isinstance(item, dict) and item.keys() >= {"row_idx", "row"}
            yield from _runs(item["row"] if is_paged else item, place, depth + 1)


def _parsed(form: Format, value: Any, place: Place) -> Iterator[RawTrajectory | ReadError]:
    try:
        for run in form.runs(value, place):
            if isinstance(run, RawTrajectory) and not run.steps and form.name != exchange.OWN:
                ending = f" ({run.exit_status})" if run.exit_status else ""
                reason = f"no steps{ending}, nothing to learn"
                yield EmptyRunError(place.file, place.position, reason)
            elif isinstance(run, RawTrajectory) and run.misnumbered:
                kind = f"malformed {form.name} record"
                yield ReadError(place.file, place.position, kind, run.misnumbered)
            else:
                yield run
    except ReadError as error:
        yield error
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        # All say that the record has another shape than its format, also in foreign formats.
        is_named = isinstance(error, ValueError)
        detail = str(error) if is_named else f"{type(error).__name__}: {error}"
        yield ReadError(place.file, place.position, f"malformed {form.name} record", detail)


def _wrapped(row: Row, place: Place, depth: int) -> Iterator[RawTrajectory | ReadError]:
    """The runs inside a row: of its first field that holds any, or of all if all do."""
    instance = row.get("instance_id")
    if isinstance(instance, str) and instance:
        place = replace(place, instance=instance)
    names = sorted(row, key=lambda name: _WRAPPING.index(name) if name in _WRAPPING else 99)
    broken: list[ReadError] = []
    for name in names:
        inner = _decoded(row[name], name, place)
        if isinstance(inner, ReadError):
            broken += [inner] if name in _WRAPPING else []
            continue
        at = replace(place, instance=name) if repo_named(name) else place
        runs = list(_runs(inner, at, depth + 1))
        for run in runs:
            yield _completed(run, row) if isinstance(run, RawTrajectory) else run
        if runs and not _is_mapping_of_runs(row):
            return
    yield from broken


def _rows_of_columns(table: Row) -> list[Row]:
    """The rows of a data set that is given by columns, of which one has runs; none for others."""
    columns = [column for column in table.values() if isinstance(column, list) and column]
    if not columns or len(columns) < len(table) or len(set(map(len, columns))) > 1:
        return []
    first = [table[name][0] for name in _WRAPPING if name in table]
    if not any(isinstance(run, list) or (isinstance(run, str) and run[:1] == "[") for run in first):
        return []
    return [dict(zip(table, cells, strict=True)) for cells in zip(*columns, strict=True)]


def _is_mapping_of_runs(row: Row) -> bool:
    """Return True if *row* has runs under each instance id or split, not one run with its facts."""
    return all(isinstance(value, dict | list) for value in row.values()) and all(
        repo_named(name) or name in _SPLITS for name in row
    )


def _decoded(value: object, name: str, place: Place) -> object:
    """*value*, or what it is as JSON text; the error for text that is broken JSON."""
    if not isinstance(value, str):
        return value
    if not value.lstrip().startswith(("[", "{")):
        return None
    try:
        return loads(value)
    except ValueError as error:
        return ReadError(place.file, place.position, f"{name}: invalid json: {error}")


def _completed(run: RawTrajectory, row: Row) -> RawTrajectory:
    """*run*, with what its *row* says where its own log is silent."""
    outcome = outcome_in(row) if run.outcome is Outcome.UNKNOWN else run.outcome
    patch = run.patch or _text(row, "model_patch", "git_patch", "generated_patch", "patch_text")
    return replace(
        run,
        outcome=outcome,
        patch=patch if patch and patch.strip() else None,
        model=run.model or _text(row, "model", "model_name", "model_name_or_path"),
        exit_status=run.exit_status or _text(row, "exit_status") or None,
        task=run.task or _text(row, "problem_statement", "task", "instruction"),
        repo=run.repo or _text(row, "repo"),
    )


def _text(row: Row, *names: str) -> str:
    values = (row.get(name) for name in names)
    return next((value for value in values if isinstance(value, str) and value), "")


def _unknown(value: Any, place: Place) -> ReadError:
    if outcomes_in(value) is not None:
        return ForeignError(place.file, place.position, "an evaluation report, not a trajectory")
    if is_prediction(value):
        return ForeignError(place.file, place.position, "predicted patches, not a trajectory")
    if reason := _side_file(value):
        return ForeignError(place.file, place.position, f"{reason}, not a trajectory")
    detail = f"{_seen(value)}; `contextgraph call formats` lists the known ones"
    return UnknownFormatError(place.file, place.position, "unknown format", detail)


# Files that agents write beside their trajectories, by keys that together are theirs only.
_SIDE_FILES = {
    "the state of a conversation": {"execution_status", "persistence_dir"},
    "a prompt history": {"session_id", "ts", "text"},
    "experiences abstracted from runs": {"old_experiences"},
    "an account of costs": {"total_cost", "total_tokens"},
}


def _side_file(value: object) -> str | None:
    if not isinstance(value, dict):
        return None
    return next((name for name, keys in _SIDE_FILES.items() if keys <= value.keys()), None)


def _seen(value: Any) -> str:
    if not isinstance(value, dict):
        return kind(value)
    names = [repr(mask_secrets(name[:1024])[:40]) for name in list(value)[:8]]
    return f"an object with {', '.join(names) or 'no keys'}"

"""Which runs solved their task, from the evaluation reports that lie beside them."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from contextgraph.model import Outcome
from contextgraph.readers.json_text import loads
from contextgraph.readers.place import file_stem

Outcomes: TypeAlias = Mapping[str, Outcome]

_HEAD = 1 << 12
_LARGEST = 1 << 26
_REPORT_WORDS = re.compile(
    rb'"(?:resolved|resolved_ids|completed_ids|total_instances|generated|no_generation'
    rb'|patch_exists|patch_is_None|patch_successfully_applied|tests_status)"\s*:'
)
# Lists of instance ids, as the evaluation harnesses of SWE-bench have named them over time.
_SOLVED_LISTS = ("resolved_ids", "resolved")
_FAILED_LISTS = (
    "unresolved_ids",
    "unresolved",
    "empty_patch_ids",
    "no_generation",
    "generated",
    "applied",
)
_PREDICTION = {"instance_id", "model_patch"}
_JSON_OBJECTS = re.compile(r'\s*\[?\s*\{\s*"')
_CARRIED = (
    ("resolved",),
    ("target",),
    ("is_resolved",),
    ("report", "resolved"),
    ("info", "resolved"),
    ("extra", "resolved"),
    ("metadata", "resolved"),
    ("test_result", "report", "resolved"),
    ("test_result", "result", "resolved"),
)


def outcomes_in(value: Any, names: Sequence[str] = ()) -> Outcomes | None:
    """The outcome of each instance in a parsed report; None if *value* is not a report.

    A report is a summary with lists of ids, an object of reports by instance id, or the report of
    a single instance, which is then about all of *names*. Evaluations that broke give no outcome.
    """
    if not isinstance(value, dict):
        return None
    if any(isinstance(value.get(name), list) for name in _SOLVED_LISTS):
        return _listed(value)
    if _is_single(value):
        return dict.fromkeys(names, _outcome(value))
    if value and all(_is_single(report) for report in value.values()):
        return {instance: _outcome(report) for instance, report in value.items()}
    return None


def outcome_in(row: Mapping[str, Any]) -> Outcome:
    """The outcome that the row of a data set carries beside its run; unknown if it has none.

    What a model thinks of its own run (``success`` of the OpenHands resolver) is no outcome.
    """
    for path in _CARRIED:
        value: Any = row
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value in (True, 1, "true", "True", "resolved", "solved"):
            return Outcome.SOLVED
        if value is not None and value in (False, 0, "false", "False", "unresolved", "failed"):
            return Outcome.FAILED
    return Outcome.UNKNOWN


def is_prediction(value: Any) -> bool:
    """Whether *value* is a patch handed in for evaluation, or an object of them by instance id."""
    if not isinstance(value, dict):
        return False
    if value.keys() >= _PREDICTION:
        return not _holds_objects(value)
    inner = [item for item in value.values() if isinstance(item, dict)]
    return bool(inner) and len(inner) == len(value) and all(i.keys() >= _PREDICTION for i in inner)


def outcomes_of(file: Path) -> Outcomes | None:
    """The outcomes in *file*; None if it is not a report. Raises OSError if it cannot be read."""
    with file.open("rb") as stream:
        head = stream.read(_HEAD)
        if not _REPORT_WORDS.search(head) or file.stat().st_size > _LARGEST:
            return None
        content = head + stream.read()
    try:
        return outcomes_in(loads(content), _instances_named(file))
    except ValueError:
        return None


def outcomes_by_folder(root: Path, files: Iterable[Path]) -> Mapping[Path, Outcomes]:
    """The outcomes that hold in each folder and below it, from the reports among *files*.

    A report is about the folder it lies in; where that has no runs (``results/results.json``
    beside ``trajs/``), about the nearest folder above that has some, up to *root*. Two reports
    that contradict each other are ignored.
    """
    data = [file for file in files if file_stem(file.name) != file.name]
    reports = {file: found for file in data if (found := _readable_outcomes(file)) is not None}
    with_runs = {folder for file in data if file not in reports for folder in file.parents}
    by_folder: dict[Path, list[Outcomes]] = {}
    for file, found in reports.items():
        by_folder.setdefault(_covered(file.parent, root, with_runs), []).append(found)
    return {folder: agreed(found) for folder, found in by_folder.items()}


def agreed(reports: Iterable[Outcomes]) -> Outcomes:
    """The outcomes of all *reports*, without the instances about which they disagree."""
    seen: dict[str, set[Outcome]] = {}
    for report in reports:
        for instance, outcome in report.items():
            seen.setdefault(instance, set()).add(outcome)
    return {instance: min(found) for instance, found in seen.items() if len(found) == 1}


def _listed(summary: Mapping[str, Any]) -> Outcomes:
    failed = dict.fromkeys(_ids(summary, _FAILED_LISTS), Outcome.FAILED)
    return failed | dict.fromkeys(_ids(summary, _SOLVED_LISTS), Outcome.SOLVED)


def _ids(summary: Mapping[str, Any], names: Iterable[str]) -> Iterator[str]:
    for name in names:
        listed = summary.get(name)
        if isinstance(listed, list):
            yield from (item for item in listed if isinstance(item, str))


def _is_single(report: Any) -> bool:
    is_judged = isinstance(report, dict) and isinstance(report.get("resolved"), bool)
    return is_judged and not _holds_objects(report)


def _holds_objects(value: Any) -> bool:
    """Whether a list of objects, or one as JSON text, is in *value*: no report has any, a run has.

    A row with an outcome and a trajectory of whatever shape is thus never taken for a report.
    """
    match value:
        case dict():
            return any(map(_holds_objects, value.values()))
        case list():
            return bool(value) and isinstance(value[0], dict | list)
        case str():
            return value.lstrip()[:1] in ("[", "{") and _JSON_OBJECTS.match(value) is not None
    return False


def _outcome(report: Mapping[str, Any]) -> Outcome:
    return Outcome.SOLVED if report["resolved"] else Outcome.FAILED


def _instances_named(file: Path) -> tuple[str, ...]:
    """The instances that a report may be about: its folder's name, its own without ".report"."""
    return (file.parent.name, file_stem(file.name).removesuffix(".report"))


def _readable_outcomes(file: Path) -> Outcomes | None:
    if file.suffix != ".json" or not file.is_file():
        return None
    try:
        return outcomes_of(file)
    except OSError:
        return None  # if it matters, reading it as a trajectory reports it


def _covered(folder: Path, root: Path, with_runs: set[Path]) -> Path:
    while folder != root and folder not in with_runs:
        folder = folder.parent
    return folder

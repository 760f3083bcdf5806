"""Outcomes of runs: from evaluation reports beside them, and from files that the user names."""

import csv
import io
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, TypeAlias

from msgspec import Struct

from contextgraph.errors import ReadError
from contextgraph.model import ChangeStatus, Outcome, OutcomeSource, RawTrajectory
from contextgraph.model.values import replace
from contextgraph.readers.format import file_stem
from contextgraph.readers.repository import GitFolder
from contextgraph.readers.sources import StrPath, sources
from contextgraph.system.intake import content, loads, opened
from contextgraph.text import regex
from contextgraph.trace import added_lines, change_of as edited, is_edit, net_changes, read_steps

Outcomes: TypeAlias = Mapping[str, Outcome]

_HEAD = 1 << 12
_LARGEST = 1 << 26
_REPORT_WORDS = regex(
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
_JSON_OBJECTS = regex(r'\s*\[?\s*\{\s*"')
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

OnConflict: TypeAlias = Callable[[str], None]

# Columns of a CSV file, by their names in lower case.
_INSTANCE_COLUMNS = ("instance_id", "instance", "task_id")
_OUTCOME_COLUMNS = ("outcome", "resolved", "solved", "target", "result", "status")
_RUN_COLUMNS = ("agent", "model", "model_name", "model_name_or_path", "run", "run_id")
_SOLVED = frozenset({"1", "1.0", "true", "yes", "resolved", "solved", "passed"})
_FAILED = frozenset({"0", "0.0", "false", "no", "unresolved", "failed"})
# The line with which the harness of SWE-bench ends run_instance.log.
_RESULT = regex(r"Result for (?P<instance>\S+): resolved: (?P<resolved>True|False)")


def outcomes_in(value: Any, names: Sequence[str] = ()) -> Outcomes | None:
    """Return the outcome of each instance in a parsed report; None if *value* is not a report.

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
    """Return the outcome that the row of a data set carries beside its run; unknown if it has none.

    What a model thinks of its own run (``success`` of the OpenHands resolver) is not an outcome.
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
    """Return True if *value* is a patch to evaluate, or an object of them by instance id."""
    if not isinstance(value, dict):
        return False
    if value.keys() >= _PREDICTION:
        return not _holds_objects(value)
    inner = [item for item in value.values() if isinstance(item, dict)]
    return bool(inner) and len(inner) == len(value) and all(i.keys() >= _PREDICTION for i in inner)


def outcomes_of(file: Path) -> Outcomes | None:
    """Return outcomes in *file*; None if it is not a report. Raises OSError."""
    with opened(file) as stream:
        head = stream.read(_HEAD)
        if not _REPORT_WORDS.search(head):
            return None
        text = head + stream.read(_LARGEST)
    try:
        return outcomes_in(loads(text), _instances_named(file)) if len(text) < _LARGEST else None
    except ValueError:
        return None


def outcomes_by_folder(root: Path, files: Iterable[Path]) -> Mapping[Path, Outcomes]:
    """Return the outcomes that hold in each folder and below it, from the reports among *files*.

    A report is about the folder it lies in; where that has no runs (``results/results.json``
    beside ``trajs/``), about the nearest folder above that has some, up to *root*. Two reports
    that contradict each other are ignored.
    """
    data = [file for file in files if file_stem(file.name) != file.name]
    reports = {
        file: outcomes for file in data if (outcomes := _readable_outcomes(file)) is not None
    }
    with_runs = {folder for file in data if file not in reports for folder in file.parents}
    by_folder: dict[Path, list[Outcomes]] = {}
    for file, outcomes in reports.items():
        by_folder.setdefault(_covered(file.parent, root, with_runs), []).append(outcomes)
    return {folder: agreed(group) for folder, group in by_folder.items()}


def agreed(reports: Iterable[Outcomes]) -> Outcomes:
    """Return the outcomes of all *reports*, without the instances about which they disagree."""
    seen: dict[str, set[Outcome]] = {}
    for report in reports:
        for instance, outcome in report.items():
            seen.setdefault(instance, set()).add(outcome)
    return {instance: min(outcomes) for instance, outcomes in seen.items() if len(outcomes) == 1}


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
    """Return True if *value* has a list of objects, maybe as JSON text: runs do, reports do not.

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
    if file.suffix != ".json":
        return None
    try:
        return outcomes_of(file)
    except OSError:
        return None  # if it matters, reading it as a trajectory reports it


def _covered(folder: Path, root: Path, with_runs: set[Path]) -> Path:
    while folder != root and folder not in with_runs:
        folder = folder.parent
    return folder


class InstanceOutcome(Struct, frozen=True):
    """Outcome of an instance by *file*, for the runs of *names* (empty: any).

    A name is that of an agent, a model or an evaluated run.
    """

    instance: str
    outcome: Outcome
    file: str
    names: tuple[str, ...] = ()


class GivenOutcomes(Struct, frozen=True):
    """The verdicts of the files that the user gave, by instance."""

    verdicts: Mapping[str, tuple[InstanceOutcome, ...]]

    def judged(
        self, run: RawTrajectory, instances: Iterable[str], on_conflict: OnConflict
    ) -> RawTrajectory:
        """Return *run*, with an id of *instances*, with the outcome of a verdict, if any.

        Where verdicts name agents, models or runs, those that name this one count. Verdicts that
        contradict each other count for nothing; that, and another outcome in the log, is passed to
        *on_conflict*.
        """
        known = next(
            (self.verdicts[instance] for instance in instances if instance in self.verdicts), ()
        )
        chosen = [verdict for verdict in known if verdict.names and _names(verdict, run)] or known
        outcomes = {verdict.outcome for verdict in chosen}
        if len(outcomes) > 1:
            stated = ", ".join(f"{verdict.outcome} in {verdict.file}" for verdict in chosen)
            on_conflict(f"{run.source}: outcome not set: {stated}")
            return run
        if not outcomes:
            return run
        (outcome,) = outcomes
        if run.outcome not in (Outcome.UNKNOWN, outcome):
            on_conflict(
                f"{run.source}: {outcome} as in {chosen[0].file}, although its log says"
                f" {run.outcome}"
            )
        return replace(run, outcome=outcome, outcome_source=OutcomeSource.REPORT)


def given_outcomes(path: StrPath) -> GivenOutcomes:
    """Return the outcomes in the file *path*, or in all files of that folder.

    Raises `ReadError` where there are none.
    """
    by_instance: dict[str, list[InstanceOutcome]] = {}
    for source in sources(path):
        if source.refused:
            continue
        for name in source.parts or (source.name,):
            for verdict in _verdicts(Path(name)):
                by_instance.setdefault(verdict.instance, []).append(verdict)
    if not by_instance:
        raise ReadError(str(path), "", "holds no evaluation report that gives outcomes")
    return GivenOutcomes({instance: tuple(verdicts) for instance, verdicts in by_instance.items()})


def _verdicts(file: Path) -> Iterable[InstanceOutcome]:
    try:
        if file.suffix == ".csv":
            return list(_in_table(file))
        if file.suffix == ".log":
            return list(_in_log(file))
        reported = outcomes_of(file)
        if reported is None:
            return list(_in_predictions(file))
    except OSError as error:
        raise ReadError(str(file), "", f"cannot be read: {error.strerror or error}") from error
    is_of_instance = file.name == "report.json" or set(reported) == {file.parent.name}
    names = _evaluated(file) if is_of_instance else (file_stem(file.name),)
    return [
        InstanceOutcome(instance, outcome, str(file), names)
        for instance, outcome in reported.items()
    ]


def _evaluated(file: Path) -> tuple[str, ...]:
    """The model in ``run_evaluation/RUN/MODEL/INSTANCE/report.json``."""
    model = file.parent.parent
    return (model.name,) if "run_evaluation" in file.parts else ()


def _in_table(file: Path) -> Iterator[InstanceOutcome]:
    with (
        opened(file) as binary,
        io.TextIOWrapper(binary, encoding="utf-8-sig", errors="replace", newline="") as stream,
    ):
        for row in csv.DictReader(stream):
            cells = {str(name).lower(): (cell or "") for name, cell in row.items() if name}
            instance = next(
                (cells[column] for column in _INSTANCE_COLUMNS if cells.get(column)), ""
            )
            outcome = _outcome_in_cell(
                next((cells[column] for column in _OUTCOME_COLUMNS if cells.get(column)), "")
            )
            if instance and outcome is not Outcome.UNKNOWN:
                names = tuple(cells[column] for column in _RUN_COLUMNS if cells.get(column))
                yield InstanceOutcome(instance, outcome, str(file), names)


def _outcome_in_cell(cell: str) -> Outcome:
    if cell.strip().lower() in _SOLVED:
        return Outcome.SOLVED
    return Outcome.FAILED if cell.strip().lower() in _FAILED else Outcome.UNKNOWN


def _in_log(file: Path) -> Iterator[InstanceOutcome]:
    with opened(file) as stream:
        for line in stream:
            if match := _RESULT.search(line.decode("utf-8", "replace")):
                solved = match["resolved"] == "True"
                outcome = Outcome.SOLVED if solved else Outcome.FAILED
                yield InstanceOutcome(match["instance"], outcome, str(file), _evaluated(file))


def _in_predictions(file: Path) -> Iterator[InstanceOutcome]:
    """A failure for each instance for which no patch was handed in; other patches say nothing."""
    if file.suffix not in (".json", ".jsonl"):
        return
    for row in _rows(file):
        if is_prediction(row) and not str(row["model_patch"] or "").strip():
            names = (str(row["model_name_or_path"]),) if row.get("model_name_or_path") else ()
            yield InstanceOutcome(str(row["instance_id"]), Outcome.FAILED, str(file), names)


def _rows(file: Path) -> "Iterator[dict[str, object]]":
    """The objects in a JSON or JSONL file, also those in a list or under instance ids."""
    whole = content(file, _LARGEST)
    for text in whole.splitlines() if file.suffix == ".jsonl" else [whole]:
        try:
            value = loads(text)
        except ValueError:
            continue  # no report
        if isinstance(value, dict) and "model_patch" not in value:
            value = list(value.values())
        rows = value if isinstance(value, list) else [value]
        yield from (row for row in rows if isinstance(row, dict) and row.keys() >= _PREDICTION)


def _names(verdict: InstanceOutcome, run: RawTrajectory) -> bool:
    """Return True if *verdict* names *run*, by agent and model or by a folder of its file."""
    known = {_folded(name) for name in (run.agent, run.model, *PurePath(run.source).parts) if name}
    named = map(_folded, verdict.names)
    return all(any(n == name or n.startswith(f"{name}.") for name in known) for n in named)


def _folded(name: str) -> str:
    """*name* in lower case, with the separator that the harness has in the names of folders."""
    return name.casefold().replace("/", "__")


# Shorter lines, such as brackets and `else:`, are in any file.
_DISTINCTIVE_CHARS = 8
# Lines read of a patch at most.
_MOST_LINES = 200

_CHANGES = ("diff-tree", "--stdin", "-p", "-r", "-M", "--root", "--no-commit-id", "--no-ext-diff")

_LinesByFile = Mapping[str, set[str]]


def change_status(raw: RawTrajectory) -> ChangeStatus:
    """Return True if the lines that *raw* added are still in the git repository that it worked in.

    They are held where at least half of those that later commits added are in the commit that is
    checked out now, else reverted. Unknown where the run gives no time or no folder that is in a
    repository on this machine, or where later commits hold less than half of what it added to
    the files that they change.
    """
    started_at = raw.started_at or next((s.timestamp for s in raw.steps if s.timestamp), None)
    folder = next((step.cwd for step in raw.steps if step.cwd), None)
    if started_at is None or folder is None or not PurePath(folder).is_absolute():
        return ChangeStatus.UNKNOWN
    added = _added_by(raw)
    files = [f":(top,glob)**/{name}" for name in added]
    repository = GitFolder.around(folder) if files else None
    head = repository.head() if repository else ""
    if not repository or not head:
        return ChangeStatus.UNKNOWN
    since = f"--since={started_at.isoformat()}"
    later = repository.output("rev-list", since, head, "--", *files)
    changes = repository.output(*_CHANGES, "--", *files, given=later) if later else ""
    committed = _by_name(added_lines(changes))
    touched = added.keys() & committed.keys()
    wanted = sum(len(added[name]) for name in touched)
    remaining = sorted({line for name in touched for line in added[name] & committed[name]})
    if not remaining or 2 * len(remaining) < wanted:
        return ChangeStatus.UNKNOWN
    decisive = remaining[:_MOST_LINES]
    is_held = 2 * len(_at_head(repository, head, decisive)) >= len(decisive)
    return ChangeStatus.HELD if is_held else ChangeStatus.REVERTED


def _added_by(raw: RawTrajectory) -> _LinesByFile:
    """The lines that *raw* added, by the names of files: of its patch, else of its edits."""
    if raw.patch:
        return _by_name(added_lines(raw.patch))
    steps = tuple(read_steps(raw))
    changes = [
        edited(steps, at) for at, step in enumerate(steps) if is_edit(step) and not step.error
    ]
    return _by_name((change.file, line) for change in net_changes(changes) for line in change.added)


def _by_name(added: Iterable[tuple[str, str]]) -> _LinesByFile:
    lines_by_name: defaultdict[str, set[str]] = defaultdict(set)
    for file, line in added:
        name, bare = PurePath(file).name, line.strip()
        if name and len(bare) >= _DISTINCTIVE_CHARS:
            lines_by_name[name].add(bare)
    return lines_by_name


def _at_head(repository: GitFolder, head: str, lines: Sequence[str]) -> set[str]:
    """Return the *lines* that some file of the commit *head* has."""
    patterns = [word for line in lines for word in ("-e", line)]
    output = repository.output("grep", "-h", "-I", "-F", *patterns, head)
    return {line.strip() for line in output.splitlines()} & {*lines}

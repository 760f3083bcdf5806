"""Outcomes that the user gives for runs: reports, predictions, logs of the harness, CSV."""

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path, PurePath
from typing import TypeAlias

from contextgraph.errors import ReadError
from contextgraph.model import Outcome, OutcomeSource, RawTrajectory
from contextgraph.readers.json_text import loads
from contextgraph.readers.outcomes import is_prediction, outcomes_of
from contextgraph.readers.place import file_stem
from contextgraph.readers.sources import StrPath, sources

OnConflict: TypeAlias = Callable[[str], None]

# Columns of a CSV file, by their names in lower case.
_INSTANCE_COLUMNS = ("instance_id", "instance", "task_id")
_OUTCOME_COLUMNS = ("outcome", "resolved", "solved", "target", "result", "status")
_RUN_COLUMNS = ("agent", "model", "model_name", "model_name_or_path", "run", "run_id")
_SOLVED = frozenset({"1", "1.0", "true", "yes", "resolved", "solved", "passed"})
_FAILED = frozenset({"0", "0.0", "false", "no", "unresolved", "failed"})
# The line with which the harness of SWE-bench ends run_instance.log.
_RESULT = re.compile(r"Result for (?P<instance>\S+): resolved: (?P<resolved>True|False)")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What *file* says about an instance: its *outcome*, for the runs of *names* (empty: any).

    A name is that of an agent, a model or an evaluated run.
    """

    instance: str
    outcome: Outcome
    file: str
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GivenOutcomes:
    """The verdicts of the files that the user gave, by instance."""

    verdicts: Mapping[str, tuple[Verdict, ...]]

    def judged(
        self, run: RawTrajectory, instances: Iterable[str], on_conflict: OnConflict
    ) -> RawTrajectory:
        """*run*, which has one of the ids *instances*, with the outcome of a verdict, if any.

        Where verdicts name agents, models or runs, those that name this one count. Verdicts that
        contradict each other count for nothing; that, and another outcome in the log, is passed to
        *on_conflict*.
        """
        known = next((self.verdicts[one] for one in instances if one in self.verdicts), ())
        chosen = [one for one in known if one.names and _names(one, run)] or known
        outcomes = {one.outcome for one in chosen}
        if len(outcomes) > 1:
            said = ", ".join(f"{one.outcome} in {one.file}" for one in chosen)
            on_conflict(f"{run.source}: outcome not set: {said}")
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
    """The outcomes in the file *path*, or in all files of that folder.

    Raises `ReadError` where there are none.
    """
    by_instance: dict[str, list[Verdict]] = {}
    for source in sources(path):
        if source.refused:
            continue
        for name in source.parts or (source.name,):
            for verdict in _verdicts(Path(name)):
                by_instance.setdefault(verdict.instance, []).append(verdict)
    if not by_instance:
        raise ReadError(str(path), "", "holds no evaluation report that gives outcomes")
    return GivenOutcomes({instance: tuple(found) for instance, found in by_instance.items()})


def _verdicts(file: Path) -> Iterable[Verdict]:
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
    return [Verdict(one, outcome, str(file), names) for one, outcome in reported.items()]


def _evaluated(file: Path) -> tuple[str, ...]:
    """The model in ``run_evaluation/RUN/MODEL/INSTANCE/report.json``."""
    model = file.parent.parent
    return (model.name,) if "run_evaluation" in file.parts else ()


def _in_table(file: Path) -> Iterator[Verdict]:
    with file.open(encoding="utf-8-sig", errors="replace", newline="") as stream:
        for row in csv.DictReader(stream):
            cells = {str(name).lower(): (cell or "") for name, cell in row.items() if name}
            instance = next((cells[one] for one in _INSTANCE_COLUMNS if cells.get(one)), "")
            outcome = _outcome_in_cell(
                next((cells[one] for one in _OUTCOME_COLUMNS if cells.get(one)), "")
            )
            if instance and outcome is not Outcome.UNKNOWN:
                names = tuple(cells[one] for one in _RUN_COLUMNS if cells.get(one))
                yield Verdict(instance, outcome, str(file), names)


def _outcome_in_cell(cell: str) -> Outcome:
    if cell.strip().lower() in _SOLVED:
        return Outcome.SOLVED
    return Outcome.FAILED if cell.strip().lower() in _FAILED else Outcome.UNKNOWN


def _in_log(file: Path) -> Iterator[Verdict]:
    with file.open(encoding="utf-8", errors="replace") as stream:
        for line in stream:
            if found := _RESULT.search(line):
                solved = found["resolved"] == "True"
                outcome = Outcome.SOLVED if solved else Outcome.FAILED
                yield Verdict(found["instance"], outcome, str(file), _evaluated(file))


def _in_predictions(file: Path) -> Iterator[Verdict]:
    """A failure for each instance for which no patch was handed in; other patches say nothing."""
    if file.suffix not in (".json", ".jsonl"):
        return
    for row in _rows(file):
        if is_prediction(row) and not str(row["model_patch"] or "").strip():
            names = (str(row["model_name_or_path"]),) if row.get("model_name_or_path") else ()
            yield Verdict(str(row["instance_id"]), Outcome.FAILED, str(file), names)


def _rows(file: Path) -> "Iterator[dict[str, object]]":
    """The objects in a JSON or JSONL file, also those in a list or under instance ids."""
    content = file.read_bytes()
    for text in content.splitlines() if file.suffix == ".jsonl" else [content]:
        try:
            value = loads(text)
        except ValueError:
            continue  # no report
        if isinstance(value, dict) and "model_patch" not in value:
            value = list(value.values())
        yield from (one for one in (value if isinstance(value, list) else [value]) if _is_row(one))


def _is_row(value: object) -> bool:
    return isinstance(value, dict) and value.keys() >= {"instance_id", "model_patch"}


def _names(verdict: Verdict, run: RawTrajectory) -> bool:
    """Whether *verdict* names *run*: by agent and model, or by a folder that it was read from."""
    known = {_folded(one) for one in (run.agent, run.model, *PurePath(run.source).parts) if one}
    named = map(_folded, verdict.names)
    return all(any(n == one or n.startswith(f"{one}.") for one in known) for n in named)


def _folded(name: str) -> str:
    """*name* in lower case, with the separator that the harness has in the names of folders."""
    return name.casefold().replace("/", "__")

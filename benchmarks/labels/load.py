"""Label sets beside the runs that they are about, with one way to name runs and steps."""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from contextgraph.model import RawTrajectory, Step
from contextgraph.readers import read
from contextgraph.trace import Trace, trace

LABELS = Path(__file__).parent
SETS = {
    "first": LABELS / "first",
    "second": LABELS / "second",
    "agents-dev": LABELS / "agents" / "dev",
    "agents-held": LABELS / "agents" / "held",
    "agents-fresh-dev": LABELS / "agents" / "fresh_dev",
    "agents-fresh-held": LABELS / "agents" / "fresh_held",
    "agents-later-dev": LABELS / "agents" / "later_dev",
    "agents-later-held": LABELS / "agents" / "later_held",
    "agents-last-dev": LABELS / "agents" / "last_dev",
    "agents-last-held": LABELS / "agents" / "last_held",
}
_ADJUDICATED = LABELS / "agents" / "adjudicated.jsonl"
# Tools by which an agent thinks or ends its run; the labels of agents do not count them as steps.
_NOT_STEPS = frozenset({"think", "finish"})
_SESSION = re.compile(r'"sessionId":\s*"([^"]+)"')
_STEP_KEYS = ("step", "error_step", "recovered_step", "start_step", "end_step")

Label = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LabelledRun:
    """A run as it was read, and what the project found in it."""

    raw: RawTrajectory
    trace: Trace


@dataclass(frozen=True, slots=True)
class LabelSet:
    """Labels by kind (steps, phases, tasks, loops, recoveries), and the runs by name.

    Each label names its run in ``run``; its steps are counted as in the run that was read.
    """

    labels: Mapping[str, Sequence[Label]]
    runs: Mapping[str, LabelledRun]

    def agents(self) -> list[str]:
        """The agents that the labels name, none for sets of one agent."""
        return sorted({x["agent"] for kind in self.labels.values() for x in kind if "agent" in x})

    def of_agent(self, agent: str) -> "LabelSet":
        """The part about *agent*."""
        chosen = {k: [x for x in v if x["agent"] == agent] for k, v in self.labels.items()}
        return LabelSet(chosen, self.runs)


def load(
    name: str, paths: Iterable[Path], unread: list[str], *, adjudicated: bool = False
) -> LabelSet:
    """The set *name* with its runs from *paths*; what cannot be read is added to *unread*.

    *adjudicated*: labels that contradict the conventions are replaced, see agents/README.md.

    Raises `ValueError` naming labelled runs that are not in *paths*.
    """
    labels = {file.stem: list(read_labels(file)) for file in sorted(SETS[name].glob("*.jsonl"))}
    if adjudicated:
        _adjudicate(name, labels)
    by_agent = name.startswith("agents-")
    wanted = {label["run"] for kind in labels.values() for label in kind}
    runs = {}
    for raw in read(*paths, on_error=lambda error: unread.append(str(error))):
        run = _run_name(raw) if by_agent else raw.instance_id
        if run in wanted:
            runs[run] = LabelledRun(raw, trace(raw))
    if missing := wanted - runs.keys():
        raise ValueError(f"{len(missing)} labelled runs are not in the data: {sorted(missing)[:3]}")
    if by_agent:
        steps = {run: _counted_steps(labelled.raw.steps) for run, labelled in runs.items()}
        labels = {k: [_moved(x, steps[x["run"]]) for x in v] for k, v in labels.items()}
    return LabelSet(labels, runs)


def read_labels(file: Path) -> Iterator[Label]:
    """The labels in *file*, each with the name of its run."""
    for line in file.read_text().splitlines():
        label = json.loads(line)
        label.setdefault("run", label["instance_id"])
        if "phases" in label:
            label["phases"] = dict(enumerate(label["phases"]))
        yield label


def _adjudicate(name: str, labels: Mapping[str, Sequence[Label]]) -> None:
    for ruling in read_labels(_ADJUDICATED):
        for label in labels[ruling["kind"]] if ruling["set"] == name else ():
            if all(label.get(key) == ruling.get(key) for key in ("run", "error_step")):
                label.update(ruling)


def _run_name(raw: RawTrajectory) -> str:
    """The name of a run in the labels of agents, see `labels/agents/README.md`."""
    if raw.source_format == "claude-code":
        return _session_of(raw.source)
    if raw.source_format == "codex-cli":
        return raw.instance_id
    if match := re.fullmatch(r"(?P<file>.+):(?P<line>\d+)", raw.source):
        if raw.source_format == "mini-swe-agent":
            return f"{_wrapper_runs(match['file'])[int(match['line']) - 1]}/{raw.instance_id}"
        return f"{Path(match['file']).name}#{raw.instance_id}"
    return Path(raw.source).name


def _session_of(file: str) -> str:
    match = _SESSION.search(Path(file).read_text("utf-8", "replace"))
    return match[1] if match else ""


@lru_cache(8)
def _wrapper_runs(file: str) -> list[str]:
    """The field ``run`` of each line of *file*."""
    with gzip.open(file, "rb") if file.endswith(".gz") else Path(file).open("rb") as lines:
        return [json.loads(line).get("run", "") for line in lines]


def _counted_steps(steps: Sequence[Step]) -> list[int]:
    """The positions of the steps that the labels count."""
    return [
        number
        for number, step in enumerate(steps)
        if step.action.text and step.action.tool not in _NOT_STEPS
    ]


def _moved(label: Label, steps: Sequence[int]) -> Label:
    """*label* with the positions of steps in the run that was read."""
    moved = dict(label)
    moved.update({k: steps[label[k]] for k in _STEP_KEYS if label.get(k) is not None})
    if "spans" in label:
        moved["spans"] = [_moved(span, steps) for span in label["spans"]]
    if "phases" in label:
        moved["phases"] = {steps[k]: phase for k, phase in label["phases"].items()}
    return moved

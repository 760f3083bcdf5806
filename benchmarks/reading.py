"""How well runs are read, by labels: ``python -m benchmarks.reading runs.jsonl.gz``."""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from random import Random
from typing import Any

from contextgraph.model import ErrorSignature, Phase, RawTrajectory
from contextgraph.readers import read
from contextgraph.trace import ActionKind, Recovery, StepTrace, Trace, trace

LABELS = Path(__file__).parent / "labels"
# The usual way to look for errors, as the figure to beat.
NAIVE = re.compile("Error|Exception|failed")
RESAMPLED = 500
BY_KIND = {
    ActionKind.LIST: Phase.UNDERSTANDING,
    ActionKind.SEARCH: Phase.LOCATING,
    ActionKind.VIEW: Phase.LOCATING,
    ActionKind.CREATE: Phase.REPRODUCING,
    ActionKind.EDIT: Phase.FIXING,
    ActionKind.RUN: Phase.TESTING,
    ActionKind.TEST: Phase.TESTING,
    ActionKind.DELETE: Phase.SUBMITTING,
    ActionKind.SUBMIT: Phase.SUBMITTING,
}

Label = dict[str, Any]


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("runs", type=Path, help="the runs that the labels speak of")
    parser.add_argument("--labels", choices=("first", "second"), default="first", help="which set")
    given = parser.parse_args()
    labels = _load(LABELS / given.labels)
    found = _labelled(given.runs, labels)
    traces = {instance: trace(raw) for instance, raw in found.items()}
    for stratum in ("random", "hard"):
        chosen = [label for label in labels["steps"] if label["stratum"] == stratum]
        if chosen:
            _steps(stratum, chosen, found, traces)
    _phases(labels["phases"], traces)
    _tasks(labels["tasks"], traces)
    _loops(labels["loops"], traces)
    _recoveries(labels["recoveries"], traces)


def _load(folder: Path) -> dict[str, list[Label]]:
    return {
        file.stem: [json.loads(line) for line in file.read_text().splitlines()]
        for file in sorted(folder.glob("*.jsonl"))
    }


def _labelled(path: Path, labels: dict[str, list[Label]]) -> dict[str, RawTrajectory]:
    wanted = {label["instance_id"] for kind in labels.values() for label in kind}
    return {raw.instance_id: raw for raw in read(path) if raw.instance_id in wanted}


def _steps(
    stratum: str,
    labels: Sequence[Label],
    runs: dict[str, RawTrajectory],
    traces: dict[str, Trace],
) -> None:
    def ours(label: Label) -> ErrorSignature | None:
        return traces[label["instance_id"]].steps[label["step"]].error

    def naive(label: Label) -> bool:
        step = runs[label["instance_id"]].steps[label["step"]]
        return bool(NAIVE.search(step.observation or ""))

    low, high = _interval(labels, lambda label: ours(label) is not None)
    print(
        f"{stratum} steps ({len(labels)}): is_error F1 {_f1(labels, lambda x: bool(ours(x))):.3f} "
        f"[{low:.3f}, {high:.3f}]; a regex {_f1(labels, naive):.3f}"
    )
    pairs = [(label, error) for label in labels if label["is_error"] and (error := ours(label))]
    for name in ("family", "error_type", "location"):
        told = [(label, error) for label, error in pairs if name in label]
        if told:
            right = sum(getattr(error, name) == label[name] for label, error in told)
            print(f"  of {len(told)} errors found, {name} exact: {right / len(told):.3f}")


def _f1(labels: Sequence[Label], verdict: Callable[[Label], bool]) -> float:
    pairs = [(bool(label["is_error"]), verdict(label)) for label in labels]
    hits = sum(truth and said for truth, said in pairs)
    return 2 * hits / max(1, sum(truth + said for truth, said in pairs))


def _interval(labels: Sequence[Label], verdict: Callable[[Label], bool]) -> tuple[float, float]:
    """The 95 % bootstrap interval of F1."""
    random = Random(0)
    resampled = (random.choices(labels, k=len(labels)) for _ in range(RESAMPLED))
    scores = sorted(_f1(sample, verdict) for sample in resampled)
    return scores[RESAMPLED // 40], scores[-RESAMPLED // 40]


def _phases(labels: Sequence[Label], traces: dict[str, Trace]) -> None:
    right, total, shares = _agreement(labels, traces, lambda step: step.phase)
    naive, _, _ = _agreement(labels, traces, lambda step: BY_KIND.get(step.reading.kind))
    by_run = sum(shares) / len(shares)
    print(
        f"phases ({total}): by step {right / total:.3f}, by run {by_run:.3f}; "
        f"by the kind of action alone {naive / total:.3f}"
    )


def _agreement(
    labels: Sequence[Label], traces: dict[str, Trace], told: Callable[[StepTrace], Phase | None]
) -> tuple[int, int, list[float]]:
    shares, right, total = [], 0, 0
    for label in labels:
        steps = traces[label["instance_id"]].steps
        same = [told(step) == phase for step, phase in zip(steps, label["phases"], strict=False)]
        shares.append(sum(same) / len(same))
        right, total = right + sum(same), total + len(same)
    return right, total, shares


def _tasks(labels: Sequence[Label], traces: dict[str, Trace]) -> None:
    clear = [label for label in labels if not label["ambiguous"]]
    for name, chosen in (("all", labels), ("unambiguous", clear)):
        right = sum(traces[x["instance_id"]].task_type == x["task_type"] for x in chosen)
        always = sum(x["task_type"] == "bug_fix" for x in chosen)
        print(
            f"task types, {name} ({len(chosen)}): {right / len(chosen):.3f}; "
            f"always bug_fix {always / len(chosen):.3f}"
        )


def _loops(labels: Sequence[Label], traces: dict[str, Trace]) -> None:
    as_steps = [{**label, "is_error": label["has_loop"]} for label in labels]
    score = _f1(as_steps, lambda label: bool(traces[label["instance_id"]].loops))
    naive = _f1(as_steps, lambda label: bool(_rows(traces[label["instance_id"]])))
    spans = [(label["instance_id"], span) for label in labels for span in label["spans"]]
    met = sum(any(_covers(loop.start, loop.end, s) for loop in traces[r].loops) for r, s in spans)
    rows = sum(any(_covers(*row, span) for row in _rows(traces[run])) for run, span in spans)
    print(
        f"loops ({len(labels)}): by run F1 {score:.3f}, spans found {met / len(spans):.3f}; "
        f"three equal actions in a row {naive:.3f}, {rows / len(spans):.3f}"
    )


def _rows(read: Trace) -> list[tuple[int, int]]:
    """Where an agent sent one action three times or more in a row."""
    groups = [list(same) for _, same in groupby(read.steps, key=lambda s: s.step.action.text)]
    return [(same[0].index, same[-1].index) for same in groups if len(same) >= 3]


def _covers(start: int, end: int, span: Label) -> bool:
    """Overlap of at least half of what both cover together."""
    shared = min(end, span["end_step"]) - max(start, span["start_step"]) + 1
    covered = max(end, span["end_step"]) - min(start, span["start_step"]) + 1
    return bool(2 * shared >= covered)


def _recoveries(given: Sequence[Label], traces: dict[str, Trace]) -> None:
    labels = [label for label in given if label["recovered_step"] is not None]
    found = [(label, _recovery(label, traces[label["instance_id"]])) for label in labels]
    first = sum(one is not None and _starts(one, label) for label, one in found)
    met = [(label["workaround"], one.workaround) for label, one in found if one is not None]
    naive = sum(_next_success(label, traces[label["instance_id"]]) for label in labels)
    print(
        f"recoveries ({len(labels)}), both ends within 2 steps: {first / len(labels):.3f}; "
        f"the next step without an error {naive / len(labels):.3f}"
    )
    print(f"  the start at any showing of the error: {len(met) / len(labels):.3f}")
    both, said, true = (sum(pair) for pair in zip(*((t and o, o, t) for t, o in met), strict=True))
    print(f"  workarounds: {true} labelled, {said} told, {both} of both")
    never = [label for label in given if label["recovered_step"] is None]
    claimed = sum(
        label["error_step"] in {one.error_step for one in traces[label["instance_id"]].recoveries}
        for label in never
    )
    if never:
        print(f"  errors that were never cleared: {len(never)}; taken for cleared {claimed}")


def _recovery(label: Label, read: Trace) -> Recovery | None:
    """The recovery that *label* means; readers differ on which of several showings starts it."""
    near = [one for one in read.recoveries if abs(one.cleared_step - label["recovered_step"]) <= 2]
    exact = (one for one in near if _starts(one, label))
    series = (
        one
        for one in near
        if one.error.error_type == label["error_type"]
        and one.error_step <= label["error_step"] < one.cleared_step
    )
    return next(exact, next(series, None))


def _next_success(label: Label, read: Trace) -> bool:
    later = (step for step in read.steps[label["error_step"] + 1 :] if step.succeeded)
    found = next(later, None)
    return found is not None and abs(found.index - label["recovered_step"]) <= 2


def _starts(one: Recovery, label: Label) -> bool:
    return bool(abs(one.error_step - label["error_step"]) <= 2)


if __name__ == "__main__":
    main()

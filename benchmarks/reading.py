"""How well runs are read, by labels: ``python -m benchmarks.reading runs.jsonl.gz``."""

import argparse
import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

from contextgraph.model import ErrorSignature, LoopInfo, RawTrajectory
from contextgraph.readers import read
from contextgraph.trace import Recovery, Trace, trace

LABELS = Path(__file__).parent / "labels"
# The usual way to look for errors, as the figure to beat.
NAIVE = re.compile("Error|Exception|failed")
RESAMPLED = 500

Label = dict[str, Any]


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.reading", description=__doc__)
    parser.add_argument("runs", type=Path, help="the runs that the labels speak of")
    found = _labelled(parser.parse_args().runs)
    traces = {instance: trace(raw) for instance, raw in found.items()}
    for stratum in ("random", "hard"):
        _steps(stratum, found, traces)
    _phases(traces)
    _tasks(traces)
    _loops(traces)
    _recoveries(traces)


def _labelled(path: Path) -> dict[str, RawTrajectory]:
    wanted = {label["instance_id"] for file in LABELS.glob("*.jsonl") for label in _load(file.stem)}
    return {raw.instance_id: raw for raw in read(path) if raw.instance_id in wanted}


def _load(name: str) -> list[Label]:
    return [json.loads(line) for line in (LABELS / f"{name}.jsonl").read_text().splitlines()]


def _steps(stratum: str, runs: dict[str, RawTrajectory], traces: dict[str, Trace]) -> None:
    labels = [label for label in _load("steps") if label["stratum"] == stratum]

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
        right = sum(getattr(error, name) == label[name] for label, error in pairs)
        print(f"  of {len(pairs)} errors found, {name} exact: {right / len(pairs):.3f}")


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


def _phases(traces: dict[str, Trace]) -> None:
    shares, right, total = [], 0, 0
    for label in _load("phases"):
        steps = traces[label["instance_id"]].steps
        same = [step.phase == phase for step, phase in zip(steps, label["phases"], strict=False)]
        shares.append(sum(same) / len(same))
        right, total = right + sum(same), total + len(same)
    print(f"phases ({total}): by step {right / total:.3f}, by run {sum(shares) / len(shares):.3f}")


def _tasks(traces: dict[str, Trace]) -> None:
    for name, labels in (
        ("all", _load("tasks")),
        ("unambiguous", [label for label in _load("tasks") if not label["ambiguous"]]),
    ):
        right = sum(traces[x["instance_id"]].task_type == x["task_type"] for x in labels)
        print(f"task types, {name} ({len(labels)}): {right / len(labels):.3f}")


def _loops(traces: dict[str, Trace]) -> None:
    labels = _load("loops")
    as_steps = [{**label, "is_error": label["has_loop"]} for label in labels]
    score = _f1(as_steps, lambda label: bool(traces[label["instance_id"]].loops))
    spans = [(label["instance_id"], span) for label in labels for span in label["spans"]]
    met = sum(any(_covers(loop, span) for loop in traces[run].loops) for run, span in spans)
    print(f"loops ({len(labels)}): by run F1 {score:.3f}, spans found {met / len(spans):.3f}")


def _covers(loop: LoopInfo, span: Label) -> bool:
    """Overlap of at least half of what both cover together."""
    shared = min(loop.end, span["end_step"]) - max(loop.start, span["start_step"]) + 1
    covered = max(loop.end, span["end_step"]) - min(loop.start, span["start_step"]) + 1
    return bool(2 * shared >= covered)


def _recoveries(traces: dict[str, Trace]) -> None:
    labels = _load("recoveries")
    found = [(label, _recovery(label, traces[label["instance_id"]])) for label in labels]
    first = sum(one is not None and _starts(one, label) for label, one in found)
    met = [(label["workaround"], one.workaround) for label, one in found if one is not None]
    print(f"recoveries ({len(labels)}), both ends within 2 steps: {first / len(labels):.3f}")
    print(f"  the start at any showing of the error: {len(met) / len(labels):.3f}")
    both, said, true = (sum(pair) for pair in zip(*((t and o, o, t) for t, o in met), strict=True))
    print(f"  workarounds: {true} labelled, {said} told, {both} of both")


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


def _starts(one: Recovery, label: Label) -> bool:
    return bool(abs(one.error_step - label["error_step"]) <= 2)


if __name__ == "__main__":
    main()

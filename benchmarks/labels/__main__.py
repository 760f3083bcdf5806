"""How well runs are read, by labels: ``python -m benchmarks.labels --data runs.jsonl.gz``.

The sets of agents are printed for each agent, and for all of them together.
"""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from itertools import groupby
from pathlib import Path
from random import Random

from benchmarks.labels.load import SETS, Label, LabelSet, load
from contextgraph.model import ActionKind, ErrorSignature, Family, Phase
from contextgraph.trace import Recovery, StepTrace, Trace

# The usual way to look for errors, as the figure to beat.
REGEX = re.compile("Error|Exception|failed")
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


def main() -> None:
    """Print every figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.labels", description=__doc__)
    parser.add_argument("--data", type=Path, nargs="+", required=True, help="the labelled runs")
    parser.add_argument("--labels", choices=SETS, default="first", help="which set (first)")
    parser.add_argument(
        "--adjudicated", action="store_true", help="with the rulings on labels against conventions"
    )
    options = parser.parse_args()
    unread: list[str] = []
    try:
        labelled = load(options.labels, options.data, unread, adjudicated=options.adjudicated)
    except ValueError as error:
        sys.exit(f"{error}; {len(unread)} records could not be read")
    for agent in labelled.agents():
        print(f"{agent}:")
        _print_scores(labelled.of_agent(agent))
    if labelled.agents():
        print("all agents:")
    _print_scores(labelled)


def _print_scores(labelled: LabelSet) -> None:
    for stratum in ("random", "hard"):
        chosen = [x for x in labelled.labels.get("steps", ()) if x["stratum"] == stratum]
        _steps(stratum, chosen, labelled)
    traces = {name: run.trace for name, run in labelled.runs.items()}
    for kind, print_score in (
        ("phases", _phases),
        ("tasks", _tasks),
        ("loops", _loops),
        ("recoveries", _recoveries),
    ):
        if labels := labelled.labels.get(kind):
            print_score(labels, traces)


def _steps(stratum: str, labels: Sequence[Label], labelled: LabelSet) -> None:
    if not labels:
        return

    def error_of(label: Label) -> ErrorSignature | None:
        return labelled.runs[label["run"]].trace.steps[label["step"]].error

    def by_regex(label: Label) -> bool:
        step = labelled.runs[label["run"]].raw.steps[label["step"]]
        return bool(REGEX.search(step.observation or ""))

    score = _f1(labels, lambda label: bool(error_of(label)))
    low, high = _interval(labels, lambda sample: _f1(sample, lambda x: bool(error_of(x))))
    errors = sum(bool(label["is_error"]) for label in labels)
    if not errors:
        reported = sum(bool(error_of(label)) for label in labels)
        print(f"{stratum} steps ({len(labels)}, no errors): {reported} reported as errors")
        return
    print(
        f"{stratum} steps ({len(labels)}, {errors} errors): is_error F1 {score:.3f} "
        f"[{low:.3f}, {high:.3f}]; regex {_f1(labels, by_regex):.3f}"
    )
    pairs = [(label, error) for label in labels if label["is_error"] and (error := error_of(label))]
    for name in ("family", "error_type", "location"):
        known = [(label, error) for label, error in pairs if name in label]
        if known:
            right = sum(_value(error, name) == (label[name] or "") for label, error in known)
            print(f"  of {len(known)} errors found, {name} exact: {right / len(known):.3f}")


def _value(error: ErrorSignature, name: str) -> object:
    """A field of *error* by the conventions of the labels, which have one family of exceptions."""
    if name == "family" and error.family is Family.RUNTIME_EXCEPTION:
        return Family.PYTHON_EXCEPTION
    return getattr(error, name) or ""


def _f1(labels: Sequence[Label], predicted: Callable[[Label], bool]) -> float:
    pairs = [(bool(label["is_error"]), predicted(label)) for label in labels]
    hits = sum(truth and positive for truth, positive in pairs)
    return 2 * hits / max(1, sum(truth + positive for truth, positive in pairs))


def _interval(
    labels: Sequence[Label], score: Callable[[Sequence[Label]], float]
) -> tuple[float, float]:
    """The 95 % bootstrap interval of *score*."""
    random = Random(0)
    resampled = (random.choices(labels, k=len(labels)) for _ in range(RESAMPLED))
    scores = sorted(map(score, resampled))
    return scores[RESAMPLED // 40], scores[-RESAMPLED // 40]


def _phases(labels: Sequence[Label], traces: dict[str, Trace]) -> None:
    right, total, shares = _agreement(labels, traces, lambda step: step.phase)
    naive, _, _ = _agreement(labels, traces, lambda step: BY_KIND.get(step.reading.kind))
    by_run = sum(shares) / len(shares)
    print(
        f"phases ({total}): by step {right / total:.3f}, by run {by_run:.3f}; "
        f"by the kind of action only {naive / total:.3f}"
    )


def _agreement(
    labels: Sequence[Label], traces: dict[str, Trace], phase_of: Callable[[StepTrace], Phase | None]
) -> tuple[int, int, list[float]]:
    shares, right, total = [], 0, 0
    for label in labels:
        steps = traces[label["run"]].steps
        same = [
            phase_of(steps[at]) == phase for at, phase in label["phases"].items() if at < len(steps)
        ]
        shares.append(sum(same) / len(same))
        right, total = right + sum(same), total + len(same)
    return right, total, shares


def _tasks(labels: Sequence[Label], traces: dict[str, Trace]) -> None:
    clear = [label for label in labels if not label["ambiguous"]]
    for name, chosen in (("all", labels), ("unambiguous", clear)):
        if not chosen:
            continue
        right = sum(traces[x["run"]].task_type == x["task_type"] for x in chosen)
        always = sum(x["task_type"] == "bug_fix" for x in chosen)
        print(
            f"task types, {name} ({len(chosen)}): {right / len(chosen):.3f}; "
            f"always bug_fix {always / len(chosen):.3f}"
        )


def _loops(labels: Sequence[Label], traces: dict[str, Trace]) -> None:
    as_steps = [{**label, "is_error": label["has_loop"]} for label in labels]

    def by_run(labels: Sequence[Label]) -> float:
        return _f1(labels, lambda label: bool(traces[label["run"]].loops))

    low, high = _interval(as_steps, by_run)
    naive = _f1(as_steps, lambda label: bool(_rows(traces[label["run"]])))
    spans = [(label["run"], span) for label in labels for span in label["spans"]]
    met = sum(any(_covers(loop.start, loop.end, s) for loop in traces[r].loops) for r, s in spans)
    rows = sum(any(_covers(*row, span) for row in _rows(traces[run])) for run, span in spans)
    print(
        f"loops ({len(labels)}): by run F1 {by_run(as_steps):.3f} [{low:.3f}, {high:.3f}], "
        f"spans found {_share(met, spans)}; "
        f"three equal actions in a row {naive:.3f}, {_share(rows, spans)}"
    )
    clear = [label for label in as_steps if not label["ambiguous"]]
    print(f"  unambiguous ({len(clear)}): by run F1 {by_run(clear):.3f}")


def _share(count: int, of: Sequence[object]) -> str:
    return f"{count / len(of):.3f} ({count} of {len(of)})" if of else "none"


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
    never = [label for label in given if label["recovered_step"] is None]
    recoveries = [(label, _recovery(label, traces[label["run"]])) for label in labels]

    def both_ends(labels: Sequence[Label]) -> int:
        pairs = ((label, _recovery(label, traces[label["run"]])) for label in labels)
        return sum(recovery is not None and _starts(recovery, label) for label, recovery in pairs)

    low, high = _interval(labels, lambda sample: both_ends(sample) / len(sample))
    met = [
        (label["workaround"], recovery.workaround)
        for label, recovery in recoveries
        if recovery is not None
    ]
    naive = sum(_next_success(label, traces[label["run"]]) for label in labels)
    print(
        f"recoveries ({len(labels)}), both ends within 2 steps: "
        f"{_share(both_ends(labels), labels)} [{low:.3f}, {high:.3f}]; "
        f"the next step without an error {_share(naive, labels)}"
    )
    clear = [label for label in labels if not label["ambiguous"]]
    print(f"  unambiguous: {_share(both_ends(clear), clear)}")
    print(f"  from any occurrence of the error: {_share(len(met), labels)}")
    both = sum(labelled and reported for labelled, reported in met)
    print(
        f"  workarounds: {sum(x for x, _ in met)} labelled, {sum(x for _, x in met)} reported, "
        f"{both} of both"
    )
    claimed = sum(
        label["error_step"] in {recovery.error_step for recovery in _ends(traces[label["run"]])}
        for label in never
    )
    if never:
        print(f"  errors that were never cleared: {len(never)}; reported as cleared {claimed}")


def _recovery(label: Label, read: Trace) -> Recovery | None:
    """The recovery that *label* means; readers differ on which of several occurrences starts it."""
    near = [
        recovery
        for recovery in _ends(read)
        if abs(recovery.cleared_step - label["recovered_step"]) <= 2
    ]
    exact = (recovery for recovery in near if _starts(recovery, label))
    series = (
        recovery
        for recovery in near
        if recovery.error.error_type == label["error_type"]
        and recovery.error_step <= label["error_step"] < recovery.cleared_step
    )
    return next(exact, next(series, None))


def _ends(read: Trace) -> Sequence[Recovery]:
    """Where errors were cleared or left behind; the labels do not distinguish these."""
    return (*read.recoveries, *read.left_behind)


def _next_success(label: Label, read: Trace) -> bool:
    later = (step for step in read.steps[label["error_step"] + 1 :] if step.succeeded)
    success = next(later, None)
    return success is not None and abs(success.index - label["recovered_step"]) <= 2


def _starts(recovery: Recovery, label: Label) -> bool:
    return bool(abs(recovery.error_step - label["error_step"]) <= 2)


if __name__ == "__main__":
    main()

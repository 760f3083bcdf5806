"""The report of an experiment: figures of each arm, and comparisons on the same tasks."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import comb
from pathlib import Path
from typing import TypeAlias

from msgspec import Struct

from contextgraph.console.page import ReportPart, write_report as write_html_report
from contextgraph.errors import SettingsError
from contextgraph.evaluation.experiment import (
    ARMS,
    GREP,
    MEMORY,
    NONE,
    PLACEBO,
    Attempt,
    ExperimentFolder,
    TaskPurpose,
)
from contextgraph.evaluation.measures import (
    Difference,
    Estimate,
    Share,
    difference,
    estimate,
    mcnemar,
)
from contextgraph.model import Json
from contextgraph.text import number_of

ByTask: TypeAlias = Mapping[str, Sequence[Attempt]]

COMPARED = ("", "solved, points", "p", "better", "worse", "steps")
OF_ATTEMPTS = "Mean of an attempt (95 % interval)"
OF_TASKS = "Differences on the same tasks (95 % interval)"
# Amounts of an attempt, as they are shown.
_MEANS = {
    "steps": ("steps", 1),
    "looped": ("steps in loops", 1),
    "tokens": ("tokens, 1000", 0.001),
    "cost": ("cost, cents", 100),
    "advice tokens": ("advice tokens", 1),
}
_SIGNIFICANT = 0.05
# What an attempt takes; None where the model does not say.
_AMOUNTS: Mapping[str, Callable[[Attempt], float | None]] = {
    "steps": lambda attempt: attempt.steps,
    "looped": lambda attempt: attempt.looped,
    "tokens": lambda attempt: attempt.tokens,
    "cost": lambda attempt: attempt.cost,
    "advice tokens": lambda attempt: sum(item.tokens for item in attempt.shown),
}


class ArmFigures(Struct, frozen=True):
    """The figures of one arm, each with its 95 % interval; broken attempts do not count.

    *pass_at*: k -> the chance that one of k attempts at a task solves it. *means* are amounts of
    an attempt (steps, steps in loops, tokens, cost in US dollars, advice tokens), *spent* is the
    sum of costs.
    """

    arm: str
    tasks: int
    attempts: int
    broken: int
    pass_at: Mapping[int, Estimate]
    means: Mapping[str, Estimate]
    spent: float


class TaskChange(Struct, frozen=True):
    """A task solved in another share of attempts than *before*.

    *shown* is what was shown in the first attempt that makes the change: the first solved one of a
    rescue, the first failed one of a regression.
    """

    instance_id: str
    before: float
    after: float
    shown: tuple[str, ...]


class Comparison(Struct, frozen=True):
    """Comparison of *arm* with another on the tasks of both; differences are *arm* minus *against*.

    *before* and *after* are the shares of attempts that solve these tasks, *against* and with
    *arm*. *p* is McNemar's exact test of *rescues* (solved more often) against *regressions*.
    """

    arm: str
    against: str
    tasks: int
    before: float
    after: float
    solved: Difference
    p: float
    rescues: tuple[TaskChange, ...]
    regressions: tuple[TaskChange, ...]
    means: Mapping[str, Difference]


class ExperimentReport(Struct, frozen=True):
    """All that is known of an experiment, one sentence first."""

    verdict: str
    settings: Mapping[str, Json]
    arms: tuple[ArmFigures, ...]
    comparisons: tuple[Comparison, ...]


def report_on(journal: ExperimentFolder) -> ExperimentReport:
    """Return the report of the experiment in *journal*, as far as it has come.

    Raises `SettingsError` where no attempt was judged yet.
    """
    settings = journal.settings()
    by_arm = defaultdict[str, list[Attempt]](list)
    for attempt in journal.attempts().values():
        if attempt.part is TaskPurpose.JUDGE:
            by_arm[attempt.arm].append(attempt)
    if not by_arm:
        raise SettingsError(f"{journal.folder} has no judged attempt yet; run the experiment")
    seed = settings["seed"]
    assert isinstance(seed, int)
    arms = [arm for arm in ARMS if arm in by_arm]
    tasks = {arm: _by_task(by_arm[arm]) for arm in arms}
    pairs = [(arm, NONE) for arm in arms if arm != NONE and NONE in arms]
    pairs += [(MEMORY, arm) for arm in (PLACEBO, GREP) if {MEMORY, arm} <= {*arms}]
    comparisons = [
        compared(arm, tasks[arm], against, tasks[against], seed)
        for arm, against in pairs
        if tasks[arm].keys() & tasks[against].keys()
    ]
    figures = tuple(figures_of(arm, by_arm[arm], seed) for arm in arms)
    return ExperimentReport(_verdict(comparisons), settings, figures, tuple(comparisons))


def figures_of(arm: str, attempts: Sequence[Attempt], seed: int) -> ArmFigures:
    """Return the figures of the *attempts* of one arm."""
    by_task = _by_task(attempts)
    most = max((len(made) for made in by_task.values()), default=0)
    estimates = {k: estimate(_passes(by_task, k), seed) for k in range(1, most + 1)}
    means = {name: estimate(_sums(by_task, amount), seed) for name, amount in _AMOUNTS.items()}
    made = sum(map(len, by_task.values()))
    return ArmFigures(
        arm=arm,
        tasks=len(by_task),
        attempts=made,
        broken=len(attempts) - made,
        pass_at={k: figure for k, figure in estimates.items() if figure},
        means={name: figure for name, figure in means.items() if figure},
        spent=sum(attempt.cost or 0.0 for attempt in attempts),
    )


def compared(arm: str, after: ByTask, against: str, before: ByTask, seed: int) -> Comparison:
    """Return attempts *after* of *arm* compared with those *before*, on common tasks."""
    both = sorted(after.keys() & before.keys())
    shares = {task: (_solved(before[task]), _solved(after[task])) for task in both}
    passes_before, passes_after = _passes(before, 1), _passes(after, 1)
    means = {}
    for name, amount in _AMOUNTS.items():
        first, second = _sums(before, amount), _sums(after, amount)
        pairs = {task: (first[task], second[task]) for task in first.keys() & second.keys()}
        if pairs:
            means[name] = difference(pairs, seed)
    return Comparison(
        arm=arm,
        against=against,
        tasks=len(both),
        before=sum(old for old, _ in shares.values()) / len(shares),
        after=sum(new for _, new in shares.values()) / len(shares),
        solved=difference({task: (passes_before[task], passes_after[task]) for task in both}, seed),
        p=mcnemar([(old > new, new > old) for old, new in shares.values()]),
        rescues=_changes(shares, after, solved=True),
        regressions=_changes(shares, after, solved=False),
        means=means,
    )


def _changes(
    shares: Mapping[str, tuple[float, float]], after: ByTask, *, solved: bool
) -> tuple[TaskChange, ...]:
    """The tasks that are *solved* more often, or less often."""
    changes = []
    for task, (old, new) in shares.items():
        if old != new and (new > old) is solved:
            made = (attempt for attempt in after[task] if bool(attempt.solved) is solved)
            first = min(made, key=lambda attempt: attempt.number)
            changes.append(TaskChange(task, old, new, tuple(shown.text for shown in first.shown)))
    return tuple(changes)


def pass_at(attempts: int, solved: int, k: int) -> float:
    """Return the chance that *k* of *attempts*, drawn at random, include one of those *solved*."""
    return 1.0 - comb(attempts - solved, k) / comb(attempts, k)


def _by_task(attempts: Sequence[Attempt]) -> ByTask:
    """The attempts that are not broken, by instance."""
    by_task = defaultdict[str, list[Attempt]](list)
    for attempt in attempts:
        if not attempt.error:
            by_task[attempt.instance_id].append(attempt)
    return by_task


def _solved(attempts: Sequence[Attempt]) -> float:
    return sum(attempt.solved for attempt in attempts) / len(attempts)


def _passes(by_task: ByTask, k: int) -> dict[str, Share]:
    """Task -> its pass@k, of those with so many attempts."""
    return {
        task: Share(pass_at(len(made), sum(attempt.solved for attempt in made), k), 1)
        for task, made in by_task.items()
        if len(made) >= k
    }


def _sums(by_task: ByTask, amount: Callable[[Attempt], float | None]) -> dict[str, Share]:
    """Task -> the sum over its attempts, and how many have that amount."""
    sums = {}
    for task, made in by_task.items():
        known = [value for attempt in made if (value := amount(attempt)) is not None]
        if known:
            sums[task] = Share(sum(known), len(known))
    return sums


def _verdict(comparisons: Sequence[Comparison]) -> str:
    """One sentence: the memory against none, or the first comparison that there is."""
    if not comparisons:
        return "There is nothing to compare: it takes two arms that attempted the same task."
    chosen = next(
        (comparison for comparison in comparisons if comparison.arm == MEMORY), comparisons[0]
    )
    gap = chosen.solved
    sure = "" if chosen.p < _SIGNIFICANT else "not "
    steps = f"{chosen.means['steps'].value:+.1f}"
    return (
        f"With arm {chosen.arm} the agent solves {chosen.after:.0%} of its attempts, with arm"
        f" {chosen.against} {chosen.before:.0%}: {100 * gap.value:+.0f} points"
        f" ({100 * gap.low:+.0f} to {100 * gap.high:+.0f}) over"
        f" {number_of(chosen.tasks, 'task')}, {sure}beyond chance (p = {chosen.p:.3f}); steps of"
        f" an attempt: {steps}."
    )


def write_report(path: Path, report: ExperimentReport) -> None:
    """Write *report* as a page to the file *path*; raises `SettingsError` where it cannot be."""
    write_html_report(path, "Experiment", report.verdict, _parts(report), report.settings)


def _parts(report: ExperimentReport) -> Iterator[ReportPart]:
    yield ReportPart(OF_ATTEMPTS, ["", *(arm.arm for arm in report.arms)], arm_rows(report))
    yield ReportPart(OF_TASKS, COMPARED, [*map(comparison_row, report.comparisons)])
    for title, changes in changed_tasks(report):
        yield ReportPart(title, texts=[(change_line(change), change.shown) for change in changes])


def _interval(
    value: Estimate | Difference | None, scale: float = 1, *, signed: bool = False
) -> str:
    """*value* with its interval, in as few digits as matter; a dash where there is none."""
    if value is None:
        return "–"
    numbers = [number * scale for number in (value.value, value.low, value.high)]
    largest = max(map(abs, numbers))
    digits = 0 if largest >= 10 or not largest else 1 if largest >= 1 else 2
    middle, low, high = (f"{number:{'+' if signed else ''}.{digits}f}" for number in numbers)
    return f"{middle} ({low} to {high})" if signed else f"{middle} ({low}–{high})"


def arm_rows(report: ExperimentReport) -> list[list[str]]:
    """Return the figures of all arms: a row for each measure, a column for each arm."""
    arms = report.arms
    most = max((k for arm in arms for k in arm.pass_at), default=1)
    rows = [
        ["tasks", *(str(arm.tasks) for arm in arms)],
        ["attempts", *(str(arm.attempts) for arm in arms)],
        ["broken", *(str(arm.broken) for arm in arms)],
    ]
    rows += [
        [f"pass@{k}, %", *(_interval(arm.pass_at.get(k), 100) for arm in arms)]
        for k in sorted({1, most})
    ]
    rows += [
        [title, *(_interval(arm.means.get(name), scale) for arm in arms)]
        for name, (title, scale) in _MEANS.items()
    ]
    return [*rows, ["cost of all, $", *(f"{arm.spent:.2f}" for arm in arms)]]


def comparison_row(comparison: Comparison) -> list[str]:
    """Return the cells of a row about *comparison*, differences in percentage points."""
    return [
        f"{comparison.arm} − {comparison.against}",
        _interval(comparison.solved, 100, signed=True),
        f"{comparison.p:.3f}",
        str(len(comparison.rescues)),
        str(len(comparison.regressions)),
        _interval(comparison.means.get("steps"), signed=True),
    ]


def changed_tasks(report: ExperimentReport) -> Iterator[tuple[str, Sequence[TaskChange]]]:
    """Yield the tasks that each arm rescued and regressed against none, with a title."""
    for comparison in report.comparisons:
        if comparison.against != report.comparisons[0].against:
            continue
        if comparison.rescues:
            yield f"Rescued by {comparison.arm}", comparison.rescues
        if comparison.regressions:
            yield f"Regressed by {comparison.arm}", comparison.regressions


def change_line(change: TaskChange) -> str:
    """Return a task, and in which share of attempts it was solved before and after."""
    return f"{change.instance_id}: solved in {change.before:.0%}, then in {change.after:.0%}"

"""Why runs fail: the conditions that go with failure, their cost, and what prevented them."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from math import comb
from statistics import median

from msgspec import Struct

from contextgraph.model import ActionKind, CommandUse, Condition, Course, FailurePattern, Outcome
from contextgraph.store.protocols import Store
from contextgraph.text import number_of

_SIGNIFICANT = 0.01
# So many runs show well enough what goes with failure.
_RUNS_LISTED, _RUNS_READ = 2_000, 400
# Unasked, a condition is named where at most this share of runs with it were solved, and at most
# this share of the solved runs had it.
_MOST_SOLVED = 0.1
_ERRORS_NAMED = 3
_LEAST_EXPLAINED = 0.5


class SolveRates(Struct, frozen=True):
    """How many of the runs with a condition were solved, and how many of those without it."""

    shown: int
    solved_shown: int
    others: int
    solved_others: int

    @property
    def is_lower(self) -> bool:
        """True where runs with the condition were solved less often, and not by chance.

        By Fisher's exact test, one-sided, p < 0.01.
        """
        # Importing the test from scipy takes longer than an agent should wait for an answer.
        solved = self.solved_shown + self.solved_others
        failed = self.shown + self.others - solved
        ways = sum(
            comb(solved, count) * comb(failed, self.shown - count)
            for count in range(self.solved_shown + 1)
        )
        return ways / comb(solved + failed, self.shown) < _SIGNIFICANT

    @property
    def is_telling(self) -> bool:
        """True where it is lower, hardly any run with it was solved, and few solved runs had it."""
        solved = self.solved_shown + self.solved_others
        most = _MOST_SOLVED * min(self.shown, solved)
        return self.solved_shown <= most and self.is_lower


class JudgedRun(Struct, frozen=True):
    """A run whose outcome is known, as far as an analysis of failure needs it."""

    instance_id: str
    is_solved: bool
    course: Course
    conditions: frozenset[Condition]
    tests: tuple[CommandUse, ...]


def judged_runs(
    store: Store, repo: str | None = None, exclude: Collection[str] = ()
) -> Sequence[JudgedRun]:
    """Return at most 400 runs of *repo* whose outcome is known, without instances in *exclude*.

    Ids are digests: the first ones are a random sample.
    """
    known = store.runs.learned(store.runs.ids(repo, limit=_RUNS_LISTED)).values()
    judged = (run.trajectory_id for run in known if run.outcome is not Outcome.UNKNOWN)
    ids = [*islice(judged, _RUNS_READ)]
    facts = store.runs.facts(ids)
    runs = [
        run
        for run in store.runs.trajectories(ids).values()
        if run.instance_id not in exclude and run.id in facts and facts[run.id].course.steps
    ]
    right: dict[str, set[str]] = {}
    for run in runs:
        if run.success:
            right.setdefault(run.instance_id, set()).update(run.files)
    return [
        JudgedRun(
            run.instance_id,
            bool(run.success),
            (course := facts[run.id].course),
            frozenset(
                (*course.conditions, *_misplaced(run.files, right.get(run.instance_id, set())))
            ),
            tuple(use for use in facts[run.id].commands if use.kind is ActionKind.TEST),
        )
        for run in runs
    ]


def _misplaced(files: Collection[str], right: Collection[str]) -> Iterator[Condition]:
    if files and right and not set(files).intersection(right):
        yield Condition.WRONG_PLACE


def rates_of(runs: Iterable[JudgedRun]) -> Mapping[Condition, SolveRates]:
    """Return how runs went that ended with each condition."""
    counts: Counter[tuple[Condition, bool]] = Counter()
    judged: Counter[bool] = Counter()
    for run in runs:
        judged[run.is_solved] += 1
        counts.update((condition, run.is_solved) for condition in run.conditions)
    return {
        condition: _rates(counts[condition, True], counts[condition, False], judged)
        for condition in Condition
    }


def rates_at(
    runs: Sequence[JudgedRun], step: int, *, has_edit: bool, looped: int
) -> Mapping[Condition, SolveRates]:
    """Return how runs went that showed the same at *step*, and how all others did.

    No edit: they lasted longer and had changed no existing file by then either, where *has_edit* is
    False. Looped: at least as many of their steps lay in loops, where *looped* is not 0.
    """
    judged = Counter(run.is_solved for run in runs)
    lasting = [run for run in runs if run.course.steps > step]
    same = dict[Condition, list[JudgedRun]]()
    if not has_edit:
        same[Condition.NO_EDIT] = [run for run in lasting if not run.course.has_edit(step)]
    if looped:
        same[Condition.LOOPED] = [run for run in lasting if run.course.looped(step) >= looped]
    solved = {name: Counter(run.is_solved for run in group) for name, group in same.items()}
    return {name: _rates(count[True], count[False], judged) for name, count in solved.items()}


def _rates(solved: int, failed: int, outcomes: Counter[bool]) -> SolveRates:
    """*solved* and *failed* runs had a condition, of all runs in *outcomes*."""
    shown = solved + failed
    return SolveRates(shown, solved, outcomes.total() - shown, outcomes[True] - solved)


def failing_conditions(
    runs: Sequence[JudgedRun], of_all: Mapping[Condition, SolveRates]
) -> tuple[FailurePattern, ...]:
    """Return the conditions that explain failures of *runs*, those that explain most first.

    *of_all* are the rates in all repositories: how often runs without a condition fail is
    estimated there, since the runs of one repository are few. What explains no failure is left out.
    """
    failed = [run for run in runs if not run.is_solved]
    steps = sum(run.course.steps for run in failed)
    looped = sum(run.course.looped(run.course.steps) for run in failed)
    found = []
    for condition, rates in rates_of(runs).items():
        if condition is Condition.STUCK:
            continue  # looped as well
        everywhere = of_all[condition]
        without = 1 - (everywhere.solved_others + 1) / (everywhere.others + 2)
        explained = rates.shown - rates.solved_shown - without * rates.shown
        if explained < _LEAST_EXPLAINED:
            continue
        pattern = FailurePattern(
            condition.text,
            f"{rates.solved_shown} of {number_of(rates.shown, 'run')} solved, "
            f"{rates.solved_others} of {rates.others} others",
            rates.shown,
            rates.solved_shown / rates.shown,
            rates.solved_others / rates.others if rates.others else None,
            looped / steps if condition is Condition.LOOPED else None,
            (*_prevention(condition, runs),),
            explained,
        )
        found.append(pattern)
    return tuple(sorted(found, key=lambda one: (-one.explained, one.condition)))


def _prevention(condition: Condition, runs: Sequence[JudgedRun]) -> Iterator[str]:
    """Return what solved runs did in place of *condition*."""
    solved = [run for run in runs if run.is_solved and condition not in run.conditions]
    if not solved:
        return
    match condition:
        case Condition.NO_EDIT:
            steps = median(run.course.first_edit or 0 for run in solved)
            yield f"solved runs first changed a file at step {steps:.0f} (median)"
        case Condition.LOOPED:
            spent = median(run.course.looped(run.course.steps) for run in solved)
            yield f"solved runs spent {number_of(round(spent), 'step')} in loops (median)"
        case Condition.EXHAUSTED:
            took = median(run.course.steps for run in solved)
            yield f"solved runs took {took:.0f} steps (median)"
        case Condition.ERROR_OPEN:
            left = Counter(run.course.open_error for run in runs if run.course.open_error)
            named = ", ".join(name for name, _ in left.most_common(_ERRORS_NAMED))
            yield f"most often left open: {named}"
        case Condition.NOT_TESTED | Condition.NOT_RUN | Condition.TESTS_RED:
            forms = Counter(
                form for run in solved for form in {use.runner for use in run.tests if use.ran}
            )
            for form, count in forms.most_common(1):
                yield f"`{form}` ran in {count} of {number_of(len(solved), 'solved run')}"
        case _:
            pass

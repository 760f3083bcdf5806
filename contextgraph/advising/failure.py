"""Why runs fail: the conditions that go with failure, their cost, and what prevented them."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from math import comb

from msgspec import Struct

from contextgraph.model import (
    ActionKind,
    Condition,
    Course,
    ErrorSignature,
    FailurePattern,
    FailureWarning,
    Phase,
    RunCourse,
    Scope,
    ScopeLevel,
    State,
    Why,
)
from contextgraph.model.values import replace
from contextgraph.store.memory_store import Store
from contextgraph.text import number_of
from contextgraph.trace import error_id

_SIGNIFICANT = 0.01
# So many runs show well enough what goes with failure.
RUNS_READ = 400
# Unasked, a condition is named where at most this share of runs with it were solved, and at most
# this share of the solved runs had it.
_MOST_SOLVED = 0.1
_ERRORS_NAMED = 3
_LEAST_EXPLAINED = 0.5
# Errors of fewer runs say little of how often they are cleared.
LEAST_RUNS, _LEAST_OPEN = 3, 2
_EVERYWHERE = Scope()
# Conditions that cannot be mended when a run is about to submit.
_PAST = frozenset((Condition.NOT_REPRODUCED, Condition.LOOPED))


class SolveRates(Struct, frozen=True):
    """Numbers of runs, and of solved runs, that show a condition or do not."""

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

    @property
    def text(self) -> str:
        """The rates in words."""
        return (
            f"{self.solved_shown} of {number_of(self.shown, 'run')} solved, "
            f"{self.solved_others} of {self.others} others"
        )


def judged_runs(store: Store, scope: Scope = _EVERYWHERE) -> Sequence[RunCourse]:
    """Return at most 400 runs in *scope* whose outcome is known; some are in the wrong place.

    Ids are digests: the first ones are a random sample.
    """
    courses = store.runs.courses(scope, RUNS_READ)
    runs = store.runs.trajectories(one.id for one in courses)
    right: dict[str, set[str]] = {}
    for run in runs.values():
        if run.success:
            right.setdefault(run.instance_id, set()).update(run.files)
    return [
        one._replace(course=_with_place(one.course, run.files, right.get(run.instance_id, ())))
        for one in courses
        for run in (runs[one.id],)
    ]


def _with_place(course: Course, files: Collection[str], right: Collection[str]) -> Course:
    """Return *course* of a run that changed *files*; solved runs of its task changed *right*."""
    if not files or not right or not set(files).isdisjoint(right):
        return course
    return replace(course, conditions=(*course.conditions, Condition.WRONG_PLACE))


def rates_of(runs: Sequence[RunCourse]) -> Mapping[Condition, SolveRates]:
    """Return how runs went that ended with each condition."""
    judged = _outcomes(runs)
    counts = Counter((condition, run.is_solved) for run in runs for condition in run.conditions)
    return {
        condition: _rates(counts[condition, True], counts[condition, False], judged)
        for condition in Condition
    }


def rates_at(state: State, runs: Sequence[RunCourse]) -> Mapping[Condition, SolveRates]:
    """Return how *runs* went that showed what *state* shows, where it is, and how all others did.

    About to submit: that ended so. Before, no edit: they lasted longer and had changed no existing
    file by then either; looped: at least as many of their steps by then lay in loops.
    """
    if state.phase is Phase.SUBMITTING:
        at_end = rates_of(runs)
        return {one: at_end[one] for one in state.conditions if one not in _PAST}
    judged = _outcomes(runs)
    lasting = [run for run in runs if run.course.steps > state.steps]
    same = dict[Condition, list[RunCourse]]()
    if Condition.NO_EDIT in state.conditions:
        same[Condition.NO_EDIT] = [run for run in lasting if not run.course.has_edit(state.steps)]
    if state.looped_steps:
        same[Condition.LOOPED] = [
            run
            for run in lasting
            if run.course.loops and run.course.looped(state.steps) >= state.looped_steps
        ]
    solved = {name: _outcomes(group) for name, group in same.items()}
    return {name: _rates(count[True], count[False], judged) for name, count in solved.items()}


def _outcomes(runs: Sequence[RunCourse]) -> Counter[bool]:
    """Return how many of *runs* were solved and how many failed."""
    solved = [run.is_solved for run in runs].count(True)
    return Counter({True: solved, False: len(runs) - solved})


def _rates(solved: int, failed: int, outcomes: Counter[bool]) -> SolveRates:
    """*solved* and *failed* runs had a condition, of all runs in *outcomes*."""
    shown = solved + failed
    return SolveRates(shown, solved, outcomes.total() - shown, outcomes[True] - solved)


def failing_conditions(
    store: Store, runs: Sequence[RunCourse], of_all: Mapping[Condition, SolveRates]
) -> tuple[FailurePattern, ...]:
    """Return the conditions that explain failures of *runs*, those that explain most first.

    *of_all* are the rates in all repositories: how often runs without a condition fail is
    estimated there, since the runs of one repository are few. What explains no failure is left out.
    """
    failed = [run for run in runs if not run.is_solved]
    steps = sum(run.course.steps for run in failed)
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
            rates.text,
            rates.shown,
            rates.solved_shown / rates.shown,
            rates.solved_others / rates.others if rates.others else None,
            sum(_steps_with(condition, run) for run in failed) / steps,
            (*_prevention(condition, runs, store),),
            explained,
        )
        found.append(pattern)
    return tuple(sorted(found, key=lambda one: (-one.explained, one.condition)))


def _steps_with(condition: Condition, run: RunCourse) -> int:
    """Return the steps of *run* that a condition took: those in loops, or all if it ended so."""
    if condition is Condition.LOOPED:
        return run.course.looped(run.course.steps)
    return run.course.steps if condition in run.conditions else 0


def failure_warnings(
    state: State,
    store: Store,
    scope: Scope,
    error: ErrorSignature | None,
    tasks: Sequence[tuple[int, int]] = (),
) -> Iterator[FailureWarning]:
    """Yield the conditions that *state* shows, and with which earlier runs were solved less often.

    Then that its *error* is often never cleared, in the repository of *scope* where enough runs met
    it there: *tasks* counts who met and cleared it, there and everywhere, where that is known. Only
    runs that *scope* shows count. A condition is sure where hardly any run with it was solved, or
    the run is about to submit.
    """
    is_last = state.phase is Phase.SUBMITTING
    is_unedited = Condition.NO_EDIT in state.conditions
    if state.steps and (state.conditions if is_last else is_unedited or state.looped_steps):
        runs = store.runs.courses(replace(scope, repo=None), RUNS_READ)
        when = "at the end" if is_last else f"by step {state.steps}"
        for condition, rates in sorted(rates_at(state, runs).items()):
            if rates.is_lower:
                text = (
                    f"{condition.text}: {rates.solved_shown} of {rates.shown} earlier runs of "
                    f"which this was true {when} were solved, and {rates.solved_others} of "
                    f"{rates.others} others"
                )
                text += "".join(f"; {done}" for done in _prevention(condition, runs, store))
                is_sure = is_last or rates.is_telling
                why = Why((), ScopeLevel.GENERAL, rates.shown, ())
                yield FailureWarning(text, rates.shown, why, condition.text, is_sure)
    if error is not None:
        scopes = [*dict.fromkeys((scope, replace(scope, repo=None)))]
        ids = [error_id(one) for one in error.variants()]
        yield from _left_open(error, scopes, tasks or store.recoveries.tasks(scopes, ids))


def is_often_open(runs: int, cleared: int) -> bool:
    """Return whether of at least three *runs* that met an error a third, and two, left it open."""
    return runs >= LEAST_RUNS and runs - cleared >= max(_LEAST_OPEN, runs / 3)


def _left_open(
    error: ErrorSignature, scopes: Sequence[Scope], counts: Sequence[tuple[int, int]]
) -> Iterator[FailureWarning]:
    """Yield that runs often never cleared *error*: of the first of *scopes* where enough met it."""
    for where, (tasks, cleared) in zip(scopes, counts, strict=True):
        if tasks < LEAST_RUNS:
            continue
        if is_often_open(tasks, cleared):
            level = ScopeLevel.REPO if where.repo else ScopeLevel.GENERAL
            here = " here" if where.repo else ""
            text = (
                f"{error.error_type}: {tasks - cleared} of {tasks} earlier tasks{here} that met "
                "such an error never cleared it"
            )
            yield FailureWarning(text, tasks, Why((), level, tasks, ()), text, is_sure=False)
        return


def _prevention(condition: Condition, runs: Sequence[RunCourse], store: Store) -> Iterator[str]:
    """Yield what solved runs did in place of *condition*."""
    solved = [run for run in runs if run.is_solved and condition not in run.conditions]
    if not solved:
        return
    from statistics import median  # which loads six modules

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
            facts = store.runs.facts(run.id for run in solved).values()
            forms = Counter(
                form
                for of_run in facts
                for form in {
                    use.runner for use in of_run.commands if use.ran and use.kind is ActionKind.TEST
                }
            )
            for form, count in forms.most_common(1):
                yield f"`{form}` ran in {count} of {number_of(len(solved), 'solved run')}"
        case _:
            pass

"""Statistics of a memory: errors in a situation, what recurs across tasks, and their plots."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import accumulate, pairwise
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from msgspec import Struct, field

from contextgraph.advising.counts import Tasks
from contextgraph.advising.failure import (
    SolveRates,
    failing_conditions,
    is_often_open,
    judged_runs,
    rates_of,
)
from contextgraph.advising.gate import TOKENS_OF_A_STEP, effect_of
from contextgraph.errors import ContextGraphError, MissingExtraError, StoreError
from contextgraph.model import (
    AdviceFigures,
    Condition,
    Effect,
    ErrorHistory,
    ErrorOccurrence,
    ErrorQuestion,
    ErrorSignature,
    ErrorSteps,
    ErrorTally,
    FailurePattern,
    MemoryCounts,
    MemoryGate,
    Methodology,
    MistakePattern,
    NonNegativeInt,
    NoteKind,
    Outcome,
    Phase,
    RemedyAction,
    RemedyKind,
    Scope,
    ShownTally,
    SignatureLevel,
    Step,
    TaskType,
    Time,
    Trajectory,
    Usage,
    is_subagent,
)
from contextgraph.model.values import checked, replace
from contextgraph.store.memory_store import Store, id_pages
from contextgraph.text import cut, number_of, words
from contextgraph.trace import RemedyKey, describe_remedy, is_hazardous, is_retry, remedy_key

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


RUNS_OF_A_KIND = 5_000
RUNS_ABOUT_A_TEXT = 50
FRAGMENTS_AT_A_FILE = 2_000


def errors_in(situation: str, repo: str, store: Store, limit: int) -> Sequence[ErrorTally]:
    """Return errors in *situation*, most tasks first; see `get_common_mistakes`."""
    situation, scope = situation.strip(), Scope(repo or None)
    if not situation or situation in {*Phase}:
        return store.recoveries.errors(scope, limit, phase=Phase(situation) if situation else None)
    if situation in {*TaskType}:
        runs = store.runs.for_task(TaskType(situation), scope, RUNS_OF_A_KIND)
        return store.recoveries.errors(Scope(), limit, runs=[run.id for run in runs])
    if not repo and (known := store.recoveries.errors(Scope(situation), limit)):
        return known
    return store.recoveries.errors(
        Scope(),
        limit,
        runs=_runs_at_file(situation, scope, store) or _runs_about(situation, scope, store),
    )


def _runs_at_file(situation: str, scope: Scope, store: Store) -> list[str]:
    """Runs that touched a file of this name; none where the words do not name a file."""
    if not _names_file(situation):
        return []
    name = PurePosixPath(situation).name
    candidates = store.runs.find_fragments(scope, FRAGMENTS_AT_A_FILE, file_name=name)
    return list(dict.fromkeys(candidate.trajectory.id for candidate in candidates))


def _runs_about(situation: str, scope: Scope, store: Store) -> list[str]:
    # Every second run has a `py` in it: a file extension does not narrow the search.
    text = PurePosixPath(situation).stem if _names_file(situation) else situation
    distinct = tuple(dict.fromkeys(words(text)))
    return [run.id for run in store.runs.for_text(distinct, scope, RUNS_ABOUT_A_TEXT)]


def _names_file(situation: str) -> bool:
    return len(situation.split()) == 1 and PurePosixPath(situation).suffix != ""


def type_frequency(met: Mapping[str, Sequence[ErrorSteps]]) -> dict[str, int]:
    """Return numbers of fragments by error type, most frequent first, then by name."""
    pairs = {(error.fragment_id, error.error_type) for run in met.values() for error in run}
    return _most_frequent_first(Counter(error_type for _, error_type in pairs))


def type_transitions(met: Mapping[str, Sequence[ErrorSteps]]) -> dict[str, dict[str, int]]:
    """Return counts by error type and the next error type of the run, most frequent first.

    Errors of one step follow each other by the ids of their patterns.
    """
    counts: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for run in met.values():
        at = sorted(
            (step, error.error_id, error.error_type) for error in run for step in error.steps
        )
        for (_, _, before), (_, _, after) in pairwise(at):
            counts[before][after] += 1
    totals = Counter({before: after.total() for before, after in counts.items()})
    return {before: _most_frequent_first(counts[before]) for before in _most_frequent_first(totals)}


def _most_frequent_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


# An error of one task does not count as friction across tasks.
_LEAST_TASKS = 2
# What fewer of those that cleared it did says little of it.
_LEAST_SHARE = 0.05
# Errors that are looked at for each that is listed.
_CONSIDERED = 4
_REMEDIES = 3
# The newest runs that met an error say how many steps it takes, and what clears it.
_NEWEST = 100


class FrictionRemedy(Struct, frozen=True):
    """A remedy in words: *tasks* did it, of the *cleared* ones that cleared the error.

    *is_sample*: of the newest of these alone.
    """

    text: str
    tasks: int
    cleared: int
    is_sample: bool = False

    @property
    def agreement(self) -> str:
        """The number of tasks that did it, in words."""
        newest = "the newest " if self.is_sample else ""
        return f"{self.tasks} of {newest}{number_of(self.cleared, 'task')} that cleared it"


class Friction(Struct, frozen=True):
    """An error that several tasks met; several runs of one task count once.

    *error* is its type and message, *cleared* the number of *tasks* in which it was cleared. By the
    newest 100 runs that met it, *steps_lost* is the median from the error to its clearance, None
    where nothing cleared it; *steps_open* is the number of steps at which tasks that never cleared
    it met it; *remedies* are what most of them did, each in at least two tasks where two cleared
    it, without repetitions. *is_setup*: most of them installed something.
    """

    error_id: str
    error: str
    tasks: int
    cleared: int
    steps_lost: float | None
    steps_open: int
    remedies: tuple[FrictionRemedy, ...]
    is_setup: bool = False

    @property
    def cost(self) -> float:
        """Steps lost in all tasks, whether or not they cleared it."""
        return self.cleared * (self.steps_lost or 0.0) + self.steps_open


def friction(store: Store, repo: str, limit: int) -> tuple[Friction, ...]:
    """Return at most *limit* errors, in *repo* where one is given, those that cost most first.

    The cost is the steps lost in all tasks, whether or not they cleared it. Ties by tasks and id.
    """
    tallies = store.recoveries.errors(Scope(repo or None), _CONSIDERED * limit)
    ids = [tally.error.id for tally in tallies]
    histories = store.recoveries.histories(ids, _NEWEST, repo or None)
    known = store.runs.trajectories(
        {run.trajectory_id for history in histories for run in history.occurrences}
    )
    by_id = {tally.error.id: tally for tally in tallies}
    frictions = [
        (entry, history)
        for history in histories
        if (entry := _friction(by_id[history.error.id], history, known)).tasks >= _LEAST_TASKS
    ]
    frictions.sort(key=lambda one: (-one[0].cost, -one[0].tasks, one[0].error_id))
    # Only returned errors need the words of their remedies, which take two thirds of the time.
    return tuple(
        replace(entry, remedies=tuple(_remedies(_done_in(history), entry.cleared))[:_REMEDIES])
        for entry, history in frictions[:limit]
    )


def _friction(tally: ErrorTally, history: ErrorHistory, runs: Mapping[str, Trajectory]) -> Friction:
    """Return what the error of *history* cost, without remedies."""
    from statistics import median  # loads what no query needs

    cleared = [
        clearance
        for clearance in history.clearances
        if clearance.trajectory_id in runs and clearance.recovered.verified
    ]
    settled = {clearance.instance_id for clearance in cleared}
    steps = _steps_open(history.occurrences, settled)
    never = tally.tasks - tally.cleared
    installed = [
        clearance.trajectory_id
        for clearance in cleared
        if any(action.kind is RemedyKind.INSTALL for action in clearance.recovered.actions)
    ]
    return Friction(
        error_id=history.error.id,
        error=tally.error.text,
        tasks=tally.tasks,
        cleared=tally.cleared,
        steps_lost=median(clearance.steps for clearance in cleared) if cleared else None,
        # As many in each task that is not among the newest.
        steps_open=round(sum(steps) / len(steps) * never) if steps else 0,
        remedies=(),
        is_setup=2 * len(installed) > len(cleared),
    )


def _steps_open(met: Iterable[ErrorOccurrence], settled: Collection[str]) -> list[int]:
    """Return for each task that is not *settled* the steps at which its longest run met it."""
    most = dict[str, int]()
    for one in met:
        if one.instance_id not in settled:
            most[one.instance_id] = max(most.get(one.instance_id, 0), one.steps)
    return [*most.values()]


_Done = Sequence[tuple[str, Sequence[RemedyAction]]]
"""Recoveries from an error: the task of each, and what it did."""


def _done_in(history: ErrorHistory) -> _Done:
    return [(one.instance_id, one.recovered.actions) for one in history.clearances]


def _remedies(recoveries: _Done, known: int = 0) -> Iterator[FrictionRemedy]:
    """The actions that tasks which cleared it agree on, the most frequent first.

    So many tasks are *known* to have cleared it; *recoveries* may be of fewer.
    """
    tasks = Tasks()
    done: dict[RemedyKey, set[RemedyAction]] = {}
    harmless: dict[RemedyKey, RemedyAction] = {}
    for task, actions in recoveries:
        tasks.add((task,), remedy_key(actions))
        for action in actions:
            key = remedy_key([action])
            done.setdefault(key, set()).add(action)
            if not (is_retry([action]) or is_hazardous([action])):
                harmless.setdefault(key, action)
    cleared = len(tasks.cleared)
    least = max(min(_LEAST_TASKS, cleared), _LEAST_SHARE * cleared)
    by_text: dict[str, int] = {}
    for key, first in harmless.items():
        # In general terms where it was done to different things.
        text = describe_remedy([first], general=len(done[key]) > 1)
        if text and (number := tasks.that_did(key)) >= least:
            by_text[text] = max(number, by_text.get(text, 0))
    is_sample = known > cleared
    remedies = (
        FrictionRemedy(text, number, cleared, is_sample) for text, number in by_text.items()
    )
    yield from sorted(remedies, key=lambda remedy: (-remedy.tasks, remedy.text))


PERIODS = 24
RUNS_A_PERIOD = 3
# Runs that were learned in one batch have about the same time; then their order counts.
_LEAST_SPAN = timedelta(days=2)


class OutcomePeriod(Struct, frozen=True):
    """From *start* to *end* (times of its first and last run), how many runs ended how."""

    start: datetime
    end: datetime
    outcomes: Mapping[str, int]


class _Run(NamedTuple):
    """The part of a run that is needed: all texts of many runs would not fit into memory."""

    seen_at: datetime
    id: str
    outcome: Outcome


def outcomes_over_time(
    trajectories: Iterable[Trajectory], most: int = PERIODS
) -> tuple[OutcomePeriod, ...]:
    """Return at most *most* periods of equal length, oldest first, without empty ones.

    They count endings of runs, known or guessed, without those of sub-agents. There are fewer
    periods if one would have less than three runs on average, and periods of equally many runs if
    all lie within two days.
    """
    runs = sorted(
        _Run(run.seen_at, run.id, run.ending.outcome)
        for run in trajectories
        if not is_subagent(run.agent)
    )
    if not runs:
        return ()
    periods = max(1, min(most, len(runs) // RUNS_A_PERIOD))
    groups: dict[int, list[_Run]] = {}
    for position, run in enumerate(runs):
        groups.setdefault(_period(runs, position, periods), []).append(run)
    return tuple(_counted(group) for group in groups.values())


def _period(runs: Sequence[_Run], position: int, periods: int) -> int:
    first, span = runs[0].seen_at, runs[-1].seen_at - runs[0].seen_at
    if span < _LEAST_SPAN:
        return position * periods // max(len(runs), periods)
    return min(periods - 1, int((runs[position].seen_at - first) / span * periods))


def _counted(runs: Sequence[_Run]) -> OutcomePeriod:
    counted = Counter(run.outcome for run in runs)
    outcomes = {outcome.value: counted[outcome] for outcome in Outcome}
    return OutcomePeriod(runs[0].seen_at, runs[-1].seen_at, outcomes)


PATTERNS = 50
_MOST_ERRORS = 300
_RECOVERIES = 200
# What a single task did may have been anything.
_AGREEING = 2
_METHODOLOGIES = 32


def failure_patterns(store: Store, scope: Scope) -> tuple[FailurePattern, ...]:
    """Return errors that a third of three tasks or more never resolved, most such tasks first."""
    common = store.recoveries.errors(scope, _MOST_ERRORS)
    failing = [tally for tally in common if is_often_open(tally.tasks, tally.cleared)]
    failing.sort(key=lambda tally: (tally.cleared - tally.tasks, tally.error.id))
    phases = _phases(store, scope)
    return tuple(
        FailurePattern(
            condition=f"while {phases[tally.error.id]}" if tally.error.id in phases else "at times",
            what=tally.error.text,
            runs=tally.tasks,
            prevention=(_prevented(tally, store, scope),),
        )
        for tally in failing[:PATTERNS]
    )


def _phases(store: Store, scope: Scope) -> Mapping[str, Phase]:
    """Error -> the phase in which most runs met it, the earliest of several."""
    most: dict[str, tuple[int, Phase]] = {}
    for phase in Phase:
        for tally in store.recoveries.errors(scope, _MOST_ERRORS, phase=phase):
            if tally.tasks > most.get(tally.error.id, (0, phase))[0]:
                most[tally.error.id] = (tally.tasks, phase)
    return {error: phase for error, (_, phase) in most.items()}


def _prevented(tally: ErrorTally, store: Store, scope: Scope) -> str:
    """Return what most runs that resolved the error did; a methodology where there is one."""
    error = tally.error
    signature = error.signature(error.context)
    if abstracted := [
        methodology
        for methodology in _abstracted(signature, store, scope)
        if not methodology.keyword
    ]:
        general = max(
            abstracted, key=lambda methodology: (methodology.repo is not None, methodology.support)
        )
        return general.strategy
    question = ErrorQuestion(signature, SignatureLevel.TEMPLATE, scope)
    candidates = store.recoveries.for_error([question], _RECOVERIES)
    if not candidates:
        return f"nothing yet: none of {number_of(tally.tasks, 'task')} resolved it"
    best = next(_remedies([(one.instance_id, one.actions) for one in candidates]), None)
    if best is None or best.tasks < _AGREEING:
        return f"nothing that two tasks did; {number_of(tally.cleared, 'task')} cleared it"
    return f"{best.text} ({best.agreement})"


def _abstracted(error: ErrorSignature, store: Store, scope: Scope) -> Iterable[Methodology]:
    """Methodologies against this error that hold for any task and any message of it."""
    methodologies = store.methodologies.for_error([error], scope, _METHODOLOGIES)
    return (
        methodology
        for methodology in methodologies
        if methodology.task_type is None and methodology.repo in (None, scope.repo)
    )


COMMON = 10
_RUNS_AT_ONCE = 256


def no_mistakes(_: str) -> tuple[MistakePattern, ...]:
    """Return nothing: the value where statistics are sent, as a function cannot be."""
    return ()


class MemoryStats(Struct, frozen=True, omit_defaults=True):
    """Counts of the memory, and how its runs fail.

    *transitions* maps an error type to the probability of each next type in the same run.
    *common_mistakes* is a function of a situation; see `StatisticsEngine.get_common_mistakes`.
    *usage* is what models cost, by space. *withholding* compares shown with withheld answers to
    errors. *notes* counts live notes by kind; it is None if their database is away. *gate* is the
    gate fitted on this memory, if any.
    """

    error_frequency: Mapping[str, int]
    common_mistakes: Callable[[str], tuple[MistakePattern, ...]] = no_mistakes
    failure_patterns: tuple[FailurePattern, ...] = ()
    counts: MemoryCounts = field(default_factory=lambda: MemoryCounts({}, {}, {}, {}, {}, 0))
    transitions: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    usage: Mapping[str, Usage] = field(default_factory=dict)
    withholding: Effect = field(default_factory=lambda: effect_of(()))
    notes: Mapping[NoteKind, int] | None = None
    gate: MemoryGate | None = None


def _interventions(step: Step) -> Iterator[str]:
    if step.user_message:
        yield "messages"
    if step.interrupted:
        yield "interrupted"
    if step.denied:
        yield "denied"


class Interventions(Struct, frozen=True):
    """Numbers of *messages* of people after a step, *interrupted* steps and *denied* calls.

    *runs* counts runs with any of them, *total* all runs that were read.
    """

    messages: int
    interrupted: int
    denied: int
    runs: int
    total: int


@checked
class StatisticsEngine:
    """Error frequencies, transitions, common mistakes and failure patterns.

    All of it is counted on request: a cache could be out of date, in this process or in another.
    """

    def __init__(self, store: Store, usage: Callable[[], Mapping[str, Usage]] = dict) -> None:
        self._store = store
        self._usage = usage

    def get_stats(self) -> MemoryStats:
        """Return all statistics, those of common mistakes as a function."""
        return replace(self.get_counts(), common_mistakes=self.get_common_mistakes)

    def get_counts(self, repo: str = "") -> MemoryStats:
        """Return `get_stats` without a function; failure patterns of *repo* alone, if given."""
        met = self._store.recoveries.error_steps()
        return MemoryStats(
            counts=self._store.admin.counts(),
            error_frequency=type_frequency(met),
            transitions=_shares(type_transitions(met)),
            failure_patterns=self.get_failure_patterns(repo),
            usage=self._usage(),
            withholding=effect_of(self._store.exposures.all()),
            notes=self._notes(),
            gate=self._store.exposures.gate(),
        )

    def _notes(self) -> Mapping[NoteKind, int] | None:
        try:
            return self._store.notes.counts()
        except ContextGraphError:
            return None

    def update_from_batch(self, trajectories: Iterable[Trajectory]) -> MemoryStats:
        """Return the statistics, which include *trajectories*.

        Learning a run counts it, so nothing is added here. Raises `StoreError` for a run that is
        not in the memory.
        """
        ids = [trajectory.id for trajectory in trajectories]
        known = self._store.runs.learned(ids)
        for run in ids:
            if run not in known:
                raise StoreError(f"run {run} is not in the memory; learn it first")
        return self.get_stats()

    def get_error_frequency(self) -> Mapping[str, int]:
        """Return the number of fragments that met each error type, most frequent first."""
        return type_frequency(self._store.recoveries.error_steps())

    def get_error_transitions(self) -> Mapping[str, Mapping[str, float]]:
        """Return the probability of each next error type in a run, by error type; rows sum to 1."""
        return _shares(type_transitions(self._store.recoveries.error_steps()))

    def get_common_mistakes(
        self, situation: str = "", repo: str = ""
    ) -> tuple[MistakePattern, ...]:
        """Return the errors that most tasks met in *situation*, in *repo* if given.

        A situation is a phase, a type of task, a repository or a file name; other text stands for
        runs whose tasks are about its words. "" is any situation.
        """
        return tuple(
            MistakePattern(tally.error.text, tally.tasks, tally.cleared)
            for tally in errors_in(situation, repo, self._store, COMMON)
        )

    def get_failure_patterns(self, repo: str = "") -> tuple[FailurePattern, ...]:
        """Return the conditions under which runs fail, then errors that they leave open.

        Conditions are counted in at most 400 runs whose outcome is known, those that explain most
        failures first. Errors are those of at least three tasks that a third of them never
        resolved, worst first, with the phase in which most tasks met them.
        """
        errors = failure_patterns(self._store, Scope(repo or None))
        return (*self.get_failing_conditions(repo), *errors)

    def get_failing_conditions(self, repo: str = "") -> tuple[FailurePattern, ...]:
        """Return the conditions of `get_failure_patterns`, which takes as long in any memory."""
        everywhere = judged_runs(self._store)
        runs = judged_runs(self._store, Scope(repo)) if repo else everywhere
        return failing_conditions(self._store, runs, rates_of(everywhere))

    def get_interventions(self, repo: str = "") -> Interventions:
        """Return how often people intervened, in *repo* if given.

        Reads every step of the runs, which takes some milliseconds per run.
        """
        steps, runs, total = Counter[str](), 0, 0
        for run_id in self._store.runs.ids(repo or None):
            if (raw := self._store.runs.raw(run_id)) is None:
                continue
            total += 1
            counts = Counter(kind for step in raw.steps for kind in _interventions(step))
            runs += bool(counts)
            steps += counts
        return Interventions(steps["messages"], steps["interrupted"], steps["denied"], runs, total)

    def get_friction(self, repo: str = "", limit: NonNegativeInt = COMMON) -> tuple[Friction, ...]:
        """Return errors that recur across tasks, in *repo* if given, the most costly first.

        Returns at most *limit* errors, each met in at least two tasks.
        """
        return friction(self._store, repo, limit)

    def get_advice(self, since: Time | None = None, until: Time | None = None) -> AdviceFigures:
        """Return the figures of what was shown from *since* to before *until*."""
        return self.get_figures(self._store.exposures.tally(since, until))

    def get_figures(self, shown: ShownTally) -> AdviceFigures:
        """Return the figures of what was *shown*, with an estimate of the steps that it saved.

        Advice that was followed and cleared its error saves the median number of steps that the
        error took in the newest runs that cleared it, less the step that follows the advice. Each
        item costs a step if something else cleared the error, and so do 500 tokens of shown text.
        The ceiling is what would have been saved had all advice whose end is known been right, at
        no cost.
        """
        from statistics import median

        histories = self._store.recoveries.histories([*shown.known_at], _NEWEST)
        worth = {
            history.error.id: max(0.0, median(one.steps for one in history.clearances) - 1)
            for history in histories
            if history.clearances
        }
        saved = sum(worth.get(error, 0.0) * count for error, count in shown.helped.items())
        return AdviceFigures(
            shown=shown.shown,
            at_errors=shown.at_errors,
            known=shown.known,
            cleared=shown.cleared,
            followed=shown.followed,
            tokens=shown.tokens,
            saved=saved - shown.wrong - shown.tokens / TOKENS_OF_A_STEP,
            ceiling=sum((worth.get(one, 0.0) * n for one, n in shown.known_at.items()), 0.0),
        )

    def get_solve_rates(
        self, exclude_instances: Collection[str] = ()
    ) -> Mapping[Condition, SolveRates]:
        """Return how runs that ended with each condition went.

        Counts at most 400 runs whose outcome is known, none of *exclude_instances*.
        """
        excluded = Scope(None, frozenset(exclude_instances))
        return rates_of(judged_runs(self._store, excluded))

    def get_outcomes_over_time(self) -> tuple[OutcomePeriod, ...]:
        """Return counts of outcomes by period, oldest first."""
        return outcomes_over_time(self._runs())

    def _runs(self) -> Iterator[Trajectory]:
        """All runs, a few of them in memory at a time."""
        for ids in id_pages(self._store.runs, _RUNS_AT_ONCE):
            yield from self._store.runs.trajectories(ids).values()


def _shares(transitions: Mapping[str, Mapping[str, int]]) -> dict[str, dict[str, float]]:
    return {
        error: {following: count / sum(counts.values()) for following, count in counts.items()}
        for error, counts in transitions.items()
    }


_TOP, _TOP_TRANSITIONS, _LABEL_WIDTH = 15, 12, 34
_LEAST_SHOWN = 0.01
_DOTS_PER_INCH = 120
_COLOURS = {"solved": "#2a9d4a", "failed": "#c8553d", "unknown": "#b8b8b8"}


def draw_statistics(statistics: "StatisticsEngine", folder: Path) -> list[Path]:
    """Draw errors, transitions and outcomes over time into *folder*, which is made if absent.

    Returns the files. Raises `MissingExtraError` without matplotlib.
    """
    frequency = statistics.get_error_frequency()
    figures = {
        "error_frequency": _frequency(frequency),
        "error_transitions": _transitions(list(frequency), statistics.get_error_transitions()),
        "outcomes": _outcomes(statistics.get_outcomes_over_time()),
    }
    return save_figures(figures, folder)


def save_figures(figures: "Mapping[str, Figure]", folder: Path) -> list[Path]:
    """Write *figures* as NAME.png into *folder*, which is made where absent; the files."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{name}.png" for name in figures]
    for file, figure in zip(files, figures.values(), strict=True):
        figure.savefig(file, dpi=_DOTS_PER_INCH)
    return files


def _frequency(frequency: Mapping[str, int]) -> "Figure":
    shown = list(frequency.items())[:_TOP]
    figure, axes = new_figure(8, 1.2 + 0.32 * max(4, len(shown)))
    if not shown:
        return _nothing_in(figure)
    bars = axes.barh([cut(name, _LABEL_WIDTH) for name, _ in shown], [count for _, count in shown])
    axes.bar_label(bars, padding=3, fontsize=8)
    axes.invert_yaxis()
    axes.margins(x=0.1)
    axes.set_xlabel("fragments that met it")
    axes.set_title(f"Most frequent errors ({len(shown)} of {len(frequency)} types)")
    axes.spines[["top", "right"]].set_visible(False)
    return figure


def _transitions(
    frequent: Sequence[str], transitions: Mapping[str, Mapping[str, float]]
) -> "Figure":
    names = [name for name in frequent if name in transitions][:_TOP_TRANSITIONS]
    figure, axes = new_figure(9.5, 7.5)
    shares = [[transitions[name].get(other, 0.0) for other in names] for name in names]
    axes.set_title("After an error (row), how often which error comes next (column)")
    if not names:
        return _nothing_in(figure)
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    ticks, labels = range(len(names)), [cut(name, _LABEL_WIDTH) for name in names]
    axes.set_xticks(ticks, labels, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
    axes.set_yticks(ticks, labels, fontsize=8)
    for row, column in ((row, column) for row in ticks for column in ticks):
        share = shares[row][column]
        if share >= _LEAST_SHOWN:
            colour = "white" if share > 0.55 else "black"
            axes.text(
                column, row, f"{share:.0%}", ha="center", va="center", fontsize=8, color=colour
            )
    return figure


def _outcomes(periods: Sequence["OutcomePeriod"]) -> "Figure":
    figure, axes = new_figure(9, 4.2)
    if not periods:
        return _nothing_in(figure)
    places, below = range(len(periods)), [0] * len(periods)
    for outcome, colour in _COLOURS.items():
        counts = [period.outcomes[outcome] for period in periods]
        if any(counts):
            axes.bar(places, counts, bottom=below, color=colour, label=outcome, width=0.85)
        below = [low + count for low, count in zip(below, counts, strict=True)]
    every = max(1, -(-len(periods) // 8))
    axes.set_xticks(places[::every], _moments(periods, below)[::every], fontsize=8)
    axes.set_ylabel("runs")
    axes.locator_params("y", integer=True)
    axes.set_ylim(0, 1.05 * max(below))
    axes.set_title("How runs ended, oldest first")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False)
    return figure


def _moments(periods: Sequence["OutcomePeriod"], runs: Sequence[int]) -> list[str]:
    """Dates; of runs that all have the same date, which of them by number."""
    if periods[0].start.date() != periods[-1].end.date():
        return [f"{period.start:%Y-%m-%d}" for period in periods]
    return [f"run {before + 1:,}" for before in accumulate(runs, initial=0)][: len(periods)]


def new_figure(width: float, height: float) -> "tuple[Figure, Axes]":
    """Return an empty figure, sized in inches. Raises `MissingExtraError` without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError("plots need matplotlib", "plot") from error
    # A figure of its own, without pyplot, needs no display and leaves nothing open.
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots()


def _nothing_in(figure: "Figure") -> "Figure":
    """*figure* without axes, saying so."""
    figure.clear()
    figure.text(0.5, 0.5, "nothing to draw yet", ha="center", va="center")
    return figure

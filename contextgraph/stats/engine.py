"""Statistics: counts, error frequency and transitions, common mistakes, failure patterns."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from contextgraph.errors import ContextGraphError, StoreError
from contextgraph.governance import effect_of
from contextgraph.model import (
    Effect,
    ErrorQuestion,
    ErrorSignature,
    ErrorTally,
    FailurePattern,
    FittedGate,
    MemoryCounts,
    Methodology,
    MistakePattern,
    NoteKind,
    Outcome,
    Phase,
    RecoveryCandidate,
    RemedyPattern,
    Scope,
    SignatureLevel,
    Step,
    Trajectory,
    Usage,
)
from contextgraph.ports import Store, id_pages
from contextgraph.stats.errors import (
    Friction,
    error_text,
    errors_in,
    friction,
    type_frequency,
    type_transitions,
)
from contextgraph.stats.outcomes import (
    Ending,
    OutcomePeriod,
    SolveRates,
    ending_of,
    outcomes_over_time,
    solve_rates,
)
from contextgraph.text import number_of
from contextgraph.trace import SubmissionSign, describe_remedy

LEAST_RUNS = 3
PATTERNS = 50
_CONSIDERED = 300
_RECOVERIES = 200
_METHODOLOGIES = 32


def failure_patterns(store: Store, scope: Scope) -> tuple[FailurePattern, ...]:
    """Errors that a third of at least three runs never resolved, those of most such runs first."""
    common = store.recoveries.errors(scope, _CONSIDERED)
    failing = [
        tally
        for tally in common
        if tally.runs >= LEAST_RUNS and 3 * tally.cleared_runs <= 2 * tally.runs
    ]
    failing.sort(key=lambda tally: (tally.cleared_runs - tally.runs, tally.error.id))
    phases = _phases(store, scope)
    return tuple(
        FailurePattern(
            condition=f"while {phases[tally.error.id]}" if tally.error.id in phases else "at times",
            what=error_text(tally),
            count=tally.runs,
            prevented=_prevented(tally, store, scope),
        )
        for tally in failing[:PATTERNS]
    )


def _phases(store: Store, scope: Scope) -> Mapping[str, Phase]:
    """Error -> the phase in which most runs met it, the earliest of several."""
    most: dict[str, tuple[int, Phase]] = {}
    for phase in Phase:
        for tally in store.recoveries.errors(scope, _CONSIDERED, phase=phase):
            if tally.runs > most.get(tally.error.id, (0, phase))[0]:
                most[tally.error.id] = (tally.runs, phase)
    return {error: phase for error, (_, phase) in most.items()}


def _prevented(tally: ErrorTally, store: Store, scope: Scope) -> str:
    """What most of the runs that resolved the error did; as a methodology where there is one."""
    error = tally.error
    signature = error.signature(error.context)
    if abstracted := [
        methodology
        for methodology in _abstracted(signature, store, scope)
        if not methodology.keyword
    ]:
        best = max(
            abstracted, key=lambda methodology: (methodology.repo is not None, methodology.support)
        )
        return best.strategy
    question = ErrorQuestion(signature, SignatureLevel.TEMPLATE, scope)
    candidates = store.recoveries.for_error([question], _RECOVERIES)
    if not candidates:
        return f"nothing yet: none of {number_of(tally.runs, 'run')} resolved it"
    same = max(_by_pattern(candidates), key=_runs)
    actions = same[0].actions
    is_varied = len({candidate.actions for candidate in same}) > 1
    remedy = describe_remedy(actions, general=is_varied) or describe_remedy(actions)
    return f"{remedy} ({number_of(_runs(same), 'run')})"


def _abstracted(error: ErrorSignature, store: Store, scope: Scope) -> Iterable[Methodology]:
    """Methodologies against this error that hold for any task and any message of it."""
    methodologies = store.methodologies.for_error([error], scope, _METHODOLOGIES)
    return (
        methodology
        for methodology in methodologies
        if methodology.task_type is None and methodology.repo in (None, scope.repo)
    )


def _by_pattern(candidates: Iterable[RecoveryCandidate]) -> Iterable[list[RecoveryCandidate]]:
    """*candidates* by the patterns of their actions: verified ones first, else in given order."""
    groups: dict[tuple[bool, tuple[RemedyPattern, ...]], list[RecoveryCandidate]] = {}
    for candidate in candidates:
        patterns = tuple(action.pattern for action in candidate.actions)
        groups.setdefault((candidate.verified, patterns), []).append(candidate)
    return sorted(groups.values(), key=lambda group: not group[0].verified)


def _runs(candidates: Iterable[RecoveryCandidate]) -> int:
    return len({candidate.trajectory_id for candidate in candidates})


COMMON = 10
# So many runs show well enough what goes with failure.
_RUNS_LISTED, _RUNS_READ = 2_000, 400
_RUNS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class MemoryStats:
    """What the memory holds, and how runs fail.

    *transitions* gives, after an error type, the probability of each next one in the same run.
    *common_mistakes* is a function of a situation, see `StatisticsEngine.get_common_mistakes`.
    *usage* is what models cost for this memory, by space. *withholding* compares answers at errors
    that were shown with those that were withheld. *notes* are live ones by kind, None
    where they are in a database that is away. *gate* is the one fitted on the memory, if any.
    """

    counts: MemoryCounts
    error_frequency: Mapping[str, int]
    transitions: Mapping[str, Mapping[str, float]]
    common_mistakes: Callable[[str], tuple[MistakePattern, ...]]
    failure_patterns: tuple[FailurePattern, ...]
    usage: Mapping[str, Usage]
    withholding: Effect
    notes: Mapping[NoteKind, int] | None = None
    gate: FittedGate | None = None


def _interventions(step: Step) -> Iterator[str]:
    if step.user_message:
        yield "messages"
    if step.interrupted:
        yield "interrupted"
    if step.denied:
        yield "denied"


@dataclass(frozen=True, slots=True)
class Interventions:
    """How often people stepped in: *messages* after a step, *interrupted* steps, *denied* calls.

    *runs* counts those with any of them, *total* all runs that were read.
    """

    messages: int
    interrupted: int
    denied: int
    runs: int
    total: int


class StatisticsEngine:
    """Error frequencies, transitions, common mistakes and failure patterns.

    All of it is counted on request: a cache could be out of date, in this process or in another.
    Only how each run ended is kept, by its id, which its commands decide.
    """

    def __init__(self, store: Store, usage: Callable[[], Mapping[str, Usage]] = dict) -> None:
        self._store = store
        self._usage = usage
        self._endings: Mapping[str, Ending | None] = {}

    def get_stats(self) -> MemoryStats:
        """All of it."""
        met = self._store.recoveries.error_steps()
        return MemoryStats(
            counts=self._store.admin.counts(),
            error_frequency=type_frequency(met),
            transitions=_shares(type_transitions(met)),
            common_mistakes=self.get_common_mistakes,
            failure_patterns=self.get_failure_patterns(),
            usage=self._usage(),
            withholding=effect_of(self._store.exposures.all()),
            notes=self._notes(),
            gate=self._store.admin.gate(),
        )

    def _notes(self) -> Mapping[NoteKind, int] | None:
        try:
            return self._store.notes.counts()
        except ContextGraphError:
            return None

    def update_from_batch(self, trajectories: Iterable[Trajectory]) -> MemoryStats:
        """The statistics with *trajectories* in them.

        Learning a run counts it, so nothing is added here. Raises `StoreError` naming a run that
        the memory does not hold: it was not learned, or is forgotten.
        """
        ids = [trajectory.id for trajectory in trajectories]
        known = self._store.runs.learned(ids)
        for run in ids:
            if run not in known:
                raise StoreError(f"run {run} is not in the memory; learn it first")
        return self.get_stats()

    def get_error_frequency(self) -> Mapping[str, int]:
        """Error type -> number of fragments that met it, most frequent first."""
        return type_frequency(self._store.recoveries.error_steps())

    def get_error_transitions(self) -> Mapping[str, Mapping[str, float]]:
        """Error type -> next error type in the same run -> probability; each row sums to 1."""
        return _shares(type_transitions(self._store.recoveries.error_steps()))

    def get_common_mistakes(
        self, situation: str = "", repo: str = ""
    ) -> tuple[MistakePattern, ...]:
        """The errors that most runs met in *situation*, within *repo* where one is given.

        A situation is a phase, a type of task, a repository, a file name, or else free text, which
        stands for the runs whose tasks are about its words; "" is any.
        """
        return tuple(
            MistakePattern(error_text(tally), tally.runs, tally.cleared_runs)
            for tally in errors_in(situation, repo, self._store, COMMON)
        )

    def get_failure_patterns(self, repo: str = "") -> tuple[FailurePattern, ...]:
        """Errors of at least three runs that a third of them never resolved, worst first.

        Each has the phase in which most runs met it, and what most runs did that resolved it.
        """
        return failure_patterns(self._store, Scope(repo or None))

    def get_interventions(self, repo: str = "") -> Interventions:
        """How often people stepped in, in *repo* where one is given.

        This reads every step of the runs: some milliseconds for each run.
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

    def get_friction(self, repo: str = "", limit: int = COMMON) -> tuple[Friction, ...]:
        """What keeps failing across tasks, in *repo* where one is given; most tasks first.

        At most *limit* errors, each of at least two tasks.
        """
        return friction(self._store, repo, limit)

    def get_solve_rates(
        self, exclude_instances: Iterable[str] = ()
    ) -> Mapping[SubmissionSign, SolveRates]:
        """How runs that ended with each sign went, of at most 400 whose outcome is known.

        Runs of *exclude_instances* do not count. The first call reads the steps of these runs,
        which takes about a second; later ones read only runs that are new among them.
        """
        # Ids are digests: the first ones are a random sample.
        known = self._store.runs.learned(self._store.runs.ids(limit=_RUNS_LISTED)).values()
        judged = (run for run in known if run.outcome is not Outcome.UNKNOWN)
        outcomes = {run.trajectory_id: run.outcome for run in islice(judged, _RUNS_READ)}
        endings = self._endings
        self._endings = {
            run: endings[run] if run in endings else ending_of(self._store, run) for run in outcomes
        }
        return solve_rates(outcomes, self._endings, frozenset(exclude_instances))

    def get_outcomes_over_time(self) -> tuple[OutcomePeriod, ...]:
        """How runs ended, from the oldest to the newest."""
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

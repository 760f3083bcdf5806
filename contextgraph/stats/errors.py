"""The errors that runs met in a situation, and those that recur across tasks."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath

from contextgraph.model import (
    Clearance,
    ErrorHistory,
    ErrorSteps,
    ErrorTally,
    Phase,
    RemedyAction,
    Scope,
    TaskType,
    Trajectory,
)
from contextgraph.ports import Store
from contextgraph.text import words
from contextgraph.trace import AdviceKey, advice_key, describe_remedy, is_hazardous, is_retry


def error_text(tally: ErrorTally) -> str:
    """The error of *tally* as text; type and message, neither repeated."""
    error = tally.error
    if error.template in {"", error.error_type} or not error.error_type:
        return error.error_type or error.template or error.family
    # Many messages begin with the last word of their type: "SyntaxError: …" of E999 SyntaxError.
    named = error.error_type.split()[-1]
    return f"{error.error_type}: {error.template.removeprefix(f'{named}: ')}"


RUNS_OF_A_KIND = 5_000
RUNS_ABOUT_A_TEXT = 50
FRAGMENTS_AT_A_FILE = 2_000


def errors_in(situation: str, repo: str, store: Store, limit: int) -> Sequence[ErrorTally]:
    """Errors met in *situation* (see `StatisticsEngine.get_common_mistakes`), most runs first."""
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
    """Error type -> in how many fragments it occurred, most frequent first, then by name."""
    pairs = {(error.fragment_id, error.error_type) for run in met.values() for error in run}
    return _most_frequent_first(Counter(error_type for _, error_type in pairs))


def type_transitions(met: Mapping[str, Sequence[ErrorSteps]]) -> dict[str, dict[str, int]]:
    """Error type -> the one that came next in the same run -> how often, most frequent first.

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
# Errors that are looked at for each that is listed, and the newest runs that met each.
_CONSIDERED, _RUNS = 4, 5_000
_REMEDIES = 3


@dataclass(frozen=True, slots=True)
class FrictionRemedy:
    """What cleared an error in so many *tasks*, in words."""

    text: str
    tasks: int


@dataclass(frozen=True, slots=True)
class Friction:
    """An error that several tasks met; several runs of one task count once.

    *error* is its type and message, *cleared* the number of *tasks* in which it was cleared.
    *steps_lost* is the median from the error to its clearance, None where nothing cleared it;
    *remedies* are what most of them did, each in at least two tasks where two
    cleared it, without repetitions.
    """

    error_id: str
    error: str
    tasks: int
    cleared: int
    steps_lost: float | None
    remedies: tuple[FrictionRemedy, ...]


def friction(store: Store, repo: str, limit: int) -> tuple[Friction, ...]:
    """The errors of most tasks, in *repo* where one is given, at most *limit*; ties by id."""
    tallies = store.recoveries.errors(Scope(repo or None), _CONSIDERED * limit)
    histories = store.recoveries.histories([tally.error.id for tally in tallies], _RUNS)
    runs = store.runs.trajectories(
        {run.trajectory_id for history in histories for run in history.occurrences}
    )
    by_id = {tally.error.id: tally for tally in tallies}
    frictions = [
        entry
        for entry in (_friction(by_id[h.error.id], h, runs, repo) for h in histories)
        if entry.tasks >= _LEAST_TASKS
    ]
    return tuple(
        sorted(frictions, key=lambda entry: (-entry.tasks, entry.cleared, entry.error_id))[:limit]
    )


def _friction(
    tally: ErrorTally, history: ErrorHistory, runs: Mapping[str, Trajectory], repo: str
) -> Friction:
    def is_selected(trajectory_id: str) -> bool:
        return trajectory_id in runs and repo.casefold() in ("", runs[trajectory_id].repo)

    from statistics import median  # loads what no query needs

    met = [
        occurrence.trajectory_id
        for occurrence in history.occurrences
        if is_selected(occurrence.trajectory_id)
    ]
    cleared = [
        clearance
        for clearance in history.clearances
        if is_selected(clearance.trajectory_id) and clearance.recovered.verified
    ]
    return Friction(
        error_id=history.error.id,
        error=error_text(tally),
        tasks=_tasks(met, runs),
        cleared=_tasks((clearance.trajectory_id for clearance in cleared), runs),
        steps_lost=median(clearance.steps for clearance in cleared) if cleared else None,
        remedies=tuple(_remedies(cleared, runs))[:_REMEDIES],
    )


def _remedies(
    cleared: Collection[Clearance], runs: Mapping[str, Trajectory]
) -> Iterator[FrictionRemedy]:
    """The actions that tasks which cleared it agree on, the most frequent first."""
    by_advice: dict[AdviceKey, list[tuple[RemedyAction, str]]] = {}
    for clearance in cleared:
        for action in clearance.recovered.actions:
            if not (is_retry([action]) or is_hazardous([action])):
                by_advice.setdefault(advice_key((action,)), []).append(
                    (action, clearance.trajectory_id)
                )
    by_text: dict[str, set[str]] = {}
    for did in by_advice.values():
        # In general terms where it was done to different things.
        actions = {action for action, _ in did}
        text = describe_remedy([did[0][0]], general=len(actions) > 1)
        by_text.setdefault(text, set()).update(run for _, run in did)
    counted = (FrictionRemedy(text, _tasks(did, runs)) for text, did in by_text.items() if text)
    tasks = _tasks((clearance.trajectory_id for clearance in cleared), runs)
    least = max(min(_LEAST_TASKS, tasks), _LEAST_SHARE * tasks)
    remedies = (remedy for remedy in counted if remedy.tasks >= least)
    yield from sorted(remedies, key=lambda remedy: (-remedy.tasks, remedy.text))


def _tasks(runs: Iterable[str], known: Mapping[str, Trajectory]) -> int:
    return len({known[run].instance_id for run in runs})

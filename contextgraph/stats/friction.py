"""What keeps failing across tasks, how much it costs, and what cleared it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from contextgraph.model import (
    Clearance,
    ErrorHistory,
    ErrorTally,
    RemedyPattern,
    Scope,
    Trajectory,
)
from contextgraph.ports import Store
from contextgraph.stats.errors import error_text
from contextgraph.trace import describe_remedy, is_retry

# An error of one task does not count as friction across tasks.
_LEAST_TASKS = 2
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
    *remedies* are the most frequent ones, without repetitions.
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
    histories = store.recoveries.histories([one.error.id for one in tallies], _RUNS)
    runs = store.runs.trajectories(
        {run.trajectory_id for history in histories for run in history.occurrences}
    )
    by_id = {tally.error.id: tally for tally in tallies}
    found = [
        one
        for one in (_friction(by_id[h.error.id], h, runs, repo) for h in histories)
        if one.tasks >= _LEAST_TASKS
    ]
    return tuple(sorted(found, key=lambda one: (-one.tasks, one.cleared, one.error_id))[:limit])


def _friction(
    tally: ErrorTally, history: ErrorHistory, runs: Mapping[str, Trajectory], repo: str
) -> Friction:
    def is_asked(trajectory_id: str) -> bool:
        return trajectory_id in runs and repo.casefold() in ("", runs[trajectory_id].repo)

    met = [one.trajectory_id for one in history.occurrences if is_asked(one.trajectory_id)]
    cleared = [
        one for one in history.clearances if is_asked(one.trajectory_id) and one.recovered.verified
    ]
    return Friction(
        error_id=history.error.id,
        error=error_text(tally),
        tasks=_tasks(met, runs),
        cleared=_tasks((one.trajectory_id for one in cleared), runs),
        steps_lost=median(one.steps for one in cleared) if cleared else None,
        remedies=tuple(_remedies(cleared, runs))[:_REMEDIES],
    )


def _remedies(
    cleared: Iterable[Clearance], runs: Mapping[str, Trajectory]
) -> Iterator[FrictionRemedy]:
    """What was done, by its patterns, the most frequent first."""
    groups: dict[tuple[RemedyPattern, ...], list[Clearance]] = {}
    for one in cleared:
        if not is_retry(one.recovered.actions):
            patterns = tuple(action.pattern for action in one.recovered.actions)
            groups.setdefault(patterns, []).append(one)
    found = [
        FrictionRemedy(_text_of(group), _tasks((one.trajectory_id for one in group), runs))
        for group in groups.values()
    ]
    yield from sorted((one for one in found if one.text), key=lambda one: (-one.tasks, one.text))


def _text_of(group: Sequence[Clearance]) -> str:
    """What all of *group* did: in general terms where they did it to different things.

    Empty where these say nothing.
    """
    actions = group[0].recovered.actions
    return describe_remedy(actions, general=any(one.recovered.actions != actions for one in group))


def _tasks(runs: Iterable[str], known: Mapping[str, Trajectory]) -> int:
    return len({known[run].instance_id for run in runs})

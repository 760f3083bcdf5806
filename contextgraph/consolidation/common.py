"""What a number of clearances have in common, said once, the most frequent first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contextgraph.consolidation.move import Move
from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.model import Clearance, CommonRemedy, Outcome
from contextgraph.text import subject_of

# The outcome of a run weights what it did, and never filters it.
_WEIGHT = {Outcome.SOLVED: 1.0, Outcome.UNKNOWN: 0.96, Outcome.FAILED: 0.94}
# A concrete remedy is said rather than the general one that it is a case of, where it has at least
# this part of its runs.
_CONCRETE = 0.6

Told = Sequence[tuple[Clearance, Sequence[Move]]]


@dataclass(frozen=True, slots=True)
class Common:
    """Remedies with the clearances that they cover, in the order in which they were given."""

    remedies: tuple[CommonRemedy, ...] = ()
    clearances: tuple[Clearance, ...] = ()
    concrete: bool = False


def common_in(
    told: Told, policy: ConsolidationPolicy, *, general: bool, narrowed: bool = False
) -> Common:
    """What the clearances *told* with their moves have in common; empty where it is nothing much.

    *general*: what was seen in one repository only does not count. *narrowed*: all are about one
    thing. `Common.concrete` says whether the first remedy is of these very names.
    """
    enough = policy.share * len({clearance.trajectory_id for clearance, _ in told})
    repositories = policy.repositories if general else 0
    left, chosen = list(told), list[tuple[Move, list[Clearance]]]()
    while len(chosen) < policy.remedies:
        fitting = {
            move: clearances
            for move, clearances in _by_move(left).items()
            if len(clearances) >= policy.clearances
            and len({one.trajectory_id for one in clearances}) >= max(policy.runs, enough)
            and len({one.repo for one in clearances}) >= repositories
            and (narrowed or _stands_alone(move, clearances))
        }
        if not fitting:
            break
        chosen.append(_best(fitting))
        covered = {id(clearance) for clearance in chosen[-1][1]}
        left = [item for item in left if id(item[0]) not in covered]
    covered = {id(clearance) for _, clearances in chosen for clearance in clearances}
    return Common(
        tuple(_remedy(move, clearances) for move, clearances in chosen),
        tuple(clearance for clearance, _ in told if id(clearance) in covered),
        bool(chosen) and chosen[0][0].level == 0,
    )


def _by_move(told: Told) -> dict[Move, list[Clearance]]:
    found: dict[Move, list[Clearance]] = {}
    for clearance, moves in told:
        for move in moves:
            found.setdefault(move, []).append(clearance)
    return found


def _best(fitting: Mapping[Move, list[Clearance]]) -> tuple[Move, list[Clearance]]:
    """The move of most runs, or a concrete one that most of these did."""
    ranked = sorted(fitting, key=lambda move: (-_weight(fitting[move]), move.level, move.text))
    best = ranked[0]
    concrete = next((move for move in ranked if move.level == 0), best)
    if _weight(fitting[concrete]) >= _CONCRETE * _weight(fitting[best]):
        best = concrete
    return best, fitting[best]


def _stands_alone(move: Move, clearances: Sequence[Clearance]) -> bool:
    """False for what is said of one thing, without naming it: `pip install PyYAML` for any module.

    It is said where the error is narrowed to messages about that thing.
    """
    if move.level > 0:
        return True
    subjects = {subject_of(clearance.recovered.message) for clearance in clearances}
    return len(subjects) > 1 or all(subject in move.text for subject in subjects)


def _weight(clearances: Sequence[Clearance]) -> float:
    outcomes = {clearance.trajectory_id: clearance.outcome for clearance in clearances}
    return sum(_WEIGHT[outcome] for outcome in outcomes.values())


def _remedy(move: Move, clearances: Sequence[Clearance]) -> CommonRemedy:
    return CommonRemedy(
        text=move.text,
        runs=len({clearance.trajectory_id for clearance in clearances}),
        repositories=len({clearance.repo for clearance in clearances}),
        steps=sum(clearance.steps for clearance in clearances) / len(clearances),
    )

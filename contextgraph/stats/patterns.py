"""Failure patterns: what goes wrong, when, and what prevented it."""

import re
from collections.abc import Iterable, Mapping

from contextgraph.model import (
    ErrorQuestion,
    ErrorSignature,
    ErrorTally,
    FailurePattern,
    Methodology,
    Phase,
    RecoveryCandidate,
    Scope,
    SignatureLevel,
    counted,
)
from contextgraph.stats.counting import CountingStore, told
from contextgraph.text import number_of
from contextgraph.trace import in_general

LEAST_RUNS = 3
PATTERNS = 50
_CONSIDERED = 300
_RECOVERIES = 200
_METHODOLOGIES = 32
_NUMBER = re.compile(r"\b\d+\b")


def failure_patterns(store: CountingStore, scope: Scope) -> tuple[FailurePattern, ...]:
    """Errors that a third of at least three runs never got over, those of most such runs first."""
    common = store.common_errors(None, scope, _CONSIDERED)
    failing = [tally for tally in common if _fails(tally)]
    failing.sort(key=lambda tally: (tally.cleared_runs - tally.runs, tally.error.id))
    phases = _phases(store, scope)
    return tuple(
        FailurePattern(
            condition=f"while {phases[tally.error.id]}" if tally.error.id in phases else "at times",
            what=told(tally),
            count=tally.runs,
            prevented=_prevented(tally, store, scope),
        )
        for tally in failing[:PATTERNS]
    )


def _fails(tally: ErrorTally) -> bool:
    return tally.runs >= LEAST_RUNS and 3 * tally.cleared_runs <= 2 * tally.runs


def _phases(store: CountingStore, scope: Scope) -> Mapping[str, Phase]:
    """Error -> the phase in which most runs met it, the earliest of several."""
    most: dict[str, tuple[int, Phase]] = {}
    for phase in Phase:
        for tally in store.common_errors(phase, scope, _CONSIDERED):
            if tally.runs > most.get(tally.error.id, (0, phase))[0]:
                most[tally.error.id] = (tally.runs, phase)
    return {error: phase for error, (_, phase) in most.items()}


def _prevented(tally: ErrorTally, store: CountingStore, scope: Scope) -> str:
    """What most of the runs did that got over the error, as it was abstracted where it was."""
    error = tally.error
    asked = ErrorSignature(error.family, error.error_type, error.context, error.template)
    if abstracted := [one for one in _abstracted(asked, store, scope) if not one.keyword]:
        best = max(abstracted, key=lambda one: (one.repo is not None, one.support))
        return counted(best.strategy)
    question = ErrorQuestion(asked, SignatureLevel.TEMPLATE, scope)
    found = store.recoveries_for_error([question], _RECOVERIES)
    if not found:
        return f"nothing yet: none of {number_of(tally.runs, 'run')} got over it"
    alike = max(_alike(found), key=_runs)
    count = _runs(alike)
    manner = "" if count == 1 else " in like manner"
    return f"{alike[0].recovered.what} ({number_of(count, 'run')}{manner})"


def _abstracted(asked: ErrorSignature, store: CountingStore, scope: Scope) -> Iterable[Methodology]:
    """Methodologies against this error that hold for any task and any message of it."""
    found = store.methodologies_for_error([asked], scope, _METHODOLOGIES)
    return (one for one in found if one.task_type is None and one.repo in (None, scope.repo))


def _alike(found: Iterable[RecoveryCandidate]) -> Iterable[list[RecoveryCandidate]]:
    """*found* by what they come to: verified ones first, else in the given order."""
    groups: dict[tuple[bool, str], list[RecoveryCandidate]] = {}
    for one in found:
        what = one.recovered.what
        key = (one.recovered.verified, _NUMBER.sub("", in_general(what) or what))
        groups.setdefault(key, []).append(one)
    return sorted(groups.values(), key=lambda group: not group[0].recovered.verified)


def _runs(alike: Iterable[RecoveryCandidate]) -> int:
    return len({one.trajectory.id for one in alike})

"""The channels: each finds, in its own way, what may help. Leaving one out is the ablation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import PurePosixPath
from typing import TypeVar

from contextgraph.model import (
    ErrorQuestion,
    FragmentCandidate,
    Scope,
    SignatureLevel,
)
from contextgraph.ports import RetrievalStore
from contextgraph.retrieval.findings import (
    OVERFETCH,
    CaseHit,
    Channel,
    Findings,
    best_first,
    case_hit,
    ranked_cases,
    ranked_recoveries,
)
from contextgraph.retrieval.query import Query
from contextgraph.retrieval.semantic import by_semantic
from contextgraph.retrieval.suggestions import methodologies_for, practices_for

# With so many candidates from the repository, others are not asked.
ENOUGH = 12
_LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)
FRAGMENTS_AT_FILE = 2
_SAME_FILE = 0.5

Item = TypeVar("Item")


def by_error(query: Query, store: RetrievalStore) -> Findings:
    """What cleared this error before: nearest scope first, and most exact level of agreement."""
    signature = query.signature
    if signature is None:
        return Findings()
    asked = [
        ErrorQuestion(variant, level, scope)
        for scope, level, variant in product(query.scopes, _LEVELS, signature.variants())
    ]
    abstracted = store.ahead(partial(methodologies_for, query, store))
    found = store.recoveries_for_error(asked, OVERFETCH, ENOUGH)
    return Findings(recoveries=ranked_recoveries(query, found), methodologies=abstracted())


def by_task(query: Query, store: RetrievalStore) -> Findings:
    """Past runs of the same repository, those of the same type of task first; what worked in it."""
    if not query.state.repo or not query.task_words:
        return Findings()
    found = store.trajectories_for_task(query.task_type, query.scope, OVERFETCH)
    if len(found) < ENOUGH:
        found = [*found, *store.trajectories_for_task(None, query.scope, OVERFETCH)]
    cases = ranked_cases(query, found)
    return Findings(cases=cases, methodologies=practices_for(query, store))


def by_state(query: Query, store: RetrievalStore) -> Findings:
    """Past runs that had the same file open in the same phase, with what they did there.

    And what worked in that phase in the repository.
    """
    state = query.state
    if not (state.repo and state.phase):
        return Findings()
    of_phase = [hit for hit in practices_for(query, store) if hit.methodology.phase is state.phase]
    found: Sequence[FragmentCandidate] = ()
    if state.open_file:
        name = PurePosixPath(state.open_file).name
        found = store.fragments_for_state(state.phase, name, query.scope, OVERFETCH)
    cases = best_first([_at_file(query, group) for group in _by_run(found)])
    return Findings(cases=cases, methodologies=tuple(of_phase))


def by_lexical(query: Query, store: RetrievalStore) -> Findings:
    """Runs whose task, and recoveries whose message, have the same rare words."""
    cases = store.ahead(partial(_in_words, store.trajectories_for_text, query.task_words, query))
    recoveries = _in_words(store.recoveries_for_text, query.error_words, query)
    return Findings(ranked_recoveries(query, recoveries), ranked_cases(query, cases()))


CHANNELS: Mapping[str, Channel] = {
    "error": by_error,
    "task": by_task,
    "state": by_state,
    "lexical": by_lexical,
    "semantic": by_semantic,
}


def _in_words(
    texts: Callable[[Sequence[str], Scope, int], Sequence[Item]], words: Sequence[str], query: Query
) -> Sequence[Item]:
    """What has some of *words* in the nearest scope where anything has."""
    found = (texts(words, scope, OVERFETCH) for scope in query.scopes if words)
    return next(filter(None, found), ())


def _by_run(found: Sequence[FragmentCandidate]) -> list[list[FragmentCandidate]]:
    runs: dict[str, list[FragmentCandidate]] = {}
    for candidate in found:
        runs.setdefault(candidate.trajectory.id, []).append(candidate)
    return list(runs.values())


def _at_file(query: Query, run: Sequence[FragmentCandidate]) -> CaseHit:
    case = case_hit(query, run[0].trajectory)
    fragments = tuple(candidate.fragment for candidate in run[:FRAGMENTS_AT_FILE])
    return replace(case, evidence=_SAME_FILE + case.evidence / 2, fragments=fragments)

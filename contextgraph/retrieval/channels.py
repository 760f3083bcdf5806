"""The channels: each finds, in its own way, what may help. Leaving one out is the ablation."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain, product
from pathlib import PurePosixPath

from contextgraph.model import (
    ErrorQuestion,
    FragmentCandidate,
    SignatureLevel,
)
from contextgraph.ports import Store
from contextgraph.retrieval.query import (
    OVERFETCH,
    CaseHit,
    Channel,
    Findings,
    Query,
    best_first,
    case_hit,
    ranked_cases,
)
from contextgraph.retrieval.semantic import by_semantic
from contextgraph.retrieval.suggestions import methodologies_for, practices_for

# With so many runs of this type of task, others are not searched.
ENOUGH = 12
# Recoveries taken from the store per question: agreement counts them.
RECOVERIES = 128
_LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)
FRAGMENTS_AT_FILE = 2
_SAME_FILE = 0.5


def by_error(query: Query, store: Store) -> Findings:
    """What cleared errors of the same template or type, here and everywhere, and advice on it."""
    signature = query.signature
    if signature is None:
        return Findings()
    asked = [
        ErrorQuestion(variant, level, scope)
        for scope, level, variant in product(query.scopes, _LEVELS, signature.variants())
    ]
    abstracted = store.admin.prefetch(partial(methodologies_for, query, store))
    found = store.recoveries.for_error(asked, RECOVERIES)
    return Findings(recoveries=tuple(found), methodologies=abstracted())


def by_task(query: Query, store: Store) -> Findings:
    """Past runs of the same repository, those of the same type of task first; what worked in it."""
    if query.signature or not query.state.repo or not query.task_words:
        return Findings()
    found = store.runs.for_task(query.task_type, query.scope, OVERFETCH)
    if len(found) < ENOUGH:
        found = [*found, *store.runs.for_task(None, query.scope, OVERFETCH)]
    cases = ranked_cases(query, found)
    return Findings(cases=cases, methodologies=practices_for(query, store))


def by_state(query: Query, store: Store) -> Findings:
    """Past runs that had the same file open in the same phase, with what they did there.

    And what worked in that phase in the repository.
    """
    state = query.state
    if query.signature or not (state.repo and state.phase):
        return Findings()
    of_phase = [hit for hit in practices_for(query, store) if hit.methodology.phase is state.phase]
    found: Sequence[FragmentCandidate] = ()
    if state.open_file:
        name = PurePosixPath(state.open_file).name
        found = store.runs.fragments_for_state(state.phase, name, query.scope, OVERFETCH)
    cases = best_first([_at_file(query, group) for group in _by_run(found)])
    return Findings(cases=cases, methodologies=tuple(of_phase))


def by_lexical(query: Query, store: Store) -> Findings:
    """Recoveries whose error has the same rare words; without an error, runs whose task has."""
    if query.signature:
        texts = store.recoveries.for_text
        found = (texts(query.error_words, scope, OVERFETCH) for scope in query.scopes)
        return Findings(recoveries=tuple(chain.from_iterable(found)) if query.error_words else ())
    runs = (store.runs.for_text(query.task_words, scope, OVERFETCH) for scope in query.scopes)
    return Findings(cases=ranked_cases(query, next(filter(None, runs), ())))


CHANNELS: Mapping[str, Channel] = {
    "error": by_error,
    "task": by_task,
    "state": by_state,
    "lexical": by_lexical,
    "semantic": by_semantic,
}


def _by_run(found: Sequence[FragmentCandidate]) -> list[list[FragmentCandidate]]:
    runs: dict[str, list[FragmentCandidate]] = {}
    for candidate in found:
        runs.setdefault(candidate.trajectory.id, []).append(candidate)
    return list(runs.values())


def _at_file(query: Query, run: Sequence[FragmentCandidate]) -> CaseHit:
    case = case_hit(query, run[0].trajectory)
    fragments = tuple(candidate.fragment for candidate in run[:FRAGMENTS_AT_FILE])
    return replace(case, evidence=_SAME_FILE + case.evidence / 2, fragments=fragments)

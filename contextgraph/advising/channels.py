"""The channels of retrieval. For an ablation, leave one out."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain, product
from pathlib import PurePosixPath

from contextgraph.advising.query import (
    OVERFETCH,
    CaseHit,
    Channel,
    Findings,
    Query,
    best_first,
    case_hit,
    ranked_cases,
)
from contextgraph.advising.semantic import by_semantic
from contextgraph.model import (
    ErrorQuestion,
    ErrorSignature,
    FragmentCandidate,
    Methodology,
    RecoveryCandidate,
    SignatureLevel,
)
from contextgraph.ports import Store
from contextgraph.text import subject_of

# With so many runs of this type of task, others are not searched.
ENOUGH = 12
# Recoveries taken from the store per question: agreement counts them.
RECOVERIES = 128
RECOVERIES_BY_WORDS = 16
# Where so many are of the same kind of error, those with the same words only add noise.
ENOUGH_OF_KIND = 100
_LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)
FRAGMENTS_AT_FILE = 2
_SAME_FILE = 0.5
_METHODOLOGIES = 64
# What a methodology is about: of this very message, of this repository, of the error in general.
_OF_MESSAGE_HERE, _OF_MESSAGE, _OF_REPO, _GENERAL = 0.95, 0.85, 0.75, 0.6
# How much of its rank depends on its confidence.
_BY_CONFIDENCE = 0.25


def by_error(query: Query, store: Store) -> Findings:
    """What cleared errors of the same template or type, here and everywhere, and advice on it."""
    signature = query.signature
    if signature is None:
        return Findings()
    known = _methodologies(query, signature, store)
    return Findings(recoveries=tuple(_of_kind(query, store)), methodologies=known)


def by_task(query: Query, store: Store) -> Findings:
    """Past runs of the same repository, those of the same type of task first."""
    if query.is_at_error or not query.state.repo or not query.task_words:
        return Findings()
    runs = store.runs.for_task(query.task_type, query.scope, OVERFETCH)
    if len(runs) < ENOUGH:
        runs = [*runs, *store.runs.for_task(None, query.scope, OVERFETCH)]
    return Findings(cases=ranked_cases(query, runs))


def by_state(query: Query, store: Store) -> Findings:
    """Past runs that had the same file open in the same phase, with what they did there."""
    state = query.state
    if query.is_at_error or not (state.repo and state.phase and state.open_file):
        return Findings()
    name = PurePosixPath(state.open_file).name
    candidates = store.runs.find_fragments(
        query.scope, OVERFETCH, phase=state.phase, file_name=name
    )
    return Findings(cases=best_first([_at_file(query, group) for group in _by_run(candidates)]))


def by_lexical(query: Query, store: Store) -> Findings:
    """Runs whose task has the same rare words; at a rare error, recoveries whose error has."""
    if query.is_at_error:
        if not query.error_words or len(_of_kind(query, store)) >= ENOUGH_OF_KIND:
            return Findings()
        texts = store.recoveries.for_text
        recoveries = (
            texts(query.error_words, scope, RECOVERIES_BY_WORDS) for scope in query.scopes
        )
        return Findings(recoveries=tuple(chain.from_iterable(recoveries)))
    runs = (store.runs.for_text(query.task_words, scope, OVERFETCH) for scope in query.scopes)
    return Findings(cases=ranked_cases(query, next(filter(None, runs), ())))


CHANNELS: Mapping[str, Channel] = {
    "error": by_error,
    "task": by_task,
    "state": by_state,
    "lexical": by_lexical,
    "semantic": by_semantic,
}


def _of_kind(query: Query, store: Store) -> Sequence[RecoveryCandidate]:
    """Recoveries of errors with the template or the type of that of *query*, searched once."""
    if query.signature is not None and not query.recoveries:
        variants = query.signature.variants()
        questions = [
            ErrorQuestion(variant, level, scope)
            for scope, level, variant in product(query.scopes, _LEVELS, variants)
        ]
        query.recoveries.extend(store.recoveries.for_error(questions, RECOVERIES))
    return query.recoveries


def _methodologies(
    query: Query, signature: ErrorSignature, store: Store
) -> tuple[Methodology, ...]:
    """What was abstracted from earlier clearances of the error of *query*, best first."""
    methodologies = store.methodologies.for_error(signature.variants(), query.scope, _METHODOLOGIES)
    subject = subject_of(signature.message)
    fitting = [
        methodology
        for methodology in methodologies
        if methodology.repo in (None, query.state.repo)
        and (methodology.task_type is None or methodology.task_type is query.task_type)
        and methodology.keyword in ("", subject)
    ]
    return tuple(sorted(fitting, key=lambda methodology: (-_evidence(methodology), methodology.id)))


def _evidence(methodology: Methodology) -> float:
    here = methodology.repo is not None
    if methodology.keyword:
        base = _OF_MESSAGE_HERE if here else _OF_MESSAGE
    else:
        base = _OF_REPO if here else _GENERAL
    return base * (1 - _BY_CONFIDENCE + _BY_CONFIDENCE * methodology.confidence)


def _by_run(candidates: Sequence[FragmentCandidate]) -> list[list[FragmentCandidate]]:
    runs: dict[str, list[FragmentCandidate]] = {}
    for candidate in candidates:
        runs.setdefault(candidate.trajectory.id, []).append(candidate)
    return list(runs.values())


def _at_file(query: Query, run: Sequence[FragmentCandidate]) -> CaseHit:
    case = case_hit(query, run[0].trajectory)
    fragments = tuple(candidate.fragment for candidate in run[:FRAGMENTS_AT_FILE])
    return replace(case, evidence=_SAME_FILE + case.evidence / 2, fragments=fragments)

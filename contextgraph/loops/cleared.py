"""Ways out of a loop that has an error: what cleared it."""

from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from contextgraph.loops.adviser import Adviser, EvidenceStore
from contextgraph.loops.bearing import bears_on, names_of
from contextgraph.loops.ways import Proof, WayOut, merged
from contextgraph.model import (
    ErrorQuestion,
    ErrorSignature,
    Fragment,
    FragmentType,
    Scope,
    ScopeLevel,
    SignatureLevel,
    State,
    Why,
    first_remedy,
)
from contextgraph.trace import in_general, is_repetition, signature_of

# Solutions looked at, and runs looked into.
SOLUTIONS = 24
RUNS_EACH = 3
REPOSITORIES = 2
MANY_RUNS = 3
_CANDIDATES = 64
_LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE)

Spans = Mapping[str, Sequence[tuple[int, int]]]


def ways_past_error(
    state: State, store: EvidenceStore, adviser: Adviser, exclude_instances: frozenset[str]
) -> list[WayOut]:
    """What cleared the error of *state*: this repository first, then what many runs did.

    The adviser holds back what is not certain enough. What quotes code that has nothing to do
    with this loop is said without the code, where several repositories agree on it.
    """
    signature = signature_of(state.current_error)
    if signature is None:
        return []
    # The task, the phase and the open file would only cost time: solutions go by the error.
    asked = State(repo=state.repo, current_error=state.current_error)
    found = adviser.retrieve(asked, SOLUTIONS, exclude_instances=exclude_instances)
    spans = _spans(signature, store, Scope(state.repo or None, exclude_instances))
    # What was abstracted from many runs is in general terms already: of it the most usual is said.
    abstracted = [(first_remedy(one.strategy), one.why) for one in found.suggestions]
    concrete = [(one.description, one.why) for one in found.error_solutions]
    ways = list(_ways(abstracted, store, spans))
    ways += _bearing(_ways(concrete, store, spans), names_of(state.last_action, signature))
    return sorted(ways, key=_best_first)


def _ways(told: Iterable[tuple[str, Why]], store: EvidenceStore, spans: Spans) -> Iterator[WayOut]:
    """To try the same once more is no way out of a loop, even where it helped."""
    other = [(what, why) for what, why in told if not is_repetition(what)]
    named = {run for _, why in other for run in why.trajectories[:RUNS_EACH]}
    fragments = store.fragments_of(named & spans.keys())
    looping = {run for run, its in fragments.items() if _left_a_loop(its, spans[run])}
    return (_way(what, why, store, looping) for what, why in other)


def _best_first(way: WayOut) -> tuple[bool, bool, Proof]:
    return not way.near, len(way.runs) < MANY_RUNS, way.proof


def _bearing(ways: Iterable[WayOut], names: frozenset[str]) -> Iterator[WayOut]:
    general = []
    for way in ways:
        if bears_on(way.what, names, near=way.near):
            yield way
        elif (what := in_general(way.what)) is not None:
            general.append(replace(way, what=what, near=False))
    yield from (way for way in merged(general) if way.repositories >= REPOSITORIES)


def _spans(
    signature: ErrorSignature, store: EvidenceStore, scope: Scope
) -> dict[str, list[tuple[int, int]]]:
    """Run -> from which step to which it had this error."""
    spans: dict[str, list[tuple[int, int]]] = {}
    scopes = dict.fromkeys((scope, replace(scope, repo=None)))
    asked = [ErrorQuestion(signature, level, within) for within in scopes for level in _LEVELS]
    for found in store.recoveries_for_error(asked, _CANDIDATES):
        span = (found.recovered.error_step, found.recovered.cleared_step)
        spans.setdefault(found.trajectory.id, []).append(span)
    return spans


def _way(what: str, why: Why, store: EvidenceStore, looping: Container[str]) -> WayOut:
    """*looping*: the runs that left a loop."""
    left = [run for run in why.trajectories[:RUNS_EACH] if run in looping]
    proof = Proof.LEFT_THE_LOOP if left else Proof.CLEARED_THE_ERROR
    runs = (store.trajectory(run) for run in left or why.trajectories)
    return WayOut(
        what=what,
        proof=proof,
        near=why.scope is ScopeLevel.REPO,
        runs=tuple((run.instance_id, run.repo) for run in runs if run),
    )


def _left_a_loop(run: Sequence[Fragment], spans: Sequence[tuple[int, int]]) -> bool:
    """True where a *run* went round in circles on its way from the error to its clearance."""
    return any(
        fragment.fragment_type is FragmentType.LOOP
        and start <= fragment.end
        and fragment.start < cleared
        for start, cleared in spans
        for fragment in run
    )

"""Escape suggestions: actions of other runs that cleared the error or ended such a loop."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Protocol

from msgspec import Struct

from contextgraph.advising.channels import harness
from contextgraph.advising.gate import stored_gate
from contextgraph.model import (
    ErrorQuestion,
    ErrorSignature,
    EscapeEvidence,
    EscapeSuggestion,
    Family,
    Fragment,
    FragmentCandidate,
    FragmentOutcome,
    FragmentType,
    LoopEnding,
    LoopInfo,
    MemoryContext,
    Remedy,
    RemedyAction,
    RemedyKind,
    RemedyPattern,
    Scope,
    ScopeLevel,
    State,
    Why,
)
from contextgraph.model.values import checked, replace
from contextgraph.store.memory_store import RECOVERY_LEVELS, Store
from contextgraph.text import clip, masked_name
from contextgraph.trace import (
    Trace,
    error_of,
    is_hazardous,
    is_retry,
    is_same_predicament,
    loop_in,
    states_of,
)
from contextgraph.trace.loops import MIN_REPEAT, STUCK_AFTER

MIN_REPOSITORIES = 2
# Of the runs that left a loop of the same command, at least so many continued in the same way.
MIN_RUNS, MIN_SHARE = 3, 0.15
# What so many runs did comes before what a few did.
_MANY_RUNS = 3
_MAX_SOLUTIONS = 24
_MAX_RUNS_EACH = 3
_CANDIDATES = 200
_MIN_STEPS = 2
_TEXT_CHARS, _MAX_INSTANCES = 320, 2
_WORDING = {
    EscapeEvidence.LEFT_SAME_LOOP: "left the same loop",
    EscapeEvidence.CLEARED_ERROR: "cleared this error",
    EscapeEvidence.LEFT_SUCH_LOOP: "left such a loop",
}
_STRENGTH = {evidence: rank for rank, evidence in enumerate(EscapeEvidence)}

_AGAINST_TIMEOUTS = frozenset({RemedyKind.RUN, RemedyKind.SET_ENV, RemedyKind.CONFIGURE})


class Retriever(Protocol):
    """Finds what cleared an error, and withholds what is not certain enough."""

    def retrieve(
        self,
        current_state: State,
        top_k: int = 5,
        *,
        exclude_instances: frozenset[str] = frozenset(),
    ) -> MemoryContext:
        """Return what fits *current_state*, best first."""


class Escape(Struct, frozen=True):
    """Something done in *runs* (instance and repository, the newest first).

    *id* is that of the methodology or fragment; *is_near*: a run is of the repository that asks.
    """

    id: str
    text: str
    actions: tuple[RemedyAction, ...]
    evidence: EscapeEvidence
    is_near: bool
    runs: tuple[tuple[str, str], ...]

    @property
    def repositories(self) -> int:
        """In how many repositories it was seen."""
        return len({repo for _, repo in self.runs})

    def suggestion(self) -> EscapeSuggestion:
        """Return the suggestion; its prompt text ends with the source."""
        instances = tuple(dict.fromkeys(instance for instance, _ in self.runs))
        more = len(instances) - _MAX_INSTANCES
        source = ", ".join(instances[:_MAX_INSTANCES]) + (f" and {more} more" if more > 0 else "")
        text = clip(self.text, _TEXT_CHARS).rstrip(". ")
        return EscapeSuggestion(
            id=self.id,
            text=f"{text} ({_WORDING[self.evidence]} in {source})",
            evidence=self.evidence,
            actions=self.actions,
            instances=instances,
        )


class EscapeFinder(Struct, frozen=True):
    """Finds escapes in *store*, none from runs of *exclude_instances*."""

    store: Store
    retriever: Retriever
    exclude_instances: frozenset[str]

    def for_state(self, state: State, enough: int) -> list[Escape]:
        """Return escapes from the loop of *state*, best first; of further kinds until *enough*."""
        if state.current_error:
            return self._past_error(state)
        escapes = self._from_same_place(state)
        if len(escapes) < enough:
            escapes += self._after_command(_verb(state.last_action))
        return escapes

    def _past_error(self, state: State) -> list[Escape]:
        """Return what cleared the error of *state*: here first, then what many runs did.

        What other repositories did is suggested where several of them agree on it.
        """
        signature = error_of(state)
        if signature is None:
            return []
        remedies = [
            remedy
            for remedy in self._remedies(state)
            if can_escape(remedy.actions, signature) and remedy.description
        ]
        runs = self._past_runs([remedy.why for remedy in remedies], signature, state.repo)
        escapes = [runs.escape(remedy, state.repo) for remedy in remedies]
        # Who does not say where it is may get what many runs of one repository did.
        found = filter(_is_shared if state.repo else _is_common, _merged(escapes))
        return sorted(found, key=_rank)

    def _remedies(self, state: State) -> Sequence[Remedy]:
        """Remedies for the error of *state*, by the fields they depend on: others cost time."""
        error = State(
            repo=state.repo,
            current_error=state.current_error,
            last_action=state.last_action,
            last_outcome=state.last_outcome,
            failed_actions=state.failed_actions,
        )
        context = self.retriever.retrieve(
            error, _MAX_SOLUTIONS, exclude_instances=self.exclude_instances
        )
        return context.ranked

    def _from_same_place(self, state: State) -> list[Escape]:
        """Return continuations of runs that repeated the same command at the same file here."""
        command = _verb(state.last_action)
        if not (state.repo and state.open_file and command):
            return []
        file = PurePosixPath(state.open_file).name
        scope = Scope(state.repo, self.exclude_instances)
        loops = self.store.runs.find_fragments(
            scope, _CANDIDATES, file_name=file, loop_command=command
        )
        return _merged(
            Escape(
                id=after.id,
                text=after.description,
                actions=(),
                evidence=EscapeEvidence.LEFT_SAME_LOOP,
                is_near=True,
                runs=((loop.trajectory.instance_id, loop.trajectory.repo),),
            )
            for loop, after in self._continued(loops)
            if after.end - after.start + 1 >= _MIN_STEPS
            and not is_hazardous([_use(line) for line in after.action_sequence])
        )

    def _after_command(self, command: str) -> list[Escape]:
        """Return how runs of several repositories continued after a loop of *command*."""
        scope = Scope(None, self.exclude_instances)
        loops = self.store.runs.find_fragments(scope, _CANDIDATES, loop_command=command)
        escapes = [
            Escape(
                id=after.id,
                text=f"go on with `{other}`",
                actions=(_use(other),),
                evidence=EscapeEvidence.LEFT_SUCH_LOOP,
                is_near=False,
                runs=((loop.trajectory.instance_id, loop.trajectory.repo),),
            )
            for loop, after in self._continued(loops)
            if (other := _other_verb(after, command))
        ]
        counts = Counter(text for text, _ in {(escape.text, escape.runs) for escape in escapes})
        least = max(MIN_RUNS, MIN_SHARE * len({escape.runs for escape in escapes}))
        shared = [
            escape
            for escape in _merged(escapes)
            if counts[escape.text] >= least and _is_shared(escape)
        ]
        return sorted(shared, key=lambda escape: (-counts[escape.text], escape.text))

    def _continued(
        self, loops: Sequence[FragmentCandidate]
    ) -> Iterator[tuple[FragmentCandidate, Fragment]]:
        """Each of *loops* that its run left, with the fragment that came next and did not fail."""
        runs = self.store.runs.fragments({loop.trajectory.id for loop in loops})
        for loop in loops:
            order = loop.fragment.order + 1
            after = next((run for run in runs[loop.trajectory.id] if run.order == order), None)
            if (
                after is not None
                and loop.fragment.loop_ending is not LoopEnding.RUN_ENDED
                and after.outcome is not FragmentOutcome.FAILED
                and after.fragment_type is not FragmentType.LOOP
            ):
                yield loop, after

    def _past_runs(self, whys: Sequence[Why], error: ErrorSignature, repo: str) -> "_PastRuns":
        """The runs that *whys* name, and which of them left a loop before they cleared *error*."""
        ids = {run for why in whys for run in why.trajectories}
        stored = self.store.runs.trajectories(ids).values()
        names = {run.id: (run.instance_id, run.repo) for run in stored}
        scopes = dict.fromkeys(
            Scope(repository, self.exclude_instances) for repository in (repo or None, None)
        )
        questions = [
            ErrorQuestion(error, level, scope) for scope in scopes for level in RECOVERY_LEVELS
        ]
        spans: dict[str, list[tuple[int, int]]] = {}
        for candidate in self.store.recoveries.for_error(questions, _CANDIDATES):
            span = (candidate.error_step, candidate.cleared_step)
            spans.setdefault(candidate.trajectory_id, []).append(span)
        first = {run for why in whys for run in why.trajectories[:_MAX_RUNS_EACH]}
        fragments = self.store.runs.fragments(first & spans.keys())
        left = {run for run, of_run in fragments.items() if _has_loop_within(of_run, spans[run])}
        return _PastRuns(names, frozenset(left))


class _PastRuns(Struct, frozen=True):
    """Run id -> instance and repository; *left* are the runs that left a loop."""

    names: Mapping[str, tuple[str, str]]
    left: frozenset[str]

    def escape(self, remedy: Remedy, repo: str) -> Escape:
        """Return *remedy* as the escape of its runs, first of those that left a loop by it.

        Runs of *repo* are near, also where their error had other names and the words are general.
        """
        trajectories = remedy.why.trajectories
        known = [self.names[run] for run in trajectories if run in self.names]
        leaving = [run for run in trajectories[:_MAX_RUNS_EACH] if run in self.left]
        return Escape(
            id=remedy.id,
            text=remedy.description,
            actions=remedy.actions,
            evidence=EscapeEvidence.LEFT_SAME_LOOP if leaving else EscapeEvidence.CLEARED_ERROR,
            is_near=remedy.why.scope is ScopeLevel.REPO
            or repo.casefold() in [theirs.casefold() for _, theirs in known],
            runs=tuple(self.names[run] for run in leaving or trajectories if run in self.names),
        )


def _has_loop_within(run: Sequence[Fragment], spans: Sequence[tuple[int, int]]) -> bool:
    return any(
        fragment.fragment_type is FragmentType.LOOP
        and start <= fragment.end
        and fragment.start < cleared
        for start, cleared in spans
        for fragment in run
    )


def _merged(escapes: Iterable[Escape]) -> list[Escape]:
    """*escapes* with those of the same words made one, in the order in which they first come."""
    by_text: dict[str, Escape] = {}
    for escape in escapes:
        first = by_text.get(escape.text, escape)
        by_text[escape.text] = replace(
            first,
            runs=tuple(dict.fromkeys(first.runs + escape.runs)),
            is_near=first.is_near or escape.is_near,
            evidence=min(first.evidence, escape.evidence, key=_STRENGTH.__getitem__),
        )
    return list(by_text.values())


def _is_shared(escape: Escape) -> bool:
    return escape.is_near or escape.repositories >= MIN_REPOSITORIES


def _is_common(escape: Escape) -> bool:
    return _is_shared(escape) or len(escape.runs) >= _MANY_RUNS


def _rank(escape: Escape) -> tuple[bool, bool, int]:
    """Ascending, the best first."""
    return not escape.is_near, len(escape.runs) < _MANY_RUNS, _STRENGTH[escape.evidence]


def _use(program: str) -> RemedyAction:
    return RemedyAction(RemedyKind.RUN, program, RemedyPattern(RemedyKind.RUN, program))


def _verb(action: str) -> str:
    return next(iter(action.split()), "")


def _other_verb(fragment: Fragment, command: str) -> str:
    """The first command of *fragment* that is not *command*; empty where there is none."""
    verbs = map(_verb, fragment.action_sequence)
    return next((verb for verb in verbs if verb not in ("", command)), "")


def can_escape(actions: Sequence[RemedyAction], error: ErrorSignature) -> bool:
    """Return False for another try, and for an action unrelated to a time-out."""
    kinds = {action.kind for action in actions}
    if error.family is Family.TIMEOUT:
        return kinds <= _AGAINST_TIMEOUTS
    return not is_retry(actions)


MAX_SUGGESTIONS = 3


@checked
class LoopDetector:
    """Detects repeated predicaments, and suggests what led out of such loops in other runs.

    Without *store* and *retriever* it detects loops and suggests nothing. *min_repeat* attempts, at
    least two, make a loop.
    """

    min_repeat = MIN_REPEAT

    def __init__(
        self,
        store: Store | None = None,
        retriever: Retriever | None = None,
        min_repeat: int = MIN_REPEAT,
    ) -> None:
        self._store = store
        self._retriever = retriever
        self.min_repeat = min_repeat

    def detect(
        self, state_history: Sequence[State], *, exclude_instances: frozenset[str] = frozenset()
    ) -> LoopInfo | None:
        """Return the loop at the end of *state_history*; None if there is none.

        Runs of *exclude_instances* suggest nothing.
        """
        loop = loop_in(state_history, self.min_repeat)
        if loop is None:
            return None
        return self._with_suggestions(loop, state_history[-1], exclude_instances)

    @staticmethod
    def is_same_predicament(state1: State, state2: State) -> bool:
        """Return True if two states are the same predicament; see `trace.is_same_predicament`."""
        return is_same_predicament(state1, state2)

    def detect_all(self, run: Trace) -> tuple[LoopInfo, ...]:
        """Return the loops of a finished *run*, with suggestions from runs of other instances."""
        if not run.loops:
            return ()
        states, own = tuple(states_of(run.raw)), frozenset({run.raw.instance_id})
        return tuple(self._with_suggestions(loop, states[loop.end + 1], own) for loop in run.loops)

    def get_escape_suggestions(
        self, loop_info: LoopInfo | State, *, exclude_instances: frozenset[str] = frozenset()
    ) -> tuple[EscapeSuggestion, ...]:
        """Return what led out of a loop in other runs: at most three suggestions, best first.

        *loop_info* is a result of `detect`, or the state in the loop. If the loop has an error, the
        suggestions clear it: those that ended the same loop first, those of the same repository
        before others. Otherwise they are how other runs continued from the same place, and what
        runs of several repositories did after such a command.
        """
        if isinstance(loop_info, State):
            return self.escapes_from(loop_info, exclude_instances=exclude_instances)
        if loop_info.escape_suggestions:
            return loop_info.escape_suggestions
        error = ": ".join(filter(None, (*loop_info.error_types[:1], loop_info.message)))
        command = "" if error else loop_info.command
        state = State(repo=loop_info.repo, current_error=error, last_action=command)
        return self.escapes_from(state, exclude_instances=exclude_instances)

    def alarm_after(self, agent: str) -> int:
        """Return after how many repetitions a loop warning pays for *agent*.

        It depends on how long loops of the agent lasted; if that is unknown, the loop must be
        stuck.
        """
        alarms = stored_gate(self._store).alarms if self._store else {}
        return alarms.get(harness(agent), STUCK_AFTER)

    def escapes_from(
        self, state: State, *, exclude_instances: frozenset[str] = frozenset()
    ) -> tuple[EscapeSuggestion, ...]:
        """Return what led out of the loop of *state*; see `get_escape_suggestions`."""
        if self._store is None or self._retriever is None:
            return ()
        finder = EscapeFinder(
            self._store, self._retriever, frozenset(map(masked_name, exclude_instances))
        )
        with self._store.snapshot():
            escapes = finder.for_state(state, MAX_SUGGESTIONS)
        # What one run did several times is one suggestion.
        first_of_runs = {escape.runs: escape for escape in reversed(escapes)}
        distinct = [escape for escape in escapes if first_of_runs[escape.runs] is escape]
        return tuple(escape.suggestion() for escape in distinct[:MAX_SUGGESTIONS])

    def _with_suggestions(
        self, loop: LoopInfo, state: State, exclude_instances: frozenset[str]
    ) -> LoopInfo:
        suggestions = self.escapes_from(state, exclude_instances=exclude_instances)
        return replace(loop, escape_suggestions=suggestions)

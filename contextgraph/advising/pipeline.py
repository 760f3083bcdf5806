"""Advising: state, channels, fusion, gate, context."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import chain, zip_longest
from typing import TypeAlias

from contextgraph.advising.cases import cases_of
from contextgraph.advising.channels import (
    CHANNELS,
    WEIGHTS,
    Channel,
    Findings,
    Query,
    nearest_nodes,
    no_embedder,
    query_of,
)
from contextgraph.advising.evidence import advice_of, shown_of
from contextgraph.advising.gate import CONSERVATIVE, Gate
from contextgraph.advising.playbook import Playbooks
from contextgraph.advising.wording import playbook_lines
from contextgraph.errors import ContextGraphError, StoreError
from contextgraph.model import (
    ErrorSignature,
    Fragment,
    MemoryContext,
    Methodology,
    MethodologyStatus,
    Recollection,
    RepositoryPlaybook,
    Scope,
    State,
    TaskType,
    Trajectory,
    most_informative,
    new_context_id,
)
from contextgraph.ports import EmbedderSource, Store
from contextgraph.trace import error_of, signature_of
from contextgraph.vectors import Vector

# Errors that are looked through for methodologies, those of most runs first.
_CONSIDERED = 300

_Answer: TypeAlias = Callable[[Gate, int], MemoryContext]
"""What is shown under a gate, at most so many items of a kind."""


class MemoryRetriever:
    """Finds what a memory knows for a state."""

    def __init__(
        self,
        store: Store,
        embedder: EmbedderSource = no_embedder,
        *,
        channels: Mapping[str, Channel] = CHANNELS,
        gate: Gate = CONSERVATIVE,
        weights: Mapping[str, float] = WEIGHTS,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._store = store
        self.playbooks = Playbooks(store, clock)
        self.channels = channels
        self.gate = gate
        self.weights = weights
        self.embedder = embedder

    def retrieve(
        self,
        current_state: State,
        top_k: int = 5,
        *,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
        error: ErrorSignature | None = None,
    ) -> MemoryContext:
        """Return what fits *current_state*, at most *top_k* items of a kind.

        A channel that fails is named. *error* is the error of the state where that is recognised
        already. Raises `StoreError` where the store itself does not answer.
        """
        (context,) = self.retrieve_under(
            (self.gate,),
            current_state,
            top_k,
            exclude_instances=exclude_instances,
            as_of=as_of,
            error=error,
        )
        return context

    def retrieve_under(
        self,
        gates: Sequence[Gate],
        state: State,
        limit: int = 5,
        *,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
        error: ErrorSignature | None = None,
    ) -> tuple[MemoryContext, ...]:
        """What `retrieve` answers under each of *gates*, from one search of the memory."""
        with self._store.snapshot():
            query = query_of(
                state, self._store, exclude_instances, as_of, self.embedder, error=error
            )
            by_channel, degraded = self._findings(query)
            prepare = self._at_error if query.is_at_error else self._without_error
            answer = prepare(query, by_channel)
            playbook = self._playbook(query)
            if playbook and playbook.degraded:
                degraded["notes"] = playbook.degraded
            playbook = playbook if playbook and any(playbook_lines(playbook)) else None
            notes = _not_pinned(by_channel, playbook)
            return tuple(
                replace(
                    answer(gate, limit),
                    degraded=tuple(degraded.values()),
                    failed=tuple(degraded),
                    playbook=playbook,
                    notes=gate.notes(notes)[:limit],
                )
                for gate in gates
            )

    def _playbook(self, query: Query) -> RepositoryPlaybook | None:
        """What runs of the repository agree on, where the run that asks has only begun."""
        state, scope = query.state, query.scope
        if query.is_at_error or state.last_action or not state.repo:
            return None
        return self.playbooks.of(
            state.repo, state.task_description, scope.exclude_instances, scope.as_of
        )

    def _at_error(self, query: Query, by_channel: Mapping[str, Findings]) -> _Answer:
        """Remedies alone: past tasks and other errors say nothing of what clears this one."""
        recoveries = {
            name: findings.recoveries
            for name, findings in by_channel.items()
            if findings.recoveries
        }
        known = [
            methodology
            for findings in by_channel.values()
            for methodology in findings.methodologies
        ]
        advice = advice_of(query, recoveries, known, self._store)

        def answer(gate: Gate, limit: int) -> MemoryContext:
            suggestions, solutions = shown_of(query, advice, gate, limit)
            return MemoryContext(new_context_id(), suggestions, solutions, error=query.signature)

        return answer

    def _without_error(self, query: Query, by_channel: Mapping[str, Findings]) -> _Answer:
        """Similar past runs."""
        cases = {
            name: findings.cases for name, findings in by_channel.items() if name in self.weights
        }

        def answer(gate: Gate, limit: int) -> MemoryContext:
            return MemoryContext(
                new_context_id(),
                similar_cases=cases_of(
                    query, cases, gate, self._store, limit, self.weights, self.playbooks.changed
                ),
            )

        return answer

    def only(self, channel: str) -> "MemoryRetriever":
        """Return a retriever that asks *channel* alone: see `CHANNELS` for their names."""
        single = {channel: self.channels.get(channel, CHANNELS[channel])}
        retriever = MemoryRetriever(
            self._store, self.embedder, channels=single, gate=self.gate, weights=self.weights
        )
        retriever.playbooks = self.playbooks
        return retriever

    def by_error(
        self, error_type: str, error_msg: str = "", top_k: int = 5
    ) -> tuple[Methodology, ...]:
        """Return methodologies against an error, highest success rate first.

        *error_type* is such as ``ImportError``, *error_msg* the rest of its message.
        """
        store = self._store.methodologies
        error = signature_of(f"{error_type}: {error_msg}") or signature_of(error_msg)
        known = store.for_error(error.variants(), Scope(), top_k) if error else ()
        if not known:
            met = self._store.recoveries.errors(Scope(), _CONSIDERED)
            same = [tally.error.id for tally in met if tally.error.error_type == error_type]
            known = _in_use(store.get(errors=same)) if same else ()
        return tuple(sorted(known, key=lambda found: (-found.success_rate, found.id))[:top_k])

    def by_task(
        self, task_type: TaskType | str, repo_context: str = "", top_k: int = 20
    ) -> tuple[Fragment, ...]:
        """Return fragments of solved runs of a type of task, the most informative of each first.

        *repo_context* is the repository (``owner/repo``), or empty for all.
        """
        runs = self._store.runs.for_task(TaskType(task_type), Scope(repo_context or None), top_k)
        solved = [run.id for run in runs if run.success]
        by_run = self._store.runs.fragments(solved)
        ranked = [most_informative(by_run[run], len(by_run[run])) for run in solved]
        return tuple(filter(None, chain.from_iterable(zip_longest(*ranked))))[:top_k]

    def by_state(self, state: State, top_k: int = 5) -> tuple[Methodology, ...]:
        """Return methodologies for *state*, most confident first.

        At an error those against it; else those against errors that runs met in this phase, in the
        repository of the state where it names one.
        """
        store, scope = self._store.methodologies, Scope(state.repo or None)
        if error := error_of(state) if state.current_error else None:
            known = store.for_error(error.variants(), scope, top_k)
        else:
            met = self._store.recoveries.errors(scope, _CONSIDERED, phase=state.phase)
            known = _in_use(store.get(errors=[tally.error.id for tally in met])) if met else ()
        return tuple(sorted(known, key=lambda found: (-found.confidence, found.id))[:top_k])

    def by_semantic(
        self,
        query: str | Sequence[float] | Vector,
        node_type: str = "Fragment",
        top_k: int = 5,
    ) -> tuple[Fragment | Methodology | Trajectory, ...]:
        """Return the nodes nearest in meaning to *query*, a text or its vector, nearest first.

        *node_type* is ``Fragment``, ``Methodology`` or ``Trajectory``. A text is compared by words
        while the memory has no embedding space; a vector then raises `SpaceMismatchError`.
        """
        return nearest_nodes(self._store, self.embedder, query, node_type, top_k)

    def _findings(self, query: Query) -> tuple[dict[str, Findings], dict[str, str]]:
        """What each channel found, and what those that failed could not do."""
        by_channel: dict[str, Findings] = {}
        degraded: dict[str, str] = {}
        for name, channel in self.channels.items():
            try:
                by_channel[name] = channel(query, self._store)
            except StoreError:
                raise
            except ContextGraphError as error:
                degraded[name] = f"{name}: {error}"
            else:
                if by_channel[name].degraded:
                    degraded[name] = f"{name}: {by_channel[name].degraded}"
        return by_channel, degraded


def _in_use(methodologies: Iterable[Methodology]) -> list[Methodology]:
    statuses = (MethodologyStatus.ACTIVE, MethodologyStatus.PROBATION)
    return [methodology for methodology in methodologies if methodology.status in statuses]


def _not_pinned(
    by_channel: Mapping[str, Findings], playbook: RepositoryPlaybook | None
) -> list[Recollection]:
    """The notes in *by_channel*, without those that stand in *playbook* anyway."""
    pinned = {note.id for note in playbook.notes} if playbook else set[str]()
    return [
        recollection
        for findings in by_channel.values()
        for recollection in findings.notes
        if recollection.note.id not in pinned
    ]

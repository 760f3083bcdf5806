"""Advising: state, channels, fusion, gate, context."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import TypeAlias

from contextgraph.advising.cases import cases_of
from contextgraph.advising.channels import (
    CHANNELS,
    WEIGHTS,
    Channel,
    Findings,
    Query,
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
    MemoryContext,
    Recollection,
    RepositoryPlaybook,
    State,
    new_context_id,
)
from contextgraph.ports import EmbedderSource, Store

_Answer: TypeAlias = Callable[[Gate, int], MemoryContext]
"""What is shown under a gate, at most so many items of a kind."""


class MemoryRetriever:
    """Finds what a memory knows for a state."""

    def __init__(
        self,
        store: Store,
        channels: Mapping[str, Channel] = CHANNELS,
        gate: Gate = CONSERVATIVE,
        embedder: EmbedderSource = no_embedder,
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
        state: State,
        limit: int = 5,
        *,
        exclude_instances: frozenset[str] = frozenset(),
        as_of: datetime | None = None,
        error: ErrorSignature | None = None,
    ) -> MemoryContext:
        """What fits *state*, at most *limit* items of a kind; a channel that fails is named.

        *error* is the error of *state* where that is recognised already. Raises `StoreError` where
        the store itself does not answer.
        """
        (context,) = self.retrieve_under(
            (self.gate,),
            state,
            limit,
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

    def by_error(self, state: State, limit: int = 5) -> MemoryContext:
        """What the signature of `State.current_error` alone finds."""
        return self._by("error", state, limit)

    def by_task(self, state: State, limit: int = 5) -> MemoryContext:
        """What repository and type of task alone find."""
        return self._by("task", state, limit)

    def by_state(self, state: State, limit: int = 5) -> MemoryContext:
        """What phase and open file alone find."""
        return self._by("state", state, limit)

    def by_lexical(self, state: State, limit: int = 5) -> MemoryContext:
        """What the rare words of task and error alone find."""
        return self._by("lexical", state, limit)

    def by_semantic(self, state: State, limit: int = 5) -> MemoryContext:
        """What the meaning of task and error alone finds; nothing while there is no space."""
        return self._by("semantic", state, limit)

    def _by(self, channel: str, state: State, limit: int) -> MemoryContext:
        single = {channel: self.channels.get(channel, CHANNELS[channel])}
        retriever = MemoryRetriever(self._store, single, self.gate, self.embedder, self.weights)
        retriever.playbooks = self.playbooks
        return replace(retriever.retrieve(state, limit), playbook=None)

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

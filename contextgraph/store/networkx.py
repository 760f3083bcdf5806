"""A memory in a networkx `MultiDiGraph`: the graph is the store, and `graph()` shows it live.

The shortest store that gives the answers of `ports`, and their executable specification: the
others are compared with it. Each answer is found by looking at all nodes, so it is for small
memories, for notebooks and for tests. It lives as long as its process.

Beside the attributes of `store.graph` a node or relation has its *value*, of the model. A run also
has its *raw* log, its *vectors* by space, and the *revision* of its last change. Relations of type
MET (run to error, with the error as that run met it) and contexts that were shown are in the graph,
but not in the view.
"""

import threading
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import networkx as nx
from msgspec import Struct

from contextgraph import model
from contextgraph.errors import StoreError
from contextgraph.model import dimensions_of, matrix_of, node_text, products, run_text
from contextgraph.ports import (
    ALL,
    RECOVERY_LEVELS,
    NodeType,
    NoteChange,
    NoteStore,
    OnDamaged,
    Store,
)
from contextgraph.processes import Process
from contextgraph.store import rules
from contextgraph.store.graph import NOTE_LABELS, add_note, add_relation, labelled, link_notes
from contextgraph.text import number_of, stems, word_weights, words as words_of
from contextgraph.values import replace

if TYPE_CHECKING:
    from contextgraph.ports import Graph

Kind = TypeVar("Kind")
_LABELS = ("Trajectory", "Fragment", "ErrorPattern", "Methodology")
_RELATIONS = (
    "HAS_FRAGMENT",
    "CAUSED_ERROR",
    "RECOVERED",
    "RESOLVED_BY",
    "DERIVED_FROM",
    "SUPERSEDES",
    "SIMILAR_TO",
)


class Memory(rules.RunChanges[None]):
    """The graph, and what is no node: counters, marks of consolidation, spaces, decisions.

    The docstrings of what it does to runs are those of the protocol.
    """

    def __init__(self) -> None:
        self.graph: Graph = nx.MultiDiGraph()
        self.lock = threading.RLock()
        self.former_ids: dict[str, str] = {}
        self.spaces: dict[str, tuple[model.Space, bytes | None]] = {}
        self.active = ""
        self.verdicts: dict[str, model.Verdict] = {}
        self.revision = self.consolidated = 0
        self.stale_errors: dict[str, int] = {}
        self.stale_repos: dict[str, int] = {}
        self.lease: rules.StoredLease | None = None
        self.gate: model.FittedGate | None = None

    def nodes(self, label: str) -> dict[str, Any]:
        """Return the values of the nodes of this *label*, by id, ascending."""
        return {
            node: self.graph.nodes[node]["value"] for node in sorted(labelled(self.graph, label))
        }

    def run(self, trajectory_id: str) -> model.Trajectory | None:
        """Return the run of this id."""
        node = self.graph.nodes.get(trajectory_id)
        return node["value"] if node and node["label"] == "Trajectory" else None

    def within(self, scope: model.Scope) -> list[model.Trajectory]:
        """Return the runs in *scope*, by id."""
        return [
            run
            for run in self.nodes("Trajectory").values()
            if scope.repo in (None, run.repo)
            and run.instance_id not in scope.exclude_instances
            and (scope.as_of is None or run.seen_at <= scope.as_of)
        ]

    def out(self, node: str, kind: str) -> list[tuple[str, Any]]:
        """Return targets and values of the relations of type *kind* from *node*."""
        edges = self.graph.out_edges(node, data=True)
        return [(target, own["value"]) for _, target, own in edges if own["type"] == kind]

    def into(self, node: str, kind: str) -> list[tuple[str, Any]]:
        """Return sources and values of the relations of type *kind* to *node*."""
        edges = self.graph.in_edges(node, data=True)
        return [(source, own["value"]) for source, _, own in edges if own["type"] == kind]

    def fragments(self, run: str) -> list[model.Fragment]:
        """Return the fragments of a run, in order."""
        values = [value for _, value in self.out(run, "HAS_FRAGMENT")]
        return sorted(values, key=lambda value: (value.order, value.id))

    def met(self, run: str) -> dict[str, rules.MetError]:
        """Return how a run met its errors, by id."""
        return dict(sorted(self.out(run, "MET")))

    def of_fragments(self, run: str, kind: str) -> list[Any]:
        """Return the values of the relations of type *kind* from the fragments of a run."""
        return [
            value for fragment in self.fragments(run) for _, value in self.out(fragment.id, kind)
        ]

    def pattern(self, error_id: str) -> model.ErrorPattern:
        """Return an error as the run of least id met it."""
        met: rules.MetError = min(self.into(error_id, "MET"))[1]
        return met.error

    def methodologies(self) -> list[model.Methodology]:
        """Return all methodologies, with those of their sources that are stored, by id."""
        return [
            replace(
                value, sources=tuple(sorted(source for _, source in self.out(node, "DERIVED_FROM")))
            )
            for node, value in self.nodes("Methodology").items()
        ]

    def candidates(self, scope: model.Scope) -> list[model.RecoveryCandidate]:
        """Return the recoveries in *scope*, by fragment, error and step."""
        found = [
            _candidate(recovered, self.pattern(recovered.error_id), run)
            for run in self.within(scope)
            for recovered in self.of_fragments(run.id, "RECOVERED")
        ]
        return sorted(found, key=_place_of)

    def known(self, ids: Iterable[str]) -> Mapping[str, model.Trajectory]:
        stored = {one: self.run(one) for one in sorted({*ids})}
        return {one: run for one, run in stored.items() if run}

    def insert(self, runs: Sequence[rules.PackedRun]) -> None:
        for run in runs:
            self._insert(run.bundle)

    def _insert(self, bundle: model.Bundle) -> None:
        graph, run = self.graph, bundle.trajectory
        self.revision += 1
        given = {"raw": bundle.raw, "facts": bundle.facts}
        graph.add_node(run.id, **given, vectors={}, revision=self.revision)
        self.set_run(run)
        for value in bundle.fragments:
            kinds = {"fragment_type": value.fragment_type, "phase": value.phase}
            graph.add_node(
                value.id, label="Fragment", name=value.name, repo=value.repo, value=value,
                **{name: kind.value for name, kind in kinds.items()}, outcome=value.outcome.value,
                vector=None,
            )  # fmt: skip
            add_relation(
                graph, "HAS_FRAGMENT", run.id, value.id, {"order": value.order, "value": value}
            )
        for met in rules.met_errors(bundle):
            error = met.error
            graph.add_node(
                error.id, label="ErrorPattern", name=error.name, family=error.family.value,
                error_type=error.error_type, value=error,
            )  # fmt: skip
            add_relation(graph, "MET", run.id, error.id, {"value": met})
        for caused in bundle.caused:
            properties = {"steps": [*caused.steps], "value": caused}
            add_relation(graph, "CAUSED_ERROR", caused.fragment_id, caused.error_id, properties)
        for recovered in bundle.recovered:
            properties = {
                "error_step": recovered.error_step,
                "cleared_step": recovered.cleared_step,
                "verified": recovered.verified,
                "value": recovered,
            }
            add_relation(graph, "RECOVERED", recovered.fragment_id, recovered.error_id, properties)
        if bundle.embedded and bundle.embedded.space in self.spaces:
            graph.nodes[run.id]["vectors"][bundle.embedded.space] = bundle.embedded.vector
        link_notes(graph, self.nodes_of_notes().values())

    def set_run(self, run: model.Trajectory) -> None:
        """Change what is stored of a run, by now at the current revision."""
        self.graph.add_node(
            run.id, label="Trajectory", name=run.name, repo=run.repo, outcome=run.outcome.value,
            value=run, revision=self.revision,
        )  # fmt: skip

    def shown(self, context_ids: Sequence[str]) -> list[model.Exposure]:
        contexts = self.nodes("Context")
        return [contexts[one] for one in sorted({*context_ids} & contexts.keys())]

    def put_reports(self, reported: Sequence[model.Exposure]) -> None:
        for exposure in reported:
            self.graph.nodes[exposure.context_id]["value"] = exposure

    def set_outcomes(self, runs: Sequence[model.Trajectory]) -> None:
        for run in runs:
            known = self.run(run.id)
            assert known is not None  # or it would not be changed
            self.revision += 1
            self.set_run(replace(rules.with_outcome_of(known, run), change=run.change))

    def rename(self, ids: Mapping[str, str]) -> None:
        self.former_ids |= ids
        for old, now in self.former_ids.items():
            self.former_ids[old] = ids.get(now, now)

    def remove(self, ids: Sequence[str], *, forgotten: bool) -> None:
        self.revision += 1
        for run in ids:
            value, fragments = self.graph.nodes[run]["value"], self.fragments(run)
            self.stale_repos[value.repo] = self.revision
            self.stale_errors |= dict.fromkeys(self.met(run), self.revision)
            derived = {
                methodology
                for fragment in fragments
                for methodology, _ in self.into(fragment.id, "DERIVED_FROM")
            }
            self.remove_methodologies(derived)
            gone = {fragment.id for fragment in fragments}
            self.graph.remove_nodes_from([run, *gone])
            if forgotten:
                self.forget_shown({run, *gone})
        if forgotten:
            former = self.former_ids.items()
            self.former_ids = {old: now for old, now in former if now not in ids}

    def forget_shown(self, ids: Collection[str]) -> None:
        """Remove what was recorded of items with these *ids*, and the texts that showed them."""
        for context, shown in self.nodes("Context").items():
            items = tuple(item for item in shown.items if item.id not in ids)
            if items != shown.items:
                self.graph.nodes[context]["value"] = replace(shown, items=items, text="", said=())

    def remove_unused(self, removed: None) -> None:
        repos = {run.repo for run in self.within(model.Scope())}
        self.stale_repos = {repo: at for repo, at in self.stale_repos.items() if repo in repos}
        errors = labelled(self.graph, "ErrorPattern")
        self.graph.remove_nodes_from([error for error in errors if not self.into(error, "MET")])

    def remove_methodologies(self, ids: Iterable[str]) -> None:
        """Remove methodologies and what they superseded; the errors of that are stale then."""
        known = self.nodes("Methodology")
        gone = {*ids} & known.keys()
        while (
            superseded := {node for node, value in known.items() if value.superseded_by in gone}
            - gone
        ):
            gone |= superseded
        removed = [
            rules.RemovedMethodology(node, known[node].error_id, known[node].superseded_by)
            for node in gone
        ]
        self.stale_errors |= dict.fromkeys(rules.made_stale(removed), self.revision)
        self.graph.remove_nodes_from(gone)

    def nodes_of_notes(self) -> dict[str, model.Note]:
        """Return all notes by id, ascending."""
        nodes = self.graph.nodes(data=True)
        return dict(sorted((n, own["value"]) for n, own in nodes if own["label"] in NOTE_LABELS))


def _locked(kind: type[Kind]) -> type[Kind]:
    """Let each public method of *kind* see and leave one state of its memory."""

    def locked(method: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(method)
        def call(self: Any, *arguments: Any, **named: Any) -> Any:
            with self._memory.lock:
                return method(self, *arguments, **named)

        return call

    for name, method in [*vars(kind).items()]:
        if callable(method) and not name.startswith("_"):
            setattr(kind, name, locked(method))
    return kind


class _Part(Struct, eq=False):
    """A part of the store; the docstrings of its methods are those of the protocol."""

    _memory: Memory


@_locked
class NetworkxRuns(_Part):
    """`RunStore` in a graph."""

    def add(self, bundles: Sequence[model.Bundle]) -> Sequence[model.LearnStatus]:
        return self._memory.add(rules.pack(bundles))

    def replace(self, bundles: Mapping[str, model.Bundle]) -> Sequence[str]:
        given = dict(zip(bundles, rules.pack(bundles.values()), strict=True))
        return self._memory.replace(given)

    def set_outcome(self, trajectory_ids: Iterable[str], outcome: model.Outcome) -> int:
        return self._memory.set_outcome(trajectory_ids, outcome)

    def learned(self, trajectory_ids: Sequence[str]) -> Mapping[str, model.Learned]:
        memory = self._memory
        named = {one: memory.former_ids.get(one, one) for one in sorted({*trajectory_ids})}
        known = {name: memory.run(own) for name, own in named.items()}
        return {name: self._learned(run) for name, run in known.items() if run}

    def _learned(self, run: model.Trajectory) -> model.Learned:
        memory = self._memory
        is_embedded = memory.active in memory.graph.nodes[run.id]["vectors"]
        return model.Learned(
            trajectory_id=run.id,
            outcome=run.outcome,
            is_open=run.outcome is model.Outcome.UNKNOWN and run.exit_status is None,
            fragments=len(memory.fragments(run.id)),
            error_patterns=len(memory.met(run.id)),
            to_embed=0 if is_embedded else 1,
            outcome_source=run.outcome_source,
            change=run.change,
        )

    def trajectories(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.Trajectory]:
        return self._memory.known(trajectory_ids)

    def ids(
        self,
        repo: str | None = None,
        instance: str | None = None,
        after: str = "",
        limit: int = ALL,
    ) -> Sequence[str]:
        runs = self._memory.within(model.Scope(repo))
        found = [run.id for run in runs if instance in (None, run.instance_id) and run.id > after]
        return found[: max(0, limit)]

    def raw(self, trajectory_id: str) -> model.RawTrajectory | None:
        run = self._memory.run(trajectory_id)
        if run is None:
            return None
        return rules.raw_with_outcome(self._memory.graph.nodes[run.id]["raw"], run)

    def facts(self, trajectory_ids: Iterable[str]) -> Mapping[str, model.RunFacts]:
        nodes = self._memory.graph.nodes
        return {one: nodes[one]["facts"] for one in self._memory.known(trajectory_ids)}

    def fragments(self, trajectory_ids: Iterable[str]) -> Mapping[str, Sequence[model.Fragment]]:
        known = {one: self._memory.run(one) for one in trajectory_ids}
        return {one: self._memory.fragments(one) if run else [] for one, run in known.items()}

    def find_fragments(
        self,
        scope: model.Scope,
        limit: int,
        *,
        phase: model.Phase | None = None,
        file_name: str | None = None,
        loop_command: str | None = None,
    ) -> Sequence[model.FragmentCandidate]:
        found = [
            model.FragmentCandidate(fragment, run)
            for run in self._memory.within(scope)
            for fragment in self._memory.fragments(run.id)
            if phase in (None, fragment.phase)
            if file_name is None or file_name in rules.file_names(fragment)
            if loop_command is None or "" != loop_command == fragment.loop_command
        ]
        found.sort(key=lambda one: (-one.trajectory.seen_at.timestamp(), one.fragment.id))
        return found[: max(0, limit)]

    def for_task(
        self,
        task_type: model.TaskType | None,
        scope: model.Scope,
        limit: int,
        agent: str | None = None,
    ) -> Sequence[model.Trajectory]:
        found = [
            run
            for run in self._memory.within(scope)
            if task_type in (None, run.task_type) and agent in (None, run.agent)
        ]
        found.sort(key=lambda run: (not run.success, -run.seen_at.timestamp(), run.id))
        return found[: max(0, limit)]

    def listed(
        self, wanted: model.RunFilter, limit: int, skip: int = 0
    ) -> Sequence[model.Trajectory]:
        keys: dict[model.RunOrder, Callable[[model.Trajectory], float | str]] = {
            model.RunOrder.NEWEST: lambda run: -run.seen_at.timestamp(),
            model.RunOrder.INSTANCE: lambda run: run.instance_id,
            model.RunOrder.REPO: lambda run: run.repo,
            model.RunOrder.AGENT: lambda run: run.agent,
            model.RunOrder.OUTCOME: lambda run: run.outcome,
            model.RunOrder.STEPS: lambda run: -run.total_steps,
        }
        found = [
            run
            for run in self._memory.within(model.Scope(wanted.repo))
            if wanted.agent in ("", run.agent)
            and wanted.outcome in (None, run.outcome)
            and (wanted.since is None or run.seen_at >= wanted.since)
        ]
        found.sort(key=lambda run: (keys[wanted.order](run), run.id))
        return found[skip : skip + max(0, limit)]

    def repositories(
        self, limit: int, skip: int = 0, containing: str = ""
    ) -> Sequence[tuple[str, int]]:
        runs = Counter(run.repo for run in self._memory.within(model.Scope()) if run.repo)
        found = [one for one in runs.items() if containing.casefold() in one[0]]
        found.sort(key=lambda one: (-one[1], one[0]))
        return found[skip : skip + max(0, limit)]

    def for_text(
        self, words: Sequence[str], scope: model.Scope, limit: int
    ) -> Sequence[model.Trajectory]:
        texts = {run.id: rules.trajectory_text(run) for run in self._memory.within(model.Scope())}
        found = [(run, texts[run.id]) for run in self._memory.within(scope)]
        return _most_relevant(words, texts.values(), found, limit)

    def word_counts(self, words: Sequence[str]) -> model.WordCounts:
        texts = [rules.trajectory_text(run) for run in self._memory.within(model.Scope())]
        return model.WordCounts(len(texts), _counts(words, texts))

    def archived(self, trajectory_id: str) -> model.Bundle | None:
        memory, raw = self._memory, self.raw(trajectory_id)
        run = memory.run(trajectory_id)
        if run is None or raw is None:
            return None
        met, vectors = memory.met(run.id), memory.graph.nodes[run.id]["vectors"]
        caused: list[model.CausedError] = memory.of_fragments(run.id, "CAUSED_ERROR")
        recovered: list[model.Recovered] = memory.of_fragments(run.id, "RECOVERED")
        order = {fragment.id: place for place, fragment in enumerate(memory.fragments(run.id))}
        active = memory.active
        return model.Bundle(
            trajectory=run,
            fragments=tuple(memory.fragments(run.id)),
            errors=tuple(one.error for one in met.values()),
            caused=tuple(sorted(caused, key=lambda one: (order[one.fragment_id], one.error_id))),
            recovered=tuple(
                sorted(recovered, key=lambda one: (one.error_step, one.fragment_id, one.error_id))
            ),
            facts=memory.graph.nodes[run.id]["facts"],
            raw=raw,
            embedded=model.EmbeddedRun(active, vectors[active]) if active in vectors else None,
            met={error: one.steps for error, one in met.items()},
        )

    def forget(self, trajectory_ids: Iterable[str]) -> int:
        return self._memory.forget(trajectory_ids)


@_locked
class NetworkxRecoveries(_Part):
    """`RecoveryStore` in a graph."""

    def for_error(
        self, questions: Sequence[model.ErrorQuestion], limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        if unknown := [
            question.level for question in questions if question.level not in RECOVERY_LEVELS
        ]:
            raise ValueError(f"recoveries cannot be found by {unknown[0]}")
        found: dict[object, model.RecoveryCandidate] = {}
        for question in questions:
            agreeing = [
                candidate
                for candidate in self._memory.candidates(question.scope)
                if _agrees(candidate, question.signature, question.level)
            ]
            agreeing.sort(key=lambda one: (not one.verified, -one.seen_at.timestamp()))
            for candidate in agreeing[: max(0, limit)]:
                found.setdefault(_place_of(candidate), candidate)
        return list(found.values())

    def for_text(
        self, words: Sequence[str], scope: model.Scope, limit: int
    ) -> Sequence[model.RecoveryCandidate]:
        def text(candidate: model.RecoveryCandidate) -> str:
            return rules.recovery_text(candidate.message, candidate.actions)

        found = [(candidate, text(candidate)) for candidate in self._memory.candidates(scope)]
        return _most_relevant(
            words, map(text, self._memory.candidates(model.Scope())), found, limit
        )

    def of_fragments(self, fragment_ids: Iterable[str]) -> Sequence[model.RecoveryCandidate]:
        named = {*fragment_ids}
        return [one for one in self._memory.candidates(model.Scope()) if one.fragment_id in named]

    def histories(
        self, error_ids: Sequence[str], limit: int, repo: str | None = None
    ) -> Sequence[model.ErrorHistory]:
        known = sorted({*error_ids} & self._memory.nodes("ErrorPattern").keys())
        return [self._history(error, max(0, limit), model.Scope(repo)) for error in known]

    def _history(self, error: str, limit: int, scope: model.Scope) -> model.ErrorHistory:
        memory = self._memory
        met = dict(memory.into(error, "MET"))
        newest = _newest([run for run in memory.within(scope) if run.id in met])[:limit]
        return model.ErrorHistory(
            error=memory.pattern(error),
            occurrences=tuple(
                model.ErrorOccurrence(run.id, run.repo, run.task_type, met[run.id].error.context)
                for run in newest
            ),
            clearances=tuple(
                model.Clearance(
                    recovered,
                    run.id,
                    run.repo,
                    run.task_type,
                    run.outcome,
                    run.seen_at,
                    run.instance_id,
                    run.contributor,
                    fragment.phase,
                )
                for run in newest
                for recovered, fragment in sorted(
                    (
                        (recovered, fragment)
                        for fragment in memory.fragments(run.id)
                        for _, recovered in memory.out(fragment.id, "RECOVERED")
                    ),
                    key=lambda one: (one[0].error_step, one[1].id),
                )
                if recovered.error_id == error
            ),
        )

    def errors(
        self,
        scope: model.Scope,
        limit: int,
        phase: model.Phase | None = None,
        runs: Iterable[str] | None = None,
    ) -> Sequence[model.ErrorTally]:
        named = None if runs is None else {*runs}
        chosen = [run for run in self._memory.within(scope) if named is None or run.id in named]
        by_error: dict[str, dict[model.Trajectory, int]] = {}
        for run in chosen:
            for error, steps in self._steps(run, phase).items():
                by_error.setdefault(error, {})[run] = steps
        tallies = [
            model.ErrorTally(
                error=self._memory.pattern(error),
                runs=len(steps),
                steps=sum(steps.values()),
                cleared_runs=sum(self._memory.met(run.id)[error].cleared for run in steps),
                trajectories=tuple(run.id for run in _newest(steps)[: rules.TALLY_RUNS]),
            )
            for error, steps in by_error.items()
        ]
        return sorted(tallies, key=lambda one: (-one.runs, one.error.id))[: max(0, limit)]

    def _steps(self, run: model.Trajectory, phase: model.Phase | None) -> Mapping[str, int]:
        """Return at how many steps a run met its errors, in fragments of *phase*."""
        if phase is None:
            return {error: met.steps for error, met in self._memory.met(run.id).items()}
        counts: Counter[str] = Counter()
        phases = {fragment.id: fragment.phase for fragment in self._memory.fragments(run.id)}
        for caused in self._memory.of_fragments(run.id, "CAUSED_ERROR"):
            if phases[caused.fragment_id] is phase:
                counts[caused.error_id] += len(caused.steps)
        return counts

    def error_steps(self) -> Mapping[str, Sequence[model.ErrorSteps]]:
        types = {
            error: value.error_type for error, value in self._memory.nodes("ErrorPattern").items()
        }
        steps = {
            run.id: sorted(
                model.ErrorSteps(one.fragment_id, one.error_id, types[one.error_id], one.steps)
                for one in self._memory.of_fragments(run.id, "CAUSED_ERROR")
            )
            for run in self._memory.within(model.Scope())
        }
        return {run: met for run, met in steps.items() if met}

    def similar_to(self, trajectory_id: str) -> Sequence[model.SimilarTo]:
        if self._memory.run(trajectory_id) is None:
            return []
        found: list[model.SimilarTo] = self._memory.of_fragments(trajectory_id, "SIMILAR_TO")
        return sorted(found, key=lambda edge: (edge.fragment.fragment_id, edge.error_id))

    def clean_up(self, error_ids: Sequence[str], keep: int) -> int:
        memory = self._memory
        pruned = sum(self._prune(error, keep) for error in error_ids)
        orphans = [
            methodology.id
            for methodology in memory.methodologies()
            if not methodology.sources and methodology.status is not model.MethodologyStatus.RETIRED
        ]
        memory.revision += bool(orphans)
        memory.remove_methodologies(orphans)
        return pruned + len(orphans)

    def _prune(self, error: str, keep: int) -> int:
        memory = self._memory
        failed = [
            (run, fragment)
            for run in memory.within(model.Scope())
            for fragment in memory.fragments(run.id)
            if fragment.fragment_type is model.FragmentType.FAILED_ATTEMPT
            and error in dict(memory.out(fragment.id, "CAUSED_ERROR"))
            and not memory.out(fragment.id, "RECOVERED")
        ]
        failed.sort(key=lambda one: (-one[0].seen_at.timestamp(), one[1].id))
        memory.revision += len(failed) > keep
        memory.graph.remove_nodes_from([fragment.id for _, fragment in failed[keep:]])
        return len(failed[keep:])


@_locked
class NetworkxVectors(_Part):
    """`VectorStore` in a graph."""

    def active_space(self) -> model.Space | None:
        active = self._memory.active
        return self._memory.spaces[active][0] if active else None

    def space_model(self, space: str) -> bytes | None:
        known = self._memory.spaces.get(space)
        return known[1] if known else None

    def prepare(self, space: model.Space, model: bytes | None) -> None:
        dimensions_of(space.name)  # raises where the name has none
        known = self._memory.spaces.get(space.name)
        self._memory.spaces[space.name] = (space, known[1] if known else model)

    def switch(self, space: str) -> None:
        self._check_prepared(space)
        self._memory.active = space
        self._memory.spaces = {space: self._memory.spaces[space]}
        for run in self._memory.nodes("Trajectory"):
            vectors = self._memory.graph.nodes[run]["vectors"]
            for other in vectors.keys() - {space}:
                del vectors[other]

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        waiting = (
            (run.id, run_text(run))
            for run in self._memory.within(model.Scope())
            if run.id > after and space not in self._memory.graph.nodes[run.id]["vectors"]
        )
        return dict(islice(waiting, max(0, limit)))

    def add(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        self._check_prepared(space)
        for run, vector in vectors.items():
            if self._memory.run(run):
                self._memory.graph.nodes[run]["vectors"].setdefault(space, vector)

    def nearest(self, vector: model.Vector, scope: model.Scope, limit: int) -> Sequence[model.Near]:
        rules.check_space(self.active_space(), vector)
        runs = {run.id: run for run in self._memory.within(scope)}
        stored = {run: self._memory.graph.nodes[run]["vectors"].get(vector.space) for run in runs}
        own = {run: one for run, one in stored.items() if one}
        near = _nearest(vector, own, limit)
        return [model.Near(runs[run], own[run]) for run in near]

    def nodes_to_embed(self, limit: int, space: str) -> Mapping[str, str]:
        waiting = (
            (node.id, node_text(node))
            for node in sorted(self._nodes().values(), key=lambda node: node.id)
            if space != _space_of(self._memory.graph.nodes[node.id].get("vector"))
        )
        return dict(islice(waiting, max(0, limit)))

    def add_nodes(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        # A text without words has its space alone.
        for id_ in self._nodes().keys() & vectors.keys():
            self._memory.graph.nodes[id_]["vector"] = vectors[id_] or space

    def nearest_nodes(
        self, vector: model.Vector, node_type: NodeType, limit: int
    ) -> Mapping[tuple[str, str], model.Vector]:
        known = self._memory.nodes(node_type)
        stored = {id_: self._memory.graph.nodes[id_].get("vector") for id_ in known}
        own = {
            id_: one
            for id_, one in stored.items()
            if isinstance(one, model.Vector) and one.space == vector.space
        }
        runs = {id_: getattr(known[id_], "trajectory_id", "") for id_ in own}
        return {(runs[id_], id_): own[id_] for id_ in _nearest(vector, own, limit)}

    def _nodes(self) -> Mapping[str, model.Fragment | model.Methodology]:
        return {**self._memory.nodes("Fragment"), **self._memory.nodes("Methodology")}

    def _check_prepared(self, space: str) -> None:
        if space not in self._memory.spaces:
            raise StoreError(
                f"space {space} was not prepared, or another one has replaced it since"
            )


@_locked
class NetworkxMethodologies(_Part):
    """`MethodologyStore` in a graph."""

    def ids(self, repo: str | None = None, after: str = "", limit: int = ALL) -> Sequence[str]:
        found = [
            methodology.id
            for methodology in self._memory.methodologies()
            if methodology.id > after and (repo is None or methodology.repo == repo.casefold())
        ]
        return found[: max(0, limit)]

    def get(
        self, ids: Sequence[str] = (), *, errors: Sequence[str] = ()
    ) -> Sequence[model.Methodology]:
        known = self._memory.methodologies()
        return [value for value in known if value.id in ids or value.error_id in errors]

    def of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[model.Methodology]]:
        errors = self._memory.nodes("ErrorPattern")
        types = {error: (value.family, value.error_type) for error, value in errors.items()}
        named = {types[error] for error in error_ids if error in types}
        by_type: dict[object, list[model.Methodology]] = {}
        for methodology in self._memory.methodologies():
            kind = types.get(methodology.error_id)
            if kind in named:
                by_type.setdefault(kind, []).append(methodology)
        return list(by_type.values())

    def for_error(
        self, signatures: Sequence[model.ErrorSignature], scope: model.Scope, limit: int
    ) -> Sequence[model.Methodology]:
        resolving = (self._resolving(signature, scope) for signature in signatures)
        found = next(filter(None, resolving), [])
        found.sort(key=lambda one: (one.repo is None, -one.support, one.id))
        return [replace(value, sources=()) for value in found[: max(0, limit)]]

    def _resolving(
        self, signature: model.ErrorSignature, scope: model.Scope
    ) -> list[model.Methodology]:
        memory = self._memory
        seen = {run.id for run in memory.within(replace(scope, repo=None))}
        resolving = {
            methodology
            for error, value in memory.nodes("ErrorPattern").items()
            if value.family is signature.family
            and _agrees(value, signature, model.SignatureLevel.TEMPLATE)
            for methodology, _ in memory.out(error, "RESOLVED_BY")
        }
        return [
            one
            for one in memory.methodologies()
            if one.id in resolving
            and one.status is not model.MethodologyStatus.RETIRED
            and (scope.repo is None or one.repo in (None, scope.repo))
            and seen.issuperset(source.trajectory_id for source in one.sources)
        ]

    def put(
        self,
        methodologies: Sequence[model.Methodology],
        removed: Sequence[str] = (),
        resolved: Sequence[model.ResolvedBy] = (),
        similar: Sequence[model.SimilarTo] = (),
    ) -> int:
        memory, graph = self._memory, self._memory.graph
        memory.revision += 1
        memory.remove_methodologies(removed)
        for value in methodologies:
            self._put_node(value)
        known = memory.nodes("Methodology")
        for own in known:
            self._unlink(own, "SUPERSEDES")
        for own, value in known.items():
            if value.superseded_by in known:
                add_relation(graph, "SUPERSEDES", value.superseded_by, own, {"value": None})
        for edge in resolved:
            properties = {
                "success_rate": edge.success_rate,
                "avg_steps": edge.avg_steps,
                "support": edge.support,
                "value": edge,
            }
            if edge.methodology_id in known:
                add_relation(graph, "RESOLVED_BY", edge.error_id, edge.methodology_id, properties)
        return self._put_similar(similar)

    def _put_node(self, value: model.Methodology) -> None:
        """Put a methodology over the one of its id, with its sources."""
        graph = self._memory.graph
        if value.id in graph:
            self._unlink(value.id, "DERIVED_FROM")
            if value.status is model.MethodologyStatus.RETIRED:
                self._unlink(value.id, "RESOLVED_BY")
        graph.add_node(
            value.id, label="Methodology", name=value.name, repo=value.repo or "", value=value,
            status=value.status.value, support=value.support, confidence=value.confidence,
            vector=None,
        )  # fmt: skip
        for source in value.sources:
            if self._is_stored(source):
                add_relation(graph, "DERIVED_FROM", value.id, source.fragment_id, {"value": source})

    def _unlink(self, node: str, kind: str) -> None:
        """Remove the relations of type *kind* at *node*."""
        graph = self._memory.graph
        edges = [*graph.out_edges(node, keys=True), *graph.in_edges(node, keys=True)]
        for source, target, key in edges:
            if key.startswith(kind):
                graph.remove_edge(source, target, key)

    def _is_stored(self, source: model.Source) -> bool:
        return self._memory.graph.has_edge(source.trajectory_id, source.fragment_id, "HAS_FRAGMENT")

    def _put_similar(self, similar: Sequence[model.SimilarTo]) -> int:
        """Put relations between stored fragments, one for each error; return how many changed."""
        graph, changed = self._memory.graph, 0
        known = [
            edge
            for edge in similar
            if self._is_stored(edge.fragment) and self._is_stored(edge.representative)
        ]
        # First those that say that a fragment is like none before it.
        for edge in sorted(known, key=lambda edge: edge.fragment != edge.representative):
            fragment, other = edge.fragment.fragment_id, edge.representative.fragment_id
            key = f"SIMILAR_TO {edge.error_id}"
            before = [one for one in graph.out_edges(fragment, keys=True) if one[2] == key]
            if [graph.edges[one]["value"] for one in before] == [edge]:
                continue
            for one in before:
                graph.remove_edge(*one)
            if fragment != other:
                properties = {"error_id": edge.error_id, "weight": edge.weight, "value": edge}
                add_relation(graph, "SIMILAR_TO", fragment, other, properties)
            changed += bool(before) or fragment != other
        return changed


@_locked
class NetworkxExposures(_Part):
    """`ExposureStore` in a graph."""

    def add(self, exposures: Sequence[model.Exposure]) -> None:
        known = self._memory.nodes("Context")
        for exposure in exposures:
            if exposure.context_id not in known:
                self._memory.graph.add_node(exposure.context_id, label="Context", value=exposure)
                known[exposure.context_id] = exposure

    def report(
        self, context_id: str, helped: bool, item: int | None = None, source: str = ""
    ) -> bool:
        shown = self._memory.nodes("Context").get(context_id)
        reported = shown and rules.with_report(shown, helped, item, source)
        if reported is None:
            return False
        self._memory.graph.nodes[context_id]["value"] = reported
        return True

    def of_session(self, session: str) -> Sequence[model.Exposure]:
        shown = [one for one in self.all() if session and one.session == session]
        return sorted(shown, key=lambda one: (one.shown_at, one.context_id))

    def forget_session(self, session: str) -> None:
        for exposure in self.of_session(session):
            known = self._memory.graph.nodes[exposure.context_id]
            known["value"] = replace(exposure, said=())

    def record(self, advice: Sequence[str]) -> model.AdviceRecord:
        memory, found = self._memory, dict[str, model.Exposure]()
        for name in advice:
            reported = [
                shown
                for shown in memory.nodes("Context").values()
                if any(name in (i.id, i.advice) and i.helped is not None for i in shown.items)
            ]
            reported.sort(key=lambda shown: (shown.shown_at, shown.context_id))
            newest = reported[-rules.REPORTS_USED :]
            found |= {shown.context_id: shown for shown in newest}
        exposures = tuple(found[context] for context in sorted(found))
        errors = memory.nodes("ErrorPattern").keys() & {shown.error_id for shown in exposures}
        met = {error: [value for _, value in memory.into(error, "MET")] for error in sorted(errors)}
        contributors = {run.contributor for run in memory.within(model.Scope())} - {""}
        return model.AdviceRecord(
            exposures,
            {error: (len(runs), sum(run.cleared for run in runs)) for error, runs in met.items()},
            tuple(memory.verdicts[name] for name in sorted(memory.verdicts)),
            min(2, len(contributors)),
        )

    def decide(self, verdicts: Sequence[model.Verdict]) -> None:
        self._memory.verdicts |= {verdict.advice: verdict for verdict in verdicts}

    def gate(self) -> model.FittedGate | None:
        return self._memory.gate

    def newest(self, limit: int, skip: int = 0, name: str = "") -> Sequence[model.Exposure]:
        found = [
            shown
            for shown in self.all()
            if name in ("", shown.context_id)
            or any(name in (item.id, item.advice) for item in shown.items)
        ]
        found.sort(key=lambda shown: (-shown.shown_at.timestamp(), shown.context_id))
        return found[skip : skip + max(0, limit)]

    def tally(self, since: datetime) -> model.ShownTally:
        return model.ShownTally.of(one for one in self.all() if one.shown_at >= since)

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[model.Exposure]:
        return iter([*self._memory.nodes("Context").values()])


@_locked
class NetworkxNotes(_Part):
    """`NoteStore` in a graph."""

    def change(
        self,
        ids: Sequence[str] = (),
        function: NoteChange = replace,
        new: Sequence[model.Note] = (),
    ) -> Sequence[model.Note]:
        self._put(new)
        changed = [function(note) for note in self.get(ids).values()]
        self._put(changed)
        return changed

    def _put(self, notes: Sequence[model.Note]) -> None:
        graph = self._memory.graph
        for note in notes:
            before = graph.nodes.get(note.id)
            text = rules.note_text(note)
            is_embedded = before and rules.note_text(before["value"]) == text
            add_note(
                graph, note, value=note, vector=before["vector"] if before and is_embedded else None
            )
        link_notes(graph, self._memory.nodes_of_notes().values())

    def get(self, ids: Sequence[str]) -> Mapping[str, model.Note]:
        return {id_: note for id_, note in self._memory.nodes_of_notes().items() if id_ in ids}

    def for_text(
        self, words: Sequence[str], scope: model.NoteScope, limit: int
    ) -> Sequence[model.Note]:
        def shared(note: model.Note) -> int:
            return len({*words}.intersection(stems(rules.note_text(note))))

        found = filter(shared, self._within(scope))
        order = sorted(
            found, key=lambda note: (-shared(note), -note.created_at.timestamp(), note.id)
        )
        return order[: max(0, limit)]

    def nearest(
        self, vectors: Sequence[model.Vector], scope: model.NoteScope, limit: int
    ) -> Sequence[Mapping[str, float]]:
        if not vectors:
            return []
        known = {note.id: self._vector(note) for note in self._within(scope)}
        embedded = {id_: one for id_, one in known.items() if isinstance(one, model.Vector)}
        own = {id_: one for id_, one in embedded.items() if one.space == vectors[0].space}
        return [_nearest(vector, own, limit) for vector in vectors]

    def newest(self, scope: model.NoteScope, limit: int) -> Sequence[model.Note]:
        found = self._within(scope)
        found.sort(key=lambda note: (note.created_at, note.id), reverse=True)
        return found[: max(0, limit)]

    def linking(self, ids: Sequence[str]) -> Sequence[model.Note]:
        return [note for note in self.all() if any(link.target in ids for link in note.links)]

    def counts(self) -> Mapping[model.NoteKind, int]:
        return dict(sorted(Counter(note.kind for note in self.all() if note.is_live).items()))

    def all(self, on_damaged: OnDamaged | None = None) -> Iterator[model.Note]:
        return iter([*self._memory.nodes_of_notes().values()])

    def texts_to_embed(
        self, limit: int, space: str | None = None, after: str = ""
    ) -> Mapping[str, str]:
        waiting = (
            (note.id, rules.note_text(note))
            for note in self.all()
            if note.is_live and note.kind is not model.NoteKind.ENTITY and note.id > after
            if space is None or space != _space_of(self._vector(note))
        )
        return dict(islice(waiting, max(0, limit)))

    def add(self, space: str, vectors: Mapping[str, model.Vector | None]) -> None:
        # A text without words has its space alone.
        for id_ in self._memory.nodes_of_notes().keys() & vectors.keys():
            self._memory.graph.nodes[id_]["vector"] = vectors[id_] or space

    def delete(self, ids: Sequence[str]) -> int:
        known = self._memory.nodes_of_notes().keys() & {*ids}
        self._memory.forget_shown({*ids})
        self._memory.graph.remove_nodes_from(known)
        return len(known)

    def close(self) -> None:
        """Nothing is held beside the graph."""

    def _within(self, scope: model.NoteScope) -> list[model.Note]:
        return [note for note in self.all() if note.is_live and scope.has(note)]

    def _vector(self, note: model.Note) -> model.Vector | str | None:
        vector: model.Vector | str | None = self._memory.graph.nodes[note.id]["vector"]
        return vector


@_locked
class NetworkxAdmin(_Part):
    """`AdminStore` in a graph."""

    def counts(self) -> model.MemoryCounts:
        memory, runs = self._memory, self._memory.within(model.Scope())
        nodes = memory.graph.nodes
        labels = Counter(own["label"] for own in nodes.values())
        kinds = Counter(
            own["type"]
            for _, target, own in memory.graph.edges(data=True)
            if nodes[target]["label"] not in NOTE_LABELS
        )
        statuses = Counter(one.status for one in memory.methodologies())
        return model.MemoryCounts(
            nodes={label: labels[label] for label in _LABELS},
            edges={kind: kinds[kind] for kind in _RELATIONS},
            outcomes={one.value: sum(run.outcome is one for run in runs) for one in model.Outcome},
            changes={
                one.value: sum(run.change is one for run in runs) for one in model.ChangeStatus
            },
            methodologies={status.value: statuses[status] for status in model.MethodologyStatus},
            repositories=len({run.repo for run in runs} - {""}),
        )

    def explain(self, node_id: str) -> model.Explanation | None:
        memory, node = self._memory, self._memory.graph.nodes.get(node_id)
        if node and node["label"] == "Context":
            return self._explain_context(node["value"])
        if node is None or node["label"] not in _LABELS:
            return None
        met = memory.known(run for run, _ in memory.into(node_id, "MET"))
        newest = {run.id for run in _newest(met.values())[: rules.EXPLAINED_RUNS]}
        edges = [
            (target, own, True) for _, target, own in memory.graph.out_edges(node_id, data=True)
        ]
        edges += [
            (source, own, False) for source, _, own in memory.graph.in_edges(node_id, data=True)
        ]
        relations = (
            model.Relation(
                own["type"],
                is_outgoing,
                other,
                memory.graph.nodes[other]["label"],
                memory.graph.nodes[other]["name"],
                {name: value for name, value in own.items() if name not in ("type", "value")},
            )
            for other, own, is_outgoing in edges
            if own["type"] in _RELATIONS
            and memory.graph.nodes[other]["label"] in _LABELS
            and (
                (node["label"], memory.graph.nodes[other]["label"]) != ("ErrorPattern", "Fragment")
                or memory.graph.nodes[other]["value"].trajectory_id in newest
            )
        )
        facts = self._facts(node_id, node["value"])
        known = {name: fact for name, fact in facts.items() if fact is not None}
        return model.Explanation(
            node_id, node["label"], node["name"], known, rules.in_order(relations)
        )

    def _explain_context(self, shown: model.Exposure) -> model.Explanation:
        nodes = self._memory.graph.nodes
        known = {
            item.id: (nodes[item.id]["label"], nodes[item.id]["name"])
            for item in shown.items
            if item.id in nodes and nodes[item.id]["label"] in ("Fragment", "Methodology")
        }
        return rules.explained_context(shown, known)

    def _facts(self, node: str, value: object) -> dict[str, model.Json]:
        if isinstance(value, model.Trajectory):
            return {
                "instance_id": value.instance_id, "repo": value.repo,
                "task_type": value.task_type.value, "outcome": value.outcome.value,
                "outcome_source": value.outcome_source.value, "exit_status": value.exit_status,
                "total_steps": value.total_steps, "summary": value.summary, "agent": value.agent,
                "model": value.model, "source": value.source,
                "contributor": value.contributor or None,
                "seen_at": f"{value.seen_at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC",
            }  # fmt: skip
        if isinstance(value, model.Fragment):
            return {
                "first_step": value.start, "last_step": value.end,
                "fragment_type": value.fragment_type.value, "phase": value.phase.value,
                "outcome": value.outcome.value, "description": value.description,
                "repo": value.repo, "open_file": value.open_file,
            }  # fmt: skip
        if isinstance(value, model.Methodology):
            return {
                "situation": value.situation, "strategy": value.strategy, "repo": value.repo,
                "keyword": value.keyword, "task_type": value.task_type and value.task_type.value,
                "status": value.status.value, "confidence": value.confidence,
                "support": value.support, "repositories": value.repositories,
                "frequency": value.frequency, "success_rate": value.success_rate,
                "avg_steps": value.avg_steps, "shown_and_helped": value.success_count,
                "shown_and_did_not": value.failure_count, "made_by": value.made_by,
                "superseded_by": value.superseded_by,
            }  # fmt: skip
        met = [own for _, own in self._memory.into(node, "MET")]
        error = self._memory.pattern(node)
        return {
            "family": error.family.value, "error_type": error.error_type,
            "template": error.template, "runs": len(met),
            "cleared_runs": sum(own.cleared for own in met),
        }  # fmt: skip

    def graph(self) -> "Graph":
        graph = self._memory.graph
        view: Graph = nx.subgraph_view(
            graph,
            filter_node=lambda node: graph.nodes[node]["label"] != "Context",
            filter_edge=lambda source, target, key: str(key) != "MET",
        )
        return view

    def health(self, *, quick: bool = False) -> Sequence[model.HealthCheck]:
        runs = number_of(len(self._memory.nodes("Trajectory")), "run")
        return (
            model.HealthCheck("reachable", True, "a graph of this process"),
            model.HealthCheck("sizes", True, runs),
        )

    def back_up(self, path: Path) -> None:
        raise StoreError("a graph in memory has no file to copy; export it")

    def erase_deleted(self) -> None:
        """Nothing is left of what was deleted."""

    def take_lease(
        self, holder: str, now: datetime, until: datetime | None, process: Process | None = None
    ) -> datetime | None:
        lease = self._memory.lease
        if lease and not lease.is_free_for(holder, now):
            return lease.expires_at
        self._memory.lease = rules.StoredLease(holder, until, process) if until else None
        return None

    def unconsolidated(self, after: int | None = None) -> model.Unconsolidated:
        memory = self._memory
        since, marked = (memory.consolidated, -1) if after is None else (after, after)
        nodes = memory.graph.nodes
        changed = [run for run in memory.within(model.Scope()) if nodes[run.id]["revision"] > since]
        errors = {error for run in changed for error in memory.met(run.id)}
        errors |= {error for error, at in memory.stale_errors.items() if at > marked}
        repos = {run.repo for run in changed}
        repos |= {repo for repo, at in memory.stale_repos.items() if at > marked}
        return model.Unconsolidated(
            memory.revision, len(changed), tuple(sorted(errors)), tuple(sorted(repos - {""}))
        )

    def mark_consolidated(self, revision: int, gate: model.FittedGate | None = None) -> None:
        memory = self._memory
        memory.consolidated, memory.gate = revision, gate or memory.gate
        for stale in (memory.stale_errors, memory.stale_repos):
            for name in [name for name, at in stale.items() if at <= revision]:
                del stale[name]


class NetworkxStore(Store):
    """A `Store` in a graph of this process."""

    def __init__(self, tenant: str = "default") -> None:
        self.tenant = tenant
        self._memory = memory = Memory()
        self.snapshot = lambda: memory.lock
        self.runs = NetworkxRuns(memory)
        self.recoveries = NetworkxRecoveries(memory)
        self.vectors = NetworkxVectors(memory)
        self.methodologies = NetworkxMethodologies(memory)
        self.exposures = NetworkxExposures(memory)
        self.notes: NoteStore = NetworkxNotes(memory)
        self.admin = NetworkxAdmin(memory)

    def close(self) -> None:
        self.notes.close()


def _candidate(
    done: model.Recovered, error: model.ErrorPattern, run: model.Trajectory
) -> model.RecoveryCandidate:
    return model.RecoveryCandidate(
        done.fragment_id,
        done.error_id,
        done.error_step,
        done.cleared_step,
        done.message,
        done.location,
        done.actions,
        done.verified,
        done.workaround,
        done.circumstances,
        rules.scored_words(done.message, done.actions),
        error.family,
        error.error_type,
        error.template,
        run.id,
        run.instance_id,
        run.repo,
        run.contributor,
        run.agent,
        run.seen_at,
    )


def _place_of(candidate: model.RecoveryCandidate) -> tuple[str, str, int]:
    return candidate.fragment_id, candidate.error_id, candidate.error_step


def _agrees(
    error: model.ErrorKind, signature: model.ErrorSignature, level: model.SignatureLevel
) -> bool:
    pattern = model.ErrorSignature(error.family, error.error_type, "", error.template)
    agreement = pattern.agreement(signature)
    place = RECOVERY_LEVELS.index
    return agreement in RECOVERY_LEVELS and place(agreement) <= place(level)


def _newest(runs: Iterable[model.Trajectory]) -> list[model.Trajectory]:
    return sorted(runs, key=lambda run: (-run.seen_at.timestamp(), run.id))


def _counts(words: Iterable[str], texts: Iterable[str]) -> dict[str, int]:
    """Return in how many of *texts* each of *words* occurs."""
    sets = [{*words_of(text)} for text in texts]
    return {word: sum(word in of_text for of_text in sets) for word in words}


def _most_relevant(
    words: Sequence[str], texts: Iterable[str], found: Iterable[tuple[Kind, str]], limit: int
) -> list[Kind]:
    """Return what is *found* with its text and has any of *words*, by their weights in *texts*."""
    everywhere = [*texts]
    weights = word_weights(len(everywhere), _counts({*words}, everywhere))
    relevance = [
        (value, sum(weights.get(word, 0) for word in {*words_of(text)})) for value, text in found
    ]
    order = sorted((one for one in relevance if one[1]), key=lambda one: -one[1])
    return [value for value, _ in order[: max(0, limit)]]


def _nearest(
    vector: model.Vector, stored: Mapping[str, model.Vector], limit: int
) -> dict[str, float]:
    """Return the ids of the vectors nearest to *vector*, with their cosines."""
    if not stored:
        return {}
    cosines = products(matrix_of([*stored.values()]), vector).tolist()
    near = {
        id_: round(cosine, rules.COSINE_DECIMALS)
        for id_, cosine in zip(stored, cosines, strict=True)
    }
    return dict(sorted(near.items(), key=lambda one: (-one[1], one[0]))[: max(0, limit)])


def _space_of(vector: model.Vector | str | None) -> str | None:
    return vector.space if isinstance(vector, model.Vector) else vector

"""What consolidation reads and writes, and explanations, in plain Python, as the reference."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime

import networkx as nx

from contextgraph.model import (
    Bundle,
    Clearance,
    EmbeddedRun,
    ErrorHistory,
    ErrorOccurrence,
    ErrorSignature,
    Explanation,
    FittedGate,
    Fragment,
    FragmentType,
    Json,
    LearnStatus,
    MemoryCounts,
    Methodology,
    MethodologyStatus,
    Outcome,
    Recovered,
    Relation,
    ResolvedBy,
    Scope,
    SignatureLevel,
    SimilarTo,
    Source,
    Unconsolidated,
)
from contextgraph.ports import ALL
from contextgraph.store.graph import add_relation
from tests.reference_store import ReferenceStore, agrees

RETIRED = MethodologyStatus.RETIRED
_GRAPH_ATTRIBUTES = {
    "Trajectory": ("repo", "outcome"),
    "Fragment": ("repo", "fragment_type", "phase", "outcome"),
    "ErrorPattern": ("family", "error_type"),
    "Methodology": ("repo", "status", "support", "confidence"),
}


class ReferenceMemory(ReferenceStore):
    """A `ReferenceStore` that remembers when what changed, and what was abstracted from it."""

    def __init__(self) -> None:
        super().__init__()
        self.revision = 0
        self.consolidated = 0
        self.gate: FittedGate | None = None
        self.changed: dict[str, int] = {}
        self.stale: dict[str, int] = {}
        self.lease: tuple[str | None, datetime] = (None, datetime.min.replace(tzinfo=UTC))
        self.methodologies: dict[str, Methodology] = {}
        self.resolved: dict[tuple[str, str], ResolvedBy] = {}
        self.similar: dict[tuple[Source, str], SimilarTo] = {}
        self.stale_repos: dict[str, int] = {}

    def add(self, bundle: Bundle) -> LearnStatus:
        status = super().add(bundle)
        if status is not LearnStatus.UNCHANGED:
            self.revision += 1
            self.changed[bundle.trajectory.id] = self.revision
        return status

    def runs_set_outcome(self, trajectory_ids: Iterable[str], outcome: Outcome) -> int:
        before = {**self.bundles}
        count = super().runs_set_outcome(trajectory_ids, outcome)
        self.revision += bool(count)
        changed = (run for run, bundle in self.bundles.items() if bundle is not before[run])
        self.changed.update(dict.fromkeys(changed, self.revision))
        return count

    def _replace(self, former: str, bundle: Bundle) -> bool:
        own = bundle.trajectory.id
        if former in self.bundles:
            self.revision += 1
            gone = {former, own} & self.bundles.keys()
            self._take_away(gone, {error.id for error in bundle.errors})
        if not super()._replace(former, bundle):
            return False
        self.revision += 1
        self.changed[own] = self.revision
        return True

    def runs_forget(self, trajectory_ids: Iterable[str]) -> int:
        known = {*trajectory_ids} & self.bundles.keys()
        self.revision += bool(known)
        self._take_away(known, set())
        return super().runs_forget(known)

    def _take_away(self, runs: set[str], met_again: set[str]) -> None:
        """What was derived from *runs*, and edges of errors that no run will have met."""
        gone = [bundle for run, bundle in self.bundles.items() if run in runs]
        stay = [bundle for run, bundle in self.bundles.items() if run not in runs]
        met = {error.id for bundle in gone for error in bundle.errors}
        self.stale.update(dict.fromkeys(met, self.revision))
        self.stale_repos.update({bundle.trajectory.repo: self.revision for bundle in gone})
        derived = self._where(lambda one: any(s.trajectory_id in runs for s in one.sources))
        self._remove(one.id for one in derived)
        self._unlink({fragment.id for bundle in gone for fragment in bundle.fragments})
        met -= met_again | {error.id for bundle in stay for error in bundle.errors}
        self._drop_edges(lambda edge: edge.error_id in met)

    def admin_take_lease(
        self, holder: str, now: datetime, until: datetime | None, process: None = None
    ) -> datetime | None:
        held_by, expires_at = self.lease
        if held_by not in {None, holder} and expires_at > now:
            return expires_at
        self.lease = (holder, until) if until else (None, now)
        return None

    def admin_unconsolidated(self, after: int | None = None) -> Unconsolidated:
        revision, marked = (self.consolidated, -1) if after is None else (after, after)
        met = {
            error.id
            for run, bundle in self.bundles.items()
            for error in bundle.errors
            if self.changed[run] > revision
        }
        stale = {error for error, since in self.stale.items() if since > marked}
        repos = {
            bundle.trajectory.repo
            for run, bundle in self.bundles.items()
            if self.changed[run] > revision
        }
        repos |= {repo for repo, since in self.stale_repos.items() if since > marked}
        return Unconsolidated(
            self.revision,
            self._newer(revision),
            tuple(sorted(met | stale)),
            tuple(sorted(repos - {""})),
        )

    def admin_gate(self) -> FittedGate | None:
        return self.gate

    def admin_mark_consolidated(self, revision: int, gate: FittedGate | None = None) -> None:
        self.gate = gate or self.gate
        self.consolidated = revision
        self.stale = {error: since for error, since in self.stale.items() if since > revision}
        self.stale_repos = {r: since for r, since in self.stale_repos.items() if since > revision}

    def recoveries_histories(self, error_ids: Sequence[str], limit: int) -> Sequence[ErrorHistory]:
        histories = []
        for error_id in sorted({*error_ids}):
            met = [b for b in self.bundles.values() if any(e.id == error_id for e in b.errors)]
            newest = _newest(met)[:limit]
            if met:
                histories.append(ErrorHistory(
                    error=self._pattern(error_id),
                    occurrences=tuple(_occurrence(bundle, error_id) for bundle in newest),
                    clearances=tuple(c for bundle in newest for c in _clearances(bundle, error_id)),
                ))  # fmt: skip
        return histories

    def methodologies_get(
        self, ids: Sequence[str] = (), *, errors: Sequence[str] = ()
    ) -> Sequence[Methodology]:
        return self._where(lambda one: one.id in ids or one.error_id in errors)

    def methodologies_ids(
        self, repo: str | None = None, after: str = "", limit: int = ALL
    ) -> Sequence[str]:
        found = self._where(
            lambda one: one.id > after and (repo is None or one.repo == repo.lower())
        )
        return [one.id for one in found][:limit]

    def methodologies_of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[Methodology]]:
        type_of = {
            error.id: (error.family, error.error_type)
            for bundle in self.bundles.values()
            for error in bundle.errors
        }
        types = {type_of[error] for error in error_ids if error in type_of}
        found = self._where(lambda one: type_of.get(one.error_id) in types)
        by_type: dict[object, list[Methodology]] = {}
        for one in found:
            by_type.setdefault(type_of[one.error_id], []).append(one)
        return list(by_type.values())

    def methodologies_for_error(
        self, signatures: Sequence[ErrorSignature], scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        found = (self._resolving(signature, scope, limit) for signature in signatures)
        return next(filter(None, found), ())

    def _resolving(self, signature: ErrorSignature, scope: Scope, limit: int) -> list[Methodology]:
        template = SignatureLevel.TEMPLATE
        types = {
            error.id
            for bundle in self.bundles.values()
            for error in bundle.errors
            if agrees(error, signature, template) and error.family is signature.family
        }
        resolving = {edge.methodology_id for edge in self.resolved.values()
                     if edge.error_id in types}  # fmt: skip
        found = _ranked(one for one in self._seen(scope) if one.id in resolving)[:limit]
        return [replace(one, sources=()) for one in found]

    def _seen(self, scope: Scope) -> list[Methodology]:
        """What may be found within *scope*."""
        anywhere = replace(scope, repo=None)
        seen = {bundle.trajectory.id for bundle in self._within(anywhere)}
        return self._where(
            lambda one: (
                one.status is not RETIRED
                and (scope.repo is None or one.repo in {None, scope.repo})
                and {source.trajectory_id for source in one.sources} <= seen
            )
        )

    def methodologies_put(
        self,
        methodologies: Sequence[Methodology],
        removed: Sequence[str] = (),
        resolved: Sequence[ResolvedBy] = (),
        similar: Sequence[SimilarTo] = (),
    ) -> int:
        self.revision += 1
        self._remove(removed)
        there = self._sources()
        for one in methodologies:
            sources = tuple(sorted({*one.sources} & there))
            self.methodologies[one.id] = replace(one, sources=sources)
        retired = {one.id for one in methodologies if one.status is RETIRED}
        self._drop_edges(lambda edge: edge.methodology_id in retired)
        errors = {error.id for bundle in self.bundles.values() for error in bundle.errors}
        for edge in resolved:
            if edge.error_id in errors and edge.methodology_id in self.methodologies:
                self.resolved[edge.error_id, edge.methodology_id] = edge
        known = [edge for edge in similar if {edge.fragment, edge.representative} <= there]
        return self._put_similar(known)

    def _put_similar(self, similar: Sequence[SimilarTo]) -> int:
        before = dict(self.similar)
        changed = 0
        for edge in similar:
            if edge.fragment == edge.representative:
                changed += self.similar.pop((edge.fragment, edge.error_id), None) is not None
        for edge in similar:
            if edge.fragment != edge.representative:
                self.similar[edge.fragment, edge.error_id] = edge
                changed += before.get((edge.fragment, edge.error_id)) != edge
        return changed

    def recoveries_clean_up(self, error_ids: Sequence[str], keep: int) -> int:
        pruned = sum(self._prune(error_id, keep) for error_id in error_ids)
        orphans = self._where(lambda one: not one.sources and one.status is not RETIRED)
        self.revision += bool(orphans)
        self._remove(one.id for one in orphans)
        return pruned + len(orphans)

    def _prune(self, error_id: str, keep: int) -> int:
        failed = [
            (bundle.trajectory, fragment)
            for bundle in self.bundles.values()
            for fragment in bundle.fragments
            if _failed_at(bundle, fragment, error_id)
        ]
        failed.sort(key=lambda found: found[1].id)
        failed.sort(key=lambda found: found[0].seen_at, reverse=True)
        self.revision += len(failed) > keep
        for run, fragment in failed[keep:]:
            self._unlink({fragment.id})
            bundle = self.bundles[run.id]
            self.bundles[run.id] = replace(
                bundle,
                fragments=tuple(one for one in bundle.fragments if one is not fragment),
                caused=tuple(one for one in bundle.caused if one.fragment_id != fragment.id),
            )
        return len(failed[keep:])

    def admin_counts(self) -> MemoryCounts:
        counts, advice = super().admin_counts(), list(self.methodologies.values())
        edges = {
            "RESOLVED_BY": len(self.resolved),
            "DERIVED_FROM": sum(len(one.sources) for one in advice),
            "SUPERSEDES": sum(one.superseded_by in self.methodologies for one in advice),
            "SIMILAR_TO": len(self.similar),
        }
        return replace(
            counts,
            nodes={**counts.nodes, "Methodology": len(advice)},
            edges={**counts.edges, **edges},
            methodologies={s.value: sum(o.status is s for o in advice) for s in MethodologyStatus},
        )

    def admin_explain(self, node_id: str) -> Explanation | None:
        if node_id in self.shown:
            return self._explain_context(node_id)
        nodes = self._nodes()
        if node_id not in nodes:
            return None
        label, name, facts = nodes[node_id]
        known = {key: value for key, value in facts.items() if value is not None}
        out = [(edge[0], edge[2], edge[3], True) for edge in self._edges() if edge[1] == node_id]
        into = [(edge[0], edge[1], edge[3], False) for edge in self._edges() if edge[2] == node_id]
        relations = [
            Relation(kind, outgoing, other, *nodes[other][:2], properties)
            for kind, other, properties, outgoing in [*out, *into]
        ]
        return Explanation(node_id, label, name, known, tuple(sorted(relations, key=_place)))

    def admin_graph(self) -> "nx.MultiDiGraph[str]":
        graph: nx.MultiDiGraph[str] = nx.MultiDiGraph()
        for node, (label, name, facts) in self._nodes().items():
            attributes = {
                key: "" if facts[key] is None else facts[key] for key in _GRAPH_ATTRIBUTES[label]
            }
            graph.add_node(node, label=label, name=name, **attributes)
        for kind, source, target, properties in self._edges():
            add_relation(graph, kind, source, target, properties)
        return graph

    def _embedded(self, trajectory_id: str) -> EmbeddedRun | None:
        key = self.active or "", trajectory_id
        return EmbeddedRun(key[0], self.vectors[key]) if key in self.vectors else None

    def runs_archived(self, trajectory_id: str) -> Bundle | None:
        bundle = self.bundles.get(trajectory_id)
        raw = self.runs_raw(trajectory_id)
        if bundle is None or raw is None:
            return None
        position = {fragment.id: fragment.order for fragment in bundle.fragments}
        return replace(
            bundle,
            raw=raw,
            exposures=(),
            errors=tuple(sorted(bundle.errors, key=lambda one: one.id)),
            caused=tuple(
                sorted(bundle.caused, key=lambda c: (position[c.fragment_id], c.error_id))
            ),
            recovered=tuple(sorted(bundle.recovered, key=_step_first)),
            embedded=self._embedded(trajectory_id),
            met={error.id: self.met[trajectory_id][error.id] for error in bundle.errors},
        )

    def recoveries_similar_to(self, trajectory_id: str) -> Sequence[SimilarTo]:
        found = (e for e in self.similar.values() if e.fragment.trajectory_id == trajectory_id)
        return sorted(found, key=lambda edge: (edge.fragment.fragment_id, edge.error_id))

    def _explain_context(self, context: str) -> Explanation:
        shown, words = self.shown[context], {None: "not known", True: "yes", False: "no"}
        facts: dict[str, Json] = {"shown_at": _time(shown.shown_at), "helped": words[shown.helped]}
        facts |= {"reported_by": shown.source} if shown.source else {}
        facts |= {"withheld": "yes"} if shown.is_withheld else {}
        nodes = self._nodes()
        relations = (
            Relation(
                "SHOWN",
                True,
                one.id,
                *nodes.get(one.id, ("gone", one.id, {}))[:2],
                {"advice": one.advice, "helped": words[one.helped]},
            )
            for one in shown.items
        )
        ordered = tuple(sorted(relations, key=_place))
        return Explanation(context, "Context", f"context {context}", facts, ordered)

    def _nodes(self) -> dict[str, tuple[str, str, dict[str, Json]]]:
        nodes: dict[str, tuple[str, str, dict[str, Json]]] = {}
        for bundle in self.bundles.values():
            run = bundle.trajectory
            nodes[run.id] = ("Trajectory", run.name, {
                "instance_id": run.instance_id, "repo": run.repo, "task_type": run.task_type.value,
                "outcome": run.outcome.value, "outcome_source": run.outcome_source.value,
                "exit_status": run.exit_status,
                "total_steps": run.total_steps, "summary": run.summary, "agent": run.agent,
                "model": run.model, "source": run.source, "contributor": run.contributor or None,
                "seen_at": _time(run.seen_at),
            })  # fmt: skip
            for part in bundle.fragments:
                nodes[part.id] = ("Fragment", part.name, {
                    "first_step": part.start, "last_step": part.end,
                    "fragment_type": part.fragment_type.value, "phase": part.phase.value,
                    "outcome": part.outcome.value, "description": part.description,
                    "repo": part.repo, "open_file": part.open_file,
                })  # fmt: skip
            for error in bundle.errors:
                met = [b for b in self.bundles.values() if error.id in self.met[b.trajectory.id]]
                cleared = [b for b in met if any(r.error_id == error.id for r in b.recovered)]
                nodes[error.id] = ("ErrorPattern", error.name, {
                    "family": error.family.value, "error_type": error.error_type,
                    "template": error.template, "runs": len(met), "cleared_runs": len(cleared),
                })  # fmt: skip
        for one in self.methodologies.values():
            nodes[one.id] = ("Methodology", one.name, {
                "situation": one.situation, "strategy": one.strategy, "repo": one.repo,
                "keyword": one.keyword, "task_type": one.task_type and one.task_type.value,
                "status": one.status.value, "confidence": one.confidence, "support": one.support,
                "repositories": one.repositories, "frequency": one.frequency,
                "success_rate": one.success_rate, "avg_steps": one.avg_steps,
                "shown_and_helped": one.success_count, "shown_and_did_not": one.failure_count,
                "made_by": one.made_by, "superseded_by": one.superseded_by,
            })  # fmt: skip
        return nodes

    def _edges(self) -> Iterator[tuple[str, str, str, dict[str, Json]]]:
        for run, bundle in self.bundles.items():
            for part in bundle.fragments:
                yield "HAS_FRAGMENT", run, part.id, {"order": part.order}
            for met in bundle.caused:
                yield "CAUSED_ERROR", met.fragment_id, met.error_id, {"steps": [*met.steps]}
            for one in bundle.recovered:
                yield (
                    "RECOVERED",
                    one.fragment_id,
                    one.error_id,
                    {
                        "error_step": one.error_step,
                        "cleared_step": one.cleared_step,
                        "verified": one.verified,
                    },
                )
        for edge in self.resolved.values():
            yield (
                "RESOLVED_BY",
                edge.error_id,
                edge.methodology_id,
                {
                    "success_rate": edge.success_rate,
                    "avg_steps": edge.avg_steps,
                    "support": edge.support,
                },
            )
        for known in self.methodologies.values():
            for source in known.sources:
                yield "DERIVED_FROM", known.id, source.fragment_id, {}
            if known.superseded_by in self.methodologies:
                yield "SUPERSEDES", known.superseded_by, known.id, {}
        for link in self.similar.values():
            yield (
                "SIMILAR_TO",
                link.fragment.fragment_id,
                link.representative.fragment_id,
                {
                    "error_id": link.error_id,
                    "weight": link.weight,
                },
            )

    def _newer(self, revision: int) -> int:
        return sum(self.changed[run] > revision for run in self.bundles)

    def _where(self, holds) -> list[Methodology]:
        found = (one for one in self.methodologies.values() if holds(one))
        return sorted(found, key=lambda one: one.id)

    def _sources(self) -> set[Source]:
        return {
            Source(run, fragment.id)
            for run, bundle in self.bundles.items()
            for fragment in bundle.fragments
        }

    def _remove(self, ids: Iterable[str]) -> None:
        gone = {*ids} & self.methodologies.keys()
        while (
            superseded := {m.id for m in self.methodologies.values() if m.superseded_by in gone}
            - gone
        ):
            gone |= superseded
        for one in [self.methodologies.pop(methodology_id) for methodology_id in gone]:
            if one.superseded_by in gone:
                self.stale[one.error_id] = self.revision
        self._drop_edges(lambda edge: edge.methodology_id in gone)

    def _drop_edges(self, goes) -> None:
        self.resolved = {key: edge for key, edge in self.resolved.items() if not goes(edge)}

    def _unlink(self, fragments: set[str]) -> None:
        """Let edges to fragments go that go themselves."""
        self.similar = {
            key: edge
            for key, edge in self.similar.items()
            if fragments.isdisjoint((edge.fragment.fragment_id, edge.representative.fragment_id))
        }
        for known in self.methodologies.values():
            left = tuple(s for s in known.sources if s.fragment_id not in fragments)
            self.methodologies[known.id] = replace(known, sources=left)


def _step_first(recovered: Recovered) -> tuple[int, str, str]:
    return recovered.error_step, recovered.fragment_id, recovered.error_id


def _newest(bundles: Sequence[Bundle]) -> list[Bundle]:
    by_id = sorted(bundles, key=lambda bundle: bundle.trajectory.id)
    return sorted(by_id, key=lambda bundle: bundle.trajectory.seen_at, reverse=True)


def _ranked(found: Iterable[Methodology]) -> list[Methodology]:
    return sorted(found, key=lambda one: (one.repo is None, -one.support, one.id))


def _failed_at(bundle: Bundle, fragment: Fragment, error_id: str) -> bool:
    return (
        fragment.fragment_type is FragmentType.FAILED_ATTEMPT
        and any(c.fragment_id == fragment.id and c.error_id == error_id for c in bundle.caused)
        and not any(one.fragment_id == fragment.id for one in bundle.recovered)
    )


def _occurrence(bundle: Bundle, error_id: str) -> ErrorOccurrence:
    run = bundle.trajectory
    context = next(error.context for error in bundle.errors if error.id == error_id)
    return ErrorOccurrence(run.id, run.repo, run.task_type, context)


def _clearances(bundle: Bundle, error_id: str) -> Iterator[Clearance]:
    run = bundle.trajectory
    found = (one for one in bundle.recovered if one.error_id == error_id)
    for one in sorted(found, key=lambda one: (one.error_step, one.fragment_id)):
        yield Clearance(
            one,
            run.id,
            run.repo,
            run.task_type,
            run.outcome,
            run.seen_at,
            run.instance_id,
            run.contributor,
        )


def _place(relation: Relation) -> tuple[str, bool, str, str]:
    return relation.type, relation.outgoing, relation.id, repr(sorted(relation.properties.items()))


def _time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"

"""Methodologies in the graph: found for an error, read back, written."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextgraph.model import (
    ErrorSignature,
    Methodology,
    MethodologyStatus,
    Phase,
    ResolvedBy,
    Scope,
    SimilarTo,
    Source,
    TaskType,
)
from contextgraph.store.neo4j_store import derived, rows
from contextgraph.store.neo4j_store.changes import begin_change, note_change
from contextgraph.store.neo4j_store.rows import Parameters, Row
from contextgraph.store.neo4j_store.transaction import Transaction


@dataclass(frozen=True, slots=True)
class Changes:
    """What is written in one transaction."""

    methodologies: Sequence[Methodology]
    removed: Sequence[str]
    resolved: Sequence[ResolvedBy]
    similar: Sequence[SimilarTo]


def methodologies_for_error(
    transaction: Transaction, signatures: Sequence[ErrorSignature], scope: Scope, limit: int
) -> list[Methodology]:
    """Those of the error of the first template that has any, in the order of the port."""
    found = transaction.rows(
        "methodologies_for_error",
        fingerprints=list(map(rows.fingerprint, signatures)),
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return [methodology_of(row) for row in found]


def methodologies_for_task(
    transaction: Transaction, task_type: TaskType | None, scope: Scope, limit: int
) -> list[Methodology]:
    """Those of no error for this type of task, in the order of the port."""
    found = transaction.rows(
        "methodologies_for_task",
        task_type=task_type.value if task_type else None,
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return [methodology_of(row) for row in found]


def methodologies_of_repos(transaction: Transaction, repos: Sequence[str]) -> list[Methodology]:
    """Those of no error that are of these repositories, by id; tombstones as well."""
    found = transaction.rows("methodologies_of_repos", repos=sorted(set(repos)))
    return [methodology_of(row) for row in found]


def methodologies_of(transaction: Transaction, ids: Sequence[str]) -> list[Methodology]:
    """Those of these ids, by id."""
    return [
        methodology_of(row) for row in transaction.rows("methodologies_of", ids=sorted(set(ids)))
    ]


def methodologies_of_errors(
    transaction: Transaction, error_ids: Sequence[str]
) -> list[Methodology]:
    """Those abstracted from these errors, by id; tombstones as well."""
    found = transaction.rows("methodologies_of_errors", ids=sorted(set(error_ids)))
    return [methodology_of(row) for row in found]


def methodologies_of_types(
    transaction: Transaction, error_ids: Sequence[str]
) -> list[list[Methodology]]:
    """Those of all errors of the families and types of these, by id, each type by itself."""
    by_type: dict[tuple[str, str], list[Methodology]] = {}
    for row in transaction.rows("methodologies_of_types", ids=sorted(set(error_ids))):
        by_type.setdefault((row["family"], row["error_type"]), []).append(methodology_of(row))
    return list(by_type.values())


def methodology_ids(transaction: Transaction) -> list[str]:
    """All ids, ascending; tombstones as well."""
    return [row["id"] for row in transaction.rows("methodology_ids")]


def resolved_by(transaction: Transaction, methodology_id: str) -> list[ResolvedBy]:
    """The errors that a methodology resolves, by their ids."""
    return [ResolvedBy(**row) for row in transaction.rows("resolved_by", id=methodology_id)]


def shown_methodologies(transaction: Transaction) -> list[str]:
    """Ids of those of which it was reported whether they helped."""
    return [row["id"] for row in transaction.rows("shown_methodologies")]


def put_methodologies(transaction: Transaction, given: Changes) -> int:
    """Write *given*; how many fragments were found alike."""
    revision = begin_change(transaction) + 1
    derived.remove_methodologies(transaction, given.removed, revision)
    _put(transaction, given.methodologies)
    _put_resolved(transaction, given)
    changed = _put_similar(transaction, given.similar)
    note_change(transaction, revisions=1)
    return changed


def remove_orphans(transaction: Transaction, limit: int) -> int:
    """Delete *limit* of those that no fragment supports, tombstones excepted; how many."""
    revision = begin_change(transaction) + 1
    found = [row["id"] for row in transaction.rows("orphans", limit=limit)]
    if found:
        derived.remove_methodologies(transaction, found, revision)
        note_change(transaction, revisions=1)
    return len(found)


def _put(transaction: Transaction, methodologies: Sequence[Methodology]) -> None:
    """Write *methodologies* in the place of those of their ids, with their sources."""
    if not methodologies:
        return
    ids = sorted(one.id for one in methodologies)
    sources = [
        {
            "methodology_id": one.id,
            "trajectory_id": source.trajectory_id,
            "fragment_id": source.fragment_id,
        }
        for one in methodologies
        for source in one.sources
    ]
    by_id = sorted(methodologies, key=lambda one: one.id)
    given = [_row(one) for one in by_id]
    transaction.write("drop_outdated_vectors", given)
    transaction.write("put_methodologies", given)
    transaction.rows("unlink_methodologies", ids=ids)
    transaction.write("link_sources", sources)
    transaction.rows("link_superseded", ids=ids)


def _put_resolved(transaction: Transaction, given: Changes) -> None:
    """Write the edges between what is there; a tombstone keeps none."""
    gone = [one.id for one in given.methodologies if one.status is MethodologyStatus.RETIRED]
    if gone:
        transaction.rows("unlink_resolved", ids=sorted(gone))
    edges = [
        {
            "error_id": edge.error_id,
            "methodology_id": edge.methodology_id,
            "success_rate": edge.success_rate,
            "avg_steps": edge.avg_steps,
            "support": edge.support,
        }
        for edge in given.resolved
    ]
    transaction.write("link_resolved", edges)


def _put_similar(transaction: Transaction, similar: Sequence[SimilarTo]) -> int:
    """Write which fragments are like which; how many of it was not known."""
    if not similar:
        return 0
    there = _sources_among(transaction, similar)
    told = [
        {
            "fragment": edge.fragment.fragment_id,
            "error_id": edge.error_id,
            "representative": edge.representative.fragment_id,
            "weight": edge.weight,
        }
        for edge in similar
        if {edge.fragment, edge.representative} <= there
    ]
    known = {
        (row["fragment"], row["error_id"]): (row["representative"], row["weight"])
        for row in transaction.rows("similar_to", rows=told)
    }
    changed = [
        row for row in told if _of_edge(row) != known.get((row["fragment"], row["error_id"]))
    ]
    transaction.write("unlink_similar", changed)
    transaction.write("link_similar", [row for row in changed if _of_edge(row)])
    return len(changed)


def _sources_among(transaction: Transaction, similar: Sequence[SimilarTo]) -> set[Source]:
    """The fragments that *similar* names and that are there."""
    named = {source for edge in similar for source in (edge.fragment, edge.representative)}
    ids = sorted({source.fragment_id for source in named})
    found = transaction.rows("runs_of_fragments", ids=ids)
    return {Source(row["trajectory_id"], row["id"]) for row in found}


def _of_edge(row: Row) -> tuple[str, float] | None:
    """What a fragment is like, None where it represents itself."""
    if row["representative"] == row["fragment"]:
        return None
    return row["representative"], row["weight"]


def _row(value: Methodology) -> Parameters:
    return {
        "id": value.id,
        "name": value.name,
        "error_id": value.error_id,
        "keyword": value.keyword,
        "task_type": value.task_type.value if value.task_type else None,
        "repo": value.repo,
        "situation": value.situation,
        "strategy": value.strategy,
        "made_by": value.made_by,
        "status": value.status.value,
        "confidence": value.confidence,
        "support": value.support,
        "repositories": value.repositories,
        "success_rate": value.success_rate,
        "avg_steps": value.avg_steps,
        "frequency": value.frequency,
        "success_count": value.success_count,
        "failure_count": value.failure_count,
        "last_used": None if value.last_used is None else rows.moment(value.last_used),
        "superseded_by": value.superseded_by,
        "phase": value.phase.value if value.phase else None,
    }


def methodology_of(row: Row) -> Methodology:
    """The value of the columns methodology, sources: (run, fragment) of each."""
    node: Row = row["methodology"]
    task_type, last_used, phase = node.get("task_type"), node.get("last_used"), node.get("phase")
    return Methodology(
        id=node["id"],
        error_id=node["error_id"],
        keyword=node["keyword"],
        task_type=None if task_type is None else TaskType(task_type),
        repo=node.get("repo"),
        situation=node["situation"],
        strategy=node["strategy"],
        made_by=node["made_by"],
        status=MethodologyStatus(node["status"]),
        confidence=node["confidence"],
        support=node["support"],
        repositories=node["repositories"],
        success_rate=node["success_rate"],
        avg_steps=node["avg_steps"],
        frequency=node["frequency"],
        success_count=node["success_count"],
        failure_count=node["failure_count"],
        last_used=None if last_used is None else rows.time_of(last_used),
        sources=tuple(sorted(Source(run, fragment) for run, fragment in row["sources"])),
        superseded_by=node.get("superseded_by"),
        phase=None if phase is None else Phase(phase),
    )

"""The methodology store: methodologies with their evidence, and the errors that they resolve."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from contextgraph.model import (
    ErrorSignature,
    Methodology,
    MethodologyStatus,
    ResolvedBy,
    Scope,
    SimilarTo,
    Source,
)
from contextgraph.ports import ALL
from contextgraph.store import rules
from contextgraph.store.neo4j import rows
from contextgraph.store.neo4j.connection import Connection, Transaction
from contextgraph.store.neo4j.rows import Row

# Deleted in one transaction, whose size the memory of a server limits.
NODES_AT_ONCE = 200


class Neo4jMethodologies:
    """`MethodologyStore` on a server; the docstrings of its methods are those of the protocol."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def get(self, ids: Sequence[str] = (), *, errors: Sequence[str] = ()) -> Sequence[Methodology]:
        return self._read("methodologies", ids=sorted(set(ids)), errors=sorted(set(errors)))

    def ids(self, repo: str | None = None, after: str = "", limit: int = ALL) -> Sequence[str]:
        folded = repo and repo.casefold()
        return self._connection.collected("methodology_ids", repo=folded, after=after, limit=limit)

    def of_types(self, error_ids: Sequence[str]) -> Sequence[Sequence[Methodology]]:
        by_type: dict[tuple[str, str], list[Methodology]] = {}
        for row in self._connection.rows("methodologies_of_types", ids=sorted(set(error_ids))):
            of_type = by_type.setdefault((row["family"], row["error_type"]), [])
            of_type.append(rows.methodology_of(row))
        return list(by_type.values())

    def for_error(
        self, signatures: Sequence[ErrorSignature], scope: Scope, limit: int
    ) -> Sequence[Methodology]:
        return self._read(
            "methodologies_for_error",
            fingerprints=list(map(rows.fingerprint, signatures)),
            limit=max(0, limit),
            **rows.scope_parameters(scope),
        )

    def put(
        self,
        methodologies: Sequence[Methodology],
        removed: Sequence[str] = (),
        resolved: Sequence[ResolvedBy] = (),
        similar: Sequence[SimilarTo] = (),
    ) -> int:
        def work(transaction: Transaction) -> int:
            revision = transaction.begin_change() + 1
            remove(transaction, removed, revision)
            _put_nodes(transaction, methodologies)
            _put_resolved(transaction, methodologies, resolved)
            changed = _put_similar(transaction, similar) if similar else 0
            transaction.note_change(revisions=1)
            return changed

        return self._connection.write(work)

    def _read(self, name: str, /, **parameters: object) -> list[Methodology]:
        return list(map(rows.methodology_of, self._connection.rows(name, **parameters)))


def remove(transaction: Transaction, ids: Sequence[str], revision: int) -> None:
    """Delete methodologies with their edges, and all that they had superseded.

    The errors of what was superseded count as changed at *revision*.
    """
    if not ids:
        return
    with_superseded = transaction.rows("with_superseded", ids=ids)
    gone = [rules.RemovedMethodology(**row) for row in with_superseded]
    mark_changed(transaction, rules.made_stale(gone), (), revision)
    transaction.rows("remove_methodologies", ids=sorted(methodology.id for methodology in gone))


def mark_changed(
    transaction: Transaction, errors: Iterable[str], repos: Iterable[str | None], revision: int
) -> None:
    """Let errors and repositories be consolidated again, as changed at *revision*."""
    if ids := sorted(set(errors)):
        transaction.rows("mark_errors_changed", ids=ids, revision=revision)
    if named := sorted({repo for repo in repos if repo}):
        transaction.rows("mark_repos_changed", repos=named, revision=revision)


def _put_nodes(transaction: Transaction, methodologies: Sequence[Methodology]) -> None:
    """Write *methodologies* with their sources, replacing those with the same ids."""
    if not methodologies:
        return
    by_id = sorted(methodologies, key=lambda methodology: methodology.id)
    ids = [methodology.id for methodology in by_id]
    sources = [
        {"methodology_id": methodology.id, **asdict(source)}
        for methodology in methodologies
        for source in methodology.sources
    ]
    nodes = [rows.methodology_row(methodology) for methodology in by_id]
    transaction.write("put_methodologies", nodes)
    transaction.rows("unlink_methodologies", ids=ids)
    transaction.write("link_sources", sources)
    transaction.rows("link_superseded", ids=ids)


def _put_resolved(
    transaction: Transaction,
    methodologies: Sequence[Methodology],
    resolved: Sequence[ResolvedBy],
) -> None:
    """Write the edges between nodes that exist; a tombstone keeps none."""
    retired = [
        methodology.id
        for methodology in methodologies
        if methodology.status is MethodologyStatus.RETIRED
    ]
    if retired:
        transaction.rows("unlink_resolved", ids=sorted(retired))
    transaction.write("link_resolved", list(map(asdict, resolved)))


def _put_similar(transaction: Transaction, similar: Sequence[SimilarTo]) -> int:
    """Write `SIMILAR_TO` edges between fragments that exist; how many changed."""
    ids = {
        source.fragment_id for edge in similar for source in (edge.fragment, edge.representative)
    }
    fragments = transaction.rows("runs_of_fragments", ids=sorted(ids))
    present = {Source(row["trajectory_id"], row["id"]) for row in fragments}
    edges = [
        {
            "fragment": edge.fragment.fragment_id,
            "error_id": edge.error_id,
            "representative": edge.representative.fragment_id,
            "weight": edge.weight,
        }
        for edge in similar
        if {edge.fragment, edge.representative} <= present
    ]
    known = {
        (row["fragment"], row["error_id"]): (row["representative"], row["weight"])
        for row in transaction.rows("similar_to", rows=edges)
    }
    changed = [
        row for row in edges if _target(row) != known.get((row["fragment"], row["error_id"]))
    ]
    transaction.write("unlink_similar", changed)
    transaction.write("link_similar", [row for row in changed if _target(row)])
    return len(changed)


def _target(edge: Row | Mapping[str, object]) -> tuple[object, object] | None:
    """Representative and weight of *edge*, None where a fragment represents itself."""
    if edge["representative"] == edge["fragment"]:
        return None
    return edge["representative"], edge["weight"]

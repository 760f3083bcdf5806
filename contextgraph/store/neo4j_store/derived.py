"""What was derived from runs, taken away with them."""

from collections.abc import Sequence

from contextgraph.store.neo4j_store.transaction import Transaction


def remove_of_runs(transaction: Transaction, runs: Sequence[str], revision: int) -> None:
    """Delete what was derived from these runs.

    Their errors and repositories are looked at again.
    """
    met = transaction.rows("errors_met_by_runs", ids=runs)
    _mark_stale(transaction, [row["id"] for row in met], revision)
    repos = transaction.rows("repos_of_runs", ids=runs)
    _mark_stale_repos(transaction, [row["repo"] for row in repos], revision)
    derived = transaction.rows("derived_from_runs", ids=runs)
    remove_methodologies(transaction, [row["id"] for row in derived], revision)


def remove_methodologies(transaction: Transaction, ids: Sequence[str], revision: int) -> None:
    """Delete methodologies with their edges, and all that they had superseded.

    The errors (or repositories) of these are looked at again.
    """
    if not ids:
        return
    found = transaction.rows("with_superseded", ids=ids)
    gone = {row["id"] for row in found}
    absorbed = [row for row in found if row["superseded_by"] in gone]
    errors = [row["error_id"] for row in absorbed if row["error_id"]]
    _mark_stale(transaction, errors, revision)
    repos = [row["repo"] for row in absorbed if not row["error_id"]]
    _mark_stale_repos(transaction, repos, revision)
    transaction.rows("remove_methodologies", ids=sorted(gone))


def _mark_stale_repos(transaction: Transaction, repos: Sequence[str | None], revision: int) -> None:
    named = sorted({repo for repo in repos if repo})
    if named:
        transaction.rows("mark_stale_repos", repos=named, revision=revision)


def _mark_stale(transaction: Transaction, errors: Sequence[str], revision: int) -> None:
    if errors:
        transaction.rows("mark_stale", ids=sorted(set(errors)), revision=revision)

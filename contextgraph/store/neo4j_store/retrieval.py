"""Candidates for the channels, each named by one query."""

from collections.abc import Mapping, Sequence
from operator import itemgetter

from contextgraph.model import (
    ErrorQuestion,
    Phase,
    RecoveryCandidate,
    Scope,
    SignatureLevel,
    TaskType,
)
from contextgraph.store.neo4j_store import rows
from contextgraph.store.neo4j_store.full_text import terms
from contextgraph.store.neo4j_store.rows import Parameters
from contextgraph.store.neo4j_store.transaction import Transaction
from contextgraph.store.neo4j_store.values import FragmentKey, RecoveryKey

_LEVELS = (SignatureLevel.TEMPLATE, SignatureLevel.TYPE, SignatureLevel.FAMILY)
_PLACES = ("in_repo", "everywhere")
_PHASES = [phase.value for phase in Phase]
_TASK_TYPES = [task_type.value for task_type in TaskType]


def recoveries_for_error(
    transaction: Transaction, asked: Sequence[ErrorQuestion], limit: int, enough: int | None
) -> list[RecoveryKey]:
    """Recoveries from the errors *asked* about, in the order of the port."""
    if unknown := [one.level for one in asked if one.level not in _LEVELS]:
        raise ValueError(f"recoveries are not kept by {unknown[0]}")
    by_kind: dict[str, list[Parameters]] = {
        f"{level}_{place}": [] for level in _LEVELS for place in _PLACES
    }
    for number, one in enumerate(asked):
        by_kind[where(one.level, one.scope)].append({"number": number, **_error(one)})
    found = transaction.rows("recoveries_for_error", limit=max(0, limit), **by_kind)
    keys: list[RecoveryKey] = []
    for row in sorted(found, key=itemgetter("number")):
        if enough is None or len(keys) < enough:
            keys += [RecoveryKey(*key) for key in row["found"]]
    return keys


def recoveries_for_text(
    transaction: Transaction, weights: Mapping[str, int], scope: Scope, limit: int
) -> list[RecoveryKey]:
    """Recoveries by the sum of *weights* of the words they have."""
    found = transaction.found(
        "recoveries_for_text",
        words=terms(transaction.tenant, scope.repo, weights),
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return [RecoveryKey(*key) for key in found]


def representatives_of(
    transaction: Transaction, recoveries: Sequence[RecoveryCandidate], scope: Scope
) -> dict[int, RecoveryKey]:
    """What stands for each of *recoveries*, by its place among them; nothing for most."""
    asked = [
        {"number": number, "fragment_id": one.recovered.fragment_id, "error_id": one.error.id}
        for number, one in enumerate(recoveries)
    ]
    if not asked:
        return {}
    found = transaction.found("representatives_of", rows=asked, **rows.scope_parameters(scope))
    return {number: RecoveryKey(*key) for number, key in found}


def trajectories_for_task(
    transaction: Transaction, task_type: TaskType | None, scope: Scope, limit: int
) -> list[str]:
    """The ids of runs of *task_type*, in the order of the port."""
    return transaction.found(
        where("trajectories_for_task", scope),
        task_types=[task_type.value] if task_type else _TASK_TYPES,
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )


def trajectories_for_text(
    transaction: Transaction, weights: Mapping[str, int], scope: Scope, limit: int
) -> list[str]:
    """The ids of runs by the sum of *weights* of the words they have."""
    return transaction.found(
        "trajectories_for_text",
        words=terms(transaction.tenant, scope.repo, weights),
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )


def fragments_for_state(
    transaction: Transaction, phase: Phase | None, file_name: str | None, scope: Scope, limit: int
) -> list[FragmentKey]:
    """Fragments of *phase* that touch *file_name*, in the order of the port."""
    name = "fragments_for_state" if file_name is None else "fragments_at_file"
    found = transaction.found(
        where(name, scope),
        phases=[phase.value] if phase else _PHASES,
        file_name=file_name,
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return [FragmentKey(*key) for key in found]


def where(name: str, scope: Scope) -> str:
    """The name of a query that has one form for a repository, and one for all of them."""
    return f"{name}_everywhere" if scope.repo is None else f"{name}_in_repo"


def _error(asked: ErrorQuestion) -> Parameters:
    signature = asked.signature
    return {
        "fingerprint": rows.fingerprint(signature),
        "family": signature.family.value,
        "error_type": signature.error_type,
        **rows.scope_parameters(asked.scope),
    }

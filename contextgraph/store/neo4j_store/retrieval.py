"""Candidates for the channels, each found by one query."""

from collections.abc import Mapping, Sequence

from contextgraph.model import (
    ErrorSignature,
    FragmentCandidate,
    Phase,
    RecoveryCandidate,
    Scope,
    SignatureLevel,
    TaskType,
    Trajectory,
)
from contextgraph.store.neo4j_store import rows
from contextgraph.store.neo4j_store.full_text import terms
from contextgraph.store.neo4j_store.transaction import Transaction

_LEVELS = {
    SignatureLevel.TEMPLATE: "recoveries_for_error_template",
    SignatureLevel.TYPE: "recoveries_for_error_type",
    SignatureLevel.FAMILY: "recoveries_for_error_family",
}
_PHASES = [phase.value for phase in Phase]
_TASK_TYPES = [task_type.value for task_type in TaskType]


def recoveries_for_error(
    transaction: Transaction,
    signature: ErrorSignature,
    level: SignatureLevel,
    scope: Scope,
    limit: int,
) -> list[RecoveryCandidate]:
    """Recoveries of the same error at *level*, in the order of the port."""
    if level not in _LEVELS:
        raise ValueError(f"recoveries are not kept by {level}")
    found = transaction.rows(
        where(_LEVELS[level], scope),
        fingerprint=rows.fingerprint(signature),
        family=signature.family.value,
        error_type=signature.error_type,
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return list(map(rows.recovery_of, found))


def recoveries_for_text(
    transaction: Transaction, weights: Mapping[str, int], scope: Scope, limit: int
) -> list[RecoveryCandidate]:
    """Recoveries by the sum of *weights* of the words they have."""
    found = transaction.rows(
        "recoveries_for_text",
        words=terms(transaction.tenant, scope.repo, weights),
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return list(map(rows.recovery_of, found))


def representatives_of(
    transaction: Transaction, recoveries: Sequence[RecoveryCandidate], scope: Scope
) -> list[RecoveryCandidate]:
    """What stands for each of *recoveries*, itself where nothing in *scope* does."""
    asked = [
        {"number": number, "fragment_id": one.recovered.fragment_id, "error_id": one.error.id}
        for number, one in enumerate(recoveries)
    ]
    found = transaction.rows("representatives_of", rows=asked, **rows.scope_parameters(scope))
    heads = {row["number"]: rows.recovery_of(row) for row in found}
    return [heads.get(number, one) for number, one in enumerate(recoveries)]


def trajectories_for_task(
    transaction: Transaction, task_type: TaskType | None, scope: Scope, limit: int
) -> list[Trajectory]:
    """Runs of *task_type*, in the order of the port."""
    found = transaction.rows(
        where("trajectories_for_task", scope),
        task_types=[task_type.value] if task_type else _TASK_TYPES,
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return [rows.trajectory_of(row["trajectory"]) for row in found]


def trajectories_for_text(
    transaction: Transaction, weights: Mapping[str, int], scope: Scope, limit: int
) -> list[Trajectory]:
    """Runs by the sum of *weights* of the words they have."""
    found = transaction.rows(
        "trajectories_for_text",
        words=terms(transaction.tenant, scope.repo, weights),
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return [rows.trajectory_of(row["trajectory"]) for row in found]


def fragments_for_state(
    transaction: Transaction, phase: Phase | None, file_name: str | None, scope: Scope, limit: int
) -> list[FragmentCandidate]:
    """Fragments of *phase* that touch *file_name*, in the order of the port."""
    name = "fragments_for_state" if file_name is None else "fragments_at_file"
    found = transaction.rows(
        where(name, scope),
        phases=[phase.value] if phase else _PHASES,
        file_name=file_name,
        limit=max(0, limit),
        **rows.scope_parameters(scope),
    )
    return list(map(rows.fragment_candidate_of, found))


def where(name: str, scope: Scope) -> str:
    """The name of a query that has one form for a repository, and one for all of them."""
    return f"{name}_everywhere" if scope.repo is None else f"{name}_in_repo"

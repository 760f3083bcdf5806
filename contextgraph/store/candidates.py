"""Candidates: first the keys of the best rows, by index alone, then their values."""

from collections.abc import Iterable, Mapping, Sequence

from contextgraph.model import (
    ErrorQuestion,
    Fragment,
    FragmentCandidate,
    Phase,
    RecoveryCandidate,
    SignatureLevel,
    TaskType,
    Trajectory,
)
from contextgraph.store import full_text, rows, runs
from contextgraph.store.schema import RUN_BITS
from contextgraph.store.scoping import Scoped
from contextgraph.store.view import View

_LEVELS = {
    SignatureLevel.TEMPLATE: (
        "recovered_template",
        """r.error = (SELECT key FROM error_pattern WHERE tenant = :tenant AND family = :family
        AND error_type = :error_type AND template = :template)""",
    ),
    SignatureLevel.TYPE: (
        "recovered_type",
        "r.family = :family AND r.error_type = :error_type",
    ),
    SignatureLevel.FAMILY: ("recovered_family", "r.family = :family"),
}
# The index gives the order up to the time; SQLite then sorts only runs of the same moment, and
# stops at the limit.
_RECOVERIES_FOR_ERROR = """
SELECT r.key FROM recovered r INDEXED BY {index}
CROSS JOIN fragment f ON f.key = r.fragment
CROSS JOIN error_pattern e ON e.key = r.error
WHERE {level} AND {scope}
ORDER BY r.verified DESC, r.seen_at DESC, f.id, e.id, r.error_step LIMIT :limit"""
# Rows are read for those alone that are relevant enough to be among the first.
_FOUND = """
WITH found AS MATERIALIZED (SELECT key, sum(weight) AS weight FROM ({match}) GROUP BY key)"""
_RELEVANT = """
found.weight >= coalesce((SELECT found.weight FROM found {of_rows}
    ORDER BY found.weight DESC LIMIT 1 OFFSET :limit - 1), 0)"""
_RECOVERIES_FOR_TEXT = f"""{_FOUND}
SELECT r.key FROM found CROSS JOIN recovered r ON r.key = found.key
CROSS JOIN fragment f ON f.key = r.fragment
CROSS JOIN error_pattern e ON e.key = r.error
WHERE {_RELEVANT} AND {{scope}}
ORDER BY found.weight DESC, f.id, e.id, r.error_step LIMIT :limit"""
_TRAJECTORIES_FOR_TASK = """
SELECT t.key FROM trajectory t INDEXED BY {index}
WHERE {scope} {task_type} ORDER BY t.solved DESC, t.seen_at DESC, t.id LIMIT :limit"""
_TRAJECTORIES_FOR_TEXT = f"""{_FOUND}
SELECT t.key FROM found CROSS JOIN trajectory t ON t.key = found.key
WHERE {_RELEVANT} AND {{scope}} ORDER BY found.weight DESC, t.id LIMIT :limit"""
_RECOVERIES_OF = """
SELECT r.fragment, r.key FROM recovered r CROSS JOIN error_pattern e ON e.key = r.error
WHERE r.fragment IN (SELECT value FROM json_each(?)) ORDER BY e.id, r.error_step"""
# Fragments have no index by id: their run has one, and their keys are in its range.
_REPRESENTATIVES = f"""
SELECT asked.key, r.key FROM json_each(:asked) AS asked
CROSS JOIN trajectory t ON t.tenant = :tenant AND t.id = asked.value ->> 0
CROSS JOIN similar s ON s.fragment BETWEEN t.key << {RUN_BITS} AND ((t.key + 1) << {RUN_BITS}) - 1
    AND s.error_id = asked.value ->> 2
CROSS JOIN fragment f ON f.key = s.fragment AND f.id = asked.value ->> 1
CROSS JOIN error_pattern e ON e.tenant = :tenant AND e.id = s.error_id
CROSS JOIN recovered r ON r.fragment = s.representative AND r.error = e.key AND {{scope}}
ORDER BY asked.key, r.error_step DESC"""
_FRAGMENTS_FOR_FILE = """
SELECT f.key FROM touched s INDEXED BY touched_newest CROSS JOIN fragment f ON f.key = s.fragment
WHERE s.file_name = :file_name {phase} AND {scope}
ORDER BY s.seen_at DESC, f.id LIMIT :limit"""
_FRAGMENTS = """
SELECT f.key FROM fragment f INDEXED BY fragment_newest
WHERE {scope} {phase} ORDER BY f.seen_at DESC, f.id LIMIT :limit"""


def recoveries_for_error(
    view: View, asked: Sequence[ErrorQuestion], limit: int, enough: int | None
) -> list[RecoveryCandidate]:
    """Recoveries from the errors *asked* about, in the order of the port."""
    if unknown := [one.level for one in asked if one.level not in _LEVELS]:
        raise ValueError(f"recoveries are not kept by {unknown[0]}")
    keys: list[int] = []
    for one in asked:
        if enough is None or len(keys) < enough:
            keys += _recoveries_for(view, one, limit)
    return view.recoveries(keys)


def _recoveries_for(view: View, question: ErrorQuestion, limit: int) -> list[int]:
    index, agrees = _LEVELS[question.level]
    scope, signature = view.scoped(question.scope), question.signature
    query = _RECOVERIES_FOR_ERROR.format(
        index=scope.index(index), level=agrees, scope=scope.where("r")
    )
    asked = {
        "family": signature.family.value,
        "error_type": signature.error_type,
        "template": signature.template,
    }
    return _keys(view, query, scope, limit, asked)


def recoveries_for_text(
    view: View, scope: Scoped, weights: Mapping[str, int], limit: int
) -> list[RecoveryCandidate]:
    """Recoveries by the sum of *weights* of the words they have."""
    if not weights:
        return []
    match, asked = full_text.match("recovered", scope.tenant, scope.place, weights)
    of_rows = _of_rows(scope, "recovered", "r", "trajectory")
    query = _RECOVERIES_FOR_TEXT.format(match=match, of_rows=of_rows, scope=scope.where("r"))
    return view.recoveries(_keys(view, query, scope, limit, asked))


def representatives(
    view: View, scope: Scoped, recoveries: Sequence[RecoveryCandidate]
) -> list[RecoveryCandidate]:
    """What stands for each of *recoveries*, itself where nothing in *scope* does."""
    asked = [(one.trajectory.id, one.recovered.fragment_id, one.error.id) for one in recoveries]
    query = _REPRESENTATIVES.format(scope=scope.where("r"))
    rows_of = view.connection.execute(query, {**scope.parameters, "asked": rows.text_of(asked)})
    # Of several of one fragment the last row, that of the first step, stays.
    keys: dict[int, int] = dict(rows_of.fetchall())
    found = dict(zip(keys, view.recoveries(list(keys.values())), strict=True))
    return [found.get(number, one) for number, one in enumerate(recoveries)]


def trajectories_for_task(
    view: View, scope: Scoped, task_type: TaskType | None, limit: int
) -> list[Trajectory]:
    """Runs of *task_type*, in the order of the port."""
    query = _TRAJECTORIES_FOR_TASK.format(
        index=scope.index("trajectory_ranked"),
        scope=scope.where("t", "key"),
        task_type="AND t.task_type = :task_type" if task_type else "",
    )
    asked = {"task_type": task_type.value} if task_type else {}
    keys = _keys(view, query, scope, limit, asked)
    found = view.trajectories(keys)
    return [found[key] for key in keys]


def trajectories_for_text(
    view: View, scope: Scoped, weights: Mapping[str, int], limit: int
) -> list[Trajectory]:
    """Runs by the sum of *weights* of the words they have."""
    if not weights:
        return []
    match, asked = full_text.match("trajectory", scope.tenant, scope.place, weights)
    of_rows = _of_rows(scope, "trajectory", "t", "key")
    within = scope.where("t", "key")
    query = _TRAJECTORIES_FOR_TEXT.format(match=match, of_rows=of_rows, scope=within)
    keys = _keys(view, query, scope, limit, asked)
    found = view.trajectories(keys)
    return [found[key] for key in keys]


def fragments_for_state(
    view: View, scope: Scoped, phase: Phase | None, file_name: str | None, limit: int
) -> list[FragmentCandidate]:
    """Fragments of *phase* that touch *file_name*, in the order of the port."""
    asked: dict[str, str] = {} if phase is None else {"phase": phase.value}
    if file_name is None:
        alias, template = "f", _FRAGMENTS
    else:
        alias, template = "s", _FRAGMENTS_FOR_FILE
        asked["file_name"] = file_name
    query = template.format(
        scope=scope.where(alias, by_place=True),
        phase="" if phase is None else f"AND {alias}.phase = :phase",
    )
    keys = _keys(view, query, scope, limit, asked)
    found = view.fragments(keys)
    return [found[key] for key in keys]


def fragments_of(view: View, trajectory_ids: Iterable[str]) -> dict[str, list[Fragment]]:
    """Run id -> its fragments, in order; none for unknown ones."""
    found: dict[str, list[Fragment]] = {run: [] for run in trajectory_ids}
    keys = runs.fragment_keys(view.connection, view.tenant, found)
    values = view.fragments(keys)
    for key in keys:
        candidate = values[key]
        found[candidate.trajectory.id].append(candidate.fragment)
    return found


def recoveries_of(view: View, fragment_keys: Sequence[int]) -> dict[int, list[RecoveryCandidate]]:
    """The recoveries of fragments, by their key."""
    pairs = view.connection.execute(_RECOVERIES_OF, (_json(fragment_keys),)).fetchall()
    found = view.recoveries([key for _, key in pairs])
    by_fragment: dict[int, list[RecoveryCandidate]] = {}
    for (fragment, _), candidate in zip(pairs, found, strict=True):
        by_fragment.setdefault(fragment, []).append(candidate)
    return by_fragment


def _of_rows(scope: Scoped, table: str, alias: str, run: str) -> str:
    """What is in *scope* of what was found; the match has seen to tenant and place."""
    if not (scope.has_as_of or scope.has_excluded):
        return ""
    return f"CROSS JOIN {table} {alias} ON {alias}.key = found.key WHERE {scope.where(alias, run)}"


def _keys(view: View, query: str, scope: Scoped, limit: int, asked: Mapping[str, str]) -> list[int]:
    parameters = {**scope.parameters, **asked, "limit": max(0, limit)}
    return [row[0] for row in view.connection.execute(query, parameters)]


def _json(keys: Sequence[int]) -> str:
    return str(sorted(set(keys)))

"""What a scope means in SQL: every candidate query has it in its innermost condition."""

from dataclasses import dataclass
from sqlite3 import Connection

import orjson

from contextgraph.model import Scope
from contextgraph.store import rows

NOWHERE = 0

_EXCLUDED = (
    "SELECT key FROM trajectory WHERE tenant = :tenant "
    "AND instance_id IN (SELECT value FROM json_each(:instances))"
)


@dataclass(frozen=True, slots=True)
class Scoped:
    """A scope of one tenant: *place* is None for all repositories, NOWHERE for an unknown one."""

    tenant: int
    place: int | None
    parameters: dict[str, str | int]
    has_excluded: bool
    has_as_of: bool

    def where(self, alias: str, key: str = "trajectory", *, by_place: bool = False) -> str:
        """The condition on the rows of *alias*, whose column *key* is the key of the run.

        *by_place*: in a form that an index by place serves even where all places are asked for.
        """
        terms = [self._repository(alias, by_place)]
        if self.has_as_of:
            terms.append(f"{alias}.seen_at <= :as_of")
        if self.has_excluded:
            terms.append(f"{alias}.{key} NOT IN ({_EXCLUDED})")
        return " AND ".join(terms)

    def _repository(self, alias: str, by_place: bool) -> str:
        if self.place is not None:
            return f"{alias}.place = :place"
        if by_place:
            return f"{alias}.place IN (SELECT key FROM place WHERE tenant = :tenant)"
        return f"{alias}.tenant = :tenant"

    def excluded(self, connection: Connection) -> list[int]:
        """The keys of the runs that are not to be seen."""
        if not self.has_excluded:
            return []
        return [row[0] for row in connection.execute(_EXCLUDED, self.parameters)]

    def index(self, name: str) -> str:
        """The name of the index to use: there are two of each, one by place."""
        return name if self.place is None else f"{name}_in_place"


def scoped(connection: Connection, tenant: int, scope: Scope, places: dict[str, int]) -> Scoped:
    """*scope* with the numbers that stand for its repository and time; *places* are known ones."""
    parameters: dict[str, str | int] = {"tenant": tenant}
    place = None if scope.repo is None else places.get(scope.repo)
    if place is None and scope.repo is not None:
        place = places[scope.repo] = _place(connection, tenant, scope.repo)
    if place is not None:
        parameters["place"] = place
    if scope.as_of is not None:
        parameters["as_of"] = rows.moment(scope.as_of)
    if scope.exclude_instances:
        parameters["instances"] = orjson.dumps(sorted(scope.exclude_instances)).decode()
    return Scoped(tenant, place, parameters, bool(scope.exclude_instances), scope.as_of is not None)


def _place(connection: Connection, tenant: int, repo: str) -> int:
    row = connection.execute(
        "SELECT key FROM place WHERE tenant = ? AND repo = ?", (tenant, repo)
    ).fetchone()
    return NOWHERE if row is None else int(row[0])

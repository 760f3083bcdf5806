"""One transaction of one tenant: its SQL statements, scopes, and values by their keys."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from sqlite3 import Connection
from typing import Any, TypeAlias

from contextgraph.errors import StoreError
from contextgraph.lazy import dataclass, field
from contextgraph.model import (
    ErrorPattern,
    Fragment,
    FragmentCandidate,
    RecoveryCandidate,
    Scope,
    Trajectory,
)
from contextgraph.store.columns import DAMAGE, ValueCache
from contextgraph.store.sqlite import rows
from contextgraph.store.sqlite.rows import Row

Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]

# Thousands of recoveries can be equally relevant. Of so many times the limit the first ones come
# early in the order of all.
_SHARE = 32
# Removed runs and fragments are listed for so many revisions, for processes whose graph still has
# them; those that are further behind read everything again.
REMOVALS_LISTED = 10_000

_RECOVERIES_IN_ORDER = """
SELECT r.key FROM json_each(?) AS named CROSS JOIN recovered r ON r.key = named.value
CROSS JOIN error_pattern e ON e.key = r.error
ORDER BY r.fragment_id, e.id, r.error_step LIMIT ?"""
_ALL_IN_ORDER = """
SELECT key, fragment_id FROM recovered INDEXED BY recovered_in_order
WHERE tenant = ? ORDER BY fragment_id"""
_TRAJECTORIES_IN_ORDER = """
SELECT t.key FROM json_each(?) AS named CROSS JOIN trajectory t ON t.key = named.value
ORDER BY t.id LIMIT ?"""
_KEYS_OF_RUNS = """
SELECT DISTINCT t.key FROM json_each(?) AS named
CROSS JOIN trajectory t ON t.tenant = ? AND t.id = named.value ORDER BY t.id"""
_EXCLUDED = (
    "SELECT key FROM trajectory WHERE tenant = :tenant "
    "AND instance_id IN (SELECT value FROM json_each(:instances))"
)


@dataclass(frozen=True, slots=True)
class Values:
    """Values that were read at *revision*, or before it and are still the same.

    Fragments and recoveries never change, and keys of runs are not used twice; a run changes with
    its revision; the key of a repository may change with every revision.
    """

    revision: int = -1
    trajectories: ValueCache[int, Trajectory] = field(default_factory=ValueCache)
    fragments: ValueCache[int, tuple[int, Fragment]] = field(default_factory=ValueCache)
    recoveries: ValueCache[int, RecoveryCandidate] = field(default_factory=ValueCache)
    repositories: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class SqlScope:
    """A scope in SQL; *repository* is None for all and 0 for an unknown one."""

    repository: int | None
    parameters: dict[str, str | int]
    has_excluded: bool
    has_as_of: bool

    @property
    def is_narrow(self) -> bool:
        """True where it admits only some runs of the tenant."""
        return self.repository is not None or self.has_excluded or self.has_as_of

    def where(
        self,
        alias: str,
        key: str = "trajectory",
        *,
        by_place: bool = False,
        of_tenant: bool = False,
    ) -> str:
        """The condition on the rows of *alias*, whose column *key* is the key of the run.

        *by_place*: in a form that an index by place serves even for all repositories. *of_tenant*:
        the other conditions admit only rows of the tenant.
        """
        terms = []
        if self.repository is not None:
            terms.append(f"{alias}.place = :place")
        elif by_place:
            terms.append(f"{alias}.place IN (SELECT key FROM place WHERE tenant = :tenant)")
        elif not of_tenant:
            terms.append(f"{alias}.tenant = :tenant")
        if self.has_as_of:
            terms.append(f"{alias}.seen_at <= :as_of")
        if self.has_excluded:
            terms.append(f"{alias}.{key} NOT IN ({_EXCLUDED})")
        return " AND ".join(terms or ["1"])

    def index(self, name: str) -> str:
        """The name of the index to use: there are two of each, one by repository."""
        return name if self.repository is None else f"{name}_in_place"


@dataclass(frozen=True, slots=True)
class Transaction:
    """A *connection* within a transaction of *tenant*, and the *values* cached for its revision."""

    connection: Connection
    tenant: int
    values: Values

    def rows(self, sql: str, parameters: Parameters = ()) -> list[Row]:
        """All rows that *sql* finds."""
        return self.connection.execute(sql, parameters).fetchall()

    def row(self, sql: str, parameters: Parameters = ()) -> Row | None:
        """The first row that *sql* finds."""
        row: Row | None = self.connection.execute(sql, parameters).fetchone()
        return row

    def number(self, sql: str, parameters: Parameters = ()) -> int:
        """The number that *sql* finds, 0 where it finds no row."""
        row = self.row(sql, parameters)
        return int(row[0]) if row else 0

    def column(self, sql: str, parameters: Parameters = ()) -> list[Any]:
        """The first column of all rows that *sql* finds."""
        return [row[0] for row in self.connection.execute(sql, parameters)]

    def ids(
        self, table: str, values: Mapping[str, str | int | None], after: str, limit: int
    ) -> list[str]:
        """Ids above *after* in *table*, ascending: of rows with these *values* (None: any)."""
        known = {name: value for name, value in values.items() if value is not None}
        conditions = "".join(f" AND {name} = ?" for name in known)
        # Without the signs SQLite takes an index of all rows of the tenant: it has no statistics.
        tenant, column = "+tenant" if "place" in known else "tenant", "+id" if known else "id"
        return self.column(
            f"SELECT id FROM {table} WHERE {tenant} = ? AND {column} > ?{conditions} "
            f"ORDER BY {column} LIMIT ?",
            (self.tenant, after, *known.values(), limit),
        )

    def write(self, sql: str, parameters: Parameters = ()) -> int:
        """Execute *sql*; how many rows it changed."""
        return self.connection.execute(sql, parameters).rowcount

    def write_all(self, sql: str, parameters: Sequence[Parameters]) -> int:
        """Execute *sql* with each of *parameters*; how many rows it changed, without triggers."""
        return max(0, self.connection.executemany(sql, parameters).rowcount)

    def insert(self, table: str, given: Sequence[Mapping[str, Any]]) -> None:
        """Write rows that have the same columns."""
        if given:
            self.connection.executemany(insertion(table, given[0]), given)

    def new_revision(self, *, removing: bool = False) -> int:
        """The revision of the change that begins here.

        *removing*: rows go, so that caches that only follow additions have to read again.
        """
        return self.number(
            "UPDATE tenant SET revision = revision + 1, removals = removals + ? WHERE key = ? "
            "RETURNING revision",
            (removing, self.tenant),
        )

    def revision(self) -> tuple[int, int]:
        """The current revision, and the number of changes that removed something."""
        row = self.row("SELECT revision, removals FROM tenant WHERE key = ?", (self.tenant,))
        return (row[0], row[1]) if row else (0, 0)

    def scoped(self, scope: Scope) -> SqlScope:
        """*scope* with the numbers that stand for its repository and time."""
        parameters: dict[str, str | int] = {"tenant": self.tenant}
        repository = None
        if scope.repo is not None:
            repository = parameters["place"] = self.place(scope.repo)
        if scope.as_of is not None:
            parameters["as_of"] = rows.moment(scope.as_of)
        if scope.exclude_instances:
            parameters["instances"] = rows.text_of(sorted(scope.exclude_instances))
        has_excluded, has_as_of = bool(scope.exclude_instances), scope.as_of is not None
        return SqlScope(repository, parameters, has_excluded, has_as_of)

    def put_place(self, repo: str) -> int:
        """The key of a repository, which is stored where it is new."""
        repository = (self.tenant, repo)
        self.write("INSERT OR IGNORE INTO place (tenant, repo) VALUES (?, ?)", repository)
        return self.number("SELECT key FROM place WHERE tenant = ? AND repo = ?", repository)

    def place(self, repo: str) -> int:
        """The key of a repository, 0 where it is unknown."""
        known = self.values.repositories
        if repo not in known:
            known[repo] = self.number(
                "SELECT key FROM place WHERE tenant = ? AND repo = ?", (self.tenant, repo)
            )
        return known[repo]

    def excluded(self, scope: SqlScope) -> list[int]:
        """The keys of the runs that *scope* excludes by their instance."""
        return self.column(_EXCLUDED, scope.parameters) if scope.has_excluded else []

    def run_keys(self, trajectory_ids: Iterable[str]) -> list[int]:
        """The keys of the known ones of these runs, in the order of their ids."""
        return self.column(_KEYS_OF_RUNS, (rows.text_of(trajectory_ids), self.tenant))

    def trajectories(self, keys: Sequence[int]) -> dict[int, Trajectory]:
        """The runs with these keys, by key."""
        return self.values.trajectories.get_or_read(keys, self._read_trajectories)

    def fragments(self, keys: Sequence[int]) -> list[FragmentCandidate]:
        """The fragments with these keys, in their order."""
        fragments = self.values.fragments.get_or_read(keys, self._read_fragments)
        runs = self.trajectories([run for run, _ in fragments.values()])
        of_keys = map(fragments.__getitem__, keys)
        return [FragmentCandidate(fragment, runs[run]) for run, fragment in of_keys]

    def recoveries(self, keys: Sequence[int]) -> list[RecoveryCandidate]:
        """The recoveries with these keys, in their order."""
        recoveries = self.values.recoveries.get_or_read(keys, self._read_recoveries)
        return [recoveries[key] for key in keys]

    def first_recoveries(self, keys: Sequence[int], limit: int) -> list[int]:
        """The first *limit* of the recoveries with these *keys*, by fragment, error and step."""
        if not keys or limit < 1:
            return []
        if len(keys) > _SHARE * limit:
            keys = self._first_in_index(frozenset(keys), limit)
        return self.column(_RECOVERIES_IN_ORDER, (str(keys), limit))

    def _first_in_index(self, keys: frozenset[int], limit: int) -> list[int]:
        """The first *limit* of many *keys* by fragment, and all others of the last fragment."""
        first: list[int] = []
        last = ""
        for key, fragment in self.connection.execute(_ALL_IN_ORDER, (self.tenant,)):
            if len(first) >= limit and fragment != last:
                break
            if key in keys:
                first.append(key)
                last = fragment
        return first

    def first_trajectories(self, keys: Sequence[int], limit: int) -> list[int]:
        """The first *limit* of the runs with these *keys*, by id."""
        return self.column(_TRAJECTORIES_IN_ORDER, (str(keys), max(0, limit)))

    def errors(self, keys: Sequence[int]) -> dict[int, ErrorPattern]:
        """The error patterns with these keys, by key, in the words of the run of least id."""
        return self._read(
            keys,
            "SELECT e.key, e.id, e.family, e.error_type, e.template, m.keywords, m.context "
            "FROM json_each(?) AS named CROSS JOIN error_pattern e ON e.key = named.value "
            "CROSS JOIN met m ON m.error = e.key AND m.trajectory = (SELECT trajectory FROM met "
            "INDEXED BY met_first WHERE error = e.key ORDER BY trajectory_id LIMIT 1)",
            rows.ERRORS.value,
        )

    def _read(self, keys: Sequence[int], sql: str, value: Callable[[Row], Any]) -> dict[int, Any]:
        """The values that *sql* finds for *keys*; its first column is the key."""
        named = (str(sorted(set(keys))),)
        try:
            return {row[0]: value(row[1:]) for row in self.rows(sql, named)}
        except DAMAGE as error:
            raise StoreError(f"a stored row is damaged: {error}") from error

    def _read_trajectories(self, keys: Sequence[int]) -> dict[int, Trajectory]:
        return self._read(
            keys,
            f"SELECT key, {rows.columns_of(rows.TRAJECTORIES)} FROM trajectory "
            "WHERE key IN (SELECT value FROM json_each(?))",
            rows.TRAJECTORIES.value,
        )

    def _read_fragments(self, keys: Sequence[int]) -> dict[int, tuple[int, Fragment]]:
        return self._read(
            keys,
            f"SELECT f.key, f.trajectory, t.id, {rows.columns_of(rows.FRAGMENTS, 'f')} "
            "FROM json_each(?) AS named CROSS JOIN fragment f ON f.key = named.value "
            "CROSS JOIN trajectory t ON t.key = f.trajectory",
            lambda row: (row[0], rows.FRAGMENTS.value(row[2:], trajectory_id=row[1])),
        )

    def _read_recoveries(self, keys: Sequence[int]) -> dict[int, RecoveryCandidate]:
        return self._read(
            keys,
            f"SELECT r.key, r.fragment_id, e.id, {rows.columns_of(rows.RECOVERIES, 'r')}, "
            "r.scored_words, r.family, r.error_type, e.template, "
            "t.id, t.instance_id, t.repo, t.contributor, t.agent, r.seen_at "
            "FROM json_each(?) AS named CROSS JOIN recovered r ON r.key = named.value "
            "CROSS JOIN trajectory t ON t.key = r.trajectory "
            "CROSS JOIN error_pattern e ON e.key = r.error",
            rows.recovery_of,
        )


def insertion(table: str, columns: Iterable[str]) -> str:
    """The statement that inserts a row with these *columns*, given by their names."""
    names = [*columns]
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{n}' for n in names)})"

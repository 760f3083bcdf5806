"""A memory file as a tenant sees it: values of rows, transactions, connections, caches."""

import errno
import fcntl
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache, partial
from pathlib import Path
from sqlite3 import Connection
from threading import local
from typing import Any, TypeAlias, TypeVar

import orjson
from msgspec import Struct, field

from contextgraph.codec import DAMAGE, Columns, Form, Value, actions_of
from contextgraph.errors import StoreError, StoreUnavailableError
from contextgraph.model import (
    ErrorPattern,
    Exposure,
    Family,
    Fragment,
    FragmentCandidate,
    Methodology,
    Recovered,
    RecoveryCandidate,
    Scope,
    ShownItem,
    Trajectory,
    Vector,
    Verdict,
)
from contextgraph.processes import ValueCache, create_private, no_fork, replacing
from contextgraph.store import rules
from contextgraph.store.sqlite import schema
from contextgraph.store.sqlite.schema import (
    RUN_BITS,
    check_schema,
    create,
    not_created,
    schema_version,
)

Row: TypeAlias = tuple[Any, ...]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def moment(time: datetime) -> int:
    """Microseconds since 1970, UTC; raises `StoreError` for a time without zone."""
    if time.tzinfo is None:
        raise StoreError(f"time {time.isoformat()} has no time zone")
    return (time - _EPOCH) // _MICROSECOND


def text_of(items: Iterable[object]) -> str:
    """*items* as a JSON list; raises `StoreError` for a text that is not valid Unicode."""
    try:
        return orjson.dumps(tuple(items)).decode()
    except TypeError as error:
        raise StoreError(f"a text cannot be stored: {error}") from error


def tuple_of(text: str) -> tuple[Any, ...]:
    """Return the tuple that `text_of` gave *text* for; raises `StoreError`."""
    try:
        return tuple(orjson.loads(text))
    except ValueError as error:
        raise StoreError(f"a stored list is damaged: {error}") from error


@lru_cache(1_024)
def time_of(microseconds: int) -> datetime:
    """The time that `moment` gave *microseconds* for."""
    return _EPOCH + timedelta(microseconds=microseconds)


def vector_of(space: str, data: bytes) -> Vector | None:
    """The vector of *data*; None for zeros, which are stored for a text that has no vector."""
    return Vector(space, data) if any(data) else None


_FAMILIES = {family.value: family for family in Family}
_FORMS: Mapping[Any, Form] = {
    datetime: (moment, time_of),
    tuple[str, ...]: (text_of, tuple_of),
    bool: (int, bool),
}
TRAJECTORIES = Columns(Trajectory, _FORMS)
FRAGMENTS = Columns(Fragment, _FORMS, omitted=["trajectory_id"])
ERRORS = Columns(ErrorPattern, _FORMS)
RECOVERIES = Columns(Recovered, _FORMS, omitted=["fragment_id", "error_id"])
METHODOLOGIES = Columns(Methodology, _FORMS, omitted=["sources"])
EXPOSURES = Columns(Exposure, _FORMS, omitted=["items"])
SHOWN_ITEMS = Columns(ShownItem, _FORMS)
VERDICTS = Columns(Verdict, _FORMS)


def recovery_of(row: Row) -> RecoveryCandidate:
    """The value of columns in the order of its fields."""
    (fragment, error, step, cleared, message, location, actions, verified, workaround) = row[:9]
    circumstances, words, family, error_type, template = row[9:14]
    run, instance, repo, source, agent, seen = row[14:]
    done = actions_of(actions)
    return RecoveryCandidate(
        fragment,
        error,
        step,
        cleared,
        message,
        location,
        done,
        bool(verified),
        bool(workaround),
        tuple_of(circumstances),
        rules.scored_words(message, done) if words is None else words,
        _FAMILIES[family],
        error_type,
        template,
        run,
        instance,
        repo,
        source,
        agent,
        time_of(seen),
    )


# Words of SQL cannot be names of columns.
_RENAMED = {"order": "position", "end": "stop"}


def named_row(columns: Columns[Value], value: Value) -> dict[str, Any]:
    """The columns of *value* by their names."""
    return dict(zip(names_of(columns), columns.row(value), strict=True))


@cache
def names_of(columns: Columns[Any]) -> tuple[str, ...]:
    """The names of *columns* in their table."""
    return tuple(_RENAMED.get(name, name) for name in columns.names)


def columns_of(columns: Columns[Any], alias: str = "") -> str:
    """The names of *columns* for a statement, in the table that is called *alias*."""
    prefix = f"{alias}." if alias else ""
    return ", ".join(prefix + name for name in names_of(columns))


def _fragment_of(row: Row) -> tuple[int, Fragment]:
    """The key of its run, and the fragment."""
    return row[0], FRAGMENTS.value(row[2:], trajectory_id=row[1])


# Rows by their keys, which are their first column.
_TRAJECTORIES = f"""
SELECT key, {columns_of(TRAJECTORIES)} FROM trajectory
WHERE key IN (SELECT value FROM json_each(?))"""
_FRAGMENTS = f"""
SELECT f.key, f.trajectory, t.id, {columns_of(FRAGMENTS, "f")}
FROM json_each(?) AS named CROSS JOIN fragment f ON f.key = named.value
CROSS JOIN trajectory t ON t.key = f.trajectory"""
_RECOVERIES = f"""
SELECT r.key, r.fragment_id, e.id, {columns_of(RECOVERIES, "r")},
    r.scored_words, r.family, r.error_type, e.template,
    t.id, t.instance_id, t.repo, t.contributor, t.agent, r.seen_at
FROM json_each(?) AS named CROSS JOIN recovered r ON r.key = named.value
CROSS JOIN trajectory t ON t.key = r.trajectory
CROSS JOIN error_pattern e ON e.key = r.error"""
_ERRORS = """
SELECT e.key, e.id, e.family, e.error_type, e.template, m.keywords, m.context
FROM json_each(?) AS named CROSS JOIN error_pattern e ON e.key = named.value
CROSS JOIN met m ON m.error = e.key AND m.trajectory = (
    SELECT trajectory FROM met INDEXED BY met_first
    WHERE error = e.key ORDER BY trajectory_id LIMIT 1)"""

Cached = TypeVar("Cached")
Parameters: TypeAlias = Mapping[str, Any] | Sequence[Any]

# Thousands of recoveries can be equally relevant. Of so many, and of so many times the limit, the
# first ones come early in the order of all.
_MANY, _SHARE = 1_024, 32
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


class Values(Struct, frozen=True):
    """Values that were read at *revision*, or before it and are still the same.

    Fragments and recoveries never change, and keys of runs are not used twice; a run changes with
    its revision; the key of a repository may change with every revision.
    """

    revision: int = -1
    trajectories: ValueCache[int, Trajectory] = field(default_factory=ValueCache)
    fragments: ValueCache[int, tuple[int, Fragment]] = field(default_factory=ValueCache)
    recoveries: ValueCache[int, RecoveryCandidate] = field(default_factory=ValueCache)
    repositories: dict[str, int] = field(default_factory=dict)


class SqlScope(Struct, frozen=True):
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


class Transaction(Struct, frozen=True):
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

    def insert(self, table: str, columns: tuple[str, ...], rows: Sequence[Row]) -> None:
        """Write *rows*, which have these *columns*."""
        self.connection.executemany(insertion(table, columns), rows)

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
            parameters["as_of"] = moment(scope.as_of)
        if scope.exclude_instances:
            parameters["instances"] = text_of(sorted(scope.exclude_instances))
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
        return self.column(_KEYS_OF_RUNS, (text_of(trajectory_ids), self.tenant))

    def trajectories(self, keys: Sequence[int]) -> dict[int, Trajectory]:
        """The runs with these keys, by key."""
        read = partial(self._read, _TRAJECTORIES, TRAJECTORIES.value)
        return self.values.trajectories.get_or_read(keys, read)

    def fragments(self, keys: Sequence[int]) -> list[FragmentCandidate]:
        """The fragments with these keys, in their order."""
        read = partial(self._read, _FRAGMENTS, _fragment_of)
        fragments = self.values.fragments.get_or_read(keys, read)
        runs = self.trajectories([run for run, _ in fragments.values()])
        of_keys = map(fragments.__getitem__, keys)
        return [FragmentCandidate(fragment, runs[run]) for run, fragment in of_keys]

    def recoveries(self, keys: Sequence[int]) -> list[RecoveryCandidate]:
        """The recoveries with these keys, in their order."""
        read = partial(self._read, _RECOVERIES, recovery_of)
        recoveries = self.values.recoveries.get_or_read(keys, read)
        return [recoveries[key] for key in keys]

    def first_recoveries(self, keys: Sequence[int], limit: int) -> list[int]:
        """The first *limit* of the recoveries with these *keys*, by fragment, error and step."""
        if not keys or limit < 1:
            return []
        if len(keys) > max(_MANY, _SHARE * limit):
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
        return self._read(_ERRORS, ERRORS.value, keys)

    def _read(self, sql: str, value: Callable[[Row], Any], keys: Sequence[int]) -> dict[int, Any]:
        """The values that *sql* finds for *keys*; its first column is the key."""
        named = (str(sorted(set(keys))),)
        try:
            return {row[0]: value(row[1:]) for row in self.rows(sql, named)}
        except DAMAGE as error:
            raise StoreError(f"a stored row is damaged: {error}") from error


@cache
def insertion(table: str, columns: tuple[str, ...]) -> str:
    """The statement that inserts a row with these *columns*, given in their order."""
    places = ", ".join("?" * len(columns))
    return f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({places})"


class Run(Struct, frozen=True):
    """A run by its key, which is part of those of its fragments and recoveries."""

    key: int

    @property
    def first(self) -> int:
        """The first key of its fragments and recoveries."""
        return self.key << RUN_BITS

    @property
    def keys(self) -> tuple[int, int]:
        """The range of the keys that its fragments and recoveries can have."""
        return self.first, ((self.key + 1) << RUN_BITS) - 1


def run_of(transaction: Transaction, trajectory_id: str) -> Run | None:
    """The run of this id."""
    key = transaction.number(
        "SELECT key FROM trajectory WHERE tenant = ? AND id = ?",
        (transaction.tenant, trajectory_id),
    )
    return Run(key) if key else None


MEMORY = ":memory:"
BUSY_SECONDS = 30.0

_UNAVAILABLE = {
    sqlite3.SQLITE_BUSY: f"is locked by another process for more than {BUSY_SECONDS:.0f} s; "
    "try again when it has finished",
    sqlite3.SQLITE_LOCKED: "is locked by another thread; try again",
    sqlite3.SQLITE_CANTOPEN: "cannot be opened; check that its folder exists and may be written",
    sqlite3.SQLITE_IOERR: "cannot be read or written; check the disk",
    sqlite3.SQLITE_PERM: "may not be accessed; check its permissions",
    sqlite3.SQLITE_FULL: "cannot grow: the disk is full; free some space and try again",
    # Readers need this too: they record beside the file which state they read.
    sqlite3.SQLITE_READONLY: "may not be written; check permissions of the file and its folder",
    sqlite3.SQLITE_NOMEM: "needs more memory than there is",
}
_NO_SHARED_MEMORY = (
    sqlite3.SQLITE_IOERR_SHMOPEN,
    sqlite3.SQLITE_IOERR_SHMSIZE,
    sqlite3.SQLITE_IOERR_SHMLOCK,
    sqlite3.SQLITE_IOERR_SHMMAP,
)
_NO_WRITE_AHEAD_LOG = (
    "lies on a file system without shared memory, as of a network; "
    "copy it to a local disk and name it there (--store)"
)
_NO_LOCKS = (
    "lies on a file system without locks, so processes cannot take turns; "
    "keep it on a local disk (--store)"
)
_REFUSED = {
    sqlite3.SQLITE_NOTADB: "is not a memory of contextgraph; name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a copy, or move what is left of it with "
    "contextgraph export --salvage and import",
    sqlite3.SQLITE_TOOBIG: "cannot hold a text as long as this",
}

_MALFORMED = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR)
_PRAGMAS = (
    "PRAGMA synchronous = FULL",
    # Deleted rows are overwritten: a forgotten run must not be found in free pages.
    "PRAGMA secure_delete = ON",
    "PRAGMA temp_store = MEMORY",
    "PRAGMA cache_size = -16000",
    # In pages: a page that several runs change goes from the log into the file once.
    "PRAGMA wal_autocheckpoint = 4000",
)
_MOST_AT_ONCE = 64
# Of a backup, between which it can be interrupted: 16 MB.
_PAGES_AT_ONCE = 4000
_EFFECTIVE = os.access in os.supports_effective_ids
_inherited: list[sqlite3.Connection] = []


class Connections:
    """A pool that opens a connection when one is needed.

    Readers of a file run concurrently, each on its own snapshot; writers queue. A memory without a
    file has one connection, which readers and writers take turns to use.
    """

    def __init__(self, path: str, *, read_only: bool, create: bool) -> None:
        self.path, self.read_only = path, read_only
        self._create = create and not read_only
        self.in_memory = path == MEMORY
        self._journal = "WAL"
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._damage = ""
        self._renew()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A connection within a transaction that sees one revision of the memory."""
        with store_errors(self.path), self._borrowed() as connection, _transaction(connection, ""):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A connection within a transaction that is committed at the end, or leaves nothing."""
        if self.read_only:
            raise StoreError(f"{self.path} was opened for reading only")
        self._renew_after_fork()
        with store_errors(self.path), self._writer, self._borrowed() as connection:
            if self._damage:
                raise StoreError(f"{self.path} {_REFUSED[sqlite3.SQLITE_CORRUPT]} ({self._damage})")
            with _transaction(connection, "IMMEDIATE"):
                yield connection

    @contextmanager
    def trying_to_write(self) -> Iterator[sqlite3.Connection]:
        """A connection within a writing transaction that is rolled back: the file stays as it is.

        Also where the memory was opened for reading.
        """
        with store_errors(self.path), self._borrowed() as reader:
            if self.in_memory:
                with _transaction(reader, "IMMEDIATE", end="ROLLBACK"):
                    yield reader
                return
            # The last connection that is closed moves the log into the file: not this one.
            with (
                closing(self._connected("rw")) as connection,
                _transaction(connection, "IMMEDIATE", end="ROLLBACK"),
            ):
                yield connection

    def back_up(self, path: Path) -> None:
        """Copy one revision of the memory to the new file *path*; others may write meanwhile."""
        for taken in (path, path.with_name(f"{path.name}-wal")):
            if taken.exists():
                raise StoreError(f"{taken} exists; name a new file")
        try:
            with (
                replacing(path) as part,
                self.reading() as connection,
                store_errors(str(path)),
                closing(sqlite3.connect(part)) as copy,
            ):
                # A copy that is not complete is no memory: a journal would only be left behind.
                copy.execute("PRAGMA journal_mode = OFF")
                schema_version(connection)  # reading begins: all steps see one revision
                connection.backup(copy, pages=_PAGES_AT_ONCE)
        except OSError as error:
            raise StoreError(f"{path} cannot be written: {error.strerror or error}") from error

    def empty_log(self) -> None:
        """Move the write-ahead log into the file, so that deleted pages are overwritten there.

        While there are readers it is left to the next one to close, or to write enough.
        """
        with store_errors(self.path), self._borrowed() as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def rewrite(self) -> None:
        """Write the file again: SQLite moves rows between pages, and leaves copies where they were.

        Readers go on meanwhile.
        """
        if self.in_memory:
            return
        with (
            no_fork(),
            store_errors(self.path),
            self._writer,
            closing(self._connected("rw")) as connection,
        ):
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()

    def close(self) -> None:
        """Close idle connections now, and borrowed ones when they are given back."""
        self._renew_after_fork()
        with no_fork(), self._lock, store_errors(self.path):
            self._closed = True
            while self._idle:
                self._idle.pop().close()

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        self._renew_after_fork()
        with self._turn, no_fork():
            with self._lock:
                is_closed = self._closed
                idle = self._idle.pop() if self._idle else None
            if is_closed:
                raise StoreError(f"{self.path} is closed")
            connection = idle or self._opened()
            try:
                yield connection
            finally:
                with self._lock:
                    # A reader of an unchanging file does not learn that another user changed it.
                    is_kept = not self._closed and not self._is_unwritable()
                    if is_kept:
                        self._idle.append(connection)
                if not is_kept:
                    connection.close()

    def _renew_after_fork(self) -> None:
        if self._process != os.getpid():
            self._renew()

    def _renew(self) -> None:
        """Start over in this process: its parent's locks and file handles are not its own."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._writer = threading.Lock()
        self._turn = threading.Lock() if self.in_memory else threading.Semaphore(_MOST_AT_ONCE)
        if not self.in_memory:
            # Closing them here would release locks that the parent holds.
            _inherited.extend(self._idle)
            self._idle = []

    def _opened(self) -> sqlite3.Connection:
        self._prepare_file()
        try:
            return self._opened_with_log()
        except sqlite3.OperationalError as error:
            if self.read_only or error.sqlite_errorcode not in _NO_SHARED_MEMORY:
                raise
        self._use_rollback_journal()
        return self._opened_with_log()

    def _use_rollback_journal(self) -> None:
        """Let the file do without a write-ahead log, with readers and a writer taking turns.

        A log needs shared memory, which the file systems of networks lack. A connection that has
        the file to itself does not, if it asks for that before it looks at the log.
        """
        self._journal = "DELETE"
        with closing(self._connected("rw")) as connection:
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA journal_mode = DELETE")

    def _opened_with_log(self) -> sqlite3.Connection:
        connection = self._connected("ro" if self.read_only else "rwc")
        try:
            self._look_past_damage(connection)
            schema.prepare(connection)
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _look_past_damage(self, connection: sqlite3.Connection) -> None:
        """Let *connection* read a file of whose tables, indexes and triggers some are damaged.

        SQLite then knows the others. Nothing may be written: triggers keep the schema.
        """
        try:
            connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchone()
        except sqlite3.DatabaseError as error:
            if getattr(error, "sqlite_errorcode", 0) & 0xFF not in _MALFORMED:
                raise
            self._damage = str(error)
            connection.execute("PRAGMA writable_schema = ON")
            connection.execute("PRAGMA query_only = ON")

    def _connected(self, mode: str) -> sqlite3.Connection:
        with no_fork():
            return sqlite3.connect(
                self._address(mode),
                uri=True,
                timeout=BUSY_SECONDS,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )

    def _prepare_file(self) -> None:
        if self.in_memory:
            return
        path = Path(self.path)
        if path.is_dir():
            raise StoreError(f"{self.path} is a folder; name a file")
        if path.exists():
            return
        if not self._create:
            raise not_created(self.path)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        create_private(path)

    def _address(self, mode: str) -> str:
        if self.in_memory:
            return "file::memory:"
        address = f"{Path(self.path).absolute().as_uri()}?mode="
        if not self._is_unwritable():
            return f"{address}{mode}"
        log, index = (Path(f"{self.path}{suffix}") for suffix in ("-wal", "-shm"))
        if not log.exists() or not log.stat().st_size:
            return f"{address}ro&immutable=1"
        if not index.exists():
            raise StoreUnavailableError(
                f"{self.path} is in a folder that cannot be written, and its last changes are "
                f"still in {log.name}; open it once where it can be written, or copy both there"
            )
        return f"{address}ro"

    def _is_unwritable(self) -> bool:
        """Whether readers cannot put files beside the memory, as those of a growing one must."""
        return (
            not self.in_memory
            and not os.access(os.path.dirname(self.path) or ".", os.W_OK, effective_ids=_EFFECTIVE)
            and os.path.exists(self.path)
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        if not self._is_current(connection):
            if not self._create:
                raise not_created(self.path)
            self._create_tables(connection)
        for pragma in _PRAGMAS:
            connection.execute(pragma)

    def _is_current(self, connection: sqlite3.Connection) -> bool:
        """Whether the tables are there, in one snapshot: others may be making them now."""
        with _transaction(connection, ""):
            return check_schema(connection, self.path)

    def _create_tables(self, connection: sqlite3.Connection) -> None:
        if self._journal == "WAL":
            _use_write_ahead_log(connection)
        with _transaction(connection, "IMMEDIATE"):
            # Another process may have been first while this one waited.
            if not check_schema(connection, self.path):
                create(connection)


@contextmanager
def _transaction(connection: sqlite3.Connection, kind: str, end: str = "COMMIT") -> Iterator[None]:
    connection.execute(f"BEGIN {kind}")
    try:
        yield
        connection.execute(end)
    except BaseException:
        # Some failures, such as a full disk, have ended the transaction already.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _use_write_ahead_log(connection: sqlite3.Connection) -> None:
    """Switch the file over; SQLite does not wait for the lock this needs, so wait here."""
    give_up_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            if time.monotonic() > give_up_at:
                raise
            time.sleep(0.01)
        else:
            return


def _has_locks(path: str) -> bool:
    """Whether the file system of *path* has the locks by which processes take turns."""
    try:
        with open(path, "rb+") as file:
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 0, os.SEEK_END)
    except OSError as error:
        return error.errno not in (errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS)
    return True


@contextmanager
def store_errors(name: str) -> Iterator[None]:
    """Raise errors of SQLite, and of encoding a value, as a `StoreError` about *name*.

    It is a `StoreUnavailableError` where a retry may help.
    """
    try:
        yield
    except (sqlite3.Error, sqlite3.Warning) as error:
        raise _translated(name, error) from error
    except UnicodeDecodeError as error:  # a message of SQLite that repeats what it read
        raise StoreError(f"{name} {_REFUSED[sqlite3.SQLITE_CORRUPT]} ({error})") from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise StoreError(f"{name} cannot hold a value: {error}") from error
    except OSError as error:
        raise StoreUnavailableError(f"{name} cannot be opened: {error.strerror}") from error


def _translated(name: str, error: Exception) -> StoreError:
    # The low byte is the primary code, the rest distinguishes variants of it.
    extended = getattr(error, "sqlite_errorcode", -1)
    code = extended & 0xFF
    if extended in _NO_SHARED_MEMORY:
        return StoreUnavailableError(f"{name} {_NO_WRITE_AHEAD_LOG} ({error})")
    if code == sqlite3.SQLITE_BUSY and not _has_locks(name):
        return StoreUnavailableError(f"{name} {_NO_LOCKS} ({error})")
    if code in _UNAVAILABLE:
        return StoreUnavailableError(f"{name} {_UNAVAILABLE[code]} ({error})")
    return StoreError(f"{name} {_REFUSED.get(code, 'refused the operation')} ({error})")


UNKNOWN_TENANT = 0


class LatestValues:
    """The cached values of the newest revision that was read."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._latest = Values()

    def at_revision(self, connection: Connection, tenant: int, revision: int) -> Values:
        """Return the caches of the *revision* that *connection* sees; none for an older one."""
        with self._lock:
            before = self._latest
            if revision < before.revision:
                return Values(revision)
            if before.revision < 0:
                self._latest = Values(revision)
            elif revision > before.revision:
                changed = connection.execute(
                    "SELECT key FROM trajectory WHERE tenant = ? AND revision > ?",
                    (tenant, before.revision),
                )
                runs = before.trajectories.without([row[0] for row in changed])
                self._latest = Values(revision, runs, before.fragments, before.recoveries, {})
            return self._latest


class _Snapshot(local):
    """The transaction of the snapshot that a thread is in."""

    transaction: Transaction | None = None


class Database:
    """The file *path* (or ``:memory:``) as *tenant* sees it; nothing is opened until first used."""

    def __init__(self, path: str, tenant: str, *, read_only: bool, create: bool) -> None:
        self.tenant = tenant
        self.connections = Connections(path, read_only=read_only, create=create)
        self._process = os.getpid()
        self._cached: dict[tuple[object, ...], Any] = {}

    def cached(self, kind: Callable[..., Cached], *of: str) -> Cached:
        """Return what this process caches of this *kind*, computed from the file.

        A forked process starts with nothing, as locks may be held forever.
        """
        if self._process != os.getpid():
            self._process, self._cached = os.getpid(), {}
        if (kind, *of) not in self._cached:
            self._cached.setdefault((kind, *of), kind(*of))  # another thread may be first
        cached: Cached = self._cached[kind, *of]
        return cached

    @contextmanager
    def reading(self) -> Iterator[Transaction]:
        """A transaction that sees one revision: that of the snapshot of this thread, if any."""
        current = self.cached(_Snapshot).transaction
        if current is not None:
            yield current
            return
        with self.connections.reading() as connection:
            tenant, revision = _tenant(connection, self.tenant)
            values = self.cached(LatestValues).at_revision(connection, tenant, revision)
            yield Transaction(connection, tenant, values)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """In this block all reading of the thread sees one revision."""
        with self.reading() as transaction:
            snapshot = self.cached(_Snapshot)
            before, snapshot.transaction = snapshot.transaction, transaction
            try:
                yield
            finally:
                snapshot.transaction = before

    @contextmanager
    def writing(self) -> Iterator[Transaction]:
        """A transaction that is committed at the end, or leaves nothing."""
        if self.cached(_Snapshot).transaction is not None:
            raise StoreError("nothing can be written within a snapshot; write when it has ended")
        with self.connections.writing() as connection:
            tenant, _ = _tenant(connection, self.tenant)
            if tenant == UNKNOWN_TENANT:
                connection.execute(
                    "INSERT INTO tenant (name, revision, removals) VALUES (?, 0, 0)",
                    (self.tenant,),
                )
                tenant, _ = _tenant(connection, self.tenant)
            yield Transaction(connection, tenant, Values())


def _tenant(connection: Connection, name: str) -> tuple[int, int]:
    """The key and the revision of a tenant."""
    sql = "SELECT key, revision FROM tenant WHERE name = ?"
    row = connection.execute(sql, (name,)).fetchone()
    return (UNKNOWN_TENANT, 0) if row is None else (row[0], row[1])

"""The connection to a server: rows as values, one driver per process, named queries, snapshots."""

import hashlib
import logging
import os
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar
from urllib.parse import urlsplit, urlunsplit

from contextgraph import model
from contextgraph.codec import Columns, Form, Value
from contextgraph.errors import SchemaError, StoreError, StoreUnavailableError
from contextgraph.store.neo4j import schema
from contextgraph.store.neo4j.schema import query
from contextgraph.store.rules import scored_words
from contextgraph.trace import describe_remedy

if TYPE_CHECKING:
    from neo4j import Driver, ManagedTransaction, Session
    from neo4j.exceptions import Neo4jError


# What the driver returns and takes has no narrower type.
Row: TypeAlias = Mapping[str, Any]
Parameters: TypeAlias = dict[str, object]
# Columns and properties that every node or relation of their kind has. Ids alone do not suffice:
# Neo4j returns those that it has read from an index after their node is gone.
_NEVER_NULL = frozenset(
    "id name label data facts properties key value trajectory methodology error fragment "
    "representative task total_steps fragment_type family error_type template message strategy "
    "shown_at".split()
)


def is_torn(row: Row) -> bool:
    """Whether *row* has a part that was deleted while it was read: what is left of it is null."""
    return _is_torn(dict(row.items()))


def _is_torn(value: dict[str, object] | list[object]) -> bool:
    if isinstance(value, list):
        if value and isinstance(value[0], float):  # a vector: long, and whole or null
            return False
        parts, is_torn = value, None in value
    else:
        parts = [*value.values()]
        is_torn = None in parts and any(
            part is None and name in _NEVER_NULL for name, part in value.items()
        )
    return is_torn or any(_is_torn(part) for part in parts if isinstance(part, list | dict))


def scope_parameters(scope: model.Scope) -> Parameters:
    """The parameters repo, excluded, as_of."""
    return {
        "repo": scope.repo,
        "excluded": sorted(scope.exclude_instances),
        "as_of": None if scope.as_of is None else moment(scope.as_of),
    }


def where(name: str, repo: str | Collection[str] | None) -> str:
    """The name of a query that has one form for some repositories, and one for all of them."""
    return f"{name}_everywhere" if repo is None else f"{name}_in_repo"


def trajectory_row(value: model.Trajectory) -> Parameters:
    """The properties of the node of *value*."""
    return {
        **TRAJECTORIES.of(value),
        "seen_at": moment(value.seen_at),
        **outcome_row(value),
    }


def outcome_row(value: model.Trajectory) -> Parameters:
    """Those properties of the node of *value* that later judgements may change."""
    return {
        "name": value.name,
        "outcome": value.outcome.value,
        "outcome_source": value.outcome_source.value,
        "exit_status": value.exit_status,
        "change": value.change.value,
        "success": value.success,
        "solved": bool(value.success),
    }


def fragment_row(value: model.Fragment) -> Parameters:
    """The properties of the node of *value*, but for those of its run."""
    return {
        **FRAGMENTS.of(value),
        "name": value.name,
        "loop_command": value.loop_command or None,
        "repetitions": value.repetitions or None,
    }


def fragment_of(row: Row) -> model.Fragment:
    """The value of the properties of a node."""
    return FRAGMENTS.read(row, trajectory_id=row["trajectory_id"])


def error_row(value: model.ErrorPattern) -> Parameters:
    """The properties of the node of *value*, without those that differ from run to run."""
    return {
        "id": value.id,
        "name": value.name,
        "family": value.family.value,
        "error_type": value.error_type,
        "template": value.template,
        "fingerprint": fingerprint(value),
    }


def fingerprint(value: model.ErrorPattern | model.ErrorSignature) -> str:
    """Key of errors of one family, type and template, short enough for an index."""
    text = f"{value.family.value}\n{value.error_type}\n{value.template}"
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def recovered_row(value: model.Recovered) -> Parameters:
    """The properties of the relation of *value*."""
    return {
        **RECOVERIES.of(value),
        "description": describe_remedy(value.actions),
        "scored_words": scored_words(value.message, value.actions),
    }


def recovery_of(row: Row) -> model.RecoveryCandidate:
    """The value of the properties of a relation, of its two nodes and of its run."""
    pattern, run = row["error"], row["run"]
    done = RECOVERIES.read(row["recovered"], fragment_id=row["fragment_id"], error_id=pattern["id"])
    words = row["recovered"]["scored_words"]
    return model.RecoveryCandidate(
        done.fragment_id,
        done.error_id,
        done.error_step,
        done.cleared_step,
        done.message,
        done.location,
        done.actions,
        done.verified,
        done.workaround,
        done.circumstances,
        scored_words(done.message, done.actions) if words is None else words,
        model.Family(pattern["family"]),
        pattern["error_type"],
        pattern["template"],
        run["id"],
        run["instance_id"],
        run["repo"],
        run["contributor"] or "",
        run["agent"],
        time_of(run["seen_at"]),
    )


def methodology_of(row: Row) -> model.Methodology:
    """The value of the columns methodology and sources: (run, fragment) of each."""
    sources = tuple(sorted(model.Source(run, fragment) for run, fragment in row["sources"]))
    return METHODOLOGIES.read(row["methodology"], sources=sources)


def exposure_row(value: model.Exposure) -> Parameters:
    """The properties of the node of *value*, and those of its items in their order."""
    items = [
        {"position": position, **_SHOWN_ITEMS.of(item)} for position, item in enumerate(value.items)
    ]
    return {**_EXPOSURES.of(value), "items": items}


def exposure_of(row: Row) -> model.Exposure:
    """The value of the columns context (properties) and items (properties of each)."""
    items = sorted(row["items"], key=lambda item: item["position"])
    return _EXPOSURES.read(row["context"], items=tuple(map(_SHOWN_ITEMS.read, items)))


def moment(time: datetime) -> datetime:
    """*time* in UTC; raises `StoreError` for a time without zone."""
    if time.tzinfo is None:
        raise StoreError(f"time {time.isoformat()} has no time zone")
    return time.astimezone(UTC)


def time_of(value: Any) -> datetime:
    """The time that the server returned."""
    time: datetime = value.to_native().astimezone(UTC)
    return time


class Properties(Columns[Value]):
    """The fields of a dataclass as properties of a node or relation."""

    def of(self, value: Value) -> Parameters:
        """Return the properties of *value*."""
        return dict(zip(self.names, self.row(value), strict=True))

    def read(self, row: Row, **omitted: object) -> Value:
        """Return the value that has the properties in *row*, and the fields *omitted*."""
        # A property that is None does not exist.
        return self.value(map(row.get, self.names), **omitted)


_FORMS: Mapping[Any, Form] = {datetime: (moment, time_of), tuple[str, ...]: (list, tuple)}
TRAJECTORIES = Properties(model.Trajectory, _FORMS)
FRAGMENTS = Properties(model.Fragment, _FORMS, omitted=["trajectory_id"])
ERRORS = Properties(model.ErrorPattern, _FORMS)
RECOVERIES = Properties(model.Recovered, _FORMS, omitted=["fragment_id", "error_id"])
METHODOLOGIES = Properties(model.Methodology, _FORMS, omitted=["sources"])
_EXPOSURES = Properties(model.Exposure, _FORMS, omitted=["items"])
_SHOWN_ITEMS = Properties(model.ShownItem, _FORMS)
VERDICTS = Properties(model.Verdict, _FORMS)


def vector_data(value: Any) -> bytes:
    """The data of a vector that the server returned."""
    import numpy as np

    return np.asarray(value, dtype="<f4").tobytes()


# By the server's code, the most specific first: the problem, and what to do.
_CODES = (
    (
        "Neo.ClientError.Security.AuthenticationRateLimit",
        StoreUnavailableError,
        "refuses to log in after too many wrong passwords",
        "wait a minute",
    ),
    (
        "Neo.ClientError.Security.Forbidden",
        StoreError,
        "does not allow this user to do that",
        "grant the rights or name another user",
    ),
    (
        "Neo.ClientError.Security.",
        StoreUnavailableError,
        "refuses the user or the password",
        "set CONTEXTGRAPH_NEO4J_USER and CONTEXTGRAPH_NEO4J_PASSWORD",
    ),
    (
        "Neo.ClientError.Database.DatabaseNotFound",
        StoreUnavailableError,
        "has no such database",
        "name one that exists at the end of the address, as in /neo4j",
    ),
    (
        "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase",
        StoreUnavailableError,
        "can only be read now",
        "see server.databases.read_only in its neo4j.conf",
    ),
    (
        "Neo.ClientError.Schema.ConstraintValidationFailed",
        StoreError,
        "holds something else under an id that was to be written",
        "",
    ),
    (
        "Neo.ClientError.Schema.",
        SchemaError,
        "has another schema than this version needs",
        "open it again for writing, which creates what is missing",
    ),
    (
        "Neo.ClientError.Procedure.ProcedureNotFound",
        SchemaError,
        "lacks a procedure that this version needs",
        "run Neo4j 5.26 or later",
    ),
    # A transaction that is ended while it waits for another one.
    (
        "Neo.ClientError.Transaction.LockClientStopped",
        StoreUnavailableError,
        "did not finish in time",
        "try again, or look for what blocks it with SHOW TRANSACTIONS",
    ),
    (
        "Neo.ClientError.Transaction.TransactionTimedOut",
        StoreUnavailableError,
        "did not finish in time",
        "try again, or look for what blocks it with SHOW TRANSACTIONS",
    ),
    (
        "Neo.ClientError.Transaction.Terminated",
        StoreUnavailableError,
        "ended the transaction, as it does when it stops",
        "try again",
    ),
    (
        "Neo.TransientError.General.MemoryPoolOutOfMemoryError",
        StoreUnavailableError,
        "has too little memory for this",
        "write fewer runs at once or give it more",
    ),
)
# The server's message where no user was given; it has no code of its own.
_NO_USER = "missing key `scheme`"
_DRIVER = (
    (
        "ConnectionAcquisitionTimeoutError",
        "has all its connections in use",
        "use fewer threads or wait",
    ),
    ("IncompleteCommit", "was lost while it committed; whether it did is not known", "try again"),
    (
        "RoutingServiceUnavailable",
        "answered, but routes nowhere",
        "try bolt:// instead of neo4j://",
    ),
    ("ServiceUnavailable", "cannot be reached", "check the address and that the server runs"),
    ("SessionExpired", "was lost meanwhile", "try again"),
    ("ConnectionPoolError", "could not give a connection", "try again"),
)


@contextmanager
def store_errors(name: str) -> Iterator[None]:
    """Turn what the driver or the encoding of a value raises into a `StoreError` about *name*.

    It is a `StoreUnavailableError` where a retry, or another address, user or database, may help.
    """
    from neo4j.exceptions import DriverError, Neo4jError

    try:
        yield
    except Neo4jError as error:
        raise _refused(name, error) from error
    except DriverError as error:
        raise _failed(name, error) from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise StoreError(f"{name} cannot hold a value: {error}") from error
    except OSError as error:
        raise StoreUnavailableError(f"{name} cannot be reached: {error}") from error


def _refused(name: str, error: "Neo4jError") -> StoreError:
    code, message = error.code or "", error.message or str(error)
    if _NO_USER in message:
        return StoreUnavailableError(
            f"{name} requires a user and a password",
            "set CONTEXTGRAPH_NEO4J_PASSWORD, and CONTEXTGRAPH_NEO4J_USER where it is not neo4j",
        )
    for prefix, kind, problem, remedy in _CODES:
        if code.startswith(prefix):
            return kind(f"{name} {problem}", remedy, message)
    if error.is_retryable():
        return StoreUnavailableError(f"{name} is busy", "try again", message)
    return StoreError(f"{name} refused a query", reason=f"{code}: {message}")


def _failed(name: str, error: Exception) -> StoreError:
    classes = {kind.__name__ for kind in type(error).__mro__}
    for kind, problem, remedy in _DRIVER:
        if kind in classes:
            return StoreUnavailableError(f"{name} {problem}", remedy, _reason(error))
    return StoreError(f"{name} could not be used: {_reason(error)}")


def _reason(error: Exception) -> str:
    """The message of the operating system, if any; else that of the driver, on one line."""
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, OSError) and cause.strerror:
            return cause.strerror
        cause = cause.__cause__
    return " ".join(str(error).split())


P = ParamSpec("P")
T = TypeVar("T")

DATABASE = "neo4j"
# A writer that hangs blocks all others: the server ends its transaction.
WRITE_SECONDS = 120.0
READ_SECONDS = 60.0
# The server samples its indexes meanwhile: 0.04 s for 2,000 runs.
REPLAN_SECONDS = 30
# How long the driver retries a transaction: a deadlock or a change of leader is over by then.
RETRY_SECONDS = 10.0
CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 100
ACQUIRE_SECONDS = 30.0
MAX_READINGS = 10


class NamedQueries:
    """Runs the named queries of ``cypher/queries``, each with the *tenant* as a parameter."""

    tenant: str

    def run(self, text: str, parameters: Parameters) -> list[Row]:
        """The rows that the statement *text* returns."""
        raise NotImplementedError

    def rows(self, name: str, /, **parameters: object) -> list[Row]:
        """The rows that the query of this name returns."""
        return self.run(query(name), {"tenant": self.tenant, **parameters})

    def row(self, name: str, /, **parameters: object) -> Row | None:
        """Its first row, None where there is none."""
        rows = self.rows(name, **parameters)
        return rows[0] if rows else None

    def collected(self, name: str, /, **parameters: object) -> list[Any]:
        """The list `found` of its only row: each record costs the driver as much as 100 values."""
        (row,) = self.rows(name, **parameters)
        values: list[Any] = row["found"]
        return values


class Transaction(NamedQueries):
    """A transaction that is open."""

    def __init__(self, transaction: "ManagedTransaction", tenant: str) -> None:
        self._transaction = transaction
        self.tenant = tenant

    def run(self, text: str, parameters: Parameters) -> list[Row]:
        """The rows that the statement *text* returns in this transaction."""
        return list(self._transaction.run(text, parameters))

    def write(self, name: str, rows: Sequence[object], /, **parameters: object) -> None:
        """Run a query over *rows*, unless there are none."""
        if rows:
            self.rows(name, rows=rows, **parameters)

    def begin_change(self) -> int:
        """Lock the memory until this transaction ends; its revision so far."""
        row = self.row("begin_change")
        assert row is not None  # the query merges what it returns
        revision: int = row["revision"]
        return revision

    def note_change(
        self, *, revisions: int, removals: int = 0, trajectories: int = 0, recoveries: int = 0
    ) -> None:
        """Count a change, and what it adds (negative: removes)."""
        self.rows(
            "note_change",
            revisions=revisions,
            removals=removals,
            trajectories=trajectories,
            recoveries=recoveries,
        )


class _RolledBack(Exception):  # noqa: N818  (not an error)
    """Ends a transaction without its changes."""


class _Snapshot(threading.local):
    """State of a thread in *depth* nested snapshots."""

    depth = 0
    session: "Session | None" = None
    cache: dict[str, Row | None] | None = None


# Drivers of a parent process: closing them here would end the parent's connections.
_inherited: list["Driver"] = []


class Connection(NamedQueries):
    """A server, a database and a tenant.

    The path of *address* names the database: ``neo4j://host:7687/memories``. Reading runs each
    query by itself: Neo4j reads what is committed, also within one transaction.
    """

    def __init__(
        self, address: str, auth: tuple[str, str] | None, tenant: str, *, read_only: bool
    ) -> None:
        self.address, self.tenant, self.read_only = address, tenant, read_only
        parts = urlsplit(address)
        self.database = parts.path.strip("/") or DATABASE
        self._uri = urlunsplit(parts._replace(path=""))
        self._is_routed = parts.scheme.startswith("neo4j")
        self._auth = auth
        self._closed = False
        self._driver: Driver | None = None
        self._reset()

    def run(self, text: str, parameters: Parameters) -> list[Row]:
        """The rows that the reading statement *text* returns.

        It is read again where another process deleted a part of them meanwhile.
        """
        for _ in range(MAX_READINGS):
            rows = self._read(text, parameters)
            if not any(map(is_torn, rows)):
                return rows
        raise StoreUnavailableError(
            f"{self.address} is being changed: {MAX_READINGS} readings met what was just deleted; "
            "try again"
        )

    def _read(self, text: str, parameters: Parameters) -> list[Row]:
        if self._snapshot.depth:
            try:
                return self._run_in_session(text, parameters)
            except StoreUnavailableError:
                # The connection may have been lost: the driver retries on another one.
                self._close_session()
        return self._execute("READ", Transaction.run, text, parameters)

    def row_of_snapshot(self, name: str) -> Row | None:
        """The first row of a query without parameters, which runs once in a snapshot."""
        cache = self._snapshot.cache
        if cache is None:
            return self.row(name)
        if name not in cache:
            cache[name] = self.row(name)
        return cache[name]

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """In this block each query of the thread takes one round trip, and some run only once."""
        self._reset_after_fork()
        snapshot = self._snapshot
        if not snapshot.depth:
            snapshot.cache = {}
        snapshot.depth += 1
        try:
            yield
        finally:
            snapshot.depth -= 1
            if not snapshot.depth:
                snapshot.cache = None
                self._close_session()

    def write(
        self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run *work* in one transaction; on an error nothing is left.

        *work* runs again where the server asks for a retry.
        """
        if self.read_only:
            raise StoreError(f"{self.address} was opened for reading only")
        if self._snapshot.depth:
            raise StoreError("nothing can be written within a snapshot; write when it has ended")
        return self._execute("WRITE", work, *args, **kwargs)

    def try_to_write(self) -> None:
        """Begin a change and roll it back; also where the memory was opened for reading."""

        def work(transaction: Transaction) -> None:
            transaction.begin_change()
            raise _RolledBack

        with suppress(_RolledBack):
            self._execute("WRITE", work)

    def server(self) -> tuple[str, str]:
        """Its version and edition, whatever the schema is."""
        with store_errors(self.address), self._new_driver() as driver:
            driver.verify_connectivity()
            row = driver.execute_query(query("server"), database_=self.database).records[0]
            return row["version"], row["edition"]

    def replan(self) -> None:
        """Let the server plan its queries by how much there is by now.

        Plans made for a nearly empty memory read a whole index for each lookup, and stay in use
        for minutes. A server may reserve this for administrators; its plans then change later.
        """
        with suppress(StoreError), store_errors(self.address), self._session("WRITE") as session:
            parameters = {"seconds": REPLAN_SECONDS}
            session.run(_timed(query("prepare_for_replanning"), WRITE_SECONDS), parameters)

    def create_vector_index(self, property_: str) -> None:
        """Create the index of the vectors in *property_*, outside transactions with data."""
        driver = self._open()
        with store_errors(self.address):
            schema.create_vector_index(driver, self.database, property_)

    def close(self) -> None:
        """Close all connections once running queries have ended; closing twice is harmless."""
        self._reset_after_fork()
        with self._lock:
            self._closed = True
            driver, self._driver = self._driver, None
        if driver:
            with store_errors(self.address):
                driver.close()

    def _run_in_session(self, text: str, parameters: Parameters) -> list[Row]:
        """The rows of *text* in the session of this thread: one round trip, without a retry."""
        session = self._snapshot.session
        if session is None:
            session = self._snapshot.session = self._session("READ")
        with store_errors(self.address):
            return list(session.run(_timed(text, READ_SECONDS), parameters))

    def _execute(
        self,
        mode: str,
        work: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        from neo4j import unit_of_work

        @unit_of_work(timeout=READ_SECONDS if mode == "READ" else WRITE_SECONDS)
        def managed(transaction: "ManagedTransaction") -> T:
            return work(Transaction(transaction, self.tenant), *args, **kwargs)

        session = self._session(mode)
        try:
            with store_errors(self.address), session:
                execute = session.execute_read if mode == "READ" else session.execute_write
                return execute(managed)
        except StoreUnavailableError:
            self._lost = True
            raise

    def _session(self, mode: str) -> "Session":
        """A session that sees what this process wrote, and nothing older than what it has read.

        Of several servers, which lag behind one another, bookmarks request that; a single server
        needs none.
        """
        driver = self._open()
        bookmarks = driver.execute_query_bookmark_manager if self._is_routed else None
        with store_errors(self.address):
            return driver.session(
                database=self.database, default_access_mode=mode, bookmark_manager=bookmarks
            )

    def _close_session(self) -> None:
        session = self._snapshot.session
        self._snapshot.session = None
        if session:
            with store_errors(self.address):
                session.close()

    def _open(self) -> "Driver":
        self._reset_after_fork()
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.address} is closed")
            if self._driver is None:
                with store_errors(self.address):
                    self._driver = self._connected_driver()
            driver = self._driver
        if self._lost:
            # A server that was away is not waited for at each query: is it back?
            with store_errors(self.address):
                driver.verify_connectivity()
            self._lost = False
        return driver

    def _connected_driver(self) -> "Driver":
        driver = self._new_driver()
        try:
            driver.verify_connectivity()
            schema.check(driver, self.database, self.address, read_only=self.read_only)
        except BaseException:
            driver.close()
            raise
        return driver

    def _new_driver(self) -> "Driver":
        from neo4j import GraphDatabase

        # Retried deadlocks do not concern a process that has not configured logging.
        logging.getLogger("neo4j").addHandler(logging.NullHandler())
        return GraphDatabase.driver(
            self._uri,
            auth=self._auth,
            connection_timeout=CONNECT_SECONDS,
            max_connection_pool_size=MAX_CONNECTIONS,
            connection_acquisition_timeout=ACQUIRE_SECONDS,
            max_transaction_retry_time=RETRY_SECONDS,
            notifications_min_severity="OFF",
            telemetry_disabled=True,
            user_agent="contextgraph",
        )

    def _reset_after_fork(self) -> None:
        if self._process != os.getpid():
            if self._driver:
                _inherited.append(self._driver)
            self._reset()

    def _reset(self) -> None:
        """Begin in this process: sockets and locks of its parent are not its own."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._snapshot = _Snapshot()
        self._driver = None
        self._lost = False


def _timed(text: str, seconds: float) -> Any:
    """The statement *text*, which the server ends after *seconds*."""
    from neo4j import Query

    return Query(text, timeout=seconds)

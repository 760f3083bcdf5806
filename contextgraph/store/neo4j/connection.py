"""The connection to a server: one driver per process, transactions, snapshots, errors."""

import logging
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeAlias, TypeVar
from urllib.parse import urlunsplit

from contextgraph.errors import SchemaError, StoreError, StoreUnavailableError
from contextgraph.store.neo4j.schema import SERVER, Schema
from contextgraph.store.port import Table
from contextgraph.system.remote import STORE_ADDRESS, split_address

if TYPE_CHECKING:
    from neo4j import Driver, ManagedTransaction, Session
    from neo4j.exceptions import Neo4jError


# What the driver returns and takes has no narrower type.
Row: TypeAlias = Mapping[str, Any]
Parameters: TypeAlias = dict[str, object]
_NO_DATABASE = "Neo.ClientError.Database.DatabaseNotFound"
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
        _NO_DATABASE,
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
_HOME = "CALL db.info() YIELD name RETURN name"
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
# Lock the memory until the transaction ends: writers of a tenant wait for one another.
BEGIN = """
MERGE (m:Memory {tenant: $tenant})
ON CREATE SET m.name = 'memory of ' + $tenant, m.revision = 0, m.removed_at = 0
SET m.changed_at = datetime()
RETURN m.revision AS revision"""
# Sample the indexes, and plan all queries again.
_REPLAN = "CALL db.prepareForReplanning($seconds)"


class Transaction:
    """A transaction that is open."""

    def __init__(self, transaction: "ManagedTransaction") -> None:
        self._transaction = transaction

    def run(self, text: str, parameters: Parameters) -> list[Row]:
        """Return the rows of the statement *text* in this transaction."""
        return list(self._transaction.run(text, parameters))


class _RolledBack(Exception):  # noqa: N818  (not an error)
    """Ends a transaction without its changes."""


class _Snapshot(threading.local):
    """State of a thread in *depth* nested snapshots."""

    depth = 0
    session: "Session | None" = None


# Drivers of a parent process: closing them here would end the parent's connections.
_inherited: list["Driver"] = []


class Connection:
    """A server, a database and a tenant.

    The path of *address* names the database: ``neo4j://host:7687/memories``. Reading runs each
    query by itself: Neo4j reads what is committed, also within one transaction.
    """

    def __init__(
        self,
        address: str,
        auth: tuple[str, str] | None,
        tenant: str,
        schema: Schema,
        *,
        read_only: bool,
    ) -> None:
        self.address, self.tenant, self.read_only = address, tenant, read_only
        self.schema = schema
        parts = split_address(address, STORE_ADDRESS)
        named = parts.path.strip("/")
        self.database, self._is_named = named or DATABASE, bool(named)
        self._uri = urlunsplit(parts._replace(path=""))
        self._is_routed = parts.scheme.startswith("neo4j")
        self._auth = auth
        self._closed = False
        self._driver: Driver | None = None
        self._reset()

    def run(self, text: str, parameters: Parameters) -> list[Row]:
        """Return the rows of the reading statement *text*."""
        if self._snapshot.depth:
            try:
                return self._run_in_session(text, parameters)
            except StoreUnavailableError:
                # The connection may have been lost: the driver retries on another one.
                self._close_session()
        return self._execute("READ", Transaction.run, text, parameters)

    @contextmanager
    def snapshot(self) -> Iterator[None]:
        """Let each statement of the thread take one round trip, in this block."""
        self._reset_after_fork()
        snapshot = self._snapshot
        snapshot.depth += 1
        try:
            yield
        finally:
            snapshot.depth -= 1
            if not snapshot.depth:
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
            transaction.run(BEGIN, {"tenant": self.tenant})
            raise _RolledBack

        with suppress(_RolledBack):
            self._execute("WRITE", work)

    def server(self) -> tuple[str, str]:
        """Return version and edition of the server, without a look at the schema."""
        with store_errors(self.address), self._new_driver() as driver:
            driver.verify_connectivity()
            self._find_database(driver)
            row = driver.execute_query(SERVER, database_=self.database).records[0]
            return row["version"], row["edition"]

    def _find_database(self, driver: "Driver") -> None:
        """Take the database of this user where there is none of the usual name, as on Aura.

        Raises `StoreUnavailableError`, with its name, where the address names one that is absent.
        """
        from neo4j.exceptions import ClientError

        try:
            driver.execute_query(_HOME, database_=self.database)
        except ClientError as error:
            if not (error.code or "").startswith(_NO_DATABASE):
                raise
            home = str(driver.execute_query(_HOME).records[0]["name"])
            if self._is_named:
                remedy = f"end the address with /{home}, the database of this user"
                problem = f"{self.address} has no such database"
                raise StoreUnavailableError(problem, remedy, error.message or "") from error
            self.database = home

    def replan(self) -> None:
        """Let the server plan its queries by how much there is by now.

        Plans made for a nearly empty memory read a whole index for each lookup, and stay in use
        for minutes. A server may reserve this for administrators; its plans then change later.
        """
        with suppress(StoreError), store_errors(self.address), self._session("WRITE") as session:
            parameters = {"seconds": REPLAN_SECONDS}
            session.run(_timed(_REPLAN, WRITE_SECONDS), parameters)

    def create_vector_index(self, table: Table, property_: str) -> None:
        """Create the index of the vectors in *property_*, outside transactions with data."""
        driver = self._open()
        with store_errors(self.address):
            self.schema.create_vector_index(driver, self.database, table, property_)

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
            return work(Transaction(transaction), *args, **kwargs)

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
            with store_errors(self.address):
                driver.verify_connectivity()
                self._find_database(driver)
            self.schema.check(driver, self.database, self.address, read_only=self.read_only)
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

"""One driver per process: made when first needed, anew after a fork."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit, urlunsplit

from contextgraph.errors import StoreError, StoreUnavailableError
from contextgraph.store.neo4j_store import schema
from contextgraph.store.neo4j_store.failures import store_errors
from contextgraph.store.neo4j_store.migrations import Migration, apply
from contextgraph.store.neo4j_store.queries import query
from contextgraph.store.neo4j_store.transaction import OneByOne, Seen, Transaction
from contextgraph.store.neo4j_store.vector_index import make_vector_indexes

if TYPE_CHECKING:
    from neo4j import Driver, ManagedTransaction, Session

P = ParamSpec("P")
T = TypeVar("T")

DATABASE = "neo4j"
# A writer that hangs holds up all others: the server ends it.
WRITE_SECONDS = 120.0
READ_SECONDS = 60.0
# Indexes are counted meanwhile: 0.04 s for 2,000 runs.
PLANNING_SECONDS = 30
# How long transactions are tried again: a deadlock or a change of leader is over by then.
RETRY_SECONDS = 10.0
CONNECT_SECONDS = 10.0
MOST_CONNECTIONS = 100
# The questions of one query, side by side.
MOST_THREADS = 8
ACQUIRE_SECONDS = 30.0


class _Held(threading.local):
    """What a thread holds on to while it is in *depth* snapshots.

    *seen* is what was asked once; the threads that ask ahead share it. *cancel* ends the asking of
    what they have not begun with.
    """

    depth = 0
    session: "Session | None" = None
    seen: Seen | None = None
    cancel: tuple[Callable[[], bool], ...] = ()


# Closing what a parent process opened would say goodbye in its name.
_inherited: list["Driver"] = []


class Connection:
    """A server, a database and a tenant; runs functions in transactions that are tried again.

    The path of *address* names the database: ``neo4j://host:7687/memories``.
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
        self._opened: Driver | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._renew()

    def read(
        self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What *work* finds in a transaction that writes nothing."""
        if self._held.depth:
            transaction = self._one_by_one()
            try:
                with store_errors(self.address):
                    return work(transaction, *args, **kwargs)
            except StoreUnavailableError:
                # The connection may have ended: asked again on another one, and tried again there.
                self._let_go()
        return self._run("READ", work, *args, **kwargs)

    @contextmanager
    def snapshot(self, seen: Seen | None = None) -> Iterator[None]:
        """Within it this thread asks each question in one round trip, and some of them but once.

        Neo4j reads what is committed, also within one transaction: the answers are those of the
        newest state in any case. *seen* is what was asked once in the snapshot of another thread.
        At its end nobody asks any more what was to be asked ahead, and was not wanted.
        """
        self._renew_after_fork()
        held = self._held
        if not held.depth:
            held.seen = {} if seen is None else seen
        held.depth += 1
        try:
            yield
        finally:
            held.depth -= 1
            if not held.depth:
                for cancel in held.cancel:
                    cancel()
                held.cancel = ()
                held.seen = None
                self._let_go()

    def ahead(self, question: Callable[[], T]) -> Callable[[], T]:
        """What gives the answer to *question*, asked in a thread that shares this snapshot."""
        self._renew_after_fork()
        held = self._held
        seen = held.seen

        def asked() -> T:
            with self.snapshot(seen):
                return question()

        try:
            future = self._threads().submit(asked)
        except RuntimeError:  # closed just now, or no thread can be had: asked when it is wanted
            return question
        if held.depth:
            held.cancel = (*held.cancel, future.cancel)

        def answer() -> T:
            # All threads may wait for answers: what none has begun with is asked here.
            return question() if future.cancel() else future.result()

        return answer

    def write(
        self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What *work* returns once all it wrote is committed, or raise and leave nothing.

        *work* is run again where the server asks for it.
        """
        if self.read_only:
            raise StoreError(f"{self.address} was opened for reading only")
        if self._held.depth:
            raise StoreError("nothing can be written within a snapshot; write when it has ended")
        return self._run("WRITE", work, *args, **kwargs)

    def server(self) -> tuple[str, str]:
        """Its version and edition, whatever the schema is."""
        with store_errors(self.address), self._driver() as driver:
            driver.verify_connectivity()
            row = driver.execute_query(query("server"), database_=self.database).records[0]
            return row["version"], row["edition"]

    def plan_anew(self) -> None:
        """Let the server plan its queries by how much there is by now.

        Plans of when there was next to nothing read all of an index for each lookup, and are kept
        for minutes after that has become slow. A server may leave this to administrators; plans
        then change in its own time.
        """
        with suppress(StoreError), store_errors(self.address), self._session("WRITE") as session:
            one = OneByOne(session, WRITE_SECONDS)
            Transaction(one, self.tenant).rows("plan_anew", seconds=PLANNING_SECONDS)

    def pending_migrations(self) -> tuple[Migration, ...]:
        """The steps that the schema lacks, before anything is refused for want of them."""
        with store_errors(self.address), self._driver() as driver:
            schema.check_version(driver, self.database)
            return schema.pending(driver, self.database)

    def migrate(self) -> tuple[Migration, ...]:
        """Apply those steps one by one; each that was applied stays so if a later one fails."""
        missing = self.pending_migrations()
        if self.read_only:
            raise StoreError(f"{self.address} was opened for reading only")
        with store_errors(self.address), self._driver() as driver:
            for step in missing:
                apply(driver, self.database, step)
        return missing

    def make_vector_indexes(self, property_: str) -> None:
        """Make room for vectors under *property_*, which no transaction with data can do."""
        driver = self._open()
        with store_errors(self.address):
            make_vector_indexes(driver, self.database, property_)

    def close(self) -> None:
        """Close all connections once what is asked now is answered; closing twice is harmless."""
        self._renew_after_fork()
        with self._lock:
            self._closed = True
            pool, driver = self._pool, self._opened
            self._pool = self._opened = None
        # Whoever asks in one of these threads may wait for the lock.
        if pool:
            pool.shutdown(cancel_futures=True)
        if driver:
            with store_errors(self.address):
                driver.close()

    def _run(
        self,
        mode: str,
        work: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        from neo4j import unit_of_work

        seconds = READ_SECONDS if mode == "READ" else WRITE_SECONDS

        @unit_of_work(timeout=seconds)
        def told(transaction: "ManagedTransaction") -> T:
            return work(Transaction(transaction, self.tenant), *args, **kwargs)

        opened = self._session(mode)
        try:
            with store_errors(self.address), opened as session:
                return session.execute_read(told) if mode == "READ" else session.execute_write(told)
        except StoreUnavailableError:
            self._lost = True
            raise

    def _one_by_one(self) -> Transaction:
        session = self._held.session
        if session is None:
            session = self._held.session = self._session("READ")
        return Transaction(OneByOne(session, READ_SECONDS), self.tenant, self._held.seen)

    def _session(self, mode: str) -> "Session":
        """A session that sees what this process wrote, and nothing older than what it has read.

        Of several servers, which lag behind one another, that is asked for; one alone needs no
        bookmarks.
        """
        driver = self._open()
        bookmarks = driver.execute_query_bookmark_manager if self._is_routed else None
        with store_errors(self.address):
            return driver.session(
                database=self.database, default_access_mode=mode, bookmark_manager=bookmarks
            )

    def _threads(self) -> ThreadPoolExecutor:
        with self._lock:
            self._check_open()
            if self._pool is None:
                self._pool = ThreadPoolExecutor(MOST_THREADS, "contextgraph-question")
            return self._pool

    def _let_go(self) -> None:
        """End the session of this thread; of what it has read nothing is left to be said."""
        session = self._held.session
        self._held.session = None
        if session:
            with store_errors(self.address):
                session.close()

    def _open(self) -> "Driver":
        self._renew_after_fork()
        with self._lock:
            self._check_open()
            if self._opened is None:
                with store_errors(self.address):
                    self._opened = self._connected()
            driver = self._opened
        if self._lost:
            # One that was away is not waited for again and again: is it back?
            with store_errors(self.address):
                driver.verify_connectivity()
            self._lost = False
        return driver

    def _check_open(self) -> None:
        if self._closed:
            raise StoreError(f"{self.address} is closed")

    def _connected(self) -> "Driver":
        driver = self._driver()
        try:
            driver.verify_connectivity()
            schema.check(driver, self.database, self.address, read_only=self.read_only)
        except BaseException:
            driver.close()
            raise
        return driver

    def _driver(self) -> "Driver":
        from neo4j import GraphDatabase

        # Deadlocks that are tried again are no news for whoever has not configured logging.
        logging.getLogger("neo4j").addHandler(logging.NullHandler())
        return GraphDatabase.driver(
            self._uri,
            auth=self._auth,
            connection_timeout=CONNECT_SECONDS,
            max_connection_pool_size=MOST_CONNECTIONS,
            connection_acquisition_timeout=ACQUIRE_SECONDS,
            max_transaction_retry_time=RETRY_SECONDS,
            notifications_min_severity="OFF",
            telemetry_disabled=True,
            user_agent="contextgraph",
        )

    def _renew_after_fork(self) -> None:
        if self._process != os.getpid():
            if self._opened:
                _inherited.append(self._opened)
            self._renew()

    def _renew(self) -> None:
        """Start anew in this process: its parent's sockets and locks are not its own."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._held = _Held()
        self._opened = None
        self._pool = None
        self._lost = False

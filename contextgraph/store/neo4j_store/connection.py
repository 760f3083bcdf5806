"""One driver per process: made when first needed, anew after a fork."""

import os
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeVar
from urllib.parse import urlsplit, urlunsplit

from contextgraph.errors import StoreError
from contextgraph.store.neo4j_store import schema
from contextgraph.store.neo4j_store.failures import store_errors
from contextgraph.store.neo4j_store.queries import query
from contextgraph.store.neo4j_store.rows import Row

if TYPE_CHECKING:
    from neo4j import Driver, ManagedTransaction

    from contextgraph.store.neo4j_store.schema import Server

P = ParamSpec("P")
T = TypeVar("T")

DATABASE = "neo4j"
# A writer that hangs holds up all others: the server ends it.
WRITE_SECONDS = 120.0
READ_SECONDS = 60.0
# How long transactions are tried again: a deadlock or a change of leader is over by then.
RETRY_SECONDS = 10.0
CONNECT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Opened:
    """A driver that has reached its *server*."""

    driver: "Driver"
    server: "Server"


# Closing what a parent process opened would say goodbye in its name.
_inherited: list[Opened] = []


class Transaction:
    """A transaction that is open: runs named queries, each with the *tenant* as a parameter."""

    def __init__(self, transaction: "ManagedTransaction", tenant: str, server: "Server") -> None:
        self._transaction = transaction
        self.tenant = tenant
        self.server = server

    def rows(self, name: str, **parameters: object) -> list[Row]:
        """All that the query of this name returns."""
        result = self._transaction.run(query(name), {"tenant": self.tenant, **parameters})
        return list(result)

    def row(self, name: str, **parameters: object) -> Row | None:
        """The first row of it, None where there is none."""
        found = self.rows(name, **parameters)
        return found[0] if found else None

    def write(self, name: str, rows: Sequence[object], **parameters: object) -> None:
        """Run a query over *rows*, unless there are none."""
        if rows:
            self.rows(name, rows=rows, **parameters)


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
        self._auth = auth
        self._closed = False
        self._opened: Opened | None = None
        self._renew()

    def read(
        self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What *work* finds in a transaction that writes nothing."""
        return self._run("READ", work, *args, **kwargs)

    def write(
        self, work: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """What *work* returns once all it wrote is committed, or raise and leave nothing.

        *work* is run again where the server asks for it.
        """
        if self.read_only:
            raise StoreError(f"{self.address} was opened for reading only")
        return self._run("WRITE", work, *args, **kwargs)

    def close(self) -> None:
        """Close all connections; closing twice is harmless."""
        self._renew_after_fork()
        with self._lock, store_errors(self.address):
            self._closed = True
            if self._opened:
                self._opened.driver.close()
            self._opened = None

    def _run(
        self,
        mode: str,
        work: Callable[Concatenate[Transaction, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        from neo4j import unit_of_work

        opened = self._open()
        seconds = READ_SECONDS if mode == "READ" else WRITE_SECONDS

        @unit_of_work(timeout=seconds)
        def told(transaction: "ManagedTransaction") -> T:
            return work(Transaction(transaction, self.tenant, opened.server), *args, **kwargs)

        with store_errors(self.address), opened.driver.session(database=self.database) as session:
            return session.execute_read(told) if mode == "READ" else session.execute_write(told)

    def _open(self) -> "Opened":
        self._renew_after_fork()
        with self._lock:
            if self._closed:
                raise StoreError(f"{self.address} is closed")
            if self._opened is None:
                with store_errors(self.address):
                    self._opened = self._connected()
            return self._opened

    def _connected(self) -> "Opened":
        from neo4j import GraphDatabase

        driver = GraphDatabase.driver(
            self._uri,
            auth=self._auth,
            connection_timeout=CONNECT_SECONDS,
            max_transaction_retry_time=RETRY_SECONDS,
            notifications_min_severity="OFF",
            telemetry_disabled=True,
            user_agent="contextgraph",
        )
        try:
            driver.verify_connectivity()
            server = schema.checked(driver, self.database, read_only=self.read_only)
        except BaseException:
            driver.close()
            raise
        return Opened(driver, server)

    def _renew_after_fork(self) -> None:
        if self._process != os.getpid():
            if self._opened:
                _inherited.append(self._opened)
            self._renew()

    def _renew(self) -> None:
        """Start anew in this process: its parent's sockets and locks are not its own."""
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._opened = None

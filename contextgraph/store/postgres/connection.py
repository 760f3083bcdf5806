"""A connection to PostgreSQL: one for each process, tables at first use, errors, retries."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from urllib.parse import urlsplit

from contextgraph.errors import (
    MissingExtraError,
    SchemaError,
    StoreError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    import psycopg

    Cursor: TypeAlias = psycopg.Cursor[tuple[Any, ...]]

T = TypeVar("T")

_CONNECT_SECONDS = 10
_STATEMENT_MILLISECONDS = 60_000
_VERSION = 1
_LOCK = 7_316_505  # of the migration; no other program is likely to use it
# `words` is searched by place: those of one repository are not mixed with those of others.
_SCHEMA = """
CREATE EXTENSION IF NOT EXISTS vector;
CREATE TABLE contextgraph_version (version integer NOT NULL);
CREATE TABLE contextgraph_place (
    key integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL, repo text NOT NULL, kind text NOT NULL, UNIQUE (tenant, repo, kind)
);
CREATE TABLE contextgraph_note (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text NOT NULL, id text COLLATE "C" NOT NULL, place integer NOT NULL,
    live boolean NOT NULL, pinned boolean NOT NULL, created_at timestamptz NOT NULL,
    tags text[] NOT NULL, targets text[] NOT NULL, data text NOT NULL,
    space text, vector vector, UNIQUE (tenant, id)
);
CREATE INDEX ON contextgraph_note (place, created_at) WHERE live;
CREATE INDEX ON contextgraph_note USING gin (targets);
CREATE TABLE contextgraph_note_word (
    place integer NOT NULL, word text COLLATE "C" NOT NULL, note bigint NOT NULL
        REFERENCES contextgraph_note ON DELETE CASCADE,
    PRIMARY KEY (place, word, note)
);
CREATE INDEX ON contextgraph_note_word (note);
INSERT INTO contextgraph_version VALUES (1)"""
_IN_THE_WAY = ("40001", "40P01")  # serialization failure, deadlock


class Connection:
    """The database at *address*, opened when it is first used. Threads share one connection.

    It is opened again after the server was away.
    """

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        host = parts.netloc.rpartition("@")[2]
        self.name = f"{parts.scheme}://{host}{parts.path}"  # without user, password and options
        self._address = address
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None
        self._lock = RLock()

    def run(self, work: Callable[["Cursor"], T]) -> T:
        """What *work* gives in one transaction.

        It is tried once more where nothing was committed: the connection was lost before that, or
        another writer was in the way.
        """
        with self._lock, _store_errors(self.name):
            try:
                return self._once(work)
            except _NotCommittedError:
                return self._once(work, is_last=True)

    def _once(self, work: Callable[["Cursor"], T], *, is_last: bool = False) -> T:
        connection = self._connection = self._connection or self._connected()
        try:
            with connection.cursor() as cursor:
                result = work(cursor)
        except BaseException as error:
            if connection.closed:
                self._connection = None
            else:
                connection.rollback()
            is_retried = connection.closed or getattr(error, "sqlstate", None) in _IN_THE_WAY
            if is_retried and not is_last:
                raise _NotCommittedError from error
            raise
        try:
            connection.commit()
        finally:
            if connection.closed:
                self._connection = None
        return result

    def _connected(self) -> "psycopg.Connection[tuple[Any, ...]]":
        connection: psycopg.Connection[tuple[Any, ...]] = _driver().connect(
            self._address,
            connect_timeout=_CONNECT_SECONDS,
            # Plans for the values given: an index of vectors is of one space.
            prepare_threshold=None,
            options=f"-c statement_timeout={_STATEMENT_MILLISECONDS}",
        )
        try:
            _migrate(connection, self.name)
        except BaseException:
            connection.close()
            raise
        return connection

    def close(self) -> None:
        """Release the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


class _NotCommittedError(Exception):
    """Another attempt is worth it."""


def _driver() -> Any:
    try:
        import psycopg
    except ImportError as error:
        raise MissingExtraError(
            "notes in PostgreSQL need psycopg; install it with: "
            "pip install 'contextgraph-memory[postgres]'"
        ) from error
    return psycopg


def _migrate(connection: "psycopg.Connection[Any]", name: str) -> None:
    """Create the tables where there are none; others may do so at the same moment."""
    with connection.transaction(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
        (exists,) = row_of(cursor, "SELECT to_regclass('contextgraph_version') IS NOT NULL", ())
        if not exists:
            cursor.execute(_SCHEMA)
        (version,) = row_of(cursor, "SELECT version FROM contextgraph_version", ())
    if version != _VERSION:
        raise SchemaError(f"{name} has notes of schema {version}, this version needs {_VERSION}")


def row_of(cursor: "Cursor", sql: str, given: Sequence[object]) -> tuple[Any, ...]:
    """The only row of a statement that gives one."""
    row: tuple[Any, ...] | None = cursor.execute(sql, given).fetchone()
    assert row is not None  # each of these statements gives one
    return row


@contextmanager
def _store_errors(name: str) -> Iterator[None]:
    """Turn what the driver raises into a `StoreError` about *name*."""
    try:
        yield
    except StoreError:
        raise
    except _driver().Error as error:
        raise _failure(name, error) from error


def _failure(name: str, error: "psycopg.Error") -> StoreError:
    from psycopg import OperationalError, errors

    reason = " ".join(str(error).split()) or type(error).__name__
    if isinstance(error, errors.FeatureNotSupported | errors.UndefinedFile):
        return StoreError(f"{name} lacks the extension pgvector; install it on the server")
    if isinstance(error, errors.InsufficientPrivilege):
        return StoreError(f"{name} does not allow this user to do that: {reason}")
    if isinstance(error, OperationalError) and error.sqlstate is None:
        return StoreUnavailableError(
            f"{name} cannot be reached; check the address and that the server runs: {reason}"
        )
    if isinstance(error, OperationalError):
        return StoreUnavailableError(f"{name} did not do it; try again: {reason}")
    return StoreError(f"{name} refused it: {reason}")

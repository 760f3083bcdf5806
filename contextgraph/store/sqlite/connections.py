"""Connections to a memory file: opened when needed, prepared once, errors of SQLite translated."""

import errno
import fcntl
import os
import random
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from contextgraph.errors import StoreError, StoreUnavailableError
from contextgraph.store.sqlite.schema import Schema, not_created, prepare, schema_version
from contextgraph.system.processes import create_private, no_fork, replacing

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

    def __init__(self, path: str, schema: Schema, *, read_only: bool, create: bool) -> None:
        self.path, self.schema, self.read_only = path, schema, read_only
        self._create = create and not read_only
        self.in_memory = path == MEMORY
        self._journal = "WAL"
        self._idle: list[sqlite3.Connection] = []
        self._closed = False
        self._damage = ""
        self._process = 0
        with store_errors(path):
            if not self.in_memory and Path(path).is_dir():
                raise StoreError(f"{path} is a folder; name a file")
        self._renew()

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction that sees one revision of the memory."""
        with store_errors(self.path), self._borrowed() as connection, _transaction(connection, ""):
            yield connection

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a transaction; commit it at the end, roll back on an error."""
        if self.read_only:
            raise StoreError(f"{self.path} was opened for reading only")
        self._renew()
        with store_errors(self.path), self._writer, self._borrowed() as connection:
            if self._damage:
                raise StoreError(f"{self.path} {_REFUSED[sqlite3.SQLITE_CORRUPT]} ({self._damage})")
            with _transaction(connection, "IMMEDIATE"):
                yield connection

    @contextmanager
    def trying_to_write(self) -> Iterator[sqlite3.Connection]:
        """Yield a connection in a writing transaction that is rolled back at the end.

        This works for a memory that was opened for reading, too.
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
        """Copy one revision of the memory to the new file *path*; others may write meanwhile.

        Raises `StoreError` where it exists, or cannot be written.
        """
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
        self._renew()
        with no_fork(), self._lock, store_errors(self.path):
            self._closed = True
            while self._idle:
                self._idle.pop().close()

    @contextmanager
    def _borrowed(self) -> Iterator[sqlite3.Connection]:
        self._renew()
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

    def _renew(self) -> None:
        """Start over in a forked process: locks and handles of its parent are not its own."""
        if self._process == os.getpid():
            return
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._writer = threading.Lock()
        self._turn = threading.Lock() if self.in_memory else threading.Semaphore(_MOST_AT_ONCE)
        if not self.in_memory:
            # Closing them here would release locks that the parent holds.
            _inherited.extend(self._idle)
            self._idle = []

    def _opened(self) -> sqlite3.Connection:
        path = Path(self.path)
        if not (self.in_memory or path.exists()):
            if not self._create:
                raise not_created(self.path)
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            create_private(path)
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

        def switch() -> None:
            # An exclusive connection that waits keeps its lock, for which another one waits.
            with closing(self._connected("rw")) as connection:
                connection.execute("PRAGMA busy_timeout = 0")
                connection.execute("PRAGMA locking_mode = EXCLUSIVE")
                connection.execute("PRAGMA journal_mode = DELETE")

        _retry_while_locked(switch)

    def _opened_with_log(self) -> sqlite3.Connection:
        connection = self._connected("ro" if self.read_only else "rwc")
        try:
            self._look_past_damage(connection)
            prepare(connection)
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
        """Return True if readers cannot put files beside the memory, as a growing one needs."""
        return (
            not self.in_memory
            and not os.access(os.path.dirname(self.path) or ".", os.W_OK, effective_ids=_EFFECTIVE)
            and os.path.exists(self.path)
        )

    def _prepare(self, connection: sqlite3.Connection) -> None:
        # In one snapshot: others may be making the tables now.
        with _transaction(connection, ""):
            has_tables = self.schema.check(connection, self.path)
        if not has_tables:
            if not self._create:
                raise not_created(self.path)
            if self._journal == "WAL" and not self.in_memory:
                # Found out beside the file: another process may write it with another journal.
                if _has_shared_memory(os.path.dirname(self.path) or "."):
                    _retry_while_locked(lambda: connection.execute("PRAGMA journal_mode = WAL"))
                else:
                    self._journal = "DELETE"
            with _transaction(connection, "IMMEDIATE"):
                # Another process may have been first while this one waited.
                if not self.schema.check(connection, self.path):
                    self.schema.create(connection)
        for pragma in _PRAGMAS:
            connection.execute(pragma)


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


def _has_shared_memory(folder: str) -> bool:
    """Return whether files in *folder* can be shared memory, as a write-ahead log needs.

    By a file without a name, of which a killed process leaves nothing.
    """
    from mmap import PAGESIZE, mmap  # only a new memory needs them
    from tempfile import TemporaryFile

    with TemporaryFile(dir=folder) as file:
        file.truncate(PAGESIZE)
        try:
            mmap(file.fileno(), PAGESIZE).close()
        except OSError:
            return False
    return True


def _retry_while_locked(switch: Callable[[], object]) -> None:
    """Call *switch*, which changes the journal: SQLite does not wait for the lock this needs."""
    give_up_at = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            switch()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            if time.monotonic() > give_up_at:
                raise
            # Processes that met must not meet again.
            time.sleep(random.uniform(0.005, 0.02))
        else:
            return


def _has_locks(path: str) -> bool:
    """Return True if the file system of *path* has the locks by which processes take turns."""
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

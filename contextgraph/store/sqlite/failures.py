"""Errors of SQLite as errors of this package."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from contextgraph.errors import StoreError, StoreUnavailableError

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
_REFUSED = {
    sqlite3.SQLITE_NOTADB: "is not a memory of contextgraph; name another file",
    sqlite3.SQLITE_CORRUPT: "is damaged; restore it from a copy, or learn the runs again",
    sqlite3.SQLITE_TOOBIG: "cannot hold a text as long as this",
}


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
    code = getattr(error, "sqlite_errorcode", -1) & 0xFF
    if code in _UNAVAILABLE:
        return StoreUnavailableError(f"{name} {_UNAVAILABLE[code]} ({error})")
    return StoreError(f"{name} {_REFUSED.get(code, 'refused the operation')} ({error})")

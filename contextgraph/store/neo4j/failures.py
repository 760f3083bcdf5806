"""Errors of the driver as errors of this package."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from contextgraph.errors import (
    SchemaError,
    StoreError,
    StoreUnavailableError,
)

if TYPE_CHECKING:
    from neo4j.exceptions import Neo4jError

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
        "run contextgraph migrate",
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

"""Whatever the driver raises comes out as an error of this package, with a remedy where known."""

from collections.abc import Iterator

import neo4j.exceptions as driver
import pytest

from contextgraph.errors import SchemaError, StoreError, StoreUnavailableError
from contextgraph.store.neo4j.connection import store_errors

NAME = "neo4j://memory.example"
# Trying again, another address, another user or another database may help.
UNAVAILABLE = {
    driver.ServiceUnavailable,
    driver.RoutingServiceUnavailable,
    driver.WriteServiceUnavailable,
    driver.ReadServiceUnavailable,
    driver.IncompleteCommit,
    driver.SessionExpired,
    driver.ConnectionPoolError,
    driver.ConnectionAcquisitionTimeoutError,
}
CODES = {
    "Neo.ClientError.Security.Unauthorized": StoreUnavailableError,
    "Neo.ClientError.Security.AuthenticationRateLimit": StoreUnavailableError,
    "Neo.ClientError.Security.TokenExpired": StoreUnavailableError,
    "Neo.ClientError.Security.Forbidden": StoreError,
    "Neo.ClientError.Database.DatabaseNotFound": StoreUnavailableError,
    "Neo.ClientError.Schema.ConstraintValidationFailed": StoreError,
    "Neo.ClientError.Schema.IndexNotFound": SchemaError,
    "Neo.ClientError.Statement.SyntaxError": StoreError,
    "Neo.ClientError.Statement.TypeError": StoreError,
    "Neo.ClientError.Procedure.ProcedureNotFound": SchemaError,
    "Neo.ClientError.Transaction.TransactionTimedOut": StoreUnavailableError,
    "Neo.ClientError.Transaction.TransactionTimedOutClientConfiguration": StoreUnavailableError,
    "Neo.ClientError.Transaction.LockClientStopped": StoreUnavailableError,
    "Neo.ClientError.Transaction.Terminated": StoreUnavailableError,
    "Neo.TransientError.Transaction.DeadlockDetected": StoreUnavailableError,
    "Neo.TransientError.General.DatabaseUnavailable": StoreUnavailableError,
    "Neo.TransientError.General.MemoryPoolOutOfMemoryError": StoreUnavailableError,
    "Neo.DatabaseError.General.UnknownError": StoreError,
    "Neo.ClientError.Cluster.NotALeader": StoreUnavailableError,
    "Neo.ClientError.General.ForbiddenOnReadOnlyDatabase": StoreUnavailableError,
    "Neo.ClientError.General.WriteOnReadOnlyAccessDatabase": StoreUnavailableError,
}


def with_subclasses(kind: type[Exception]) -> Iterator[type[Exception]]:
    yield kind
    for subclass in kind.__subclasses__():
        yield from with_subclasses(subclass)


def raised(error: Exception) -> StoreError:
    with pytest.raises(StoreError) as caught, store_errors(NAME):
        raise error
    return caught.value


@pytest.mark.parametrize(
    "kind", [*dict.fromkeys(with_subclasses(driver.DriverError))], ids=lambda k: k.__name__
)
def test_every_error_of_the_driver_is_translated(kind: type[Exception]) -> None:
    error = kind(None, "why") if issubclass(kind, driver.ResultError) else kind("why")
    found = raised(error)
    assert type(found) is (StoreUnavailableError if kind in UNAVAILABLE else StoreError)
    assert NAME in str(found)
    assert found.__cause__ is error


@pytest.mark.parametrize(
    "kind", [*dict.fromkeys(with_subclasses(driver.Neo4jError))], ids=lambda k: k.__name__
)
def test_every_error_of_the_server_is_translated(kind: type[Exception]) -> None:
    assert NAME in str(raised(kind("why")))


@pytest.mark.parametrize(("code", "expected"), CODES.items())
def test_what_the_server_says_decides_what_may_help(code: str, expected: type[StoreError]) -> None:
    found = raised(driver.Neo4jError._hydrate_neo4j(code=code, message="the server's words"))
    assert type(found) is expected
    assert "the server's words" in str(found)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionRefusedError("no"), StoreUnavailableError),
        (OverflowError("too large"), StoreError),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogate"), StoreError),
    ],
)
def test_so_is_what_the_driver_lets_through(error: Exception, expected: type[StoreError]) -> None:
    assert type(raised(error)) is expected


def test_errors_of_this_package_pass_as_they_are() -> None:
    error = StoreError("run 7 is unknown")
    assert raised(error) is error

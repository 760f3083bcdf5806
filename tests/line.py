"""A port of loopback that leads to a server while the line is up: a server that comes and goes."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from socket import SHUT_RDWR, SHUT_WR, SO_REUSEADDR, SOL_SOCKET, create_connection, socket
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Thread
from urllib.parse import urlsplit

import pytest

HOST = "127.0.0.1"
# Where the server resets a connection right after the handshake, the driver leaves its socket open
# and raises from `Bolt.__del__`: its constructor fails before `hydration_handler` is set.
resets_connections = pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <(function Bolt.__del__|socket.socket)"
    ":pytest.PytestUnraisableExceptionWarning"
)


@contextmanager
def refusing_port() -> Iterator[int]:
    """A port that refuses connections, and that no other process is given inside the block.

    A `line` may be up there meanwhile.
    """
    with socket() as bound:
        bound.setsockopt(SOL_SOCKET, SO_REUSEADDR, 1)
        bound.bind((HOST, 0))
        yield bound.getsockname()[1]


@contextmanager
def line(port: int, uri: str) -> Iterator[None]:
    """Inside the block, *port* forwards to *uri*; at its end all connections are closed."""
    target = urlsplit(uri).port
    talking: set[socket] = set()

    class Handler(BaseRequestHandler):
        def handle(self) -> None:
            with create_connection((HOST, target)) as far:
                talking.add(self.request)
                Thread(target=_carry, args=(far, self.request), daemon=True).start()
                _carry(self.request, far)
                talking.discard(self.request)

    ThreadingTCPServer.allow_reuse_address = True
    with ThreadingTCPServer((HOST, port), Handler) as listening:
        listening.daemon_threads = True
        thread = Thread(target=listening.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield
        finally:
            listening.shutdown()
            thread.join()
            for near in [*talking]:
                with suppress(OSError):  # the client was first to close it
                    near.shutdown(SHUT_RDWR)


def _carry(one: socket, other: socket) -> None:
    try:
        while data := one.recv(65536):
            other.sendall(data)
        other.shutdown(SHUT_WR)
    except OSError:  # the other end has gone
        return

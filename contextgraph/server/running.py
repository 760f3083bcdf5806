"""One process that serves until it gets a signal to stop."""

import socket
from collections.abc import Callable

import uvicorn

from contextgraph.config import Settings
from contextgraph.errors import SettingsError
from contextgraph.server.app import create_app
from contextgraph.server.monitoring import log_to_stderr
from contextgraph.server.service import Limits
from contextgraph.server.tokens import TokenFile
from contextgraph.telemetry import exporting

# Requests that are not answered so many seconds after a signal are cut off.
_GRACE_SECONDS = 10
# Longer than clients pause: a request on a connection that is being closed would fail.
_KEEP_ALIVE_SECONDS = 75


def serve(
    settings: Settings,
    tokens: TokenFile | None,
    limits: Limits,
    address: tuple[str, int],
    *,
    log_level: str,
    on_listening: Callable[[str], None],
) -> None:
    """Serve on *address* (host, port; 0: any free one) until SIGTERM or SIGINT.

    *on_listening* is called with the URL. Raises `SettingsError` where the address is in use.
    """
    log_to_stderr(log_level)
    app = create_app(settings, tokens, limits)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
    )
    with _listening(*address) as listening:
        host, port = listening.getsockname()[:2]
        on_listening(f"http://{f'[{host}]' if ':' in host else host}:{port}")
        with exporting("contextgraph"):
            uvicorn.Server(config).run([listening])


def _listening(host: str, port: int) -> socket.socket:
    try:
        family, kind, *_, found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        opened = socket.socket(family, kind)
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        opened.bind(found)
        opened.listen(2048)
    except OSError as error:
        raise SettingsError(f"cannot listen on {host}:{port}: {error.strerror or error}") from error
    return opened

"""The service on a port of loopback, in a thread of the test process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI


@contextmanager
def listening(app: FastAPI, port: int = 0) -> Iterator[str]:
    """The URL at which *app* answers within the block, at any *port* where none is given."""
    is_up = threading.Event()

    class Server(uvicorn.Server):
        async def startup(self, *args: object, **kwargs: object) -> None:
            await super().startup(*args, **kwargs)  # type: ignore[arg-type]
            is_up.set()

    server = Server(uvicorn.Config(app, port=port, log_config=None, lifespan="on"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        assert is_up.wait(60)
        (port,) = {socket.getsockname()[1] for one in server.servers for socket in one.sockets}
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        thread.join()

"""A server in a container, through testcontainers."""

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from scripts.neo4j_local.process import free_port
from scripts.neo4j_local.record import Server
from scripts.neo4j_local.release import Release, UnavailableError

if TYPE_CHECKING:
    from docker.models.containers import Container

BOLT, HTTP = 7687, 7474
STOPS_WITHIN = 60  # seconds, then it is killed


def engine_answers() -> bool:
    """True where a Docker engine answers at the address that the environment names."""
    import docker

    try:
        return bool(docker.from_env().ping())
    except docker.errors.DockerException:
        return False


def start(
    release: Release,
    name: str,
    password: str,
    *,
    browser: bool,
    heap: str,
    more: Mapping[str, str],
) -> Server:
    """Start a new container with *password*; its first query may not be answered yet.

    *more* are settings of neo4j.conf.
    """
    # The container is to outlive this process.
    os.environ["TESTCONTAINERS_RYUK_DISABLED"] = "true"
    from docker.errors import DockerException
    from testcontainers.community.neo4j import Neo4jContainer

    bolt, http = free_port(), free_port() if browser else 0
    image = f"neo4j:{release.line}"
    try:
        container = Neo4jContainer(image, password=password)
        for setting, value in {"server.memory.heap.max_size": heap, **more}.items():
            variable = setting.replace("_", "__").replace(".", "_")
            container.with_env(f"NEO4J_{variable}", value)
        # testcontainers would open them to everyone.
        container.ports = {str(BOLT): ("127.0.0.1", bolt)}  # type: ignore[dict-item]  # docker takes it
        if http:
            container.ports[str(HTTP)] = ("127.0.0.1", http)  # type: ignore[assignment]  # as above
        container.start()
    except (DockerException, TimeoutError) as error:
        reason = " ".join(str(error).split())
        raise UnavailableError(f"{image} could not be started: {reason}") from error
    return Server(
        name=name,
        version=release.version,
        uri=f"bolt://127.0.0.1:{bolt}",
        user="neo4j",
        password=password,
        http=f"http://127.0.0.1:{http}/browser/" if http else "",
        pid=0,
        container=str(container.get_wrapped_container().id),
        owner=0,
    )


def start_again(server: Server) -> None:
    """Start the container of *server*, which was stopped; its ports and data are the same."""
    _container(server).start()


def is_running(server: Server) -> bool:
    """True while the container of *server* runs."""
    import docker

    try:
        return bool(_container(server).status == "running")
    except docker.errors.DockerException:
        return False


def stop(server: Server, *, keep: bool) -> None:
    """Stop the container of *server*; remove it with its data unless *keep*."""
    if keep:
        _container(server).stop(timeout=STOPS_WITHIN)
    else:
        _container(server).remove(v=True, force=True)


def last_output(server: Server) -> str:
    """The last line that it printed."""
    printed = _container(server).logs(tail=1).decode(errors="replace").split()
    return " ".join(printed) or "no output"


def _container(server: Server) -> "Container":
    import docker

    return docker.from_env().containers.get(server.container)

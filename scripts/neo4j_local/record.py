"""The record of a started server, a file beside its data."""

import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from scripts.neo4j_local.jars import cache_folder

RECORD = "server.json"


@dataclass(frozen=True, slots=True)
class Server:
    """A server by *name*: a process (*pid*) or a *container*.

    *http* is the address of Neo4j Browser, empty where that is not served. The server
    is stopped after the process *owner* has ended, never where that is 0.
    """

    name: str
    version: str
    uri: str
    user: str
    password: str
    http: str
    pid: int
    container: str
    owner: int

    @property
    def home(self) -> Path:
        """Its folder: settings, data, logs."""
        return home_of(self.name)


def servers_folder() -> Path:
    """The folder of all servers."""
    return cache_folder() / "servers"


def home_of(name: str) -> Path:
    """The folder of the server called *name*."""
    return servers_folder() / name


def write_record(server: Server) -> None:
    """Keep the record of *server*, for its owner's eyes only: it holds the password."""
    path = server.home / RECORD
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(server), file)


def read_record(name: str) -> Server | None:
    """The record of the server called *name*, None where there is none."""
    try:
        record = json.loads((home_of(name) / RECORD).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return Server(**{field.name: record[field.name] for field in fields(Server)})


def all_records() -> list[Server]:
    """The records of all servers, by name."""
    names = sorted(path.parent.name for path in servers_folder().glob(f"*/{RECORD}"))
    return [server for name in names if (server := read_record(name))]

"""The service: inside the test process with a client for each token, or as a process."""

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import orjson
from anyio.from_thread import BlockingPortal
from fastapi import FastAPI
from fastapi.testclient import TestClient

from contextgraph.config import Settings
from contextgraph.console.routes import add_pages
from contextgraph.model import RawTrajectory
from contextgraph.readers import to_record
from contextgraph.service.app import create_app
from contextgraph.service.operations import TokenScope
from contextgraph.service.service import Limits
from contextgraph.service.tokens import TokenFile

READ_WRITE = (TokenScope.READ, TokenScope.WRITE)


@dataclass(frozen=True, slots=True)
class Served:
    """A running service, the file of its tokens, and the event loop that it runs in."""

    app: FastAPI
    tokens: TokenFile
    portal: BlockingPortal

    def client(
        self, *scopes: TokenScope, tenant: str = "default", source: str = "ci"
    ) -> TestClient:
        """A client with a new token; read and write without *scopes*."""
        _, text = self.tokens.create(scopes or READ_WRITE, tenant, source)
        client = TestClient(self.app, headers={"Authorization": f"Bearer {text}"})
        client.portal = self.portal
        return client


@contextmanager
def served(
    folder: Path,
    limits: Limits | None = None,
    store: str = "",
    auth: tuple[str, str] | None = None,
    **others: Any,
) -> Iterator[Served]:
    """The service of a memory in *folder*, or at *store*, with *others* of the settings."""
    tokens = TokenFile(folder / "tokens.json")
    settings = Settings(store=store or str(folder / "memory.db"), auth=auth, **others)
    app = add_pages(create_app(settings, tokens, limits or Limits()))
    with TestClient(app) as running:  # which starts and ends it
        assert running.portal
        yield Served(app, tokens, running.portal)


def signed_in(service: Served, *scopes: TokenScope) -> TestClient:
    """A browser in which a token with *scopes* was given."""
    client = service.client(*scopes)
    token = client.headers.pop("Authorization").removeprefix("Bearer ")
    assert client.post("/pages/login", data={"token": token}).status_code == 200
    return client


def learn(client: TestClient, *runs: RawTrajectory) -> Any:
    """Learn *runs* and wait for it; the job."""
    lines = b"\n".join(orjson.dumps(to_record(raw)) for raw in runs)
    response = client.post("/v1/learn", params={"wait": 30}, content=lines)
    assert response.status_code in {200, 202}, response.text
    return finished(client, response.json())


def finished(client: TestClient | httpx.Client, job: Any) -> Any:
    """*job* when it is done; a server that makes its indexes may take a minute."""
    while job["state"] != "done":
        job = client.get(f"/v1/learn/{job['job']}", params={"wait": 30}).json()
    return job


@dataclass(frozen=True, slots=True)
class Process:
    """A server process, and a client of it."""

    process: subprocess.Popen[str]
    client: httpx.Client

    def end(self, number: signal.Signals) -> int:
        """Send a signal and wait; the exit code."""
        self.process.send_signal(number)
        return self.process.wait()


@contextmanager
def serving(store: Path, *options: str) -> Iterator[Process]:
    """A server of *store* on a free port of loopback; without *options* it has no tokens."""
    command = [sys.executable, "-m", "contextgraph", "serve", "--store", str(store)]
    with subprocess.Popen(
        [*command, *(options or ["--no-auth"]), "--port", "0", "--json", "--log-level", "warning"],
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        try:
            url = json.loads(process.stdout.readline())["url"]
            with httpx.Client(base_url=url, timeout=60) as client:
                yield Process(process, client)
        finally:
            process.kill()

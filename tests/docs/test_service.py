"""The requests in docs/service.md work as documented."""

import os
import re
import subprocess
from pathlib import Path

import orjson

from contextgraph.config import Settings
from contextgraph.service.app import create_app
from contextgraph.service.methods import METHODS
from contextgraph.service.operations import TokenScope
from contextgraph.service.service import Limits
from contextgraph.service.tokens import TokenFile
from tests.served import serving

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "service.md").read_text(encoding="utf-8")


def commands() -> list[str]:
    """The documented command lines of curl."""
    blocks = "".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)).replace("\\\n", "")
    return [line for line in blocks.splitlines() if line.startswith("curl")]


def test_every_documented_request_is_answered(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    tokens = TokenFile.of(Settings(store=str(store)))
    _, token = tokens.create([TokenScope.READ, TokenScope.WRITE], "default", "docs")
    with serving(store, "--tokens", str(tokens.path)) as server:
        environment = {**os.environ, "URL": str(server.client.base_url), "TOKEN": token}
        answers = [
            subprocess.run(
                ["bash", "-c", line], cwd=ROOT, env=environment, capture_output=True, check=True
            ).stdout
            for line in commands()
        ]

    learned, queried, published, runs = map(orjson.loads, answers)
    assert learned["summary"]["created"] == 1
    assert queried["error"]["error_type"] == "KeyError"
    assert published.keys() == {"playbook"}
    assert len(runs["trajectories"]) == 1


def test_every_request_is_documented() -> None:
    paths = create_app(Settings(), None, Limits()).openapi()["paths"]
    methods = {one.route.split()[1] for one in METHODS.values()}
    of_parts = {path.rpartition("/")[0] for path in methods} - {"/v1"}
    own = [path for path in paths if path.rpartition("/")[0] not in of_parts]
    own = [path for path in own if path not in methods]
    parts = (path.removeprefix("/v1/runs/live/{identity}") for path in own)
    names = (part.removesuffix("/{identity}") for part in parts)

    assert [name for name in names if f"{name}`" not in TEXT and f"{name}/{{" not in TEXT] == []

"""Embeddings through litellm, in an environment of its own, from a server with OpenAI's API."""

import subprocess
from pathlib import Path

from tests.model_server import KEY, Handler, Reply, Server, error, serving
from tests.server import ENVIRONMENT

MEMORY = """
from contextgraph import AgentMemory
from contextgraph.errors import EmbeddingError

with AgentMemory.open(":memory:", embedder="litellm/openai/hashed@32") as memory:
    for text in ("tests run with tox", "the API is frozen"):
        print(memory.notes.remember(text).to_embed)
    print(memory.store.vectors.active_space().name)
    print([(one.note.content, round(one.why["meaning"], 2)) for one in memory.notes.recall("tox")])
    try:
        memory.spaces.reembed("litellm/openai/hashed@31")
    except EmbeddingError as error:
        print(error)
"""


def test_a_memory_is_embedded_by_a_provider_of_litellm(
    litellm_python: Path, tmp_path: Path
) -> None:
    with serving() as server:
        to_embed, frozen, space, found, refused = run(litellm_python, server, tmp_path)
        assert (to_embed, frozen) == ("False", "False")
        assert space == "litellm/openai/hashed@32"
        assert found.startswith("[('tests run with tox', 0.64), ")
        assert "write MODEL@32" in refused
        texts = [text for request in server.requests for text in request["input"]]
        assert texts[:3] == ["tests run with tox", "the API is frozen", "tox"]
        assert server.requests[0]["model"] == "hashed"


def test_a_server_behind_litellm_that_takes_no_lists_is_sent_strings(
    litellm_python: Path, tmp_path: Path
) -> None:
    def refuse(number: int, handler: Handler) -> Reply | None:
        is_list = isinstance(server.requests[number]["input"], list)
        return error(400, "input has to be a string") if is_list else None

    with serving() as server:
        server.fault = refuse
        to_embed, frozen, *_ = run(litellm_python, server, tmp_path)
        assert (to_embed, frozen) == ("False", "False")
        assert "tox" in [request["input"] for request in server.requests]


def test_a_provider_that_refuses_its_key_is_named(litellm_python: Path, tmp_path: Path) -> None:
    def refuse(number: int, handler: Handler) -> Reply:
        return error(401, "no such key")

    with serving() as server:
        server.fault = refuse
        lines = run(litellm_python, server, tmp_path)
        assert lines[0] == "True"
        assert len(server.requests) == 1
        assert "check the key of the provider" in lines[-1]
        assert KEY not in "".join(lines)


def run(python: Path, server: Server, folder: Path) -> list[str]:
    """Return the output of the program MEMORY with the models of *server*."""
    places = {"XDG_CACHE_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
    keys = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
    done = subprocess.run(
        [python, "-c", MEMORY],
        env={**ENVIRONMENT, **places, **keys},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_the_keys_of_a_checkout_are_not_read(litellm_python: Path, tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("PLANTED_API_KEY=planted\n")
    program = (
        "import os\n"
        "from contextgraph.embedding.api import LitellmEndpoint\n"
        "LitellmEndpoint()._open()\n"
        "print(os.environ.get('PLANTED_API_KEY'))"
    )
    result = subprocess.run(
        [litellm_python, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert result.stdout == "None\n"

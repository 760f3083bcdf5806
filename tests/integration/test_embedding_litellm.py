"""Embeddings through litellm, in an environment of its own, from a server with OpenAI's API."""

import json
import subprocess
from pathlib import Path

import pytest

from tests.model_server import KEY, Body, Handler, Reply, error, serving
from tests.server import ENVIRONMENT

# One process has the memories.
pytestmark = pytest.mark.xdist_group("litellm")

# litellm takes seconds to import: one process has three memories, and prints a line for each.
PROGRAM = """
import json
import os
from contextgraph import AgentMemory
from contextgraph.errors import EmbeddingError

for texts in (
    ("tests run with tox", "the API is frozen"),
    ("REFUSED first", "REFUSED then"),
    ("LISTED first", "LISTED then"),
):
    with AgentMemory.open(":memory:", embedder="litellm/openai/hashed@32") as memory:
        to_embed = [memory.notes.remember(text).to_embed for text in texts]
        space = memory.store.vectors.active_space().name
        found = [(one.note.content, one.why["meaning"]) for one in memory.notes.recall("tox")]
        try:
            memory.spaces.reembed("litellm/openai/hashed@31")
        except EmbeddingError as error:
            print(json.dumps([to_embed, space, found, str(error)]))
print(os.environ.get("PLANTED_API_KEY"))
"""


@pytest.fixture(scope="module")
def used(
    mini_swe_agent: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[str], list[Body]]:
    """The output of the program in a checkout with a key, and the requests of its memories.

    The server accepts no key for the texts of the second memory, and no list with those of the
    third.
    """
    folder = tmp_path_factory.mktemp("checkout")
    (folder / ".env").write_text("PLANTED_API_KEY=planted\n")

    def refuse(number: int, handler: Handler) -> Reply | None:
        given = server.requests[number]["input"]
        if isinstance(given, list) and "LISTED" in "".join(given):
            return error(400, "input has to be a string")
        return error(401, "no such key") if "REFUSED" in "".join(given) else None

    with serving(fault=refuse) as server:
        places = {"XDG_CACHE_HOME": str(folder), "XDG_DATA_HOME": str(folder)}
        keys = {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": server.url}
        done = subprocess.run(
            [mini_swe_agent, "-c", PROGRAM],
            env={**ENVIRONMENT, **places, **keys},
            cwd=folder,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines(), server.requests


def test_a_memory_is_embedded_by_a_provider_of_litellm(
    used: tuple[list[str], list[Body]],
) -> None:
    lines, requests = used
    to_embed, space, found, refused = json.loads(lines[0])
    assert to_embed == [False, False]
    assert space == "litellm/openai/hashed@32"
    assert (found[0][0], round(found[0][1], 2)) == ("tests run with tox", 0.64)
    assert "write MODEL@32" in refused
    texts = [text for request in requests for text in request["input"]]
    assert texts[:3] == ["tests run with tox", "the API is frozen", "tox"]
    assert requests[0]["model"] == "hashed"


def test_a_server_behind_litellm_that_takes_no_lists_is_sent_strings(
    used: tuple[list[str], list[Body]],
) -> None:
    lines, requests = used
    to_embed, *_ = json.loads(lines[2])
    assert to_embed == [False, False]
    strings = [one["input"] for one in requests if isinstance(one["input"], str)]
    assert [*dict.fromkeys(strings)] == ["LISTED first", "LISTED then"]


def test_a_provider_that_refuses_its_key_is_named(used: tuple[list[str], list[Body]]) -> None:
    lines, requests = used
    to_embed, *_, refused = json.loads(lines[1])
    assert to_embed[0] is True
    assert ["REFUSED" in "".join(one["input"]) for one in requests].count(True) == 1
    assert "check the key of the provider" in refused
    assert KEY not in lines[1]


def test_the_keys_of_a_checkout_are_not_read(used: tuple[list[str], list[Body]]) -> None:
    lines, _ = used
    assert lines[3:] == ["None"]

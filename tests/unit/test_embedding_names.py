"""Names of embedders."""

import pytest

from contextgraph.errors import SettingsError
from contextgraph.inference.api import RemoteEmbedder, remote_model
from contextgraph.model.values import replace
from contextgraph.system.remote import Budget
from tests.embedders import embedders


@pytest.mark.parametrize(
    ("name", "space"),
    [
        ("openai/text-embedding-3-small", "openai/text-embedding-3-small@1536"),
        ("openai/text-embedding-3-large@256", "openai/text-embedding-3-large@256"),
        ("openai/BAAI/bge-small@384", "openai/BAAI/bge-small@384"),
        ("litellm/voyage/voyage-3@1024", "litellm/voyage/voyage-3@1024"),
        ("local", "local/all-MiniLM-L6-v2-int8@384"),
        ("local/all-MiniLM-L6-v2-int8@384", "local/all-MiniLM-L6-v2-int8@384"),
    ],
)
def test_an_embedder_can_be_created_by_name_and_by_space(name: str, space: str) -> None:
    found = embedders().create(name)
    assert found
    assert found.space == space
    again = embedders().create(space)
    assert again
    assert again.space == space
    if isinstance(found, RemoteEmbedder) and isinstance(again, RemoteEmbedder):
        assert again.model == found.model


def test_tfidf_has_no_embedder_before_it_is_fitted() -> None:
    assert embedders().create("tfidf") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("word2vec", "no embedder 'word2vec'; write tfidf, local"),
        ("tfidf/3f2a90c1b7de@384", "no embedder"),
        ("openai/", "no embedder"),
        (
            "openai/nomic-embed-text",
            "dimensions are unknown; write openai/nomic-embed-text@N",
        ),
        ("litellm/voyage/voyage-3", "unknown; write litellm/voyage/voyage-3@N"),
        ("openai/nomic@many", "'many' is not a number of dimensions"),
        ("openai/text-embedding-3-small@3072", "has 1536 dimensions"),
        ("openai/text-embedding-ada-002@512", "has 1536 dimensions"),
    ],
)
def test_an_unknown_name_is_an_error(name: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        embedders().create(name)


def test_prices_are_those_published_unless_one_is_given() -> None:
    assert remote_model("text-embedding-3-small").cost(1_000_000) == pytest.approx(0.02)
    assert remote_model("text-embedding-3-small", 5.0).cost(1_000_000) == pytest.approx(5)
    assert remote_model("mine@8").price is None


def test_a_cap_needs_a_price() -> None:
    base = embedders()
    capped = replace(base, costs=replace(base.costs, budget=Budget(1.0)))
    assert capped.create("openai/text-embedding-3-small")
    with pytest.raises(SettingsError, match="needs the price of openai/mine@8"):
        capped.create("openai/mine@8")

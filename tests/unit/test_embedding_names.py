"""From the name of an embedder to the embedder."""

from dataclasses import replace

import pytest

from contextgraph.embedding.openai import RemoteEmbedder
from contextgraph.embedding.openai_models import remote_model
from contextgraph.errors import SettingsError
from contextgraph.remote import Budget
from tests.embedders import catalogue


@pytest.mark.parametrize(
    ("name", "space"),
    [
        ("openai/text-embedding-3-small", "openai/text-embedding-3-small@1536"),
        ("openai/text-embedding-3-large@256", "openai/text-embedding-3-large@256"),
        ("openai/BAAI/bge-small@384", "openai/BAAI/bge-small@384"),
        ("local", "local/all-MiniLM-L6-v2-int8@384"),
        ("local/all-MiniLM-L6-v2-int8@384", "local/all-MiniLM-L6-v2-int8@384"),
    ],
)
def test_a_name_means_a_space_and_the_space_means_itself(name: str, space: str) -> None:
    found = catalogue().named(name)
    assert found
    assert found.space == space
    again = catalogue().named(space)
    assert again
    assert again.space == space
    if isinstance(found, RemoteEmbedder) and isinstance(again, RemoteEmbedder):
        assert again.model == found.model


def test_tfidf_has_no_embedder_before_it_is_fitted() -> None:
    assert catalogue().named("tfidf") is None


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("word2vec", "no embedder 'word2vec'; write tfidf, local"),
        ("tfidf/3f2a90c1b7de@384", "no embedder"),
        ("openai/", "no embedder"),
        (
            "openai/nomic-embed-text",
            r"how many dimensions has it\? write openai/nomic-embed-text@N",
        ),
        ("openai/nomic@many", "'many' is no number of dimensions"),
        ("openai/text-embedding-3-small@3072", "gives 1536 numbers"),
        ("openai/text-embedding-ada-002@512", "gives 1536 numbers"),
    ],
)
def test_a_name_that_means_none_is_said_to_be_so(name: str, reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        catalogue().named(name)


def test_prices_are_those_published_unless_one_is_given() -> None:
    assert remote_model("text-embedding-3-small").cost(1_000_000) == pytest.approx(0.02)
    assert remote_model("text-embedding-3-small", 5.0).cost(1_000_000) == pytest.approx(5)
    assert remote_model("mine@8").price is None


def test_a_cap_needs_a_price() -> None:
    base = catalogue()
    capped = replace(base, purse=replace(base.purse, budget=Budget(1.0)))
    assert capped.named("openai/text-embedding-3-small")
    with pytest.raises(SettingsError, match="needs the price of openai/mine@8"):
        capped.named("openai/mine@8")

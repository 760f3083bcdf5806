"""Flags over environment over file over defaults."""

from pathlib import Path

import pytest

from contextgraph.config import Settings, load_settings
from contextgraph.errors import SettingsError


def test_without_anything_the_memory_is_in_the_users_data_directory(tmp_path):
    settings = load_settings({}, tmp_path)
    assert Path(settings.address).parts[-2:] == ("contextgraph", "memory.db")


def test_each_source_overrides_the_one_below_it(tmp_path):
    (tmp_path / "contextgraph.toml").write_text('store = "file.db"\ntenant = "file"\n')
    environment = {"CONTEXTGRAPH_STORE": "environment.db"}
    assert load_settings({}, tmp_path).store == "file.db"
    assert load_settings(environment, tmp_path).store == "environment.db"
    settings = load_settings(environment, tmp_path, store="flag.db")
    assert (settings.store, settings.tenant) == ("flag.db", "file")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('stroe = "x"', "unknown key 'stroe'"),
        ("store = 3", "store must be a string"),
        ("store =", "contextgraph.toml"),
        ('max_cost = "much"', "max_cost must be a number"),
        ("max_cost = true", "max_cost must be a number"),
        ('embedding_api_key = "sk-x"', "unknown key 'embedding_api_key'"),
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_reason(tmp_path, content, reason):
    (tmp_path / "contextgraph.toml").write_text(content)
    with pytest.raises(SettingsError, match=reason):
        load_settings({}, tmp_path)


def test_the_embedder_is_chosen_like_everything_else(tmp_path):
    (tmp_path / "contextgraph.toml").write_text('embedder = "local"\nembedding_price = 2\n')
    environment = {
        "CONTEXTGRAPH_MAX_COST": "0.5",
        "OPENAI_API_KEY": "sk-x",
        "OPENAI_BASE_URL": "http://localhost:1/v1",
    }
    settings = load_settings(environment, tmp_path)
    assert (settings.embedder, settings.embedding_price, settings.max_cost) == ("local", 2, 0.5)
    assert (settings.embedding_api_key, settings.api_url) == ("sk-x", "http://localhost:1/v1")
    assert load_settings(environment, tmp_path, embedder="tfidf").embedder == "tfidf"


def test_a_number_in_the_environment_that_is_none_is_named(tmp_path):
    with pytest.raises(SettingsError, match="CONTEXTGRAPH_MAX_COST: 'much' is no number"):
        load_settings({"CONTEXTGRAPH_MAX_COST": "much"}, tmp_path)


def test_a_flag_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(SettingsError, match="colour"):
        load_settings({}, tmp_path, colour="red")


def test_secrets_do_not_show_when_settings_are_printed():
    settings = Settings(auth=("neo4j", "geheim"), embedding_api_key="geheim")
    assert "geheim" not in repr(settings)

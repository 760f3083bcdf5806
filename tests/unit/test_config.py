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
    ],
)
def test_a_file_that_cannot_be_used_is_named_with_its_reason(tmp_path, content, reason):
    (tmp_path / "contextgraph.toml").write_text(content)
    with pytest.raises(SettingsError, match=reason):
        load_settings({}, tmp_path)


def test_a_flag_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(SettingsError, match="colour"):
        load_settings({}, tmp_path, colour="red")


def test_secrets_do_not_show_when_settings_are_printed():
    settings = Settings(auth=("neo4j", "geheim"), embedding_api_key="geheim")
    assert "geheim" not in repr(settings)

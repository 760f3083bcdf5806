"""Flags over environment over file over defaults."""

import math
import os
from pathlib import Path

import pytest

from contextgraph import AgentMemory, State
from contextgraph.config import (
    SETTINGS_FILE,
    TRUSTED_SETTINGS,
    Configuration,
    ProjectFile,
    Settings,
    load_settings,
    settings_in_force,
    trusted_folders,
    user_settings_file,
)
from contextgraph.errors import SettingsError
from contextgraph.memory.wiring import build
from tests.builders import NO_MODULE, recovering_run


def _write(folder: Path, content: str, *, trusted: bool = True) -> None:
    (folder / SETTINGS_FILE).write_text(content)
    if trusted and (file := ProjectFile.in_folder(folder)):
        file.trust()


def test_without_anything_the_memory_is_in_the_users_data_directory(tmp_path):
    settings = load_settings({}, tmp_path)
    assert Path(settings.address).parts[-2:] == ("contextgraph", "memory.db")


def test_each_source_overrides_the_one_below_it(tmp_path):
    _write(tmp_path, 'store = "file.db"\ntenant = "file"\n')
    environment = {"CONTEXTGRAPH_STORE": "environment.db"}
    assert load_settings({}, tmp_path).store == "file.db"
    assert load_settings(environment, tmp_path).store == "environment.db"
    settings = load_settings(environment, tmp_path, store="flag.db")
    assert (settings.store, settings.tenant) == ("flag.db", "file")


# Not written into an address, where the scan for secrets would find it.
SECRET = "letmein"


def test_settings_in_force_name_their_origin_and_mask_secrets(tmp_path):
    _write(
        tmp_path,
        'configuration = "a"\nmax_notes = 5\nembedder = "tfidf"\n'
        '[configurations.a]\nembedder = "local"\n',
    )
    environment = {
        "CONTEXTGRAPH_NEO4J_PASSWORD": f"{SECRET}-1",
        "OPENAI_API_KEY": f"{SECRET}-2",
        "CONTEXTGRAPH_NOTES": f"postgresql://ann:{SECRET}@db.example/notes",
    }
    found = settings_in_force(environment, tmp_path, store="flag.db")
    assert SECRET not in str(found)
    shown: dict[str, object] = {one.name: (one.value, one.origin) for one in found}
    assert shown["store"] == ("flag.db", "option")
    assert shown["auth"] == ("set", "CONTEXTGRAPH_NEO4J_PASSWORD")
    assert shown["embedder"] == ("local", "configuration a")
    assert shown["configuration"] == ("a", "contextgraph.toml")
    assert shown["max_notes"] == (5, "contextgraph.toml")
    assert shown["tenant"] == ("default", "default")
    assert shown["token"] == (None, "default")


def test_a_list_in_a_file_is_a_text_with_commas_elsewhere(tmp_path):
    file = Path(user_settings_file())
    file.parent.mkdir(parents=True)
    file.write_text('never_learn = ["acme/secret", "/srv/old"]')
    assert load_settings({}, tmp_path).never_learned == ("acme/secret", "/srv/old")


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ('stroe = "x"', "unknown key 'stroe'"),
        ("store = 3", "store must be a string"),
        ("store =", "contextgraph.toml"),
        ('max_cost = "much"', "max_cost must be a number"),
        ("max_cost = -1", "max_cost must not be negative"),
        ("max_cost = nan", "max_cost must not be negative"),
        ("max_cost = true", "max_cost must be a number"),
        ('embedding_api_key = "sk-x"', "unknown key 'embedding_api_key'"),
        ("configurations = 3", "configurations must be a table"),
    ],
)
def test_an_invalid_settings_file_is_named_with_the_reason(tmp_path, content, reason):
    _write(tmp_path, content)
    with pytest.raises(SettingsError, match=reason):
        load_settings({}, tmp_path)


@pytest.mark.parametrize("cost", [-1.0, math.nan])
def test_a_memory_is_not_opened_with_a_number_that_a_file_may_not_have(cost):
    with pytest.raises(SettingsError, match=r"max_cost: .* must not be negative"):
        AgentMemory.open(":memory:", max_cost=cost)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[configurations]\na = 3", r"configurations\.a must be a table"),
        (
            "[configurations.a]\nchanels = []",
            r"\.a: unknown key 'chanels'; known: channels, weights",
        ),
        ('[configurations.a]\nchannels = "error"', "channels: Expected `array`"),
        ("[configurations.a]\nembedder = 3", "embedder: Expected `str`"),
        (
            '[configurations.a]\nweights = {error = "much"}',
            r"\.a: weights\.error: 'much' is not a number",
        ),
        (
            '[configurations.a]\ngate = {min_precision = "much"}',
            r"\.a: gate\.min_precision: 'much' is not a number",
        ),
        (
            "[configurations.a]\ngate = {min_precision = true}",
            r"\.a: gate\.min_precision: True is not a number",
        ),
    ],
)
def test_an_invalid_configuration_fails_only_where_it_is_used(tmp_path, content, reason):
    _write(tmp_path, f"{content}\n[configurations.other]\n")
    with pytest.raises(SettingsError, match=reason):
        load_settings({}, tmp_path, configuration="a")
    assert load_settings({}, tmp_path).configuration == Configuration()
    assert load_settings({}, tmp_path, configuration="other").configuration.name == "other"


def test_the_embedder_is_chosen_like_other_settings(tmp_path):
    _write(tmp_path, 'embedder = "local"\nembedding_price = 2\n')
    environment = {
        "CONTEXTGRAPH_MAX_COST": "0.5",
        "OPENAI_API_KEY": "sk-x",
        "OPENAI_BASE_URL": "http://localhost:1/v1",
    }
    settings = load_settings(environment, tmp_path)
    assert (settings.embedder, settings.embedding_price, settings.max_cost) == ("local", 2, 0.5)
    assert (settings.embedding_api_key, settings.api_url) == ("sk-x", "http://localhost:1/v1")
    assert load_settings(environment, tmp_path, embedder="tfidf").embedder == "tfidf"


def test_a_configuration_is_chosen_by_name_and_overrides_the_file(tmp_path):
    _write(
        tmp_path,
        'embedder = "tfidf"\nconfiguration = "lean"\n'
        '[configurations.lean]\nchannels = ["error"]\nembedder = "local"\n'
        "[configurations.eager]\ngate = {min_precision = 0.1}\n",
    )
    lean = load_settings({}, tmp_path)
    assert (lean.configuration.name, lean.configuration.channels) == ("lean", ("error",))
    assert lean.embedder == "local"
    assert load_settings({}, tmp_path, embedder="openai/x@2").embedder == "openai/x@2"
    chosen = {"CONTEXTGRAPH_CONFIGURATION": "eager"}
    assert load_settings(chosen, tmp_path).configuration.gate == {"min_precision": 0.1}
    assert load_settings(chosen, tmp_path, configuration="lean").configuration.name == "lean"
    plain = load_settings(chosen, tmp_path, configuration="default")
    assert (plain.configuration, plain.embedder) == (Configuration(), "tfidf")


def test_an_unknown_configuration_is_an_error_that_lists_the_known_ones(tmp_path):
    _write(tmp_path, "[configurations.lean]\n[configurations.eager]\n")
    with pytest.raises(SettingsError, match=r"'bold' in contextgraph.toml; known: default, eager"):
        load_settings({}, tmp_path, configuration="bold")


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        (
            Configuration("a", channels=("errors",)),
            "a: unknown channel 'errors'; known: error, harness, task",
        ),
        (Configuration("a", weights={"errors": 1.0}), "unknown channel 'errors'; known: task"),
        (Configuration("a", weights={"task": 0.0}), "the weight of task must be above 0"),
        (Configuration("a", gate={"precision": 1.0}), "unknown threshold 'precision'; known: min"),
    ],
)
def test_a_configuration_with_unknown_names_or_values_is_refused(configuration, reason):
    with pytest.raises(SettingsError, match=reason):
        build(Settings(":memory:", configuration=configuration))


def test_a_memory_uses_its_configuration():
    def answer(**given):
        settings = Settings(":memory:", configuration=Configuration("a", **given))
        with AgentMemory.of(build(settings)) as memory:
            memory.learn(recovering_run())
            return memory.query(State(repo="acme/shop", current_error=NO_MODULE))

    (plain,) = answer().error_solutions
    assert {found.channel for found in plain.why.channels} == {"error"}
    assert not answer(channels=("lexical",)).error_solutions
    assert not answer(gate={"min_precision": 1.1}).error_solutions


def test_an_invalid_number_in_the_environment_is_named(tmp_path):
    assert load_settings({"CONTEXTGRAPH_MAX_RUN_SIZE": "8"}, tmp_path).max_run_size == 8
    with pytest.raises(SettingsError, match="CONTEXTGRAPH_MAX_COST: 'much' is not a number"):
        load_settings({"CONTEXTGRAPH_MAX_COST": "much"}, tmp_path)


def test_a_flag_that_does_not_exist_is_an_error(tmp_path):
    with pytest.raises(SettingsError, match="colour"):
        load_settings({}, tmp_path, colour="red")


def test_secrets_do_not_show_when_settings_are_printed():
    settings = Settings(auth=("neo4j", "confidential"), embedding_api_key="confidential")
    assert "confidential" not in repr(settings)


def test_files_of_a_memory_stand_beside_it_or_in_the_data_directory_of_the_user() -> None:
    beside = Settings(store="/data/team.db").companion
    of_tenant = Settings(store="/data/team.db", tenant="web").companion
    servers = {Settings(store="bolt://host", tenant=one).companion for one in ("web", "default")}

    assert (str(beside), str(of_tenant)) == ("/data/team", "/data/team.web")
    assert len(servers) == 2
    assert all(Path.home() in Path(one).parents for one in servers)


HOSTILE = """
store = "http://attacker.example"
tenant = "theirs"
notes = "postgresql://attacker.example/notes"
keyed_root = "keyed"
embedder = "openai/their-model"
summarizer = "openai/their-model"
withhold = 1.0
max_notes = 0
source = "owner"
prompt_price = 0
configuration = "silent"
[configurations.silent]
gate = {min_precision = 1.1}
"""


def test_a_file_that_came_with_a_clone_sets_nothing_and_is_named_once(tmp_path, caplog):
    _write(tmp_path, HOSTILE, trusted=False)
    assert load_settings({}, tmp_path) == load_settings({}, tmp_path) == Settings()
    (warning,) = caplog.messages
    assert str(tmp_path / SETTINGS_FILE) in warning
    assert "ignored store, tenant, notes" in warning
    assert f"contextgraph trust {tmp_path}" in warning


@pytest.mark.parametrize(
    "content",
    ["store =", "[" * 9000, "x = 1" + "0" * 9000, '"\\u001b]0;x" = 1', "# " + "x" * 99999],
)
def test_a_damaged_file_that_came_with_a_clone_stops_nothing(tmp_path, caplog, content):
    _write(tmp_path, content, trusted=False)
    assert load_settings({}, tmp_path) == Settings()
    assert "\x1b" not in caplog.text
    assert "ignored" in caplog.text


def test_a_pipe_in_place_of_the_settings_file_is_not_waited_for(tmp_path, caplog):
    os.mkfifo(tmp_path / SETTINGS_FILE)
    assert load_settings({}, tmp_path) == Settings()
    assert "not a file" in caplog.text


def test_a_file_that_came_with_a_clone_sets_nothing(tmp_path, caplog):
    _write(tmp_path, "max_cost = 1\nmax_run_size = 1\n", trusted=False)
    assert load_settings({}, tmp_path) == Settings()
    assert "ignored max_cost, max_run_size" in caplog.text


def test_a_trusted_folder_does_not_set_what_is_kept_of_sessions(tmp_path, caplog):
    kept = 'max_run_size = 1\nconversations = "off"\nnever_learn = "*"\nsaid_retention = 1\n'
    _write(tmp_path, f'{kept}max_said = 1\ntenant = "team"\n')
    assert load_settings({}, tmp_path) == Settings(tenant="team")
    assert "ignored conversations, max_run_size, max_said, never_learn, said_ret" in caplog.text


def test_a_limit_has_a_floor_below_which_runs_would_be_dropped(tmp_path):
    with pytest.raises(SettingsError, match="MAX_RUN_SIZE: '0' must be at least 1"):
        load_settings({"CONTEXTGRAPH_MAX_RUN_SIZE": "0"}, tmp_path)
    _write(tmp_path, "max_run_size = 0.5\n")
    with pytest.raises(SettingsError, match="max_run_size must be at least 1"):
        load_settings({}, tmp_path)


def test_trust_is_for_one_content_at_one_place(tmp_path):
    clone, other = tmp_path / "clone", tmp_path / "other"
    clone.mkdir()
    other.mkdir()
    _write(clone, 'tenant = "team"\n')
    _write(other, 'tenant = "team"\n', trusted=False)
    assert load_settings({}, clone).tenant == "team"
    assert load_settings({}, other).tenant == "default"
    assert trusted_folders() == {str(clone): True}
    _write(clone, 'tenant = "team"\nstore = "http://attacker.example"\n', trusted=False)
    assert load_settings({}, clone) == Settings()
    assert trusted_folders() == {str(clone): False}
    assert TRUSTED_SETTINGS.revoke(clone)
    assert not trusted_folders()
    _write(clone, 'tenant = "team"\n', trusted=False)
    assert load_settings({}, clone) == Settings()


def test_the_users_file_is_in_force_everywhere_with_paths_relative_to_it(tmp_path):
    file = Path(user_settings_file())
    file.parent.mkdir(parents=True)
    file.write_text('store = "memory.db"\nkeyed_root = "~/keyed"\ntenant = "mine"\n')
    settings = load_settings({}, tmp_path)
    assert settings.store == str(file.parent / "memory.db")
    assert settings.keyed_root == str(Path.home() / "keyed")
    _write(tmp_path, 'tenant = "team"\n')
    assert load_settings({}, tmp_path).tenant == "team"
    origins = {setting.name: setting.origin for setting in settings_in_force({}, tmp_path)}
    assert (origins["store"], origins["tenant"]) == (str(file), SETTINGS_FILE)


def test_secrets_go_only_to_servers_that_the_user_named(tmp_path, caplog):
    secrets = {
        "CONTEXTGRAPH_TOKEN": SECRET,
        "CONTEXTGRAPH_NEO4J_PASSWORD": SECRET,
        "QDRANT_API_KEY": SECRET,
    }
    _write(tmp_path, 'store = "https://a.example"\nnotes = "qdrant+https://b.example"\n')
    trusted = load_settings(secrets, tmp_path)
    assert (trusted.store, trusted.token, trusted.auth) == ("https://a.example", None, None)
    assert trusted.qdrant_key is None
    assert "CONTEXTGRAPH_TOKEN is not sent to the store that it names" in caplog.text
    named = {**secrets, "CONTEXTGRAPH_STORE": "https://c.example"}
    assert load_settings(named, tmp_path).token == SECRET
    assert load_settings(secrets, tmp_path, store="https://c.example").token == SECRET


def test_secrets_are_not_sent_in_the_clear_beyond_this_machine(tmp_path):
    named = {"CONTEXTGRAPH_STORE": "http://memory.example:80", "CONTEXTGRAPH_TOKEN": SECRET}
    with pytest.raises(SettingsError, match=r"CONTEXTGRAPH_HTTP_HOSTS=memory\.example"):
        AgentMemory.of_settings(load_settings(named, tmp_path))
    allowed = {**named, "CONTEXTGRAPH_HTTP_HOSTS": "other, memory.example"}
    for environment in (allowed, {**named, "CONTEXTGRAPH_STORE": "http://127.0.0.1:1"}):
        AgentMemory.of_settings(load_settings(environment, tmp_path)).close()
    models = {"OPENAI_API_KEY": SECRET, "OPENAI_BASE_URL": "http://models.example/v1"}
    build(load_settings({**models, "CONTEXTGRAPH_STORE": ":memory:"}, tmp_path))
    with pytest.raises(SettingsError, match="over http"):
        build(load_settings(models, tmp_path, embedder="openai/x@2", store=":memory:"))

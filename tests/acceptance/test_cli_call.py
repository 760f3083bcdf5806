"""``contextgraph call``: names, arguments, values and exit codes."""

from pathlib import Path

import pytest

from contextgraph.cli.call import callable_operations
from tests.acceptance.command_line import call, contextgraph

OPERATIONS = callable_operations()


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "team.db"


def test_all_operations_are_listed_with_their_arguments() -> None:
    lines = contextgraph("call", "--list").out.splitlines()

    assert [line.split()[0] for line in lines] == sorted(OPERATIONS)
    assert "outcome instance_id= solved= [agent=] [run=]" in lines


@pytest.mark.parametrize("name", OPERATIONS)
def test_each_operation_and_argument_is_described(name: str) -> None:
    result = contextgraph("call", name, "--list")

    first, _, summary, *lines = result.out.splitlines()
    assert result.code == 0
    assert first.startswith(name)
    assert summary
    fields = OPERATIONS[name].arguments.model_fields
    assert all(any(line.startswith(f"  {field}") for line in lines) for field in fields)


def test_a_dot_may_stand_between_a_noun_and_its_verb() -> None:
    dotted = contextgraph("call", "repositories.join", "--list")

    assert dotted == contextgraph("call", "repositories_join", "--list")
    assert dotted.out.startswith("repositories_join former= now=\n")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (("remembr",), "No operation 'remembr'. Did you mean 'remember'?"),
        (("zzz",), "No operation 'zzz'. --list names them all."),
        ((), "name an operation"),
        (("remember", "contents=x"), "no argument 'contents'. Did you mean 'content'?"),
        (("remember", "zzz=x"), "no argument 'zzz'. It has content, source, repo"),
        (("remember", "CI uses tox"), "'CI uses tox' is not ARGUMENT=VALUE"),
        (("remember",), "content: Field required"),
        (
            ("recall", "question=x", "limit=many"),
            "a valid integer, unable to parse string as an integer, got 'many'",
        ),
        (("recall", "question=x", "limit=-1"), "limit: Input should be greater than or equal to 0"),
        (("recall", "question=a", "question=b"), "given more than once"),
        (("outcome", "instance_id=a", "solved=maybe"), "solved: Input should be a valid boolean"),
        (("remember", "content=@none.txt"), "none.txt cannot be read"),
        (("start",), "No operation 'start'."),
    ],
)
def test_wrong_usage_is_named(store: Path, given: tuple[str, ...], message: str) -> None:
    result = contextgraph("call", *given, "--store", store)

    assert result.code == 2
    assert message in " ".join(result.err.split())
    assert not store.exists()


def test_a_value_is_text_or_json_or_the_content_of_a_file(store: Path, tmp_path: Path) -> None:
    file = tmp_path / "note.txt"
    file.write_text('"deploy" on Monday\n')
    texts = (f"@{file}", "@@ann reviews = always", "5", '"quoted"')
    for text in texts:
        assert call("remember", store, content=text, tags=["a", "b"]).code == 0
    call("remember", store, content="lists are JSON, too", tags=["c", "d"])
    assert (
        contextgraph("call", "remember", "content=x", 'tags=["c","d"]', "--store", store).code == 0
    )

    notes = {note["content"]: note["tags"] for note in call("notes", store).records}
    assert notes.keys() == {
        '"deploy" on Monday',
        "@ann reviews = always",
        "5",
        '"quoted"',
        "lists are JSON, too",
        "x",
    }
    assert notes["x"] == notes["lists are JSON, too"] == ["c", "d"]


@pytest.mark.parametrize("wrong", ["{}", "contents={}", "{}=x"])
def test_a_secret_in_the_wrong_place_is_not_repeated(store: Path, wrong: str) -> None:
    secret = "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    result = contextgraph("call", "remember", wrong.format(secret), "--store", store)

    assert (result.code, secret in result.err + result.out) == (2, False)


def test_null_stands_for_an_argument_that_is_not_given(store: Path) -> None:
    call("remember", store, content="CI uses tox", repo="acme/shop")

    assert len(call("recall", store, question="CI", limit=None).records) == 1


def test_what_looks_like_an_option_is_a_value(store: Path) -> None:
    result = contextgraph("call", "remember", "content=--no-verify is banned", "--store", store)

    assert (result.code, result.records[0]["status"]) == (0, "created")


def test_a_server_that_is_away_ends_with_its_own_code() -> None:
    assert call("sources", "http://127.0.0.1:9").code == 4


@pytest.mark.parametrize("name", ["consolidate", "rebuild", "reembed", "maintain", "report"])
def test_operations_that_change_a_memory_create_none(store: Path, name: str) -> None:
    given = {"context": "ctx_1", "helped": True} if name == "report" else {}
    result = call(name, store, **given)

    assert (result.code, f"no memory at {store}" in result.err) == (1, True)
    assert not store.exists()


def test_what_is_not_named_cannot_be_forgotten(store: Path) -> None:
    call("remember", store, content="CI uses tox")

    nothing, unknown = call("forget", store), call("forget", store, trajectory_ids=["trj_1"])

    assert (nothing.code, unknown.code) == (1, 1)
    assert "name what to forget: trajectory_ids, notes, sessions" in nothing.err
    assert "nothing of that is known" in unknown.err


def test_formats_are_listed() -> None:
    found = call("formats").records
    by_name = {one["name"]: one for one in found}

    assert by_name["cursor"]["experimental"]
    assert not by_name["claude-code"]["experimental"]
    assert all(one["recognised_by"] and one["keeps"] for one in found)


def test_the_settings_in_force_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_WITHHOLD", "0.1")
    records = call("config_show").records

    withhold = {"name": "withhold", "value": 0.1, "origin": "CONTEXTGRAPH_WITHHOLD"}
    assert withhold in records
    assert {"name": "token", "value": None, "origin": "default"} in records

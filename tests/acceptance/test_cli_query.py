"""``contextgraph query`` and ``report``."""

import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import orjson
import pytest

from contextgraph import AgentMemory
from contextgraph.model import Action, RawTrajectory, Step
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import NO_MODULE, recovering_run

KEYS = {
    "key",
    "id",
    "suggestions",
    "error_solutions",
    "similar_cases",
    "warnings",
    "degraded",
    "text",
}
SOLUTION_KEYS = {
    "fragment_id",
    "trajectory_id",
    "instance_id",
    "repo",
    "error_type",
    "signature_level",
    "actions",
    "description",
    "score",
    "why",
}


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A memory of three runs that met the same error."""
    runs = write_runs(tmp_path / "runs.jsonl", [recovering_run(number) for number in (1, 2, 3)])
    assert contextgraph("learn", runs, "--store", tmp_path / "memory.db").code == 0
    return tmp_path / "memory.db"


def test_an_error_that_begins_with_a_hyphen_is_no_option(store: Path) -> None:
    result = contextgraph("query", "-bash: tox: command not found", "--store", store, "--json")
    assert (result.code, len(result.records)) == (0, 1)
    assert "No such option" in contextgraph("query", "--tox", "--store", store).err


def test_an_error_that_was_cleared_before_is_answered_with_the_remedy(store: Path) -> None:
    result = contextgraph(
        "query", "--store", store, "--repo", "acme/shop", "--error", NO_MODULE, "--json"
    )

    (answer,) = result.records
    assert result.code == 0
    assert answer.keys() >= KEYS
    assert answer["error_solutions"][0].keys() >= SOLUTION_KEYS
    assert answer["error_solutions"][0]["error_type"] == "ModuleNotFoundError"
    assert answer["error_solutions"][0]["why"]["counts"]
    assert answer["id"] in answer["text"]


def test_people_see_why_a_lesson_is_not_shown(tmp_path: Path) -> None:
    rules = (
        "Never read a refund from refund_store.py.",
        "Never run `npm install`, always `pnpm install`.",
        "We keep the refunds of customers in cents, presumably.",
        "Never edit files in gen/ by hand.",
    )
    store = tmp_path / "memory.db"
    with AgentMemory.open(store) as memory:
        for number, rule in enumerate(rules):
            step = Step(0, "Done.", Action("bash", f"ls {number}"), "ok", user_message=rule)
            name = f"part {number}"
            memory.learn(RawTrajectory("claude-code", name, "acme/shop", name, (step,)))

    def explained(option: str, value: str) -> str:
        at = ("--repo", "acme/shop", "--store", store, "--no-record")
        assert "Lessons found" not in contextgraph("query", option, value, *at).out
        return " ".join(contextgraph("query", option, value, "--why", *at).out.split())

    task = explained("--task", "Change how refunds of customers are kept: in euros")
    assert "in cents, waits for a review" in task
    assert "refund_store.py. below 0." in task
    edit = explained("--open-file", "refund_store.py")
    assert "Never read a refund from said before an edit about it" in edit
    assert "gen/ by hand. said before any edit of the file" in explained("--open-file", "gen/a.py")
    assert "said before the command" in explained("--last-action", "npm install left")


def test_people_see_the_remedy_and_why_it_is_shown(store: Path) -> None:
    asked = ("query", "--store", store, "--repo", "acme/shop", "--error", NO_MODULE)
    result = contextgraph(*asked)

    assert "PYTHONPATH=lib python reproduce.py" in result.out
    assert "3 of 3 tasks here, worked in 3 runs in all" in result.out
    assert len(result.out.splitlines()) <= 10
    details = " ".join(contextgraph(*asked, "--details").out.split())
    assert "why: this repository" in details
    # Runs did it at once: no reason to interrupt an agent, but a person asked.
    assert "spares 0.0 steps" in details


def test_a_silence_is_explained_by_its_step_and_reason(store: Path) -> None:
    tried = ("--last-action", "PYTHONPATH=lib python reproduce.py")
    asked = ("query", NO_MODULE, "--store", store, "--repo", "acme/shop", *tried)
    result, explained = contextgraph(*asked), contextgraph(*asked, "--why")

    assert " ".join(result.out.split()) == (
        "nothing useful known for ModuleNotFoundError: 1 remedy found and not shown: "
        "the run tried it, and got no further"
    )
    # What was tried has no chance, and is near to nothing.
    assert "nearest to being shown" not in explained.out
    assert re.search(r"1 +found +the run tried it, and got no further", explained.out)
    details = contextgraph(*asked, "--why", "--details").out
    assert re.search(r"set `PYTHONPATH=lib`.*\n.*step 'found': the run tried it", details)
    assert re.search(r"the run tried it, and got no\s+further\n +3 runs, one of ", details)


def test_people_see_the_rules_that_an_agent_is_told(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    rule = "We should always run the linter over the whole project."
    sessions = [
        RawTrajectory(
            "claude-code",
            name,
            "acme/shop",
            f"Task {name}",
            (Step(0, "", Action("bash", "make"), "ok", user_message=text),),
        )
        for name, text in {"a": rule, "b": f"Please, {rule}", "c": rule}.items()
    ]
    contextgraph("learn", write_runs(tmp_path / "runs.jsonl", sessions), "--store", store)
    asked = ("query", "--store", store, "--repo", "acme/shop", "--task", "Add a discount")

    for details in ((), ("--details",)):
        shown = " ".join(contextgraph(*asked, *details).out.split())
        assert f'"{rule}" (said in 3 sessions)' in shown


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ("gone astray", ": no error is recognised in the text"),
        ("FrobnicationFault: gone astray", " for FrobnicationFault: 1 remedy found and not shown"),
    ],
)
def test_an_unknown_error_is_answered_with_nothing(store: Path, error: str, reason: str) -> None:
    result = contextgraph("query", "--store", store, "--error", error)

    assert result.code == 0
    assert result.out.startswith(f"nothing useful known{reason}")


def test_a_question_is_answered_by_the_sessions_that_speak_of_it(store: Path) -> None:
    asked = ("query", "--store", store, "where are tariffs looked up")
    found = contextgraph(*asked)
    searched = contextgraph(
        "search", "--store", store, "where are tariffs looked up", "--limit", "5"
    )
    assert found.code == 0
    assert found.out == searched.out != ""
    (record,) = contextgraph(*asked, "--json").records
    assert record["found"]
    assert record["found"][0]["session"]
    (record,) = contextgraph("query", "--store", store, "--error", "gone astray", "--json").records
    assert "found" not in record
    silent = contextgraph("query", "--store", store, "xyzzy plugh").out
    assert silent == "nothing useful known: no session, lesson or note is about it\n"


def test_an_empty_answer_names_a_repository_that_is_not_in_the_memory(store: Path) -> None:
    command = ("query", "--store", store, "--error", "FrobnicationFault: gone astray", "--repo")

    assert (
        "no session of the repository acme/shoq; nearest: acme/shop"
        in contextgraph(*command, "acme/shoq").out
    )
    assert "no session of" not in contextgraph(*command, "ACME/shop").out


def test_an_error_is_an_argument(store: Path) -> None:
    result = contextgraph("query", NO_MODULE, "--store", store, "--repo", "acme/shop", "--json")

    assert result.records[0]["error_solutions"]


def test_an_error_can_be_piped_in(store: Path) -> None:
    result = contextgraph(
        *("query", "--store", store, "--repo", "acme/shop", "--error", "-", "--json"),
        stdin=NO_MODULE.encode(),
    )

    assert result.records[0]["error_solutions"]


def test_a_state_can_be_piped_in_as_json(store: Path) -> None:
    state = {"repo": "acme/shop", "current_error": NO_MODULE, "phase": "testing", "tools": ["bash"]}

    result = contextgraph("query", "-", "--store", store, "--json", stdin=orjson.dumps(state))

    assert result.records[0]["error_solutions"]


def test_a_batch_is_answered_in_order_with_its_keys(store: Path, tmp_path: Path) -> None:
    states = [
        {"key": "b", "repo": "acme/shop", "current_error": NO_MODULE},
        {"key": 7, "current_error": "FrobnicationFault: gone astray"},
        {"repo": "acme/shop", "current_error": NO_MODULE, "phase": None},
    ]
    batch = tmp_path / "states.jsonl"
    batch.write_bytes(b"\n\n".join(map(orjson.dumps, states)))

    result = contextgraph("query", "--batch", batch, "--store", store, "--json")

    assert result.code == 0
    assert [answer["key"] for answer in result.records] == ["b", 7, None]
    assert [bool(answer["error_solutions"]) for answer in result.records] == [True, False, True]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"current_eror": "x"}', "unknown key 'current_eror'"),
        (b'{"phase": "dreaming"}', "phase: Invalid enum value 'dreaming'; known: understanding, "),
        (b'{"tools": "bash"}', "tools: Expected `array`, got `str`"),
        (b'{"repo": 7}', "repo: Expected `str`, got `int`"),
        (b'["repo"]', "a state is a JSON object"),
        (b'{"repo": ', "not JSON"),
    ],
)
def test_an_invalid_state_is_reported_with_its_line(store: Path, line: bytes, reason: str) -> None:
    result = contextgraph(
        *("query", "--batch", "-", "--store", store, "--json"),
        stdin=b'{"repo": "acme/shop"}\n' + line,
    )

    assert result.code == 1
    assert len(result.records) == 1
    assert result.err.startswith(f"contextgraph: standard input: line 2: {reason}")


def test_runs_of_an_excluded_instance_are_ignored(tmp_path: Path) -> None:
    store = tmp_path / "memory.db"
    contextgraph("learn", write_runs(tmp_path / "a.jsonl", [recovering_run()]), "--store", store)
    state = {"repo": "acme/shop", "current_error": NO_MODULE, "instance_id": "acme__shop-1"}
    query = ("query", "-", "--store", store, "--json")

    seen = contextgraph(*query, stdin=orjson.dumps(state))
    named = contextgraph(*query, "--exclude-instance", "acme__shop-1", stdin=orjson.dumps(state))
    same = contextgraph(*query, "--exclude-instance", "same", stdin=orjson.dumps(state))

    assert seen.records[0]["error_solutions"]
    assert not named.records[0]["error_solutions"]
    assert not same.records[0]["error_solutions"]


def test_runs_newer_than_the_given_time_are_ignored(store: Path) -> None:
    query = ("query", "--store", store, "--repo", "acme/shop", "--error", NO_MODULE, "--json")

    assert not contextgraph(*query, "--as-of", "2020-01-31").records[0]["error_solutions"]
    assert contextgraph(*query, "--as-of", "2999-01-31T12:00:00").records[0]["error_solutions"]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("-", "--repo", "acme/shop"),
        ("--batch", "none.jsonl"),
        ("README.md",),
        ("KeyError: 'a'", "--error", "KeyError: 'b'"),
        ("--repo", "acme/shop", "--phase", "dreaming"),
        ("--repo", "acme/shop", "--limit", "0"),
        ("--repo", "acme/shop", "--as-of", "someday"),
        ("--no-such-flag",),
    ],
)
def test_wrong_usage_has_its_own_exit_code(store: Path, arguments: tuple[str, ...]) -> None:
    result = contextgraph("query", "--store", store, *arguments)

    assert result.code == 2
    assert result.out == ""


@pytest.mark.parametrize(
    "command",
    [
        ("query", "--repo", "acme/shop"),
        ("query", "--repo", "acme/shop", "--no-record"),
        ("stats",),
        ("forget", "--all", "--yes"),
    ],
)
def test_commands_that_need_a_memory_never_create_one(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    store = tmp_path / "none" / "memory.db"

    result = contextgraph(*command, "--store", store)

    assert result.code == 1
    assert result.out == ""
    assert f"no memory at {store}" in result.err
    assert "learn something first" in result.err
    assert not store.parent.exists()


# As one in a folder of somebody else: the system refuses to look at it.
UNREADABLE = "x" * 300


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (("query", "x", "--store", UNREADABLE), 4),
        (("learn", "runs", "--store", UNREADABLE), 4),
        (("serve", "--store", UNREADABLE), 4),
        (("inspect", UNREADABLE), 1),
        (("inspect", f"\x1b[31m{UNREADABLE}"), 1),
        (("import", UNREADABLE, "--store", "memory.db"), 1),
    ],
)
def test_a_file_that_may_not_be_read_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], code: int
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "runs").mkdir()

    result = contextgraph(*command)

    assert (result.code, result.out) == (code, "")
    assert re.fullmatch(rf"contextgraph: {UNREADABLE}.*: File name too long\n", result.err)


def test_a_memory_of_another_version_is_not_served(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute("PRAGMA user_version = 22")

    result = contextgraph("serve", "--no-auth", "--store", store)

    assert (result.code, result.out) == (1, "")
    assert "has schema 22" in result.err
    assert "export it with the version that wrote it" in result.err


def test_the_environment_names_the_memory(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTGRAPH_STORE", str(store))

    result = contextgraph("query", "--repo", "acme/shop", "--error", NO_MODULE, "--json")

    assert result.records[0]["error_solutions"]


def test_tenants_do_not_see_one_another(store: Path) -> None:
    query = ("query", "--store", store, "--repo", "acme/shop", "--error", NO_MODULE, "--json")

    assert not contextgraph(*query, "--tenant", "other").records[0]["error_solutions"]


def error_query(store: Path, *options: str) -> dict[str, Any]:
    """The answer about the error that all runs of *store* cleared."""
    arguments = ("--repo", "acme/shop", "--error", NO_MODULE, "--json", *options)
    answer: dict[str, Any]
    (answer,) = contextgraph("query", "--store", store, *arguments).records
    return answer


def test_the_outcome_of_an_answer_can_be_reported_once(store: Path) -> None:
    context = error_query(store)["id"]

    reported, again = (call("report", store, context=context, helped=True) for _ in range(2))

    assert reported.code == 0
    assert reported.records == [
        {"context": context, "helped": True, "item": None, "recorded": True}
    ]
    assert (again.code, again.records[0]["recorded"]) == (1, False)


def test_advice_that_keeps_hurting_is_not_shown_any_more(store: Path) -> None:
    for _ in range(8):
        answer = error_query(store)
        if not answer["error_solutions"]:
            break
        assert call("report", store, context=answer["id"], helped=False).code == 0
    assert not error_query(store)["error_solutions"]


def test_an_answer_that_was_not_recorded_cannot_be_reported(store: Path) -> None:
    context = error_query(store, "--no-record")["id"]

    result = call("report", store, context=context, helped=True)

    assert result.code == 1
    assert result.records == [{"context": context, "helped": True, "item": None, "recorded": False}]


def test_reporting_an_unknown_context_is_an_error(store: Path) -> None:
    result = call("report", store, context="ctx_unknown", helped=False)

    assert (result.code, result.records[0]["recorded"]) == (1, False)


def test_a_report_needs_an_outcome(store: Path) -> None:
    result = call("report", store, context="ctx_unknown")

    assert result.code == 2
    assert "helped: Field required" in result.err


def test_an_answer_that_cannot_be_recorded_is_given(store: Path) -> None:
    with closing(sqlite3.connect(store)) as connection:
        connection.execute(
            "CREATE TRIGGER refuse BEFORE INSERT ON context BEGIN SELECT RAISE(ABORT, 'no'); END"
        )
    result = contextgraph(
        "query", "--store", store, "--repo", "acme/shop", "--error", NO_MODULE, "--json"
    )
    assert result.code == 0
    assert result.records[0]["error_solutions"]
    assert "not recorded" in result.err

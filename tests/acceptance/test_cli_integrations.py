"""``contextgraph hook``, ``integrations`` and ``log``, as an agent and its user run them."""

import codecs
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from html import unescape
from io import BytesIO
from itertools import permutations
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest

from contextgraph import AgentMemory
from contextgraph.agents.commented_json import plain
from contextgraph.agents.hook import HookEvent, answer, headlines
from contextgraph.agents.hook_files import HookFiles, Queue
from contextgraph.agents.install import hook_command
from contextgraph.config import Settings
from contextgraph.model import Action, Outcome, RawTrajectory, RunFilter, Step
from contextgraph.model.values import replace
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import NO_MODULE, detouring_run, run

TOKEN = "ghp_" + "a1B2c3D4e5F6" * 3
LOOK = ("ls", "a.py\nb.py", 0)
REMEDY = "PYTHONPATH=lib python reproduce.py"


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A memory of three runs that met the same error, with hooks."""
    path = tmp_path / "memory.db"
    learn(path, [detouring_run(number) for number in (1, 2, 3)])
    assert contextgraph("integrations", "install", "claude-code", "--store", path).code == 0
    return path


NO_PYTEST = "/usr/bin/python: No module named pytest"
RUN_TESTS = [
    ("python -m pytest tests", NO_PYTEST, 1),
    ("python tests/runtests.py tariffs", "Ran 4 tests in 0.1s\n\nOK", 0),
]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A checkout of the repository of these runs."""
    folder = tmp_path / "checkout"
    for name in ("lib", "tests"):
        (folder / name).mkdir(parents=True)
    (folder / "b.py").touch()
    (folder / "tests/runtests.py").touch()
    for command in (["init", "-q"], ["remote", "add", "origin", "git@github.com:acme/shop.git"]):
        subprocess.run(["git", "-C", folder, *command], check=True)
    return folder


def learn(store: Path, runs: Sequence[Any]) -> None:
    written = write_runs(store.with_name("runs.jsonl"), runs)
    assert contextgraph("learn", written, "--store", store).code == 0


def failure(project: Path, **fields: object) -> dict[str, object]:
    """The event of a command that failed, as Claude Code writes it."""
    return {
        "session_id": "5f0c",
        "cwd": str(project),
        "hook_event_name": "PostToolUseFailure",
        "tool_name": "Bash",
        "tool_input": {"command": "python reproduce.py"},
        "error": f"Exit code 1\n{NO_MODULE}",
        **fields,
    }


def command(project: Path, line: str, **fields: object) -> dict[str, object]:
    """The event before Claude Code runs *line*."""
    event = failure(project, hook_event_name="PreToolUse", tool_input={"command": line}, **fields)
    return {name: value for name, value in event.items() if name != "error"}


def started(project: Path, **fields: object) -> dict[str, object]:
    """The event of a session that starts."""
    event = {"hook_event_name": "SessionStart", "session_id": "5f0c", "cwd": str(project)}
    return {**event, "source": "startup", **fields}


def prompt(project: Path, text: str, **fields: object) -> dict[str, object]:
    """The event of a prompt, as Claude Code writes it."""
    return started(project, hook_event_name="UserPromptSubmit", prompt=text, **fields)


def shown(event: dict[str, object], store: Path) -> str:
    """Return what the agent is shown at *event*."""
    output = answer(json.dumps(event), str(store))
    return str(json.loads(output)["hookSpecificOutput"]["additionalContext"]) if output else ""


def given(store: Path) -> list[dict[str, Any]]:
    """Return what `receipt` lists."""
    (record,) = contextgraph("receipt", "--store", store, "--json").records
    items: list[dict[str, Any]] = record["items"]
    return items


@pytest.mark.parametrize("mark", [b"", codecs.BOM_UTF8])
def test_a_failed_command_is_answered_with_the_remedy_in_a_process_of_its_own(
    store: Path, project: Path, mark: bytes
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "contextgraph", "hook", "--store", store],
        input=mark + json.dumps(failure(project)).encode(),
        capture_output=True,
        check=True,
    )

    output = json.loads(done.stdout)["hookSpecificOutput"]
    assert output["hookEventName"] == "PostToolUseFailure"
    assert REMEDY in output["additionalContext"]
    assert not done.stderr


def test_what_people_decided_is_said_at_a_prompt_and_before_an_edit(
    tmp_path: Path, project: Path
) -> None:
    decided = "Never send more than 640 rows in one batch of export.py, their importer drops them."
    step = Step(0, "How many rows fit in export.py?", Action("", ""), None, user_message=decided)
    task = "The export sends too many rows"
    store = tmp_path / "decided.db"
    learn(store, [RawTrajectory("claude-code", "a", "acme/shop", task, (step,))])
    assert contextgraph("integrations", "install", "claude-code", "--store", store).code == 0
    asked = prompt(project, "The export batch has too many rows again, their importer drops rows")
    edited = {"tool_name": "Edit", "tool_input": {"file_path": "export.py", "old_string": "a"}}
    edit = {**started(project), **edited, "hook_event_name": "PreToolUse", "session_id": "6a"}

    assert not shown(prompt(project, "Thanks, what time is it?"), store)
    assert decided in shown(asked, store)
    assert not shown(asked, store)
    assert decided in shown(edit, store)


DECIDED = "Never send more than 640 rows in one batch of export.py, their importer drops them."


@pytest.fixture
def decided(tmp_path: Path, project: Path) -> Path:
    """A memory with a decision of people, of which a hook has spoken."""
    step = Step(0, "How many rows fit in export.py?", Action("", ""), None, user_message=DECIDED)
    store = tmp_path / "decided.db"
    task = "The export sends too many rows"
    learn(store, [RawTrajectory("claude-code", "a", "acme/shop", task, (step,))])
    assert contextgraph("integrations", "install", "claude-code", "--store", store).code == 0
    asked = prompt(project, "The export batch has too many rows again, their importer drops rows")
    assert "640 rows" in shown(asked, store)
    return store


def test_a_decision_about_a_deleted_file_is_silent_in_the_next_session(
    tmp_path: Path, project: Path
) -> None:
    names = ("pkg/a/b.py", "pkg/a/c.py", "gen/d.py", "top.py", "lib/e.py", "f.py")
    subjects = ("tariffs", "vouchers", "labels", "parcels", "ledgers", "cashiers")
    said = {
        name: f"The {subject} in `{name}` are sorted by weight, heaviest first."
        for name, subject in zip(names, subjects, strict=True)
    }
    said["gen/d.py"] = "Never edit `gen/d.py` by hand, labels are generated from the schema."
    said["lib/e.py"] = "We always fold ledgers with `fold_ledger` before customers compare sums."
    steps = [
        Step(at, "It is done. What next?", Action("", ""), "", user_message=text)
        for at, text in enumerate(said.values())
    ]
    git = partial(_git, project)
    for name in ("sub/x.py", *names):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(f"# {name}\n")
    (project / "lib/e.py").write_text("def fold_ledger(): ...\n")
    git("add", "."), git("commit", "-qm", "Begin")
    store, session = tmp_path / "decided.db", iter(range(100))
    learn(store, [RawTrajectory("claude-code", "a", "acme/shop", "Sort things", tuple(steps))])
    for one in contextgraph("lessons", "acme/shop", "--all", "--store", store, "--json").records:
        contextgraph("lessons", "--accept", one["id"], "--store", store)
    assert contextgraph("integrations", "install", "claude-code", "--store", store).code == 0

    def silent() -> set[str]:
        """The files whose decision is said neither at a prompt nor at an edit, nor in the index."""
        found = set()
        for subject, (name, text) in zip(subjects, said.items(), strict=True):
            about = f"Why are the {subject} of {name} as they are, with the heaviest first?"
            at = prompt(project, about, session_id=f"{next(session)}")
            edited = {"file_path": str(project / name), "old_string": "a", "new_string": text}
            edit = {**at, "tool_name": "Edit", "tool_input": edited}
            del edit["prompt"]
            edit |= {"hook_event_name": "PreToolUse", "session_id": f"{next(session)}"}
            asked = shown(at, store)
            if text not in asked and name not in asked and text not in shown(edit, store):
                found.add(name)
        return found

    assert not silent()
    for folder in ("pkg/a", "gen"):
        shutil.rmtree(project / folder)
    assert silent() == {"pkg/a/b.py", "pkg/a/c.py", "gen/d.py"}
    git("mv", "top.py", "sub/moved.py"), git("mv", "f.py", "sub/f.py")
    (project / "lib/e.py").write_text("def fold_ledgers(): ...\n")
    time.sleep(1.1)  # commits have whole seconds
    git("add", "-A"), git("commit", "-qm", "Clear")
    shown(started(project, session_id="next"), store)
    os.wait()  # for the process that the start of the session began
    assert silent() == {*names} - {"f.py"}
    gone = contextgraph("lessons", "acme/shop", "--gone", "--store", store, "--json").records
    assert {name for one in gone for name in one["gone"]} == {
        *("pkg/a/b.py", "pkg/a/c.py", "gen/d.py", "top.py", "fold_ledger")
    }
    assert not answer(json.dumps(started(project, session_id="again")), str(store))


def test_a_deleted_file_counts_for_the_checkout_in_which_a_session_began_last(
    tmp_path: Path, project: Path
) -> None:
    git, store, beside = partial(_git, project), tmp_path / "decided.db", tmp_path / "beside"
    said = "The tariffs in `top.py` are sorted by weight, heaviest first."
    step = Step(0, "It is done. What next?", Action("", ""), "", user_message=said)
    learn(store, [RawTrajectory("claude-code", "a", "acme/shop", "Sort things", (step,))])
    for name in ("top.py", "other.py"):
        (project / name).write_text(f"# {name}\n")
    git("add", "."), git("commit", "-qm", "Begin")
    git("worktree", "add", "-q", str(beside))
    time.sleep(1.1)  # commits have whole seconds
    git("rm", "-q", "top.py"), git("commit", "-qm", "Clear")
    for number, (folder, is_gone) in enumerate([(project, 1), (beside, 0), (project, 1)]):
        shown(started(folder, session_id=f"{number}"), store)
        os.wait()  # for the process that the start of the session began
        gone = contextgraph("lessons", "acme/shop", "--gone", "--store", store, "--json").records
        assert [one["gone"] for one in gone] == [["top.py"]] * is_gone


def _git(folder: Path, *words: str) -> None:
    named = ("-c", "user.name=A", "-c", "user.email=a@example.org")
    subprocess.run(["git", "-C", folder, *named, *words], check=True)


def test_what_hooks_said_of_something_forgotten_does_not_come_back(decided: Path) -> None:
    assert contextgraph("forget", "--all", "--yes", "--store", decided).code == 0
    learn(decided, [detouring_run(1)])
    with AgentMemory.open(decided) as memory:
        assert [one.text for one in memory.store.exposures.all()] == [""]


def test_a_lesson_that_was_rejected_is_off_in_the_receipt_and_on_again(decided: Path) -> None:
    def receipt() -> str:
        return " ".join(contextgraph("receipt", "--store", decided).out.split())

    (switch,) = re.findall("off: contextgraph lessons --reject (lesson_[0-9a-f]+)", receipt())
    assert contextgraph("lessons", "--reject", switch, "--store", decided).code == 0
    assert f"is off; on again: contextgraph lessons --undo {switch}" in receipt()
    assert "640 rows" in receipt()
    assert contextgraph("lessons", "--undo", switch, "--store", decided).code == 0
    assert f"off: contextgraph lessons --reject {switch}" in receipt()


def test_an_agent_gets_what_a_query_answers(store: Path, project: Path) -> None:
    arguments = ("query", "--store", store, "--repo", "acme/shop", "--error", NO_MODULE, "--json")
    (record,) = contextgraph(*arguments).records

    shown_text = shown(failure(project), store)

    assert shown_text.splitlines()[1:] == record["text"].splitlines()[1:]


def test_nothing_is_said_twice_in_a_session_but_again_to_a_sub_agent(
    store: Path, project: Path
) -> None:
    assert shown(failure(project), store)

    assert not shown(failure(project), store)
    assert shown(failure(project, agent_id="a1"), store)
    assert shown(failure(project, session_id="60aa"), store)


def test_the_names_of_the_message_at_hand_are_used(tmp_path: Path, project: Path) -> None:
    store = tmp_path / "memory.db"
    runs = [
        detouring_run(number, repo=f"acme/tool{number}", steps=installing().steps)
        for number in range(1, 6)
    ]
    learn(store, runs)
    contextgraph("integrations", "install", "claude-code", "--store", store)
    error = "Exit code 1\nModuleNotFoundError: No module named '{}'"

    assert "provides `lanterns`" in shown(failure(project, error=error.format("lanterns")), store)
    own = failure(project, session_id="own", error=error.format("shop"))
    assert not shown(own, store)  # it is the repository itself


def installing() -> Any:
    return run(
        [
            ("python a.py", NO_MODULE, 1),
            LOOK,
            ("pip install tariffs", "Successfully installed tariffs-1.0", 0),
            ("python a.py", "total: 12\n", 0),
        ]
    )


def test_another_program_is_advised_only_where_the_failed_command_names_the_one_it_replaces(
    tmp_path: Path, project: Path
) -> None:
    store, error = tmp_path / "memory.db", "SyntaxError: invalid syntax"
    steps = [("python a.py", error, 1), LOOK, ("python3 a.py", "total: 12\n", 0)]
    learn(store, [run(steps, instance_id=f"acme__shop-{number}") for number in (1, 2, 3)])
    contextgraph("integrations", "install", "claude-code", "--store", store)
    events = [
        failure(
            project,
            session_id=line.partition(" ")[0],
            tool_input={"command": line},
            error=f"Exit code 1\n{error}",
        )
        for line in ("python b.py", "python3 b.py")
    ]

    shown_texts = [shown(event, store) for event in events]

    assert ["use `python3` instead of `python`" in text for text in shown_texts] == [True, False]


def test_what_a_hook_showed_is_credited_when_the_session_is_learned(
    store: Path, project: Path, tmp_path: Path
) -> None:
    (project / "reproduce.py").touch()
    shown_text = shown(failure(project), store)
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in session(project, shown_text)))
    event = {"hook_event_name": "SessionEnd", "session_id": "5f0c"}
    ended = json.loads(
        answer(json.dumps({**event, "transcript_path": str(transcript)}), str(store))
    )
    assert "hookSpecificOutput" not in ended
    assert [one["cleared"] for one in given(store)] == [None]

    learned = contextgraph("learn", "--queued", "--store", store, "--json").records

    assert learned[0]["source"] == str(transcript)
    assert [one["cleared"] for one in given(store)] == [True]
    assert "Earlier runs" not in exported(store, tmp_path).partition('"context_id"')[0]
    # Git's hash of an empty file.
    assert "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391" in exported(store, tmp_path)
    again = contextgraph("learn", "--queued", "--store", store, "--json").records
    assert again[-1]["summary"]["records"] == 0


def exported(store: Path, tmp_path: Path) -> str:
    contextgraph("export", tmp_path / "all.jsonl", "--store", store)
    return (tmp_path / "all.jsonl").read_text()


def session(project: Path, shown_text: str) -> list[dict[str, object]]:
    """The lines of a session of Claude Code, in which a hook *said* something at the error."""

    def line(number: int, kind: str, **fields: object) -> dict[str, object]:
        common = {"uuid": str(number), "sessionId": "5f0c", "cwd": str(project)}
        return {**common, "type": kind, **fields}

    def call(number: int, command: str) -> dict[str, object]:
        block = {"type": "tool_use", "id": f"t{number}", "name": "Bash"}
        content = [{**block, "input": {"command": command}}]
        return line(number, "assistant", message={"role": "assistant", "content": content})

    def result(number: int, of: int, output: str, *, failed: bool) -> dict[str, object]:
        block = {"type": "tool_result", "tool_use_id": f"t{of}", "is_error": failed}
        return line(
            number, "user", message={"role": "user", "content": [{**block, "content": output}]}
        )

    context = {"type": "hook_additional_context", "content": [shown_text], "toolUseID": "t2"}
    return [
        line(1, "user", message={"role": "user", "content": "Mend the tariffs"}),
        call(2, "python reproduce.py"),
        result(3, 2, f"Exit code 1\n{NO_MODULE}", failed=True),
        line(4, "attachment", attachment=context),
        call(5, REMEDY),
        result(6, 5, "total: 12", failed=False),
    ]


def test_the_end_of_a_session_is_learned_when_the_next_one_starts(
    store: Path, project: Path, tmp_path: Path
) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in session(project, "")))
    for event in ("SessionEnd", "SessionStart"):
        fields = {"hook_event_name": event, "session_id": "1", "transcript_path": str(transcript)}
        answer(json.dumps({**fields, "cwd": str(project)}), str(store))

    os.wait()  # for the process that the start of the session began

    assert not list(store.with_name("memory.hooks").glob("queue*"))
    runs = contextgraph("runs", "--store", store, "--json").records
    assert str(transcript) in {run.get("source") for run in runs}


def test_the_environment_of_an_agent_does_not_say_what_hooks_keep(
    store: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = {"MAX_RUN_SIZE": "0", "NEVER_LEARN": "*", "TENANT": "other", "SOURCE": "eve"}
    names = [f"CONTEXTGRAPH_{name}" for name in given]
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in session(project, "")))
    for name, value in zip(names, given.values(), strict=True):
        monkeypatch.setenv(name, value)
    fields = {"session_id": "1", "transcript_path": str(transcript), "cwd": str(project)}
    answers = [
        answer(json.dumps({**fields, "hook_event_name": event}), str(store))
        for event in ("SessionEnd", "SessionStart")
    ]
    os.wait()  # for the process that the start of the session began

    message = json.loads(answers[1])["systemMessage"]
    assert [name for name in names if name not in message] == []
    for name in names:
        monkeypatch.delenv(name)
    runs = contextgraph("runs", "--store", store, "--json").records
    contributors = {run.get("source"): run.get("contributor") for run in runs}
    assert contributors[str(transcript)] is None


def test_what_ended_is_learned_by_the_settings_of_hooks(
    store: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in session(project, "")))
    HookFiles(Settings(store=str(store))).enqueue(str(transcript))
    monkeypatch.setenv("CONTEXTGRAPH_NEVER_LEARN", "*")
    monkeypatch.setenv("CONTEXTGRAPH_STORE", str(store))
    (learned, _) = contextgraph("learn", "--queued", "--json").records
    assert learned["source"] == str(transcript)

    checks = contextgraph("doctor", "--json").records[0]["checks"]
    (check,) = [one for one in checks if one["name"] == "settings of hooks"]
    assert (check["ok"], check["detail"]) == (False, "ignored: CONTEXTGRAPH_NEVER_LEARN")


def test_hooks_name_the_tenant_that_they_were_installed_for(tmp_path: Path, project: Path) -> None:
    store = tmp_path / "shared.db"
    learned = write_runs(tmp_path / "runs.jsonl", [detouring_run(number) for number in (1, 2, 3)])
    at = ("--store", store, "--tenant", "ann")
    assert contextgraph("learn", learned, *at).code == 0
    assert contextgraph("integrations", "install", "claude-code", *at).code == 0
    settings = json.loads((Path.home() / ".claude" / "settings.json").read_text())
    (hook,) = settings["hooks"]["PostToolUseFailure"][0]["hooks"]
    done = subprocess.run(
        ["/bin/sh", "-c", hook["command"]],
        input=json.dumps(failure(project)).encode(),
        capture_output=True,
        check=True,
    )
    assert REMEDY in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]


def test_what_is_learned_later_is_said_as_well(store: Path, project: Path) -> None:
    error = "ValueError: tariff codes have six digits"
    steps = [("python b.py", error, 1), LOOK, ("python b.py --pad", "total: 12", 0)]
    learn(store, [run(steps, instance_id=f"acme__shop-{number}") for number in (11, 12, 13)])

    call = {"tool_input": {"command": "python b.py"}}
    shown_text = shown(failure(project, error=f"Exit code 1\n{error}", **call), store)

    assert "python b.py --pad" in shown_text
    assert REMEDY in shown(failure(project), store)


def test_after_a_decision_by_hand_the_next_session_is_not_advised_so(
    store: Path, project: Path
) -> None:
    call("consolidate", store)  # after which no error has changed
    arguments = ("query", "--repo", "acme/shop", "--error", NO_MODULE)
    (answered,) = contextgraph(*arguments, "--store", store, "--json").records
    (advice,) = {one["advice"] for one in answered["suggestions"] or answered["error_solutions"]}

    assert REMEDY in shown(failure(project), store)
    call("quarantine", store, identity=advice)
    assert not shown(failure(project, session_id="2"), store)
    call("release", store, identity=advice)
    assert REMEDY in shown(failure(project, session_id="3"), store)


@pytest.mark.parametrize("order", [*permutations(("install", "learn", "remember", "consolidate"))])
def test_in_every_order_of_commands_the_next_session_is_advised(
    tmp_path: Path, project: Path, order: Sequence[str]
) -> None:
    runs = write_runs(tmp_path / "runs.jsonl", [detouring_run(number) for number in (1, 2, 3)])
    arguments: dict[str, tuple[str | Path, ...]] = {
        "install": ("integrations", "install", "claude-code"),
        "learn": ("learn", runs),
        "remember": ("call", "remember", "content=Use tox.", "repo=acme/shop", "pinned=true"),
        "consolidate": ("call", "consolidate"),
    }
    store = tmp_path / "memory.db"
    for name in order:
        contextgraph(*arguments[name], "--store", store)
    assert "Use tox." in shown(started(project), store)
    assert REMEDY in shown(failure(project), store)


def test_until_something_is_learned_a_session_says_so(tmp_path: Path, project: Path) -> None:
    store = tmp_path / "memory.db"
    contextgraph("integrations", "install", "claude-code", "--store", store)
    said = json.loads(answer(json.dumps(started(project)), str(store)))
    assert said == {"systemMessage": "ContextGraph: installed, nothing learned yet"}
    with AgentMemory.open(str(store)) as memory:
        for number in (1, 2, 3):
            memory.learn(detouring_run(number))
    assert REMEDY in shown(failure(project), store)


@pytest.fixture
def tested(tmp_path: Path, project: Path) -> Path:
    """A memory of four runs in which pytest is missing, with hooks."""
    store = tmp_path / "memory.db"
    learn(store, [run(RUN_TESTS, instance_id=f"acme__shop-{number}") for number in range(4)])
    contextgraph("integrations", "install", "claude-code", "--store", store)
    return store


def test_a_session_begins_with_the_playbook(tested: Path, project: Path) -> None:
    given = [
        shown(started(project, source=source), tested)
        for source in ("startup", "resume", "clear", "resume")
    ]

    assert "tests run with `python tests/runtests.py <tests>` (4 of 4)" in given[0]
    assert given[2]  # the agent has forgotten it
    assert not given[1]
    assert not given[3]


@pytest.mark.parametrize("agent", ["claude-code", "codex-cli"])
def test_a_session_anywhere_begins_with_what_fails_on_the_machine_of_its_agent(
    tmp_path: Path, project: Path, agent: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, programs = tmp_path / "memory.db", tmp_path / "bin"
    programs.mkdir()
    (programs / "python3").symlink_to(sys.executable)  # in an environment, `python` is the same
    failed = ("python -c 'print(1)'", "bash: python: command not found", 127)
    worked, gone = ("python3 -c 'print(1)'", "1", 0), ("no-such-python -c 'print(1)'", "1", 0)
    runs = [
        run([failed, after], instance_id=f"bob__{number}", repo=f"bob/pump{number}", agent=agent)
        for number, after in enumerate([worked] * 4 + [gone] * 4)
    ]
    learn(store, runs)
    contextgraph("integrations", "install", "claude-code", "--store", store)
    monkeypatch.setenv("PATH", str(programs))

    text = shown(started(project), store)

    assert ("`python` failed in 4 of 8 tasks; use `python3`" in text) == (agent == "claude-code")
    assert "no-such-python" not in text


def test_before_a_command_that_never_ran_stands_what_ran_instead(
    tested: Path, project: Path
) -> None:
    failing = command(project, "cd tests && python -m pytest test_b.py")

    shown_text = shown(failing, tested)

    assert "`python -m pytest` did not run at first in any of 4 earlier tasks here" in shown_text
    assert "`python tests/runtests.py <tests>` (4 of 4) did" in shown_text
    assert not shown(failing, tested)
    assert not shown(command(project, "python tests/runtests.py b", session_id="2"), tested)


def test_openhands_refuses_a_command_once(tested: Path, project: Path) -> None:
    event = {"event_type": "PreToolUse", "session_id": "1", "working_dir": str(project)}
    call = {"tool_name": "terminal", "tool_input": {"command": "python -m pytest tests"}}

    first, second = (answer(json.dumps({**event, **call}), str(tested)) for _ in range(2))

    refusal = json.loads(first)
    assert refusal["decision"] == "deny"
    assert "`python tests/runtests.py <tests>` (4 of 4) did" in refusal["reason"]
    assert not second


def test_a_prompt_brings_the_playbook_and_the_remedy_of_its_error_once(
    store: Path, project: Path
) -> None:
    (project / "reproduce.py").touch()
    first = shown(prompt(project, "Totals are wrong"), store)
    pasted = prompt(project, f"It still fails:\n{NO_MODULE}")

    assert "scripts run with `PYTHONPATH=lib python reproduce.py`" in first
    assert "Earlier runs" not in first
    assert shown(pasted, store).count(REMEDY) == 1
    assert not shown(pasted, store)
    assert not shown(failure(project), store)


@pytest.mark.parametrize(
    "fields", [{"prompt": f"<task-notification>{NO_MODULE}"}, {"agent_id": "a1"}]
)
def test_what_programs_write_as_a_prompt_is_skipped(
    store: Path, project: Path, fields: dict[str, str]
) -> None:
    assert not shown({**prompt(project, NO_MODULE), **fields}, store)


def test_after_compaction_the_playbook_and_the_remedy_of_the_open_error_are_shown_again(
    store: Path, project: Path, tmp_path: Path
) -> None:
    (project / "reproduce.py").touch()
    transcript = tmp_path / "session.jsonl"
    *lines, _, _ = session(project, "")  # which ends before the error is cleared
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    shown(started(project), store)
    shown(failure(project), store)

    assert not answer(json.dumps(started(project, hook_event_name="PreCompact")), str(store))
    fields = {"source": "compact", "transcript_path": str(transcript)}
    again = shown(started(project, **fields), store)

    assert "scripts run with `PYTHONPATH=lib python reproduce.py`" in again
    assert "set `PYTHONPATH=lib`" in again
    assert not shown(prompt(project, "Go on"), store)
    assert [one["moment"] for one in given(store)] == ["start", "error", "start", "error"]


def test_a_sub_agent_that_was_compacted_gets_the_remedy_again(store: Path, project: Path) -> None:
    assert shown(failure(project, agent_id="a1"), store)
    answer(json.dumps(started(project, hook_event_name="PreCompact", agent_id="a1")), str(store))

    assert shown(failure(project, agent_id="a1"), store)


def test_a_turn_that_ends_without_a_start_brings_no_playbook(
    tested: Path, project: Path, tmp_path: Path
) -> None:
    transcript = tmp_path / "talk.jsonl"
    lines = [line for line in session(project, "") if line["type"] == "user"][:1]
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    stop = started(project, hook_event_name="Stop", transcript_path=str(transcript))
    assert "tests run with" not in answer(json.dumps(stop), str(tested))
    assert given(tested) == []


def test_a_person_reads_how_many_lines_the_agent_was_shown_beside(
    tested: Path, project: Path
) -> None:
    output = json.loads(answer(json.dumps(started(project)), str(tested)))
    assert "does not run: " in output["hookSpecificOutput"]["additionalContext"]
    assert "does not run: " not in output["systemMessage"]
    assert output["systemMessage"].endswith(" (and 1 more line: contextgraph receipt)")


def test_the_receipt_says_how_many_answers_are_earlier(tested: Path, project: Path) -> None:
    for number in range(3):
        shown(started(project, session_id=f"s{number}"), tested)
    assert "2 earlier: --limit 3" in contextgraph("receipt", "--limit", "1", "--store", tested).out
    listed = contextgraph("receipt", "--store", tested).out
    assert "no result known yet; it cost " in " ".join(listed.split())
    assert "earlier" not in listed


def test_a_session_begins_with_the_pinned_notes_of_the_repository(
    tmp_path: Path, project: Path
) -> None:
    store = tmp_path / "memory.db"
    learn(store, [run(RUN_TESTS, instance_id="acme__shop-1")])
    contextgraph("integrations", "install", "claude-code", "--store", store)
    noted = {"content": "use tox", "repo": "acme/shop", "pinned": True}
    (note,) = call("remember", store, **noted).records
    start = {"hook_event_name": "SessionStart", "cwd": str(project)}
    before = shown({**start, "session_id": "1"}, store)
    call("notes_change", store, unpin=[note["id"]])
    after = shown({**start, "session_id": "2"}, store)
    assert ["pinned note: use tox (user)" in text for text in (before, after)] == [True, False]


def test_before_an_edit_stands_what_people_noted_of_the_file(store: Path, project: Path) -> None:
    for text in ("lib/schema.py is generated by `make schema`", "say hello in lib/a.py"):
        call("remember", store, content=text, repo="acme/shop")

    def edit(path: str, session: str = "1") -> str:
        event = command(project, "", session_id=session, tool_name="Edit")
        return shown({**event, "tool_input": {"file_path": str(project / path)}}, store)

    assert "lib/schema.py is generated by `make schema` (user)" in edit("lib/schema.py")
    assert not edit("lib/schema.py")
    assert not edit("lib/other_schema.py")
    (note,) = (one for one in notes(store) if "schema" in one["content"])
    call("notes_change", store, forget=[note["id"]])
    assert not edit("lib/schema.py", "2")


def notes(store: Path) -> list[dict[str, Any]]:
    return call("notes", store).records


def test_nothing_is_said_of_files_that_the_checkout_no_longer_has(
    tmp_path: Path, project: Path
) -> None:
    store = tmp_path / "memory.db"
    steps = [("python a.py", "ValueError: no codes", 1), ("python b.py", "total: 12", 0)]
    learn(store, [run([*steps, *RUN_TESTS], instance_id=f"acme__shop-{n}") for n in range(4)])
    contextgraph("integrations", "install", "claude-code", "--store", store)
    events = started(project), command(project, RUN_TESTS[0][0])
    before = [shown({**event, "session_id": "1"}, store) for event in events]

    (project / "tests/runtests.py").unlink()
    after = [shown({**event, "session_id": "2"}, store) for event in events]

    assert ["runtests" in one for one in before] == [True, True]
    assert ["runtests" in one for one in after] == [False, False]
    assert "does not run: `python -m pytest <tests>`" in after[0]


def test_the_user_is_warned_once_of_a_session_that_ends_too_early(
    store: Path, project: Path, tmp_path: Path
) -> None:
    edit = [("sed -i s/1/2/ tariffs.py", "", 0), ("python -m pytest", "1 passed in 0.1s", 0)]
    runs = [
        run(
            [("ls", "tariffs.py", 0), *(edit if number % 2 else ())],
            instance_id=f"acme__shop-{number}",
            outcome=Outcome.SOLVED if number % 2 else Outcome.FAILED,
        )
        for number in range(20, 36)
    ]
    with AgentMemory.open(store) as memory:
        memory.learn(runs)
    transcript = tmp_path / "session.jsonl"
    transcript.write_text("".join(f"{json.dumps(line)}\n" for line in session(project, "")))
    event = {"hook_event_name": "Stop", "session_id": "1", "transcript_path": str(transcript)}

    shown_text = [answer(json.dumps(event), str(store)) for _ in range(2)]

    (said,) = json.loads(shown_text[0]).values()
    assert said.startswith("ContextGraph: No existing file was changed: 0 of ")
    assert not shown_text[1]


def _in_process(store: Path, event: str, *program: str) -> str:
    done = subprocess.run(
        [sys.executable, *(program or ("-m", "contextgraph", "hook", "--store")), store],
        input=event,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    return done.stdout


# One process answers to all: a start is what most of the time goes to.
ANSWER_EACH = """
import sys
from contextgraph.agents.hook import answer
events = sys.stdin.read().splitlines()
for event in events:
    answer(event, sys.argv[1])
print("answered", len(events))
"""


@pytest.mark.parametrize("place", ["failures", "log", "settings", "file"])
def test_a_hook_waits_for_no_pipe(store: Path, project: Path, tmp_path: Path, place: str) -> None:
    base = tmp_path / "memory"
    paths = {
        "failures": base.with_name("memory.hooks") / "failures.log",
        "log": tmp_path / "session.jsonl",
        "settings": project / "contextgraph.toml",
        "file": project / "b.py",
    }
    path = paths[place]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    compacted = started(project, source="compact", transcript_path=str(paths["log"]))
    stopped = {**compacted, "hook_event_name": "Stop"}
    events = [compacted, failure(project), command(project, "cat b.py"), stopped]

    answered = _in_process(store, "\n".join(map(json.dumps, events)), "-c", ANSWER_EACH)

    assert answered.endswith("answered 4\n")


def test_a_hook_gives_up_on_an_event_that_does_not_end(store: Path) -> None:
    command = [sys.executable, "-m", "contextgraph", "hook", "--store", str(store)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin
        assert process.stdout
        process.stdin.write('{"hook_event_name": "SessionStart"')
        process.stdin.flush()
        try:
            assert process.wait(60) == 0
        finally:
            process.kill()
        assert process.stdout.read() == ""


def test_a_hook_reads_a_megabyte_of_a_long_session(
    store: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "reproduce.py").touch()
    first, *lines, _, _ = session(project, "")  # which ends before the error is cleared
    padding = {**first, "message": {"role": "user", "content": "x" * 1000}}
    log = tmp_path / "session.jsonl"
    with log.open("w") as file:
        for line in (first, *[padding] * 8_000, *lines):
            file.write(f"{json.dumps(line)}\n")
    read: list[int] = []

    def noted(content: bytes) -> BytesIO:
        read.append(len(content))
        return BytesIO(content)

    monkeypatch.setattr("contextgraph.agents.hook.BytesIO", noted)
    event = started(project, source="compact", transcript_path=str(log))
    assert "PYTHONPATH=lib" in shown(event, store)
    assert read[0] < 2 << 20


def test_a_hook_ignores_an_event_of_more_than_a_megabyte(store: Path, project: Path) -> None:
    event = failure(project, tool_response="x" * (2 << 20))
    assert not _in_process(store, json.dumps(event))
    assert _in_process(store, json.dumps(failure(project)))


def test_a_hook_that_fails_says_nothing_and_doctor_shows_why(store: Path, project: Path) -> None:
    for file in store.parent.glob("memory.db*"):
        file.unlink()
    store.write_text("no database")

    assert not shown(failure(project), store)

    checks = contextgraph("doctor", "--store", store, "--json").records[0]["checks"]
    (check,) = [one for one in checks if one["name"] == "hooks"]
    assert not check["ok"]
    assert "database" in check["detail"]


def test_a_session_begins_with_why_there_will_be_no_advice(
    store: Path, project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "settings" / "contextgraph" / "contextgraph.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text('max_notes = "many"\n')
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "settings"))
    output = json.loads(answer(json.dumps(started(project)), str(store)))
    assert "max_notes must be a number" in output["systemMessage"]
    assert "no advice" in output["systemMessage"]
    assert not answer(json.dumps(failure(project)), str(store))


def test_a_folder_is_named_from_where_the_hook_runs(
    store: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    (project / "reproduce.py").touch()
    prompt = {"event_type": "UserPromptSubmit", "message": "?", "working_dir": "."}

    assert "PYTHONPATH=lib" in answer(json.dumps(prompt), str(store))


def test_a_session_begins_with_the_keyed_files(store: Path, project: Path, tmp_path: Path) -> None:
    entry = {"key": "/user/style", "json_content": {"summary": "small commits, tests first"}}
    for memory in (store, tmp_path / "empty.db"):
        assert not call("set", memory, **entry).code
        assert "- /user/style small commits, tests first" in shown(started(project), memory)


def test_no_secret_is_written_by_a_hook(store: Path, project: Path) -> None:
    error = f"Exit code 1\nModuleNotFoundError: No module named '{TOKEN}' ({TOKEN})"
    events = (
        failure(project, error=error, tool_input={"command": f"curl -H 'token: {TOKEN}'"}),
        failure(project, session_id=TOKEN, agent_id=TOKEN),
        {"hook_event_name": "SessionStart", "cwd": f"/home/{TOKEN}", "session_id": "s"},
    )
    for event in events:
        answer(json.dumps(event), str(store))
    answer(f"no JSON {TOKEN}", str(store))

    files = [*store.parent.glob("memory.*"), *store.with_name("memory.hooks").rglob("*")]
    written = [path for path in files if path.is_file()]
    assert {"memory.db", "failures.log"} <= {path.name for path in written}
    assert not [path for path in written if TOKEN in str(path)]
    assert not [path for path in written if TOKEN.encode() in path.read_bytes()]


def test_each_agent_gets_the_answer_in_its_own_form(store: Path, project: Path) -> None:
    fields = {"working_dir": str(project), "session_id": "1", "tool_name": "terminal"}
    response = {"content": [{"type": "text", "text": NO_MODULE}], "exit_code": 1}
    openhands = {**fields, "event_type": "PostToolUse", "tool_response": response}
    asked = {**fields, "event_type": "UserPromptSubmit", "message": NO_MODULE}
    codex = failure(
        project, hook_event_name="PostToolUse", turn_id="1", tool_response=NO_MODULE, error=None
    )

    assert not answer(json.dumps(openhands), str(store))  # it would not pass it on
    assert REMEDY in json.loads(answer(json.dumps(asked), str(store)))["additionalContext"]
    assert REMEDY in shown({**codex, "session_id": "2"}, store)


def test_hooks_are_added_to_the_settings_and_removed_without_a_trace(store: Path) -> None:
    contextgraph("integrations", "uninstall", "claude-code")
    path = Path.home() / ".claude" / "settings.json"
    other = {"type": "command", "command": "notify-send done"}
    hooks = json.dumps({"Stop": [{"hooks": [other]}]})
    before = f'{{\n\t"model": "opus",\n\t"hooks": {hooks}\n}}'
    path.write_text(before)

    for _ in range(2):  # again changes nothing
        assert contextgraph("integrations", "install", "claude-code", "--store", store).code == 0
    config = json.loads(path.read_text())

    assert config["model"] == "opus"
    assert [len(group["hooks"]) for group in config["hooks"]["Stop"]] == [1, 1]
    assert config["hooks"]["Stop"][0]["hooks"] == [other]
    assert contextgraph("integrations", "uninstall", "claude-code").code == 0
    assert path.read_text() == before


def test_what_the_user_changed_after_the_installation_stays(store: Path) -> None:
    path = Path.home() / ".claude" / "settings.json"
    config = json.loads(path.read_text())
    path.write_text(json.dumps({**config, "theme": "dark"}))

    contextgraph("integrations", "uninstall", "claude-code", "--store", store)

    assert json.loads(path.read_text()) == {"theme": "dark"}


def test_a_settings_file_that_was_not_there_is_gone_afterwards(store: Path) -> None:
    path = Path.home() / ".claude" / "settings.json"
    assert path.exists()

    contextgraph("integrations", "uninstall", "claude-code", "--store", store)

    assert not path.exists()


COMMENTED = """{
  // What I like
  "theme": "dark", /* "hooks": {} */
  "url": "http://localhost",
  "hooks": {
    // mine
    "AfterTool": [{"hooks": [{"type": "command", "command": "tidy"}]}],
  },
  "tools": ["a", "b",], // the last
}
"""


@pytest.mark.parametrize("content", [COMMENTED, "// none yet\n{}\n", '{ /* none */ "a": 1 }'])
@pytest.mark.parametrize("is_changed", [False, True])
def test_comments_in_settings_are_kept(content: str, *, is_changed: bool) -> None:
    path = Path.home() / ".gemini" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    assert contextgraph("integrations", "install", "gemini-cli").code == 0
    installed = path.read_text()
    hooks = json.loads(plain(installed))["hooks"]
    assert "contextgraph" in str(hooks["SessionStart"])
    for comment in re.findall(r"// \w[\w ]*|/\*.*?\*/", content.replace("// mine", "")):
        assert comment in installed
    if is_changed:
        path.write_text(installed.replace("{", '{\n  "later": true, // mine, too', 1))
    assert contextgraph("integrations", "uninstall", "gemini-cli").code == 0
    if not is_changed:
        assert path.read_text() == content
        return
    before, after = (json.loads(plain(text)) for text in (content, path.read_text()))
    assert after == {**before, "later": True}
    assert "// mine, too" in path.read_text()


@pytest.mark.parametrize("content", ["{", "[]", '{"hooks": []}', '{"hooks": {"Stop": {}}}'])
def test_a_broken_settings_file_is_an_error_that_names_it(content: str) -> None:
    path = Path.home() / ".claude" / "settings.json"
    path.parent.mkdir(parents=True)
    path.write_text(content)

    result = contextgraph("integrations", "install", "claude-code")

    assert result.code == 1
    assert str(path) in result.err
    assert path.read_text() == content


def test_the_hook_uses_the_memory_it_was_installed_with(
    store: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    contextgraph("integrations", "uninstall", "claude-code")
    monkeypatch.chdir(store.parent)
    contextgraph("integrations", "install", "claude-code", "--store", store.name)
    config = json.loads((Path.home() / ".claude" / "settings.json").read_text())
    (entry,) = config["hooks"]["PostToolUseFailure"][0]["hooks"]

    done = subprocess.run(
        entry["command"],
        shell=True,
        cwd=project,
        input=json.dumps(failure(project)).encode(),
        capture_output=True,
        check=True,
    )

    assert REMEDY in json.loads(done.stdout)["hookSpecificOutput"]["additionalContext"]


def test_auto_finds_the_agents_of_this_machine(store: Path) -> None:
    contextgraph("integrations", "uninstall", "claude-code")
    (Path.home() / ".codex").mkdir()

    result = contextgraph("integrations", "install", "--auto", "--store", store, "--json")

    assert {one["agent"] for one in result.records if one["installed"]} == {
        "claude-code",
        "codex-cli",
    }


def test_hooks_of_a_project_are_in_its_folder(
    store: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)

    contextgraph("integrations", "install", "openhands", "--project", "--store", store)

    hooks = json.loads((project / ".openhands" / "hooks.json").read_text())["hooks"]
    shared = "SessionStart UserPromptSubmit PreToolUse PostToolUse Stop SessionEnd"
    assert [*hooks] == shared.split()


def test_people_see_in_which_session_advice_was_given(store: Path, project: Path) -> None:
    shown(failure(project), store)
    shown(failure(project), store)

    result = contextgraph("receipt", "--store", store)

    assert "1 shown" in result.out
    assert "claude-code · 5f0c · error · acme/shop" in result.out
    assert REMEDY in " ".join(result.out.split())


def test_each_advice_tells_the_person_one_line(
    store: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    output = json.loads(answer(json.dumps(failure(project)), str(store)))
    assert output["systemMessage"].startswith("ContextGraph: set ")
    assert REMEDY in output["systemMessage"]
    assert "\n" not in output["systemMessage"]
    transcript = {"transcript_path": str(store), "hook_event_name": "SessionEnd"}
    ended = json.loads(answer(json.dumps(failure(project, **transcript)), str(store)))
    assert "1 piece of advice" in ended["systemMessage"]

    monkeypatch.setenv("CONTEXTGRAPH_ANNOUNCE", "off")
    other = failure(project, session_id="other")
    assert "systemMessage" not in json.loads(answer(json.dumps(other), str(store)))


def test_uninstalling_takes_all_hooks_where_no_agent_is_named(store: Path) -> None:
    (done,) = contextgraph("integrations", "uninstall", "--store", store, "--json").records
    assert (done["agent"], done["changed"]) == ("claude-code", True)
    nothing = contextgraph("integrations", "uninstall", "--store", store)
    assert (nothing.code, "no agent has hooks" in nothing.err) == (1, True)


def test_the_memory_is_not_to_be_deleted_while_another_agent_uses_it(store: Path) -> None:
    contextgraph("integrations", "install", "codex-cli", "--store", store)
    first = contextgraph("integrations", "uninstall", "claude-code", "--store", store)
    assert ("rm -r" in first.out, "codex-cli still uses it" in first.out) == (False, True)
    last = contextgraph("integrations", "uninstall", "codex-cli", "--store", store)
    assert "to delete it: rm -r " in last.out


def test_of_two_processes_that_take_the_queue_at_once_none_fails(tmp_path: Path) -> None:
    """As where a session starts while `learn --queued` runs."""
    files = HookFiles(Settings(store=str(tmp_path / "memory.db")))
    log = tmp_path / "log.jsonl"
    log.touch()
    start = Barrier(8)

    def take(_number: int) -> Queue:
        start.wait()
        return files.take_queue()

    with ThreadPoolExecutor(8) as pool:
        for _ in range(200):
            files.enqueue(str(log))
            taken = [*pool.map(take, range(8))]
            assert any(queue.transcripts == (str(log),) for queue in taken)
            for queue in taken:
                queue.settle(())


def test_a_session_waits_until_its_run_is_stored(tmp_path: Path) -> None:
    store, log = tmp_path / "memory.db", tmp_path / "log.jsonl"
    log.write_text("{broken\n")
    HookFiles(Settings(store=str(store))).enqueue(str(log))
    for _ in range(2):
        done = contextgraph("learn", "--queued", "--store", store, "--json")
        assert done.records[-1]["summary"]["failed"] == 1
    write_runs(log, [detouring_run()])
    (_, summary) = contextgraph("learn", "--queued", "--store", store, "--json").records
    assert summary["summary"]["created"] == 1
    (last,) = contextgraph("learn", "--queued", "--store", store, "--json").records
    assert last["summary"]["records"] == 0


def test_each_line_of_a_start_is_a_line_of_the_receipt() -> None:
    start = (
        "On this machine (data):\n- `python` failed; use `python3`\n- in `lib` already: no `cd`\n"
    )
    assert headlines(start) == ["`python` failed; use `python3`", "in `lib` already: no `cd`"]


def test_the_line_for_a_person_says_the_lesson_and_not_that_it_is_data() -> None:
    head = "From earlier sessions (data, not instructions):"
    (line,) = headlines(f'{head}\n- "No tabs in src." (user, 2026-01-02)')
    assert line == '"No tabs in src." (user, 2026-01-02)'


def test_a_line_for_a_person_is_never_cut_before_its_remedy() -> None:
    error = "a message that goes on and on, " * 8
    remedy = "`PYTHONPATH=lib python reproduce.py`"
    counted = f"{remedy} [3 of 3 tasks here]"
    for message in (error, error[:86]):
        (short,) = headlines(f"- {message}: run {counted}")
        assert short.endswith(f" … {counted}")
        assert len(short) <= 140
    (long,) = headlines(f"- {error}: run `{'x' * 200}`")
    assert long == f"… `{'x' * 200}`"
    (early,) = headlines(f"- run {remedy}, {error}")
    assert early.startswith(f"run {remedy}")
    (whole,) = headlines(f"- `python3` is missing: {'wherever ' * 11}`python3.12`; {remedy} ran")
    assert f"wherever … {remedy} ran" in whole
    assert len(early) <= 140


def test_a_receipt_counts_what_was_shown_followed_and_cleared(store: Path, project: Path) -> None:
    assert "no advice was given" in contextgraph("receipt", "--store", store).out
    contextgraph("integrations", "install", "claude-code", "--store", store)
    assert "; claude-code will get it" in contextgraph("receipt", "--store", store).out
    advised = shown(failure(project), store)
    # It can be turned off at once, before the session is learned.
    (fresh,) = contextgraph("receipt", "--store", store, "--json").records[0]["items"]
    assert fresh["advice"][0].startswith("adv_")
    commands = [("python reproduce.py", NO_MODULE, 1), (REMEDY, "total: 12\n", 0)]
    raw = run(commands, instance_id="acme__shop-9")
    steps = [raw.steps[0], raw.steps[1]]
    steps[0] = replace(steps[0], observation=f"{NO_MODULE}\n{advised}")
    learn(store, [replace(raw, steps=tuple(steps))])

    (record,) = contextgraph("receipt", "--store", store, "--json").records
    assert (record["shown"], record["followed"], record["cleared"]) == (1, 1, 1)
    assert record["tokens"] > 0
    with AgentMemory.open(store) as memory:
        net = memory.stats.get_advice().saved
    assert record["steps_saved"] == pytest.approx(net, abs=0.05)
    (item,) = record["items"]
    assert REMEDY in item["text"]
    assert item["advice"] == fresh["advice"]
    contextgraph("query", "--store", store, "--repo", "acme/shop", "--error", NO_MODULE)
    assert "set `PYTHONPATH=lib`" in contextgraph("receipt", "--store", store).out
    file = store.with_name("receipt.html")
    assert contextgraph("receipt", "--store", store, "--html", file).out.endswith(": 2 answers\n")
    page = unescape(file.read_text())
    assert REMEDY in page
    assert "3 of 3 tasks with this message here" in page
    assert "<link" not in page
    text = contextgraph("receipt", "--store", store)
    assert "2 shown, 1 followed, 1 cleared, " in text.out
    assert f"contextgraph call quarantine identity={item['advice'][0]}" in text.out
    assert contextgraph("receipt", "--store", store, "--since", "2999-01-01").code == 0
    assert contextgraph("receipt", "--store", store, "--since", "soon").code == 2

    assert call("quarantine", store, identity=item["advice"][0]).code == 0
    turned_off = contextgraph("receipt", "--store", store).out
    assert "is off; on again: contextgraph call release" in turned_off
    assert shown(failure(project, session_id="later"), store) == ""


def test_the_receipt_names_what_turns_a_line_of_a_start_off(tested: Path, project: Path) -> None:
    assert "tests run with" in shown(started(project), tested)
    (item,) = contextgraph("receipt", "--store", tested, "--json").records[0]["items"]
    said = contextgraph("receipt", "--store", tested).out.replace("\n", " ")

    for name in item["advice"]:
        assert f"contextgraph call quarantine identity={name}" in " ".join(said.split())
        assert call("quarantine", tested, identity=name).code == 0
    assert "tests run with" not in shown(started(project, session_id="later"), tested)


def run_hook(line: str, event: object) -> tuple[str, str]:
    given = json.dumps(event).encode()
    done = subprocess.run(line, shell=True, input=given, capture_output=True, check=True)
    return done.stdout.decode(), done.stderr.decode()


def test_a_hook_whose_program_is_gone_says_so_once_a_day(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = [tmp_path / "old", tmp_path / "new"]
    for program in programs:
        program.write_text(f"#!/bin/sh\necho {program.name}\n")
        program.chmod(0o755)
        monkeypatch.setattr(sys, "executable", str(program))
        line = hook_command("m.db", tmp_path / "contextgraph")
    assert run_hook(line, {})[0] == "new\n"
    programs[1].unlink()
    assert run_hook(line, {})[0] == "old\n"
    programs[0].unlink()
    assert run_hook(line, {"hook_event_name": "PreToolUse"}) == ("", "")
    said, errors = run_hook(line, {"hook_event_name": "SessionStart"})
    assert "contextgraph setup" in json.loads(said)["systemMessage"]
    assert errors == ""
    assert run_hook(line, {"hook_event_name": "SessionStart"}) == ("", "")


def test_doctor_and_integrations_run_the_hooks_that_are_installed(store: Path) -> None:
    assert contextgraph("integrations", "install", "claude-code", "--store", store).code == 0

    def found() -> tuple[bool, bool, str]:
        (record,) = contextgraph("doctor", "--store", store, "--json").records
        (check,) = [one for one in record["checks"] if one["name"] == "hooks of claude-code"]
        listed = contextgraph("integrations", "--json").records
        (works,) = [one["works"] for one in listed if one["works"] is not None]
        return check["ok"], works, contextgraph("integrations").out

    ok, works, out = found()
    assert (ok, works) == (True, True)
    assert f"ContextGraph answers for {store}" in out
    assert given(store) == []
    (launch,) = Path.home().rglob("launch")
    launch.unlink()
    ok, works, out = found()
    assert (ok, works) == (False, False)
    assert "claude-code: installed, but the program is gone" in out
    launch.write_text("#!/bin/sh\necho no such module")
    launch.chmod(0o700)
    assert "gone or fails: no such module, " in found()[2]


def test_a_session_says_that_an_upgraded_python_no_longer_finds_the_program(store: Path) -> None:
    assert contextgraph("integrations", "install", "claude-code", "--store", store).code == 0
    (launch,) = Path.home().rglob("launch")
    (installed,) = (line for line in launch.read_text().splitlines() if line.startswith("start /"))
    upgraded = installed.replace(sys.executable, f"{sys.base_prefix}/bin/python3")

    def answers(*programs: str) -> list[str]:
        launch.write_text(launch.read_text().replace(installed, "\n".join(programs)))
        event = json.dumps({"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/x"})
        done = [
            subprocess.run(
                [launch, "hook"], input=event, capture_output=True, text=True, check=True
            )
            for _ in range(2)
        ]
        assert [one.stderr for one in done] == ["", ""]
        return [one.stdout for one in done]

    first, second = answers(upgraded)
    assert "is gone from" in json.loads(first)["systemMessage"]
    assert second == ""
    launch.write_text(launch.read_text().replace(upgraded, installed))
    first, _ = answers(upgraded, upgraded, installed)
    assert "is gone from" not in first


@pytest.mark.parametrize(
    ("system", "code", "said"), [("Darwin", 0, "macOS"), ("Windows", 1, "WSL")]
)
def test_a_system_that_is_not_tested_is_named_in_one_line(
    system: str, code: int, said: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("platform.system", lambda: system)
    done = contextgraph("integrations", "install", "opencode", "--store", store)
    assert done.code == code
    assert [said in line for line in done.err.splitlines()] == [True]
    listed = contextgraph("integrations", "--json").records
    installed = [one["agent"] for one in listed if one["installed"]]
    assert ("opencode" in installed) == (code == 0)
    (record,) = contextgraph("doctor", "--store", store, "--json").records
    (check,) = [one for one in record["checks"] if one["name"] == "system"]
    assert (check["ok"], "not tested" in check["detail"]) == (code == 0, True)


RESULT_OF_CURSOR = json.dumps({"exitCode": 1, "stdout": NO_MODULE})
SAID_BY: dict[str, dict[str, object]] = {
    "cursor": {
        "hook_event_name": "postToolUse",
        "cursor_version": "2.4",
        "conversation_id": "c1",
        "tool_name": "Shell",
        "tool_output": RESULT_OF_CURSOR,
    },
    "copilot-cli": {
        "hook_event_name": "PostToolUse",
        "session_id": "c1",
        "timestamp": "2026-01-05T10:00:00Z",
        "tool_name": "Bash",
        "tool_result": {"result_type": "success", "text_result_for_llm": NO_MODULE},
    },
}


@pytest.mark.parametrize(
    ("agent", "key"), [("cursor", "additional_context"), ("copilot-cli", "additionalContext")]
)
def test_an_agent_is_answered_in_the_form_that_it_documents(
    agent: str, key: str, store: Path, project: Path
) -> None:
    call = {"tool_input": {"command": "python reproduce.py"}}
    event = {**SAID_BY[agent], **call, "cwd": str(project)}

    output = json.loads(answer(json.dumps(event), str(store)))

    assert output.keys() == {key}
    assert "PYTHONPATH=lib" in output[key]
    assert given(store)[0]["agent"] == agent


@pytest.mark.parametrize(
    ("fields", "shown", "exit_code"),
    [
        (SAID_BY["cursor"], NO_MODULE, 1),
        (SAID_BY["cursor"] | {"tool_output": "{ok"}, "{ok", None),
        (SAID_BY["copilot-cli"], NO_MODULE, None),
        (
            {
                "hook_event_name": "AfterTool",
                "tool_name": "run_shell_command",
                "tool_response": {"llmContent": [{"text": "Output: late\nExit Code: 2"}]},
            },
            "Output: late",
            2,
        ),
    ],
    ids=["cursor", "cursor, plain", "copilot-cli", "gemini-cli"],
)
def test_the_result_of_a_tool_is_read_as_each_agent_documents_it(
    fields: dict[str, object], shown: str, exit_code: int | None
) -> None:
    step = HookEvent(fields | {"tool_input": {"command": "make tea"}}).step()
    assert (step.observation, step.exit_code) == (shown, exit_code)


def test_the_event_of_a_sub_agent_of_copilot_cli_has_no_name() -> None:
    event = HookEvent({"sessionId": "c1", "timestamp": 1, "agentName": "explore"})
    assert (event.name, event.agent, event.session) == ("SubagentStart", "copilot-cli", "c1")


@pytest.mark.parametrize(
    ("agent", "place"),
    [("cursor", ".cursor/hooks.json"), ("copilot-cli", ".github/hooks/contextgraph.json")],
)
def test_hooks_of_a_flat_file_are_added_beside_others_and_removed(
    agent: str, place: str, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    file = project / place
    file.parent.mkdir(parents=True)
    other = {"version": 1, "hooks": {"sessionStart": [{"command": "date"}]}}
    file.write_text(json.dumps(other))

    assert contextgraph("integrations", "install", agent, "--project").code == 0
    hooks = json.loads(file.read_text())["hooks"]
    assert hooks["sessionStart"][0] == {"command": "date"}
    ours = [one for entries in hooks.values() for one in entries if "contextgraph" in str(one)]
    assert ours
    assert contextgraph("integrations", "uninstall", agent, "--project").code == 0
    assert json.loads(file.read_text()) == other


_HEAVY = {"neo4j", "numpy", "sklearn", "openai", "httpx2", "click", "asyncio", "pydantic"}


@pytest.mark.parametrize("is_error", [False, True])
def test_a_hook_loads_no_model_and_no_database_driver(
    store: Path, project: Path, is_error: bool
) -> None:
    event = failure(project)
    if not is_error:
        output = {"stdout": "12 passed in 0.1s"}
        event |= {"hook_event_name": "PostToolUse", "error": None, "tool_response": output}
    program = [
        sys.executable,
        "-X",
        "importtime",
        "-m",
        "contextgraph",
        "hook",
        "--store",
        f"{store}",
    ]
    done = subprocess.run(
        program, input=json.dumps(event), capture_output=True, text=True, check=True
    )

    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert bool(done.stdout) == is_error
    assert ("contextgraph.memory.agent_memory" in loaded) == is_error
    assert not loaded & _HEAVY


def test_advice_whose_text_was_forgotten_says_so(store: Path, project: Path) -> None:
    shown(failure(project), store)
    with AgentMemory.open(store) as memory:
        memory.forget([run.id for run in memory.store.runs.listed(RunFilter(), 10)])
    assert (
        "its text went with runs that were forgotten"
        in contextgraph("receipt", "--store", store).out
    )

"""No secret of any kind, in any place of a run, is stored, exported or rendered."""

import json
import os
from itertools import chain
from pathlib import Path
from random import Random
from urllib.parse import quote

import pytest
import zstandard
from anyio.from_thread import start_blocking_portal
from hypothesis import given, strategies as st
from mcp.server.mcpserver.exceptions import ToolError

from contextgraph.learning import bundle_of, masked, trajectory_id, unmasked_values
from contextgraph.memory.agent_memory import AgentMemory
from contextgraph.model import Outcome, State
from contextgraph.model.values import replace
from contextgraph.readers import to_record
from contextgraph.service.mcp_server import server_of
from contextgraph.service.operations import TokenScope
from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import NO_MODULE, NOON, recovering_run, run
from tests.planted import KINDS, PLACES, planted
from tests.served import served

TEXTS = [draw(Random(1000 + number)) for number, draw in enumerate(KINDS.values())]
kinds, places = st.sampled_from(sorted(KINDS)), st.sampled_from(sorted(PLACES))


@given(kinds, places, st.integers(0, 2**32))
def test_no_planted_secret_is_in_what_a_run_teaches(kind, place, seed):
    raw, secret = planted(kind, place, Random(seed))
    learned = repr(bundle_of(raw, NOON))
    assert secret not in learned
    assert "<secret:" in learned


@given(kinds, places, st.integers(0, 2**32))
def test_a_masked_run_has_the_id_of_the_run_itself(kind, place, seed):
    raw, _ = planted(kind, place, Random(seed))
    clean, _ = masked(raw)
    assert trajectory_id(clean) == trajectory_id(raw)
    assert unmasked_values(raw)
    assert not unmasked_values(clean)


@pytest.fixture
def runs():
    """A run of every kind of secret, each in another place than the one before."""
    ordered = sorted(PLACES)
    return [
        planted(kind, ordered[number % len(ordered)], Random(number))
        for number, kind in enumerate(KINDS)
    ]


def test_no_planted_secret_is_in_files_exports_or_prompts(runs, tmp_path):
    address = str(tmp_path / "memory.db")
    with AgentMemory.open(address) as memory:
        for raw, _ in runs:
            memory.learn(raw)
        memory.export(tmp_path / "all.jsonl.zst")
        context = memory.query(State(current_error="No module named 'x'"))
        text = memory.render(context)
        found = [file.read_bytes() for file in tmp_path.iterdir()]
        stored = repr([memory.store.runs.raw(one) for one in memory.store.runs.ids()])
    with (tmp_path / "all.jsonl.zst").open("rb") as file:
        exported = zstandard.ZstdDecompressor().stream_reader(file).read()
    for _, secret in runs:
        assert secret not in text + stored
        assert not any(secret.encode() in content for content in (*found, exported))


def leaked(content):
    """The kinds of secrets that stand in *content*."""
    return [kind for kind, (_, secret) in zip(KINDS, TEXTS, strict=True) if secret in content]


def leaking_files(folder):
    """The files in *folder*, but for the runs that were learned, with the kinds in each."""
    files = [one for one in folder.rglob("*") if one.is_file() and one.name != "runs.jsonl"]
    assert files
    found = {one.name: leaked(one.read_bytes().decode("utf-8", "replace")) for one in files}
    return {name: kinds for name, kinds in found.items() if kinds}


@pytest.fixture
def answering(tmp_path):
    """A memory of three runs that cleared an error, with all kinds of secrets in each place."""
    text = "\n".join(text for text, _ in TEXTS)
    commands = [("python x.py", f"{NO_MODULE}\n{text}", 1), (text, text, 0), ("python x.py", "", 0)]
    runs = [
        run(commands, instance_id=f"acme__shop-{number}", task=text, patch=text)
        for number in range(3)
    ]
    path = write_runs(tmp_path / "runs.jsonl", runs)
    assert contextgraph("learn", path, "--store", tmp_path / "memory.db").code == 0
    return tmp_path / "memory.db"


def commands_about(text, secret):
    """Commands with *text*, which holds *secret*, in each of their texts."""
    tried = {"tool_name": "Bash", "tool_input": {"command": text}, "error": f"Exit code 1\n{text}"}
    event = {"hook_event_name": "PostToolUseFailure", "session_id": "1", "cwd": "/x", **tried}
    for name, argument in (("how", "command"), ("recall", "question"), ("remember", "content")):
        yield "call", name, f"{argument}={text}", "repo=acme/shop"
    for name in ("playbook", "friction", "notes"):
        yield "call", name, f"repo={text}"
    for name in ("explain", "quarantine", "release"):
        yield "call", name, f"identity={text}"
    content = json.dumps({"summary": text, "password": secret})
    yield from (
        ("query", "--repo", "acme/shop", "--error", f"{NO_MODULE}\n{text}", "--task", text),
        ("query", "--repo", text, "--error", NO_MODULE, "--last-action", text, "--json"),
        ("runs", "--repo", text, "--json"),
        ("forget", text, "--yes"),
        ("call", "report", f"context={text}", "helped=true"),
        ("call", "outcome", f"instance_id={text}", "solved=true"),
        ("stats", "--repo", text, "--situation", text),
        ("call", "set", "key=/user/login", f"json_content={content}"),
        ("call", "set", f"key=/user/{text}", "json_content=1"),
        ("learn", "runs.jsonl", "--source", text),
        ("export", "none.md", "--agents-md", text),
        ("hook", json.dumps(event)),
        ("hook", text),
    )


COMMANDS = """
call brief
call compact
call notes
call loops paths=runs.jsonl
stats --json --plot plots
call friction
runs --json
call playbook repo=acme/shop
inspect runs.jsonl --json
inspect runs.jsonl --html run.html
evaluate runs.jsonl --online --min-runs 1 --details moments.json --html report.html
call consolidate
call rebuild
integrations install claude-code
export archive.jsonl
export AGENTS.md --agents-md acme/shop
export graph.graphml --format graphml
export graph.json --format json
export atif --format atif
backup backup.db
"""
WITHOUT_STORE = {"inspect", "evaluate"}


def test_no_planted_secret_is_printed_or_in_any_file_that_a_command_writes(
    answering, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    about = chain.from_iterable(commands_about(*one) for one in TEXTS[2::16])
    for name, *arguments in (*about, *map(str.split, COMMANDS.strip().splitlines())):
        content = arguments.pop() if name == "hook" else ""
        store = () if name in WITHOUT_STORE else ("--store", answering)
        done = contextgraph(name, *arguments, *store, stdin=content.encode())
        assert done.code in {0, 1}, done.err
        assert not leaked(done.out + done.err), name
    assert not leaking_files(tmp_path)


def test_no_planted_secret_is_in_errors_about_wrong_usage():
    for text, _ in TEXTS:
        for command in ((text,), ("stats", text)):
            done = contextgraph(*command)
            assert done.code == 2
            assert not leaked(done.out + done.err), command


def test_no_planted_secret_is_in_the_spool_or_in_what_is_said_of_files(runs, tmp_path):
    store = tmp_path / "memory.db"
    path = write_runs(tmp_path / "runs.jsonl", [raw for raw, _ in runs])
    broken = []
    for number, (text, _) in enumerate(TEXTS):
        for suffix, content in ((".txt", text), (".json", json.dumps({text: text}))):
            broken.append(tmp_path / f"{number}{suffix}")
            broken[-1].write_text(content)
    printed = [
        contextgraph(*command)
        for command in (
            ("learn", path, "--store", "bolt://127.0.0.1:1"),
            ("learn", *broken, "--store", store, "--json"),
            ("replay", path, "--json"),
        )
    ]
    spool = [one for one in Path(os.environ["XDG_DATA_HOME"]).rglob("*") if one.is_file()]
    assert len(spool) > len(runs) // 2
    contents = [one.read_bytes() for one in spool]
    contents += [f"{one.out}{one.err}".encode() for one in printed]
    for _, secret in (*runs, *TEXTS):
        assert not any(secret.encode() in content for content in contents)


def test_no_planted_secret_is_in_answers_pages_logs_or_files_of_the_service(tmp_path, capfd):
    with served(tmp_path) as service:
        client = service.client(*TokenScope)
        for text, _ in TEXTS[1::4]:
            failed, place = f"{NO_MODULE}\n{text}", quote(text, safe="")
            raw = run([("python x.py", failed, 1), (text, text, 0)], task=text)
            opened = {"repo": "acme/shop", "instance_id": "acme__shop-1", "task": text}
            begun = client.post("/v1/runs/live", json=opened)
            live = f"/v1/runs/live/{begun.json()['id']}"
            step = {"action": text, "observation": failed, "exit_code": 1}
            state = {"repo": text, "task_description": text, "current_error": failed}
            answers = (
                client.post("/v1/learn?wait=30", content=json.dumps(to_record(raw))),
                client.post("/v1/learn?wait=30", content=json.dumps({text: text})),
                client.post("/v1/query", json={"state": state, "complete": True}),
                client.post("/v1/query", json={"state": {text: text}}),
                client.post(f"{live}/before", json={"action": text}),
                client.post(f"{live}/observe", json=step),
                client.post(f"{live}/finish", json={"patch": text}),
                client.post("/v1/how", json={"repo": "acme/shop", "command": text}),
                client.post("/v1/playbook", json={"repo": text}),
                client.get("/v1/stats", params={"repo": text, "situation": text}),
                client.get(f"/v1/trajectories/{place}"),
                client.get("/v1/explain", params={"identity": text}),
            )
            for answer in answers:
                assert not leaked(answer.text), answer.request.url.path
        token = client.headers["Authorization"].removeprefix("Bearer ")
        client.post("/pages/login", data={"token": token})
        for page in ("", "/runs?text=totals", "/repositories?repo=acme/shop"):
            assert not leaked(client.get(f"/pages{page}").text)
        (run_id, *_) = (
            one["trajectory_id"] for one in client.get("/v1/trajectories").json()["trajectories"]
        )
        assert "secret:" in client.get(f"/pages/runs/{run_id}").text
    assert not leaked("".join(capfd.readouterr()))
    assert not leaking_files(tmp_path)


def test_no_planted_secret_is_in_answers_or_errors_of_the_mcp_server(answering):
    with AgentMemory.open(str(answering)) as memory, start_blocking_portal() as portal:
        server = server_of(lambda: memory)

        def answer(tool, **arguments):
            try:
                return repr(portal.call(server.call_tool, tool, arguments))
            except ToolError as error:
                return str(error)

        run_id = memory.store.runs.ids()[0]
        for text, _ in TEXTS[1::4]:
            step = {"action": text, "observation": f"{NO_MODULE}\n{text}", "exit_code": 1}
            state = {"repo": "acme/shop", "current_error": step["observation"]}
            answers = (
                answer("query_memory", task_description=text, **state),
                answer("check_loop", steps=[step] * 4, repo="acme/shop"),
                answer("check_submit", steps=[step], repo="acme/shop"),
                answer("playbook", repo=text),
                answer("how", command=text, repo="acme/shop"),
                answer("search_trajectories", text=text),
                answer("get_trajectory", trajectory_id=run_id),
                answer("get_trajectory", trajectory_id=text),
                answer("report_outcome", context_id=text, helped=True),
                answer("learn_trajectory", run={text: text}),
            )
            assert not leaked("".join(answers))


@pytest.fixture
def older(runs, tmp_path):
    """A memory of a version that masked nothing, with one run that holds no secret."""
    path = tmp_path / "memory.db"
    with AgentMemory.open(str(path)) as memory:
        for number, (raw, secret) in enumerate(runs):
            agent = raw.agent if secret in raw.agent else f"agent {number}"
            one = replace(raw, agent=agent)
            memory.store.runs.add([replace(bundle_of(one, NOON), raw=one)])
        memory.learn(recovering_run(outcome=Outcome.SOLVED))
        memory.consolidate()
    return path


def test_what_an_older_version_stored_is_masked(older, runs):
    with AgentMemory.open(str(older)) as memory:
        count = len(memory.store.runs.ids())
    assert count > len(PLACES)
    (found,) = contextgraph("doctor", "--secrets", "--store", older, "--json").records
    assert f"{count - 1} of {count} runs hold secrets" in str(found)

    done = call("rebuild", older)
    (checked,) = contextgraph("doctor", "--secrets", "--store", older, "--json").records

    assert (done.code, checked["ok"]) == (0, True)
    with AgentMemory.open(str(older)) as memory:
        masked_runs = [memory.store.runs.raw(one) for one in memory.store.runs.ids()]
    assert len(masked_runs) == count
    stored = repr(masked_runs).encode() + b"".join(
        path.read_bytes() for path in older.parent.glob("memory.db*")
    )
    assert not any(secret.encode() in stored for _, secret in runs)


def test_masking_that_is_interrupted_goes_on(older, runs, monkeypatch):
    with AgentMemory.open(str(older)) as memory:
        ids, replaced = memory.store.runs.ids(), memory.store.runs.replace
        calls = iter(range(2))

        def replace_once(bundles):
            if next(calls):
                raise KeyboardInterrupt
            return replaced(bundles)

        monkeypatch.setattr(memory.store.runs, "replace", replace_once)
        with pytest.raises(KeyboardInterrupt):
            list(memory.rebuild())
    with AgentMemory.open(str(older)) as memory:
        assert len(list(memory.rebuild())) == len(ids)
        assert len(memory.store.runs.ids()) == len(ids)
    content = older.read_bytes()
    assert not any(secret.encode() in content for _, secret in runs)


def test_runs_are_hidden_by_the_name_that_they_came_with(tmp_path):
    raw, _ = planted("github token", "instance", Random(1))
    with AgentMemory.open(str(tmp_path / "memory.db")) as memory:
        memory.learn(raw)
        state = State(task_description=raw.task)
        assert memory.query(state).similar_cases
        assert not memory.query(state, exclude_instances=[raw.instance_id]).similar_cases

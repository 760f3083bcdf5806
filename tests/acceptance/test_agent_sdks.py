"""The OpenAI Agents SDK and LangGraph in the examples; only the model is scripted."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command_line import contextgraph, write_runs
from tests.builders import NO_MODULE, run
from tests.model_server import KEY, Handler, Reply, Server, serving

ROOT = Path(__file__).parents[2]
FAILING = "python3 -c 'import tariffs'"
RECOVERY = [FAILING, f"PYTHONPATH=lib {FAILING}"]
TASK, ERROR = "Totals are wrong", "ModuleNotFoundError: No module named 'tariffs'"
Call = tuple[str, Mapping[str, str]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working tree whose module is in the folder ``lib``."""
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "tariffs.py").touch()
    return tmp_path


def chat_reply(call: Call | None) -> dict[str, Any]:
    """An answer of the route /v1/chat/completions: a *call* of a tool, or "done"."""
    message: dict[str, Any] = {"role": "assistant", "content": "" if call else "done"}
    if call:
        function = {"name": call[0], "arguments": json.dumps(call[1])}
        message["tool_calls"] = [{"id": os.urandom(4).hex(), "type": "function"}]
        message["tool_calls"][0]["function"] = function
    finish = "tool_calls" if call else "stop"
    choice = {"index": 0, "message": message, "finish_reason": finish}
    head = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "scripted"}
    return {**head, "choices": [choice]}


def response(call: Call | None) -> dict[str, Any]:
    """An answer of the route /v1/responses: a *call* of a tool, or "done"."""
    text = {"type": "output_text", "text": "done", "annotations": []}
    item: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant"}
    item |= {"status": "completed", "content": [text]}
    if call:
        number = os.urandom(4).hex()
        item = {"id": f"fc_{number}", "type": "function_call", "call_id": number}
        item |= {"name": call[0], "arguments": json.dumps(call[1]), "status": "completed"}
    head = {"id": "resp_1", "object": "response", "created_at": 0, "model": "scripted"}
    rest = {"parallel_tool_calls": False, "tool_choice": "auto", "tools": []}
    return {**head, **rest, "output": [item]}


def agent(
    python: Path, folder: Path, example: str, calls: Sequence[Call], *arguments: str
) -> Server:
    """Run the *example*, whose model makes *calls*; the server with the requests it received."""

    def answer(number: int, handler: Handler) -> Reply:
        call = calls[number] if number < len(calls) else None
        reply = response(call) if handler.path.endswith("/responses") else chat_reply(call)
        return 200, {}, json.dumps(reply).encode()

    settings = {"OPENAI_API_KEY": KEY, "OPENAI_DEFAULT_MODEL": "scripted"}
    with serving(fault=answer) as server:
        done = subprocess.run(
            [python, ROOT / "examples" / example, "m.db", "acme/shop", TASK, *arguments],
            cwd=folder,
            env={**os.environ, **settings, "OPENAI_BASE_URL": server.url},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    return server


def runs(folder: Path) -> list[Mapping[str, Any]]:
    found: list[Mapping[str, Any]] = contextgraph(
        "sessions", "--store", folder / "m.db", "--json"
    ).records
    return found


def test_agents_of_openai_query_and_their_traces_are_learned(
    agent_sdks: Path, folder: Path
) -> None:
    """By both APIs: the first agent's run is what the second is advised by."""
    steps = [("bash", {"command": command}) for command in RECOVERY]
    agent(agent_sdks, folder, "openai_agents_run.py", steps, "responses")
    query = ("query_memory", {"task": TASK, "error_message": ERROR})
    asking = [steps[0], query, *steps]

    server = agent(agent_sdks, folder, "openai_agents_run.py", asking, "chat_completions")

    shown = json.dumps(server.requests[2])
    assert "Earlier runs: " in shown
    assert "set `PYTHONPATH=lib`" in shown
    second, first = runs(folder)
    assert (first["repo"], first["agent"], first["steps"]) == ("acme/shop", "openai-agents", 3)
    assert (second["model"], second["steps"]) == ("scripted", 4)
    assert first["instance_id"] == second["instance_id"]


def test_nodes_of_langgraph_advise_and_learn(agent_sdks: Path, folder: Path) -> None:
    steps = [("bash", {"command": command}) for command in RECOVERY]
    done = [(FAILING, NO_MODULE, 1), ("ls lib", "tariffs.py", 0), (RECOVERY[1], "", 0)]
    earlier = [run(done, instance_id=f"acme__shop-{number}") for number in (7, 8)]
    learned = write_runs(folder / "runs.jsonl", earlier)
    assert contextgraph("learn", learned, "--store", folder / "m.db").code == 0

    server = agent(agent_sdks, folder, "langgraph_run.py", steps, "scripted")

    after_error = server.requests[1]["messages"]
    assert [one["role"] for one in after_error] == ["user", "assistant", "tool"]
    assert "Earlier runs: " in after_error[2]["content"]
    assert "set `PYTHONPATH=lib`" in after_error[2]["content"]
    assert [(one["repo"], one["agent"], one["steps"]) for one in runs(folder)][:1] == [
        ("acme/shop", "langgraph", 2)
    ]

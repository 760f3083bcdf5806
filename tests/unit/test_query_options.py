"""Each field of a state and each parameter of a query can change an answer: none is dead."""

from collections.abc import Iterator
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from inspect import signature
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory, MemoryContext, State
from contextgraph.advising.pipeline import sayings
from contextgraph.model import Environment, Outcome, Phase
from contextgraph.model.values import replace
from tests.builders import NO_MODULE, NOON, installing_run, recovering_run, run

PATCH = """diff --git a/shop/totals.py b/shop/totals.py
--- a/shop/totals.py
+++ b/shop/totals.py
@@ -1,2 +1,2 @@ def total(cart):
-    rate = cart.rate
+    rate = cart.rate or 0
"""
SHORT = "Directory src not found"

MISSING = "cat: notes.txt: No such file or directory"


@pytest.fixture(scope="module")
def memory() -> Iterator[AgentMemory]:
    with AgentMemory.open(":memory:") as memory:
        for number in range(1, 9):
            fields: dict[str, Any] = {"patch": PATCH, "outcome": Outcome.SOLVED, "started_at": NOON}
            task = "Totals are wrong when a tariff is missing in shop/totals.py"
            memory.learn(recovering_run(number, task=task, agent="mini-swe-agent", **fields))
            memory.learn(installing_run(number + 10))
            if number == 1:  # one task did it: probable, not sure
                found = [("cat notes.txt", MISSING, 1), ("cat docs/notes.txt", "Notes", 0)]
                memory.learn(run(found, instance_id="acme__shop-60"))
            if number > 3:
                continue
            missing = ("python reproduce.py", NO_MODULE.replace("tariffs", "rates"), 1)
            install = ("pip install rates", "Successfully installed", 0)
            runs = [missing, install, ("python reproduce.py", "total: 12\n", 0)]
            memory.learn(run(runs, instance_id=f"acme__shop-{number + 40}"))
            look = [("search_dir tax src", SHORT, 1), ("search_dir tax", "found 3", 0)]
            memory.learn(run(look, instance_id=f"acme__shop-{number + 20}"))
            edit = ("sed -n 1,40p shop/totals.py", "def total(): ...", 0)
            shown = "platform linux -- Python 3.11.7\n2 passed in 0.1s"
            tests = ("python3 -m pytest tests", shown, 0)
            known = {"instance_id": f"acme__shop-{number + 30}", "agent": "claude-code"}
            memory.learn(run([edit, tests], patch=PATCH, **known))
        yield memory


AT_ERROR = State(
    repo="acme/shop",
    current_error=NO_MODULE,
    last_action="python reproduce.py",
    last_outcome=NO_MODULE,
)
AT_SEARCH = State(
    repo="acme/shop",
    current_error=SHORT,
    last_action="search_dir rate src",
    last_outcome=SHORT,
)
AT_MODULE = replace(AT_ERROR, current_error=NO_MODULE.replace("tariffs", "rates"))
AT_FILE = State(
    repo="acme/shop", current_error=MISSING, last_action="cat notes.txt", last_outcome=MISSING
)
START = State(repo="acme/shop", task_description="Totals are wrong in shop/totals.py")
WORKING = replace(
    START, last_action="cat shop/totals.py", phase=Phase.LOCATING, open_file="shop/totals.py"
)
STATES = (AT_ERROR, AT_SEARCH, AT_MODULE, AT_FILE, START, WORKING)
OTHERS: dict[str, list[Any]] = {
    "repo": ["ada/engine"],
    "repo_summary": ["files: README.md, rates, shop, tariffs"],
    "task_description": ["", "Add a page on taxes"],
    "current_error": ["", "KeyError: 'rate'"],
    "phase": ["understanding"],
    "last_action": ["pytest tests", ""],
    "last_outcome": ["", f"/repo/rates/a.py\n{NO_MODULE}"],
    "open_file": ["shop/cart.py"],
    "instance_id": ["acme__shop-1"],
    "failed_actions": [("PYTHONPATH=lib python reproduce.py", "pip install rates")],
    "agent": ["claude-code"],
    "environment": [Environment("win32")],
}


def test_all_fields_are_tried() -> None:
    # What an agent without the tool is not shown: tests/unit/test_retrieval_remedies.py; the vector
    # of a state: tests/unit/test_embedding_memory.py; the kind of an attempt, for loops:
    # tests/integration/test_document_003.py; how far the run is: tests/unit/test_failure.py
    elsewhere = {"tools", "embedding", "action_type", "error_category", "error_keywords"}
    elsewhere |= {"steps", "looped_steps", "conditions"}
    assert {*elsewhere, *OTHERS} == {field.name for field in fields(State)}


@pytest.mark.parametrize("name", OTHERS)
def test_each_field_of_a_state_changes_some_answer(memory: AgentMemory, name: str) -> None:
    assert any(
        _said(memory.query(state)) != _said(memory.query(replace(state, **{name: value})))
        for state in STATES
        for value in OTHERS[name]
    )


def test_each_parameter_of_a_query_changes_some_answer(
    memory: AgentMemory, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (remedy, *_) = memory.query(AT_ERROR).shown
    options: dict[str, Any] = {
        "limit": 1,
        "repo": "ada/engine",
        "exclude_instances": [f"acme__shop-{number}" for number in range(50)],
        "as_of": datetime.now(UTC) - timedelta(days=9_000),
        "workdir": tmp_path,
        "already_shown": {remedy.description},
        "unasked": True,
    }
    assert {"self", "current_state", *options} == {*signature(AgentMemory.query).parameters}
    for name, value in options.items():
        answers = [
            (_said(memory.query(state)), _said(memory.query(state, **{name: value})))
            for state in STATES
        ]
        assert any(plain != changed for plain, changed in answers), name


def test_the_text_of_an_error_is_a_question(memory: AgentMemory) -> None:
    asked = memory.query(NO_MODULE, repo="acme/shop")
    assert asked.shown == memory.query(State(repo="acme/shop", current_error=NO_MODULE)).shown != ()


def _said(context: MemoryContext) -> tuple[object, ...]:
    """All that an answer says, and what it ranks."""
    ranked = [(remedy.advice, round(remedy.probability, 3)) for remedy in context.ranked]
    cases = [(case.trajectory_id, round(case.score, 3)) for case in context.similar_cases]
    return [*sayings(context)], ranked, cases

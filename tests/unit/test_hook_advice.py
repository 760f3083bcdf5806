"""Compiled advice: what a hook says takes the steps of the pipeline, too."""

import sqlite3
from pathlib import Path

import pytest

from contextgraph import AgentMemory
from contextgraph.advising.gate import SHIPPED
from contextgraph.agents.compile import compile_advice
from contextgraph.agents.hook_files import AdviceFile, CompiledRemedy, ErrorAdvice, write_advice
from contextgraph.model import ErrorSignature, Family
from contextgraph.trace import signature_of
from contextgraph.values import replace
from contextgraph.working_tree import WorkingTree
from tests.builders import NO_MODULE, recovering_run

ERROR = ErrorSignature(Family.SHELL, "command not found", "python: command not found", "")
KEY = ("acme/shop", str(ERROR.family), ERROR.error_type, ERROR.template, "")
HEADS = ("Earlier runs:", "Earlier runs did:")
USE = CompiledRemedy("use `python3` [9 of 9 tasks]", "use `python3`", {"id": "1"})
RUN = CompiledRemedy("run `make`", "run `make`", {"id": "2"}, programs=("python",))
SET = CompiledRemedy(
    "set A (lib/a.py)",
    "set A (lib/a.py)",
    {"id": "3"},
    paths=("lib/a.py",),
    general=("set A", "set A", {"id": "3"}),
)


def test_each_remedy_of_a_text_is_said_once_and_where_it_fits(tmp_path: Path) -> None:
    path = tmp_path / "advice.db"
    write_advice(path, 1, [(KEY, ErrorAdvice((USE, RUN, SET), 2, HEADS))], [], {})
    tree = WorkingTree(tmp_path)
    with AdviceFile(path) as file:

        def said(attempt: str, *already_shown: str) -> str:
            return file.for_error(ERROR, (), "acme/shop", tree, attempt, already_shown).text

        assert (
            said("python a.py")
            == "Earlier runs did:\n1. use `python3` [9 of 9 tasks]\n2. run `make`"
        )
        # Of another error, or at the start: the same sentence does not come twice.
        assert said("python a.py", "this machine: use `python3`") == (
            "Earlier runs did:\n1. run `make`\n2. set A"
        )
        assert said("node a.js", "use `python3`") == "Earlier runs: set A"
        assert said("node a.js", "use `python3`", "set A") == ""


@pytest.mark.parametrize("is_earlier", [False, True])
def test_another_gate_holds_for_what_was_compiled_before(tmp_path: Path, is_earlier: bool) -> None:
    """The gate was fitted again, or an earlier version of this project compiled the file."""
    path = tmp_path / "advice.db"
    with AgentMemory.open(":memory:") as memory:
        for number in range(9):
            memory.learn(recovering_run(number))
        memory.store.admin.mark_consolidated(0, replace(SHIPPED, runs=9))

        def said() -> str:
            compile_advice(memory, path)
            error = signature_of(NO_MODULE)
            assert error is not None
            with AdviceFile(path) as file:
                return file.for_error(error, (), "acme/shop").text

        assert "PYTHONPATH" in said()
        if is_earlier:
            connection = sqlite3.connect(path)
            connection.execute("ALTER TABLE source DROP COLUMN gate")
            connection.execute("PRAGMA user_version = 12")
            connection.close()
        memory.store.admin.mark_consolidated(0, replace(SHIPPED, runs=9, intercept=-99.0))
        assert said() == ""

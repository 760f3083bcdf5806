"""``contextgraph call playbook`` and ``how``."""

import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.command_line import call, contextgraph, write_runs
from tests.builders import run

NO_PYTEST = "/usr/bin/python: No module named pytest\n"
PASSED = "===== 3 passed in 0.12s =====\n"
PATCH = """diff --git a/lib/totals.py b/lib/totals.py
index 80aa1c2..2d7c5c9 100644
--- a/lib/totals.py
+++ b/lib/totals.py
@@ -1,2 +1,2 @@ def total(order):
-    return order.net
+    return order.net * tariff(order)
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A memory of three tasks, in which one way of running tests failed and another worked."""
    commands = [
        ("cat lib/totals.py", "def total(order):\n    return order.net\n", 0),
        ("python -m pytest tests/test_totals.py", NO_PYTEST, 1),
        ("tests/runtests.py totals", PASSED, 0),
    ]
    runs = [run(commands, instance_id=f"acme__shop-{n}", patch=PATCH) for n in (1, 2, 3)]
    file = write_runs(tmp_path / "runs.jsonl", runs)
    assert contextgraph("learn", file, "--store", tmp_path / "memory.db").code == 0
    return tmp_path / "memory.db"


def test_a_playbook_for_programs_has_the_documented_keys(store: Path) -> None:
    (found,) = call("playbook", store, repo="acme/shop", task="The total is wrong").records
    (file,) = found["files"]
    assert (file["path"], file["runs"], file["symbols"]) == ("lib/totals.py", 3, ["total"])
    assert 0 < file["probability"] < 1
    assert found["test_command"] == "tests/runtests.py <tests>"
    assert found["counts"]["test_command"] == {"worked": 3, "tried": 3}
    assert not {"setup", "failing_tests", "import_command"} & found.keys()
    assert "tests run with `tests/runtests.py <tests>` (3 of 3)" in found["text"]


def test_a_query_at_the_start_has_the_playbook(store: Path) -> None:
    (answer,) = contextgraph(
        "query", "--store", store, "--repo", "acme/shop", "--task", "Totals", "--json"
    ).records
    assert answer["playbook"]["test_command"] == "tests/runtests.py <tests>"
    (answer,) = contextgraph(
        "query", "--store", store, "--repo", "acme/shop", "--error", NO_PYTEST, "--json"
    ).records
    assert answer["playbook"] is None


COMMANDS = [("how", {"command": "python -m pytest"}), ("playbook", {})]


@pytest.mark.parametrize(("name", "given"), COMMANDS)
def test_older_runs_and_other_instances_alone_count(
    store: Path, name: str, given: dict[str, str]
) -> None:
    at: dict[str, Any] = {"repo": "acme/shop", **given}
    newer = call(name, store, **at, as_of="2020-01-01")
    others = ["acme__shop-1", "acme__shop-2"]
    (found,) = call(name, store, **at, exclude_instances=others).records
    assert newer.code == 1
    assert found.get("runs", found.get("counts", {}).get("runs")) == 1


def test_how_shows_what_ran_instead(store: Path) -> None:
    (found,) = call("how", store, command="python -m pytest", repo="acme/shop").records
    assert found["form"] == {
        "command": "python -m pytest",
        "folder": "",
        "line": "python -m pytest",
        "worked": 0,
        "tried": 3,
        "error_type": "python -m: No module named",
        "prompted": 0,
        "freshness": "unknown",
        "source": None,
    }
    assert found["others"][0]["line"] == "tests/runtests.py <tests>"
    assert "did not run at first in any of 3 earlier tasks here" in found["warning"]


def test_a_command_that_no_run_gave_is_said_to_be_unknown(store: Path) -> None:
    result = call("how", store, command="make docs", repo="acme/shop")
    assert (result.code, result.records[0]["form"]) == (0, None)


@pytest.mark.parametrize(("name", "given"), COMMANDS)
def test_an_unknown_repository_is_an_error(store: Path, name: str, given: dict[str, str]) -> None:
    result = call(name, store, repo="acme/other", **given)
    assert (result.code, len(result.records)) == (1, 1)
    assert "nothing is known of it in acme/other" in result.err


def test_the_doctor_lists_what_the_checkout_no_longer_has_or_changed(
    store: Path, tmp_path: Path
) -> None:
    checkout = tmp_path / "checkout"
    (checkout / "lib").mkdir(parents=True)
    (checkout / "lib/totals.py").write_text("def total(order): ...\n")
    for command in (["init", "-q"], ["remote", "add", "origin", "git@github.com:acme/shop.git"]):
        subprocess.run(["git", "-C", checkout, *command], check=True)
    options = ("--stale", "--workdir", checkout, "--store", store)

    (found,) = contextgraph("doctor", *options, "--json").records

    file, tests = "lib/totals.py", "tests/runtests.py"
    assert found["stale"] == [
        {"kind": "file", "name": file, "gone": "", "changed": file},
        {"kind": "command", "name": f"{tests} <tests>", "gone": tests, "changed": ""},
    ]
    gone, changed = contextgraph("doctor", *options).out.split("Changed since the runs")
    assert (tests in gone, file in changed) == (True, True)
    (shown,) = call("playbook", store, repo="acme/shop", workdir=checkout).records
    assert shown["files"][0]["path"] == "lib/totals.py"
    assert "test_command" not in shown

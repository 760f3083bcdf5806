"""``contextgraph playbook`` and ``how``."""

import subprocess
from pathlib import Path

import pytest

from tests.acceptance.command_line import contextgraph, write_runs
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


def test_a_playbook_for_people_fits_the_terminal(store: Path) -> None:
    result = contextgraph("playbook", "--store", store, "--repo", "acme/shop")
    assert result.code == 0
    assert "Files (3 tasks, 3 runs)" in result.out
    assert "lib/totals.py" in result.out
    assert "tests/runtests.py <tests>" in result.out
    assert max(map(len, result.out.splitlines())) <= 80


def test_a_playbook_for_programs_has_the_documented_keys(store: Path) -> None:
    task = "The total is wrong"
    (found,) = contextgraph(
        "playbook", "--store", store, "--repo", "acme/shop", "--task", task, "--json"
    ).records
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


@pytest.mark.parametrize("command", [("how", "python -m pytest"), ("playbook",)])
def test_older_runs_and_other_instances_alone_count(store: Path, command: tuple[str, ...]) -> None:
    at = ("--store", store, "--repo", "acme/shop")
    newer = contextgraph(*command, *at, "--as-of", "2020-01-01")
    others = ("--exclude-instance", "acme__shop-1", "--exclude-instance", "acme__shop-2")
    (found,) = contextgraph(*command, *at, *others, "--json").records
    assert (newer.code, "no run of acme/shop" in newer.err) == (1, True)
    assert found.get("runs", found.get("counts", {}).get("runs")) == 1


def test_how_shows_what_ran_instead(store: Path) -> None:
    result = contextgraph("how", "python -m pytest", "--store", store, "--repo", "acme/shop")
    assert result.code == 0
    assert "Other ways that ran\n" in result.out
    assert "tests/runtests.py <tests>" in result.out
    (found,) = contextgraph(
        "how", "python -m pytest", "--store", store, "--repo", "acme/shop", "--json"
    ).records
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
    assert "did not run at first in any of 3 earlier tasks here" in found["warning"]


def test_a_command_that_no_run_gave_is_said_to_be_unknown(store: Path) -> None:
    result = contextgraph("how", "make docs", "--store", store, "--repo", "acme/shop")
    assert (result.code, result.out) == (0, "no run of acme/shop gave such a command (3 runs)\n")


@pytest.mark.parametrize("command", [("playbook",), ("how", "pytest")])
def test_an_unknown_repository_is_an_error(store: Path, command: tuple[str, ...]) -> None:
    result = contextgraph(*command, "--store", store, "--repo", "acme/other")
    assert (result.code, result.out) == (1, "")
    assert "no run of acme/other in this memory of 3 runs" in result.err


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
    shown = contextgraph("playbook", "--store", store, "--repo", "acme/shop", "--workdir", checkout)
    assert "lib/totals.py" in shown.out
    assert "runtests.py" not in shown.out

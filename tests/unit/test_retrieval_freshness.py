"""Advice with a known working tree: names that it lacks are not shown."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from contextgraph import AgentMemory, Outcome, State
from contextgraph.advising.freshness import fresh_playbook, stale_in
from contextgraph.model import (
    Action,
    Cause,
    Freshness,
    Json,
    MachineFact,
    RawTrajectory,
    RepositoryPlaybook,
    Step,
)
from contextgraph.model.values import replace
from contextgraph.system.working_tree import WorkingTree
from tests.builders import NO_MODULE, run, step

NO_PYTEST = "/usr/bin/python: No module named pytest\n"
FAILED = (
    "===== short test summary info =====\n"
    "FAILED tests/test_totals.py::test_rounding - AssertionError: 2 != 3\n"
    "===== 1 failed, 2 passed in 0.12s =====\n"
)
PATCH = """diff --git a/lib/totals.py b/lib/totals.py
--- a/lib/totals.py
+++ b/lib/totals.py
@@ -10,3 +10,3 @@ def total(order):
     rate = tariff(order)
-    return order.net
+    return order.net * rate
"""
REPO, TASK = "acme/shop", "Totals are wrong when a tariff is missing"
STEPS = [
    ("python -m pytest tests", NO_PYTEST, 1),
    ("tests/runtests.py totals", FAILED, 1),
    ("python reproduce.py", NO_MODULE, 1),
    ("PYTHONPATH=lib python reproduce.py", "total: 12\n", 0),
]


@pytest.fixture(scope="module")
def memory() -> Iterator[AgentMemory]:
    """Three tasks that agree on a file, a function, a way of running tests and a failing test."""
    with AgentMemory.open(":memory:") as memory:
        for number in (1, 2, 3):
            instance = f"acme__shop-{number}"
            memory.learn(run(STEPS, instance_id=instance, patch=PATCH, task=TASK))
        yield memory


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that has all that these runs name."""
    (tmp_path / ".git").mkdir()
    for name, text in (
        ("lib/totals.py", "def total(order):\n    return order.net\n"),
        ("tests/runtests.py", ""),
        ("tests/test_totals.py", "def test_rounding():\n    pass\n"),
        ("reproduce.py", ""),
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def start_of(memory: AgentMemory, workdir: Path | None) -> str:
    state = State(repo=REPO, task_description=TASK)
    return memory.render(memory.query(state, workdir=workdir)).partition("\n")[2]


def test_a_checkout_that_has_everything_changes_nothing(
    memory: AgentMemory, checkout: Path
) -> None:
    assert start_of(memory, checkout / "tests") == start_of(memory, None)
    assert not [*stale_in(memory.playbook(REPO, TASK), WorkingTree.around(checkout))]


@pytest.mark.parametrize(
    ("gone", "silenced"),
    [
        ("lib/totals.py", "lib/totals.py"),
        ("tests/runtests.py", "runtests.py <tests>"),
        ("tests/test_totals.py", "test_rounding"),
    ],
)
def test_what_names_a_file_that_is_gone_is_not_said(
    memory: AgentMemory, checkout: Path, gone: str, silenced: str
) -> None:
    assert silenced in repr(memory.playbook(REPO, TASK, workdir=checkout))
    (checkout / gone).unlink()
    assert silenced not in repr(memory.playbook(REPO, TASK, workdir=checkout))
    assert gone not in start_of(memory, checkout)
    found = stale_in(memory.playbook(REPO, TASK), WorkingTree.around(checkout))
    assert {one.gone for one in found} == {gone}


def test_a_function_that_is_gone_is_not_named_but_its_file_is(
    memory: AgentMemory, checkout: Path
) -> None:
    (checkout / "lib/totals.py").write_text("def sum_of(order):\n    return order.net\n")
    (file,) = memory.playbook(REPO, TASK, workdir=checkout).files
    assert (file.path, file.symbols) == ("lib/totals.py", ())


def test_a_remedy_that_names_a_folder_that_is_gone_is_worded_in_general_terms(
    memory: AgentMemory, checkout: Path
) -> None:
    state = State(repo=REPO, current_error=NO_MODULE)
    assert "PYTHONPATH=lib" in memory.render(memory.query(state, workdir=checkout))
    (checkout / "lib/totals.py").unlink()
    (checkout / "lib").rmdir()
    text = memory.render(memory.query(state, workdir=checkout))
    assert "PYTHONPATH=<source folder>" in text
    assert "PYTHONPATH=lib" not in text


def test_a_remedy_names_no_tests_of_its_task_and_no_runner_that_is_gone(checkout: Path) -> None:
    with AgentMemory.open(":memory:") as memory:
        for number, test in enumerate(("totals", "orders", "tariffs")):
            failed = (f"python -m pytest tests/test_{test}.py -q", NO_PYTEST, 1)
            line = f"python tests/runtests.py tests.test_{test} 2>&1 | tail -{10 + number}"
            passed = (line, "Ran 3 tests in 0.1s\n\nOK\n", 0)
            memory.learn(run([failed, passed], instance_id=f"acme__shop-{number}", task=TASK))
        tried = "python -m pytest tests/test_vat.py"
        state = State(repo=REPO, current_error=NO_PYTEST, last_action=tried)

        shown = memory.render(memory.query(state, workdir=checkout))
        (checkout / "tests/runtests.py").unlink()
        without = memory.render(memory.query(state, workdir=checkout))

    assert "use `python tests/runtests.py <tests>` instead" in shown
    assert "runner" not in without
    assert "runtests.py" not in without


def test_a_warning_names_only_what_can_be_run_instead(memory: AgentMemory, checkout: Path) -> None:
    with memory.live(
        repo=REPO, instance_id="acme__shop-9", task=TASK, workdir=checkout, agent="a"
    ) as live:
        assert "tests/runtests.py" in (live.before("python -m pytest") or "")
        live.finish()
    (checkout / "tests/runtests.py").unlink()
    warning = memory.before(REPO, "python -m pytest", workdir=checkout) or ""
    assert "did not run" in warning
    assert "runtests.py" not in warning


# As git names them: the content of the file before and after `PATCH`.
BEFORE, AFTER = (f"def total(order):\n    return order.net{end}\n" for end in ("", " * rate"))
GIT_PATCH = PATCH.replace("\n", "\nindex cfddd65..e0a9da9 100644\n", 1)


@pytest.mark.parametrize(
    ("content", "freshness"),
    [
        (BEFORE, Freshness.UNCHANGED),
        (AFTER, Freshness.UNCHANGED),
        (f"{AFTER}# later", Freshness.CHANGED),
    ],
)
def test_a_file_with_the_content_of_a_run_is_fresh_and_a_changed_one_less_probable(
    checkout: Path, content: str, freshness: Freshness
) -> None:
    (checkout / "lib/totals.py").write_text(content)
    with AgentMemory.open(":memory:") as memory:
        memory.learn(run(STEPS, instance_id="acme__shop-1", patch=GIT_PATCH, task=TASK))
        (before,) = memory.playbook(REPO, TASK).files
        (file,) = memory.playbook(REPO, TASK, workdir=checkout).files
        (case,) = memory.query(
            State(repo=REPO, task_description=TASK), workdir=checkout
        ).similar_cases

    assert (before.freshness, file.freshness, case.freshness) == (
        Freshness.UNKNOWN,
        freshness,
        freshness,
    )
    assert (file.probability < before.probability) == (freshness is Freshness.CHANGED)


def test_a_live_run_keeps_the_content_of_the_files_that_it_names(checkout: Path) -> None:
    with AgentMemory.open(":memory:") as memory:
        for number in (1, 2):
            instance = f"acme__shop-{number}"
            with memory.live(repo=REPO, instance_id=instance, task=TASK, workdir=checkout) as live:
                live.observe("tests/runtests.py totals", FAILED, exit_code=1)
                live.finish(Outcome.SOLVED, patch=PATCH)

        def found() -> list[Freshness]:
            playbook = memory.playbook(REPO, TASK, workdir=checkout)
            return [playbook.files[0].freshness, playbook.tests[0].freshness]

        assert found() == [Freshness.UNCHANGED] * 2
        (checkout / "tests/runtests.py").write_text("# later")
        assert found() == [Freshness.UNCHANGED, Freshness.CHANGED]
        tree = WorkingTree.around(checkout)
        known = memory.retriever.playbooks.content_hashes(REPO)
        stale = stale_in(memory.playbook(REPO, TASK), replace(tree, recorded=known))
        assert [(one.name, one.changed) for one in stale] == [
            ("tests/runtests.py <tests>", "tests/runtests.py")
        ]


NO_DECIMAL = """Traceback (most recent call last):
  File "lib/totals.py", line 2, in total
NameError: name 'decimal' is not defined
"""


def importing_run(number: int, patch: str) -> RawTrajectory:
    """A run that imports a module in `lib/totals.py`, which its *patch* changes."""
    arguments: dict[str, Json] = {
        "command": "str_replace",
        "path": "lib/totals.py",
        "old_str": "def total",
        "new_str": "import decimal\ndef total",
    }
    edit = Step(1, "", Action("str_replace_editor", "", arguments), "The file has been edited.")
    steps = (
        step(0, "python reproduce.py", NO_DECIMAL, exit_code=1),
        edit,
        step(2, "python reproduce.py", "total: 12\n", exit_code=0),
    )
    return run([], instance_id=f"acme__shop-{number}", patch=patch, steps=steps)


def test_a_remedy_that_edits_lines_of_a_changed_file_is_worded_in_general_terms(
    checkout: Path,
) -> None:
    with AgentMemory.open(":memory:") as memory:
        for number in (1, 2, 3):
            memory.learn(importing_run(number, GIT_PATCH))

        def advice() -> tuple[str, Freshness]:
            found = memory.query(State(repo=REPO, current_error=NO_DECIMAL), workdir=checkout)
            return memory.render(found), found.ranked[0].freshness

        (checkout / "lib/totals.py").write_text(BEFORE)
        text, freshness = advice()
        assert ("lib/totals.py" in text, freshness) == (True, Freshness.UNCHANGED)
        (checkout / "lib/totals.py").write_text("total = sum\n")
        text, freshness = advice()
        assert ("lib/totals.py" in text, freshness) == (False, Freshness.CHANGED)
        assert "decimal" in text


def test_a_folder_that_does_not_exist_is_an_error(memory: AgentMemory, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="no folder"):
        memory.query(State(repo=REPO), workdir=tmp_path / "missing")
    with pytest.raises(ValueError, match="no folder"):
        memory.live(repo=REPO, instance_id="", task=TASK, workdir=tmp_path / "missing")


def test_paths_outside_the_checkout_are_taken_to_be_right(tmp_path: Path) -> None:
    tree = WorkingTree(tmp_path)
    assert all(map(tree.has, ("/opt/tools/lint", "../other/a.py", "~/bin/run")))
    assert not tree.has("a" * 5_000)


def test_what_this_machine_has_needs_no_installation(tmp_path: Path) -> None:
    """Its metadata are read; nothing is executed."""
    packages = tmp_path / ".venv" / "lib" / "python3.12" / "site-packages"
    (packages / "Typing_Extensions-4.1.dist-info").mkdir(parents=True)
    tree = WorkingTree.around(tmp_path)
    assert tree.has_package("typing-extensions")
    assert not tree.has_package("typing")

    installed = [
        MachineFact(Cause.PACKAGE, "", f"pip install {name}", 3, 4, 2.0)
        for name in ("typing-extensions", "pytz")
    ]
    playbook = fresh_playbook(RepositoryPlaybook(REPO, facts=tuple(installed)), tree)
    assert [fact.works for fact in playbook.facts] == ["pip install pytz"]


def test_a_program_that_is_the_other_one_now_does_not_fail(tmp_path: Path, monkeypatch) -> None:
    for name in ("other", "real"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "same").symlink_to(tmp_path / "real")
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = tuple(MachineFact(Cause.PROGRAM, old, "real", 3, 4, 2.0) for old in ("same", "other"))
    playbook = RepositoryPlaybook(REPO, facts=facts)
    kept = fresh_playbook(playbook, WorkingTree.around(tmp_path)).facts
    assert [fact.fails for fact in kept] == ["other"]


def test_a_file_that_is_short_now_is_not_too_long_for_one_read(tmp_path: Path) -> None:
    (tmp_path / "short.go").write_text("a")
    (tmp_path / "long.go").write_text("a" * 90_000)
    facts = tuple(
        MachineFact(Cause.LONG_FILE, name, "", 3, 4, 2.0) for name in ("short.go", "long.go")
    )
    kept = fresh_playbook(RepositoryPlaybook(REPO, facts=facts), WorkingTree.around(tmp_path)).facts
    assert [fact.fails for fact in kept] == ["long.go"]

"""The examples work as documented."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOOPING = ["python3 -c 'import tariffs'"] * 6


def run_example(name: str, *arguments: str | Path, folder: Path) -> str:
    """Run an example as a user would; returns what it prints."""
    done = subprocess.run(
        [sys.executable, ROOT / "examples" / name, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_agent_loop_learns_and_gets_advice_the_next_time(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "tariffs.py").write_text("RATE = 2\n")
    options = (tmp_path / "memory.db", "acme/shop")
    recovery = ["python3 -c 'import tariffs'", "ls lib"]
    recovery.append("PYTHONPATH=lib python3 -c 'import tariffs'")
    recovery.append("sed -i '1i RATE = 3' lib/tariffs.py")

    for task in ("Totals are wrong", "Rates are wrong"):
        learned = run_example("agent_loop.py", *options, task, *recovery, folder=tmp_path)
        assert "LearnReceipt" in learned
    last = run_example(
        "agent_loop.py", *options, "Sums are wrong", *LOOPING, "true", folder=tmp_path
    )

    # Two tasks that did the same are sure enough to interrupt for.
    assert "PYTHONPATH=lib" in last
    assert last.count("<cg-memory") == 2  # at the error and the loop
    assert "the last 6 attempts had the same outcome" in last


def test_the_closed_loop_saves_steps_on_recurring_bugs_as_documented(tmp_path: Path) -> None:
    printed = run_example("closed_loop.py", folder=tmp_path)

    documented = (ROOT / "examples" / "README.md").read_text(encoding="utf-8")
    assert "".join(f"    {line}\n" for line in printed.splitlines()) in documented
    recurring = next(line for line in printed.splitlines() if line.startswith("all recurring"))
    without, after = map(int, recurring.split()[-3:-1])
    assert after < without


def test_the_demo_fails_without_the_memory_and_passes_with_it(tmp_path: Path) -> None:
    picture = tmp_path / "demo.svg"
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "demo.py", picture],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    without, _, after = done.stdout.partition("ContextGraph learns 37 recorded runs")
    assert "not solved in 5 steps" in without
    assert "ContextGraph: set `PYTHONPATH=src`" in after
    assert "solved in 5 steps" in after
    assert "@font-face" not in picture.read_text()

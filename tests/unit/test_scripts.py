"""The scripts of the clone."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts import flow, size

SCRIPTS = Path(__file__).parents[2] / "scripts"
# What a reader opens, and reads in it, to follow a command; more has to be worth it.
MOST_FILES = {"query": 38, "query at a start": 54, "learn": 63, "search": 46, "hook": 49}
MOST_FUNCTIONS = {"query": 395, "query at a start": 496, "learn": 726, "search": 334, "hook": 544}


def test_without_docker_the_script_needs_no_development_environment(tmp_path: Path) -> None:
    shutil.copy(SCRIPTS / "neo4j", tmp_path / "neo4j")
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("bash", "env", "dirname"):
        (programs / name).symlink_to(str(shutil.which(name)))
    env = tmp_path / "env"
    env.write_text(f"#!{programs / 'bash'}\necho $1 >{tmp_path / 'asked'}\nexit 1\n")
    env.chmod(0o700)

    environment = {**os.environ, "PATH": str(programs)}
    subprocess.run([programs / "bash", tmp_path / "neo4j", "status"], env=environment, check=False)
    assert (tmp_path / "asked").read_text() == "runtime\n"


def test_the_size_of_all_packages_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "trace").mkdir()
    (tmp_path / "trace" / "steps.py").write_text("def one():\n    return 1\n\n\nTWO = 2\n")
    (tmp_path / "lazy.py").write_text("THREE = 3\n")
    monkeypatch.setattr(size, "PACKAGE", tmp_path)
    size.main()
    shown = capsys.readouterr().out
    assert "\n| trace | 1 | 5 | 1 | 2 |\n" in shown
    assert "\n| all | 2 | 6 | 1 | 2 |\n" in shown


def test_commands_enter_few_files(tmp_path: Path) -> None:
    memory = tmp_path / "memory.db"
    flow.prepare(memory)
    for name, most in MOST_FILES.items():
        command = (sys.executable, "-m", "scripts.flow", name, f"{memory}")
        shown = subprocess.run(command, cwd=SCRIPTS.parent, check=True, capture_output=True).stdout
        entered = json.loads(shown)
        assert len(entered) <= most, f"{name} enters {', '.join(sorted(entered))}"
        functions = sum(map(len, entered.values()))
        assert functions <= MOST_FUNCTIONS[name], f"{name} enters {functions} functions"

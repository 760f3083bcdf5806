"""A temporary folder in which a command prints the same on every machine."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from seeded.scenario import HERE, Scenario, Seed

TOOLS = (
    "awk bash cat cp cut diff echo env find git grep head ls mkdir mv nl pwd rm sed sh sort tail "
    "test touch tr uniq wc xargs"
).split()
STDLIB = f"/usr/lib/python{sysconfig.get_python_version()}"
# Line numbers inside the standard library differ between patch releases of Python.
MASKS = (
    (re.compile(rf'(File "{re.escape(STDLIB)}/[^"]+", line )\d+'), r"\g<1>100"),
    (re.compile(r"(Ran \d+ tests? in )\d+\.\d+s"), r"\g<1>0.002s"),
    (re.compile(r"\b0x[0-9a-f]{6,16}\b"), "0x7f0000000000"),
    (re.compile(r"/tmp/tmp[a-z0-9_]{8}\b"), "/tmp/tmp_scratch"),
)
JUDGE = "PYTHONPATH=src:lib:. python -m unittest"


class Testbed:
    """A folder with seeded repositories, seen by commands as `/testbed/<repository>`.

    Commands get a short list of tools, Python's standard library and nothing of the caller's
    environment; paths of this machine and durations are masked in what they print.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def prepare(self) -> None:
        """Make the folders for home, scratch and tools."""
        for name in ("bin", "home", "tmp", "testbed"):
            (self.root / name).mkdir(parents=True)
        for tool in TOOLS:
            (self.root / "bin" / tool).symlink_to(_located(tool))
        for name in ("python", "python3"):
            wrapper = self.root / "bin" / name
            wrapper.write_text(f'#!/bin/sh\nexec {shlex.quote(_python())} -S "$@"\n')
            wrapper.chmod(0o755)

    def plant(self, scenario: Scenario) -> Path:
        """Put the scenario's repository here, bug included, as one commit; return its folder."""
        folder = self.root / "testbed" / scenario.repository
        shutil.copytree(HERE / "repositories" / scenario.repository, folder)
        for cache in list(folder.rglob("__pycache__")):
            shutil.rmtree(cache)
        _sow(folder, scenario.seeds)
        self.run("git init -q -b main . && git add . && git commit -q -m 'Import'", folder)
        return folder

    def run(self, command: str, folder: Path) -> None:
        """Run *command* in *folder*; raises CalledProcessError when it fails."""
        subprocess.run(self.shell(command), cwd=folder, shell=True, check=True)

    def passes(self, folder: Path) -> bool:
        """Return whether the whole test suite of a repository passes."""
        command = self.shell(JUDGE)
        done = subprocess.run(command, cwd=folder, shell=True, capture_output=True, check=False)
        return done.returncode == 0

    def shell(self, command: str) -> str:
        """Return a command line that runs *command* in bash in the clean environment."""
        assignments = " ".join(f"{name}={shlex.quote(value)}" for name, value in self._variables())
        inside = re.sub(r"(?<![\w.])/testbed\b", f"{self.root}/testbed", command)
        return f"exec {_located('env')} -i {assignments} bash -c {shlex.quote(inside)}"

    def masked(self, output: str) -> str:
        """Return *output* without anything that depends on the machine or the moment."""
        for path, name in (
            (str(self.root), ""),
            (_python(), "/usr/bin/python"),
            (sysconfig.get_path("stdlib"), STDLIB),
        ):
            output = output.replace(path, name)
        for pattern, replacement in MASKS:
            output = pattern.sub(replacement, output)
        return output

    def _variables(self) -> Iterable[tuple[str, str]]:
        moment = "2031-05-04T09:00:00+00:00"
        return {
            "PATH": str(self.root / "bin"),
            "HOME": str(self.root / "home"),
            "TMPDIR": str(self.root / "tmp"),
            "LC_ALL": "C",
            "TZ": "UTC",
            "COLUMNS": "100",
            "PAGER": "cat",
            "PYTHONUTF8": "1",
            "PYTHONHASHSEED": "0",
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_AUTHOR_NAME": "dev",
            "GIT_AUTHOR_EMAIL": "dev@example.org",
            "GIT_AUTHOR_DATE": moment,
            "GIT_COMMITTER_NAME": "dev",
            "GIT_COMMITTER_EMAIL": "dev@example.org",
            "GIT_COMMITTER_DATE": moment,
        }.items()


def _sow(folder: Path, seeds: Iterable[Seed]) -> None:
    for seed in seeds:
        file = folder / seed.file
        text = file.read_text(encoding="utf-8")
        if text.count(seed.right) != 1:
            raise SystemExit(f"seed does not fit: {seed.file} has not exactly one {seed.right!r}")
        file.write_text(text.replace(seed.right, seed.wrong), encoding="utf-8")


def _located(tool: str) -> str:
    path = shutil.which(tool)
    if path is None:
        raise SystemExit(f"the runs need the command {tool!r}, which is not installed here")
    return path


def _python() -> str:
    return os.path.realpath(sys.executable)

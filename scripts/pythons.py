"""Test the oldest and the newest patch release of each supported Python.

``python -m scripts.pythons`` runs the tests of reading, of stores and of hooks, without servers.
The oldest Python has the lowest versions of dependencies that `pyproject.toml` allows, the others
those of `requirements/dev.txt`. uv downloads an interpreter where this machine lacks it. One that
cannot be had is a line NOT RUN, and the nearest that is installed takes its place.
"""

import json
import os
import subprocess
import sys
import tomllib
from itertools import groupby
from pathlib import Path

from tests.environments import installed_uv

ROOT = Path(__file__).parents[1]
TESTED = "text trace readers store learning hook".split()
OPTIONS = "-q -p no:cacheprovider -n logical --maxprocesses 4 --hypothesis-profile quick".split()
# Python 3.13 warns of connections that are left to the collector, as tests leave some stores.
OPTIONS += ["-W", "ignore:unclosed database:ResourceWarning"]

Version = tuple[int, ...]


def main() -> int:
    """Run the tests on each; return 1 where some failed."""
    uv = installed_uv()
    installed = os.pathsep.join(map(str, (Path.home() / ".pyenv" / "versions").glob("*/bin")))
    os.environ["PATH"] = os.pathsep.join([installed, os.environ["PATH"]])
    known = pythons(uv)
    this, failed = sys.version_info[:3], []
    for number, version in enumerate(chosen(uv, known)):
        if number and version == this:
            continue  # it ran all tests
        python = environment(uv, known[version], lowest=not number)
        name = f"Python {dotted(version)}{'' if number else ', lowest dependencies'}"
        print(f"{name}:", flush=True)
        tests = [path for room in TESTED for path in ROOT.glob(f"tests/unit/test_{room}*.py")]
        command: list[str | Path] = [python, "-m", "pytest", *OPTIONS, *tests]
        if subprocess.run(command, cwd=ROOT, check=False).returncode:
            failed.append(name)
    if failed:
        print(f"scripts.pythons failed: {'; '.join(failed)}", file=sys.stderr)
    return bool(failed)


def pythons(uv: Path) -> dict[Version, str]:
    """Return the interpreter of each release of a supported Python, "" of one to download."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    supported = {entry.rpartition(" ")[2] for entry in project["classifiers"]}
    listing: list[str | Path] = [uv, "python", "list", "--all-versions", "--output-format", "json"]
    done = subprocess.run(listing, capture_output=True, text=True, check=True)
    found: dict[Version, str] = {}
    for entry in json.loads(done.stdout):
        version = tuple(entry["version_parts"][part] for part in ("major", "minor", "patch"))
        is_release = entry["version"] == dotted(version) and entry["variant"] == "default"
        if is_release and entry["implementation"] == "cpython" and dotted(version[:2]) in supported:
            found[version] = found.get(version) or entry["path"] or ""
    return dict(sorted(found.items()))


def chosen(uv: Path, known: dict[Version, str]) -> list[Version]:
    """Return the oldest and newest version of each minor that can be had, ascending.

    *known* has their interpreters then.
    """
    chosen = set()
    for _, group in groupby(list(known), key=lambda version: version[:2]):
        versions = list(group)
        installed = [version for version in versions if known[version]]
        for wanted, nearest in ((versions[0], installed[:1]), (versions[-1], installed[-1:])):
            known[wanted] = known[wanted] or downloaded(uv, dotted(wanted))
            if known[wanted]:
                chosen.add(wanted)
                continue
            instead = "".join(f", {dotted(version)} in its place" for version in nearest)
            print(f"NOT RUN: tests on Python {dotted(wanted)}: uv cannot download it{instead}")
            chosen.update(nearest)
    return sorted(chosen)


def downloaded(uv: Path, version: str) -> str:
    """Return the interpreter that uv downloads, "" where it cannot."""
    for command in (("install", version), ("find", "--no-project", version)):
        done = subprocess.run([uv, "python", *command], capture_output=True, text=True, check=False)
        if done.returncode:
            return ""
    return done.stdout.strip()


def environment(uv: Path, interpreter: str, *, lowest: bool) -> Path:
    """Return the interpreter of an environment with this project and what its tests need."""
    folder = ROOT / f".venv-python-{'lowest' if lowest else Path(interpreter).name}"
    python, requirements = folder / "bin" / "python", ROOT / "requirements" / "dev.txt"
    install = (uv, "pip", "install", "--quiet", "--python", python)
    subprocess.run(
        [uv, "venv", "--quiet", "--clear", "--python", interpreter, folder], check=True, cwd=ROOT
    )
    if lowest:
        requirements = folder / "requirements.txt"
        resolve = ("--resolution", "lowest-direct", "--group", "dev", "--python", python)
        subprocess.run(
            [uv, "pip", "compile", "--quiet", "pyproject.toml", *resolve, "-o", requirements],
            check=True,
            cwd=ROOT,
        )
    subprocess.run([*install, "-r", requirements], check=True, cwd=ROOT)
    subprocess.run([*install, "--no-deps", "--no-build-isolation", "-e", "."], check=True, cwd=ROOT)
    return python


def dotted(version: Version) -> str:
    """Return "3.11.2" of (3, 11, 2)."""
    return ".".join(map(str, version))


if __name__ == "__main__":
    sys.exit(main())

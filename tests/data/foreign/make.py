"""Record what compilers and test runners really print for the small mistakes in ``cases``.

``python make.py`` runs the cases of every tool that is installed and writes ``recorded``;
``python make.py jest go`` only those. JavaScript tools are looked for in ``--node-modules``
(``npm install jest vitest typescript eslint mocha``).
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HERE = Path(__file__).parent
HOME = "/bakery"
SECONDS = 300
# Where a program was fetched from says nothing about the failure, and differs from place to place.
HOSTS = re.compile(r"https?://[^\s/'\")]+|\bcrates\.io\b|\b[\w.-]*(?:npmjs|maven)[\w-]*\.org\b")
NOISE = re.compile(r"^(?:Download(?:ing|ed) from .*|Progress .*|npm warn .*)\n", re.MULTILINE)
TERMINAL = {"NO_COLOR": "1", "CI": "1", "TERM": "dumb", "LC_ALL": "C.UTF-8", "RUST_BACKTRACE": "0"}


def main() -> None:
    """Run and record."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tools", nargs="*", help="names of files in cases, without .toml")
    parser.add_argument("--node-modules", type=Path, help="a folder with the JavaScript tools")
    options = parser.parse_args()
    for path in sorted((HERE / "cases").glob("*.toml")):
        if not options.tools or path.stem in options.tools:
            lines = [json.dumps(made) for made in record(path, options.node_modules)]
            target = HERE / "recorded" / f"{path.stem}.jsonl"
            target.parent.mkdir(exist_ok=True)
            target.write_text("".join(f"{line}\n" for line in lines))
            sys.stdout.write(f"{path.stem}: {len(lines)}\n")


def record(path: Path, node_modules: Path | None) -> Iterator[dict[str, Any]]:
    """Name, exit code and output of each case of the file at *path*."""
    described = tomllib.loads(path.read_text())
    for case in described["case"]:
        with TemporaryDirectory() as folder:
            home = Path(folder).resolve() / "bakery"
            _write(home, {**described.get("files", {}), **case.get("files", {})})
            if node_modules:
                (home / "node_modules").symlink_to(node_modules.resolve())
            made = _run(case["command"], home, described.get("env", {}))
            output = _anonymous(made.stdout.decode("utf-8", "replace"), home, node_modules)
            yield {"name": case["name"], "exit_code": made.returncode, "output": output}


def _write(home: Path, files: dict[str, str]) -> None:
    home.mkdir()
    for name, text in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def _run(command: str, home: Path, env: dict[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        ["bash", "-c", command],
        cwd=home,
        env={**os.environ, **TERMINAL, **env},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=SECONDS,
        check=False,
    )


def _anonymous(output: str, home: Path, node_modules: Path | None) -> str:
    """*output* without places of the machine that it was made on."""
    if node_modules:
        for path in (os.path.relpath(node_modules, home), str(node_modules.resolve())):
            output = output.replace(path, "node_modules")
    output = output.replace(str(home), HOME).replace(str(home.parent), "")
    output = output.replace(str(Path.home()), "/home/baker")
    return NOISE.sub("", HOSTS.sub("https://registry.example", output))


if __name__ == "__main__":
    main()

"""The checks of `scripts/audit`: secrets in tracked files, vulnerable dependencies, an SBOM."""

import argparse
import json
import re
import subprocess
import sys
import venv
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from contextgraph.text import mask_secrets

LOCKS = ("runtime", "dev")
_MASK = re.compile(r"<secret:([\w-]+)>")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the checks; 1 where one found something."""
    parser = argparse.ArgumentParser(prog="scripts/audit", description=__doc__)
    parser.add_argument("--sbom", metavar="FILE", type=Path, help="write an SBOM to FILE")
    options = parser.parse_args(arguments)
    findings = [*secrets(tracked_files())]
    with TemporaryDirectory() as folder:
        tools = _installed(Path(folder))
        if tools:
            findings += vulnerabilities(tools)
            if options.sbom:
                write_sbom(tools, options.sbom.absolute())
    for line in findings:
        print(line)
    print(f"scripts/audit: {len(findings) or 'nothing'} found")
    return int(bool(findings))


def tracked_files() -> list[Path]:
    """The files that git knows, from the working tree."""
    listed = subprocess.run(["git", "ls-files", "-z"], capture_output=True, text=True, check=True)
    return [path for name in listed.stdout.split("\0") if name and (path := Path(name)).is_file()]


def secrets(files: Sequence[Path]) -> Iterator[str]:
    """Of each file that the rules of this project would mask: the first place, and the kinds."""
    for path in files:
        text = path.read_bytes().decode("utf-8", "replace")
        masked = mask_secrets(text)
        if masked != text:
            kinds = Counter(_MASK.findall(masked)) - Counter(_MASK.findall(text))
            lines = enumerate(zip(text.split("\n"), masked.split("\n"), strict=False), start=1)
            first = next(number for number, (before, after) in lines if before != after)
            yield f"{path}:{first}: {', '.join(sorted(kinds))}"


def vulnerabilities(tools: Path) -> Iterator[str]:
    """Known vulnerabilities of the locked dependencies; says so where there is no answer."""
    for lock in LOCKS:
        command = [str(tools / "pip-audit"), "--requirement", f"requirements/{lock}.txt"]
        options = [
            "--disable-pip",
            "--require-hashes",
            "--format",
            "json",
            "--progress-spinner",
            "off",
        ]
        done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
        try:
            packages = json.loads(done.stdout)["dependencies"]
        except (ValueError, KeyError):
            reason = (done.stderr.strip().splitlines() or ["no answer"])[-1]
            print(f"NOT RUN: audit of requirements/{lock}.txt: {reason}")
            continue
        skipped = [package for package in packages if "skip_reason" in package]
        if skipped:
            print(f"NOT RUN: audit of {len(skipped)} of {len(packages)} packages in {lock}.txt")
        for package in packages:
            for known in package.get("vulns", ()):
                fixed = ", ".join(known["fix_versions"]) or "no version"
                yield f"{package['name']} {package['version']}: {known['id']}, fixed in {fixed}"


def write_sbom(tools: Path, path: Path) -> None:
    """Write a CycloneDX file of the locked packages that the wheel is built and run with."""
    command = [str(tools / "cyclonedx-py"), "requirements", "requirements/runtime.txt"]
    options = ["--pyproject", "pyproject.toml", "--output-reproducible", "--output-file", str(path)]
    subprocess.run([*command, *options], check=True)
    print(f"wrote {path}")


def _installed(folder: Path) -> Path | None:
    """The programs of requirements/audit.txt, in an environment in *folder*."""
    venv.create(folder, with_pip=True)
    pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--require-hashes"]
    done = subprocess.run(
        [*pip, "--requirement", "requirements/audit.txt"],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = (done.stderr.strip().splitlines() or ["pip failed"])[-1]
        print(f"NOT RUN: audit of dependencies: {reason}")
        return None
    return folder / "bin"


if __name__ == "__main__":
    sys.exit(main())

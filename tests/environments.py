"""Python environments with packages that this one lacks, made once for the clone; they need a
package index."""

import fcntl
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.server import ENVIRONMENT

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="session")
def mini_swe_agent() -> Path:
    """The interpreter of an environment with mini-swe-agent, and with all of this one."""
    return environment_with("mini-swe-agent==2.4.6")


@pytest.fixture(scope="session")
def ray_python() -> Path:
    """The interpreter of an environment with Ray Data, and with all of this one."""
    return environment_with("ray[data]==2.60.0", "fsspec")


def environment_with(*packages: str) -> Path:
    """The interpreter of an environment with *packages*, which is made where there is none.

    Where they cannot be installed, the test is skipped; in CI it fails.
    """
    folder = ROOT / f".venv-{packages[0].partition('=')[0].partition('[')[0]}"
    python, stamp = folder / "bin" / "python", folder / "installed"
    made_from = f"{' '.join(packages)} {sys.executable} {sys.version}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes, one installs
        if not (stamp.exists() and stamp.read_text() == made_from):
            install(packages, folder, python)
            stamp.write_text(made_from)
    return python


def install(packages: tuple[str, ...], folder: Path, python: Path) -> None:
    """Make the environment in *folder*; its packages come before those of this one."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, env=ENVIRONMENT)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(
        [*pip, "install", "--retries", "1", *packages],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = f"{packages[0]} cannot be installed: {done.stderr.strip()[-300:]}"
        if ENVIRONMENT.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    (site_packages,) = folder.glob("lib/python*/site-packages")
    here = sysconfig.get_path("purelib")
    (site_packages / "this_environment.pth").write_text(f"import site; site.addsitedir({here!r})\n")

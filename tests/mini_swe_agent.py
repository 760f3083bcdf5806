"""A Python environment with mini-swe-agent, made once for the clone; needs a package index."""

import fcntl
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from tests.server import ENVIRONMENT

ROOT = Path(__file__).parents[1]
PACKAGE = "mini-swe-agent==2.4.6"


@pytest.fixture(scope="session")
def mini_swe_agent() -> Path:
    """The interpreter of an environment with the package, and with all of this one.

    Where it cannot be installed, the test is skipped; in CI it fails.
    """
    folder = ROOT / ".venv-mini-swe-agent"
    python, stamp = folder / "bin" / "python", folder / "installed"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes, one installs
        if not (stamp.exists() and stamp.read_text() == stamp_of()):
            install(folder, python)
            stamp.write_text(stamp_of())
    return python


def stamp_of() -> str:
    """What the environment is made from."""
    return f"{PACKAGE} {sys.executable} {sys.version}"


def install(folder: Path, python: Path) -> None:
    """Make the environment in *folder*; its packages come before those of this one."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True, env=ENVIRONMENT)
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    done = subprocess.run(
        [*pip, "install", "--retries", "1", PACKAGE],
        env=ENVIRONMENT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        reason = f"mini-swe-agent cannot be installed: {done.stderr.strip()[-300:]}"
        if ENVIRONMENT.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    (packages,) = folder.glob("lib/python*/site-packages")
    here = sysconfig.get_path("purelib")
    (packages / "this_environment.pth").write_text(f"import site; site.addsitedir({here!r})\n")

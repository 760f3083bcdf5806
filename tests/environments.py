"""Python environments with packages that this one lacks, made once for the clone; they need a
package index."""

import fcntl
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import NoReturn

import pytest

from tests.server import ENVIRONMENT

ROOT = Path(__file__).parents[1]
AXE = "axe-core@4.14.1"


@pytest.fixture(scope="session")
def mini_swe_agent() -> Path:
    """The interpreter of an environment with mini-swe-agent, and with all of this one."""
    return environment_with("mini-swe-agent==2.4.6")


@pytest.fixture(scope="session")
def ray_python() -> Path:
    """The interpreter of an environment with Ray Data, and with all of this one."""
    return environment_with("ray[data]==2.60.0", "fsspec")


@pytest.fixture(scope="session")
def agent_sdks() -> Path:
    """The same, with the OpenAI Agents SDK and LangGraph."""
    return environment_with("openai-agents==0.24.0", "langgraph==1.2.22", "langchain-openai==1.7.3")


@pytest.fixture(scope="session")
def zensical() -> Path:
    """The program that builds the documentation site."""
    return environment_with("zensical==0.0.73").with_name("zensical")


@pytest.fixture(scope="session")
def axe() -> Path:
    """The script of axe-core, which npm installs once for the clone."""
    folder = ROOT / ".venv-axe-core"
    script = folder / AXE / "node_modules" / "axe-core" / "axe.min.js"
    if not script.exists():
        if shutil.which("npm") is None:
            unavailable("axe-core: npm is not installed")
        options = ("--prefix", script.parents[2], "--ignore-scripts", "--no-audit", "--no-fund")
        done = subprocess.run(
            ["npm", "install", *options, AXE],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            unavailable(f"npm could not install {AXE}: {done.stderr.strip()[-300:]}")
    return script


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
        unavailable(f"{packages[0]} cannot be installed: {done.stderr.strip()[-300:]}")
    (site_packages,) = folder.glob("lib/python*/site-packages")
    here = sysconfig.get_path("purelib")
    (site_packages / "this_environment.pth").write_text(f"import site; site.addsitedir({here!r})\n")


def unavailable(reason: str) -> NoReturn:
    """Skip the test for *reason*; in CI it fails."""
    if ENVIRONMENT.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)

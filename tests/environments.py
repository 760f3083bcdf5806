"""Python environments, each made once for the clone; needs a package index."""

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
    return interpreter("mini-swe-agent", "mini-swe-agent==2.4.6")


@pytest.fixture(scope="session")
def agent_sdks() -> Path:
    """The same, with the OpenAI Agents SDK and LangGraph."""
    return interpreter(
        "agent-sdks", "openai-agents==0.24.0", "langgraph==1.2.22", "langchain-openai==1.7.3"
    )


@pytest.fixture(scope="session")
def zensical() -> Path:
    """The program that builds the documentation site."""
    return interpreter("site", "zensical==0.0.73").with_name("zensical")


def interpreter(name: str, *packages: str) -> Path:
    """The interpreter of the environment *name* with *packages*.

    Where they cannot be installed, the test is skipped; in CI it fails.
    """
    folder = ROOT / f".venv-{name}"
    python, stamp = folder / "bin" / "python", folder / "installed"
    made_from = f"{' '.join(packages)} {sys.executable} {sys.version}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes, one installs
        if not (stamp.exists() and stamp.read_text() == made_from):
            install(folder, python, packages)
            stamp.write_text(made_from)
    return python


def install(folder: Path, python: Path, packages: tuple[str, ...]) -> None:
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
        reason = f"{' '.join(packages)} cannot be installed: {done.stderr.strip()[-300:]}"
        if ENVIRONMENT.get("CI"):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    (site,) = folder.glob("lib/python*/site-packages")
    here = sysconfig.get_path("purelib")
    (site / "this_environment.pth").write_text(f"import site; site.addsitedir({here!r})\n")

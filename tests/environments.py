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


@pytest.fixture(scope="session")
def mini_swe_agent() -> Path:
    """The interpreter of an environment with mini-swe-agent, and with all of this one."""
    return environment_with("mini-swe-agent==2.4.6")


@pytest.fixture(scope="session")
def ray_python() -> Path:
    """The interpreter of an environment with Ray Data, and with all of this one."""
    return environment_with("ray[data]==2.60.0", "fsspec")


@pytest.fixture(scope="session")
def datasets_python() -> Path:
    """The interpreter of an environment with Hugging Face's datasets, and with all of this one."""
    return environment_with("datasets==5.2.0")


@pytest.fixture(scope="session")
def litellm_python() -> Path:
    """The interpreter of an environment with litellm, and with all of this one."""
    return environment_with("litellm==1.106.2")


@pytest.fixture(scope="session")
def agent_sdks() -> Path:
    """The same, with the OpenAI Agents SDK and LangGraph."""
    return environment_with("openai-agents==0.24.0", "langgraph==1.2.22", "langchain-openai==1.7.3")


@pytest.fixture(scope="session")
def openhands() -> Path:
    """The interpreter of an environment with the OpenHands SDK, and nothing of this one."""
    packages = ("openhands-sdk==1.57.0", "openhands-tools==1.57.0")
    return environment_with(*packages, base=python_of("3.12"))


@pytest.fixture(scope="session")
def zensical() -> Path:
    """The program that builds the documentation site."""
    return environment_with("zensical==0.0.73").with_name("zensical")


@pytest.fixture(scope="session")
def uv() -> Path:
    """The program uv."""
    return environment_with("uv==0.13.9").with_name("uv")


@pytest.fixture(scope="session")
def axe() -> Path:
    """The script of axe-core."""
    return from_npm("axe-core@4.14.1", "axe-core/axe.min.js")


@pytest.fixture(scope="session")
def claude_code() -> Path:
    """The program of Claude Code."""
    return from_npm("@anthropic-ai/claude-code@2.1.328", "@anthropic-ai/claude-code-*/claude")


@pytest.fixture(scope="session")
def codex_cli() -> Path:
    """The program of Codex CLI."""
    return from_npm("@openai/codex@0.169.0", ".bin/codex")


@pytest.fixture(scope="session")
def gemini_cli() -> Path:
    """The program of Gemini CLI."""
    return from_npm("@google/gemini-cli@0.61.0", ".bin/gemini")


@pytest.fixture(scope="session")
def opencode() -> Path:
    """The program of opencode."""
    return from_npm("opencode-ai@1.18.33", "opencode-*-*/bin/opencode")


def from_npm(package: str, pattern: str) -> Path:
    """A file of *package*, which npm installs once for the clone.

    Where it cannot be installed, the test is skipped; in CI it fails.
    """
    folder = ROOT / f".venv-{package.replace('/', '-')}"
    modules = folder / "node_modules"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes, one installs
        if not any(modules.glob(pattern)):
            if shutil.which("npm") is None:
                unavailable(f"{package}: npm is not installed")
            options = ("--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund")
            done = subprocess.run(
                ["npm", "install", *options, package],
                env=ENVIRONMENT,
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                unavailable(f"npm could not install {package}: {done.stderr.strip()[-300:]}")
    return next(modules.glob(pattern))


def python_of(version: str) -> str:
    """An interpreter of this *version*; where there is none, the test is skipped."""
    # Of pyenv, whose program of this name is there for any version.
    environment = {**ENVIRONMENT, "PYENV_VERSION": version}
    command = [f"python{version}", "-c", "import sys; print(sys.executable)"]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        unavailable(f"Python {version} is not installed")
    return done.stdout.strip()


def environment_with(*packages: str, base: str = sys.executable) -> Path:
    """The interpreter of an environment with *packages*, which is made where there is none.

    It has what the environment of these tests has, unless *base* is another interpreter. Where
    they cannot be installed, the test is skipped; in CI it fails.
    """
    folder = ROOT / f".venv-{packages[0].partition('=')[0].partition('[')[0]}"
    python, stamp = folder / "bin" / "python", folder / "installed"
    made_from = f"{' '.join(packages)} {base} {sys.version}"
    folder.mkdir(exist_ok=True)
    with (folder / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes, one installs
        if not (stamp.exists() and stamp.read_text() == made_from):
            install(packages, folder, python, base)
            stamp.write_text(made_from)
    return python


def install(packages: tuple[str, ...], folder: Path, python: Path, base: str) -> None:
    """Make the environment in *folder*; its packages come before those of this one."""
    subprocess.run([base, "-m", "venv", folder], check=True, env=ENVIRONMENT)
    # uv resolves in seconds what takes pip minutes.
    pip = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", "--no-input"]
    uv = [str(folder / "bin" / "uv"), "pip", "install", "--quiet", "--python", str(python)]
    for command in ([*pip, "install", "--retries", "1", "uv"], [*uv, *packages]):
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
        if done.returncode:
            unavailable(f"{packages[0]} cannot be installed: {done.stderr.strip()[-300:]}")
    if base != sys.executable:
        return
    (site_packages,) = folder.glob("lib/python*/site-packages")
    here = sysconfig.get_path("purelib")
    (site_packages / "this_environment.pth").write_text(f"import site; site.addsitedir({here!r})\n")


def unavailable(reason: str) -> NoReturn:
    """Skip the test for *reason*; in CI it fails."""
    if ENVIRONMENT.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)

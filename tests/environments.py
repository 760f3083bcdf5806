"""Programs and Python environments with packages that this one lacks, made once; they need a
package index."""

import fcntl
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from tests.server import ENVIRONMENT

ROOT = Path(__file__).parents[1]
# What is installed once for the user, for all clones.
CACHE = Path(
    ENVIRONMENT.get("XDG_CACHE_HOME") or Path(ENVIRONMENT["HOME"], ".cache"), "contextgraph"
)


# In one environment, as mini-swe-agent needs litellm and datasets anyway.
WITH_MINI_SWE_AGENT = (
    *("mini-swe-agent==2.4.6", "litellm==1.106.2"),
    *("datasets==5.2.0", "ray[data]==2.60.0", "fsspec"),
)


@pytest.fixture(scope="session")
def mini_swe_agent() -> Path:
    """The interpreter of an environment with mini-swe-agent, and with all of this one.

    It also has litellm, Hugging Face's datasets and Ray Data.
    """
    return environment_with(*WITH_MINI_SWE_AGENT)


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
    return installed_uv()


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
    """A file of *package*, which npm installs once for the user: it may have 400 MB.

    Where it cannot be installed, the test is skipped; in CI it fails.
    """

    def install(folder: Path) -> None:
        if shutil.which("npm") is None:
            unavailable(f"{package}: npm is not installed")
        options = ("--ignore-scripts", "--no-audit", "--no-fund")
        run(package, "npm", "install", "--prefix", folder, *options, package)

    folder = made_once(CACHE / "npm" / package, package, install)
    return next((folder / "node_modules").glob(pattern))


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

    The packages are installed once for the user, with the bytecode that the first to import them
    compiles. The environment also has what that of these tests has, after them, unless *base* is
    another interpreter. Where they cannot be installed, the test is skipped; in CI it fails.
    """
    name = packages[0].partition("=")[0]

    def install(folder: Path) -> None:
        shutil.rmtree(folder, ignore_errors=True)
        options = ("--quiet", "--python", base, "--target", folder / "site-packages")
        run(name, installed_uv(), "pip", "install", *options, *packages)

    made_from = f"{' '.join(packages)} {_version_of(base)}"
    # By this name dill recognises what it need not pickle.
    installed = made_once(CACHE / packages[0], made_from, install) / "site-packages"
    others = [sysconfig.get_path("purelib")] if base == sys.executable else []

    def make(folder: Path) -> None:
        # Without pip, which takes six seconds to install.
        run(name, base, "-m", "venv", "--clear", "--without-pip", folder)
        (site_packages,) = folder.glob("lib/python*/site-packages")
        added = (f"import site; site.addsitedir({str(one)!r})\n" for one in (installed, *others))
        (site_packages / "packages.pth").write_text("".join(added))
        for script in (installed / "bin").iterdir():
            own = folder / "bin" / script.name
            first, _, rest = script.read_bytes().partition(b"\n")
            if first.startswith(b"#!"):
                own.write_bytes(b"#!%b\n%b" % (bytes(folder / "bin" / "python"), rest))
                own.chmod(0o755)

    folder = made_once(ROOT / f".venv-{name}", f"{installed} {made_from} {base} {others}", make)
    return folder / "bin" / "python"


def _version_of(interpreter: str) -> str:
    if interpreter == sys.executable:
        return sys.version
    asked = [interpreter, "-c", "import sys; print(sys.version)"]
    return subprocess.run(asked, capture_output=True, text=True, check=True).stdout


def installed_uv() -> Path:
    """The program uv: it resolves in seconds what takes pip minutes."""
    package = "uv==0.13.9"
    options = ("--quiet", "--disable-pip-version-check", "--no-input", "--retries", "1")

    def install(folder: Path) -> None:
        pip = (sys.executable, "-m", "pip", "install", *options)
        run(package, *pip, "--upgrade", "--target", folder, package)

    return made_once(CACHE / package, package, install) / "bin" / "uv"


def made_once(folder: Path, made_from: str, make: Callable[[Path], None]) -> Path:
    """*folder*, which *make* fills unless it was made from the same before."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    stamp = folder / "installed"
    with folder.with_name(f"{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # of several test processes, one installs
        if not (stamp.exists() and stamp.read_text() == made_from):
            make(folder)
            stamp.write_text(made_from)
    return folder


def run(name: str, *command: str | Path) -> None:
    """Run a *command* that installs *name*."""
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, check=False)
    if done.returncode:
        unavailable(f"{name} cannot be installed: {done.stderr.strip()[-300:]}")


def unavailable(reason: str) -> NoReturn:
    """Skip the test for *reason*; in CI it fails."""
    if ENVIRONMENT.get("CI"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)

"""The jars of a release, downloaded once by Maven into a cache."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from tempfile import mkdtemp

from scripts.neo4j_local.release import Release, UnavailableError

POM = Path(__file__).with_name("pom.xml")
SHOWN = 300  # characters of what Maven printed


def cache_folder() -> Path:
    """The folder of jars and servers: ``$CONTEXTGRAPH_NEO4J_CACHE``, else the user's cache."""
    if named := os.environ.get("CONTEXTGRAPH_NEO4J_CACHE"):
        return Path(named).absolute()
    caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(caches).absolute() / "contextgraph" / "neo4j"


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Only one process at a time within the lock file *path*."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        flock(file, LOCK_EX)
        yield


def jars_of(release: Release, *, browser: bool) -> Path:
    """The folder with the jars of *release*, with Neo4j Browser among them if *browser*."""
    name = f"{release.version}-browser" if browser else release.version
    folder = cache_folder() / "jars" / name
    with locked(folder.with_name(f"{name}.lock")):
        if not folder.exists():
            _download(release, folder, browser=browser)
    return folder


def _download(release: Release, folder: Path, *, browser: bool) -> None:
    """Fill a folder beside *folder*, then rename it: a broken download leaves nothing behind."""
    maven = shutil.which("mvn")
    if not maven:
        raise UnavailableError(f"neo4j {release.version}: install Maven (mvn) to download it")
    work = Path(mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        done = subprocess.run(
            _maven_command(maven, release, work, browser=browser),
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode or not any(work.glob(f"lib/neo4j-kernel-{release.version}.jar")):
            output = " ".join((done.stdout + done.stderr).split())[:SHOWN]
            raise UnavailableError(f"neo4j {release.version}: maven could not get it: {output}")
        (work / "lib").rename(folder)
    finally:
        shutil.rmtree(work)


def _maven_command(maven: str, release: Release, work: Path, *, browser: bool) -> list[str]:
    """Maven, quiet, refusing what does not match its checksum."""
    shutil.copy(POM, work)  # Maven writes beside the pom
    arguments = [f"-Dneo4j.version={release.version}", f"-Djars={work / 'lib'}"]
    if browser:
        arguments.append("-Pbrowser")
    return [maven, "-B", "-q", "-C", "-f", str(work / POM.name), *arguments, "package"]

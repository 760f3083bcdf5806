"""The installed versions of Java, and those that a Neo4j release runs on."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from scripts.neo4j_local.release import Release


@dataclass(frozen=True, slots=True)
class Java:
    """A Java executable and its major version."""

    path: Path
    major: int


def java_for(release: Release) -> Java | None:
    """The first Java in range: ``$JAVA_HOME``, the PATH, then where systems install them."""
    return next((java for java in installed_javas() if java.major in release.javas), None)


def installed_javas() -> Iterator[Java]:
    """Every Java of this machine that prints its version."""
    for path in dict.fromkeys(path.resolve() for path in _candidates()):
        major = _major(path)
        if major is not None:
            yield Java(path, major)


def _candidates() -> Iterator[Path]:
    if home := os.environ.get("JAVA_HOME"):
        yield Path(home) / "bin" / "java"
    if command := shutil.which("java"):
        yield Path(command)
    for folder in ("/usr/lib/jvm", "/opt/java", "/opt"):
        yield from sorted(Path(folder).glob("*/bin/java"))


def _major(path: Path) -> int | None:
    if not os.access(path, os.X_OK):
        return None
    done = subprocess.run([path, "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(\d+)', done.stderr)
    return int(match[1]) if match else None

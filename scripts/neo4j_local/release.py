"""The supported releases of Neo4j."""

import re
from dataclasses import dataclass

DEFAULT = "5.26"
PINNED = {"5.26": "5.26.31", "2026.09": "2026.09.0"}


class UnavailableError(Exception):
    """No server can be started; the message is one line with the reason and a remedy."""


@dataclass(frozen=True, slots=True)
class Release:
    """A release by its full *version*, such as ``5.26.31`` or ``2026.09.0``."""

    version: str

    @property
    def line(self) -> str:
        """The release line, which names the Docker image: ``5.26``, ``2026.09``."""
        return ".".join(self.version.split(".")[:2])

    @property
    def is_calendar(self) -> bool:
        """True from 2025 on, when releases began to be named by year and month."""
        return int(self.version.split(".")[0]) >= 2025

    @property
    def javas(self) -> range:
        """The major versions of Java that it runs on."""
        return range(21, 26) if self.is_calendar else range(17, 22)


def release(name: str) -> Release:
    """The release called *name*: a line that is pinned here, or any full version."""
    version = PINNED.get(name, name)
    if not re.fullmatch(r"\d+\.\d+\.\d+", version):
        known = ", ".join(PINNED)
        raise UnavailableError(f"neo4j {name}: not a version; known: {known}, or a full one")
    return Release(version)

"""Whether the memory and this installation are well."""

import platform
import sqlite3
import sys
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from contextgraph.cli.options import open_memory
from contextgraph.config import load_settings
from contextgraph.model import HealthCheck, Json

DISTRIBUTION = "contextgraph-memory"
LIBRARIES = "neo4j networkx numpy orjson rich scikit-learn typer zstandard".split()
EXTRAS = {"local": "onnxruntime", "openai": "openai", "parquet": "pyarrow", "plot": "matplotlib"}
OLDEST_PYTHON = (3, 11)


@dataclass(frozen=True, slots=True)
class Checkup:
    """What was looked at; *extras* says which optional dependencies are installed."""

    store: str
    checks: tuple[HealthCheck, ...]
    versions: dict[str, str]
    extras: dict[str, bool]

    @property
    def ok(self) -> bool:
        """True where nothing is ill."""
        return all(check.ok for check in self.checks)


def own_version() -> str:
    """The version of this distribution."""
    return version(DISTRIBUTION)


def check_up(store: str | None, tenant: str | None) -> Checkup:
    """Look at the memory that the options name, and at the installation."""
    settings = load_settings(store=store or None, tenant=tenant)
    return Checkup(
        store=settings.address,
        checks=(*_installation(), *_memory(store, tenant)),
        versions=_versions(),
        extras={extra: _installed(name) for extra, name in EXTRAS.items()},
    )


def _installation() -> list[HealthCheck]:
    running = platform.python_version()
    return [
        HealthCheck("python", sys.version_info >= OLDEST_PYTHON, running, "install Python 3.11"),
        HealthCheck(
            "full text search",
            _has_full_text(),
            f"sqlite {sqlite3.sqlite_version}",
            "use a Python whose sqlite3 has FTS5",
        ),
    ]


def _has_full_text() -> bool:
    connection = sqlite3.connect(":memory:")
    try:
        connection.execute("CREATE VIRTUAL TABLE probe USING fts5(words)")
    except sqlite3.OperationalError:
        return False
    finally:
        connection.close()
    return True


def _memory(store: str | None, tenant: str | None) -> list[HealthCheck]:
    with open_memory(store, tenant) as memory:  # for writing, so that this is tried as well
        return list(memory.health())


def _versions() -> dict[str, str]:
    found = {"python": platform.python_version(), "sqlite": sqlite3.sqlite_version}
    return found | {name: version(name) for name in (DISTRIBUTION, *LIBRARIES)}


def _installed(name: str) -> bool:
    try:
        return bool(version(name))
    except PackageNotFoundError:
        return False


def checkup_record(checkup: Checkup) -> dict[str, Json]:
    """The JSON object of *checkup*."""
    checks: list[Json] = [
        {"name": check.name, "ok": check.ok, "detail": check.detail, "remedy": check.remedy}
        for check in checkup.checks
    ]
    return {
        "ok": checkup.ok,
        "store": checkup.store,
        "checks": checks,
        "versions": dict(checkup.versions),
        "extras": dict(checkup.extras),
    }

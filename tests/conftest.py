"""What every test starts from: an environment without settings and a home of its own."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from tests.server import missing_server, neo4j, neo4j_server

__all__ = ["neo4j", "neo4j_server"]

_SETTINGS_PREFIXES = ("CONTEXTGRAPH_", "OPENAI_")

# Two shared cores make any deadline a lie; a repeatable run in CI makes a red build reproducible.
settings.register_profile("local", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "local")


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Tests see neither the settings nor the memory of whoever runs them."""
    for name in os.environ:
        if name.startswith(_SETTINGS_PREFIXES):
            monkeypatch.delenv(name)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say loudly that tests were skipped for want of a server."""
    if reason := missing_server(terminalreporter.config):
        terminalreporter.section("NOT RUN: tests against a Neo4j server", red=True, bold=True)
        terminalreporter.line(reason)

"""The start of every test: an environment without settings and a home of its own."""

import fcntl
import gc
import os
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from contextgraph import AgentMemory
from tests.environments import (
    agent_sdks,
    axe,
    claude_code,
    codex_cli,
    gemini_cli,
    mini_swe_agent,
    opencode,
    openhands,
    uv,
    zensical,
)
from tests.new_memories import copy_new_memories
from tests.plans import plans
from tests.postgres import postgres
from tests.profiles import load_default_profile
from tests.server import (
    Neo4jServer,
    computed,
    neo4j,
    neo4j_server,
    neo4j_to_change,
    neo4j_with_indexes,
)

__all__ = [
    "agent_sdks",
    "axe",
    "claude_code",
    "codex_cli",
    "gemini_cli",
    "mini_swe_agent",
    "neo4j",
    "neo4j_server",
    "neo4j_to_change",
    "neo4j_with_indexes",
    "opencode",
    "openhands",
    "plans",
    "postgres",
    "uv",
    "zensical",
]

_SETTINGS_PREFIXES = ("CONTEXTGRAPH_", "OPENAI_")
# Seconds of each test process, and of its server.
_COMPUTED: list[tuple[float, float]] = []

_HOMES = count()

load_default_profile()


@pytest.fixture(autouse=True)
def clean_environment(
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    """Tests see neither the settings nor the memory of the user who runs them.

    The home is in the folder of the test, where it has one: to make one takes 3 ms.
    """
    if "tmp_path" in request.fixturenames:
        home = request.getfixturevalue("tmp_path") / "home"
    else:
        home = tmp_path_factory.getbasetemp() / f"home-{next(_HOMES)}"
    for name in os.environ:
        if name.startswith(_SETTINGS_PREFIXES):
            monkeypatch.delenv(name)
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"):
        monkeypatch.setenv(name, str(home))


@pytest.fixture(autouse=True)
def copied_memories(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """New memories are copies, but in tests that are marked ``makes_tables``."""
    if request.node.get_closest_marker("makes_tables") is None:
        copy_new_memories(monkeypatch)


@pytest.fixture(params=["memory.db", "networkx:", "neo4j"])
def any_memory(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[AgentMemory]:
    """An empty memory on each store in turn, with keyed files."""
    address, auth = str(request.param), None
    if address == "neo4j":
        server: Neo4jServer = request.getfixturevalue("neo4j_with_indexes")
        address, auth = server.uri, server.auth
    elif not address.endswith(":"):
        address = str(tmp_path / address)
    monkeypatch.setenv("CONTEXTGRAPH_KEYED_ROOT", str(tmp_path / "keyed"))
    with AgentMemory.open(address, auth=auth) as memory:
        yield memory


@pytest.fixture
def results_of(monkeypatch: pytest.MonkeyPatch) -> Callable[[type, str], list[Any]]:
    """Notes what each call of a method returns: (class, method name) -> the growing list."""

    def note(owner: type, name: str) -> list[Any]:
        results, method = list[Any](), getattr(owner, name)

        def noted(*args: Any, **kwargs: Any) -> Any:
            results.append(method(*args, **kwargs))
            return results[-1]

        monkeypatch.setattr(owner, name, noted)
        return results

    return note


def pytest_configure(config: pytest.Config) -> None:
    """Register a marker of these tests, and that of xdist, for runs without xdist."""
    config.addinivalue_line("markers", "makes_tables: new memories are not copied")
    config.addinivalue_line("markers", "xdist_group(name): run by one of several test processes")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without looking for garbage, which took half of the time: all of it stays."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Have one test process compile a new module of tests; the others wait, and read the result.

    In a new clone, each of them would take 20 s to compile all modules.
    """
    if not isinstance(collector, pytest.Module):
        return (yield)
    with collector.path.open() as module:
        fcntl.flock(module, fcntl.LOCK_EX)
        return (yield)


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Have one process run all tests that need Neo4j, in the order in which it plans least.

    Each further server takes a minute. Statements are planned first in a memory that is large
    enough to look at their plans; when an index is made or dropped, all are planned again.
    """
    items.sort(key=_last_on_a_server)
    for item in items:
        fixtures = getattr(item, "fixturenames", ())
        if "neo4j_server" in fixtures or "neo4j" in item.name.lower():
            item.add_marker(pytest.mark.xdist_group("neo4j"))


def _last_on_a_server(item: pytest.Item) -> int:
    fixtures = getattr(item, "fixturenames", ())
    return 2 * ("neo4j" in fixtures) + ("neo4j_to_change" in fixtures) - ("plans" in fixtures)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Say how long the processor worked for this process, its children and their server."""
    used = os.times()
    seconds = used.user + used.system
    if not session.config.getoption("numprocesses", None):  # else the children say so themselves
        seconds += used.children_user + used.children_system
    output: dict[str, object] = getattr(session.config, "workeroutput", {})
    output["computed"] = seconds, sum(computed)
    _COMPUTED.append((seconds, sum(computed)))


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Add what a test process computed; one that crashed says nothing."""
    _COMPUTED.append(getattr(node, "workeroutput", {}).get("computed", (0.0, 0.0)))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print a line for each reason why tests were skipped, and the processor time of all."""
    own = sum(seconds for seconds, _ in _COMPUTED)
    servers = [seconds for _, seconds in _COMPUTED if seconds]
    named = f"their Neo4j servers ({len(servers)}) {sum(servers):.0f} s"
    terminalreporter.line(f"processor time: tests {own:.0f} s, {named}")
    skipped = terminalreporter.stats.get("skipped", [])
    for reason, tests in Counter(report.longrepr[2] for report in skipped).items():
        line = f"NOT RUN: {tests} tests: {reason.removeprefix('Skipped: ')}"
        terminalreporter.line(line, red=True, bold=True)

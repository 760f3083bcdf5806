"""What the agent is about, step by step."""

import re
from collections.abc import Iterable

from contextgraph.model import Phase
from contextgraph.trace.actions.kinds import ActionKind
from contextgraph.trace.actions.reading import ActionReading

_SCRIPT = re.compile(
    r"(?:^|[/_-])(?:reproduc\w*|repro\d*|test|tests|check|debug|demo|example|verify|try|simulat\w*"
    r"|replicat\w*|script|sandbox|trigger|minimal|mwe|issue|bug|tmp|temp)(?:[/_.-]|\d|$)"
)
_ORIENTATION = re.compile(
    r"(?:^|/)(?:readme|contributing|changelog|changes|history|license|setup\.(?:py|cfg)"
    r"|pyproject\.toml|tox\.ini|package\.json|requirements)[^/]*$",
    re.IGNORECASE,
)
_ASKS_VERSION = re.compile(r"--version\b|\bpip3? (?:list|show|freeze)\b|\b__version__\b| -V$")
_TEST_DIRECTORY = re.compile(r"(?:^|/)tests?/")
_RUNS = frozenset({ActionKind.RUN, ActionKind.TEST, ActionKind.INSTALL, ActionKind.OTHER})
_QUIET = frozenset({"", "cd", "echo", "export", "pushd", "true", "sleep", "history", "type"})


class PhaseTracker:
    """The phase of each step of one run, told in constant time as the steps come."""

    def __init__(self) -> None:
        self._source_edited = False
        self._scripts: set[str] = set()
        self._last = Phase.UNDERSTANDING

    def push(self, reading: ActionReading) -> Phase:
        """The phase of the next step."""
        self._last = self._phase(reading)
        return self._last

    def _phase(self, reading: ActionReading) -> Phase:
        kind = reading.kind
        if kind is ActionKind.SUBMIT:
            return Phase.SUBMITTING
        if kind is ActionKind.THINK or (kind is ActionKind.OTHER and reading.verb in _QUIET):
            return self._last
        if kind in _RUNS:
            self._note_changes(reading)
            return Phase.UNDERSTANDING if _asks(reading) else self._trying()
        if kind in (ActionKind.EDIT, ActionKind.CREATE):
            return self._writing(reading)
        if kind is ActionKind.DELETE or kind is ActionKind.VCS:
            return self._tidying(reading)
        return self._looking(reading)

    def _trying(self) -> Phase:
        return Phase.TESTING if self._source_edited else Phase.REPRODUCING

    def _writing(self, reading: ActionReading) -> Phase:
        return Phase.FIXING if self._note_changes(reading) else self._trying()

    def _note_changes(self, reading: ActionReading) -> bool:
        """Whether the step changes the project's own files rather than scripts of the agent."""
        created = reading.kind is ActionKind.CREATE
        for path in reading.changed:
            script_name = _SCRIPT.search(path.lower()) is not None
            by_agent = created or not _TEST_DIRECTORY.search(path)
            at_top = created and "/" not in path and reading.verb == "create"
            if path in self._scripts or (script_name and by_agent) or at_top:
                self._scripts.add(path)
            else:
                self._source_edited = True
                return True
        return False

    def _tidying(self, reading: ActionReading) -> Phase:
        if self._source_edited:
            return Phase.SUBMITTING
        return Phase.UNDERSTANDING if reading.kind is ActionKind.VCS else Phase.REPRODUCING

    def _looking(self, reading: ActionReading) -> Phase:
        if reading.kind is ActionKind.LIST:
            return Phase.UNDERSTANDING
        if any(path in self._scripts for path in reading.targets):
            return self._trying()
        if reading.targets and all(_ORIENTATION.search(path) for path in reading.targets):
            return Phase.UNDERSTANDING
        return Phase.LOCATING


def phases_of(readings: Iterable[ActionReading]) -> tuple[Phase, ...]:
    """The phase of every step of a run."""
    tracker = PhaseTracker()
    return tuple(tracker.push(reading) for reading in readings)


def _asks(reading: ActionReading) -> bool:
    command = reading.command[:300]
    telling = "version" in command or "pip" in command or command.endswith(" -V")
    return telling and _ASKS_VERSION.search(command) is not None

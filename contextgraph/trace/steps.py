"""The steps of a run, read one by one, each with its phase."""

import posixpath
import re
from collections.abc import Iterable, Iterator

from contextgraph.lazy import dataclass, regex, replace
from contextgraph.model import ErrorSignature, Phase, RawTrajectory, Step
from contextgraph.trace.actions import (
    ActionReader,
    ActionReading,
    files_written_by,
    new_text,
    repository_path,
)
from contextgraph.trace.errors.signature import error_at
from contextgraph.trace.kinds import ActionKind

_SCRIPT = regex(
    r"(?:^|[/_-])(?:reproduc\w*|repro\d*|test|tests|check|debug|demo|example|verify|try|simulat\w*"
    r"|replicat\w*|script|sandbox|trigger|minimal|mwe|issue|bug|tmp|temp)(?:[/_.-]|\d|$)"
)
_ORIENTATION = regex(
    r"(?:^|/)(?:readme|contributing|changelog|changes|history|license|setup\.(?:py|cfg)"
    r"|pyproject\.toml|tox\.ini|package\.json|requirements)[^/]*$",
    re.IGNORECASE,
)
_VERSION_QUERY = regex(r"--version\b|\bpip3? (?:list|show|freeze)\b|\b__version__\b| -V$")
_TEST_DIRECTORY = regex(r"(?:^|/)tests?/")
# How thoughts describe a new file of the project, and one that only tries something out.
_IMPLEMENTS = regex(r"implement|functionality|\b(?:add|define|write) the\b", re.IGNORECASE)
_TRIES_OUT = regex(
    r"script|reproduc|replicat|simulat|\btest|verif|check|exampl|sample|snippet|mock|dummy|paste",
    re.IGNORECASE,
)
_SETS_UP = regex(r"\b(?:clone|checkout|fetch|switch|submodule)\b")
_CLEANS_UP = regex(r"no longer|clean\w* up|submit", re.IGNORECASE)
_SHORTEST_LINE = 8
_QUIET = frozenset({"", "cd", "echo", "export", "pushd", "true", "sleep", "history", "type"})


class PhaseTracker:
    """The phase of each step of a growing run, at constant cost per step."""

    def __init__(self) -> None:
        self._source_edited = False
        self._scripts: set[str] = set()
        self._lines: dict[str, bool] = {}
        self._last = Phase.UNDERSTANDING

    def push(self, step: Step, reading: ActionReading, error: ErrorSignature | None) -> Phase:
        """The phase of the next step, which does what *reading* says and met *error*."""
        lines = [line.strip() for line in new_text(step.action, reading)]
        lines = [line for line in lines if len(line) >= _SHORTEST_LINE]
        edits_source = self._edits_source(step, reading, lines)
        self._last = self._phase(step, reading, edits_source=edits_source)
        if error is None:
            # A refused edit leaves the project as it is, and may have been meant for elsewhere.
            self._source_edited = self._source_edited or edits_source
            self._lines.update(dict.fromkeys(lines, not edits_source))
        return self._last

    def _phase(self, step: Step, reading: ActionReading, *, edits_source: bool) -> Phase:
        kind = reading.kind
        if kind is ActionKind.SUBMIT:
            return Phase.SUBMITTING
        if kind is ActionKind.THINK or (kind is ActionKind.OTHER and reading.verb in _QUIET):
            return self._last
        # A line that also edits the project, and then runs it, is about the edit.
        if reading.scripted or (edits_source and not kind.writes):
            return Phase.FIXING
        if kind.runs or kind is ActionKind.INSTALL or kind is ActionKind.OTHER:
            return Phase.UNDERSTANDING if is_version_query(reading) else self._trying()
        if kind.writes:
            return Phase.FIXING if edits_source else self._trying()
        if kind is ActionKind.DELETE or kind is ActionKind.VCS:
            return self._cleaning_up(step, reading)
        return self._looking(reading)

    def _trying(self) -> Phase:
        return Phase.TESTING if self._source_edited else Phase.REPRODUCING

    def _edits_source(self, step: Step, reading: ActionReading, lines: list[str]) -> bool:
        """Whether the step changes the project's own files rather than scripts of the agent."""
        if reading.scripted:
            return True
        if reading.kind is ActionKind.DELETE or not reading.changed:
            return False
        scripts = [path for path in reading.changed if self._is_script(path, step, reading)]
        self._scripts.update(scripts)
        in_source = len(scripts) < len(reading.changed)
        first_line = step.action.text.partition("\n")[0]
        text = f"{step.thought} {first_line}"
        if _names(text, reading.changed) and not (in_source and _names(text, self._scripts)):
            return in_source
        return self._is_text_of_source(lines, default=in_source)

    def _is_script(self, path: str, step: Step, reading: ActionReading) -> bool:
        created = reading.kind is ActionKind.CREATE
        if path in self._scripts:
            return True
        if _SCRIPT.search(path.lower()) and (created or not _TEST_DIRECTORY.search(path)):
            return True
        if not created or "/" in path or reading.verb != "create":
            return False
        return _TRIES_OUT.search(step.thought) is not None or not _IMPLEMENTS.search(step.thought)

    def _is_text_of_source(self, lines: list[str], *, default: bool) -> bool:
        """Whether text seen before is the project's: agents forget which file is open, not that."""
        known = [self._lines[line] for line in lines if line in self._lines]
        if 2 * len(known) < len(lines) or len(set(known)) != 1:
            return default
        self._lines.update(dict.fromkeys(lines, known[0]))
        return not known[0]

    def _cleaning_up(self, step: Step, reading: ActionReading) -> Phase:
        if self._source_edited or _CLEANS_UP.search(step.thought):
            return Phase.SUBMITTING
        if reading.kind is ActionKind.VCS and not _SETS_UP.search(reading.command[:300]):
            return Phase.UNDERSTANDING
        return Phase.REPRODUCING

    def _looking(self, reading: ActionReading) -> Phase:
        if reading.kind is ActionKind.LIST:
            return Phase.UNDERSTANDING
        if any(path in self._scripts for path in reading.targets):
            return self._trying()
        if reading.targets and all(_ORIENTATION.search(path) for path in reading.targets):
            return Phase.UNDERSTANDING
        return Phase.LOCATING


def _names(text: str, paths: Iterable[str]) -> bool:
    return any(posixpath.basename(path) in text for path in paths)


def is_version_query(reading: ActionReading) -> bool:
    """True for a command that only asks which version of something is there."""
    return _VERSION_QUERY.search(reading.command[:300]) is not None


@dataclass(frozen=True, slots=True)
class StepTrace:
    """Trace of one step: its action, phase and error."""

    step: Step
    reading: ActionReading
    phase: Phase
    error: ErrorSignature | None = None

    @property
    def index(self) -> int:
        """The place of the step in its run."""
        return self.step.index

    @property
    def succeeded(self) -> bool:
        """True where an answer came and shows no error."""
        return self.error is None and self.step.observation is not None


class StepReader:
    """Reads the steps of a growing run, each at constant cost, knowing only what came before."""

    def __init__(self) -> None:
        self._phases = PhaseTracker()
        self._scripts: dict[str, tuple[str, ...]] = {}
        self._actions = ActionReader()

    def push(self, step: Step) -> StepTrace:
        """Trace the next step."""
        reading = self._with_scripts(step, self._actions.push(step))
        error = error_at(step, reading)
        return StepTrace(step, reading, self._phases.push(step, reading, error), error)

    def _with_scripts(self, step: Step, reading: ActionReading) -> ActionReading:
        """*reading* with the files that scripts which the run wrote change when they are run."""
        for script in reading.changed:
            if script.endswith(".py"):
                program = "\n".join(new_text(step.action, reading))
                self._scripts[script] = tuple(self._edited_by(program))
        if not reading.kind.runs:
            return reading
        scripted = (file for path in reading.targets for file in self._scripts.get(path, ()))
        return replace(reading, scripted=tuple(dict.fromkeys(scripted)))

    def _edited_by(self, program: str) -> Iterator[str]:
        """The files of a repository that *program* reads and writes."""
        for file in files_written_by(program) if ".read" in program else ():
            path = repository_path(file, self._actions.cwd)
            if "/" in path and not path.startswith("/"):
                yield repository_path(file, self._actions.cwd, self._actions.checkout)


def read_steps(raw: RawTrajectory) -> Iterator[StepTrace]:
    """The steps of *raw* in order, each read knowing only what came before it."""
    return map(StepReader().push, raw.steps)

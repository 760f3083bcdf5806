"""The playbook of a repository: what its runs agree on. Counts are of independent instances."""

from enum import StrEnum

from contextgraph.lazy import dataclass
from contextgraph.model.error import Cause, RemedyPattern
from contextgraph.model.note import Note


class Freshness(StrEnum):
    """Whether the files that advice names have the content that runs left or found.

    Unknown without a working tree, and where no run recorded a hash of the content.
    """

    UNCHANGED = "unchanged"
    CHANGED = "changed"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Environment:
    """The machine that an agent works on, as far as a log shows it.

    *system* is ``linux``, ``darwin`` or ``win32``, *root* the folder that it mostly works in, and
    *versions* are pairs of an interpreter and its version (``("python", "2.7")``).
    """

    system: str = ""
    root: str = ""
    versions: tuple[tuple[str, str], ...] = ()

    def agrees(self, other: "Environment") -> bool:
        """Return whether both may be the same machine: nothing that is known of both differs.

        The folder may differ: each task may have its own.
        """
        ours, theirs = dict(self.versions), dict(other.versions)
        is_same = not (self.system and other.system) or self.system == other.system
        return is_same and all(ours[name] == theirs[name] for name in ours.keys() & theirs.keys())


@dataclass(frozen=True, slots=True)
class PlaybookFile:
    """A file of the project: how many tasks *changed* and how many *opened* it.

    *probability* is that of being changed for the task, 0 to 1; *symbols* are functions and classes
    in it that the task names or several tasks changed, the most frequent first.
    """

    path: str
    changed: int
    opened: int
    probability: float
    symbols: tuple[str, ...] = ()
    freshness: Freshness = Freshness.UNKNOWN


@dataclass(frozen=True, slots=True)
class CommandRecord:
    """How a command went: it *worked* in so many tasks of those that *tried* it.

    *command* has ``<tests>`` instead of the choice of tests, ``<script>`` instead of a script
    that the run had made; *folder* is where it ran, relative to the repository, empty for its root.
    Tests that failed ran, so the command worked. *error_type* is the most frequent reason why it
    did not. *prompted* counts the tasks in which it only followed another command of its kind, or,
    an installation, something that did not run. *source* is the only one that it is known from,
    where runs have several ("" for the owner): what another one alone says is not agreed.
    """

    command: str
    folder: str
    worked: int
    tried: int
    error_type: str = ""
    prompted: int = 0
    freshness: Freshness = Freshness.UNKNOWN
    source: str | None = None

    @property
    def line(self) -> str:
        """The command line, from the root of the repository."""
        return f"cd {self.folder} && {self.command}" if self.folder else self.command

    @property
    def is_agreed(self) -> bool:
        """True where it worked in at least two tasks, and in most of those that tried it."""
        return not self.source and self.worked >= max(2, 0.6 * self.tried)

    @property
    def is_news(self) -> bool:
        """True where at least a third of the tasks that tried it did not begin with it."""
        return 3 * self.prompted >= self.tried


@dataclass(frozen=True, slots=True)
class FailingTest:
    """A test that failed when it was last run, in so many *tasks*, and was fixed in none."""

    name: str
    tasks: int


@dataclass(frozen=True, slots=True)
class MachineFact:
    """Causes of errors in the machine or the harness of an agent, whatever the message.

    It did so in *tasks* of *among*, and cost *steps* in a run. *fails* does not work, *works* does
    instead; programs, packages or commands, empty where the *cause* says it all. *patterns* are
    what cleared it.
    """

    cause: Cause
    fails: str
    works: str
    tasks: int
    among: int
    steps: float
    patterns: tuple[RemedyPattern, ...] = ()


@dataclass(frozen=True, slots=True)
class RepositoryPlaybook:
    """Facts that the runs of a repository agree on, each list best first; false where empty.

    *runs* were looked at, of so many *tasks*. *tests* are test commands, *scripts* ways to run
    Python with the imports of the project, *setup* are installations. *package* is the folder that
    *package_tasks* changed files in. *notes* are those that people pinned, the newest first;
    *degraded* says why they could not be read. *checks* are commands that tasks ran again and
    again and that refused some, such as linters and builds: one *worked* where it refused nothing.
    *facts* are those of the machine and the harness, the most costly first; *environment* is the
    one whose runs were looked at. *quarantined* are the ids of lines that are never shown.
    """

    repo: str
    runs: int = 0
    tasks: int = 0
    files: tuple[PlaybookFile, ...] = ()
    tests: tuple[CommandRecord, ...] = ()
    scripts: tuple[CommandRecord, ...] = ()
    setup: tuple[CommandRecord, ...] = ()
    failing_tests: tuple[FailingTest, ...] = ()
    package: str = ""
    package_tasks: int = 0
    notes: tuple[Note, ...] = ()
    degraded: str = ""
    facts: tuple[MachineFact, ...] = ()
    checks: tuple[CommandRecord, ...] = ()
    environment: Environment = Environment()
    quarantined: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """True where anything is known."""
        return bool(self.runs or self.notes or self.facts)


@dataclass(frozen=True, slots=True)
class CommandHistory:
    """How a *command* is really run in a repository that has *runs* in the memory.

    *form* is how all commands of its form went, in any folder, *first* how the first one of each
    run did: what a run installs makes others work. *exact* is the record of this very command, None
    where no run gave it. *ways* are the commands of this form as they were typed, the
    most frequent first; *others* are other commands for the same purpose that mostly worked.
    """

    repo: str
    command: str
    runs: int = 0
    form: CommandRecord | None = None
    first: CommandRecord | None = None
    exact: CommandRecord | None = None
    ways: tuple[CommandRecord, ...] = ()
    others: tuple[CommandRecord, ...] = ()

    def __bool__(self) -> bool:
        """True where any run gave a command of this form."""
        return self.form is not None

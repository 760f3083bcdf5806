"""Facts that a run shows of its project and of the machine that it ran on."""

import dataclasses
import re
from collections.abc import Mapping

from msgspec import Struct, field

from contextgraph.model.error import Cause, RemedyPattern
from contextgraph.model.step import ActionKind
from contextgraph.model.trajectory import PatchSummary

_HOME = re.compile(r"(?:/home|/Users|[A-Za-z]:[\\/]Users)[\\/][^\\/]+|\.")
TESTS = "<tests>"  # stands for the choice of tests in the form of a command


@dataclasses.dataclass(frozen=True, slots=True)
class Environment:
    """The machine that an agent works on, as far as a log shows it.

    *system* is ``linux``, ``darwin`` or ``win32``, *root* the folder that it mostly works in, and
    *versions* are pairs of an interpreter and its version (``("python", "2.7")``).
    """

    system: str = ""
    root: str = ""
    versions: tuple[tuple[str, str], ...] = ()

    def agrees(self, other: "Environment") -> bool:
        """Return True if both may be the same machine: no known value differs.

        The folder may differ, because each task may have its own.
        """
        if self.system and other.system and self.system != other.system:
            return False
        ours = dict(self.versions)
        return all(ours.get(name, version) == version for name, version in other.versions)

    def is_at_home(self, other: "Environment") -> bool:
        """Return False where both folders are known, and are in homes of different people.

        A folder that is not absolute was renamed when the log was published.
        """
        theirs = _HOME.match(other.root)
        ours = theirs and _HOME.match(self.root)
        return not (ours and theirs) or ours[0] == theirs[0]


class CommandUse(Struct, frozen=True, omit_defaults=True):
    """A command that a run gave, and whether it *ran*: a test that fails ran, too.

    *text* is as typed, without redirections; *form* has placeholders for the choice of tests and
    for scripts of the run; *folder* is where it ran, relative to the repository. *error_type* says
    why it did not run, or what it reported. *prompted*: the run had given another command of its
    kind before, or, before an installation, one that did not run.
    """

    kind: ActionKind
    text: str
    form: str
    folder: str
    ran: bool
    error_type: str = ""
    prompted: bool = False

    @property
    def runner(self) -> str:
        """Its form whether or not tests were chosen: that does not decide whether it runs."""
        return self.form.removesuffix(f" {TESTS}")


class Loss(Struct, frozen=True, omit_defaults=True):
    """Steps that a run lost by a *cause* of its machine, and the *pattern* of what cleared it.

    These are the steps from *error_step* to the one before *cleared_step*. *fails* and *works* are
    those of `trace.Lesson`.
    """

    cause: Cause
    fails: str
    works: str
    error_step: int
    cleared_step: int
    pattern: RemedyPattern


class RunMachine(Struct, frozen=True, omit_defaults=True):
    """The part of `RunFacts` about the machine: its *environment*, and the steps that it cost."""

    environment: Environment = Environment()
    losses: tuple[Loss, ...] = ()


class RunLosses(Struct, frozen=True):
    """A run with what its machine cost it; *contributor* supplied it."""

    instance_id: str
    repo: str
    losses: tuple[Loss, ...]
    environment: Environment = Environment()
    contributor: str = ""


class RunFacts(Struct, frozen=True, omit_defaults=True):
    """Facts that one run shows of its project, and of its machine.

    *created* are files that the run itself made, *opened* those it looked at, *listed* those that
    listings and searches showed. *names* are functions, classes and other names by file, and by
    module (a path without ending) where an import showed them. *failing* are the tests that failed
    when they were last run. *patch* is what it changed in existing files, and *symbols* the
    functions and classes of that by file. *edited* are files that it wrote or changed by actions.
    *content_hashes* are git's hashes of files, by path, maybe abbreviated. *environment* is the
    machine that it ran on, *losses* are the steps that this machine cost it. Paths are sorted.
    """

    commands: tuple[CommandUse, ...] = ()
    created: tuple[str, ...] = ()
    opened: tuple[str, ...] = ()
    listed: tuple[str, ...] = ()
    names: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    failing: tuple[str, ...] = ()
    patch: PatchSummary = PatchSummary()
    symbols: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    edited: tuple[str, ...] = ()
    content_hashes: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    environment: Environment = Environment()
    losses: tuple[Loss, ...] = ()

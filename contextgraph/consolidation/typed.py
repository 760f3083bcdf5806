"""Which commands worked in a repository: how it is tested, and what has to be installed."""

import re
from collections.abc import Iterator
from functools import lru_cache

from contextgraph.consolidation.policy import ConsolidationPolicy
from contextgraph.consolidation.sighting import Sighting, by_what, is_enough, practice, runs_of
from contextgraph.model import (
    Action,
    Fragment,
    FragmentOutcome,
    PastRun,
    Phase,
    PracticeGroup,
    RepoHistory,
    Source,
    TaskType,
)
from contextgraph.trace import ActionKind, read_action

# What a command is for: in which phase it is said, and how.
_FOR = {
    ActionKind.TEST: (Phase.TESTING, "tests are run with `{}`"),
    ActionKind.INSTALL: (Phase.REPRODUCING, "run `{}` first"),
}
_TEST_FILE = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test)\.\w+(?:::.*)?$|(?:^|/)tests?/.*\.\w+$")
_CHOICE = re.compile(r"(?<=\s-k\s)(?:\"[^\"]*\"|'[^']*'|\S+)")
_CUT = "…"


def typed_in(history: RepoHistory, policy: ConsolidationPolicy) -> Iterator[PracticeGroup]:
    """The commands that most runs of *history* used that did such a thing without an error.

    Of all its runs together, or else of those of one type of task.
    """
    for kind, (phase, told) in _FOR.items():
        every = [sighting for run in history.runs for sighting in _typed(run, kind)]
        whole = _group(history.repo, phase, told, None, every, policy)
        if whole is not None:
            yield whole
            continue
        for task_type in TaskType:
            of_type = [one for one in every if one.run.task_type is task_type]
            part = _group(history.repo, phase, told, task_type, of_type, policy)
            if part is not None:
                yield part


def _typed(run: PastRun, kind: ActionKind) -> Iterator[Sighting]:
    for fragment in run.fragments:
        if fragment.outcome is not FragmentOutcome.COMPLETED:
            continue
        for command in dict.fromkeys(_commands(fragment, kind)):
            source = Source(run.trajectory.id, fragment.id)
            yield Sighting(run.trajectory, command, source, fragment.end - fragment.start + 1)


def _commands(fragment: Fragment, kind: ActionKind) -> Iterator[str]:
    for line in fragment.action_sequence:
        if not line.endswith(_CUT):
            found, command = _read(line)
            if found is kind:
                yield command


@lru_cache(8192)
def _read(line: str) -> tuple[ActionKind, str]:
    """What a line is for, and its command, with placeholders for which tests are run."""
    reading = read_action(Action("", line), None, None)
    tokens = _CHOICE.sub("<name>", " ".join(reading.command.split())).split(" ")
    masked = ["<test file>" if _TEST_FILE.search(token) else token for token in tokens]
    return reading.kind, " ".join(masked)


def _group(
    repo: str,
    phase: Phase,
    told: str,
    task_type: TaskType | None,
    every: list[Sighting],
    policy: ConsolidationPolicy,
) -> PracticeGroup | None:
    doing = runs_of(every)
    usual = [
        (command, found)
        for command, found in by_what(every)
        if is_enough(found, policy) and len(runs_of(found)) > policy.practice_share * len(doing)
    ][: policy.remedies]
    if not usual:
        return None
    covered = [sighting for _, found in usual for sighting in found]
    return PracticeGroup(
        repo=repo,
        phase=phase,
        keyword="",
        task_type=task_type,
        about=len(doing),
        others=0,
        otherwise=0,
        solved=len({one.run.id for one in covered if one.run.success}),
        practices=tuple(practice(told.format(command), found) for command, found in usual),
        sources=tuple(sorted({one.source for one in covered})),
    )
